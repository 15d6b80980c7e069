import { failure } from "../../../errors/catalog.ts";
import { readAttributes } from "../../../jsonapi/document.ts";
import { PLAIN } from "../../../jsonapi/media-type.ts";
import { guidOf, readFeedUrl } from "../../../lists/feed-url.ts";

/** Reads the URL of a page. It is validated like a feed URL, because it may be one. */
export function readFeedSearch(document: unknown): string {
  const { url } = readAttributes(document, "feed-search");
  const source = { pointer: url === undefined ? "/data/attributes" : "/data/attributes/url" };
  if (typeof url !== "string") throw failure("feed-url-missing", { source });
  const parsed = readFeedUrl(url);
  if (parsed.kind === "invalid") throw failure(parsed.errorCode, { source });
  return url;
}

/**
 * The id of each feed is its GUID, which is also the default id of a subscription to it. The caller must not pass two feeds
 * with the same GUID.
 */
export function writeFeeds(feeds: readonly { readonly feedUrl: string; readonly title?: string }[]): string {
  const data = feeds.map(({ feedUrl, title }) => ({
    type: "feed",
    id: guidOf(feedUrl),
    attributes: { feed_url: feedUrl, title },
  }));
  return JSON.stringify({ jsonapi: PLAIN.jsonapi, data });
}
