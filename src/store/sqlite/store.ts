import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type AccountStore, NOBODY } from "../../accounts/account-store.ts";
import type { AdministrationStore } from "../../accounts/administration-store.ts";
import { AccessRevoked, type Caller, type UserId } from "../../accounts/caller.ts";
import type { AlertStore } from "../../alerts/alert-store.ts";
import type { AppStore } from "../../apps/app-store.ts";
import type { LinkStore } from "../../links/link-store.ts";
import type { ChangeRows, ListPosition } from "../../lists/changes.ts";
import { DETAIL_COLUMNS, DETAIL_NAMES, storedDetailsFrom, withDetails } from "../../lists/details.ts";
import type { HistoryStore } from "../../lists/history-store.ts";
import { toOutcome, toTold } from "../../lists/list.ts";
import type { ItemBatch, OnChange, Page } from "../../lists/list-store.ts";
import type { Told } from "../../lists/moves.ts";
import type { Change, MoveChange, RemovedSubscription, Subscription } from "../../lists/subscription.ts";
import type { DuplicateStore } from "../../podcasts/duplicates.ts";
import type { LookStore } from "../../podcasts/look-store.ts";
import type { PodcastStore } from "../../podcasts/podcast-store.ts";
import type { TitleStore } from "../../podcasts/title-store.ts";
import type { PageRange } from "../../util/page-range.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import type { DatabaseFacts, Store } from "../shared/contract.ts";
import type { Work, Writes } from "../shared/database.ts";
import { DELETED, feedKey, idKey, idOfKey } from "../shared/keys.ts";
import type { StoreOptions } from "../shared/options.ts";
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
import { WRITES } from "../sql/writes.ts";
import { Runner, SqliteDatabase } from "./database.ts";
import { cannotOpen, claimAndMigrate, openConnection, shareFile, wrapReadErrors } from "./file.ts";
import {
  callerOf,
  type GroupWriter,
  type Job,
  type JobResult,
  receive,
  type SentResult,
  type WriteFailure,
} from "./jobs.ts";
import { isSchemaCurrent, readEpoch } from "./schema.ts";
import { WriterThread } from "./writer-thread.ts";

const DESCRIBE =
  "select sqlite_version() as version, page_count * page_size as bytes from pragma_page_count(), pragma_page_size()";

const CACHE_KIB = 16 * 1024;

/**
 * In a server one thread writes and this one reads: with a write-ahead log neither waits for the other. A command has
 * nothing else to do while it writes, and starting a thread would take a quarter of its time.
 */
export async function openSqlite(path: string, options: StoreOptions): Promise<Store> {
  const isCommand = options.allowRunningServer === true;
  const release = isCommand ? shareFile(path) : claimAndMigrate(path);
  let writer: GroupWriter | undefined;
  try {
    writer = isCommand ? new (await import("./writer.ts")).SqliteWriter(path) : new WriterThread(path);
    return new SqliteStore(new Reader(path), writer, options, release);
  } catch (error) {
    // A running thread keeps the process alive.
    await writer?.close();
    release();
    throw cannotOpen(path, error);
  }
}

class SqliteStore implements Store {
  readonly epoch: Uint8Array;
  readonly accounts: AccountStore;
  /** Accounts as administrators see and change them. */
  readonly administration: AdministrationStore;
  readonly alerts: AlertStore;
  readonly apps: AppStore;
  readonly links: LinkStore;
  readonly podcasts: PodcastStore;
  readonly moves: LookStore;
  readonly duplicates: DuplicateStore;
  readonly history: HistoryStore;
  readonly titles: TitleStore;
  readonly connections = undefined;
  readonly #reader: Reader;
  readonly #writer: GroupWriter;
  readonly #queue: WriteQueue<Job, JobResult>;
  readonly #release: () => void;
  /** Whether the last group, or a part of it, failed. */
  #hasFailed = false;
  #onChange: OnChange = () => undefined;
  #closing: Promise<void> | undefined;

  constructor(reader: Reader, writer: GroupWriter, options: StoreOptions, release: () => void) {
    this.epoch = readEpoch(reader.database);
    this.#reader = reader;
    this.#writer = writer;
    this.#queue = new WriteQueue((jobs) => this.#writeGroup(jobs), options.onCommit);
    this.#release = release;
    const database = new SqliteDatabase(
      (work) => reader.run(work),
      (job) => this.#write(job),
    );
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
  }

  async change(caller: Caller, changes: readonly Change[], at: Date): ReturnType<Store["change"]> {
    const { results, sequenceBefore, sequence } = await this.#change(caller, changes, at);
    const toOutcomes = (result: SentResult, index: number) =>
      toOutcome(changes[index] as Change, receive(result), at, caller.maxSubscriptions);
    return { outcomes: results.map(toOutcomes), sequenceBefore, sequence };
  }

  async move(caller: Caller, change: MoveChange, at: Date): Promise<Told> {
    const { results } = await this.#change(caller, [change], at);
    return toTold(results[0]);
  }

  async #change(caller: Caller, changes: readonly (Change | MoveChange)[], at: Date) {
    const done = await this.#write({ kind: "change", caller: callerOf(caller), at: at.getTime(), changes });
    if (done.kind !== "changed") throw new Error("the writer replied to another job");
    if (done.sequence > done.sequenceBefore) this.#onChange(caller.user, done);
    return done;
  }

  async forgetRemovals(before: Date): Promise<void> {
    for (let erased: unknown; erased !== 0; ) {
      const done = await this.#write({ kind: "forget", before: before.getTime() });
      erased = done.kind === "done" ? done.value : 0;
    }
  }

  async #write(job: Job): Promise<Exclude<JobResult, { kind: "access-revoked" }>> {
    if (this.#closing !== undefined) throw new StoreUnavailable("the store is closed");
    const { user, operations } = placeOf(job);
    const result = await this.#queue.push(job, operations, user);
    if (result.kind === "access-revoked") throw new AccessRevoked();
    return result;
  }

  async #writeGroup(jobs: readonly Job[]): Promise<readonly (JobResult | Error)[]> {
    const result = await this.#writer.write(jobs);
    this.#hasFailed = result.kind === "failed" || result.results.some(({ kind }) => kind === "failed");
    if (result.kind === "failed") throw toError(result);
    return result.results.map((each) => (each.kind === "failed" ? toError(each) : each));
  }

  async find(user: UserId, keys: Parameters<Store["find"]>[1]): Promise<(Subscription | undefined)[]> {
    return wrapReadErrors(() => this.#reader.find(user, keys));
  }

  async page(user: UserId, window: PageRange): Promise<Page> {
    return wrapReadErrors(() => this.#reader.page(user, window));
  }

  async itemsAfter(user: UserId, after: number, size: number): Promise<ItemBatch> {
    return wrapReadErrors(() => this.#reader.itemsAfter(user, after, size));
  }

  async sequences(users: readonly UserId[]): Promise<number[]> {
    return wrapReadErrors(() => this.#reader.sequences(users));
  }

  async readChanges(
    user: UserId,
    position: ListPosition,
    limit: number,
    maxChars = Number.POSITIVE_INFINITY,
  ): Promise<ChangeRows> {
    return wrapReadErrors(() => this.#reader.readChanges(user, position, limit, maxChars));
  }

  async removals(user: UserId, limit: number): Promise<RemovedSubscription[]> {
    const read = () => this.#reader.database.prepare(removalsQuery("")).all({ $1: user, $2: limit });
    return wrapReadErrors(read).map((row) => toRemoval(row, idOfKey(row["id"] as Uint8Array)));
  }

  watch(onChange: OnChange): void {
    this.#onChange = onChange;
  }

  async sample(size: number): Promise<StoreSample> {
    return wrapReadErrors(() => toSample(this.#reader.database.prepare(sampleQuery("")).get({ $1: size })));
  }

  async describeDatabase(): Promise<DatabaseFacts> {
    const row = wrapReadErrors(() => this.#reader.database.prepare(DESCRIBE).get());
    return { engine: "sqlite", version: String(row?.["version"]), bytes: Number(row?.["bytes"]) };
  }

  async ready(): Promise<void> {
    wrapReadErrors(() => this.#reader.check());
    if (this.#hasFailed) await this.#write({ kind: "probe" });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#queue.whenIdle();
    // The last connection to close removes the log, and only the writer can.
    this.#reader.close();
    await this.#writer.close();
    this.#release();
  }
}

function toError({ failure, isOutcomeUnknown }: WriteFailure): StoreUnavailable {
  const message = isOutcomeUnknown ? "the outcome of a write is unknown" : "cannot write to the database";
  return new StoreUnavailable(message, { cause: failure, isOutcomeUnknown });
}

/** Whose queue a job belongs to, and as how many operations it counts: cleaning up is none. */
function placeOf(job: Job): { readonly user: UserId; readonly operations: number } {
  if (job.kind === "change") return { user: job.caller.user, operations: job.changes.length };
  if (job.kind !== "call") return { user: NOBODY, operations: 0 };
  const write: Writes[string] = WRITES[job.name];
  return {
    user: write.user?.(...job.args) ?? job.caller.user,
    operations: write.operations?.(...job.args) ?? 1,
  };
}

type ItemRow = [id: Uint8Array, feedUrl: string, subscribedAt: number, sequence: number, ...details: (string | null)[]];
const DETAILS_START = 4;
type RemovalRow = [id: Uint8Array, feedUrl: string, addedSequence: number, sequence: number];

const ITEM = `select id, feed_url, subscribed_at, sequence, ${DETAIL_COLUMNS} from subscriptions`;

class Reader {
  readonly database: DatabaseSync;
  readonly #runner: Runner;
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  readonly #list: StatementSync;
  readonly #page: StatementSync;
  readonly #after: StatementSync;
  readonly #byId: StatementSync;
  readonly #byFeed: StatementSync;
  readonly #byFormer: StatementSync;
  readonly #added: StatementSync;
  readonly #updated: StatementSync;
  readonly #removed: StatementSync;

  constructor(path: string) {
    this.database = openConnection(path, { readOnly: true, cacheKiB: CACHE_KIB });
    this.#runner = new Runner(this.database);
    const prepare = (sql: string) => {
      const statement = this.database.prepare(sql);
      statement.setReturnArrays(true);
      return statement;
    };
    this.#begin = prepare("begin");
    this.#end = prepare("commit");
    this.#list = prepare("select sequence, total, forgotten_sequence from lists where user_id = ?");
    this.#page = prepare(`${ITEM} where user_id = ? and sequence > ? order by sequence limit ? offset ?`);
    this.#after = prepare(`${ITEM} where user_id = ? and sequence > ? order by sequence limit ?`);
    this.#byId = prepare(`${ITEM} where user_id = ? and id = ?`);
    this.#byFeed = prepare(`${ITEM} where user_id = ? and feed = ?`);
    this.#byFormer = prepare(
      `${ITEM} where user_id = ?1 and feed = (select target from feed_urls as u
         where user_id = ?1 and feed = ?2 and is_shown = 1 and not (leads = 'no' and exists (
           select 1 from refused_moves as r where r.user_id = ?1 and r.feed = u.target and r.target = u.feed)))`,
    );
    this.#added = prepare(
      `${ITEM} where user_id = ? and sequence > ? and update_sequence = 0 order by sequence limit ?`,
    );
    this.#updated = prepare(
      `select id, feed_url, subscribed_at, update_sequence, ${DETAIL_COLUMNS}, sequence from subscriptions
       where user_id = ? and update_sequence > ? and update_sequence > 0 order by update_sequence limit ?`,
    );
    this.#removed = prepare(
      `select id, feed_url, added_sequence, sequence from removals
       where user_id = ? and sequence > ? order by sequence limit ?`,
    );
  }

  run<T>(work: Work<T>): T {
    return this.snapshot(() => this.#runner.run(work));
  }

  find(user: UserId, keys: Parameters<Store["find"]>[1]): (Subscription | undefined)[] {
    // One transaction, because each statement by itself would have to lock the file.
    return this.snapshot(() =>
      keys.map((key) => {
        const feed = key.kind === "feed" ? feedKey(key.normalizedUrl) : undefined;
        const row =
          key.kind === "id"
            ? this.#byId.get(user, idKey(key.id))
            : (this.#byFeed.get(user, feed as Buffer) ?? this.#byFormer.get(user, feed as Buffer));
        return row && toSubscription(row as unknown as ItemRow);
      }),
    );
  }

  page(user: UserId, { offset, size }: PageRange): Page {
    return this.snapshot(() => {
      const { total, sequence, isDeleted } = this.#readList(user);
      if (isDeleted) return { items: [], total, sequence };
      // As long as no number was used for anything but an addition, the offset is a sequence number.
      const skipped = sequence === total ? offset : 0;
      const rows = this.#page.all(user, skipped, size, offset - skipped) as unknown as ItemRow[];
      assertPageComplete(rows.length, { offset, size }, total);
      return { items: rows.map(toSubscription), total, sequence };
    });
  }

  itemsAfter(user: UserId, after: number, size: number): ItemBatch {
    return this.snapshot(() => {
      const { sequence, isDeleted } = this.#readList(user);
      if (isDeleted) return { items: [], last: after, sequence };
      const rows = this.#after.all(user, after, size) as unknown as ItemRow[];
      return { items: rows.map(toSubscription), last: rows.at(-1)?.[3] ?? after, sequence };
    });
  }

  sequences(users: readonly UserId[]): number[] {
    return this.snapshot(() => users.map((user) => this.#readList(user).sequence));
  }

  readChanges(
    user: UserId,
    { sequence: since, removalsAfter }: ListPosition,
    limit: number,
    maxChars: number,
  ): ChangeRows {
    return this.snapshot(() => {
      const { sequence, forgottenSequence, isDeleted } = this.#readList(user);
      const isUnchanged = since >= sequence && removalsAfter >= sequence;
      if (isDeleted || isUnchanged) return { sequence, forgottenSequence, changed: [], removals: [] };
      const read = (statement: StatementSync) => {
        const rows: ItemRow[] = [];
        let chars = 0;
        for (const row of statement.iterate(user, since, limit + 1) as unknown as Iterable<ItemRow>) {
          rows.push(row);
          chars += row[1].length;
          for (const text of row.slice(DETAILS_START) as (string | null)[]) chars += text?.length ?? 0;
          if (chars > maxChars && rows.length > 1) break;
        }
        return rows;
      };
      const [added, updated] = [read(this.#added), read(this.#updated)];
      const changed = (row: ItemRow, addedSequence: number) =>
        ({ kind: "changed", sequence: row[3], addedSequence, item: toSubscription(row) }) as const;
      const removals = this.#removed.all(user, removalsAfter, limit + 1) as unknown as RemovalRow[];
      return {
        sequence,
        forgottenSequence,
        changed: [
          ...added.map((row) => changed(row, row[3])),
          ...updated.map((row) => changed(row, Number(row[DETAILS_START + DETAIL_NAMES.length]))),
        ],
        removals: removals.map(([id, feedUrl, addedSequence, removalSequence]) => ({
          kind: "removed",
          sequence: removalSequence,
          addedSequence,
          id: idOfKey(id),
          feedUrl,
        })),
      };
    });
  }

  /** The list of a deleted account has no items, though some may not have been erased yet. */
  #readList(user: UserId): { sequence: number; total: number; forgottenSequence: number; isDeleted: boolean } {
    const row = this.#list.get(user) as unknown as [number, number, number] | undefined;
    const [sequence, total, forgottenSequence] = row ?? [0, 0, 0];
    if (sequence === DELETED) return { sequence: 0, total: 0, forgottenSequence: 0, isDeleted: true };
    return { sequence, total, forgottenSequence, isDeleted: false };
  }

  snapshot<T>(read: () => T): T {
    try {
      this.#begin.run();
      return read();
    } finally {
      this.#endTransaction();
    }
  }

  /** An open transaction would keep its snapshot, so later reads would be stale. */
  #endTransaction(): void {
    try {
      if (this.database.isTransaction) this.#end.run();
    } finally {
      if (this.database.isTransaction) this.database.exec("rollback");
    }
  }

  check(): void {
    if (!isSchemaCurrent(this.database)) throw new Error("the file has a different schema version");
  }

  close(): void {
    this.database.close();
  }
}

function toSubscription(row: ItemRow): Subscription {
  const [id, feedUrl, subscribedAt] = row;
  const details = storedDetailsFrom(row as readonly string[], DETAILS_START);
  return withDetails({ id: idOfKey(id), feedUrl, subscribedAt: new Date(subscribedAt) }, details);
}
