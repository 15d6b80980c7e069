import { EpisodeFinder, type FeedEpisode, type FoundEpisode, type WantedEpisodes } from "./episodes.ts";
import type { FeedMetadata } from "./feed.ts";
import { FeedDecoder } from "./feed-charset.ts";
import type { LatestEpisode } from "./latest-episode.ts";
import { cleanValue, XmlFeedReader } from "./read-xml-feed.ts";

/** A JSON feed has to be read in full. */
const MAX_JSON = 2 * 1024 * 1024;

/** Reads the metadata of a feed chunk by chunk, and the details of wanted episodes. */
export class FeedReader {
  readonly #base: URL;
  readonly #decoder: FeedDecoder;
  readonly #episodes: EpisodeFinder | undefined;
  readonly #latest: LatestEpisode | undefined;
  #reader: XmlFeedReader | JsonFeedReader | undefined;
  #isDone = false;

  /** @param base The URL of the feed, for relative URLs in it. */
  constructor(base: URL, contentType = "", wanted?: WantedEpisodes, latest?: LatestEpisode) {
    this.#base = base;
    this.#episodes = wanted && new EpisodeFinder(wanted);
    this.#latest = latest;
    this.#decoder = new FeedDecoder(contentType);
  }

  /** Whether the rest of the document is not needed. */
  get isDone(): boolean {
    return this.#isDone || this.#reader?.isDone === true;
  }

  /** Whether only episodes are still looked for. */
  get isHeadDone(): boolean {
    return this.#isDone || this.#reader?.isHeadDone === true;
  }

  /** Those that were found so far; to be called after `end`. */
  get episodes(): readonly FoundEpisode[] {
    return this.#episodes?.end() ?? [];
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
    this.#reader ??= rest.startsWith("{")
      ? new JsonFeedReader(this.#base, this.#episodes, this.#latest)
      : new XmlFeedReader(this.#base, this.#episodes, this.#latest);
    this.#reader.write(rest);
  }
}

/** jsonfeed.org */
class JsonFeedReader {
  readonly #base: URL;
  readonly #episodes: EpisodeFinder | undefined;
  readonly #latest: LatestEpisode | undefined;
  #text = "";

  constructor(base: URL, episodes: EpisodeFinder | undefined, latest: LatestEpisode | undefined) {
    this.#base = base;
    this.#episodes = episodes;
    this.#latest = latest;
  }

  get isDone(): boolean {
    return this.#text.length > MAX_JSON;
  }

  /** The order of its members is unknown. */
  get isHeadDone(): boolean {
    return false;
  }

  write(text: string): void {
    this.#text += text;
  }

  end(): FeedMetadata | undefined {
    const feed = this.isDone ? undefined : parseObject(this.#text);
    if (feed === undefined || !String(feed["version"]).startsWith("https://jsonfeed.org/version/")) return undefined;
    this.#readItems(feed["items"]);
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

  #readItems(items: unknown): void {
    if (this.#episodes === undefined && this.#latest === undefined) return;
    for (const item of Array.isArray(items) ? items.filter(isObject) : []) {
      const episode = readJsonEpisode(item);
      this.#episodes?.add(episode);
      this.#latest?.add(episode);
    }
    this.#latest?.end();
  }
}

/** Members that are not text are absent. */
function readJsonEpisode(item: Readonly<Record<string, unknown>>): FeedEpisode {
  const textOf = (value: unknown) => (typeof value === "string" ? value : undefined);
  const attachments = Array.isArray(item["attachments"]) ? item["attachments"].filter(isObject) : [];
  return {
    guid: typeof item["id"] === "number" ? String(item["id"]) : textOf(item["id"]),
    mediaUrls: attachments.flatMap(({ url }) => textOf(url) ?? []),
    title: textOf(item["title"]),
    publishedAt: textOf(item["date_published"]),
  };
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
