import type { DatabaseSync, StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { feedKey } from "./feed-key.ts";
import { withGaps } from "./gaps.ts";
import { openConnection } from "./sqlite-file.ts";

/**
 * The one thread that writes. It takes a group of jobs, carries them out in one transaction, and answers when the
 * commit is on the disk: either the whole group is stored, or none of it.
 */
export type Job =
  /** Three texts for each draft: id, feed_url, feed. */
  | { readonly kind: "add"; readonly user: number; readonly at: number; readonly drafts: readonly string[] }
  | { readonly kind: "remove"; readonly user: number; readonly at: number; readonly id: string };

/** For an addition, one byte for each draft; for a removal, one byte: whether there was something to remove. */
export type JobAnswer = Uint8Array;
export type GroupAnswer = { readonly answers: readonly JobAnswer[] } | { readonly failure: Error };

export const ADDED = 1;
export const ALREADY_SUBSCRIBED = 2;
export const ID_IN_USE = 3;

const CACHE_KIB = 32 * 1024;

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
  readonly #delete: StatementSync;
  readonly #remember: StatementSync;
  readonly #readGaps: StatementSync;
  readonly #writeGaps: StatementSync;
  readonly #readList: StatementSync;
  readonly #writeList: StatementSync;

  constructor(path: string) {
    this.#database = openConnection(path, { readOnly: false, cacheKiB: CACHE_KIB });
    const prepare = (sql: string) => this.#database.prepare(sql);
    this.#begin = prepare("begin immediate");
    this.#commit = prepare("commit");
    // The two rules that a draft may run into are named; any other collision is an error of ours.
    this.#insert = prepare(`
      insert into subscriptions (user, sequence, id, feed, feed_url, subscribed_at) values (?, ?, ?, ?, ?, ?)
      on conflict (user, feed) do nothing on conflict (user, id) do nothing`);
    this.#hasFeed = prepare("select 1 from subscriptions where user = ? and feed = ?");
    this.#delete = prepare("delete from subscriptions where user = ? and id = ? returning sequence");
    this.#remember = prepare("insert into removals (user, sequence, id, removed_at) values (?, ?, ?, ?)");
    this.#readGaps = prepare("select counts from gaps where user = ?");
    this.#writeGaps = prepare(
      "insert into gaps (user, counts) values (?, ?) on conflict (user) do update set counts = excluded.counts",
    );
    this.#readList = prepare("select sequence, total from lists where user = ?");
    this.#writeList = prepare(`
      insert into lists (user, sequence, total) values (?, ?, ?)
      on conflict (user) do update set sequence = excluded.sequence, total = excluded.total`);
  }

  carryOut(jobs: readonly Job[]): JobAnswer[] {
    this.#begin.run();
    // Read when first needed, written once at the end, however many jobs of the group are the same user's.
    const lists = new Map<number, List>();
    const answers = jobs.map((job) => {
      const list = lists.get(job.user) ?? this.#list(job.user);
      lists.set(job.user, list);
      return job.kind === "add" ? this.#add(job, list) : this.#remove(job, list);
    });
    for (const [user, { sequence, total }] of lists) this.#writeList.run(user, sequence, total);
    this.#commit.run();
    return answers;
  }

  close(): void {
    this.#database.close();
  }

  #list(user: number): List {
    const row = this.#readList.get(user);
    return { sequence: Number(row?.["sequence"] ?? 0), total: Number(row?.["total"] ?? 0) };
  }

  #add({ user, at, drafts }: Job & { kind: "add" }, list: List): JobAnswer {
    const answers = new Uint8Array(drafts.length / 3);
    for (let index = 0; index < answers.length; index += 1) {
      const feed = feedKey(drafts[3 * index + 2] ?? "");
      const { changes } = this.#insert.run(
        user,
        list.sequence + 1,
        idKey(drafts[3 * index] ?? ""),
        feed,
        drafts[3 * index + 1] ?? "",
        at,
      );
      if (changes === 1) {
        list.sequence += 1;
        list.total += 1;
        answers[index] = ADDED;
      } else {
        answers[index] = this.#hasFeed.get(user, feed) === undefined ? ID_IN_USE : ALREADY_SUBSCRIBED;
      }
    }
    return answers;
  }

  #remove({ user, at, id }: Job & { kind: "remove" }, list: List): JobAnswer {
    const key = idKey(id);
    const row = this.#delete.get(user, key);
    if (row === undefined) return Uint8Array.of(0);
    list.sequence += 1;
    list.total -= 1;
    this.#remember.run(user, list.sequence, key, at);
    const gaps = this.#readGaps.get(user)?.["counts"] as Uint8Array | undefined;
    // Neither the item's number nor the removal's own stands for an item from now on.
    this.#writeGaps.run(user, withGaps(gaps, [Number(row["sequence"]), list.sequence]));
    return Uint8Array.of(1);
  }
}

export function idKey(id: string): Buffer {
  return Buffer.from(id.replaceAll("-", ""), "hex");
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
      answer = { answers: writer.carryOut(jobs) };
    } catch (error) {
      answer = { failure: error as Error };
      writer?.close();
      writer = undefined;
    }
    port.postMessage(answer);
  });
  port.postMessage({ answers: [] } satisfies GroupAnswer);
}

if (parentPort !== null) listen(parentPort, workerData as string);
