import type { Credential } from "../../accounts/account-store.ts";
import type { UserId } from "../../accounts/caller.ts";
import type { SignIn } from "../../alerts/alert-store.ts";
import { all, get, has, idOf, insert, key, run, type Work } from "../shared/database.ts";
import { NEVER } from "./times.ts";

const DAY_MS = 24 * 60 * 60_000;
/** How long a browser is known after its last sign-in. */
const BROWSER_MS = 365 * DAY_MS;
/** How long a token is listed, even if it has ended. */
const TOKEN_MS = 30 * DAY_MS;
/** Per user; beyond it, those that were used least recently are forgotten. */
const MAX_SIGN_INS = 200;
/** A session that is opened this soon after the account is the one of the person who created it. */
const SIGN_UP_MS = 60_000;

/** Records a token, or a session and whether its browser is new, in the transaction that adds it. */
export function* recordSignIn({ id, user, kind, label, createdAt }: Credential): Work<void> {
  if (kind !== "token" && kind !== "session") return;
  const at = createdAt.getTime();
  if (kind === "session") {
    const known = yield* run(
      `update earmark.sign_ins set last_at = greatest(last_at, $3)
       where user_id = $1 and kind = 'session' and label = $2`,
      user,
      label,
      at,
    );
    if (known > 0) return;
  }
  const isNew = kind === "token" || !(yield* isKnownBrowser(user, label, id, at));
  yield* insert("sign_ins", { user_id: user, id: key(id), kind, label, first_at: isNew ? at : NEVER, last_at: at });
  yield* run(
    `delete from earmark.sign_ins where user_id = $1 and (
       last_at < $2 or (kind = 'token' and last_at < $3) or id in (
         select id from earmark.sign_ins where user_id = $1 order by last_at desc, id limit 1000000 offset ${MAX_SIGN_INS}))`,
    user,
    at - BROWSER_MS,
    at - TOKEN_MS,
  );
}

/** Sessions may have been opened before sign-ins were recorded. */
function* isKnownBrowser(user: UserId, label: string, id: string, at: number): Work<boolean> {
  const account = yield* get<{ created_at: number }>(
    "select created_at from earmark.accounts where user_id = $1",
    user,
  );
  if (account !== undefined && at - account.created_at < SIGN_UP_MS) return true;
  return yield* has(
    "select 1 from earmark.credentials where user_id = $1 and kind = 'session' and label = $2 and id <> $3",
    user,
    label,
    key(id),
  );
}

export function* readSignIns(user: UserId, since: number, limit: number): Work<SignIn[]> {
  const rows = yield* all<{ id: unknown; kind: SignIn["kind"]; label: string; first_at: number }>(
    `select id, kind, label, first_at from earmark.sign_ins where user_id = $1 and first_at > $2
     order by first_at desc, id limit $3`,
    user,
    since,
    limit,
  );
  return rows.map(({ id, kind, label, first_at }) => ({ id: idOf(id), kind, label, at: new Date(first_at) }));
}
