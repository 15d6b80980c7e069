import { hash } from "node:crypto";

/** The SHA-256 of a secret, in base64url. Secrets have so many random bits that a slower hash would add nothing. */
export function hashSecret(secret: string): string {
  return hash("sha256", secret, "base64url");
}
