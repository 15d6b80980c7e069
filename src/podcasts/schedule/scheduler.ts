import { setTimeout as sleep } from "node:timers/promises";
import { NOBODY } from "../../accounts/account-store.ts";
import type { UserId } from "../../accounts/caller.ts";
import type { OnChange, SubscriptionStore } from "../../lists/list-store.ts";
import type { FailureCode } from "../failure.ts";
import { FetchQueue, type QueuedFeed } from "../fetch/fetch-queue.ts";
import { inOneProcess } from "../leases.ts";
import {
  type DueFeed,
  FAILED_STATUSES,
  type PodcastRecord,
  type PodcastStore,
  type StoredArtwork,
  type SubscribedFeed,
} from "../podcast-store.ts";
import type { ArtworkScaler, DeclaredFeed, FeedFetcher, FeedOutcome } from "../read/feed.ts";
import { retryFailing } from "../retry-failing.ts";
import type { TitleStore } from "../title-store.ts";
import { clearCopiedTitles } from "./clear-copied-titles.ts";
import { EpisodeTitles } from "./episode-titles.ts";
import { applyOutcome, chooseSpelling, confirmsMove, needsArtwork, urlToVerify } from "./fetch-rules.ts";
import { followMove, tellSubscribers } from "./follow-moves.ts";
import { HostLocks } from "./host-locks.ts";

/** Longer than a fetch with its artwork can take. If the process is killed, another one fetches the feed after that. */
const LEASE_MS = 3 * 60 * 1_000;
/** How long the titles of episodes are written before the lease ends. */
const KEEP_MS = 30_000;
/** Feeds added within this time are looked up together. */
const COLLECT_MS = 100;
const RETRY_MS = 5_000;
/** How often the database is polled for feeds that are due. */
const POLL_MS = 5_000;
const DUE_BATCH_SIZE = 200;
const MAX_ADDED = 20_000;
/** Only some feeds from one host are queued, so that those from other hosts do not wait behind them. */
const MAX_DUE = { feeds: 2_000, perHost: 50 };
const SCANNED_PER_STEP = 1_000;
/** Few at a time, because on SQLite the main thread looks them up. */
const CHANGED_PER_STEP = 100;
/** How often all lists are scanned for feeds that this process was not notified of. */
const SCAN_MS = 60 * 60 * 1_000;
const SCAN_PAUSE_MS = 50;
/** Feeds are not fetched if none of their subscribers has been seen for this long. */
const INACTIVE_MS = 90 * 24 * 60 * 60 * 1_000;
const INACTIVE_CHECK_MS = 24 * 60 * 60 * 1_000;
/** Pause between two fetches from a host. */
const HOST_PAUSE_MS = 1_000;
/** A feed that fails is fetched again when someone adds it, because their spelling may work; at most this often. */
const MIN_RETRY_MS = 10_000;
/**
 * Minimum time between the starts of two fetches. Without it, a burst of fetches that finish quickly would slow down client
 * requests.
 */
const START_PAUSE_MS = 40;

/** What the scheduler reads and writes. */
export type ScheduledStore = Pick<SubscriptionStore, "change" | "move"> & {
  readonly podcasts: PodcastStore;
  readonly titles: TitleStore;
};

export interface SchedulerOptions {
  readonly store: ScheduledStore;
  /** Called before the first fetch, so that a server that fetches nothing loads nothing. */
  readonly createFetcher: () => Promise<FeedFetcher>;
  readonly createScaler: () => Promise<ArtworkScaler>;
  readonly concurrency: number;
  readonly intervalMs: number;
  readonly clock: () => Date;
  readonly onError: (error: unknown) => void;
  /** Called with the result and duration of each fetch. */
  readonly onFetch?: ((outcome: FeedOutcome, seconds: number) => void) | undefined;
  /** Called when the status of a feed changes to one of those of feeds that cannot be read. */
  readonly onFailing?: ((id: string, failure: FailureCode) => void) | undefined;
  readonly hostPauseMs?: number | undefined;
}

interface OwnedFeed extends QueuedFeed {
  readonly owner: UserId;
}

/**
 * Fetches feeds in the background: those that were just added, then those that are due. Several processes may do so on one
 * database: a feed or host is leased to one of them at a time.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #hostLocks: HostLocks;
  readonly #hostPauseMs: number;
  readonly #added = new FetchQueue<UserId, OwnedFeed>({ feeds: MAX_ADDED, perHost: MAX_ADDED });
  readonly #due = new FetchQueue<UserId, OwnedFeed>(MAX_DUE);
  /** Users whose lists have changed, and the sequence number up to which their feeds are known. */
  readonly #changed = new Map<UserId, number>();
  /** Hosts that are being fetched from, or are in the pause after a fetch. */
  readonly #busyHosts = new Set<string>();
  readonly #running = new Set<Promise<void>>();
  readonly #active = new Set<OwnedFeed>();
  #isPausing = false;
  readonly #stop = new AbortController();
  readonly #titles: EpisodeTitles;
  readonly #timers = new Set<NodeJS.Timeout>();
  #fetcher: Promise<FeedFetcher> | undefined;
  #scaler: Promise<ArtworkScaler> | undefined;
  #lastDue: Pick<DueFeed, "id" | "nextAt"> | undefined;
  #isCollecting = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#hostLocks = new HostLocks(options.store.podcasts.leases, options.clock);
    this.#hostPauseMs = options.hostPauseMs ?? HOST_PAUSE_MS;
    this.#titles = new EpisodeTitles({ ...options, signal: this.#stop.signal });
  }

  start(): void {
    // The setting that allows networks may have changed.
    this.#track(this.#options.store.podcasts.retry("private-address", this.#now()));
    this.#track(this.#repeat(POLL_MS, () => this.#poll()));
    const scan = (name: string, work: () => Promise<void>) => {
      const { leases } = this.#options.store.podcasts;
      this.#track(this.#repeat(SCAN_MS, () => inOneProcess(leases, name, { at: this.#now(), ms: SCAN_MS }, work)));
    };
    scan("scan of lists", () => this.#scanLists());
    scan("scan of actions", () => this.#titles.scan());
  }

  /** Must be called when a user has uploaded episode actions. */
  notifyActions(user: UserId): void {
    this.#titles.notify(user);
  }

  /** Must be called when a list has changed. */
  readonly notify: OnChange = (user, { sequenceBefore }) => {
    if (this.#stop.signal.aborted) return;
    if (!this.#changed.has(user)) this.#changed.set(user, sequenceBefore);
    if (!this.#isCollecting) this.#track(this.#collect());
  };

  /** Fetches the feed next, if it is due. */
  async fetchSoon(user: UserId, id: string): Promise<void> {
    await this.#enqueue(this.#added, user, [{ id, movedTo: null }]);
  }

  /** Fetches the feeds of a list next that cannot be read, unless they were fetched just now. Returns how many. */
  async retryFailing(user: UserId): Promise<number> {
    const retried = await retryFailing(this.#options.store.podcasts, user, this.#now());
    for (const { id, feedUrl } of retried) this.#push(this.#added, user, id, feedUrl);
    this.#pump();
    return retried.length;
  }

  /** The feeds that a page declares; undefined if it cannot be fetched. Not queued: callers limit how many run at a time. */
  async findFeeds(pageUrl: string, signal: AbortSignal): Promise<readonly DeclaredFeed[] | undefined> {
    if (this.#stop.signal.aborted) return undefined;
    this.#fetcher ??= this.#options.createFetcher();
    const outcome = await (await this.#fetcher).fetchPage(pageUrl, AbortSignal.any([signal, this.#stop.signal]));
    return outcome.kind === "read" ? outcome.feeds : undefined;
  }

  /** Fetches a feed whose outcome is not stored. Not queued. */
  async fetchOnce(url: string): Promise<FeedOutcome> {
    if (this.#stop.signal.aborted) return { kind: "failed", reason: "aborted" };
    this.#fetcher ??= this.#options.createFetcher();
    return (await this.#fetcher).fetchFeed({ url }, this.#stop.signal);
  }

  /** Aborts what is being fetched; another process, or the next start, fetches it. */
  async close(): Promise<void> {
    this.#stop.abort();
    for (const timer of this.#timers) clearTimeout(timer);
    this.#added.clear();
    this.#due.clear();
    await Promise.all([...this.#running, this.#titles.close()]);
    await Promise.all([this.#fetcher?.then((each) => each.close()), this.#scaler?.then((each) => each.close())]);
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#options.onError(error);
      })
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  /** Repeats the work about every `ms`. A failure is reported and retried soon. */
  async #repeat(ms: number, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const isDone = await work().then(
        () => true,
        (error) => {
          this.#options.onError(error);
          return false;
        },
      );
      const pause = (isDone ? ms : RETRY_MS) * (0.9 + 0.2 * Math.random());
      await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Finds the feeds of changed lists that are new to the server, and queues them. Users take turns. */
  async #collect(): Promise<void> {
    this.#isCollecting = true;
    const { signal } = this.#stop;
    let pause = COLLECT_MS;
    while (this.#changed.size > 0 && !signal.aborted) {
      await sleep(pause, undefined, { signal, ref: false }).catch(() => undefined);
      pause = 0;
      const [user, after] = first(this.#changed) ?? [NOBODY, 0];
      // Changes reported from now on are read next time.
      this.#changed.delete(user);
      const readAgainFrom = (from: number) => this.#changed.set(user, Math.min(from, this.#changed.get(user) ?? from));
      try {
        const last = await this.#queueChanged(user, after);
        if (last !== undefined) readAgainFrom(last);
      } catch (error) {
        this.#options.onError(error);
        readAgainFrom(after);
        pause = RETRY_MS;
      }
    }
    this.#isCollecting = false;
  }

  /** Returns where to continue, if there may be more. */
  async #queueChanged(user: UserId, after: number): Promise<number | undefined> {
    const { podcasts } = this.#options.store;
    const feeds = await podcasts.changedFeeds(user, after, CHANGED_PER_STEP);
    const created = new Set(
      await podcasts.create(
        feeds.map(({ id }) => ({ user, id })),
        this.#now(),
      ),
    );
    for (const { id, feedUrl } of feeds) if (created.has(id)) this.#push(this.#added, user, id, feedUrl);
    this.#pump();
    const known = feeds.filter(({ id }) => !created.has(id)).map(({ feedUrl }) => feedUrl);
    await this.#retryFailed(user, known);
    await this.#options.store.titles.requestTitlesOf(user, known, this.#now());
    return feeds.length < CHANGED_PER_STEP ? undefined : feeds.at(-1)?.sequence;
  }

  async #retryFailed(user: UserId, feedUrls: readonly string[]): Promise<void> {
    const { podcasts } = this.#options.store;
    const now = this.#now().getTime();
    for (const [index, { id, status, checkedAt, movedTo }] of (await podcasts.find(feedUrls)).entries()) {
      if (movedTo !== undefined) await followMove(this.#options.store, user, id, movedTo, this.#now());
      if (!FAILED_STATUSES.has(status)) continue;
      const at = Math.max(now, (checkedAt?.getTime() ?? 0) + MIN_RETRY_MS);
      await podcasts.refresh(user, id, new Date(at), MIN_RETRY_MS);
      if (at === now) this.#push(this.#added, user, id, feedUrls[index] ?? "");
    }
    this.#pump();
  }

  /** Queues feeds that are due. Each poll continues where the last one ended, so that none is missed. */
  async #poll(): Promise<void> {
    if (this.#due.length >= MAX_DUE.feeds / 2) return;
    const found = await this.#options.store.podcasts.due(this.#now(), this.#lastDue, DUE_BATCH_SIZE);
    this.#lastDue = found.length < DUE_BATCH_SIZE ? undefined : found.at(-1);
    await this.#enqueue(
      this.#due,
      NOBODY,
      found.filter(({ id }) => !this.#added.has(id) && !this.#due.has(id)),
    );
  }

  /** Finds feeds and subscribers that the server does not know of. */
  async #scanLists(): Promise<void> {
    const { podcasts } = this.#options.store;
    const { signal } = this.#stop;
    let last: SubscribedFeed | undefined;
    do {
      const subscribed = await podcasts.subscriptionsAfter(last, SCANNED_PER_STEP);
      await podcasts.create(subscribed, this.#now());
      last = subscribed.at(-1);
      await sleep(SCAN_PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined);
    } while (last !== undefined && !signal.aborted);
  }

  async #enqueue(
    queue: FetchQueue<UserId, OwnedFeed>,
    owner: UserId,
    feeds: readonly Pick<DueFeed, "id" | "movedTo">[],
  ): Promise<void> {
    if (feeds.length === 0) return;
    const subscribers = await this.#options.store.podcasts.subscribers(feeds.map(({ id }) => id));
    for (const [index, { id, movedTo }] of feeds.entries()) {
      // All spellings have the same host.
      const url = movedTo ?? subscribers[index]?.[0]?.feedUrl;
      if (url !== undefined) this.#push(queue, owner, id, url);
    }
    this.#pump();
  }

  #push(queue: FetchQueue<UserId, OwnedFeed>, owner: UserId, id: string, url: string): void {
    const host = URL.parse(url)?.host;
    if (host !== undefined) queue.push(owner, { id, host, owner });
  }

  /** Starts the next fetch if the limits allow it, and schedules the one after it. */
  #pump(): void {
    const { concurrency } = this.#options;
    if (this.#stop.signal.aborted || this.#isPausing || this.#active.size >= concurrency) return;
    const isHostFree = (host: string) => !this.#busyHosts.has(host);
    // At most half, so that an owner whose feeds all hang delays nobody else's. Due feeds have one owner.
    const mayFetch = (owner: UserId) =>
      [...this.#active].filter((each) => each.owner === owner).length < Math.ceil(concurrency / 2);
    const feed = this.#added.take(isHostFree, mayFetch) ?? this.#due.take(isHostFree, mayFetch);
    if (feed === undefined) return;
    this.#active.add(feed);
    this.#busyHosts.add(feed.host);
    this.#track(
      this.#run(feed).finally(() => {
        this.#active.delete(feed);
        this.#pump();
      }),
    );
    this.#isPausing = true;
    this.#after(START_PAUSE_MS, () => {
      this.#isPausing = false;
      this.#pump();
    });
  }

  async #run(feed: OwnedFeed): Promise<void> {
    let pauseMs = 0;
    try {
      const lockOrWaitMs = await this.#hostLocks.acquire(feed.host);
      if (typeof lockOrWaitMs === "number") {
        pauseMs = lockOrWaitMs;
        this.#requeue(feed);
        return;
      }
      try {
        const record = await this.#fetch(feed.id);
        if (record !== undefined) pauseMs = this.#hostPauseMs;
        // Another spelling is to be tried.
        if (record !== undefined && record.nextAt <= this.#now().getTime()) this.#requeue(feed);
      } finally {
        await lockOrWaitMs.release(pauseMs);
      }
    } finally {
      this.#freeAfter(feed.host, pauseMs);
    }
  }

  #requeue(feed: OwnedFeed): void {
    (feed.owner === NOBODY ? this.#due : this.#added).push(feed.owner, feed);
  }

  #freeAfter(host: string, ms: number): void {
    const free = () => {
      this.#busyHosts.delete(host);
      this.#pump();
    };
    if (ms === 0) free();
    else this.#after(ms, free);
  }

  #after(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms).unref();
    this.#timers.add(timer);
  }

  /** The record after the fetch; undefined if no request was sent. */
  async #fetch(id: string): Promise<PodcastRecord | undefined> {
    const { store, intervalMs, onFetch } = this.#options;
    const { signal } = this.#stop;
    const at = this.#now().getTime();
    const leaseUntil = new Date(at + LEASE_MS);
    const record = await store.podcasts.claim(id, new Date(at), leaseUntil);
    if (record === undefined) return undefined;
    const [subscribers = []] = await store.podcasts.subscribers([id]);
    const feed = chooseSpelling(subscribers, record);
    // Without subscribers, the record will be deleted by the next sweep.
    if (feed === undefined) return undefined;
    const users = subscribers.map(({ user }) => user);
    if (!(await store.podcasts.isAnyActive(users, new Date(at - INACTIVE_MS)))) {
      await store.podcasts.record(id, leaseUntil, { ...record, nextAt: at + INACTIVE_CHECK_MS });
      return undefined;
    }
    const search = await this.#titles.search(id, feed.feedUrl);
    this.#fetcher ??= this.#options.createFetcher();
    const fetcher = await this.#fetcher;
    const started = performance.now();
    const { etag, lastModified, needsUserAgentSuffix } = record;
    const request = {
      url: record.movedTo ?? feed.feedUrl,
      etag: etag ?? undefined,
      lastModified: lastModified ?? undefined,
      needsUserAgentSuffix: needsUserAgentSuffix === 1,
      episodes: search?.wanted,
    };
    const outcome = await fetcher.fetchFeed(request, signal);
    // A function, because TypeScript assumes that `aborted` does not change.
    const isAborted = () => signal.aborted;
    if (isAborted()) {
      await store.podcasts.record(id, leaseUntil, record);
      return record;
    }
    onFetch?.(outcome, (performance.now() - started) / 1_000);
    const target = urlToVerify(record, feed.feedUrl, outcome, at);
    const isConfirmed = target === undefined || confirmsMove(target, await fetcher.fetchFeed({ url: target }, signal));
    const timing = { intervalMs, random: Math.random };
    // Including those that were added during the fetch.
    const [latest = []] = await store.podcasts.subscribers([id]);
    const { spellings } = chooseSpelling(latest, record) ?? feed;
    const next = applyOutcome(record, { ...feed, spellings }, outcome, at, timing, isConfirmed);
    const artwork = needsArtwork(record, next, at) ? await this.#fetchArtwork(fetcher, next, request.url) : undefined;
    const hasTriedArtwork = artwork !== undefined && !isAborted();
    const artworkFields = hasTriedArtwork ? { artworkAt: at, artwork: artwork.scaled?.hash ?? next.artwork } : {};
    // Before the new title is stored: if this process is killed, the next fetch continues here.
    if (record.title !== null && record.title !== next.title)
      await clearCopiedTitles(store, id, record.title, new Date(at));
    const episodes = outcome.kind === "read" ? (outcome.episodes ?? []) : [];
    const keeping = search && this.#titles.keep(id, feed.feedUrl, search, episodes);
    // As long as the feed is leased, its actions do not make it due again. With very many subscribers, the lease would end.
    await Promise.race([keeping, sleep(KEEP_MS, undefined, { signal, ref: false }).catch(() => undefined)]);
    await store.podcasts.record(id, leaseUntil, { ...next, ...artworkFields }, artwork?.scaled);
    if (next.failure !== null && FAILED_STATUSES.has(next.status) && !FAILED_STATUSES.has(record.status))
      this.#options.onFailing?.(id, next.failure);
    await keeping;
    if (search !== undefined) await this.#titles.continueLater(id, search, episodes);
    if (!isAborted())
      await tellSubscribers(
        { store, fetchFeed: (url) => fetcher.fetchFeed({ url }, signal) },
        id,
        record,
        next,
        outcome,
        new Date(at),
      );
    return next;
  }

  /** Undefined if the feed has none; `scaled` is undefined if the image could not be used. */
  async #fetchArtwork(
    fetcher: FeedFetcher,
    { artworkUrl }: PodcastRecord,
    feedUrl: string,
  ): Promise<{ readonly scaled: StoredArtwork | undefined } | undefined> {
    if (artworkUrl === null) return undefined;
    const image = await fetcher.fetchImage(artworkUrl, feedUrl, this.#stop.signal);
    if (image.kind === "failed") return { scaled: undefined };
    this.#scaler ??= this.#options.createScaler();
    return { scaled: await (await this.#scaler).scale(image.bytes) };
  }

  #now(): Date {
    return this.#options.clock();
  }
}

function first<Key, Value>(map: ReadonlyMap<Key, Value>): readonly [Key, Value] | undefined {
  for (const entry of map) return entry;
  return undefined;
}
