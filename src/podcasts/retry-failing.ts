import type { UserId } from "../accounts/caller.ts";
import { yieldTurn } from "../util/turns.ts";
import { FAILED_STATUSES, MIN_REFRESH_MS, type PodcastStore } from "./podcast-store.ts";

/** How many feeds are tried again at once. */
const MAX_RETRIED = 1_000;
/** Few at a time, because on SQLite the main thread looks them up. */
const READ_AT_ONCE = 100;

export interface RetriedFeed {
  readonly id: string;
  readonly feedUrl: string;
}

/**
 * Makes the feeds of a list due that cannot be read, unless they were fetched just now. A repetition continues with those
 * beyond the limit, once the first ones have been fetched.
 */
export async function retryFailing(
  podcasts: PodcastStore,
  user: UserId,
  at: Date,
  max = MAX_RETRIED,
): Promise<readonly RetriedFeed[]> {
  const retried = new Map<string, RetriedFeed>();
  for (let after = 0; retried.size < max; ) {
    const feeds = await podcasts.changedFeeds(user, after, READ_AT_ONCE);
    const known = await podcasts.find(feeds.map(({ feedUrl }) => feedUrl));
    const failing = feeds.filter((_, index) => {
      const { status = "pending", checkedAt } = known[index] ?? {};
      return FAILED_STATUSES.has(status) && at.getTime() - (checkedAt?.getTime() ?? 0) >= MIN_REFRESH_MS;
    });
    for (const { id, feedUrl } of failing.slice(0, max - retried.size)) {
      if (retried.has(id)) continue;
      await podcasts.refresh(user, id, at);
      retried.set(id, { id, feedUrl });
    }
    const last = feeds.at(-1);
    if (last === undefined || feeds.length < READ_AT_ONCE) break;
    after = last.sequence;
    await yieldTurn();
  }
  return [...retried.values()];
}
