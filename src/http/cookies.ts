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

/** Spaces and tabs only: a browser that guards `__Host-` takes any other character for part of the name. */
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

/** `Set-Cookie` that keeps the secret of a session, or forgets it when there is none. */
export function writeCookie(
  secret: string | undefined,
  maxAgeMs: number,
  client: Pick<Client, "isHttps">,
  basePath: string,
): string {
  const age = secret === undefined ? 0 : Math.floor(maxAgeMs / 1_000);
  const secure = client.isHttps ? "; Secure" : "";
  return `${cookieName(client, basePath)}=${secret ?? ""}; Path=${basePath}/; Max-Age=${age}; HttpOnly; SameSite=Lax${secure}`;
}
