import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { asUser } from "../src/accounts/caller.ts";
import { startFeeds, status, writeRss } from "./support/feeds.ts";
import { subscribeTo, THIS_MACHINE } from "./support/fetching.ts";
import { newUser, start } from "./support/http-accounts.ts";

const HOUR = 60 * 60 * 1_000;
const SECRET = "s3cret-of-ann";
const BASIC = `Basic ${Buffer.from(`ann:${SECRET}`).toString("base64")}`;

/** With a cookie, which must not come back. */
const withCookie =
  (page: RequestListener): RequestListener =>
  (request, response) => {
    response.setHeader("set-cookie", "visitor=1");
    page(request, response);
  };
const needsPassword =
  (page: RequestListener): RequestListener =>
  (request, response) =>
    request.headers.authorization === BASIC ? page(request, response) : response.writeHead(401).end();
const send =
  (body: string): RequestListener =>
  (_request, response) =>
    response.end(body);

test("private feeds: they move, or others point at them → credentials in no URL, request or log line of others", async () => {
  const settings = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE, EARMARK_LOG_LEVEL: "debug" };
  const server = await start(settings);
  const { store } = server;
  // One host each, since the pause between two requests to a host is a second.
  const [members, leaving, open, named, claiming, pointing] = await Promise.all(Array.from({ length: 6 }, startFeeds));
  assert.ok(members && leaving && open && named && claiming && pointing);
  const publishers = [members, leaving, open, named, claiming, pointing];
  const withPassword = (url: string) => url.replace("//", `//ann:${SECRET}@`);

  const image = `${open.url}/cover.png`;
  open.feed("/feed", { title: "Open" });
  members.pages.set("/old", needsPassword(status(301, { location: "/new" })));
  members.pages.set(
    "/new",
    needsPassword(send(writeRss({ title: "Private", image, newFeedUrl: `${members.url}/new` }))),
  );
  leaving.pages.set("/feed", needsPassword(status(301, { location: `${open.url}/feed` })));
  named.pages.set("/feed", status(301, { location: withPassword(`${open.url}/feed`) }));
  claiming.feed("/feed", { title: "Claims", newFeedUrl: withPassword(`${open.url}/feed`) });
  pointing.pages.set("/feed", status(301, { location: withPassword(`${members.url}/new`) }));
  for (const { pages } of publishers) for (const [path, page] of pages) pages.set(path, withCookie(page));

  const [ann, bob] = [await newUser(server), await newUser(server)];
  const own = [withPassword(`${members.url}/old`), withPassword(`${leaving.url}/feed`)];
  const others = [`${members.url}/old`, ...[named, claiming, pointing].map(({ url }) => `${url}/feed`)];
  const lists = [
    { who: ann, urls: own },
    { who: bob, urls: others },
  ];
  for (const { who, urls } of lists) {
    const user = (await store.accounts.find(who.name, ""))?.account.user ?? 0;
    // Otherwise the lists would follow, and these would be other podcasts.
    await store.apps.changeFollowsMoves(asUser(user), false, new Date());
    await subscribeTo(store, urls, user);
  }

  const fetched = async () => {
    const from = server.now();
    for (let tries = 0; tries < 400; tries += 1) {
      const podcasts = await store.podcasts.find([...own, ...others]);
      if (podcasts.every(({ checkedAt }) => checkedAt !== undefined && checkedAt >= from)) return podcasts;
      await sleep(50);
      // Two feeds have the same host.
      server.wait(1_000);
    }
    throw new Error("not all feeds were fetched");
  };
  const ask = ({ Authorization }: typeof ann, method: string, path: string) =>
    server.call(method, path, { headers: { Authorization } });
  for (let round = 0; round < 3; round += 1) {
    const known = await fetched();
    // A move is believed when it was seen three times over 72 hours.
    server.wait(40 * HOUR);
    for (const { who, urls } of lists)
      for (const { id } of known.splice(0, urls.length))
        assert.equal((await ask(who, "POST", `/v1/podcasts/${id}/refresh`)).status, 202);
  }
  const podcasts = await fetched();
  assert.deepEqual(
    podcasts.map(({ status: state, movedTo, title }) => [state, movedTo, title]),
    [
      ["moved", withPassword(`${members.url}/new`), "Private"],
      ["moved", `${open.url}/feed`, "Open"],
      ["forbidden", undefined, undefined],
      ["moved", `${open.url}/feed`, "Open"],
      ["moved", `${open.url}/feed`, "Open"],
      ["forbidden", undefined, undefined],
    ],
  );

  const paths = ["/v1/subscriptions?include=podcast", "/v1/changes", "/v1/subscriptions.opml"];
  const responses = await Promise.all([
    ...paths.map((path) => ask(bob, "GET", path)),
    ...podcasts.flatMap(({ id }) => [
      ask(bob, "GET", `/v1/podcasts/${id}`),
      ask(bob, "POST", `/v1/podcasts/${id}/refresh`),
    ]),
  ]);
  const statuses = responses.map((response) => response.status);
  assert.deepEqual(statuses, [...Array(3).fill(200), ...Array(4).fill(404), ...Array(4).fill([200, 202]).flat()]);
  for (const { text } of responses) for (const word of [SECRET, "Private"]) assert.ok(!text.includes(word), text);
  const { json } = await ask(ann, "GET", paths[0] ?? "");
  assert.equal(json.included[0].attributes.moved_to, withPassword(`${members.url}/new`));

  for (const [index, { requests }] of publishers.entries()) {
    assert.ok(requests.length > 0);
    for (const { path, headers } of requests) {
      assert.deepEqual([headers.referer, headers.cookie], [undefined, undefined], path);
      if (index >= 2) assert.equal(headers.authorization, undefined, path);
    }
  }
  const sent = new Set(members.requests.map(({ path, headers }) => `${path} ${headers.authorization}`));
  assert.deepEqual(
    [...sent].sort(),
    [`/new ${BASIC}`, "/new undefined", `/old ${BASIC}`, "/old undefined"],
    "only the holder's URL opens the private feed",
  );
  const log = server.log();
  assert.match(log, /refresh/);
  for (const text of [SECRET, BASIC.slice(6), new URL(members.url).host]) assert.ok(!log.includes(text), text);
});
