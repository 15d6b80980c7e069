import { createHmac, randomBytes } from "node:crypto";
import { type Account, lastUse, type StoredAccount } from "../accounts/account-store.ts";
import { type Accounts, type PasswordAttempt, TOKEN_PREFIX, type VerifiedCredential } from "../accounts/accounts.ts";
import { asUser, type UserId } from "../accounts/caller.ts";
import { rulesOf } from "../accounts/credential-kinds.ts";
import { hashSecret } from "../accounts/hash-secret.ts";
import { readName } from "../accounts/names.ts";
import { type AccountRefusal, isAccountRefusal, refuse } from "../accounts/refusals.ts";
import { Signatures } from "../accounts/signatures.ts";
import { StoreUnavailable } from "../util/store-unavailable.ts";

/** How long a verified password is accepted without hashing it again, and how many are cached. */
const PASSWORD_MS = 10 * 60 * 1_000;
const MAX_PASSWORDS = 10_000;

/** How long an app session lasts that is not used. */
export const APP_SESSION_MS = rulesOf("app-session").idleMs ?? 0;
/** The cookie is renewed with the recorded time of use, at most this often. */
const RENEW_MS = 5 * 60 * 1_000;
const MAX_SESSIONS = 10_000;

/** The user that an app has signed in as. */
export interface AppUser {
  readonly account: Account;
  /** The app's token; undefined if it signed in with the account's password. */
  readonly token: VerifiedCredential | undefined;
  /**
   * Id of the token, else the hash of the password. Each session has a hash of it, so that it ends when the token is revoked
   * or the password is changed.
   */
  readonly credentialVersion: string;
}

export interface AppSession {
  readonly secret: string;
  readonly user: AppUser;
  /** The device in the path of the app's last request that had one. */
  readonly device: string | undefined;
  readonly isRenewalDue: boolean;
}

/**
 * Signs in podcast apps, which send a password or a token with every request, or a session in a cookie. Since some apps sign
 * in for every request, they get the same session again. All access ends at once when the token is revoked, the password is
 * changed, a second factor is added, or the account is disabled or deleted.
 */
export class AppSignIn {
  readonly signatures: Signatures;
  readonly #accounts: Accounts;
  readonly #passwordKey = randomBytes(32);
  /** When the verification of each password expires. The keys are HMACs that only this process can compute. */
  readonly #verifiedUntil = new Map<string, number>();
  /** Secrets of the sessions that this process has opened, by user, credential and device. */
  readonly #sessions = new Map<string, Promise<string | undefined>>();
  /** Verifications in progress: apps send several requests at once. */
  readonly #pending = new Map<string, Promise<StoredAccount | AccountRefusal>>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
    this.signatures = new Signatures(accounts);
  }

  /** Signs in with a name and one of the account's tokens or, unless it has a second factor, its password. */
  async withPassword(attempt: PasswordAttempt, at: Date): Promise<AppUser | AccountRefusal> {
    if (attempt.password.startsWith(TOKEN_PREFIX)) {
      const user = await this.withToken(attempt.password, at);
      return user !== undefined && isSameName(attempt.name, user.account) ? user : refuse({ reason: "wrong-password" });
    }
    const found = await this.#verifyPassword(attempt, at);
    if (isAccountRefusal(found)) return found;
    // Apps cannot ask for a one-time code. Only those who know the password learn this.
    return found.totpSecret === undefined ? toUser(found) : refuse({ reason: "second-factor-required" });
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

  /** The value of a cookie. A user who signs in again with the same device gets the same session from this process. */
  openSession(user: AppUser, device: string | undefined, at: Date): Promise<string | undefined> {
    const key = [user.account.user, user.credentialVersion, device ?? ""].join("\0");
    const opened = this.#reopen(this.#sessions.get(key), user, device, at);
    if (this.#sessions.size >= MAX_SESSIONS) this.#sessions.clear();
    this.#sessions.set(key, opened);
    return opened;
  }

  /** The known session, unless it has ended; then a new one. Undefined if none can be stored: the app signs in again. */
  async #reopen(known: Promise<string | undefined> | undefined, user: AppUser, device: string | undefined, at: Date) {
    const secret = await known;
    if (secret !== undefined && (await this.#accounts.verifyCredential(secret, "app-session", at)) !== undefined)
      return secret;
    const label = writeLabel(user, device);
    const session = {
      kind: "app-session",
      user: user.account.user,
      scope: "write",
      label,
      expiresAt: undefined,
    } as const;
    try {
      const issued = await this.#accounts.issue(asUser(user.account.user), session, "", at);
      return isAccountRefusal(issued) ? undefined : issued.secret;
    } catch (error) {
      if (error instanceof StoreUnavailable) return undefined;
      throw error;
    }
  }

  /** Undefined unless the session is valid. */
  async readSession(secret: string, at: Date): Promise<AppSession | undefined> {
    const found = await this.#accounts.verifyCredential(secret, "app-session", at);
    if (found === undefined) return undefined;
    const { tokenHash, version, device } = readLabel(found.label);
    const user = tokenHash === "" ? await this.#userWithPassword(found.user) : await this.#userWithToken(tokenHash, at);
    if (user === undefined || hashSecret(user.credentialVersion) !== version) return undefined;
    const isRenewalDue = at.getTime() - lastUse(found) > RENEW_MS;
    return { secret, user, device: device === "" ? undefined : device, isRenewalDue };
  }

  /** Safe to repeat. */
  async endSession(secret: string, at: Date): Promise<void> {
    const found = await this.#accounts.verifyCredential(secret, "app-session", at);
    if (found !== undefined) await this.#accounts.removeCredential(asUser(found.user), "app-session", found.id, at);
  }

  async #userWithPassword(user: UserId): Promise<AppUser | undefined> {
    const found = await this.#accounts.getCached(user);
    if (found === undefined || found.passwordHash === "" || found.totpSecret !== undefined) return undefined;
    return found.account.disabledAt === undefined ? toUser(found) : undefined;
  }

  async #userWithToken(hash: string, at: Date): Promise<AppUser | undefined> {
    const token = await this.#accounts.verifyHash(hash, "token", at);
    return token && this.#userOf(token);
  }
}

/** The hash of the token, if the session was opened with one; a hash of the credential's version; the device. */
function writeLabel({ token, credentialVersion }: AppUser, device: string | undefined): string {
  return [token?.hash ?? "", hashSecret(credentialVersion), device ?? ""].join(" ");
}

function readLabel(label: string): { readonly tokenHash: string; readonly version: string; readonly device: string } {
  const [tokenHash = "", version = "", device = ""] = label.split(" ");
  return { tokenHash, version, device };
}

function toUser({ account, passwordHash }: StoredAccount): AppUser {
  return { account, token: undefined, credentialVersion: passwordHash };
}

/** Case-insensitive. The account of an identity provider's user may have a name that `readName` rejects. */
export function isSameName(typed: string, { name }: Account): boolean {
  return typed.toLowerCase() === name.toLowerCase() || readName(typed) === name;
}
