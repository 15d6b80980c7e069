import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { newUser } from "../../../test/support/http-accounts.ts";
import { ATOMIC, add, newId, PLAIN, startServer, temporaryFolder } from "../../../test/support/server.ts";

const shared = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });
const elsewhere = await startServer();

type Server = Pick<typeof shared, "call">;
type Headers = Readonly<Record<string, string>>;

interface Resource {
  readonly type: string;
  readonly id: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface Document {
  readonly data: readonly Resource[];
}

/** An account of a server, whose requests have these headers. */
function accountOn(server: Server, own: Headers = {}) {
  const send = async (method: string, path: string, body: unknown, headers: Headers = { "Content-Type": PLAIN }) =>
    server.call(method, path, {
      headers: { ...own, ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const get = async (path: string) => {
    const { status, json } = await server.call("GET", path, { headers: own });
    assert.equal(status, 200, path);
    return json;
  };
  return {
    send,
    get,
    operate: (...operations: object[]) =>
      send("POST", "/v1/operations", { "atomic:operations": operations }, { "Content-Type": ATOMIC, Accept: ATOMIC }),
    export: (): Promise<Document> => get("/v1/me/export"),
    import: (document: unknown, query = "") => send("POST", `/v1/me/import${query}`, document),
    upload: (...actions: object[]) =>
      send("POST", "/api/2/episodes/x.json", actions, { "Content-Type": "application/json" }),
  };
}

async function newAccount() {
  const { Cookie } = await newUser(shared);
  return accountOn(shared, { Cookie, "Sec-Fetch-Site": "same-origin" });
}

/** What an import takes over, without the numbers of actions and what belongs to the account. */
const portable = ({ data }: Document) =>
  data
    .filter(({ type }) => ["subscription", "episode-action", "device"].includes(type))
    .map(({ type, id, attributes }) => (type === "episode-action" ? { type, attributes } : { type, id, attributes }));

const countsOf = ({ json }: Awaited<ReturnType<ReturnType<typeof accountOn>["import"]>>) => {
  const { subscriptions, episode_actions } = json.data.attributes;
  return [Object.values(subscriptions), Object.values(episode_actions)];
};

const subscription = (feed_url: string, more: object = {}, id = newId()) => ({
  type: "subscription",
  id,
  attributes: { feed_url, user_subscribed_at: "2020-02-03T04:05:06.789Z", ...more },
});
const play = (more: object = {}) => ({
  type: "episode-action",
  id: "1",
  attributes: {
    feed_url: "https://feeds.example/a",
    media_url: "https://media.example/1",
    guid: null,
    device: null,
    action: "play",
    acted_at: "2020-02-03T04:05:06.000Z",
    position: 10,
    started: 0,
    total: 100,
    ...more,
  },
});
const documentOf = (...data: object[]) => ({ data });
const update = (id: string, attributes: object) => ({ op: "update", data: { type: "subscription", id, attributes } });
const OLD = "https://feeds.example/old";
const NEW = "https://feeds.example/new";

test("account: exported and imported into an empty account → the same list, actions and devices", async () => {
  const source = accountOn(elsewhere);
  const [moved, named] = [newId(), newId()];
  await source.operate(
    add(moved, "https://feeds.example/oldest"),
    add(named, "https://feeds.example/named"),
    add(newId(), "https://feeds.example/plain"),
    update(moved, { feed_url: OLD }),
    update(named, { title: "Mine", folders: ["News/Daily", "Löcher"] }),
    update(moved, { feed_url: NEW }),
  );
  await source.upload(
    { podcast: OLD, episode: "https://media.example/1", action: "play", timestamp: "2026-01-02T03:04:05", position: 7 },
    { podcast: "https://feeds.example/gone", episode: "https://media.example/2", action: "download", device: "phone" },
  );
  await source.send("PATCH", "/v1/devices/phone", { data: { type: "device", attributes: { caption: "My phone" } } });
  const exported = await source.export();
  const target = await newAccount();
  const preview = await target.import(exported, "?dryRun=true");
  assert.deepEqual(portable(await target.export()), []);
  const imported = await target.import(exported);
  assert.deepEqual(countsOf(imported), [
    [3, 3, 0, 0],
    [2, 2, 0, 0],
  ]);
  assert.deepEqual(countsOf(preview), countsOf(imported));
  const { type, id, attributes } = imported.json.data;
  assert.deepEqual([type, typeof id, attributes.kind, attributes.url], ["account-import", "string", "earmark", null]);
  assert.deepEqual([preview.json.data.attributes.dry_run, attributes.dry_run], [true, false]);
  const copy = await target.export();
  assert.deepEqual(portable(copy), portable(exported));
  const first = portable(copy).find((each) => each.type === "subscription");
  assert.deepEqual(first?.attributes["former_feed_urls"], [OLD, "https://feeds.example/oldest"]);

  // The former URLs find the subscription, and an app that has one of them is told nothing.
  const found = await target.get(`/v1/subscriptions?filter[feed_url]=${encodeURIComponent(OLD)}`);
  assert.deepEqual([found.data[0].id, found.data[0].attributes.feed_url], [moved, NEW]);
  const again = await target.operate(add(newId(), "https://feeds.example/oldest"));
  assert.equal(again.json["atomic:results"][0].errors[0].meta.existing_id, moved);

  const repeated = await target.import(exported);
  assert.deepEqual(countsOf(repeated), [
    [3, 0, 3, 0],
    [2, 0, 2, 0],
  ]);
  assert.deepEqual(portable(await target.export()), portable(copy));
});

test("account import: a feed that is listed → keeps its id, title and folders", async () => {
  const account = await newAccount();
  const [own, free] = [newId(), newId()];
  await account.operate(
    { op: "add", data: { type: "subscription", id: own, attributes: { feed_url: NEW, title: "Own", folders: ["A"] } } },
    add(free, "https://feeds.example/other"),
  );
  const before = await account.get("/v1/subscriptions");
  const listed = subscription("http://FEEDS.example/new", { title: "Theirs", folders: ["B"], former_feed_urls: [OLD] });
  // Its id is in use, so it gets another one.
  const conflict = subscription("https://feeds.example/third", {}, free);
  const result = await account.import(documentOf(listed, conflict, subscription("gopher://x.example")));
  assert.deepEqual(countsOf(result)[0], [3, 1, 1, 1]);
  const after = await account.get("/v1/subscriptions");
  assert.deepEqual(after.data.slice(0, 2), before.data);
  assert.notEqual(after.data[2].id, free);
  assert.equal(after.data[2].attributes.user_subscribed_at, "2020-02-03T04:05:06.789Z");
});

test("account import: former URLs that other subscriptions have → stay with these", async () => {
  const account = await newAccount();
  const [moved, plain] = [newId(), newId()];
  await account.operate(add(moved, OLD), add(plain, "https://feeds.example/plain"), update(moved, { feed_url: NEW }));
  const former_feed_urls = [OLD, "https://feeds.example/plain", "https://feeds.example/own", "no URL"];
  await account.import(documentOf(subscription("https://feeds.example/b", { former_feed_urls })));
  const { data } = await account.get("/v1/subscriptions");
  assert.deepEqual(
    data.map(({ attributes }: Resource) => [attributes["feed_url"], attributes["former_feed_urls"]]),
    [
      [NEW, [OLD]],
      ["https://feeds.example/plain", undefined],
      ["https://feeds.example/b", ["https://feeds.example/own"]],
    ],
  );
});

test("account import: times in the future → the time of the import, which a repeat does not change", async () => {
  const account = await newAccount();
  const future = "2099-01-01T00:00:00.000Z";
  const soon = new Date(Date.now() + 60_000).toISOString();
  const document = documentOf(
    subscription(NEW, { user_subscribed_at: future }),
    play({ acted_at: future }),
    play({ acted_at: soon, media_url: "https://media.example/2" }),
    { type: "device", id: "desk", attributes: { caption: "Desk", device_type: "desktop", last_sync_at: future } },
  );
  assert.deepEqual(countsOf(await account.import(document))[1], [2, 2, 0, 0]);
  const copy = await account.export();
  const times = copy.data.flatMap(({ attributes: { user_subscribed_at, acted_at, last_sync_at } }) =>
    [user_subscribed_at, acted_at, last_sync_at].filter((time) => time !== undefined),
  );
  assert.equal(times.length, 4);
  assert.ok(times.every((time) => Date.parse(String(time)) <= Date.now()));
  assert.deepEqual(countsOf(await account.import(document))[1], [2, 0, 2, 0]);
  assert.deepEqual(portable(await account.export()), portable(copy));
});

test("account import: an unknown kind of action → refused; other types → ignored", async () => {
  const account = await newAccount();
  const document = documentOf(play({ action: "dance" }), play({ feed_url: "x" }), { type: "later", id: "1" }, play());
  assert.deepEqual(countsOf(await account.import(document))[1], [3, 1, 0, 2]);
});

test("account import: another document → 4xx with a pointer, and nothing is changed", async () => {
  const account = await newAccount();
  const before = await account.export();
  const good = subscription(NEW);
  for (const [document, status, code, pointer] of [
    ["{", 400, "malformed-json", undefined],
    [[], 400, "malformed-document", ""],
    [{ errors: [] }, 400, "malformed-document", ""],
    [{ data: { type: "account" } }, 400, "malformed-document", "/data"],
    [{ data: [] }, 400, "malformed-document", "/data"],
    [{ data: [{ type: "token", id: "1", attributes: {} }] }, 400, "malformed-document", "/data"],
    [documentOf(good, { id: "1" }), 400, "malformed-document", "/data/1"],
    [documentOf(good, { type: "subscription", id: newId() }), 400, "malformed-document", "/data/1"],
    [documentOf(good, { ...good, id: "x" }), 400, "invalid-id", "/data/1/id"],
    [documentOf(good, subscription(NEW, { title: 1 })), 422, "invalid-title", "/data/1/attributes/title"],
    [documentOf(good, subscription(NEW, { folders: [""] })), 422, "invalid-folders", "/data/1/attributes/folders"],
    [
      documentOf(good, subscription(NEW, { former_feed_urls: [1] })),
      422,
      "invalid-attribute",
      "/data/1/attributes/former_feed_urls",
    ],
    [documentOf(good, play({ acted_at: "today" })), 422, "invalid-attribute", "/data/1/attributes/acted_at"],
    [documentOf(good, play({ position: "1" })), 422, "invalid-attribute", "/data/1/attributes/position"],
    [documentOf(good, play({ media_url: undefined })), 422, "invalid-attribute", "/data/1/attributes"],
  ] as const) {
    const { json, status: sent } = await account.import(document);
    const [error] = json.errors;
    assert.deepEqual([sent, error.code, error.source?.pointer], [status, code, pointer], JSON.stringify(document));
  }
  assert.equal((await account.import(documentOf(good), "?dryRun=yes")).status, 400);
  assert.deepEqual(portable(await account.export()), portable(before));
});

test("account import: the database fails partway → says how much was added, and keeps it", async () => {
  const path = join(temporaryFolder(), "earmark.db");
  const account = accountOn(await startServer({ DATABASE_URL: `file:${path}` }));
  const disk = new DatabaseSync(path);
  disk.exec(
    "create trigger bad_sector before insert on episode_actions when new.media_url like '%/1500' begin select raise(abort, 'x'); end",
  );
  const actions = Array.from({ length: 2_000 }, (_, index) => play({ media_url: `https://media.example/${index}` }));
  const document = documentOf(subscription(NEW), ...actions);
  const { status, json } = await account.import(document);
  assert.deepEqual([status, json.errors[0].code], [503, "import-interrupted"]);
  assert.match(json.errors[0].detail, /after 1001 entries/);
  disk.exec("drop trigger bad_sector");
  disk.close();
  assert.deepEqual(countsOf(await account.import(document)), [
    [1, 0, 1, 0],
    [2_000, 1_000, 1_000, 0],
  ]);
});

test("account import: a long document → read in a thread, within its limit", async () => {
  const account = await newAccount();
  const actions = Array.from({ length: 5_000 }, (_, index) => play({ media_url: `https://media.example/${index}` }));
  assert.deepEqual(countsOf(await account.import(documentOf(...actions)))[1], [5_000, 5_000, 0, 0]);
  const tooLong = await account.import("", "?dry_run=true");
  assert.equal(tooLong.json.errors[0].code, "body-missing");
});

test("account import: takes long → the connection is not closed because nothing is sent", async () => {
  const account = await newAccount();
  const silences: (number | undefined)[] = [];
  const onFinish = (message: unknown) => {
    const { request, socket } = message as { request: IncomingMessage; socket: Socket };
    if (request.url === "/v1/me/import") silences.push(socket.timeout);
  };
  subscribe("http.server.response.finish", onFinish);
  const { status } = await account.import(documentOf(play()));
  unsubscribe("http.server.response.finish", onFinish);
  assert.equal(status, 200);
  assert.deepEqual(silences, [15 * 60_000]);
});
