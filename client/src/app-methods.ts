import { readAccess, readAppLogin, readDevice, readDocument, readEpisodeAction } from "./documents.ts";
import { fetchAll, fetchPart, MAX_PAGE_SIZE, writePage } from "./lists.ts";
import { type Send, sendDelete, sendResource } from "./requests.ts";
import type { AppMethods } from "./types.ts";

export function createAppMethods(send: Send): AppMethods {
  const one = <Data, Value>(text: string, reader: (data: Data) => Value) =>
    readDocument(text, ({ data }: { readonly data: Data }) => reader(data));
  const loginPath = (id: string) => `/v1/app-logins/${encodeURIComponent(id)}`;

  return {
    async devices({ signal } = {}) {
      return [...(await fetchAll(send, "/v1/devices", 0, readDevice, signal)).values()];
    },

    async changeDevice(id, { caption, deviceType }, { signal } = {}) {
      const attributes = { caption, device_type: deviceType };
      const path = `/v1/devices/${encodeURIComponent(id)}`;
      const { text } = await sendResource(send, path, "device", attributes, { method: "PATCH", signal });
      return one(text, readDevice);
    },

    async forgetDevice(id, { signal } = {}) {
      return sendDelete(send, "/v1/devices", id, { signal });
    },

    async episodeActions({ number = 1, size = MAX_PAGE_SIZE, feedUrl, signal } = {}) {
      const filter = feedUrl === undefined ? "" : `&filter[feed_url]=${encodeURIComponent(feedUrl)}`;
      const path = `/v1/episode-actions${writePage(number, size)}${filter}`;
      const { items, total, next } = await fetchPart(send, path, readEpisodeAction, signal);
      return { items, total, number, size, hasNext: next !== undefined };
    },

    async appLogin(id, { signal } = {}) {
      const { text, error } = await send(loginPath(id), { expected: 404, signal });
      return error ? undefined : one(text, readAppLogin);
    },

    async allowAppLogin(id, label, { signal } = {}) {
      const { text } = await sendResource(send, loginPath(id), "app-login", { label }, { signal });
      return one(text, readAccess);
    },

    async denyAppLogin(id, { signal } = {}) {
      return sendDelete(send, "/v1/app-logins", id, { signal });
    },
  };
}
