import { isolate, revealControlCharacters } from "./control-characters.ts";

/** An address as it can be shown without misleading anyone. */
export interface Shown {
  /** As DNS has it: letters that only look like others are seen for what they are. */
  readonly host: string;
  readonly scheme: string;
  /** Name and password; not to be shown unless asked for. */
  readonly secret: string;
  /** The host and all that follows. */
  readonly rest: string;
}

/** Room for the longest host of DNS and a port. Browsers take long to read much longer hosts. */
const MAX_PLACE = 300;

export function readAddress(text: string): Shown {
  const [start = "", scheme = "", place = ""] = /^(https?:\/\/)([^/?#\\]*)/i.exec(text) ?? [];
  const credentials = place.slice(0, place.lastIndexOf("@") + 1);
  const secret = revealControlCharacters(credentials);
  const authority = place.slice(credentials.length);
  const url = authority.length > MAX_PLACE ? null : parse(`${scheme}${authority}/`);
  if (url === null) {
    const shown = revealControlCharacters(text);
    return { host: shown, scheme: "", secret: "", rest: shown };
  }
  const host = url.hostname.replace(/^www\./, "");
  return {
    host,
    scheme: `${url.protocol}//`,
    secret,
    rest: url.host + revealControlCharacters(text.slice(start.length)),
  };
}

const NAME_LENGTH = 60;

/** What tells a feed from the others, in few words and without its secrets. */
export function shorten(text: string): string {
  const { rest } = readAddress(text);
  const name = withoutTrailingSlashes(rest.replace(/[?#].*/s, "").replace(/^www\./, ""));
  return isolate(name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH)}…` : name);
}

function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === "/") end -= 1;
  return text.slice(0, end);
}

function parse(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** A line of text, as the address that was meant: apps hand out `feed:` and `pcast:`, and people leave `https://` out. */
export function readLine(line: string): string {
  const text = line.trim().replace(/^<([^<>]*)>$/, "$1");
  const known = text.replace(/^(feed|pcast|itpc|podcast|rss):(\/\/)?(?=[^/])/i, (_all, _name, slashes) =>
    slashes ? "https://" : "",
  );
  const [, host = ""] = /^([^\s/:@]+)(:\d+)?(\/\S*)?$/.exec(known) ?? [];
  return host.slice(1, -1).includes(".") ? `https://${known}` : known;
}
