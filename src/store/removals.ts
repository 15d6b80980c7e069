import { withDetails } from "../details.ts";
import type { RemovedSubscription } from "../subscriptions.ts";
import { DELETED } from "./keys.ts";

/** How many recorded removals are read, including those whose ids were added again. */
const MAX_READ = 10_000;

/**
 * Parameters: the user and a limit. Leaves out ids that are in the list: they were added again, or their subscription was
 * changed to another feed, which records a removal too.
 */
export function removalsQuery(schema: "" | "earmark."): string {
  return `
    select id, feed_url, removed_at, title, folders from (
      select id, feed_url, removed_at, title, folders, sequence from ${schema}removals
      where user_id = $1 and exists (select 1 from ${schema}lists where user_id = $1 and sequence <> ${DELETED})
      order by sequence desc limit ${MAX_READ}) as recent
    where not exists (select 1 from ${schema}subscriptions as item where item.user_id = $1 and item.id = recent.id)
    order by sequence desc limit $2`;
}

/** The id is passed in, because each engine stores it differently. PostgreSQL returns large integers as text. */
export function toRemoval(row: Readonly<Record<string, unknown>>, id: string): RemovedSubscription {
  const { feed_url, removed_at, title, folders } = row;
  const removal = { id, feedUrl: String(feed_url), removedAt: new Date(Number(removed_at)) };
  return withDetails(removal, title as string | null, folders as string | null);
}
