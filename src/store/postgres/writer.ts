import { randomInt } from "node:crypto";
import { AccessRevoked, type Caller, type UserId } from "../../accounts/caller.ts";
import { DETAIL_COLUMNS, DETAIL_NAMES, storedDetailsOf } from "../../lists/details.ts";
import { History } from "../../lists/history.ts";
import {
  applyChanges,
  type ChangeResult,
  formerFeedsOf,
  type Item,
  KEPT_CHANGES,
  type KeyedChange,
  MemoryList,
  movesScopeOf,
  needsGuards,
  needsMoves,
} from "../../lists/list.ts";
import { Moves } from "../../lists/moves.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { DELETED } from "../shared/keys.ts";
import { firstKeptQuery, oldRemovalsQuery, REMOVAL_BATCH_SIZE } from "../shared/removals.ts";
import { type AccessCheck, checkAccess } from "../sql/access.ts";
import { readGuards, shrinkEdits, writeHistory } from "../sql/history.ts";
import { readMoves, writeMoves } from "../sql/moves.ts";
import {
  begin,
  CommitUnknown,
  type Connection,
  IS_IN_TRANSACTION,
  isRefusedCommit,
  type NamedStatement,
  namedStatement,
  type Postgres,
} from "./connection.ts";
import { Runner } from "./database.ts";

/** Changes of one request. Feeds are given as the hexadecimal digits of their key. */
export interface Job {
  readonly changes: readonly KeyedChange<string>[];
  readonly at: number;
  readonly caller: Caller;
}

interface Changed {
  readonly kind: "changed";
  readonly results: readonly ChangeResult<string>[];
  readonly sequenceBefore: number;
  readonly sequence: number;
}
export type JobResult = Changed | { readonly kind: "access-revoked" };

/** Jobs of one user that share a transaction, across retries. */
interface Group {
  readonly postgres: Postgres;
  readonly user: UserId;
  readonly jobs: readonly Job[];
  /** Random; stored in `written_by` of the rows that the group writes. */
  readonly writeId: number;
  /** What an earlier attempt with an unconfirmed commit wrote. */
  unconfirmed: Written | undefined;
}

interface Written {
  readonly results: readonly JobResult[];
  /** Sequence numbers of its rows. */
  readonly numbers: readonly number[];
}

interface LockedList {
  readonly list: MemoryList;
  readonly forgottenSequence: number;
  readonly hasMoves: boolean;
  /** Whether rows of feeds that have moved were written. */
  hasWritten: boolean;
  readonly hasAccess: AccessCheck;
}

const LOCK = namedStatement(
  `select sequence, total, forgotten_sequence, has_moves, follows_moves, history from earmark.lists
   where user_id = $1 for update`,
);
const ADVANCE = namedStatement("update earmark.lists set sequence = $2, total = $3, history = $4 where user_id = $1");

/** The parameters of the details, from this number on. */
const detailArrays = (first: number) => DETAIL_NAMES.map((_, index) => `$${first + index}::text[]`).join(", ");

/**
 * Inserts items with sequence numbers relative to that of the list. It selects from the user's row of `lists`, so that a
 * Citus coordinator routes it to the one node that has the list and reports that node's row count and errors, instead of
 * copying the rows itself.
 */
const INSERT = namedStatement(`
  insert into earmark.subscriptions
    (user_id, written_by, sequence, update_sequence, id, feed, feed_url, subscribed_at, ${DETAIL_COLUMNS})
  select l.user_id, $2::bigint, l.sequence + distance, update_sequence, id, feed, feed_url, subscribed_at,
    ${DETAIL_COLUMNS}
  from earmark.lists as l cross join
    unnest($3::bigint[], $4::bigint[], $5::uuid[], $6::uuid[], $7::text[], $8::bigint[], ${detailArrays(9)})
      as given (distance, update_sequence, id, feed, feed_url, subscribed_at, ${DETAIL_COLUMNS})
  where l.user_id = $1 and l.sequence <> ${DELETED}`);

/** Inserts nothing if `begin` failed: then each pipelined statement is a transaction of its own. */
const INSERT_IF_NEW = namedStatement(`${INSERT.text} and ${IS_IN_TRANSACTION} on conflict do nothing`);

/** The values of an insert. The list's sequence number was `before` when the items got theirs. */
function columnsOf(items: readonly Item<string>[], { writeId }: Group, before: number): unknown[] {
  return [
    writeId,
    items.map(({ sequence }) => sequence - before),
    items.map(({ updateSequence }) => updateSequence),
    items.map(({ id }) => id),
    items.map(({ feed }) => feed),
    items.map(({ feedUrl }) => feedUrl),
    items.map(({ subscribedAt }) => subscribedAt),
    // Most have none. An empty array is filled up with null.
    ...DETAIL_NAMES.map((name) => (items.some((item) => item[name] !== null) ? items.map((item) => item[name]) : [])),
  ];
}

/** Runs a statement whose first parameter is the user. */
function run(connection: Connection, { postgres, user }: Group, statement: NamedStatement, ...values: unknown[]) {
  return connection.query({ ...postgres.toQuery(statement), values: [user, ...values] });
}

/** Writes to users' lists: each group in one transaction of two round trips, whatever the number of its jobs. */
export class ListWriter {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async write(user: UserId, jobs: readonly Job[]): Promise<readonly JobResult[]> {
    const group: Group = {
      postgres: this.#postgres,
      user,
      jobs,
      writeId: randomInt(2 ** 48 - 1),
      unconfirmed: undefined,
    };
    try {
      return await this.#postgres.retry(async (connection) => {
        if (group.unconfirmed !== undefined) {
          if (await isCommitted(connection, group, group.unconfirmed)) return group.unconfirmed.results;
          group.unconfirmed = undefined;
        }
        return (await addWithoutReading(connection, group)) ?? (await readAndWrite(connection, group));
      }, user);
    } catch (error) {
      // If a reply was lost, a later attempt has found that nothing was committed.
      if (group.unconfirmed === undefined && error instanceof StoreUnavailable)
        throw new StoreUnavailable("PostgreSQL failed", { cause: error.cause });
      throw error;
    }
  }

  async forgetRemovals(before: Date): Promise<void> {
    for (let [skipped, found] = [0, REMOVAL_BATCH_SIZE]; found === REMOVAL_BATCH_SIZE; ) {
      const { rows } = await this.#postgres.retry((connection) =>
        connection.query<{ user_id: string; sequence: string }>(oldRemovalsQuery("earmark."), [
          before.getTime(),
          skipped,
        ]),
      );
      found = rows.length;
      for (const [user, removals] of Map.groupBy(rows, ({ user_id }) => user_id)) {
        const sequences = removals.map(({ sequence }) => Number(sequence));
        skipped += sequences.length - (await this.#forgetSome(Number(user), sequences, before.getTime()));
      }
    }
  }

  /** Forgets those of a user's removals that may be erased, and returns how many. */
  async #forgetSome(user: UserId, sequences: readonly number[], before: number): Promise<number> {
    const last = Math.max(...sequences);
    const { rows } = await this.#postgres.retry((connection) =>
      connection.query<{ sequence: string }>(firstKeptQuery("earmark."), [user, last, before]),
    );
    const end = Number(rows[0]?.sequence ?? last + 1);
    const erasable = sequences.filter((sequence) => sequence < end);
    if (erasable.length === 0) return 0;
    const forgotten = Math.max(...erasable);
    await this.#postgres.retry((connection) =>
      Promise.all([
        begin(connection),
        connection.query(
          `update earmark.lists set forgotten_sequence = greatest(forgotten_sequence, $2)
           where user_id = $1 and sequence <> ${DELETED}`,
          [user, forgotten],
        ),
        connection.query("delete from earmark.removals where user_id = $1 and sequence <= $2", [user, forgotten]),
        connection.query(
          `delete from earmark.feed_spellings as f where user_id = $1 and recorded_at < $2 and not exists (
             select 1 from earmark.subscriptions as s where s.user_id = f.user_id and s.feed = f.feed)`,
          [user, before],
        ),
        connection.query("commit"),
      ]),
    );
    return erasable.length;
  }
}

function lockAccess(connection: Connection, { postgres, user, jobs }: Group): Promise<AccessCheck> {
  const callers = jobs.map(({ caller }) => caller);
  return new Runner(postgres, connection).run(checkAccess(user, callers));
}

function applyJob(list: MemoryList, { changes, at, caller }: Job): Changed {
  const sequenceBefore = list.sequence;
  const results = applyChanges(list, changes, at, caller);
  return { kind: "changed", results, sequenceBefore, sequence: list.sequence };
}

/**
 * Adds without reading the list first, because most additions are new; a lower row count means that some are not. Returns
 * undefined and writes nothing if the outcome depends on the list's content.
 */
async function addWithoutReading(connection: Connection, group: Group): Promise<readonly JobResult[] | undefined> {
  const { jobs } = group;
  if (jobs.some(({ changes }) => changes.some(needsMoves))) return undefined;
  const list = new MemoryList(0, 0);
  const results = jobs.map((job) => applyJob(list, job));
  if (list.total === 0 || results.some((result) => result.results.some((each) => each !== "added"))) return undefined;
  const [, lists, hasAccess, { rowCount }] = await Promise.all([
    begin(connection),
    run(connection, group, LOCK),
    lockAccess(connection, group),
    run(connection, group, INSERT_IF_NEW, ...columnsOf([...list.inserted.values()], group, 0)),
  ]);
  const before = Number(lists.rows[0]?.sequence);
  const total = Number(lists.rows[0]?.total) + list.total;
  const isAllowed = ({ caller, at }: Job) => total <= caller.maxSubscriptions && hasAccess(caller, at);
  if (rowCount !== list.total || lists.rows[0]?.has_moves !== "0" || !jobs.every(isAllowed)) {
    await connection.query("rollback");
    return undefined;
  }
  const written = {
    results: results.map((result) => ({
      ...result,
      sequenceBefore: before + result.sequenceBefore,
      sequence: before + result.sequence,
    })),
    numbers: [...list.inserted.keys()].map((number) => before + number),
  };
  const history = toHistory(lists.rows[0]?.history, group, written.results, total - list.total);
  const advance = run(connection, group, ADVANCE, before + list.sequence, total, history.stored);
  await commit(connection, group, written, [advance, storeHistory(connection, group, history)]);
  return written.results;
}

/** The history of a list to which jobs have only added. */
function toHistory(
  stored: string | null,
  { jobs }: Group,
  results: readonly Changed[],
  total: number,
): History<string> {
  const history = new History<string>(stored);
  let length = total;
  for (const [index, { sequenceBefore, sequence }] of results.entries()) {
    const { caller, at } = jobs[index] as Job;
    history.begin(caller.author, at, { sequence: sequenceBefore, total: length });
    history.added(sequence - sequenceBefore);
    history.end(sequence);
    length += sequence - sequenceBefore;
  }
  return history;
}

/** Sent at once, without waiting for earlier statements. */
async function storeHistory(
  connection: Connection,
  { postgres, user }: Group,
  history: History<string>,
): Promise<void> {
  if (history.hasNews) await new Runner(postgres, connection).run(writeHistory(user, history, (id) => id));
}

/** Reads the items that the jobs refer to, applies the jobs in memory, and writes the difference. */
async function readAndWrite(connection: Connection, group: Group): Promise<readonly JobResult[]> {
  const locked = await lockList(connection, group);
  const { list, hasAccess } = locked;
  const before = list.sequence;
  const results: JobResult[] = [];
  for (const job of group.jobs)
    results.push(hasAccess(job.caller, job.at) ? await applyWithMoves(connection, group, locked, job) : ACCESS_REVOKED);
  if (list.sequence === before && !locked.hasWritten) await connection.query("rollback");
  else await write(connection, group, locked, before, results);
  return results;
}

const ACCESS_REVOKED = { kind: "access-revoked" } as const;

/** Reads what is known of feeds that have moved, if the job may need it, and stores what has become of that. */
async function applyWithMoves(
  connection: Connection,
  { postgres, user }: Group,
  locked: LockedList,
  job: Job,
): Promise<Changed> {
  const { list, hasMoves } = locked;
  const runner = new Runner(postgres, connection);
  if (needsGuards(job.changes, job.caller))
    list.history.guards = await runner.run(readGuards(user, list.history, job.at));
  if (!hasMoves && !locked.hasWritten && !job.changes.some(needsMoves)) return applyJob(list, job);
  const state = await runner.run(readMoves(user, movesScopeOf(list, job.changes)));
  const targets = [...new Set(state.urls.map(({ target }) => target))].filter((target) => !list.knows(target));
  const { rows } = await connection.query(`${ITEM} where user_id = $1 and feed = any($2::uuid[])`, [user, targets]);
  for (const item of rows) list.load(toItem(item));
  list.moves = new Moves(list, state, job.at);
  const changed = applyJob(list, job);
  if (list.moves.isDirty) {
    await runner.run(writeMoves(user, list.moves));
    locked.hasWritten = true;
  }
  list.moves = undefined;
  return changed;
}

/**
 * Locks the user's list, so that all processes write to it one after another, and reads the items that the jobs refer to.
 * All keys are looked up at once: if the planner's statistics do not know the user yet, it reads the whole list for each
 * lookup.
 */
async function lockList(connection: Connection, group: Group): Promise<LockedList> {
  const { user, jobs } = group;
  const ids: string[] = [];
  const feeds: string[] = [];
  for (const change of jobs.flatMap(({ changes }) => changes)) {
    if ("id" in change) ids.push(change.id);
    if (change.kind === "add" && change.fallbackId !== undefined) ids.push(change.fallbackId);
    if (change.kind === "add") feeds.push(...formerFeedsOf(change).map(({ feed }) => feed));
    if (change.kind === "remove" && change.mergeInto !== undefined) ids.push(change.mergeInto);
    if ("feed" in change && change.feed !== undefined) feeds.push(change.feed);
    if ("to" in change && change.to !== undefined) feeds.push(change.to.feed);
  }
  for (;;) {
    const [, lists, hasAccess, items] = await Promise.all([
      begin(connection),
      run(connection, group, LOCK),
      lockAccess(connection, group),
      connection.query(
        `${ITEM} where user_id = $1 and id = any($2::uuid[])
         union
         ${ITEM} where user_id = $1 and feed = any($3::uuid[])`,
        [user, ids, feeds],
      ),
    ]);
    const [row] = lists.rows;
    if (row !== undefined) {
      if (Number(row.sequence) === DELETED) throw new AccessRevoked();
      const list = new MemoryList(Number(row.sequence), Number(row.total), row.follows_moves === "1", row.history);
      for (const item of items.rows) list.load(toItem(item));
      const hasMoves = row.has_moves === "1";
      return { list, forgottenSequence: Number(row.forgotten_sequence), hasMoves, hasWritten: false, hasAccess };
    }
    await connection.query("rollback");
    await connection.query(
      "insert into earmark.lists (user_id, sequence, total) values ($1, 0, 0) on conflict do nothing",
      [user],
    );
  }
}

const ITEM = `select sequence, update_sequence, id, replace(feed::text, '-', '') as feed, feed_url, subscribed_at,
  ${DETAIL_COLUMNS} from earmark.subscriptions`;

function toItem(row: Readonly<Record<string, string | null>>): Item<string> {
  return {
    sequence: Number(row["sequence"]),
    updateSequence: Number(row["update_sequence"]),
    id: String(row["id"]),
    feed: String(row["feed"]),
    feedUrl: String(row["feed_url"]),
    subscribedAt: Number(row["subscribed_at"]),
    ...storedDetailsOf(row),
  };
}

async function write(
  connection: Connection,
  group: Group,
  { list, forgottenSequence }: LockedList,
  before: number,
  results: readonly JobResult[],
): Promise<void> {
  const { user, writeId } = group;
  const queries: Promise<unknown>[] = [];
  const send = (sql: string, ...values: unknown[]) => queries.push(connection.query(sql, [user, ...values]));
  const inserted = [...list.inserted.values()];
  const { deleted, removals } = list;
  if (deleted.length > 0) send("delete from earmark.subscriptions where user_id = $1 and sequence = any($2)", deleted);
  if (inserted.length > 0) queries.push(run(connection, group, INSERT, ...columnsOf(inserted, group, before)));
  if (removals.length > 0) {
    send(
      `insert into earmark.removals
         (user_id, written_by, sequence, id, removed_at, added_sequence, feed_url, subscribed_at, client,
           ${DETAIL_COLUMNS})
       select l.user_id, $2::bigint, given.* from earmark.lists as l cross join
         unnest($3::bigint[], $4::uuid[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[], $9::text[],
           ${detailArrays(10)})
           as given
       where l.user_id = $1`,
      writeId,
      removals.map(({ sequence }) => sequence),
      removals.map(({ item }) => item.id),
      removals.map(({ at }) => at),
      removals.map(({ item }) => item.sequence),
      removals.map(({ item }) => item.feedUrl),
      removals.map(({ item }) => item.subscribedAt),
      removals.map(({ client = null }) => client),
      ...DETAIL_NAMES.map((name) => removals.map(({ item }) => item[name])),
    );
  }
  queries.push(storeHistory(connection, group, list.history));
  if (list.history.isTooLong)
    list.history.shrunkTo(await new Runner(group.postgres, connection).run(shrinkEdits(user)));
  const oldest = list.sequence - KEPT_CHANGES;
  const needsTrimming = removals.length > 0 && oldest > forgottenSequence;
  if (needsTrimming) send("delete from earmark.removals where user_id = $1 and sequence <= $2", oldest);
  send(
    "update earmark.lists set sequence = $2, total = $3, forgotten_sequence = $4, history = $5 where user_id = $1",
    list.sequence,
    list.total,
    needsTrimming ? oldest : forgottenSequence,
    list.history.stored,
  );
  const numbers = [...inserted, ...removals].map(({ sequence }) => sequence);
  await commit(connection, group, { results, numbers }, queries);
}

/** Commits what was written by queries that may still be running. */
async function commit(
  connection: Connection,
  group: Group,
  written: Written,
  queries: readonly Promise<unknown>[],
): Promise<void> {
  const [end, ...parts] = await Promise.allSettled([connection.query("commit"), ...queries]);
  if (end.status === "fulfilled" && end.value.command === "COMMIT") return;
  if (end.status === "rejected" && !isRefusedCommit(end.reason)) {
    group.unconfirmed = written;
    throw new CommitUnknown("the reply to a commit was lost", { cause: end.reason });
  }
  throw [...parts, end].find((part) => part.status === "rejected")?.reason ?? new Error("PostgreSQL rolled back");
}

/**
 * Whether a commit succeeded although its reply was lost. If so, a row with one of the sequence numbers has this `writeId`.
 * Locking the list waits until the server has noticed that the connection was lost and has ended its transaction.
 */
async function isCommitted(connection: Connection, { user, writeId }: Group, { numbers }: Written): Promise<boolean> {
  const [, , found] = await Promise.all([
    begin(connection),
    connection.query("select 1 from earmark.lists where user_id = $1 for update", [user]),
    connection.query(
      `select 1 from earmark.subscriptions where user_id = $1 and sequence = any($2) and written_by = $3
       union all
       select 1 from earmark.removals where user_id = $1 and sequence = any($2) and written_by = $3`,
      [user, numbers, writeId],
    ),
    connection.query("rollback"),
  ]);
  return found.rows.length > 0;
}
