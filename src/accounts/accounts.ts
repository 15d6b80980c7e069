import { randomBytes, randomInt, randomUUID } from "node:crypto";
import {
  type Account,
  type AccountStore,
  type Credential,
  type IssuedCredential,
  isValidAt,
  lastUse,
  type NewPassword,
  type RequestedCredential,
  type Scope,
  type StoredAccount,
  type StoredPassword,
} from "./account-store.ts";
import { Attempts, type Networks } from "./attempts.ts";
import { AccessRevoked, asUser, type Caller, COMMAND_LINE, LOCAL_USER, type UserId } from "./caller.ts";
import { CredentialCache, waitForCachesToExpire } from "./credential-cache.ts";
import { type CredentialKind, rulesOf, type UserManagedKind } from "./credential-kinds.ts";
import { FailedGuesses } from "./failed-guesses.ts";
import { hashSecret } from "./hash-secret.ts";
import { NAME_RULES, OIDC_PREFIX, readName, referenceOf } from "./names.ts";
import { hashPassword, PASSWORD_PROBLEMS, validatePassword, verifyPassword } from "./passwords.ts";
import type { MonotonicClock } from "./rate-limits.ts";
import { type AccountRefusal, isAccountRefusal, refuse } from "./refusals.ts";
import { SecondFactor } from "./second-factor.ts";

/** The longest secret of any kind; longer ones are rejected without hashing them. */
const MAX_SECRET = 256;
export const TOKEN_PREFIX = "emk_";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** A session expires after this time even if it is in use. */
export const SESSION_MS = 90 * DAY_MS;
/** How stale `usedAt` may be. */
const TOUCH_MS = 5 * 60 * 1_000;

export interface PasswordAttempt {
  readonly name: string;
  readonly password: string;
  readonly networks: Networks;
}

/** How a user proves who they are with a password: with a one-time code too, if the account has a second factor. */
interface SignInAttempt extends PasswordAttempt {
  readonly oneTimeCode?: string | undefined;
  /** For the audit log. */
  readonly address: string;
}

/** The credential that a request was made with. */
export interface VerifiedCredential extends Credential {
  readonly hash: string;
}

/** What people can do with accounts. Reads that need no rule use `store` directly. */
export class Accounts {
  readonly store: AccountStore;
  readonly secondFactor: SecondFactor;
  readonly #isSignUpOpen: boolean;
  readonly #credentials = new CredentialCache<VerifiedCredential>();
  readonly #accounts = new CredentialCache<StoredAccount>();
  readonly #failedGuesses: FailedGuesses;
  readonly #attempts: Attempts;

  constructor(store: AccountStore, { signUp }: { readonly signUp: boolean }, limiterClock?: MonotonicClock) {
    this.store = store;
    this.#attempts = new Attempts(store.sharedRateLimits, limiterClock);
    this.secondFactor = new SecondFactor(store.secondFactors, this.#attempts, () => this.forgetCached());
    this.#failedGuesses = new FailedGuesses(limiterClock);
    this.#isSignUpOpen = signUp;
  }

  /** The credential with this secret; undefined if it is unknown, revoked, expired or of another kind. */
  async verifyCredential(secret: string, kind: CredentialKind, at: Date): Promise<VerifiedCredential | undefined> {
    return secret.length > MAX_SECRET ? undefined : this.verifyHash(hashSecret(secret), kind, at);
  }

  /** The same, given the hash of the secret, for callers that have already verified the secret in another way. */
  async verifyHash(hash: string, kind: CredentialKind, at: Date): Promise<VerifiedCredential | undefined> {
    const find = () => this.verifyUncached(hash, kind, at);
    const credential = await this.#credentials.get(`${kind} ${hash}`, find);
    // A cached session may look expired only because its last use is newer than the cached one.
    return credential === undefined || isValidAt(credential, at) ? credential : find();
  }

  /** `verifyHash` without the cache. */
  async verifyUncached(hash: string, kind: CredentialKind, at: Date): Promise<VerifiedCredential | undefined> {
    const credential = await this.#find(hash, kind);
    if (credential?.kind !== kind || !isValidAt(credential, at)) return undefined;
    if (credential.usedAt === undefined || at.getTime() - credential.usedAt.getTime() >= TOUCH_MS) {
      this.store.touchCredential(hash, at).catch(() => undefined); // Not awaited, and harmless if it fails.
    }
    return { ...credential, hash };
  }

  /** Callers that verify the session of an app need the account, too. */
  async #find(hash: string, kind: CredentialKind): Promise<Credential | undefined> {
    if (kind !== "app-session") return this.store.findCredential(hash);
    const readAt = this.#accounts.now();
    const found = await this.store.findSession(hash);
    if (found?.account !== undefined) this.#accounts.put(String(found.credential.user), found.account, readAt);
    return found?.credential;
  }

  /** `store.get` from the cache. */
  getCached(user: UserId): Promise<StoredAccount | undefined> {
    return this.#accounts.get(String(user), () => this.store.get(user));
  }

  /** `store.find` from the cache, for an account with a password. */
  findCached(name: string): Promise<StoredAccount | undefined> {
    return this.#accounts.get(`name ${name}`, () => this.store.find(name, ""));
  }

  /**
   * A revocation is confirmed only after this: it takes effect at once in this process, and when this resolves, in every
   * other one.
   */
  async forgetCached(): Promise<void> {
    this.#credentials.clear();
    this.#accounts.clear();
    await waitForCachesToExpire();
  }

  /** Opens a session. */
  async signIn(
    { label, ...attempt }: SignInAttempt & { label: string },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const found = await this.checkPassword(attempt, at);
    if (isAccountRefusal(found)) return found;
    const refusal = await this.#checkCode(found, attempt, at);
    return refusal ?? this.openSession(found.account, { password: found }, label, at);
  }

  /** Undefined if the account needs no one-time code or the code is valid. */
  async #checkCode(
    found: StoredAccount,
    attempt: Omit<SignInAttempt, "name" | "password">,
    at: Date,
  ): Promise<AccountRefusal | undefined> {
    const refusal = await this.secondFactor.check(found, attempt, at);
    if (refusal?.reason === "wrong-code")
      this.#failedGuesses.record(found.account.name, widestNetwork(attempt.networks));
    return refusal;
  }

  /** Whether a password is not enough to sign in, or there is a passkey. Identity providers and proxies have their own rules. */
  async hasSecondFactor({ account, passwordHash, totpSecret }: StoredAccount): Promise<boolean> {
    if (passwordHash === "" || totpSecret !== undefined) return true;
    return (await this.store.listCredentials(account.user, "passkey")).length > 0;
  }

  /** Counts an attempt to sign in without a password. Undefined if there were not too many. */
  async countAttempt(networks: Networks, at: Date): Promise<AccountRefusal | undefined> {
    const waitMs = await this.#attempts.count(networks, undefined, at);
    return waitMs > 0 ? refuse({ reason: "too-often", waitMs }) : undefined;
  }

  /** Counts the attempt. An unknown name takes as long as a wrong password, and is refused in the same way. */
  async checkPassword(
    { name: typed, password, networks }: PasswordAttempt,
    at: Date,
  ): Promise<StoredAccount | AccountRefusal> {
    const name = readName(typed);
    const network = widestNetwork(networks);
    const waitMs =
      (await this.#attempts.count(networks, name ?? "", at)) || (await this.#failedGuesses.delay(name ?? "", network));
    if (waitMs > 0) return refuse({ reason: "too-often", waitMs });
    const found = name === undefined ? undefined : await this.store.find(name, "");
    if (!(await verifyPassword(password, found?.passwordHash, network)) || found === undefined) {
      this.#failedGuesses.record(name ?? "", network);
      return refuse({ reason: "wrong-password" });
    }
    // Only the owner may learn that the account is disabled.
    return found.account.disabledAt === undefined ? found : refuse({ reason: "disabled" });
  }

  /** Opens a session, provided that the user still has this password and the credential they signed in with. */
  async openSession(
    { user }: Pick<Account, "user">,
    { password, credentialHash }: { readonly password?: StoredPassword; readonly credentialHash?: string | undefined },
    label: string,
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    for (;;) {
      const session = { kind: "session", user, scope: "write", label, expiresAt: addMs(at, SESSION_MS) } as const;
      const issued = await this.issue({ ...asUser(user), credentialHash }, session, "", at, password);
      if (!isAccountRefusal(issued)) return issued;
      if (issued.reason !== "full") return refuse({ reason: "wrong-password" });
      const sessions = await this.store.listCredentials(user, "session");
      const [leastRecentlyUsed] = sessions.toSorted((a, b) => lastUse(a) - lastUse(b));
      if (leastRecentlyUsed !== undefined)
        await this.removeCredential(asUser(user), "session", leastRecentlyUsed.id, at);
    }
  }

  /** Creates an account by invitation, or for anyone where sign-up is open, and signs in. */
  async signUp(
    request: PasswordAttempt & { invitation: string | undefined; label: string; address: string },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const { name, password, invitation, networks, label, address } = request;
    const refusal = await this.countAttempt(networks, at);
    if (refusal !== undefined) return refusal;
    const kind = invitation === undefined ? undefined : await this.#kindOfInvitation(invitation, at);
    if (invitation !== undefined && kind === undefined) return refuse({ reason: "invalid-invitation" });
    if (invitation === undefined && !this.#isSignUpOpen) return refuse({ reason: "sign-up-closed" });
    const options = { isCreatedByOperator: kind === "setup", invitation, network: widestNetwork(networks), address };
    const created = await this.#create(name, password, at, options);
    if (isAccountRefusal(created)) return created;
    return this.openSession(created, { password: created }, label, at);
  }

  /** So that people learn that an invitation is used or has expired before they choose a name. Counts as an attempt. */
  async checkInvitation(secret: string, networks: Networks, at: Date): Promise<AccountRefusal | undefined> {
    const refusal = await this.countAttempt(networks, at);
    if (refusal !== undefined) return refusal;
    const kind = await this.#kindOfInvitation(secret, at);
    return kind === undefined ? refuse({ reason: "invalid-invitation" }) : undefined;
  }

  async #kindOfInvitation(secret: string, at: Date): Promise<"invitation" | "setup" | undefined> {
    if ((await this.verifyCredential(secret, "invitation", at)) !== undefined) return "invitation";
    if ((await this.verifyCredential(secret, "setup", at)) === undefined) return undefined;
    return (await this.store.isEmpty()) ? "setup" : undefined;
  }

  /** Creates an account with a password, on behalf of the operator. */
  create(name: string, password: string, at: Date): Promise<{ user: UserId; passwordHash: string } | AccountRefusal> {
    return this.#create(name, password, at, { isCreatedByOperator: true });
  }

  async #create(
    typed: string,
    password: string,
    at: Date,
    options: { isCreatedByOperator: boolean; invitation?: string | undefined; network?: string; address?: string },
  ): Promise<{ user: UserId; passwordHash: string } | AccountRefusal> {
    const { isCreatedByOperator, invitation, network, address } = options;
    const name = readName(typed);
    if (name === undefined) return refuse({ reason: "invalid", member: "name", detail: `A name ${NAME_RULES}` });
    const refused = await refusePassword(password, name);
    if (refused !== undefined) return refused;
    const passwordHash = await hashPassword(password, network);
    const invitationHash = invitation === undefined ? undefined : hashSecret(invitation);
    const account = { name, issuer: "", passwordHash, isCreatedByOperator, invitationHash };
    const actor = address === undefined ? COMMAND_LINE : { name, address };
    const user = await this.store.create(newUserId(), { ...account, actor }, at);
    return typeof user === "string" ? refuse({ reason: user }) : { user, passwordHash };
  }

  /**
   * The account of a user that an identity provider or a proxy has authenticated. If there is none, creates it without a
   * password for the client at `address`, unless that is undefined.
   */
  async findOrCreate(
    name: string,
    issuer: string,
    address: string | undefined,
    at: Date,
  ): Promise<StoredAccount | undefined> {
    const found = await this.store.find(name, issuer);
    if (found !== undefined || address === undefined) return found;
    const account = { name, issuer, passwordHash: "", isCreatedByOperator: false, invitationHash: undefined };
    await this.store.create(newUserId(), { ...account, actor: { name: referenceOf(account), address } }, at);
    // A concurrent request may have created it first.
    return this.store.find(name, issuer);
  }

  /**
   * Finds an account by its name, or by `oidc:` and the user's subject at the identity provider. Names have no colon, so
   * nobody can choose one that refers to somebody else.
   */
  async findByName(typed: string, issuer?: string): Promise<Account | undefined> {
    if (typed.startsWith(OIDC_PREFIX))
      return issuer === undefined
        ? undefined
        : (await this.store.find(typed.slice(OIDC_PREFIX.length), issuer))?.account;
    const name = readName(typed);
    return name === undefined ? undefined : (await this.store.find(name, ""))?.account;
  }

  async get(user: UserId): Promise<Account | undefined> {
    return (await this.store.get(user))?.account;
  }

  /** Deletes the account of the caller, or of another user, with everything that belongs to it. */
  async delete(caller: Caller, at: Date, user = caller.user): Promise<AccountRefusal | undefined> {
    const outcome = await this.store.delete(caller, at, user);
    await this.forgetCached();
    return outcome === "deleted" ? undefined : refuse({ reason: outcome });
  }

  async changePassword(
    caller: Caller,
    change: { current: string; password: string; revokesTokens: boolean; session: string; networks: Networks },
    at: Date,
  ): Promise<AccountRefusal | undefined> {
    const { current, password, revokesTokens, session, networks } = change;
    const waitMs = await this.#attempts.count(networks, `#${caller.user}`, at);
    if (waitMs > 0) return refuse({ reason: "too-often", waitMs });
    const network = widestNetwork(networks);
    const found = await this.store.get(caller.user);
    if (found?.passwordHash === "") return refuse({ reason: "no-password" });
    if (!(await verifyPassword(current, found?.passwordHash, network)) || found === undefined)
      return refuse({ reason: "wrong-password" });
    const options = { keepSession: session, expectedHash: found.passwordHash, revokesTokens };
    const set = await this.#setPassword(caller, found.account.name, password, at, options, network);
    return isAccountRefusal(set) ? set : undefined;
  }

  /** Sets a user's password on behalf of the operator. Ends all sessions. */
  async setPassword(
    { user, name }: Account,
    password: string,
    at: Date,
    revokesTokens = false,
  ): Promise<AccountRefusal | undefined> {
    const options = { revokesTokens, resetBy: COMMAND_LINE };
    const set = await this.#setPassword(asUser(user), name, password, at, options);
    return isAccountRefusal(set) ? set : undefined;
  }

  /** Sets a password with the secret of a reset link, which can be used once, and signs in. */
  async resetPassword(
    reset: Omit<SignInAttempt, "name"> & { link: string; revokesTokens: boolean; label: string },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const { link, password, revokesTokens, networks, label, address } = reset;
    const refusal = await this.countAttempt(networks, at);
    if (refusal !== undefined) return refusal;
    const credential = await this.verifyCredential(link, "password-reset", at);
    const found = credential && (await this.store.get(credential.user));
    if (credential === undefined || found === undefined) return refuse({ reason: "invalid-link" });
    const { account, totpSecret } = found;
    // Before the one-time code is used up.
    const refused = (await refusePassword(password, account.name)) ?? (await this.#checkCode(found, reset, at));
    if (refused !== undefined) return refused;
    const caller = { ...asUser(account.user), credentialHash: credential.hash };
    const options = { revokesTokens, resetBy: { name: account.name, address } };
    try {
      const set = await this.#setPassword(caller, account.name, password, at, options, widestNetwork(networks));
      if (isAccountRefusal(set)) return set;
      return this.openSession(account, { password: { ...set, totpSecret } }, label, at);
    } catch (error) {
      // Somebody else was faster, or the link was revoked.
      if (error instanceof AccessRevoked) return refuse({ reason: "invalid-link" });
      throw error;
    }
  }

  /** Returns the hash of the new password. */
  async #setPassword(
    caller: Caller,
    name: string,
    password: string,
    at: Date,
    options: Omit<NewPassword, "passwordHash">,
    network?: string,
  ): Promise<{ passwordHash: string } | AccountRefusal> {
    const refused = await refusePassword(password, name);
    if (refused !== undefined) return refused;
    const passwordHash = await hashPassword(password, network);
    const isSet = await this.store.setPassword(caller, { passwordHash, ...options }, at);
    await this.forgetCached();
    if (isSet) return { passwordHash };
    // The account was deleted or its password changed meanwhile.
    return refuse({ reason: options.expectedHash === undefined ? "gone" : "wrong-password" });
  }

  createToken(
    caller: Caller,
    { label, scope, expiresAt }: { label: string; scope: Scope; expiresAt: Date | undefined },
    at: Date,
  ): Promise<IssuedCredential | AccountRefusal> {
    const token = { kind: "token", user: caller.user, scope, label, expiresAt } as const;
    return this.issue(caller, token, TOKEN_PREFIX, at);
  }

  /** When it resolves, no process accepts the credential any more. False if there is no such credential. */
  async removeCredential(
    caller: Caller,
    kind: UserManagedKind | "invitation" | "app-session",
    id: string,
    at: Date,
    keepSession?: string,
  ): Promise<boolean> {
    const sessionsToEnd = rulesOf(kind).endsSessions ? { except: keepSession } : undefined;
    const isRemoved = await this.store.removeCredential(caller, kind, id, at, sessionsToEnd);
    await this.forgetCached();
    return isRemoved;
  }

  /** Creates a secret and adds its credential, only if `password`, if given, is still that of the user. */
  async issue(
    caller: Caller,
    requested: RequestedCredential,
    prefix: string,
    at: Date,
    password?: StoredPassword,
  ): Promise<IssuedCredential | AccountRefusal> {
    const secret = prefix + randomBytes(32).toString("base64url");
    const credential = await this.addCredential(caller, requested, hashSecret(secret), at, password);
    return isAccountRefusal(credential) ? credential : { credential, secret };
  }

  /** Adds a credential whose secret only its holder knows. `gone` if there is another with this hash. */
  async addCredential(
    caller: Caller,
    requested: RequestedCredential,
    hash: string,
    at: Date,
    password?: StoredPassword,
  ): Promise<Credential | AccountRefusal> {
    const credential = { ...requested, id: randomUUID(), createdAt: at, usedAt: undefined };
    const outcome = await this.store.addCredential(caller, {
      credential,
      hash,
      ...(password === undefined ? {} : { password }),
    });
    if (outcome === "added") return credential;
    return refuse(outcome === "full" ? { reason: outcome, credential: requested.kind } : { reason: outcome });
  }
}

async function refusePassword(password: string, name: string): Promise<AccountRefusal | undefined> {
  const problem = await validatePassword(password, name);
  if (problem === undefined) return undefined;
  return refuse({
    reason: "invalid",
    member: "password",
    detail: `The password ${PASSWORD_PROBLEMS[problem]}`,
    problem,
  });
}

/** The network used for fair scheduling of password hashing. */
function widestNetwork(networks: Networks): string {
  return networks.at(-1) ?? "";
}

export function addMs(at: Date, ms: number): Date {
  return new Date(at.getTime() + ms);
}

/** Random, so that it does not reveal how many users there are. */
function newUserId(): UserId {
  return randomInt(LOCAL_USER + 1, 2 ** 48 - 1);
}
