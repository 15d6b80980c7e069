import { AccessRevoked, type Caller, type UserId } from "../subscriptions.ts";
import { bytesOf } from "./keys.ts";
import type { Connection } from "./postgres-connection.ts";

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
 * Returns when a credential expires, or 0 if it was revoked. Locks it until the transaction ends, so a revocation is either
 * seen here or waits for this transaction.
 */
async function lockCredential(connection: Connection, user: UserId, hash: string): Promise<number> {
  const { rows } = await connection.query<{ expires_at: string }>(
    "select expires_at from earmark.credentials where user_id = $1 and hash = $2 for key share",
    [user, bytesOf(hash)],
  );
  const [row] = rows;
  return row === undefined ? 0 : Number(row.expires_at) || Number.POSITIVE_INFINITY;
}

/**
 * Locks the credentials of all jobs against deletion. Lock the list or the account first: deleting an account removes
 * its credentials while it holds both, and would otherwise deadlock with this. These locks do not wait for each other.
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
 * Locks the account's password, if one of the jobs was made with it. Lock the list first: then at most one writer has this
 * lock, while a change of the password could wait for ever for writers that share it and take turns at the list.
 */
export async function lockPassword(
  connection: Connection,
  user: UserId,
  jobs: readonly Pick<Caller, "passwordHash">[],
): Promise<(job: Pick<Caller, "passwordHash">) => boolean> {
  if (jobs.every(({ passwordHash }) => passwordHash === undefined)) return () => false;
  const { rows } = await connection.query<{ password: string }>(
    "select password from earmark.accounts where user_id = $1 for share",
    [user],
  );
  return ({ passwordHash }) => passwordHash !== undefined && passwordHash !== rows[0]?.password;
}

export async function requirePassword(connection: Connection, caller: Caller): Promise<void> {
  const isChanged = await lockPassword(connection, caller.user, [caller]);
  if (isChanged(caller)) throw new AccessRevoked();
}

export async function requireCredential(connection: Connection, caller: Caller, at: Date): Promise<void> {
  const isRevoked = await lockCredentials(connection, caller.user, [caller]);
  if (caller.credentialHash !== undefined && isRevoked(caller.credentialHash, at.getTime())) throw new AccessRevoked();
}
