import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type AccountStore,
  type Credential,
  decideNewAccount,
  type NewAccount,
  type NewCredential,
  type NewPassword,
  NOBODY,
  SESSION_IDLE_MS,
  type SessionsToEnd,
  type StoredAccount,
} from "../../accounts/account-store.ts";
import { creationAction } from "../../accounts/administration-store.ts";
import { type Actor, asUser, type Caller, COMMAND_LINE, LOCAL_USER, type UserId } from "../../accounts/caller.ts";
import { kindsEndedByPassword, rulesOf } from "../../accounts/credential-kinds.ts";
import { referenceOf } from "../../accounts/names.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { bytesOf, DELETED, ERASE_BATCH_SIZE, idKey, nameKey } from "../shared/keys.ts";
import { tablesByDeletion } from "../shared/tables.ts";
import {
  ACCOUNT,
  type AccountRow,
  CREDENTIAL,
  type CredentialRow,
  NEVER,
  toAccount,
  toCredential,
} from "./account-rows.ts";
import { type AdministrationChange, AdministrationWriter } from "./administration.ts";
import { wrapReadErrors } from "./file.ts";
import type { PodcastWriter } from "./podcasts.ts";
import { Statements } from "./statements.ts";

/** An account change, as sent to the writer thread, which replies with one of the numbers below, or in administration.ts. */
export type AccountChange =
  | ({ readonly kind: "create"; readonly user: UserId; readonly at: number } & NewAccount)
  | ({ readonly kind: "password"; readonly user: UserId; readonly at: number } & NewPassword)
  | { readonly kind: "delete"; readonly user: UserId; readonly actor: Actor; readonly at: number }
  /** Erases one batch of a deleted list. */
  | { readonly kind: "erase"; readonly user: UserId }
  | ({ readonly kind: "add-credential"; readonly actor: Actor } & NewCredential)
  | {
      readonly kind: "remove-credential";
      readonly user: UserId;
      readonly credentialKind: Credential["kind"];
      readonly id: string;
      readonly sessionsToEnd: SessionsToEnd | undefined;
      readonly actor: Actor;
      readonly at: number;
    }
  | { readonly kind: "label"; readonly hash: string; readonly expected: string; readonly label: string }
  | AdministrationChange
  | { readonly kind: "touch"; readonly hash: string; readonly at: number }
  | { readonly kind: "sweep"; readonly at: number };

const [NOTHING, DONE, DONE_AS_LOCAL_USER, NAME_TAKEN, INVALID_INVITATION, FULL, GONE, USER_TAKEN] = [
  0, 1, 2, 3, 4, 5, 6, 7,
];
/** MORE: the account is deleted, but part of its list has not been erased yet. */
const [LAST_ADMIN, MORE] = [8, 9];

/** Pause between two steps of an erasure. Another process, which polls for the lock every millisecond, gets it then. */
const ERASING_PAUSE_MS = 3;

const SERVER = asUser(NOBODY);

/** Applies account changes inside the transaction of the writer thread. A refused change writes nothing. */
export class AccountWriter {
  readonly #statements: Statements;
  readonly #administration: AdministrationWriter;
  readonly #podcasts: PodcastWriter;

  constructor(database: DatabaseSync, podcasts: PodcastWriter) {
    this.#statements = new Statements(database);
    this.#administration = new AdministrationWriter(this.#statements);
    this.#podcasts = podcasts;
  }

  apply(change: AccountChange): number {
    switch (change.kind) {
      case "create":
        return this.#create(change);
      case "password":
        return this.#setPassword(change);
      case "delete":
        return this.#delete(change);
      case "erase":
        return this.#erase(change.user);
      case "add-credential":
        return this.#addCredential(change);
      case "remove-credential":
        return this.#removeCredential(change);
      case "label":
        return this.#run(
          "update credentials set label = ? where hash = ? and label = ?",
          change.label,
          bytesOf(change.hash),
          change.expected,
        );
      case "touch":
        return this.#run(
          "update credentials set used_at = max(used_at, ?) where hash = ?",
          change.at,
          bytesOf(change.hash),
        );
      case "sweep":
        this.#run(
          `delete from credentials where (expires_at <> ${NEVER} and expires_at <= ?1)
           or (kind = 'session' and max(used_at, created_at) <= ?1 - ${SESSION_IDLE_MS})`,
          change.at,
        );
        this.#administration.deleteOldEntries(change.at);
        return DONE;
      default:
        return this.#administration.apply(change);
    }
  }

  #create(change: AccountChange & { kind: "create" }): number {
    const { user: requested, name, issuer, passwordHash, invitationHash, at } = change;
    const key = nameKey(name, issuer);
    const decision = decideNewAccount(change, {
      hasAccounts: this.#has("select 1 from accounts limit 1"),
      hasAdmins: this.#has("select 1 from accounts where is_admin = 1 limit 1"),
      isNameTaken: this.#has("select 1 from identities where key = ?", key),
      isLocalUserTaken:
        this.#has("select 1 from accounts where user_id = ?", LOCAL_USER) ||
        this.#has("select 1 from lists where user_id = ? and sequence = ?", LOCAL_USER, DELETED),
      invitationKind:
        invitationHash === undefined
          ? undefined
          : this.#statements.get<[Credential["kind"]]>(
              "select kind from credentials where hash = ?",
              bytesOf(invitationHash),
            )?.[0],
    });
    if (decision === "invalid-invitation") return INVALID_INVITATION;
    if (decision === "name-taken") return NAME_TAKEN;
    const isLocal = decision.becomesLocalUser;
    const user = isLocal ? LOCAL_USER : requested;
    if (
      this.#has("select 1 from accounts where user_id = ?", user) ||
      (!isLocal && this.#has("select 1 from lists where user_id = ?", user))
    )
      return USER_TAKEN;
    if (invitationHash !== undefined) this.#run("delete from credentials where hash = ?", bytesOf(invitationHash));
    if (decision.endsSetup) this.#run("delete from credentials where kind = 'setup'");
    this.#run("insert into identities (key, user_id) values (?, ?)", key, user);
    this.#run(
      "insert into accounts (user_id, name, issuer, password, created_at, is_admin) values (?, ?, ?, ?, ?, ?)",
      ...[user, name, issuer, passwordHash, at, decision.becomesAdmin ? 1 : 0],
    );
    this.#administration.addAuditEntry(creationAction(change), referenceOf(change), change.actor, at);
    return isLocal ? DONE_AS_LOCAL_USER : DONE;
  }

  #setPassword(change: AccountChange & { kind: "password" }): number {
    const { user, passwordHash, keepSession, expectedHash, revokesTokens, resetBy, at } = change;
    const isExpected = (hash: string) =>
      this.#has("select 1 from accounts where user_id = ? and password = ?", user, hash);
    if (expectedHash !== undefined && !isExpected(expectedHash)) return NOTHING;
    if (this.#run("update accounts set password = ? where user_id = ?", passwordHash, user) === NOTHING) return NOTHING;
    this.#endSessions(user, keepSession, revokesTokens);
    if (resetBy !== undefined)
      this.#administration.addAuditEntry("password-reset", this.#administration.nameOf(user), resetBy, at);
    return DONE;
  }

  /** Also deletes password-reset links. */
  #endSessions(user: UserId, keepSession: string | undefined, revokesTokens = false): void {
    const kept = keepSession === undefined ? Buffer.alloc(0) : idKey(keepSession);
    for (const kind of kindsEndedByPassword(revokesTokens))
      this.#run("delete from credentials where user_id = ? and id <> ? and kind = ?", user, kept, kind);
  }

  #delete({ user, actor, at }: AccountChange & { kind: "delete" }): number {
    const row = this.#statements.get<[string, string]>("select name, issuer from accounts where user_id = ?", user);
    if (row === undefined) return NOTHING;
    const [name, issuer] = row;
    const isAlone = !this.#has("select 1 from accounts where user_id <> ? limit 1", user);
    if (!isAlone && this.#administration.isLastAdmin(user)) return LAST_ADMIN;
    this.#administration.addAuditEntry("account-deleted", referenceOf({ name, issuer }), actor, at);
    this.#run("delete from identities where key = ?", nameKey(name, issuer));
    for (const table of tablesByDeletion("at-once")) this.#run(`delete from ${table} where user_id = ?`, user);
    // Tables have sequence numbers of their own; the highest decides how many steps there are.
    const numbers = tablesByDeletion("in-steps").map(
      (table) => `(select coalesce(max(sequence), 0) from ${table} where user_id = lists.user_id)`,
    );
    this.#run(
      `insert into erasures select user_id, max(sequence, ${numbers.join(", ")}) from lists where user_id = ?`,
      user,
    );
    this.#run(
      `insert into lists (user_id, sequence, total) values (?, ${DELETED}, 0)
       on conflict (user_id) do update set sequence = excluded.sequence, total = excluded.total`,
      user,
    );
    return this.#erase(user);
  }

  /** Erases the next batch, which has the highest sequence numbers that are left. */
  #erase(user: UserId): number {
    const row = this.#statements.get<[number]>("select remaining from erasures where user_id = ?", user);
    if (row === undefined) return DONE;
    const remaining = row[0] - ERASE_BATCH_SIZE;
    this.#podcasts.eraseUsedOnlyBy(user, remaining);
    for (const table of tablesByDeletion("in-steps"))
      this.#run(`delete from ${table} where user_id = ? and sequence > ?`, user, remaining);
    if (remaining > 0) {
      this.#run("update erasures set remaining = ? where user_id = ?", remaining, user);
      return MORE;
    }
    this.#run("delete from erasures where user_id = ?", user);
    return DONE;
  }

  #addCredential({ credential, hash, passwordHash, actor }: AccountChange & { kind: "add-credential" }): number {
    const { id, kind, user, scope, label, createdAt, usedAt, expiresAt } = credential;
    const account = this.#statements.get<[string]>(
      "select password from accounts where user_id = ? and disabled_at = 0",
      user,
    );
    if (user !== NOBODY && account === undefined) return GONE;
    if (passwordHash !== undefined && account?.[0] !== passwordHash) return GONE;
    const [count = 0] =
      this.#statements.get<[number]>("select count(*) from credentials where user_id = ? and kind = ?", user, kind) ??
      [];
    if (count >= rulesOf(kind).max) return FULL;
    const times = [createdAt, usedAt, expiresAt].map((time) => time?.getTime() ?? NEVER);
    const result = this.#run(
      `insert into credentials (hash, user_id, id, kind, scope, label, created_at, used_at, expires_at)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing`,
      bytesOf(hash),
      user,
      idKey(id),
      kind,
      scope,
      label,
      ...times,
    );
    if (result === DONE) this.#administration.logCredential("created", credential, actor, createdAt.getTime());
    return result;
  }

  #removeCredential(change: AccountChange & { kind: "remove-credential" }): number {
    const { user, credentialKind, id, sessionsToEnd, actor, at } = change;
    const key = [user, credentialKind, idKey(id)] as const;
    const one = "from credentials where user_id = ? and kind = ? and id = ?";
    const [label] = this.#statements.get<[string]>(`select label ${one}`, ...key) ?? [];
    if (label === undefined) return NOTHING;
    this.#administration.logCredential("revoked", { kind: credentialKind, user, label }, actor, at);
    this.#run(`delete ${one}`, ...key);
    if (sessionsToEnd !== undefined) this.#endSessions(user, sessionsToEnd.except);
    return DONE;
  }

  #run(sql: string, ...values: SQLInputValue[]): number {
    return this.#statements.run(sql, ...values) === 0 ? NOTHING : DONE;
  }

  #has(sql: string, ...values: SQLInputValue[]): boolean {
    return this.#statements.has(sql, ...values);
  }
}

/** Accounts in SQLite: read here, written by the writer thread. */
export class SqliteAccounts implements AccountStore {
  readonly #statements: Statements;
  readonly #write: (change: AccountChange, caller: Caller, at: Date) => Promise<number>;
  readonly sharedRateLimits = undefined;

  constructor(database: DatabaseSync, write: (change: AccountChange, caller: Caller, at: Date) => Promise<number>) {
    this.#statements = new Statements(database);
    this.#write = write;
  }

  async isEmpty(): Promise<boolean> {
    return wrapReadErrors(() => !this.#statements.has("select 1 from accounts limit 1"));
  }

  async create(user: UserId, account: NewAccount, at: Date): Promise<UserId | "name-taken" | "invalid-invitation"> {
    const result = await this.#write({ kind: "create", user, at: at.getTime(), ...account }, SERVER, at);
    if (result === DONE) return user;
    if (result === DONE_AS_LOCAL_USER) return LOCAL_USER;
    if (result === NAME_TAKEN) return "name-taken";
    if (result === INVALID_INVITATION) return "invalid-invitation";
    throw new StoreUnavailable("the new user id is taken");
  }

  async find(name: string, issuer: string): Promise<StoredAccount | undefined> {
    const sql = `select ${ACCOUNT} from accounts where user_id = (select user_id from identities where key = ?)`;
    return toAccount(wrapReadErrors(() => this.#statements.get<AccountRow>(sql, nameKey(name, issuer))));
  }

  async get(user: UserId): Promise<StoredAccount | undefined> {
    const sql = `select ${ACCOUNT} from accounts where user_id = ?`;
    return toAccount(wrapReadErrors(() => this.#statements.get<AccountRow>(sql, user)));
  }

  async setPassword(caller: Caller, password: NewPassword, at: Date): Promise<boolean> {
    const change = { kind: "password", user: caller.user, at: at.getTime(), ...password } as const;
    return (await this.#write(change, caller, at)) === DONE;
  }

  async delete(caller: Caller, at: Date, user = caller.user): Promise<"deleted" | "gone" | "last-admin"> {
    const change = { kind: "delete", user, actor: caller.actor ?? COMMAND_LINE, at: at.getTime() } as const;
    const result = await this.#write(change, caller, at);
    if (result === MORE) {
      await this.#eraseRest(user, at).catch((cause: unknown) => {
        throw new StoreUnavailable("the account is deleted, but its list has not been erased completely", {
          cause,
          isOutcomeUnknown: true,
        });
      });
    }
    if (result === LAST_ADMIN) return "last-admin";
    return result === NOTHING ? "gone" : "deleted";
  }

  async #eraseRest(user: UserId, at: Date): Promise<void> {
    do await sleep(ERASING_PAUSE_MS);
    while ((await this.#write({ kind: "erase", user }, SERVER, at)) === MORE);
  }

  async addCredential(caller: Caller, added: NewCredential): Promise<"added" | "full" | "gone"> {
    const change = { kind: "add-credential", actor: caller.actor ?? COMMAND_LINE, ...added } as const;
    const result = await this.#write(change, caller, added.credential.createdAt);
    if (result === FULL) return "full";
    return result === DONE ? "added" : "gone";
  }

  async findCredential(hash: string): Promise<Credential | undefined> {
    const sql = `select ${CREDENTIAL} from credentials where hash = ?`;
    const row = wrapReadErrors(() => this.#statements.get<CredentialRow>(sql, bytesOf(hash)));
    return row && toCredential(row);
  }

  async listCredentials(user: UserId, kind: Credential["kind"]): Promise<readonly Credential[]> {
    const sql = `select ${CREDENTIAL} from credentials where user_id = ? and kind = ? order by created_at, id`;
    return wrapReadErrors(() => this.#statements.all<CredentialRow>(sql, user, kind)).map(toCredential);
  }

  async removeCredential(
    caller: Caller,
    credentialKind: Credential["kind"],
    id: string,
    at: Date,
    sessionsToEnd?: SessionsToEnd,
  ): Promise<boolean> {
    const { actor = COMMAND_LINE, requiresAdmin } = caller;
    const user = credentialKind === "invitation" && requiresAdmin === true ? NOBODY : caller.user;
    const removed = { user, credentialKind, id, sessionsToEnd, actor, at: at.getTime() };
    const change = { kind: "remove-credential", ...removed } as const;
    return (await this.#write(change, caller, at)) === DONE;
  }

  async replaceLabel(hash: string, expected: string, label: string): Promise<boolean> {
    return (await this.#write({ kind: "label", hash, expected, label }, SERVER, new Date(0))) === DONE;
  }

  async touchCredential(hash: string, at: Date): Promise<void> {
    await this.#write({ kind: "touch", hash, at: at.getTime() }, SERVER, at);
  }

  async sweep(at: Date): Promise<void> {
    await this.#write({ kind: "sweep", at: at.getTime() }, SERVER, at);
    const unfinished = wrapReadErrors(() => this.#statements.all<[user: number]>("select user_id from erasures"));
    for (const [user] of unfinished) await this.#eraseRest(user, at);
  }
}
