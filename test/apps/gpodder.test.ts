import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readOpml } from "../../src/opml/read.ts";
import { PASSWORD } from "../support/http-accounts.ts";
import {
  AppHttp,
  basic,
  FORM,
  feedUrl,
  type Headers,
  type Json,
  mediaUrl,
  readFeeds,
  readUploaded,
  startWorld,
  type World,
} from "./app.ts";

const TYPES = ["desktop", "laptop", "mobile", "server", "other"];
const KINDS = ["download", "play", "delete", "new", "flattr"];

/** `mygpoclient` with urllib: sends credentials only when asked, three times at most, and keeps cookies. */
class Mygpoclient {
  readonly #http: AppHttp;
  readonly #credentials: Headers;
  challenges = 0;

  constructor({ port, name }: World) {
    this.#http = new AppHttp(port, { "User-Agent": "mygpoclient/1.9", Connection: "close" });
    this.#credentials = basic(name, PASSWORD);
  }

  async #request(method: string, path: string, body?: unknown): Promise<string> {
    const type = body === undefined ? {} : { "Content-Type": FORM };
    let response = await this.#http.send(method, path, body, type);
    if (response.status === 401) {
      assert.match(String(response.headers["www-authenticate"]), /^Basic realm="[^"]*"/);
      this.challenges += 1;
      assert.ok(this.challenges <= 3, "it stops and switches synchronization off");
      response = await this.#http.send(method, path, body, { ...type, ...this.#credentials });
    }
    assert.equal(response.status, 200, `${method} ${path}: ${response.status} ${response.text}`);
    return response.text;
  }

  async json(method: string, path: string, body?: unknown): Promise<Json> {
    return JSON.parse(await this.#request(method, path, body));
  }

  /** Anything but an empty body is a failure. */
  async put(method: string, path: string, body: unknown): Promise<void> {
    assert.equal(await this.#request(method, path, body), "");
  }

  text(path: string): Promise<string> {
    return this.#request("GET", path);
  }
}

/** Raises for the whole poll if one action is not exactly as in the document of the API. */
function readActions(document: Json): { actions: Json[]; since: number } {
  for (const action of document.actions) {
    assert.ok(typeof action.podcast === "string" && typeof action.episode === "string");
    assert.ok(KINDS.includes(action.action), action.action);
    assert.match(action.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6}|Z)?$/);
    const numbers = ["started", "position", "total"].filter((member) => member in action);
    if (action.action !== "play") assert.deepEqual(numbers, []);
    for (const member of numbers) assert.ok(Number.isInteger(action[member]) && action[member] >= 0);
    if (numbers.length > 0) assert.ok(numbers.includes("position"));
    assert.ok(numbers.includes("started") === numbers.includes("total"));
  }
  return { actions: document.actions, since: document.timestamp };
}

describe("gPodder desktop with mygpoclient", async () => {
  const world = await startWorld();
  const { name } = world;
  const device = `/api/2/devices/${name}/desk.json`;
  const feeds = `/api/2/subscriptions/${name}/desk.json`;
  const episodes = `/api/2/episodes/${name}.json`;

  test("gPodder: a whole session → one challenge, then the cookie", async () => {
    const client = new Mygpoclient(world);
    let since = 0;
    let sinceEpisodes = 0;
    for (const round of [1, 2, 3, 4, 5]) {
      await client.put("POST", device, { caption: "gPodder on desk", type: "desktop" });
      const received = readFeeds(await client.json("GET", `${feeds}?since=${since}`));
      since = received.timestamp;
      if (round > 1) assert.deepEqual(received.add, [feedUrl(`page-${round - 1}`)]);
      const change = { add: [feedUrl(`own-${round}`)], remove: round === 3 ? [feedUrl("own-1")] : [] };
      since = readUploaded(await client.json("POST", feeds, change));
      sinceEpisodes = readActions(await client.json("GET", `${episodes}?since=${sinceEpisodes}`)).since;
      readUploaded(
        await client.json("POST", episodes, [
          {
            podcast: feedUrl("own-2"),
            episode: mediaUrl("x"),
            action: "play",
            timestamp: "2026-01-01T10:00:00",
            device: "desk",
          },
          { podcast: feedUrl("own-2"), episode: mediaUrl("x"), action: "download", timestamp: "2026-01-01T10:00:00Z" },
          {
            podcast: feedUrl("own-2"),
            episode: mediaUrl(`y${round}`),
            action: "play",
            timestamp: "2026-01-01T10:00:00",
            started: 0,
            position: 5,
            total: 10,
          },
        ]),
      );
      await world.subscribe(feedUrl(`page-${round}`));
      world.wait(60);
    }
    assert.equal(client.challenges, 1);
    assert.ok(!(await world.list()).includes(feedUrl("own-1")));
  });

  test("gPodder: actions of every app → the poll never fails", async () => {
    const client = new Mygpoclient(world);
    const http = new AppHttp(world.port, basic(name, world.token));
    const base = { podcast: feedUrl("z"), episode: mediaUrl("z") };
    await http.ok("POST", episodes, [
      { ...base, action: "DOWNLOAD", started: -1, position: -1, total: -1, timestamp: "2026-01-01T10:00:00+02:00" },
      { ...base, action: "Play", started: 1.5, position: "7.9", timestamp: "2026-01-01T10:00:00.123Z", guid: null },
      { ...base, action: "NEW" },
      { ...base, action: "listen" },
    ]);
    const { actions } = readActions(await client.json("GET", `${episodes}?since=0`));
    const own = actions.filter(({ episode }) => episode === base.episode);
    assert.deepEqual(own.map(({ action }) => action).sort(), ["download", "new", "play"]);
    assert.equal(own.find(({ action }) => action === "play").position, 7);
  });

  test("gPodder: subscribes to a former URL → told to rewrite it, and gets its actions under the current one", async () => {
    const moving = await startWorld();
    const [old, moved] = [feedUrl("a"), feedUrl("b")];
    const [subscriptions, actions] = [
      `/api/2/subscriptions/${moving.name}/desk.json`,
      `/api/2/episodes/${moving.name}.json`,
    ];
    await moving.subscribe(old);
    await moving.follow(old, moved);
    const client = new Mygpoclient(moving);
    const [desk, phone] = [
      (add: string[], remove: string[]) => client.json("POST", subscriptions, { add, remove }),
      new AppHttp(moving.port, { ...basic(moving.name, PASSWORD), "User-Agent": "AntennaPod/3.9.0" }),
    ];
    assert.deepEqual((await desk([old], [])).update_urls, [[old, moved]]);
    assert.deepEqual(
      (await phone.ok("POST", `/api/2/subscriptions/${moving.name}/phone.json`, { add: [old], remove: [] }))
        .update_urls,
      [[old, moved]],
    );
    const play = {
      podcast: old,
      episode: mediaUrl("x"),
      action: "play",
      timestamp: "2026-01-01T10:00:00",
      started: 0,
      position: 5,
      total: 10,
    };
    readUploaded(await phone.ok("POST", actions, [play]));
    const received = readActions(await client.json("GET", `${actions}?since=0`)).actions;
    assert.deepEqual(
      received.map(({ podcast, position }) => [podcast, position]),
      [[moved, 5]],
    );
    await desk([], [moved]);
    assert.deepEqual(await moving.list(), []);
  });

  test("gPodder: devices → only types that it knows", async () => {
    const http = new AppHttp(world.port, basic(name, world.token));
    const path = `/api/2/devices/${name}/pad.json`;
    assert.equal((await http.send("POST", path, { caption: "Pad", type: "tablet" })).status, 200);
    const devices = await new Mygpoclient(world).json("GET", `/api/2/devices/${name}.json`);
    assert.ok(devices.length >= 2);
    for (const { id, caption, type, subscriptions } of devices) {
      assert.ok(typeof id === "string" && typeof caption === "string" && Number.isInteger(subscriptions));
      assert.ok(TYPES.includes(type), type);
    }
  });

  test("gPodder: upload of the whole list, then restore from OPML → the same list", async () => {
    const client = new Mygpoclient(world);
    const all = [feedUrl("one"), feedUrl("two")];
    for (const [format, body] of [
      ["json", all],
      ["txt", `${all.join("\n")}\n`],
      [
        "opml",
        `<opml version="2.0"><body>${all.map((url) => `<outline type="rss" xmlUrl="${url}"/>`).join("")}</body></opml>`,
      ],
    ] as const) {
      await world.subscribe(feedUrl(`extra-${format}`));
      await client.put("PUT", `/subscriptions/${name}/desk.${format}`, body);
      assert.ok((await world.list()).includes(feedUrl(`extra-${format}`)), "what the client has not seen stays");
      assert.deepEqual((await client.json("GET", `/subscriptions/${name}/desk.json`)).sort(), await world.list());
      await client.put("PUT", `/subscriptions/${name}/desk.${format}`, body);
      assert.deepEqual(await client.json("GET", `/subscriptions/${name}/desk.json`), all);
      assert.equal(await client.text(`/subscriptions/${name}/desk.txt`), `${all.join("\n")}\n`);
    }
    const opml = await client.text(`/subscriptions/${name}.opml`);
    assert.deepEqual(
      readOpml(Buffer.from(opml)).map(({ feedUrl: url }) => url),
      all,
    );
    assert.equal(opml.match(/<outline type="rss" /g)?.length, 2);
    assert.deepEqual(
      (await client.json("GET", `/subscriptions/${name}.json`)).map(({ url }: Json) => url),
      all,
    );
  });

  test("gPodder: upload of an OPML file that marks feeds as unsubscribed → these are not in the list", async () => {
    const client = new Mygpoclient(world);
    const path = `/subscriptions/${name}/desk.opml`;
    const outline = (url: string, mark: string) => `<outline type="rss" overcastId="1" xmlUrl="${url}"${mark}/>`;
    await client.put("PUT", `/subscriptions/${name}/desk.json`, [feedUrl("left"), feedUrl("kept")]);
    const feeds = [
      outline(feedUrl("kept"), ' subscribed="1"'),
      outline(feedUrl("left"), ' subscribed="0"'),
      outline(feedUrl("never"), ""),
      outline(feedUrl("new"), ' subscribed="1"'),
      outline(feedUrl("new"), ' subscribed="0"'),
    ];
    await client.put("PUT", path, `<opml version="1.0"><body>${feeds.join("")}</body></opml>`);
    assert.deepEqual(await world.list(), [feedUrl("kept"), feedUrl("new")]);
    const plain = `<outline type="rss" xmlUrl="${feedUrl("plain")}"/>`;
    await client.put("POST", path, `<opml version="2.0"><body>${plain}${feeds[1]}</body></opml>`);
    assert.deepEqual(await world.list(), [feedUrl("plain")]);
  });
});
