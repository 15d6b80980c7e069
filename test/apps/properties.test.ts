import assert from "node:assert/strict";
import { test } from "node:test";
import { anyText, fc, runs } from "../support/properties.ts";
import { oddBodies } from "../support/properties-documents.ts";
import { type HttpResponse, startServer } from "../support/server.ts";
import { ACTIONS, ADD_ACTIONS, CHANGE_FEEDS, FEEDS, feedUrl, type Json, mediaUrl } from "./app.ts";

/** Without accounts any name is the one user. */
const GPODDER_FEEDS = "/api/2/subscriptions/any/phone.json";
const GPODDER_ACTIONS = "/api/2/episodes/any.json";
const UPLOADS = [
  ["POST", GPODDER_FEEDS],
  ["POST", CHANGE_FEEDS],
  ["POST", GPODDER_ACTIONS],
  ["POST", ADD_ACTIONS],
  ["POST", "/api/2/devices/any/phone.json"],
  ["POST", "/api/2/sync-devices/any.json"],
  ["PUT", "/subscriptions/any/phone.json"],
  ["PUT", "/subscriptions/any/phone.txt"],
  ["PUT", "/subscriptions/any/phone.opml"],
  ["POST", "/index.php/login/v2/poll"],
] as const;
const FAMILIAR = [feedUrl("a"), mediaUrl("a"), "play", "podcast", "episode", "action", "add", "remove", "caption"];
const JUNK = [
  "\u0000",
  "\ud800",
  "?since=-1",
  "?since=1e9",
  "?since=99999999999999999999",
  "?podcast=%00",
  "?since=%ff",
];

function checkRefusal({ status, headers, json, text }: HttpResponse): void {
  assert.ok([400, 413, 422].includes(status), `${status} ${text}`);
  assert.equal(headers["content-type"], "application/json");
  assert.equal(typeof json.message, "string");
}

test("properties: any body on any upload of apps → 200 or a JSON error", async () => {
  const { call } = await startServer();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...UPLOADS), oddBodies(FAMILIAR), async ([method, path], body) => {
      const response = await call(method, path, { body });
      if (response.status !== 200) checkRefusal(response);
    }),
    { numRuns: runs(60) },
  );
});

test("properties: any query of apps → 200 or a JSON error", async () => {
  const { call } = await startServer();
  const query = fc.oneof(
    fc.array(fc.oneof(anyText, fc.constantFrom("=", "&", "%", "since"))).map((parts) => parts.join("")),
    fc.nat().map((since) => `since=${since}`),
    fc.constantFrom(...JUNK),
  );
  const path = fc.constantFrom(GPODDER_FEEDS, FEEDS, GPODDER_ACTIONS, ACTIONS, "/subscriptions/any.json");
  await fc.assert(
    fc.asyncProperty(path, query, async (start, text) => {
      const response = await call("GET", `${start}?${encodeURI(text.replace(/^\?/, "").toWellFormed())}`);
      if (response.status !== 200) checkRefusal(response);
    }),
    { numRuns: runs(30) },
  );
});

const badFeed = fc.oneof(
  fc.constantFrom<unknown>("", " ", null, 5, {}, [], "antennapod_local:x", "https://", "ftp://a.example/f"),
  anyText,
  fc.constant(feedUrl("\u0000")),
  fc.constant(feedUrl("x".repeat(2_048))),
);

/** The good items with bad ones in between. */
const mixed = <Item>(good: readonly Item[], bad: fc.Arbitrary<unknown>) =>
  fc
    .array(fc.tuple(fc.nat(good.length), bad), { maxLength: 5 })
    .map((inserted) => inserted.reduce<unknown[]>((items, [at, item]) => items.toSpliced(at, 0, item), [...good]));

test("properties: invalid feeds among others → all others are added, and removed", async () => {
  const { call } = await startServer();
  const good = [feedUrl("1"), feedUrl("2"), feedUrl("3")];
  const lists = async () => (await call("GET", "/subscriptions/any/phone.json")).json.toSorted();
  const path = fc.constantFrom(GPODDER_FEEDS, CHANGE_FEEDS);
  await fc.assert(
    fc.asyncProperty(path, mixed(good, badFeed), async (route, urls) => {
      const added = await call("POST", route, { body: JSON.stringify({ add: urls, remove: [] }) });
      assert.equal(added.status, 200, added.text);
      const bad = new Map<string, string>(added.json.update_urls);
      for (const url of good) assert.ok(!bad.has(url));
      assert.deepEqual(await lists(), good);
      const removed = await call("POST", route, { body: JSON.stringify({ add: [], remove: urls }) });
      assert.equal(removed.status, 200, removed.text);
      assert.deepEqual(await lists(), []);
    }),
    { numRuns: runs(10) },
  );
});

test("properties: invalid actions among others → all others are stored", async () => {
  const { call } = await startServer();
  const base = { podcast: feedUrl("p"), action: "play", started: 0, total: 100, timestamp: "2026-01-01T10:00:00" };
  const badAction = fc.oneof(
    fc.constantFrom<unknown>(null, 1, "play", [], {}, { ...base }, { ...base, episode: "x", position: 1 }),
    anyText.map((action) => ({ ...base, episode: mediaUrl("1"), position: 1, action: `x${action}` })),
    anyText.map((guid) => ({ ...base, episode: mediaUrl("1"), position: 1, guid: `\u0000${guid}` })),
    fc.constant({ ...base, episode: mediaUrl("1"), position: 1, timestamp: "2026-02-30T00:00:00" }),
    fc.constant({ ...base, episode: mediaUrl("1"), position: -1, started: -1, total: -1, timestamp: undefined }),
  );
  let position = 10;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(GPODDER_ACTIONS, ADD_ACTIONS), fc.infiniteStream(badAction), async (path, bad) => {
      position += 1;
      const timestamp = new Date(Date.UTC(2026, 0, 1) + position * 1_000).toISOString();
      const good = ["1", "2", "3"].map((name) => ({ ...base, episode: mediaUrl(name), position, timestamp }));
      const body = JSON.stringify(good.flatMap((action) => [action, ...bad.take(2)]));
      const response = await call("POST", path, { body });
      assert.equal(response.status, 200, response.text);
      const { actions } = (await call("GET", `${GPODDER_ACTIONS}?since=0`)).json;
      assert.deepEqual(
        actions.map((action: Json) => [action.episode, action.position]),
        good.map(({ episode }) => [episode, position]),
      );
    }),
    { numRuns: runs(10) },
  );
});
