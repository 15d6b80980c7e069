import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Fetcher } from "../src/podcasts/fetch/fetcher.ts";
import type { Podcast } from "../src/podcasts/podcast-store.ts";
import type { SchedulerOptions } from "../src/podcasts/schedule/scheduler.ts";
import { startFeeds, status } from "./support/feeds.ts";
import { startFetching, subscribeTo, THIS_MACHINE } from "./support/fetching.ts";
import { startServer } from "./support/server.ts";

/** Accounts that have the same feed in different spellings, some of which do not work. */

const HOUR = 60 * 60 * 1_000;
const DAY = 24 * HOUR;
const { store } = await startServer();

async function start(options: Partial<SchedulerOptions> = {}) {
  const fetching = startFetching(store, {
    createFetcher: async () => new Fetcher({ networks: [THIS_MACHINE], userAgent: "Earmark/0 (test)" }),
    ...options,
  });
  after(() => fetching.close());
  const publisher = await startFeeds();
  return {
    ...fetching,
    publisher,
    paths: () => publisher.requests.map(({ path }) => path),
    async waitFor(url: string, isWanted: (podcast: Podcast) => boolean): Promise<Podcast> {
      const find = async () => (await store.podcasts.find([url]))[0] ?? assert.fail();
      await until(async () => isWanted(await find()));
      return find();
    },
  };
}

async function until(isDone: () => Promise<boolean> | boolean): Promise<void> {
  for (let tries = 0; !(await isDone()); tries += 1) {
    assert.ok(tries < 1_000, "it did not happen");
    await sleep(10);
  }
}

const isDue = async (id: string, at: number) =>
  (await store.podcasts.due(new Date(at), undefined, 1_000)).some((each) => each.id === id);
const isOk = ({ status }: Podcast) => status === "ok";
const isFailing = ({ status }: Podcast) => status === "failing";

test("spelling: https where only http works → the podcast has its name at once; later fetches use http, with its ETag", async () => {
  const { publisher, subscribe, waitFor, fetchAt, clock, outcomes, errors } = await start();
  const url = publisher.feed("/feed", { title: "T" }, { etag: '"1"' });
  await subscribe([url.replace("http:", "https:")], 11);
  await subscribe([url], 12);
  assert.equal((await waitFor(url, isOk)).title, "T");
  publisher.pages.set("/feed", status(304));
  const { status: state, title } = await fetchAt(url, clock.now.getTime() + 8 * DAY);
  assert.deepEqual([state, title], ["ok", "T"]);
  assert.deepEqual(
    outcomes.map(({ kind }) => kind),
    ["failed", "read", "unchanged"],
  );
  assert.equal(publisher.requests[1]?.headers["if-none-match"], '"1"');
  assert.deepEqual(errors, []);
});

test("spelling: added to a feed that works, and is missing → the podcast stays ok, and gets its new name", async () => {
  const { publisher, subscribe, waitFor, fetched, clock, scheduler, paths } = await start();
  const url = publisher.feed("/feed/", { title: "T" }, { etag: '"1"' });
  await subscribe([url], 13);
  const { id } = await fetched(url);
  await subscribe([url.slice(0, -1)], 14);
  await until(async () => (await store.podcasts.subscribers([id]))[0]?.length === 2);
  publisher.feed("/feed/", { title: "U" });
  clock.now = new Date(clock.now.getTime() + 8 * DAY);
  await scheduler.fetchSoon(13, id);
  const podcast = await waitFor(url, ({ title }) => title === "U");
  assert.deepEqual([podcast.status, podcast.statusSince?.getTime()], ["ok", clock.now.getTime() - 8 * DAY]);
  assert.deepEqual(paths(), ["/feed/", "/feed", "/feed/"]);
  assert.equal(publisher.requests[2]?.headers["if-none-match"], undefined, "an ETag of another URL");
});

test("spelling: the feed fails, then another account adds one that works → the podcast has its name soon", async () => {
  const { publisher, subscribe, waitFor, clock, scheduler, paths } = await start();
  const url = publisher.feed("/feed/", { title: "T" });
  await subscribe([url.slice(0, -1)], 15);
  const { id } = await waitFor(url, isFailing);
  const failedAt = clock.now.getTime();
  await subscribe([url], 16);
  await until(() => isDue(id, failedAt + 10_000));
  assert.equal(await isDue(id, failedAt + 9_999), false);
  clock.now = new Date(failedAt + 10_000);
  scheduler.start();
  assert.equal((await waitFor(url, isOk)).title, "T");
  assert.deepEqual(paths(), ["/feed", "/feed", "/feed/"]);
});

test("spelling: ten, of which none works → four requests, with pauses, then a wait; failing when all have failed", async () => {
  const publisher = await startFeeds();
  let isPause = false;
  let early = 0;
  const spellings = Array.from({ length: 10 }, (_, count) => `/feed${"/".repeat(count)}`);
  for (const path of spellings)
    publisher.pages.set(path, (_request, response) => {
      if (isPause) early += 1;
      isPause = true;
      setTimeout(() => {
        isPause = false;
      }, 95);
      response.writeHead(404).end();
    });
  const url = `${publisher.url}/feed`;
  for (const [index, path] of spellings.entries()) await subscribeTo(store, [publisher.url + path], 20 + index);
  const { id } = (await store.podcasts.find([url]))[0] ?? assert.fail();
  // A pause of the host ends by this clock too.
  let passed = 0;
  const clock = () => new Date(Date.now() + passed);
  const { scheduler, outcomes } = await start({ hostPauseMs: 100, clock });
  const users = spellings.map((_, index) => ({ user: 20 + index, id }));
  await store.podcasts.create(users, clock());
  for (const expected of [4, 8, 12]) {
    await scheduler.fetchSoon(20, id);
    await until(() => outcomes.length === expected);
    await until(async () => !(await isDue(id, clock().getTime() + HOUR / 2)));
    assert.deepEqual(
      publisher.requests.map(({ path }) => path),
      [...spellings, ...spellings].slice(0, expected),
    );
    const [podcast] = await store.podcasts.find([url]);
    assert.equal(podcast?.status, expected < 10 ? "pending" : "failing");
    passed += 5 * HOUR;
  }
  assert.equal(early, 0, "requested during a pause");
});
