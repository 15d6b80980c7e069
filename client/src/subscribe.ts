import { type Draft, readDocument, readResults, readSubscription, toOperation, toResult } from "./documents.ts";
import { guid } from "./guid.ts";
import { fetchAll } from "./lists.ts";
import { type Answer, PLAIN, type Send } from "./requests.ts";
import type { Feed, Me, SubscribeOptions, SubscribeResult } from "./types.ts";

/** Small enough to show progress. */
const MAX_OPERATIONS = 1_000;
/** Small enough for the default settings of most proxies. */
const MAX_BODY_BYTES = 1_000_000;

export async function subscribe(
  send: Send,
  me: (options: SubscribeOptions) => Promise<Me>,
  feeds: Iterable<Feed>,
  { onProgress, batchSize, signal }: SubscribeOptions,
): Promise<SubscribeResult[]> {
  // A string is iterable too, by characters.
  const given = typeof feeds === "string" ? [feeds] : feeds;
  const wanted = Array.from(given, (feed) => (typeof feed === "string" ? { url: feed } : feed));
  const all: SubscribeResult[] = [];
  if (wanted.length === 0) return all;
  const { counts, limits } = await me({ signal });
  const maxBytes = Math.min(MAX_BODY_BYTES, limits.bodyBytes);
  const { operationsPerRequest, operationsPerMinute } = limits;
  const allowed = Math.min(batchSize || MAX_OPERATIONS, operationsPerRequest, operationsPerMinute ?? Infinity);
  const maxSize = Math.max(1, allowed || 1);
  const tally = { added: 0, alreadySubscribed: 0, refused: 0 };
  let size = maxSize;

  while (all.length < wanted.length) {
    const drafts = takeDrafts(wanted.slice(all.length, all.length + size), maxBytes);
    const answer = await sendOperations(send, drafts, signal);
    if (answer.error && drafts.length > 1) {
      size = drafts.length >> 1;
      continue;
    }
    size = Math.min(maxSize, 2 * size);
    let results = toResults(drafts, answer);
    // An earlier attempt without a response may have added what this one found.
    if (answer.attempt > 1 && results.some(({ outcome }) => outcome === "already-subscribed"))
      results = await findAdded(send, counts.subscriptions + tally.added, all, results, signal);
    for (const { outcome } of results) tally[outcome === "already-subscribed" ? "alreadySubscribed" : outcome] += 1;
    all.push(...results);
    onProgress?.({ done: all.length, total: wanted.length, ...tally, results });
  }
  return all;
}

function sendOperations(send: Send, drafts: readonly Draft[], signal: AbortSignal | undefined): Promise<Answer> {
  return send("/v1/operations", {
    method: "POST",
    type: `${PLAIN};ext="https://jsonapi.org/ext/atomic"`,
    body: JSON.stringify({ "atomic:operations": drafts.map(toOperation) }),
    expected: 413,
    signal,
  });
}

/** A request that is too large with a single feed refuses only that feed. */
function toResults(drafts: readonly Draft[], { text, error }: Answer): SubscribeResult[] {
  const answers = error ? [error] : readDocument(text, readResults);
  return drafts.map((draft, index) => toResult(draft, answers[index]));
}

/**
 * Turns "already-subscribed" into "added" for the feeds that this call has added. Removals only move items towards the
 * front, so everything after the first `known` items is new.
 */
async function findAdded(
  send: Send,
  known: number,
  earlier: readonly SubscribeResult[],
  results: readonly SubscribeResult[],
  signal: AbortSignal | undefined,
): Promise<SubscribeResult[]> {
  const newer = await fetchAll(send, "/v1/subscriptions", known, readSubscription, signal);
  for (const { id } of earlier) newer.delete(id);
  return results.map((result) => {
    const found = newer.get(result.id);
    if (found?.feedUrl !== result.feed) return result;
    // A feed that was given twice is added once.
    newer.delete(found.id);
    return toResult(result, found);
  });
}

/** The first feeds that fit into one request body; at least one. */
function takeDrafts(feeds: readonly Exclude<Feed, string>[], maxBytes: number): Draft[] {
  const drafts: Draft[] = [];
  let bytes = 0;
  for (const { url: feed, id = guid(feed) } of feeds) {
    // A character takes at most three bytes, the rest of the operation less than 200.
    bytes += 3 * feed.length + 200;
    if (drafts.length > 0 && bytes > maxBytes) break;
    drafts.push({ feed, id: id.toLowerCase() });
  }
  return drafts;
}
