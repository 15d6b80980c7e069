import { type Details, isSame, isTooLong, type StoredDetails, toStoredDetails, withDetails } from "./details.ts";
import type { Addition, Change, Outcome, Subscription, Update } from "./subscription.ts";

/** A list keeps the removals among this many of its latest changes, so that adding and removing cannot fill the database. */
export const KEPT_CHANGES = 10_000;

/** A subscription as it is stored. Engines choose how to represent ids and normalized URLs. */
export interface Item<Key> extends StoredDetails {
  /** Sequence number under which it was added: its place in the list. */
  readonly sequence: number;
  /** Sequence number of its last update; 0 if it was never updated. */
  readonly updateSequence: number;
  readonly id: Key;
  /** Represents the normalized URL. */
  readonly feed: Key;
  readonly feedUrl: string;
  readonly subscribedAt: number;
}

/** A list inside a transaction. */
export interface List<Key> {
  sequence: number;
  total: number;
  findById(id: Key): Item<Key> | undefined;
  findByFeed(feed: Key): Item<Key> | undefined;
  /** False, without any effect, if the list already has an item with this id or feed. */
  insert(item: Item<Key>): boolean;
  /** Replaces the item in the same place. */
  replace(old: Item<Key>, item: Item<Key>): void;
  /** Deletes the item. */
  delete(item: Item<Key>): void;
  /** Records, under the list's current sequence number, that the item was removed or got another feed. */
  recordRemoval(item: Item<Key>, at: number): void;
}

/** A change with its keys as the engine represents them. */
export type KeyedChange<Key> =
  | (Details & {
      readonly kind: "add";
      readonly id: Key;
      readonly fallbackId?: Key;
      readonly feedUrl: string;
      readonly feed: Key;
    })
  | (Omit<Update, "id" | "normalizedUrl"> & { readonly id: Key; readonly feed?: Key })
  | { readonly kind: "remove"; readonly id: Key }
  | { readonly kind: "remove-feed"; readonly feed: Key };

/** What `toOutcome` turns into an `Outcome`. Most changes are additions, and "added" is cheap to pass between threads. */
export type ChangeResult<Key> =
  | "added"
  | (StoredDetails & {
      readonly kind: "done";
      readonly id: Key;
      readonly feedUrl: string;
      readonly subscribedAt: number;
    })
  | { readonly kind: "conflict"; readonly code: "already-subscribed" | "id-in-use"; readonly existingId: Key }
  | { readonly kind: "refused"; readonly code: "quota-exceeded" | "not-found" | "details-too-long" };

/** The rules of a list, whatever it is stored in. */
export function applyChange<Key>(
  list: List<Key>,
  change: KeyedChange<Key>,
  at: number,
  maxTotal: number,
): ChangeResult<Key> {
  if (change.kind === "add") return add(list, change, at, maxTotal);
  if (change.kind === "update") return update(list, change, at);
  const item = change.kind === "remove" ? list.findById(change.id) : list.findByFeed(change.feed);
  if (item === undefined) return { kind: "refused", code: "not-found" };
  list.sequence += 1;
  list.total -= 1;
  list.delete(item);
  list.recordRemoval(toRecorded(item), at);
  return toResult(item);
}

/** Recorded with what it can be added again with. */
function toRecorded<Key>(item: Item<Key>): Item<Key> {
  return isTooLong(item) ? { ...item, folders: null } : item;
}

/** Tries to insert first: most additions are new, and the engine's unique indexes detect the others. */
function add<Key>(
  list: List<Key>,
  change: KeyedChange<Key> & { kind: "add" },
  at: number,
  maxTotal: number,
): ChangeResult<Key> {
  const { id, fallbackId, feedUrl, feed } = change;
  const isFull = list.total >= maxTotal;
  const details = toStoredDetails(change);
  if (isTooLong(details)) return { kind: "refused", code: "details-too-long" };
  const item = { sequence: list.sequence + 1, updateSequence: 0, id, feed, feedUrl, subscribedAt: at, ...details };
  if (!isFull && insert(list, item)) return "added";
  const same = list.findByFeed(feed);
  if (same !== undefined) return { kind: "conflict", code: "already-subscribed", existingId: same.id };
  if (list.findById(id) === undefined) return { kind: "refused", code: "quota-exceeded" };
  if (fallbackId === undefined || list.findById(fallbackId) !== undefined)
    return { kind: "conflict", code: "id-in-use", existingId: id };
  const fallback = { ...item, id: fallbackId };
  return !isFull && insert(list, fallback) ? toResult(fallback) : { kind: "refused", code: "quota-exceeded" };
}

function insert<Key>(list: List<Key>, item: Item<Key>): boolean {
  if (!list.insert(item)) return false;
  list.sequence = item.sequence;
  list.total += 1;
  return true;
}

function update<Key>(list: List<Key>, change: KeyedChange<Key> & { kind: "update" }, at: number): ChangeResult<Key> {
  const old = list.findById(change.id);
  if (old === undefined) return { kind: "refused", code: "not-found" };
  if (change.expectedTitle !== undefined && change.expectedTitle !== old.title) return toResult(old);
  const { feedUrl = old.feedUrl, feed = old.feed } = change;
  const details = toStoredDetails(change, old);
  if (isTooLong(details, old)) return { kind: "refused", code: "details-too-long" };
  const same = change.feed === undefined ? undefined : list.findByFeed(feed);
  if (same !== undefined && same.sequence !== old.sequence)
    return { kind: "conflict", code: "already-subscribed", existingId: same.id };
  if (feedUrl === old.feedUrl && isSame(details, old)) return toResult(old);
  // Apps know feeds, not ids: for them, another feed is a removal and an addition.
  const isFeedChanged = change.feed !== undefined && same === undefined;
  if (isFeedChanged) {
    list.sequence += 1;
    list.recordRemoval(toRecorded(old), at);
  }
  list.sequence += 1;
  const item = { ...old, updateSequence: list.sequence, feed, feedUrl, ...details };
  list.replace(old, item);
  return toResult(item);
}

function toResult<Key>({ sequence: _, updateSequence: __, feed: ___, ...result }: Item<Key>): ChangeResult<Key> {
  return { kind: "done", ...result };
}

/** The outcome of a change, from the result with its keys as text. */
export function toOutcome(change: Change, result: ChangeResult<string>, at: Date, max: number): Outcome {
  if (result === "added") {
    const { id, feedUrl } = change as Addition;
    return toDone({ id, feedUrl, subscribedAt: at }, toStoredDetails(change as Addition));
  }
  switch (result.kind) {
    case "done": {
      const { id, feedUrl, subscribedAt } = result;
      return toDone({ id, feedUrl, subscribedAt: new Date(subscribedAt) }, result);
    }
    case "conflict":
      return { kind: "refused", code: result.code, existingId: result.existingId };
    case "refused":
      if (result.code === "quota-exceeded") return { kind: "refused", code: result.code, max };
      return { kind: "refused", code: result.code };
  }
}

function toDone(item: Omit<Subscription, keyof Details>, details: StoredDetails): Outcome {
  return { kind: "done", subscription: withDetails(item, details) };
}

/** A list in memory, which knows the items that were read and collects what is to be written. */
export class MemoryList implements List<string> {
  sequence: number;
  total: number;
  readonly inserted = new Map<number, Item<string>>();
  /** Sequence numbers of stored items that are deleted or replaced. */
  readonly deleted: number[] = [];
  readonly removals: { readonly sequence: number; readonly item: Item<string>; readonly at: number }[] = [];
  readonly #byId = new Map<string, Item<string>>();
  readonly #byFeed = new Map<string, Item<string>>();

  constructor(sequence: number, total: number) {
    this.sequence = sequence;
    this.total = total;
  }

  load(item: Item<string>): void {
    this.#byId.set(item.id, item);
    this.#byFeed.set(item.feed, item);
  }

  findById(id: string): Item<string> | undefined {
    return this.#byId.get(id);
  }

  findByFeed(feed: string): Item<string> | undefined {
    return this.#byFeed.get(feed);
  }

  insert(item: Item<string>): boolean {
    if (this.#byId.has(item.id) || this.#byFeed.has(item.feed)) return false;
    this.#add(item);
    return true;
  }

  replace(old: Item<string>, item: Item<string>): void {
    this.#remove(old);
    this.#add(item);
  }

  delete(item: Item<string>): void {
    this.#remove(item);
  }

  recordRemoval(item: Item<string>, at: number): void {
    this.removals.push({ sequence: this.sequence, item, at });
  }

  #add(item: Item<string>): void {
    this.inserted.set(item.sequence, item);
    this.load(item);
  }

  #remove(item: Item<string>): void {
    this.#byId.delete(item.id);
    this.#byFeed.delete(item.feed);
    // An item that was replaced before is in both `inserted` and `deleted`: its new version is not written, and the
    // stored one is still deleted.
    const wasInserted = this.inserted.delete(item.sequence);
    if (!wasInserted) this.deleted.push(item.sequence);
  }
}
