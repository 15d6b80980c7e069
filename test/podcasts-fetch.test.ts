import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import sharp from "sharp";
import { asUser, LOCAL_USER } from "../src/accounts/caller.ts";
import { changesSince, positionAt } from "../src/lists/changes.ts";
import { readFeedUrl } from "../src/lists/feed-url.ts";
import { Fetcher } from "../src/podcasts/fetch/fetcher.ts";
import type { FeedFetcher } from "../src/podcasts/read/feed.ts";
import type { SchedulerOptions } from "../src/podcasts/schedule/scheduler.ts";
import { openStore } from "../src/store/open.ts";
import type { Store } from "../src/store/shared/contract.ts";
import { startFeeds, status } from "./support/feeds.ts";
import { startFetching as start, subscribeTo, THIS_MACHINE } from "./support/fetching.ts";
import { startServer } from "./support/server.ts";

const normalize = (url: string) => {
  const parsed = readFeedUrl(url);
  return parsed.kind === "valid" ? parsed.normalizedUrl : assert.fail();
};
const HOUR = 60 * 60 * 1_000;
const DAY = 24 * HOUR;

const newStore = async () => (await startServer()).store;
/** For tests that look neither at all podcasts that are due nor at the whole list of a user. */
const shared = await newStore();
const fetcher = new Fetcher({ networks: [THIS_MACHINE], userAgent: "Earmark/0 (test)" });
after(() => fetcher.close());

/** Its thread serves all schedulers, each of which aborts its own fetches when it closes. */
const createFetcher = async (): Promise<FeedFetcher> => ({
  fetchFeed: fetcher.fetchFeed.bind(fetcher),
  fetchImage: fetcher.fetchImage.bind(fetcher),
  fetchPage: fetcher.fetchPage.bind(fetcher),
  close: async () => undefined,
});
const startFetching = (store: Store, options: Partial<SchedulerOptions> = {}) =>
  start(store, { createFetcher, ...options });

/** Another process on the same database, if the engine allows that. */
const isPostgres = process.env["TEST_ENGINE"] === "postgres";

async function recordOf(store: Store, url: string, at: Date) {
  const [podcast] = await store.podcasts.find([url]);
  return podcast === undefined ? undefined : store.podcasts.claim(podcast.id, at, new Date(at.getTime() + 1));
}

test("fetch: a feed is added → its podcast is known soon after", async () => {
  const [store, publisher] = [shared, await startFeeds()];
  const { subscribe, fetched, errors } = startFetching(store);
  const url = publisher.feed("/feed", { title: "A &amp; B", author: "Ann", description: "About" });
  await subscribe([url]);
  const podcast = await fetched(url);
  assert.deepEqual(
    [podcast.title, podcast.author, podcast.description, podcast.status],
    ["A & B", "Ann", "About", "ok"],
  );
  assert.match(String(publisher.requests[0]?.headers["user-agent"]), /^Earmark\//);
  assert.deepEqual(
    [publisher.requests[0]?.headers.referer, publisher.requests[0]?.headers.cookie],
    [undefined, undefined],
  );
  assert.deepEqual(errors, []);
});

test("fetch: an update that changes the feed → the new one is fetched too", async () => {
  const store = await newStore();
  const publisher = await startFeeds();
  const { subscribe, fetched } = startFetching(store);
  const [old, other] = [publisher.feed("/old", { title: "old" }), publisher.feed("/new", { title: "new" })];
  await subscribe([old]);
  await fetched(old);
  const { items } = await store.page(LOCAL_USER, { offset: 0, size: 1 });
  const normalizedUrl = other.replace("http://", "");
  await store.change(
    asUser(LOCAL_USER),
    [{ kind: "update", id: items[0]?.id ?? "", feedUrl: other, normalizedUrl }],
    new Date(),
  );
  assert.equal((await fetched(other)).title, "new");
});

test("fetch: many accounts have the feed, in two spellings → one request", async () => {
  const [store, publisher] = [shared, await startFeeds()];
  const { subscribe, fetched, scheduler } = startFetching(store);
  const url = publisher.feed("/feed", { title: "T" });
  for (let user = 10; user < 30; user += 1) await subscribe([user % 2 === 0 ? url : `${url}#${user}`], user);
  await fetched(url);
  const [podcast] = await store.podcasts.find([url]);
  for (let user = 10; user < 30; user += 1) await scheduler.fetchSoon(user, podcast?.id ?? "");
  await sleep(300);
  assert.equal(publisher.requests.length, 1);
});

test("fetch: 304, and 200 with the old ETag → the title stays, the next fetch is conditional", async () => {
  const [store, publisher] = [shared, await startFeeds()];
  const { subscribe, fetched, fetchAt, clock } = startFetching(store);
  const url = publisher.feed(
    "/feed",
    { title: "T" },
    { etag: 'W/"1"', "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT" },
  );
  const start = clock.now.getTime();
  await subscribe([url]);
  await fetched(url);
  publisher.pages.set("/feed", status(304));
  assert.equal((await fetchAt(url, start + 8 * DAY)).title, "T");
  assert.deepEqual(
    [publisher.requests[1]?.headers["if-none-match"], publisher.requests[1]?.headers["if-modified-since"]],
    ['W/"1"', "Thu, 01 Jan 2026 00:00:00 GMT"],
  );
  publisher.feed("/feed", { title: "U" }, { etag: 'W/"1"' });
  assert.equal((await fetchAt(url, start + 16 * DAY)).title, "U");
});

test("fetch: 304 to the first request → failing, and nothing is invented", async () => {
  const publisher = await startFeeds();
  const { subscribe, fetched } = startFetching(shared);
  publisher.pages.set("/feed", status(304));
  await subscribe([`${publisher.url}/feed`]);
  const { status: state, title } = await fetched(`${publisher.url}/feed`);
  assert.deepEqual([state, title], ["failing", undefined]);
});

test("fetch: a captive portal, an empty title → what is known stays", async () => {
  const publisher = await startFeeds();
  const { subscribe, fetched, fetchAt, clock } = startFetching(shared);
  const url = publisher.feed("/feed", { title: "T", author: "A" });
  const start = clock.now.getTime();
  await subscribe([url]);
  await fetched(url);
  publisher.pages.set("/feed", (_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>Wi-Fi</title><p>Sign in</p>");
  });
  const portal = await fetchAt(url, start + 8 * DAY);
  assert.deepEqual([portal.title, portal.status], ["T", "ok"]);
  publisher.feed("/feed", { title: "" });
  const empty = await fetchAt(url, start + 9 * DAY);
  assert.deepEqual([empty.title, empty.author, empty.status], ["T", "A", "ok"]);
});

test("fetch: Retry-After as a date, negative, ten years → honored, ignored, at most 30 days", async () => {
  const store = shared;
  for (const [value, least, most] of [
    [() => new Date(Date.now() + 3 * DAY).toUTCString(), 2.9 * DAY, 3.1 * DAY],
    [() => "-5", 0.7 * HOUR, 1.3 * HOUR],
    [() => String(10 * 365 * 86_400), 29.9 * DAY, 30.1 * DAY],
  ] as const) {
    const publisher = await startFeeds();
    const fetching = startFetching(store);
    publisher.pages.set("/feed", status(503, { "retry-after": value() }));
    const url = `${publisher.url}/feed`;
    const start = fetching.clock.now.getTime();
    await fetching.subscribe([url]);
    await fetching.fetched(url);
    const record = await recordOf(store, url, new Date(start + 60 * DAY));
    const wait = (record?.nextAt ?? 0) - start;
    assert.ok(wait >= least && wait <= most, `${value()}: ${wait / HOUR} h`);
    await fetching.close();
  }
});

test("moved: 301 seen three times over 72 hours → the list follows, once; 302 first → never", async () => {
  const publisher = await startFeeds();
  const fetching = startFetching(shared);
  const target = publisher.feed("/new", { title: "T" });
  publisher.pages.set("/moved", status(301, { location: target }));
  publisher.pages.set("/away", status(302, { location: `${publisher.url}/moved` }));
  publisher.pages.set("/half", status(308, { location: `${publisher.url}/step` }));
  publisher.pages.set("/step", status(302, { location: target }));
  const [moved = "", away = "", half = ""] = ["/moved", "/away", "/half"].map((path) => publisher.url + path);
  const start = fetching.clock.now.getTime();
  await fetching.subscribe([moved, away, half]);
  for (const url of [moved, away, half]) assert.equal((await fetching.fetched(url)).status, "ok");
  const listed = async (...urls: string[]) => {
    const keys = urls.map((url) => ({ kind: "feed", normalizedUrl: normalize(url) }) as const);
    const found = await shared.find(LOCAL_USER, keys);
    return found.map((each) => [each?.feedUrl, ...(each?.former_feed_urls ?? [])]);
  };
  for (const url of [moved, half]) await fetching.fetchAt(url, start + 50 * HOUR);
  assert.deepEqual(await listed(moved, half), [[moved], [half]]);
  for (const url of [moved, half]) await fetching.fetchAt(url, start + 100 * HOUR);
  // Lists follow after the fetch is recorded.
  while ((await listed(half))[0]?.[0] === half) await sleep(10);
  for (const hours of [350, 600]) await fetching.fetchAt(away, start + hours * HOUR);
  assert.deepEqual(await listed(moved, half, away), [[target, moved], [`${publisher.url}/step`, half], [away]]);
  // Undone: not followed again.
  const [subscription] = await shared.find(LOCAL_USER, [{ kind: "feed", normalizedUrl: normalize(target) }]);
  const undo = { kind: "update", id: subscription?.id ?? "", feedUrl: moved, normalizedUrl: normalize(moved) } as const;
  await shared.change(asUser(LOCAL_USER), [undo], fetching.clock.now);
  const { id } = (await shared.podcasts.find([moved]))[0] ?? assert.fail();
  while ((await shared.podcasts.subscribers([id]))[0]?.length === 0) await sleep(10);
  await fetching.fetchAt(moved, start + 900 * HOUR);
  assert.deepEqual(await listed(moved), [[moved, target]]);
});

test("moved: the target is listed too → merged, with the title and the folders of both", async () => {
  const { store } = await startServer();
  const publisher = await startFeeds();
  const fetching = startFetching(store);
  const target = publisher.feed("/new", { title: "T" });
  publisher.pages.set("/old", status(301, { location: target }));
  const old = `${publisher.url}/old`;
  const start = fetching.clock.now.getTime();
  await fetching.subscribe([old, target]);
  for (const url of [old, target]) await fetching.fetched(url);
  const [{ id } = { id: "" }] = (await store.page(LOCAL_USER, { offset: 0, size: 1 })).items;
  await store.change(
    asUser(LOCAL_USER),
    [{ kind: "update", id, title: "Mine", folders: ["News"] }],
    fetching.clock.now,
  );
  for (const hours of [50, 100]) await fetching.fetchAt(old, start + hours * HOUR);
  // Lists follow after the fetch is recorded.
  while ((await store.page(LOCAL_USER, { offset: 0, size: 10 })).total === 2) await sleep(10);
  const { items } = await store.page(LOCAL_USER, { offset: 0, size: 10 });
  assert.deepEqual(
    items.map((item) => [item.feedUrl, item.title, item.folders, item.former_feed_urls]),
    [[target, "Mine", ["News"], [old]]],
  );
});

test("moved: claimed by the feed → only if there is a feed; two that point at each other → neither", async () => {
  const publisher = await startFeeds();
  const fetching = startFetching(shared);
  const target = publisher.feed("/target", { title: "T" });
  const good = publisher.feed("/good", { title: "G", newFeedUrl: target });
  const bad = publisher.feed("/bad", { title: "B", newFeedUrl: `${publisher.url}/nothing` });
  const [a, b] = [`${publisher.url}/a`, `${publisher.url}/b`];
  publisher.feed("/a", { title: "A", newFeedUrl: b });
  publisher.feed("/b", { title: "B", newFeedUrl: a });
  const start = fetching.clock.now.getTime();
  await fetching.subscribe([good, bad, a, b]);
  for (const url of [good, bad, a, b]) await fetching.fetched(url);
  for (const hours of [50, 100]) for (const url of [good, bad, a, b]) await fetching.fetchAt(url, start + hours * HOUR);
  const podcasts = await Promise.all([good, bad, a, b].map((url) => fetching.fetched(url)));
  assert.deepEqual(
    podcasts.map((podcast) => [podcast.status, podcast.movedTo]),
    [["moved", target], ...Array(3).fill(["ok", undefined])],
  );
});

test("gone: 404 for 29 days, then back → ok; for 30 days → gone, title kept", async () => {
  const publisher = await startFeeds();
  const fetching = startFetching(shared);
  const url = publisher.feed("/feed", { title: "T" });
  const start = fetching.clock.now.getTime();
  await fetching.subscribe([url]);
  await fetching.fetched(url);
  publisher.pages.delete("/feed");
  const days = (count: number) => start + 8 * DAY + count * DAY;
  for (const count of [0, 1, 2, 10, 20, 29]) await fetching.fetchAt(url, days(count));
  assert.equal((await fetching.fetched(url)).status, "failing");
  publisher.feed("/feed", { title: "T2" });
  const back = await fetching.fetchAt(url, days(37));
  assert.deepEqual([back.status, back.title], ["ok", "T2"]);
  publisher.pages.delete("/feed");
  for (const count of [46, 47, 48, 56, 66, 77]) await fetching.fetchAt(url, days(count));
  const gone = await fetching.fetched(url);
  assert.deepEqual([gone.status, gone.title, gone.statusSince?.getTime()], ["gone", "T2", days(46)]);
});

test("renamed: a title equal to the feed's → follows the new one; any other title → stays", async () => {
  const [store, publisher] = [shared, await startFeeds()];
  const { subscribe, fetched, fetchAt, clock, errors } = startFetching(store);
  const url = publisher.feed("/feed", { title: "First &amp; only" });
  const [same, other, none] = [31, 32, 33];
  for (const user of [same, other, none]) await subscribe([url], user);
  const change = async (user: number, title: string) => {
    const { items } = await store.page(user, { offset: 0, size: 1 });
    await store.change(asUser(user), [{ kind: "update", id: items[0]?.id ?? "", title }], new Date());
  };
  // As after the import of a file that another app has written.
  await change(same, "First & only");
  await change(other, "first & only");
  const start = clock.now.getTime();
  await fetched(url);
  const titles = () =>
    Promise.all(
      [same, other, none].map(async (user) => (await store.page(user, { offset: 0, size: 1 })).items[0]?.title),
    );
  assert.equal((await fetchAt(url, start + 8 * DAY)).title, "First & only");
  assert.deepEqual(await titles(), ["First & only", "first & only", undefined], "a refresh changes no list");
  const { sequence } = await store.page(none, { offset: 0, size: 1 });
  const known = positionAt((await store.page(same, { offset: 0, size: 1 })).sequence);
  publisher.feed("/feed", { title: "Second" });
  assert.equal((await fetchAt(url, start + 16 * DAY)).title, "Second");
  assert.deepEqual(await titles(), [undefined, "first & only", undefined]);
  assert.equal((await changesSince(store, same, known, 10))?.changed.length, 1, "one change, which devices learn of");
  assert.equal((await store.page(none, { offset: 0, size: 1 })).sequence, sequence, "nothing to change, no change");
  assert.deepEqual(errors, []);
});

test("artwork: an image → WebP in two sizes; another image at the same URL → another hash, after a refresh", async () => {
  const [store, publisher] = [shared, await startFeeds()];
  const fetching = startFetching(store);
  const imageOf = (background: string) => sharp({ create: { width: 700, height: 700, channels: 3, background } });
  let image = await imageOf("red").png().toBuffer();
  publisher.pages.set("/cover.png", (_request, response) => response.end(image));
  const url = publisher.feed("/feed", { title: "T", image: `${publisher.url}/cover.png` });
  const start = fetching.clock.now.getTime();
  await fetching.subscribe([url]);
  const { id, artwork = "" } = await fetching.fetched(url);
  const small = await store.podcasts.artwork(LOCAL_USER, id, artwork, "small");
  assert.equal((await sharp(small).metadata()).width, 160);
  image = await imageOf("blue").png().toBuffer();
  // A week later only the feed is fetched.
  publisher.requests.length = 0;
  assert.equal((await fetching.fetchAt(url, start + 8 * DAY)).artwork, artwork);
  assert.deepEqual(
    publisher.requests.map(({ path }) => path),
    ["/feed"],
  );
  await store.podcasts.refresh(LOCAL_USER, id, new Date(start + 9 * DAY));
  const changed = await fetching.fetchAt(url, start + 9 * DAY);
  assert.notEqual(changed.artwork, artwork);
  assert.equal(await store.podcasts.artwork(LOCAL_USER, id, artwork, "small"), undefined);
  // An image that cannot be used does not replace it.
  image = Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>");
  await store.podcasts.refresh(LOCAL_USER, id, new Date(start + 10 * DAY));
  assert.equal((await fetching.fetchAt(url, start + 10 * DAY)).artwork, changed.artwork);
});

test("inactive: no subscriber seen for 90 days → no request until one returns", async () => {
  const server = await startServer({ EARMARK_ACCOUNTS: "true" });
  const { store } = server;
  const publisher = await startFeeds();
  const fetching = startFetching(store);
  const start = fetching.clock.now.getTime();
  const account = { name: "ann", issuer: "", passwordHash: "p", isCreatedByOperator: false, invitationHash: undefined };
  const user = await store.accounts.create(77, account, new Date(start));
  assert.equal(user, 77);
  const url = publisher.feed("/feed", { title: "T" });
  await fetching.subscribe([url], 77);
  await fetching.fetched(url);
  const { id } = await fetching.fetched(url);
  fetching.clock.now = new Date(start + 100 * DAY);
  await fetching.scheduler.fetchSoon(77, id);
  const tomorrow = start + 101 * DAY;
  for (;;) {
    const [due] = await store.podcasts.due(new Date(tomorrow), undefined, 10);
    if (due?.nextAt === tomorrow) break;
    await sleep(10);
  }
  assert.equal(publisher.requests.length, 1);
  await store.apps.saveDevice(asUser(77), { key: "k", device: "phone" }, {}, new Date(start + 101 * DAY));
  await fetching.fetchAt(url, start + 102 * DAY);
  assert.equal(publisher.requests.length, 2);
});

const FEEDS = 40;
test(`host: ${FEEDS} feeds of one host, two processes → never two at a time, each once`, async () => {
  const server = await startServer();
  const publisher = await startFeeds();
  const urls = Array.from({ length: FEEDS }, (_, index) => publisher.feed(`/${index}`, { title: `${index}` }));
  const options = { hostPauseMs: isPostgres ? 5 : 0, clock: () => new Date() };
  const first = startFetching(server.store, options);
  const second = isPostgres
    ? startFetching(await openStore(server.databaseUrl, { connections: 3 }), options)
    : undefined;
  first.scheduler.start();
  second?.scheduler.start();
  await first.subscribe(urls);
  const outcomes = () => first.outcomes.length + (second?.outcomes.length ?? 0);
  while (outcomes() < FEEDS && first.errors.length === 0) await sleep(50);
  await first.close();
  await second?.close();
  assert.deepEqual([publisher.mostAtOnce(), publisher.requests.length, outcomes()], [1, FEEDS, FEEDS]);
  const podcasts = await server.store.podcasts.find(urls);
  assert.deepEqual(
    podcasts.map(({ title }) => title),
    urls.map((_, index) => String(index)),
  );
});

test("killed: a process dies while it holds a feed and its host → another one fetches it when both have expired", async () => {
  const store = await newStore();
  const publisher = await startFeeds();
  const url = publisher.feed("/feed", { title: "T" });
  const host = new URL(url).host;
  const fetching = startFetching(store);
  const start = fetching.clock.now.getTime();
  store.watch(() => undefined);
  await subscribeTo(store, [url], LOCAL_USER);
  const { id } = (await store.podcasts.find([url]))[0] ?? assert.fail();
  await store.podcasts.create([{ user: LOCAL_USER, id }], new Date(start));
  assert.ok(await store.podcasts.claim(id, new Date(start), new Date(start + 3 * 60_000)));
  await store.accounts.sharedRateLimits?.replace(`fetch ${host}`, undefined, start + 3 * 60_000);
  await fetching.scheduler.fetchSoon(LOCAL_USER, id);
  await sleep(200);
  assert.equal(publisher.requests.length, 0);
  // The poll of the running process finds it.
  fetching.clock.now = new Date(start + 3 * 60_000);
  fetching.scheduler.start();
  assert.equal((await fetching.fetched(url)).title, "T");
});

test("scan: subscriptions that the process was not notified of → fetched after a start", async () => {
  const store = await newStore();
  const publisher = await startFeeds();
  const url = publisher.feed("/feed", { title: "T" });
  await subscribeTo(store, [url], LOCAL_USER);
  const fetching = startFetching(store);
  fetching.scheduler.start();
  assert.equal((await fetching.fetched(url)).title, "T");
});

test("close: a fetch hangs → ends at once, and the feed is still due", async () => {
  const store = await newStore();
  const publisher = await startFeeds();
  publisher.pages.set("/feed", () => undefined);
  const fetching = start(store);
  const url = `${publisher.url}/feed`;
  await fetching.subscribe([url]);
  while (publisher.requests.length === 0) await sleep(10);
  // Otherwise it would end by its timeout, which is a failure to be stored.
  await fetching.close();
  const [due] = await store.podcasts.due(fetching.clock.now, undefined, 10);
  assert.equal(due?.id, (await store.podcasts.find([url]))[0]?.id);
});
