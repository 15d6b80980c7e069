import { randomUUID } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import { NOBODY } from "../../accounts/account-store.ts";
import {
  type AccountSummary,
  ADMIN_ACTIONS,
  type AdminAction,
  type AdministrationStore,
  AUDIT_MS,
  type AuditAction,
  type AuditEntry,
  applyAdminAction,
  COUNTED_TABLES,
  credentialAction,
  isActiveAdmin,
  type LoggedCredential,
  MAX_ROWS,
} from "../../accounts/administration-store.ts";
import { type Actor, asUser, type Caller, COMMAND_LINE, type UserId } from "../../accounts/caller.ts";
import { kindsEndedByPassword, kindsToSwitch } from "../../accounts/credential-kinds.ts";
import { referenceOf } from "../../accounts/names.ts";
import type { PageRange } from "../../util/page-range.ts";
import { yieldTurn } from "../../util/turns.ts";
import { idKey, idOfKey } from "../shared/keys.ts";
import { NEVER, toDate } from "./account-rows.ts";
import { wrapReadErrors } from "./file.ts";
import { Statements } from "./statements.ts";

/**
 * An administrator's action, or the day on which an account was last used, as sent to the writer thread, which replies
 * with one of the numbers below.
 */
export type AdministrationChange =
  | {
      readonly kind: "administer";
      readonly user: UserId;
      readonly action: AdminAction;
      readonly actor: Actor;
      readonly at: number;
    }
  | { readonly kind: "seen"; readonly user: UserId; readonly at: number };

const [GONE, DONE, LAST_ADMIN] = [0, 1, 2];

/** Applies administrators' changes inside the transaction of the writer thread, and writes the audit log. */
export class AdministrationWriter {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  apply(change: AdministrationChange): number {
    if (change.kind === "administer") return this.#administer(change);
    const { user, at } = change;
    this.#statements.run("update accounts set seen_at = ?1 where user_id = ?2 and seen_at < ?1", at, user);
    return DONE;
  }

  #administer({ user, action, actor, at }: AdministrationChange & { kind: "administer" }): number {
    const [admin, disabled] =
      this.#statements.get<[number, number]>("select is_admin, disabled_at from accounts where user_id = ?", user) ??
      [];
    if (admin === undefined || disabled === undefined) return GONE;
    const next = applyAdminAction(action, { isAdmin: admin === 1, disabledAt: toDate(disabled) }, new Date(at));
    if (next === undefined) return DONE;
    if (!isActiveAdmin(next) && this.isLastAdmin(user)) return LAST_ADMIN;
    const disabledAt = next.disabledAt?.getTime() ?? NEVER;
    const row = [next.isAdmin ? 1 : 0, disabledAt, user];
    this.#statements.run("update accounts set is_admin = ?, disabled_at = ? where user_id = ?", ...row);
    if (action === "disable")
      for (const kind of kindsEndedByPassword(false))
        this.#statements.run("delete from credentials where user_id = ? and kind = ?", user, kind);
    if (action === "disable" || action === "enable")
      for (const [from, to] of kindsToSwitch(action))
        this.#statements.run("update credentials set kind = ? where user_id = ? and kind = ?", to, user, from);
    this.addAuditEntry(ADMIN_ACTIONS[action], this.nameOf(user), actor, at);
    return DONE;
  }

  /** Whether nobody else can administer the server. */
  isLastAdmin(user: UserId): boolean {
    const admin = "select 1 from accounts where is_admin = 1 and disabled_at = 0 and user_id";
    return this.#statements.has(`${admin} = ?`, user) && !this.#statements.has(`${admin} <> ? limit 1`, user);
  }

  nameOf(user: UserId): string {
    const row = this.#statements.get<[string, string]>("select name, issuer from accounts where user_id = ?", user);
    return row === undefined ? "" : referenceOf({ name: row[0], issuer: row[1] });
  }

  addAuditEntry(action: AuditAction, target: string, { name, address }: Actor = COMMAND_LINE, at: number): void {
    this.#statements.run(
      "insert into audit_log (acted_at, id, action, actor, address, target) values (?, ?, ?, ?, ?, ?)",
      ...[at, idKey(randomUUID()), action, name, address, target],
    );
  }

  /** Records that a credential was created or revoked, if the audit log covers its kind. */
  logCredential(what: "created" | "revoked", credential: LoggedCredential, actor: Actor, at: number): void {
    const { kind, user, label } = credential;
    const action = credentialAction(what, kind);
    if (action !== undefined) this.addAuditEntry(action, user === NOBODY ? label : this.nameOf(user), actor, at);
  }

  /** Deletes old entries of the audit log. */
  deleteOldEntries(now: number): void {
    this.#statements.run("delete from audit_log where acted_at <= ?", now - AUDIT_MS);
  }
}

type SummaryRow = [
  ...[user: number, name: string, issuer: string, createdAt: number, isAdmin: number],
  ...[disabledAt: number, seenAt: number, subscriptions: number | null],
];
const SUMMARY = `select a.user_id, name, issuer, created_at, is_admin, disabled_at, seen_at, total
  from accounts a left join lists l on l.user_id = a.user_id`;
/** The index alone finds the accounts of a page, however many come before it. */
const SUMMARY_PAGE = `${SUMMARY} where a.user_id in (select user_id from accounts order by created_at, user_id limit ? offset ?)
  order by created_at, a.user_id`;
const ROWS = COUNTED_TABLES.map(
  (table) => `select * from (select 1 from ${table} where user_id = ?1 limit ${MAX_ROWS})`,
);
const COUNT_ROWS = `select min(${MAX_ROWS}, count(*)) from (${ROWS.join(" union all ")})`;

type AuditRow = [at: number, id: Uint8Array, action: AuditAction, actor: string, address: string, target: string];

/**
 * Accounts as administrators see and change them, and the audit log, in SQLite: read here, written by the writer thread.
 */
export class SqliteAdministration implements AdministrationStore {
  readonly #statements: Statements;
  readonly #write: (change: AdministrationChange, caller: Caller, at: Date) => Promise<number>;

  constructor(
    database: DatabaseSync,
    write: (change: AdministrationChange, caller: Caller, at: Date) => Promise<number>,
  ) {
    this.#statements = new Statements(database);
    this.#write = write;
  }

  async page({ offset, size }: PageRange): Promise<{ accounts: AccountSummary[]; total: number }> {
    const rows = wrapReadErrors(() => this.#statements.all<SummaryRow>(SUMMARY_PAGE, size, offset));
    const accounts: AccountSummary[] = [];
    for (const row of rows) {
      // Counting the rows of many large accounts takes a while.
      await yieldTurn();
      accounts.push(this.#toSummary(row));
    }
    return { accounts, total: this.#count("accounts") };
  }

  async get(user: UserId): Promise<AccountSummary | undefined> {
    const row = wrapReadErrors(() => this.#statements.get<SummaryRow>(`${SUMMARY} where a.user_id = ?`, user));
    return row && this.#toSummary(row);
  }

  #toSummary([user, name, issuer, created, isAdmin, disabled, seen, subscriptions]: SummaryRow): AccountSummary {
    const [rows = 0] = wrapReadErrors(() => this.#statements.get<[number]>(COUNT_ROWS, user)) ?? [];
    return {
      ...{ user, name, issuer, createdAt: new Date(created), isAdmin: isAdmin === 1 },
      ...{ disabledAt: toDate(disabled), seenAt: toDate(seen), subscriptions: subscriptions ?? 0, rows },
    };
  }

  #count(table: "accounts" | "audit_log"): number {
    return wrapReadErrors(() => this.#statements.get<[number]>(`select count(*) from ${table}`))?.[0] ?? 0;
  }

  async change(caller: Caller, user: UserId, action: AdminAction, at: Date): Promise<"done" | "gone" | "last-admin"> {
    const { actor = COMMAND_LINE } = caller;
    const result = await this.#write({ kind: "administer", user, action, actor, at: at.getTime() }, caller, at);
    return result === DONE ? "done" : result === LAST_ADMIN ? "last-admin" : "gone";
  }

  async auditLog({ offset, size }: PageRange): Promise<{ entries: AuditEntry[]; total: number }> {
    const rows = wrapReadErrors(() =>
      this.#statements.all<AuditRow>(
        `select acted_at, id, action, actor, address, target from audit_log
         order by acted_at desc, id desc limit ? offset ?`,
        size,
        offset,
      ),
    );
    const entries = rows.map(([at, id, action, actor, address, target]) => ({
      ...{ id: idOfKey(id), at: new Date(at), action, actor, address, target },
    }));
    return { entries, total: this.#count("audit_log") };
  }

  async recordSeen(user: UserId, day: Date): Promise<void> {
    await this.#write({ kind: "seen", user, at: day.getTime() }, asUser(NOBODY), day);
  }
}
