import { type AnyResource, readDocument, readResource } from "./documents.ts";
import { createFetch, createSend, sendResource } from "./requests.ts";
import type { CallOptions, ClientOptions } from "./types.ts";

/** A feed that a page declares. */
export interface FoundFeed {
  /** The id that a subscription to it gets unless another one is given. */
  readonly id: string;
  readonly feedUrl: string;
  readonly title?: string;
}

/** Resolves to the feeds that a page declares. If the URL is itself a feed, resolves to that feed. */
export type FindFeeds = (url: string, options?: CallOptions) => Promise<FoundFeed[]>;

export function createFeedSearch(options: ClientOptions): FindFeeds {
  const send = createSend(createFetch(options), options);
  return async (url, { signal } = {}) => {
    const { text } = await sendResource(send, "/v1/feed-searches", "feed-search", { url }, { signal });
    return readDocument(text, ({ data }: { readonly data: readonly AnyResource[] }) =>
      data.map(readResource<FoundFeed>),
    );
  };
}
