import { createHmac, randomBytes } from "node:crypto";
import type { Account, StoredAccount } from "../accounts/account-store.ts";
import { type Accounts, type PasswordAttempt, TOKEN_PREFIX, type VerifiedCredential } from "../accounts/accounts.ts";
import type { UserId } from "../accounts/caller.ts";
import { readName } from "../accounts/names.ts";
import { type AccountRefusal, isAccountRefusal, refuse } from "../accounts/refusals.ts";
import { Signatures } from "../accounts/signatures.ts";

/** How long a verified password is accepted without hashing it again, and how many are cached. */
const PASSWORD_MS = 10 * 60 * 1_000;
const MAX_PASSWORDS = 10_000;

/** How long an app session lasts; use renews it. */
export const APP_SESSION_MS = 60 * 24 * 60 * 60 * 1_000;
/** A session that was renewed within this time is not renewed again. */
const RENEW_MS = 24 * 60 * 60 * 1_000;
/** The issue time of a session is rounded down to this, so that an app that signs in with every request gets the same one. */
const ISSUE_ROUNDING_MS = 60 * 60 * 1_000;

/** The user that an app has signed in as. */
export interface AppUser {
  readonly account: Account;
  /** The app's token; undefined if it signed in with the account's password. */
  readonly token: VerifiedCredential | undefined;
  /**
   * Id of the token, else the hash of the password. Signed with each session, so that sessions end when the token is
   * revoked or the password is changed.
   */
  readonly credentialVersion: string;
}

export interface AppSession {
  readonly user: AppUser;
  /** The device in the path of the app's last request that had one. */
  readonly device: string | undefined;
  readonly isRenewalDue: boolean;
}

/**
 * Signs in podcast apps, which send a password or a token with every request, or a session in a cookie. Sessions are signed
 * and not stored, since some apps open one for every request. All access ends at once when the token is revoked, the
 * password is changed, or the account is disabled or deleted.
 */
export class AppSignIn {
  readonly signatures: Signatures;
  readonly #accounts: Accounts;
  readonly #passwordKey = randomBytes(32);
  /** When the verification of each password expires. The keys are HMACs that only this process can compute. */
  readonly #verifiedUntil = new Map<string, number>();
  /** Verifications in progress: apps send several requests at once. */
  readonly #pending = new Map<string, Promise<StoredAccount | AccountRefusal>>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
    this.signatures = new Signatures(accounts);
  }

  /** Signs in with a name and either the password of the account or one of its tokens. */
  async withPassword(attempt: PasswordAttempt, at: Date): Promise<AppUser | AccountRefusal> {
    if (attempt.password.startsWith(TOKEN_PREFIX)) {
      const user = await this.withToken(attempt.password, at);
      return user !== undefined && isSameName(attempt.name, user.account) ? user : refuse({ reason: "wrong-password" });
    }
    const found = await this.#verifyPassword(attempt, at);
    return isAccountRefusal(found) ? found : toUser(found);
  }

  async withToken(secret: string, at: Date): Promise<AppUser | undefined> {
    const token = await this.#accounts.verifyCredential(secret, "token", at);
    return token && this.#userOf(token);
  }

  async #verifyPassword(attempt: PasswordAttempt, at: Date): Promise<StoredAccount | AccountRefusal> {
    const name = readName(attempt.name);
    const found = name === undefined ? undefined : await this.#accounts.findCached(name);
    if (found === undefined || found.passwordHash === "" || found.account.disabledAt !== undefined)
      return this.#accounts.checkPassword(attempt, at);
    // Includes the stored hash, so that changing the password invalidates the entry.
    const key = createHmac("sha256", this.#passwordKey)
      .update(`${found.account.user}\0${found.passwordHash}\0${attempt.password}`)
      .digest("base64url");
    if ((this.#verifiedUntil.get(key) ?? 0) > at.getTime()) return found;
    const pending = this.#pending.get(key) ?? this.#accounts.checkPassword(attempt, at);
    this.#pending.set(key, pending);
    try {
      const checked = await pending;
      if (!isAccountRefusal(checked) && checked.passwordHash === found.passwordHash) this.#remember(key, at);
      return checked;
    } finally {
      this.#pending.delete(key);
    }
  }

  #remember(key: string, at: Date): void {
    if (this.#verifiedUntil.size >= MAX_PASSWORDS) this.#verifiedUntil.clear();
    this.#verifiedUntil.set(key, at.getTime() + PASSWORD_MS);
  }

  async #userOf(token: VerifiedCredential): Promise<AppUser | undefined> {
    const found = await this.#accounts.getCached(token.user);
    // Not the token's hash: if an app login is approved again after a revocation, the new token has the same hash.
    return found && { account: found.account, token, credentialVersion: token.id };
  }

  /** The session as the value of a cookie. */
  async writeSession(
    { account, token, credentialVersion }: AppUser,
    device: string | undefined,
    at: Date,
  ): Promise<string> {
    const issued = Math.floor(at.getTime() / ISSUE_ROUNDING_MS).toString(36);
    const content = `${token?.hash ?? account.user}~${issued}~${device ?? ""}`;
    return `${content}~${await this.signatures.sign(signedText(content, credentialVersion), at)}`;
  }

  /** Undefined unless the session is valid. */
  async readSession(text: string, at: Date): Promise<AppSession | undefined> {
    const [, content = "", holder = "", issued = "", device = "", signature = ""] = SESSION.exec(text) ?? [];
    if (content === "") return undefined;
    const age = at.getTime() - Number.parseInt(issued, 36) * ISSUE_ROUNDING_MS;
    if (age > APP_SESSION_MS) return undefined;
    const user = /^\d+$/.test(holder)
      ? await this.#userWithPassword(Number(holder))
      : await this.#userWithToken(holder, at);
    if (user === undefined) return undefined;
    if (!(await this.signatures.verify(signedText(content, user.credentialVersion), signature, at))) return undefined;
    return { user, device: device === "" ? undefined : device, isRenewalDue: age > RENEW_MS };
  }

  async #userWithPassword(user: UserId): Promise<AppUser | undefined> {
    const found = await this.#accounts.getCached(user);
    const isUsable = found !== undefined && found.passwordHash !== "" && found.account.disabledAt === undefined;
    return isUsable ? toUser(found) : undefined;
  }

  async #userWithToken(hash: string, at: Date): Promise<AppUser | undefined> {
    const token = await this.#accounts.verifyHash(hash, "token", at);
    return token && this.#userOf(token);
  }
}

/** User id or token hash, issue time, device, and a signature of these. */
const SESSION = /^((\d{1,15}|[\w-]{43})~([0-9a-z]{1,8})~([\w.-]{0,64}))~([\w-]{43}~[\w-]{86})$/;

function signedText(content: string, credentialVersion: string): string {
  return `app session\0${credentialVersion}\0${content}`;
}

function toUser({ account, passwordHash }: StoredAccount): AppUser {
  return { account, token: undefined, credentialVersion: passwordHash };
}

/** Case-insensitive. The account of an identity provider's user may have a name that `readName` rejects. */
export function isSameName(typed: string, { name }: Account): boolean {
  return typed.toLowerCase() === name.toLowerCase() || readName(typed) === name;
}
