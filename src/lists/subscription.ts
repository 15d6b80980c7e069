import { yieldTurn } from "../util/turns.ts";
import type { Details } from "./details.ts";

/** Identifies a user. Every key of a store starts with it, and every query selects by it. */
export type UserId = number;

/** The one user of a server without accounts. */
export const LOCAL_USER: UserId = 1;

/** The user who writes, and the conditions under which the store accepts the write. */
export interface Caller {
  readonly user: UserId;
  /** Hash of the request's credential; undefined when there is none to revoke. */
  readonly credentialHash: string | undefined;
  /**
   * Stored hash of the password, if the request was not made with a credential. It must not have changed, and the account
   * must not be disabled.
   */
  readonly passwordHash?: string | undefined;
  /** Maximum length of the user's list. */
  readonly maxSubscriptions: number;
  /** The user must be an administrator whose account is not disabled. */
  readonly requiresAdmin?: boolean;
  /** Who acts, for the audit log; the command line unless given. */
  readonly actor?: Actor;
}

/** Who did something, and from which address; empty if it was done on the server itself. */
export interface Actor {
  readonly name: string;
  readonly address: string;
}

/** Not the name of an account, which cannot contain a space. */
export const COMMAND_LINE: Actor = { name: "command line", address: "" };

/** No quota. A number that every engine can compare. */
export const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** A caller without a credential that could be revoked: the local user, the command line, the server itself. */
export function asUser(user: UserId): Caller {
  return { user, credentialHash: undefined, maxSubscriptions: UNLIMITED };
}

export interface Subscription extends Details {
  /** Chosen by the client, unique within the user's list, always in lower case. */
  readonly id: string;
  /** Exactly as it was sent. */
  readonly feedUrl: string;
  readonly subscribedAt: Date;
}

/** A subscription to add, without its timestamp, which the server sets. */
export interface Addition extends Details {
  readonly kind: "add";
  readonly id: string;
  /** Used instead of `id` if another subscription in the list already has that one. */
  readonly fallbackId?: string;
  readonly feedUrl: string;
  /** From `readFeedUrl`: the same for all spellings of a feed's URL. */
  readonly normalizedUrl: string;
}

/**
 * Changes a subscription, which keeps its id, its place in the list and its timestamp. Members that are undefined stay
 * unchanged. An update without effect takes no sequence number.
 */
export interface Update {
  readonly kind: "update";
  readonly id: string;
  /** Given together with `normalizedUrl`, or not at all. */
  readonly feedUrl?: string;
  readonly normalizedUrl?: string;
  /** Empty to clear it. */
  readonly title?: string;
  /** Apply the update only if this is still the title. */
  readonly expectedTitle?: string;
  /** Empty to clear them. */
  readonly folders?: readonly string[];
}

export type Removal =
  | { readonly kind: "remove"; readonly id: string }
  | { readonly kind: "remove"; readonly normalizedUrl: string };

export type Change = Addition | Update | Removal;

/** The change collides with a subscription that the user already has. */
export interface Conflict {
  readonly code: "already-subscribed" | "id-in-use";
  /** The subscription it collides with. */
  readonly existingId: string;
}

/** The list has no such subscription to update or remove. */
export interface NotFound {
  readonly code: "not-found";
}

/** The user's list is full. */
export interface QuotaExceeded {
  readonly code: "quota-exceeded";
  readonly max: number;
}

/** Title and folders of the subscription would together be too long. */
export interface DetailsTooLong {
  readonly code: "details-too-long";
}

export type Refusal = Conflict | QuotaExceeded | NotFound | DetailsTooLong;
/** The subscription after the change; for a removal, before it. */
export type Outcome = Subscription | Refusal;

export function isRefusal(outcome: Outcome): outcome is Refusal {
  return "code" in outcome;
}

/** `size` items of a list in its order, after the first `offset`. */
export interface PageRange {
  readonly offset: number;
  readonly size: number;
}

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
  readonly changed: readonly { readonly sequence: number; readonly item: Subscription }[];
  readonly removals: readonly {
    readonly sequence: number;
    /** Number under which the item was added. */
    readonly addedSequence: number;
    readonly id: string;
    readonly feedUrl: string;
  }[];
}

/** A subscription that was removed, with what is needed to restore it. */
export interface RemovedSubscription extends Details {
  readonly id: string;
  readonly feedUrl: string;
  readonly removedAt: Date;
}

/** How many items of a list are read at a time when all of it is needed: half a megabyte at most. */
const BATCH_SIZE = 200;

/**
 * The whole list of a user in order, batch by batch. Concurrent changes never hide an item that stays in the list.
 * `afterBatch` lets other work go first, because SQLite answers at once, and may throw when the reader's access has ended.
 */
export async function* subscriptionBatches(
  store: SubscriptionStore,
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
  /** Result N is the subscription with id or normalized URL N, if the list has it. */
  find(
    user: UserId,
    keys: readonly ({ readonly id: string } | { readonly normalizedUrl: string })[],
  ): Promise<(Subscription | undefined)[]>;
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

/** The store failed, and changed nothing unless `isOutcomeUnknown`. The cause is for the log only. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  /** The engine's reply was lost, and it could not be determined whether it wrote. */
  readonly isOutcomeUnknown: boolean;

  constructor(message: string, options: { cause?: unknown; isOutcomeUnknown?: boolean } = {}) {
    super(message, { cause: options.cause });
    this.isOutcomeUnknown = options.isOutcomeUnknown ?? false;
  }
}

/** The account was deleted or disabled, or the caller's credential revoked or expired. Nothing was written. */
export class AccessRevoked extends Error {
  override readonly name = "AccessRevoked";
}

/** Calls `apply` once with the requested changes that were not refused. Result N belongs to requested change N. */
export async function applyAccepted<Requested extends object, Refused extends Requested, Result>(
  requested: readonly Requested[],
  isRefused: (change: Requested) => change is Refused,
  apply: (accepted: Exclude<Requested, Refused>[]) => Promise<readonly Result[]>,
): Promise<(Result | Refused)[]> {
  const accepted = requested.filter((change): change is Exclude<Requested, Refused> => !isRefused(change));
  const results = accepted.length === 0 ? [] : await apply(accepted);
  if (results.length !== accepted.length) throw new Error(`${results.length} results for ${accepted.length} changes`);
  let next = 0;
  return requested.map((change) => (isRefused(change) ? change : (results[next++] as Result)));
}
