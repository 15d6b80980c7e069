import { replaceControlCharacters } from "../../../src/util/control-characters.ts";
import { isolate } from "./isolate.ts";

/** A feed URL prepared for display. */
export interface DisplayUrl {
  /** In Punycode, so that look-alike letters can be told apart. */
  readonly host: string;
  /** False for text that is not an http or https URL. */
  readonly isLink: boolean;
  /** The URL with its secrets replaced by `MASK`; equal to `full` if it has none. */
  readonly masked: string;
  readonly full: string;
}

const MASK = "•••";
/** No feed URL is longer; other text is cut. */
const MAX_LENGTH = 2_048;
/** Enough for the longest DNS name and a port. Browsers parse much longer hosts slowly. */
const MAX_AUTHORITY = 300;

export function displayUrl(text: string): DisplayUrl {
  const url = parse(text);
  if (url === undefined) {
    const shown = prepare(text);
    return { host: shown, isLink: false, masked: shown, full: shown };
  }
  const { scheme, credentials, host, tail } = url;
  return {
    host: host.replace(/^www\./, "").replace(/:\d+$/, ""),
    isLink: true,
    masked: `${scheme}${credentials && `${MASK}@`}${host}${maskSecrets(tail)}`,
    full: `${scheme}${credentials}${host}${tail}`,
  };
}

const MAX_NAME_LENGTH = 60;

/** A short name for labels and notices: host and path, without secrets. */
export function shortName(text: string): string {
  const url = parse(text);
  const whole = url ? url.host + maskSecrets(url.tail.replace(/[?#].*/s, "")) : prepare(text);
  const name = withoutTrailingSlashes(whole.replace(/^www\./, ""));
  return isolate(name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name);
}

interface ParsedUrl {
  readonly scheme: string;
  /** With the `@` that ends them. */
  readonly credentials: string;
  readonly host: string;
  /** Path, query and fragment. */
  readonly tail: string;
}

function parse(text: string): ParsedUrl | undefined {
  const [start = "", scheme = "", authority = ""] = /^(https?:\/\/)([^/?#\\]*)/i.exec(text) ?? [];
  const credentials = authority.slice(0, authority.lastIndexOf("@") + 1);
  const hostAndPort = authority.slice(credentials.length);
  if (hostAndPort.length > MAX_AUTHORITY) return undefined;
  try {
    const { protocol, host } = new URL(`${scheme}${hostAndPort}/`);
    return {
      scheme: `${protocol}//`,
      credentials: prepare(credentials),
      host,
      tail: prepare(text.slice(start.length)),
    };
  } catch {
    return undefined;
  }
}

function prepare(text: string): string {
  return replaceControlCharacters(text.slice(0, MAX_LENGTH));
}

/** Private feeds carry their secret as a parameter (`?auth=…`) or as a long random part of the path. */
function maskSecrets(tail: string): string {
  return tail.replace(/[^/?&;#]+/g, (part) => {
    const value = part.indexOf("=") + 1;
    if (value === 0) return maskRandom(part);
    return value === part.length ? part : part.slice(0, value) + MASK;
  });
}

/** Characters that are not masked: enough to tell feeds with random public ids apart, too few to reveal a secret. */
const CLEAR_LENGTH = 4;

function maskRandom(part: string): string {
  const extension = /\.[a-z\d]{1,5}$/i.exec(part)?.[0] ?? "";
  const name = part.slice(0, part.length - extension.length);
  return looksRandom(name) ? name.slice(0, CLEAR_LENGTH) + MASK + extension : part;
}

const MIN_RANDOM_LENGTH = 16;
/** Letters and digits of this length are not a word. */
const MAX_WORD_LENGTH = 32;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Random text switches between digits, lower case and upper case far more often than words do. */
function looksRandom(text: string): boolean {
  if (text.length < MIN_RANDOM_LENGTH) return false;
  if (UUID.test(text)) return true;
  let switches = 0;
  let wordLength = 0;
  let last: string | undefined;
  for (const character of text.replace(/%[\da-f]{2}/gi, "-")) {
    const kind = kindOf(character);
    // A capital at the start of a word does not count as a switch.
    const isSwitch = kind !== last && kind !== undefined && last !== undefined;
    if (isSwitch && !(last === "upper" && kind === "lower")) switches += 1;
    wordLength = kind === undefined ? 0 : wordLength + 1;
    if (wordLength === MAX_WORD_LENGTH) return true;
    last = kind;
  }
  return switches * 6 >= text.length;
}

function kindOf(character: string): "digit" | "lower" | "upper" | undefined {
  if (character >= "0" && character <= "9") return "digit";
  if (character >= "a" && character <= "z") return "lower";
  return character >= "A" && character <= "Z" ? "upper" : undefined;
}

function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}
