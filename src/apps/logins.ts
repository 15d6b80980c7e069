import { hash, randomBytes } from "node:crypto";
import type { Credential, RequestedCredential } from "../accounts/account-store.ts";
import { type Accounts, TOKEN_PREFIX } from "../accounts/accounts.ts";
import type { Caller } from "../accounts/caller.ts";
import { hashSecret } from "../accounts/hash-secret.ts";
import { type AccountRefusal, refuse } from "../accounts/refusals.ts";
import type { Signatures } from "../accounts/signatures.ts";

/**
 * A login that an app starts and a signed-in user approves in the browser. Nothing is stored until then: the app's future
 * token is derived from a secret that only the app has, and the link that the user opens contains the hash of that token
 * and a description of the app. So any process can serve any step.
 */
export interface AppLogin extends AppLoginOrigin {
  /** Hash of the token that the app gets. */
  readonly hash: string;
  readonly requestedAt: Date;
  readonly expiresAt: Date;
}

/** How long the user has to approve it. */
export const APP_LOGIN_MS = 20 * 60 * 1_000;
/** The expiry of a login further ahead is made up. One beyond `APP_LOGIN_MS` was issued before the clock was set back. */
const MAX_LEFT_MS = 24 * 60 * 60 * 1_000;

/** The app that asks for access. */
interface AppLoginOrigin {
  /** User agent; empty if the app sent none. */
  readonly app: string;
  readonly address: string;
}

/** The app polls with `pollToken`; the browser allows or denies the login by `id`. */
export async function startAppLogin(
  signatures: Signatures,
  { app, address }: AppLoginOrigin,
  at: Date,
): Promise<{ readonly pollToken: string; readonly id: string }> {
  const expires = Math.floor((at.getTime() + APP_LOGIN_MS) / 1_000).toString(36);
  const pollToken = `${POLL}${expires}~${randomBytes(32).toString("base64url")}`;
  const origin = Buffer.from(JSON.stringify([app, address])).toString("base64url");
  const content = `${expires}~${hashSecret(secretOf(pollToken))}~${origin}`;
  return { pollToken, id: `${content}~${await signatures.sign(signedText(content), at)}` };
}

/** The secret of the token that the app gets; undefined if the poll token is invalid or expired. */
export function readPollToken(text: string, at: Date): string | undefined {
  const expires = POLL_TOKEN.exec(text)?.[1];
  return expires !== undefined && isCurrent(readTime(expires), at) ? secretOf(text) : undefined;
}

/** Undefined if the id is invalid or expired. */
export async function readAppLoginId(signatures: Signatures, text: string, at: Date): Promise<AppLogin | undefined> {
  const [, content = "", expires = "", tokenHash = "", origin = "", signature = ""] = ID.exec(text) ?? [];
  const expiresAt = readTime(expires);
  if (content === "" || !isCurrent(expiresAt, at)) return undefined;
  if (!(await signatures.verify(signedText(content), signature, at))) return undefined;
  const [app, address] = JSON.parse(Buffer.from(origin, "base64url").toString()) as [string, string];
  return { app, address, hash: tokenHash, requestedAt: new Date(expiresAt.getTime() - APP_LOGIN_MS), expiresAt };
}

/** Creates a token whose secret only the app knows. Safe to repeat. */
export function allowAppLogin(
  accounts: Accounts,
  caller: Caller,
  { hash: tokenHash }: AppLogin,
  label: string,
  at: Date,
): Promise<Credential | AccountRefusal> {
  const token = { kind: "token", user: caller.user, scope: "write", label, expiresAt: undefined } as const;
  return decide(accounts, caller, token, tokenHash, at);
}

/** From now on this login cannot be allowed. Safe to repeat. */
export function denyAppLogin(
  accounts: Accounts,
  caller: Caller,
  { hash: tokenHash, expiresAt }: AppLogin,
  at: Date,
): Promise<Credential | AccountRefusal> {
  const denial = { kind: "denied-login", user: caller.user, scope: "read", label: "", expiresAt } as const;
  return decide(accounts, caller, denial, tokenHash, at);
}

/** `gone` if the login was already decided differently, or by another user. */
async function decide(
  accounts: Accounts,
  caller: Caller,
  decision: RequestedCredential,
  tokenHash: string,
  at: Date,
): Promise<Credential | AccountRefusal> {
  const existing = await accounts.store.findCredential(tokenHash);
  if (existing === undefined) return accounts.addCredential(caller, decision, tokenHash, at);
  const isSame = existing.kind === decision.kind && existing.user === caller.user;
  return isSame ? existing : refuse({ reason: "gone" });
}

const POLL = "poll~";
const POLL_TOKEN = /^poll~([0-9a-z]{1,8})~[\w-]{43}$/;
const ID = /^(([0-9a-z]{1,8})~([\w-]{43})~([\w-]{1,800}))~([0-9a-f-]{36}~[\w-]{43})$/;

function signedText(content: string): string {
  return `app login\0${content}`;
}

function readTime(seconds: string): Date {
  return new Date(Number.parseInt(seconds, 36) * 1_000);
}

function isCurrent(expiresAt: Date, at: Date): boolean {
  const left = expiresAt.getTime() - at.getTime();
  return left > 0 && left <= MAX_LEFT_MS;
}

function secretOf(pollToken: string): string {
  return TOKEN_PREFIX + hash("sha256", `earmark app login ${pollToken}`, "base64url");
}
