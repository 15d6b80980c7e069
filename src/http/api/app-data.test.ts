import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { basic, documentOf, JSONAPI, newUser, start } from "../../../test/support/http-accounts.ts";

const server = await start();

/** A new user. */
async function newAnn() {
  const ann = await newUser(server);
  const token = ann.Authorization.slice("Bearer ".length);
  const headers = { Authorization: ann.Authorization };
  const asApp = (agent: string) => ({ ...basic(ann.name, token), "User-Agent": agent });
  const get = async (path: string) => {
    const response = await server.call("GET", path, { headers });
    assert.equal(response.status, 200, response.text);
    return response.json;
  };
  const patch = (id: string, attributes: object, more: object = headers) =>
    server.call("PATCH", `/v1/devices/${id}`, {
      headers: { ...JSONAPI, ...more },
      body: documentOf("device", attributes),
    });
  /** AntennaPod syncs one subscription, six minutes after it has named its device. */
  const sync = async () => {
    const device = { headers: asApp("AntennaPod/3.9.0"), body: '{"caption":"Pixel 8","type":"mobile"}' };
    assert.equal((await server.call("POST", `/api/2/devices/${ann.name}/pixel.8.json`, device)).status, 200);
    const feeds = { headers: asApp("AntennaPod/3.9.1"), body: '{"add":["https://feeds.example/a"],"remove":[]}' };
    server.wait(6 * 60_000);
    assert.equal((await server.call("POST", `/api/2/subscriptions/${ann.name}/pixel.8.json`, feeds)).status, 200);
  };
  return { ...ann, headers, asApp, get, patch, sync };
}

describe("what apps have synchronized", () => {
  test("devices: an app syncs → listed with its app, type and the length of the list", async () => {
    const { get, sync } = await newAnn();
    await sync();
    const { data, meta } = await get("/v1/devices");
    assert.deepEqual(meta, { total: 1 });
    assert.deepEqual(data[0], {
      type: "device",
      id: "pixel.8",
      attributes: {
        caption: "Pixel 8",
        device_type: "mobile",
        app: "AntennaPod/3.9.1",
        last_sync_at: server.now().toISOString(),
        subscriptions: 1,
      },
      links: { self: "/v1/devices/pixel.8" },
    });
    assert.deepEqual((await get("/v1/devices/pixel%2E8")).data, data[0]);
  });

  test("devices: an app of the Nextcloud API syncs → a device of its own, named after its token", async () => {
    const { asApp, get, tokenId } = await newAnn();
    const path = "/index.php/apps/gpoddersync/subscriptions?since=0";
    assert.equal((await server.call("GET", path, { headers: asApp("Kasts/25.04") })).status, 200);
    const { data } = await get(`/v1/devices/app-${tokenId.slice(0, 8)}`);
    assert.deepEqual([data.attributes.caption, data.attributes.app], ["phone", "Kasts/25.04"]);
  });

  test("devices: changed → only what is given; unknown or invalid → rejected", async () => {
    const { patch, sync } = await newAnn();
    await sync();
    const changed = await patch("pixel.8", { caption: "Ann’s phone" });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual(
      [changed.json.data.attributes.caption, changed.json.data.attributes.device_type],
      ["Ann’s phone", "mobile"],
    );
    assert.equal((await patch("pixel.8", { device_type: "tablet" })).status, 422);
    for (const id of ["nobody", "no%20id", "%F0%9F%8E%A7"]) assert.equal((await patch(id, {})).status, 404, id);
    const reader = await newUser(server, "read");
    assert.equal((await patch("pixel.8", {}, { Authorization: reader.Authorization })).status, 403);
  });

  test("devices: forgotten → absent until the app syncs again; its data stays", async () => {
    const { asApp, get, headers, name, sync } = await newAnn();
    await sync();
    const forget = () => server.call("DELETE", "/v1/devices/pixel.8", { headers });
    assert.equal((await forget()).status, 204);
    assert.equal((await forget()).status, 404);
    assert.equal((await server.call("GET", "/v1/devices/pixel.8", { headers })).status, 404);
    const path = `/api/2/subscriptions/${name}/pixel.8.json?since=0`;
    assert.deepEqual((await server.call("GET", path, { headers: asApp("x") })).json.add, ["https://feeds.example/a"]);
    assert.equal((await get("/v1/devices/pixel.8")).data.attributes.caption, "pixel.8");
  });

  test("episode actions: uploaded → listed in pages, filtered by feed on request", async () => {
    const { asApp, Cookie, get, name, sync } = await newAnn();
    await sync();
    const action = (podcast: string, episode: number) => ({
      podcast: `https://feeds.example/${podcast}`,
      episode: `https://media.example/${episode}.mp3`,
      guid: `guid ${episode}`,
      device: "pixel.8",
      action: "play",
      timestamp: "2026-01-02T03:04:05",
      position: episode,
    });
    const body = JSON.stringify([action("a", 1), action("b", 2), action("a", 3), { ...action("a", 4), action: "new" }]);
    const posted = await server.call("POST", `/api/2/episodes/${name}.json`, { headers: asApp("x"), body });
    assert.equal(posted.status, 200);
    const first = await get("/v1/episode-actions?page[size]=3");
    assert.deepEqual([first.data.length, first.meta.total], [3, 4]);
    assert.deepEqual(first.data[0].attributes, {
      feed_url: "https://feeds.example/a",
      media_url: "https://media.example/1.mp3",
      guid: "guid 1",
      device: "pixel.8",
      action: "play",
      acted_at: "2026-01-02T03:04:05.000Z",
      position: 1,
      started: null,
      total: null,
    });
    assert.equal((await get("/v1/episode-actions?page[size]=1000")).data.length, 4);
    const tooMany = await server.call("GET", "/v1/episode-actions?page[size]=1001", { headers: { Cookie } });
    assert.equal(tooMany.status, 400);
    const last = await get(first.links.next);
    assert.deepEqual([last.data[0].attributes.action, last.data[0].attributes.position], ["new", null]);
    const { data } = await get("/v1/episode-actions?filter[feed_url]=http://feeds.example/b/");
    assert.deepEqual(
      data.map((each: { attributes: { guid: string } }) => each.attributes.guid),
      ["guid 2"],
    );
    const { data: own } = (await server.call("GET", "/v1/me/export", { headers: { Cookie } })).json;
    const types = own.map(({ type }: { type: string }) => type);
    assert.equal(types.filter((type: string) => type === "episode-action").length, 4);
    assert.equal(types.filter((type: string) => type === "device").length, 1);
  });
});
