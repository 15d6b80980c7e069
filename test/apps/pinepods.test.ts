import assert from "node:assert/strict";
import { test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import {
  ADD_ACTIONS,
  AppHttp,
  basic,
  CHANGE_FEEDS,
  FEEDS,
  feedUrl,
  type Json,
  mediaUrl,
  readFeeds,
  startWorld,
} from "./app.ts";

const history = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    podcast: feedUrl("a"),
    episode: mediaUrl(`e${index}`),
    action: "play",
    timestamp: "2026-01-01T12:00:00.123456+02:00",
    position: index,
    started: 0,
    total: 10_000,
  }));

test("PinePods, gPodder: a login before every request, all history each time → nothing is lost", async () => {
  const world = await startWorld();
  const { name } = world;
  /** Every request has a session of its own. */
  const request = async (method: string, path: string, body?: unknown): Promise<Json> => {
    const http = new AppHttp(world.port);
    await http.ok("POST", `/api/2/auth/${name}/login.json`, undefined, basic(name, PASSWORD));
    return http.ok(method, path, body, { "Content-Type": "application/json" });
  };
  const phone = new AppHttp(world.port, basic(name, world.token));
  assert.equal((await phone.send("POST", `/api/2/devices/${name}/phone.json`, { caption: "Phone" })).status, 200);
  await phone.ok("POST", `/api/2/subscriptions/${name}/phone.json`, { add: [feedUrl("phone")], remove: [] });
  let since = 0;
  const found = new Set<string>();
  for (const round of [1, 2, 3]) {
    for (const { id } of await request("GET", `/api/2/devices/${name}.json`)) {
      const { add, remove } = readFeeds(await request("GET", `/api/2/subscriptions/${name}/${id}.json?since=${since}`));
      for (const url of add) found.add(url);
      for (const url of remove) found.delete(url);
    }
    const change = { add: [feedUrl(`pine-${round}`)], remove: [] };
    await request("POST", `/api/2/subscriptions/${name}/phone.json`, change);
    found.add(feedUrl(`pine-${round}`));
    await request("POST", `/api/2/episodes/${name}.json`, history(100));
    await world.subscribe(feedUrl(`page-${round}`));
    since = world.now();
    world.wait(30);
  }
  const last = readFeeds(await request("GET", `/api/2/subscriptions/${name}/phone.json?since=${since}`));
  for (const url of last.add) found.add(url);
  assert.deepEqual([...found].sort(), await world.list());
  const { actions } = await request("GET", `/api/2/episodes/${name}.json?since=0`);
  assert.equal(actions.length, 100);
});

test("PinePods, Nextcloud: a path of its own for changes → the same as subscriptions", async () => {
  const world = await startWorld();
  const guest = new AppHttp(world.port, {}, false);
  const { login, poll } = await guest.ok("POST", "/index.php/login/v2");
  await world.approve(login);
  const { appPassword, loginName } = await guest.ok("POST", "/index.php/login/v2/poll", { token: poll.token });
  const http = new AppHttp(world.port, basic(loginName, appPassword), false);
  await world.subscribe(feedUrl("a"));
  assert.deepEqual(readFeeds(await http.ok("GET", FEEDS)).add, [feedUrl("a")]);
  const since = world.now();
  await http.ok("POST", CHANGE_FEEDS, { add: [feedUrl("pine")], remove: [] });
  await http.ok("POST", ADD_ACTIONS, history(50));
  await world.subscribe(feedUrl("b"));
  await world.unsubscribe(feedUrl("a"));
  const path = `/index.php/apps/gpoddersync/subscription_changes/${since}?since=${since}`;
  const changes = readFeeds(await http.ok("GET", path));
  assert.ok(changes.add.includes(feedUrl("b")));
  assert.deepEqual(changes.remove, [feedUrl("a")]);
});

test("PinePods: 20,000 actions in one request → stored and read back", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, basic(world.name, world.token), false);
  const path = `/api/2/episodes/${world.name}.json`;
  await http.ok("POST", path, history(20_000));
  const { actions } = await http.ok("GET", `${path}?since=0`);
  assert.equal(actions.length, 20_000);
});
