import type { CredentialKind } from "./credential-kinds.ts";
import type { PasswordProblem } from "./passwords.ts";

type Reason =
  | { readonly reason: "too-often"; readonly waitMs: number }
  | { readonly reason: "wrong-password" | "no-password" | "disabled" | "last-admin" }
  /** The account, credential or app login no longer exists, or is no longer in the state that the request needs. */
  | { readonly reason: "gone" }
  /** There are already as many credentials of this kind as are allowed. */
  | { readonly reason: "full"; readonly credential: CredentialKind }
  | { readonly reason: "name-taken" | "invalid-invitation" | "sign-up-closed" | "invalid-link" }
  | { readonly reason: "identity-taken" | "invalid-passkey" }
  | { readonly reason: "second-factor-required" | "wrong-code" | "invalid-ticket" }
  | { readonly reason: "second-factor-exists" | "no-second-factor" }
  | { readonly reason: "invalid"; readonly member: "name"; readonly detail: string }
  | {
      readonly reason: "invalid";
      readonly member: "password";
      readonly detail: string;
      readonly problem: PasswordProblem;
    };

/** Why a request about an account was refused. Each API turns it into an error of its own. */
export type AccountRefusal = { readonly kind: "refused" } & Reason;

export function refuse(reason: Reason): AccountRefusal {
  return { kind: "refused", ...reason };
}

export function isAccountRefusal<T extends object>(value: T | AccountRefusal): value is AccountRefusal {
  return (value as Partial<AccountRefusal>).kind === "refused";
}
