import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "../client/src/index.ts";
import { retryFailing } from "../src/podcasts/retry-failing.ts";
import { startFeeds, status } from "./support/feeds.ts";
import { learn, subscribeTo, THIS_MACHINE } from "./support/fetching.ts";
import { add, newId, startServer, type TestServer } from "./support/server.ts";

/** Feeds that cannot be read: why, and how they are tried again. */

const FETCH = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE };
const MINUTE_MS = 60_000;

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The podcasts of a list by their URLs, once all of them are as wanted. */
async function podcastsOf({ url }: TestServer, isWanted: (status: string) => boolean) {
  const client = createClient({ url });
  for (let tries = 0; tries < 1_000; tries += 1) {
    const { items } = await client.page({ include: "podcast" });
    if (items.every(({ podcast }) => isWanted(podcast?.status ?? "")))
      return new Map(items.map(({ feedUrl, podcast }) => [feedUrl, podcast]));
    await sleep(10);
  }
  throw new Error("it did not happen");
}

test("failing feeds: one of each kind → the reason and since when; the log has it once, without a URL", async () => {
  const publisher = await startFeeds();
  publisher.pages.set("/denied?key=s3cret", status(403));
  publisher.pages.set("/page", (_request, response) => response.end("<html><title>s3cret text</title></html>"));
  const server = await startServer({ ...FETCH, EARMARK_LOG_LEVEL: "info" });
  const wanted = {
    [`${publisher.url}/nothing`]: "not-found",
    [`${publisher.url}/denied?key=s3cret`]: "forbidden",
    [`${publisher.url}/page`]: "not-a-feed",
    [`http://127.0.0.1:${await closedPort()}/x`]: "unreachable",
    "http://127.0.0.1:9/blocked": "invalid",
    "http://10.0.0.1/private": "private-address",
  };
  await server.operate(Object.keys(wanted).map((url) => add(newId(), url)));
  const podcasts = await podcastsOf(server, (each) => ["failing", "forbidden"].includes(each));
  const found = [...podcasts].map(([url, podcast]) => [url, podcast?.failure]);
  assert.deepEqual(Object.fromEntries(found), wanted);
  for (const podcast of podcasts.values()) assert.ok(podcast?.statusSince instanceof Date);
  const lines = server
    .log()
    .split("\n")
    .filter((line) => line.includes("a feed cannot be read"));
  assert.deepEqual(lines.map((line) => JSON.parse(line).failure).sort(), Object.values(wanted).sort());
  assert.doesNotMatch(server.log(), /s3cret|\/nothing|10\.0\.0\.1/);
});

test("retry: failing feeds of the list → fetched soon; those fetched just now, working and other people's are not", async () => {
  const publisher = await startFeeds();
  let now = Date.now();
  const server = await startServer(FETCH, () => new Date(now));
  const client = createClient({ url: server.url });
  const [one, other] = [`${publisher.url}/one`, `${publisher.url}/other`];
  await server.operate([one, other, publisher.feed("/fine", { title: "F" })].map((url) => add(newId(), url)));
  await subscribeTo(server.store, [`${publisher.url}/theirs`], 4_711);
  await podcastsOf(server, (each) => each !== "pending");
  const count = () => publisher.requests.length;
  for (let before = -1; before < count(); await sleep(1_200)) before = count();
  publisher.feed("/one", { title: "One" });
  now += 4 * MINUTE_MS;
  assert.equal(await client.retryFailing(), 0);
  publisher.requests.length = 0;
  now += 2 * MINUTE_MS;
  assert.equal(await client.retryFailing(), 2);
  const isFetched = async () => (await podcastsOf(server, () => true)).get(other)?.checkedAt?.getTime() === now;
  while (!(await isFetched())) await sleep(10);
  const podcasts = await podcastsOf(server, () => true);
  assert.deepEqual([podcasts.get(one)?.title, podcasts.get(one)?.failure], ["One", undefined]);
  assert.equal(podcasts.get(other)?.failure, "not-found");
  assert.deepEqual([...new Set(publisher.requests.map(({ path }) => path))].sort(), ["/one", "/other"]);
  assert.equal(await client.retryFailing(), 0);
});

test("retry: the publisher asks clients to wait → not before", async () => {
  const publisher = await startFeeds();
  publisher.pages.set("/busy", status(429, { "retry-after": "86400" }));
  let now = Date.now();
  const server = await startServer(FETCH, () => new Date(now));
  await server.operate([add(newId(), `${publisher.url}/busy`)]);
  const podcasts = await podcastsOf(server, (each) => each === "failing");
  assert.equal(podcasts.get(`${publisher.url}/busy`)?.failure, "rate-limited");
  now += 60 * MINUTE_MS;
  const { status: code } = await server.call("POST", "/v1/podcasts/retry");
  await sleep(500);
  assert.deepEqual([code, publisher.requests.length], [202, 1]);
});

test("retry: more failing feeds than are tried at once → the others the next time", async () => {
  const { store } = await startServer();
  const urls = Array.from({ length: 8 }, (_, index) => `https://feeds.example/${index}`);
  await subscribeTo(store, urls, 4_712);
  for (const url of urls) await learn(store, url, { status: "failing", failure: "tls", checkedAt: 1 });
  const first = await retryFailing(store.podcasts, 4_712, new Date(), 5);
  assert.equal(first.length, 5);
  for (const { feedUrl } of first) await learn(store, feedUrl, { checkedAt: Date.now() });
  assert.equal((await retryFailing(store.podcasts, 4_712, new Date(), 5)).length, 3);
});

test("EARMARK_FETCH_NETWORKS: allowed after a restart → feeds with a private address are fetched at once", async () => {
  const publisher = await startFeeds();
  const url = publisher.feed("/feed", { title: "At home" });
  const first = await startServer({ EARMARK_FETCH_FEEDS: "true" });
  await first.operate([add(newId(), url), add(newId(), "http://localhost:9/x")]);
  const before = await podcastsOf(first, (each) => each === "failing");
  assert.equal(before.get(url)?.failure, "private-address");
  await first.close();
  const second = await startServer({ ...FETCH, DATABASE_URL: first.databaseUrl });
  const failures = async () => (await podcastsOf(second, () => true)).get(url)?.failure;
  while ((await failures()) !== undefined) await sleep(10);
  assert.deepEqual(
    publisher.requests.map(({ path }) => path),
    ["/feed"],
  );
});

test("retry: EARMARK_FETCH_FEEDS=false → 409", async () => {
  const server = await startServer();
  const { status: code, json } = await server.call("POST", "/v1/podcasts/retry");
  assert.deepEqual([code, json.errors[0].code], [409, "fetching-disabled"]);
  assert.equal((await server.call("GET", "/v1/podcasts/retry")).status, 405);
});
