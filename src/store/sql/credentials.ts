import { type Credential, type NewCredential, NOBODY, type SessionsToEnd } from "../../accounts/account-store.ts";
import type { UserId } from "../../accounts/caller.ts";
import {
  type CredentialKind,
  IDLE_KINDS,
  kindsEndedByPassword,
  kindsToSwitch,
  rulesOf,
} from "../../accounts/credential-kinds.ts";
import {
  all,
  digitsOf,
  get,
  has,
  idOf,
  insert,
  key,
  type NewRow,
  run,
  type Sql,
  together,
  type Value,
  type Work,
  write,
} from "../shared/database.ts";
import { bytesOf } from "../shared/keys.ts";
import { logCredential } from "./audit.ts";
import { recordSignIn } from "./sign-ins.ts";
import { NEVER, toDate } from "./times.ts";

const COLUMNS =
  "hash, user_id, id, kind, scope, label, created_at, used_at, expires_at, passkey_id, public_key, counter";

interface CredentialRow {
  readonly hash: Uint8Array;
  readonly user_id: UserId;
  readonly id: unknown;
  readonly kind: CredentialKind;
  readonly scope: Credential["scope"];
  readonly label: string;
  readonly created_at: number;
  readonly used_at: number;
  readonly expires_at: number;
  readonly passkey_id: string | null;
  readonly public_key: string | null;
  readonly counter: number | null;
}

function toCredential(row: CredentialRow): Credential {
  const { passkey_id, public_key, counter } = row;
  const credential = {
    id: idOf(row.id),
    kind: row.kind,
    user: row.user_id,
    scope: row.scope,
    label: row.label,
    createdAt: new Date(row.created_at),
    usedAt: toDate(row.used_at),
    expiresAt: toDate(row.expires_at),
  };
  if (passkey_id === null || public_key === null) return credential;
  return { ...credential, passkey: { id: passkey_id, publicKey: public_key, counter: counter ?? 0 } };
}

function toRow(
  { id, kind, user, scope, label, createdAt, usedAt, expiresAt, passkey }: Credential,
  hash: string,
): NewRow {
  return {
    hash: bytesOf(hash),
    user_id: user,
    id: key(id),
    kind,
    scope,
    label,
    created_at: createdAt.getTime(),
    used_at: usedAt?.getTime() ?? NEVER,
    expires_at: expiresAt?.getTime() ?? NEVER,
    passkey_id: passkey?.id ?? null,
    public_key: passkey?.publicKey ?? null,
    counter: passkey?.counter ?? null,
  };
}

/** PostgreSQL has the user of each credential in a table by hash; a cluster stores the credential with the user's rows. */
export const USER_OF_CREDENTIAL: Sql = {
  sqlite: "select user_id from credentials where hash = $1",
  postgres: "select user_id from earmark.credential_users where hash = $1",
};
/** Finds a row if no credential has this hash. */
const CLAIM: Sql = {
  sqlite: "select 1 where $2 is not null and not exists (select 1 from credentials where hash = $1)",
  postgres: "insert into earmark.credential_users (hash, user_id) values ($1, $2) on conflict do nothing returning 1",
};
const FORGET: Sql = { sqlite: undefined, postgres: "delete from earmark.credential_users where hash = $1" };

export function* findCredential(user: UserId, hash: string): Work<Credential | undefined> {
  const row = yield* get<CredentialRow>(
    `select ${COLUMNS} from earmark.credentials where user_id = $1 and hash = $2`,
    user,
    bytesOf(hash),
  );
  return row && toCredential(row);
}

export function* listCredentials(user: UserId, kind: CredentialKind): Work<Credential[]> {
  const rows = yield* all<CredentialRow>(
    `select ${COLUMNS} from earmark.credentials where user_id = $1 and kind = $2 order by created_at, id`,
    user,
    kind,
  );
  return rows.map(toCredential);
}

/** False if there is another credential with this hash. */
export function* insertCredential(credential: Credential, hash: string): Work<boolean> {
  if (!(yield* has(CLAIM, bytesOf(hash), credential.user))) return false;
  yield* insert("credentials", toRow(credential, hash));
  return true;
}

/** Deletes the user's credentials that match a condition, whose first value is `$2`. Returns their number. */
export function* deleteCredentials(
  user: UserId,
  condition = "true",
  ...values: readonly (Value | readonly Value[])[]
): Work<number> {
  const rows = yield* all<{ hash: Uint8Array }>(
    `delete from earmark.credentials where user_id = $1 and ${condition} returning hash`,
    user,
    ...values,
  );
  yield* together(...rows.map(({ hash }) => run(FORGET, hash)));
  return rows.length;
}

function* deleteLeastUsed(user: UserId, kind: CredentialKind, count: number): Work<void> {
  const oldest = `select hash from earmark.credentials where user_id = $1 and kind = $2
    order by greatest(used_at, created_at) limit $3`;
  yield* deleteCredentials(user, `hash in (${oldest})`, kind, count);
}

/** Ends what a new password ends, besides this session: other sessions, links to reset it and, if asked, tokens. */
export function* endSessions(user: UserId, keepSession: string | undefined, revokesTokens = false): Work<void> {
  const kept = keepSession === undefined ? null : key(keepSession);
  const others = "kind = any($2) and id is distinct from $3";
  yield* deleteCredentials(user, others, kindsEndedByPassword(revokesTokens), kept);
}

/**
 * Disabling ends the sessions and reset links of an account and suspends its tokens; enabling restores the tokens. Those
 * are deleted and added again, because writers hold locks that only a deletion waits for.
 */
export function* switchCredentials(user: UserId, action: "disable" | "enable"): Work<void> {
  if (action === "disable") yield* endSessions(user, undefined);
  for (const [from, to] of kindsToSwitch(action)) {
    const rows = yield* all<CredentialRow>(
      `delete from earmark.credentials where user_id = $1 and kind = $2 returning ${COLUMNS}`,
      user,
      from,
    );
    for (const row of rows) yield* insert("credentials", { ...row, id: key(digitsOf(row.id)), kind: to });
  }
}

const IS_EXPIRED = `expires_at > ${NEVER} and expires_at <=`;

/** Some of the users with credentials that have ended. PostgreSQL has an index for each condition. */
export function* findUsersOfEnded(now: number, limit: number): Work<UserId[]> {
  const idle =
    "select user_id from earmark.credentials where kind = $1 and used_at <= $2 and created_at <= $2 limit $3";
  const expired = `select user_id from earmark.credentials where ${IS_EXPIRED} $1 limit $2`;
  const rows = yield* together(
    all<{ user_id: UserId }>(expired, now, limit),
    ...IDLE_KINDS.map(([kind, idleMs]) => all<{ user_id: UserId }>(idle, kind, now - idleMs, limit)),
  );
  return [...new Set(rows.flat().map(({ user_id }) => user_id))];
}

/** Deletes a user's credentials that have ended. */
export function* deleteEnded(user: UserId, now: number): Work<void> {
  yield* deleteCredentials(user, `${IS_EXPIRED} $2`, now);
  for (const [kind, idleMs] of IDLE_KINDS)
    yield* deleteCredentials(user, "kind = $2 and used_at <= $3 and created_at <= $3", kind, now - idleMs);
}

export const CREDENTIAL_WRITES = {
  addCredential: write(
    { locks: "account", user: ({ credential }: NewCredential) => credential.user },
    function* ({ caller, at }, { credential, hash, password }: NewCredential) {
      const { user, kind } = credential;
      const [account, counted] = yield* together(
        get<{ password: string; totp_secret: string | null }>(
          "select password, totp_secret from earmark.accounts where user_id = $1 and disabled_at = 0",
          user,
        ),
        get<{ n: number }>(
          "select count(*) as n from earmark.credentials where user_id = $1 and kind = $2",
          user,
          kind,
        ),
      );
      if (user !== NOBODY && account === undefined) return "gone";
      if (password !== undefined) {
        const { passwordHash, totpSecret = null } = password;
        if (account?.password !== passwordHash || account.totp_secret !== totpSecret) return "gone";
      }
      const { max, evictsOldest } = rulesOf(kind);
      const excess = (counted?.n ?? 0) - max + 1;
      if (excess > 0 && !evictsOldest) return "full";
      if (excess > 0) yield* deleteLeastUsed(user, kind, excess);
      if (!(yield* insertCredential(credential, hash))) return "gone";
      yield* recordSignIn(credential);
      yield* logCredential("created", credential, caller.actor, at);
      return "added";
    },
  ),
  /** Locks the caller's account, because two sessions that remove each other would deadlock otherwise. */
  removeCredential: write(
    { locks: "account" },
    function* ({ caller, at }, user: UserId, kind: CredentialKind, id: string, sessionsToEnd?: SessionsToEnd) {
      const found = yield* get<{ label: string }>(
        "select label from earmark.credentials where user_id = $1 and kind = $2 and id = $3",
        user,
        kind,
        key(id),
      );
      if (found === undefined) return false;
      if ((yield* deleteCredentials(user, "kind = $2 and id = $3", kind, key(id))) === 0) return false;
      if (sessionsToEnd !== undefined) yield* endSessions(user, sessionsToEnd.except);
      yield* logCredential("revoked", { kind, user, label: found.label }, caller.actor, at);
      return true;
    },
  ),
  replaceCounter: write(
    { user: (user: UserId) => user },
    function* (_, user: UserId, hash: string, expected: number, counter: number) {
      const sql = "update earmark.credentials set counter = $4 where user_id = $1 and hash = $2 and counter = $3";
      return (yield* run(sql, user, bytesOf(hash), expected, counter)) === 1;
    },
  ),
  touchCredential: write(
    { user: (user: UserId) => user, isRepeatable: true, isSingle: true },
    function* ({ at }, user: UserId, hash: string) {
      yield* run(
        "update earmark.credentials set used_at = greatest(used_at, $3) where user_id = $1 and hash = $2",
        user,
        bytesOf(hash),
        at,
      );
    },
  ),
} as const;
