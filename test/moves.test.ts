import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { asUser, LOCAL_USER, type UserId } from "../src/accounts/caller.ts";
import { AppSync } from "../src/apps/sync.ts";
import { readFeedUrl } from "../src/lists/feed-url.ts";
import { Fetcher } from "../src/podcasts/fetch/fetcher.ts";
import { Looks } from "../src/podcasts/schedule/looks.ts";
import { type FeedServer, startFeeds, status } from "./support/feeds.ts";
import { subscribeTo, THIS_MACHINE } from "./support/fetching.ts";
import { startServer } from "./support/server.ts";

const PHONE = { key: "phone", device: "phone" };
const { store } = await startServer();
const sync = new AppSync(store);
const fetcher = new Fetcher({ networks: [THIS_MACHINE], userAgent: "Earmark/0 (test)" });
const clock = { now: new Date() };
const watchers: { notify: (user: UserId) => void } = { notify: () => undefined };
store.watch((user) => watchers.notify(user));
after(() => fetcher.close());

function startLooks(canFetch = true): Looks {
  const looks = new Looks({
    store,
    fetchFeed: canFetch ? (url) => fetcher.fetchFeed({ url }) : undefined,
    clock: () => clock.now,
    onError: (error) => assert.fail(String(error)),
    hostPauseMs: 0,
  });
  after(() => looks.close());
  return looks;
}

let users = LOCAL_USER + 1_000;
const normalize = (url: string) => {
  const parsed = readFeedUrl(url);
  return parsed.kind === "valid" ? parsed.normalizedUrl : assert.fail(url);
};

async function collect(pages: AsyncIterable<readonly string[]> | Iterable<readonly string[]>): Promise<string[]> {
  const all: string[] = [];
  for await (const page of pages) all.push(...page);
  return all;
}

/** A list with one feed, an app that has it, and a person who updates its URL. */
async function startStory(publisher: FeedServer) {
  users += 1;
  const user = users;
  const old = publisher.feed(`/old-${user}`, { title: "T" });
  await subscribeTo(store, [old], user);
  let { timestamp } = await sync.feedsSince(asUser(user), PHONE, 0, clock.now);
  let since = await timestamp();
  return {
    user,
    old,
    async update(feedUrl: string) {
      const [{ id } = { id: "" }] = (await store.page(user, { offset: 0, size: 1 })).items;
      const change = { kind: "update", id, feedUrl, normalizedUrl: normalize(feedUrl) } as const;
      await store.change(asUser(user), [change], clock.now);
    },
    async poll() {
      const changes = await sync.feedsSince(asUser(user), PHONE, since, clock.now);
      const [add, remove] = [await collect(changes.add), await collect(changes.remove)];
      timestamp = changes.timestamp;
      since = await timestamp();
      return { add, remove };
    },
    /** Until no look is due. */
    async looked() {
      while ((await store.moves.dueLooks(clock.now, 1, user)).length > 0) await sleep(5);
    },
  };
}

test("look: the old URL redirects to the new one → apps are told nothing", async () => {
  const publisher = await startFeeds();
  const looks = startLooks();
  watchers.notify = (user) => looks.notify(user);
  const { old, user, update, poll, looked } = await startStory(publisher);
  const target = publisher.feed(`/new-${user}`, { title: "T" });
  publisher.pages.set(new URL(old).pathname, status(301, { location: target }));
  await update(target);
  assert.deepEqual(await poll(), { add: [], remove: [] }, "not looked yet");
  await looked();
  assert.deepEqual(await poll(), { add: [], remove: [] });
});

test("look: the old URL is another feed, or gone → apps replace it, once", async () => {
  const publisher = await startFeeds();
  const looks = startLooks();
  watchers.notify = (user) => looks.notify(user);
  for (const page of [undefined, status(404), status(410), status(302, { location: "/other" })]) {
    const { old, user, update, poll, looked } = await startStory(publisher);
    if (page !== undefined) publisher.pages.set(new URL(old).pathname, page);
    publisher.feed("/other", { title: "O" });
    const target = publisher.feed(`/new-${user}`, { title: "T" });
    await update(target);
    await looked();
    assert.deepEqual(await poll(), { add: [target], remove: [old] });
    assert.deepEqual(await poll(), { add: [], remove: [] });
  }
});

test("look: the feed at the old URL names the new one → leads there, if there is a feed", async () => {
  const publisher = await startFeeds();
  const looks = startLooks();
  watchers.notify = (user) => looks.notify(user);
  const { old, user, update, poll, looked } = await startStory(publisher);
  const target = publisher.feed(`/new-${user}`, { title: "T" });
  publisher.feed(new URL(old).pathname, { title: "T", newFeedUrl: target });
  await update(target);
  await looked();
  assert.deepEqual(await poll(), { add: [], remove: [] });
});

test("look: no answer → apps are told nothing, and it is repeated later, also after a restart", async () => {
  const publisher = await startFeeds();
  const first = startLooks();
  watchers.notify = (user) => first.notify(user);
  const { old, user, update, poll, looked } = await startStory(publisher);
  publisher.pages.set(new URL(old).pathname, status(503));
  const target = publisher.feed(`/new-${user}`, { title: "T" });
  await update(target);
  await looked();
  assert.deepEqual(await poll(), { add: [], remove: [] });
  await first.close();
  watchers.notify = () => undefined;
  publisher.pages.set(new URL(old).pathname, status(410));
  clock.now = new Date(clock.now.getTime() + 60 * 60_000);
  startLooks().start();
  await looked();
  assert.deepEqual(await poll(), { add: [target], remove: [old] });
});

test("look: publishers of one user let fetches hang → others do not wait for that", { timeout: 30_000 }, async () => {
  const publisher = await startFeeds();
  const looks = startLooks();
  const held: ServerResponse[] = [];
  users += 1;
  const slow = users;
  const slowUrls = Array.from({ length: 30 }, (_, index) => publisher.feed(`/slow-${index}`, { title: "T" }));
  await subscribeTo(store, slowUrls, slow);
  const { items } = await store.page(slow, { offset: 0, size: 100 });
  for (const url of slowUrls)
    publisher.pages.set(new URL(url).pathname, (_request, response) => void held.push(response));
  const moved = items.map(({ id }, index) => {
    const feedUrl = `${publisher.url}/slow-new-${index}`;
    return { kind: "update", id, feedUrl, normalizedUrl: normalize(feedUrl) } as const;
  });
  watchers.notify = (user) => looks.notify(user);
  await store.change(asUser(slow), moved, clock.now);
  while (held.length === 0) await sleep(5);
  const stories = await Promise.all(Array.from({ length: 10 }, () => startStory(publisher)));
  for (const { user, update } of stories) await update(publisher.feed(`/new-${user}`, { title: "T" }));
  for (const { looked } of stories) await looked();
  assert.equal(held.length, 1, "one at a time for each user");
  watchers.notify = () => undefined;
  publisher.pages.clear();
  const closed = looks.close();
  for (const response of held) response.destroy();
  await closed;
});

test("look: many are due at the start, of several users → all are looked at", async () => {
  const publisher = await startFeeds();
  const stories = await Promise.all(Array.from({ length: 12 }, () => startStory(publisher)));
  watchers.notify = () => undefined;
  for (const { user, update } of stories)
    for (const move of [1, 2, 3, 4, 5, 6, 7]) await update(publisher.feed(`/new-${user}-${move}`, { title: "T" }));
  startLooks().start();
  for (const { looked } of stories) await looked();
  for (const { poll } of stories) assert.equal((await poll()).remove.length, 1);
});

test("look: the server fetches no feeds → apps are told", async () => {
  const publisher = await startFeeds();
  const looks = startLooks(false);
  watchers.notify = (user) => looks.notify(user);
  const { old, user, update, poll, looked } = await startStory(publisher);
  const target = `${publisher.url}/new-${user}`;
  await update(target);
  await looked();
  assert.deepEqual(await poll(), { add: [target], remove: [old] });
  assert.deepEqual(publisher.requests, []);
});

test("look: a week later the old URL has stopped leading here → told after three looks in 72 hours", async () => {
  const publisher = await startFeeds();
  const looks = startLooks();
  watchers.notify = (user) => looks.notify(user);
  const { old, user, update, poll, looked } = await startStory(publisher);
  const target = publisher.feed(`/new-${user}`, { title: "T" });
  publisher.pages.set(new URL(old).pathname, status(308, { location: target }));
  await update(target);
  await looked();
  publisher.pages.set(new URL(old).pathname, status(404));
  for (const hours of [8 * 24, 40, 40]) {
    assert.deepEqual(await poll(), { add: [], remove: [] });
    clock.now = new Date(clock.now.getTime() + hours * 60 * 60_000);
    looks.notify(user);
    await looked();
  }
  assert.deepEqual(await poll(), { add: [target], remove: [old] });
});
