import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { asUser, LOCAL_USER, type UserId } from "../src/accounts/caller.ts";
import { AppSync } from "../src/apps/sync.ts";
import { MAX_WANTED_EPISODES } from "../src/podcasts/read/episodes.ts";
import type { Store } from "../src/store/shared/contract.ts";
import { type FeedServer, startFeeds } from "./support/feeds.ts";
import { type Fetching, startFetching, subscribeTo, THIS_MACHINE } from "./support/fetching.ts";
import { newUser, start } from "./support/http-accounts.ts";
import { startServer } from "./support/server.ts";

const HOUR = 60 * 60 * 1_000;
const PUBLISHED = "Tue, 10 Nov 2026 09:30:00 +0100";

const media = (name: string | number) => `https://cdn.example/${name}.mp3`;
const item = (name: string | number, title = `Episode ${name}`, more = "") => `<item><title>${title}</title>
  <guid>guid-${name}</guid><pubDate>${PUBLISHED}</pubDate><enclosure url="${media(name)}"/>${more}</item>`;
const rss = (items: readonly string[], head = `<image><url>/none.png</url></image>`) =>
  `<?xml version="1.0"?><rss version="2.0"><channel><title>Show</title>${head}${items.join("\n")}</channel></rss>`;

/** Serves a feed that compares validators, as publishers do. */
function serve({ pages, url }: FeedServer, path: string, read: () => string, etag = '"1"'): string {
  const page: RequestListener = (request, response) => {
    if (request.headers["if-none-match"] === etag) return response.writeHead(304).end();
    return response.writeHead(200, { "content-type": "application/rss+xml", etag }).end(read());
  };
  pages.set(path, page);
  return url + path;
}

const play = (podcast: string, name: string | number, more = {}) => ({
  podcast,
  episode: media(name),
  guid: `guid-${name}`,
  device: undefined,
  kind: "play" as const,
  actedAt: new Date(1_700_000_000_000),
  position: 5,
  started: 0,
  total: 100,
  ...more,
});

/** Uploads actions as an app does, and has the scheduler notified. */
function uploader(store: Store, { scheduler, clock }: Fetching, user: UserId = LOCAL_USER) {
  store.apps.watchActions((who) => scheduler.notifyActions(who));
  const sync = new AppSync(store);
  return async (...actions: readonly ReturnType<typeof play>[]) => {
    await sync.addActions(asUser(user), { key: "phone", device: undefined }, actions, clock.now);
  };
}

async function titlesOf(store: Store, user: UserId = LOCAL_USER): Promise<readonly (string | undefined)[]> {
  const titles: (string | undefined)[] = [];
  for await (const page of new AppSync(store).everyAction(user))
    titles.push(...page.map(({ title, publishedAt }) => title && `${title} ${publishedAt?.toISOString()}`));
  return titles;
}

async function until<T>(read: () => Promise<T> | T, isWanted: (value: T) => boolean): Promise<T> {
  let value = await read();
  for (let tries = 0; !isWanted(value); tries += 1) {
    assert.ok(tries < 1_500, `still ${JSON.stringify(value)}`);
    await sleep(10);
    value = await read();
  }
  return value;
}

/** When the feed is due, in milliseconds from now. */
async function dueIn(store: Store, url: string, { clock }: Fetching): Promise<number> {
  const [{ id } = { id: "" }] = await store.podcasts.find([url]);
  const due = await store.podcasts.due(new Date(clock.now.getTime() + 10 * 365 * 24 * HOUR), undefined, 1_000);
  return (due.find((each) => each.id === id)?.nextAt ?? Number.NaN) - clock.now.getTime();
}
const TITLED = "2026-11-10T08:30:00.000Z";

test("titles: an app plays an episode → its feed is fetched once more, in full, and never again for it", async () => {
  const store = (await startServer()).store;
  const publisher = await startFeeds();
  const fetching = startFetching(store);
  const { clock, subscribe, fetched, fetchAt, errors } = fetching;
  const items = [item(1), item(2)];
  const url = serve(publisher, "/feed", () => rss(items));
  await subscribe([url]);
  await fetched(url);
  assert.equal(publisher.requests.filter(({ path }) => path === "/feed").length, 1);
  const start = clock.now.getTime();
  await uploader(store, fetching)(play(url, 1), play(url, "gone"));
  const ms = await until(
    () => dueIn(store, url, fetching),
    (value) => value < 2 * HOUR,
  );
  assert.ok(ms <= HOUR, `${ms}`);
  assert.deepEqual(await titlesOf(store), [undefined, undefined]);

  await fetchAt(url, start + HOUR);
  assert.deepEqual(
    await until(
      () => titlesOf(store),
      ([title]) => title !== undefined,
    ),
    [`Episode 1 ${TITLED}`, undefined],
  );
  const requests = () => publisher.requests.filter(({ path }) => path === "/feed");
  assert.deepEqual(
    requests().map(({ headers }) => headers["if-none-match"]),
    [undefined, undefined],
  );
  // The next one is the usual one, a day later, although one of them has no title.
  assert.ok((await dueIn(store, url, fetching)) > 12 * HOUR);
  await uploader(store, fetching)(play(url, 1, { position: 9, actedAt: new Date(1_700_000_100_000) }));
  await sleep(1_500);
  assert.ok((await dueIn(store, url, fetching)) > 12 * HOUR);
  await fetchAt(url, start + 400 * HOUR);
  assert.equal(requests().at(-1)?.headers["if-none-match"], '"1"');
  assert.equal(requests().length, 3);
  assert.deepEqual(errors, []);
});

test("titles: episodes without an action → nothing of them is kept; found by media URL too", async () => {
  const store = (await startServer()).store;
  const publisher = await startFeeds();
  const fetching = startFetching(store);
  const url = serve(publisher, "/feed", () => rss([item(1), item(2), item(3)]));
  await uploader(store, fetching)(play(url, 2, { guid: undefined }), play(url, 3, { guid: "another" }));
  await fetching.subscribe([url]);
  await fetching.fetched(url);
  const titles = await until(
    () => titlesOf(store),
    (all) => all.every((title) => title !== undefined),
  );
  assert.deepEqual(titles, [`Episode 2 ${TITLED}`, `Episode 3 ${TITLED}`]);
});

test("titles: actions that this process was not told of → found by the scan", async () => {
  const store = (await startServer()).store;
  const publisher = await startFeeds();
  const url = serve(publisher, "/feed", () => rss([item(1)]));
  const first = startFetching(store);
  await first.subscribe([url]);
  await first.fetched(url);
  await new AppSync(store).addActions(asUser(LOCAL_USER), { key: "k", device: undefined }, [play(url, 1)], new Date());
  first.scheduler.start();
  await until(
    () => dueIn(store, url, first),
    (ms) => ms <= HOUR,
  );
  await first.close();
});

test("titles: a feed with 20,000 episodes and 2,000 actions → all titles, and requests are served meanwhile", async () => {
  const store = (await startServer()).store;
  const publisher = await startFeeds();
  const fetching = startFetching(store);
  const description = `<description><![CDATA[<p>${"words ".repeat(100)}</p>]]></description>`;
  const text = rss(Array.from({ length: 20_000 }, (_, index) => item(index, undefined, description)));
  const url = serve(publisher, "/feed", () => text);
  const numbers = Array.from({ length: 2_000 }, (_, index) => 10 * index + 9);
  await uploader(store, fetching)(...numbers.map((number) => play(url, number)));
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last - 5);
    last = performance.now();
  }, 5);
  await fetching.subscribe([url]);
  await fetching.fetched(url);
  const titles = await until(
    () => titlesOf(store),
    (all) => all.every((title) => title !== undefined),
  );
  clearInterval(timer);
  assert.deepEqual(
    titles,
    numbers.map((number) => `Episode ${number} ${TITLED}`),
  );
  assert.ok(longest < 1_000, `the main thread was busy for ${longest} ms`);
  assert.deepEqual(fetching.errors, []);
});

test("titles: more episodes than one fetch looks for → the feed is due again, and then all have titles", async () => {
  const store = (await startServer()).store;
  const publisher = await startFeeds();
  const fetching = startFetching(store);
  const numbers = Array.from({ length: MAX_WANTED_EPISODES + 100 }, (_, index) => index);
  const url = serve(publisher, "/feed", () => rss(numbers.map((number) => item(number))));
  await uploader(store, fetching)(...numbers.map((number) => play(url, number)));
  await fetching.subscribe([url]);
  await fetching.fetched(url);
  const count = async () => (await titlesOf(store)).filter((title) => title !== undefined).length;
  await until(count, (found) => found === MAX_WANTED_EPISODES);
  await until(
    () => dueIn(store, url, fetching),
    (ms) => ms <= HOUR,
  );
  await fetching.fetchAt(url, fetching.clock.now.getTime() + HOUR);
  await until(count, (found) => found === numbers.length);
});

test("titles: hostile titles → plain text, as for podcasts", async () => {
  const store = (await startServer()).store;
  const publisher = await startFeeds();
  const fetching = startFetching(store);
  const hostile = [
    "&lt;script&gt;alert(1)&lt;/script&gt;Hi",
    "a\u202egnp.exe",
    "x".repeat(50_000),
    "&#xD800;&#10;line",
    "]]&gt;' or 1=1 --",
  ];
  const url = serve(publisher, "/feed", () => rss(hostile.map((title, index) => item(index, title))));
  await uploader(store, fetching)(...hostile.map((_, index) => play(url, index)));
  await fetching.subscribe([url]);
  await fetching.fetched(url);
  const titles = await until(
    () => titlesOf(store),
    (all) => all.every((title) => title !== undefined),
  );
  assert.deepEqual(
    titles.map((title) => title?.replace(` ${TITLED}`, "")),
    ["Hi", "agnp.exe", "x".repeat(300), "\ufffd line", "]]>' or 1=1 --"],
  );
});

test("titles: the feed ends too late or in the middle → what was read is kept, and the feed works", async () => {
  const store = (await startServer()).store;
  const publisher = await startFeeds();
  const fetching = startFetching(store);
  const head = rss([item(1)], `<image><url>${publisher.url}/none.png</url></image>`).replace("</channel></rss>", "");
  publisher.pages.set("/cut", (_request, response) => {
    response.writeHead(200, { "content-length": "1000000" }).write(head);
    setTimeout(() => response.destroy(), 200);
  });
  const url = `${publisher.url}/cut`;
  await uploader(store, fetching)(play(url, 1), play(url, 2));
  await fetching.subscribe([url]);
  const podcast = await fetching.fetched(url);
  assert.deepEqual([podcast.status, podcast.title], ["ok", "Show"]);
  await until(
    () => titlesOf(store),
    ([title]) => title === `Episode 1 ${TITLED}`,
  );
});

test("titles: a private feed → only for the account that has its URL", async () => {
  const settings = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE };
  const server = await start(settings);
  // One host each, since the clock of the server, and so the pause between two requests to a host, does not move.
  const [publisher, other] = await Promise.all([startFeeds(), startFeeds()]);
  const urls = [
    serve(publisher, "/members?key=secret", () => rss([item(1, "Members only")])),
    serve(other, "/members?key=other", () => rss([item(1, "For others")])),
  ];
  const people = [await newUser(server), await newUser(server)];
  const users: UserId[] = [];
  for (const [index, { Authorization }] of people.entries()) {
    const { json } = await server.call("GET", "/v1/me", { headers: { Authorization } });
    users.push(Number(json.data.id));
    const user = users[index] ?? assert.fail();
    // Both have an action of each feed.
    const actions = urls.map((url) => play(url, 1));
    await new AppSync(server.store).addActions(asUser(user), { key: "k", device: undefined }, actions, new Date());
    await subscribeTo(server.store, [urls[index] ?? ""], user);
  }
  for (const [index, expected] of ["Members only", "For others"].entries()) {
    const user = users[index] ?? assert.fail();
    const own = await until(
      () => titlesOf(server.store, user),
      (all) => all[index] !== undefined,
    );
    assert.equal(own[index], `${expected} ${TITLED}`);
    assert.equal(own[1 - index], undefined);
  }
  const { json } = await server.call("GET", "/v1/episode-actions", {
    headers: { Authorization: people[0]?.Authorization ?? "" },
  });
  const [first, second] = json.data;
  assert.deepEqual([first.attributes.title, first.attributes.published_at], ["Members only", TITLED]);
  assert.deepEqual(["title" in second.attributes, "published_at" in second.attributes], [false, false]);
});
