import type { ChangePage, Subscription } from "./subscriptions.ts";

/** What a store reads in one snapshot to tell what changed after a sequence number: each at most `limit` + 1, in order. */
export interface ChangeRows {
  /** Sequence number of the list. */
  readonly sequence: number;
  /** Removals up to this number may be missing. */
  readonly forgottenSequence: number;
  /** Items that were added since and not updated, and items that were updated since, by the number of that change. */
  readonly changed: readonly { readonly sequence: number; readonly item: Subscription }[];
  readonly removals: readonly {
    readonly sequence: number;
    /** Number under which the item was added. */
    readonly addedSequence: number;
    readonly id: string;
    readonly feedUrl: string;
  }[];
}

/**
 * The next page of changes after `since`. A reader that applies page after page ends up with the list as it is, whatever is
 * written between the pages: it is told of a removal exactly if the item had been added at `since`. So an item that comes
 * back under the same id may be in `removed` of one page and in `changed` of a later one.
 */
export function toChangePage(rows: ChangeRows, since: number, limit: number): ChangePage | undefined {
  const { sequence, forgottenSequence } = rows;
  if (since > sequence || (since > 0 && since < forgottenSequence)) return undefined;
  const all = [...rows.changed, ...rows.removals].sort((one, other) => one.sequence - other.sequence);
  const hasMore = all.length > limit;
  const page = all.slice(0, limit);
  const changed = page.flatMap((row) => ("item" in row ? [row.item] : []));
  const ids = new Set(changed.map(({ id }) => id));
  const removed = page.flatMap((row) => {
    const isDue = !("item" in row) && row.addedSequence <= since && !ids.has(row.id);
    return isDue ? [{ id: row.id, feedUrl: row.feedUrl }] : [];
  });
  return { changed, removed, sequence: hasMore ? (page.at(-1)?.sequence ?? since) : sequence, hasMore };
}
