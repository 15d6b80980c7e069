/** Why a request about an account was refused; each API words it in its own way. */
export type AccountRefusal =
  | { readonly reason: "too-often"; readonly wait: number }
  | { readonly reason: "wrong-password" | "no-password" | "disabled" | "last-admin" | "gone" | "full" }
  | { readonly reason: "name-taken" | "not-invited" | "sign-up-closed" | "invalid-link" }
  | { readonly reason: "identity-taken" | "invalid-passkey" }
  | { readonly reason: "invalid"; readonly member: "name" | "password"; readonly detail: string };

export function isAccountRefusal<T extends object>(value: T | AccountRefusal): value is AccountRefusal {
  return "reason" in value;
}
