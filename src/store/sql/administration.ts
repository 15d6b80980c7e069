import type { Account } from "../../accounts/account-store.ts";
import { NOBODY } from "../../accounts/account-store.ts";
import {
  type AccountSummary,
  ADMIN_ACTIONS,
  type AdminAction,
  type AdministrationStore,
  type AuditEntry,
  applyAdminAction,
  COUNTED_TABLES,
  isActiveAdmin,
  MAX_ROWS,
} from "../../accounts/administration-store.ts";
import { asUser, type Caller, type UserId } from "../../accounts/caller.ts";
import { referenceOf } from "../../accounts/names.ts";
import type { PageRange } from "../../util/page-range.ts";
import { yieldTurn } from "../../util/turns.ts";
import { all, type Context, type Database, get, has, idOf, run, type Work, write } from "../shared/database.ts";
import { addAuditEntry } from "./audit.ts";
import { switchCredentials } from "./credentials.ts";
import { deleteLinks } from "./links.ts";
import { NEVER, toDate } from "./times.ts";

export interface AccountRow {
  readonly user_id: UserId;
  readonly name: string;
  readonly issuer: string;
  readonly created_at: number;
  readonly is_admin: number;
  readonly disabled_at: number;
  readonly totp_secret: string | null;
}
export const ACCOUNT_COLUMNS = "a.user_id, name, issuer, created_at, is_admin, disabled_at, totp_secret";

export function toAccount(row: AccountRow): Account {
  return {
    user: row.user_id,
    name: row.name,
    issuer: row.issuer,
    createdAt: new Date(row.created_at),
    isAdmin: row.is_admin === 1,
    disabledAt: toDate(row.disabled_at),
  };
}

/** Whether this is the only account that can administer the server. */
export function* isLastAdmin(user: UserId): Work<boolean> {
  const admin = "select 1 from earmark.accounts where is_admin = 1 and disabled_at = 0 and user_id";
  return (yield* has(`${admin} = $1`, user)) && !(yield* has(`${admin} <> $1 limit 1`, user));
}

function* administer({ caller, at }: Context, user: UserId, action: AdminAction) {
  const row = yield* get<AccountRow>(`select ${ACCOUNT_COLUMNS} from earmark.accounts a where user_id = $1`, user);
  if (row === undefined) return "gone";
  const account = toAccount(row);
  const next = applyAdminAction(action, account, new Date(at));
  if (next === undefined) return "done";
  if (!isActiveAdmin(next) && (yield* isLastAdmin(user))) return "last-admin";
  yield* run(
    "update earmark.accounts set is_admin = $2, disabled_at = $3 where user_id = $1",
    user,
    next.isAdmin ? 1 : 0,
    next.disabledAt?.getTime() ?? NEVER,
  );
  if (action === "disable" || action === "enable") yield* switchCredentials(user, action);
  if (action === "disable") yield* deleteLinks(user);
  yield* addAuditEntry(ADMIN_ACTIONS[action], referenceOf(account), caller.actor, at);
  return "done";
}

export const ADMINISTRATION_WRITES = {
  administer: write({ locks: "account", isAdministration: true, user: (user: UserId) => user }, administer),
  recordSeen: write({ isRepeatable: true, isSingle: true, user: (user: UserId) => user }, ({ at }, user: UserId) =>
    run("update earmark.accounts set seen_at = $2 where user_id = $1 and seen_at < $2", user, at),
  ),
} as const;

type SummaryRow = AccountRow & { readonly seen_at: number; readonly total: number | null };
const SUMMARY = `select ${ACCOUNT_COLUMNS}, seen_at, total
  from earmark.accounts a left join earmark.lists l on l.user_id = a.user_id`;
const ROWS = COUNTED_TABLES.map(
  (table) => `select * from (select 1 from earmark.${table} where user_id = $1 limit ${MAX_ROWS}) as part`,
);
const COUNT_ROWS = `select count(*) as n from (${ROWS.join(" union all ")}) as parts`;

/** Accounts as administrators see and change them, and the audit log. */
export class SqlAdministration implements AdministrationStore {
  readonly #database: Database<typeof ADMINISTRATION_WRITES>;

  constructor(database: Database<typeof ADMINISTRATION_WRITES>) {
    this.#database = database;
  }

  async page({ offset, size }: PageRange): Promise<{ accounts: AccountSummary[]; total: number }> {
    // The index alone finds the accounts of a page, however many come before it.
    const users = await this.#database.read(() =>
      all<{ user_id: UserId }>(
        "select user_id from earmark.accounts order by created_at, user_id limit $1 offset $2",
        size,
        offset,
      ),
    );
    const accounts: AccountSummary[] = [];
    for (const { user_id } of users) {
      // Counting the rows of many large accounts takes a while.
      await yieldTurn();
      const summary = await this.get(user_id);
      if (summary !== undefined) accounts.push(summary);
    }
    return { accounts, total: await this.#count("accounts") };
  }

  get(user: UserId): Promise<AccountSummary | undefined> {
    return this.#database.read(() => readSummary(user));
  }

  change(caller: Caller, user: UserId, action: AdminAction, at: Date): Promise<"done" | "gone" | "last-admin"> {
    return this.#database.write(caller, at, "administer", user, action);
  }

  async auditLog({ offset, size }: PageRange): Promise<{ entries: AuditEntry[]; total: number }> {
    const rows = await this.#database.read(() =>
      all<Omit<AuditEntry, "at"> & { acted_at: number }>(
        `select acted_at, id, action, actor, address, target from earmark.audit_log
         order by acted_at desc, id desc limit $1 offset $2`,
        size,
        offset,
      ),
    );
    const entries = rows.map(({ acted_at, id, ...entry }) => ({ ...entry, id: idOf(id), at: new Date(acted_at) }));
    return { entries, total: await this.#count("audit_log") };
  }

  async recordSeen(user: UserId, day: Date): Promise<void> {
    await this.#database.write(asUser(NOBODY), day, "recordSeen", user);
  }

  async #count(table: "accounts" | "audit_log"): Promise<number> {
    const row = await this.#database.read(() => get<{ n: number }>(`select count(*) as n from earmark.${table}`));
    return row?.n ?? 0;
  }
}

function* readSummary(user: UserId): Work<AccountSummary | undefined> {
  const row = yield* get<SummaryRow>(`${SUMMARY} where a.user_id = $1`, user);
  if (row === undefined) return undefined;
  const counted = yield* get<{ n: number }>(COUNT_ROWS, user);
  return {
    ...toAccount(row),
    hasSecondFactor: row.totp_secret !== null,
    seenAt: toDate(row.seen_at),
    subscriptions: row.total ?? 0,
    rows: Math.min(MAX_ROWS, counted?.n ?? 0),
  };
}
