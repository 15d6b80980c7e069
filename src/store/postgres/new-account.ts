import {
  type Credential,
  decideNewAccount,
  type NewAccount,
  type NewAccountState,
  NOBODY,
} from "../../accounts/account-store.ts";
import { creationAction } from "../../accounts/administration-store.ts";
import { LOCAL_USER, type UserId } from "../../accounts/caller.ts";
import { referenceOf } from "../../accounts/names.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { bytesOf, DELETED, nameKey } from "../shared/keys.ts";
import { addAuditEntry } from "./administration.ts";
import { begin, type Connection, commit } from "./connection.ts";
import { deleteCredentials } from "./credentials.ts";

type Outcome = UserId | "name-taken" | "invalid-invitation" | "retry";

/** Creates an account in a transaction. Returns `retry` after a conflict with a concurrent transaction. */
export async function createAccount(
  connection: Connection,
  requested: UserId,
  account: NewAccount,
  at: Date,
): Promise<Outcome> {
  await begin(connection);
  const outcome = await createInTransaction(connection, requested, account, at);
  if (typeof outcome === "number") await commit(connection);
  else await connection.query("rollback");
  return outcome;
}

async function createInTransaction(
  connection: Connection,
  requested: UserId,
  account: NewAccount,
  at: Date,
): Promise<Outcome> {
  const { name, issuer, passwordHash, invitationHash } = account;
  const key = nameKey(name, issuer).toString("hex");
  const existing = await findName(connection, key);
  // Hashes are unique: the same one means that an earlier attempt, whose reply was lost, created this account.
  if (existing !== undefined && passwordHash !== "" && existing.passwordHash === passwordHash) return existing.user;
  const state = await readState(connection, account);
  const decision = decideNewAccount(account, { ...state, isNameTaken: existing !== undefined });
  if (typeof decision === "string") return decision;
  if (state.invitationKind === "invitation" && invitationHash !== undefined) {
    if ((await deleteCredentials(connection, NOBODY, "hash = $2", bytesOf(invitationHash))) !== 1)
      return "invalid-invitation";
  }
  const user = decision.becomesLocalUser ? LOCAL_USER : requested;
  if (!decision.becomesLocalUser) {
    const { rows } = await connection.query("select 1 from earmark.lists where user_id = $1", [user]);
    if (rows.length > 0) throw new StoreUnavailable("the new user id is taken");
  }
  const { rowCount: inserted } = await connection.query(
    "insert into earmark.identities (key, user_id) values ($1, $2) on conflict do nothing",
    [key, user],
  );
  if (inserted !== 1) return "retry";
  const { rowCount: created } = await connection.query(
    `insert into earmark.accounts (user_id, created_at, name, issuer, password, is_admin) values ($1, $2, $3, $4, $5, $6)
     on conflict do nothing`,
    [user, at.getTime(), name, issuer, passwordHash, decision.becomesAdmin ? 1 : 0],
  );
  if (created !== 1) {
    if (!decision.becomesLocalUser) throw new StoreUnavailable("the new user id is taken");
    // A concurrent transaction has created the account of the local user.
    return "retry";
  }
  await addAuditEntry(connection, creationAction(account), referenceOf(account), account.actor, at);
  // Last, because two concurrent setups would otherwise deadlock.
  if (decision.endsSetup) await deleteCredentials(connection, NOBODY, "kind = 'setup'");
  return user;
}

async function findName(
  connection: Connection,
  key: string,
): Promise<{ readonly user: UserId; readonly passwordHash: string | undefined } | undefined> {
  const { rows } = await connection.query<{ user_id: string }>(
    "select user_id from earmark.identities where key = $1",
    [key],
  );
  if (rows[0] === undefined) return undefined;
  const user = Number(rows[0].user_id);
  const { rows: accounts } = await connection.query<{ password: string }>(
    "select password from earmark.accounts where user_id = $1",
    [user],
  );
  return { user, passwordHash: accounts[0]?.password };
}

async function readState(connection: Connection, account: NewAccount): Promise<Omit<NewAccountState, "isNameTaken">> {
  const { invitationHash } = account;
  const { rows: links } = await connection.query<{ kind: Credential["kind"]; given: boolean }>(
    `select kind, hash = $2 as given from earmark.credentials
     where user_id = $1 and (hash = $2 or kind = 'setup') order by hash = $2 desc limit 2`,
    [NOBODY, invitationHash === undefined ? null : bytesOf(invitationHash)],
  );
  const { rows: local } = await connection.query("select 1 from earmark.accounts where user_id = $1", [LOCAL_USER]);
  const { rows: deleted } = await connection.query("select 1 from earmark.lists where user_id = $1 and sequence = $2", [
    LOCAL_USER,
    DELETED,
  ]);
  // Read after the local user's account: if that one was found, this query finds an account too. A cluster has to ask all its
  // nodes, so ask only while there is a setup link.
  const isSettingUp = links.some(({ kind }) => kind === "setup");
  const { rows: accounts } = isSettingUp
    ? await connection.query("select 1 from earmark.accounts limit 1")
    : { rows: [1] };
  // Only an account that the operator creates can be an administrator from the start.
  const { rows: admins } = account.isCreatedByOperator
    ? await connection.query("select 1 from earmark.accounts where is_admin = 1 limit 1")
    : { rows: [1] };
  return {
    hasAccounts: accounts.length > 0,
    hasAdmins: admins.length > 0,
    isLocalUserTaken: local.length > 0 || deleted.length > 0,
    invitationKind: links.find(({ given }) => given)?.kind,
  };
}
