import { createAccountMethods } from "./account-methods.ts";
import { createAppMethods } from "./app-methods.ts";
import {
  type AnyResource,
  readChanges,
  readDocument,
  readDuplicate,
  readImport,
  readResource,
  readSubscription,
  type SubscriptionResource,
} from "./documents.ts";
import { watchState } from "./events.ts";
import { createHistoryMethods } from "./history-methods.ts";
import { createLinkMethods } from "./link-methods.ts";
import { fetchAll, fetchOne, fetchPage, iterateSubscriptions, MAX_PAGE_SIZE, pageQuery } from "./lists.ts";
import { applyOperations } from "./operations.ts";
import { createFetch, createSend, type Send, sendDelete } from "./requests.ts";
import { subscribe } from "./subscribe.ts";
import type { CallOptions, Client, ClientOptions, Operation, OperationResult, Podcast, Removal } from "./types.ts";

export { EarmarkError, type ErrorCode, type ErrorObject, NetworkError } from "./errors.ts";
export { guid } from "./guid.ts";
export { openReplica, type Replica, type ReplicaOptions, type ReplicaStorage, type RunOptions } from "./replica.ts";
export type { Refusal } from "./replica-queue.ts";
export type * from "./types.ts";

const DUPLICATES = "/v1/duplicates";

export function createClient(options: ClientOptions): Client {
  const request = createFetch(options);
  const send = createSend(request, options);
  const account = createAccountMethods(send);
  const apply = (operations: Iterable<Operation>, options: CallOptions = {}) =>
    applyOperations(send, account.me, [...operations], options);

  function remove(id: string, options?: CallOptions): Promise<boolean>;
  function remove(ids: Iterable<string>, options?: CallOptions): Promise<OperationResult[]>;
  async function remove(ids: string | Iterable<string>, options: CallOptions = {}) {
    if (typeof ids === "string") return sendDelete(send, "/v1/subscriptions", ids, options);
    return apply(
      Array.from(ids, (id) => ({ op: "remove", id })),
      options,
    );
  }

  return {
    ...account,
    ...createAppMethods(send),
    ...createLinkMethods(send),
    ...createHistoryMethods(send),
    ...createListReads(send),

    async subscribe(feeds, options = {}) {
      return subscribe(send, account.me, feeds, options);
    },

    async refresh(id, { signal } = {}) {
      await send(`/v1/podcasts/${encodeURIComponent(id)}/refresh`, { method: "POST", signal });
    },

    async retryFailing({ signal } = {}) {
      const { text } = await send("/v1/podcasts/retry", { method: "POST", signal });
      return readDocument(text, ({ meta }: { readonly meta: { readonly count: number } }) => Number(meta.count));
    },

    async dismissDuplicate(id, options = {}) {
      return sendDelete(send, DUPLICATES, id, options);
    },

    apply,
    remove,

    update(updates, options) {
      return apply(
        Array.from(updates, (update) => ({ ...update, op: "update" })),
        options,
      );
    },

    events(options = {}) {
      return watchState(request, account.me, options);
    },

    async importOpml(opml, { dryRun = false, signal } = {}) {
      const { text } = await send(`/v1/imports${dryRun ? "?dryRun=true" : ""}`, {
        method: "POST",
        contentType: "text/x-opml",
        body: opml as string | Blob,
        // A retry could not report what the first attempt has added.
        atMostOnce: !dryRun,
        isTransfer: true,
        signal,
      });
      return readDocument(text, readImport);
    },
  };
}

/** What reads the list and changes nothing. */
function createListReads(
  send: Send,
): Pick<
  Client,
  "subscriptions" | "page" | "get" | "podcast" | "find" | "changes" | "removals" | "duplicates" | "exportOpml"
> {
  return {
    subscriptions({ pageSize = MAX_PAGE_SIZE, include, signal } = {}) {
      return iterateSubscriptions(send, pageSize, include, signal);
    },

    async page({ number = 1, size = MAX_PAGE_SIZE, include, signal } = {}) {
      const path = `/v1/subscriptions${pageQuery(number, size, include)}`;
      const { items, total, next } = await fetchPage(send, path, readSubscription, signal);
      return { items, total, number, size, hasNext: !!next };
    },

    async get(id, options) {
      return fetchOne(send, "/v1/subscriptions", id, (data: SubscriptionResource) => readSubscription(data), options);
    },

    async podcast(id, options) {
      return fetchOne(send, "/v1/podcasts", id, readResource<Podcast>, options);
    },

    async find(feedUrl, { signal } = {}) {
      const path = `/v1/subscriptions?filter[feed_url]=${encodeURIComponent(feedUrl)}`;
      const { items } = await fetchPage(send, path, readSubscription, signal);
      return items[0];
    },

    async changes(state, { pageSize = 500, signal } = {}) {
      const after = state === undefined ? "" : `page[after]=${encodeURIComponent(state)}&`;
      const { text } = await send(`/v1/changes?${after}page[size]=${pageSize}`, { signal });
      return readDocument(text, readChanges);
    },

    async removals({ signal } = {}) {
      const { text } = await send("/v1/removals", { signal });
      return readDocument(text, ({ data }: { readonly data: readonly AnyResource[] }) =>
        data.map(readResource<Removal>),
      );
    },

    async duplicates({ signal } = {}) {
      return fetchAll(send, DUPLICATES, 0, readDuplicate, signal);
    },

    async exportOpml({ signal } = {}) {
      return (await send("/v1/subscriptions.opml", { isTransfer: true, signal })).text;
    },
  };
}
