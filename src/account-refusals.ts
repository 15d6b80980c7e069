/** Why a request about an account was refused; each API words it in its own way. */
export type AccountRefusal =
  | { readonly refused: "too-often"; readonly wait: number }
  | { readonly refused: "wrong-password" | "no-password" | "disabled" | "last-admin" | "gone" | "full" }
  | { readonly refused: "name-taken" | "not-invited" | "sign-up-closed" | "invalid-link" }
  | { readonly refused: "identity-taken" | "invalid-passkey" }
  | { readonly refused: "invalid"; readonly member: "name" | "password"; readonly detail: string };

export function isRefused<T extends object>(value: T | AccountRefusal): value is AccountRefusal {
  return "refused" in value;
}
