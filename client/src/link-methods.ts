import { type AnyResource, readDocument, readResource } from "./documents.ts";
import { fetchAll, fetchPage, MAX_PAGE_SIZE, pageQuery } from "./lists.ts";
import { type Send, sendDelete, sendResource } from "./requests.ts";
import type { Alert, Link, LinkMethods, LinkPreview, NewLink } from "./types.ts";

interface NewLinkDocument {
  readonly data?: AnyResource;
  readonly meta: {
    readonly private_feeds: number;
    readonly shared_feeds: number;
    readonly private_subscriptions?: readonly string[];
  };
}

interface AlertResource extends AnyResource {
  readonly relationships?: { readonly subscriptions?: { readonly data: readonly { readonly id: string }[] } };
}

function readAlert({ relationships, ...alert }: AlertResource): Alert {
  const subscriptions = relationships?.subscriptions?.data ?? [];
  return { ...readResource<Alert>(alert), subscriptions: subscriptions.map(({ id }) => id) };
}

export function createLinkMethods(send: Send): LinkMethods {
  const toAttributes = ({ ownTitles, ...link }: NewLink) => ({ ...link, own_titles: ownTitles });
  return {
    async alerts({ language, signal } = {}) {
      const query = language === undefined ? "" : `&language=${language}`;
      return (
        await fetchPage(send, `/v1/alerts${pageQuery(1, MAX_PAGE_SIZE)}${query}`, readAlert, signal)
      ).items.slice();
    },

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
