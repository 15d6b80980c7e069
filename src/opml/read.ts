import { isUtf8 } from "node:buffer";
import { type Opml, ParseError, parseOpml } from "feedsmith";
import { type Entry, NotOpml } from "./entry.ts";

/** Most feeds that one file may name. */
export const MAX_ENTRIES = 50_000;

/** Where a file must have begun. */
const START = 64 * 1024;

/** Other names for http, by which programs on a desktop asked to be the one that opens a feed. */
const FEED_SCHEME = /^(?:feed|itpc|pcast|podcast|rss):(?:\/\/)?/i;

/**
 * Every feed of a file, in its order, from folders and from below other feeds. What is no web address is among them: it
 * is for whoever takes them in to refuse it, so that nothing is passed over in silence.
 */
export function readOpml(bytes: Uint8Array): Entry[] {
  const text = decode(bytes);
  // Before the parser works its way through megabytes of something else.
  if (!/<opml[\s/>]/i.test(text.slice(0, START))) throw new NotOpml("This is not an OPML file");
  let outlines: readonly Outline[];
  try {
    outlines = parseOpml(text).body?.outlines ?? [];
  } catch (error) {
    // A file without any outline is an empty list, which the parser takes for none.
    if (!(error instanceof ParseError)) throw new NotOpml("This is not an OPML file");
    outlines = [];
  }
  const entries: Entry[] = [];
  // A stack of our own, from the last to the first: a file may be nested deeper than functions can be.
  const waiting = outlines.toReversed();
  for (let outline = waiting.pop(); outline !== undefined; outline = waiting.pop()) {
    const address = outline.xmlUrl ?? (outline.type === "rss" ? outline.url : undefined);
    if (address !== undefined) {
      if (entries.length === MAX_ENTRIES) throw new NotOpml(`The file names more than ${MAX_ENTRIES} feeds`);
      entries.push({ feedUrl: toWebAddress(address), title: outline.title ?? outline.text });
    }
    for (const inner of outline.outlines?.toReversed() ?? []) waiting.push(inner);
  }
  return entries;
}

type Outline = Opml.Outline<string>;

/** `feed://host/x` means `http://host/x`, and `feed:https://host/x` what comes after. */
function toWebAddress(address: string): string {
  const rest = address.replace(FEED_SCHEME, "");
  return rest === address || /^https?:/i.test(rest) ? rest : `http://${rest}`;
}

/** By the byte order mark, else by what the file says of itself, else UTF-8; else what Windows wrote for decades. */
function decode(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 200)).toString("latin1");
  const label = /^(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)["']/i.exec(start)?.[1];
  if (label !== undefined && !/^utf-?(8|16)$/i.test(label)) {
    try {
      return new TextDecoder(label).decode(bytes);
    } catch {
      throw new NotOpml(`The file is in an encoding that is not known here (${label})`);
    }
  }
  return new TextDecoder(isUtf8(bytes) ? "utf-8" : "windows-1252").decode(bytes);
}
