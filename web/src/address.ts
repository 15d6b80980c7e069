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

export function readAddress(text: string): Shown {
  const url = parse(text);
  const authority = /^[a-z][a-z\d+.-]*:\/\/([^/?#\\]*)/i.exec(text);
  if (url === null || authority === null || !/^https?:$/.test(url.protocol)) {
    const shown = revealControlCharacters(text);
    return { host: shown, scheme: "", secret: "", rest: shown };
  }
  const [start, place = ""] = authority;
  const secret = revealControlCharacters(place.slice(0, place.lastIndexOf("@") + 1));
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
  const name = rest.replace(/[?#].*/s, "").replace(/^www\.|\/+$/g, "");
  return isolate(name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH)}…` : name);
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
  return /^[^\s/:@]+\.[^\s/:@]+(:\d+)?(\/\S*)?$/.test(known) ? `https://${known}` : known;
}
