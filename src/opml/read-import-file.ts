import { type Entry, InvalidOpml } from "./entry.ts";
import {
  createDecoder,
  FEED_URL_START,
  MAX_ENTRIES,
  MAX_PREAMBLE,
  mergeDuplicates,
  readOpml,
  replaceFeedScheme,
  truncateUrl,
} from "./read.ts";

/** Reads the feeds from an OPML file, or from a text file with one feed URL per line. */
export function readImportFile(bytes: Uint8Array): Entry[] {
  const start = createDecoder(bytes).decode(bytes.subarray(0, MAX_PREAMBLE), { stream: true });
  if (/^\s*</.test(start) || /<opml[\s>]/i.test(start)) return readOpml(bytes);
  return readUrlList(createDecoder(bytes).decode(bytes));
}

/** Skips blank lines and lines that start with `#`. All others are entries, even invalid ones, which the caller reports. */
function readUrlList(text: string): Entry[] {
  const entries: Entry[] = [];
  let hasUrl = false;
  let line = 0;
  for (let start = 0, end: number; start <= text.length; start = end + 1) {
    const lineBreak = text.indexOf("\n", start);
    end = lineBreak === -1 ? text.length : lineBreak;
    line += 1;
    const url = text.slice(start, end).trim();
    if (url === "" || url.startsWith("#")) continue;
    hasUrl ||= FEED_URL_START.test(url);
    if (entries.length === MAX_ENTRIES) {
      if (!hasUrl) break; // Not a list of URLs: rejected below.
      throw new InvalidOpml(`The file contains more than ${MAX_ENTRIES} feeds`);
    }
    entries.push({ feedUrl: truncateUrl(replaceFeedScheme(url)), line });
  }
  // A NUL character means a binary file.
  if (!hasUrl || text.includes("\0")) throw new InvalidOpml("This is neither an OPML file nor a list of feed URLs");
  return mergeDuplicates(entries);
}
