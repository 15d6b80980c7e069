import assert from "node:assert/strict";
import { test } from "node:test";
import { IMPORTING, importAccount } from "./support/account-imports.ts";
import { basic, newUser, start } from "./support/http-accounts.ts";

const FEEDS = ["https://a.example/1", "https://a.example/2?x=1", "http://b.example/", "https://c.example/feed%20x"];
const FIRST = Date.parse("2024-07-01T10:00:00Z");

const action = (index: number, more: object = {}) => ({
  podcast: FEEDS[index % FEEDS.length],
  episode: `https://media.example/${index}.mp3`,
  guid: `guid-${index}`,
  device: "phone",
  action: "play",
  timestamp: new Date(FIRST + index * 60_000).toISOString().slice(0, 19),
  started: 0,
  position: index,
  total: 3_600,
  ...more,
});

/** Another Earmark with an account, its feeds and actions. */
async function startOld(settings: Readonly<Record<string, string>> = {}, count = 1_234) {
  const server = await start(settings);
  const { name, Authorization } = await newUser(server);
  const token = Authorization.slice("Bearer ".length);
  const headers = basic(name, token);
  const base = settings["EARMARK_BASE_PATH"] ?? "";
  const send = async (path: string, body: unknown) => {
    const response = await server.call("POST", base + path, { headers, body: JSON.stringify(body) });
    assert.equal(response.status, 200, response.text);
  };
  await send(`/api/2/subscriptions/${name}/phone.json`, { add: FEEDS, remove: [] });
  const actions = Array.from({ length: count }, (_, index) => action(index));
  actions.push(action(0, { action: "download", started: undefined, position: undefined, total: undefined }));
  await send(`/api/2/episodes/${name}.json`, actions);
  const read = async (path: string) => (await server.call("GET", base + path, { headers })).json;
  return { ...server, name, token, Authorization, read, count: count + 1, address: server.url + base };
}

const gpodderLists = async (
  read: (path: string) => Promise<{ actions: { podcast: string; timestamp: string }[] }>,
  name: string,
) => {
  const { actions } = await read(`/api/2/episodes/${name}.json?since=0`);
  const subscriptions = await read(`/subscriptions/${name}/phone.json`);
  return { subscriptions, actions: actions.map((each) => JSON.stringify(each)).sort() };
};

async function startNew() {
  const shared = await start(IMPORTING);
  const user = await newUser(shared);
  const token = user.Authorization.slice("Bearer ".length);
  const headers = basic(user.name, token);
  const call: typeof shared.call = (method, path, options = {}) =>
    shared.call(method, path, { ...options, headers: { Authorization: user.Authorization, ...options.headers } });
  const read = async (path: string) => (await shared.call("GET", path, { headers })).json;
  return { ...shared, call, read, name: user.name, Authorization: user.Authorization };
}

for (const kind of ["gpodder", "nextcloud"] as const) {
  test(`account import: from another Earmark over its ${kind} API → the same list and actions; again → nothing`, async () => {
    const old = await startOld({ EARMARK_BASE_PATH: kind === "gpodder" ? "" : "/pods" });
    const server = await startNew();
    const account = { url: old.address, user_name: old.name, password: old.token, kind };
    const expected = {
      url: old.address,
      kind,
      subscriptions: { found: 4, added: 4, already_subscribed: 0, refused: 0 },
      episode_actions: { found: old.count, added: old.count, not_newer: 0, refused: 0 },
    };
    const preview = await importAccount(server, account, "?dryRun=true");
    assert.equal(preview.status, 200, preview.text);
    assert.deepEqual(preview.json.data.attributes, { ...expected, dry_run: true });
    assert.equal((await server.read(`/subscriptions/${server.name}.json`)).length, 0);
    assert.deepEqual((await server.read(`/api/2/episodes/${server.name}.json?since=0`)).actions, []);

    const { json } = await importAccount(server, account, "?dry_run=false");
    assert.deepEqual(json.data.attributes, { ...expected, dry_run: false });
    assert.equal(json.data.type, "account-import");
    const [from, to] = [await gpodderLists(old.read, old.name), await gpodderLists(server.read, server.name)];
    assert.deepEqual(to.subscriptions, from.subscriptions);
    // The Nextcloud API does not name devices.
    const strip = (text: string) => (kind === "gpodder" ? text : text.replace('"device":"phone",', ""));
    assert.deepEqual(to.actions, from.actions.map(strip));

    const again = await importAccount(server, account);
    assert.deepEqual(again.json.data.attributes, {
      ...expected,
      dry_run: false,
      subscriptions: { found: 4, added: 0, already_subscribed: 4, refused: 0 },
      episode_actions: { found: old.count, added: 0, not_newer: old.count, refused: 0 },
    });
  });
}
