import { failure } from "../../../errors/catalog.ts";
import type { Subscription } from "../../../lists/subscription.ts";
import { isObject } from "../../../util/is-object.ts";

/** Maximum number of feeds in a request. */
export const MAX_FEEDS = 50_000;

/** URLs as the app sent them. */
export interface FeedChanges {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** Reads the feeds that an app has added and removed. Ignores empty strings and items that are not strings. */
export function readFeedChanges(document: unknown): FeedChanges {
  if (!isObject(document))
    throw failure("malformed-document", { reason: "The body must be a JSON object with `add` and `remove`" });
  const changes = { add: readUrls(document["add"], "add"), remove: readUrls(document["remove"], "remove") };
  const count = changes.add.length + changes.remove.length;
  if (count > MAX_FEEDS) throw tooManyFeeds(count);
  return changes;
}

function readUrls(value: unknown, member: string): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value))
    throw failure("malformed-document", { reason: `\`${member}\` must be an array of feed URLs` });
  return value.filter((url) => typeof url === "string" && url !== "");
}

/**
 * Rejects an upload in which a URL is both added and removed, as gpodder.net does. AntennaPod relies on that to repair its
 * queue of unsent changes.
 */
export function requireDisjoint({ add, remove }: FeedChanges): void {
  const added = new Set(add);
  if (remove.some((url) => added.has(url)))
    throw failure("malformed-document", { reason: "The same feed URL is in both `add` and `remove`" });
}

type Pages = AsyncIterable<readonly string[]> | Iterable<readonly string[]>;

/** A response with changes, in chunks. The timestamp is needed only when both lists have been read to their end. */
export async function* writeFeedChanges(
  added: Pages,
  removed: Pages,
  timestamp: () => Promise<number>,
): AsyncGenerator<string> {
  yield '{"add":[';
  yield* writeUrls(added);
  yield '],"remove":[';
  yield* writeUrls(removed);
  yield `],"timestamp":${await timestamp()}}`;
}

async function* writeUrls(pages: Pages): AsyncGenerator<string> {
  let separator = "";
  for await (const urls of pages) {
    if (urls.length === 0) continue;
    yield separator + urls.map((url) => JSON.stringify(url)).join();
    separator = ",";
  }
}

/**
 * A response to an upload, in chunks. Each pair in `updatedUrls` is a URL as sent and the same URL as stored; the
 * second is "" if the URL was rejected.
 */
export function* writeUploadResult(
  timestamp: number,
  updatedUrls: readonly (readonly [string, string])[],
): Generator<string> {
  yield `{"timestamp":${timestamp},"update_urls":[`;
  let separator = "";
  for (const pair of updatedUrls) {
    yield separator + JSON.stringify(pair);
    separator = ",";
  }
  yield "]}";
}

/** Reads a complete list of feeds: a JSON array of URLs or of objects with a `url`. Ignores other items. */
export function readFeedList(document: unknown): string[] {
  if (!Array.isArray(document))
    throw failure("malformed-document", { reason: "The body must be a JSON array of feed URLs" });
  if (document.length > MAX_FEEDS) throw tooManyFeeds(document.length);
  return document
    .map((item) => (isObject(item) ? item["url"] : item))
    .filter((url) => typeof url === "string" && url !== "");
}

/** Reads a list of feeds with one URL per line. */
export function readFeedLines(text: string): string[] {
  const urls = text
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  if (urls.length > MAX_FEEDS) throw tooManyFeeds(urls.length);
  return urls;
}

function tooManyFeeds(count: number) {
  return failure("too-many-operations", { count, items: "feeds", max: MAX_FEEDS, meta: { max: MAX_FEEDS } });
}

/**
 * A podcast in the format of the gPodder API. Only the URL and the title (the user's title, or else the URL) are filled
 * in.
 */
export function toPodcast({ feedUrl: url, title = url }: Subscription): object {
  return {
    url,
    title,
    author: "",
    description: "",
    subscribers: 0,
    logo_url: null,
    scaled_logo_url: null,
    website: "",
    mygpo_link: "",
  };
}

/** A list of subscriptions, batch by batch. */
type Batches = AsyncIterable<readonly Subscription[]>;

/** A JSON array with an item for each feed, in chunks. */
export async function* writeFeedList(
  batches: Batches,
  toItem: (subscription: Subscription) => unknown,
): AsyncGenerator<string> {
  yield "[";
  let separator = "";
  for await (const batch of batches) {
    for (const subscription of batch) {
      yield separator + JSON.stringify(toItem(subscription));
      separator = ",\n";
    }
  }
  yield "]";
}

/** One feed URL per line. */
export async function* writeFeedLines(batches: Batches): AsyncGenerator<string> {
  for await (const batch of batches) for (const { feedUrl } of batch) yield `${feedUrl}\n`;
}
