import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Account, StoredAccount } from "./account-store.ts";
import {
  type AccountRefusal,
  type Accounts,
  isRefused,
  readName,
  TOKEN_PREFIX,
  type TypedPassword,
  type Verified,
} from "./accounts.ts";
import { CredentialCache } from "./credential-cache.ts";
import type { UserId } from "./subscriptions.ts";

/** How long a verified password is accepted without hashing it again, and how many are remembered. */
const PASSWORD_MS = 10 * 60 * 1_000;
const MAX_PASSWORDS = 10_000;

/** How long a session of an app lasts; it is renewed with use. */
export const APP_SESSION_MS = 60 * 24 * 60 * 60 * 1_000;
/** A session that was renewed within this time is not renewed again. */
const RENEW_MS = 24 * 60 * 60 * 1_000;

/** Who an app signed in as, and how. */
export interface AppUser {
  readonly account: Account;
  /** The app's token; undefined when it has the password of the account. */
  readonly token: Verified | undefined;
  /** Part of what its sessions sign: it changes or ends with the credential. It is stored, so it is no secret. */
  readonly key: string;
}

export interface AppSession {
  readonly user: AppUser;
  /** The device that the app has last named in a path. */
  readonly device: string | undefined;
  readonly isStale: boolean;
}

/**
 * Signs in podcast apps, which send a password or a token with every request, or a session in a cookie. Sessions are signed
 * and not stored, since some apps open one for every request. Their key is never stored either, so that nobody can make a
 * session from the database or a backup; after a restart, and in another process, apps sign in again. Whatever an app has
 * ends at once when the token is revoked, the password is changed or the account is deleted.
 */
export class AppSignIn {
  readonly #accounts: Accounts;
  readonly #found = new CredentialCache<StoredAccount>();
  readonly #passwordKey = randomBytes(32);
  readonly #sessionKey = randomBytes(32);
  /** When each verified password must be verified again, by a hash that only this process can compute. */
  readonly #passwords = new Map<string, number>();
  /** Verifications under way: apps send several requests at once. */
  readonly #pending = new Map<string, Promise<StoredAccount | AccountRefusal>>();

  constructor(accounts: Accounts) {
    this.#accounts = accounts;
  }

  /** Signs in with a name and either the password of the account or one of its tokens. */
  async withPassword(typed: TypedPassword, at: Date): Promise<AppUser | AccountRefusal> {
    if (typed.password.startsWith(TOKEN_PREFIX)) {
      const user = await this.withToken(typed.password, at);
      return user !== undefined && isSameName(typed.name, user.account) ? user : { refused: "wrong-password" };
    }
    const found = await this.#verifyPassword(typed, at);
    return isRefused(found) ? found : toUser(found);
  }

  async withToken(secret: string, at: Date): Promise<AppUser | undefined> {
    const token = await this.#accounts.verifyCredential(secret, "token", at);
    return token && this.#userOf(token);
  }

  async #verifyPassword(typed: TypedPassword, at: Date): Promise<StoredAccount | AccountRefusal> {
    const name = readName(typed.name);
    const found = name === undefined ? undefined : await this.#find(name);
    if (found === undefined || found.password === "") return this.#accounts.checkPassword(typed, at);
    // It contains the stored hash, so that a changed password is not found.
    const key = createHmac("sha256", this.#passwordKey)
      .update(`${found.account.user}\0${found.password}\0${typed.password}`)
      .digest("base64url");
    if ((this.#passwords.get(key) ?? 0) > at.getTime()) return found;
    const pending = this.#pending.get(key) ?? this.#accounts.checkPassword(typed, at);
    this.#pending.set(key, pending);
    try {
      const checked = await pending;
      if (!isRefused(checked) && checked.password === found.password) this.#remember(key, at);
      return checked;
    } finally {
      this.#pending.delete(key);
    }
  }

  #remember(key: string, at: Date): void {
    if (this.#passwords.size >= MAX_PASSWORDS) this.#passwords.clear();
    this.#passwords.set(key, at.getTime() + PASSWORD_MS);
  }

  #find(key: UserId | string): Promise<StoredAccount | undefined> {
    return this.#found.get(String(key), () => this.#accounts.find(key));
  }

  async #userOf(token: Verified): Promise<AppUser | undefined> {
    const found = await this.#find(token.user);
    // Not the hash: a login that is approved again has the same one.
    return found && { account: found.account, token, key: token.id };
  }

  /** The session as text. It has no characters that a cookie cannot have. */
  writeSession({ account, token, key }: AppUser, device: string | undefined, at: Date): string {
    const issued = Math.floor(at.getTime() / 1_000).toString(36);
    const content = `${token?.hash ?? account.user}~${issued}~${device ?? ""}`;
    return `${content}~${this.#sign(content, key)}`;
  }

  /** Undefined unless the session is valid. */
  async readSession(text: string, at: Date): Promise<AppSession | undefined> {
    const [, content = "", holder = "", issued = "", device = "", signature = ""] = SESSION.exec(text) ?? [];
    if (content === "") return undefined;
    const age = at.getTime() - Number.parseInt(issued, 36) * 1_000;
    if (age > APP_SESSION_MS) return undefined;
    const user = /^\d+$/.test(holder)
      ? await this.#userWithPassword(Number(holder))
      : await this.#userWithToken(holder, at);
    if (user === undefined || !isEqual(signature, this.#sign(content, user.key))) return undefined;
    return { user, device: device === "" ? undefined : device, isStale: age > RENEW_MS };
  }

  #sign(content: string, key: string): string {
    return createHmac("sha256", this.#sessionKey).update(`${key}\0${content}`).digest("base64url");
  }

  async #userWithPassword(user: UserId): Promise<AppUser | undefined> {
    const found = await this.#find(user);
    return found === undefined || found.password === "" ? undefined : toUser(found);
  }

  async #userWithToken(hash: string, at: Date): Promise<AppUser | undefined> {
    const token = await this.#accounts.verifyHash(hash, "token", at);
    return token && this.#userOf(token);
  }
}

/** A user id or the hash of a token, when it was issued, the device, and the signature of all that. */
const SESSION = /^((\d{1,15}|[\w-]{43})~([0-9a-z]{1,8})~([\w.-]{0,64}))~([\w-]{43})$/;

function toUser({ account, password }: StoredAccount): AppUser {
  return { account, token: undefined, key: password };
}

function isEqual(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/** Names are compared without case. An identity provider's subject need not be a name here. */
export function isSameName(typed: string, { name }: Account): boolean {
  return typed.toLowerCase() === name.toLowerCase() || readName(typed) === name;
}
