import {
  type Account,
  type AccountStore,
  type Credential,
  type NewAccount,
  type NewCredential,
  type NewPassword,
  NOBODY,
  SESSION_IDLE_MS,
  type Soon,
} from "../accounts.ts";
import { forgottenByAll } from "../known.ts";
import { type Rate, spendAt } from "../limits.ts";
import { type Caller, LOCAL_USER, StoreUnavailable, type UserId } from "../subscriptions.ts";
import { bytesOf, DELETED, ERASED_AT_ONCE, identityKey, limitKey } from "./keys.ts";
import { type Connection, LOCK_MS, type Postgres } from "./postgres-connection.ts";
import { requireCredential } from "./postgres-credentials.ts";

/** A credential that never ends, or was never used. */
const NEVER = 0;
/** A process takes this part of a burst at a time, so that most of what is spent needs no question to the database. */
const LEASES = 50;
const LEASE_MS = 60_000;
/** With more leases than this, those that have ended are forgotten. */
const MAX_LEASES = 10_000;

const ACCOUNT = "a.user_id, a.name, a.issuer, a.created_at, a.password";
const CREDENTIAL = "id, kind, user_id, scope, label, created_at, used_at, expires_at";

interface AccountRow {
  readonly user_id: string;
  readonly name: string;
  readonly issuer: string;
  readonly created_at: string;
  readonly password: string;
}

interface CredentialRow {
  readonly id: string;
  readonly kind: Credential["kind"];
  readonly user_id: string;
  readonly scope: Credential["scope"];
  readonly label: string;
  readonly created_at: string;
  readonly used_at: string;
  readonly expires_at: string;
}

interface Lease {
  left: number;
  readonly until: number;
}

/** Accounts in PostgreSQL. Every change may be repeated: a connection may be lost when it has happened already. */
export class PostgresAccounts implements AccountStore {
  readonly #postgres: Postgres;
  readonly #leases = new Map<string, Lease>();
  /** The hashes that the next question to the database will be about. */
  readonly #wanted = new Set<string>();
  #nextLookUp: Promise<ReadonlyMap<string, Credential>> | undefined;
  #lookingUp: Promise<void> = Promise.resolve();
  /** Keys for which a lease is being taken. */
  readonly #taking = new Map<string, Promise<number>>();

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async isEmpty(): Promise<boolean> {
    return (await this.#read("select 1 from earmark.accounts limit 1")).length === 0;
  }

  create(user: UserId, account: NewAccount, at: Date): Promise<UserId | "name-taken" | "not-invited"> {
    return this.#postgres.retry(async (connection) => {
      for (;;) {
        const answer = await create(connection, user, account, at);
        if (answer !== "again") return answer;
      }
    });
  }

  async find(name: string, issuer: string): Promise<{ account: Account; password: string } | undefined> {
    // Two tables that a cluster keeps apart: who it is, then the account.
    const [identity] = await this.#read<{ user_id: string }>(
      "select user_id from earmark.identities where key = $1",
      uuidOf(identityKey(name, issuer)),
    );
    return identity && this.get(Number(identity.user_id));
  }

  async get(user: UserId): Promise<{ account: Account; password: string } | undefined> {
    const [row] = await this.#read<AccountRow>(`select ${ACCOUNT} from earmark.accounts a where user_id = $1`, user);
    return row && { account: toAccount(row), password: row.password };
  }

  async list(after: UserId, size: number): Promise<readonly Account[]> {
    const rows = await this.#read<AccountRow>(
      `select ${ACCOUNT} from earmark.accounts a where user_id > $1 order by user_id limit $2`,
      after,
      size,
    );
    return rows.map(toAccount);
  }

  setPassword(caller: Caller, wished: NewPassword, at: Date): Promise<boolean> {
    const { user } = caller;
    const { password, keepSession, expectedHash } = wished;
    return this.#takeAway(async (connection) => {
      const former = await lockAccount(connection, user);
      // No two hashes are alike: an attempt whose answer was lost has set it.
      if (former === password) return true;
      await requireCredential(connection, caller, at);
      if (former === undefined || (expectedHash !== undefined && former !== expectedHash)) return false;
      await connection.query("update earmark.accounts set password = $2 where user_id = $1", [user, password]);
      await connection.query(
        "delete from earmark.credentials where user_id = $1 and kind = 'session' and id is distinct from $2::uuid",
        [user, keepSession ?? null],
      );
      return true;
    });
  }

  async delete(caller: Caller, at: Date): Promise<boolean> {
    const { user } = caller;
    let wasThere = false;
    const isDone = await this.#takeAway(async (connection) => {
      const { rows } = await connection.query<AccountRow>(
        `select ${ACCOUNT} from earmark.accounts a where user_id = $1 for update`,
        [user],
      );
      const [row] = rows;
      // Gone at the second try: then the first one has happened, though we did not hear of it.
      if (row === undefined && wasThere) return true;
      await requireCredential(connection, caller, at);
      if (row === undefined) return false;
      wasThere = true;
      // Writers of the list wait for this lock, and then find that the user has gone.
      await connection.query(
        "insert into earmark.lists (user_id, sequence, total) values ($1, 0, 0) on conflict do nothing",
        [user],
      );
      const { rows: lists } = await connection.query<{ sequence: string }>(
        "select sequence from earmark.lists where user_id = $1 for update",
        [user],
      );
      await connection.query("insert into earmark.erasures values ($1, $2)", [user, lists[0]?.sequence]);
      await connection.query(`update earmark.lists set sequence = ${DELETED}, total = 0 where user_id = $1`, [user]);
      for (const table of ["gaps", "credentials", "accounts"])
        await connection.query(`delete from earmark.${table} where user_id = $1`, [user]);
      const key = uuidOf(identityKey(row.name, row.issuer));
      await connection.query("delete from earmark.identities where key = $1", [key]);
      return true;
    });
    if (isDone) {
      await this.#erase(user).catch((cause: unknown) => {
        throw new StoreUnavailable("the account is deleted, and its list is not erased yet", { cause, unknown: true });
      });
    }
    return isDone;
  }

  /** Erases a deleted list in pieces, from the highest sequence number down. */
  async #erase(user: UserId): Promise<void> {
    let isErased = false;
    while (!isErased) {
      isErased = await this.#transact(async (connection) => {
        const { rows } = await connection.query<{ remaining: string }>(
          "select remaining from earmark.erasures where user_id = $1 for update",
          [user],
        );
        if (rows[0] === undefined) return true;
        const remaining = Number(rows[0].remaining) - ERASED_AT_ONCE;
        for (const table of ["subscriptions", "removals"])
          await connection.query(`delete from earmark.${table} where user_id = $1 and sequence > $2`, [
            user,
            remaining,
          ]);
        if (remaining > 0)
          await connection.query("update earmark.erasures set remaining = $2 where user_id = $1", [user, remaining]);
        else await connection.query("delete from earmark.erasures where user_id = $1", [user]);
        return remaining <= 0;
      });
    }
  }

  addCredential(caller: Caller, added: NewCredential): Promise<"added" | "full" | "gone"> {
    const { credential, hash, atMost, password } = added;
    const { id, kind, user, scope, label, createdAt, usedAt, expiresAt } = credential;
    return this.#transact(async (connection) => {
      const current = await lockAccount(connection, user);
      const { rows } = await connection.query<{ count: string; known: boolean }>(
        `select count(*) as count, coalesce(bool_or(hash = $3), false) as known
         from earmark.credentials where user_id = $1 and kind = $2`,
        [user, kind, bytesOf(hash)],
      );
      // An attempt whose answer was lost has added it.
      if (rows[0]?.known === true) return "added";
      await requireCredential(connection, caller, createdAt);
      if (user !== NOBODY && current === undefined) return "gone";
      if (password !== undefined && current !== password) return "gone";
      if (Number(rows[0]?.count) >= atMost) return "full";
      await connection.query(
        `insert into earmark.credentials (hash, user_id, id, kind, scope, label, created_at, used_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
        [
          bytesOf(hash),
          user,
          id,
          kind,
          scope,
          label,
          createdAt.getTime(),
          usedAt?.getTime() ?? NEVER,
          expiresAt?.getTime() ?? NEVER,
        ],
      );
      return "added";
    });
  }

  /** All who ask while one question is under way share the next one. */
  async findCredential(hash: string): Promise<Credential | undefined> {
    this.#nextLookUp ??= this.#lookUp();
    this.#wanted.add(hash);
    return (await this.#nextLookUp).get(hash);
  }

  async #lookUp(): Promise<ReadonlyMap<string, Credential>> {
    await this.#lookingUp;
    const hashes = [...this.#wanted];
    this.#wanted.clear();
    this.#nextLookUp = undefined;
    const rows = this.#read<CredentialRow & { hash: Buffer }>(
      `select hash, ${CREDENTIAL} from earmark.credentials where hash = any($1)`,
      hashes.map(bytesOf),
    );
    this.#lookingUp = rows.then(
      () => undefined,
      () => undefined,
    );
    return new Map((await rows).map((row) => [row.hash.toString("base64url"), toCredential(row)]));
  }

  async listCredentials(user: UserId, kind: Credential["kind"]): Promise<readonly Credential[]> {
    const rows = await this.#read<CredentialRow>(
      `select ${CREDENTIAL} from earmark.credentials where user_id = $1 and kind = $2 order by created_at, id`,
      user,
      kind,
    );
    return rows.map(toCredential);
  }

  removeCredential(caller: Caller, kind: Credential["kind"], id: string, at: Date): Promise<boolean> {
    const values = [caller.user, kind, id];
    let wasThere = false;
    return this.#takeAway(async (connection) => {
      // Two sessions of one user that end each other would deadlock.
      await lockAccount(connection, caller.user);
      const { rows } = await connection.query(
        "select 1 from earmark.credentials where user_id = $1 and kind = $2 and id = $3",
        values,
      );
      // Gone at the second try: the caller's own credential may be the one that the first try removed.
      if (rows.length === 0 && wasThere) return true;
      await requireCredential(connection, caller, at);
      const { rowCount } = await connection.query(
        "delete from earmark.credentials where user_id = $1 and kind = $2 and id = $3",
        values,
      );
      wasThere ||= rowCount === 1;
      return wasThere;
    });
  }

  async touchCredential(hash: string, at: Date): Promise<void> {
    await this.#read(
      "update earmark.credentials set used_at = greatest(used_at, $2) where hash = $1",
      bytesOf(hash),
      at.getTime(),
    );
  }

  async sweep(at: Date): Promise<void> {
    const now = at.getTime();
    await this.#read(
      `delete from earmark.credentials where (expires_at <> ${NEVER} and expires_at <= $1)
       or (kind = 'session' and greatest(used_at, created_at) <= $1 - ${SESSION_IDLE_MS})`,
      now,
    );
    await this.#read("delete from earmark.limits where moment < $1", now);
    const unfinished = await this.#read<{ user_id: string }>("select user_id from earmark.erasures");
    for (const { user_id } of unfinished) await this.#erase(Number(user_id));
  }

  /** From the lease of this process if there is one, else from what all processes share. */
  spend(key: string, cost: number, rate: Rate, at: Date): Soon<number> {
    const size = Math.floor(rate.burst / LEASES);
    if (size <= cost) return this.#spendShared(key, cost, rate, at);
    const lease = this.#leases.get(key);
    if (lease !== undefined && lease.left >= cost && lease.until > at.getTime()) {
      lease.left -= cost;
      return 0;
    }
    // All who wait for the same key share one question.
    const taking =
      this.#taking.get(key) ?? this.#takeLease(key, size, rate, at).finally(() => this.#taking.delete(key));
    this.#taking.set(key, taking);
    return taking.then((wait) => (wait > 0 ? wait : this.spend(key, cost, rate, at)));
  }

  async #takeLease(key: string, size: number, rate: Rate, at: Date): Promise<number> {
    const wait = await this.#spendShared(key, size, rate, at);
    if (wait > 0) return wait;
    const now = at.getTime();
    if (this.#leases.size >= MAX_LEASES) {
      for (const [other, { until }] of this.#leases) if (until <= now) this.#leases.delete(other);
      if (this.#leases.size >= MAX_LEASES) this.#leases.clear();
    }
    this.#leases.set(key, { left: size, until: now + LEASE_MS });
    return 0;
  }

  async #spendShared(key: string, cost: number, rate: Rate, at: Date): Promise<number> {
    const now = at.getTime();
    const each = 60_000 / rate.perMinute;
    const id = uuidOf(limitKey(key));
    for (;;) {
      // The arithmetic of `spendAt`, in one statement: what two processes spend at once counts twice.
      const spent = await this.#read(
        `insert into earmark.limits as l (key, moment) values ($1, $2::float8 + $3::float8)
         on conflict (key) do update set moment = greatest(l.moment, $2::float8) + $3::float8
         where greatest(l.moment, $2::float8) < $2::float8 + $4::float8
         returning 1`,
        id,
        now,
        cost * each,
        (rate.burst - Math.min(cost, rate.burst)) * each + 1,
      );
      if (spent.length > 0) return 0;
      const [row] = await this.#read<{ moment: number }>("select moment from earmark.limits where key = $1", id);
      const { wait } = spendAt(row?.moment, cost, rate, now);
      if (wait > 0) return wait;
    }
  }

  #read<Row extends object>(sql: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#postgres.retry(async (connection) => (await connection.query<Row>(sql, [...values])).rows);
  }

  #transact<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#postgres.retry((connection) => transact(connection, work));
  }

  /** A transaction by which credentials end. */
  async #takeAway(work: (connection: Connection) => Promise<boolean>): Promise<boolean> {
    const isDone = await this.#transact(work);
    await forgottenByAll();
    return isDone;
  }
}

/** The hash of the account's password; undefined when there is no account. Changes of one account wait for each other here. */
async function lockAccount(connection: Connection, user: UserId): Promise<string | undefined> {
  const { rows } = await connection.query<{ password: string }>(
    "select password from earmark.accounts where user_id = $1 for update",
    [user],
  );
  return rows[0]?.password;
}

/** One transaction. It may have happened though this throws: whoever repeats it must see that. */
async function transact<T>(connection: Connection, work: (connection: Connection) => Promise<T>): Promise<T> {
  await connection.query("begin");
  await connection.query(`set local lock_timeout = ${LOCK_MS}`);
  const result = await work(connection);
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new Error("PostgreSQL rolled back");
  return result;
}

async function create(
  connection: Connection,
  wished: UserId,
  { name, issuer, password, isOwner, invitation }: NewAccount,
  at: Date,
): Promise<UserId | "name-taken" | "not-invited" | "again"> {
  const refuse = async <T>(answer: T): Promise<T> => {
    await connection.query("rollback");
    return answer;
  };
  await connection.query("begin");
  await connection.query(`set local lock_timeout = ${LOCK_MS}`);
  const key = uuidOf(identityKey(name, issuer));
  const { rows: known } = await connection.query<{ user_id: string }>(
    "select user_id from earmark.identities where key = $1",
    [key],
  );
  const [identity] = known;
  if (identity !== undefined) {
    const user = Number(identity.user_id);
    const { rows } = await connection.query<{ password: string }>(
      "select password from earmark.accounts where user_id = $1",
      [user],
    );
    // A hash has a salt of its own: the same one means that this very account was made by a try that we lost.
    return refuse(password !== "" && rows[0]?.password === password ? user : ("name-taken" as const));
  }
  // Both of one instant: whoever is just being made is in both or in neither.
  const { rows: accounts } = await connection.query<{ any: boolean; owned: boolean }>(
    `select exists (select 1 from earmark.accounts) as any,
       exists (select 1 from earmark.accounts where user_id = $1) as owned`,
    [LOCAL_USER],
  );
  const isFirst = accounts[0]?.any === false;
  if (invitation !== undefined) {
    const values = [bytesOf(invitation)];
    const { rows } = await connection.query<{ kind: string }>(
      "select kind from earmark.credentials where hash = $1",
      values,
    );
    const kind = rows[0]?.kind;
    if (kind !== "invitation" && !(kind === "setup" && isFirst)) return refuse("not-invited");
    if (kind === "invitation") {
      const { rowCount } = await connection.query("delete from earmark.credentials where hash = $1", values);
      if (rowCount !== 1) return refuse("not-invited");
    }
  }
  const { rows: lists } = await connection.query<{ user_id: string; sequence: string }>(
    "select user_id, sequence from earmark.lists where user_id = any($1)",
    [[LOCAL_USER, wished]],
  );
  const isLocal =
    isOwner &&
    accounts[0]?.owned === false &&
    !lists.some((list) => Number(list.user_id) === LOCAL_USER && Number(list.sequence) === DELETED);
  const user = isLocal ? LOCAL_USER : wished;
  if (!isLocal && lists.some((list) => Number(list.user_id) === wished))
    throw new StoreUnavailable("the number of a new user was taken");
  const { rowCount: named } = await connection.query(
    "insert into earmark.identities (key, user_id) values ($1, $2) on conflict do nothing",
    [key, user],
  );
  if (named !== 1) return refuse("again");
  const { rowCount: made } = await connection.query(
    `insert into earmark.accounts (user_id, created_at, name, issuer, password) values ($1, $2, $3, $4, $5)
     on conflict do nothing`,
    [user, at.getTime(), name, issuer, password],
  );
  if (made !== 1) {
    if (!isLocal) throw new StoreUnavailable("the number of a new user was taken");
    // Somebody else has just become the first.
    return refuse("again");
  }
  // There may be several links for the first account; no other is to be made by them. Not before: two who use theirs at
  // once would wait for each other.
  if (isFirst) await connection.query("delete from earmark.credentials where kind = 'setup'");
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new Error("PostgreSQL rolled back");
  return user;
}

function uuidOf(key: Buffer): string {
  return key.toString("hex");
}

function toAccount({ user_id, name, issuer, created_at }: AccountRow): Account {
  return { user: Number(user_id), name, issuer, createdAt: new Date(Number(created_at)) };
}

function toCredential(row: CredentialRow): Credential {
  const moment = (time: string) => (Number(time) === NEVER ? undefined : new Date(Number(time)));
  return {
    id: row.id,
    kind: row.kind,
    user: Number(row.user_id),
    scope: row.scope,
    label: row.label,
    createdAt: new Date(Number(row.created_at)),
    usedAt: moment(row.used_at),
    expiresAt: moment(row.expires_at),
  };
}
