import { hash, randomBytes } from "node:crypto";
import { hashSecret, TOKEN_PREFIX } from "./accounts.ts";

/**
 * A login that an app starts and a signed-in person approves in the browser. Nothing is stored meanwhile: the app's token
 * is derived from a secret that only the app has, and the link for the browser contains the hash of that token, which is
 * all that approving it needs. So any process can serve any step.
 */

export const APP_LOGIN_MS = 20 * 60 * 1_000;

export interface AppLogin {
  /** For the app, to ask whether it was approved. */
  readonly pollToken: string;
  /** For the browser, to approve it. */
  readonly id: string;
}

export function startAppLogin(at: Date): AppLogin {
  const expires = Math.floor((at.getTime() + APP_LOGIN_MS) / 1_000).toString(36);
  const pollToken = `${POLL}${expires}~${randomBytes(32).toString("base64url")}`;
  return { pollToken, id: `${expires}~${hashSecret(secretOf(pollToken))}` };
}

/** The secret of the token that the app gets; undefined if the poll token is invalid or expired. */
export function readPollToken(text: string, at: Date): string | undefined {
  const isPollToken = text.startsWith(POLL) && isCurrent(text.slice(POLL.length), at);
  return isPollToken ? secretOf(text) : undefined;
}

/** The hash of the token to approve; undefined if the id is invalid or expired. */
export function readAppLoginId(text: string, at: Date): string | undefined {
  return isCurrent(text, at) ? text.slice(text.indexOf("~") + 1) : undefined;
}

const POLL = "poll~";
const TOKEN = /^([0-9a-z]{1,8})~[\w-]{43}$/;

function isCurrent(text: string, at: Date): boolean {
  const expires = TOKEN.exec(text)?.[1];
  if (expires === undefined) return false;
  const left = Number.parseInt(expires, 36) * 1_000 - at.getTime();
  return left > 0 && left <= APP_LOGIN_MS;
}

function secretOf(pollToken: string): string {
  return TOKEN_PREFIX + hash("sha256", `earmark app login ${pollToken}`, "base64url");
}
