import { Tokenizer, type TokenizerCallbacks } from "htmlparser2";
import { cleanText } from "../../lists/details.ts";
import { MAX_FEED_URL, readFeedUrl } from "../../lists/feed-url.ts";

/** Maximum length of a text before markup is removed; the rest is dropped. */
export const MAX_RAW_TEXT = 32 * 1024;

const BLOCKS = new Set(
  "address article blockquote br dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre section table td th tr ul".split(" "),
);
const INVISIBLE = new Set(["script", "style"]);

/** Plain text on one line, from text that may contain HTML. Undefined if nothing is left. */
export function toPlainText(markup: string, max: number): string | undefined {
  const text = new MarkupReader(markup.slice(0, MAX_RAW_TEXT)).read();
  return cleanText(text.replaceAll(/\s+/g, " ").trim(), max) || undefined;
}

/** Reads HTML with the tokenizer alone: the parser on top of it takes quadratic time for deeply nested markup. */
export class HtmlTokens implements TokenizerCallbacks {
  protected readonly markup: string;
  readonly #tokenizer = new Tokenizer({}, this);

  constructor(markup: string) {
    this.markup = markup;
  }

  protected readAll(): void {
    this.#tokenizer.write(this.markup);
    this.#tokenizer.end();
  }

  /** Stops reading: the rest is not needed. */
  protected stop(): void {
    this.#tokenizer.pause();
  }

  onattribdata(_start: number, _end: number): void {}
  onattribentity(_codePoint: number): void {}
  onattribend(_quote: number, _end: number): void {}
  onattribname(_start: number, _end: number): void {}
  oncdata(): void {}
  onclosetag(_start: number, _end: number): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onend(): void {}
  onopentagend(): void {}
  onopentagname(_start: number, _end: number): void {}
  onprocessinginstruction(): void {}
  onselfclosingtag(): void {}
  ontext(_start: number, _end: number): void {}
  ontextentity(_codePoint: number): void {}
}

class MarkupReader extends HtmlTokens {
  #text = "";
  #tag = "";

  read(): string {
    this.readAll();
    return this.#text;
  }

  override ontext(start: number, end: number): void {
    if (!INVISIBLE.has(this.#tag)) this.#text += this.markup.slice(start, end);
  }

  override ontextentity(codePoint: number): void {
    if (!INVISIBLE.has(this.#tag)) this.#text += String.fromCodePoint(codePoint);
  }

  override onopentagname(start: number, end: number): void {
    this.#tag = this.markup.slice(start, end).toLowerCase();
    if (BLOCKS.has(this.#tag)) this.#text += " ";
  }

  override onclosetag(start: number, end: number): void {
    this.#tag = "";
    if (BLOCKS.has(this.markup.slice(start, end).toLowerCase())) this.#text += " ";
  }
}

/** A language tag such as `pt-BR`. */
export function toLanguage(text: string): string | undefined {
  const tag = text.trim();
  return tag.length <= 35 && /^[a-z]{2,8}(?:[-_][a-z0-9]{1,8})*$/i.test(tag) ? tag.replaceAll("_", "-") : undefined;
}

export function toGuid(text: string): string | undefined {
  const guid = text.trim().toLowerCase();
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(guid) ? guid : undefined;
}

/**
 * Resolves an http or https URL against `base` and removes its credentials; undefined if it is not one. A relative URL
 * does not inherit the credentials of the base.
 */
export function toWebUrl(text: string, base: URL): URL | undefined {
  if (text.length > 2 * MAX_FEED_URL) return undefined;
  const reference = text.trim().replaceAll(/\s/g, "%20");
  if (reference === "") return undefined;
  const absolute = reference.startsWith("//") ? base.protocol + reference : reference;
  // A relative URL has the host of the base, so only absolute ones need the checks for hosts.
  if (/^[a-z][a-z0-9+.-]*:|^[\\/]{2}/i.test(absolute) && readFeedUrl(absolute).kind === "invalid") return undefined;
  const url = URL.parse(absolute, base.href);
  if (url === null || !isWebUrl(url)) return undefined;
  url.username = "";
  url.password = "";
  return url.href.length > MAX_FEED_URL ? undefined : url;
}

export function isWebUrl({ protocol, hostname }: URL): boolean {
  return (protocol === "http:" || protocol === "https:") && hostname !== "";
}
