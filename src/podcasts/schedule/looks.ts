import { setTimeout as sleep } from "node:timers/promises";
import { AccessRevoked, asUser, BY_SERVER, type UserId } from "../../accounts/caller.ts";
import { readFeedUrl } from "../../lists/feed-url.ts";
import type { SubscriptionStore } from "../../lists/list-store.ts";
import type { Look } from "../../lists/moves.ts";
import { inOneProcess } from "../leases.ts";
import type { DueLook, LookStore } from "../look-store.ts";
import type { PodcastStore } from "../podcast-store.ts";
import type { FeedOutcome } from "../read/feed.ts";
import { confirmsMove } from "./fetch-rules.ts";

export interface LooksOptions {
  readonly store: Pick<SubscriptionStore, "move"> & {
    readonly moves: LookStore;
    readonly podcasts: Pick<PodcastStore, "leases">;
  };
  /** Undefined if this server fetches no feeds: then no URL leads anywhere. */
  readonly fetchFeed: ((url: string) => Promise<FeedOutcome>) | undefined;
  readonly clock: () => Date;
  readonly onError: (error: unknown) => void;
  readonly hostPauseMs?: number | undefined;
}

/** Lists that change within this time are looked at together. */
const COLLECT_MS = 100;
/** How often all lists are searched for looks that are due. */
const SCAN_MS = 10 * 60 * 1_000;
/** Found at a time. Looks that are found are no longer due the next time. */
const MAX_USERS = 1_000;
/** Publishers may let a fetch hang, so others do not wait for a user's looks. */
const USERS_AT_ONCE = 8;
/** Of a user, before it is the next one's turn. */
const LOOKS_PER_TURN = 5;
/** For how long an answer serves other users whose feeds have moved in the same way. */
const FRESH_MS = 60_000;
const MAX_ANSWERS = 1_000;
/** Pause between two fetches from a host. */
const HOST_PAUSE_MS = 1_000;

/** Looks where former URLs of feeds lead: soon after a move, then about weekly. */
export class Looks {
  readonly #options: LooksOptions;
  /** Who may have looks that are due, in the order of their turns. */
  readonly #users = new Set<UserId>();
  /** Whose looks are in progress. */
  readonly #served = new Set<UserId>();
  readonly #workers = new Set<Promise<void>>();
  /** Workers that will find the waiting users. */
  #active = 0;
  readonly #paths = new Map<string, { readonly at: number; readonly path: Promise<Path | undefined> }>();
  /** When to fetch from a host again. */
  readonly #hosts = new Map<string, number>();
  readonly #stop = new AbortController();
  #scanning: Promise<void> | undefined;

  constructor(options: LooksOptions) {
    this.#options = options;
  }

  start(): void {
    this.#scanning = this.#scan();
  }

  /** Must be called when a list has changed. */
  notify(user: UserId): void {
    if (this.#stop.signal.aborted) return;
    this.#users.add(user);
    this.#startWorker();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#workers, this.#scanning]);
  }

  /** Unless there are enough, or one of them is free. */
  #startWorker(): void {
    if (this.#active > this.#served.size || this.#active >= USERS_AT_ONCE) return;
    this.#active += 1;
    const worker = this.#work().finally(() => this.#workers.delete(worker));
    this.#workers.add(worker);
  }

  async #work(): Promise<void> {
    const isWaiting = (user: UserId) => this.#users.has(user) && !this.#served.has(user);
    for (let waiting = [...this.#users].filter(isWaiting); waiting.length > 0; ) {
      await this.#pause(COLLECT_MS);
      for (const user of waiting) if (isWaiting(user)) await this.#serve(user);
      waiting = this.#stop.signal.aborted ? [] : [...this.#users].filter(isWaiting);
    }
    this.#active -= 1;
  }

  async #serve(user: UserId): Promise<void> {
    this.#users.delete(user);
    this.#served.add(user);
    if (this.#users.size > 0) this.#startWorker();
    const isMore = await this.#lookSome(user);
    this.#served.delete(user);
    if (isMore && !this.#stop.signal.aborted) this.#users.add(user);
  }

  async #scan(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const { store, clock, onError } = this.#options;
      const all = () => this.#findDue();
      await inOneProcess(store.podcasts.leases, "looks", { at: clock(), ms: SCAN_MS }, all).catch(onError);
      await this.#pause(SCAN_MS * (0.9 + 0.2 * Math.random()));
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal, ref: false }).catch(() => undefined);
  }

  async #findDue(): Promise<void> {
    const { store, clock, onError } = this.#options;
    try {
      for (const user of await store.moves.usersWithDueLooks(clock(), MAX_USERS)) this.notify(user);
    } catch (error) {
      onError(error);
    }
  }

  /** Returns whether there may be more. Each look sets the time of the next one, so this ends. */
  async #lookSome(user: UserId): Promise<boolean> {
    const { store, clock, onError } = this.#options;
    try {
      const due = await store.moves.dueLooks(clock(), LOOKS_PER_TURN, user);
      for (const each of due) await this.#look(each);
      return due.length === LOOKS_PER_TURN;
    } catch (error) {
      onError(error);
      return false;
    }
  }

  async #look({ user, feed, url, target, currentUrl }: DueLook): Promise<void> {
    const look = await this.#compare(url, currentUrl);
    if (this.#stop.signal.aborted) return;
    const { store, clock } = this.#options;
    try {
      await store.move({ ...asUser(user), author: BY_SERVER }, { kind: "look", feed, target, look }, clock());
    } catch (error) {
      if (!(error instanceof AccessRevoked)) throw error;
    }
  }

  /** A URL leads to another if the paths of both meet. */
  async #compare(url: string, currentUrl: string): Promise<Look> {
    if (this.#options.fetchFeed === undefined) return "elsewhere";
    const path = await this.#pathOf(url);
    if (path === undefined) return "none";
    if (path.has(normalize(currentUrl))) return "leads";
    const currentPath = await this.#pathOf(currentUrl);
    if (currentPath === undefined) return "none";
    return [...path].some((each) => currentPath.has(each)) ? "leads" : "elsewhere";
  }

  #pathOf(url: string): Promise<Path | undefined> {
    const now = this.#options.clock().getTime();
    for (const [known, { at }] of this.#paths)
      if (Math.abs(now - at) > FRESH_MS || this.#paths.size > MAX_ANSWERS) this.#paths.delete(known);
    const path = this.#paths.get(url)?.path ?? this.#fetchPath(url);
    this.#paths.set(url, { at: this.#paths.get(url)?.at ?? now, path });
    return path;
  }

  /** The URL, where permanent redirects lead, and where a feed there says that it is now, if there is one. */
  async #fetchPath(url: string): Promise<Path | undefined> {
    const outcome = await this.#fetch(url);
    if (outcome === undefined || isWithoutAnswer(outcome)) return undefined;
    const path = new Set([normalize(url)]);
    if (outcome.permanentTarget !== undefined) path.add(normalize(outcome.permanentTarget));
    const next = outcome.kind === "read" ? outcome.metadata.newFeedUrl : undefined;
    if (next === undefined || path.has(normalize(next))) return path;
    const there = await this.#fetch(next);
    if (there === undefined || isWithoutAnswer(there)) return undefined;
    if (confirmsMove(next, there)) path.add(normalize(next));
    if (confirmsMove(next, there) && there.permanentTarget !== undefined) path.add(normalize(there.permanentTarget));
    return path;
  }

  async #fetch(url: string): Promise<FeedOutcome | undefined> {
    const host = URL.parse(url)?.host ?? "";
    const now = performance.now();
    const turn = Math.max(now, this.#hosts.get(host) ?? now);
    for (const [known, at] of this.#hosts) if (at < now) this.#hosts.delete(known);
    this.#hosts.set(host, turn + (this.#options.hostPauseMs ?? HOST_PAUSE_MS));
    await this.#pause(turn - now);
    return this.#options.fetchFeed?.(url);
  }
}

/** Normalized URLs. */
type Path = Set<string>;

function normalize(url: string): string {
  const parsed = readFeedUrl(url);
  return parsed.kind === "valid" ? parsed.normalizedUrl : url;
}

/** The publisher may answer later. A host that does not exist, or a page that is no feed, is an answer. */
function isWithoutAnswer(outcome: FeedOutcome): boolean {
  if (outcome.kind !== "failed") return false;
  const { reason, status = 0 } = outcome;
  if (reason === "http-status") return status >= 500 || status === 429;
  return !["dns", "not-a-feed", "bad-url", "bad-redirect", "not-public"].includes(reason);
}
