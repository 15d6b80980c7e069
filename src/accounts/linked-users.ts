import type { Credential, StoredAccount } from "./account-store.ts";
import type { Accounts } from "./accounts.ts";
import type { Caller } from "./caller.ts";
import { hashSecret } from "./hash-secret.ts";
import { type AccountRefusal, isAccountRefusal, refuse } from "./refusals.ts";

/** A user of an identity provider. Only issuer and subject identify them; names and e-mail addresses can change hands. */
export interface OidcUser {
  readonly issuer: string;
  readonly subject: string;
}

/** The account that such a user signs in to. */
interface OidcAccount extends StoredAccount {
  /** Hash of the `linked-user` credential that links it, if it is linked. Access ends when that credential is removed. */
  readonly linkHash: string | undefined;
}

const MAX_LABEL = 100;

/**
 * Finds the account that the user is linked to, else the user's own account. If there is neither, creates one for
 * the client at `address`, unless that is undefined.
 */
export async function findOidcAccount(
  accounts: Accounts,
  { issuer, subject }: OidcUser,
  address: string | undefined,
  at: Date,
): Promise<OidcAccount | undefined> {
  const link = await accounts.verifyHash(hashOidcUser({ issuer, subject }), "linked-user", at);
  const found = await (link ? accounts.store.get(link.user) : accounts.findOrCreate(subject, issuer, address, at));
  return found && { ...found, linkHash: link?.hash };
}

/** Lets such a user sign in to the caller's account. `label` is for display only. Safe to repeat. */
export async function linkUser(
  accounts: Accounts,
  caller: Caller,
  oidcUser: OidcUser,
  label: string,
  at: Date,
): Promise<Credential | AccountRefusal> {
  const { user } = caller;
  const owner = await findOidcAccount(accounts, oidcUser, undefined, at);
  if (owner !== undefined && owner.account.user !== user) return refuse({ reason: "identity-taken" });
  const hash = hashOidcUser(oidcUser);
  const link = { kind: "linked-user", user, scope: "write", label: shorten(label), expiresAt: undefined } as const;
  const added = await accounts.addCredential(caller, link, hash, at);
  if (!isAccountRefusal(added) || added.reason !== "gone") return added;
  const existing = await accounts.store.findCredential(hash);
  return existing?.user === user ? existing : refuse({ reason: "identity-taken" });
}

function hashOidcUser({ issuer, subject }: OidcUser): string {
  return hashSecret(`identity\n${issuer}\n${subject}`);
}

function shorten(label: string): string {
  return [...label.replaceAll(/\p{C}/gu, "")].slice(0, MAX_LABEL).join("");
}
