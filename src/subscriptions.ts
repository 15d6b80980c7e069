import type { FeedUrlFault } from "./feed-url.ts";

/** Whose list it is. Every key and every query of a store leads with it. */
export type UserId = number;

/** The one user of a server without accounts. */
export const LOCAL_USER: UserId = 1;

/** On whose behalf something is written, and what still has to be true when it is. */
export interface Caller {
  readonly user: UserId;
  /** Hash of the credential that the request came with; undefined where there is none to revoke. */
  readonly credentialHash: string | undefined;
  /** Maximum length of the user's list. */
  readonly maxSubscriptions: number;
}

/** No quota. A number that every engine can compare. */
export const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** A caller without a credential that could be revoked: the local user, the command line, the server itself. */
export function asUser(user: UserId): Caller {
  return { user, credentialHash: undefined, maxSubscriptions: UNLIMITED };
}

export interface Subscription {
  /** Chosen by the client, unique within the user's list, always in lower case. */
  readonly id: string;
  /** Exactly as it was sent. */
  readonly feedUrl: string;
  readonly subscribedAt: Date;
}

/** What a user asks for: a subscription without its moment, which is ours to set. */
export interface Draft {
  readonly id: string;
  /** The id as the client wrote it: a conflict is reported in the client's own words. */
  readonly guid: string;
  readonly feedUrl: string;
  /** Two drafts with the same `feed` ask for the same feed, however their addresses are written. */
  readonly feed: string;
}

/** What was asked for cannot be read as a subscription. */
export interface Malformed {
  readonly refused:
    | "unsupported-operation"
    | "invalid-operation"
    | "type-mismatch"
    | "type-missing"
    | "invalid-id"
    | FeedUrlFault;
  /** Only of an invalid operation. */
  readonly reason?: string;
  /** JSON Pointer to the value at fault, from the resource object down. */
  readonly at: "" | "/type" | "/id" | "/attributes" | "/attributes/feed_url";
}

/** What was asked for stands against what the user already has. */
export interface Conflict {
  readonly refused: "already-subscribed" | "id-in-use";
  readonly draft: Draft;
}

/** The user's list is full. */
export interface QuotaExceeded {
  readonly refused: "quota-exceeded";
  readonly max: number;
}

export type Refusal = Malformed | Conflict | QuotaExceeded;
export type Outcome = Subscription | Refusal;

export function isRefusal<T extends object>(value: T | Refusal): value is Refusal {
  return "refused" in value;
}

/** A stretch of a list in its order: `size` items after the first `offset`. */
export interface Window {
  readonly offset: number;
  readonly size: number;
}

export interface Page {
  readonly items: readonly Subscription[];
  /** How long the whole list is, at the same instant as `items`. */
  readonly total: number;
}

/** How much of a list is read at a time when all of it is wanted: half a megabyte at most. */
const ALL_AT_A_TIME = 200;

/** The whole list of a user, piece by piece. `requireAccess` throws when the reader may not see the next piece any more. */
export async function* everySubscription(
  store: SubscriptionStore,
  user: UserId,
  requireAccess?: () => unknown,
): AsyncGenerator<readonly Subscription[]> {
  for (let offset = 0; ; offset += ALL_AT_A_TIME) {
    const { items } = await store.page(user, { offset, size: ALL_AT_A_TIME });
    if (items.length === 0) return;
    await requireAccess?.();
    yield items;
  }
}

/**
 * Where subscriptions live. Any engine keeps these promises:
 * - what is answered is on stable storage, and every later read shows it;
 * - a list is in the order of subscribing, and new items never move earlier ones;
 * - a call that cannot be carried out rejects with `StoreUnavailable`, and then none of it was, unless that says `unknown`;
 * - a write happens only if, in its own transaction, the account exists and the caller's credential is neither revoked nor
 *   expired; otherwise it rejects with `AccessRevoked`, and nothing is written.
 */
export interface SubscriptionStore {
  /**
   * Outcome N answers draft N, whatever the batch. Of two drafts that collide, the first wins. When the list is full, new
   * feeds are refused; what conflicts is still a conflict.
   */
  add(caller: Caller, drafts: readonly Draft[], at: Date): Promise<Outcome[]>;
  /** False when there is no such subscription. What was removed can be added again. */
  remove(caller: Caller, id: string, at: Date): Promise<boolean>;
  find(user: UserId, id: string): Promise<Subscription | undefined>;
  page(user: UserId, window: Window): Promise<Page>;
  /** Answer N is whether the list has feed N. */
  knows(user: UserId, feeds: readonly string[]): Promise<boolean[]>;
  /** Resolves when reads and writes can be served. */
  ready(): Promise<void>;
  /** Carries out what is waiting, then lets go of the engine. Calling it again does nothing more. */
  close(): Promise<void>;
}

/** The store did not do what it was asked, and did none of it unless `unknown`. The cause is for the log alone. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  /** The answer of the engine was lost, and what it did could not be found out. */
  readonly unknown: boolean;

  constructor(message: string, options: { cause?: unknown; unknown?: boolean } = {}) {
    super(message, { cause: options.cause });
    this.unknown = options.unknown ?? false;
  }
}

/** The account was deleted, or the caller's credential revoked or expired, before the write. Nothing was written. */
export class AccessRevoked extends Error {
  override readonly name = "AccessRevoked";
}

/**
 * Subscribes the user to each draft; what was refused earlier stays refused.
 * Outcome N answers attempt N.
 */
export async function subscribe(
  store: SubscriptionStore,
  caller: Caller,
  attempts: readonly (Draft | Refusal)[],
  now: Date,
): Promise<Outcome[]> {
  const drafts: Draft[] = [];
  for (const attempt of attempts) if (!isRefusal(attempt)) drafts.push(attempt);
  const answers = drafts.length === 0 ? [] : await store.add(caller, drafts, now);
  if (answers.length !== drafts.length)
    throw new Error("the store answered another number of drafts than it was given");
  let next = 0;
  return attempts.map((attempt) => (isRefusal(attempt) ? attempt : (answers[next++] as Outcome)));
}
