import { failure } from "../../../errors/catalog.ts";
import { readAttributes } from "../../../jsonapi/document.ts";
import { PLAIN } from "../../../jsonapi/media-type.ts";
import { guidOf } from "../../../lists/feed-url.ts";
import { MAX_QUERY } from "../../../podcasts/directory/directory.ts";
import type { DirectoryEntry } from "../../../podcasts/directory/read-entry.ts";

/** Reads the words to search for. */
export function readPodcastSearch(document: unknown): string {
  const { query } = readAttributes(document, "podcast-search");
  if (query === undefined)
    throw failure("attribute-missing", { name: "query", source: { pointer: "/data/attributes" } });
  if (typeof query === "string" && isSearchable(query)) return query;
  throw failure("invalid-attribute", {
    reason: `Invalid \`query\`: it must be a text of 1 to ${MAX_QUERY} characters, without control characters`,
    source: { pointer: "/data/attributes/query" },
  });
}

export function isSearchable(query: string): boolean {
  return query.trim() !== "" && query.length <= MAX_QUERY && query.isWellFormed() && !/\p{Cc}/u.test(query);
}

/** A result with the id of the caller's own subscription to that feed. */
export interface SearchResult {
  readonly entry: DirectoryEntry;
  readonly subscriptionId: string | undefined;
}

/** The id of each result is the GUID of its feed, which is also the default id of a subscription to it. */
export function writePodcastSearchResults(results: readonly SearchResult[]): string {
  const data = results.map(({ entry: { feedUrl, title, author, artworkUrl }, subscriptionId }) => ({
    type: "podcast-search-result",
    id: guidOf(feedUrl),
    attributes: {
      feed_url: feedUrl,
      title,
      author,
      artwork_url: artworkUrl,
      subscription_id: subscriptionId ?? null,
    },
  }));
  return JSON.stringify({ jsonapi: PLAIN.jsonapi, data });
}
