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
  FORM,
  feedUrl,
  type Json,
  mediaUrl,
  readFeeds,
  startWorld,
  type World,
} from "./app.ts";

const KINDS = ["PLAY", "DOWNLOAD", "DELETE", "NEW", "FLATTR"];

/** Deserialized by serde: every member must be there, with its type. */
function readActions(document: Json): Json[] {
  assert.ok(Number.isInteger(document.timestamp));
  for (const action of document.actions) {
    for (const member of ["podcast", "episode", "timestamp"]) assert.equal(typeof action[member], "string", member);
    for (const member of ["started", "position", "total"]) assert.ok(Number.isInteger(action[member]), member);
    assert.ok(KINDS.includes(action.action.toUpperCase()));
    assert.match(action.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)?$/);
    assert.ok(action.guid === null || typeof action.guid === "string");
  }
  return document.actions;
}

const episode = (name: string, position: number) => ({
  podcast: feedUrl("a"),
  episode: mediaUrl(name),
  guid: name,
  action: position < 0 ? "DOWNLOAD" : "PLAY",
  timestamp: "2026-01-01T10:00:00+00:00",
  started: position < 0 ? -1 : 0,
  position,
  total: position < 0 ? -1 : 600,
});

/** Uses its clock at the start of the sync, and no `since` at the first one. */
async function sync(
  world: World,
  http: AppHttp,
  since: number | undefined,
  upload: { feeds?: string[]; actions?: object[] },
) {
  const started = world.now();
  const query = since === undefined ? "" : `?since=${since}`;
  const feeds = readFeeds(await http.ok("GET", FEEDS + query));
  const actions = readActions(await http.ok("GET", ACTIONS + query));
  // It compares the time of its own changes with this one.
  assert.ok(Math.abs(feeds.timestamp - world.now()) < 24 * 60 * 60);
  world.wait(2);
  if (upload.feeds !== undefined) await http.ok("POST", CHANGE_FEEDS, { add: upload.feeds, remove: [] });
  if (upload.actions !== undefined) await http.ok("POST", ADD_ACTIONS, upload.actions);
  world.wait(2);
  return { started, feeds, actions };
}

test("GNOME Podcasts: login flow without pauses → approved", async () => {
  const world = await startWorld();
  const http = new AppHttp(world.port, { "User-Agent": "GNOME Podcasts" }, false);
  const { login, poll } = await http.ok("POST", "/index.php/login/v2");
  const ask = () =>
    http.send("POST", "/index.php/login/v2/poll", `token=${encodeURIComponent(poll.token)}`, { "Content-Type": FORM });
  let polls = 0;
  for (let response = await ask(); response.status !== 200; response = await ask()) {
    assert.equal(response.status, 404);
    polls += 1;
    if (polls === 2) await world.approve(login);
  }
  assert.ok(polls <= 3, `${polls} polls`);
});

test("GNOME Podcasts: typed password → an app password, which is given back in the end", async () => {
  const world = await startWorld();
  const typed = new AppHttp(world.port, { ...basic(world.name, PASSWORD), "OCS-APIRequest": "true" }, false);
  const { text } = await typed.send("GET", "/ocs/v2.php/core/getapppassword");
  const [, password = ""] = /<apppassword>([^<]+)</.exec(text) ?? [];
  const http = new AppHttp(world.port, { ...basic(world.name, password), "OCS-APIRequest": "true" }, false);
  assert.equal((await http.send("GET", "/ocs/v2.php/core/getapppassword")).status, 403);
  const actions = Array.from({ length: 400 }, (_, index) => episode(`e${index}`, index % 2 === 0 ? 50 : -1));
  const first = await sync(world, http, undefined, { feeds: [feedUrl("a")], actions });
  assert.deepEqual([first.feeds.add, first.feeds.remove, first.actions], [[], [], []]);

  await world.subscribe(feedUrl("page"));
  const second = await sync(world, http, first.started, {});
  assert.ok(second.feeds.add.includes(feedUrl("page")));
  const plays = second.actions.filter(({ action }) => action === "PLAY");
  assert.ok(plays.every(({ position, total }) => position === 50 && total === 600));
  await world.unsubscribe(feedUrl("a"));
  const third = await sync(world, http, second.started, {});
  assert.deepEqual(third.feeds.remove, [feedUrl("a")]);
  const all = readActions(await http.ok("GET", ACTIONS));
  assert.equal(all.length, 400);

  assert.equal((await http.send("DELETE", "/ocs/v2.php/core/apppassword")).status, 200);
  assert.equal((await http.send("GET", FEEDS)).status, 401);
});
