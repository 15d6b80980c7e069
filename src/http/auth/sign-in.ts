import { type CredentialKind, rulesOf } from "../../accounts/credential-kinds.ts";
import type { PasswordProblem } from "../../accounts/passwords.ts";
import type { AccountRefusal } from "../../accounts/refusals.ts";
import { type ErrorCode, failure, type RequestFailure } from "../../errors/catalog.ts";
import type { Principal } from "../wire/access.ts";
import type { ReadPeer } from "../wire/client-address.ts";
import type { Request } from "../wire/exchange.ts";
import { retryAfter } from "./authenticate.ts";

/** Actions that cannot be undone, or give lasting access, need a sign-in this recent, in case a browser was left open. */
const RECENT_SIGN_IN_MS = 10 * 60 * 1_000;

const MAX_USER_AGENT = 200;

/** Logged for fail2ban. Without the name, because people type their password into the wrong field. */
export function logFailedSignIn(
  { raw, log }: Request,
  readPeer: ReadPeer,
  way: "password" | "app" | "passkey" | "oidc",
): void {
  log.warn({ client: readPeer(raw).address, way }, "failed sign-in");
}

export function requireRecentSignIn({ authenticatedAt }: Principal, now: Date): void {
  // A sign-in that seems to lie ahead was before the clock was set back, nobody knows how long ago.
  if (Math.abs(now.getTime() - authenticatedAt.getTime()) > RECENT_SIGN_IN_MS) throw failure("recent-sign-in-required");
}

export function userAgentOf({ headers }: Request): string {
  return (headers["user-agent"] ?? "").replaceAll(/[^ -~]/g, "").slice(0, MAX_USER_AGENT);
}

/** The errors of a route for refusals that it describes in its own way. */
type OwnFailures = Partial<Record<AccountRefusal["reason"], RequestFailure>>;

export function toFailure(refusal: AccountRefusal, own: OwnFailures = {}): RequestFailure {
  return own[refusal.reason] ?? usualFailure(refusal);
}

function usualFailure(refusal: AccountRefusal): RequestFailure {
  switch (refusal.reason) {
    case "too-often":
      return failure("too-many-attempts", retryAfter(refusal.waitMs));
    case "invalid":
      return invalidAttribute(
        refusal.member,
        refusal.detail,
        refusal.member === "password" ? { problem: refusal.problem } : undefined,
      );
    case "wrong-password":
      return failure("sign-in-failed");
    case "name-taken":
      return failure("name-taken", { source: { pointer: "/data/attributes/name" } });
    case "invalid-invitation":
      return failure("invalid-invitation", { source: { pointer: "/data/attributes/invitation" } });
    case "second-factor-required":
    case "second-factor-exists":
    case "no-second-factor":
    case "no-password":
    case "last-admin":
    case "identity-taken":
    case "sign-up-closed":
      return failure(refusal.reason);
    case "invalid-passkey":
      return failure("invalid-passkey", { source: { pointer: "/data/attributes/passkey" } });
    case "wrong-code":
      return failure("one-time-code-failed");
    case "invalid-ticket":
      return failure("invalid-ticket", { source: { pointer: "/data/attributes/ticket" } });
    case "full":
      return tooMany(refusal.credential);
    case "gone":
      return failure("invalid-credentials");
    case "disabled":
      return failure("account-disabled");
    case "invalid-link":
      return failure("invalid-reset-link", { source: { pointer: "/data/attributes/link" } });
  }
}

function tooMany(kind: CredentialKind): RequestFailure {
  switch (kind) {
    case "passkey":
      return failure("too-many-passkeys", limitOf(kind));
    case "linked-user":
      return failure("too-many-identities", limitOf(kind));
    case "invitation":
    case "password-reset":
      return failure("too-many-links", limitOf(kind));
    default:
      return failure("too-many-tokens", limitOf("token"));
  }
}

function limitOf(kind: CredentialKind) {
  const { max } = rulesOf(kind);
  return { max, meta: { max } };
}

export const INVALID_ATTRIBUTE_CODES = {
  name: "invalid-name",
  password: "invalid-password",
  current_password: "invalid-password",
  label: "invalid-label",
  invitation: "invalid-attribute",
  link: "invalid-attribute",
  one_time_code: "invalid-attribute",
  ticket: "invalid-attribute",
  note: "invalid-attribute",
  revoke_tokens: "invalid-attribute",
  follow_moves: "invalid-attribute",
  role: "invalid-attribute",
  disabled: "invalid-attribute",
  scope: "invalid-attribute",
  subscription_ids: "invalid-attribute",
} as const satisfies Record<string, ErrorCode>;

export function invalidAttribute(
  name: keyof typeof INVALID_ATTRIBUTE_CODES,
  reason: string,
  meta?: { readonly problem: PasswordProblem },
): RequestFailure {
  const source = { pointer: `/data/attributes/${name}` };
  return failure(INVALID_ATTRIBUTE_CODES[name], { reason, source, ...(meta && { meta }) });
}
