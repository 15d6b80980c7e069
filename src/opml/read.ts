import { isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { decodeHTMLStrict } from "entities/decode";
import { Tokenizer, type TokenizerCallbacks } from "htmlparser2";
import { cleanFolder, cleanFolders, cleanTitle, MAX_FOLDER_LEVELS, MAX_FOLDERS } from "../lists/details.ts";
import { MAX_FEED_URL, readFeedUrl } from "../lists/feed-url.ts";
import { type Entry, InvalidOpml } from "./entry.ts";

/** Maximum number of entries in one file. */
export const MAX_ENTRIES = 50_000;

/** How much is decoded at a time, so that the whole text is never in memory. */
const CHUNK_BYTES = 64 * 1024;

/** The opml element must start within this many bytes. */
export const MAX_PREAMBLE = 64 * 1024;

/**
 * Maximum length of an attribute value before entities are decoded: enough for 20 folder paths of 300 characters each,
 * even if every character is written as `&quot;`.
 */
const MAX_RAW_VALUE = 40 * 1024;

/** The attributes that are read, in lower case. */
const ATTRIBUTES = new Set([
  "xmlurl",
  "htmlurl",
  "url",
  "type",
  "title",
  "text",
  "category",
  "subscribed",
  "overcastid",
]);
/** Length of the longest attribute name that is read. The element names that are read are shorter. */
const MAX_MARKUP_NAME_LENGTH = Math.max(...[...ATTRIBUTES].map((name) => name.length));

/** Several apps put all feeds into an outline with this name. */
const WRAPPER = "feeds";

/** Schemes that desktop programs have registered for feeds. */
const FEED_SCHEME = /^(?:feed|itpc|pcast|podcast|rss):(?:\/\/)?/i;
export const FEED_URL_START = /^(?:https?|feed|itpc|pcast|podcast|rss):/i;

/**
 * Reads every feed in an OPML file, in document order. The outlines around a feed form one folder path, and each of the
 * feed's categories is another. If a feed has several entries, the first one gets the folders of all of them. Entries
 * that cannot be imported are included, so that the caller can report them. Memory use grows only with the number of
 * entries, not with the number of other elements, attributes or levels.
 */
export function readOpml(bytes: Uint8Array, chunkBytes = CHUNK_BYTES): Entry[] {
  const decoder = createDecoder(bytes);
  const outlines = new OutlineReader();
  for (let start = 0; start < bytes.length; start += chunkBytes) {
    outlines.write(decoder.decode(bytes.subarray(start, start + chunkBytes), { stream: true }));
    if (start + chunkBytes >= MAX_PREAMBLE) outlines.assertOpml();
  }
  outlines.write(decoder.decode());
  return mergeDuplicates(toEntries(outlines.end()));
}

/** A feed, or an outline that looks like a feed but has no URL: its `feedUrl` is "". */
interface FeedOutline {
  readonly feedUrl: string;
  readonly title: string | undefined;
  /** The names of the folders around it, outermost first. */
  readonly parents: readonly string[];
  readonly categories: readonly string[];
  readonly line: number;
  /** From the attribute `subscribed` in Overcast's exports; undefined without it. */
  readonly isSubscribed: boolean | undefined;
  readonly hasOvercastId: boolean;
}

interface OpenFolder {
  readonly level: number;
  readonly name: string;
}

/**
 * Collects the feeds in the outlines. Uses htmlparser2's tokenizer but not its parser: the parser keeps every attribute
 * value in full, and its stack of open elements takes quadratic time in deeply nested files. This class remembers only
 * as many levels of folders as it can use. Unclosed and misnested tags do no harm.
 */
class OutlineReader implements TokenizerCallbacks {
  // Entities are decoded only after a value is complete and its length has been checked.
  readonly #tokenizer = new Tokenizer({ xmlMode: true, decodeEntities: false }, this);
  readonly #feedOutlines: FeedOutline[] = [];
  #isOpml = false;
  /** The text being tokenized, and its position in the decoded file. */
  #chunk = "";
  #offset = 0;
  /** The last characters before the chunk: a name may start there and continue in the chunk. */
  #tail = "";
  /** The names of the last start tag and of its last attribute, in lower case. */
  #tag = "";
  #attribute = "";
  /** Those attributes of the last start tag that are in `ATTRIBUTES`. */
  readonly #values = new Map<string, string>();
  /** Number of open outlines. */
  #level = 0;
  /** The open outlines that are folders, with the level of each; outermost first. */
  #folders: readonly OpenFolder[] = [];
  /** The names of these folders. */
  #parents: readonly string[] = [];
  /** The line being read. */
  #line = 1;
  /** Position of the next line break in the decoded file; infinity if the rest of the chunk has none. */
  #lineBreak = Number.POSITIVE_INFINITY;
  /** The line of the tag that is being read; outside tags, the line on which the last tag or text ended. */
  #markupLine = 1;
  /**
   * The line of the last start tag, if it looks like a feed but has no URL. Reported only if nothing is nested in it.
   */
  #lineOfFeedWithoutUrl: number | undefined;
  #hasSubscribedFeed = false;

  write(chunk: string): void {
    this.#advanceLineTo(this.#offset + this.#chunk.length);
    this.#tail = (this.#tail + this.#chunk.slice(-MAX_MARKUP_NAME_LENGTH)).slice(-MAX_MARKUP_NAME_LENGTH);
    this.#offset += this.#chunk.length;
    this.#chunk = chunk;
    this.#findLineBreak(this.#offset);
    this.#tokenizer.write(chunk);
  }

  assertOpml(): void {
    if (!this.#isOpml) throw new InvalidOpml("This is not an OPML file");
  }

  end(): readonly FeedOutline[] {
    this.assertOpml();
    // Appends a tag, which the tokenizer reports unless the file ends within a tag, attribute value, comment or the
    // like.
    this.#tag = "";
    const line = this.#markupLine;
    this.write("<end>");
    if (this.#tag !== "end")
      throw new InvalidOpml(
        `The file is incomplete: it ends within a tag or comment that starts on line ${line}`,
        line,
      );
    // Overcast may omit `subscribed` on feeds that the user does not subscribe to. So if any feed is marked as
    // subscribed, feeds with an `overcastId` but without `subscribed` count as unsubscribed.
    if (!this.#hasSubscribedFeed) return this.#feedOutlines;
    return this.#feedOutlines.map((outline) => ({
      ...outline,
      isSubscribed: outline.isSubscribed ?? !outline.hasOvercastId,
    }));
  }

  onopentagname(start: number, end: number): void {
    this.#markupLine = this.#advanceLineTo(start);
    this.#lineOfFeedWithoutUrl = undefined;
    this.#tag = this.#readMarkupName(start, end);
    this.#values.clear();
    if (this.#tag === "opml") this.#isOpml = true;
  }

  onattribname(start: number, end: number): void {
    this.#attribute = this.#tag === "outline" ? this.#readMarkupName(start, end) : "";
    if (ATTRIBUTES.has(this.#attribute)) this.#values.set(this.#attribute, "");
  }

  /** Called with each part of a value. A part never spans two chunks. */
  onattribdata(start: number, end: number): void {
    const value = this.#values.get(this.#attribute);
    if (value === undefined || value.length > MAX_RAW_VALUE) return;
    const data = this.#chunk.slice(start - this.#offset, end - this.#offset);
    this.#values.set(this.#attribute, (value + data).trimStart().slice(0, MAX_RAW_VALUE + 1));
  }

  onopentagend(end: number): void {
    if (this.#tag === "outline") this.#openOutline();
    this.#markupLine = this.#advanceLineTo(end);
  }

  #openOutline(): void {
    this.#level += 1;
    if (this.#addFeedIfAny()) return;
    this.#lineOfFeedWithoutUrl = this.#looksLikeFeed() ? this.#markupLine : undefined;
    const name = this.#readOutlineName();
    // Keeps one more level than can be used, since the outermost may be a wrapper.
    if (name !== undefined && this.#folders.length <= MAX_FOLDER_LEVELS)
      this.#setFolders([...this.#folders, { level: this.#level, name: copy(name) }]);
  }

  onselfclosingtag(end: number): void {
    if (this.#tag === "outline" && !this.#addFeedIfAny() && this.#looksLikeFeed()) this.#add("");
    this.#markupLine = this.#advanceLineTo(end);
  }

  onclosetag(start: number, end: number): void {
    this.#markupLine = this.#advanceLineTo(start);
    if (this.#readMarkupName(start, end) !== "outline" || this.#level === 0) return;
    if (this.#lineOfFeedWithoutUrl !== undefined) this.#add("", this.#lineOfFeedWithoutUrl);
    this.#lineOfFeedWithoutUrl = undefined;
    this.#level -= 1;
    if ((this.#folders.at(-1)?.level ?? 0) > this.#level) this.#setFolders(this.#folders.slice(0, -1));
  }

  onattribend(): void {}
  onattribentity(): void {}
  onend(): void {}
  ontextentity(): void {}
  ontext(_start: number, end: number): void {
    this.#markupLine = this.#advanceLineTo(end);
  }
  readonly oncdata = this.ontext;
  readonly oncomment = this.ontext;
  readonly ondeclaration = this.ontext;
  readonly onprocessinginstruction = this.ontext;

  #setFolders(folders: readonly OpenFolder[]): void {
    this.#folders = folders;
    this.#parents = folders.map(({ name }) => name);
  }

  /** Adds the feed that the last start tag describes, if any, and returns whether it did. */
  #addFeedIfAny(): boolean {
    if (!this.#isOpml) return false;
    const feedUrl =
      this.#readValue("xmlurl") ?? (/^rss$/i.test(this.#readValue("type") ?? "") ? this.#readValue("url") : undefined);
    if (feedUrl === undefined) return false;
    this.#add(feedUrl);
    return true;
  }

  /** Whether an outline without a URL has attributes that only feeds have. */
  #looksLikeFeed(): boolean {
    if (!this.#isOpml) return false;
    const hasFeedType = /^(?:rss|atom)$/i.test(this.#readValue("type") ?? "");
    return hasFeedType || this.#values.has("xmlurl") || this.#readValue("htmlurl") !== undefined;
  }

  #add(feedUrl: string, line = this.#markupLine): void {
    if (this.#feedOutlines.length === MAX_ENTRIES)
      throw new InvalidOpml(`The file contains more than ${MAX_ENTRIES} feeds`);
    const title = this.#readOutlineName();
    const cleanedTitle = title === undefined || title === feedUrl ? undefined : cleanTitle(title);
    const subscribed = this.#readValue("subscribed");
    if (subscribed === "1") this.#hasSubscribedFeed = true;
    this.#feedOutlines.push({
      feedUrl: truncateUrl(replaceFeedScheme(feedUrl)),
      title: cleanedTitle && copy(cleanedTitle),
      parents: this.#parents,
      categories: readCategories(this.#readValue("category") ?? ""),
      line,
      isSubscribed: subscribed === undefined ? undefined : subscribed !== "0",
      hasOvercastId: this.#values.has("overcastid"),
    });
  }

  /**
   * Counts the line breaks before a position in the file and returns the line number at that position. The position
   * must not be after the end of the current chunk.
   */
  #advanceLineTo(position: number): number {
    while (this.#lineBreak < position) {
      this.#line += 1;
      this.#findLineBreak(this.#lineBreak + 1);
    }
    return this.#line;
  }

  #findLineBreak(from: number): void {
    const at = this.#chunk.indexOf("\n", from - this.#offset);
    this.#lineBreak = at === -1 ? Number.POSITIVE_INFINITY : this.#offset + at;
  }

  /** Prefers `title`, because gPodder writes the podcast's description to `text`. */
  #readOutlineName(): string | undefined {
    return this.#readValue("title") ?? this.#readValue("text");
  }

  /**
   * The name of an element or attribute. It may start in an earlier chunk. Names that are too long to matter become "".
   */
  #readMarkupName(start: number, end: number): string {
    if (end - start > MAX_MARKUP_NAME_LENGTH) return "";
    const at = start - this.#offset;
    const before = at < 0 ? this.#tail.slice(at) : "";
    return (before + this.#chunk.slice(Math.max(0, at), end - this.#offset)).toLowerCase();
  }

  #readValue(attribute: string): string | undefined {
    const raw = this.#values.get(attribute);
    if (raw === undefined) return undefined;
    // A value that was truncated stays undecoded: decoding could make it short enough for a valid URL, although its end
    // is missing.
    if (raw.length > MAX_RAW_VALUE) return raw;
    return decodeHTMLStrict(raw.replaceAll(/\r\n?|[\n\t]/g, " ")).trim() || undefined;
  }
}

/** Folder paths, separated by commas. A comma or percent sign within a path is percent-encoded. */
function readCategories(text: string): string[] {
  return text.split(",", 2 * MAX_FOLDERS).flatMap((path) => {
    const names = path.replaceAll(/%(25|2C)/gi, (code) => decodeURIComponent(code)).split("/");
    const folder = cleanFolder(names.map((name) => name.trim()));
    return folder === undefined ? [] : [copy(folder)];
  });
}

function toEntries(outlines: readonly FeedOutline[]): Entry[] {
  const feeds = outlines.filter(({ feedUrl }) => feedUrl !== "");
  const isWrapped = feeds.every(({ parents }) => parents[0]?.toLowerCase() === WRAPPER);
  return outlines.map(({ feedUrl, title, parents, categories, line, isSubscribed }) => {
    const path = cleanFolder(parents);
    // Our exports also list each folder path as a category. If the path is one of the feed's categories, the outermost
    // outline is a folder, even if it has the wrapper's name.
    const outermostIsFolder = !isWrapped || (path !== undefined && categories.includes(path));
    const folder = outermostIsFolder ? path : cleanFolder(parents.slice(1));
    const folders = cleanFolders(folder === undefined ? categories : [folder, ...categories], title);
    return {
      feedUrl,
      line,
      ...(title === undefined ? {} : { title }),
      ...(folders.length === 0 ? {} : { folders }),
      ...(isSubscribed === false ? { skip: "unsubscribed-in-file" } : {}),
    };
  });
}

/**
 * Marks valid entries as duplicates if their feed appears earlier in the file. The first entry for a feed gets the
 * folders of the others and, if it has no title, the first title among them.
 */
export function mergeDuplicates(entries: readonly Entry[]): Entry[] {
  const first = new Map<string, number>();
  const marked = [...entries];
  for (const [index, entry] of entries.entries()) {
    const parsed = readFeedUrl(entry.feedUrl);
    if (parsed.kind === "invalid" || entry.skip !== undefined) continue;
    const at = first.get(parsed.normalizedUrl);
    if (at === undefined) {
      first.set(parsed.normalizedUrl, index);
      continue;
    }
    const { folders = [], ...rest } = marked[at] as Entry;
    const merged = { ...entry, ...rest };
    const all = cleanFolders([...folders, ...(entry.folders ?? [])], merged.title);
    marked[at] = { ...merged, ...(all.length === 0 ? {} : { folders: all }) };
    marked[index] = { ...entry, skip: "duplicate-in-file" };
  }
  return marked;
}

/** Truncates an overlong URL to one character over the limit, so that it is still rejected. */
export function truncateUrl(url: string): string {
  return truncate(url, MAX_FEED_URL + 1);
}

/** Truncates to `max` code points. */
function truncate(text: string, max: number): string {
  if (text.length <= max) return copy(text);
  const characters = Array.from(text.slice(0, 2 * max));
  return characters.slice(0, max).join("");
}

/** Copies a substring, because in V8 a substring keeps the whole string alive: here, a chunk of the file. */
function copy(text: string): string {
  return Buffer.from(text).toString();
}

/** `feed://host/x` means `http://host/x`, and `feed:https://host/x` means `https://host/x`. */
export function replaceFeedScheme(url: string): string {
  const rest = url.replace(FEED_SCHEME, "");
  return rest === url || /^https?:/i.test(rest) ? rest : `http://${rest}`;
}

/**
 * Uses the first encoding that applies: UTF-16 if the file starts with a UTF-16 byte order mark; the declared encoding,
 * unless it is UTF-8 or UTF-16; UTF-8 if the file is valid UTF-8; Windows-1252.
 */
export function createDecoder(bytes: Uint8Array): TextDecoder {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le");
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be");
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 200)).toString("latin1");
  const label = /^(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)["']/i.exec(start)?.[1];
  if (label !== undefined && !/^utf-?(8|16)$/i.test(label)) {
    try {
      return new TextDecoder(label);
    } catch {
      throw new InvalidOpml(`Unsupported file encoding: ${label}`);
    }
  }
  return new TextDecoder(isUtf8(bytes) ? "utf-8" : "windows-1252");
}
