import type { UserId } from "../accounts/caller.ts";
import { readFeedUrl } from "./feed-url.ts";
import type { SubscriptionStore } from "./list-store.ts";
import type { RemovedSubscription } from "./subscription.ts";

/** Feeds that were removed and not added again, each once, newest first. Considers only the last `limit` removals. */
export async function listRemovals(
  store: Pick<SubscriptionStore, "removals" | "find">,
  user: UserId,
  limit: number,
): Promise<RemovedSubscription[]> {
  const newest = new Map<string, RemovedSubscription>();
  for (const removal of await store.removals(user, limit)) {
    const parsed = readFeedUrl(removal.feedUrl);
    if (parsed.kind === "valid" && !newest.has(parsed.normalizedUrl)) newest.set(parsed.normalizedUrl, removal);
  }
  const found = await store.find(
    user,
    [...newest.keys()].map((normalizedUrl) => ({ kind: "feed", normalizedUrl })),
  );
  return [...newest.values()].filter((_, index) => found[index] === undefined);
}
