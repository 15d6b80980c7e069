import { type AnyResource, readDocument, readResource } from "./documents.ts";
import { createFetch, createSend, sendResource } from "./requests.ts";
import type { CallOptions, ClientOptions } from "./types.ts";

/** A feed that a page declares, or a link is about. */
export interface FoundFeed {
  /** The id that a subscription to it gets unless another one is given. */
  readonly id: string;
  readonly feedUrl: string;
  readonly title?: string;
  readonly author?: string;
}

/** A podcast in a directory. */
export interface FoundPodcast extends FoundFeed {
  /** A picture on another server. */
  readonly artworkUrl?: string;
  /** The user's own subscription to the feed. */
  readonly subscriptionId: string | null;
}

/** Resolves to the feeds that a page declares. If the URL is itself a feed, resolves to that feed. */
export type FindFeeds = (url: string, options?: CallOptions) => Promise<FoundFeed[]>;
/** Searches a directory by name. */
export type SearchPodcasts = (query: string, options?: CallOptions) => Promise<FoundPodcast[]>;

export function createFeedSearch(options: ClientOptions): FindFeeds {
  const search = createSearch<FoundFeed>(options, "feed-search", "/v1/feed-searches");
  return (url, { signal } = {}) => search({ url }, signal);
}

export function createPodcastSearch(options: ClientOptions): SearchPodcasts {
  const search = createSearch<FoundPodcast>(options, "podcast-search", "/v1/podcast-searches");
  return (query, { signal } = {}) => search({ query }, signal);
}

function createSearch<Found extends FoundFeed>(options: ClientOptions, type: string, path: string) {
  const send = createSend(createFetch(options), options);
  return async (attributes: object, signal: AbortSignal | undefined): Promise<Found[]> => {
    const { text } = await sendResource(send, path, type, attributes, { signal });
    return readDocument(text, ({ data }: { readonly data: readonly AnyResource[] }) => data.map(readResource<Found>));
  };
}
