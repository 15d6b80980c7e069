import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf } from "../../../../test/support/jsonapi.ts";
import { readActionListQuery } from "../queries.ts";
import { deviceResource, readDeviceChanges, writeActionPage } from "./apps.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const document = (attributes: unknown, more: object = {}) => ({ data: { type: "device", ...more, attributes } });

test("device changes: valid → only what is given", () => {
  assert.deepEqual(readDeviceChanges(document({ caption: "Ann’s phone" }), "a"), { caption: "Ann’s phone" });
  const both = document({ caption: "x", device_type: "laptop", app: "ignored" }, { id: "a" });
  assert.deepEqual(readDeviceChanges(both, "a"), { caption: "x", type: "laptop" });
  assert.deepEqual(readDeviceChanges(document({}), "a"), {});
});

test("device changes: invalid → rejected, with a pointer to the value", () => {
  for (const caption of ["", "x".repeat(101), "a\nb", "\ud800", 1, null]) {
    const { code, source } = failureOf(() => readDeviceChanges(document({ caption }), "a"));
    assert.deepEqual([code, source], ["invalid-attribute", { pointer: "/data/attributes/caption" }], String(caption));
  }
  for (const type of ["tablet", "", null, 1]) {
    const { source } = failureOf(() => readDeviceChanges(document({ device_type: type }), "a"));
    assert.deepEqual(source, { pointer: "/data/attributes/device_type" });
  }
  assert.deepEqual(failureOf(() => readDeviceChanges(document({}, { id: "b" }), "a")).source, { pointer: "/data/id" });
  assert.equal(failureOf(() => readDeviceChanges({ data: { type: "token", attributes: {} } }, "a")).status, 409);
});

test("devices: written → null for an unknown app", () => {
  const device = { id: "a.b", caption: "A", type: "other", app: "", syncedAt: NOW } as const;
  assert.deepEqual(deviceResource(device, 3, "/p"), {
    type: "device",
    id: "a.b",
    attributes: {
      caption: "A",
      device_type: "other",
      app: null,
      last_sync_at: NOW.toISOString(),
      subscriptions: 3,
    },
    links: { self: "/p/v1/devices/a.b" },
  });
});

test("action pages: filter → in every link", () => {
  const query = readActionListQuery("page[size]=2&filter[feed_url]=https%3A%2F%2Ffeeds.example%2F%3Fa%3D1%26b");
  assert.equal(query.feedUrl, "https://feeds.example/?a=1&b");
  const { links, meta } = JSON.parse(writeActionPage({ items: [], total: 5 }, query, ""));
  assert.equal(
    links.next,
    "/v1/episode-actions?page[number]=2&page[size]=2&filter[feed_url]=https%3A%2F%2Ffeeds.example%2F%3Fa%3D1%26b",
  );
  assert.deepEqual(meta, { total: 5 });
});

test("action pages: the filter is not a feed URL → rejected", () => {
  for (const text of ["", "x", "ftp://feeds.example/"])
    assert.equal(failureOf(() => readActionListQuery(`filter[feed_url]=${text}`)).code, "invalid-query");
});
