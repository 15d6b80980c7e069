import { DETAIL_COLUMNS, type StoredDetails, storedDetailsOf, withDetails } from "../../lists/details.ts";
import type { RemovedSubscription } from "../../lists/subscription.ts";
import { DELETED } from "./keys.ts";

/** How many recorded removals are read, including those whose ids were added again. */
const MAX_READ = 10_000;

/**
 * Parameters: the user and a limit. Leaves out ids that are in the list: they were added again, or their subscription was
 * changed to another feed, which records a removal too.
 */
export function removalsQuery(schema: "" | "earmark."): string {
  return `
    select id, feed_url, removed_at, ${DETAIL_COLUMNS} from (
      select id, feed_url, removed_at, ${DETAIL_COLUMNS}, sequence from ${schema}removals
      where user_id = $1 and exists (select 1 from ${schema}lists where user_id = $1 and sequence <> ${DELETED})
      order by sequence desc limit ${MAX_READ}) as recent
    where not exists (select 1 from ${schema}subscriptions as item where item.user_id = $1 and item.id = recent.id)
    order by sequence desc limit $2`;
}

/** How many removals are read, and at most erased, at a time. */
export const REMOVAL_BATCH_SIZE = 1_000;

/**
 * Finds removals before a time, oldest first. Some may have to stay (`firstKeptQuery`), so the batch after them is read
 * with an offset. Parameters: the time and the offset.
 */
export function oldRemovalsQuery(schema: "" | "earmark."): string {
  return `
    select user_id, sequence from ${schema}removals where removed_at < $1
    order by removed_at, user_id, sequence limit ${REMOVAL_BATCH_SIZE} offset $2`;
}

/**
 * Finds the first removal of a list that is not before a time. What a list forgets is a prefix of its history, so the later
 * ones stay with it, even if they are older, as after the clock was set back. Parameters: the user, a sequence number up to
 * which to look, and the time.
 */
export function firstKeptQuery(schema: "" | "earmark."): string {
  return `
    select sequence from ${schema}removals where user_id = $1 and sequence < $2 and removed_at >= $3
    order by sequence limit 1`;
}

/** The id is passed in, because each engine stores it differently. PostgreSQL returns large integers as text. */
export function toRemoval(row: Readonly<Record<string, unknown>>, id: string): RemovedSubscription {
  const { feed_url, removed_at } = row;
  const removal = { id, feedUrl: String(feed_url), removedAt: new Date(Number(removed_at)) };
  return withDetails(removal, storedDetailsOf(row as StoredDetails));
}
