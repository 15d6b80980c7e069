import { decodeXML } from "entities/decode";
import { Parser } from "htmlparser2";
import type { EpisodeFinder } from "./episodes.ts";
import type { FeedMetadata } from "./feed.ts";
import { MAX_RAW_TEXT, toGuid, toLanguage, toPlainText, toWebUrl } from "./feed-text.ts";
import type { LatestEpisode } from "./latest-episode.ts";
import { XmlEpisode } from "./xml-episode.ts";

/** Real feeds do not nest deeper, and the parser's time is quadratic in the depth. */
const MAX_DEPTH = 64;
/** Several times what real feeds of the maximum size have. */
const MAX_ELEMENTS = 100_000;
/** The same for feeds that are read for their episodes. */
const MAX_EPISODE_ELEMENTS = 1_000_000;
/** The root element must start within this many characters; PHP warnings may come before it. */
const MAX_PREAMBLE = 64 * 1024;
/** Longest comment, CDATA section or tag: the parser keeps these in memory until they end. */
const MAX_TOKEN = 1024 * 1024;
/**
 * Few feeds have their artwork after the items, so the reader looks for it only within this many characters after the
 * first item.
 */
const MAX_ITEMS_LENGTH = 256 * 1024;
const MAX_PREFIXES = 100;
const MAX_NAME = 100;

type Field = keyof FeedMetadata;
/** A field, and the rank of its source: the lowest rank wins. */
type RankedField = readonly [field: Field, rank: number];

/** By path below the channel or feed element. */
const TEXTS = new Map<string, RankedField>([
  ["title", ["title", 1]],
  ["itunes:title", ["title", 2]],
  ["itunes:author", ["author", 1]],
  ["author/name", ["author", 2]],
  ["dc:creator", ["author", 3]],
  ["itunes:owner/itunes:name", ["author", 4]],
  ["description", ["description", 1]],
  ["subtitle", ["description", 1]],
  ["itunes:summary", ["description", 2]],
  ["itunes:subtitle", ["description", 3]],
  ["link", ["homepageUrl", 1]],
  ["language", ["language", 1]],
  ["dc:language", ["language", 2]],
  ["podcast:guid", ["podcastGuid", 1]],
  ["itunes:new-feed-url", ["newFeedUrl", 1]],
  ["itunes:block", ["block", 1]],
  ["image/url", ["artworkUrl", 3]],
  ["logo", ["artworkUrl", 4]],
  ["icon", ["artworkUrl", 5]],
]);

/** The same for values of the attribute `href`. */
const LINKS = new Map<string, RankedField>([
  ["itunes:image", ["artworkUrl", 1]],
  ["podcast:image", ["artworkUrl", 2]],
]);

const NAMESPACES: readonly (readonly [uri: RegExp, prefix: string])[] = [
  [/^https?:\/\/www\.itunes\.com\/dtds\/podcast-1\.0\.dtd/i, "itunes"],
  [/podcastindex\.org\/namespace|podcast-namespace/i, "podcast"],
  [/^https?:\/\/purl\.org\/dc\/elements/i, "dc"],
  [/^https?:\/\/www\.w3\.org\/2005\/atom/i, "atom"],
  [/^https?:\/\/purl\.org\/rss\/1\.0/i, ""],
];

/** A document with one of these outside the root element of a feed is an HTML page. */
const HTML_ELEMENTS = new Set(["html", "head", "body", "script", "meta"]);

/** The element whose text is being collected. */
interface CollectedElement {
  readonly target: RankedField;
  readonly depth: number;
  /** With entities; nested elements as tags. */
  raw: string;
}

/**
 * Reads the head of an RSS, RDF or Atom feed. Only children of the channel or feed element count, not those of items. It
 * stops in the middle of a chunk as soon as an item begins and title and artwork are known. Without artwork it continues
 * for a while, without a title to the end. If it looks for episodes or the latest one, it continues until all are found.
 */
export class XmlFeedReader {
  readonly #base: URL;
  readonly #episodes: EpisodeFinder | undefined;
  readonly #latest: LatestEpisode | undefined;
  readonly #parser: Parser;
  /** Names of the open elements, outermost first. */
  readonly #path: string[] = [];
  readonly #prefixes = new Map<string, string>();
  readonly #values = new Map<Field, { readonly value: string; readonly rank: number }>();
  #root: "rss" | "rdf" | "feed" | undefined;
  #hasChannel = false;
  /** Number of open elements around the root element: unclosed tags in PHP warnings. */
  #outside = 0;
  #itemDepth: number | undefined;
  /** The item that is being read, if episodes or the latest one are looked for. */
  #episode: XmlEpisode | undefined;
  /** Nothing more is needed besides episodes. */
  #isHeadDone = false;
  /** Character offset at which the first item starts. */
  #firstItemOffset: number | undefined;
  #collected: CollectedElement | undefined;
  #isCdata = false;
  #length = 0;
  #elements = 0;
  #isDone = false;
  #isRejected = false;
  /** Attributes of the Atom link that is being read. */
  #link: { rel?: string; href?: string } | undefined;

  constructor(base: URL, episodes?: EpisodeFinder, latest?: LatestEpisode) {
    this.#base = base;
    this.#episodes = episodes;
    this.#latest = latest;
    this.#parser = new Parser(
      {
        onopentagname: (name) => this.#isDone || this.#onOpen(name),
        onattribute: (name, value) => this.#isDone || this.#onAttribute(name, value),
        ontext: (text) => this.#isDone || this.#onText(text),
        oncdatastart: () => {
          this.#isCdata = true;
        },
        oncdataend: () => {
          this.#isCdata = false;
        },
        onclosetag: () => this.#isDone || this.#onClose(),
      },
      // Entities are decoded only in the few values that are kept.
      { xmlMode: true, decodeEntities: false },
    );
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  get isHeadDone(): boolean {
    return this.#isDone || this.#isHeadDone;
  }

  write(text: string): void {
    if (this.#isDone) return;
    this.#length += text.length;
    this.#parser.write(text);
    if (this.#root === undefined && this.#length > MAX_PREAMBLE) this.#stop();
    if (this.#length - this.#parser.endIndex > MAX_TOKEN) this.#reject();
    const isLong = this.#length - (this.#firstItemOffset ?? this.#length) > MAX_ITEMS_LENGTH;
    if (isLong && this.#values.has("title")) this.#endHead();
  }

  /** What is known so far; undefined if this is not a feed. An element that is still open does not count. */
  end(): FeedMetadata | undefined {
    this.#stop();
    if (!this.#hasChannel || (this.#isRejected && !this.#values.has("title"))) return undefined;
    return Object.fromEntries([...this.#values].map(([field, { value }]) => [field, value]));
  }

  #endHead(): void {
    this.#isHeadDone = true;
    if (this.#episodes?.isDone !== false && this.#latest?.isDone !== false) this.#stop();
  }

  #stop(): void {
    this.#isDone = true;
    this.#parser.pause();
  }

  /** Called for what no real feed contains. What was read before is used if it has a title. */
  #reject(): void {
    this.#isRejected = true;
    this.#stop();
  }

  #onOpen(qualified: string): void {
    const name = this.#nameOf(qualified);
    if (this.#root === undefined) this.#openOutside(name);
    else {
      this.#path.push(name);
      this.#elements += 1;
      const maxElements = this.#episodes === undefined ? MAX_ELEMENTS : MAX_EPISODE_ELEMENTS;
      if (this.#path.length + this.#outside > MAX_DEPTH || this.#elements > maxElements) this.#reject();
      // Kept as a tag, so that `toPlainText` removes it together with escaped markup.
      else if (this.#collected !== undefined) this.#appendTag(`<${name.slice(name.indexOf(":") + 1)}>`);
      else if (this.#itemDepth === undefined) this.#openInside(name, this.#path.length);
      else this.#episode?.open(name, this.#path.length - this.#itemDepth);
    }
  }

  #openInside(name: string, depth: number): void {
    if (depth === 2 && name === "channel" && this.#root !== "feed") this.#hasChannel = true;
    if (this.#isItem(name, depth)) {
      this.#itemDepth = depth;
      this.#firstItemOffset ??= this.#parser.startIndex;
      if (this.#values.has("title") && this.#values.has("artworkUrl")) this.#endHead();
      if (this.#episodes !== undefined || this.#latest !== undefined) this.#episode = new XmlEpisode();
      return;
    }
    // Fields count only as far as they are read when no episodes are looked for.
    if (depth > 4 || this.#isHeadDone) return;
    const target = this.#fieldIn(TEXTS);
    if (this.#root === "feed" && depth === 2 && name === "link") this.#link = {};
    else if (target !== undefined) this.#collected = { target, depth, raw: "" };
  }

  #openOutside(name: string): void {
    const local = name.slice(name.indexOf(":") + 1);
    if (local === "rss" || local === "rdf" || local === "feed") {
      this.#root = local;
      this.#hasChannel = local === "feed";
      this.#path.push(local);
    } else if (HTML_ELEMENTS.has(local)) this.#stop();
    else {
      this.#outside += 1;
      if (this.#outside > MAX_DEPTH) this.#reject();
    }
  }

  #onAttribute(name: string, value: string): void {
    const lower = name.slice(0, MAX_NAME).toLowerCase();
    if (lower.startsWith("xmlns:")) this.#declare(lower.slice("xmlns:".length), value);
    this.#episode?.attribute(lower, value);
    if (this.#itemDepth !== undefined || this.#collected !== undefined || this.#root === undefined) return;
    if (this.#link !== undefined && (lower === "rel" || lower === "href"))
      this.#link[lower] ??= decodeXML(value.slice(0, MAX_RAW_TEXT));
    else if (lower === "href") {
      const target = this.#fieldIn(LINKS);
      if (target !== undefined) this.#keep(target, decodeXML(value.slice(0, MAX_RAW_TEXT)));
    } else if (lower === "xml:lang" && this.#root === "feed" && this.#path.length === 1)
      this.#keep(["language", 2], value);
  }

  #onText(text: string): void {
    if (this.#collected === undefined && this.#episode === undefined) return;
    const raw = this.#isCdata ? text.slice(0, MAX_RAW_TEXT).replaceAll("&", "&amp;") : text;
    if (this.#collected !== undefined) this.#append(raw);
    this.#episode?.text(raw);
  }

  #onClose(): void {
    if (this.#root === undefined) {
      this.#outside -= 1;
      return;
    }
    const depth = this.#path.length;
    if (depth === this.#itemDepth) this.#endItem();
    else if (this.#itemDepth !== undefined) this.#episode?.close(this.#path.at(-1) ?? "", depth - this.#itemDepth);
    if (this.#collected?.depth === depth) {
      const { target, raw } = this.#collected;
      this.#collected = undefined;
      this.#keep(target, decodeXML(raw));
    } else if (this.#collected !== undefined) this.#appendTag(`</${this.#path.at(-1)}>`);
    if (this.#link !== undefined && depth === 2) {
      const { rel = "alternate", href } = this.#link;
      this.#link = undefined;
      if (rel === "alternate" && href !== undefined) this.#keep(["homepageUrl", 1], href);
    }
    this.#path.pop();
    if (this.#path.length > 0) return;
    // Nothing after the root element belongs to the feed.
    this.#latest?.end();
    this.#stop();
  }

  #endItem(): void {
    this.#itemDepth = undefined;
    if (this.#episode === undefined) return;
    const episode = this.#episode.end();
    this.#episodes?.add(episode);
    this.#latest?.add(episode);
    this.#episode = undefined;
    if (this.#isHeadDone) this.#endHead();
  }

  #append(text: string): void {
    const collected = this.#collected;
    if (collected !== undefined && collected.raw.length < MAX_RAW_TEXT)
      collected.raw += text.slice(0, MAX_RAW_TEXT - collected.raw.length);
  }

  /** All or nothing: half a tag would be read as text. */
  #appendTag(tag: string): void {
    if (this.#collected !== undefined && this.#collected.raw.length + tag.length <= MAX_RAW_TEXT)
      this.#collected.raw += tag;
  }

  #isItem(name: string, depth: number): boolean {
    if (this.#root === "feed") return depth === 2 && name === "entry";
    if (name !== "item") return false;
    return this.#root === "rdf" ? depth === 2 : depth === 3 && this.#path[1] === "channel";
  }

  /** RDF feeds have the image next to the channel, all others inside it. */
  #fieldIn(fields: ReadonlyMap<string, RankedField>): RankedField | undefined {
    const [, first] = this.#path;
    const isTopLevel = this.#root === "feed" || (this.#root === "rdf" && first === "image");
    if (!isTopLevel && first !== "channel") return undefined;
    return fields.get(this.#path.slice(isTopLevel ? 1 : 2).join("/"));
  }

  #keep([field, rank]: RankedField, text: string): void {
    const known = this.#values.get(field);
    if (known !== undefined && known.rank <= rank) return;
    const value = cleanValue(field, text, this.#base);
    if (value !== undefined) this.#values.set(field, { value, rank });
  }

  #declare(prefix: string, uri: string): void {
    if (uri.length > MAX_NAME || this.#prefixes.size >= MAX_PREFIXES) return;
    const known = NAMESPACES.find(([pattern]) => pattern.test(uri));
    if (known !== undefined) this.#prefixes.set(prefix, known[1]);
  }

  /** The local name, with the usual prefix of its namespace. An undeclared prefix is kept. */
  #nameOf(qualified: string): string {
    const name = qualified.slice(0, MAX_NAME).toLowerCase();
    const colon = name.indexOf(":");
    if (colon === -1) return name;
    const prefix = name.slice(0, colon);
    const usual = this.#prefixes.get(prefix) ?? prefix;
    const local = name.slice(colon + 1);
    return usual === "" || (usual === "atom" && this.#root === "feed") ? local : `${usual}:${local}`;
  }
}

export function cleanValue(field: Field, text: string, base: URL): string | undefined {
  switch (field) {
    case "title":
    case "author":
      return toPlainText(text, 300);
    case "description":
      return toPlainText(text, 4_000);
    case "block":
      return /^\s*(?:yes|true)\s*$/i.test(text) ? "yes" : undefined;
    case "language":
      return toLanguage(text);
    case "podcastGuid":
      return toGuid(text);
    case "homepageUrl":
    case "artworkUrl":
    case "newFeedUrl":
      return toWebUrl(text, base)?.href;
  }
}
