import { NOBODY } from "../../accounts/account-store.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import type { FailureCode } from "../../podcasts/failure.ts";
import type { Leases } from "../../podcasts/leases.ts";
import {
  type ArtworkSize,
  type DueFeed,
  type FeedSubscriber,
  MIN_REFRESH_MS,
  NO_PODCASTS,
  newRecord,
  type Podcast,
  type PodcastCounts,
  type PodcastRecord,
  type PodcastStore,
  type PodcastVersion,
  type StoredArtwork,
  type SubscribedFeed,
} from "../../podcasts/podcast-store.ts";
import { slicesOf, yieldTurn } from "../../util/turns.ts";
import {
  all,
  type Database,
  get,
  has,
  idOf,
  key,
  prepared,
  type Row,
  run,
  type Sql,
  together,
  type Work,
  write,
} from "../shared/database.ts";
import {
  COUNT_PODCASTS,
  idOfUrl,
  MAX_SUBSCRIBERS_READ,
  PUBLIC_COLUMNS,
  type PublicRow,
  RECORD_COLUMNS,
  toPublicPodcast,
  toRecord,
  toValues,
} from "../shared/podcast-rows.ts";
import { type LEASE_WRITES, SqlLeases } from "./leases.ts";

/** Records to check per step when those without subscribers are erased. */
const CHECKED_AT_ONCE = 500;
/** How many podcasts are erased at most; the next sweep erases the others. Their ids take about 10 MB. */
const MAX_ERASED = 100_000;
const MAX_ROWS_PER_QUERY = 2_000;
const NO_FEED = "00000000-0000-0000-0000-000000000000";
/** About 2 MB. */
const MAX_VERSIONS = 10_000;
const SERVER = asUser(NOBODY);

const RECORD = RECORD_COLUMNS.join(", ");
const PUBLIC = PUBLIC_COLUMNS.join(", ");
const SETS = RECORD_COLUMNS.map((name, index) => `${name} = $${index + 3}`).join(", ");

/*
 * A cluster distributes podcasts by feed and everything else by user, so no statement of PostgreSQL joins the two: a
 * request reads the user's list, then podcasts by their keys. Its index of subscriptions begins with the feed. SQLite's
 * begins with the user, so that an add changes only pages of its user; the table `subscribers` has the users of each feed.
 */
const IS_SUBSCRIBED = prepared("select 1 from earmark.subscriptions where user_id = $1 and feed = $2");
/** Many at once: a statement of SQLite for each would take twice the time. */
const FIND = prepared({
  sqlite: `select ${PUBLIC}, feed from json_each($1) cross join podcasts on feed = unhex(value)`,
  postgres: `select ${PUBLIC}, feed from earmark.podcasts where feed = any($1)`,
});
const VERSIONS = prepared({
  sqlite: "select feed, checked_at from json_each($1) cross join podcasts on feed = unhex(value)",
  postgres: "select feed, checked_at from earmark.podcasts where feed = any($1)",
});
const DATA_VERSION: Sql = { sqlite: "pragma data_version", postgres: undefined };

/** Names the index, because outdated statistics could make SQLite read a user's whole list instead. */
const SUBSCRIPTIONS = "subscribers cross join subscriptions indexed by subscriptions_by_feed using (user_id, feed)";
const SUBSCRIBERS: Sql = {
  sqlite: `select user_id, feed_url from ${SUBSCRIPTIONS} where feed = $1 limit ${MAX_SUBSCRIBERS_READ}`,
  postgres: `select user_id, feed_url from earmark.subscriptions where feed = $1 limit ${MAX_SUBSCRIBERS_READ}`,
};
const OF_FEED = "where feed = $1 and user_id > $2 order by user_id limit $3";
const NEXT_SUBSCRIBERS: Sql = {
  sqlite: `select user_id from subscribers ${OF_FEED}`,
  postgres: `select user_id from earmark.subscriptions ${OF_FEED}`,
};
const WITH_TITLE = "where feed = $1 and user_id > $2 and title = $3 order by user_id limit $4";
const BY_TITLE: Sql = {
  sqlite: `select user_id, id from ${SUBSCRIPTIONS} ${WITH_TITLE}`,
  postgres: `select user_id, id from earmark.subscriptions ${WITH_TITLE}`,
};
/** In the order of the index. */
const NEXT_SUBSCRIPTIONS: Sql = {
  sqlite: `select user_id, feed from subscriptions indexed by subscriptions_by_feed where (user_id, feed) > ($1, $2)
    order by user_id, feed limit $3`,
  postgres: `select user_id, feed from earmark.subscriptions where (feed, user_id) > ($2, $1)
    order by feed, user_id limit $3`,
};

/** A JSON array of `SubscribedFeed`, as a table: a statement for each would take twice the time. */
const SUBSCRIBED = `(select value ->> 'id' as id, unhex(value ->> 'id', '-') as feed, value ->> 'user' as user_id
  from json_each($1)) as given`;
const UNKNOWN: Sql = {
  sqlite: `select id, user_id, exists (select 1 from podcasts as p where p.feed = given.feed) as known from ${SUBSCRIBED}
    where not exists (select 1 from subscribers as s where s.feed = given.feed and s.user_id = given.user_id)`,
  postgres: undefined,
};
const KNOWN: Sql = { sqlite: undefined, postgres: "select feed from earmark.podcasts where feed = any($1)" };
const NEW = "status, status_since, next_at";
/** Sorted, so that two processes that create the same records do not deadlock. */
const CREATE: Sql = {
  sqlite: `insert into podcasts (feed, ${NEW}) select unhex(value), $2, $3, $4 from json_each($1) where true
    on conflict do nothing`,
  postgres: `insert into earmark.podcasts (feed, ${NEW}) select feed, $2, $3, $4 from unnest($1::uuid[]) as given (feed)
    on conflict do nothing`,
};
/** Without those whose subscription has been removed. */
const ADD_SUBSCRIBERS: Sql = {
  sqlite: `insert into subscribers (feed, user_id)
    select feed, user_id from ${SUBSCRIBED} cross join subscriptions using (user_id, feed) where true
    on conflict do nothing`,
  postgres: undefined,
};

/** Those of these podcasts that have no known subscriber. */
const UNUSED = "not exists (select 1 from subscribers as s where s.feed = podcasts.feed)";
const UNUSED_ON_SQLITE: Sql = {
  sqlite: `select feed from podcasts where feed = any($1) and ${UNUSED}`,
  postgres: undefined,
};
/** Limits the rows, because a feed may be popular. */
const USED_ON_POSTGRES: Sql = {
  sqlite: undefined,
  postgres: `select feed from earmark.subscriptions where feed = any($1) limit ${MAX_ROWS_PER_QUERY}`,
};
const ERASE: Sql = {
  sqlite: `delete from podcasts where feed = any($1) and ${UNUSED}`,
  postgres: "delete from earmark.podcasts where feed = any($1)",
};
const ERASE_ARTWORK: Sql = {
  sqlite: `delete from artwork where feed = any($1)
    and not exists (select 1 from podcasts as p where p.feed = artwork.feed)`,
  postgres: "delete from earmark.artwork where feed = any($1)",
};

const keysOf = (ids: readonly string[]) => ids.map(key);

function* findUnusedOnSqlite(ids: readonly string[]): Work<string[]> {
  return (yield* all(UNUSED_ON_SQLITE, keysOf(ids))).map(({ feed }) => idOf(feed));
}

/** Looks up many feeds per query, because a cluster asks every shard. */
function* findUnusedOnPostgres(ids: readonly string[]): Work<string[]> {
  for (let unused = [...ids]; ; ) {
    const rows = yield* all(USED_ON_POSTGRES, keysOf(unused));
    const used = new Set(rows.map(({ feed }) => idOf(feed)));
    unused = unused.filter((id) => !used.has(id));
    if (rows.length < MAX_ROWS_PER_QUERY || unused.length === 0) return unused;
  }
}

/** Podcasts write without a caller, and besides operations. */
const ofServer = { isRepeatable: true, operations: () => 0 } as const;
const single = { ...ofServer, isSingle: true } as const;

export const PODCAST_WRITES = {
  createPodcasts: write(ofServer, function* ({ at }, ids: readonly string[], subscribed: readonly SubscribedFeed[]) {
    const { status, statusSince, nextAt } = newRecord(at);
    yield* run(CREATE, keysOf(ids.toSorted()), status, statusSince, nextAt);
    yield* run(ADD_SUBSCRIBERS, JSON.stringify(subscribed));
  }),
  refreshPodcast: write(single, ({ at }, id: string, minMs: number) =>
    run(
      `update earmark.podcasts set next_at = greatest($2, not_before), artwork_at = 0
       where feed = $1 and checked_at <= $3`,
      key(id),
      at,
      at - minMs,
    ),
  ),
  retryPodcasts: write(ofServer, function* ({ at }, failure: FailureCode) {
    const late = "failure = $1 and next_at > $2 and not_before <= $2";
    yield* run(`update earmark.podcasts set next_at = $2 where ${late}`, failure, at);
  }),
  claimPodcast: write(single, ({ at }, id: string, leaseUntil: number) =>
    get(
      `update earmark.podcasts set lease_until = $3 where feed = $1 and lease_until <= $2 and next_at <= $2
       returning ${RECORD}`,
      key(id),
      at,
      leaseUntil,
    ),
  ),
  recordPodcast: write(
    ofServer,
    function* (_, id: string, leaseUntil: number, record: PodcastRecord, artwork?: StoredArtwork) {
      const set = `update earmark.podcasts set ${SETS}, lease_until = 0 where feed = $1 and lease_until = $2`;
      if ((yield* run(set, key(id), leaseUntil, ...toValues(record))) === 0) return false;
      if (artwork === undefined) return true;
      for (const size of ["small", "large"] as const) {
        yield* run(
          `insert into earmark.artwork (feed, size, hash, bytes) values ($1, $2, $3, $4)
           on conflict (feed, size) do update set hash = excluded.hash, bytes = excluded.bytes`,
          key(id),
          size,
          key(artwork.hash),
          artwork[size],
        );
      }
      return true;
    },
  ),
  erasePodcasts: write(ofServer, function* (_, ids: readonly string[]) {
    yield* run(ERASE, keysOf(ids));
    yield* run(ERASE_ARTWORK, keysOf(ids));
  }),
} as const;

type PodcastWrites = typeof PODCAST_WRITES & typeof LEASE_WRITES;

export class SqlPodcasts implements PodcastStore {
  readonly leases: Leases | undefined;
  readonly #database: Database<PodcastWrites>;
  /** Versions by feed URL, valid until SQLite's database changes: reading a hundred takes nearly as long as their page. */
  readonly #versions = new Map<string, PodcastVersion>();
  #dataVersion: unknown;

  constructor(database: Database<PodcastWrites>) {
    this.leases = database.engine === "postgres" ? new SqlLeases(database) : undefined;
    this.#database = database;
  }

  find(feedUrls: readonly string[]): Promise<Podcast[]> {
    return this.#find(feedUrls.map(idOfUrl));
  }

  /** Result N is the podcast with id N. */
  async #find(ids: readonly string[]): Promise<Podcast[]> {
    if (ids.length === 0) return [];
    const rows = await this.#database.read(() => all<PublicRow & { feed: unknown }>(FIND, keysOf(ids)));
    const byId = new Map(rows.map((row) => [idOf(row.feed), row]));
    return ids.map((id) => toPublicPodcast(id, byId.get(id)));
  }

  async versions(feedUrls: readonly string[]): Promise<PodcastVersion[]> {
    // Read before the versions: if the database changes in between, they are forgotten by the next call.
    const version = await this.#database.read(() => get<{ data_version: number }>(DATA_VERSION));
    if (version?.data_version !== this.#dataVersion || version === undefined || this.#versions.size > MAX_VERSIONS)
      this.#versions.clear();
    this.#dataVersion = version?.data_version;
    const unknown = feedUrls.filter((feedUrl) => !this.#versions.has(feedUrl));
    if (unknown.length === 0) return feedUrls.map((feedUrl) => this.#versions.get(feedUrl) as PodcastVersion);
    const read = await this.#readVersions(unknown);
    for (const [index, feedUrl] of unknown.entries()) this.#versions.set(feedUrl, read[index] as PodcastVersion);
    return feedUrls.map((feedUrl) => this.#versions.get(feedUrl) as PodcastVersion);
  }

  async #readVersions(feedUrls: readonly string[]): Promise<PodcastVersion[]> {
    const ids = feedUrls.map(idOfUrl);
    const rows = await this.#database.read(() => all<{ feed: unknown; checked_at: number }>(VERSIONS, keysOf(ids)));
    const times = new Map(rows.map(({ feed, checked_at }) => [idOf(feed), checked_at]));
    return ids.map((id) => ({ id, checkedAt: times.get(id) ?? 0 }));
  }

  async get(user: UserId, id: string): Promise<Podcast | undefined> {
    return (await this.#isSubscriber(user, id)) ? (await this.#find([id]))[0] : undefined;
  }

  async artwork(user: UserId, id: string, hash: string, size: ArtworkSize): Promise<Uint8Array | undefined> {
    if (!(await this.#isSubscriber(user, id))) return undefined;
    const sql = "select bytes from earmark.artwork where feed = $1 and size = $2 and hash = $3";
    const row = await this.#database.read(() => get<{ bytes: Uint8Array }>(sql, key(id), size, key(hash)));
    return row?.bytes;
  }

  async refresh(user: UserId, id: string, at: Date, minMs = MIN_REFRESH_MS): Promise<boolean> {
    if (!(await this.#isSubscriber(user, id))) return false;
    if ((await this.create([{ user, id }], at)).length === 0)
      await this.#database.write(SERVER, at, "refreshPodcast", id, minMs);
    return true;
  }

  async retry(failure: FailureCode, at: Date): Promise<void> {
    await this.#database.write(SERVER, at, "retryPodcasts", failure);
  }

  async changedFeeds(user: UserId, after: number, limit: number) {
    const sql = `select feed, feed_url, sequence from earmark.subscriptions where user_id = $1 and sequence > $2
      union all
      select feed, feed_url, update_sequence from earmark.subscriptions
      where user_id = $1 and update_sequence > $2 and update_sequence > 0
      order by 3 limit $3`;
    const rows = await this.#database.read(
      () => all<{ feed: unknown; feed_url: string; sequence: number }>(sql, user, after, limit),
      user,
    );
    return rows.map(({ feed, feed_url, sequence }) => ({ id: idOf(feed), feedUrl: feed_url, sequence }));
  }

  async create(subscribed: readonly SubscribedFeed[], at: Date): Promise<readonly string[]> {
    const { added, ids } = await this.#findNew(subscribed);
    if (added.length > 0) await this.#database.write(SERVER, at, "createPodcasts", ids, added);
    return ids;
  }

  /** Those that are not stored yet, and the ids among them of podcasts that do not exist. */
  async #findNew(
    subscribed: readonly SubscribedFeed[],
  ): Promise<{ readonly added: readonly SubscribedFeed[]; readonly ids: readonly string[] }> {
    if (this.#database.engine === "postgres") {
      const ids = [...new Set(subscribed.map(({ id }) => id))];
      const rows = ids.length === 0 ? [] : await this.#database.read(() => all(KNOWN, keysOf(ids)));
      const known = new Set(rows.map(({ feed }) => idOf(feed)));
      const added = subscribed.filter(({ id }) => !known.has(id));
      return { added, ids: [...new Set(added.map(({ id }) => id))] };
    }
    const rows: { id: string; user_id: UserId; known: number }[] = [];
    for await (const slice of slicesOf(subscribed))
      rows.push(...(await this.#database.read(() => all<(typeof rows)[number]>(UNKNOWN, JSON.stringify(slice)))));
    const missing = rows.filter(({ known }) => known === 0).map(({ id }) => id);
    return { added: rows.map(({ id, user_id }) => ({ user: user_id, id })), ids: [...new Set(missing)] };
  }

  async due(at: Date, after: Pick<DueFeed, "id" | "nextAt"> | undefined, limit: number): Promise<readonly DueFeed[]> {
    // The second condition is part of the third, but lets PostgreSQL use the index.
    const sql = `select feed, next_at, moved_to from earmark.podcasts
      where next_at <= $1 and next_at >= $2 and (next_at, feed) > ($2, $3) and lease_until <= $1
      order by next_at, feed limit $4`;
    const rows = await this.#database.read(() =>
      all<{ feed: unknown; next_at: number; moved_to: string | null }>(
        sql,
        at.getTime(),
        after?.nextAt ?? -1,
        key(after?.id ?? NO_FEED),
        limit,
      ),
    );
    return rows.map(({ feed, next_at, moved_to }) => ({ id: idOf(feed), nextAt: next_at, movedTo: moved_to }));
  }

  async subscribers(ids: readonly string[]): Promise<readonly (readonly FeedSubscriber[])[]> {
    const found = await this.#database.read(() =>
      together(...ids.map((id) => all<{ user_id: UserId; feed_url: string }>(SUBSCRIBERS, key(id)))),
    );
    return found.map((rows) => rows.map(({ user_id, feed_url }) => ({ user: user_id, feedUrl: feed_url })));
  }

  async subscribersAfter(id: string, after: UserId, limit: number): Promise<readonly UserId[]> {
    const rows = await this.#database.read(() => all<{ user_id: UserId }>(NEXT_SUBSCRIBERS, key(id), after, limit));
    return rows.map(({ user_id }) => user_id);
  }

  async findByTitle(id: string, title: string, after: UserId, limit: number) {
    const rows = await this.#database.read(() =>
      all<{ user_id: UserId; id: unknown }>(BY_TITLE, key(id), after, title, limit),
    );
    return rows.map((row) => ({ user: row.user_id, id: idOf(row.id) }));
  }

  isAnyActive(users: readonly UserId[], since: Date): Promise<boolean> {
    return this.#database.read(() => isAnyActive(users, since.getTime()));
  }

  async claim(id: string, at: Date, leaseUntil: Date): Promise<PodcastRecord | undefined> {
    const row = await this.#database.write(SERVER, at, "claimPodcast", id, leaseUntil.getTime());
    return row && toRecord(row);
  }

  record(id: string, leaseUntil: Date, record: PodcastRecord, artwork?: StoredArtwork): Promise<boolean> {
    return this.#database.write(SERVER, leaseUntil, "recordPodcast", id, leaseUntil.getTime(), record, artwork);
  }

  async subscriptionsAfter(last: SubscribedFeed | undefined, limit: number) {
    const rows = await this.#database.read(() =>
      all<{ user_id: UserId; feed: unknown }>(NEXT_SUBSCRIPTIONS, last?.user ?? -1, key(last?.id ?? NO_FEED), limit),
    );
    return rows.map(({ user_id, feed }) => ({ user: user_id, id: idOf(feed) }));
  }

  async eraseUnused(at: Date): Promise<void> {
    const unused = new Set<string>();
    const sql = `select feed from earmark.podcasts where feed > $1 order by feed limit ${CHECKED_AT_ONCE}`;
    for (let last: string | undefined = NO_FEED; last !== undefined && unused.size < MAX_ERASED; ) {
      const rows: readonly Row[] = await this.#database.read(() => all(sql, key(last as string)));
      const ids = rows.map(({ feed }) => idOf(feed));
      for (const id of await this.#findUnused(ids)) unused.add(id);
      last = ids.at(-1);
      await yieldTurn();
    }
    if (this.#database.engine === "sqlite") await this.#addUnknownSubscribers(unused, at);
    await this.#erase([...unused]);
  }

  /** Of podcasts that have no known subscriber; those that get one are removed from the set. */
  async #addUnknownSubscribers(unused: Set<string>, at: Date): Promise<void> {
    let last: SubscribedFeed | undefined;
    while (unused.size > 0) {
      const subscribed = await this.subscriptionsAfter(last, CHECKED_AT_ONCE);
      if (subscribed.length === 0) return;
      await this.create(
        subscribed.filter(({ id }) => unused.delete(id)),
        at,
      );
      last = subscribed.at(-1);
      await yieldTurn();
    }
  }

  /** Erases those of these podcasts that have no subscriber. */
  async eraseIfUnused(ids: readonly string[]): Promise<void> {
    for await (const some of slicesOf(ids, CHECKED_AT_ONCE)) await this.#erase(await this.#findUnused(some));
  }

  async #findUnused(ids: readonly string[]): Promise<readonly string[]> {
    if (ids.length === 0) return [];
    const find = this.#database.engine === "sqlite" ? findUnusedOnSqlite : findUnusedOnPostgres;
    return this.#database.read(() => find(ids));
  }

  async #erase(ids: readonly string[]): Promise<void> {
    for await (const some of slicesOf(ids, CHECKED_AT_ONCE))
      await this.#database.write(SERVER, new Date(), "erasePodcasts", some);
  }

  async counts(at: Date): Promise<PodcastCounts> {
    const counts = await this.#database.read(() => get<PodcastCounts>(COUNT_PODCASTS, at.getTime()));
    return { ...NO_PODCASTS, ...counts };
  }

  #isSubscriber(user: UserId, id: string): Promise<boolean> {
    return this.#database.read(() => has(IS_SUBSCRIBED, user, key(id)));
  }
}

/** Users without an account, or of an identity provider, always count. */
function* isAnyActive(users: readonly UserId[], since: number): Work<boolean> {
  const accounts = yield* all<{ issuer: string; created_at: number }>(
    "select issuer, created_at from earmark.accounts where user_id = any($1)",
    users,
  );
  if (accounts.length < users.length) return true;
  if (accounts.some(({ issuer, created_at }) => issuer !== "" || created_at >= since)) return true;
  for (const [table, seen] of [
    ["credentials", "greatest(used_at, created_at)"],
    ["devices", "synced_at"],
    ["sync_clients", "seen_at"],
  ]) {
    const sql = `select 1 from earmark.${table} where user_id = any($1) and ${seen} >= $2 limit 1`;
    if (yield* has(sql, users, since)) return true;
  }
  return false;
}
