import { hash } from "node:crypto";
import { DatabaseSync, type StatementSync } from "node:sqlite";

/** Id and feed URL of each subscription, alternating. */
export interface Addition {
  readonly at: number;
  readonly texts: readonly string[];
}

export type Item = readonly [id: string, feedUrl: string, subscribedAt: number];

/** Earmark's schema and durability without its checks. */
export class BaselineStore {
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #insert: StatementSync;
  readonly #readList: StatementSync;
  readonly #writeList: StatementSync;
  readonly #total: StatementSync;
  readonly #items: StatementSync;

  constructor(path: string) {
    const database = new DatabaseSync(path, { timeout: 5_000 });
    database.exec(`
      pragma journal_mode = wal;
      pragma synchronous = full;
      pragma wal_autocheckpoint = 16000;
      pragma journal_size_limit = 131072000;
      pragma cache_size = -16384;
      create table if not exists lists (
        user integer primary key, position integer not null, total integer not null
      ) strict;
      create table if not exists subscriptions (
        user integer not null, position integer not null, id blob not null, feed blob not null,
        feed_url text not null, subscribed_at integer not null,
        primary key (user, position)
      ) strict, without rowid;
      create unique index if not exists subscriptions_by_id on subscriptions (user, id);
      create unique index if not exists subscriptions_by_feed on subscriptions (user, feed);
    `);
    this.#begin = database.prepare("begin immediate");
    this.#commit = database.prepare("commit");
    this.#insert = database.prepare("insert into subscriptions values (1, ?, ?, ?, ?, ?) on conflict do nothing");
    this.#readList = database.prepare("select position, total from lists where user = 1");
    this.#writeList = database.prepare("insert or replace into lists values (1, ?, ?)");
    this.#total = database.prepare("select total from lists where user = 1");
    this.#items = database.prepare(
      "select id, feed_url, subscribed_at from subscriptions where user = 1 and position > ? order by position limit ?",
    );
    this.#items.setReturnArrays(true);
  }

  /** One transaction. Returns one byte per subscription: whether it was added. */
  add(additions: readonly Addition[]): Uint8Array {
    let count = 0;
    for (const { texts } of additions) count += texts.length / 2;
    const added = new Uint8Array(count);
    this.#begin.run();
    const list = this.#readList.get();
    let position = Number(list?.["position"] ?? 0);
    let next = 0;
    for (const { at, texts } of additions) {
      for (let index = 0; index < texts.length; index += 2) {
        const id = texts[index] ?? "";
        const feedUrl = texts[index + 1] ?? "";
        const key = Buffer.from(id.replaceAll("-", ""), "hex");
        const feed = hash("sha256", feedUrl, "buffer").subarray(0, 16);
        if (this.#insert.run(position + 1, key, feed, feedUrl, at).changes === 1) {
          position += 1;
          added[next] = 1;
        }
        next += 1;
      }
    }
    this.#writeList.run(position, position);
    this.#commit.run();
    return added;
  }

  page(offset: number, size: number): { total: number; items: Item[] } {
    const total = Number(this.#total.get()?.["total"] ?? 0);
    const rows = this.#items.all(offset, size) as unknown as [Uint8Array, string, number][];
    return { total, items: rows.map(([key, feedUrl, at]) => [writeId(key), feedUrl, at]) };
  }
}

function writeId(key: Uint8Array): string {
  const hex = Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
