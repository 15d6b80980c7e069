import { randomUUID } from "node:crypto";
import type { Credential } from "../../accounts/account-store.ts";
import type { Actor, Caller, UserId } from "../../accounts/caller.ts";
import { asUser } from "../../accounts/caller.ts";
import type { NewSecondFactor, SecondFactorStore, TotpUse } from "../../accounts/second-factor-store.ts";
import { type Context, type Database, has, run, type Work, write } from "../shared/database.ts";
import { bytesOf } from "../shared/keys.ts";
import { addAuditEntry, nameOf } from "./audit.ts";
import { deleteCredentials, endSessions, insertCredential } from "./credentials.ts";

const IS_ON = "select 1 from earmark.accounts where user_id = $1 and totp_secret is not null";
/** `$3` is the step of a code, `$4` the latest that can have been used. */
const IS_UNUSED = "(totp_step < $3 or totp_step > $4)";

function* addRecoveryCodes(user: UserId, hashes: readonly string[], at: number): Work<void> {
  const code = {
    kind: "recovery-code",
    user,
    scope: "write",
    label: "",
    usedAt: undefined,
    expiresAt: undefined,
  } as const;
  for (const hash of hashes) {
    const credential: Credential = { ...code, id: randomUUID(), createdAt: new Date(at) };
    if (!(yield* insertCredential(credential, hash))) throw new Error("a new recovery code is known");
  }
}

const deleteRecoveryCodes = (user: UserId) => deleteCredentials(user, "kind = 'recovery-code'");

function* addSecondFactor({ caller: { user, actor }, at }: Context, added: NewSecondFactor) {
  const { secret, step, latest, recoveryHashes, keepSession } = added;
  if (yield* has(IS_ON, user)) return "exists";
  const sql = `update earmark.accounts set totp_secret = $2, totp_step = $3 where user_id = $1 and ${IS_UNUSED}`;
  if ((yield* run(sql, user, secret, step, latest)) === 0) return "used";
  yield* addRecoveryCodes(user, recoveryHashes, at);
  yield* endSessions(user, keepSession);
  yield* addAuditEntry("second-factor-added", yield* nameOf(user), actor, at);
  return "added";
}

function* removeSecondFactor({ caller, at }: Context, user: UserId) {
  if (!(yield* has("select 1 from earmark.accounts where user_id = $1", user))) return "gone";
  // The last step is kept: a code that was used is not accepted for the same secret again.
  const sql = "update earmark.accounts set totp_secret = null where user_id = $1 and totp_secret is not null";
  if ((yield* run(sql, user)) === 0) return "removed";
  yield* deleteRecoveryCodes(user);
  const action = caller.user === user ? "second-factor-removed" : "second-factor-reset";
  yield* addAuditEntry(action, yield* nameOf(user), caller.actor, at);
  return "removed";
}

function* replaceRecoveryCodes({ caller: { user, actor }, at }: Context, hashes: readonly string[]) {
  if (!(yield* has(IS_ON, user))) return false;
  yield* deleteRecoveryCodes(user);
  yield* addRecoveryCodes(user, hashes, at);
  yield* addAuditEntry("recovery-codes-created", yield* nameOf(user), actor, at);
  return true;
}

export const SECOND_FACTOR_WRITES = {
  addSecondFactor: write({ locks: "account" }, addSecondFactor),
  removeSecondFactor: write({ locks: "account", user: (user: UserId) => user }, removeSecondFactor),
  replaceRecoveryCodes: write({ locks: "account" }, replaceRecoveryCodes),
  /** One statement, so that the database decides which of several concurrent uses is the first. */
  useTotpStep: write({ user: (user: UserId) => user }, function* (_, user: UserId, { secret, step, latest }: TotpUse) {
    const sql = `update earmark.accounts set totp_step = $3 where user_id = $1 and totp_secret = $2 and ${IS_UNUSED}`;
    return (yield* run(sql, user, secret, step, latest)) === 1;
  }),
  useRecoveryCode: write(
    { user: (user: UserId) => user },
    function* ({ at }, user: UserId, hash: string, actor: Actor) {
      const isUsed = (yield* deleteCredentials(user, "kind = 'recovery-code' and hash = $2", bytesOf(hash))) === 1;
      if (isUsed) yield* addAuditEntry("recovery-code-used", yield* nameOf(user), actor, at);
      return isUsed;
    },
  ),
  recordFailedCode: write({ user: (user: UserId) => user }, function* ({ at }, user: UserId, actor: Actor) {
    yield* addAuditEntry("second-factor-failed", yield* nameOf(user), actor, at);
  }),
} as const;

export class SqlSecondFactors implements SecondFactorStore {
  readonly #database: Database<typeof SECOND_FACTOR_WRITES>;

  constructor(database: Database<typeof SECOND_FACTOR_WRITES>) {
    this.#database = database;
  }

  add(caller: Caller, added: NewSecondFactor, at: Date): Promise<"added" | "exists" | "used"> {
    return this.#database.write(caller, at, "addSecondFactor", added);
  }

  remove(caller: Caller, user: UserId, at: Date): Promise<"removed" | "gone"> {
    return this.#database.write(caller, at, "removeSecondFactor", user);
  }

  replaceRecoveryCodes(caller: Caller, hashes: readonly string[], at: Date): Promise<boolean> {
    return this.#database.write(caller, at, "replaceRecoveryCodes", hashes);
  }

  useStep(user: UserId, use: TotpUse, at: Date): Promise<boolean> {
    return this.#database.write(asUser(user), at, "useTotpStep", user, use);
  }

  useRecoveryCode(user: UserId, hash: string, actor: Actor, at: Date): Promise<boolean> {
    return this.#database.write(asUser(user), at, "useRecoveryCode", user, hash, actor);
  }

  async recordFailure(user: UserId, actor: Actor, at: Date): Promise<void> {
    await this.#database.write(asUser(user), at, "recordFailedCode", user, actor);
  }
}
