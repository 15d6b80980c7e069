import { type Entry, InvalidOpml } from "./entry.ts";
import { createDecoder, MAX_ENTRIES, markDuplicates, readOpml, toHttpUrl, truncateUrl } from "./read.ts";

/** The opml element must start within this many bytes. */
const MAX_PREAMBLE = 64 * 1024;
const URL_START = /^(?:https?|feed|itpc|pcast|podcast|rss):/i;

/** Reads the feeds from an OPML file, or from a text file with one feed URL per line. */
export function readFeedFile(bytes: Uint8Array): Entry[] {
  const start = createDecoder(bytes).decode(bytes.subarray(0, MAX_PREAMBLE), { stream: true });
  if (/^\s*</.test(start) || /<opml[\s>]/i.test(start)) return readOpml(bytes);
  return readUrlList(createDecoder(bytes).decode(bytes));
}

/** Skips blank lines and lines that start with `#`. All others are entries, even invalid ones, which the caller reports. */
function readUrlList(text: string): Entry[] {
  const entries: Entry[] = [];
  let isList = false;
  let line = 0;
  for (let start = 0, end: number; start <= text.length; start = end + 1) {
    const lineBreak = text.indexOf("\n", start);
    end = lineBreak === -1 ? text.length : lineBreak;
    line += 1;
    const url = text.slice(start, end).trim();
    if (url === "" || url.startsWith("#")) continue;
    isList ||= URL_START.test(url);
    if (entries.length === MAX_ENTRIES) {
      if (!isList) break;
      throw new InvalidOpml(`The file contains more than ${MAX_ENTRIES} feeds`);
    }
    entries.push({ feedUrl: truncateUrl(toHttpUrl(url)), line });
  }
  if (!isList || text.includes("\0")) throw new InvalidOpml("This is neither an OPML file nor a list of feed URLs");
  return markDuplicates(entries);
}
