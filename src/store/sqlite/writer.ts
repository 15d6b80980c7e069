import type { DatabaseSync, StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { bytesOf } from "../shared/keys.ts";
import { AccountWriter } from "./accounts.ts";
import { AppWriter } from "./apps.ts";
import { isBusy, isFileFailure, isFull, openConnection, sleep, WRITER_BUSY_MS } from "./file.ts";
import type { Authorized, GroupResult, GroupWriter, Job, JobResult, WriteFailure } from "./jobs.ts";
import { createSender } from "./jobs.ts";
import { ListWriter } from "./list.ts";
import { PodcastWriter } from "./podcasts.ts";
import { touch } from "./schema.ts";
import { Scrubber } from "./scrubber.ts";

const CACHE_KIB = 16 * 1024;
/** How long a group waits for another process that is writing to the file. */
const WAITING_MS = 10_000;

const isSweep = (job: Job) => job.kind === "account" && job.change.kind === "sweep";

/** The connection that writes. */
class Connection {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #readExpiry: StatementSync;
  readonly #checkPassword: StatementSync;
  readonly #checkAdmin: StatementSync;
  readonly #lists: ListWriter;
  readonly #accounts: AccountWriter;
  readonly #apps: AppWriter;
  readonly #podcasts: PodcastWriter;
  readonly #scrubber: Scrubber;
  /** Cached expiry of credentials, valid until the next account change in this group. */
  readonly #expiries = new Map<string, number>();
  #isCommitting = false;
  /** False if it must be closed. */
  isTrusted = true;

  constructor(path: string) {
    this.#database = openConnection(path, { readOnly: false, cacheKiB: CACHE_KIB });
    this.#database.exec(`pragma busy_timeout = ${WRITER_BUSY_MS}`);
    this.#begin = this.#database.prepare("begin immediate");
    this.#commit = this.#database.prepare("commit");
    this.#readExpiry = this.#database.prepare(
      "select expires_at from credentials where hash = ? and kind <> 'disabled-token'",
    );
    this.#checkPassword = this.#database.prepare(
      "select 1 from accounts where user_id = ? and password = ? and disabled_at = 0",
    );
    this.#checkAdmin = this.#database.prepare(
      "select 1 from accounts where user_id = ? and is_admin = 1 and disabled_at = 0",
    );
    this.#lists = new ListWriter(this.#database);
    this.#podcasts = new PodcastWriter(this.#database);
    this.#accounts = new AccountWriter(this.#database, this.#podcasts);
    this.#apps = new AppWriter(this.#database);
    this.#scrubber = new Scrubber(this.#database);
  }

  write(jobs: readonly Job[]): JobResult[] {
    this.#beginTransaction();
    this.#expiries.clear();
    const results = jobs.map((job) => this.#execute(job));
    this.#lists.flush();
    this.#isCommitting = true;
    this.#commit.run();
    this.#isCommitting = false;
    if (jobs.some(isSweep)) this.isTrusted = this.#scrubber.run();
    return results;
  }

  #execute(job: Job): JobResult {
    if (job.kind === "probe") {
      touch(this.#database);
      return 0;
    }
    if (job.kind === "forget") {
      this.#lists.flush();
      return this.#lists.forgetRemovals(job.before);
    }
    if (job.kind === "podcast") {
      this.#lists.flush();
      return this.#podcasts.apply(job.change);
    }
    if (this.#isRevoked(job)) return "access-revoked";
    if (job.kind === "account") {
      this.#expiries.clear();
      this.#lists.flush();
      return this.#accounts.apply(job.change);
    }
    const list = this.#lists.open(job.user);
    if (list === undefined) return "access-revoked";
    if (job.kind === "app") return this.#apps.apply(job.user, job.change, job.at);
    const { at, maxTotal } = job;
    const sequenceBefore = list.sequence;
    const send = createSender();
    const results = job.changes.map((change) => send(list.apply(change, at, maxTotal)));
    return { results, sequenceBefore, sequence: list.sequence };
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

  #isRevoked({ admin, credentialHash, password, at }: Authorized): boolean {
    if (admin !== undefined && this.#checkAdmin.get(admin) === undefined) return true;
    if (password !== undefined && this.#checkPassword.get(password.user, password.hash) === undefined) return true;
    if (credentialHash === undefined) return false;
    let expiry = this.#expiries.get(credentialHash);
    if (expiry === undefined) {
      const row = this.#readExpiry.get(bytesOf(credentialHash));
      expiry = row === undefined ? 0 : Number(row["expires_at"]) || Number.POSITIVE_INFINITY;
      this.#expiries.set(credentialHash, expiry);
    }
    return expiry <= at;
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
    return "failure" in result && !result.isLasting && jobs.length > 1 ? { results: this.#writeEach(jobs) } : result;
  }

  /** After a failure that every job would meet, no other is tried: each might wait for a locked file. */
  #writeEach(jobs: readonly Job[]): (JobResult | WriteFailure)[] {
    let lasting: WriteFailure | undefined;
    return jobs.map((job) => {
      if (lasting !== undefined) return lasting;
      const result = this.#transact([job]);
      if (!("failure" in result)) return result.results[0] as JobResult;
      const { failure, isLasting, isOutcomeUnknown } = result;
      if (isLasting) lasting = { failure, isOutcomeUnknown: false };
      return { failure, isOutcomeUnknown };
    });
  }

  #transact(
    jobs: readonly Job[],
  ): { readonly results: readonly JobResult[] } | (WriteFailure & { readonly isLasting: boolean }) {
    let results: readonly JobResult[];
    try {
      this.#connection ??= new Connection(this.#path);
      results = this.#connection.write(jobs);
    } catch (error) {
      const isOutcomeUnknown = this.#connection?.isOutcomeUnknown(error) ?? false;
      this.close();
      return { failure: error as Error, isOutcomeUnknown, isLasting: isOutcomeUnknown || isFileFailure(error) };
    }
    if (!this.#connection.isTrusted) this.close();
    return { results };
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
  port.postMessage({ results: [] } satisfies GroupResult);
}

if (parentPort !== null) listen(parentPort, workerData as string);
