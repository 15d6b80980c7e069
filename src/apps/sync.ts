import type { Caller, UserId } from "../accounts/caller.ts";
import type { ChangeRows } from "../lists/changes.ts";
import { type ChangeKinds, type FeedChangesPage, readFeedChanges } from "../lists/changes.ts";
import { readFeedUrl } from "../lists/feed-url.ts";
import { readUploads, toAddition } from "../lists/imports.ts";
import { type SubscriptionStore, subscriptionBatches } from "../lists/list-store.ts";
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

export interface UploadResult {
  readonly timestamp: number;
  /** URLs that were not stored as sent; `stored` is empty if the URL was rejected. */
  readonly rewritten: readonly (readonly [sent: string, stored: string])[];
}

/** How many rows are read or written at a time, so that other requests are handled in between. */
const BATCH = 1_000;
/** Rows with feed URLs, which may be long. */
const FEED_BATCH = 200;
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
    const read = (kinds: ChangeKinds) => readFeedChanges(this.#store, user, { from, upTo: covered }, kinds);
    const record = (progress: Progress, spellings: readonly Spelling[]) =>
      this.#recordSync(caller, { kind: "feeds", installation, progress, spellings }, state, at);
    const received = { kind: "poll", since, from, covered } as const;
    if (isLong) {
      const findRemovals = async ({ removals }: FeedChangesPage) => {
        const { remove, outdated } = await this.#dueRemovals(user, installation, removals, known);
        // Without progress: the client may stop reading.
        if (outdated.length > 0) await record({ kind: "upload", before: UNSEEN, after: UNSEEN }, outdated);
        return remove;
      };
      return {
        add: mapPages(read({ added: true, removed: false }), ({ add }) => add),
        remove: since === 0 ? [] : mapPages(read({ added: false, removed: true }), findRemovals),
        isLong,
        timestamp: () => record(received, []),
      };
    }
    const pages: FeedChangesPage[] = [];
    for await (const page of read({ added: true, removed: since > 0 })) pages.push(page);
    const removals = pages.flatMap((page) => page.removals);
    const { remove, outdated } = await this.#dueRemovals(user, installation, removals, known);
    const timestamp = await record(received, outdated);
    return { add: pages.map(({ add }) => add), remove: [remove], isLong, timestamp: async () => timestamp };
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
          recorded.push({ normalizedUrl, url, installation: "" });
        }
        outdated.push(...recorded.slice(spelled.length));
      }
    }
    return { remove: [...remove], outdated };
  }

  /** Adds, then removes. A feed in both, spelled differently, stays: the app has only changed its URL. */
  async changeFeeds(
    caller: Caller,
    installation: Installation,
    { add, remove }: { readonly add: readonly string[]; readonly remove: readonly string[] },
    at: Date,
  ): Promise<UploadResult> {
    const { user } = caller;
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
    const removed = await this.#feedsToRemove(user, remove, lastSentOf, rewritten);
    const changes: Change[] = [];
    await forEachInTurns(uploads, ({ normalizedUrl, url }) => {
      const isNew = normalizedUrl !== undefined && !listed.has(normalizedUrl);
      if (isNew && firstUrlOf.get(normalizedUrl) === url) changes.push(toAddition(url) as Addition);
    });
    for (const normalizedUrl of removed) changes.push({ kind: "remove-feed", normalizedUrl });
    const { refused, progress } = await this.#applyChanges(caller, changes, state.sequence, at);
    const spellings: Spelling[] = [];
    await forEachInTurns(uploads, ({ sent, url, normalizedUrl }) => {
      if (normalizedUrl === undefined) return;
      if (refused.has(normalizedUrl)) rewritten.set(sent, "");
      else spellings.push({ normalizedUrl, url, installation: installation.key });
    });
    const record = {
      kind: "feeds",
      installation,
      progress,
      spellings: await findUnrecorded(this.#store.apps, user, spellings),
    } as const;
    return { timestamp: await this.#recordSync(caller, record, state, at), rewritten: [...rewritten] };
  }

  /** Replaces the list with the uploaded one. Feeds that others add at the same time stay. */
  async replaceFeeds(
    caller: Caller,
    installation: Installation,
    urls: readonly string[],
    at: Date,
  ): Promise<UploadResult> {
    const kept = new Set<string>();
    await forEachInTurns(urls, (url) => kept.add(feedKeyOf(url) ?? ""));
    const remove: string[] = [];
    for await (const items of subscriptionBatches(this.#store, caller.user)) {
      await forEachInTurns(items, ({ feedUrl }) => kept.has(feedKeyOf(feedUrl) ?? "") || remove.push(feedUrl));
    }
    return this.changeFeeds(caller, installation, { add: urls, remove }, at);
  }

  /** The normalized URLs to remove: those in the list, or among the ones that this upload adds. */
  async #feedsToRemove(
    user: UserId,
    remove: readonly string[],
    lastSentOf: ReadonlyMap<string, string>,
    rewritten: Map<string, string>,
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
  ): Promise<{ readonly refused: ReadonlySet<string>; readonly progress: Upload }> {
    const refused = new Set<string>();
    let progress: Upload | undefined;
    for (let start = 0; start < changes.length; start += BATCH) {
      const batch = changes.slice(start, start + BATCH);
      const { outcomes, sequenceBefore, sequence: after } = await this.#store.change(caller, batch, at);
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.kind === "refused" && (outcome.code === "id-in-use" || outcome.code === "quota-exceeded"))
          refused.add((batch[index] as Addition).normalizedUrl);
      }
      // If others wrote between two batches, the client may not have seen all earlier changes.
      const isContiguous = progress === undefined || progress.after === sequenceBefore;
      const before = isContiguous ? (progress?.before ?? sequenceBefore) : UNSEEN;
      progress = { kind: "upload", before, after };
    }
    return { refused, progress: progress ?? { kind: "upload", before: sequence, after: sequence } };
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
    const feed = podcast === undefined ? undefined : feedKeyOf(podcast);
    const { from } = startOf(state, since);
    const upTo = podcast === undefined || feed !== undefined ? state.sequence : from;
    // With a filter, the client does not receive everything.
    const progress: Progress =
      podcast === undefined
        ? { kind: "poll", since, from, covered: state.sequence }
        : { kind: "upload", before: UNSEEN, after: state.sequence };
    const timestamp = await this.#recordSync(caller, { kind: "actions", installation, progress }, state, at);
    // Actions that are replaced while the pages are read get a higher number, so the next request returns them.
    return { pages: this.#actions(user, from, upTo, feed), isLong: upTo - from > BATCH, timestamp };
  }

  /** All actions of a user, in the order of their uploads. `afterBatch`: see `subscriptionBatches`. */
  async *everyAction(user: UserId, afterBatch?: () => unknown): AsyncGenerator<readonly StoredAction[]> {
    const { sequence } = await this.#store.apps.state(user, "actions", { key: "", device: undefined }, 0);
    for await (const actions of this.#actions(user, 0, sequence, undefined)) {
      await afterBatch?.();
      yield actions;
    }
  }

  /** One page of actions; only those of one feed, if given. */
  actionPage(user: UserId, range: PageRange, podcast: string | undefined): Promise<ActionPage> {
    const feed = podcast === undefined ? undefined : (feedKeyOf(podcast) ?? "");
    return this.#store.apps.actionPage(user, { ...range, feed });
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
    return { timestamp, rewritten: [...rewritten] };
  }

  /** The timestamp for the client. Writes nothing if nothing is new, as for most polls. */
  async #recordSync(
    caller: Caller,
    record: Pick<SyncRecord, "kind" | "installation"> & Partial<SyncRecord> & { readonly progress: Progress },
    state: SyncState,
    at: Date,
  ): Promise<number> {
    const { timestamp, newMark, newSeen } = advance(state, record.progress, at);
    const { spellings = [], devices = [], installation } = record;
    const age = at.getTime() - (state.deviceSyncedAt?.getTime() ?? Number.NEGATIVE_INFINITY);
    const isDeviceFresh = installation.device === undefined || age < TOUCH_MS;
    if (newMark === undefined && newSeen === undefined && spellings.length === 0 && isDeviceFresh) return timestamp;
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

async function* mapPages<From, To>(
  pages: AsyncIterable<From>,
  map: (page: From) => To | Promise<To>,
): AsyncGenerator<To> {
  for await (const page of pages) yield map(page);
}

/** Matches no client's progress, so the returned timestamp does not advance. */
const UNSEEN = -1;
