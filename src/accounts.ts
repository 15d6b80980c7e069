import { hash, randomBytes, randomInt, randomUUID } from "node:crypto";
import { NAMES, OIDC, readName, referenceOf } from "./account-names.ts";
import { type AccountRefusal, isRefused } from "./account-refusals.ts";
import {
  type Account,
  type AccountStore,
  type Credential,
  type IssuedCredential,
  isValidAt,
  lastUse,
  type NewCredential,
  type NewPassword,
  type RequestedCredential,
  type Scope,
  type StoredAccount,
} from "./account-store.ts";
import { Attempts, type Networks } from "./attempts.ts";
import { CredentialCache, waitForCachesToExpire } from "./credential-cache.ts";
import { FailedGuesses } from "./failed-guesses.ts";
import { faultOfPassword, hashPassword, isPassword } from "./passwords.ts";
import { AccessRevoked, asUser, type Caller, COMMAND_LINE, LOCAL_USER, type UserId } from "./subscriptions.ts";

/** The longest secret of any kind; longer ones are rejected without hashing them. */
export const MAX_SECRET = 256;
export const TOKEN_PREFIX = "emk_";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** A session expires after this time even if it is in use. */
export const SESSION_MS = 90 * DAY_MS;
/** How stale `usedAt` may be. */
const TOUCH_MS = 5 * 60 * 1_000;

export const MAX_TOKENS = 100;
export const MAX_SESSIONS = 100;

/** The credentials of a user that the user manages. */
export type OwnKind = "token" | "session" | "passkey" | "identity";
/** Removing one of these ends the sessions that may have been opened with it, as a new password does. */
const SIGN_IN_KINDS: ReadonlySet<Credential["kind"]> = new Set(["passkey", "identity"]);

/** The SHA-256 of a secret, in base64url. A secret has 256 random bits, so a slower hash would add nothing. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

export interface TypedPassword {
  readonly name: string;
  readonly password: string;
  readonly networks: Networks;
}

/** The credential that a request was made with. */
export interface Verified extends Credential {
  readonly hash: string;
}

/** Everything people can do with accounts. Nothing else uses the account store. */
export class Accounts {
  readonly #store: AccountStore;
  readonly #isSignUpOpen: boolean;
  readonly #cache = new CredentialCache<Verified>();
  readonly #failedGuesses = new FailedGuesses();
  readonly #attempts: Attempts;

  constructor(store: AccountStore, { signUp }: { readonly signUp: boolean }) {
    this.#store = store;
    this.#attempts = new Attempts(store.sharedLimits);
    this.#isSignUpOpen = signUp;
  }

  /** The credential with this secret; undefined if it is unknown, revoked, expired or of another kind. */
  async verifyCredential(secret: string, kind: Credential["kind"], at: Date): Promise<Verified | undefined> {
    return secret.length > MAX_SECRET ? undefined : this.verifyHash(hashSecret(secret), kind, at);
  }

  /** The same by the hash of the secret, for callers that have already verified the secret in another way. */
  async verifyHash(hash: string, kind: Credential["kind"], at: Date): Promise<Verified | undefined> {
    const find = () => this.verifyFresh(hash, kind, at);
    const credential = await this.#cache.get(`${kind} ${hash}`, find);
    // A cached session may look expired only because its last use is newer than the cached one.
    return credential === undefined || isValidAt(credential, at) ? credential : find();
  }

  /** The credential with this hash, of any kind, even if it has expired. */
  findCredential(hash: string): Promise<Credential | undefined> {
    return this.#store.findCredential(hash);
  }

  /** The same without the cache. */
  async verifyFresh(hash: string, kind: Credential["kind"], at: Date): Promise<Verified | undefined> {
    const credential = await this.findCredential(hash);
    if (credential?.kind !== kind || !isValidAt(credential, at)) return undefined;
    if (credential.usedAt === undefined || at.getTime() - credential.usedAt.getTime() >= TOUCH_MS) {
      this.#store.touchCredential(hash, at).catch(() => undefined); // Not awaited, and harmless if it fails.
    }
    return { ...credential, hash };
  }

  /** Opens a session. */
  async signIn(
    { label, ...typed }: TypedPassword & { label: string },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const found = await this.checkPassword(typed, at);
    return isRefused(found) ? found : this.openSession(found.account, { password: found.password }, label, at);
  }

  /** Counts an attempt to sign in without a password. Undefined if there were not too many. */
  async countAttempt(networks: Networks, at: Date): Promise<AccountRefusal | undefined> {
    const wait = await this.#attempts.count(networks, undefined, at);
    return wait > 0 ? { refused: "too-often", wait } : undefined;
  }

  /**
   * The account with this name and password. Counts the attempt. An unknown name takes as long as a wrong password and is
   * refused in the same way.
   */
  async checkPassword(
    { name: typed, password, networks }: TypedPassword,
    at: Date,
  ): Promise<StoredAccount | AccountRefusal> {
    const name = readName(typed);
    const network = widest(networks);
    const wait =
      (await this.#attempts.count(networks, name ?? "", at)) ||
      (await this.#failedGuesses.delay(name ?? "", network, at));
    if (wait > 0) return { refused: "too-often", wait };
    const found = name === undefined ? undefined : await this.#store.find(name, "");
    if (!(await isPassword(password, found?.password, network)) || found === undefined) {
      this.#failedGuesses.record(name ?? "", network, at);
      return { refused: "wrong-password" };
    }
    // Only the owner of the account learns this.
    return found.account.disabledAt === undefined ? found : { refused: "disabled" };
  }

  /** Opens a session if the user still has this password hash, and the credential they signed in with, at that time. */
  async openSession(
    { user }: Pick<Account, "user">,
    { password, credentialHash }: { readonly password?: string; readonly credentialHash?: string | undefined },
    label: string,
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const conditions = { atMost: MAX_SESSIONS, ...(password === undefined ? {} : { password }) };
    for (;;) {
      const session = { kind: "session", user, scope: "write", label, expiresAt: after(at, SESSION_MS) } as const;
      const issued = await this.issue({ ...asUser(user), credentialHash }, session, "", at, conditions);
      if (!isRefused(issued)) return issued;
      if (issued.refused !== "full") return { refused: "wrong-password" };
      const sessions = await this.#store.listCredentials(user, "session");
      const [leastRecentlyUsed] = sessions.toSorted((a, b) => lastUse(a) - lastUse(b));
      if (leastRecentlyUsed !== undefined)
        await this.removeCredential(asUser(user), "session", leastRecentlyUsed.id, at);
    }
  }

  /** Creates an account by invitation, or for anyone where sign-up is open, and signs in. */
  async signUp(
    request: TypedPassword & { invitation: string | undefined; label: string; address: string },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const { name, password, invitation, networks, label, address } = request;
    const refused = await this.countAttempt(networks, at);
    if (refused !== undefined) return refused;
    const kind = invitation === undefined ? undefined : await this.#kindOfInvitation(invitation, at);
    if (invitation !== undefined && kind === undefined) return { refused: "not-invited" };
    if (invitation === undefined && !this.#isSignUpOpen) return { refused: "sign-up-closed" };
    const options = { isOwner: kind === "setup", invitation, network: widest(networks), address };
    const created = await this.#create(name, password, at, options);
    return isRefused(created) ? created : this.openSession(created, { password: created.password }, label, at);
  }

  async #kindOfInvitation(secret: string, at: Date): Promise<"invitation" | "setup" | undefined> {
    if ((await this.verifyCredential(secret, "invitation", at)) !== undefined) return "invitation";
    if ((await this.verifyCredential(secret, "setup", at)) === undefined) return undefined;
    return (await this.isEmpty()) ? "setup" : undefined;
  }

  /** Creates an account with a password, for the operator. */
  create(name: string, password: string, at: Date): Promise<{ user: UserId; password: string } | AccountRefusal> {
    return this.#create(name, password, at, { isOwner: true });
  }

  async #create(
    typed: string,
    password: string,
    at: Date,
    options: { isOwner: boolean; invitation?: string | undefined; network?: string; address?: string },
  ): Promise<{ user: UserId; password: string } | AccountRefusal> {
    const { isOwner, invitation, network, address } = options;
    const name = readName(typed);
    if (name === undefined) return { refused: "invalid", member: "name", detail: `A name ${NAMES}` };
    const fault = await faultOfPassword(password, name);
    if (fault !== undefined) return { refused: "invalid", member: "password", detail: `The password ${fault}` };
    const hashed = await hashPassword(password, network);
    const invitationHash = invitation === undefined ? undefined : hashSecret(invitation);
    const account = { name, issuer: "", password: hashed, isOwner, invitation: invitationHash };
    const actor = address === undefined ? COMMAND_LINE : { name, address };
    const user = await this.#store.create(newUser(), { ...account, actor }, at);
    return typeof user === "string" ? { refused: user } : { user, password: hashed };
  }

  /**
   * The account with this name, for a user that somebody else has authenticated. If there is none, creates it without a
   * password for the client at `address`, unless that is undefined.
   */
  async findOrCreate(
    name: string,
    issuer: string,
    address: string | undefined,
    at: Date,
  ): Promise<StoredAccount | undefined> {
    const found = await this.find(name, issuer);
    if (found !== undefined || address === undefined) return found;
    const account = { name, issuer, password: "", isOwner: false, invitation: undefined };
    await this.#store.create(newUser(), { ...account, actor: { name: referenceOf(account), address } }, at);
    // A concurrent request may have created it first.
    return this.find(name, issuer);
  }

  /**
   * The account with this name, or with this subject of the identity provider after `oidc:`. Names have no colon, so
   * nobody can choose one that refers to somebody else.
   */
  async findByName(typed: string, issuer?: string): Promise<Account | undefined> {
    if (typed.startsWith(OIDC))
      return issuer === undefined ? undefined : (await this.#store.find(typed.slice(OIDC.length), issuer))?.account;
    const name = readName(typed);
    return name === undefined ? undefined : (await this.#store.find(name, ""))?.account;
  }

  /** The account of a user or with a name, with the hash of its password. */
  find(key: UserId | string, issuer = ""): Promise<StoredAccount | undefined> {
    return typeof key === "number" ? this.#store.get(key) : this.#store.find(key, issuer);
  }

  isEmpty(): Promise<boolean> {
    return this.#store.isEmpty();
  }

  async get(user: UserId): Promise<Account | undefined> {
    return (await this.#store.get(user))?.account;
  }

  /** Deletes the account of the caller, or of another user, with everything that belongs to it. */
  async delete(caller: Caller, at: Date, user = caller.user): Promise<AccountRefusal | undefined> {
    const outcome = await this.#store.delete(caller, at, user);
    await waitForCachesToExpire();
    return outcome === "deleted" ? undefined : { refused: outcome };
  }

  async changePassword(
    caller: Caller,
    change: { current: string; password: string; revokesTokens: boolean; session: string; networks: Networks },
    at: Date,
  ): Promise<AccountRefusal | undefined> {
    const { current, password, revokesTokens, session, networks } = change;
    const wait = await this.#attempts.count(networks, `#${caller.user}`, at);
    if (wait > 0) return { refused: "too-often", wait };
    const network = widest(networks);
    const found = await this.#store.get(caller.user);
    if (found?.password === "") return { refused: "no-password" };
    if (!(await isPassword(current, found?.password, network)) || found === undefined)
      return { refused: "wrong-password" };
    const options = { keepSession: session, expectedHash: found.password, revokesTokens };
    const set = await this.#setPassword(caller, found.account.name, password, at, options, network);
    return isRefused(set) ? set : undefined;
  }

  /** Sets a password for the operator. Every session ends. */
  async setPassword(
    { user, name }: Account,
    password: string,
    at: Date,
    revokesTokens = false,
  ): Promise<AccountRefusal | undefined> {
    const options = { revokesTokens, resetBy: COMMAND_LINE };
    const set = await this.#setPassword(asUser(user), name, password, at, options);
    return isRefused(set) ? set : undefined;
  }

  /** Sets a password with the secret of a reset link, which can be used once, and signs in. */
  async resetPassword(
    reset: Omit<TypedPassword, "name"> & { link: string; revokesTokens: boolean; label: string; address: string },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const { link, password, revokesTokens, networks, label, address } = reset;
    const refused = await this.countAttempt(networks, at);
    if (refused !== undefined) return refused;
    const credential = await this.verifyCredential(link, "password-reset", at);
    const account = credential && (await this.get(credential.user));
    if (credential === undefined || account === undefined) return { refused: "invalid-link" };
    const caller = { ...asUser(account.user), credentialHash: credential.hash };
    const options = { revokesTokens, resetBy: { name: account.name, address } };
    try {
      const set = await this.#setPassword(caller, account.name, password, at, options, widest(networks));
      return isRefused(set) ? set : this.openSession(account, { password: set.password }, label, at);
    } catch (error) {
      // Somebody else was faster, or the link was revoked.
      if (error instanceof AccessRevoked) return { refused: "invalid-link" };
      throw error;
    }
  }

  /** Returns the hash of the new password. */
  async #setPassword(
    caller: Caller,
    name: string,
    password: string,
    at: Date,
    options: Omit<NewPassword, "password">,
    network?: string,
  ): Promise<{ password: string } | AccountRefusal> {
    const fault = await faultOfPassword(password, name);
    if (fault !== undefined) return { refused: "invalid", member: "password", detail: `The password ${fault}` };
    const hashed = await hashPassword(password, network);
    const isSet = await this.#store.setPassword(caller, { password: hashed, ...options }, at);
    await waitForCachesToExpire();
    if (isSet) return { password: hashed };
    // The account was deleted or its password changed meanwhile.
    return { refused: options.expectedHash === undefined ? "gone" : "wrong-password" };
  }

  createToken(
    caller: Caller,
    { label, scope, expiresAt }: { label: string; scope: Scope; expiresAt: Date | undefined },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const token = { kind: "token", user: caller.user, scope, label, expiresAt } as const;
    return this.issue(caller, token, TOKEN_PREFIX, at, { atMost: MAX_TOKENS });
  }

  /** Oldest first, including expired ones. */
  listCredentials(user: UserId, kind: Credential["kind"]): Promise<readonly Credential[]> {
    return this.#store.listCredentials(user, kind);
  }

  /** When it resolves, no process accepts the credential any more. False if there is no such credential. */
  async removeCredential(
    caller: Caller,
    kind: OwnKind | "invitation",
    id: string,
    at: Date,
    keepSession?: string,
  ): Promise<boolean> {
    const endSessions = SIGN_IN_KINDS.has(kind) ? { except: keepSession } : undefined;
    const isRemoved = await this.#store.removeCredential(caller, kind, id, at, endSessions);
    await waitForCachesToExpire();
    return isRemoved;
  }

  replaceLabel(hash: string, expected: string, label: string): Promise<boolean> {
    return this.#store.replaceLabel(hash, expected, label);
  }

  /** Creates a secret and adds its credential. */
  async issue(
    caller: Caller,
    requested: RequestedCredential,
    prefix: string,
    at: Date,
    conditions: Pick<NewCredential, "atMost" | "password">,
  ): Promise<IssuedCredential | AccountRefusal> {
    const secret = prefix + randomBytes(32).toString("base64url");
    const credential = await this.addCredential(caller, requested, hashSecret(secret), at, conditions);
    return isRefused(credential) ? credential : { credential, secret };
  }

  /** Adds a credential whose secret only its holder knows. `gone` if there is another with this hash. */
  async addCredential(
    caller: Caller,
    requested: RequestedCredential,
    hash: string,
    at: Date,
    conditions: Pick<NewCredential, "atMost" | "password">,
  ): Promise<Credential | AccountRefusal> {
    const credential = { ...requested, id: randomUUID(), createdAt: at, usedAt: undefined };
    const outcome = await this.#store.addCredential(caller, { credential, hash, ...conditions });
    return outcome === "added" ? credential : { refused: outcome };
  }

  /** Deletes expired data, and finishes interrupted deletions. */
  sweep(at: Date): Promise<void> {
    return this.#store.sweep(at);
  }
}

/** Password hashing is shared fairly between networks of this width. */
function widest(networks: Networks): string {
  return networks.at(-1) ?? "";
}

export function after(at: Date, ms: number): Date {
  return new Date(at.getTime() + ms);
}

/** Random, so that it does not reveal how many users there are. */
function newUser(): UserId {
  return randomInt(LOCAL_USER + 1, 2 ** 48 - 1);
}
