import { isIP } from "node:net";
import { MAX_TITLE } from "../../lists/details.ts";
import { guidOf, MAX_FEED_URL } from "../../lists/feed-url.ts";
import { findFeedInPage } from "../podcast-links.ts";
import type { DeclaredFeed } from "./feed.ts";
import { FeedDecoder } from "./feed-charset.ts";
import { HtmlTokens, toPlainText, toWebUrl } from "./feed-text.ts";

const MAX_FEEDS = 20;
/** Longest attribute that is read. */
const MAX_ATTRIBUTE = 2 * MAX_FEED_URL;
/** A page declares its encoding within this many bytes, as the HTML standard requires. */
const SNIFFED_BYTES = 1024;
const META_CHARSET = /<meta\s[^<>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})/i;
const FEED_TYPE = /^\s*application\/(?:rss|atom)\+xml\s*(?:;|$)/i;

/** Decodes a page. The charset of its Content-Type takes precedence over one that it declares itself. */
export function decodePage(bytes: Buffer, contentType = ""): string {
  const start = bytes.toString("latin1", 0, SNIFFED_BYTES);
  const [, charset] = META_CHARSET.exec(start) ?? [];
  const isDeclared = charset !== undefined && !/charset\s*=/i.test(contentType);
  const decoder = new FeedDecoder(isDeclared ? `text/html; charset=${charset}` : contentType);
  return decoder.decode(bytes) + decoder.end();
}

/**
 * The feeds that a page declares, in document order. No two have the same GUID.
 * @param isAllowed Whether the server may connect to an IP address; feeds at other addresses are left out.
 */
export function readPage(text: string, url: URL, isAllowed: (address: string) => boolean): DeclaredFeed[] {
  const declared = new PageReader(text, url, isAllowed).read();
  if (declared.length > 0) return declared;
  const feedUrl = toWebUrl(findFeedInPage(text, url) ?? "", url);
  return feedUrl === undefined || !isFetchable(feedUrl, isAllowed) ? [] : [{ feedUrl: feedUrl.href }];
}

/** False for a feed that the server may not fetch, such as one on a home network. */
function isFetchable({ hostname }: URL, isAllowed: (address: string) => boolean): boolean {
  const address = hostname.replace(/^\[|\]$/g, "");
  if (isIP(address) !== 0) return isAllowed(address);
  return !/(?:^|\.)localhost\.?$/.test(hostname);
}

/** Reads `<link rel="alternate" type="application/rss+xml">` and the like, anywhere in the page. */
class PageReader extends HtmlTokens {
  readonly #isAllowed: (address: string) => boolean;
  readonly #feeds = new Map<string, DeclaredFeed>();
  #base: URL;
  #hasBase = false;
  #tag = "";
  #attribute = "";
  #value = "";
  #attributes = new Map<string, string>();

  constructor(text: string, url: URL, isAllowed: (address: string) => boolean) {
    super(text);
    this.#base = url;
    this.#isAllowed = isAllowed;
  }

  read(): DeclaredFeed[] {
    this.readAll();
    return [...this.#feeds.values()];
  }

  override onopentagname(start: number, end: number): void {
    const tag = end - start > 4 ? "" : this.markup.slice(start, end).toLowerCase();
    this.#tag = tag === "link" || tag === "base" ? tag : "";
    if (this.#tag !== "") this.#attributes = new Map();
  }

  override onattribname(start: number, end: number): void {
    if (this.#tag === "") return;
    this.#attribute = end - start > 5 ? "" : this.markup.slice(start, end).toLowerCase();
    this.#value = "";
  }

  override onattribdata(start: number, end: number): void {
    if (this.#tag !== "" && this.#value.length <= MAX_ATTRIBUTE)
      this.#value += this.markup.slice(start, Math.min(end, start + MAX_ATTRIBUTE + 1));
  }

  override onattribentity(codePoint: number): void {
    if (this.#tag !== "" && this.#value.length <= MAX_ATTRIBUTE) this.#value += String.fromCodePoint(codePoint);
  }

  override onattribend(): void {
    // Of several attributes with the same name, the first counts.
    if (this.#tag !== "" && ["rel", "type", "href", "title"].includes(this.#attribute))
      if (!this.#attributes.has(this.#attribute)) this.#attributes.set(this.#attribute, this.#value);
  }

  override onopentagend(): void {
    if (this.#tag === "base") this.#readBase();
    else if (this.#tag === "link") this.#readLink();
    this.#tag = "";
  }

  override onselfclosingtag(): void {
    this.onopentagend();
  }

  #readBase(): void {
    const href = this.#attributes.get("href");
    if (this.#hasBase || href === undefined) return;
    this.#hasBase = true;
    this.#base = toWebUrl(href, this.#base) ?? this.#base;
  }

  #readLink(): void {
    const { rel = "", type = "", href = "", title = "" } = Object.fromEntries(this.#attributes);
    if (!FEED_TYPE.test(type) || !rel.toLowerCase().split(/\s+/).includes("alternate")) return;
    const url = toWebUrl(href, this.#base);
    if (url === undefined || !isFetchable(url, this.#isAllowed)) return;
    url.hash = "";
    const name = toPlainText(title, MAX_TITLE);
    const guid = guidOf(url.href);
    if (!this.#feeds.has(guid))
      this.#feeds.set(guid, { feedUrl: url.href, ...(name === undefined ? {} : { title: name }) });
    if (this.#feeds.size === MAX_FEEDS) this.stop();
  }
}
