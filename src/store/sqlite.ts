import { once } from "node:events";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { type AccountStore, NOBODY, type Store } from "../account-store.ts";
import {
  AccessRevoked,
  type Caller,
  type Draft,
  type Outcome,
  type Page,
  StoreUnavailable,
  type Subscription,
  type UserId,
  type Window,
} from "../subscriptions.ts";
import { nextReply } from "../worker-reply.ts";
import { type Gaps, locate } from "./gaps.ts";
import { DELETED, feedKey, idKey, idOfKey } from "./keys.ts";
import { type AccountChange, SqliteAccounts } from "./sqlite-accounts.ts";
import { cannotOpen, claimFile, openConnection, reading, shareFile } from "./sqlite-file.ts";
import { isNewest } from "./sqlite-schema.ts";
import {
  ACCESS_REVOKED,
  ADDED,
  type Answers,
  type GroupAnswer,
  ID_IN_USE,
  type Job,
  operationsOf,
  QUOTA_EXCEEDED,
  REMOVED,
} from "./sqlite-writer.ts";
import type { StoreOptions } from "./store-options.ts";
import { requireWhole } from "./whole.ts";
import { WriteQueue } from "./write-queue.ts";

const CACHE_KIB = 16 * 1024;

/** One thread writes, this one reads: in a write-ahead log neither waits for the other. */
export async function openSqlite(path: string, options: StoreOptions): Promise<Store> {
  const release = options.beside === true ? shareFile(path) : claimFile(path, options.onWarning);
  let writer: WriterThread | undefined;
  try {
    writer = await WriterThread.start(path);
    return new SqliteStore(new Reader(path), writer, options, release);
  } catch (error) {
    // As long as its thread is there, the process does not end.
    await writer?.close();
    release();
    throw cannotOpen(path, error);
  }
}

class SqliteStore implements Store {
  readonly accounts: AccountStore;
  readonly #reader: Reader;
  readonly #writer: WriterThread;
  readonly #queue: WriteQueue<Job, Answers>;
  readonly #release: () => void;
  #closing: Promise<void> | undefined;

  constructor(reader: Reader, writer: WriterThread, options: StoreOptions, release: () => void) {
    this.#reader = reader;
    this.#writer = writer;
    this.#queue = new WriteQueue((jobs) => writer.carryOut(jobs), options.onCommit);
    this.#release = release;
    const write = async (change: AccountChange, credentialHash: string | undefined, at: Date) => {
      const job = { kind: "account", change, credentialHash, at: at.getTime() } as const;
      // What an erasure still has to do is not turned away: the account it belongs to is gone already.
      const [answer = 0] = await this.#write(job, change.kind === "erase" ? 0 : 1);
      return answer;
    };
    this.accounts = new SqliteAccounts(reader.database, write);
  }

  async add(caller: Caller, drafts: readonly Draft[], at: Date): Promise<Outcome[]> {
    const { user, credentialHash, maxSubscriptions: max } = caller;
    const texts: string[] = [];
    for (const { id, feedUrl, feed } of drafts) texts.push(id, feedUrl, feed);
    const job = { kind: "add", user, credentialHash, at: at.getTime(), drafts: texts, maxTotal: max } as const;
    const answers = await this.#write(job, drafts.length);
    return drafts.map((draft, index) => {
      const answer = answers[index];
      if (answer === ADDED) return { id: draft.id, feedUrl: draft.feedUrl, subscribedAt: at };
      if (answer === QUOTA_EXCEEDED) return { refused: "quota-exceeded", max };
      return { refused: answer === ID_IN_USE ? "id-in-use" : "already-subscribed", draft };
    });
  }

  async remove({ user, credentialHash }: Caller, id: string, at: Date): Promise<boolean> {
    const [answer] = await this.#write({ kind: "remove", user, credentialHash, at: at.getTime(), id }, 1);
    return answer === REMOVED;
  }

  async #write(job: Job, operations: number): Promise<Answers> {
    if (this.#closing !== undefined) throw new StoreUnavailable("the store is closed");
    const answers = await this.#queue.push(job, operations, userOf(job));
    if (answers[0] === ACCESS_REVOKED) throw new AccessRevoked();
    return answers;
  }

  async find(user: UserId, id: string): Promise<Subscription | undefined> {
    return reading(() => this.#reader.find(user, id));
  }

  async page(user: UserId, window: Window): Promise<Page> {
    return reading(() => this.#reader.page(user, window));
  }

  async knows(user: UserId, feeds: readonly string[]): Promise<boolean[]> {
    return reading(() => this.#reader.knows(user, feeds));
  }

  async ready(): Promise<void> {
    reading(() => this.#reader.check());
    if (this.#writer.hasFailed) await this.#write({ kind: "probe" }, 0);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#queue.idle();
    // The last connection to close tidies up the log, and only the writer can.
    this.#reader.close();
    await this.#writer.close();
    this.#release();
  }
}

/** In whose turn a job is written. */
function userOf(job: Job): UserId {
  if (job.kind === "account") return "user" in job.change ? job.change.user : NOBODY;
  return job.kind === "probe" ? NOBODY : job.user;
}

type Row = [id: Uint8Array, feedUrl: string, subscribedAt: number];

class Reader {
  readonly database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  readonly #list: StatementSync;
  readonly #items: StatementSync;
  readonly #item: StatementSync;
  readonly #feed: StatementSync;

  constructor(path: string) {
    this.database = openConnection(path, { readOnly: true, cacheKiB: CACHE_KIB });
    const prepare = (sql: string) => {
      const statement = this.database.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    this.#begin = prepare("begin");
    this.#end = prepare("commit");
    this.#list = prepare(
      `select iif(sequence = ${DELETED}, ${DELETED}, total), (select counts from gaps where user_id = lists.user_id)
       from lists where user_id = ?`,
    );
    this.#items = prepare(`
      select id, feed_url, subscribed_at from subscriptions
      where user_id = ? and sequence >= ? order by sequence limit ? offset ?`);
    this.#item = prepare("select id, feed_url, subscribed_at from subscriptions where user_id = ? and id = ?");
    this.#feed = prepare("select 1 from subscriptions where user_id = ? and feed = ?");
  }

  find(user: UserId, id: string): Subscription | undefined {
    const row = this.#item.get(user, idKey(id)) as unknown as Row | undefined;
    return row === undefined ? undefined : toSubscription(row);
  }

  /** Total, gaps and items in one transaction, so that they are of one instant. */
  page(user: UserId, { offset, size }: Window): Page {
    try {
      this.#begin.run();
      const list = this.#list.get(user) as unknown as [total: number, gaps: Gaps | null] | undefined;
      const [total, gaps] = list ?? [0, null];
      // Some of its items may still be there, until all are erased.
      if (total === DELETED) return { items: [], total: 0 };
      const { from, skip } = locate(gaps ?? undefined, Math.min(offset, total));
      const rows = this.#items.all(user, from, size, skip) as unknown as Row[];
      requireWhole(rows.length, { offset, size }, total);
      return { items: rows.map(toSubscription), total };
    } finally {
      this.#leave();
    }
  }

  /** A transaction that stayed open would keep its instant: nothing newer would ever be read. */
  #leave(): void {
    try {
      if (this.database.isTransaction) this.#end.run();
    } finally {
      if (this.database.isTransaction) this.database.exec("rollback");
    }
  }

  knows(user: UserId, feeds: readonly string[]): boolean[] {
    return feeds.map((feed) => this.#feed.get(user, feedKey(feed)) !== undefined);
  }

  check(): void {
    if (!isNewest(this.database)) throw new Error("the file is of another version than this program");
  }

  close(): void {
    this.database.close();
  }
}

function toSubscription([id, feedUrl, subscribedAt]: Row): Subscription {
  return { id: idOfKey(id), feedUrl, subscribedAt: new Date(subscribedAt) };
}

/** The thread that writes. It is started again when it has died, with the next group that comes. */
class WriterThread {
  readonly #path: string;
  #worker: Worker | undefined;
  #hasFailed = false;

  static async start(path: string): Promise<WriterThread> {
    const thread = new WriterThread(path);
    await thread.#startWorker();
    return thread;
  }

  private constructor(path: string) {
    this.#path = path;
  }

  async carryOut(jobs: readonly Job[]): Promise<readonly Answers[]> {
    const answer = await this.#ask(jobs);
    this.#hasFailed = "failure" in answer;
    if ("failure" in answer) {
      const words = answer.inDoubt
        ? "it is not known whether the database was written"
        : "the database cannot be written";
      throw new StoreUnavailable(words, { cause: answer.failure, unknown: answer.inDoubt });
    }
    let at = 0;
    return jobs.map((job) => {
      const start = at;
      at += operationsOf(job);
      return answer.answers.subarray(start, at);
    });
  }

  /** Whether the last group failed. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.postMessage("close");
    await once(worker, "exit");
  }

  async #ask(jobs: readonly Job[]): Promise<GroupAnswer> {
    try {
      const worker = this.#worker ?? (await this.#startWorker());
      worker.postMessage(jobs);
      return await nextReply<GroupAnswer>(worker, inDoubt);
    } catch (error) {
      return { failure: error as Error, inDoubt: false };
    }
  }

  async #startWorker(): Promise<Worker> {
    const worker = new Worker(new URL("./sqlite-writer.ts", import.meta.url), {
      workerData: this.#path,
      // What it is given lives shortly. Unless told, a thread takes 67 MB for that on a large machine, and gains 1 % by it.
      resourceLimits: { maxYoungGenerationSizeMb: 16 },
    });
    // Whoever waits for an answer hears of it too; without a listener here, one who does not would end the process.
    worker.on("error", () => undefined);
    worker.once("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    const answer = await nextReply<GroupAnswer>(worker, inDoubt);
    if ("failure" in answer) throw answer.failure;
    this.#worker = worker;
    return worker;
  }
}

/** If the writer ends during a group, how much of it was written is unknown. */
function inDoubt(failure: Error): GroupAnswer {
  return { failure, inDoubt: true };
}
