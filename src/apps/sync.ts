import { randomUUID } from "node:crypto";
import type { Caller, UserId } from "../accounts/caller.ts";
import type { ChangeRows } from "../lists/changes.ts";
import { type AddedFeed, type ChangeKinds, type FeedChangesPage, readFeedChanges } from "../lists/changes.ts";
import { feedKeyHex, readFeedUrl } from "../lists/feed-url.ts";
import { readUploads, toAddition } from "../lists/imports.ts";
import { type SubscriptionStore, subscriptionBatches } from "../lists/list-store.ts";
import type { Told } from "../lists/moves.ts";
import type { Addition, Change, Subscription, SubscriptionKey } from "../lists/subscription.ts";
import type { PageRange } from "../util/page-range.ts";
import { forEachInTurns, slicesOf, yieldTurn } from "../util/turns.ts";
import {
  type ActionPage,
  type AppStore,
  type Installation,
  isDeviceId,
  MAX_DEVICES,
  type Spelling,
  type SyncRecord,
} from "./app-store.ts";
import {
  actionFeedKey,
  type EpisodeAction,
  feedKeyOf,
  isWebUrl,
  type KeyedAction,
  memoizeFeedKeyOf,
  readAction,
  type StoredAction,
  type UploadedAction,
} from "./episode-actions.ts";
import { advance, type Progress, type SyncState, startOf, type Upload } from "./marks.ts";
import { findUnrecorded, isFull, readSpellings } from "./spellings.ts";

type Pages = AsyncIterable<readonly string[]> | Iterable<readonly string[]>;

/** What happened to the list since a timestamp. If it `isLong`, it is read from the store on demand, page by page. */
interface FeedChanges {
  /** URLs of feeds that were added, as stored. */
  readonly add: Pages;
  /** The removed feeds, in every spelling that a client may know. */
  readonly remove: Pages;
  readonly isLong: boolean;
  /** Records that the client gets all of this. To be called when both have been read to their end. */
  readonly timestamp: () => Promise<number>;
}

interface ActionChanges {
  /** In the order of their uploads. Read from the store on demand, because there may be very many. */
  readonly pages: AsyncGenerator<readonly EpisodeAction[]>;
  /** Whether there may be more than one page. */
  readonly isLong: boolean;
  readonly timestamp: number;
}

interface ListUpload {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  /** Most of what it adds is in the list. */
  readonly isWholeList?: boolean;
}

export interface UploadResult {
  readonly timestamp: number;
  /** URLs that were not stored as sent; `stored` is empty if the URL was rejected. */
  readonly rewritten: readonly (readonly [sent: string, stored: string])[];
}

/** What an upload adds. */
interface UploadedFeeds {
  /** By normalized URL. */
  readonly lastSentOf: ReadonlyMap<string, string>;
  readonly rewritten: Map<string, string>;
  readonly hasMoves: boolean;
}

/** How many rows are read or written at a time, so that other requests are handled in between. */
const BATCH = 1_000;
/** Rows with feed URLs, which may be long. */
const FEED_BATCH = 200;
/** If an app uploads more feeds that are listed, it repeats its list, and no person has subscribed to them again. */
const MAX_READDED = 20;
/** How stale a device's `syncedAt` may be. */
const TOUCH_MS = 5 * 60_000;

/**
 * The sync rules that all APIs for podcast apps share. All clients of a user share one list and one history. Repeating a
 * request has no further effect.
 */
export class AppSync {
  readonly #store: SubscriptionStore & { readonly apps: AppStore };

  constructor(store: SubscriptionStore & { readonly apps: AppStore }) {
    this.#store = store;
  }

  /** Changes since that timestamp that the client has not received. 0 means a first sync, without removals. */
  async feedsSince(caller: Caller, installation: Installation, since: number, at: Date): Promise<FeedChanges> {
    const { user } = caller;
    const state = await this.#store.apps.state(user, "feeds", installation, since);
    const { from, known } = startOf(state, since);
    const covered = state.sequence;
    const isLong = covered - from > BATCH;
    const told = await this.#tell(caller, installation, state, { since, from }, at);
    const tracked = new Set(told.tracked);
    const read = (kinds: ChangeKinds) =>
      mapPages(readFeedChanges(this.#store, user, { from, upTo: covered }, kinds), (page) =>
        withoutFeeds(page, tracked),
      );
    const record = (progress: Progress, spellings: readonly Spelling[], newFeeds: readonly string[]) =>
      this.#recordSync(caller, { kind: "feeds", installation, progress, spellings, newFeeds }, state, at);
    const received = { kind: "poll", since, from, covered, acknowledges: true } as const;
    // Actions of feeds that it gets are due again: it may have deleted them with a feed that was removed.
    const toNew = (add: readonly AddedFeed[]) =>
      add.flatMap(({ feedUrl, addedSequence }) => (addedSequence > (state.seen?.sequence ?? covered) ? feedUrl : []));
    if (isLong) {
      // Without progress: the client may stop reading.
      const recordPart = (spellings: readonly Spelling[], newFeeds: readonly string[]) =>
        spellings.length + newFeeds.length > 0
          ? record({ kind: "upload", before: UNSEEN, after: UNSEEN }, spellings, newFeeds)
          : undefined;
      const findAdditions = async ({ add }: FeedChangesPage) => {
        await recordPart([], toNew(add));
        return add.map(({ feedUrl }) => feedUrl);
      };
      const findRemovals = async ({ removals }: FeedChangesPage) => {
        const { remove, outdated } = await this.#dueRemovals(user, installation, removals, known);
        await recordPart(outdated, []);
        return remove;
      };
      return {
        add: startWith(told.add, mapPages(read({ added: true, removed: false }), findAdditions)),
        remove:
          since === 0 ? [] : startWith(told.remove, mapPages(read({ added: false, removed: true }), findRemovals)),
        isLong,
        timestamp: () => record(received, [], []),
      };
    }
    const pages: FeedChangesPage[] = [];
    for await (const page of read({ added: true, removed: since > 0 })) pages.push(page);
    const removals = pages.flatMap((page) => page.removals);
    const { remove, outdated } = await this.#dueRemovals(user, installation, removals, known);
    const added = pages.flatMap(({ add }) => add);
    const timestamp = await record(received, outdated, toNew(added));
    const add = [told.add, added.map(({ feedUrl }) => feedUrl)];
    return { add, remove: [told.remove, remove], isLong, timestamp: async () => timestamp };
  }

  /** What the client is told of feeds that have moved, which is more than what happened to the list. */
  #tell(
    caller: Caller,
    { key }: Installation,
    { hasMoves, sequence }: SyncState,
    { since, from }: { readonly since: number; readonly from: number },
    at: Date,
  ): Promise<Told> | Told {
    if (!hasMoves || (since > 0 && sequence === from)) return { add: [], remove: [], tracked: [] };
    return this.#store.move(caller, { kind: "tell", client: key, since, from }, at);
  }

  /**
   * A removal is due if the client may know the feed: it was in the list that the client received, or the client uploaded
   * it. A feed that is back in the list is not removed; if its URL is now spelled differently, the old spelling is recorded.
   */
  async #dueRemovals(
    user: UserId,
    installation: Installation,
    removals: ChangeRows["removals"],
    known: number,
  ): Promise<{ readonly remove: readonly string[]; readonly outdated: readonly Spelling[] }> {
    const byFeed = new Map<string, ChangeRows["removals"][number][]>();
    for (const removal of removals) {
      const parsed = readFeedUrl(removal.feedUrl);
      if (parsed.kind === "valid")
        byFeed.set(parsed.normalizedUrl, [...(byFeed.get(parsed.normalizedUrl) ?? []), removal]);
    }
    const normalizedUrls = [...byFeed.keys()];
    const spellings = await readSpellings(this.#store.apps, user, normalizedUrls);
    const current = await this.#find(user, normalizedUrls);
    const remove = new Set<string>();
    const outdated: Spelling[] = [];
    for (const [normalizedUrl, rows] of byFeed) {
      const spelled = spellings.get(normalizedUrl) ?? [];
      const isDue =
        spelled.some((one) => one.installation === installation.key) || rows.some((row) => row.addedSequence <= known);
      if (!isDue) continue;
      const spelledUrls = new Set(spelled.map(({ url }) => url));
      const urls = new Set([...rows.map(({ feedUrl }) => feedUrl), ...spelledUrls]);
      const listed = current.get(normalizedUrl);
      if (listed === undefined) for (const url of urls) remove.add(url);
      else {
        const recorded = [...spelled];
        for (const url of urls) {
          if (url === listed.feedUrl || spelledUrls.has(url) || isFull(recorded)) continue;
          recorded.push({ normalizedUrl, url, installation: "", listSequence: 0 });
        }
        outdated.push(...recorded.slice(spelled.length));
      }
    }
    return { remove: [...remove], outdated };
  }

  /** The list with the URLs that the client has. It is recorded that the client gets all of it. */
  async wholeList(
    caller: Caller,
    installation: Installation,
    pages: AsyncGenerator<readonly Subscription[]>,
    at: Date,
  ): Promise<AsyncGenerator<readonly Subscription[]>> {
    const state = await this.#store.apps.state(caller.user, "feeds", installation, 0);
    await this.#tell(caller, installation, state, { since: 0, from: 0 }, at);
    const progress = { kind: "poll", since: 0, from: 0, covered: state.sequence } as const;
    await this.#recordSync(caller, { kind: "feeds", installation, progress }, state, at);
    const { keyOf, urlOf } = await this.#movedFeeds(caller.user, installation.key, state);
    const toOwn = (item: Subscription) => ({ ...item, feedUrl: urlOf(keyOf(item.feedUrl)) ?? item.feedUrl });
    return state.hasMoves ? mapPages(pages, (items) => items.map(toOwn)) : pages;
  }

  /** Adds, then removes. A feed in both, spelled differently, stays: the app has only changed its URL. */
  async changeFeeds(
    caller: Caller,
    installation: Installation,
    { add, remove, isWholeList = false }: ListUpload,
    at: Date,
  ): Promise<UploadResult> {
    const { user } = caller;
    const client = installation.key;
    const state = await this.#store.apps.state(user, "feeds", installation, 0);
    const rewritten = new Map<string, string>();
    const uploads = await readUploads(add);
    // By normalized URL. The first URL is the one to add.
    const [firstUrlOf, lastSentOf] = [new Map<string, string>(), new Map<string, string>()];
    await forEachInTurns(uploads, ({ sent, url, normalizedUrl }) => {
      if (normalizedUrl === undefined || url !== sent) rewritten.set(sent, normalizedUrl === undefined ? "" : url);
      if (normalizedUrl === undefined) return;
      if (!firstUrlOf.has(normalizedUrl)) firstUrlOf.set(normalizedUrl, url);
      lastSentOf.set(normalizedUrl, sent);
    });
    const listed = await this.#find(user, [...firstUrlOf.keys()]);
    const requested = await this.#feedsToRemove(user, remove, { lastSentOf, rewritten, hasMoves: state.hasMoves });
    const isReplacing = replacesUrls(installation);
    const owned = isReplacing && state.hasMoves ? await this.#ownedFeeds(user, client) : new Set();
    const changes: Change[] = [];
    const removed = new Set(requested);
    await forEachInTurns(uploads, ({ sent, normalizedUrl, url }) => {
      if (normalizedUrl === undefined) return;
      const known = listed.get(normalizedUrl);
      const current = known && normalizedUrlOf(known.feedUrl);
      // A former URL: the app may replace it by the current one, unless it has both.
      const hasBoth = known !== undefined && (firstUrlOf.has(current ?? "") || owned.has(actionFeedKey(known.feedUrl)));
      if (known !== undefined && current !== undefined && current !== normalizedUrl && !(isReplacing && hasBoth)) {
        rewritten.set(sent, known.feedUrl);
        if (isReplacing) {
          changes.push({ ...(toAddition(known.feedUrl) as Addition), client });
          changes.push({ kind: "remove-feed", normalizedUrl, client });
          removed.delete(current);
          return;
        }
      }
      // What an app has of a feed that has moved is recorded with the list.
      const isChange = known === undefined || state.hasMoves;
      if (isChange && firstUrlOf.get(normalizedUrl) === url) changes.push({ ...(toAddition(url) as Addition), client });
    });
    for (const normalizedUrl of removed) changes.push({ kind: "remove-feed", normalizedUrl, client });
    const { refused, added, progress } = await this.#applyChanges(caller, changes, state.sequence, at);
    const spellings: Spelling[] = [];
    await forEachInTurns(uploads, ({ sent, url, normalizedUrl }) => {
      if (normalizedUrl === undefined) return;
      if (refused.has(normalizedUrl)) rewritten.set(sent, "");
      else spellings.push({ normalizedUrl, url, installation: client, listSequence: Math.max(progress.after, 0) });
    });
    const { unrecorded, known } = await findUnrecorded(this.#store.apps, user, spellings);
    const record = {
      kind: "feeds",
      installation,
      progress,
      spellings: unrecorded,
      reused: known.filter(({ normalizedUrl }) => added.has(normalizedUrl)),
      // An app may have removed a feed of the list and added it again.
      newFeeds: [...added.values(), ...(isWholeList || listed.size > MAX_READDED ? [] : feedUrlsOf(listed))],
    } as const;
    return { timestamp: await this.#recordSync(caller, record, state, at), rewritten: [...rewritten] };
  }

  /** Keys of the feeds that have moved of which a client has the current URL. */
  async #ownedFeeds(user: UserId, client: string): Promise<ReadonlySet<string>> {
    const moved = await this.#store.apps.movedFeeds(user, client);
    return new Set(moved.filter(({ hasCurrent }) => hasCurrent).map(({ key }) => key));
  }

  /**
   * Replaces the list with the uploaded one. Feeds that the client has not seen stay, also those that others add at the
   * same time.
   */
  async replaceFeeds(
    caller: Caller,
    installation: Installation,
    urls: readonly string[],
    at: Date,
  ): Promise<UploadResult> {
    const { user } = caller;
    const kept = new Set<string>();
    const feeds = new Set<string>();
    await forEachInTurns(urls, (url) => {
      kept.add(feedKeyOf(url) ?? "");
      feeds.add(feedKeyHex(normalizedUrlOf(url.trim())));
    });
    const state = await this.#store.apps.state(user, "feeds", installation, 0);
    const told = state.hasMoves
      ? await this.#store.move(caller, { kind: "keep", client: installation.key, feeds: [...feeds] }, at)
      : undefined;
    const tracked = new Set(told?.tracked);
    const unseen = await this.#findUnseen(user, installation, state);
    const remove: string[] = [];
    for await (const items of subscriptionBatches(this.#store, user)) {
      await forEachInTurns(items, ({ feedUrl }) => {
        const normalizedUrl = normalizedUrlOf(feedUrl);
        if (kept.has(feedKeyOf(feedUrl) ?? "") || unseen.has(normalizedUrl) || tracked.has(feedKeyHex(normalizedUrl)))
          return;
        remove.push(feedUrl);
      });
    }
    return this.changeFeeds(caller, installation, { add: urls, remove, isWholeList: true }, at);
  }

  /** The listed feeds, normalized, that were added since the client's last poll by others. */
  async #findUnseen(user: UserId, { key }: Installation, { sequence, seen }: SyncState): Promise<ReadonlySet<string>> {
    const from = seen?.sequence ?? 0;
    const unseen = new Map<string, number>();
    const kinds = { added: true, removed: false };
    for await (const { add } of readFeedChanges(this.#store, user, { from, upTo: sequence }, kinds)) {
      for (const { feedUrl, addedSequence } of add)
        if (addedSequence > from) unseen.set(normalizedUrlOf(feedUrl), addedSequence);
    }
    for (const spellings of (await readSpellings(this.#store.apps, user, [...unseen.keys()])).values()) {
      for (const { normalizedUrl, installation, listSequence } of spellings)
        if (installation === key && listSequence >= (unseen.get(normalizedUrl) ?? 0)) unseen.delete(normalizedUrl);
    }
    return new Set(unseen.keys());
  }

  /** The normalized URLs to remove: those in the list, or among the ones that this upload adds. */
  async #feedsToRemove(
    user: UserId,
    remove: readonly string[],
    { lastSentOf, rewritten, hasMoves }: UploadedFeeds,
  ): Promise<readonly string[]> {
    const requested = await readUploads(remove);
    const valid = requested.flatMap(({ normalizedUrl }) => normalizedUrl ?? []);
    const listed = await this.#find(user, valid);
    const isListed = (normalizedUrl = "") => listed.has(normalizedUrl) || lastSentOf.has(normalizedUrl);
    const unknown = requested.filter(({ normalizedUrl }) => !isListed(normalizedUrl));
    const byKey = unknown.length === 0 ? new Map<string, string>() : await this.#encodedFeedsByKey(user);
    const removed = new Set<string>();
    await forEachInTurns(requested, ({ sent, normalizedUrl }) => {
      if (normalizedUrl !== undefined && isListed(normalizedUrl)) {
        if ((lastSentOf.get(normalizedUrl) ?? sent) === sent) removed.add(normalizedUrl);
        return;
      }
      const found = byKey.get(feedKeyOf(sent) ?? "");
      if (found === undefined && normalizedUrl === undefined) rewritten.set(sent, "");
      if (found !== undefined && !lastSentOf.has(found)) removed.add(found);
      // It may be a URL that a listed feed leads to.
      if (found === undefined && normalizedUrl !== undefined && hasMoves) removed.add(normalizedUrl);
    });
    return [...removed];
  }

  /** The normalized URLs in the list that contain percent-encoding, by feed key. */
  async #encodedFeedsByKey(user: UserId): Promise<Map<string, string>> {
    const feeds = new Map<string, string>();
    for await (const items of subscriptionBatches(this.#store, user)) {
      await forEachInTurns(items, ({ feedUrl }) => {
        const [parsed, key] = [readFeedUrl(feedUrl), feedKeyOf(feedUrl)];
        if (feedUrl.includes("%") && parsed.kind === "valid" && key !== undefined) feeds.set(key, parsed.normalizedUrl);
      });
    }
    return feeds;
  }

  async #applyChanges(
    caller: Caller,
    changes: readonly Change[],
    sequence: number,
    at: Date,
  ): Promise<{
    readonly refused: ReadonlySet<string>;
    readonly added: ReadonlyMap<string, string>;
    readonly progress: Upload;
  }> {
    const refused = new Set<string>();
    /** URLs by normalized URL. */
    const added = new Map<string, string>();
    let progress: Upload | undefined;
    let isOffered = false;
    const act = { ...caller, ...(caller.author && { author: { ...caller.author, act: randomUUID() } }) };
    for (let start = 0; start < changes.length; start += BATCH) {
      const batch = changes.slice(start, start + BATCH);
      const { outcomes, sequenceBefore, sequence: after } = await this.#store.change(act, batch, at);
      for (const [index, outcome] of outcomes.entries()) {
        const change = batch[index];
        if (outcome.kind === "done" && change?.kind === "add") added.set(change.normalizedUrl, change.feedUrl);
        if (outcome.kind === "refused" && (outcome.code === "id-in-use" || outcome.code === "quota-exceeded"))
          refused.add((batch[index] as Addition).normalizedUrl);
        // It has only sent back a removal that it was told of, and gets the feed again.
        if (outcome.kind === "refused" && change?.kind === "remove-feed" && outcome.code === "already-subscribed")
          isOffered = true;
      }
      // If others wrote between two batches, the client may not have seen all earlier changes.
      const isContiguous = !isOffered && (progress === undefined || progress.after === sequenceBefore);
      const before = isContiguous ? (progress?.before ?? sequenceBefore) : UNSEEN;
      progress = { kind: "upload", before, after };
    }
    return { refused, added, progress: progress ?? { kind: "upload", before: sequence, after: sequence } };
  }

  /** Actions uploaded since that timestamp; only those of one feed, if given. */
  async actionsSince(
    caller: Caller,
    installation: Installation,
    since: number,
    podcast: string | undefined,
    at: Date,
  ): Promise<ActionChanges> {
    const { user } = caller;
    const state = await this.#store.apps.state(user, "actions", installation, since);
    const { from } = startOf(state, since);
    const upTo = podcast === undefined || feedKeyOf(podcast) !== undefined ? state.sequence : from;
    const moved = await this.#movedFeeds(user, installation.key, state);
    const feed = podcast === undefined ? undefined : moved.keyOf(podcast);
    const resends = upTo > from ? await this.#store.apps.resends(user, installation.key, from) : [];
    const again = new Set(resends.map((resend) => resend.feed).filter((each) => feed === undefined || each === feed));
    // With a filter, the client does not receive everything.
    const progress: Progress =
      podcast === undefined
        ? { kind: "poll", since, from, covered: state.sequence }
        : { kind: "upload", before: UNSEEN, after: state.sequence };
    const timestamp = await this.#recordSync(caller, { kind: "actions", installation, progress }, state, at);
    // Actions that are replaced while the pages are read get a higher number, so the next request returns them.
    const pages = this.#actionsAndResends(user, { from, upTo, feed, again }, moved);
    return { pages, isLong: upTo - from > BATCH || again.size > 0, timestamp };
  }

  /** First all actions of the feeds of which all are due again. */
  async *#actionsAndResends(
    user: UserId,
    { from, upTo, feed, again }: ActionsToSend,
    moved: MovedFeeds,
  ): AsyncGenerator<readonly StoredAction[]> {
    for (const each of again)
      for await (const actions of this.#actions(user, 0, upTo, each)) yield rename(actions, moved);
    if (again.size === 0 && moved === NOT_MOVED) yield* this.#actions(user, from, upTo, feed);
    else
      for await (const actions of this.#actions(user, from, upTo, feed))
        yield rename(
          actions.filter(({ feedKey }) => !again.has(feedKey)),
          moved,
        );
  }

  /** Feeds of actions by their URLs, and actions under the URLs that an installation has. */
  async #movedFeeds(user: UserId, installation: string, { hasMoves, sequence }: SyncState): Promise<MovedFeeds> {
    if (!hasMoves || sequence === 0) return NOT_MOVED;
    const feeds = await this.#store.apps.movedFeeds(user, installation);
    const byKey = new Map(feeds.flatMap((feed) => feed.keys.map((key) => [key, feed] as const)));
    const keys = new Map<string, string>();
    const keyOf = (url: string) => {
      const known = keys.get(url) ?? actionFeedKey(url);
      keys.set(url, known);
      return byKey.get(known)?.key ?? known;
    };
    return { keyOf, urlOf: (key) => byKey.get(key)?.url };
  }

  /** All actions of a user, in the order of their uploads. `afterBatch`: see `subscriptionBatches`. */
  async *everyAction(user: UserId, afterBatch?: () => unknown): AsyncGenerator<readonly StoredAction[]> {
    const state = await this.#store.apps.state(user, "actions", NOBODYS, 0);
    const moved = await this.#movedFeeds(user, NOBODYS.key, state);
    for await (const actions of this.#actions(user, 0, state.sequence, undefined)) {
      await afterBatch?.();
      yield rename(actions, moved);
    }
  }

  /** One page of actions; only those of one feed, if given. */
  async actionPage(user: UserId, range: PageRange, podcast: string | undefined): Promise<ActionPage> {
    const moved = await this.#movedFeeds(user, NOBODYS.key, await this.#store.apps.state(user, "actions", NOBODYS, 0));
    const feed = podcast === undefined ? undefined : moved.keyOf(podcast);
    const { items, total } = await this.#store.apps.actionPage(user, { ...range, feed });
    return { items: rename(items, moved), total };
  }

  async *#actions(
    user: UserId,
    from: number,
    upTo: number,
    feed: string | undefined,
  ): AsyncGenerator<readonly StoredAction[]> {
    for (let after = from; after < upTo; ) {
      const actions = await this.#store.apps.actions(user, { after, upTo, limit: BATCH, feed });
      const last = actions.at(-1);
      if (last === undefined) return;
      yield actions;
      after = last.sequence;
      await yieldTurn();
    }
  }

  /** Stores the valid actions and ignores the others. Actions never change the list. */
  async addActions(
    caller: Caller,
    installation: Installation,
    items: readonly UploadedAction[],
    at: Date,
  ): Promise<UploadResult> {
    const rewritten = new Map<string, string>();
    const actions: KeyedAction[] = [];
    const keyOf = memoizeFeedKeyOf();
    const found = new Set<string>();
    await forEachInTurns(items, (upload) => {
      const action = readAction(upload, at, keyOf);
      if (action === undefined) {
        for (const sent of [upload.podcast, upload.episode]) if (!isWebUrl(sent)) rewritten.set(sent, "");
        return;
      }
      if (action.podcast !== upload.podcast) rewritten.set(upload.podcast, action.podcast);
      if (action.episode !== upload.episode) rewritten.set(upload.episode, action.episode);
      actions.push(action);
      if (action.device !== undefined && isDeviceId(action.device)) found.add(action.device);
    });
    const devices = [...found].slice(0, MAX_DEVICES);
    const state = await this.#store.apps.state(caller.user, "actions", installation, 0);
    const progress = { kind: "upload", before: state.sequence, after: state.sequence } as const;
    let timestamp: number | undefined;
    for (let start = 0; start < actions.length; start += BATCH) {
      const batch = { kind: "actions", actions: actions.slice(start, start + BATCH) } as const;
      const record = { kind: "actions", installation, progress: batch, spellings: [], devices } as const;
      timestamp = await this.#store.apps.recordSync(caller, record, at);
    }
    timestamp ??= await this.#recordSync(caller, { kind: "actions", installation, progress }, state, at);
    if (state.hasMoves) await this.#actOn(caller, installation, actions, at);
    return { timestamp, rewritten: [...rewritten] };
  }

  /** Which URLs of feeds that have moved an app uses says which ones it has. */
  async #actOn(caller: Caller, { key }: Installation, actions: readonly KeyedAction[], at: Date): Promise<void> {
    const urls = [...new Set(actions.map(({ podcast }) => podcast))];
    for await (const some of slicesOf(urls, BATCH)) {
      const feeds = some.map((url) => ({ feed: feedKeyHex(normalizedUrlOf(url)), url }));
      await this.#store.move(caller, { kind: "act", client: key, feeds }, at);
    }
  }

  /** The timestamp for the client. Writes nothing if nothing is new, as for most polls. */
  async #recordSync(
    caller: Caller,
    record: Pick<SyncRecord, "kind" | "installation"> & Partial<SyncRecord> & { readonly progress: Progress },
    state: SyncState,
    at: Date,
  ): Promise<number> {
    const { timestamp, newMark, newSeen } = advance(state, record.progress, at);
    const { spellings = [], reused = [], newFeeds = [], devices = [], installation } = record;
    const age = at.getTime() - (state.deviceSyncedAt?.getTime() ?? Number.NEGATIVE_INFINITY);
    const isDeviceFresh = installation.device === undefined || age < TOUCH_MS;
    const hasNews =
      newMark !== undefined || newSeen !== undefined || spellings.length + reused.length + newFeeds.length > 0;
    if (!hasNews && isDeviceFresh) return timestamp;
    return this.#store.apps.recordSync(caller, { ...record, spellings, devices }, at);
  }

  async #find(user: UserId, normalizedUrls: readonly string[]): Promise<Map<string, Subscription>> {
    const found = new Map<string, Subscription>();
    for await (const batch of slicesOf(normalizedUrls, FEED_BATCH)) {
      const keys = batch.map((normalizedUrl): SubscriptionKey => ({ kind: "feed", normalizedUrl }));
      const subscriptions = await this.#store.find(user, keys);
      for (const [index, subscription] of subscriptions.entries())
        if (subscription !== undefined) found.set(batch[index] ?? "", subscription);
    }
    return found;
  }
}

/** Without feeds that are in the set of keys. */
function withoutFeeds(page: FeedChangesPage, feeds: ReadonlySet<string>): FeedChangesPage {
  if (feeds.size === 0) return page;
  const isOther = ({ feedUrl }: { readonly feedUrl: string }) => !feeds.has(feedKeyHex(normalizedUrlOf(feedUrl)));
  return { add: page.add.filter(isOther), removals: page.removals.filter(isOther) };
}

/** gPodder replaces its URLs by those that an upload returns. All others ignore them. */
function replacesUrls({ app = "" }: Installation): boolean {
  return app.startsWith("mygpoclient/");
}

function feedUrlsOf(subscriptions: ReadonlyMap<string, Subscription>): string[] {
  return [...subscriptions.values()].map(({ feedUrl }) => feedUrl);
}

function normalizedUrlOf(url: string): string {
  const parsed = readFeedUrl(url);
  return parsed.kind === "valid" ? parsed.normalizedUrl : "";
}

async function* startWith<T>(first: readonly T[], pages: AsyncIterable<readonly T[]>): AsyncGenerator<readonly T[]> {
  yield first;
  yield* pages;
}

async function* mapPages<From, To>(
  pages: AsyncIterable<From>,
  map: (page: From) => To | Promise<To>,
): AsyncGenerator<To> {
  for await (const page of pages) yield map(page);
}

interface ActionsToSend {
  readonly from: number;
  readonly upTo: number;
  readonly feed: string | undefined;
  /** Keys of feeds of which all actions are sent. */
  readonly again: ReadonlySet<string>;
}

interface MovedFeeds {
  /** The key of the feed of actions with this URL. */
  readonly keyOf: (url: string) => string;
  /** The URL under which the feed with this key is sent. */
  readonly urlOf: (key: string) => string | undefined;
}

const NOT_MOVED: MovedFeeds = { keyOf: actionFeedKey, urlOf: () => undefined };

function rename(actions: readonly StoredAction[], { urlOf }: MovedFeeds): readonly StoredAction[] {
  return actions.map((action) => {
    const podcast = urlOf(action.feedKey);
    return podcast === undefined ? action : { ...action, podcast };
  });
}

/** What is not for an app. */
const NOBODYS: Installation = { key: "", device: undefined };

/** Matches no client's progress, so the returned timestamp does not advance. */
const UNSEEN = -1;
