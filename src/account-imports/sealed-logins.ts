import type { UserId } from "../accounts/caller.ts";
import type { Signatures } from "../accounts/signatures.ts";
import { isObject } from "../util/is-object.ts";
import type { Address } from "./address.ts";
import type { AllowedLogin, PendingLogin } from "./nextcloud.ts";

/** How long a login can be used; Nextcloud forgets its part after the same time. */
export const LOGIN_MS = 20 * 60 * 1_000;

/** A login at another server, which the person has allowed or is to allow there. */
export interface SealedLogin {
  /** Where the server is. */
  readonly address: Address;
  readonly state: ({ readonly kind: "pending" } & PendingLogin) | ({ readonly kind: "allowed" } & AllowedLogin);
  readonly expiresAt: Date;
}

/**
 * The login as text that only this server can read, for one account and the origin that the person has entered, so that
 * nothing need be stored and no secret of the other server leaves this one.
 */
export function sealLogin(
  signatures: Signatures,
  user: UserId,
  entered: Address,
  login: SealedLogin,
  at: Date,
): Promise<string> {
  const { address, state, expiresAt } = login;
  return signatures.seal(
    JSON.stringify({ address, state, expires: expiresAt.getTime() }),
    contextOf(user, entered),
    at,
  );
}

/** Undefined if it is forged, expired, or of another account or origin. */
export async function unsealLogin(
  signatures: Signatures,
  user: UserId,
  entered: Address,
  text: string,
  at: Date,
): Promise<SealedLogin | undefined> {
  const content = await signatures.unseal(text, contextOf(user, entered), at);
  const login: unknown = content === undefined ? undefined : JSON.parse(content);
  if (!isObject(login)) return undefined;
  const { expires, address, state } = login as unknown as Omit<SealedLogin, "expiresAt"> & { expires: number };
  const left = expires - at.getTime();
  // One further ahead was sealed before the clock was set back.
  return left > 0 && left <= LOGIN_MS ? { address, state, expiresAt: new Date(expires) } : undefined;
}

function contextOf(user: UserId, { origin }: Address): string {
  return `account import login\0${user}\0${origin}`;
}
