import { readCredential, readDocument, readResource } from "./documents.ts";
import { fetchAll, fetchOne, fetchPage, MAX_PAGE_SIZE, pageQuery } from "./lists.ts";
import { type Send, sendDelete, sendResource } from "./requests.ts";
import type { AppLogin, AppMethods, Device, EpisodeAction } from "./types.ts";

const LOGINS = "/v1/app-logins";

export function createAppMethods(send: Send): AppMethods {
  const one = <Data, Value>(text: string, reader: (data: Data) => Value) =>
    readDocument(text, ({ data }: { readonly data: Data }) => reader(data));

  return {
    async devices({ signal } = {}) {
      return fetchAll(send, "/v1/devices", 0, readResource<Device>, signal);
    },

    async changeDevice(id, { caption, deviceType }, { signal } = {}) {
      const attributes = { caption, device_type: deviceType };
      const path = `/v1/devices/${encodeURIComponent(id)}`;
      const { text } = await sendResource(send, path, "device", attributes, { method: "PATCH", signal });
      return one(text, readResource<Device>);
    },

    async forgetDevice(id, { signal } = {}) {
      return sendDelete(send, "/v1/devices", id, { signal });
    },

    async episodeActions({ number = 1, size = MAX_PAGE_SIZE, feedUrl, signal } = {}) {
      const filter = feedUrl === undefined ? "" : `&filter[feed_url]=${encodeURIComponent(feedUrl)}`;
      const path = `/v1/episode-actions${pageQuery(number, size)}${filter}`;
      const { items, total, next } = await fetchPage(send, path, readResource<EpisodeAction>, signal);
      return { items, total, number, size, hasNext: next !== undefined };
    },

    async appLogin(id, options) {
      return fetchOne(send, LOGINS, id, readResource<AppLogin>, options);
    },

    async allowAppLogin(id, label, { signal } = {}) {
      const path = `${LOGINS}/${encodeURIComponent(id)}`;
      const { text } = await sendResource(send, path, "app-login", { label }, { signal });
      return one(text, readCredential);
    },

    async denyAppLogin(id, { signal } = {}) {
      return sendDelete(send, LOGINS, id, { signal });
    },
  };
}
