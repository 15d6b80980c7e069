import { failure } from "../../../errors/catalog.ts";
import { readAttributes } from "../../../jsonapi/document.ts";
import { PLAIN } from "../../../jsonapi/media-type.ts";
import { guidOf, readFeedUrl } from "../../../lists/feed-url.ts";
import { type PodcastLink, readPodcastLink } from "../../../podcasts/podcast-links.ts";

export interface FoundFeed {
  readonly feedUrl: string;
  readonly title?: string | undefined;
  readonly author?: string | undefined;
}

/** Reads the URL of a page, or the link of an app. It is validated like a feed URL, because it may be one. */
export function readFeedSearch(document: unknown): PodcastLink {
  const { url } = readAttributes(document, "feed-search");
  const source = { pointer: url === undefined ? "/data/attributes" : "/data/attributes/url" };
  if (typeof url !== "string") throw failure("feed-url-missing", { source });
  const link = readPodcastLink(url) ?? { kind: "page", url };
  for (const each of urlsOf(link, url)) {
    const parsed = readFeedUrl(each);
    if (parsed.kind === "invalid") throw failure(parsed.errorCode, { source });
  }
  return link;
}

/** What could be fetched; for a link that leads nowhere, the link itself. */
function urlsOf(link: PodcastLink, url: string): readonly string[] {
  if (link.kind === "feed") return link.urls;
  return [link.kind === "apple" ? link.pageUrl : url];
}

/**
 * The id of each feed is its GUID, which is also the default id of a subscription to it. The caller must not pass two feeds
 * with the same GUID.
 */
export function writeFeeds(feeds: readonly FoundFeed[]): string {
  const data = feeds.map(({ feedUrl, title, author }) => ({
    type: "feed",
    id: guidOf(feedUrl),
    attributes: { feed_url: feedUrl, title, author },
  }));
  return JSON.stringify({ jsonapi: PLAIN.jsonapi, data });
}
