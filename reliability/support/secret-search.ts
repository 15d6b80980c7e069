import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";

export type Headers = Readonly<Record<string, string>>;

/** Begins and ends every canary, so that one search finds them all, whole or cut off. */
export const MARK = "zqkanr";
export const CANARY = new RegExp(`${MARK}[0-9a-f]{8}${MARK}`, "gi");

/** Every canary so far, and what it was sent as. */
export const canaries = new Map<string, string>();
/** Secrets that the server made itself. */
export const secrets = new Map<string, string>();

/** Something that is found wherever it ends up, and that may stand in a name, a token, a path or a header alike. */
export function canary(what: string): string {
  const text = `${MARK}${randomBytes(4).toString("hex")}${MARK}`;
  canaries.set(text, what);
  return text;
}

export function keep(secret: string, what: string): string {
  assert.ok(secret.length >= 16, `${what} is too short to be found`);
  secrets.set(secret, what);
  return secret;
}

export const known = new Map<string, [string, Buffer][]>();

/** All the ways in which someone may have written a text down. */
function writingsOf(text: string): [string, Buffer][] {
  const writings = known.get(text) ?? writeInEveryWay(text);
  known.set(text, writings);
  return writings;
}

function writeInEveryWay(text: string): [string, Buffer][] {
  const utf16 = Buffer.from(text, "utf16le");
  const bytes = Buffer.from(text);
  const hex = bytes.toString("hex");
  // Within a longer text there are three ways in which the same bytes can fall into groups of six bits.
  const base64 = [0, 1, 2].flatMap((shift) => {
    const groups = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString("base64")
      .replaceAll("=", "");
    const sure = groups.slice(Math.ceil((shift * 8) / 6), -1);
    return [sure, sure.replaceAll("+", "-").replaceAll("/", "_")];
  });
  return [
    ["UTF-8", bytes],
    ["capitals", Buffer.from(text.toUpperCase())],
    ["small letters", Buffer.from(text.toLowerCase())],
    ["UTF-16", utf16],
    ["UTF-16, big end first", Buffer.from(utf16).swap16()],
    ["hexadecimal", Buffer.from(hex)],
    ["hexadecimal", Buffer.from(hex.toUpperCase())],
    ["numbers", Buffer.from([...bytes].join(","))],
    ...base64.map((groups): [string, Buffer] => ["base64", Buffer.from(groups)]),
  ];
}

/** The bytes that a secret may have been made of. */
function sourcesOf(secret: string): [string, Buffer][] {
  const rest = secret.replace(/^em[ki]_/, "");
  const sources = [Buffer.from(secret, "base64url"), Buffer.from(rest, "base64url"), Buffer.from(rest, "hex")];
  return sources.filter(({ length }) => length >= 12).map((bytes) => ["bytes", bytes.subarray(0, 12)]);
}

/** Fails when a canary or half a secret is in there, in any way of writing. */
export function assertWithout(
  text: string | Buffer,
  where: string,
  sought: ReadonlyMap<string, string> = secrets,
): void {
  const bytes = Buffer.from(text);
  const look = (what: string, writings: readonly (readonly [string, Buffer])[]) => {
    for (const [writing, form] of writings) {
      const at = bytes.indexOf(form);
      if (at === -1) continue;
      const around = bytes.toString("latin1", Math.max(0, at - 200), at + 200);
      const sentAs = (around.match(CANARY) ?? []).map((found) => canaries.get(found.toLowerCase()));
      assert.fail(`${where} holds ${what} in ${writing} ${sentAs.join(", ")}: … ${around} …`);
    }
  };
  look("a canary", writingsOf(MARK));
  for (const [secret, what] of sought) {
    const middle = Math.floor(secret.length / 2);
    look(what, [...writingsOf(secret.slice(0, middle)), ...writingsOf(secret.slice(middle)), ...sourcesOf(secret)]);
  }
}
