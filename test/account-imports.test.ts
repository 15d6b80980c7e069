import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { detailOf, followImport, IMPORTING, importAccount, outcomeOf, startLogin } from "./support/account-imports.ts";
import { basic, newUser, start } from "./support/http-accounts.ts";
import { ANN, gpodderPaths, PAGES, play, type Received, startOther, status } from "./support/other-servers.ts";
import { start as startProcess } from "./support/process.ts";
import { callServer, startServer, type TestServer, temporaryFolder } from "./support/server.ts";

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

/** A server with accounts, and one to import from whose episode actions do not come until `release`. */
async function startSlow() {
  const server = await start(IMPORTING);
  const held: (() => void)[] = [];
  const arrivals: (() => void)[] = [];
  const other = await startOther(
    gpodderPaths(
      {
        feeds: [FEEDS[0]],
      },
      {
        "/api/2/episodes/ann.json": (_: Received, response: ServerResponse) => {
          held.push(() => response.end('{"actions":[],"timestamp":0}'));
          for (const arrive of arrivals.splice(0)) arrive();
        },
      },
    ),
  );
  const arrival = () => new Promise<void>((resolve) => arrivals.push(resolve));
  /** Starts an import, and waits until it reads the actions. */
  const begin = async (as: Parameters<typeof importAccount>[0]) => {
    const arrived = arrival();
    const response = importAccount(as, { url: other.url, ...ANN });
    await arrived;
    return response;
  };
  const asUser = async () => {
    const user = await newUser(server);
    const { Authorization } = user;
    const call: typeof server.call = (method, path, options = {}) =>
      server.call(method, path, { ...options, headers: { Authorization, ...options.headers } });
    return { ...user, port: server.port, call };
  };
  const release = () => {
    for (const end of held.splice(0)) end();
  };
  return { server, other, begin, arrival, asUser, release };
}

test("account import: two of one account → 409; more than four in total → 503; others are not affected", async () => {
  const { other, begin, asUser, release } = await startSlow();
  const account = { url: other.url, ...ANN };
  const users = await Promise.all(Array.from({ length: 5 }, asUser));
  const [first, , , , last] = users;
  assert.ok(first !== undefined && last !== undefined);
  const running: ReturnType<typeof begin>[] = [];
  for (const user of users.slice(0, 4)) {
    const started = Promise.withResolvers<void>();
    running.push(begin(user).finally(started.resolve));
    await Promise.race([started.promise, new Promise((resolve) => setTimeout(resolve, 300))]);
  }
  const second = await importAccount(first, account);
  assert.deepEqual([second.status, outcomeOf(second)], [409, "import-running"]);
  const fifth = await importAccount(last, account);
  assert.deepEqual([fifth.status, outcomeOf(fifth), fifth.headers["retry-after"]], [503, "too-many-imports", "30"]);
  assert.equal((await last.call("GET", "/v1/subscriptions")).status, 200);
  const timer = setInterval(release, 20);
  assert.deepEqual(
    (await Promise.all(running)).map(({ status: code }) => code),
    [200, 200, 200, 200],
  );
  assert.equal((await importAccount(last, account)).status, 200);
  clearInterval(timer);
});

test("account import: 20 starts in an hour, logins included → then 429 for this account", async () => {
  const server = await start(IMPORTING);
  const other = await startOther({});
  const [ann, bob] = [await newUser(server), await newUser(server)];
  const as = ({ Authorization }: typeof ann) => ({
    port: server.port,
    call: ((method, path, options = {}) =>
      server.call(method, path, { ...options, headers: { Authorization, ...options.headers } })) as typeof server.call,
  });
  const outcomes = [];
  for (let count = 0; count < 10; count += 1) {
    outcomes.push(outcomeOf(await importAccount(as(ann), { url: other.url, ...ANN })));
    outcomes.push(outcomeOf(await startLogin(as(ann), other.url)));
  }
  assert.deepEqual(new Set(outcomes), new Set(["import-no-sync-server"]));
  for (const limited of [
    await importAccount(as(ann), { url: other.url, ...ANN }),
    await startLogin(as(ann), other.url),
  ]) {
    assert.deepEqual([limited.status, outcomeOf(limited)], [429, "rate-limited"]);
    assert.equal(limited.headers["retry-after"], "180");
    assert.match(detailOf(limited), /20 imports and logins per hour/);
  }
  assert.equal(outcomeOf(await importAccount(as(bob), { url: other.url, ...ANN })), "import-no-sync-server");
  server.wait(3_600_000);
  assert.equal(outcomeOf(await importAccount(as(ann), { url: other.url, ...ANN })), "import-no-sync-server");
});

test("account import: with an event stream → progress at once and every two seconds, then the result or the error", async () => {
  const { other, asUser, release } = await startSlow();
  const user = await asUser();
  setTimeout(() => setInterval(release, 100).unref(), 5_000);
  const started = performance.now();
  const { status: code, events } = await followImport(user, { url: other.url, ...ANN }, "?dryRun=true");
  assert.equal(code, 200);
  const times = [started, ...events.map(({ at }) => at)];
  assert.ok((times[1] ?? 0) - started < 1_000);
  assert.ok(times.every((time, index) => index === 0 || time - (times[index - 1] ?? 0) < 2_000));
  assert.ok(events.length > 5);
  const last = events.at(-1);
  const { subscriptions, episode_actions } = last?.data.data.attributes ?? {};
  assert.deepEqual(
    events.at(-2)?.data,
    { stage: "writing", subscriptions, episode_actions },
    "the counts of the result",
  );
  assert.deepEqual([last?.event, last?.data.data.attributes.subscriptions.added], ["result", 1]);
  for (const { event, data } of events.slice(0, -1)) {
    assert.equal(event, "progress");
    assert.deepEqual(Object.keys(data), ["stage", "subscriptions", "episode_actions"]);
    assert.deepEqual(Object.keys(data.subscriptions), ["found", "added", "already_subscribed", "refused"]);
    assert.deepEqual(Object.keys(data.episode_actions), ["found", "added", "not_newer", "refused"]);
  }
  const failing = await startOther({ "*": status(500) });
  const failed = await followImport(user, { url: failing.url, ...ANN });
  assert.deepEqual(
    failed.events.map(({ event }) => event),
    ["progress", "error"],
  );
  assert.equal(failed.events[1]?.data.errors[0].code, "import-server-failed");
  // What can be known before it starts is an ordinary response.
  const invalid = await followImport(user, { url: "x", ...ANN });
  assert.deepEqual([invalid.status, invalid.json.errors[0].code], [422, "import-url-invalid"]);
  const both = await followImport(user, { url: failing.url });
  assert.deepEqual([both.status, both.json.errors[0].code], [422, "attribute-missing"]);
});

test("account import: the token is revoked while it runs → 401, and nothing is added", async () => {
  const { server, begin, asUser, release, other } = await startSlow();
  const user = await asUser();
  const response = begin(user);
  while (!other.requests.some(({ url }) => url.includes("episodes")))
    await new Promise((resolve) => setTimeout(resolve, 10));
  const revoked = await server.call("DELETE", `/v1/tokens/${user.tokenId}`, { headers: { Cookie: user.Cookie } });
  assert.equal(revoked.status, 204);
  release();
  assert.equal(outcomeOf(await response), "invalid-credentials");
  const list = await server.call("GET", "/v1/subscriptions", { headers: { Cookie: user.Cookie } });
  assert.equal(list.json.meta.total, 0);
});

test("account import: the client disconnects → the import ends, and the account can start another", async () => {
  const { server, asUser, arrival, release, other } = await startSlow();
  const user = await asUser();
  const arrived = arrival();
  await followImport(user, { url: other.url, ...ANN }, "", (response) => void arrived.then(() => response.destroy()));
  for (;;) {
    const timer = setInterval(release, 20);
    const again = await importAccount(user, { url: other.url, ...ANN }, "?dryRun=true");
    clearInterval(timer);
    if (outcomeOf(again) === "import-running") continue;
    assert.deepEqual(again.json.data.attributes.subscriptions.added, 1, "nothing was added before");
    break;
  }
  assert.ok(!server.log().includes("unexpected"));
});

test("account import: the server stops → 503 at once, and nothing was added", async () => {
  const { server, begin, asUser, other } = await startSlow();
  const user = await asUser();
  const response = begin(user);
  while (!other.requests.some(({ url }) => url.includes("episodes")))
    await new Promise((resolve) => setTimeout(resolve, 10));
  const started = performance.now();
  const closed = server.close();
  const { status: code, headers, ...rest } = await response;
  assert.ok(performance.now() - started < 3_000);
  assert.deepEqual([code, outcomeOf({ status: code, headers, ...rest })], [503, "shutting-down"]);
  assert.equal(headers["retry-after"], "1");
  await closed;
});

test("account import: a server without accounts, and one that fetches no feeds → the same", async () => {
  const server = await startServer(IMPORTING);
  const other = await startOther(gpodderPaths({ actions: [play(1)] }));
  const { json } = await importAccount(server, { url: `${other.url}/`, ...ANN });
  assert.equal(json.data.attributes.url, `${other.url}/`);
  assert.deepEqual(json.data.attributes.episode_actions, { found: 1, added: 1, not_newer: 0, refused: 0 });
  const { json: actions } = await server.call("GET", "/v1/episode-actions");
  assert.equal(actions.meta.total, 1);
  const { json: history } = await server.call("GET", "/v1/history");
  assert.deepEqual([history.data[0].attributes.by.kind, history.data[0].attributes.added], ["import", 1]);
});

test("account import: beyond the quota → refused, and the actions are imported", async () => {
  const server = await start({ ...IMPORTING, EARMARK_MAX_SUBSCRIPTIONS_PER_USER: "2" });
  const { Authorization } = await newUser(server);
  const call: typeof server.call = (method, path, options = {}) =>
    server.call(method, path, { ...options, headers: { Authorization, ...options.headers } });
  const other = await startOther(gpodderPaths({ feeds: FEEDS, actions: [play(1)] }));
  for (const query of ["?dryRun=true", ""]) {
    const { json } = await importAccount({ port: server.port, call }, { url: other.url, ...ANN }, query);
    assert.deepEqual(json.data.attributes.subscriptions, { found: 4, added: 2, already_subscribed: 0, refused: 2 });
    assert.equal(json.data.attributes.episode_actions.added, 1);
  }
});

test("account import: the server is killed while it writes → repeated, everything is there once", async () => {
  const feeds = Array.from({ length: 10_000 }, (_, index) => `https://a.example/${index}`);
  const actions = Array.from({ length: 9_000 }, (_, index) => play(index));
  const other = await startOther(gpodderPaths({ feeds, actions, size: 9_000, pages: PAGES.whole }));
  const settings = { ...IMPORTING, DATABASE_URL: `file:${temporaryFolder()}/earmark.db` };
  const importer = ({ port }: { readonly port: number }) => ({
    port,
    call: ((method, path, options) => callServer(port, method, path, options)) as TestServer["call"],
  });
  const first = await startProcess(settings);
  const account = { url: other.url, ...ANN };
  const { events } = await followImport(importer(first), account, "", (response) => {
    response.on("data", (text: string) => {
      if (/"writing".*"added":[1-9]/.test(text)) first.child.kill("SIGKILL");
    });
  });
  assert.notEqual(events.at(-1)?.event, "result");
  const second = importer(await startProcess(settings));
  const total = async (path: string) => (await second.call("GET", path)).json.meta.total as number;
  const [before, actionsBefore] = [await total("/v1/subscriptions"), await total("/v1/episode-actions")];
  assert.ok(before > 0 && before + actionsBefore < 19_000, `${before} and ${actionsBefore} were added`);
  const { attributes } = (await importAccount(second, account)).json.data;
  assert.deepEqual(attributes.subscriptions, {
    found: 10_000,
    added: 10_000 - before,
    already_subscribed: before,
    refused: 0,
  });
  const { added, not_newer, found } = attributes.episode_actions;
  assert.deepEqual([found, added, not_newer], [9_000, 9_000 - actionsBefore, actionsBefore]);
  assert.deepEqual([await total("/v1/subscriptions"), await total("/v1/episode-actions")], [10_000, 9_000]);
});
