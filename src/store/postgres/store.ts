import type { AccountStore } from "../../accounts/account-store.ts";
import type { AdministrationStore } from "../../accounts/administration-store.ts";
import { AccessRevoked, type Caller, type UserId } from "../../accounts/caller.ts";
import type { AlertStore } from "../../alerts/alert-store.ts";
import type { AppStore } from "../../apps/app-store.ts";
import type { LinkStore } from "../../links/link-store.ts";
import type { ChangeRows, ListPosition } from "../../lists/changes.ts";
import {
  DETAIL_COLUMNS,
  DETAIL_NAMES,
  type StoredDetails,
  storedDetailsFrom,
  withDetails,
} from "../../lists/details.ts";
import { feedKeyHex } from "../../lists/feed-url.ts";
import type { HistoryStore } from "../../lists/history-store.ts";
import { type ChangeResult, type KeyedChange, toOutcome, toTold } from "../../lists/list.ts";
import type { ItemBatch, OnChange, Page } from "../../lists/list-store.ts";
import type { Told } from "../../lists/moves.ts";
import type { Change, MoveChange, Outcome, RemovedSubscription, Subscription } from "../../lists/subscription.ts";
import type { DuplicateStore } from "../../podcasts/duplicates.ts";
import type { LookStore } from "../../podcasts/look-store.ts";
import type { PodcastStore } from "../../podcasts/podcast-store.ts";
import type { TitleStore } from "../../podcasts/title-store.ts";
import type { PageRange } from "../../util/page-range.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import type { ConnectionCounts, DatabaseFacts, Store } from "../shared/contract.ts";
import { DELETED } from "../shared/keys.ts";
import { displayNameOf, type MigrateOptions, type StoreOptions } from "../shared/options.ts";
import { assertPageComplete } from "../shared/page.ts";
import { removalsQuery, toRemoval } from "../shared/removals.ts";
import { sampleQuery, toSample } from "../shared/sample.ts";
import type { StoreSample } from "../shared/size.ts";
import { WriteQueue } from "../shared/write-queue.ts";
import { SqlAccounts } from "../sql/accounts.ts";
import { SqlAdministration } from "../sql/administration.ts";
import { SqlAlerts } from "../sql/alerts.ts";
import { SqlApps } from "../sql/apps.ts";
import { SqlDuplicates } from "../sql/duplicates.ts";
import { SqlHistory } from "../sql/history.ts";
import { SqlLinks } from "../sql/links.ts";
import { SqlMoves } from "../sql/moves.ts";
import { SqlPodcasts } from "../sql/podcasts.ts";
import { SqlTitles } from "../sql/titles.ts";
import { distribute } from "./cluster.ts";
import { namedStatement, Postgres } from "./connection.ts";
import { PostgresDatabase } from "./database.ts";
import { isSchemaCurrent, prepareDatabase, readEpoch, renewEpoch } from "./schema.ts";
import { type Job, type JobResult, ListWriter } from "./writer.ts";

/** The size is a double: a bigint would be read as a string. It is null on a cluster. */
const DESCRIBE = `select current_setting('server_version') as version,
  case when not exists (select 1 from pg_extension where extname = 'citus')
    then pg_database_size(current_database())::float8 end as bytes`;

export async function openPostgres(url: string, options: StoreOptions): Promise<Store> {
  const postgres = new Postgres(url, options.connections);
  try {
    const warnings = await prepareDatabase(postgres, displayNameOf(url), options.onWaiting);
    for (const warning of warnings) options.onWarning?.(warning);
    await postgres.watchNodes();
    return new PostgresStore(postgres, await postgres.use(readEpoch), options);
  } catch (error) {
    await postgres.close();
    throw error;
  }
}

export async function preparePostgres(
  url: string,
  options: MigrateOptions,
): Promise<{ readonly distributed: readonly string[] | undefined }> {
  const postgres = new Postgres(url, 1, { hasLongTimeouts: true });
  try {
    await prepareDatabase(postgres, displayNameOf(url));
    if (options.newEpoch === true) await postgres.use(renewEpoch);
    return { distributed: options.distribute ? await postgres.use(distribute) : undefined };
  } finally {
    await postgres.close();
  }
}

class PostgresStore implements Store {
  readonly epoch: Uint8Array;
  readonly accounts: AccountStore;
  readonly administration: AdministrationStore;
  readonly alerts: AlertStore;
  readonly apps: AppStore;
  readonly links: LinkStore;
  readonly podcasts: PodcastStore;
  readonly moves: LookStore;
  readonly duplicates: DuplicateStore;
  readonly history: HistoryStore;
  readonly titles: TitleStore;
  readonly connections: () => ConnectionCounts;
  readonly #postgres: Postgres;
  readonly #options: StoreOptions;
  readonly #writer: ListWriter;
  /** One per user with pending writes, so that each user uses at most one connection and does not wait for others. */
  readonly #queues = new Map<UserId, WriteQueue<Job, JobResult>>();
  #onChange: OnChange = () => undefined;
  #closing: Promise<void> | undefined;

  constructor(postgres: Postgres, epoch: Uint8Array, options: StoreOptions) {
    this.epoch = epoch;
    this.#postgres = postgres;
    this.#options = options;
    this.#writer = new ListWriter(postgres);
    const database = new PostgresDatabase(postgres);
    const podcasts = new SqlPodcasts(database);
    this.accounts = new SqlAccounts(database, (ids) => podcasts.eraseIfUnused(ids));
    this.administration = new SqlAdministration(database);
    this.alerts = new SqlAlerts(database);
    this.apps = new SqlApps(database);
    this.links = new SqlLinks(database);
    this.podcasts = podcasts;
    this.moves = new SqlMoves(database);
    this.duplicates = new SqlDuplicates(database);
    this.history = new SqlHistory(database);
    this.titles = new SqlTitles(database);
    this.connections = () => postgres.connections;
  }

  async change(
    caller: Caller,
    changes: readonly Change[],
    at: Date,
  ): Promise<{ outcomes: Outcome[]; sequenceBefore: number; sequence: number }> {
    const { results, sequenceBefore, sequence } = await this.#change(caller, changes, at);
    const toOutcomes = (each: ChangeResult<string>, index: number) =>
      toOutcome(changes[index] as Change, each, at, caller.maxSubscriptions);
    return { outcomes: results.map(toOutcomes), sequenceBefore, sequence };
  }

  async move(caller: Caller, change: MoveChange, at: Date): Promise<Told> {
    const { results } = await this.#change(caller, [change], at);
    return toTold(results[0]);
  }

  async #change(caller: Caller, changes: readonly (Change | MoveChange)[], at: Date) {
    const { user } = caller;
    const result = await this.#push(user, { changes: changes.map(toKeys), at: at.getTime(), caller });
    if (result.kind === "access-revoked") throw new AccessRevoked();
    if (result.sequence > result.sequenceBefore) this.#onChange(user, result);
    return result;
  }

  forgetRemovals(before: Date): Promise<void> {
    return this.#writer.forgetRemovals(before);
  }

  async find(user: UserId, keys: Parameters<Store["find"]>[1]): Promise<(Subscription | undefined)[]> {
    const ids = keys.flatMap((key) => (key.kind === "id" ? key.id : []));
    const feeds = keys.flatMap((key) => (key.kind === "feed" ? feedKeyHex(key.normalizedUrl) : []));
    const columns = `id, feed_url, subscribed_at, ${DETAIL_COLUMNS}, replace(feed::text, '-', '') as feed`;
    const { rows } = await this.#postgres.retry(
      (connection) =>
        connection.query<ItemRow & { feed: string }>(
          `select ${columns} from earmark.subscriptions where user_id = $1 and id = any($2::uuid[])
         union
         select ${columns} from earmark.subscriptions where user_id = $1 and feed = any($3::uuid[])
         union
         select ${columns.replace("replace(feed", "replace(u.feed")} from earmark.feed_urls as u
         join earmark.subscriptions as s on s.user_id = u.user_id and s.feed = u.target
         where u.user_id = $1 and s.user_id = $1 and u.feed = any($3::uuid[]) and u.is_shown = 1 and u.leads <> 'self'
           and not (u.leads = 'no' and exists (select 1 from earmark.refused_moves as r
             where r.user_id = $1 and r.feed = u.target and r.target = u.feed))`,
          [user, ids, feeds],
        ),
      user,
    );
    const found = new Map(rows.flatMap((row) => [row.id, row.feed].map((key) => [key, toSubscription(row)] as const)));
    return keys.map((key) => found.get(key.kind === "id" ? key.id.toLowerCase() : feedKeyHex(key.normalizedUrl)));
  }

  page(user: UserId, { offset, size }: PageRange): Promise<Page> {
    return this.#postgres.retry(async (connection) => {
      const { rows } = await connection.query({ ...this.#postgres.toQuery(PAGE), values: [user, size, offset] });
      const { sequence, total, items } = rows[0];
      // Some items of a deleted account may not have been erased yet.
      if (Number(sequence) === DELETED) return { items: [], total: 0, sequence: 0 };
      assertPageComplete(items?.length ?? 0, { offset, size }, Number(total));
      return { items: (items ?? []).map(fromJsonItem), total: Number(total), sequence: Number(sequence) };
    }, user);
  }

  async itemsAfter(user: UserId, after: number, size: number): Promise<ItemBatch> {
    const { rows } = await this.#postgres.retry(
      (connection) =>
        connection.query<ItemRow & { list_sequence: string }>(
          `select s.sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS}, l.sequence as list_sequence
         from earmark.subscriptions as s join earmark.lists as l using (user_id)
         where user_id = $1 and s.sequence > $2 and l.sequence <> ${DELETED} order by s.sequence limit $3`,
          [user, after, size],
        ),
      user,
    );
    const last = rows.at(-1);
    return {
      items: rows.map(toSubscription),
      last: Number(last?.sequence ?? after),
      sequence: Number(last?.list_sequence ?? after),
    };
  }

  async sequences(users: readonly UserId[]): Promise<number[]> {
    const { rows } = await this.#postgres.retry((connection) =>
      connection.query({ ...this.#postgres.toQuery(SEQUENCES), values: [users] }),
    );
    const found = new Map(rows.map(({ user_id, sequence }) => [Number(user_id), Math.max(0, Number(sequence))]));
    return users.map((user) => found.get(user) ?? 0);
  }

  readChanges(user: UserId, position: ListPosition, limit: number): Promise<ChangeRows> {
    return this.#postgres.retry(async (connection) => {
      const values = [user, position.sequence, position.removalsAfter, limit + 1];
      const { rows } = await connection.query({ ...this.#postgres.toQuery(CHANGES), values });
      return toChangeRows(rows[0]);
    }, user);
  }

  async removals(user: UserId, limit: number): Promise<RemovedSubscription[]> {
    const { rows } = await this.#postgres.retry(
      (connection) => connection.query({ ...this.#postgres.toQuery(REMOVALS), values: [user, limit] }),
      user,
    );
    return rows.map((row) => toRemoval(row, row.id));
  }

  watch(onChange: OnChange): void {
    this.#onChange = onChange;
  }

  async sample(size: number): Promise<StoreSample> {
    const { rows } = await this.#postgres.retry((connection) => connection.query(sampleQuery("earmark."), [size]));
    return toSample(rows[0]);
  }

  async describeDatabase(): Promise<DatabaseFacts> {
    const { rows } = await this.#postgres.retry((connection) => connection.query(DESCRIBE));
    const { version, bytes } = rows[0];
    return { engine: bytes === null ? "citus" : "postgresql", version, bytes: bytes ?? undefined };
  }

  async ready(): Promise<void> {
    const isReady = await this.#postgres.retry(isSchemaCurrent);
    if (!isReady) throw new StoreUnavailable("the database has a different schema version");
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.whenIdle()));
    await this.#postgres.close();
  }

  #push(user: UserId, job: Job): Promise<JobResult> {
    if (this.#closing !== undefined) throw new StoreUnavailable("the store is closed");
    const operations = job.changes.length;
    const existing = this.#queues.get(user);
    if (existing !== undefined) return existing.push(job, operations, user);
    const queue = new WriteQueue<Job, JobResult>((jobs) => this.#writer.write(user, jobs), this.#options.onCommit);
    this.#queues.set(user, queue);
    const result = queue.push(job, operations, user);
    void this.#dropWhenIdle(user, queue);
    return result;
  }

  async #dropWhenIdle(user: UserId, queue: WriteQueue<Job, JobResult>): Promise<void> {
    while (!queue.isIdle) await queue.whenIdle();
    this.#queues.delete(user);
  }
}

function toKeys(change: Change | MoveChange): KeyedChange<string> {
  if (change.kind === "add" || change.kind === "remove-feed")
    return { ...change, feed: feedKeyHex(change.normalizedUrl) };
  if (change.kind !== "update") return change;
  return change.normalizedUrl === undefined ? change : { ...change, feed: feedKeyHex(change.normalizedUrl) };
}

interface ItemRow extends StoredDetails {
  readonly sequence: string;
  readonly id: string;
  readonly feed_url: string;
  readonly subscribed_at: string;
}

const ITEM = `select sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS} from earmark.subscriptions`;

function toSubscription(row: ItemRow): Subscription {
  const { id, feed_url, subscribed_at } = row;
  return withDetails({ id, feedUrl: feed_url, subscribedAt: new Date(Number(subscribed_at)) }, row);
}

/**
 * One statement, so that everything comes from one snapshot. One JSON text costs the driver much less than many rows. As
 * long as no number was used for anything but an addition, the offset is a sequence number. Without the upper bound
 * PostgreSQL would plan the statement each time.
 */
const PAGE = namedStatement(`
  with list as (select sequence, total, case when sequence = total then $3::bigint else 0 end as skipped,
      case when sequence = total then $3::bigint + $2::bigint else sequence end as until
    from earmark.lists where user_id = $1)
  select (select sequence from list) as sequence, (select total from list) as total,
    (select json_agg(case when coalesce(${DETAIL_COLUMNS}) is null then json_build_array(id, feed_url, subscribed_at)
        else json_build_array(id, feed_url, subscribed_at, ${DETAIL_COLUMNS}) end order by sequence) from (
      select sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS} from earmark.subscriptions
      where user_id = $1 and sequence > (select skipped from list) and sequence <= (select until from list)
      order by sequence limit $2 offset (select $3::bigint - skipped from list)) as page) as items`);

type JsonItem = readonly [id: string, feedUrl: string, subscribedAt: number, ...details: (string | null)[]];

function fromJsonItem(item: JsonItem): Subscription {
  const [id, feedUrl, at] = item;
  const details = storedDetailsFrom(item as readonly string[], 3);
  return withDetails({ id, feedUrl, subscribedAt: new Date(at) }, details);
}

const REMOVALS = namedStatement(removalsQuery("earmark."));

const SEQUENCES = namedStatement("select user_id, sequence from earmark.lists where user_id = any($1::bigint[])");

/**
 * One statement, so that everything comes from one snapshot. A deleted account has no items and no removals. Without the
 * upper bounds PostgreSQL would estimate that a third of the list matches, and plan the statement each time.
 */
const CHANGES = namedStatement(`
  with list as (select sequence, forgotten_sequence from earmark.lists where user_id = $1 and sequence <> ${DELETED})
  select (select sequence from list) as sequence, (select forgotten_sequence from list) as forgotten_sequence,
    (select json_agg(json_build_array(sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS})) from (
      ${ITEM}
      where user_id = $1 and sequence > $2 and sequence <= (select sequence from list) and update_sequence = 0
      order by sequence limit $4) as added) as added,
    (select json_agg(json_build_array(update_sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS}, sequence)) from (
      select update_sequence, id, feed_url, subscribed_at, ${DETAIL_COLUMNS}, sequence from earmark.subscriptions
      where user_id = $1 and update_sequence > $2 and update_sequence > 0 and update_sequence <= (select sequence from list)
      order by update_sequence limit $4) as updated) as updated,
    (select json_agg(json_build_array(sequence, added_sequence, id, feed_url)) from (
      select sequence, added_sequence, id, feed_url from earmark.removals
      where user_id = $1 and sequence > $3 and sequence <= (select sequence from list)
      order by sequence limit $4) as removed) as removed`);

interface ChangesRow {
  readonly sequence: string | null;
  readonly forgotten_sequence: string | null;
  readonly added: readonly [sequence: number, ...item: JsonItem][] | null;
  readonly updated: readonly [sequence: number, ...item: JsonItem][] | null;
  readonly removed: readonly [sequence: number, addedSequence: number, id: string, feedUrl: string][] | null;
}

function toChangeRows(row: ChangesRow): ChangeRows {
  const items = [...(row.added ?? []), ...(row.updated ?? [])];
  return {
    sequence: Number(row.sequence ?? 0),
    forgottenSequence: Number(row.forgotten_sequence ?? 0),
    changed: items.map(([sequence, ...item]) => {
      const addedSequence = Number(item[3 + DETAIL_NAMES.length] ?? sequence);
      return { kind: "changed", sequence, addedSequence, item: fromJsonItem(item) };
    }),
    removals: (row.removed ?? []).map(([sequence, addedSequence, id, feedUrl]) => ({
      kind: "removed",
      sequence,
      addedSequence,
      id,
      feedUrl,
    })),
  };
}
