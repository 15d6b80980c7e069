import type { UserId } from "../accounts/caller.ts";
import { yieldTurn } from "../util/turns.ts";
import { charactersOf } from "./details.ts";
import type { SubscriptionStore } from "./list-store.ts";
import type { Subscription } from "./subscription.ts";

/** How far a reader has followed the changes of a list. */
export interface ListPosition {
  /** The reader knows every change up to this sequence number. */
  readonly sequence: number;
  /**
   * The reader needs no removals up to this number, which is at least `sequence`. It is higher while the reader gets a whole
   * list page by page, because the reader never had the items that were removed before its first page.
   */
  readonly removalsAfter: number;
}

/** `removalsAfter` of a reader that needs no removals at all. A number that every engine can compare. */
export const NO_REMOVALS = Number.MAX_SAFE_INTEGER;

/** The position of a reader that knows nothing. */
export const START: ListPosition = { sequence: 0, removalsAfter: 0 };

/** The position of a reader that knows the list as it was at this sequence number. */
export function positionAt(sequence: number): ListPosition {
  return { sequence, removalsAfter: sequence };
}

/** Net changes of a list, in the order in which they happened. */
export interface ChangePage {
  /** What was added or updated, as it is now. */
  readonly changed: readonly Subscription[];
  /** What the list had at the given position and no longer has. Apply these first. */
  readonly removed: readonly Pick<Subscription, "id" | "feedUrl">[];
  /** Where to continue. */
  readonly next: ListPosition;
  readonly hasMore: boolean;
}

/** What a store reads in one snapshot to tell what changed after a position: each at most `limit` + 1, in order. */
export interface ChangeRows {
  /** Sequence number of the list. */
  readonly sequence: number;
  /** Removals up to this number may be missing. */
  readonly forgottenSequence: number;
  /** Items that were added or updated since, each with the sequence number of its last change. */
  readonly changed: readonly {
    readonly kind: "changed";
    readonly sequence: number;
    /** Number under which the item was added. */
    readonly addedSequence: number;
    readonly item: Subscription;
  }[];
  readonly removals: readonly {
    readonly kind: "removed";
    readonly sequence: number;
    /** Number under which the item was added. */
    readonly addedSequence: number;
    readonly id: string;
    readonly feedUrl: string;
  }[];
}

/** A page ends before its URLs, titles and folders have more characters than this, so that no response is very long. */
export const MAX_PAGE_CHARS = 2 ** 20;
/** Folders have fewer separators than characters, so what is left out after this many does not fit on the page. */
const MAX_READ_CHARS = 2 * MAX_PAGE_CHARS;

/**
 * What changed after `position`, at most `limit` changes, or fewer if they are long. Undefined when that is unknown:
 * records of removals since then have been deleted, or the list never reached that position. From the start, it is the
 * whole list without removals.
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
  const from = isStart ? { ...START, removalsAfter: NO_REMOVALS } : position;
  const rows = await store.readChanges(user, from, limit, MAX_READ_CHARS);
  const { sequence, forgottenSequence } = rows;
  if (removalsAfter > sequence || (!isStart && removalsAfter < forgottenSequence)) return undefined;
  const all = [...rows.changed, ...rows.removals].sort((one, other) => one.sequence - other.sequence);
  const page = all.slice(0, pageLength(all, limit));
  const hasMore = page.length < all.length;
  const changed = page.flatMap((row) => (row.kind === "changed" ? row.item : []));
  const ids = new Set(changed.map(({ id }) => id));
  const removed = page.flatMap((row) => {
    const isDue = row.kind === "removed" && row.addedSequence <= since && !ids.has(row.id);
    return isDue ? [{ id: row.id, feedUrl: row.feedUrl }] : [];
  });
  const last = page.at(-1)?.sequence ?? since;
  const known = isStart ? sequence : removalsAfter;
  const next = hasMore ? { sequence: last, removalsAfter: Math.max(last, known) } : positionAt(sequence);
  return { changed, removed, next, hasMore };
}

type ChangeRow = ChangeRows["changed"][number] | ChangeRows["removals"][number];

/** At least one, so that every page leads on. */
function pageLength(rows: readonly ChangeRow[], limit: number): number {
  let characters = 0;
  for (const [index, row] of rows.entries()) {
    characters += row.kind === "changed" ? row.item.feedUrl.length + charactersOf(row.item) : row.feedUrl.length;
    if (index === limit || (index > 0 && characters > MAX_PAGE_CHARS)) return index;
  }
  return rows.length;
}

export interface AddedFeed {
  readonly feedUrl: string;
  readonly addedSequence: number;
}

export interface FeedChangesPage {
  /** Feeds that were added or whose subscriptions were updated. */
  readonly add: readonly AddedFeed[];
  readonly removals: ChangeRows["removals"];
}

export interface ChangeKinds {
  readonly added: boolean;
  readonly removed: boolean;
}

/** Rows per page. Feed URLs may be long. */
const FEED_BATCH = 200;

/** The feeds that changed with sequence numbers from `from` (exclusive) to `upTo` (inclusive), page by page. */
export async function* readFeedChanges(
  store: Pick<SubscriptionStore, "readChanges">,
  user: UserId,
  { from, upTo }: { readonly from: number; readonly upTo: number },
  { added, removed }: ChangeKinds,
): AsyncGenerator<FeedChangesPage> {
  for (let after = from; after < upTo; ) {
    const position = { sequence: added ? after : NO_REMOVALS, removalsAfter: removed ? after : NO_REMOVALS };
    const rows = await store.readChanges(user, position, FEED_BATCH);
    const all = [...rows.changed, ...rows.removals].sort((one, other) => one.sequence - other.sequence);
    const page = all.slice(0, FEED_BATCH).filter(({ sequence }) => sequence <= upTo);
    const toAdded = ({ addedSequence, item }: ChangeRows["changed"][number]) => ({
      feedUrl: item.feedUrl,
      addedSequence,
    });
    const add = page.flatMap((row) => (row.kind === "changed" ? toAdded(row) : []));
    yield { add, removals: page.flatMap((row) => (row.kind === "removed" ? row : [])) };
    after = all.length > FEED_BATCH ? (page.at(-1)?.sequence ?? upTo) : upTo;
    if (after < upTo) await yieldTurn();
  }
}
