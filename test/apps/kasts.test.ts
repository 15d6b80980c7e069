import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import {
  ACTIONS,
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

/** `QJsonValue::toInt`: 0 for what is no 32-bit integer. */
const toInt = (value: unknown) =>
  Number.isInteger(value) && Math.abs(value as number) < 2 ** 31 ? (value as number) : 0;

/** `QDateTime::fromString` with `yyyy-MM-dd'T'hh:mm:ss`, after cutting at the first dot; 0 for anything else. */
const toTime = (text: string) => {
  const [bare = ""] = text.split(".");
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(bare) ? Date.parse(`${bare}Z`) / 1_000 : 0;
};

const play = (name: string, position: number) => ({
  podcast: feedUrl("a"),
  episode: mediaUrl(name),
  guid: name,
  device: "kasts-desk",
  action: "play",
  timestamp: "2026-01-01T10:00:00",
  started: position,
  position,
  total: 600,
});

/** Stores each timestamp plus one, and decodes every URL that it receives. */
class Kasts {
  readonly feeds = new Set<string>();
  readonly positions = new Map<string, number>();
  /** URLs of feeds, by episode. */
  readonly podcasts = new Map<string, string>();
  requests = 0;
  readonly #http: AppHttp;
  readonly #world: World;
  readonly #feedsPath: string;
  readonly #changePath: string;
  readonly #actionsPath: string;
  #since = { feeds: 0, actions: 0 };

  constructor(world: World, api: "gpodder" | "nextcloud", device = "kasts-desk") {
    this.#world = world;
    const { port, name } = world;
    this.#http = new AppHttp(port, {
      ...basic(name, api === "gpodder" ? PASSWORD : world.token),
      "User-Agent": "Kasts",
    });
    const isGpodder = api === "gpodder";
    this.#feedsPath = isGpodder ? `/api/2/subscriptions/${name}/${device}.json` : FEEDS;
    this.#changePath = isGpodder ? this.#feedsPath : CHANGE_FEEDS;
    this.#actionsPath = isGpodder ? `/api/2/episodes/${name}.json` : ACTIONS;
  }

  /** Qt adds this Content-Type when an app sets none. */
  #post(path: string, body: unknown): Promise<Json> {
    return this.#http.ok("POST", path, body, { "Content-Type": "application/x-www-form-urlencoded" });
  }

  #remember(kind: "feeds" | "actions", document: Json): void {
    const timestamp = toInt(document.timestamp);
    if (timestamp > 1) this.#since[kind] = timestamp + 1;
  }

  async setUp(device: string): Promise<void> {
    const { name } = this.#world;
    assert.ok(Array.isArray(await this.#http.ok("GET", `/api/2/devices/${name}.json`)));
    const body = { caption: "desk", type: "desktop" };
    assert.equal((await this.#http.send("POST", `/api/2/devices/${name}/${device}.json`, body)).status, 200);
    for (const method of ["GET", "POST"]) {
      const groups = { synchronize: [[device]], "stop-synchronize": [] };
      const status = await this.#http.ok(
        method,
        `/api/2/sync-devices/${name}.json`,
        method === "POST" ? groups : undefined,
      );
      assert.ok(Array.isArray(status.synchronized) && Array.isArray(status["not-synchronized"]));
    }
  }

  async sync(changes: { add?: string[]; remove?: string[] } = {}, actions: readonly object[] = []): Promise<void> {
    const received = await this.#http.ok("GET", `${this.#feedsPath}?since=${this.#since.feeds}`);
    this.#remember("feeds", received);
    for (const url of received.add) this.feeds.add(decodeURIComponent(url));
    for (const url of received.remove) this.feeds.delete(decodeURIComponent(url));
    const { add = [], remove = [] } = changes;
    for (const url of add) this.feeds.add(url);
    for (const url of remove) this.feeds.delete(url);
    if (add.length + remove.length > 0) this.#remember("feeds", await this.#post(this.#changePath, { add, remove }));
    await this.#fetchActions();
    const upload = this.#actionsPath === ACTIONS ? `${ACTIONS}/create` : this.#actionsPath;
    for (let start = 0; start < actions.length; start += 30)
      this.#remember("actions", await this.#post(upload, actions.slice(start, start + 30)));
  }

  /** Asks again as long as the timestamp is older than its clock and something was new. */
  async #fetchActions(): Promise<void> {
    for (;;) {
      const { actions: since } = this.#since;
      const document = await this.#http.ok("GET", `${this.#actionsPath}?since=${since}&aggregated=${since === 0}`);
      this.requests += 1;
      assert.ok(this.requests < 50, "endless pages");
      this.#remember("actions", document);
      for (const action of document.actions) {
        if (String(action.action).toLowerCase() !== "play") continue;
        assert.ok(toTime(action.timestamp) > 0, action.timestamp);
        this.positions.set(action.guid, toInt(action.position));
        this.podcasts.set(action.guid, action.podcast);
      }
      if (document.actions.length === 0 || toInt(document.timestamp) > this.#world.now() - 10) return;
    }
  }
}

for (const api of ["gpodder", "nextcloud"] as const) {
  describe(`Kasts, ${api} API`, async () => {
    const world = await startWorld();

    test("Kasts: stores the timestamp plus one → gets every later change once", async () => {
      const kasts = new Kasts(world, api);
      if (api === "gpodder") await kasts.setUp("kasts-desk");
      await kasts.sync({ add: [feedUrl("a"), feedUrl("b")] }, [play("1", 10)]);
      for (const round of [1, 2, 3, 4]) {
        await world.subscribe(feedUrl(`page-${round}`));
        await kasts.sync();
        assert.deepEqual([...kasts.feeds].sort(), await world.list());
        world.wait(round);
      }
      await world.unsubscribe(feedUrl("a"));
      await kasts.sync({ remove: [feedUrl("b")] });
      assert.deepEqual([...kasts.feeds].sort(), await world.list());
    });

    test("Kasts: pages by its clock → ends, with the positions of others", async () => {
      const [kasts, other] = [new Kasts(world, api, "one"), new Kasts(world, api, "two")];
      await kasts.sync(
        {},
        Array.from({ length: 65 }, (_, index) => play(`p${index}`, index + 1)),
      );
      world.wait(3_600);
      await other.sync();
      for (let index = 0; index < 65; index += 1) assert.equal(other.positions.get(`p${index}`), index + 1);
      const before = other.requests;
      await other.sync();
      assert.equal(other.requests, before + 1);
    });

    test("Kasts: a feed has moved → positions come under the URL that it has, and it is told nothing", async () => {
      const moving = await startWorld();
      const [old, moved] = [feedUrl("a"), feedUrl("b")];
      await moving.subscribe(old);
      const [kasts, other] = [new Kasts(moving, api, "one"), new Kasts(moving, "gpodder", "two")];
      await kasts.sync();
      await moving.follow(old, moved);
      await other.sync({}, [{ ...play("1", 10), podcast: moved }]);
      await kasts.sync();
      assert.deepEqual([[...kasts.feeds], kasts.podcasts.get("1")], [[old], old]);
      await other.sync({}, [{ ...play("2", 20), podcast: old }]);
      await kasts.sync();
      assert.deepEqual([kasts.positions.get("2"), kasts.podcasts.get("2")], [20, old]);
    });

    test("Kasts: removes a feed by its decoded URL → removed", async () => {
      const encoded = "https://feeds.example/a%20b%2Fc?x=%3A";
      await world.subscribe(encoded);
      const kasts = new Kasts(world, api, "three");
      await kasts.sync();
      await kasts.sync({ remove: [decodeURIComponent(encoded)] });
      assert.ok(!(await world.list()).includes(encoded));
    });
  });
}
