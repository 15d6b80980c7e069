import type { Credential, StoredAccount } from "../../accounts/account-store.ts";
import { idOfKey } from "../shared/keys.ts";

/** Stored instead of a date that is not set. */
export const NEVER = 0;
export const toDate = (time: number) => (time === NEVER ? undefined : new Date(time));

export type AccountRow = [
  ...[user: number, name: string, issuer: string, createdAt: number],
  ...[isAdmin: number, disabledAt: number, passwordHash: string],
];
export type CredentialRow = [
  id: Uint8Array,
  kind: Credential["kind"],
  user: number,
  scope: Credential["scope"],
  label: string,
  createdAt: number,
  usedAt: number,
  expiresAt: number,
];

/** The columns of an account and of a credential, as the rows have them. */
export const ACCOUNT = "user_id, name, issuer, created_at, is_admin, disabled_at, password";
export const CREDENTIAL = "id, kind, user_id, scope, label, created_at, used_at, expires_at";

export function toAccount(row: AccountRow | undefined): StoredAccount | undefined {
  if (row === undefined) return undefined;
  const [user, name, issuer, createdAt, isAdmin, disabledAt, password] = row;
  return {
    account: {
      ...{ user, name, issuer, createdAt: new Date(createdAt), isAdmin: isAdmin === 1 },
      disabledAt: toDate(disabledAt),
    },
    passwordHash: password,
  };
}

export function toCredential([id, kind, user, scope, label, createdAt, usedAt, expiresAt]: CredentialRow): Credential {
  return {
    id: idOfKey(id),
    kind,
    user,
    scope,
    label,
    createdAt: new Date(createdAt),
    usedAt: toDate(usedAt),
    expiresAt: toDate(expiresAt),
  };
}
