import { createAccountMethods } from "./account-methods.ts";
import { createAppMethods } from "./app-methods.ts";
import { type Resource, readDocument, readImport, readSubscription } from "./documents.ts";
import { fetchPart, iterateSubscriptions, MAX_PAGE_SIZE, writePage } from "./lists.ts";
import { createSend, sendDelete } from "./requests.ts";
import { subscribe } from "./subscribe.ts";
import type { Client, ClientOptions } from "./types.ts";

export { EarmarkError, type ErrorCode, type ErrorObject, NetworkError } from "./errors.ts";
export { guid } from "./guid.ts";
export type * from "./types.ts";

export function createClient(options: ClientOptions): Client {
  const send = createSend(options);
  const account = createAccountMethods(send);

  return {
    ...account,
    ...createAppMethods(send),

    async subscribe(feeds, options = {}) {
      return subscribe(send, account.me, feeds, options);
    },

    subscriptions({ pageSize = MAX_PAGE_SIZE, signal } = {}) {
      return iterateSubscriptions(send, pageSize, signal);
    },

    async page({ number = 1, size = MAX_PAGE_SIZE, signal } = {}) {
      const path = `/v1/subscriptions${writePage(number, size)}`;
      const { items, total, next } = await fetchPart(send, path, readSubscription, signal);
      return { items, total, number, size, hasNext: next !== undefined };
    },

    async get(id, { signal } = {}) {
      const { text, error } = await send(`/v1/subscriptions/${encodeURIComponent(id)}`, { expected: 404, signal });
      if (error) return undefined;
      return readDocument(text, ({ data }: { readonly data: Resource }) => readSubscription(data));
    },

    async remove(id, { signal } = {}) {
      return sendDelete(send, "/v1/subscriptions", id, { signal });
    },

    async importOpml(opml, { dryRun = false, signal } = {}) {
      const { text } = await send(`/v1/imports${dryRun ? "?dryRun=true" : ""}`, {
        method: "POST",
        type: "text/x-opml",
        body: opml as string | Blob,
        // A retry could not report what the first attempt has added.
        once: !dryRun,
        isFile: true,
        signal,
      });
      return readDocument(text, readImport);
    },

    async exportOpml({ signal } = {}) {
      return (await send("/v1/subscriptions.opml", { isFile: true, signal })).text;
    },
  };
}
