import type { Credential } from "../account-store.ts";
import { idOfKey } from "./keys.ts";

/** Stored when a credential never expires, or was never used. */
export const NEVER = 0;

export const CREDENTIAL = "id, kind, user_id, scope, label, created_at, used_at, expires_at";

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

export function toCredential([id, kind, user, scope, label, createdAt, usedAt, expiresAt]: CredentialRow): Credential {
  return {
    id: idOfKey(id),
    kind,
    user,
    scope,
    label,
    createdAt: new Date(createdAt),
    usedAt: usedAt === NEVER ? undefined : new Date(usedAt),
    expiresAt: expiresAt === NEVER ? undefined : new Date(expiresAt),
  };
}
