import assert from "node:assert/strict";
import { test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import { readChanges, uploadActions } from "./antennapod.ts";
import {
  ACTIONS,
  ADD_ACTIONS,
  AppHttp,
  basic,
  CHANGE_FEEDS,
  FEEDS,
  FORM,
  feedUrl,
  type Json,
  mediaUrl,
  readFeeds,
  readTimestamp,
  readUploaded,
  startWorld,
} from "./app.ts";

const play = (name: string, position: number) => ({
  podcast: feedUrl("a"),
  episode: mediaUrl(name),
  guid: name,
  action: "play",
  timestamp: "2026-01-01T10:00:00",
  started: 10,
  position,
  total: 600,
});

test("Podcini.X: feeds are removed → sent once, and only if it knows them", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, basic(world.name, world.token), false);
  await world.subscribe(feedUrl("a"), feedUrl("b"));
  await world.unsubscribe(feedUrl("b"));
  const first = readChanges(await http.ok("GET", `${FEEDS}?since=0`));
  assert.deepEqual([first.add, first.remove], [[feedUrl("a")], []]);

  // Added and removed again before the app has seen it.
  await world.subscribe(feedUrl("c"));
  await world.unsubscribe(feedUrl("c"));
  const second = readChanges(await http.ok("GET", `${FEEDS}?since=${first.timestamp}`));
  assert.deepEqual([second.add, second.remove], [[], []]);

  await world.unsubscribe(feedUrl("a"));
  const third = readChanges(await http.ok("GET", `${FEEDS}?since=${second.timestamp}`));
  assert.deepEqual(third.remove, [feedUrl("a")]);
  const fourth = readChanges(await http.ok("GET", `${FEEDS}?since=${third.timestamp}`));
  assert.deepEqual(fourth.remove, []);
});

test("Podcini.X: reads positions only with playedDuration → every play has it", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, basic(world.name, world.token), false);
  await uploadActions(http, ADD_ACTIONS, [play("1", 40)]);
  const { actions } = await http.ok("GET", `${ACTIONS}?since=0`);
  assert.deepEqual([actions[0].position, actions[0].playedDuration], [40, 30]);
});

test("YourPods: real password, extra parameters, integers only → synchronized", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, { ...basic(world.name, PASSWORD), "Content-Type": "application/json" }, false);
  const first = readFeeds(await http.ok("GET", `${FEEDS}?since=0&deviceid=dart&device=dart`));
  await http.ok("POST", `${CHANGE_FEEDS}?deviceid=dart`, { add: [feedUrl("a")], remove: [] });
  await http.ok("POST", `${ADD_ACTIONS}?deviceid=dart`, [
    { ...play("1", 12), guid: null, timestamp: "2026-01-01T10:00:00.000Z", action: "PLAY", position: 12.0 },
  ]);
  const text = (await http.send("GET", `${ACTIONS}?since=0&device=dart`)).text;
  for (const [, number = ""] of text.matchAll(/"(?:position|started|total|timestamp)":(-?[\d.]+)/g))
    assert.match(number, /^-?\d+$/);
  await world.subscribe(feedUrl("page"));
  const second = readFeeds(await http.ok("GET", `${FEEDS}?since=${first.timestamp}&deviceid=dart`));
  assert.ok(second.add.includes(feedUrl("page")));
});

test("apps that send times as numbers or bare dates → no action is lost", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, basic(world.name, world.token), false);
  const times = [1_767_261_600, "1767261600", 1_767_261_600_000, "1767261600000.5", "2026-01-01", "soon", 17];
  const actions = times.map((timestamp, index) => ({ ...play(String(index), 10 + index), timestamp }));
  for (const path of [ADD_ACTIONS, `/api/2/episodes/${world.name}.json`]) {
    readUploaded(await http.ok("POST", path, actions));
    const stored = (await http.ok("GET", `${ACTIONS}?since=0`)).actions;
    assert.deepEqual(
      stored.map(({ guid, timestamp }: Json) => [guid, timestamp]),
      ["0", "1", "2", "3", "4"].map((guid) => [guid, guid === "4" ? "2026-01-01T00:00:00" : "2026-01-01T10:00:00"]),
    );
  }
});

test("YourPods: gPodder API in Swift → the text before the first semicolon is the session", async () => {
  const world = await startWorld();
  const guest = new AppHttp(world.port, {}, false);
  const body = { username: world.name, password: PASSWORD };
  const response = await guest.send("POST", `/api/2/auth/${world.name}/login.json`, body, basic(world.name, PASSWORD));
  assert.equal(response.status, 200);
  const [Cookie = ""] = String(response.headers["set-cookie"]).split(";");
  const http = new AppHttp(world.port, { Cookie }, false);
  readFeeds(await http.ok("GET", `/api/2/subscriptions/${world.name}/ios.json?since=0`));
  assert.deepEqual(
    (await http.ok("GET", `/api/2/devices/${world.name}.json`)).map(({ id }: Json) => id),
    ["ios"],
  );
});

test("Kodi, gPodder: URL-safe Basic, a cookie named sessionid → the OPML file", async () => {
  const world = await startWorld();
  await world.subscribe(feedUrl("a"));
  const guest = new AppHttp(world.port, basic(world.name, PASSWORD, "base64url"), false);
  const response = await guest.send("POST", `/api/2/auth/${world.name}/login.json`);
  const [, session = ""] = /^sessionid=([^;]+)/.exec(String(response.headers["set-cookie"])) ?? [];
  const http = new AppHttp(world.port, { Cookie: `sessionid=${session}` }, false);
  const { status, text } = await http.send("GET", `/subscriptions/${world.name}.opml`);
  assert.equal(status, 200);
  assert.match(text, /<outline type="rss" [^>]*xmlUrl="https:\/\/feeds\.example\/a"/);
});

test("Kodi, Nextcloud: its own clock, an extra member, a JSON response → synchronized", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, basic(world.name, world.token, "base64url"), false);
  await world.subscribe(feedUrl("a"));
  assert.deepEqual(readFeeds(await http.ok("GET", `${FEEDS}?since=0`)).add, [feedUrl("a")]);
  const since = world.now();
  await world.subscribe(feedUrl("same-second"));
  const response = await http.ok("POST", CHANGE_FEEDS, { add: [feedUrl("kodi")], remove: [], timestamp: since });
  readTimestamp(response);
  assert.ok(readFeeds(await http.ok("GET", `${FEEDS}?since=${since}`)).add.includes(feedUrl("same-second")));
});

test("Music Assistant, Nextcloud: login flow, app password as bearer without a name → synced", async () => {
  const world = await startWorld();
  const guest = new AppHttp(world.port, {}, false);
  const { login, poll } = await guest.ok("POST", "/index.php/login/v2");
  const ask = () =>
    guest.send("POST", new URL(poll.endpoint).pathname, `token=${poll.token}`, { "Content-Type": FORM });
  assert.equal((await ask()).status, 404);
  await world.approve(login);
  const { appPassword } = (await ask()).json;
  const http = new AppHttp(world.port, { Authorization: `Bearer ${appPassword}` }, false);
  await world.subscribe(feedUrl("a"));
  assert.deepEqual(readFeeds(await http.ok("GET", `${FEEDS}?since=0`)).add, [feedUrl("a")]);
  readTimestamp(await http.ok("POST", ADD_ACTIONS, [play("1", 12)]));
  assert.equal((await http.ok("GET", `${ACTIONS}?since=0`)).actions[0].position, 12);
});
