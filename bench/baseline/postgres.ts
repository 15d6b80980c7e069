import { hash } from "node:crypto";
import pg from "pg";
import type { Addition, Item } from "./sqlite.ts";

/**
 * The baseline on PostgreSQL: one statement, and so one transaction, per group of requests. It has Earmark's columns and
 * keys but no locks: it counts in memory, as if there were no other process.
 */
export class PostgresBaseline {
  readonly #pool: pg.Pool;
  #sequence = 0;

  static async open(url: string, connections: number): Promise<PostgresBaseline> {
    const pool = new pg.Pool({ connectionString: url, max: connections });
    await pool.query(`
      create schema baseline;
      create table baseline.subscriptions (
        user_id bigint not null, sequence bigint not null, id uuid not null, feed uuid not null,
        subscribed_at bigint not null, written_by bigint not null, feed_url text not null,
        primary key (user_id, sequence), unique (user_id, id), unique (user_id, feed)
      );
    `);
    return new PostgresBaseline(pool);
  }

  private constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Assumes that all of them are new, and throws otherwise. */
  async add(additions: readonly Addition[]): Promise<Uint8Array> {
    const ids: string[] = [];
    const feeds: string[] = [];
    const feedUrls: string[] = [];
    const moments: number[] = [];
    for (const { at, texts } of additions) {
      for (let index = 0; index < texts.length; index += 2) {
        const feedUrl = texts[index + 1] ?? "";
        ids.push(texts[index] ?? "");
        feeds.push(hash("sha256", feedUrl, "hex").slice(0, 32));
        feedUrls.push(feedUrl);
        moments.push(at);
      }
    }
    const before = this.#sequence;
    this.#sequence += ids.length;
    const { rowCount } = await this.#pool.query(
      `insert into baseline.subscriptions (user_id, sequence, id, feed, subscribed_at, written_by, feed_url)
       select 1, $1::bigint + number, id, feed, at, 0, feed_url
       from unnest($2::uuid[], $3::uuid[], $4::text[], $5::bigint[])
         with ordinality as given (id, feed, feed_url, at, number)
       on conflict do nothing`,
      [before, ids, feeds, feedUrls, moments],
    );
    if (rowCount !== ids.length) throw new Error(`only ${rowCount} of ${ids.length} were new`);
    return new Uint8Array(ids.length).fill(1);
  }

  /**
   * Nothing is ever removed, so the total is the last sequence number and a page is a range. The limit is only a hint for
   * the planner: without it, PostgreSQL would plan each time.
   */
  async page(offset: number, size: number): Promise<{ total: number; items: Item[] }> {
    const { rows } = await this.#pool.query<[total: string, ids: string, feedUrls: string, moments: string]>({
      name: "page",
      text: `select (select max(sequence) from baseline.subscriptions where user_id = 1),
               string_agg(id::text, ' '), string_agg(feed_url, ' '), string_agg(subscribed_at::text, ' ')
             from (select id, feed_url, subscribed_at from baseline.subscriptions
               where user_id = 1 and sequence between $1 and $2 order by sequence limit $3) as page`,
      values: [offset + 1, offset + size, size],
      rowMode: "array",
    });
    const [total, ...texts] = rows[0] ?? ["0"];
    const [ids = [], feedUrls = [], moments = []] = texts.map((text) => text?.split(" "));
    return { total: Number(total), items: ids.map((id, at) => [id, feedUrls[at] ?? "", Number(moments[at])]) };
  }
}
