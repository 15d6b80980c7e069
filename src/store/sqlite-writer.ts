import type { DatabaseSync, StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { withGaps } from "./gaps.ts";
import { bytesOf, DELETED, feedKey, idKey } from "./keys.ts";
import { KEPT_CHANGES } from "./plan.ts";
import { type AccountChange, AccountWriter } from "./sqlite-accounts.ts";
import { isBusy, isFull, openConnection, sleep } from "./sqlite-file.ts";
import { touch } from "./sqlite-schema.ts";
import { BUSY_MS, Scrubber } from "./sqlite-scrubber.ts";

/**
 * The one thread that writes. It takes a group of jobs, carries them out in one transaction, and answers when the
 * commit is on the disk: either the whole group is stored, or none of it.
 */
export type Job =
  | (Authorized & {
      readonly kind: "add";
      readonly user: number;
      /** Three texts for each draft: id, feed_url, feed. */
      readonly drafts: readonly string[];
      readonly maxTotal: number;
    })
  | (Authorized & { readonly kind: "remove"; readonly user: number; readonly id: string })
  | (Authorized & { readonly kind: "account"; readonly change: AccountChange })
  /** Writes something that changes nothing, to see whether anything can be written. */
  | { readonly kind: "probe" };

/** A job that is only done while this credential is valid, if one is given. */
interface Authorized {
  readonly credentialHash: string | undefined;
  readonly at: number;
}

/** One byte for each operation of the group: an addition's or a removal's is below, a change of accounts has its own. */
export type Answers = Uint8Array;
/** A failure is in doubt when the group may be stored all the same. */
export type GroupAnswer = { readonly answers: Answers } | { readonly failure: Error; readonly inDoubt: boolean };

export function operationsOf(job: Job): number {
  if (job.kind === "probe") return 0;
  return job.kind === "add" ? job.drafts.length / 3 : 1;
}

export const ADDED = 1;
export const ALREADY_SUBSCRIBED = 2;
export const ID_IN_USE = 3;
export const REMOVED = 1;
export const NOT_THERE = 2;
export const QUOTA_EXCEEDED = 4;
/** The account was deleted, or the credential revoked, before the job's turn. For a job of any kind. */
export const ACCESS_REVOKED = 255;

const CACHE_KIB = 16 * 1024;
/** How long a group waits for another process that is writing to the file. */
const WAITING_MS = 10_000;

interface List {
  sequence: number;
  total: number;
}

class Writer {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #insert: StatementSync;
  readonly #hasFeed: StatementSync;
  readonly #hasId: StatementSync;
  readonly #delete: StatementSync;
  readonly #remember: StatementSync;
  readonly #trimRemovals: StatementSync;
  readonly #readGaps: StatementSync;
  readonly #writeGaps: StatementSync;
  readonly #readList: StatementSync;
  readonly #writeList: StatementSync;
  readonly #readExpiry: StatementSync;
  readonly #accounts: AccountWriter;
  readonly #scrubber: Scrubber;
  #isCommitting = false;

  constructor(path: string) {
    this.#database = openConnection(path, { readOnly: false, cacheKiB: CACHE_KIB });
    this.#database.exec(`pragma busy_timeout = ${BUSY_MS}`);
    const prepare = (sql: string) => this.#database.prepare(sql);
    this.#begin = prepare("begin immediate");
    this.#commit = prepare("commit");
    // The two rules that a draft may run into are named; any other collision is an error of ours.
    this.#insert = prepare(`
      insert into subscriptions (user_id, sequence, id, feed, feed_url, subscribed_at) values (?, ?, ?, ?, ?, ?)
      on conflict (user_id, feed) do nothing on conflict (user_id, id) do nothing`);
    this.#hasFeed = prepare("select 1 from subscriptions where user_id = ? and feed = ?");
    this.#hasId = prepare("select 1 from subscriptions where user_id = ? and id = ?");
    this.#delete = prepare("delete from subscriptions where user_id = ? and id = ? returning sequence");
    this.#remember = prepare("insert into removals (user_id, sequence, id, removed_at) values (?, ?, ?, ?)");
    this.#trimRemovals = prepare("delete from removals where user_id = ? and sequence <= ?");
    this.#readGaps = prepare("select counts from gaps where user_id = ?");
    this.#writeGaps = prepare(
      "insert into gaps (user_id, counts) values (?, ?) on conflict (user_id) do update set counts = excluded.counts",
    );
    this.#readList = prepare("select sequence, total from lists where user_id = ?");
    this.#writeList = prepare(`
      insert into lists (user_id, sequence, total) values (?, ?, ?)
      on conflict (user_id) do update set sequence = excluded.sequence, total = excluded.total`);
    this.#readExpiry = prepare("select expires_at from credentials where hash = ?");
    this.#accounts = new AccountWriter(this.#database);
    this.#scrubber = new Scrubber(this.#database);
  }

  apply(jobs: readonly Job[]): Answers {
    const answers = new Uint8Array(jobs.reduce((sum, job) => sum + operationsOf(job), 0));
    let at = 0;
    this.#beginTransaction();
    // Read when first needed, written once at the end, however many jobs of the group are the same user's.
    const lists = new Map<number, List>();
    const expiries = new Map<string, number>();
    for (const job of jobs) {
      if (job.kind === "probe") {
        touch(this.#database);
        continue;
      }
      if (this.#isRevoked(job, expiries)) {
        answers.fill(ACCESS_REVOKED, at, at + operationsOf(job));
        at += operationsOf(job);
        continue;
      }
      if (job.kind === "account") {
        expiries.clear();
        this.#writeLists(lists);
        answers[at] = this.#accounts.apply(job.change);
        this.#scrubber.note(job, answers[at]);
        at += 1;
        continue;
      }
      const list = lists.get(job.user) ?? this.#list(job.user);
      if (list.sequence === DELETED) answers.fill(ACCESS_REVOKED, at, at + operationsOf(job));
      else {
        lists.set(job.user, list);
        if (job.kind === "add") this.#add(job, list, answers, at);
        else answers[at] = this.#remove(job, list) ? REMOVED : NOT_THERE;
        this.#scrubber.note(job, answers[at]);
      }
      at += operationsOf(job);
    }
    this.#writeLists(lists);
    this.#isCommitting = true;
    this.#commit.run();
    this.#isCommitting = false;
    this.#scrubber.run();
    return answers;
  }

  /**
   * Whether what failed may be stored all the same: a commit whose sync failed stands in the log, and whoever reads the
   * log after a crash finds it whole. On a full disk it does not stand there.
   */
  isInDoubt(error: unknown): boolean {
    return this.#isCommitting && !isFull(error);
  }

  close(): void {
    this.#database.close();
  }

  /**
   * Another process may be writing for a moment. SQLite's own way of waiting looks every tenth of a second, and would
   * never meet the short gap that a busy server leaves.
   */
  #beginTransaction(): void {
    const deadline = performance.now() + WAITING_MS;
    for (;;) {
      try {
        this.#begin.run();
        return;
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error;
        sleep(1);
      }
    }
  }

  /** `expiries` holds what was read of credentials since the last change of accounts in this group. */
  #isRevoked({ credentialHash, at }: Authorized, expiries: Map<string, number>): boolean {
    if (credentialHash === undefined) return false;
    let expiry = expiries.get(credentialHash);
    if (expiry === undefined) {
      const row = this.#readExpiry.get(bytesOf(credentialHash));
      expiry = row === undefined ? 0 : Number(row["expires_at"]) || Number.POSITIVE_INFINITY;
      expiries.set(credentialHash, expiry);
    }
    return expiry <= at;
  }

  #writeLists(lists: Map<number, List>): void {
    for (const [user, { sequence, total }] of lists) this.#writeList.run(user, sequence, total);
    lists.clear();
  }

  #list(user: number): List {
    const row = this.#readList.get(user);
    return { sequence: Number(row?.["sequence"] ?? 0), total: Number(row?.["total"] ?? 0) };
  }

  #add({ user, at, drafts, maxTotal }: Job & { kind: "add" }, list: List, answers: Answers, offset: number): void {
    for (let index = 0; index < drafts.length / 3; index += 1) {
      const id = idKey(drafts[3 * index] ?? "");
      const feed = feedKey(drafts[3 * index + 2] ?? "");
      if (list.total >= maxTotal && !this.#has(user, feed, id)) {
        answers[offset + index] = QUOTA_EXCEEDED;
        continue;
      }
      const { changes } = this.#insert.run(user, list.sequence + 1, id, feed, drafts[3 * index + 1] ?? "", at);
      if (changes === 1) {
        list.sequence += 1;
        list.total += 1;
        answers[offset + index] = ADDED;
      } else {
        answers[offset + index] = this.#hasFeed.get(user, feed) === undefined ? ID_IN_USE : ALREADY_SUBSCRIBED;
      }
    }
  }

  #has(user: number, feed: Buffer, id: Buffer): boolean {
    return this.#hasFeed.get(user, feed) !== undefined || this.#hasId.get(user, id) !== undefined;
  }

  #remove({ user, at, id }: Job & { kind: "remove" }, list: List): boolean {
    const key = idKey(id);
    const row = this.#delete.get(user, key);
    if (row === undefined) return false;
    list.sequence += 1;
    list.total -= 1;
    this.#remember.run(user, list.sequence, key, at);
    if (list.sequence > KEPT_CHANGES) this.#trimRemovals.run(user, list.sequence - KEPT_CHANGES);
    const gaps = this.#readGaps.get(user)?.["counts"] as Uint8Array | undefined;
    // Neither the item's number nor the removal's own stands for an item from now on.
    this.#writeGaps.run(user, withGaps(gaps, [Number(row["sequence"]), list.sequence]));
    return true;
  }
}

/**
 * After a failure the connection is given up: what it still holds in memory may not be what is on the disk (a failed
 * sync is not repeated by the next one). The next group gets a new one.
 */
function listen(port: NonNullable<typeof parentPort>, path: string): void {
  let writer: Writer | undefined = new Writer(path);
  port.on("message", (jobs: readonly Job[] | "close") => {
    if (jobs === "close") {
      writer?.close();
      port.close();
      return;
    }
    let answer: GroupAnswer;
    try {
      writer ??= new Writer(path);
      answer = { answers: writer.apply(jobs) };
    } catch (error) {
      answer = { failure: error as Error, inDoubt: writer?.isInDoubt(error) ?? false };
      writer?.close();
      writer = undefined;
    }
    port.postMessage(answer);
  });
  port.postMessage({ answers: new Uint8Array() } satisfies GroupAnswer);
}

if (parentPort !== null) listen(parentPort, workerData as string);
