import { randomUUID } from "node:crypto";
import { NOBODY } from "../../accounts/account-store.ts";
import { type AuditAction, credentialAction, type LoggedCredential } from "../../accounts/administration-store.ts";
import { type Actor, COMMAND_LINE, type UserId } from "../../accounts/caller.ts";
import { referenceOf } from "../../accounts/names.ts";
import { get, insert, key, type Work } from "../shared/database.ts";

/** Adds an entry to the audit log, in the transaction of what it records. */
export function* addAuditEntry(
  action: AuditAction,
  target: string,
  { name, address }: Actor = COMMAND_LINE,
  at: number,
): Work<void> {
  yield* insert("audit_log", { acted_at: at, id: key(randomUUID()), action, actor: name, address, target });
}

/** Records that a credential was created or revoked, if the audit log covers its kind. */
export function* logCredential(
  what: "created" | "revoked",
  { kind, user, label }: LoggedCredential,
  actor: Actor | undefined,
  at: number,
): Work<void> {
  const action = credentialAction(what, kind);
  if (action !== undefined) yield* addAuditEntry(action, user === NOBODY ? label : yield* nameOf(user), actor, at);
}

/** The name of an account, as the audit log has it. */
export function* nameOf(user: UserId): Work<string> {
  const account = yield* get<{ name: string; issuer: string }>(
    "select name, issuer from earmark.accounts where user_id = $1",
    user,
  );
  return account === undefined ? "" : referenceOf(account);
}
