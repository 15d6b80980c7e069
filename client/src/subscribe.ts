import { NO_RESULT, readSubscription } from "./documents.ts";
import { guid } from "./guid.ts";
import { fetchAll } from "./lists.ts";
import { sendOperations } from "./operations.ts";
import type { Send } from "./requests.ts";
import type { Feed, Me, Operation, OperationResult, SubscribeOptions, SubscribeResult } from "./types.ts";

export type Add = Operation & { readonly op: "add" };

export async function subscribe(
  send: Send,
  me: (options: SubscribeOptions) => Promise<Me>,
  feeds: Iterable<Feed>,
  { onProgress, batchSize, signal }: SubscribeOptions,
): Promise<SubscribeResult[]> {
  // A string is iterable too, by characters.
  const wanted = Array.from(typeof feeds === "string" ? [feeds] : feeds, toAdd);
  const all: SubscribeResult[] = [];
  if (wanted.length === 0) return all;
  const { counts, limits } = await me({ signal });
  const tally = { added: 0, alreadySubscribed: 0, refused: 0 };
  for await (const { results: batch, isRetry } of sendOperations(send, wanted, limits, { batchSize, signal })) {
    let results = wanted
      .slice(all.length, all.length + batch.length)
      .map(({ feedUrl, id }, index) => toResult(feedUrl, id, batch[index]));
    if (isRetry && results.some(({ outcome }) => outcome === "already-subscribed"))
      results = await findAdded(send, counts.subscriptions + tally.added, all, results, signal);
    for (const { outcome } of results) tally[outcome === "already-subscribed" ? "alreadySubscribed" : outcome] += 1;
    all.push(...results);
    onProgress?.({ done: all.length, total: wanted.length, ...tally, results });
  }
  return all;
}

export function toAdd(feed: Feed): Add {
  const { url, id = guid(url), ...attributes } = typeof feed === "string" ? { url: feed } : feed;
  return { op: "add", id: id.toLowerCase(), feedUrl: url, ...attributes };
}

function toResult(feed: string, id: string, result: OperationResult | undefined): SubscribeResult {
  if (result?.outcome === "done" && result.subscription)
    return { feed, id, outcome: "added", subscription: result.subscription };
  const { status, code, title, detail } = result?.outcome === "refused" ? result.error : NO_RESULT;
  const outcome = code === "already-subscribed" ? "already-subscribed" : "refused";
  return { feed, id, outcome, error: { status, code, title, detail } };
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
  const items = await fetchAll(send, "/v1/subscriptions", known, readSubscription, signal);
  const newer = new Map(items.map((item) => [item.id, item]));
  for (const { id } of earlier) newer.delete(id);
  return results.map((result) => {
    const found = newer.get(result.id);
    if (found?.feedUrl !== result.feed) return result;
    // A feed that was given twice is added once.
    newer.delete(found.id);
    return { feed: result.feed, id: result.id, outcome: "added", subscription: found };
  });
}
