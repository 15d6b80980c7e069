import { asUser, type UserId } from "../../src/accounts/caller.ts";
import type { UploadedAction } from "../../src/apps/episode-actions.ts";
import type { AppSync } from "../../src/apps/sync.ts";

/** What clients use of a server. */
export type SyncServer = Pick<AppSync, "feedsSince" | "changeFeeds" | "actionsSince" | "addActions">;

/** The items of all pages. */
export async function collect<Item>(
  pages: AsyncIterable<readonly Item[]> | Iterable<readonly Item[]>,
): Promise<Item[]> {
  const all: Item[] = [];
  for await (const page of pages) all.push(...page);
  return all;
}

const HOUR_MS = 3_600_000;

/** How an app chooses the next `since`, and how wrong its clock is. */
export interface ClientKind {
  readonly name: string;
  /** From the timestamps of the GET and of the POST, if it uploaded, and its own clock at start and end, in seconds. */
  readonly next: (times: { get: number; post: number | undefined; started: number; ended: number }) => number;
  readonly clockOffset: number;
}

const echo: ClientKind["next"] = ({ get, post }) => post ?? get;
export const CLIENT_KINDS: readonly ClientKind[] = [
  { name: "AntennaPod", next: echo, clockOffset: 0 },
  { name: "Kasts", next: (times) => echo(times) + 1, clockOffset: 0 },
  { name: "gPodder", next: ({ get }) => get, clockOffset: 0 },
  ...[-HOUR_MS, 0, HOUR_MS].flatMap((clockOffset) => [
    { name: `Cardo ${clockOffset}`, next: ({ ended }: { ended: number }) => ended, clockOffset },
    { name: `GNOME ${clockOffset}`, next: ({ started }: { started: number }) => started, clockOffset },
    {
      name: `AntennaPod-Nextcloud ${clockOffset}`,
      next: ({ get, post, ended }: { get: number; post: number | undefined; ended: number }) =>
        post === undefined ? get : ended,
      clockOffset,
    },
  ]),
];

/** Feed and episode number → what is requested of the server, in the order in which the server does it. */
export interface Requests {
  added(feed: number): void;
  /** `isOffered`: the app was told to add the feed in its last poll, so the removal may look like an echo of an earlier one. */
  removed(feed: number, isOffered: boolean): void;
  played(episode: number, position: number, actedAt: number): void;
}

/** Feeds have several spellings; clients keep the one that they know. */
export function spell(feed: number, spelling: number): string {
  return [`https://feeds.example/${feed}`, `http://feeds.example/${feed}/`, `https://FEEDS.example/${feed}#x`][
    spelling % 3
  ] as string;
}

export function feedOf(url: string): number {
  return Number(/example\/(\d+)/i.exec(url)?.[1]);
}

/** An app with its own list and positions. What it has queued for upload wins over what it is sent. */
export class AppClient {
  readonly kind: ClientKind;
  readonly feeds = new Map<number, string>();
  readonly positions = new Map<number, number>();
  readonly #user: UserId;
  readonly #key: string;
  readonly #server: SyncServer;
  readonly #requests: Requests;
  readonly #now: () => number;
  readonly #queue = new Map<number, { readonly kind: "add" | "remove"; readonly url: string }>();
  readonly #plays = new Map<number, { readonly position: number; readonly actedAt: number }>();
  /** Feeds that it had before its first sync, which uploads them. */
  #initial: readonly number[] = [];
  #isConnected = false;
  /** What it was told to add in its last poll. */
  #offered = new Set<number>();
  #feedsSince = 0;
  #actionsSince = 0;

  constructor(
    kind: ClientKind,
    key: string,
    user: UserId,
    server: SyncServer,
    { requests, now }: { readonly requests: Requests; readonly now: () => number },
  ) {
    this.kind = kind;
    this.#key = key;
    this.#user = user;
    this.#server = server;
    this.#requests = requests;
    this.#now = now;
  }

  subscribe(feed: number, url: string): void {
    if (this.feeds.has(feed)) return;
    this.feeds.set(feed, url);
    if (this.#isConnected) this.#queue.set(feed, { kind: "add", url });
  }

  unsubscribe(feed: number): void {
    const url = this.feeds.get(feed);
    if (url === undefined) return;
    this.feeds.delete(feed);
    if (this.#isConnected) this.#queue.set(feed, { kind: "remove", url });
  }

  play(episode: number, position: number): void {
    this.positions.set(episode, position);
    this.#plays.set(episode, { position, actedAt: Math.floor(this.#clock() / 1_000) * 1_000 });
  }

  #clock(): number {
    return this.#now() + this.kind.clockOffset;
  }

  get #seconds(): number {
    return Math.floor(this.#clock() / 1_000);
  }

  /** One sync, request by request. `isLost` tells whether a response is lost, which ends the sync. */
  async *sync(isLost: () => boolean): AsyncGenerator<void> {
    const started = this.#seconds;
    const isFirst = this.#feedsSince === 0;
    if (isFirst) this.#initial = [...this.feeds.keys()];
    const get = await this.#getFeeds();
    if (!isFirst && isLost()) return;
    this.#applyFeeds(get);
    if (isFirst) for (const [feed, url] of this.feeds) this.#queue.set(feed, { kind: "add", url });
    this.#isConnected = true;
    if (this.#queue.size === 0) this.#uploadInitial();
    yield;
    const post = this.#queue.size === 0 ? undefined : await this.#postFeeds();
    if (post !== undefined && !isFirst && isLost()) return;
    if (post !== undefined) this.#queue.clear();
    this.#feedsSince = this.kind.next({ get: get.timestamp, post, started, ended: this.#seconds });
    yield;
    const isFirstHistory = this.#actionsSince === 0;
    const startedActions = this.#seconds;
    const { pages, timestamp } = await this.#getActions();
    const actions = await collect(pages);
    if (!isFirstHistory && isLost()) return;
    for (const { episode, position, actedAt } of actions) {
      const own = this.#plays.get(Number(episode.split("/").at(-1)));
      if (own === undefined || own.actedAt < actedAt.getTime())
        this.positions.set(Number(episode.split("/").at(-1)), position ?? -1);
    }
    yield;
    const upload = this.#plays.size === 0 ? undefined : await this.#postActions();
    if (upload !== undefined && !isFirstHistory && isLost()) return;
    if (upload !== undefined) this.#plays.clear();
    this.#actionsSince = this.kind.next({
      get: timestamp,
      post: upload,
      started: startedActions,
      ended: this.#seconds,
    });
  }

  get #client() {
    return { key: this.#key, device: this.#key };
  }

  async #getFeeds() {
    const at = new Date(this.#now());
    const changes = await this.#server.feedsSince(asUser(this.#user), this.#client, this.#feedsSince, at);
    const [add, remove] = [await collect(changes.add), await collect(changes.remove)];
    this.#offered = new Set(add.map(feedOf));
    return { add, remove, timestamp: await changes.timestamp() };
  }

  #applyFeeds({ add, remove }: { readonly add: readonly string[]; readonly remove: readonly string[] }): void {
    for (const url of remove) {
      const feed = feedOf(url);
      if (this.#queue.get(feed)?.kind !== "add" && this.feeds.get(feed) === url) this.feeds.delete(feed);
    }
    for (const url of add) {
      const feed = feedOf(url);
      if (!this.#queue.has(feed) && !this.feeds.has(feed)) this.feeds.set(feed, url);
    }
  }

  async #postFeeds(): Promise<number> {
    const urls = (kind: string) => [...this.#queue.values()].filter((one) => one.kind === kind).map(({ url }) => url);
    this.#uploadInitial();
    for (const [feed, { kind }] of this.#queue)
      kind === "add" ? this.#requests.added(feed) : this.#requests.removed(feed, this.#offered.has(feed));
    const changes = { add: urls("add"), remove: urls("remove") };
    const at = new Date(this.#now());
    return (await this.#server.changeFeeds(asUser(this.#user), this.#client, changes, at)).timestamp;
  }

  /** The oracle expects these even if the server has made the app drop them. */
  #uploadInitial(): void {
    for (const feed of this.#initial) this.#requests.added(feed);
    this.#initial = [];
  }

  #getActions() {
    const at = new Date(this.#now());
    return this.#server.actionsSince(asUser(this.#user), this.#client, this.#actionsSince, undefined, at);
  }

  async #postActions(): Promise<number> {
    const actions = [...this.#plays].map(([episode, { position, actedAt }]): UploadedAction => {
      this.#requests.played(episode, position, actedAt);
      return {
        podcast: "https://feeds.example/1",
        episode: `https://media.example/${episode}`,
        guid: undefined,
        device: undefined,
        kind: "play",
        actedAt: new Date(actedAt),
        ...{ position, started: 0, total: 10_000 },
      };
    });
    const at = new Date(this.#now());
    return (await this.#server.addActions(asUser(this.#user), this.#client, actions, at)).timestamp;
  }
}
