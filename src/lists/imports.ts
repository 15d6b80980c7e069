import { createError, type ErrorObject } from "../errors/catalog.ts";
import { forEachInTurns, yieldTurn } from "../util/turns.ts";
import { type Details, toStoredDetails } from "./details.ts";
import { guidOf, readFeedUrl } from "./feed-url.ts";
import { applyChange, MemoryList, toOutcome } from "./list.ts";
import {
  type Addition,
  applyAccepted,
  type Caller,
  isRefusal,
  type Outcome,
  type SequenceRange,
  type SubscriptionStore,
} from "./subscription.ts";

/** A feed to subscribe to, as given in a file or by a person. */
export interface FeedToImport extends Details {
  readonly feedUrl: string;
  /** Line of the file, from 1. */
  readonly line?: number;
  /** Why the import skips it: it appears earlier in the file, or the app that wrote the file marks it as unsubscribed. */
  readonly skip?: "duplicate-in-file" | "unsubscribed-in-file";
}

export interface ImportResult {
  readonly feed: FeedToImport;
  readonly outcome: "added" | "already-subscribed" | "skipped" | "refused";
  /** Why it was skipped or refused. */
  readonly error: ErrorObject | undefined;
  /** Id of the new subscription. */
  readonly id: string | undefined;
}

export interface ImportOptions {
  /** Reports what would happen, and changes nothing. */
  readonly dryRun?: boolean;
  readonly onProgress?: (done: number) => void;
  /** Called after each transaction. */
  readonly onWritten?: (written: SequenceRange) => void;
  /** Called before each transaction; false ends the import. */
  readonly shouldContinue?: () => boolean;
}

/** Feeds per transaction. Other writers get their turn in between. */
export const BATCH_SIZE = 100;

/**
 * Subscribes to each of the feeds. Result N belongs to feed N. Existing subscriptions stay unchanged, so it is safe to repeat
 * an import, even after a failure halfway through.
 */
export async function importFeeds(
  store: SubscriptionStore,
  caller: Caller,
  feeds: readonly FeedToImport[],
  now: Date,
  { dryRun = false, onProgress, onWritten, shouldContinue = () => true }: ImportOptions = {},
): Promise<ImportResult[]> {
  const add = dryRun
    ? await createPreview(store, caller, now)
    : async (additions: readonly Addition[]) => {
        const { outcomes, ...written } = await store.change(caller, additions, now);
        onWritten?.(written);
        return outcomes;
      };
  const results: ImportResult[] = [];
  for (let start = 0; start < feeds.length && shouldContinue(); start += BATCH_SIZE) {
    const batch = feeds.slice(start, start + BATCH_SIZE);
    const additions = batch.map(({ feedUrl, line: _, skip, ...details }) =>
      skip === undefined ? toAddition(feedUrl, details) : { error: createError(skip) },
    );
    const outcomes = await applyAccepted(additions, isRejected, add);
    results.push(...batch.map((feed, index) => toResult(feed, outcomes[index] as Outcome | RejectedFeed)));
    onProgress?.(results.length);
    await yieldTurn();
  }
  return results;
}

/** A feed that is invalid or skipped. */
interface RejectedFeed {
  readonly error: ErrorObject;
}

function isRejected(addition: object): addition is RejectedFeed {
  return "error" in addition;
}

/**
 * Creates the addition for a feed URL that comes without an id. The id is the podcast GUID. Two feeds can share a GUID,
 * which ignores the scheme; if another feed in the list has it, the id is derived from the whole URL.
 */
export function toAddition(feedUrl: string, details: Details = {}): Addition | RejectedFeed {
  const parsed = readFeedUrl(feedUrl);
  if ("errorCode" in parsed) return { error: createError(parsed.errorCode) };
  const id = guidOf(feedUrl);
  return {
    ...details,
    kind: "add",
    id,
    fallbackId: guidOf(feedUrl, "whole"),
    feedUrl,
    normalizedUrl: parsed.normalizedUrl,
  };
}

/** A feed URL that an app has sent; `normalizedUrl` is undefined if it is invalid. */
export interface FeedUpload {
  readonly sent: string;
  readonly url: string;
  readonly normalizedUrl: string | undefined;
}

/** Ignores blank URLs. */
export async function readUploads(urls: readonly string[]): Promise<readonly FeedUpload[]> {
  const uploads: FeedUpload[] = [];
  await forEachInTurns(urls, (sent) => {
    const url = sent.trim();
    if (url === "") return;
    const parsed = readFeedUrl(url);
    uploads.push({ sent, url, normalizedUrl: "normalizedUrl" in parsed ? parsed.normalizedUrl : undefined });
  });
  return uploads;
}

function toResult(feed: FeedToImport, outcome: Outcome | RejectedFeed): ImportResult {
  const refused = (error: ErrorObject) => ({ feed, outcome: "refused", error, id: undefined }) as const;
  if (feed.skip !== undefined && isRejected(outcome)) return { ...refused(outcome.error), outcome: "skipped" };
  if (isRejected(outcome)) return refused(outcome.error);
  if (!isRefusal(outcome)) return { feed, outcome: "added", error: undefined, id: outcome.id };
  if (outcome.code === "already-subscribed") return { feed, outcome: outcome.code, error: undefined, id: undefined };
  if (outcome.code === "quota-exceeded")
    return refused(createError(outcome.code, { max: outcome.max, meta: { max: outcome.max } }));
  return refused(createError(outcome.code === "details-too-long" ? outcome.code : "id-in-use"));
}

type Counts = Record<"found" | "added" | "already_subscribed" | "skipped" | "refused", number>;

/** How many feeds have each outcome, and why feeds were skipped or refused. */
export function countResults(results: readonly ImportResult[]): {
  readonly counts: Counts;
  readonly reasons: readonly { readonly code: ErrorObject["code"]; readonly count: number }[];
} {
  const count = (wanted: ImportResult["outcome"]) => results.filter(({ outcome }) => outcome === wanted).length;
  const reasons = new Map<ErrorObject["code"], number>();
  for (const { error } of results) if (error !== undefined) reasons.set(error.code, (reasons.get(error.code) ?? 0) + 1);
  return {
    counts: {
      found: results.length,
      added: count("added"),
      already_subscribed: count("already-subscribed"),
      skipped: count("skipped"),
      refused: count("refused"),
    },
    reasons: Array.from(reasons, ([code, count]) => ({ code, count })),
  };
}

/** Returns a function that applies additions to an in-memory copy of the user's list, by the same rules as the store. */
async function createPreview(
  store: SubscriptionStore,
  { user, maxSubscriptions: max }: Caller,
  now: Date,
): Promise<(additions: readonly Addition[]) => Promise<Outcome[]>> {
  const { total } = await store.page(user, { offset: 0, size: 1 });
  const list = new MemoryList(0, total);
  return async (additions) => {
    const keys = additions.flatMap(({ id, fallbackId = id, normalizedUrl }) => [
      { id },
      { id: fallbackId },
      { normalizedUrl },
    ]);
    const found = await store.find(user, keys);
    for (const [index, key] of keys.entries()) {
      const subscription = found[index];
      if (subscription === undefined) continue;
      const { id, feedUrl, subscribedAt } = subscription;
      // A subscription found by its id either has another feed or is also found by its feed.
      const feed = "normalizedUrl" in key ? key.normalizedUrl : "";
      const time = subscribedAt.getTime();
      list.load({
        sequence: 0,
        updateSequence: 0,
        id,
        feed,
        feedUrl,
        subscribedAt: time,
        ...toStoredDetails(subscription),
      });
    }
    return additions.map((addition) => {
      const change = { ...addition, feed: addition.normalizedUrl };
      return toOutcome(addition, applyChange(list, change, now.getTime(), max), now, max);
    });
  };
}
