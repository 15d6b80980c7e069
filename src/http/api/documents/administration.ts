import type { Credential } from "../../../accounts/account-store.ts";
import type { AccountSummary, AdminAction, AuditEntry } from "../../../accounts/administration-store.ts";
import { type Resource, type ResourceWithoutLinks, readAttributes, toTimestamp } from "../../../jsonapi/document.ts";
import { invalidAttribute } from "../../auth/sign-in.ts";
import {
  MAX_LABEL,
  MAX_PASSWORD_TEXT,
  type RequestedPassword,
  readExpiry,
  readFlag,
  readOneTimeCode,
  readText,
  roleOf,
  validateLabel,
} from "./accounts.ts";

export function readPasswordReset(
  document: unknown,
): RequestedPassword & { readonly link: string; readonly oneTimeCode: string | undefined } {
  const attributes = readAttributes(document, "password-reset");
  return {
    link: readText(attributes, "link", 256),
    password: readText(attributes, "password", MAX_PASSWORD_TEXT),
    revokesTokens: readFlag(attributes, "revoke_tokens") ?? false,
    oneTimeCode: readOneTimeCode(attributes),
  };
}

/** The note is for the administrators; it may be empty. */
export function readInvitation(document: unknown, now: Date): { note: string; expiresAt: Date | undefined } {
  const attributes = readAttributes(document, "invitation");
  const note = attributes["note"] === undefined ? "" : readText(attributes, "note", 4 * MAX_LABEL);
  const problem = note === "" ? undefined : validateLabel(note);
  if (problem !== undefined) throw invalidAttribute("note", `\`note\` ${problem}`);
  return { note, expiresAt: readExpiry(attributes["expires_at"], now) };
}

/** What an administrator wants to change: only one attribute, because two could not be applied atomically. */
export function readAdminAction(document: unknown): AdminAction | undefined {
  const attributes = readAttributes(document, "account");
  const { role } = attributes;
  if (role !== undefined && role !== "administrator" && role !== "member")
    throw invalidAttribute("role", '`role` must be "administrator" or "member"');
  const isDisabled = readFlag(attributes, "disabled");
  if (role !== undefined && isDisabled !== undefined)
    throw invalidAttribute("disabled", "`role` and `disabled` must be changed in separate requests");
  if (role !== undefined) return role === "administrator" ? "promote" : "demote";
  if (isDisabled !== undefined) return isDisabled ? "disable" : "enable";
  return undefined;
}

/** An account as administrators see it. */
export function accountResource(account: AccountSummary, basePath: string): Resource {
  const { user, name, issuer, createdAt, disabledAt, seenAt, subscriptions, rows } = account;
  return {
    type: "account",
    id: String(user),
    attributes: {
      name,
      issuer: issuer === "" ? null : issuer,
      role: roleOf(account),
      second_factor: account.hasSecondFactor,
      created_at: toTimestamp(createdAt),
      disabled_at: toTimestamp(disabledAt),
      last_seen_on: seenAt?.toISOString().slice(0, 10) ?? null,
      subscriptions,
      stored_rows: rows,
    },
    links: { self: `${basePath}/v1/accounts/${user}` },
  };
}

/** `url` is the link to open. Only the response to the request that creates the invitation contains it. */
export function invitationResource(
  { id, label, createdAt, expiresAt }: Credential,
  basePath: string,
  url?: string,
): Resource {
  return {
    type: "invitation",
    id,
    attributes: {
      note: label,
      created_at: toTimestamp(createdAt),
      expires_at: toTimestamp(expiresAt),
      ...(url === undefined ? {} : { url }),
    },
    links: { self: `${basePath}/v1/invitations/${id}` },
  };
}

/** A reset link can only be created and opened, so it has no `self` link. */
export function resetLinkResource({ id, expiresAt }: Credential, url: string): ResourceWithoutLinks {
  return { type: "reset-link", id, attributes: { expires_at: toTimestamp(expiresAt), url } };
}

export function auditResource({ id, at, action, actor, address, target }: AuditEntry): ResourceWithoutLinks {
  return {
    type: "audit-entry",
    id,
    attributes: {
      action,
      actor,
      target,
      address: address === "" ? null : address,
      acted_at: toTimestamp(at),
    },
  };
}
