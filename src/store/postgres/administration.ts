import { randomUUID } from "node:crypto";
import { type Account, NOBODY } from "../../accounts/account-store.ts";
import {
  type AccountSummary,
  ADMIN_ACTIONS,
  type AdminAction,
  type AdministrationStore,
  type AuditAction,
  type AuditEntry,
  applyAdminAction,
  COUNTED_TABLES,
  credentialAction,
  isActiveAdmin,
  type LoggedCredential,
  MAX_ROWS,
} from "../../accounts/administration-store.ts";
import { type Actor, type Caller, COMMAND_LINE, type UserId } from "../../accounts/caller.ts";
import { type CredentialKind, kindsToSwitch } from "../../accounts/credential-kinds.ts";
import { referenceOf } from "../../accounts/names.ts";
import type { PageRange } from "../../util/page-range.ts";
import { type Connection, type Postgres, transact } from "./connection.ts";
import {
  endSessions,
  hasActiveAdmin,
  lockAdministration,
  NEVER,
  requireAdmin,
  requireValidCredential,
  requireValidPassword,
  toDate,
} from "./credentials.ts";

export interface AccountColumns {
  readonly user_id: string;
  readonly name: string;
  readonly issuer: string;
  readonly created_at: string;
  readonly is_admin: number;
  readonly disabled_at: string;
}

export function toAccount({ user_id, name, issuer, created_at, is_admin, disabled_at }: AccountColumns): Account {
  return {
    ...{ user: Number(user_id), name, issuer, createdAt: new Date(Number(created_at)) },
    ...{ isAdmin: is_admin === 1, disabledAt: toDate(disabled_at) },
  };
}

/** Adds an entry to the audit log, in the transaction of what it records. */
export async function addAuditEntry(
  connection: Connection,
  action: AuditAction,
  target: string,
  { name, address }: Actor = COMMAND_LINE,
  at: Date,
): Promise<void> {
  await connection.query(
    "insert into earmark.audit_log (acted_at, id, action, actor, address, target) values ($1, $2, $3, $4, $5, $6)",
    [at.getTime(), randomUUID(), action, name, address, target],
  );
}

/** Records that a credential was created or revoked, if the audit log covers its kind. */
export async function logCredential(
  connection: Connection,
  what: "created" | "revoked",
  { kind, user, label }: LoggedCredential,
  actor: Actor | undefined,
  at: Date,
): Promise<void> {
  const action = credentialAction(what, kind);
  if (action === undefined) return;
  await addAuditEntry(connection, action, user === NOBODY ? label : await nameOf(connection, user), actor, at);
}

export async function nameOf(connection: Connection, user: UserId): Promise<string> {
  const { rows } = await connection.query<Pick<AccountColumns, "name" | "issuer">>(
    "select name, issuer from earmark.accounts where user_id = $1",
    [user],
  );
  return rows[0] === undefined ? "" : referenceOf(rows[0]);
}

type SummaryRow = AccountColumns & { readonly seen_at: string; readonly total: string | null };
const SUMMARY = `select a.user_id, name, issuer, created_at, is_admin, disabled_at, seen_at, total
  from earmark.accounts a left join earmark.lists l on l.user_id = a.user_id`;
const ROWS = COUNTED_TABLES.map(
  (table) => `select count(*) as rows from (select 1 from earmark.${table} where user_id = $1 limit ${MAX_ROWS}) r`,
);
const COUNT_ROWS = `select least(${MAX_ROWS}, sum(rows)) as rows from (${ROWS.join(" union all ")}) c`;

interface AuditRow extends Omit<AuditEntry, "at"> {
  readonly acted_at: string;
}

/** Accounts as administrators see and change them, and the audit log, in PostgreSQL. */
export class PostgresAdministration implements AdministrationStore {
  readonly #postgres: Postgres;

  constructor(postgres: Postgres) {
    this.#postgres = postgres;
  }

  page({ offset, size }: PageRange): Promise<{ accounts: AccountSummary[]; total: number }> {
    return this.#postgres.retry(async (connection) => {
      // The index alone finds the accounts of a page, however many come before it.
      const { rows: users } = await connection.query<Pick<SummaryRow, "user_id">>(
        "select user_id from earmark.accounts order by created_at, user_id limit $1 offset $2",
        [size, offset],
      );
      const { rows } = await connection.query<SummaryRow>(
        `${SUMMARY} where a.user_id = any($1) order by created_at, a.user_id`,
        [users.map(({ user_id }) => user_id)],
      );
      const accounts: AccountSummary[] = [];
      for (const row of rows) accounts.push(await toSummary(connection, row));
      return { accounts, total: await count(connection, "accounts") };
    });
  }

  get(user: UserId): Promise<AccountSummary | undefined> {
    return this.#postgres.retry(async (connection) => {
      const { rows } = await connection.query<SummaryRow>(`${SUMMARY} where a.user_id = $1`, [user]);
      return rows[0] && toSummary(connection, rows[0]);
    });
  }

  change(caller: Caller, user: UserId, action: AdminAction, at: Date): Promise<"done" | "gone" | "last-admin"> {
    let mayHaveCommitted = false;
    const work = async (connection: Connection) => {
      await lockAdministration(connection);
      const { rows } = await connection.query<AccountColumns>(
        `select user_id, name, issuer, created_at, is_admin, disabled_at from earmark.accounts
         where user_id = $1 for update`,
        [user],
      );
      const account = rows[0] && toAccount(rows[0]);
      const next = account && applyAdminAction(action, account, at);
      // On a retry: the first attempt, whose reply was lost, may have ended the caller's own access.
      if (mayHaveCommitted && account !== undefined && next === undefined) return "done";
      await requireValidPassword(connection, caller);
      await requireValidCredential(connection, caller, at);
      await requireAdmin(connection, caller);
      if (account === undefined) return "gone";
      if (next === undefined) return "done";
      const isLast = isActiveAdmin(account) && !isActiveAdmin(next) && !(await hasActiveAdmin(connection, "<>", user));
      if (isLast) return "last-admin";
      mayHaveCommitted = true;
      const disabledAt = next.disabledAt?.getTime() ?? NEVER;
      await connection.query("update earmark.accounts set is_admin = $2, disabled_at = $3 where user_id = $1", [
        ...[user, next.isAdmin ? 1 : 0, disabledAt],
      ]);
      if (action === "disable" || action === "enable") await switchCredentials(connection, user, action);
      await addAuditEntry(connection, ADMIN_ACTIONS[action], referenceOf(account), caller.actor, at);
      return "done";
    };
    return this.#postgres.retry((connection) => transact(connection, work));
  }

  auditLog({ offset, size }: PageRange): Promise<{ entries: AuditEntry[]; total: number }> {
    return this.#postgres.retry(async (connection) => {
      const { rows } = await connection.query<AuditRow>(
        `select acted_at, id, action, actor, address, target from earmark.audit_log
         order by acted_at desc, id desc limit $1 offset $2`,
        [size, offset],
      );
      const entries = rows.map(({ acted_at, ...entry }) => ({ ...entry, at: new Date(Number(acted_at)) }));
      return { entries, total: await count(connection, "audit_log") };
    });
  }

  async recordSeen(user: UserId, day: Date): Promise<void> {
    await this.#postgres.retry((connection) =>
      connection.query("update earmark.accounts set seen_at = $2 where user_id = $1 and seen_at < $2", [
        ...[user, day.getTime()],
      ]),
    );
  }
}

/**
 * Disabling deletes the sessions and reset links of an account and suspends its tokens; enabling restores the tokens.
 * Tokens are deleted and added again, because writers hold locks that only a deletion waits for.
 */
async function switchCredentials(connection: Connection, user: UserId, action: "disable" | "enable"): Promise<void> {
  if (action === "disable") await endSessions(connection, user, undefined);
  for (const [from, to] of kindsToSwitch(action)) await switchKind(connection, user, from, to);
}

async function switchKind(
  connection: Connection,
  user: UserId,
  from: CredentialKind,
  to: CredentialKind,
): Promise<void> {
  const columns = "hash, user_id, id, scope, label, created_at, used_at, expires_at";
  const { rows } = await connection.query<Readonly<Record<string, unknown>>>(
    `delete from earmark.credentials where user_id = $1 and kind = $2 returning ${columns}`,
    [user, from],
  );
  for (const row of rows) {
    await connection.query(
      `insert into earmark.credentials (kind, ${columns}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [to, ...columns.split(", ").map((column) => row[column])],
    );
  }
}

async function toSummary(connection: Connection, row: SummaryRow): Promise<AccountSummary> {
  const { rows } = await connection.query<{ rows: string }>(COUNT_ROWS, [row.user_id]);
  return {
    ...toAccount(row),
    ...{ seenAt: toDate(row.seen_at), subscriptions: Number(row.total ?? 0), rows: Number(rows[0]?.rows) },
  };
}

async function count(connection: Connection, table: "accounts" | "audit_log"): Promise<number> {
  const { rows } = await connection.query<{ count: string }>(`select count(*) as count from earmark.${table}`);
  return Number(rows[0]?.count);
}
