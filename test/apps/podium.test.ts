import assert from "node:assert/strict";
import { test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import {
  ACTIONS,
  ADD_ACTIONS,
  AppHttp,
  basic,
  CHANGE_FEEDS,
  FEEDS,
  feedUrl,
  type Headers,
  type Json,
  mediaUrl,
  readFeeds,
  readUploaded,
  startWorld,
  type World,
} from "./app.ts";

const AGENT = { "User-Agent": "podium/42 (Android 16; Pixel; +https://github.com/aimok04/podium)" };
const JSON_BODY = { "Content-Type": "application/json" };
const PLAY = {
  action: "play",
  podcast: feedUrl("a"),
  episode: mediaUrl("1"),
  device: "podium-pixel-1a2b3",
  timestamp: "2026-01-01T10:00:00",
  started: 0,
  position: 12,
  total: 600,
};

/** Fails for the whole response if a member has another type than in the app's classes. */
function readActions(document: Json): Json[] {
  for (const {
    action,
    podcast,
    episode,
    device = "",
    timestamp,
    started = 0,
    position = 0,
    total = 0,
  } of document.actions) {
    for (const text of [action, podcast, episode, device]) assert.equal(typeof text, "string");
    for (const number of [started, position, total]) assert.ok(Number.isInteger(number));
    assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)?$/);
  }
  return document.actions;
}

/** Signs in with a password once, and keeps the whole text of Set-Cookie as its Cookie header. */
async function signIn({ port, name }: World): Promise<Headers> {
  const guest = new AppHttp(port, { ...AGENT, Cookie: "" }, false);
  const login = await guest.send("POST", `/api/2/auth/${name}/login.json`, undefined, basic(name, PASSWORD));
  assert.equal(login.status, 200);
  const Cookie = String(login.headers["set-cookie"]);
  assert.match(Cookie, /^sessionid=[^;]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
  return { ...AGENT, Cookie };
}

test("Podium, gPodder: the text of Set-Cookie as Cookie → the session", async () => {
  const world = await startWorld();
  const { name } = world;
  const headers = await signIn(world);
  const http = new AppHttp(world.port, headers, false);
  const device = { caption: "podium on Pixel", type: "mobile" };
  assert.equal((await http.send("POST", `/api/2/devices/${name}/${PLAY.device}.json`, device, JSON_BODY)).status, 200);
  await world.subscribe(feedUrl("page"));
  const feeds = `/api/2/subscriptions/${name}/${PLAY.device}.json`;
  const first = readFeeds(await http.ok("GET", `${feeds}?since=0`));
  assert.deepEqual(first.add, [feedUrl("page")]);
  const episodes = `/api/2/episodes/${name}.json`;
  assert.deepEqual(readActions(await http.ok("GET", `${episodes}?since=0&aggregated=true`)), []);
  const list = [feedUrl("page"), feedUrl("a")];
  assert.equal((await http.send("PUT", `/subscriptions/${name}/${PLAY.device}.json`, list, JSON_BODY)).status, 200);
  readUploaded(await http.ok("POST", episodes, [PLAY], JSON_BODY));
  assert.deepEqual(await world.list(), list.sort());
  assert.deepEqual(
    readActions(await http.ok("GET", `${episodes}?since=0&aggregated=true`)).map(({ position }) => position),
    [12],
  );
  // Its HTTP library writes the attributes as cookies; others join the cookies of a proxy and the server with a comma.
  const [session = ""] = String(headers.Cookie).split(";");
  for (const Cookie of [
    `${session}; Path=%2F; Max-Age=1; HttpOnly=`,
    `x=1; Expires=Thu, 01 Jan 2026; Path=/, ${session}`,
  ])
    assert.equal((await http.send("GET", `${feeds}?since=0`, undefined, { Cookie })).status, 200, Cookie);
});

test("Podium, Nextcloud: poll token in the query, empty credentials → signed in, then synced", async () => {
  const world = await startWorld();
  const guest = new AppHttp(world.port, { ...AGENT, ...basic("", "") }, false);
  const { login, poll } = await guest.ok("POST", "/index.php/login/v2");
  const ask = (token: string) => guest.send("POST", `${new URL(poll.endpoint).pathname}?token=${token}`);
  assert.equal((await ask(poll.token)).status, 404);
  await world.approve(login);
  assert.equal((await ask(`${poll.token}x`)).status, 404);
  const { status, json } = await ask(poll.token);
  assert.equal(status, 200);
  const http = new AppHttp(world.port, { ...AGENT, ...basic(json.loginName, json.appPassword) }, false);
  await world.subscribe(feedUrl("page"));
  const { timestamp } = readFeeds(await http.ok("GET", `${FEEDS}?since=0`));
  readUploaded(await http.ok("POST", CHANGE_FEEDS, { add: [feedUrl("a")], remove: [] }, JSON_BODY));
  readUploaded(await http.ok("POST", ADD_ACTIONS, [PLAY], JSON_BODY));
  assert.deepEqual(await world.list(), [feedUrl("a"), feedUrl("page")]);
  await world.unsubscribe(feedUrl("page"));
  assert.deepEqual(readFeeds(await http.ok("GET", `${FEEDS}?since=${timestamp}`)).remove, [feedUrl("page")]);
  assert.equal(readActions(await http.ok("GET", `${ACTIONS}?since=0`))[0].position, 12);
});

test("Podium, gPodder: uploads its whole list minutes after its poll → what it has not seen stays", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, await signIn(world), false);
  const [path, list] = [`/api/2/subscriptions/${world.name}/podium.json`, `/subscriptions/${world.name}/podium.json`];
  const put = async (urls: string[]) => assert.equal((await http.send("PUT", list, urls, JSON_BODY)).status, 200);
  await world.subscribe(feedUrl("a"), feedUrl("left"));
  readFeeds(await http.ok("GET", `${path}?since=0`));
  await world.follow(feedUrl("a"), feedUrl("b"));
  await world.subscribe(feedUrl("meanwhile"));
  await put([feedUrl("a"), feedUrl("own")]);
  assert.deepEqual(await world.list(), [feedUrl("b"), feedUrl("meanwhile"), feedUrl("own")]);
  const { add } = readFeeds(await http.ok("GET", `${path}?since=0`));
  assert.deepEqual(add.sort(), [feedUrl("a"), feedUrl("meanwhile"), feedUrl("own")]);
  await put([feedUrl("own")]);
  assert.deepEqual(await world.list(), [feedUrl("own")]);
});
