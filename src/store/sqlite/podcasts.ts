import type { DatabaseSync, SQLInputValue } from "node:sqlite";
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
import { slicesOf, yieldTurn } from "../../util/turns.ts";
import { idKey, idOfKey } from "../shared/keys.ts";
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
import { wrapReadErrors } from "./file.ts";
import { Statements } from "./statements.ts";

/** A change to podcasts, as sent to the writer thread, which replies with the number of affected podcasts. */
export type PodcastChange =
  | { readonly kind: "create"; readonly subscribed: string; readonly at: number }
  | { readonly kind: "refresh"; readonly feed: Uint8Array; readonly at: number; readonly minMs: number }
  | { readonly kind: "claim"; readonly feed: Uint8Array; readonly at: number; readonly leaseUntil: number }
  | {
      readonly kind: "record";
      readonly feed: Uint8Array;
      readonly leaseUntil: number;
      readonly record: PodcastRecord;
      readonly artwork: StoredArtwork | undefined;
    }
  | { readonly kind: "erase-unused"; readonly feeds: readonly Uint8Array[] };

/** Rows to check per step when podcasts without subscribers are erased. */
const CHECKED_AT_ONCE = 1_000;
/** How many podcasts are erased at most; the next sweep erases the others. Their ids take about 10 MB. */
const MAX_ERASED = 100_000;

const UNUSED = "not exists (select 1 from subscribers as s where s.feed = podcasts.feed)";
const COLUMNS = RECORD_COLUMNS.join(", ");
const ORPHANED_ARTWORK = "not exists (select 1 from podcasts as p where p.feed = artwork.feed)";
/** A JSON array of `SubscribedFeed`, as a table: a statement for each would take twice the time. */
const SUBSCRIBED = `(select value as json, value ->> 'id' as id, unhex(value ->> 'id', '-') as feed, value ->> 'user' as user_id
  from json_each(?1)) as given`;
const CREATE = `insert into podcasts (feed, ${COLUMNS})
  select feed, ${RECORD_COLUMNS.map((_, index) => `?${index + 2}`).join(", ")} from ${SUBSCRIBED} where true
  on conflict do nothing`;
/** Without those whose subscription has been removed. */
const ADD_SUBSCRIBERS = `insert into subscribers (feed, user_id)
  select feed, user_id from ${SUBSCRIBED} cross join subscriptions using (user_id, feed) where true
  on conflict do nothing`;
const RECORD = `update podcasts set ${RECORD_COLUMNS.map((name) => `${name} = ?`).join(", ")}, lease_until = 0
  where feed = ? and lease_until = ?`;

/** Applies changes to podcasts inside the transaction of the writer thread. */
export class PodcastWriter {
  readonly #statements: Statements;

  constructor(database: DatabaseSync) {
    this.#statements = new Statements(database);
  }

  apply(change: PodcastChange): number {
    switch (change.kind) {
      case "create": {
        const created = this.#statements.run(CREATE, change.subscribed, ...toValues(newRecord(change.at), idKey));
        this.#statements.run(ADD_SUBSCRIBERS, change.subscribed);
        return created;
      }
      case "refresh":
        return this.#statements.run(
          `update podcasts set next_at = max(?2, not_before), artwork_at = 0
           where feed = ?1 and checked_at <= ?2 - ?3`,
          ...[change.feed, change.at, change.minMs],
        );
      case "claim":
        return this.#statements.run(
          "update podcasts set lease_until = ?3 where feed = ?1 and lease_until <= ?2 and next_at <= ?2",
          ...[change.feed, change.at, change.leaseUntil],
        );
      case "record":
        return this.#store(change);
      case "erase-unused":
        return sum(
          change.feeds.map((feed) => {
            const erased = this.#statements.run(`delete from podcasts where feed = ? and ${UNUSED}`, feed);
            this.#statements.run(`delete from artwork where feed = ? and ${ORPHANED_ARTWORK}`, feed);
            return erased;
          }),
        );
    }
  }

  #store({ feed, leaseUntil, record, artwork }: PodcastChange & { kind: "record" }): number {
    const stored = this.#statements.run(RECORD, ...toValues(record, idKey), feed, leaseUntil);
    if (stored === 0 || artwork === undefined) return stored;
    const add = "insert or replace into artwork (feed, size, hash, bytes) values (?, ?, ?, ?)";
    for (const size of ["small", "large"] as const)
      this.#statements.run(add, feed, size, idKey(artwork.hash), artwork[size]);
    return stored;
  }

  /** To be called before subscriptions of a deleted account are erased: erases what only they need. */
  eraseUsedOnlyBy(user: UserId, afterSequence: number): void {
    const ofUser = "feed in (select feed from subscriptions where user_id = ?1 and sequence > ?2)";
    this.#statements.run(
      `delete from podcasts where ${ofUser}
       and not exists (select 1 from subscribers as s where s.feed = podcasts.feed and s.user_id <> ?1)`,
      user,
      afterSequence,
    );
    this.#statements.run(`delete from artwork where ${ofUser} and ${ORPHANED_ARTWORK}`, user, afterSequence);
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** As text, because many small blobs cost more than the rest of the row. */
const PUBLIC = PUBLIC_COLUMNS.map((name) => (name === "artwork" ? "lower(hex(artwork))" : name)).join(", ");
/** Many at once: a statement for each would take twice the time. Each row ends with the index of its id. */
const FIND = `select ${PUBLIC}, key from json_each(?) cross join podcasts on feed = unhex(value, '-')`;
/** A left join keeps the order of `json_each`; sorting again would make up a quarter of the query's time. */
const VERSIONS = "select json_group_array(checked_at) from json_each(?) left join podcasts on feed = unhex(value, '-')";
/** Those that are not stored yet, and whether their feed has a record. */
const NEW_SUBSCRIBERS = `select json, id, exists (select 1 from podcasts as p where p.feed = given.feed)
  from ${SUBSCRIBED}
  where not exists (select 1 from subscribers as s where s.feed = given.feed and s.user_id = given.user_id)`;
const GET = `select ${PUBLIC} from podcasts where feed = ?`;
/** Names the index, because outdated statistics could make SQLite read a user's whole list instead. */
const SUBSCRIPTIONS = "subscribers cross join subscriptions indexed by subscriptions_by_feed using (user_id, feed)";
/** About 2 MB. */
const MAX_VERSIONS = 10_000;

type Row = (string | number | Uint8Array | null)[];

/** Podcasts in SQLite: read here, written by the writer thread. */
export class SqlitePodcasts implements PodcastStore {
  readonly #statements: Statements;
  readonly #write: (change: PodcastChange) => Promise<number>;
  /** Versions by feed URL, valid until the database changes: reading a hundred takes nearly as long as reading the page. */
  readonly #versions = new Map<string, PodcastVersion>();
  #dataVersion: unknown;

  constructor(database: DatabaseSync, write: (change: PodcastChange) => Promise<number>) {
    this.#statements = new Statements(database);
    this.#write = write;
  }

  async find(feedUrls: readonly string[]): Promise<Podcast[]> {
    const ids = feedUrls.map(idOfUrl);
    const rows: Row[] = [];
    for (const row of this.#all(FIND, JSON.stringify(ids))) rows[Number(row.at(-1))] = row;
    return ids.map((id, index) => toPublicPodcast(id, rows[index]));
  }

  async versions(feedUrls: readonly string[]): Promise<PodcastVersion[]> {
    // Read before the versions: if the database changes in between, they are forgotten by the next call.
    const [dataVersion] = this.#all("pragma data_version")[0] ?? [];
    if (dataVersion !== this.#dataVersion || this.#versions.size > MAX_VERSIONS) this.#versions.clear();
    this.#dataVersion = dataVersion;
    const unknown = feedUrls.filter((feedUrl) => !this.#versions.has(feedUrl));
    if (unknown.length > 0) {
      for (const [index, version] of this.#readVersions(unknown).entries())
        this.#versions.set(unknown[index] as string, version);
    }
    return feedUrls.map((feedUrl) => this.#versions.get(feedUrl) as PodcastVersion);
  }

  #readVersions(feedUrls: readonly string[]): PodcastVersion[] {
    const ids = feedUrls.map(idOfUrl);
    const [row] = this.#all(VERSIONS, JSON.stringify(ids));
    const times = JSON.parse(String(row?.[0])) as (number | null)[];
    return ids.map((id, index) => ({ id, checkedAt: times[index] ?? 0 }));
  }

  async get(user: UserId, id: string): Promise<Podcast | undefined> {
    return this.#isSubscriber(user, id) ? toPublicPodcast(id, this.#all(GET, idKey(id))[0]) : undefined;
  }

  async artwork(user: UserId, id: string, hash: string, size: ArtworkSize): Promise<Uint8Array | undefined> {
    if (!this.#isSubscriber(user, id)) return undefined;
    const sql = "select bytes from artwork where feed = ? and size = ? and hash = ?";
    const [row] = this.#all(sql, idKey(id), size, idKey(hash));
    return row?.[0] as Uint8Array | undefined;
  }

  async refresh(user: UserId, id: string, at: Date, minMs = MIN_REFRESH_MS): Promise<boolean> {
    if (!this.#isSubscriber(user, id)) return false;
    if ((await this.create([{ user, id }], at)).length === 0)
      await this.#write({ kind: "refresh", feed: idKey(id), at: at.getTime(), minMs });
    return true;
  }

  async changedFeeds(user: UserId, after: number, limit: number) {
    const rows = this.#all(
      `select feed, feed_url, sequence from subscriptions where user_id = ?1 and sequence > ?2
       union all
       select feed, feed_url, update_sequence from subscriptions
       where user_id = ?1 and update_sequence > ?2 and update_sequence > 0
       order by 3 limit ?3`,
      user,
      after,
      limit,
    );
    return rows.map(([feed, feedUrl, sequence]) => ({
      id: idOfKey(feed as Uint8Array),
      feedUrl: String(feedUrl),
      sequence: Number(sequence),
    }));
  }

  async create(subscribed: readonly SubscribedFeed[], at: Date): Promise<readonly string[]> {
    const rows: Row[] = [];
    for await (const slice of slicesOf(subscribed)) rows.push(...this.#all(NEW_SUBSCRIBERS, JSON.stringify(slice)));
    if (rows.length === 0) return [];
    const added = rows.map(([json]) => json).join();
    await this.#write({ kind: "create", subscribed: `[${added}]`, at: at.getTime() });
    return [...new Set(rows.filter(([, , isKnown]) => isKnown === 0).map(([, id]) => String(id)))];
  }

  async due(at: Date, after: Pick<DueFeed, "id" | "nextAt"> | undefined, limit: number): Promise<readonly DueFeed[]> {
    const rows = this.#all(
      `select feed, next_at, moved_to from podcasts
       where next_at <= ?1 and (next_at, feed) > (?2, ?3) and lease_until <= ?1 order by next_at, feed limit ?4`,
      at.getTime(),
      after?.nextAt ?? -1,
      after === undefined ? Buffer.alloc(0) : idKey(after.id),
      limit,
    );
    return rows.map(([feed, nextAt, movedTo]) => ({
      id: idOfKey(feed as Uint8Array),
      nextAt: Number(nextAt),
      movedTo: movedTo as string | null,
    }));
  }

  async subscribers(ids: readonly string[]): Promise<readonly (readonly FeedSubscriber[])[]> {
    const sql = `select user_id, feed_url from ${SUBSCRIPTIONS} where feed = ? limit ${MAX_SUBSCRIBERS_READ}`;
    return ids.map((id) =>
      this.#all(sql, idKey(id)).map(([user, feedUrl]) => ({ user: Number(user), feedUrl: String(feedUrl) })),
    );
  }

  async findByTitle(id: string, title: string, after: UserId, limit: number) {
    const sql = `select user_id, id from ${SUBSCRIPTIONS} where feed = ? and user_id > ? and title = ?
      order by user_id limit ?`;
    return this.#all(sql, idKey(id), after, title, limit).map(([user, subscription]) => ({
      user: Number(user),
      id: idOfKey(subscription as Uint8Array),
    }));
  }

  async isAnyActive(users: readonly UserId[], since: Date): Promise<boolean> {
    const sql = `select 1 where not exists (select 1 from accounts where user_id = ?1)
      or exists (select 1 from accounts where user_id = ?1 and (issuer <> '' or created_at >= ?2))
      or exists (select 1 from credentials where user_id = ?1 and max(used_at, created_at) >= ?2)
      or exists (select 1 from devices where user_id = ?1 and synced_at >= ?2)
      or exists (select 1 from sync_clients where user_id = ?1 and seen_at >= ?2)`;
    return users.some((user) => this.#all(sql, user, since.getTime()).length > 0);
  }

  async claim(id: string, at: Date, leaseUntil: Date): Promise<PodcastRecord | undefined> {
    const feed = idKey(id);
    const claimed = await this.#write({ kind: "claim", feed, at: at.getTime(), leaseUntil: leaseUntil.getTime() });
    if (claimed === 0) return undefined;
    const [row] = this.#all(`select ${COLUMNS} from podcasts where feed = ?`, feed);
    return row && toRecord(row);
  }

  async record(id: string, leaseUntil: Date, record: PodcastRecord, artwork?: StoredArtwork): Promise<boolean> {
    return (
      (await this.#write({ kind: "record", feed: idKey(id), leaseUntil: leaseUntil.getTime(), record, artwork })) > 0
    );
  }

  async subscriptionsAfter(last: SubscribedFeed | undefined, limit: number) {
    const rows = this.#all(
      `select user_id, feed from subscriptions indexed by subscriptions_by_feed where (user_id, feed) > (?, ?)
       order by user_id, feed limit ?`,
      last?.user ?? -1,
      last === undefined ? Buffer.alloc(0) : idKey(last.id),
      limit,
    );
    return rows.map(([user, feed]) => ({ user: Number(user), id: idOfKey(feed as Uint8Array) }));
  }

  async eraseUnused(at: Date): Promise<void> {
    const unused = await this.#withoutKnownSubscribers();
    let last: SubscribedFeed | undefined;
    while (unused.size > 0) {
      const subscribed = await this.subscriptionsAfter(last, CHECKED_AT_ONCE);
      if (subscribed.length === 0) break;
      await this.create(
        subscribed.filter(({ id }) => unused.delete(id)),
        at,
      );
      last = subscribed.at(-1);
      await yieldTurn();
    }
    for await (const ids of slicesOf([...unused], CHECKED_AT_ONCE))
      await this.#write({ kind: "erase-unused", feeds: ids.map(idKey) });
  }

  async #withoutKnownSubscribers(): Promise<Set<string>> {
    const ids = new Set<string>();
    let last: Uint8Array | undefined = Buffer.alloc(0);
    while (last !== undefined && ids.size < MAX_ERASED) {
      const rows = this.#all(
        `select feed, ${UNUSED} from podcasts where feed > ? order by feed limit ${CHECKED_AT_ONCE}`,
        last,
      );
      for (const [feed, isUnused] of rows) if (isUnused === 1) ids.add(idOfKey(feed as Uint8Array));
      last = rows.at(-1)?.[0] as Uint8Array | undefined;
      await yieldTurn();
    }
    return ids;
  }

  async counts(at: Date): Promise<PodcastCounts> {
    return toCounts(this.#all(countQuery("podcasts", "?"), at.getTime())[0]);
  }

  #isSubscriber(user: UserId, id: string): boolean {
    return this.#all("select 1 from subscriptions where user_id = ? and feed = ?", user, idKey(id)).length > 0;
  }

  #all(sql: string, ...values: SQLInputValue[]): Row[] {
    return wrapReadErrors(() => this.#statements.all<Row>(sql, ...values));
  }
}
