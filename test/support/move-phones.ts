import { asUser, type UserId } from "../../src/accounts/caller.ts";
import type { UploadedAction } from "../../src/apps/episode-actions.ts";
import type { AppSync, UploadResult } from "../../src/apps/sync.ts";
import { collect } from "./app-clients.ts";
import { podcastOf } from "./move-world.ts";

/** How an app syncs. */
export interface PhoneKind {
  readonly name: string;
  /** The next `since`, from the server's timestamps in that order and its own clock, in seconds. */
  readonly next: (times: { readonly get: number; readonly post: number | undefined; readonly own: number }) => number;
  /** It sends back the removals that the server has ordered. */
  readonly echoes?: boolean;
  /** It replaces a URL by the one that this redirects to. */
  readonly follows?: boolean;
  /** It finds episodes by their own ids, whatever the URL of their podcast. */
  readonly findsByEpisode?: boolean;
  /** It replaces its URLs as the server says. */
  readonly rewrites?: boolean;
  /** It takes the whole list, and uploads the whole list. */
  readonly isWhole?: boolean;
}

type Next = PhoneKind["next"];
const echo: Next = ({ get, post }) => post ?? get;
const ownClock = (name: string, offset: number): PhoneKind => ({ name, next: ({ own }) => own + offset });

export const PHONE_KINDS: readonly PhoneKind[] = [
  { name: "AntennaPod", next: echo, echoes: true, follows: true, findsByEpisode: true },
  { name: "Kasts", next: (times) => echo(times) + 1 },
  { name: "gPodder", next: ({ get }) => get, rewrites: true },
  { name: "Podium", next: () => 0, isWhole: true },
];
export const CLOCK_KINDS = [-30, 0, 30].map((offset) => ownClock(`clock ${offset}`, offset));

/** What a phone says while it syncs. */
export interface Observer {
  readonly now: () => number;
  /** Whether the next response is lost. */
  readonly isLost: () => boolean;
  received(phone: Phone, changes: FeedChanges, before: ReadonlySet<number>): Promise<void>;
  /** Before and after an upload of changes of the list. */
  uploading(phone: Phone, changes: FeedChanges): Promise<void>;
  uploaded(phone: Phone): Promise<void>;
  played(actions: readonly UploadedAction[]): void;
}

export interface FeedChanges {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

interface Played {
  readonly actedAt: number;
  readonly position: number;
}

/** An app with its own list, its positions, and what it has still to upload. It compares URLs as text. */
export class Phone {
  readonly kind: PhoneKind;
  key: string;
  /** Positions by episode, by URL of the feed. */
  feeds = new Map<string, Map<string, Played>>();
  add = new Set<string>();
  remove = new Set<string>();
  queue: UploadedAction[] = [];
  /** Podcasts that the person has removed here since the last complete sync, except for URLs that the app has found. */
  readonly unsubscribed = new Set<number>();
  /** Podcasts that the person has removed here under a URL that the app had found by itself: it may look like an echo. */
  readonly doubtful = new Set<number>();
  readonly #found = new Set<string>();
  /** What it removed and added again before it could upload that. */
  readonly #addedAgain = new Set<string>();
  /** Podcasts of which it has followed a redirect that the server has never looked at. */
  readonly unnoticed = new Set<number>();
  /** Positions that it uploads after it has lost their podcast. */
  readonly forgotten = new Set<string>();
  #echoes: string[] = [];
  #since = 0;
  #actionsSince = 0;
  readonly #user: UserId;
  readonly #server: AppSync;
  readonly #observer: Observer;

  constructor(kind: PhoneKind, key: string, user: UserId, server: AppSync, observer: Observer) {
    this.kind = kind;
    this.key = key;
    this.#user = user;
    this.#server = server;
    this.#observer = observer;
  }

  get podcasts(): Set<number> {
    return new Set([...this.feeds.keys()].map(podcastOf));
  }

  urlsOf(podcast: number): string[] {
    return [...this.feeds.keys()].filter((url) => podcastOf(url) === podcast);
  }

  // What the person does

  subscribe(url: string): void {
    if (this.feeds.has(url)) return;
    this.feeds.set(url, new Map());
    this.add.add(url);
    if (this.remove.delete(url)) this.#addedAgain.add(url);
  }

  unsubscribe(url: string): void {
    if (!this.#delete(url)) return;
    const podcast = podcastOf(url);
    if (this.urlsOf(podcast).every((each) => this.#found.has(each))) this.unsubscribed.add(podcast);
    if (this.#found.has(url)) this.doubtful.add(podcast);
    const isNew = this.add.delete(url) && !this.#addedAgain.has(url);
    if (!isNew) this.remove.add(url);
  }

  play(url: string, episode: string, actedAt: number, position: number): void {
    for (const each of this.kind.findsByEpisode ? this.urlsOf(podcastOf(url)) : [url])
      this.feeds.get(each)?.set(episode, { actedAt, position });
    const numbers = { position, started: 0, total: 1_000_000 };
    const ids = { podcast: url, episode, guid: undefined, device: undefined };
    this.queue.push({ ...ids, kind: "play", actedAt: new Date(actedAt), ...numbers });
  }

  /** It replaces a URL without telling anybody. */
  follow(url: string, to: string, renamesQueue: boolean): void {
    const episodes = this.feeds.get(url);
    if (episodes === undefined || this.feeds.has(to)) return;
    this.feeds.delete(url);
    this.feeds.set(to, episodes);
    this.#found.add(to);
    if (this.add.delete(url)) this.add.add(to);
    if (renamesQueue)
      this.queue = this.queue.map((action) => (action.podcast === url ? { ...action, podcast: to } : action));
  }

  reinstall(): void {
    this.feeds = new Map();
    this.queue = [];
    this.signIn(this.key);
  }

  /** It keeps its feeds, and syncs for the first time. */
  signIn(key: string): void {
    this.key = key;
    this.add = new Set();
    this.remove = new Set();
    this.queue = [];
    this.#echoes = [];
    this.#since = 0;
    this.#actionsSince = 0;
    this.unsubscribed.clear();
  }

  // Syncing

  get #client() {
    return { key: this.key, device: undefined, app: this.kind.rewrites ? "mygpoclient/1.9" : "" };
  }

  get #at(): Date {
    return new Date(this.#observer.now());
  }

  get #seconds(): number {
    return Math.floor(this.#observer.now() / 1_000);
  }

  /** What it would be told now. */
  async poll(since = this.#since) {
    const changes = await this.#server.feedsSince(asUser(this.#user), this.#client, since, this.#at);
    const [add, remove] = [await collect(changes.add), await collect(changes.remove)];
    return { add, remove, timestamp: await changes.timestamp() };
  }

  async sync(): Promise<void> {
    const isDone = this.kind.isWhole ? await this.#syncWholeList() : await this.#syncChanges();
    if (!isDone) return;
    this.unsubscribed.clear();
    await this.#syncActions();
  }

  async #syncChanges(): Promise<boolean> {
    const isFirst = this.#since === 0;
    const received = await this.poll();
    if (this.#observer.isLost()) return false;
    await this.#receive(received);
    if (isFirst) for (const url of this.feeds.keys()) if (!received.add.includes(url)) this.add.add(url);
    let post: number | undefined;
    if (this.add.size + this.remove.size > 0) {
      const [add, remove] = [[...this.add], [...this.remove]];
      const result = await this.#upload({ add, remove }, () =>
        this.#server.changeFeeds(asUser(this.#user), this.#client, { add, remove }, this.#at),
      );
      if (this.#observer.isLost()) return false;
      this.add.clear();
      this.remove.clear();
      this.#addedAgain.clear();
      post = result.timestamp;
      if (this.kind.rewrites) this.#rewrite(result.rewritten);
    }
    this.#since = this.kind.next({ get: received.timestamp, post, own: this.#seconds });
    for (const url of this.#echoes) if (!this.feeds.has(url)) this.remove.add(url);
    this.#echoes = [];
    return true;
  }

  async #syncWholeList(): Promise<boolean> {
    const received = await this.poll(0);
    if (this.#observer.isLost()) return false;
    const gone = [...this.feeds.keys()].filter((url) => !received.add.includes(url));
    await this.#receive({ ...received, remove: gone });
    if (this.add.size + this.remove.size === 0) return true;
    const urls = [...this.feeds.keys()];
    await this.#upload({ add: urls, remove: [...this.remove] }, () =>
      this.#server.replaceFeeds(asUser(this.#user), this.#client, urls, this.#at),
    );
    if (this.#observer.isLost()) return false;
    this.add.clear();
    this.remove.clear();
    return true;
  }

  async #receive({ add, remove }: FeedChanges): Promise<void> {
    const before = this.podcasts;
    for (const url of add) if (!this.remove.has(url) && !this.feeds.has(url)) this.feeds.set(url, new Map());
    for (const url of remove) {
      if (this.add.has(url) || !this.#delete(url)) continue;
      // In the same sync it removes another URL of the podcast: as if the person had removed both.
      const podcast = podcastOf(url);
      if ([...this.remove].some((each) => podcastOf(each) === podcast)) this.unsubscribed.add(podcast);
      if (this.kind.echoes) this.#echoes.push(url);
    }
    await this.#observer.received(this, { add, remove }, before);
  }

  /** With its positions, but not what is still to be uploaded. */
  #delete(url: string): boolean {
    for (const { podcast, episode, position } of this.queue)
      if (podcast === url) this.forgotten.add(`${episode} ${position}`);
    return this.feeds.delete(url);
  }

  async #upload(changes: FeedChanges, send: () => Promise<UploadResult>): Promise<UploadResult> {
    await this.#observer.uploading(this, changes);
    const result = await send();
    await this.#observer.uploaded(this);
    return result;
  }

  #rewrite(rewritten: UploadResult["rewritten"]): void {
    for (const [sent, stored] of rewritten) if (stored !== "") this.follow(sent, stored, true);
  }

  async #syncActions(): Promise<void> {
    const { pages, timestamp } = await this.#server.actionsSince(
      asUser(this.#user),
      this.#client,
      this.#actionsSince,
      undefined,
      this.#at,
    );
    const actions = await collect(pages);
    if (this.#observer.isLost()) return;
    for (const { podcast, episode, actedAt, position = -1 } of actions) {
      const urls = this.kind.findsByEpisode ? this.urlsOf(podcastOf(podcast)) : [podcast];
      for (const url of urls) {
        const old = this.feeds.get(url)?.get(episode);
        if (old === undefined || old.actedAt <= actedAt.getTime())
          this.feeds.get(url)?.set(episode, { actedAt: actedAt.getTime(), position });
      }
    }
    let post: number | undefined;
    if (this.queue.length > 0) {
      this.#observer.played(this.queue);
      post = (await this.#server.addActions(asUser(this.#user), this.#client, this.queue, this.#at)).timestamp;
      if (this.#observer.isLost()) return;
      this.queue = [];
    }
    this.#actionsSince = this.kind.next({ get: timestamp, post, own: this.#seconds });
  }
}
