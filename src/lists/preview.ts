import type { Caller } from "../accounts/caller.ts";
import { toStoredDetails } from "./details.ts";
import { readFeedUrl } from "./feed-url.ts";
import { applyChange, type KeyedChange, MemoryList, toOutcome } from "./list.ts";
import type { SubscriptionStore } from "./list-store.ts";
import type { Change, Outcome, SubscriptionKey } from "./subscription.ts";

/** Returns a function that applies changes to an in-memory copy of the user's list, by the same rules as the store. */
export async function createPreview(
  store: SubscriptionStore,
  { user, maxSubscriptions: max }: Caller,
  now: Date,
): Promise<(changes: readonly Change[]) => Promise<Outcome[]>> {
  const { total } = await store.page(user, { offset: 0, size: 1 });
  const list = new MemoryList(0, total);
  const loaded = new Set<string>();
  return async (changes) => {
    const keys = changes.flatMap(keysOf);
    const found = await store.find(user, keys);
    for (const [index, key] of keys.entries()) {
      const subscription = found[index];
      if (subscription === undefined) continue;
      const { id, feedUrl, subscribedAt } = subscription;
      const feed = key.kind === "feed" ? key.normalizedUrl : normalize(feedUrl);
      // The copy may have changed since.
      if (loaded.has(`${id} ${feed}`)) continue;
      loaded.add(`${id} ${feed}`);
      const time = subscribedAt.getTime();
      const place = { sequence: -loaded.size, updateSequence: 0 };
      list.load({ ...place, id, feed, feedUrl, subscribedAt: time, ...toStoredDetails(subscription) });
    }
    return changes.map((change) => toOutcome(change, applyChange(list, toKeyed(change), now.getTime(), max), now, max));
  };
}

function keysOf(change: Change): SubscriptionKey[] {
  const keys: SubscriptionKey[] = [];
  if ("id" in change) keys.push({ kind: "id", id: change.id });
  if (change.kind === "add" && change.fallbackId !== undefined) keys.push({ kind: "id", id: change.fallbackId });
  if ("normalizedUrl" in change && change.normalizedUrl !== undefined)
    keys.push({ kind: "feed", normalizedUrl: change.normalizedUrl });
  return keys;
}

function toKeyed(change: Change): KeyedChange<string> {
  if (change.kind === "remove") return change;
  if (change.kind !== "update") return { ...change, feed: change.normalizedUrl };
  return change.normalizedUrl === undefined ? change : { ...change, feed: change.normalizedUrl };
}

function normalize(feedUrl: string): string {
  const parsed = readFeedUrl(feedUrl);
  return parsed.kind === "valid" ? parsed.normalizedUrl : "";
}
