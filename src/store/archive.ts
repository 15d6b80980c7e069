import { createHash, type Hash } from "node:crypto";
import type { Archive, Row } from "./tables.ts";

export async function openArchive(url: string): Promise<Archive> {
  if (!url.startsWith("file:")) return (await import("./postgres-archive.ts")).openPostgresArchive(url);
  return (await import("./sqlite-archive.ts")).openSqliteArchive(url.slice("file:".length));
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
