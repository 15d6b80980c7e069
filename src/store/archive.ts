import { createHash, type Hash } from "node:crypto";
import { openPostgresArchive } from "./postgres-archive.ts";
import { openSqliteArchive } from "./sqlite-archive.ts";
import type { Archive, Row } from "./tables.ts";

export function openArchive(url: string): Archive {
  return url.startsWith("file:") ? openSqliteArchive(url.slice("file:".length)) : openPostgresArchive(url);
}

/** What makes two tables equal: how many rows they have, and what is in them. */
export class Checksum {
  readonly #hash: Hash = createHash("sha256");
  rows = 0;

  add(rows: readonly Row[]): void {
    for (const row of rows) {
      this.#hash.update(
        JSON.stringify(row.map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value))),
      );
    }
    this.rows += rows.length;
  }

  digest(): string {
    return this.#hash.copy().digest("hex");
  }
}
