import {
  type AccountStore,
  type Credential,
  type NewAccount,
  type NewCredential,
  type NewPassword,
  NOBODY,
  SESSION_IDLE_MS,
  type SessionsToEnd,
  type SharedRateLimits,
  type StoredAccount,
} from "../../accounts/account-store.ts";
import { AUDIT_MS, isActiveAdmin } from "../../accounts/administration-store.ts";
import type { Caller, UserId } from "../../accounts/caller.ts";
import { rulesOf } from "../../accounts/credential-kinds.ts";
import { referenceOf } from "../../accounts/names.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { bytesOf, DELETED, ERASE_BATCH_SIZE, nameKey, rateLimitKey } from "../shared/keys.ts";
import { tablesByDeletion } from "../shared/tables.ts";
import { type AccountColumns, addAuditEntry, logCredential, nameOf, toAccount } from "./administration.ts";
import { type Connection, type Postgres, transact } from "./connection.ts";
import {
  CREDENTIAL,
  type CredentialRow,
  deleteCredentials,
  endSessions,
  hasActiveAdmin,
  lockAccount,
  lockAdministration,
  NEVER,
  requireAdmin,
  requireValidCredential,
  requireValidPassword,
  toCredential,
} from "./credentials.ts";
import { createAccount } from "./new-account.ts";
import { eraseIfUnused } from "./podcasts.ts";

/** Maximum number of entries in the cache of users. */
const MAX_USERS = 50_000;

const ACCOUNT = "a.user_id, a.name, a.issuer, a.created_at, a.is_admin, a.disabled_at, a.password";

interface AccountRow extends AccountColumns {
  readonly password: string;
}

/** Accounts in PostgreSQL. Every change can be retried: a connection may be lost after its commit. */
export class PostgresAccounts implements AccountStore {
  readonly sharedRateLimits: SharedRateLimits = {
    read: async (key) => {
      const id = rateLimitKey(key).toString("hex");
      const [row] = await this.#query<{ moment: number }>("select moment from earmark.limits where key = $1", id);
      return row?.moment;
    },
    replace: async (key, expected, next) => {
      const replaced = await this.#query(
        `insert into earmark.limits as l (key, moment) values ($1, $2)
         on conflict (key) do update set moment = excluded.moment where l.moment = $3
         returning 1`,
        rateLimitKey(key).toString("hex"),
        next,
        expected ?? null,
      );
      return replaced.length > 0;
    },
  };
  readonly #postgres: Postgres;
  /**
   * Cache of users by name or secret. Every use checks the entry against the user's own rows, so it may be outdated.
   * It saves a query, and the user's requests do not need the node that has the name or the secret.
   */
  readonly #users = new Map<string, UserId>();

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  async isEmpty(): Promise<boolean> {
    return (await this.#query("select 1 from earmark.accounts limit 1")).length === 0;
  }

  create(user: UserId, account: NewAccount, at: Date): Promise<UserId | "name-taken" | "invalid-invitation"> {
    return this.#postgres.retry(async (connection) => {
      for (;;) {
        const outcome = await createAccount(connection, user, account, at);
        if (outcome !== "retry") return outcome;
      }
    });
  }

  find(name: string, issuer: string): Promise<StoredAccount | undefined> {
    const key = nameKey(name, issuer).toString("hex");
    return this.#findThroughUser(
      `name ${key}`,
      "select user_id from earmark.identities where key = $1",
      key,
      async (user) => {
        const found = await this.get(user);
        return found?.account.name === name && found.account.issuer === issuer ? found : undefined;
      },
    );
  }

  /** Looks up the user of a name or secret, and then what `read` finds in that user's rows. */
  async #findThroughUser<T>(
    cacheKey: string,
    sql: string,
    key: unknown,
    read: (user: UserId) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const cached = this.#users.get(cacheKey);
    const found = cached === undefined ? undefined : await read(cached);
    if (found !== undefined) return found;
    const [row] = await this.#query<{ user_id: string }>(sql, key);
    if (row === undefined) return undefined;
    const user = Number(row.user_id);
    if (this.#users.size >= MAX_USERS) this.#users.clear();
    this.#users.set(cacheKey, user);
    return read(user);
  }

  async get(user: UserId): Promise<StoredAccount | undefined> {
    const [row] = await this.#queryOf<AccountRow>(`select ${ACCOUNT} from earmark.accounts a where user_id = $1`, user);
    return row && { account: toAccount(row), passwordHash: row.password };
  }

  setPassword(caller: Caller, newPassword: NewPassword, at: Date): Promise<boolean> {
    const { user } = caller;
    const { passwordHash, keepSession, expectedHash, revokesTokens, resetBy } = newPassword;
    return this.#transact(async (connection) => {
      const current = (await lockAccount(connection, user))?.password;
      // Hashes are unique, so an earlier attempt whose reply was lost has already set this one.
      if (current === passwordHash) return true;
      await requireValidCredential(connection, caller, at);
      if (current === undefined || (expectedHash !== undefined && current !== expectedHash)) return false;
      await connection.query("update earmark.accounts set password = $2 where user_id = $1", [user, passwordHash]);
      await endSessions(connection, user, keepSession, revokesTokens);
      if (resetBy !== undefined)
        await addAuditEntry(connection, "password-reset", await nameOf(connection, user), resetBy, at);
      return true;
    }, user);
  }

  async delete(caller: Caller, at: Date, user = caller.user): Promise<"deleted" | "gone" | "last-admin"> {
    let wasThere = false;
    const outcome = await this.#transact(async (connection) => {
      await lockAdministration(connection);
      // Creates the list if needed, so that it can be locked. Writers too lock the list before the account, so they wait here.
      await connection.query(
        `insert into earmark.lists (user_id, sequence, total)
         select user_id, 0, 0 from earmark.accounts where user_id = $1 on conflict do nothing`,
        [user],
      );
      const { rows: lists } = await connection.query<{ sequence: string }>(
        "select sequence from earmark.lists where user_id = $1 for update",
        [user],
      );
      const { rows } = await connection.query<AccountRow>(
        `select ${ACCOUNT} from earmark.accounts a where user_id = $1 for update`,
        [user],
      );
      const [row] = rows;
      // Missing on a retry: the first attempt deleted it, but its reply was lost.
      if (row === undefined && wasThere) return "deleted";
      await requireValidPassword(connection, caller);
      await requireValidCredential(connection, caller, at);
      await requireAdmin(connection, caller);
      if (row === undefined) return "gone";
      if (isActiveAdmin(toAccount(row)) && (await wouldLeaveNoAdmin(connection, user))) return "last-admin";
      wasThere = true;
      // Tables have sequence numbers of their own; the highest decides how many steps there are.
      const numbers = [Number(lists[0]?.sequence)];
      for (const table of tablesByDeletion("in-steps")) {
        const sql = `select coalesce(max(sequence), 0) as last from earmark.${table} where user_id = $1`;
        numbers.push(Number((await connection.query(sql, [user])).rows[0]?.last));
      }
      await connection.query("insert into earmark.erasures values ($1, $2)", [user, Math.max(...numbers)]);
      await connection.query(`update earmark.lists set sequence = ${DELETED}, total = 0 where user_id = $1`, [user]);
      await deleteCredentials(connection, user);
      for (const table of tablesByDeletion("at-once"))
        await connection.query(`delete from earmark.${table} where user_id = $1`, [user]);
      const key = nameKey(row.name, row.issuer).toString("hex");
      await connection.query("delete from earmark.identities where key = $1", [key]);
      await addAuditEntry(connection, "account-deleted", referenceOf(row), caller.actor, at);
      return "deleted";
    }, caller.user);
    if (outcome === "deleted") {
      await this.#erase(user).catch((cause: unknown) => {
        throw new StoreUnavailable("the account is deleted, but its list has not been erased completely", {
          cause,
          isOutcomeUnknown: true,
        });
      });
    }
    return outcome;
  }

  /** Erases a deleted list in steps, from the highest sequence number down. */
  async #erase(user: UserId): Promise<void> {
    let isErased = false;
    while (!isErased) {
      let feeds: readonly string[] = [];
      isErased = await this.#transact(async (connection) => {
        const { rows } = await connection.query<{ remaining: string }>(
          "select remaining from earmark.erasures where user_id = $1 for update",
          [user],
        );
        if (rows[0] === undefined) return true;
        const remaining = Number(rows[0].remaining) - ERASE_BATCH_SIZE;
        const { rows: subscriptions } = await connection.query<{ feed: string }>(
          "select feed from earmark.subscriptions where user_id = $1 and sequence > $2",
          [user, remaining],
        );
        for (const table of tablesByDeletion("in-steps"))
          await connection.query(`delete from earmark.${table} where user_id = $1 and sequence > $2`, [
            user,
            remaining,
          ]);
        feeds = subscriptions.map(({ feed }) => feed);
        if (remaining > 0)
          await connection.query("update earmark.erasures set remaining = $2 where user_id = $1", [user, remaining]);
        else await connection.query("delete from earmark.erasures where user_id = $1", [user]);
        return remaining <= 0;
      });
      // If the process crashes before this, the hourly `eraseUnused` erases these podcasts.
      await eraseIfUnused(this.#postgres, feeds);
    }
  }

  addCredential(caller: Caller, added: NewCredential): Promise<"added" | "full" | "gone"> {
    const { credential, hash, passwordHash } = added;
    const { id, kind, user, scope, label, createdAt, usedAt, expiresAt } = credential;
    return this.#transact(async (connection) => {
      if (caller.requiresAdmin === true) await lockAdministration(connection);
      const current = await lockAccount(connection, user);
      const { rows } = await connection.query<{ count: string; known: boolean }>(
        `select count(*) as count, coalesce(bool_or(hash = $3 and id = $4), false) as known
         from earmark.credentials where user_id = $1 and kind = $2`,
        [user, kind, bytesOf(hash), id],
      );
      // An earlier attempt whose reply was lost has already added it.
      if (rows[0]?.known === true) return "added";
      await requireValidPassword(connection, caller);
      await requireValidCredential(connection, caller, createdAt);
      await requireAdmin(connection, caller);
      if (user !== NOBODY && current?.isDisabled !== false) return "gone";
      if (passwordHash !== undefined && current?.password !== passwordHash) return "gone";
      if (Number(rows[0]?.count) >= rulesOf(kind).max) return "full";
      const { rowCount } = await connection.query(
        "insert into earmark.credential_users (hash, user_id) values ($1, $2) on conflict do nothing",
        [bytesOf(hash), user],
      );
      if (rowCount !== 1) return "gone";
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
      await logCredential(connection, "created", credential, caller.actor, createdAt);
      return "added";
    }, caller.user);
  }

  findCredential(hash: string): Promise<Credential | undefined> {
    const key = bytesOf(hash);
    return this.#findThroughUser(
      hash,
      "select user_id from earmark.credential_users where hash = $1",
      key,
      async (user) => {
        const sql = `select ${CREDENTIAL} from earmark.credentials where user_id = $1 and hash = $2`;
        const [row] = await this.#queryOf<CredentialRow>(sql, user, key);
        return row && toCredential(row);
      },
    );
  }

  async listCredentials(user: UserId, kind: Credential["kind"]): Promise<readonly Credential[]> {
    const rows = await this.#queryOf<CredentialRow>(
      `select ${CREDENTIAL} from earmark.credentials where user_id = $1 and kind = $2 order by created_at, id`,
      user,
      kind,
    );
    return rows.map(toCredential);
  }

  removeCredential(
    caller: Caller,
    kind: Credential["kind"],
    id: string,
    at: Date,
    sessionsToEnd?: SessionsToEnd,
  ): Promise<boolean> {
    const owner = kind === "invitation" && caller.requiresAdmin === true ? NOBODY : caller.user;
    let wasThere = false;
    return this.#transact(async (connection) => {
      if (caller.requiresAdmin === true) await lockAdministration(connection);
      // Two sessions of one user that remove each other would deadlock otherwise.
      await lockAccount(connection, caller.user);
      const { rows } = await connection.query<{ label: string }>(
        "select label from earmark.credentials where user_id = $1 and kind = $2 and id = $3",
        [owner, kind, id],
      );
      // Missing on a retry: the first attempt may have removed the caller's own credential.
      if (rows.length === 0 && wasThere) return true;
      await requireValidPassword(connection, caller);
      await requireValidCredential(connection, caller, at);
      await requireAdmin(connection, caller);
      const isDeleted = (await deleteCredentials(connection, owner, "kind = $2 and id = $3", kind, id)) === 1;
      wasThere ||= isDeleted;
      if (isDeleted && sessionsToEnd !== undefined) await endSessions(connection, owner, sessionsToEnd.except);
      const revoked = { kind, user: owner, label: rows[0]?.label ?? "" };
      if (isDeleted) await logCredential(connection, "revoked", revoked, caller.actor, at);
      return wasThere;
    }, caller.user);
  }

  async replaceLabel(hash: string, expected: string, label: string): Promise<boolean> {
    const credential = await this.findCredential(hash);
    if (credential === undefined) return false;
    const replaced = await this.#queryOf(
      // Also true for a retry after an attempt whose reply was lost.
      `update earmark.credentials set label = $4
       where user_id = $1 and hash = $2 and label in ($3, $4) returning 1`,
      credential.user,
      bytesOf(hash),
      expected,
      label,
    );
    return replaced.length > 0;
  }

  async touchCredential(hash: string, at: Date): Promise<void> {
    const credential = await this.findCredential(hash);
    if (credential === undefined) return;
    await this.#queryOf(
      "update earmark.credentials set used_at = greatest(used_at, $3) where user_id = $1 and hash = $2",
      credential.user,
      bytesOf(hash),
      at.getTime(),
    );
  }

  async sweep(at: Date): Promise<void> {
    const now = at.getTime();
    await this.#transact(async (connection) => {
      const { rows } = await connection.query<{ hash: Buffer }>(
        `delete from earmark.credentials where (expires_at <> ${NEVER} and expires_at <= $1)
         or (kind = 'session' and greatest(used_at, created_at) <= $1 - ${SESSION_IDLE_MS}) returning hash`,
        [now],
      );
      const hashes = rows.map(({ hash }) => hash);
      await connection.query("delete from earmark.credential_users where hash = any($1)", [hashes]);
    });
    await this.#query("delete from earmark.limits where moment < $1", now);
    await this.#query("delete from earmark.audit_log where acted_at <= $1", now - AUDIT_MS);
    const unfinished = await this.#query<{ user_id: string }>("select user_id from earmark.erasures");
    for (const { user_id } of unfinished) await this.#erase(Number(user_id));
  }

  #query<Row extends object>(sql: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#postgres.retry(async (connection) => (await connection.query<Row>(sql, [...values])).rows);
  }

  /** Runs a query whose first parameter is the user. */
  #queryOf<Row extends object>(sql: string, user: UserId, ...values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#postgres.retry(async (connection) => (await connection.query<Row>(sql, [user, ...values])).rows, user);
  }

  #transact<T>(work: (connection: Connection) => Promise<T>, user?: UserId): Promise<T> {
    return this.#postgres.retry((connection) => transact(connection, work), user);
  }
}

/** Whether there are other accounts, but none that can administer the server. */
async function wouldLeaveNoAdmin(connection: Connection, user: UserId): Promise<boolean> {
  if (await hasActiveAdmin(connection, "<>", user)) return false;
  const { rows } = await connection.query("select 1 from earmark.accounts where user_id <> $1 limit 1", [user]);
  return rows.length > 0;
}
