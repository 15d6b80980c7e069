import { isolate, revealControlCharacters } from "./control-characters.ts";

/** A feed URL prepared for display. */
export interface DisplayUrl {
  /** In Punycode, so that look-alike letters give themselves away. */
  readonly host: string;
  /** False for text that is not an http or https URL. */
  readonly isLink: boolean;
  /** The URL with its secrets replaced by `MASK`; equal to `full` if it has none. */
  readonly masked: string;
  readonly full: string;
}

const MASK = "•••";
/** Enough for the longest DNS name and a port. Browsers parse much longer hosts slowly. */
const MAX_AUTHORITY = 300;

export function displayUrl(text: string): DisplayUrl {
  const url = parse(text);
  if (url === undefined) {
    const shown = revealControlCharacters(text);
    return { host: shown, isLink: false, masked: shown, full: shown };
  }
  const { scheme, credentials, host, tail } = url;
  return {
    host: host.replace(/^www\./, "").replace(/:\d+$/, ""),
    isLink: true,
    masked: `${scheme}${credentials && `${MASK}@`}${host}${tail}`,
    full: `${scheme}${credentials}${host}${tail}`,
  };
}

const MAX_NAME_LENGTH = 60;

/** A short name for labels and notices: host and path, without secrets. */
export function shortName(text: string): string {
  const url = parse(text);
  const whole = url ? url.host + url.tail.replace(/[?#].*/s, "") : revealControlCharacters(text);
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
      credentials: revealControlCharacters(credentials),
      host,
      tail: revealControlCharacters(text.slice(start.length)),
    };
  } catch {
    return undefined;
  }
}

function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

/** Reads a typed line as a feed URL: apps share `feed:` and `pcast:` links, and people omit `https://`. */
export function parseLine(line: string): string {
  const text = line.trim().replace(/^<([^<>]*)>$/, "$1");
  const url = text.replace(/^(feed|pcast|itpc|podcast|rss):(\/\/)?(?=[^/])/i, (_all, _scheme, slashes) =>
    slashes ? "https://" : "",
  );
  const [, host = ""] = /^([^\s/:@]+)(:\d+)?(\/\S*)?$/.exec(url) ?? [];
  return host.slice(1, -1).includes(".") ? `https://${url}` : url;
}
