import { randomInt } from "node:crypto";
import { AccessRevoked, StoreUnavailable, UNLIMITED, type UserId } from "../subscriptions.ts";
import type { Gaps } from "./gaps.ts";
import { DELETED } from "./keys.ts";
import { type Answer, type Job, KEPT_CHANGES, type ListState, type Plan, plan } from "./plan.ts";
import { type Connection, codeOf, InDoubt, isRefusedCommit, LOCK_MS, type Postgres } from "./postgres-connection.ts";
import { lockCredentials } from "./postgres-credentials.ts";
import { Recent } from "./recent.ts";

/** Of so many users it is remembered that nothing stood against what they last added. */
const MAX_CALM = 10_000;

/** What a unique index says of a second one. */
const TAKEN = "23505";

/** A list that holds nothing of what is added. */
const EMPTY: ListState = { sequence: 0, total: 0, gaps: undefined, rows: [], isRevoked: () => false };

/** Jobs of one user that share a transaction, through all attempts at it. */
interface Group {
  readonly user: UserId;
  readonly jobs: readonly Job[];
  /** The mark that its rows bear. */
  readonly writer: number;
  /** What an earlier attempt wrote whose commit was never confirmed. */
  doubt: Written | undefined;
}

interface Written {
  readonly answers: Plan["answers"];
  /** The sequence numbers of its rows. */
  readonly numbers: readonly number[];
}

/** Writes to the lists of users: each group in one transaction of two turns, whatever the number of its jobs. */
export class ListWriter {
  readonly #postgres: Postgres;
  readonly #gaps: Recent<Gaps>;
  /** Users who are likely to add what they do not have yet. */
  readonly #calm = new Recent<true>(MAX_CALM);

  /** `gaps` is told those of the lists from which something was removed. */
  constructor(postgres: Postgres, gaps: Recent<Gaps>) {
    this.#postgres = postgres;
    this.#gaps = gaps;
  }

  async carryOut(user: UserId, jobs: readonly Job[]): Promise<Plan["answers"]> {
    const group: Group = { user, jobs, writer: randomInt(2 ** 48 - 1), doubt: undefined };
    try {
      return await this.#postgres.persist(async (connection) => {
        if (group.doubt !== undefined) {
          if (await hasHappened(connection, group, group.doubt)) return group.doubt.answers;
          group.doubt = undefined;
        }
        return (await this.#addUnread(connection, group)) ?? (await this.#readAndWrite(connection, group));
      });
    } catch (error) {
      if (group.doubt === undefined || !(error instanceof StoreUnavailable)) throw error;
      throw new StoreUnavailable("it is not known whether PostgreSQL did it", { cause: error, unknown: true });
    }
  }

  /**
   * Adds without reading what is there, in the belief that nothing stands against it. Where something does, or there is
   * no list, nothing is done: undefined.
   */
  async #addUnread(connection: Connection, group: Group): Promise<Plan["answers"] | undefined> {
    if (this.#calm.get(group.user) === undefined) return undefined;
    const { answers, inserts } = plan(EMPTY, group.jobs);
    // Any other answer depends on what the list holds.
    if (answers.some((each) => each.some((answer) => answer !== "added"))) return undefined;
    const written = (before: number) => ({ answers, numbers: inserts.map(({ sequence }) => before + sequence) });
    const [began, inserted, credentials] = await insertAll(connection, group, inserts);
    if (began.status === "rejected") {
      // Then the rest was carried out as well, each statement by itself: it may be stored.
      if (inserted.status === "fulfilled" && inserted.value !== undefined) group.doubt = written(inserted.value);
      throw began.reason;
    }
    if (inserted.status === "rejected" && codeOf(inserted.reason) !== TAKEN) throw inserted.reason;
    if (inserted.status === "fulfilled" && credentials.status === "rejected") throw credentials.reason;
    const isRevoked = ({ credentialHash: hash, at }: Job) =>
      hash !== undefined && credentials.status === "fulfilled" && credentials.value(hash, at);
    if (inserted.status === "rejected" || inserted.value === undefined || group.jobs.some(isRevoked)) {
      await connection.query("rollback");
      return undefined;
    }
    await commit(connection, group, written(inserted.value));
    return answers;
  }

  /** Reads what the jobs concern, works out what they change, and writes that. */
  async #readAndWrite(connection: Connection, group: Group): Promise<Plan["answers"]> {
    const { user, jobs } = group;
    const state = await lockList(connection, user, jobs);
    const change = plan(state, jobs);
    if (change.sequence === state.sequence) await connection.query("rollback");
    else await write(connection, group, change);
    if (change.answers.some((each) => each.some(isConflict))) this.#calm.forget(user);
    else this.#calm.set(user, true);
    if (change.gaps !== undefined) this.#gaps.set(user, change.gaps);
    return change.answers;
  }
}

function isConflict(answer: Answer): boolean {
  return answer === "already-subscribed" || answer === "id-in-use" || answer === "quota-exceeded";
}

function begin(connection: Connection) {
  return [connection.query("begin"), connection.query(`set local lock_timeout = ${LOCK_MS}`)] as const;
}

/**
 * Locks the user's list and inserts all at its end, in one turn: whether the transaction began, and the number after which
 * they stand; undefined when there is no list, or not enough space in it. The unique indexes are the judge, and not the count of what was inserted:
 * a cluster may not tell it right (citusdata/citus#3377). List and items are one statement, so that they are written
 * together even where the transaction did not begin, of which we hear too late.
 */
async function insertAll(
  connection: Connection,
  { user, writer, jobs }: Group,
  inserts: Plan["inserts"],
): Promise<
  [
    PromiseSettledResult<unknown>,
    PromiseSettledResult<number | undefined>,
    PromiseSettledResult<ListState["isRevoked"]>,
  ]
> {
  const maxTotal = Math.min(...jobs.map((job) => (job.kind === "add" ? job.maxTotal : UNLIMITED)));
  return Promise.allSettled([
    Promise.all(begin(connection)),
    connection
      .query(
        `with list as (
           update earmark.lists set sequence = sequence + $3, total = total + $3
           where user_id = $1 and sequence <> ${DELETED} and total + $3 <= $8 returning user_id, sequence - $3 as before
         ), added as (
           insert into earmark.subscriptions (user_id, written_by, sequence, id, feed, feed_url, subscribed_at)
           select list.user_id, $2::bigint, list.before + place, id, feed, feed_url, at
           from list cross join unnest($4::uuid[], $5::uuid[], $6::text[], $7::bigint[])
             with ordinality as given (id, feed, feed_url, at, place)
         )
         select before from list`,
        [user, writer, inserts.length, ...columnsOf(inserts), maxTotal],
      )
      .then(({ rows: [list] }) => list && Number(list.before)),
    lockCredentials(connection, jobs),
  ]);
}

/**
 * Locks the user's list, so that its writers follow one another on all processes, and reads what the jobs concern. Each
 * key is looked up by itself: given a list of keys, the planner may read the user's whole list instead.
 */
async function lockList(connection: Connection, user: UserId, jobs: readonly Job[]): Promise<ListState> {
  const ids: string[] = [];
  const feeds: string[] = [];
  for (const job of jobs) {
    if (job.kind === "remove") ids.push(job.id);
    else for (const { id, feed } of job.drafts) ids.push(id) && feeds.push(feed);
  }
  for (;;) {
    const [, , list, rows, gaps, isRevoked] = await Promise.all([
      ...begin(connection),
      connection.query("select sequence, total from earmark.lists where user_id = $1 for update", [user]),
      connection.query(
        `select s.sequence, s.id, replace(s.feed::text, '-', '') as feed
         from unnest($2::uuid[]) as given (id) cross join lateral (
           select sequence, id, feed from earmark.subscriptions where user_id = $1 and id = given.id limit 1) as s
         union
         select s.sequence, s.id, replace(s.feed::text, '-', '') as feed
         from unnest($3::uuid[]) as given (feed) cross join lateral (
           select sequence, id, feed from earmark.subscriptions where user_id = $1 and feed = given.feed limit 1) as s`,
        [user, ids, feeds],
      ),
      connection.query("select counts from earmark.gaps where user_id = $1", [user]),
      lockCredentials(connection, jobs),
    ]);
    const [row] = list.rows;
    if (row !== undefined) {
      if (Number(row.sequence) === DELETED) throw new AccessRevoked();
      return {
        sequence: Number(row.sequence),
        total: Number(row.total),
        gaps: gaps.rows[0]?.counts,
        rows: rows.rows.map(({ sequence, id, feed }) => ({ sequence: Number(sequence), id, feed })),
        isRevoked,
      };
    }
    await connection.query("rollback");
    await connection.query("insert into earmark.lists values ($1, 0, 0) on conflict do nothing", [user]);
  }
}

async function write(connection: Connection, group: Group, change: Plan): Promise<void> {
  const { user, writer } = group;
  const queries: Promise<unknown>[] = [];
  const send = (sql: string, ...values: unknown[]) => queries.push(connection.query(sql, [user, ...values]));
  const { inserts, deletes, removals, gaps } = change;
  if (deletes.length > 0) send("delete from earmark.subscriptions where user_id = $1 and sequence = any($2)", deletes);
  if (inserts.length > 0) {
    send(
      `insert into earmark.subscriptions (user_id, written_by, sequence, id, feed, feed_url, subscribed_at)
       select $1::bigint, $2::bigint, * from unnest($3::bigint[], $4::uuid[], $5::uuid[], $6::text[], $7::bigint[])`,
      writer,
      inserts.map(({ sequence }) => sequence),
      ...columnsOf(inserts),
    );
  }
  if (removals.length > 0) {
    send(
      `insert into earmark.removals (user_id, written_by, sequence, id, removed_at)
       select $1::bigint, $2::bigint, * from unnest($3::bigint[], $4::uuid[], $5::bigint[])`,
      writer,
      removals.map(({ sequence }) => sequence),
      removals.map(({ id }) => id),
      removals.map(({ at }) => at),
    );
    if (change.sequence > KEPT_CHANGES) {
      send("delete from earmark.removals where user_id = $1 and sequence <= $2", change.sequence - KEPT_CHANGES);
    }
  }
  if (gaps !== undefined) {
    send("insert into earmark.gaps values ($1, $2) on conflict (user_id) do update set counts = excluded.counts", gaps);
  }
  send("update earmark.lists set sequence = $2, total = $3 where user_id = $1", change.sequence, change.total);
  const numbers = [...inserts, ...removals].map(({ sequence }) => sequence);
  await commit(connection, group, { answers: change.answers, numbers }, queries);
}

function columnsOf(inserts: Plan["inserts"]): unknown[][] {
  return [
    inserts.map(({ id }) => id),
    inserts.map(({ feed }) => feed),
    inserts.map(({ feedUrl }) => feedUrl),
    inserts.map(({ at }) => at),
  ];
}

/** Commits what was written, some of it perhaps by queries that are still under way. */
async function commit(
  connection: Connection,
  group: Group,
  written: Written,
  queries: readonly Promise<unknown>[] = [],
): Promise<void> {
  const [end, ...parts] = await Promise.allSettled([connection.query("commit"), ...queries]);
  if (end.status === "fulfilled" && end.value.command === "COMMIT") return;
  if (end.status === "rejected" && !isRefusedCommit(end.reason)) {
    group.doubt = written;
    throw new InDoubt("the answer to a commit was lost", { cause: end.reason });
  }
  throw [...parts, end].find((part) => part.status === "rejected")?.reason ?? new Error("PostgreSQL rolled back");
}

/**
 * Whether a commit happened whose answer was lost: then a row under one of its numbers bears its writer's mark. The lock
 * waits for a server that has not yet noticed that we are gone.
 */
async function hasHappened(connection: Connection, { user, writer }: Group, { numbers }: Written): Promise<boolean> {
  const [, , , found] = await Promise.all([
    ...begin(connection),
    connection.query("select 1 from earmark.lists where user_id = $1 for update", [user]),
    connection.query(
      `select 1 from earmark.subscriptions where user_id = $1 and sequence = any($2) and written_by = $3
       union all
       select 1 from earmark.removals where user_id = $1 and sequence = any($2) and written_by = $3`,
      [user, numbers, writer],
    ),
    connection.query("rollback"),
  ]);
  return found.rows.length > 0;
}
