/** Why a request about an account was refused. Each API turns it into an error of its own. */
export type AccountRefusal =
  | { readonly reason: "too-often"; readonly waitMs: number }
  | { readonly reason: "wrong-password" | "no-password" | "disabled" | "last-admin" }
  /** The account, credential or app login no longer exists, or is no longer in the state that the request needs. */
  | { readonly reason: "gone" }
  /** There are already as many tokens, passkeys, identities, links or sessions as are allowed. */
  | { readonly reason: "full" }
  | { readonly reason: "name-taken" | "invalid-invitation" | "sign-up-closed" | "invalid-link" }
  | { readonly reason: "identity-taken" | "invalid-passkey" }
  | { readonly reason: "invalid"; readonly member: "name" | "password"; readonly detail: string };

export function isAccountRefusal<T extends object>(value: T | AccountRefusal): value is AccountRefusal {
  return "reason" in value;
}
