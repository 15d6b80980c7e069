import type { DatabaseSync, StatementSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import {
  type Draft,
  type Outcome,
  type Page,
  StoreUnavailable,
  type Subscription,
  type SubscriptionStore,
  type UserId,
  type Window,
} from "../subscriptions.ts";
import { type Gaps, locate } from "./gaps.ts";
import type { StoreOptions } from "./open.ts";
import { claimFile, isNewest, openConnection } from "./sqlite-file.ts";
import { ADDED, type GroupAnswer, ID_IN_USE, idKey, type Job, type JobAnswer } from "./sqlite-writer.ts";

/** A transaction takes jobs until it has this many operations, so that nobody waits long behind the others. */
const GROUP_OPERATIONS = 2_000;
const CACHE_KIB = 16 * 1024;

/** One thread writes, this one reads: in a write-ahead log neither waits for the other. */
export async function openSqlite(path: string, options: StoreOptions): Promise<SubscriptionStore> {
  const release = claimFile(path);
  try {
    const reader = new Reader(path);
    const queue = await WriteQueue.start(path, options);
    return new SqliteStore(reader, queue, release);
  } catch (error) {
    release();
    throw error;
  }
}

class SqliteStore implements SubscriptionStore {
  readonly #reader: Reader;
  readonly #queue: WriteQueue;
  readonly #release: () => void;
  #closing: Promise<void> | undefined;

  constructor(reader: Reader, queue: WriteQueue, release: () => void) {
    this.#reader = reader;
    this.#queue = queue;
    this.#release = release;
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  async add(user: UserId, drafts: readonly Draft[], at: Date): Promise<Outcome[]> {
    const texts: string[] = [];
    for (const { id, feedUrl, feed } of drafts) texts.push(id, feedUrl, feed);
    const answers = await this.#queue.push({ kind: "add", user, at: at.getTime(), drafts: texts }, drafts.length);
    return drafts.map((draft, index) => {
      const answer = answers[index];
      if (answer === ADDED) return { id: draft.id, feedUrl: draft.feedUrl, subscribedAt: at };
      return { refused: answer === ID_IN_USE ? "id-in-use" : "already-subscribed", draft };
    });
  }

  async remove(user: UserId, id: string, at: Date): Promise<boolean> {
    const answer = await this.#queue.push({ kind: "remove", user, at: at.getTime(), id }, 1);
    return answer[0] === 1;
  }

  async find(user: UserId, id: string): Promise<Subscription | undefined> {
    return reading(() => this.#reader.find(user, id));
  }

  async page(user: UserId, window: Window): Promise<Page> {
    return reading(() => this.#reader.page(user, window));
  }

  async ready(): Promise<void> {
    reading(() => this.#reader.check());
    this.#queue.check();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    // The last connection to close tidies up the log, and only the writer can.
    this.#reader.close();
    await this.#queue.close();
    this.#release();
  }
}

function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new StoreUnavailable("the database cannot be read", { cause });
  }
}

type Row = [id: Uint8Array, feedUrl: string, subscribedAt: number];

class Reader {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  readonly #list: StatementSync;
  readonly #items: StatementSync;
  readonly #item: StatementSync;

  constructor(path: string) {
    this.#database = openConnection(path, { readOnly: true, cacheKiB: CACHE_KIB });
    const prepare = (sql: string) => {
      const statement = this.#database.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    this.#begin = prepare("begin");
    this.#end = prepare("commit");
    this.#list = prepare("select total, (select counts from gaps where user = lists.user) from lists where user = ?");
    this.#items = prepare(`
      select id, feed_url, subscribed_at from subscriptions
      where user = ? and sequence >= ? order by sequence limit ? offset ?`);
    this.#item = prepare("select id, feed_url, subscribed_at from subscriptions where user = ? and id = ?");
  }

  find(user: UserId, id: string): Subscription | undefined {
    const row = this.#item.get(user, idKey(id)) as unknown as Row | undefined;
    return row === undefined ? undefined : toSubscription(row);
  }

  /** Total, gaps and items in one transaction, so that they are of one instant. */
  page(user: UserId, { offset, size }: Window): Page {
    this.#begin.run();
    try {
      const list = this.#list.get(user) as unknown as [total: number, gaps: Gaps | null] | undefined;
      if (list === undefined) return { items: [], total: 0 };
      const [total, gaps] = list;
      if (offset >= total) return { items: [], total };
      const { from, skip } = locate(gaps ?? undefined, offset);
      const rows = this.#items.all(user, from, size, skip) as unknown as Row[];
      return { items: rows.map(toSubscription), total };
    } finally {
      this.#end.run();
    }
  }

  check(): void {
    if (!isNewest(this.#database)) throw new Error("the file is of another version than this program");
  }

  close(): void {
    this.#database.close();
  }
}

function toSubscription([id, feedUrl, subscribedAt]: Row): Subscription {
  const digits = Buffer.from(id.buffer, id.byteOffset, id.byteLength).toString("hex");
  return {
    id: `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${digits.slice(12, 16)}-${digits.slice(16, 20)}-${digits.slice(20)}`,
    feedUrl,
    subscribedAt: new Date(subscribedAt),
  };
}

interface Waiting {
  readonly job: Job;
  readonly operations: number;
  readonly resolve: (answer: JobAnswer) => void;
  readonly reject: (error: StoreUnavailable) => void;
}

/**
 * What waits for the writer. While it is busy with one group, the next one gathers here; so under load many requests
 * share one transaction and one sync, and alone a request waits for nobody.
 */
class WriteQueue {
  readonly #path: string;
  readonly #options: StoreOptions;
  #worker: Worker | undefined;
  #queue: Waiting[] = [];
  #underWay: Waiting[] = [];
  #waiting = 0;
  #closed = false;
  #whenIdle: (() => void) | undefined;

  static async start(path: string, options: StoreOptions): Promise<WriteQueue> {
    const queue = new WriteQueue(path, options);
    await queue.#startWorker();
    return queue;
  }

  private constructor(path: string, options: StoreOptions) {
    this.#path = path;
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** A job is taken when there is room for it, or when nothing is ahead of it, however large it is. */
  push(job: Job, operations: number): Promise<JobAnswer> {
    if (this.#closed) return Promise.reject(new StoreUnavailable("the store is closed"));
    if (this.#waiting > 0 && this.#waiting + operations > this.#options.maxWaiting) {
      return Promise.reject(new StoreUnavailable("the queue of the writer is full", { overloaded: true }));
    }
    this.#waiting += operations;
    return new Promise((resolve, reject) => {
      this.#queue.push({ job, operations, resolve, reject });
      if (this.#underWay.length === 0) this.#sendNext();
    });
  }

  check(): void {
    if (this.#worker === undefined) throw new StoreUnavailable("the writer is not running");
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#waiting > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.postMessage("close");
    await new Promise((resolve) => worker.once("exit", resolve));
  }

  #sendNext(): void {
    if (this.#queue.length === 0) {
      this.#whenIdle?.();
      return;
    }
    let operations = 0;
    let count = 0;
    for (const waiting of this.#queue) {
      if (count > 0 && operations + waiting.operations > GROUP_OPERATIONS) break;
      operations += waiting.operations;
      count += 1;
    }
    this.#underWay = this.#queue.splice(0, count);
    if (this.#worker === undefined) void this.#restart();
    else this.#worker.postMessage(this.#underWay.map(({ job }) => job));
  }

  #settle(answer: GroupAnswer): void {
    const group = this.#underWay;
    this.#underWay = [];
    let operations = 0;
    for (const [index, waiting] of group.entries()) {
      operations += waiting.operations;
      if ("failure" in answer)
        waiting.reject(new StoreUnavailable(`the database cannot be written: ${answer.failure}`));
      else waiting.resolve(answer.answers[index] as JobAnswer);
    }
    this.#waiting -= operations;
    if (!("failure" in answer)) this.#options.onCommit?.(operations, answer.seconds);
    this.#sendNext();
  }

  async #restart(): Promise<void> {
    try {
      await this.#startWorker();
      this.#worker?.postMessage(this.#underWay.map(({ job }) => job));
    } catch (error) {
      this.#settle({ failure: (error as Error).message });
    }
  }

  #startWorker(): Promise<void> {
    return new Promise((resolve, reject) => {
      const worker = new Worker(new URL("./sqlite-writer.ts", import.meta.url), { workerData: this.#path });
      let failure = "the writer ended";
      worker.once("message", () => {
        this.#worker = worker;
        worker.on("message", (answer: GroupAnswer) => this.#settle(answer));
        resolve();
      });
      worker.on("error", (error) => {
        failure = String(error);
        reject(error);
      });
      worker.once("exit", () => {
        if (this.#worker !== worker) return;
        this.#worker = undefined;
        if (this.#underWay.length > 0) this.#settle({ failure });
      });
    });
  }
}
