import type { Account, Credential, Scope } from "../../../accounts/account-store.ts";
import type { UserId } from "../../../accounts/caller.ts";
import type { UserManagedKind } from "../../../accounts/credential-kinds.ts";
import type { AppLogin } from "../../../apps/logins.ts";
import { failure, type RequestFailure } from "../../../errors/catalog.ts";
import { type Attributes, type Resource, readAttributes, toTimestamp } from "../../../jsonapi/document.ts";
import { isObject } from "../../../util/is-object.ts";
import { type INVALID_ATTRIBUTE_CODES, invalidAttribute } from "../../auth/sign-in.ts";

export const MAX_LABEL = 100;
/** The timestamp format of the API; milliseconds are optional in requests. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;

export function missingAttribute(name: string): RequestFailure {
  // A pointer must lead to a value that exists, so the parent of a missing member is reported.
  return failure("attribute-missing", { name, source: { pointer: "/data/attributes" } });
}

/** Texts over `maxLength` are rejected before they are validated. */
export function readText(
  attributes: Attributes,
  name: keyof typeof INVALID_ATTRIBUTE_CODES,
  maxLength: number,
): string {
  const value = attributes[name];
  if (value === undefined) throw missingAttribute(name);
  if (typeof value !== "string") throw invalidAttribute(name, `\`${name}\` must be a string`);
  if (value.length > maxLength) throw invalidAttribute(name, `\`${name}\` is too long`);
  return value;
}

/** Upper bounds in UTF-16 code units; the exact limits are checked later. */
const MAX_NAME_TEXT = 256;
export const MAX_PASSWORD_TEXT = 512;

/** A name and a password, or what the browser returned for a passkey. */
type SignInCredentials =
  | {
      readonly kind: "password";
      readonly name: string;
      readonly password: string;
      readonly oneTimeCode: string | undefined;
    }
  | { readonly kind: "passkey"; readonly passkey: object };

export function readSignIn(document: unknown): SignInCredentials {
  const attributes = readAttributes(document, "session");
  if (attributes["passkey"] !== undefined) return { kind: "passkey", passkey: readPasskey(attributes) };
  return {
    kind: "password",
    name: readText(attributes, "name", MAX_NAME_TEXT),
    password: readText(attributes, "password", MAX_PASSWORD_TEXT),
    oneTimeCode: readOneTimeCode(attributes),
  };
}

/** Of an authenticator app or for recovery. Which of the two, and whether it can be one, is checked when it is used. */
export function readOneTimeCode(attributes: Attributes): string | undefined {
  return attributes["one_time_code"] === undefined ? undefined : readText(attributes, "one_time_code", 64);
}

/** The ticket of an enrollment, and the first code of the app. */
export function readNewSecondFactor(document: unknown): { ticket: string; oneTimeCode: string } {
  const attributes = readAttributes(document, "second-factor");
  return { ticket: readText(attributes, "ticket", 512), oneTimeCode: readText(attributes, "one_time_code", 64) };
}

/** `recoveryCodes` are in the response that creates them only. */
export function secondFactorResource(
  user: UserId,
  state: { readonly isEnabled: boolean; readonly isRequired: boolean; readonly recoveryCodesLeft: number },
  basePath: string,
  recoveryCodes?: readonly string[],
): Resource {
  return {
    type: "second-factor",
    id: String(user),
    attributes: {
      enabled: state.isEnabled,
      required: state.isRequired,
      recovery_codes_left: state.recoveryCodesLeft,
      ...(recoveryCodes === undefined ? {} : { recovery_codes: recoveryCodes }),
    },
    links: { self: `${basePath}/v1/second-factor` },
  };
}

export function readSignUp(document: unknown): { name: string; password: string; invitation: string | undefined } {
  const attributes = readAttributes(document, "account");
  return {
    name: readText(attributes, "name", MAX_NAME_TEXT),
    password: readText(attributes, "password", MAX_PASSWORD_TEXT),
    invitation: attributes["invitation"] === undefined ? undefined : readText(attributes, "invitation", 256),
  };
}

export function readInvitationCheck(document: unknown): string {
  return readText(readAttributes(document, "invitation-check"), "invitation", 256);
}

export interface RequestedPassword {
  readonly password: string;
  /** Whether apps lose access. */
  readonly revokesTokens: boolean;
}

export function readNewPassword(document: unknown): RequestedPassword & { readonly current: string } {
  const attributes = readAttributes(document, "account");
  return {
    current: readText(attributes, "current_password", MAX_PASSWORD_TEXT),
    password: readText(attributes, "password", MAX_PASSWORD_TEXT),
    revokesTokens: readFlag(attributes, "revoke_tokens") ?? false,
  };
}

/** Whether the server is to follow moves; undefined if the document changes the password. */
export function readFollowMoves(document: unknown): boolean | undefined {
  const attributes = readAttributes(document, "account");
  const followMoves = readFlag(attributes, "follow_moves");
  if (followMoves !== undefined && attributes["password"] !== undefined)
    throw invalidAttribute("follow_moves", "`follow_moves` cannot be changed together with the password");
  return followMoves;
}

export function readFlag(attributes: Attributes, name: keyof typeof INVALID_ATTRIBUTE_CODES): boolean | undefined {
  const value = attributes[name];
  if (value !== undefined && typeof value !== "boolean")
    throw invalidAttribute(name, `\`${name}\` must be true or false`);
  return value;
}

export function readNewToken(
  document: unknown,
  now: Date,
): { label: string; scope: Scope; expiresAt: Date | undefined } {
  const attributes = readAttributes(document, "token");
  const label = readLabel(attributes);
  const scope = attributes["scope"];
  if (scope === undefined) throw missingAttribute("scope");
  if (scope !== "read" && scope !== "write")
    throw failure("invalid-scope", { source: { pointer: "/data/attributes/scope" } });
  return { label, scope, expiresAt: readExpiry(attributes["expires_at"], now) };
}

/** A label, and what the browser returned for the new passkey. */
export function readNewPasskey(document: unknown): { label: string; passkey: object } {
  const attributes = readAttributes(document, "passkey");
  return { label: readLabel(attributes), passkey: readPasskey(attributes) };
}

/** The members of the browser's response are validated when it is verified. */
function readPasskey({ passkey }: Attributes): object {
  if (passkey === undefined) throw missingAttribute("passkey");
  if (!isObject(passkey)) {
    throw failure("invalid-attribute", {
      reason: "`passkey` must be an object",
      source: { pointer: "/data/attributes/passkey" },
    });
  }
  return passkey;
}

/** Reads the label for the app's token. */
export function readAppLoginLabel(document: unknown): string {
  return readLabel(readAttributes(document, "app-login"));
}

function readLabel(attributes: Attributes): string {
  const label = readText(attributes, "label", 4 * MAX_LABEL);
  const problem = validateLabel(label);
  if (problem !== undefined) throw invalidAttribute("label", `\`label\` ${problem}`);
  return label;
}

/** What is wrong with a label, or undefined. */
export function validateLabel(label: string, max = MAX_LABEL): string | undefined {
  const length = [...label].length;
  if (length < 1 || length > max) return `must have 1 to ${max} characters`;
  return /\p{Cc}|\p{Cs}/u.test(label) ? "must not contain control characters or lone surrogates" : undefined;
}

export function readExpiry(value: unknown, now: Date): Date | undefined {
  if (value === undefined || value === null) return undefined;
  const expiry = typeof value === "string" && TIMESTAMP.test(value) ? new Date(value) : new Date(Number.NaN);
  // `Date` would turn February 30 into March 2.
  const isValid = expiry > now && expiry.toISOString().startsWith(String(value).slice(0, 10));
  if (!isValid) throw failure("invalid-expiry", { source: { pointer: "/data/attributes/expires_at" } });
  return expiry;
}

/** An account, or the local user of a server without accounts, who has neither a creation time nor a role. */
export type OwnAccount = Pick<Account, "user" | "name" | "issuer"> & {
  readonly createdAt: Date | undefined;
  readonly isAdmin: boolean | undefined;
  readonly followsMoves: boolean;
};

export function roleOf({ isAdmin }: Pick<OwnAccount, "isAdmin">): "administrator" | "member" | null {
  if (isAdmin === undefined) return null;
  return isAdmin ? "administrator" : "member";
}

/** An account as its own user sees it. */
export function ownAccountResource(account: OwnAccount, basePath: string): Resource {
  return {
    type: "account",
    id: String(account.user),
    attributes: {
      name: account.name,
      issuer: account.issuer === "" ? null : account.issuer,
      role: roleOf(account),
      created_at: toTimestamp(account.createdAt),
      follow_moves: account.followsMoves,
    },
    links: { self: `${basePath}/v1/me` },
  };
}

/** Types and paths of credentials in the API, by kind. */
export const CREDENTIAL_RESOURCES = {
  token: { type: "token", path: "tokens" },
  session: { type: "session", path: "sessions" },
  passkey: { type: "passkey", path: "passkeys" },
  "linked-user": { type: "identity", path: "identities" },
} as const satisfies Record<UserManagedKind, object>;

/** A credential that users manage. Only some responses show `extraAttributes`, such as a new token's secret. */
export function credentialResource(credential: Credential, basePath: string, extraAttributes: object = {}): Resource {
  const { id, kind, label, scope, createdAt, usedAt, expiresAt } = credential;
  const { type, path } = CREDENTIAL_RESOURCES[kind as UserManagedKind];
  return {
    type,
    id,
    attributes: {
      label,
      ...(kind === "token" ? { scope } : {}),
      created_at: toTimestamp(createdAt),
      last_used_at: toTimestamp(usedAt),
      expires_at: toTimestamp(expiresAt),
      ...extraAttributes,
    },
    links: { self: `${basePath}/v1/${path}/${id}` },
  };
}

/** An app login and the user's decision. */
export function appLoginResource(
  id: string,
  { app, address, requestedAt, expiresAt }: AppLogin,
  status: "pending" | "allowed" | "denied",
  basePath: string,
): Resource {
  return {
    type: "app-login",
    id,
    attributes: {
      app: app === "" ? null : app,
      address,
      requested_at: toTimestamp(requestedAt),
      expires_at: toTimestamp(expiresAt),
      status,
    },
    links: { self: `${basePath}/v1/app-logins/${id}` },
  };
}
