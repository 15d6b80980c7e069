import assert from "node:assert/strict";
import { test } from "node:test";
import { Fetcher } from "../src/podcasts/fetch/fetcher.ts";
import { startFetching } from "./support/fetching.ts";
import {
  createImages,
  createRedirects,
  DATES,
  type HostileFeeds,
  SIZES,
  startHostilePublisher,
  TEXTS,
} from "./support/hostile-feeds.ts";
import { startServer } from "./support/server.ts";

/** Feeds of hostile or careless publishers, from their servers to the podcast that subscribers see. */

const TIMEOUTS = { connectMs: 10_000, firstByteMs: 10_000, totalMs: 1_000 };
const MIB = 1024 * 1024;

const { store } = await startServer();

/** Fetches the feeds, compares their podcasts with what is expected, and returns the most bytes sent for one of them. */
async function check(feeds: HostileFeeds, timeouts?: typeof TIMEOUTS): Promise<number> {
  const publisher = await startHostilePublisher(feeds);
  // Not even the rest of this machine's network is allowed.
  const options = { networks: ["127.0.0.1/32"], userAgent: "Earmark/0 (test)", ...(timeouts && { timeouts }) };
  const { subscribe, fetched, errors } = startFetching(store, { createFetcher: async () => new Fetcher(options) });
  for (const [name, { title, failure, latest, hasArtwork = false }] of Object.entries(feeds)) {
    const url = `${publisher.url}/${name}`;
    await subscribe([url]);
    const podcast = await fetched(url);
    const expected = [title, title === undefined ? "failing" : "ok", failure ?? podcast.failure, latest, hasArtwork];
    const day = podcast.latestEpisodeAt?.toISOString().slice(0, 10);
    assert.equal(podcast.failure === undefined, title !== undefined, name);
    const { title: found, status, artwork } = podcast;
    assert.deepEqual([found, status, podcast.failure, day, artwork !== undefined], expected, name);
  }
  assert.deepEqual(errors, []);
  return publisher.allClosed();
}

test("hostile feeds: text → the title that a reader expects, or none", async () => {
  await check(TEXTS);
});

test("hostile feeds: endless, slow, broken off or compressed many times → stopped; what is known by then is used", async () => {
  const sent = await check(SIZES, TIMEOUTS);
  // What the sockets buffer may have been sent beyond the limit.
  assert.ok(sent < 16 * MIB, String(sent));
});

test("hostile feeds: dates in the future, absurd ones and endless lists → the newest real date, or none", async () => {
  await check(DATES, TIMEOUTS);
});

test("hostile feeds: redirects in circles, to files and to other hosts of the network → failing, nobody is contacted", async () => {
  const { feeds, reached } = await createRedirects();
  await check(feeds);
  assert.equal(reached(), 0);
});

test("hostile feeds: files that are not images, truncated or too large images → no artwork, the title stays", async () => {
  await check(await createImages());
});
