import type { Credential } from "../../accounts/account-store.ts";
import { AccessRevoked, type Caller, type UserId } from "../../accounts/caller.ts";
import { kindsEndedByPassword } from "../../accounts/credential-kinds.ts";
import { bytesOf } from "../shared/keys.ts";
import type { Connection } from "./connection.ts";

/** Stored instead of a date that is not set. */
export const NEVER = 0;
export const toDate = (time: string) => (Number(time) === NEVER ? undefined : new Date(Number(time)));

export const CREDENTIAL = "id, kind, user_id, scope, label, created_at, used_at, expires_at";

export interface CredentialRow {
  readonly id: string;
  readonly kind: Credential["kind"];
  readonly user_id: string;
  readonly scope: Credential["scope"];
  readonly label: string;
  readonly created_at: string;
  readonly used_at: string;
  readonly expires_at: string;
}

export function toCredential(row: CredentialRow): Credential {
  return {
    id: row.id,
    kind: row.kind,
    user: Number(row.user_id),
    scope: row.scope,
    label: row.label,
    createdAt: new Date(Number(row.created_at)),
    usedAt: toDate(row.used_at),
    expiresAt: toDate(row.expires_at),
  };
}

/** Locks the account. Undefined if there is none. */
export async function lockAccount(
  connection: Connection,
  user: UserId,
): Promise<{ readonly password: string; readonly isDisabled: boolean } | undefined> {
  const { rows } = await connection.query<{ password: string; disabled_at: string }>(
    "select password, disabled_at from earmark.accounts where user_id = $1 for update",
    [user],
  );
  return rows[0] && { password: rows[0].password, isDisabled: Number(rows[0].disabled_at) !== NEVER };
}

/** Also deletes password-reset links. */
export async function endSessions(
  connection: Connection,
  user: UserId,
  keepSession: string | undefined,
  revokesTokens = false,
): Promise<void> {
  const others = "kind = any($2) and id is distinct from $3::uuid";
  await deleteCredentials(connection, user, others, kindsEndedByPassword(revokesTokens), keepSession ?? null);
}

/** Deletes the user's credentials that match a condition, whose first value is `$2`. Returns their number. */
export async function deleteCredentials(
  connection: Connection,
  user: UserId,
  condition = "true",
  ...values: readonly unknown[]
): Promise<number> {
  const { rows } = await connection.query<{ hash: Buffer }>(
    `delete from earmark.credentials where user_id = $1 and ${condition} returning hash`,
    [user, ...values],
  );
  const forget = "delete from earmark.credential_users where hash = $1";
  await Promise.all(rows.map(({ hash }) => connection.query(forget, [hash])));
  return rows.length;
}

/**
 * Returns the time at which a credential expires, or 0 if it was revoked. Locks it until the transaction ends, so a
 * revocation is either seen here or waits for this transaction.
 */
async function lockCredential(connection: Connection, user: UserId, hash: string): Promise<number> {
  const { rows } = await connection.query<{ expires_at: string }>(
    `select expires_at from earmark.credentials
     where user_id = $1 and hash = $2 and kind <> 'disabled-token' for key share`,
    [user, bytesOf(hash)],
  );
  const [row] = rows;
  return row === undefined ? 0 : Number(row.expires_at) || Number.POSITIVE_INFINITY;
}

/**
 * Locks the credentials of all jobs against deletion. Lock the list or the account first: deleting an account removes
 * its credentials while it holds both, and would otherwise deadlock with this. These locks do not wait for each other.
 * Returns a function that tells whether a credential has expired or was revoked.
 */
export async function lockCredentials(
  connection: Connection,
  user: UserId,
  jobs: readonly Pick<Caller, "credentialHash">[],
): Promise<(credentialHash: string, at: number) => boolean> {
  const hashes = [...new Set(jobs.flatMap(({ credentialHash }) => credentialHash ?? []))].sort();
  const expiries = await Promise.all(hashes.map((hash) => lockCredential(connection, user, hash)));
  return (hash, at) => (expiries[hashes.indexOf(hash)] ?? 0) <= at;
}

/**
 * Locks the account's password, if one of the jobs was authenticated with it. Lock the list first, so that at most one
 * writer has this lock: otherwise a password change could wait forever for writers that share it and take turns.
 * Returns a function that tells whether the password of a job is no longer valid.
 */
export async function lockPassword(
  connection: Connection,
  user: UserId,
  jobs: readonly Pick<Caller, "passwordHash">[],
): Promise<(job: Pick<Caller, "passwordHash">) => boolean> {
  if (jobs.every(({ passwordHash }) => passwordHash === undefined)) return () => false;
  const { rows } = await connection.query<{ password: string }>(
    "select password from earmark.accounts where user_id = $1 and disabled_at = 0 for share",
    [user],
  );
  return ({ passwordHash }) => passwordHash !== undefined && passwordHash !== rows[0]?.password;
}

/** Throws if the caller was authenticated with a password that is no longer valid. */
export async function requireValidPassword(connection: Connection, caller: Caller): Promise<void> {
  const isRevoked = await lockPassword(connection, caller.user, [caller]);
  if (isRevoked(caller)) throw new AccessRevoked();
}

/** Throws if the caller was authenticated with a credential that has expired or was revoked. */
export async function requireValidCredential(connection: Connection, caller: Caller, at: Date): Promise<void> {
  const isRevoked = await lockCredentials(connection, caller.user, [caller]);
  if (caller.credentialHash !== undefined && isRevoked(caller.credentialHash, at.getTime())) throw new AccessRevoked();
}

/**
 * Serializes administrators' changes and deletions of accounts, so that one administrator always remains and a demoted
 * one changes nothing. Take it before any other lock. Every node of a cluster has a copy of this row.
 */
export async function lockAdministration(connection: Connection): Promise<void> {
  await connection.query("select 1 from earmark.schema where one for update");
}

/** Call it after `lockAdministration`, in the same transaction. */
export async function requireAdmin(connection: Connection, caller: Caller): Promise<void> {
  if (caller.requiresAdmin === true && !(await hasActiveAdmin(connection, "=", caller.user))) throw new AccessRevoked();
}

/** Whether the user (`=`) or another one (`<>`) can administer the server. */
export async function hasActiveAdmin(connection: Connection, which: "=" | "<>", user: UserId): Promise<boolean> {
  const { rows } = await connection.query(
    `select 1 from earmark.accounts where user_id ${which} $1 and is_admin = 1 and disabled_at = 0 limit 1`,
    [user],
  );
  return rows.length > 0;
}
