import { readFeedUrl } from "./feed-url.ts";
import type { RemovedSubscription, SubscriptionStore, UserId } from "./subscriptions.ts";

/** What was removed and has not come back, each feed once, newest first. Looks at the last `limit` removals. */
export async function listRemovals(
  store: Pick<SubscriptionStore, "removals" | "find">,
  user: UserId,
  limit: number,
): Promise<RemovedSubscription[]> {
  const newest = new Map<string, RemovedSubscription>();
  for (const removal of await store.removals(user, limit)) {
    const reading = readFeedUrl(removal.feedUrl);
    if ("feed" in reading && !newest.has(reading.feed)) newest.set(reading.feed, removal);
  }
  const found = await store.find(
    user,
    [...newest.keys()].map((feed) => ({ feed })),
  );
  return [...newest.values()].filter((_, index) => found[index] === undefined);
}
