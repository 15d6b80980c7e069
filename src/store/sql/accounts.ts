import { setTimeout as sleep } from "node:timers/promises";
import {
  type AccountStore,
  type Credential,
  decideNewAccount,
  type FoundSession,
  type NewAccount,
  type NewAccountState,
  type NewCredential,
  type NewPassword,
  NOBODY,
  type SessionsToEnd,
  type SharedRateLimits,
  type StoredAccount,
} from "../../accounts/account-store.ts";
import { AUDIT_MS, creationAction } from "../../accounts/administration-store.ts";
import { asUser, type Caller, LOCAL_USER, type UserId } from "../../accounts/caller.ts";
import type { CredentialKind } from "../../accounts/credential-kinds.ts";
import { referenceOf } from "../../accounts/names.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { slicesOf } from "../../util/turns.ts";
import {
  all,
  Conflict,
  type Database,
  get,
  has,
  idOf,
  insert,
  insertNew,
  key,
  run,
  type Sql,
  together,
  type Value,
  type Work,
  write,
} from "../shared/database.ts";
import { bytesOf, DELETED, ERASE_BATCH_SIZE, nameKey, rateLimitKey } from "../shared/keys.ts";
import { tablesByDeletion } from "../shared/tables.ts";
import { ACCOUNT_COLUMNS, type AccountRow, isLastAdmin, toAccount } from "./administration.ts";
import { addAuditEntry, nameOf } from "./audit.ts";
import {
  CREDENTIAL_WRITES,
  deleteCredentials,
  deleteEnded,
  endSessions,
  findCredential,
  findUsersOfEnded,
  listCredentials,
  USER_OF_CREDENTIAL,
} from "./credentials.ts";
import { deleteLinks } from "./links.ts";
import { SECOND_FACTOR_WRITES, SqlSecondFactors } from "./second-factors.ts";

/** Pause between two steps of an erasure. Another process, which polls for the lock every millisecond, gets it then. */
const ERASING_PAUSE_MS = 3;
/** Maximum number of entries in the cache of users. */
const MAX_USERS = 50_000;
/** How long it is known that a write was committed, for a process that has lost the reply. */
const COMMITS_MS = 60 * 60_000;
/** How many users with credentials that have ended are looked up in one step, and handled at once. */
const ENDED_PER_STEP = 500;
const ENDED_AT_ONCE = 20;
const SERVER = asUser(NOBODY);

const keyOfName = (name: string, issuer: string) => key(nameKey(name, issuer).toString("hex"));

function* createAccount(at: number, requested: UserId, account: NewAccount) {
  const { name, issuer, passwordHash, invitationHash } = account;
  const nameKey = keyOfName(name, issuer);
  const isNameTaken = yield* has("select 1 from earmark.names where key = $1", nameKey);
  const state = yield* readState(account);
  const decision = decideNewAccount(account, { ...state, isNameTaken });
  if (typeof decision === "string") return decision;
  if (state.invitationKind === "invitation" && invitationHash !== undefined) {
    if ((yield* deleteCredentials(NOBODY, "hash = $2", bytesOf(invitationHash))) !== 1) return "invalid-invitation";
  }
  const { becomesLocalUser, becomesAdmin, endsSetup } = decision;
  const user = becomesLocalUser ? LOCAL_USER : requested;
  if (!becomesLocalUser && (yield* has("select 1 from earmark.lists where user_id = $1", user))) throw idTaken();
  if ((yield* insertNew("names", { key: nameKey, user_id: user })) !== 1) throw new Conflict();
  const row = { user_id: user, name, issuer, password: passwordHash, created_at: at, is_admin: becomesAdmin ? 1 : 0 };
  // A concurrent transaction may have created the account of the local user.
  if ((yield* insertNew("accounts", row)) !== 1) throw becomesLocalUser ? new Conflict() : idTaken();
  yield* addAuditEntry(creationAction(account), referenceOf(account), account.actor, at);
  // Last, because two concurrent setups would otherwise deadlock.
  if (endsSetup) yield* deleteCredentials(NOBODY, "kind = 'setup'");
  return user;
}

const idTaken = () => new StoreUnavailable("the new user id is taken");

function* readState({ invitationHash, isCreatedByOperator }: NewAccount): Work<Omit<NewAccountState, "isNameTaken">> {
  const given = yield* get<{ kind: CredentialKind }>(
    "select kind from earmark.credentials where user_id = $1 and hash = $2",
    NOBODY,
    invitationHash === undefined ? null : bytesOf(invitationHash),
  );
  const isSettingUp = yield* has("select 1 from earmark.credentials where user_id = $1 and kind = 'setup'", NOBODY);
  const isLocalUserTaken =
    (yield* has("select 1 from earmark.accounts where user_id = $1", LOCAL_USER)) ||
    (yield* has("select 1 from earmark.lists where user_id = $1 and sequence = $2", LOCAL_USER, DELETED));
  return {
    isLocalUserTaken,
    invitationKind: given?.kind,
    // Read after the local user's account: if that one was found, this query finds an account too. A cluster has to ask
    // all its nodes, so ask only while there is a setup link.
    hasAccounts: !isSettingUp || (yield* has("select 1 from earmark.accounts limit 1")),
    // Only an account that the operator creates can be an administrator from the start.
    hasAdmins: !isCreatedByOperator || (yield* has("select 1 from earmark.accounts where is_admin = 1 limit 1")),
  };
}

function* deleteAccount({ caller, at }: { caller: Caller; at: number }, user: UserId) {
  const account = yield* get<{ name: string; issuer: string }>(
    "select name, issuer from earmark.accounts where user_id = $1",
    user,
  );
  if (account === undefined) return "gone";
  const others = "select 1 from earmark.accounts where user_id <> $1 limit 1";
  if ((yield* isLastAdmin(user)) && (yield* has(others, user))) return "last-admin";
  // Tables have sequence numbers of their own; the highest decides how many steps there are.
  let remaining = 0;
  for (const table of ["lists", ...tablesByDeletion("in-steps")]) {
    const sql = `select coalesce(max(sequence), 0) as last from earmark.${table} where user_id = $1`;
    remaining = Math.max(remaining, (yield* get<{ last: number }>(sql, user))?.last ?? 0);
  }
  yield* insert("erasures", { user_id: user, remaining });
  yield* run(`update earmark.lists set sequence = ${DELETED}, total = 0 where user_id = $1`, user);
  yield* deleteCredentials(user);
  yield* deleteLinks(user);
  for (const table of tablesByDeletion("at-once")) yield* run(`delete from earmark.${table} where user_id = $1`, user);
  yield* run("delete from earmark.names where key = $1", keyOfName(account.name, account.issuer));
  yield* addAuditEntry("account-deleted", referenceOf(account), caller.actor, at);
  return "deleted";
}

/** Erases the next batch of a deleted list, which has the highest sequence numbers that are left. */
function* erase(user: UserId): Work<{ readonly isDone: boolean; readonly podcasts: readonly string[] }> {
  const row = yield* get<{ remaining: number }>(
    "select remaining from earmark.erasures where user_id = $1 for update",
    user,
  );
  if (row === undefined) return { isDone: true, podcasts: [] };
  const remaining = row.remaining - ERASE_BATCH_SIZE;
  const feeds = yield* all(
    "select feed from earmark.subscriptions where user_id = $1 and sequence > $2",
    user,
    remaining,
  );
  for (const table of tablesByDeletion("in-steps"))
    yield* run(`delete from earmark.${table} where user_id = $1 and sequence > $2`, user, remaining);
  const isDone = remaining <= 0;
  if (isDone) yield* run("delete from earmark.erasures where user_id = $1", user);
  else yield* run("update earmark.erasures set remaining = $2 where user_id = $1", user, remaining);
  return { isDone, podcasts: feeds.map(({ feed }) => idOf(feed)) };
}

/** The tables that only PostgreSQL has and that are emptied by time. */
const OUTDATED = {
  rate_limits: { column: "moment", keptMs: 0 },
  leases: { column: "until", keptMs: 0 },
  commits: { column: "written_at", keptMs: COMMITS_MS },
} as const;
const ofServer = { isRepeatable: true, operations: () => 0 } as const;

export const ACCOUNT_WRITES = {
  ...CREDENTIAL_WRITES,
  ...SECOND_FACTOR_WRITES,
  createAccount: write({ user: (user: UserId) => user }, ({ at }, user: UserId, account: NewAccount) =>
    createAccount(at, user, account),
  ),
  setPassword: write({ locks: "account" }, function* ({ caller: { user }, at }, password: NewPassword) {
    const { passwordHash, keepSession, expectedHash, revokesTokens, resetBy } = password;
    const changed = yield* run(
      "update earmark.accounts set password = $2 where user_id = $1 and password = coalesce($3, password)",
      user,
      passwordHash,
      expectedHash ?? null,
    );
    if (changed === 0) return false;
    yield* endSessions(user, keepSession, revokesTokens);
    if (resetBy !== undefined) yield* addAuditEntry("password-reset", yield* nameOf(user), resetBy, at);
    return true;
  }),
  deleteAccount: write({ locks: "both", isAdministration: "of-admin", user: (user: UserId) => user }, deleteAccount),
  erase: write({ user: (user: UserId) => user, isRepeatable: true, operations: () => 0 }, (_, user: UserId) =>
    erase(user),
  ),
  deleteEnded: write({ ...ofServer, user: (user: UserId) => user }, ({ at }, user: UserId) => deleteEnded(user, at)),
  /** One table at a time: in a cluster, a transaction has a part on every node. */
  sweepTable: write(ofServer, ({ at }, table: keyof typeof OUTDATED) => {
    const { column, keptMs } = OUTDATED[table];
    return run({ sqlite: undefined, postgres: `delete from earmark.${table} where ${column} < $1` }, at - keptMs);
  }),
  sweep: write(ofServer, ({ at }) => run("delete from earmark.audit_log where acted_at <= $1", at - AUDIT_MS)),
  /** True if the number was still the expected one. Only PostgreSQL has several processes that share limits. */
  replaceRateLimit: write(
    { operations: () => 0 },
    function* (_, limit: string, expected: number | undefined, next: number) {
      const replaced = yield* run(REPLACE_RATE_LIMIT, key(limit), next, expected ?? null);
      return replaced === 1;
    },
  ),
} as const;

const REPLACE_RATE_LIMIT: Sql = {
  sqlite: undefined,
  postgres: `insert into earmark.rate_limits as l (key, moment) values ($1, $2)
    on conflict (key) do update set moment = excluded.moment where l.moment = $3`,
};

function* readAccount(user: UserId): Work<StoredAccount | undefined> {
  const sql = `select ${ACCOUNT_COLUMNS}, password from earmark.accounts a where user_id = $1`;
  const row = yield* get<AccountRow & { password: string }>(sql, user);
  if (row === undefined) return undefined;
  const { password, totp_secret } = row;
  const secondFactor = totp_secret === null ? {} : { totpSecret: totp_secret };
  return { account: toAccount(row), passwordHash: password, ...secondFactor };
}

export class SqlAccounts implements AccountStore {
  readonly secondFactors: SqlSecondFactors;
  readonly sharedRateLimits: SharedRateLimits | undefined;
  readonly #database: Database<typeof ACCOUNT_WRITES>;
  readonly #erasePodcasts: (ids: readonly string[]) => Promise<void>;
  /**
   * Cache of users by name or secret. Every use checks the entry against the user's own rows, so it may be outdated.
   * It saves a query, and in a cluster a request does not need the node that has the name or the secret.
   */
  readonly #users = new Map<string, UserId>();

  /** `erasePodcasts` erases those of these podcasts that have no subscriber. */
  constructor(database: Database<typeof ACCOUNT_WRITES>, erasePodcasts: (ids: readonly string[]) => Promise<void>) {
    this.#database = database;
    this.secondFactors = new SqlSecondFactors(database);
    this.#erasePodcasts = erasePodcasts;
    this.sharedRateLimits = database.engine === "postgres" ? this.#createSharedRateLimits() : undefined;
  }

  async isEmpty(): Promise<boolean> {
    return !(await this.#database.read(() => has("select 1 from earmark.accounts limit 1")));
  }

  create(user: UserId, account: NewAccount, at: Date): Promise<UserId | "name-taken" | "invalid-invitation"> {
    return this.#database.write(SERVER, at, "createAccount", user, account);
  }

  find(name: string, issuer: string): Promise<StoredAccount | undefined> {
    const nameKey = keyOfName(name, issuer);
    return this.#findThroughUser(
      `name ${nameKey.digits}`,
      "select user_id from earmark.names where key = $1",
      nameKey,
      async (user) => {
        const found = await this.get(user);
        return found?.account.name === name && found.account.issuer === issuer ? found : undefined;
      },
    );
  }

  /** Looks up the user of a name or secret, and then what `read` finds in that user's rows. */
  async #findThroughUser<T>(
    cacheKey: string,
    sql: Sql,
    value: Value,
    read: (user: UserId) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const cached = this.#users.get(cacheKey);
    const found = cached === undefined ? undefined : await read(cached);
    if (found !== undefined) return found;
    const row = await this.#database.read(() => get<{ user_id: UserId }>(sql, value));
    if (row === undefined) return undefined;
    if (this.#users.size >= MAX_USERS) this.#users.clear();
    this.#users.set(cacheKey, row.user_id);
    return read(row.user_id);
  }

  get(user: UserId): Promise<StoredAccount | undefined> {
    return this.#database.read(() => readAccount(user), user);
  }

  setPassword(caller: Caller, password: NewPassword, at: Date): Promise<boolean> {
    return this.#database.write(caller, at, "setPassword", password);
  }

  async delete(caller: Caller, at: Date, user = caller.user): Promise<"deleted" | "gone" | "last-admin"> {
    const outcome = await this.#database.write(caller, at, "deleteAccount", user);
    if (outcome !== "deleted") return outcome;
    await this.#erase(user, at).catch((cause: unknown) => {
      throw new StoreUnavailable("the account is deleted, but its list has not been erased completely", {
        cause,
        isOutcomeUnknown: true,
      });
    });
    return outcome;
  }

  async #erase(user: UserId, at: Date): Promise<void> {
    for (let isDone = false; !isDone; ) {
      const erased = await this.#database.write(SERVER, at, "erase", user);
      isDone = erased.isDone;
      // If the process crashes before this, the hourly cleanup erases these podcasts.
      await this.#erasePodcasts(erased.podcasts);
      if (!isDone) await sleep(ERASING_PAUSE_MS);
    }
  }

  addCredential(caller: Caller, added: NewCredential): Promise<"added" | "full" | "gone"> {
    return this.#database.write(caller, added.credential.createdAt, "addCredential", added);
  }

  findCredential(hash: string): Promise<Credential | undefined> {
    return this.#findThroughUser(hash, USER_OF_CREDENTIAL, bytesOf(hash), (user) =>
      this.#database.read(() => findCredential(user, hash), user),
    );
  }

  findSession(hash: string): Promise<FoundSession | undefined> {
    return this.#findThroughUser(hash, USER_OF_CREDENTIAL, bytesOf(hash), async (user) => {
      const both = () => together(findCredential(user, hash), readAccount(user));
      const [credential, account] = await this.#database.read(both, user);
      return credential && { credential, account };
    });
  }

  listCredentials(user: UserId, kind: CredentialKind): Promise<readonly Credential[]> {
    return this.#database.read(() => listCredentials(user, kind), user);
  }

  removeCredential(
    caller: Caller,
    kind: CredentialKind,
    id: string,
    at: Date,
    sessionsToEnd?: SessionsToEnd,
  ): Promise<boolean> {
    const user = kind === "invitation" && caller.requiresAdmin === true ? NOBODY : caller.user;
    return this.#database.write(caller, at, "removeCredential", user, kind, id, sessionsToEnd);
  }

  async replaceCounter(hash: string, expected: number, counter: number): Promise<boolean> {
    const found = await this.findCredential(hash);
    if (found === undefined) return false;
    return this.#database.write(SERVER, new Date(), "replaceCounter", found.user, hash, expected, counter);
  }

  async touchCredential(hash: string, at: Date): Promise<void> {
    const found = await this.findCredential(hash);
    if (found !== undefined) await this.#database.write(SERVER, at, "touchCredential", found.user, hash);
  }

  async sweep(at: Date): Promise<void> {
    await this.#deleteEnded(at);
    for (const table of Object.keys(OUTDATED) as (keyof typeof OUTDATED)[])
      if (this.#database.engine === "postgres") await this.#database.write(SERVER, at, "sweepTable", table);
    await this.#database.write(SERVER, at, "sweep");
    const unfinished = await this.#database.read(() =>
      all<{ user_id: UserId }>("select user_id from earmark.erasures"),
    );
    for (const { user_id } of unfinished) await this.#erase(user_id, at);
  }

  /** In small steps: those of a user are on one node. */
  async #deleteEnded(at: Date): Promise<void> {
    for (let users: readonly UserId[] = [NOBODY]; users.length > 0; ) {
      for await (const some of slicesOf(users, ENDED_AT_ONCE))
        await Promise.all(some.map((user) => this.#database.write(SERVER, at, "deleteEnded", user)));
      users = await this.#database.read(() => findUsersOfEnded(at.getTime(), ENDED_PER_STEP));
    }
  }

  #createSharedRateLimits(): SharedRateLimits {
    const digitsOf = (limit: string) => rateLimitKey(limit).toString("hex");
    return {
      read: async (limit) => {
        const sql: Sql = { sqlite: undefined, postgres: "select moment from earmark.rate_limits where key = $1" };
        const row = await this.#database.read(() => get<{ moment: number }>(sql, key(digitsOf(limit))));
        return row?.moment;
      },
      replace: (limit, expected, next) =>
        this.#database.write(SERVER, new Date(), "replaceRateLimit", digitsOf(limit), expected, next),
    };
  }
}
