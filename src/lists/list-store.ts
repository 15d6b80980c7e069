import type { Caller, UserId } from "../accounts/caller.ts";
import type { PageRange } from "../util/page-range.ts";
import { yieldTurn } from "../util/turns.ts";
import type { ChangeRows, ListPosition } from "./changes.ts";
import type { Told } from "./moves.ts";
import type {
  Change,
  MoveChange,
  Outcome,
  RemovedSubscription,
  Subscription,
  SubscriptionKey,
} from "./subscription.ts";

export interface Page {
  readonly items: readonly Subscription[];
  /** Length and sequence number of the whole list, in the same snapshot as `items`. */
  readonly total: number;
  readonly sequence: number;
}

/** Consecutive items of a list. */
export interface ItemBatch {
  readonly items: readonly Subscription[];
  /** Sequence number of the last item, to continue after. */
  readonly last: number;
  /** Sequence number of the list. */
  readonly sequence: number;
}

/** Sequence numbers of a list before and after some changes. */
export interface SequenceRange {
  readonly sequenceBefore: number;
  readonly sequence: number;
}

/** Called with the user whose list has changed. */
export type OnChange = (user: UserId, range: SequenceRange) => void;

/** How many items of a list are read at a time when all of it is needed: half a megabyte at most. */
const BATCH_SIZE = 200;

/**
 * The whole list of a user in order, batch by batch. Concurrent changes never hide an item that stays in the list.
 * `afterBatch` lets other work go first, because SQLite answers at once, and may throw when the reader's access has ended.
 */
export async function* subscriptionBatches(
  store: Pick<SubscriptionStore, "itemsAfter">,
  user: UserId,
  afterBatch: () => unknown = yieldTurn,
): AsyncGenerator<readonly Subscription[]> {
  let end = Number.POSITIVE_INFINITY;
  for (let after = 0; after < end; ) {
    const { items, last, sequence } = await store.itemsAfter(user, after, BATCH_SIZE);
    if (items.length === 0) return;
    after = last;
    // Stop where the list ended at the start, so that a client that keeps adding cannot prolong the read.
    end = Math.min(end, sequence);
    await afterBatch();
    yield items;
  }
}

/**
 * Where subscriptions are stored. Every engine guarantees:
 * - what it confirms is durable, and every later read shows it;
 * - a list is in the order of subscribing, and new items never move earlier ones;
 * - a call that fails rejects with `StoreUnavailable`, and then nothing was changed, unless `isOutcomeUnknown`;
 * - a write happens only if, in its own transaction, the account exists and is not disabled, and the caller's
 *   credential has not been revoked, has not expired and, for a password, has not been changed; otherwise it rejects
 *   with `AccessRevoked`, and nothing is written.
 *
 * Every change to a list takes the list's next sequence number; an update that changes the feed takes two, since the
 * old feed is recorded as removed. An item's place is the number under which it was added.
 */
export interface SubscriptionStore {
  /** Eight random bytes that identify the history of this database. A restored or copied database gets new ones. */
  readonly epoch: Uint8Array;
  /**
   * Applies the changes in order, in one transaction. Outcome N belongs to change N. If two additions collide, the first
   * wins. When the list is full, new feeds are refused; a conflict is still reported as a conflict. `sequence` is the
   * list's sequence number after the changes.
   */
  change(
    caller: Caller,
    changes: readonly Change[],
    at: Date,
  ): Promise<SequenceRange & { readonly outcomes: readonly Outcome[] }>;
  /** The same for what the server learns of feeds that move, or an app does with them. */
  move(caller: Caller, change: MoveChange, at: Date): Promise<Told>;
  /** Result N is the subscription with key N, if the list has it; `Moves.findNamed` says which one a feed names. */
  find(user: UserId, keys: readonly SubscriptionKey[]): Promise<(Subscription | undefined)[]>;
  page(user: UserId, range: PageRange): Promise<Page>;
  /** Items in list order, from the first one that was added after sequence number `after`. */
  itemsAfter(user: UserId, after: number, size: number): Promise<ItemBatch>;
  /** Result N is the sequence number of user N's list; 0 if it has never had an item. */
  sequences(users: readonly UserId[]): Promise<number[]>;
  /**
   * The rows that `changesSince` needs: at most `limit` + 1 of each kind, without removals whose record was deleted. A store
   * may leave out items after more than one with more than `maxChars` characters, separators of folders included.
   */
  readChanges(user: UserId, position: ListPosition, limit: number, maxChars?: number): Promise<ChangeRows>;
  /** Calls `onChange` after every change of a list that this store has committed. Supports one listener only. */
  watch(onChange: OnChange): void;
  /** The most recent recorded removals whose ids are not back in the list, newest first. */
  removals(user: UserId, limit: number): Promise<RemovedSubscription[]>;
  /** Erases what is recorded of removals before that time, unless an earlier removal of the same list is later. */
  forgetRemovals(before: Date): Promise<void>;
  /** Resolves when reads and writes can be served. */
  ready(): Promise<void>;
  /** Writes what is queued, then closes the database. Closing twice is safe. */
  close(): Promise<void>;
}
