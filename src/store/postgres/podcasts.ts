import type { UserId } from "../../accounts/caller.ts";
import {
  type ArtworkSize,
  type DueFeed,
  type FeedSubscriber,
  MIN_REFRESH_MS,
  newRecord,
  type Podcast,
  type PodcastCounts,
  type PodcastRecord,
  type PodcastStore,
  type PodcastVersion,
  type StoredArtwork,
  type SubscribedFeed,
} from "../../podcasts/podcast-store.ts";
import {
  countQuery,
  idOfUrl,
  MAX_SUBSCRIBERS_READ,
  PUBLIC_COLUMNS,
  RECORD_COLUMNS,
  toCounts,
  toPublicPodcast,
  toRecord,
  toValues,
} from "../shared/podcast-rows.ts";
import { type Connection, type NamedStatement, namedStatement, type Postgres, transact } from "./connection.ts";

/** Records to check per step when those without subscribers are erased. */
const CHECK_BATCH_SIZE = 500;
const MAX_ROWS_PER_QUERY = 2_000;
const COLUMNS = RECORD_COLUMNS.join(", ");
const NO_FEED = "00000000-0000-0000-0000-000000000000";

const VERSIONS = namedStatement("select feed, checked_at from earmark.podcasts where feed = any($1::uuid[])");
const PUBLIC = namedStatement(
  `select ${PUBLIC_COLUMNS.join(", ")}, feed from earmark.podcasts where feed = any($1::uuid[])`,
);
const SUBSCRIBED = namedStatement("select 1 from earmark.subscriptions where user_id = $1 and feed = $2");

type Row = (string | Buffer | null)[];

/**
 * Podcasts in PostgreSQL. A cluster distributes them by feed and everything else by user, so no statement joins the two:
 * a request reads the user's list, then podcasts by their keys. Only background jobs look up subscriptions by feed.
 */
export class PostgresPodcasts implements PodcastStore {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async find(feedUrls: readonly string[]): Promise<Podcast[]> {
    return this.#find(feedUrls.map(idOfUrl));
  }

  async versions(feedUrls: readonly string[]): Promise<PodcastVersion[]> {
    const ids = feedUrls.map(idOfUrl);
    const times = new Map((await this.#queryByFeed(VERSIONS, ids)).map(([id, at]) => [String(id), Number(at)]));
    return ids.map((id) => ({ id, checkedAt: times.get(id) ?? 0 }));
  }

  async get(user: UserId, id: string): Promise<Podcast | undefined> {
    return (await this.#isSubscriber(user, id)) ? (await this.#find([id]))[0] : undefined;
  }

  async artwork(user: UserId, id: string, hash: string, size: ArtworkSize): Promise<Uint8Array | undefined> {
    if (!(await this.#isSubscriber(user, id))) return undefined;
    const sql = "select bytes from earmark.artwork where feed = $1 and size = $2 and hash = $3";
    const [row] = await this.#query(sql, id, size, hash);
    return row?.[0] as Buffer | undefined;
  }

  async refresh(user: UserId, id: string, at: Date, minMs = MIN_REFRESH_MS): Promise<boolean> {
    if (!(await this.#isSubscriber(user, id))) return false;
    const { status, statusSince, nextAt } = newRecord(at.getTime());
    await this.#query(
      `insert into earmark.podcasts as p (feed, status, status_since, next_at) values ($1, $2, $3, $4)
       on conflict (feed) do update set next_at = greatest($5::bigint, p.not_before), artwork_at = 0
       where p.checked_at <= $5::bigint - $6::bigint`,
      id,
      status,
      statusSince,
      nextAt,
      at.getTime(),
      minMs,
    );
    return true;
  }

  async changedFeeds(user: UserId, after: number, limit: number) {
    const rows = await this.#query(
      `select feed, feed_url, sequence from earmark.subscriptions where user_id = $1 and sequence > $2
       union all
       select feed, feed_url, update_sequence from earmark.subscriptions
       where user_id = $1 and update_sequence > $2 and update_sequence > 0
       order by 3 limit $3`,
      user,
      after,
      limit,
    );
    return rows.map(([id, feedUrl, sequence]) => ({
      id: String(id),
      feedUrl: String(feedUrl),
      sequence: Number(sequence),
    }));
  }

  async create(subscribed: readonly SubscribedFeed[], at: Date): Promise<readonly string[]> {
    const ids = [...new Set(subscribed.map(({ id }) => id))];
    const { rows: known } = await this.#postgres.retry((connection) =>
      connection.query<{ feed: string }>("select feed from earmark.podcasts where feed = any($1::uuid[])", [ids]),
    );
    const isKnown = new Set(known.map(({ feed }) => feed));
    const missing = ids.filter((id) => !isKnown.has(id));
    if (missing.length === 0) return [];
    // Sorted, so that two processes that create the same records do not deadlock.
    const { status, statusSince, nextAt } = newRecord(at.getTime());
    await this.#query(
      `insert into earmark.podcasts (feed, status, status_since, next_at)
       select feed, $2, $3, $4 from unnest($1::uuid[]) as given (feed) on conflict do nothing`,
      missing.toSorted(),
      status,
      statusSince,
      nextAt,
    );
    return missing;
  }

  async due(at: Date, after: Pick<DueFeed, "id" | "nextAt"> | undefined, limit: number): Promise<readonly DueFeed[]> {
    const rows = await this.#query(
      `select feed, next_at, moved_to from earmark.podcasts
       where next_at <= $1 and next_at >= $2 and (next_at, feed) > ($2, $3) and lease_until <= $1
       order by next_at, feed limit $4`,
      at.getTime(),
      after?.nextAt ?? -1,
      after?.id ?? NO_FEED,
      limit,
    );
    return rows.map(([id, nextAt, movedTo]) => ({
      id: String(id),
      nextAt: Number(nextAt),
      movedTo: movedTo as string | null,
    }));
  }

  subscribers(ids: readonly string[]): Promise<readonly (readonly FeedSubscriber[])[]> {
    const text = `select user_id, feed_url from earmark.subscriptions where feed = $1 limit ${MAX_SUBSCRIBERS_READ}`;
    return this.#postgres.retry((connection) =>
      Promise.all(
        ids.map(async (id) => {
          const { rows } = await connection.query<{ user_id: string; feed_url: string }>(text, [id]);
          return rows.map(({ user_id, feed_url }) => ({ user: Number(user_id), feedUrl: feed_url }));
        }),
      ),
    );
  }

  async findByTitle(id: string, title: string, after: UserId, limit: number) {
    const rows = await this.#query(
      `select user_id, id from earmark.subscriptions where feed = $1 and user_id > $2 and title = $3
       order by user_id limit $4`,
      id,
      after,
      title,
      limit,
    );
    return rows.map(([user, subscription]) => ({ user: Number(user), id: String(subscription) }));
  }

  async isAnyActive(users: readonly UserId[], since: Date): Promise<boolean> {
    const accounts = await this.#query(
      "select user_id, issuer <> '' or created_at >= $2 from earmark.accounts where user_id = any($1::bigint[])",
      users,
      since.getTime(),
    );
    if (users.length > accounts.length || accounts.some(([, isActive]) => Boolean(isActive))) return true;
    for (const [table, seen] of [
      ["credentials", "greatest(used_at, created_at)"],
      ["devices", "synced_at"],
      ["sync_clients", "seen_at"],
    ]) {
      const sql = `select 1 from earmark.${table} where user_id = any($1::bigint[]) and ${seen} >= $2 limit 1`;
      if ((await this.#query(sql, users, since.getTime())).length > 0) return true;
    }
    return false;
  }

  async claim(id: string, at: Date, leaseUntil: Date): Promise<PodcastRecord | undefined> {
    const [row] = await this.#query(
      `update earmark.podcasts set lease_until = $3 where feed = $1 and lease_until <= $2 and next_at <= $2
       returning ${COLUMNS}`,
      id,
      at.getTime(),
      leaseUntil.getTime(),
    );
    return row && toRecord(row);
  }

  record(id: string, leaseUntil: Date, record: PodcastRecord, artwork?: StoredArtwork): Promise<boolean> {
    const values = toValues(record, (digits) => digits);
    const sets = RECORD_COLUMNS.map((name, index) => `${name} = $${index + 3}`).join(", ");
    return this.#postgres.retry((connection) =>
      transact(connection, async () => {
        const { rowCount } = await connection.query(
          `update earmark.podcasts set ${sets}, lease_until = 0 where feed = $1 and lease_until = $2`,
          [id, leaseUntil.getTime(), ...values],
        );
        if (rowCount !== 1) return false;
        for (const size of artwork === undefined ? [] : (["small", "large"] as const)) {
          await connection.query(
            `insert into earmark.artwork (feed, size, hash, bytes) values ($1, $2, $3, $4)
             on conflict (feed, size) do update set hash = excluded.hash, bytes = excluded.bytes`,
            [id, size, artwork?.hash, artwork?.[size]],
          );
        }
        return true;
      }),
    );
  }

  async subscriptionsAfter(last: SubscribedFeed | undefined, limit: number) {
    const rows = await this.#query(
      `select user_id, feed from earmark.subscriptions where (feed, user_id) > ($1, $2)
       order by feed, user_id limit $3`,
      last?.id ?? NO_FEED,
      last?.user ?? -1,
      limit,
    );
    return rows.map(([user, id]) => ({ user: Number(user), id: String(id) }));
  }

  async eraseUnused(): Promise<void> {
    const sql = `select feed from earmark.podcasts where feed > $1 order by feed limit ${CHECK_BATCH_SIZE}`;
    for (let last: string | undefined = NO_FEED; last !== undefined; ) {
      const rows: Row[] = await this.#query(sql, last);
      const feeds = rows.map(([feed]) => String(feed));
      await eraseIfUnused(this.#postgres, feeds);
      last = feeds.at(-1);
    }
  }

  async counts(at: Date): Promise<PodcastCounts> {
    return toCounts((await this.#query(countQuery("earmark.podcasts", "$1"), at.getTime()))[0]);
  }

  async #isSubscriber(user: UserId, id: string): Promise<boolean> {
    const { rows } = await this.#postgres.retry((connection) =>
      connection.query({ ...this.#postgres.toQuery(SUBSCRIBED), values: [user, id] }),
    );
    return rows.length > 0;
  }

  /** Result N is the podcast with id N. */
  async #find(ids: readonly string[]): Promise<Podcast[]> {
    const byId = new Map((await this.#queryByFeed(PUBLIC, ids)).map((row) => [String(row.at(-1)), row]));
    return ids.map((id) => toPublicPodcast(id, byId.get(id)));
  }

  async #queryByFeed(statement: NamedStatement, ids: readonly string[]): Promise<Row[]> {
    if (ids.length === 0) return [];
    // As one text, because the driver would escape each id of an array.
    const values = [`{${ids.join()}}`];
    const { rows } = await this.#postgres.retry((connection) =>
      connection.query({ ...this.#postgres.toQuery(statement), values, rowMode: "array" }),
    );
    return rows as Row[];
  }

  async #query(text: string, ...values: readonly unknown[]): Promise<Row[]> {
    const { rows } = await this.#postgres.retry((connection) =>
      connection.query({ text, values: [...values], rowMode: "array" }),
    );
    return rows as Row[];
  }
}

/** Erases the records of those feeds that have no subscriber. */
export async function eraseIfUnused(postgres: Postgres, feeds: readonly string[]): Promise<void> {
  for (let start = 0; start < feeds.length; start += CHECK_BATCH_SIZE) {
    const some = feeds.slice(start, start + CHECK_BATCH_SIZE);
    await postgres.retry(async (connection) => {
      const unused = await findUnused(connection, some);
      for (const table of unused.length > 0 ? ["podcasts", "artwork"] : [])
        await connection.query(`delete from earmark.${table} where feed = any($1::uuid[])`, [unused]);
    });
  }
}

/** Looks up many feeds per query, because a cluster asks every shard, but limits the rows: a feed may be popular. */
async function findUnused(connection: Connection, feeds: readonly string[]): Promise<readonly string[]> {
  const sql = `select feed from earmark.subscriptions where feed = any($1::uuid[]) limit ${MAX_ROWS_PER_QUERY}`;
  for (let unused = feeds; ; ) {
    const { rows } = await connection.query<{ feed: string }>(sql, [unused]);
    const used = new Set(rows.map(({ feed }) => feed));
    unused = unused.filter((feed) => !used.has(feed));
    if (rows.length < MAX_ROWS_PER_QUERY || unused.length === 0) return unused;
  }
}
