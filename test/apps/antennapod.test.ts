import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import { applyChanges, readChanges, readPlays, readPosted, uploadActions } from "./antennapod.ts";
import {
  ACTIONS,
  ADD_ACTIONS,
  AppHttp,
  basic,
  CHANGE_FEEDS,
  FEEDS,
  FORM,
  feedUrl,
  mediaUrl,
  startWorld,
  type World,
} from "./app.ts";

const JSON_TYPE = { "Content-Type": "application/json; charset=utf-8" };
const AGENT = { "User-Agent": "AntennaPod/3.9.0" };

const play = (name: string, position: number, timestamp = "2026-01-01T10:00:00") => ({
  podcast: feedUrl("a"),
  episode: mediaUrl(name),
  guid: `guid-${name}`,
  action: "play",
  timestamp,
  device: "pixel_8",
  started: 0,
  position,
  total: 600,
});

/** The gPodder provider: it signs in at each sync, and then sends the cookie alone. */
class AntennaPod {
  readonly feeds = new Set<string>();
  readonly #http: AppHttp;
  readonly #user: string;
  readonly #device: string;
  sinceFeeds = 0;
  sinceActions = 0;

  constructor({ port, name }: World, device: string) {
    this.#http = new AppHttp(port, AGENT);
    this.#user = name;
    this.#device = device;
  }

  async signIn(): Promise<void> {
    const headers = { ...basic(this.#user, PASSWORD), "Content-Type": "plain/text; charset=utf-8" };
    await this.#http.ok("POST", `/api/2/auth/${this.#user}/login.json`, "", headers);
  }

  async setUp(): Promise<void> {
    await this.signIn();
    const before = await this.#http.ok("GET", `/api/2/devices/${this.#user}.json`);
    assert.ok(Array.isArray(before));
    const device = { caption: "Pixel 8", type: "mobile" };
    const response = await this.#http.send(
      "POST",
      `/api/2/devices/${this.#user}/${this.#device}.json`,
      device,
      JSON_TYPE,
    );
    assert.deepEqual([response.status, response.text], [200, ""]);
    for (const each of await this.#http.ok("GET", `/api/2/devices/${this.#user}.json`)) {
      assert.deepEqual(
        ["id", "caption", "type", "subscriptions"].map((member) => typeof each[member]),
        ["string", "string", "string", "number"],
      );
    }
  }

  /** `meanwhile` is what others do between the requests. */
  async sync(
    changes: { add: string[]; remove: string[] },
    actions: readonly object[] = [],
    meanwhile: () => Promise<unknown> = async () => undefined,
  ) {
    await this.signIn();
    const path = `/api/2/subscriptions/${this.#user}/${this.#device}.json`;
    const received = readChanges(await this.#http.ok("GET", `${path}?since=${this.sinceFeeds}`));
    await meanwhile();
    this.sinceFeeds = received.timestamp;
    applyChanges(this.feeds, received);
    if (changes.add.length + changes.remove.length > 0) {
      this.sinceFeeds = readPosted(await this.#http.ok("POST", path, changes, JSON_TYPE));
      applyChanges(this.feeds, changes);
    }
    const episodes = `/api/2/episodes/${this.#user}.json`;
    const { plays, timestamp } = readPlays(await this.#http.ok("GET", `${episodes}?since=${this.sinceActions}`));
    this.sinceActions = timestamp;
    if (actions.length > 0)
      this.sinceActions = readPosted(await uploadActions(this.#http, episodes, actions, JSON_TYPE));
    return { ...received, plays };
  }
}

const NOTHING = { add: [], remove: [] };

describe("AntennaPod, gPodder provider", async () => {
  const world = await startWorld();

  test("AntennaPod: set-up, first sync, changes of others → nothing is lost or comes back", async () => {
    const phone = new AntennaPod(world, "pixel_8");
    await phone.setUp();
    await world.subscribe(feedUrl("page"));
    const first = await phone.sync({ add: [feedUrl("a"), feedUrl("b")], remove: [] }, [play("1", 30)]);
    assert.deepEqual([first.add, first.remove, first.plays], [[feedUrl("page")], [], []]);
    assert.deepEqual(await world.list(), [feedUrl("a"), feedUrl("b"), feedUrl("page")]);

    await world.unsubscribe(feedUrl("b"));
    await world.subscribe(feedUrl("c"));
    await phone.sync(NOTHING);
    assert.deepEqual([...phone.feeds].sort(), await world.list());

    const tablet = new AntennaPod(world, "tablet");
    await tablet.setUp();
    const found = await tablet.sync(NOTHING);
    assert.deepEqual(found.remove, []);
    assert.deepEqual([...tablet.feeds].sort(), await world.list());
    assert.deepEqual(
      found.plays.map(({ guid, position }) => [guid, position]),
      [["guid-1", 30_000]],
    );

    const quiet = await phone.sync(NOTHING);
    assert.deepEqual([quiet.add, quiet.remove], [[], []]);
  });

  test("AntennaPod: another device writes between its GET and its POST → delivered next time", async () => {
    const phone = new AntennaPod(world, "phone-2");
    await phone.setUp();
    await phone.sync(NOTHING);
    const tablet = new AntennaPod(world, "tablet-2");
    await tablet.setUp();
    await tablet.sync(NOTHING);
    const meanwhile = () => tablet.sync({ add: [feedUrl("between")], remove: [] }, [play("between", 99)]);
    await phone.sync({ add: [feedUrl("own")], remove: [] }, [play("own", 11)], meanwhile);
    assert.ok(!phone.feeds.has(feedUrl("between")));
    await tablet.sync(NOTHING);
    await phone.sync(NOTHING);
    assert.ok(phone.feeds.has(feedUrl("between")) && tablet.feeds.has(feedUrl("own")));
  });

  test("AntennaPod: 90 played episodes at the first sync → all reach a new phone", async () => {
    const other = await startWorld();
    const phone = new AntennaPod(other, "old");
    await phone.setUp();
    await phone.sync(
      { add: [feedUrl("a")], remove: [] },
      Array.from({ length: 90 }, (_, index) => play(`e${index}`, 100)),
    );
    const fresh = new AntennaPod(other, "new");
    await fresh.setUp();
    const { plays } = await fresh.sync(NOTHING);
    assert.equal(plays.length, 90);
    assert.ok(plays.every(({ position }) => position === 100_000));
  });

  test("AntennaPod: same feed added and removed → 400, so that it repairs its queue", async () => {
    const http = new AppHttp(world.port, basic(world.name, PASSWORD));
    const both = { add: [feedUrl("x")], remove: [feedUrl("x")] };
    const path = `/api/2/subscriptions/${world.name}/pixel_8.json`;
    assert.equal((await http.send("POST", path, both)).status, 400);
  });

  test("AntennaPod: local feeds and plays without a position → ignored, the rest is stored", async () => {
    const http = new AppHttp(world.port, basic(world.name, PASSWORD));
    const path = `/api/2/subscriptions/${world.name}/pixel_8.json`;
    const response = await http.ok("POST", path, { add: ["antennapod_local:content://x", feedUrl("ok")], remove: [] });
    assert.deepEqual(response.update_urls, [["antennapod_local:content://x", ""]]);
    assert.ok((await world.list()).includes(feedUrl("ok")));
    const episodes = `/api/2/episodes/${world.name}.json`;
    readPosted(await http.ok("POST", episodes, [play("kept", 50)]));
    const later = { ...play("kept", -1, "2026-01-02T10:00:00"), started: -1, total: -1 };
    readPosted(await http.ok("POST", episodes, [later, { ...play("x", 1), podcast: null }]));
    const { plays } = readPlays(await http.ok("GET", `${episodes}?since=0`));
    assert.equal(plays.find(({ guid }) => guid === "guid-kept")?.position, 50_000);
    assert.ok(plays.every(({ position }) => position >= 0));
  });
});

describe("AntennaPod: feeds that move", async () => {
  const [old, moved] = [feedUrl("a"), feedUrl("b")];
  const startPhones = async () => {
    const world = await startWorld();
    await world.subscribe(old);
    const [phone, tablet] = [new AntennaPod(world, "phone"), new AntennaPod(world, "tablet")];
    for (const each of [phone, tablet]) {
      await each.setUp();
      await each.sync(NOTHING);
    }
    await tablet.sync(NOTHING, [play("1", 30)]);
    await phone.sync(NOTHING);
    return { world, phone, tablet };
  };

  test("AntennaPod: the old URL leads to the new one → it keeps its feed with all that belongs to it", async () => {
    const { world, phone, tablet } = await startPhones();
    await world.follow(old, moved);
    for (const each of [phone, tablet]) {
      const { add, remove } = await each.sync(NOTHING);
      assert.deepEqual([add, remove], [[], []]);
      assert.deepEqual([...each.feeds], [old]);
    }
  });

  test("AntennaPod: follows a redirect by itself, then removes the feed → removed everywhere", async () => {
    const { world, phone, tablet } = await startPhones();
    await world.follow(old, moved);
    phone.feeds.delete(old);
    phone.feeds.add(moved);
    await phone.sync({ add: [], remove: [moved] });
    assert.deepEqual(await world.list(), []);
    const { remove } = await tablet.sync(NOTHING);
    assert.ok(remove.includes(old) && tablet.feeds.size === 0);
    await phone.sync(NOTHING);
    assert.equal(phone.feeds.size, 0);
  });

  test("AntennaPod: told to replace a URL, sends the removal back → the feed stays, with its positions", async () => {
    const { world, phone, tablet } = await startPhones();
    await world.move(old, moved);
    const { add, remove, plays } = await phone.sync(NOTHING);
    assert.deepEqual([add, remove], [[moved], [old]]);
    assert.deepEqual(
      plays.map(({ podcast, guid, position }) => [podcast, guid, position]),
      [[moved, "guid-1", 30_000]],
    );
    await phone.sync({ add: [], remove: [old] });
    assert.deepEqual(await world.list(), [moved]);
    await tablet.sync(NOTHING);
    await tablet.sync({ add: [], remove: [old] });
    for (const each of [phone, tablet]) {
      const last = await each.sync(NOTHING);
      assert.deepEqual([last.add, last.remove, [...each.feeds]], [[], [], [moved]]);
    }
  });

  test("AntennaPod: removed and added again elsewhere, sends the removal back → offered again, then removable", async () => {
    const { world, phone } = await startPhones();
    await world.unsubscribe(old);
    assert.deepEqual((await phone.sync(NOTHING)).remove, [old]);
    await world.subscribe(old);
    await phone.sync({ add: [], remove: [old] });
    assert.deepEqual(await world.list(), [old]);
    assert.deepEqual((await phone.sync(NOTHING)).add, [old]);
    await phone.sync(NOTHING);
    await phone.sync({ add: [], remove: [old] });
    assert.deepEqual(await world.list(), []);
  });
});

describe("AntennaPod, Nextcloud provider", async () => {
  const world = await startWorld();

  test("AntennaPod: login flow in the browser, then sync by its own clock → nothing is lost", async () => {
    const guest = new AppHttp(world.port, AGENT, false);
    const { login, poll } = await guest.ok("POST", "//index.php/login/v2", "", { "Content-Type": FORM });
    const ask = (headers = { "Content-Type": FORM }) =>
      guest.send("POST", new URL(poll.endpoint).pathname, `token=${poll.token}`, headers);
    assert.notEqual((await ask()).status, 200);
    await world.approve(login);
    const { server, loginName, appPassword } = (await ask()).json;
    assert.equal(server, world.server.url);

    const http = new AppHttp(world.port, { ...AGENT, ...basic(loginName, appPassword), Accept: "application/json" });
    const feeds = new Set<string>();
    let since = 0;
    for (const round of [1, 2, 3]) {
      const received = readChanges(await http.ok("GET", `${FEEDS}?since=${since}`));
      applyChanges(feeds, received);
      await world.subscribe(feedUrl(`during-${round}`));
      await http.ok("POST", CHANGE_FEEDS, { add: [feedUrl(`own-${round}`)], remove: [] }, JSON_TYPE);
      feeds.add(feedUrl(`own-${round}`));
      world.wait(5);
      since = world.now();
    }
    applyChanges(feeds, readChanges(await http.ok("GET", `${FEEDS}?since=${since}`)));
    assert.deepEqual([...feeds].sort(), await world.list());
    await world.unsubscribe(feedUrl("own-1"));
    applyChanges(feeds, readChanges(await http.ok("GET", `${FEEDS}?since=${since}`)));
    assert.deepEqual([...feeds].sort(), await world.list());

    await uploadActions(http, ADD_ACTIONS, [play("1", 30), { ...play("1", 0), action: "delete", started: undefined }]);
    const { plays } = readPlays(await http.ok("GET", `${ACTIONS}?since=0`));
    assert.deepEqual(
      plays.map(({ guid, position }) => [guid, position]),
      [["guid-1", 30_000]],
    );
  });

  test("AntennaPod: same feed added and removed → 200, and it is removed", async () => {
    const http = new AppHttp(world.port, basic(world.name, world.token));
    await http.ok("POST", CHANGE_FEEDS, { add: [feedUrl("both")], remove: [feedUrl("both")] });
    assert.ok(!(await world.list()).includes(feedUrl("both")));
  });
});
