import { createHash, type Hash } from "node:crypto";
import type { Row } from "./tables.ts";

/** The number of rows and a hash of the content, to compare tables. */
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
