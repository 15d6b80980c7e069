import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../client/src/index.ts";
import { asUser, LOCAL_USER } from "../src/accounts/caller.ts";
import type { Podcast } from "../src/podcasts/podcast-store.ts";
import { lines, runInProcess } from "./support/commands.ts";
import { startFeeds } from "./support/feeds.ts";
import { learn, subscribeTo, THIS_MACHINE } from "./support/fetching.ts";
import { newUser, start } from "./support/http-accounts.ts";
import { start as startProcess } from "./support/process.ts";
import { add, newId, startServer, type TestServer, temporaryFolder } from "./support/server.ts";

const FETCH = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE };
const HASH = "0123456789abcdef".repeat(2);

// biome-ignore lint/suspicious/noExplicitAny: assertions check the shape of a response
async function until(read: () => Promise<any>, isWanted: (value: any) => boolean) {
  for (let tries = 0; tries < 1_000; tries += 1) {
    const value = await read();
    if (isWanted(value)) return value;
    await sleep(10);
  }
  throw new Error("it did not happen");
}

const included = async ({ call }: TestServer, query = "", headers = {}) =>
  (await call("GET", `/v1/subscriptions?include=podcast${query}`, { headers })).json.included;

test("include: no include → the response is as before; with it → every subscription has its podcast", async () => {
  const server = await startServer();
  const [one, other] = ["https://feeds.example/1", "https://feeds.example/2"];
  await subscribeTo(server.store, [one, other], LOCAL_USER);
  const before = await server.call("GET", "/v1/subscriptions");
  const podcast = await learn(server.store, one, {
    title: 'A "title"',
    status: "ok",
    artwork: HASH,
    failure: "timed-out",
    latestEpisodeAt: Date.parse("2026-01-02T12:00:00Z"),
  });
  const plain = await server.call("GET", "/v1/subscriptions");
  assert.deepEqual([plain.text, plain.headers["etag"]], [before.text, before.headers["etag"]]);
  assert.doesNotMatch(plain.text, /podcast|included/);
  const { json } = await server.call("GET", "/v1/subscriptions?include=podcast");
  const strip = ({ relationships: _, ...rest }: Record<string, unknown>) => rest;
  assert.deepEqual(json.data.map(strip), plain.json.data);
  assert.deepEqual(
    json.data.map(
      (item: { relationships: { podcast: { data: { id: string } } } }) => item.relationships.podcast.data.id,
    ),
    json.included.map(({ id }: { id: string }) => id),
  );
  const self = `/v1/podcasts/${podcast.id}`;
  const at = podcast.checkedAt?.toISOString();
  assert.deepEqual(json.included[0], {
    type: "podcast",
    id: podcast.id,
    attributes: {
      title: 'A "title"',
      artwork: { small: `${self}/artwork/${HASH}-160.webp`, large: `${self}/artwork/${HASH}-600.webp` },
      status: "ok",
      status_since: podcast.statusSince?.toISOString(),
      checked_at: at,
      latest_episode_at: "2026-01-02T12:00:00.000Z",
    },
    links: { self },
  });
  assert.deepEqual(json.included[1].attributes, { status: "pending" });
  const { json: single } = await server.call("GET", `/v1/subscriptions/${json.data[0].id}?include=podcast`);
  assert.deepEqual([single.data, single.included], [json.data[0], [json.included[0]]]);
  // Sparse fields, also in the links.
  const sparse = await server.call(
    "GET",
    "/v1/subscriptions?include=podcast&fields[podcast]=title&fields[subscription]=feed_url&page[size]=1",
  );
  assert.deepEqual(sparse.json.included[0].attributes, { title: 'A "title"' });
  assert.equal(sparse.json.data[0].relationships, undefined);
  const next = await server.call("GET", sparse.json.links.next);
  assert.equal(next.json.included.length, 1);
});

test("ETag: a podcast changes → the ETags of the podcast and of the list with podcasts change; the plain list's does not", async () => {
  const server = await startServer();
  const url = "https://feeds.example/tag";
  await subscribeTo(server.store, [url], LOCAL_USER);
  const { id } = await learn(server.store, url, { title: "T", nextAt: 0 });
  const paths = ["/v1/subscriptions", "/v1/subscriptions?include=podcast", `/v1/podcasts/${id}`];
  const tags = () => Promise.all(paths.map(async (path) => String((await server.call("GET", path)).headers["etag"])));
  const before = await tags();
  const repeated = await Promise.all(
    paths.map((path, index) => server.call("GET", path, { headers: { "If-None-Match": `W/${before[index]}` } })),
  );
  assert.deepEqual(
    repeated.map(({ status }) => status),
    [304, 304, 304],
  );
  const changes = (await server.call("GET", "/v1/changes")).json.meta.state;
  await learn(server.store, url, { title: "U", checkedAt: Date.now() + 1 });
  const after = await tags();
  assert.equal((await included(server))[0].attributes.title, "U");
  assert.deepEqual(
    after.map((tag, index) => tag === before[index]),
    [true, false, false],
  );
  const later = await server.call("GET", `/v1/changes?page[after]=${changes}`);
  assert.deepEqual([later.json.data, later.json.meta.state], [[], changes]);
  const stale = await server.call("GET", paths[1] ?? "", { headers: { "If-None-Match": String(after[0]) } });
  assert.equal(stale.status, 200);
});

test("artwork: requested by a subscriber → an image that may be cached forever; by anyone else, public or private → 404", async () => {
  const server = await start();
  const [ann, bob] = [await newUser(server), await newUser(server)];
  const { store } = server;
  const [shared, secret] = ["https://feeds.example/shared", "https://ann:pass@feeds.example/private"];
  const bearer = ({ Authorization }: { Authorization: string }) => ({ Authorization });
  const userOf = async (who: { name: string }) => (await store.accounts.find(who.name, ""))?.account.user ?? 0;
  await subscribeTo(store, [shared, secret], await userOf(ann));
  await subscribeTo(store, [shared, "https://feeds.example/private"], await userOf(bob));
  for (const url of [shared, secret]) {
    const { id } = await learn(store, url, { title: "T", artwork: HASH, nextAt: 0 });
    const until = new Date(8e15);
    const record = (await store.podcasts.claim(id, new Date(), until)) ?? assert.fail();
    const artwork = { hash: HASH, small: Buffer.from("small"), large: Buffer.from("large") };
    assert.ok(await store.podcasts.record(id, until, record, artwork));
  }
  const get = (who: { Authorization: string }, path: string) => server.call("GET", path, { headers: bearer(who) });
  const [{ id: open } = { id: "" }, { id: hidden } = { id: "" }] = await store.podcasts.find([shared, secret]);
  const image = await get(ann, `/v1/podcasts/${hidden}/artwork/${HASH}-600.webp`);
  assert.deepEqual(
    [image.status, image.text, image.headers["content-type"], image.headers["cache-control"]],
    [200, "large", "image/webp", "private, max-age=31536000, immutable"],
  );
  assert.equal(image.headers["x-content-type-options"], "nosniff");
  assert.equal((await get(bob, `/v1/podcasts/${open}/artwork/${HASH}-160.webp`)).text, "small");
  for (const path of [
    `/v1/podcasts/${hidden}`,
    `/v1/podcasts/${newId()}`,
    `/v1/podcasts/${hidden}/artwork/${HASH}-160.webp`,
    `/v1/podcasts/${open}/artwork/${HASH}-161.webp`,
    `/v1/podcasts/${open}/artwork/${"f".repeat(32)}-160.webp`,
    `/v1/podcasts/${open}/artwork/x`,
  ])
    assert.deepEqual([(await get(bob, path)).status, path], [404, path]);
  // The same URL without credentials is another feed.
  const [, podcast] = await included(server, "", bearer(bob));
  assert.deepEqual([podcast.attributes.title, podcast.id === hidden], [undefined, false]);
});

test("fetching: add, refresh, rename → names in lists, OPML and commands; own titles stay", async () => {
  const publisher = await startFeeds();
  const clock = { now: new Date() };
  const server = await startServer({ ...FETCH, EARMARK_METRICS: "true" }, () => clock.now);
  const url = publisher.feed("/feed", { title: "Feed &amp; title" });
  const own = await startFeeds();
  const named = own.feed("/feed", { title: "theirs" });
  const [first] = await server.operate([add(newId(), url), add(newId(), named)]);
  assert.ok(first.data);
  const [, second] = (await server.call("GET", "/v1/subscriptions")).json.data;
  const update = { op: "update", data: { type: "subscription", id: second.id, attributes: { title: "mine" } } };
  await server.operate([update]);
  const titles = (podcasts: { attributes: { title?: string } }[]) => podcasts.map(({ attributes }) => attributes.title);
  const [podcast] = await until(
    () => included(server),
    (all) => titles(all).every((title) => title !== undefined),
  );
  assert.equal(podcast.attributes.title, "Feed & title");
  // The title of the user survives refreshes, whatever the feed says.
  const client = createClient({ url: server.url });
  const theirs = (await client.page({ include: "podcast" })).items[1]?.podcast ?? assert.fail();
  for (let round = 1; round <= 3; round += 1) {
    own.feed("/feed", { title: `theirs ${round}` });
    clock.now = new Date(clock.now.getTime() + 10 * 60_000);
    await client.refresh(theirs.id);
    await until(
      () => client.podcast(theirs.id),
      (known) => known?.title === `theirs ${round}`,
    );
  }
  const items = [];
  for await (const item of client.subscriptions({ include: "podcast" })) items.push(item);
  assert.deepEqual(
    items.map(({ title, podcast: known }) => [title, known?.title, known?.status]),
    [
      [undefined, "Feed & title", "ok"],
      ["mine", "theirs 3", "ok"],
    ],
  );
  const opml = (await server.call("GET", "/v1/subscriptions.opml")).text;
  assert.match(opml, /text="Feed &amp; title" title="Feed &amp; title"/);
  assert.match(opml, /text="mine"/);
  const listed = await runInProcess(["list", "--server", server.url]);
  assert.match(listed.stdout, /^NAME.*\nFeed & title\t.*\nmine\t/);
  assert.equal((await runInProcess(["list", "--attention", "--server", server.url])).stdout, "");
  const refreshed = await runInProcess(["refresh", url, "--server", server.url]);
  assert.match(refreshed.stderr, /1 feed will be fetched soon/);
  assert.match((await runInProcess(["refresh", "--server", server.url])).stderr, /2 feeds/);
  const { text } = await server.call("GET", "/metrics");
  assert.match(text, /earmark_podcasts\{state="known"\} 2/);
  assert.match(text, /earmark_feed_fetches_total\{result="read"\} [5-9]/);
  assert.match(text, /earmark_feed_fetch_duration_seconds_count [5-9]/);
  assert.equal(await client.podcast(newId()), undefined);
});

test("EARMARK_FETCH_FEEDS=false: subscribe, refresh → no request; refresh says so", async () => {
  const publisher = await startFeeds();
  const server = await startServer({ EARMARK_FETCH_NETWORKS: THIS_MACHINE });
  await server.operate([add(newId(), publisher.feed("/feed", { title: "T" }))]);
  const [podcast] = await included(server);
  assert.deepEqual(podcast.attributes, { status: "pending" });
  const refused = await server.call("POST", `${podcast.links.self}/refresh`);
  assert.deepEqual([refused.status, refused.json.errors[0].code], [409, "fetching-disabled"]);
  await sleep(500);
  assert.deepEqual(publisher.requests, []);
});

test("EARMARK_FETCH_FEEDS: false → not one DNS query in any thread; true → one", async () => {
  const folder = temporaryFolder();
  // Loaded into every thread. It answers by itself that no name exists.
  writeFileSync(
    join(folder, "dns.cjs"),
    `const dns = require("node:dns");
     const refuse = (name) => {
       if (name !== "127.0.0.1") require("node:fs").writeSync(2, "DNS query\\n");
       return Object.assign(new Error("not found"), { code: "ENOTFOUND" });
     };
     const { lookup } = dns;
     dns.lookup = (name, ...rest) =>
       name === "127.0.0.1" ? lookup(name, ...rest) : rest.at(-1)(refuse(name));
     dns.promises.lookup = async (name) => { throw refuse(name); };`,
  );
  for (const [fetches, queries] of [
    ["true", true],
    ["false", false],
  ] as const) {
    const server = await startProcess({
      DATABASE_URL: `file:${join(folder, `${fetches}.db`)}`,
      EARMARK_FETCH_FEEDS: fetches,
      NODE_OPTIONS: `--require ${join(folder, "dns.cjs")}`,
    });
    const client = createClient({ url: server.url });
    await client.subscribe(["https://feeds.invalid/x"]);
    const isDone = async () => queries === /DNS query/.test(server.output());
    if (queries) await until(isDone, Boolean);
    else await sleep(1_000);
    assert.equal(await isDone(), true, `EARMARK_FETCH_FEEDS=${fetches}`);
    server.child.kill("SIGTERM");
    assert.equal(await server.ended, 0);
  }
});

test("no network: every feed fails → lists work, statuses say so, nothing of a URL is logged", async () => {
  const server = await startServer({ ...FETCH, EARMARK_LOG_LEVEL: "debug" });
  await server.operate([add(newId(), "http://ann:s3cret@127.0.0.1:9/token-x?key=s3cret")]);
  const [podcast] = await until(
    () => included(server),
    ([one]) => one.attributes.status === "failing",
  );
  assert.ok(podcast.attributes.checked_at);
  assert.doesNotMatch(server.log(), /s3cret|token-x/);
});

test("moved to a feed that is in the list already → the update is a conflict, and both stay", async () => {
  const server = await startServer();
  const [old, target] = ["https://old.example/feed", "https://new.example/feed"];
  await subscribeTo(server.store, [old, target], LOCAL_USER);
  await learn(server.store, old, { title: "T", status: "moved", movedTo: target });
  const { json } = await server.call("GET", "/v1/subscriptions?include=podcast");
  const [podcast] = json.included;
  assert.deepEqual([podcast.attributes.status, podcast.attributes.moved_to], ["moved", target]);
  const [result] = await server.operate([
    { op: "update", data: { type: "subscription", id: json.data[0].id, attributes: { feed_url: target } } },
  ]);
  assert.deepEqual([result.errors[0].code, result.errors[0].meta.existing_id], ["already-subscribed", json.data[1].id]);
});

test("attention: moved, failing and gone feeds → listed with status and time; doctor and metrics count them", async () => {
  const server = await startServer({ ...FETCH, EARMARK_METRICS: "true" });
  const since = Date.parse("2026-01-02T12:00:00Z");
  const known = {
    fine: { title: "Fine", status: "ok" },
    old: { title: "Mover", status: "moved", movedTo: "https://feeds.example/new" },
    broken: { status: "failing", failure: "private-address" },
    closed: { title: "Closed", status: "forbidden" },
    gone: { title: "Farewell", status: "gone", failure: "not-found" },
  } as const;
  const urls = Object.keys(known).map((name) => `https://feeds.example/${name}`);
  // Known before the subscriptions, so that the server does not fetch them.
  for (const [index, values] of Object.values(known).entries())
    await learn(server.store, urls[index] ?? "", { ...values, statusSince: since });
  await server.store.apps.changeFollowsMoves(asUser(LOCAL_USER), false, new Date());
  await server.operate(urls.map((url) => add(newId(), url)));
  const time = new Date(since).toISOString();
  const expected = [
    "NAME\tSTATUS\tSINCE\tREASON\tFEED URL\tNEW URL",
    `Mover\tmoved\t${time}\t\thttps://feeds.example/old\thttps://feeds.example/new`,
    `\tfailing\t${time}\tprivate-address\thttps://feeds.example/broken`,
    `Closed\tforbidden\t${time}\t\thttps://feeds.example/closed`,
    `Farewell\tgone\t${time}\tnot-found\thttps://feeds.example/gone`,
  ];
  for (const place of [["--server", server.url], []]) {
    const run = (...args: string[]) => runInProcess([...args, ...place], { DATABASE_URL: server.databaseUrl });
    assert.deepEqual(lines(await run("list", "--attention")), expected);
    const json = lines(await run("list", "--attention", "--json")).map((line) => JSON.parse(line));
    assert.deepEqual(
      json.map(({ feed_url, podcast }) => [feed_url, podcast.status, podcast.moved_to]),
      [
        [urls[1], "moved", "https://feeds.example/new"],
        ...[urls[2], urls[3], urls[4]].map((url, index) => [url, ["failing", "forbidden", "gone"][index], null]),
      ],
    );
    assert.deepEqual(
      json.map(({ podcast }) => podcast.failure),
      [null, "private-address", null, "not-found"],
    );
    assert.equal(lines(await run("list")).length, 6);
  }
  const retried = await runInProcess(["refresh", "--failing"], { DATABASE_URL: server.databaseUrl });
  assert.match(retried.stderr, /0 feeds that cannot be read will be fetched soon/, "they were fetched just now");
  const { stdout } = await runInProcess(["doctor"], { DATABASE_URL: server.databaseUrl, PORT: "9" });
  const reasons = "not-found: 1, private-address: 1, unknown: 1";
  const [, advice = ""] = stdout.split(`warning Feeds: 5 known, 0 to be fetched now, 3 failing (${reasons})\n`);
  assert.match(advice, /^ {4}.*earmark list --attention\. .*earmark refresh --failing\. EARMARK_FETCH_NETWORKS/);
  const { text } = await server.call("GET", "/metrics");
  for (const value of ['known"} 5', 'due"} 0', 'failing"} 3', 'forbidden"} 1', 'gone"} 1'])
    assert.ok(text.includes(`earmark_podcasts{state="${value}`), value);
});

test("subscribers: a user adds a known feed, and the first subscriber removes it → the podcast stays", async () => {
  const { store } = await startServer(FETCH);
  const [url, last] = [(await startFeeds()).feed("/", { title: "T" }), (await startFeeds()).feed("/", { title: "L" })];
  const [first, other] = [4_711, 4_712];
  const find = async (feedUrl: string) => (await store.podcasts.find([feedUrl]))[0] ?? assert.fail();
  const isFetched = ({ title }: Podcast) => title !== undefined;
  await subscribeTo(store, [url], first);
  const { id } = await until(() => find(url), isFetched);
  await subscribeTo(store, [url], other);
  // Lists are read in the order in which they change.
  await subscribeTo(store, [last], first);
  await until(() => find(last), isFetched);
  const { items } = await store.page(first, { offset: 0, size: 1 });
  await store.change(asUser(first), [{ kind: "remove", id: items[0]?.id ?? "" }], new Date());
  // Before `eraseUnused`, which would find the subscriber too.
  assert.deepEqual(await store.podcasts.subscribers([id]), [[{ user: other, feedUrl: url }]]);
  await store.podcasts.eraseUnused(new Date());
  assert.equal((await find(url)).title, "T");
});

if (process.env["TEST_ENGINE"] !== "postgres") {
  const filesWith = (folder: string, text: string) =>
    readdirSync(folder).filter((name) => readFileSync(`${folder}/${name}`).includes(text));

  test("erasure: the account is deleted, a feed is removed → after the sweep nothing of the podcast in the files", async () => {
    const server = await start();
    const { store, databaseUrl } = server;
    const folder = databaseUrl.replace("file:", "").replace(/\/[^/]+$/, "");
    const ann = await newUser(server);
    const user = (await store.accounts.find(ann.name, ""))?.account.user ?? 0;
    const urls = ["https://feeds.example/deleted", "https://feeds.example/removed"];
    const known = { title: "a-title-to-forget", movedTo: "https://moved.example/to-forget", artworkUrl: "u-to-forget" };
    await subscribeTo(store, [urls[0] ?? ""], user);
    await subscribeTo(store, [urls[1] ?? ""], 4_711);
    for (const url of urls) await learn(store, url, known);
    assert.notDeepEqual(filesWith(folder, "to-forget"), []);
    const { items } = await store.page(4_711, { offset: 0, size: 1 });
    await store.change(
      { user: 4_711, credentialHash: undefined, maxSubscriptions: 9 },
      [{ kind: "remove", id: items[0]?.id ?? "" }],
      new Date(),
    );
    await store.podcasts.eraseUnused(new Date());
    assert.equal((await server.call("DELETE", "/v1/me", { headers: { Cookie: ann.Cookie } })).status, 204);
    await store.accounts.sweep(new Date());
    assert.deepEqual(filesWith(folder, "to-forget"), []);
  });
}
