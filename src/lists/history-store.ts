import type { UserId } from "../accounts/caller.ts";
import type { PageRange } from "../util/page-range.ts";
import { yieldTurn } from "../util/turns.ts";
import type { StoredDetails } from "./details.ts";
import { type ChangeSet, type IgnoredRemoval, undoneSets } from "./history.ts";

/** How far back the history of one subscription goes. */
export const MAX_CHANGES_OF = 1_000;

export interface ChangeSetPage {
  /** Newest first. */
  readonly sets: readonly ChangeSet[];
  /** How many sets there are. */
  readonly total: number;
  /** All sets after the oldest one of the page that undo something. */
  readonly undos: readonly ChangeSet[];
  readonly ignored: readonly IgnoredRemoval[];
}

export interface FoundSet {
  readonly set: ChangeSet;
  readonly undos: readonly ChangeSet[];
  /** Removals and updates up to this number may be missing. */
  readonly forgotten: number;
}

/** What a subscription was at some time. */
export interface PastItem extends StoredDetails {
  /** Sequence number of the change that replaced or removed it; of an item of the list, the one under which it was added. */
  readonly sequence: number;
  readonly id: string;
  readonly feedUrl: string;
  /** Undefined if it was removed before the history began. */
  readonly subscribedAt: number | undefined;
}

export interface ListedItem extends PastItem {
  readonly updateSequence: number;
}

export interface RemovedItem extends PastItem {
  readonly addedSequence: number;
}

/** Without values if they are no longer kept. */
export type StoredEdit = PastItem | Pick<PastItem, "sequence" | "id">;

/** Where the history of lists is stored. Everything is in the order of sequence numbers, a thousand at most at a time. */
export interface HistoryStore {
  page(user: UserId, range: PageRange): Promise<ChangeSetPage>;
  /** The same, of those with the latest `MAX_CHANGES_OF` additions, updates and removals of one subscription. */
  pageOf(user: UserId, id: string, range: PageRange): Promise<ChangeSetPage>;
  /** The set with this first sequence number, and all later ones that undo something. */
  find(user: UserId, first: number): Promise<FoundSet | undefined>;
  setsAfter(user: UserId, first: number): Promise<ChangeSet[]>;
  itemsAfter(user: UserId, after: number, upTo: number): Promise<ListedItem[]>;
  /** Those of the list's items that have these ids. */
  items(user: UserId, ids: readonly string[]): Promise<ListedItem[]>;
  removalsAfter(user: UserId, after: number): Promise<RemovedItem[]>;
  editsAfter(user: UserId, after: number, upTo: number): Promise<StoredEdit[]>;
  /** The first edit of each of these subscriptions after that number. */
  nextEdits(user: UserId, ids: readonly string[], after: number): Promise<StoredEdit[]>;
  /** Erases what happened before that time. */
  forget(before: Date): Promise<void>;
}

export interface ListedSet {
  readonly set: ChangeSet;
  readonly isUndone: boolean;
}

/** All sets, oldest first. `afterBatch`: see `subscriptionBatches`. */
export async function* changeSetBatches(
  history: Pick<HistoryStore, "find" | "setsAfter">,
  user: UserId,
  afterBatch: () => unknown = yieldTurn,
): AsyncGenerator<readonly ListedSet[]> {
  for (let after = 0; ; ) {
    const sets = await history.setsAfter(user, after);
    const first = sets[0]?.first ?? 0;
    if (first === 0) return;
    const undone = undoneSets(sets, (await history.find(user, first))?.undos ?? []);
    after = sets.at(-1)?.first ?? after;
    await afterBatch();
    yield sets.map((set) => ({ set, isUndone: undone.has(set.first) }));
  }
}
