import type { DatabaseSync } from "node:sqlite";
import { completesDeletion } from "./accounts.ts";
import { isBusy, WRITER_BUSY_MS } from "./file.ts";
import type { Job, JobResult, SentResult } from "./jobs.ts";

/** How long to wait for readers of the log. Writers are blocked for as long. */
const READERS_MS = 20;
/** Delay before the next attempt if a long reader, such as a backup, needs the log. */
const RETRY_MS = 5_000;
/** A file up to this size is rewritten in about a tenth of a second. */
const MAX_REWRITE_BYTES = 16 * 1024 * 1024;
/** Minimum time between two rewrites. The sweep handles accounts that are deleted in between. */
const REWRITE_INTERVAL_MS = 60_000;

/**
 * Removes old content from the database's files. `secure_delete` zeroes deleted data in a page, but two places keep
 * older copies: the write-ahead log, and the unused part of a page that SQLite has split (about one removed row in a
 * thousand, as measured). The log is emptied after an account is deleted, after a change of password and in the hourly
 * sweep; a small file is rewritten after an account is deleted and in the sweep. A large file is not, because that would
 * block writers for too long.
 */
export class Scrubber {
  readonly #database: DatabaseSync;
  readonly #clock: () => number;
  /** Since the last rewrite. True at start, because earlier processes may have removed something. */
  #hasRemoved = true;
  #isFileDue = false;
  #rewrittenAt = Number.NEGATIVE_INFINITY;
  #logDueAt = Number.POSITIVE_INFINITY;

  /** `clock` reads milliseconds that never go back. */
  constructor(database: DatabaseSync, clock = () => performance.now()) {
    this.#database = database;
    this.#clock = clock;
  }

  note(job: Job, result: JobResult): void {
    if (job.kind === "probe" || result === "access-revoked") return;
    if (job.kind === "change") this.#hasRemoved ||= typeof result === "object" && result.results.some(mayReplace);
    else if (job.kind === "app" || job.kind === "podcast") this.#hasRemoved = true;
    else if (job.kind === "forget") this.#hasRemoved ||= Number(result) > 0;
    else {
      const { change } = job;
      const isDeleted = completesDeletion(change, Number(result));
      if (isDeleted || change.kind === "password") this.#hasRemoved = true;
      if (isDeleted || change.kind === "sweep") this.#isFileDue = true;
      if (isDeleted || change.kind === "sweep" || change.kind === "password") this.#logDueAt = 0;
    }
  }

  /**
   * Runs the scrubs that are due, outside a transaction. A failure is ignored and retried later. Returns false if the
   * connection must not be used again, because a sync may have failed.
   */
  run(): boolean {
    const now = this.#clock();
    if (now < this.#logDueAt) return true;
    this.#logDueAt = now + RETRY_MS;
    try {
      this.#database.exec(`pragma busy_timeout = ${READERS_MS}`);
      const isDue = this.#isFileDue && this.#hasRemoved && now - this.#rewrittenAt >= REWRITE_INTERVAL_MS;
      if (isDue && this.#isSmall()) {
        this.#database.exec("vacuum");
        this.#rewrittenAt = now;
        this.#hasRemoved = false;
      }
      this.#isFileDue = false;
      if (this.#get("wal_checkpoint(truncate)")["busy"] === 0) this.#logDueAt = Number.POSITIVE_INFINITY;
      return true;
    } catch (error) {
      // Otherwise another process is writing.
      return isBusy(error);
    } finally {
      this.#database.exec(`pragma busy_timeout = ${WRITER_BUSY_MS}`);
    }
  }

  #isSmall(): boolean {
    return (
      Number(this.#get("page_count")["page_count"]) * Number(this.#get("page_size")["page_size"]) <= MAX_REWRITE_BYTES
    );
  }

  #get(pragma: string): Record<string, unknown> {
    return this.#database.prepare(`pragma ${pragma}`).get() ?? {};
  }
}

/** Whether a change may have removed or replaced a row: anything but a plain addition and a refusal. */
function mayReplace(result: SentResult): boolean {
  return result !== "added" && !("code" in result);
}
