import type { Actor, Caller, UserId } from "./caller.ts";
import { type CredentialKind, rulesOf } from "./credential-kinds.ts";
import type { SecondFactorStore } from "./second-factor-store.ts";

export interface Account {
  readonly user: UserId;
  /** Normalized by `readName`, or the identity provider's subject. */
  readonly name: string;
  /** The identity provider that authenticates the user; empty for an account with a password. */
  readonly issuer: string;
  readonly createdAt: Date;
  readonly isAdmin: boolean;
  /** Nobody can sign in to a disabled account, and its tokens are not accepted. Undefined unless it is disabled. */
  readonly disabledAt: Date | undefined;
}

export interface Credential {
  readonly id: string;
  readonly kind: CredentialKind;
  /** `NOBODY` for an invitation, a setup link or a ticket key. */
  readonly user: UserId;
  readonly scope: Scope;
  /** The name of an app, a browser or a passkey, or the note of an invitation. */
  readonly label: string;
  readonly createdAt: Date;
  readonly usedAt: Date | undefined;
  readonly expiresAt: Date | undefined;
  /** Only of a passkey. */
  readonly passkey?: PublicKey | undefined;
}

/** What verifies the signatures of a passkey. */
export interface PublicKey {
  /** The id by which the browser and the authenticator know it. */
  readonly id: string;
  readonly publicKey: string;
  /** Signature counter; stays 0 if the authenticator has none. */
  readonly counter: number;
}

export interface FoundSession {
  readonly credential: Credential;
  readonly account: StoredAccount | undefined;
}

export type RequestedCredential = Omit<Credential, "id" | "createdAt" | "usedAt">;

/** A new credential with its secret, which cannot be read again. */
export interface IssuedCredential {
  readonly credential: Credential;
  readonly secret: string;
}

export type Scope = "read" | "write";

/** Owner of credentials that belong to no user, such as invitations. As a caller: the server or the operator. */
export const NOBODY: UserId = 0;

export function isValidAt(credential: Credential, at: Date): boolean {
  const { kind, expiresAt } = credential;
  if (expiresAt !== undefined && expiresAt <= at) return false;
  return at.getTime() - lastUse(credential) < (rulesOf(kind).idleMs ?? Number.POSITIVE_INFINITY);
}

export function lastUse({ usedAt, createdAt }: Credential): number {
  return (usedAt ?? createdAt).getTime();
}

export interface NewAccount {
  readonly name: string;
  readonly issuer: string;
  /** Empty for an account without a password. */
  readonly passwordHash: string;
  /** Such an account may take over the list of the local user. */
  readonly isCreatedByOperator: boolean;
  /** Hash of the secret of the invitation that the account uses up; undefined when none is needed. */
  readonly invitationHash: string | undefined;
  /** Who creates it, for the audit log; the command line unless given. */
  readonly actor?: Actor;
}

/** What an engine reads in the transaction that creates an account. */
export interface NewAccountState {
  readonly hasAccounts: boolean;
  readonly hasAdmins: boolean;
  readonly isNameTaken: boolean;
  /** The local user has an account, or had one that was deleted. */
  readonly isLocalUserTaken: boolean;
  /** The kind of the credential whose hash is `NewAccount.invitationHash`. */
  readonly invitationKind: CredentialKind | undefined;
}

interface NewAccountDecision {
  readonly becomesLocalUser: boolean;
  readonly becomesAdmin: boolean;
  readonly endsSetup: boolean;
}

/**
 * The rules for a new account, the same on every engine. The first account invalidates all setup links. Where sign-up is
 * open, a stranger may be the first to create an account, so only one created by the operator becomes an administrator.
 */
export function decideNewAccount(
  { isCreatedByOperator, invitationHash }: NewAccount,
  { hasAccounts, hasAdmins, isNameTaken, isLocalUserTaken, invitationKind }: NewAccountState,
): "invalid-invitation" | "name-taken" | NewAccountDecision {
  const isInvited = invitationKind === "invitation" || (invitationKind === "setup" && !hasAccounts);
  if (invitationHash !== undefined && !isInvited) return "invalid-invitation";
  if (isNameTaken) return "name-taken";
  return {
    becomesLocalUser: isCreatedByOperator && !isLocalUserTaken,
    becomesAdmin: isCreatedByOperator && !hasAdmins,
    endsSetup: !hasAccounts,
  };
}

export interface NewPassword {
  readonly passwordHash: string;
  /** Id of the session to keep; all others end. */
  readonly keepSession?: string | undefined;
  /** Set the password only if this is still the stored hash. */
  readonly expectedHash?: string | undefined;
  readonly revokesTokens?: boolean;
  /** Who reset it, for the audit log; undefined if the user changed it. */
  readonly resetBy?: Actor;
}

export interface NewCredential {
  readonly credential: Credential;
  readonly hash: string;
  /** Add it only if this is still the user's password and second factor. */
  readonly password?: StoredPassword;
}

/** All sessions of the user, except the one with this id. */
export interface SessionsToEnd {
  readonly except: string | undefined;
}

/**
 * Stores accounts alongside the lists. Every engine guarantees:
 * - what it has confirmed is durable and visible to every process;
 * - a name belongs to at most one account of its issuer, and an invitation creates at most one account;
 * - deleting an account deletes everything that belongs to it, and no concurrent write brings any of it back;
 * - a caller's change is applied only if the caller's credential is neither revoked nor expired in the same
 *   transaction; otherwise it rejects with `AccessRevoked` and changes nothing;
 * - it rejects with `StoreUnavailable` when it cannot do its work.
 */
export interface AccountStore {
  isEmpty(): Promise<boolean>;
  /**
   * Creates an account with the id `user`, or with the local user's id, in which case it takes over that list
   * (`decideNewAccount`).
   */
  create(user: UserId, account: NewAccount, at: Date): Promise<UserId | "name-taken" | "invalid-invitation">;
  find(name: string, issuer: string): Promise<StoredAccount | undefined>;
  get(user: UserId): Promise<StoredAccount | undefined>;
  /**
   * Ends all sessions but `keepSession`, and all reset links. False if there is no such account, or its hash is not
   * `expectedHash`.
   */
  setPassword(caller: Caller, password: NewPassword, at: Date): Promise<boolean>;
  /**
   * Deletes the account at once and then its list, in steps between which others can write. If the outcome is unknown,
   * the account may be gone already; `sweep` deletes the rest. `last-admin` if other accounts would have no administrator.
   */
  delete(caller: Caller, at: Date, user?: UserId): Promise<"deleted" | "gone" | "last-admin">;

  /** `gone` if the account does not exist or is disabled; `full` if the user has the maximum of its kind. */
  addCredential(caller: Caller, credential: NewCredential): Promise<"added" | "full" | "gone">;
  /** Of any kind, even if it has expired. */
  findCredential(hash: string): Promise<Credential | undefined>;
  /** The same, with the account of its user. */
  findSession(hash: string): Promise<FoundSession | undefined>;
  /** Oldest first, including expired ones. */
  listCredentials(user: UserId, kind: CredentialKind): Promise<readonly Credential[]>;
  /** Removes a credential of the caller, or an invitation if the caller is an administrator. */
  removeCredential(
    caller: Caller,
    kind: CredentialKind,
    id: string,
    at: Date,
    sessionsToEnd?: SessionsToEnd,
  ): Promise<boolean>;
  /** Of a passkey. False, without a change, if the counter is no longer `expected`. */
  replaceCounter(hash: string, expected: number, counter: number): Promise<boolean>;
  /** Records when a credential was last used. */
  touchCredential(hash: string, at: Date): Promise<void>;
  /**
   * Deletes expired credentials and rate limits, and old entries of the audit log; finishes interrupted deletions of accounts,
   * and removes deleted data from the database files as far as the engine can.
   */
  sweep(at: Date): Promise<void>;

  readonly secondFactors: SecondFactorStore;
  /** Undefined where a single process serves the database. */
  readonly sharedRateLimits: SharedRateLimits | undefined;
}

export interface StoredAccount extends StoredPassword {
  readonly account: Account;
}

/** What a sign-in with a password is checked against. */
export interface StoredPassword {
  /** Empty for an account without a password. */
  readonly passwordHash: string;
  /** Of the authenticator app that is the second factor; undefined if the password is enough. */
  readonly totpSecret?: string | undefined;
}

/** One number per key that all processes share; see `rate-limits.ts` for its meaning. */
export interface SharedRateLimits {
  read(key: string): Promise<number | undefined>;
  /** False, without a change, if the number is no longer `expected`. */
  replace(key: string, expected: number | undefined, next: number): Promise<boolean>;
}
