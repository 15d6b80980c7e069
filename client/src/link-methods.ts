import { type AnyResource, readDocument, readResource } from "./documents.ts";
import { fetchAll } from "./lists.ts";
import { type Send, sendDelete, sendResource } from "./requests.ts";
import type { Link, LinkMethods, LinkPreview, NewLink } from "./types.ts";

interface NewLinkDocument {
  readonly data?: AnyResource;
  readonly meta: {
    readonly private_feeds: number;
    readonly shared_feeds: number;
    readonly private_subscriptions?: readonly string[];
  };
}

export function createLinkMethods(send: Send): LinkMethods {
  const toAttributes = ({ ownTitles, ...link }: NewLink) => ({ ...link, own_titles: ownTitles });
  return {
    async links({ signal } = {}) {
      return fetchAll(send, "/v1/links", 0, readResource<Link>, signal);
    },

    async createLink(link, { signal } = {}) {
      const { text } = await sendResource(send, "/v1/links", "link", toAttributes(link), { atMostOnce: true, signal });
      return readDocument(text, ({ data, meta }: NewLinkDocument) => {
        if (data === undefined) throw Error();
        return { ...readResource<Link>(data), sharedFeeds: meta.shared_feeds, privateFeeds: meta.private_feeds };
      });
    },

    async previewLink(link, { signal } = {}) {
      const { text } = await sendResource(send, "/v1/links?dryRun=true", "link", toAttributes(link), { signal });
      return readDocument(
        text,
        ({ meta }: NewLinkDocument): LinkPreview => ({
          sharedFeeds: meta.shared_feeds,
          privateFeeds: meta.private_feeds,
          privateSubscriptions: meta.private_subscriptions ?? [],
        }),
      );
    },

    async revokeLink(id, { signal } = {}) {
      return sendDelete(send, "/v1/links", id, { signal });
    },
  };
}
