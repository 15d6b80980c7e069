import type { FeedMetadata } from "./feed.ts";
import { FeedDecoder } from "./feed-charset.ts";
import { cleanValue, XmlFeedReader } from "./read-xml-feed.ts";

/** A JSON feed has to be read in full. */
const MAX_JSON = 2 * 1024 * 1024;

/** Reads the metadata of a feed chunk by chunk. */
export class FeedReader {
  readonly #base: URL;
  readonly #decoder: FeedDecoder;
  #reader: XmlFeedReader | JsonFeedReader | undefined;
  #isDone = false;

  /** @param base The URL of the feed, for relative URLs in it. */
  constructor(base: URL, contentType = "") {
    this.#base = base;
    this.#decoder = new FeedDecoder(contentType);
  }

  /** Whether the rest of the document is not needed. */
  get isDone(): boolean {
    return this.#isDone || this.#reader?.isDone === true;
  }

  write(bytes: Uint8Array): void {
    this.#write(this.#decoder.decode(bytes));
  }

  /** Undefined if this is not a feed. */
  end(): FeedMetadata | undefined {
    this.#write(this.#decoder.end());
    this.#isDone = true;
    return this.#reader?.end();
  }

  #write(text: string): void {
    if (this.isDone) return;
    const rest = this.#reader === undefined ? text.trimStart() : text;
    if (rest === "") return;
    this.#reader ??= rest.startsWith("{") ? new JsonFeedReader(this.#base) : new XmlFeedReader(this.#base);
    this.#reader.write(rest);
  }
}

/** jsonfeed.org */
class JsonFeedReader {
  readonly #base: URL;
  #text = "";

  constructor(base: URL) {
    this.#base = base;
  }

  get isDone(): boolean {
    return this.#text.length > MAX_JSON;
  }

  write(text: string): void {
    this.#text += text;
  }

  end(): FeedMetadata | undefined {
    const feed = this.isDone ? undefined : parseObject(this.#text);
    if (feed === undefined || !String(feed["version"]).startsWith("https://jsonfeed.org/version/")) return undefined;
    const [author] = Array.isArray(feed["authors"]) ? feed["authors"] : [feed["author"]];
    const texts = {
      title: feed["title"],
      author: isObject(author) ? author["name"] : undefined,
      description: feed["description"],
      homepageUrl: feed["home_page_url"],
      language: feed["language"],
      artworkUrl: feed["icon"],
    };
    return Object.fromEntries(
      Object.entries(texts).flatMap(([field, text]) => {
        const value = typeof text === "string" ? cleanValue(field as keyof FeedMetadata, text, this.#base) : undefined;
        return value === undefined ? [] : [[field, value]];
      }),
    );
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
