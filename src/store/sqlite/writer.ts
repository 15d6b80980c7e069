import type { DatabaseSync, StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { AccessRevoked, type Caller } from "../../accounts/caller.ts";
import type { Writes } from "../shared/database.ts";
import { type AccessCheck, admit, checkAccess } from "../sql/access.ts";
import { WRITES } from "../sql/writes.ts";
import { Runner } from "./database.ts";
import { isBusy, isFileFailure, isFull, openConnection, sleep, WRITER_BUSY_MS } from "./file.ts";
import {
  createSender,
  type GroupResult,
  type GroupWriter,
  type Job,
  type JobResult,
  type WriteFailure,
} from "./jobs.ts";
import { ListWriter } from "./list.ts";
import { touch } from "./schema.ts";
import { Scrubber } from "./scrubber.ts";

const CACHE_KIB = 16 * 1024;
/** How long a group waits for another process that is writing to the file. */
const WAITING_MS = 10_000;

const isSweep = (job: Job) => job.kind === "call" && job.name === "sweep";

/** The connection that writes. */
class Connection {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #runner: Runner;
  readonly #lists: ListWriter;
  readonly #scrubber: Scrubber;
  /** Checks of the callers in this group, valid until a named write. */
  readonly #checks = new Map<string, AccessCheck>();
  #isCommitting = false;
  /** False if it must be closed. */
  isTrusted = true;

  constructor(path: string) {
    this.#database = openConnection(path, { readOnly: false, cacheKiB: CACHE_KIB });
    this.#database.exec(`pragma busy_timeout = ${WRITER_BUSY_MS}`);
    this.#begin = this.#database.prepare("begin immediate");
    this.#commit = this.#database.prepare("commit");
    this.#runner = new Runner(this.#database);
    this.#lists = new ListWriter(this.#database, this.#runner);
    this.#scrubber = new Scrubber(this.#database);
  }

  write(jobs: readonly Job[]): JobResult[] {
    this.#beginTransaction();
    this.#checks.clear();
    const results = jobs.map((job) => this.#execute(job));
    this.#lists.flush();
    this.#isCommitting = true;
    this.#commit.run();
    this.#isCommitting = false;
    if (jobs.some(isSweep)) this.isTrusted = this.#scrubber.run();
    return results;
  }

  #execute(job: Job): JobResult {
    switch (job.kind) {
      case "probe":
        touch(this.#database);
        return { kind: "done", value: undefined };
      case "forget":
        this.#lists.flush();
        return { kind: "done", value: this.#lists.forgetRemovals(job.before) };
      case "call":
        return this.#call(job);
      case "change":
        return this.#change(job);
    }
  }

  #call({ caller, at, name, args }: Job & { kind: "call" }): JobResult {
    this.#checks.clear();
    this.#lists.flush();
    const write: Writes[string] = WRITES[name];
    const context = { caller, at };
    const admission = admit(write, context, write.user?.(...args) ?? caller.user);
    try {
      return { kind: "done", value: this.#runner.run(write.work(admission, context, ...args)) };
    } catch (error) {
      if (error instanceof AccessRevoked) return { kind: "access-revoked" };
      throw error;
    }
  }

  #change({ caller, at, changes }: Job & { kind: "change" }): JobResult {
    const done = this.#hasAccess(caller, at) ? this.#lists.change(caller, changes, at) : undefined;
    return done === undefined
      ? { kind: "access-revoked" }
      : { kind: "changed", ...done, results: done.results.map(createSender()) };
  }

  #hasAccess(caller: Caller, at: number): boolean {
    const key = `${caller.user} ${caller.credentialHash} ${caller.passwordHash} ${caller.requiresAdmin}`;
    const check = this.#checks.get(key) ?? this.#runner.run(checkAccess(caller.user, [caller]));
    this.#checks.set(key, check);
    return check(caller, at);
  }

  /**
   * Whether a failed group may have been stored: if the sync of a commit fails, the commit is in the log, and recovery
   * after a crash may find it complete. On a full disk it is not in the log.
   */
  isOutcomeUnknown(error: unknown): boolean {
    return this.#isCommitting && !isFull(error);
  }

  close(): void {
    this.#database.close();
  }

  /**
   * Another process may be writing. SQLite itself would retry every tenth of a second, and would keep missing the short
   * gap that a busy server leaves.
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
}

/**
 * A failed write closes the connection: after a failed fsync, its cached pages may differ from the disk, and a later
 * fsync does not write them again. The next group gets a new connection.
 */
export class SqliteWriter implements GroupWriter {
  readonly #path: string;
  #connection: Connection | undefined;

  constructor(path: string) {
    this.#path = path;
    this.#connection = new Connection(path);
  }

  write(jobs: readonly Job[]): GroupResult {
    const result = this.#transact(jobs);
    return result.kind === "failed" && !result.isLasting && jobs.length > 1
      ? { kind: "written", results: this.#writeEach(jobs) }
      : result;
  }

  /** After a failure that every job would meet, no other is tried: each might wait for a locked file. */
  #writeEach(jobs: readonly Job[]): (JobResult | WriteFailure)[] {
    let lasting: WriteFailure | undefined;
    return jobs.map((job) => {
      if (lasting !== undefined) return lasting;
      const result = this.#transact([job]);
      if (result.kind === "written") return result.results[0] as JobResult;
      const { kind, failure, isLasting, isOutcomeUnknown } = result;
      if (isLasting) lasting = { kind, failure, isOutcomeUnknown: false };
      return { kind, failure, isOutcomeUnknown };
    });
  }

  #transact(
    jobs: readonly Job[],
  ):
    | { readonly kind: "written"; readonly results: readonly JobResult[] }
    | (WriteFailure & { readonly isLasting: boolean }) {
    let results: readonly JobResult[];
    try {
      this.#connection ??= new Connection(this.#path);
      results = this.#connection.write(jobs);
    } catch (error) {
      const isOutcomeUnknown = this.#connection?.isOutcomeUnknown(error) ?? false;
      this.close();
      const isLasting = isOutcomeUnknown || isFileFailure(error);
      return { kind: "failed", failure: error as Error, isOutcomeUnknown, isLasting };
    }
    if (!this.#connection.isTrusted) this.close();
    return { kind: "written", results };
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

/** Serves the thread that started this one. */
function listen(port: NonNullable<typeof parentPort>, path: string): void {
  const writer = new SqliteWriter(path);
  port.on("message", (jobs: readonly Job[] | "close") => {
    if (jobs !== "close") {
      port.postMessage(writer.write(jobs));
      return;
    }
    writer.close();
    port.close();
  });
  port.postMessage({ kind: "written", results: [] } satisfies GroupResult);
}

if (parentPort !== null) listen(parentPort, workerData as string);
