import type { DatabaseSync } from "node:sqlite";
import { isBusy, WRITER_BUSY_MS } from "./file.ts";

/** How long to wait for readers of the log. Writers are blocked for as long. */
const READERS_MS = 20;
/** A file up to this size is rewritten in about a tenth of a second. */
const MAX_REWRITE_BYTES = 16 * 1024 * 1024;

/**
 * Removes old content from the database's files, in the hourly sweep. `secure_delete` zeroes deleted data in a page, but
 * two places keep older copies: the write-ahead log, which is emptied, and the unused part of a page that SQLite has split
 * (about one removed row in a thousand, as measured). A small file is rewritten for these; with a large one that would
 * block writers for too long.
 */
export class Scrubber {
  readonly #database: DatabaseSync;
  /** The version that was rewritten last. Undefined at start, because earlier processes may have removed something. */
  #rewritten: string | undefined;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /**
   * To be called outside a transaction. If another process uses the file, the next sweep tries again. Returns false if the
   * connection must not be used again, because a sync may have failed.
   */
  run(): boolean {
    try {
      this.#database.exec(`pragma busy_timeout = ${READERS_MS}`);
      if (this.#isSmall() && this.#rewritten !== this.#version()) {
        this.#database.exec("vacuum");
        this.#rewritten = this.#version();
      }
      this.#database.exec("pragma wal_checkpoint(truncate)");
      return true;
    } catch (error) {
      return isBusy(error);
    } finally {
      this.#database.exec(`pragma busy_timeout = ${WRITER_BUSY_MS}`);
    }
  }

  #isSmall(): boolean {
    const size = this.#database.prepare(
      "select page_count * page_size as bytes from pragma_page_count, pragma_page_size",
    );
    return Number(size.get()?.["bytes"]) <= MAX_REWRITE_BYTES;
  }

  /** Different after each change, by this connection or another. */
  #version(): string {
    const changes = this.#database
      .prepare("select data_version, total_changes() as own from pragma_data_version")
      .get();
    return `${changes?.["data_version"]} ${changes?.["own"]}`;
  }
}
