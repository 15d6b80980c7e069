import { isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { decodeHTMLStrict } from "entities/decode";
import { Tokenizer, type TokenizerCallbacks } from "htmlparser2";
import { MAX_FEED_URL } from "../feed-url.ts";
import { type Entry, NotOpml } from "./entry.ts";

/** Maximum number of feeds in one file. */
export const MAX_ENTRIES = 50_000;

/** Maximum length of a title in code points; longer titles are cut. */
export const MAX_TITLE = 300;

const PIECE_BYTES = 64 * 1024;

/** The opml element must start within this many bytes. */
const MAX_PREAMBLE = 64 * 1024;

/** Maximum length of an attribute value before entities are decoded. */
const MAX_RAW_VALUE = 32 * 1024;

const ATTRIBUTES = new Set(["xmlurl", "url", "type", "title", "text"]);
const LONGEST_NAME = "outline".length;

/** Schemes that desktop programs registered to open feeds. */
const FEED_SCHEME = /^(?:feed|itpc|pcast|podcast|rss):(?:\/\/)?/i;

/**
 * Reads every feed of an OPML file in document order, whatever its folder. Entries whose URL is not a web address are
 * included, so that the caller can report them. Memory does not grow with the number of elements, attributes or levels;
 * only the entries are kept.
 */
export function readOpml(bytes: Uint8Array, pieceBytes = PIECE_BYTES): Entry[] {
  const decoder = createDecoder(bytes);
  const outlines = new OutlineReader();
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    outlines.write(decoder.decode(bytes.subarray(start, start + pieceBytes), { stream: true }));
    if (start + pieceBytes >= MAX_PREAMBLE) outlines.assertOpml();
  }
  outlines.write(decoder.decode());
  return outlines.end();
}

/**
 * Uses the tokenizer alone: the parser above it keeps a stack of open elements, which costs quadratic time in deep files,
 * and every attribute value in full. Nesting does not matter here, so unclosed and misnested tags are no problem.
 */
class OutlineReader implements TokenizerCallbacks {
  // Entities are decoded once a value is complete and its length bounded.
  readonly #tokenizer = new Tokenizer({ xmlMode: true, decodeEntities: false }, this);
  readonly #entries: Entry[] = [];
  #isOpml = false;
  /** The text being tokenized, its position in the file, and the end of the text before it. */
  #piece = "";
  #offset = 0;
  #tail = "";
  /** The last start tag and attribute name, in lower case. */
  #tag = "";
  #attribute = "";
  readonly #values = new Map<string, string>();

  write(piece: string): void {
    this.#tail = (this.#tail + this.#piece.slice(-LONGEST_NAME)).slice(-LONGEST_NAME);
    this.#offset += this.#piece.length;
    this.#piece = piece;
    this.#tokenizer.write(piece);
  }

  assertOpml(): void {
    if (!this.#isOpml) throw new NotOpml("This is not an OPML file");
  }

  end(): Entry[] {
    this.assertOpml();
    // The tokenizer reports this tag only if the file does not end within a tag, attribute value, comment or the like.
    this.#tag = "";
    this.write("<end>");
    if (this.#tag !== "end") throw new NotOpml("The file is incomplete: it ends within a tag or a comment");
    return this.#entries;
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#readName(start, end);
    if (this.#values.size > 0) this.#values.clear();
    if (this.#tag === "opml") this.#isOpml = true;
  }

  onattribname(start: number, end: number): void {
    this.#attribute = this.#tag === "outline" ? this.#readName(start, end) : "";
    if (ATTRIBUTES.has(this.#attribute)) this.#values.set(this.#attribute, "");
  }

  /** Called once per value and piece, never for text of an earlier piece. */
  onattribdata(start: number, end: number): void {
    const value = this.#values.get(this.#attribute);
    if (value === undefined || value.length > MAX_RAW_VALUE) return;
    const data = this.#piece.slice(start - this.#offset, end - this.#offset);
    this.#values.set(this.#attribute, (value + data).trimStart().slice(0, MAX_RAW_VALUE + 1));
  }

  onopentagend(): void {
    if (this.#tag !== "outline" || !this.#isOpml) return;
    const feedUrl =
      this.#readValue("xmlurl") ?? (this.#readValue("type") === "rss" ? this.#readValue("url") : undefined);
    if (feedUrl === undefined) return;
    if (this.#entries.length === MAX_ENTRIES) throw new NotOpml(`The file contains more than ${MAX_ENTRIES} feeds`);
    const title = this.#readValue("title") ?? this.#readValue("text");
    this.#entries.push({
      // The importer rejects the URL as too long even if it is cut here.
      feedUrl: cut(toWebAddress(feedUrl), MAX_FEED_URL + 1),
      ...(title === undefined ? {} : { title: cut(title, MAX_TITLE) }),
    });
  }

  onselfclosingtag(): void {
    this.onopentagend();
  }

  onattribend(): void {}
  onattribentity(): void {}
  oncdata(): void {}
  onclosetag(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onprocessinginstruction(): void {}
  ontext(): void {}
  ontextentity(): void {}

  /** A name may start in the piece before. Those that are too long to matter are returned as an empty string. */
  #readName(start: number, end: number): string {
    if (end - start > LONGEST_NAME) return "";
    const at = start - this.#offset;
    const before = at < 0 ? this.#tail.slice(at) : "";
    return (before + this.#piece.slice(Math.max(0, at), end - this.#offset)).toLowerCase();
  }

  #readValue(name: string): string | undefined {
    const raw = this.#values.get(name);
    if (raw === undefined) return undefined;
    // A value that was cut stays undecoded: a URL must not become valid because its end is missing.
    if (raw.length > MAX_RAW_VALUE) return raw;
    return decodeHTMLStrict(raw.replaceAll(/\r\n?|[\n\t]/g, " ")).trim() || undefined;
  }
}

/** Cuts at a number of code points, never within a surrogate pair. */
function cut(text: string, max: number): string {
  if (text.length <= max) return copy(text);
  const characters = Array.from(text.slice(0, 2 * max));
  return characters.slice(0, max).join("");
}

/** In V8 a substring keeps the string that it was taken from: here, a whole piece of the file. */
function copy(text: string): string {
  return Buffer.from(text).toString();
}

/** `feed://host/x` means `http://host/x`, and `feed:https://host/x` means `https://host/x`. */
function toWebAddress(url: string): string {
  const rest = url.replace(FEED_SCHEME, "");
  return rest === url || /^https?:/i.test(rest) ? rest : `http://${rest}`;
}

/** Encoding: byte order mark, else XML declaration, else UTF-8 if valid, else Windows-1252. */
function createDecoder(bytes: Uint8Array): TextDecoder {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le");
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be");
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 200)).toString("latin1");
  const label = /^(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)["']/i.exec(start)?.[1];
  if (label !== undefined && !/^utf-?(8|16)$/i.test(label)) {
    try {
      return new TextDecoder(label);
    } catch {
      throw new NotOpml(`Unsupported file encoding: ${label}`);
    }
  }
  return new TextDecoder(isUtf8(bytes) ? "utf-8" : "windows-1252");
}
