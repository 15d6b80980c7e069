import type { Peer } from "../wire/client-address.ts";

/** Maximum length of the Cookie header. */
export const MAX_COOKIE_BYTES = 8 * 1024;

/**
 * The name of the session cookie. Its prefix makes browsers enforce restrictions: `__Host-` means set by this host over
 * https with path `/`, `__Secure-` only https. With a base path the path is not `/`, so only `__Secure-` is possible.
 */
export function cookieName({ isHttps }: Pick<Peer, "isHttps">, basePath: string): string {
  if (!isHttps) return "earmark";
  return basePath === "" ? "__Host-earmark" : "__Secure-earmark";
}

/** All values of the cookies with this name. */
export function readCookies(header: string | undefined, name: string): string[] {
  if (header === undefined) return [];
  const values: string[] = [];
  // With several Cookie headers, Node puts "; " between them.
  for (let start = 0, end: number; start < header.length; start = end + 1) {
    const semicolon = header.indexOf(";", start);
    end = semicolon === -1 ? header.length : semicolon;
    const first = skipBlanks(header, start);
    if (!header.startsWith(name, first)) continue;
    const equals = skipBlanks(header, first + name.length);
    if (header[equals] === "=") values.push(sliceTrimmed(header, equals + 1, end));
  }
  return values;
}

/** Spaces and tabs only: to a browser that enforces `__Host-`, any other character is part of the name. */
function isBlank(character: string | undefined): boolean {
  return character === " " || character === "\t";
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (isBlank(text[at])) at += 1;
  return at;
}

function sliceTrimmed(text: string, from: number, to: number): string {
  const start = skipBlanks(text, from);
  let end = to;
  while (end > start && isBlank(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

/**
 * The `Set-Cookie` header that stores a secret, or deletes the cookie if there is none. Without `suffix` it is the session
 * cookie.
 */
export function writeCookie(
  secret: string | undefined,
  maxAgeMs: number,
  client: Pick<Peer, "isHttps">,
  basePath: string,
  suffix = "",
): string {
  const age = secret === undefined ? 0 : Math.floor(maxAgeMs / 1_000);
  const secure = client.isHttps ? "; Secure" : "";
  return `${cookieName(client, basePath)}${suffix}=${secret ?? ""}; Path=${basePath}/; Max-Age=${age}; HttpOnly; SameSite=Lax${secure}`;
}
