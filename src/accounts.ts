import { hash, randomBytes, randomInt, randomUUID } from "node:crypto";
import { FailedGuesses } from "./failed-guesses.ts";
import { KnownCredentials } from "./known.ts";
import type { Rate } from "./limits.ts";
import { faultOfPassword, hashPassword, isPassword } from "./passwords.ts";
import { asUser, type Caller, LOCAL_USER, type SubscriptionStore, type UserId } from "./subscriptions.ts";

export interface Account {
  readonly user: UserId;
  /** In its one form (`readName`), or what an identity provider calls its user. */
  readonly name: string;
  /** The identity provider that vouches for the user; empty for an account with a password of its own. */
  readonly issuer: string;
  readonly createdAt: Date;
}

/** What opens a door instead of a password. Whoever holds its secret has it; we keep the secret's hash alone. */
export interface Credential {
  readonly id: string;
  readonly kind: "token" | "session" | "invitation" | "setup";
  /** Whose it is; `NOBODY` for one that makes an account. */
  readonly user: UserId;
  readonly scope: Scope;
  readonly label: string;
  readonly createdAt: Date;
  readonly usedAt: Date | undefined;
  readonly expiresAt: Date | undefined;
}

export type Scope = "read" | "write";

export const NOBODY: UserId = 0;

export interface NewAccount {
  readonly name: string;
  readonly issuer: string;
  /** The hash of the password; empty for an account that has none. */
  readonly password: string;
  /** Whether whoever runs the server makes it: then it may take over the list of the local user. */
  readonly isOwner: boolean;
  /** The hash of an invitation's secret, which is used up; or undefined when none is needed. */
  readonly invitation: string | undefined;
}

export interface NewPassword {
  /** The hash of the password. */
  readonly password: string;
  /** The id of the session that does not end. */
  readonly keepSession?: string | undefined;
  /** Set only while this is still the hash of the password. */
  readonly expectedHash?: string | undefined;
}

export interface NewCredential {
  readonly credential: Credential;
  readonly hash: string;
  /** Added only while the user has fewer of its kind. */
  readonly atMost: number;
  /** Added only while this is still the hash of the user's password. */
  readonly password?: string;
}

/** What is known at once is answered at once: most requests ask for such a thing more than once. */
export type Soon<T> = T | Promise<T>;

/**
 * Where accounts live, beside the lists. Any engine keeps these promises:
 * - what is answered is on stable storage, and holds at once on every process: whoever takes a credential away is
 *   answered when nobody goes by what was read before (`forgottenByAll`);
 * - a name belongs to one account of its issuer at most, an invitation makes one account at most;
 * - when an account is deleted, so is everything of it, and nothing that was under way brings any of it back;
 * - what a caller asks for happens only if, in its own transaction, the caller's credential is neither revoked nor expired;
 *   otherwise it rejects with `AccessRevoked`, and nothing is written;
 * - a call that cannot be carried out rejects with `StoreUnavailable`.
 */
export interface AccountStore {
  isEmpty(): Promise<boolean>;
  /** Makes the account of `user`; the first of an owner becomes that of the local user, and takes over that list. */
  create(user: UserId, account: NewAccount, at: Date): Promise<UserId | "name-taken" | "not-invited">;
  find(name: string, issuer: string): Promise<{ readonly account: Account; readonly password: string } | undefined>;
  get(user: UserId): Promise<{ readonly account: Account; readonly password: string } | undefined>;
  /** In the order of their users: those after `after`, at most `size`. */
  list(after: UserId, size: number): Promise<readonly Account[]>;
  /** Ends all sessions but `keepSession`. False when there is no such account, or its hash is not `expectedHash` any more. */
  setPassword(caller: Caller, password: NewPassword, at: Date): Promise<boolean>;
  /**
   * Deletes the account at once and then its list, in pieces between which others write. If it rejects as unknown, the
   * account may be gone already; `sweep` deletes the rest. False when there is no such account.
   */
  delete(caller: Caller, at: Date): Promise<boolean>;

  addCredential(caller: Caller, credential: NewCredential): Promise<"added" | "full" | "gone">;
  findCredential(hash: string): Promise<Credential | undefined>;
  /** Oldest first. */
  listCredentials(user: UserId, kind: Credential["kind"]): Promise<readonly Credential[]>;
  removeCredential(caller: Caller, kind: Credential["kind"], id: string, at: Date): Promise<boolean>;
  /** Remembers when a credential was last used. */
  touchCredential(hash: string, at: Date): Promise<void>;
  /**
   * Deletes expired credentials and limits that nobody has come near for long, finishes deletions of accounts that were
   * interrupted, and removes what was deleted from the database's files as far as the engine can.
   */
  sweep(at: Date): Promise<void>;

  /** How many milliseconds to wait before `cost` may be spent under `key`; 0 when it has been, on all processes. */
  spend(key: string, cost: number, rate: Rate, at: Date): Soon<number>;
}

/** All that an engine keeps. */
export interface Store extends SubscriptionStore {
  readonly accounts: AccountStore;
}

const OIDC = "oidc:";
const SECRET_BYTES = 32;
/** As long as a secret can be, whatever kind it is; anything longer is not even hashed. */
export const MAX_SECRET = 256;
export const TOKEN_PREFIX = "emk_";
export const INVITATION_PREFIX = "emi_";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** A session ends when it was not used for so long, and after so long in any case. */
export const SESSION_IDLE_MS = 14 * DAY_MS;
export const SESSION_MS = 90 * DAY_MS;
export const SETUP_MS = DAY_MS;
export const INVITATION_DAYS = 7;
/** How far behind "last used" may be. */
const TOUCH_MS = 5 * 60 * 1_000;

export const MAX_TOKENS = 100;
export const MAX_SESSIONS = 100;
const MAX_INVITATIONS = 1_000;

/** Guesses at a password: per network and name, so that nobody can lock the right person out from elsewhere. */
const GUESSES: Rate = { burst: 10, perMinute: 1 };
/** Guesses at any name, and new accounts, per network: a household, an office or a school may be behind one. */
const GUESSES_OF_NETWORK: Rate = { burst: 100, perMinute: 20 };
/** How many times as much a wider network may do, by its prefix length. */
const WIDE: Readonly<Record<string, number>> = { "/56": 2, "/48": 4, "/24": 8 };

/** The one form of a name, by which it is known and compared; undefined for what cannot be one. */
export function readName(text: string): string | undefined {
  if (text.length > 4 * MAX_NAME) return undefined;
  const name = text.normalize("NFKC").toLowerCase();
  return name.length <= MAX_NAME && NAME.test(name) ? name : undefined;
}

export const MAX_NAME = 64;
const NAME = /^[a-z0-9][a-z0-9._@+-]*$/;
export const NAMES = `has 1 to ${MAX_NAME} characters: the letters a to z, digits, and after the first also . _ - @ +`;

/** The SHA-256 of a secret, in base64url: a secret is 256 random bits, so nothing slower is needed to keep it safe. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}

/** The networks that a client's address is in, narrow to wide. */
type Networks = readonly string[];

/** Why something was not done: the words are for http/ to find. */
export type NotDone =
  | { readonly refused: "too-often"; readonly wait: number }
  | { readonly refused: "wrong-password" | "name-taken" | "not-invited" | "sign-up-closed" | "full" | "gone" }
  | { readonly refused: "invalid"; readonly member: "name" | "password"; readonly detail: string };

/** A credential that was just made, with its secret, which cannot be had again. */
export interface Opened {
  readonly credential: Credential;
  readonly secret: string;
}

export function isNotDone<T extends object>(value: T | NotDone): value is NotDone {
  return "refused" in value;
}

/** A credential that a request came with. */
export interface Verified extends Credential {
  readonly hash: string;
}

/** Whether a credential still opens anything. */
export function isAlive({ kind, usedAt, createdAt, expiresAt }: Credential, at: Date): boolean {
  if (expiresAt !== undefined && expiresAt <= at) return false;
  return kind !== "session" || at.getTime() - (usedAt ?? createdAt).getTime() < SESSION_IDLE_MS;
}

/** What people may do with accounts. */
export class Accounts {
  readonly store: AccountStore;
  readonly #isSignUpOpen: boolean;
  readonly #known = new KnownCredentials();
  readonly #failedGuesses = new FailedGuesses();

  constructor(store: AccountStore, { signUp }: { readonly signUp: boolean }) {
    this.store = store;
    this.#isSignUpOpen = signUp;
  }

  /** Who comes with this secret; undefined when it opens nothing. */
  recognise(secret: string, kind: Credential["kind"], at: Date): Soon<Verified | undefined> {
    const known = this.#known.get(secret, () => {
      // If it fails, whoever comes when it is too old tries again, and is told.
      this.#lookUp(secret, kind, at).catch(() => undefined);
    });
    return known?.kind === kind && isAlive(known, at) ? known : this.#lookUp(secret, kind, at);
  }

  async #lookUp(secret: string, kind: Credential["kind"], at: Date): Promise<Verified | undefined> {
    if (secret.length > MAX_SECRET) return undefined;
    const hashed = hashSecret(secret);
    const askedAt = performance.now();
    const credential = await this.store.findCredential(hashed);
    if (credential?.kind !== kind || !isAlive(credential, at)) return undefined;
    const verified = { ...credential, hash: hashed };
    this.#known.set(secret, verified, askedAt);
    if (at.getTime() - (credential.usedAt ?? credential.createdAt).getTime() >= TOUCH_MS || !credential.usedAt) {
      // Nobody waits for it, and it is no harm if it fails.
      this.store.touchCredential(hashed, at).catch(() => undefined);
    }
    return verified;
  }

  /** Opens a session for whoever knows the password. An unknown name takes as long, and is answered the same. */
  async signIn(
    { name, password, networks, label }: { name: string; password: string; networks: Networks; label: string },
    at: Date,
  ): Promise<Opened | NotDone> {
    const known = readName(name);
    const network = widest(networks);
    const wait =
      (await this.#countAttempt(networks, known ?? "", at)) ||
      (await this.#failedGuesses.delay(known ?? "", network, at));
    if (wait > 0) return { refused: "too-often", wait };
    const found = known === undefined ? undefined : await this.store.find(known, "");
    if (!(await isPassword(password, found?.password, network)) || found === undefined) {
      this.#failedGuesses.record(known ?? "", network, at);
      return { refused: "wrong-password" };
    }
    return this.#openSession(found.account.user, found.password, label, at);
  }

  /**
   * Counts an attempt for each of the networks; `name` is what it guesses at. Returns how many milliseconds to wait when
   * there were too many. Narrow networks come first, so that one above its limit uses up nothing of its neighbours'.
   */
  async #countAttempt(networks: Networks, name: string | undefined, at: Date): Promise<number> {
    for (const network of networks) {
      const wait =
        (await this.store.spend(`network ${network}`, 1, widen(GUESSES_OF_NETWORK, network), at)) ||
        (name === undefined ? 0 : await this.store.spend(`guess ${network} ${name}`, 1, widen(GUESSES, network), at));
      if (wait > 0) return wait;
    }
    return 0;
  }

  async #openSession(user: UserId, password: string, label: string, at: Date): Promise<Opened | NotDone> {
    for (;;) {
      const session = { kind: "session", user, scope: "write", label, expiresAt: after(at, SESSION_MS) } as const;
      const opened = await this.#open(asUser(user), session, "", at, { atMost: MAX_SESSIONS, password });
      if (!isNotDone(opened)) return opened;
      if (opened.refused !== "full") return { refused: "wrong-password" };
      // The one that was not used for longest makes room.
      const sessions = await this.store.listCredentials(user, "session");
      const [oldest] = sessions.toSorted((a, b) => lastUse(a) - lastUse(b));
      if (oldest !== undefined) await this.store.removeCredential(asUser(user), "session", oldest.id, at);
    }
  }

  /** Makes an account for whoever has an invitation, or for anyone where sign-up is open; and signs in. */
  async signUp(
    wish: { name: string; password: string; invitation: string | undefined; networks: Networks; label: string },
    at: Date,
  ): Promise<Opened | NotDone> {
    const { password, invitation, networks, label } = wish;
    const wait = await this.#countAttempt(networks, undefined, at);
    if (wait > 0) return { refused: "too-often", wait };
    const invited = invitation === undefined ? undefined : await this.#kindOfInvitation(invitation, at);
    if (invitation !== undefined && invited === undefined) return { refused: "not-invited" };
    if (invitation === undefined && !this.#isSignUpOpen) return { refused: "sign-up-closed" };
    const made = await this.#create(wish.name, password, at, {
      isOwner: invited === "setup",
      invitation,
      network: widest(networks),
    });
    if (isNotDone(made)) return made;
    return this.#openSession(made.user, made.password, label, at);
  }

  async #kindOfInvitation(secret: string, at: Date): Promise<"invitation" | "setup" | undefined> {
    if ((await this.recognise(secret, "invitation", at)) !== undefined) return "invitation";
    if ((await this.recognise(secret, "setup", at)) === undefined) return undefined;
    return (await this.store.isEmpty()) ? "setup" : undefined;
  }

  /** Makes an account with a password, for whoever runs the server. */
  create(wished: string, password: string, at: Date): Promise<{ user: UserId; password: string } | NotDone> {
    return this.#create(wished, password, at, { isOwner: true });
  }

  async #create(
    wished: string,
    password: string,
    at: Date,
    { isOwner, invitation, network }: { isOwner: boolean; invitation?: string | undefined; network?: string },
  ): Promise<{ user: UserId; password: string } | NotDone> {
    const name = readName(wished);
    if (name === undefined) return { refused: "invalid", member: "name", detail: `A name ${NAMES}` };
    const fault = await faultOfPassword(password, name);
    if (fault !== undefined) return { refused: "invalid", member: "password", detail: `The password ${fault}` };
    const hashed = await hashPassword(password, network);
    const account = {
      name,
      issuer: "",
      password: hashed,
      isOwner,
      invitation: invitation === undefined ? undefined : hashSecret(invitation),
    };
    const user = await this.store.create(newUser(), account, at);
    if (typeof user === "string") return { refused: user };
    return { user, password: hashed };
  }

  /** The user whom an identity provider vouches for; made on first sight if `mayBeNew`. */
  async vouchedFor(issuer: string, subject: string, mayBeNew: boolean, at: Date): Promise<UserId | undefined> {
    const found = await this.store.find(subject, issuer);
    if (found !== undefined || !mayBeNew) return found?.account.user;
    const account = { name: subject, issuer, password: "", isOwner: false, invitation: undefined };
    const user = await this.store.create(newUser(), account, at);
    // Someone with the same subject was faster.
    if (typeof user === "string") return (await this.store.find(subject, issuer))?.account.user;
    return user;
  }

  /**
   * The account of this name; or, after `oidc:`, whom this identity provider calls so. A name has no colon, so that nobody
   * can choose one that stands for somebody else.
   */
  async named(name: string, issuer?: string): Promise<Account | undefined> {
    if (name.startsWith(OIDC))
      return issuer === undefined ? undefined : (await this.store.find(name.slice(OIDC.length), issuer))?.account;
    const known = readName(name);
    return known === undefined ? undefined : (await this.store.find(known, ""))?.account;
  }

  async changePassword(
    caller: Caller,
    { current, wished, session, networks }: { current: string; wished: string; session: string; networks: Networks },
    at: Date,
  ): Promise<NotDone | undefined> {
    const wait = await this.#countAttempt(networks, `#${caller.user}`, at);
    if (wait > 0) return { refused: "too-often", wait };
    const network = widest(networks);
    const found = await this.store.get(caller.user);
    if (!(await isPassword(current, found?.password, network)) || found === undefined)
      return { refused: "wrong-password" };
    const conditions = { keepSession: session, expectedHash: found.password };
    return this.#setPassword(caller, found.account.name, wished, at, conditions, network);
  }

  /** Sets a password for the operator of the server. Every session ends. */
  setPassword({ user, name }: Account, wished: string, at: Date): Promise<NotDone | undefined> {
    return this.#setPassword(asUser(user), name, wished, at);
  }

  async #setPassword(
    caller: Caller,
    name: string,
    wished: string,
    at: Date,
    conditions: Omit<NewPassword, "password"> = {},
    network?: string,
  ): Promise<NotDone | undefined> {
    const fault = await faultOfPassword(wished, name);
    if (fault !== undefined) return { refused: "invalid", member: "password", detail: `The password ${fault}` };
    const password = await hashPassword(wished, network);
    const isSet = await this.store.setPassword(caller, { password, ...conditions }, at);
    // Meanwhile it was deleted, or somebody else has set another password.
    return isSet ? undefined : { refused: conditions.expectedHash === undefined ? "gone" : "wrong-password" };
  }

  createToken(
    caller: Caller,
    { label, scope, expiresAt }: { label: string; scope: Scope; expiresAt: Date | undefined },
    at: Date,
  ): Promise<Opened | NotDone> {
    const token = { kind: "token", user: caller.user, scope, label, expiresAt } as const;
    return this.#open(caller, token, TOKEN_PREFIX, at, { atMost: MAX_TOKENS });
  }

  invite(days: number, at: Date): Promise<Opened | NotDone> {
    return this.#invite("invitation", days * DAY_MS, at);
  }

  /** What makes the first account; undefined when there is one already. */
  async setUp(at: Date): Promise<Opened | undefined> {
    if (!(await this.store.isEmpty())) return undefined;
    const opened = await this.#invite("setup", SETUP_MS, at);
    return isNotDone(opened) ? undefined : opened;
  }

  #invite(kind: "invitation" | "setup", ms: number, at: Date): Promise<Opened | NotDone> {
    const invitation = { kind, user: NOBODY, scope: "write", label: "", expiresAt: after(at, ms) } as const;
    return this.#open(asUser(NOBODY), invitation, INVITATION_PREFIX, at, { atMost: MAX_INVITATIONS });
  }

  async #open(
    caller: Caller,
    wished: Omit<Credential, "id" | "createdAt" | "usedAt">,
    prefix: string,
    at: Date,
    conditions: Pick<NewCredential, "atMost" | "password">,
  ): Promise<Opened | NotDone> {
    const secret = prefix + randomBytes(SECRET_BYTES).toString("base64url");
    const credential = { ...wished, id: randomUUID(), createdAt: at, usedAt: undefined };
    const answer = await this.store.addCredential(caller, { credential, hash: hashSecret(secret), ...conditions });
    return answer === "added" ? { credential, secret } : { refused: answer };
  }
}

/** Those who share the hashing of passwords fairly. */
function widest(networks: Networks): string {
  return networks.at(-1) ?? "";
}

function widen({ burst, perMinute }: Rate, network: string): Rate {
  const times = WIDE[network.slice(network.lastIndexOf("/"))] ?? 1;
  return { burst: burst * times, perMinute: perMinute * times };
}

function lastUse({ usedAt, createdAt }: Credential): number {
  return (usedAt ?? createdAt).getTime();
}

function after(at: Date, ms: number): Date {
  return new Date(at.getTime() + ms);
}

/** A number that tells nothing, not even how many users there are. */
function newUser(): UserId {
  return randomInt(LOCAL_USER + 1, 2 ** 48 - 1);
}
