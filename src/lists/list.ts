import type { Caller } from "../accounts/caller.ts";
import { type Details, isSame, isTooLong, type StoredDetails, toStoredDetails, withDetails } from "./details.ts";
import { feedKeyHex, readFeedUrl } from "./feed-url.ts";
import { History } from "./history.ts";
import type { Leads, Moves, Told } from "./moves.ts";
import type { Addition, Change, KeyedUrl, MoveChange, Outcome, Subscription, Update } from "./subscription.ts";

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
  /** Whether the server follows moves that are proven. */
  readonly followsMoves: boolean;
  /** Undefined if the list has no tracked feeds and no change needs them (`needsMoves`). */
  readonly moves: Moves | undefined;
  readonly history: History<Key>;
  keyOf(text: string): Key;
  textOf(key: Key): string;
  findById(id: Key): Item<Key> | undefined;
  findByFeed(feed: Key): Item<Key> | undefined;
  /** False, without any effect, if the list already has an item with this id or feed. */
  insert(item: Item<Key>): boolean;
  /** Replaces the item in the same place. */
  replace(old: Item<Key>, item: Item<Key>): void;
  /** Deletes the item. */
  delete(item: Item<Key>): void;
  /** Records, under the list's current sequence number, that the item was removed, and which app did that, if any. */
  recordRemoval(item: Item<Key>, at: number, client: string | undefined): void;
}

/** A change with its keys as the engine represents them. */
export type KeyedChange<Key> =
  | (Details & {
      readonly kind: "add";
      readonly id: Key;
      readonly fallbackId?: Key;
      readonly feedUrl: string;
      readonly feed: Key;
      readonly subscribedAt?: Date;
      readonly client?: string;
    })
  | (Omit<Update, "id" | "normalizedUrl"> & { readonly id: Key; readonly feed?: Key })
  | {
      readonly kind: "remove";
      readonly id: Key;
      readonly mergeInto?: Key;
      readonly unchangedSince?: number;
    }
  | { readonly kind: "remove-feed"; readonly feed: Key; readonly client?: string }
  | MoveChange;

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
  | ({ readonly kind: "told" } & Told)
  | {
      readonly kind: "refused";
      readonly code:
        | "quota-exceeded"
        | "not-found"
        | "changed-later"
        | "details-too-long"
        | "merge-target-not-found"
        | "merge-into-itself";
    };

const NOTHING = { kind: "refused", code: "not-found" } as const;
const CHANGED_LATER = { kind: "refused", code: "changed-later" } as const;

/** Whether a change may make a feed tracked, or concerns only tracked ones. */
export function needsMoves(change: Change | MoveChange | KeyedChange<unknown>): boolean {
  switch (change.kind) {
    case "add":
      return (change.former_feed_urls?.length ?? 0) > 0;
    case "update":
      return change.feedUrl !== undefined;
    case "remove":
      return change.mergeInto !== undefined;
    case "remove-feed":
      return change.client !== undefined;
    default:
      return true;
  }
}

/** What is to be read of the tracked feeds before changes are applied. */
export interface MovesScope {
  /** These feeds; all if undefined. */
  readonly feeds: readonly string[] | undefined;
  /** Whether only the URLs of feeds matter, not what clients hold. */
  readonly isOnlyUrls: boolean;
  /** What this client holds; what all clients hold if undefined. */
  readonly client: string | undefined;
  /** Listed feeds that the client removes. */
  readonly removed: readonly {
    readonly feed: string;
    readonly id: string;
    readonly feedUrl: string;
    readonly sequence: number;
  }[];
}

export function movesScopeOf<Key>(list: List<Key>, changes: readonly KeyedChange<Key>[]): MovesScope {
  const client = changes.map(clientOf).find((each) => each !== undefined);
  if (changes.some(({ kind }) => kind === "tell" || kind === "keep"))
    return { feeds: undefined, isOnlyUrls: false, client, removed: [] };
  const isOnlyUrls = client === undefined && !changes.some(needsMoves);
  const feeds = changes.flatMap((change) => feedsOf(list, change));
  const removed = changes.flatMap((change) => {
    const item = change.kind === "remove-feed" && client !== undefined ? list.findByFeed(change.feed) : undefined;
    if (item === undefined) return [];
    const { feedUrl, sequence } = item;
    return [{ feed: list.textOf(item.feed), id: list.textOf(item.id), feedUrl, sequence }];
  });
  return { feeds: [...new Set(feeds)], isOnlyUrls, client, removed };
}

/** The feeds that a change is about. */
function feedsOf<Key>(list: List<Key>, change: KeyedChange<Key>): string[] {
  switch (change.kind) {
    case "add":
      return [list.textOf(change.feed), ...formerFeedsOf(change).map(({ feed }) => feed)];
    case "remove-feed":
      return [list.textOf(change.feed)];
    case "update": {
      const item = list.findById(change.id);
      return [item?.feed, change.feed].flatMap((feed) => (feed === undefined ? [] : list.textOf(feed)));
    }
    case "remove": {
      const items = [change.id, change.mergeInto].flatMap((id) => (id === undefined ? [] : (list.findById(id) ?? [])));
      return items.map(({ feed }) => list.textOf(feed));
    }
    case "follow":
    case "sight":
      return [change.feed, ...(change.to === undefined ? [] : [change.to.feed])];
    case "look":
      return [change.feed, change.target];
    case "act":
      return change.feeds.map(({ feed }) => feed);
    default:
      return [];
  }
}

/** The former URLs that an addition brings. Invalid ones are left out. */
export function formerFeedsOf({ former_feed_urls: urls = [] }: Details): KeyedUrl[] {
  return urls.flatMap((url) => {
    const parsed = readFeedUrl(url);
    return parsed.kind === "valid" ? [{ feed: feedKeyHex(parsed.normalizedUrl), url }] : [];
  });
}

/** The rules of a list, whatever it is stored in. The changes are of one client, if they are of an app. */
export function applyChanges<Key>(
  list: List<Key>,
  changes: readonly KeyedChange<Key>[],
  at: number,
  { maxSubscriptions, author }: Pick<Caller, "maxSubscriptions" | "author">,
): ChangeResult<Key>[] {
  const apply = () => changes.map((change) => applyChange(list, change, at, maxSubscriptions));
  const client = () => changes.map(clientOf).find((each) => each !== undefined);
  list.history.begin(author, at, list);
  const results = list.moves === undefined ? apply() : list.moves.watch(client(), apply);
  list.history.end(list.sequence);
  return results;
}

/** Whether what is to be removed may have been brought back after an app had removed it. */
export function needsGuards(
  changes: readonly { readonly kind: string }[],
  { author }: Pick<Caller, "author">,
): boolean {
  return author?.kind === "app" && changes.some(({ kind }) => kind === "remove-feed" || kind === "keep");
}

function clientOf(change: KeyedChange<unknown>): string | undefined {
  return "client" in change ? change.client : undefined;
}

export function applyChange<Key>(
  list: List<Key>,
  change: KeyedChange<Key>,
  at: number,
  maxTotal: number,
): ChangeResult<Key> {
  switch (change.kind) {
    case "add":
      return add(list, change, at, maxTotal);
    case "update":
      return update(list, change);
    case "remove":
      return removeById(list, change, at);
    case "remove-feed":
      return removeFeed(list, change, at);
    default:
      return list.moves === undefined ? NOTHING : applyMove(list, list.moves, change, at);
  }
}

function applyMove<Key>(list: List<Key>, moves: Moves, change: MoveChange, at: number): ChangeResult<Key> {
  switch (change.kind) {
    case "follow":
      return follow(list, moves, change, at);
    case "sight":
      moves.sighted(change.feed, change.to);
      return NOTHING;
    case "look":
      moves.looked(change.feed, change.target, change.look);
      return NOTHING;
    case "act":
      for (const { feed, url } of change.feeds) moves.actedOn(change.client, feed, url);
      return NOTHING;
    case "tell":
      return { kind: "told", ...moves.tell(change.client, change.since, change.from) };
    case "keep": {
      for (const feed of moves.keepOnly(change.client, new Set(change.feeds))) {
        const item = list.findByFeed(list.keyOf(feed));
        if (item !== undefined && !isGuarded(list, item)) remove(list, item, at);
      }
      return { kind: "told", add: [], remove: [], tracked: moves.tracked };
    }
  }
}

function removeById<Key>(
  list: List<Key>,
  { id, mergeInto, unchangedSince }: KeyedChange<Key> & { kind: "remove" },
  at: number,
): ChangeResult<Key> {
  const item = list.findById(id);
  if (item === undefined) return NOTHING;
  if (isChanged(item, unchangedSince)) return CHANGED_LATER;
  if (mergeInto === undefined || list.moves === undefined) return remove(list, item, at);
  const target = list.findById(mergeInto);
  if (target === undefined) return { kind: "refused", code: "merge-target-not-found" };
  if (target.sequence === item.sequence) return { kind: "refused", code: "merge-into-itself" };
  merge(list, list.moves, item, target, at);
  return toResult(item);
}

/** Whether it was added or updated after that sequence number. */
function isChanged({ sequence, updateSequence }: Item<unknown>, since = Number.POSITIVE_INFINITY): boolean {
  return Math.max(sequence, updateSequence) > since;
}

function removeFeed<Key>(
  list: List<Key>,
  { feed, client }: KeyedChange<Key> & { kind: "remove-feed" },
  at: number,
): ChangeResult<Key> {
  const { moves } = list;
  const effect = client === undefined ? undefined : moves?.removalBy(client, list.textOf(feed));
  if (effect === "nothing") return NOTHING;
  const item = list.findByFeed(effect === undefined ? feed : list.keyOf(effect.feed));
  if (item === undefined) return NOTHING;
  if (isGuarded(list, item)) return { kind: "conflict", code: "already-subscribed", existingId: item.id };
  if (moves === undefined) return remove(list, item, at, client);
  const isEcho = effect === undefined && client !== undefined && moves.isEcho(client, list.textOf(feed));
  if (isEcho || effect?.kind === "offer") return { kind: "conflict", code: "already-subscribed", existingId: item.id };
  return effect?.kind === "move" ? rename(list, moves, item, effect.to, "yes") : remove(list, item, at, client);
}

/** Whether the app that removes this may not, because it was brought back. The first such removal is recorded. */
function isGuarded<Key>(list: List<Key>, item: Item<Key>): boolean {
  const guard = list.history.guardOf(item);
  if (guard === undefined) return false;
  // A number of its own, so that the list is stored.
  if (list.history.ignore(guard)) list.sequence += 1;
  return true;
}

function remove<Key>(list: List<Key>, item: Item<Key>, at: number, client?: string): ChangeResult<Key> {
  deleteItem(list, item, at, client);
  const { title, folders } = item;
  list.moves?.removed(list.textOf(item.feed), { id: toUuid(list.textOf(item.id)), title, folders });
  return toResult(item);
}

function deleteItem<Key>(list: List<Key>, item: Item<Key>, at: number, client?: string): void {
  list.sequence += 1;
  list.total -= 1;
  list.delete(item);
  list.recordRemoval(toRecorded(item), at, client);
  list.history.removed(item);
}

function replace<Key>(list: List<Key>, old: Item<Key>, item: Item<Key>): void {
  list.replace(old, item);
  list.history.updated(old, item.updateSequence);
}

function follow<Key>(
  list: List<Key>,
  moves: Moves,
  { feed, to }: MoveChange & { kind: "follow" },
  at: number,
): ChangeResult<Key> {
  const item = list.findByFeed(list.keyOf(feed));
  if (item === undefined || !list.followsMoves || !moves.mayFollow(feed, to.feed)) return NOTHING;
  const other = list.findByFeed(list.keyOf(moves.findNamed(to.feed) ?? to.feed));
  if (other === undefined || other.sequence === item.sequence) return rename(list, moves, item, to, "yes");
  merge(list, moves, item, other, at, "yes");
  return toResult(item);
}

function rename<Key>(list: List<Key>, moves: Moves, item: Item<Key>, to: KeyedUrl, leads: Leads): ChangeResult<Key> {
  list.sequence += 1;
  const loser = moves.renamed(list.textOf(item.feed), to.feed, to.url, leads);
  const feed = list.keyOf(to.feed);
  const former_feed_urls = moves.formerUrls(to.feed);
  const renamed = { ...item, updateSequence: list.sequence, feed, feedUrl: to.url, former_feed_urls };
  replace(list, item, renamed);
  updateFormerUrls(list, moves, loser);
  return toResult(renamed);
}

/** The target takes over title and folders where it has none. */
function merge<Key>(
  list: List<Key>,
  moves: Moves,
  item: Item<Key>,
  target: Item<Key>,
  at: number,
  leads: Leads = "pending",
): void {
  const [from, into] = [list.textOf(item.feed), list.textOf(target.feed)];
  moves.track(from);
  moves.track(into);
  deleteItem(list, item, at);
  moves.merged(from, into, leads);
  list.sequence += 1;
  const own = { ...target, updateSequence: list.sequence, former_feed_urls: moves.formerUrls(into) };
  const merged = { ...own, title: target.title ?? item.title, folders: target.folders ?? item.folders };
  replace(list, target, isTooLong(merged) ? own : merged);
}

/** Another subscription has lost one of its former URLs. */
function updateFormerUrls<Key>(list: List<Key>, moves: Moves, feed: string | undefined): void {
  const item = feed === undefined ? undefined : list.findByFeed(list.keyOf(feed));
  if (item === undefined || feed === undefined) return;
  list.sequence += 1;
  replace(list, item, { ...item, updateSequence: list.sequence, former_feed_urls: moves.formerUrls(feed) });
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
  const named = list.moves && findMoved(list, list.moves, change);
  if (named !== undefined) return { kind: "conflict", code: "already-subscribed", existingId: named.id };
  const place = {
    sequence: list.sequence + 1,
    updateSequence: 0,
    feed,
    feedUrl,
    subscribedAt: change.subscribedAt?.getTime() ?? at,
  };
  const item = { ...place, id, ...details, former_feed_urls: null, ...findRestorable(list, change) };
  const inserted = isFull ? undefined : insert(list, item, change);
  if (inserted !== undefined) return list.moves === undefined ? "added" : toResult(inserted);
  const same = list.findByFeed(feed);
  if (same !== undefined) {
    if (change.client !== undefined) list.moves?.hold(change.client, list.textOf(feed), feedUrl);
    return { kind: "conflict", code: "already-subscribed", existingId: same.id };
  }
  if (list.findById(id) === undefined) return { kind: "refused", code: "quota-exceeded" };
  if (fallbackId === undefined || list.findById(fallbackId) !== undefined)
    return { kind: "conflict", code: "id-in-use", existingId: id };
  const fallback = isFull ? undefined : insert(list, { ...item, id: fallbackId }, change);
  return fallback === undefined ? { kind: "refused", code: "quota-exceeded" } : toResult(fallback);
}

/** An app that adds a URL of a feed that was removed gets the subscription back as it was. */
function findRestorable<Key>(
  list: List<Key>,
  { feed, client }: KeyedChange<Key> & { kind: "add" },
): Partial<Item<Key>> | undefined {
  const found = client === undefined ? undefined : list.moves?.restorable(list.textOf(feed));
  if (found === undefined) return undefined;
  const id = list.keyOf(found.id);
  return { ...found, id };
}

/** The subscription that has the URL to be added as another one. */
function findMoved<Key>(
  list: List<Key>,
  moves: Moves,
  { feed, feedUrl, client }: KeyedChange<Key> & { kind: "add" },
): Item<Key> | undefined {
  const text = list.textOf(feed);
  const named = client === undefined ? moves.findNamed(text) : moves.findFor(client, text);
  if (named === undefined) return undefined;
  if (client !== undefined) moves.hold(client, text, feedUrl);
  return list.findByFeed(list.keyOf(named));
}

function insert<Key>(
  list: List<Key>,
  item: Item<Key>,
  change: KeyedChange<Key> & { kind: "add" },
): Item<Key> | undefined {
  const { client } = change;
  if (!list.insert(item)) return undefined;
  list.sequence = item.sequence;
  list.total += 1;
  list.history.added();
  const { moves } = list;
  if (moves === undefined) return item;
  const feed = list.textOf(item.feed);
  const loser = moves.added(feed, item.feedUrl);
  moves.addFormer(feed, item.feedUrl, formerFeedsOf(change));
  if (change.former_feed_urls !== undefined) moves.keepFormer(feed, change.former_feed_urls);
  if (client !== undefined) moves.hold(client, feed, item.feedUrl);
  const former_feed_urls = moves.formerUrls(feed);
  const restored = { ...item, former_feed_urls };
  if (former_feed_urls !== null) list.replace(item, restored);
  updateFormerUrls(list, moves, loser);
  return restored;
}

function update<Key>(list: List<Key>, change: KeyedChange<Key> & { kind: "update" }): ChangeResult<Key> {
  const old = list.findById(change.id);
  if (old === undefined) return NOTHING;
  if (change.expectedTitle !== undefined && change.expectedTitle !== old.title) return toResult(old);
  if (isChanged(old, change.unchangedSince)) return CHANGED_LATER;
  const { feedUrl = old.feedUrl, feed = old.feed } = change;
  const { moves } = list;
  const details = toStoredDetails(change, old);
  if (isTooLong(details, old)) return { kind: "refused", code: "details-too-long" };
  const same = change.feed === undefined ? undefined : findListed(list, feed);
  if (same !== undefined && same.sequence !== old.sequence)
    return { kind: "conflict", code: "already-subscribed", existingId: same.id };
  const subscribedAt = change.subscribedAt?.getTime() ?? old.subscribedAt;
  if (feedUrl === old.feedUrl && subscribedAt === old.subscribedAt && isSame(details, old)) return toResult(old);
  list.sequence += 1;
  let loser: string | undefined;
  const [from, to] = [list.textOf(old.feed), list.textOf(feed)];
  if (from !== to) loser = moves?.renamed(from, to, feedUrl);
  else if (feedUrl !== old.feedUrl) moves?.respelled(to, feedUrl);
  if (change.former_feed_urls !== undefined) moves?.keepFormer(to, change.former_feed_urls);
  const former_feed_urls = moves?.formerUrls(to) ?? null;
  const item = { ...old, updateSequence: list.sequence, feed, feedUrl, subscribedAt, ...details, former_feed_urls };
  replace(list, old, item);
  if (moves !== undefined) updateFormerUrls(list, moves, loser);
  return toResult(item);
}

/** By its current URL or a former one. */
function findListed<Key>(list: List<Key>, feed: Key): Item<Key> | undefined {
  const named = list.moves?.findNamed(list.textOf(feed));
  return list.findByFeed(named === undefined ? feed : list.keyOf(named));
}

function toResult<Key>({ sequence: _, updateSequence: __, feed: ___, ...result }: Item<Key>): ChangeResult<Key> {
  return { kind: "done", ...result };
}

/** The outcome of a change, from the result with its keys as text. */
export function toOutcome(change: Change, result: ChangeResult<string>, at: Date, max: number): Outcome {
  if (result === "added") {
    const { id, feedUrl, subscribedAt = at } = change as Addition;
    return toDone({ id, feedUrl, subscribedAt }, toStoredDetails(change as Addition));
  }
  switch (result.kind) {
    case "done": {
      const { id, feedUrl, subscribedAt } = result;
      return toDone({ id, feedUrl, subscribedAt: new Date(subscribedAt) }, result);
    }
    case "told":
      throw new Error("what an app is told is not the outcome of a change");
    case "conflict":
      return { kind: "refused", code: result.code, existingId: result.existingId };
    case "refused":
      if (result.code === "quota-exceeded") return { kind: "refused", code: result.code, max };
      return { kind: "refused", code: result.code };
  }
}

/** What an app is told, if the change was of that kind. */
export function toTold(result: Exclude<ChangeResult<string>, { kind: "done" }> | { kind: "done" } | undefined): Told {
  return typeof result === "object" && result.kind === "told" ? result : { add: [], remove: [], tracked: [] };
}

function toDone(item: Omit<Subscription, keyof Details>, details: StoredDetails): Outcome {
  return { kind: "done", subscription: withDetails(item, details) };
}

/** The engines write ids differently. */
function toUuid(id: string): string {
  return id.replaceAll("-", "").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** A list in memory, which knows the items that were read and collects what is to be written. */
export class MemoryList implements List<string> {
  sequence: number;
  total: number;
  readonly followsMoves: boolean;
  moves: Moves | undefined;
  readonly history: History<string>;
  readonly inserted = new Map<number, Item<string>>();
  /** Sequence numbers of stored items that are deleted or replaced. */
  readonly deleted: number[] = [];
  readonly removals: {
    readonly sequence: number;
    readonly item: Item<string>;
    readonly at: number;
    readonly client: string | undefined;
  }[] = [];
  readonly #byId = new Map<string, Item<string>>();
  readonly #byFeed = new Map<string, Item<string>>();
  readonly #gone = new Set<string>();

  constructor(sequence: number, total: number, followsMoves = true, history: string | null = null) {
    this.sequence = sequence;
    this.total = total;
    this.followsMoves = followsMoves;
    this.history = new History(history);
  }

  load(item: Item<string>): void {
    this.#byId.set(item.id, item);
    this.#byFeed.set(item.feed, item);
  }

  keyOf(text: string): string {
    return text;
  }

  textOf(key: string): string {
    return key;
  }

  find(feed: string): Item<string> | undefined {
    return this.#byFeed.get(feed);
  }

  /** Whether this feed was read, or was in the list before a change. */
  knows(feed: string): boolean {
    return this.#byFeed.has(feed) || this.#gone.has(feed);
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

  recordRemoval(item: Item<string>, at: number, client: string | undefined): void {
    this.removals.push({ sequence: this.sequence, item, at, client });
  }

  #add(item: Item<string>): void {
    this.inserted.set(item.sequence, item);
    this.load(item);
  }

  #remove(item: Item<string>): void {
    this.#byId.delete(item.id);
    this.#byFeed.delete(item.feed);
    this.#gone.add(item.feed);
    // An item that was replaced before is in both `inserted` and `deleted`: its new version is not written, and the
    // stored one is still deleted.
    const wasInserted = this.inserted.delete(item.sequence);
    if (!wasInserted) this.deleted.push(item.sequence);
  }
}
