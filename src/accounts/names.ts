import type { Account } from "./account-store.ts";

/** The normalized form of a name, by which names are stored and compared; undefined for an invalid one. */
export function readName(text: string): string | undefined {
  if (text.length > 4 * MAX_NAME) return undefined;
  const name = text.normalize("NFKC").toLowerCase();
  return name.length <= MAX_NAME && NAME.test(name) ? name : undefined;
}

const MAX_NAME = 64;
const NAME = /^[a-z0-9][a-z0-9._@+-]*$/;
export const NAME_RULES = `must have 1 to ${MAX_NAME} characters (letters a to z, digits and . _ - @ +) and start with a letter or digit`;

/** Prefix of references to users of the identity provider. Names have no colon, so nobody can choose such a name. */
export const OIDC_PREFIX = "oidc:";

/** How commands and the audit log refer to an account. */
export function referenceOf({ name, issuer }: Pick<Account, "name" | "issuer">): string {
  return issuer === "" ? name : `${OIDC_PREFIX}${name}`;
}
