import assert from "node:assert/strict";
import { test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import { AppHttp, basic, feedUrl, type Json, mediaUrl, readFeeds, readUploaded, startWorld } from "./app.ts";

const play = (name: string, position: number) => ({
  podcast: feedUrl("a"),
  episode: mediaUrl(name),
  guid: name,
  action: "play",
  timestamp: "2026-01-01T10:00:00Z",
  started: 0,
  position,
  total: 600,
});

test("hullcaster: actions uploaded to the path of its device → the device's, unless they name another", async () => {
  const world = await startWorld();
  const { name } = world;
  const http = new AppHttp(world.port, basic(name, PASSWORD), false);
  await http.ok("POST", `/api/2/auth/${name}/login.json`, "");
  assert.deepEqual(await http.ok("GET", `/api/2/devices/${name}.json`), []);
  const device = { caption: "", type: "laptop" };
  assert.equal((await http.send("POST", `/api/2/devices/${name}/hull.json`, device)).status, 200);
  readUploaded(await http.ok("POST", `/api/2/subscriptions/${name}/hull.json`, { add: [feedUrl("a")], remove: [] }));

  const upload = `/api/2/episodes/${name}/hull.json`;
  readUploaded(await http.ok("POST", upload, [play("1", 12), { ...play("2", 34), device: "phone" }]));
  readUploaded(await http.ok("POST", upload, [play("1", 12)]));
  const { actions } = await http.ok("GET", `/api/2/episodes/${name}.json?since=0`);
  assert.deepEqual(
    actions.map(({ guid, device: of, position }: Json) => [guid, of, position]),
    [
      ["1", "hull", 12],
      ["2", "phone", 34],
    ],
  );
  const devices = await http.ok("GET", `/api/2/devices/${name}.json`);
  assert.deepEqual(devices.map(({ id }: Json) => id).sort(), ["hull", "phone"]);
  assert.equal((await http.send("GET", upload)).status, 405);

  const { add, timestamp } = readFeeds(await http.ok("GET", `/api/2/subscriptions/${name}/hull.json?since=0`));
  assert.deepEqual(add, [feedUrl("a")]);
  await world.unsubscribe(feedUrl("a"));
  const next = await http.ok("GET", `/api/2/subscriptions/${name}/hull.json?since=${timestamp + 1}`);
  assert.deepEqual(readFeeds(next).remove, [feedUrl("a")]);
});

test("actions uploaded to the path of a new device → the device is created", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, basic(world.name, world.token), false);
  readUploaded(await http.ok("POST", `/api/2/episodes/${world.name}/new.device.json`, [play("1", 12)]));
  const devices = await http.ok("GET", `/api/2/devices/${world.name}.json`);
  assert.deepEqual(
    devices.map(({ id }: Json) => id),
    ["new.device"],
  );
});
