import assert from "node:assert/strict";
import { test } from "node:test";
import { startFeeds } from "./support/feeds.ts";
import { startFetching } from "./support/fetching.ts";
import { startServer } from "./support/server.ts";

/** One account does not delay the feeds of another. */

const newStore = async () => (await startServer()).store;

test("fair: an import of 300 feeds on many hosts → another user's feed is fetched before most of them", async () => {
  const store = await newStore();
  const publishers = await Promise.all(Array.from({ length: 30 }, startFeeds));
  const fetching = startFetching(store, { concurrency: 2, hostPauseMs: 1 });
  const imported = publishers.flatMap((publisher) =>
    Array.from({ length: 10 }, (_, index) => publisher.feed(`/${index}`, { title: "I" })),
  );
  const last = await startFeeds();
  await fetching.subscribe(imported, 1_001);
  await fetching.fetched(imported[0] ?? "");
  const url = last.feed("/feed", { title: "other" });
  await fetching.subscribe([url], 1_002);
  await fetching.fetched(url);
  assert.ok(fetching.outcomes.length < 150, `${fetching.outcomes.length} were fetched before`);
});

test("fair: an account whose feeds hang → at most half of the fetches; another's twelve feeds of one host are fetched", async () => {
  const publishers = await Promise.all(Array.from({ length: 20 }, startFeeds));
  const { subscribe, fetched, outcomes } = startFetching(await newStore(), { concurrency: 8 });
  for (const { pages } of publishers) pages.set("/feed", () => undefined);
  const countHanging = () => publishers.filter(({ requests }) => requests.length > 0).length;
  await subscribe(
    publishers.map(({ url }) => `${url}/feed`),
    1_003,
  );
  const other = await startFeeds();
  const urls = Array.from({ length: 12 }, (_, index) => other.feed(`/${index}`, { title: "other" }));
  await subscribe(urls, 1_004);
  for (const url of urls) assert.equal((await fetched(url)).title, "other");
  assert.deepEqual([countHanging(), outcomes.length], [4, 12]);
});
