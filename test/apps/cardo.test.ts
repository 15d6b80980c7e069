import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import {
  ACTIONS,
  ADD_ACTIONS,
  AppHttp,
  basic,
  CHANGE_FEEDS,
  FEEDS,
  feedUrl,
  type Json,
  mediaUrl,
  startWorld,
  type World,
} from "./app.ts";

/** What Cardo's HTTP plugin adds to every request. */
const TAURI = { Origin: "tauri://localhost", "OCS-APIRequest": "true" };

/** The gPodder API with a date of its own format, the Nextcloud API with another; one clock value for both lists. */
class Cardo {
  readonly feeds = new Set<string>();
  readonly positions = new Map<string, number>();
  readonly times = new Map<string, string>();
  readonly #http: AppHttp;
  readonly #world: World;
  readonly #isGpodder: boolean;
  readonly #paths: { feeds: string; changeFeeds: string; actions: string; addActions: string };
  #lastSync = 0;
  /** How far its clock is ahead, in seconds. */
  readonly #ahead: number;

  constructor(world: World, http: AppHttp, isGpodder: boolean, ahead = 0) {
    this.#world = world;
    this.#http = http;
    this.#isGpodder = isGpodder;
    this.#ahead = ahead;
    const user = encodeURIComponent(world.name);
    const feeds = `/api/2/subscriptions/${user}/cardo-desk.json`;
    const actions = `/api/2/episodes/${user}.json`;
    this.#paths = isGpodder
      ? { feeds, changeFeeds: feeds, actions, addActions: actions }
      : { feeds: FEEDS, changeFeeds: CHANGE_FEEDS, actions: ACTIONS, addActions: ADD_ACTIONS };
  }

  /** As `Date` reads it in the time zone of the computer, for which this test takes one 9 hours ahead of UTC. */
  #readTime(timestamp: string): string {
    const text = this.#isGpodder ? timestamp : `${timestamp}+00:00`;
    const time = new Date(/(Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text}+09:00`);
    assert.ok(!Number.isNaN(time.getTime()), timestamp);
    return time.toISOString();
  }

  async sync(add: string[] = [], remove: string[] = [], history: readonly object[] = []): Promise<void> {
    const { feeds, changeFeeds, actions, addActions } = this.#paths;
    // The status of a GET is not checked: what is missing throws when it is iterated.
    const received: Json = (await this.#http.send("GET", `${feeds}?since=${this.#lastSync}`)).json;
    for (const url of received.add) this.feeds.add(url);
    for (const url of received.remove) this.feeds.delete(url);
    if (add.length + remove.length > 0) await this.#http.ok("POST", changeFeeds, { add, remove });
    for (const url of add) this.feeds.add(url);
    for (const url of remove) this.feeds.delete(url);
    const { json } = await this.#http.send("GET", `${actions}?since=${this.#lastSync}&aggregated=true`);
    for (const action of json.actions) {
      const time = this.#readTime(action.timestamp);
      if (action.action.toUpperCase() === "PLAY") this.positions.set(action.episode, action.position);
      this.times.set(action.episode, time);
    }
    await this.#http.ok("POST", addActions, history);
    this.#lastSync = this.#world.now() + this.#ahead;
  }
}

const row = (name: string, position: number) => ({
  id: 17,
  podcast: feedUrl("a"),
  episode: mediaUrl(name),
  action: "PLAY",
  started: position,
  position,
  total: 600,
  timestamp: "2026-01-01T10:00:00.123Z",
});

async function checkSync(world: World, cardo: Cardo, other: Cardo): Promise<void> {
  await cardo.sync([feedUrl("a")]);
  await cardo.sync([], [], [row("1", 12)]);
  await world.subscribe(feedUrl("page"));
  world.wait(100);
  await cardo.sync([feedUrl("b")]);
  await other.sync();
  assert.deepEqual([...cardo.feeds].sort(), await world.list());
  assert.deepEqual([...other.feeds].sort(), await world.list());
  assert.equal(other.positions.get(mediaUrl("1")), 12);
  await cardo.sync([], [feedUrl("a")], [row("2", 34)]);
  await world.unsubscribe(feedUrl("page"));
  await other.sync();
  await cardo.sync();
  for (const one of [cardo, other]) assert.deepEqual([...one.feeds].sort(), await world.list());
  assert.equal(other.positions.get(mediaUrl("2")), 34);
  assert.equal(other.times.get(mediaUrl("2")), "2026-01-01T10:00:00.000Z");
}

describe("Cardo", async () => {
  test("Cardo: gPodder API, its own clock → nothing is lost", async () => {
    const world = await startWorld();
    const user = encodeURIComponent(world.name);
    const http = new AppHttp(world.port, { ...TAURI, ...basic(world.name, PASSWORD) }, false);
    await http.ok("POST", `/api/2/auth/${user}/login.json`);
    assert.deepEqual(await http.ok("GET", `/api/2/devices/${user}.json`), []);
    const created = await http.send("POST", `/api/2/devices/${user}/cardo-desk.json`, {
      caption: "Cardo",
      type: "desktop",
    });
    assert.equal(created.status, 200);
    const onWindows = { ...TAURI, Origin: "http://tauri.localhost" };
    const second = new AppHttp(world.port, { ...onWindows, ...basic(world.name, world.token) }, false);
    await checkSync(world, new Cardo(world, http, true), new Cardo(world, second, true));
  });

  test("Cardo: clock an hour ahead → nothing is lost", async () => {
    const world = await startWorld();
    const http = new AppHttp(world.port, { ...TAURI, ...basic(world.name, PASSWORD) }, false);
    const second = new AppHttp(world.port, { ...TAURI, ...basic(world.name, world.token) }, false);
    await checkSync(world, new Cardo(world, http, true, 3_600), new Cardo(world, second, false, 3_600));
  });

  test("Cardo: Nextcloud login with JSON, then sync → nothing is lost", async () => {
    const world = await startWorld();
    const guest = new AppHttp(world.port, { ...TAURI, Origin: "http://tauri.localhost" }, false);
    const { login, poll } = await guest.ok("POST", "/index.php/login/v2");
    await world.approve(login);
    const { loginName, appPassword } = await guest.ok("POST", new URL(poll.endpoint).pathname, { token: poll.token });
    const http = new AppHttp(world.port, { ...TAURI, ...basic(loginName, appPassword) }, false);
    const second = new AppHttp(world.port, { ...TAURI, ...basic(loginName, world.token) }, false);
    await checkSync(world, new Cardo(world, http, false), new Cardo(world, second, false));
  });
});
