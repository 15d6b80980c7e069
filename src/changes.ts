import {
  type ChangePage,
  type ListPosition,
  NO_REMOVALS,
  positionAt,
  START,
  type SubscriptionStore,
  type UserId,
} from "./subscriptions.ts";

/**
 * What changed after `position`, at most `limit` changes. Undefined when that is unknown: records of removals since then
 * have been deleted, or the list never reached that position. From the start, it is the whole list without removals.
 *
 * A reader that applies page after page ends up with the current list, whatever is written between the pages. A removal is
 * reported only if the item had been added by `position`. An item that is added again under the same id may be in `removed`
 * of one page and in `changed` of a later one.
 */
export async function changesSince(
  store: Pick<SubscriptionStore, "readChanges">,
  user: UserId,
  position: ListPosition,
  limit: number,
): Promise<ChangePage | undefined> {
  const { sequence: since, removalsAfter } = position;
  const isStart = since === 0;
  const rows = await store.readChanges(user, isStart ? { ...START, removalsAfter: NO_REMOVALS } : position, limit);
  const { sequence, forgottenSequence } = rows;
  if (removalsAfter > sequence || (!isStart && removalsAfter < forgottenSequence)) return undefined;
  const all = [...rows.changed, ...rows.removals].sort((one, other) => one.sequence - other.sequence);
  const hasMore = all.length > limit;
  const page = all.slice(0, limit);
  const changed = page.flatMap((row) => ("item" in row ? [row.item] : []));
  const ids = new Set(changed.map(({ id }) => id));
  const removed = page.flatMap((row) => {
    const isDue = !("item" in row) && row.addedSequence <= since && !ids.has(row.id);
    return isDue ? [{ id: row.id, feedUrl: row.feedUrl }] : [];
  });
  const last = page.at(-1)?.sequence ?? since;
  const known = isStart ? sequence : removalsAfter;
  const next = hasMore ? { sequence: last, removalsAfter: Math.max(last, known) } : positionAt(sequence);
  return { changed, removed, next, hasMore };
}
