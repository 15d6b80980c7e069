import { randomInt } from "node:crypto";
import type { QueryResult } from "pg";
import type { AccountStore, Store } from "../accounts.ts";
import {
  type Draft,
  type Outcome,
  type Page,
  StoreUnavailable,
  type Subscription,
  UserGone,
  type UserId,
  type Window,
} from "../subscriptions.ts";
import { type Gaps, locate } from "./gaps.ts";
import { DELETED, feedKey } from "./keys.ts";
import { nameOf, type StoreOptions } from "./opening.ts";
import { type Answer, type Job, type ListState, type Plan, plan } from "./plan.ts";
import { PostgresAccounts } from "./postgres-accounts.ts";
import { type Connection, InDoubt, isRefusedCommit, LOCK_MS, Postgres } from "./postgres-connection.ts";
import { distribute, isNewest, prepareDatabase } from "./postgres-schema.ts";
import { requireWhole } from "./whole.ts";
import { Room, WriteQueue } from "./write-queue.ts";

export async function openPostgres(url: string, options: StoreOptions): Promise<Store> {
  const postgres = new Postgres(url, options.connections);
  try {
    const warnings = await prepareDatabase(postgres, nameOf(url), options.onWaiting);
    for (const warning of warnings) options.onWarning?.(warning);
    return new PostgresStore(postgres, options);
  } catch (error) {
    await postgres.close();
    throw error;
  }
}

export async function preparePostgres(
  url: string,
  isDistributed: boolean,
): Promise<{ readonly distributed: readonly string[] | undefined }> {
  const postgres = new Postgres(url, 1, { patient: true });
  try {
    await prepareDatabase(postgres, nameOf(url));
    return { distributed: isDistributed ? await postgres.use(distribute) : undefined };
  } finally {
    await postgres.close();
  }
}

class PostgresStore implements Store {
  readonly accounts: AccountStore;
  readonly #postgres: Postgres;
  readonly #options: StoreOptions;
  readonly #room: Room;
  /** One for each user who has something to write, so that a user takes one connection at most and waits for nobody else. */
  readonly #queues = new Map<UserId, WriteQueue<Job, readonly Answer[]>>();
  #closing: Promise<void> | undefined;

  constructor(postgres: Postgres, options: StoreOptions) {
    this.#postgres = postgres;
    this.#options = options;
    this.#room = new Room(options.maxWaiting);
    this.accounts = new PostgresAccounts(postgres);
  }

  get waiting(): number {
    return this.#room.taken;
  }

  async add(user: UserId, drafts: readonly Draft[], at: Date): Promise<Outcome[]> {
    if (drafts.length === 0) return [];
    const items = drafts.map(({ id, feedUrl, feed }) => ({ id, feedUrl, feed: feedKey(feed).toString("hex") }));
    const answers = await this.#write(user, { kind: "add", at: at.getTime(), drafts: items }, drafts.length);
    return drafts.map((draft, index) => {
      const answer = answers[index];
      if (answer === "added") return { id: draft.id, feedUrl: draft.feedUrl, subscribedAt: at };
      return { refused: answer === "id-in-use" ? "id-in-use" : "already-subscribed", draft };
    });
  }

  async remove(user: UserId, id: string, at: Date): Promise<boolean> {
    const [answer] = await this.#write(user, { kind: "remove", at: at.getTime(), id }, 1);
    return answer === "removed";
  }

  async find(user: UserId, id: string): Promise<Subscription | undefined> {
    return this.#postgres.persist(async (connection) => {
      const { rows } = await connection.query(
        "select feed_url, subscribed_at from earmark.subscriptions where user_id = $1 and id = $2",
        [user, id],
      );
      const [row] = rows;
      return row && { id, feedUrl: row.feed_url, subscribedAt: new Date(Number(row.subscribed_at)) };
    });
  }

  async page(user: UserId, window: Window): Promise<Page> {
    return this.#postgres.persist((connection) => readPage(connection, user, window));
  }

  async knows(user: UserId, feeds: readonly string[]): Promise<boolean[]> {
    return this.#postgres.persist(async (connection) => {
      const { rows } = await connection.query<{ known: boolean }>(
        `select exists (select 1 from earmark.subscriptions where user_id = $1 and feed = given.feed) as known
         from unnest($2::uuid[]) with ordinality as given (feed, place) order by place`,
        [user, feeds.map((feed) => feedKey(feed).toString("hex"))],
      );
      return rows.map(({ known }) => known);
    });
  }

  async ready(): Promise<void> {
    const isReady = await this.#postgres.persist(isNewest);
    if (!isReady) throw new StoreUnavailable("the database is of another version than this program");
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.idle()));
    await this.#postgres.close();
  }

  async #write(user: UserId, job: Job, operations: number): Promise<readonly Answer[]> {
    if (this.#closing !== undefined) throw new StoreUnavailable("the store is closed");
    const present = this.#queues.get(user);
    if (present !== undefined) return present.push(job, operations);
    const queue = new WriteQueue<Job, readonly Answer[]>(
      (jobs) => carryOut(this.#postgres, user, jobs),
      this.#room,
      this.#options.onCommit,
    );
    this.#queues.set(user, queue);
    const answer = queue.push(job, operations);
    void this.#forget(user, queue);
    return answer;
  }

  /** Lets go of a user's queue when nothing waits in it any more. */
  async #forget(user: UserId, queue: WriteQueue<Job, readonly Answer[]>): Promise<void> {
    while (!queue.isIdle) await queue.idle();
    this.#queues.delete(user);
  }
}

interface PageRow {
  readonly total: string;
  readonly counts: Gaps | null;
  readonly items: readonly (readonly [id: string, feedUrl: string, subscribedAt: number])[] | null;
}

/**
 * Total, gaps and items in one statement, so that they are of one instant. Where to look follows from the gaps, which
 * are only known afterwards; so a list that has some is asked again, until they are still the same.
 */
async function readPage(connection: Connection, user: UserId, { offset, size }: Window): Promise<Page> {
  let gaps: Gaps | undefined;
  for (;;) {
    const { from, skip } = locate(gaps, offset);
    // An end to the search, so that no plan reads the rest of the list; the first page is right without it.
    const until = offset === 0 ? Number.MAX_SAFE_INTEGER : locate(gaps, offset + size - 1).until;
    const { rows } = await connection.query<PageRow>(
      `select lists.total, gaps.counts,
         (select json_agg(json_build_array(id, feed_url, subscribed_at)) from (
            select id, feed_url, subscribed_at from earmark.subscriptions
            where user_id = $1 and sequence between $2 and $5 order by sequence limit $3 offset $4) as page) as items
       from earmark.lists left join earmark.gaps on gaps.user_id = lists.user_id
       where lists.user_id = $1`,
      [user, from, size, skip, until],
    );
    const [row] = rows;
    if (row === undefined) return { items: [], total: 0 };
    const found = row.counts ?? undefined;
    // The first item is the first that there is, whatever the gaps.
    if (offset === 0 || isSame(found, gaps)) {
      requireWhole(row.items?.length ?? 0, { offset, size }, Number(row.total));
      const items = (row.items ?? []).map(([id, feedUrl, at]) => ({ id, feedUrl, subscribedAt: new Date(at) }));
      return { items, total: Number(row.total) };
    }
    gaps = found;
  }
}

function isSame(one: Gaps | undefined, other: Gaps | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return Buffer.compare(one, other) === 0;
}

/** Carries out the jobs of one user in one transaction: one turn to read, one to write, whatever their number. */
async function carryOut(
  postgres: Postgres,
  user: UserId,
  jobs: readonly Job[],
): Promise<readonly (readonly Answer[])[]> {
  const writer = randomInt(2 ** 48 - 1);
  /** What an earlier attempt wrote whose commit was never confirmed. */
  let doubt: Plan | undefined;
  try {
    return await postgres.persist(async (connection) => {
      if (doubt !== undefined) {
        if (await hasHappened(connection, user, writer, doubt)) return doubt.answers;
        doubt = undefined;
      }
      const state = await lockList(connection, user, jobs);
      const change = plan(state, jobs);
      if (change.sequence === state.sequence) {
        await connection.query("rollback");
        return change.answers;
      }
      try {
        await write(connection, user, writer, change);
      } catch (error) {
        if (error instanceof InDoubt) doubt = change;
        throw error;
      }
      return change.answers;
    });
  } catch (error) {
    if (doubt === undefined || !(error instanceof StoreUnavailable)) throw error;
    throw new StoreUnavailable("it is not known whether PostgreSQL did it", { cause: error, unknown: true });
  }
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
    const [, , list, rows, gaps] = await Promise.all([
      connection.query("begin"),
      connection.query(`set local lock_timeout = ${LOCK_MS}`),
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
    ]);
    const [row] = list.rows;
    if (row !== undefined) {
      if (Number(row.sequence) === DELETED) throw new UserGone();
      return {
        sequence: Number(row.sequence),
        total: Number(row.total),
        gaps: gaps.rows[0]?.counts,
        rows: rows.rows.map(({ sequence, id, feed }) => ({ sequence: Number(sequence), id, feed })),
      };
    }
    await connection.query("rollback");
    await connection.query("insert into earmark.lists values ($1, 0, 0) on conflict do nothing", [user]);
  }
}

async function write(connection: Connection, user: UserId, writer: number, change: Plan): Promise<void> {
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
      inserts.map(({ id }) => id),
      inserts.map(({ feed }) => feed),
      inserts.map(({ feedUrl }) => feedUrl),
      inserts.map(({ at }) => at),
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
  }
  if (gaps !== undefined) {
    send("insert into earmark.gaps values ($1, $2) on conflict (user_id) do update set counts = excluded.counts", gaps);
  }
  send("update earmark.lists set sequence = $2, total = $3 where user_id = $1", change.sequence, change.total);
  const settled = await Promise.allSettled([connection.query("commit"), ...queries]);
  const [commit, ...failures] = settled as [PromiseSettledResult<QueryResult>, ...PromiseSettledResult<unknown>[]];
  if (commit.status === "fulfilled" && commit.value.command === "COMMIT") return;
  if (commit.status === "rejected" && !isRefusedCommit(commit.reason)) {
    throw new InDoubt("the answer to a commit was lost", { cause: commit.reason });
  }
  throw failures.find((result) => result.status === "rejected")?.reason ?? new Error("PostgreSQL rolled back");
}

/**
 * Whether a commit happened whose answer was lost: then a row under one of its numbers bears its writer's mark. The lock
 * waits for a server that has not yet noticed that we are gone.
 */
async function hasHappened(
  connection: Connection,
  user: UserId,
  writer: number,
  { inserts, removals }: Plan,
): Promise<boolean> {
  const numbers = [...inserts, ...removals].map(({ sequence }) => sequence);
  const [, , , found] = await Promise.all([
    connection.query("begin"),
    connection.query(`set local lock_timeout = ${LOCK_MS}`),
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
