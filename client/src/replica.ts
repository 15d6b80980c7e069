import { EarmarkError, invalidResponse, NetworkError } from "./errors.ts";
import { isAccessDenied } from "./events.ts";
import { guid } from "./guid.ts";
import { createLock } from "./locks.ts";
import {
  type Base,
  enqueue,
  isPending,
  nextBatch,
  type Queue,
  type Refusal,
  readBase,
  readQueue,
  settle,
  viewOf,
  writeBase,
} from "./replica-queue.ts";
import { anyOf, sleep } from "./requests.ts";
import { toAdd } from "./subscribe.ts";
import type { CallOptions, Client, EventsOptions, Feed, Operation, Subscription, Update } from "./types.ts";

/** Few enough that `client.apply` needs one request, so that no confirmed result is lost when a later request fails. */
const BATCH_SIZE = 100;
const PAGE_SIZE = 1_000;
/** More pages of changes than this are treated as endless. */
const MAX_PAGES = 1_000;
const MAX_BACKOFF_MS = 60_000;
const FOREVER_MS = 2_147_483_647;

/** Stores strings under two keys, `base` and `queue`. Each account needs its own storage. */
export interface ReplicaStorage {
  read(key: string): Promise<string | undefined>;
  /**
   * Replaces a value and resolves to the new one when it is durable. Atomic: no other update of the same key, not even
   * from another tab, happens between reading and writing.
   */
  update(key: string, change: (saved: string | undefined) => string): Promise<string>;
  /** Runs one task at a time per name, across all tabs. Without it, each tab syncs on its own. */
  lock?<Value>(name: string, task: () => Promise<Value>, signal: AbortSignal | undefined): Promise<Value>;
  /** Calls the listener with the key when another tab has updated it. Returns a function that stops this. */
  watch?(listener: (key: string) => void): () => void;
}

export interface ReplicaOptions {
  readonly client: Pick<Client, "apply" | "changes" | "events">;
  readonly storage: ReplicaStorage;
  /** Called with the list when the replica is opened, and whenever the list may have changed. */
  readonly onChange?: ((list: readonly Subscription[]) => void) | undefined;
  /** Called for each edit that the server refused, for example because the feed URL is invalid. */
  readonly onRefused?: ((refusal: Refusal) => void) | undefined;
}

export interface RunOptions extends EventsOptions {
  /** Called when a sync fails, for example because the server is unreachable. `run` retries automatically. */
  readonly onError?: ((error: EarmarkError | NetworkError) => void) | undefined;
}

/** A copy of the list that can be read and edited offline. */
export interface Replica {
  /** The list with all edits, oldest first. Subscriptions that were added at the same time may be in any order. */
  list(): readonly Subscription[];
  /** Number of edits that the server has not confirmed yet. */
  readonly pending: number;
  /** Whether the list has ever been read from the server. */
  readonly isLoaded: boolean;
  /**
   * Resolves when the edit is durable on this device. A feed that is already in the list, perhaps under another URL that
   * it had before, is returned as it is.
   */
  add(feeds: Iterable<Feed>): Promise<Subscription[]>;
  /** False for a subscription that is not in the list. */
  update(updates: Iterable<Update>): Promise<boolean[]>;
  /** False for a subscription that is not in the list. */
  remove(ids: Iterable<string>): Promise<boolean[]>;
  /** Sends all edits, then reads what changed. Fails if the server is unreachable; no edit is lost. */
  sync(options?: CallOptions): Promise<void>;
  /**
   * Keeps the list in sync: sends each edit immediately and reads each change when it happens. Fails only if the credentials
   * are invalid or insufficient, the storage fails, or the signal is aborted. In several tabs, one of them does the work for all.
   */
  run(options?: RunOptions): Promise<void>;
  /** Stops listening to other tabs. */
  close(): void;
}

export async function openReplica(options: ReplicaOptions): Promise<Replica> {
  const replica = new StoredReplica(options);
  await replica.readStorage("base", "queue");
  return replica;
}

class StoredReplica implements Replica {
  readonly #options: ReplicaOptions;
  readonly #lock: NonNullable<ReplicaStorage["lock"]>;
  readonly close: () => void;
  #base = readBase(undefined);
  #queue = readQueue(undefined);
  #view: ReadonlyMap<string, Subscription> = new Map();
  #list: readonly Subscription[] = [];
  #wake = () => {};

  constructor(options: ReplicaOptions) {
    const { storage } = options;
    this.#options = options;
    this.#lock = storage.lock?.bind(storage) ?? createLock();
    const wake = () => this.#wake();
    // A failed read is ignored: the next sync reads the queue again.
    this.close = storage.watch?.((key) => this.readStorage(key).then(wake, wake)) ?? (() => {});
  }

  /** Reads what this process or another tab has saved. */
  async readStorage(...keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      const text = await this.#options.storage.read(key);
      if (key === "base") this.#base = readBase(text);
      else this.#queue = readQueue(text);
    }
    this.#show();
  }

  list() {
    return this.#list;
  }

  get pending() {
    return this.#queue.entries.filter(isPending).length;
  }

  get isLoaded() {
    return this.#base.state !== undefined;
  }

  async add(feeds: Iterable<Feed>) {
    const idOf = new Map(
      this.#list.flatMap(({ feedUrl, formerFeedUrls = [], id }) =>
        [feedUrl, ...formerFeedUrls].map((url) => [url, id]),
      ),
    );
    const operations: Operation[] = [];
    const ids = Array.from(feeds, (feed) => {
      let add = toAdd(feed);
      const { feedUrl } = add;
      const known = idOf.get(feedUrl);
      if (known) return known;
      // A subscription keeps its id when its feed URL changes, so another feed may have the id of this one.
      if (this.#view.has(add.id)) add = { ...add, id: guid(feedUrl + Date.now() + Math.random()) };
      idOf.set(feedUrl, add.id);
      operations.push(add);
      return add.id;
    });
    await this.#edit(operations);
    return ids.flatMap((id) => this.#view.get(id) ?? []);
  }

  async update(updates: Iterable<Update>) {
    return this.#edit(Array.from(updates, (update) => ({ ...update, op: "update" })));
  }

  async remove(ids: Iterable<string>) {
    return this.#edit(Array.from(ids, (id) => ({ op: "remove", id })));
  }

  async sync({ signal }: CallOptions = {}) {
    await this.#lock(
      "sync",
      async () => {
        // Another tab may already have sent some of the queued edits.
        await this.readStorage("queue");
        await this.#push(signal);
        await this.#pull(signal);
      },
      signal,
    );
  }

  run({ onError, ...options }: RunOptions = {}): Promise<void> {
    const ended = new AbortController();
    const signal = anyOf(ended.signal, options.signal);
    return this.#lock(
      "run",
      () =>
        Promise.race([this.#follow({ ...options, signal }), this.#keepInSync(signal, onError)]).finally(() =>
          ended.abort(),
        ),
      signal,
    );
  }

  async #follow(options: EventsOptions): Promise<void> {
    for await (const state of this.#options.client.events(options)) if (state !== this.#base.state) this.#wake();
  }

  async #keepInSync(signal: AbortSignal, onError: RunOptions["onError"]): Promise<never> {
    for (let failures = 0; ; failures += 1) {
      const waiting = new AbortController();
      this.#wake = () => waiting.abort();
      try {
        await this.sync({ signal });
        // The loop adds 1.
        failures = -1;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof NetworkError || error instanceof EarmarkError) || isAccessDenied(error)) throw error;
        onError?.(error);
      }
      const delayMs = failures < 0 ? FOREVER_MS : Math.min(MAX_BACKOFF_MS, 1_000 * 2 ** failures);
      await sleep(delayMs * (0.5 + Math.random() / 2), anyOf(signal, waiting.signal));
      signal.throwIfAborted();
    }
  }

  /** Result N tells whether operation N is possible. Impossible ones are ignored. */
  async #edit(operations: readonly Operation[]): Promise<boolean[]> {
    const isPossible = operations.map(({ op, id }) => op === "add" || this.#view.has(id));
    const possible = operations.filter((_, index) => isPossible[index]);
    if (possible.length > 0) {
      await this.#save((queue) => enqueue(queue, possible, Date.now()));
      this.#wake();
    }
    return isPossible;
  }

  async #push(signal: AbortSignal | undefined): Promise<void> {
    const { client, onRefused } = this.#options;
    for (;;) {
      const batch = nextBatch(this.#queue, BATCH_SIZE);
      if (batch.length === 0) return;
      const results = await client.apply(batch, { signal });
      const refused: Refusal[] = [];
      await this.#save((queue) => settle(queue, batch, results, refused));
      for (const refusal of refused) onRefused?.(refusal);
    }
  }

  async #pull(signal: AbortSignal | undefined): Promise<void> {
    const { state } = this.#base;
    const base = await this.#fetchBase(signal);
    const isNew = base.state !== state;
    if (!state) {
      // Show the list before it is written, which takes a while.
      this.#base = base;
      this.#show();
    }
    if (isNew) await this.#options.storage.update("base", () => writeBase(base));
    this.#base = base;
    if (this.#queue.entries.length > this.pending)
      await this.#save((queue) => ({ ...queue, entries: queue.entries.filter(isPending) }));
    else if (state && isNew) this.#show();
  }

  async #fetchBase(signal: AbortSignal | undefined): Promise<Base> {
    let { state } = this.#base;
    const items = new Map(this.#base.items);
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      try {
        const changes = await this.#options.client.changes(state, { pageSize: PAGE_SIZE, signal });
        for (const id of changes.removed) items.delete(id);
        for (const item of changes.changed) items.set(item.id, item);
        state = changes.state;
        if (!changes.hasMore) return { state, items };
      } catch (error) {
        if (!state || !(error instanceof EarmarkError) || error.code !== "state-expired") throw error;
        state = undefined;
        items.clear();
      }
    }
    throw invalidResponse("endless-list", "Endless List");
  }

  async #save(change: (queue: Queue) => Queue): Promise<void> {
    this.#queue = readQueue(
      await this.#options.storage.update("queue", (saved) => JSON.stringify(change(readQueue(saved)))),
    );
    this.#show();
  }

  #show(): void {
    this.#view = viewOf(this.#base, this.#queue);
    this.#list = [...this.#view.values()];
    this.#options.onChange?.(this.#list);
  }
}
