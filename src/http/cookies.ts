import type { Client } from "./client-address.ts";

/** Longest Cookie header that is looked at. */
export const MAX_COOKIE_BYTES = 8 * 1024;

/**
 * The cookie of a session. Its name makes the browser hold us to what it promises: `__Host-` that it comes from this host
 * alone and goes over https, `__Secure-` the latter alone, which is all that can be had below a base path.
 */
export function cookieName({ isHttps }: Pick<Client, "isHttps">, basePath: string): string {
  if (!isHttps) return "earmark";
  return basePath === "" ? "__Host-earmark" : "__Secure-earmark";
}

/** Every value that the header has under this name. */
export function readCookies(header: string | undefined, name: string): string[] {
  if (header === undefined) return [];
  const values: string[] = [];
  // With several Cookie headers, Node puts "; " between them.
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals !== -1 && trim(pair.slice(0, equals)) === name) values.push(trim(pair.slice(equals + 1)));
  }
  return values;
}

/** Of blanks and tabs alone: a browser that guards `__Host-` takes any other character for part of the name. */
function trim(text: string): string {
  return text.replace(/^[ \t]+|[ \t]+$/g, "");
}

/** `Set-Cookie` that keeps the secret of a session, or forgets it when there is none. */
export function writeCookie(secret: string | undefined, maxAgeMs: number, client: Client, basePath: string): string {
  const age = secret === undefined ? 0 : Math.floor(maxAgeMs / 1_000);
  const secure = client.isHttps ? "; Secure" : "";
  return `${cookieName(client, basePath)}=${secret ?? ""}; Path=${basePath}/; Max-Age=${age}; HttpOnly; SameSite=Lax${secure}`;
}
