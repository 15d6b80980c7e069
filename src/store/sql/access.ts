import { AccessRevoked, type Caller, type UserId } from "../../accounts/caller.ts";
import { Conflict, type Context, get, has, nothing, run, together, type Work, type Write } from "../shared/database.ts";
import { bytesOf, DELETED } from "../shared/keys.ts";
import { NEVER } from "./times.ts";

/** Whether a caller, one of those that were given, has access at a time. */
export type AccessCheck = (caller: Caller, at: number) => boolean;

/**
 * Reads what the access of callers depends on, all of one user, and locks it: what would end their access is either seen
 * here or waits for this transaction. Lock the list or the account first: the deletion of an account removes credentials
 * while it holds both, and a change of password could wait forever for writers that share the lock and take turns.
 */
export function* checkAccess(user: UserId, callers: readonly Caller[]): Work<AccessCheck> {
  const hashes = [...new Set(callers.flatMap(({ credentialHash }) => credentialHash ?? []))].sort();
  const needsAccount = callers.some(({ passwordHash, requiresAdmin }) => passwordHash !== undefined || requiresAdmin);
  const [account, credentials] = yield* together(
    needsAccount
      ? get<{ password: string; is_admin: number; totp_secret: string | null }>(
          "select password, is_admin, totp_secret from earmark.accounts where user_id = $1 and disabled_at = 0 for share",
          user,
        )
      : nothing(),
    together(...hashes.map((hash) => readExpiry(user, hash))),
  );
  return ({ credentialHash, passwordHash, hasPasswordOnly, requiresAdmin }, at) => {
    if (requiresAdmin === true && account?.is_admin !== 1) return false;
    if (passwordHash !== undefined && passwordHash !== account?.password) return false;
    if (hasPasswordOnly === true && account?.totp_secret !== null) return false;
    return credentialHash === undefined || (credentials[hashes.indexOf(credentialHash)] ?? 0) > at;
  };
}

/** When a credential expires; 0 if it was revoked. These locks do not wait for each other. */
function* readExpiry(user: UserId, hash: string): Work<number> {
  const row = yield* get<{ expires_at: number }>(
    `select expires_at from earmark.credentials
     where user_id = $1 and hash = $2 and kind <> 'disabled-token' for key share`,
    user,
    bytesOf(hash),
  );
  if (row === undefined) return 0;
  return row.expires_at === NEVER ? Number.POSITIVE_INFINITY : row.expires_at;
}

/**
 * Takes the locks of a write in the order that all writes have, and checks its caller's access. The administration comes
 * first: writes of administrators and deletions of their accounts lock it, so that one administrator always remains and a
 * demoted one changes nothing. Every node of a cluster has a copy of its row, so locking it needs them all.
 */
export function* admit(
  { locks, isAdministration }: Pick<Write<never, unknown>, "locks" | "isAdministration">,
  { caller, at }: Context,
  user: UserId,
): Work<void> {
  const locksList = locks === "list" || locks === "both";
  const locksAdministration =
    isAdministration === true ||
    caller.requiresAdmin === true ||
    (isAdministration === "of-admin" && (yield* has(`${ACCOUNT} and is_admin = 1`, user)));
  const [, , list, account, hasAccess] = yield* together(
    locksAdministration
      ? has({ sqlite: undefined, postgres: "select 1 from earmark.schema where one for update" })
      : nothing(),
    locksList ? run(locks === "both" ? ADD_LIST_OF_ACCOUNT : ADD_LIST, user) : nothing(),
    locksList
      ? get<{ sequence: number }>("select sequence from earmark.lists where user_id = $1 for update", user)
      : nothing(),
    locks === "account" || locks === "both" ? get<{ is_admin: number }>(`${ACCOUNT} for update`, user) : nothing(),
    checkAccess(caller.user, [caller]),
  );
  // The user has become one meanwhile.
  if (isAdministration === "of-admin" && account?.is_admin === 1 && !locksAdministration) throw new Conflict();
  if ((locks === "list" && list?.sequence === DELETED) || !hasAccess(caller, at)) throw new AccessRevoked();
}

const ACCOUNT = "select is_admin from earmark.accounts where user_id = $1";
export const ADD_LIST = "insert into earmark.lists (user_id, sequence, total) values ($1, 0, 0) on conflict do nothing";
const ADD_LIST_OF_ACCOUNT = `insert into earmark.lists (user_id, sequence, total)
  select user_id, 0, 0 from earmark.accounts where user_id = $1 on conflict do nothing`;
