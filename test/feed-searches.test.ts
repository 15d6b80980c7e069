import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { createFeedSearch } from "../client/src/feed-search.ts";
import { EarmarkError, guid } from "../client/src/index.ts";
import { runInProcess } from "./support/commands.ts";
import { podcast, sendResults, startDirectory } from "./support/directory.ts";
import { startFeeds, status } from "./support/feeds.ts";
import { THIS_MACHINE } from "./support/fetching.ts";
import { newUser, start } from "./support/http-accounts.ts";
import { PLAIN, startServer } from "./support/server.ts";

const FETCH = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE };
const LINK = '<link rel="alternate" type="application/rss+xml" title="The feed" href="/rss">';
const MIB = 1024 * 1024;

const html =
  (body: string): RequestListener =>
  (_request, response) =>
    response.writeHead(200, { "content-type": "text/html" }).end(body);
const redirect = (location: string) => status(302, { location });
const codeOf = (error: unknown) => (error instanceof EarmarkError ? error.code : error);
const body = (url: unknown) => ({ data: { type: "feed-search", attributes: { url } } });

const fetching = await startServer(FETCH);
const quiet = await startServer({ EARMARK_FETCH_FEEDS: "false" });

test("feed search: a page, a redirect to it, a feed → its feeds; without any → none", async () => {
  const site = await startFeeds();
  const { url } = fetching;
  const findFeeds = createFeedSearch({ url, retries: 0 });
  const found = [{ id: guid(`${site.url}/rss`), feedUrl: `${site.url}/rss`, title: "The feed" }];
  site.pages.set("/", html(`<!doctype html><head>${LINK}</head><p>Hello`));
  site.pages.set("/moved", redirect("/"));
  site.pages.set("/none", html("<p>Hello"));
  site.pages.set("/empty", html(""));
  assert.deepEqual(await findFeeds(`${site.url}/`), found);
  assert.deepEqual(await findFeeds(`${site.url}/moved`), found);
  assert.deepEqual(await findFeeds(`${site.url}/none`), []);
  assert.deepEqual(await findFeeds(`${site.url}/empty`), []);
  const feed = site.feed("/feed", { title: "Title" });
  assert.deepEqual(await findFeeds(feed), [{ id: guid(feed), feedUrl: feed, title: "Title" }]);
  assert.ok(
    site.requests.every(({ path }) => path !== "/rss"),
    "what is found is not fetched",
  );
  assert.ok(site.requests.every(({ headers }) => headers.cookie === undefined && headers.referer === undefined));
});

test("feed search: hostile pages → what was declared before the limit, or page-unavailable", async () => {
  const site = await startFeeds();
  const { url } = await startServer({ ...FETCH, EARMARK_FETCH_NETWORKS: "127.0.0.1/32" });
  const findFeeds = createFeedSearch({ url, retries: 0 });
  const refused = async (path: string) => assert.equal(await findFeeds(path).catch(codeOf), "page-unavailable", path);
  const found = [{ id: guid(`${site.url}/rss`), feedUrl: `${site.url}/rss`, title: "The feed" }];
  site.pages.set("/endless", (_request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    const write = () => {
      while (!response.destroyed && response.write(`<p>${"x".repeat(16_000)}</p>`));
    };
    response.on("drain", write).write(LINK);
    write();
  });
  site.pages.set("/bomb", (_request, response) =>
    response
      .writeHead(200, { "content-type": "text/html", "content-encoding": "gzip" })
      .end(gzipSync(LINK + " ".repeat(16 * MIB))),
  );
  site.pages.set("/deep", html("<div>".repeat(200_000) + LINK));
  site.pages.set("/attributes", html(`<p ${"a ".repeat(500_000)}>${LINK}`));
  assert.deepEqual(await findFeeds(`${site.url}/endless`), found);
  assert.deepEqual(await findFeeds(`${site.url}/bomb`), found);
  assert.deepEqual(await findFeeds(`${site.url}/deep`), found);
  assert.deepEqual(await findFeeds(`${site.url}/attributes`), found);
  site.pages.set("/loop", redirect("/loop"));
  site.pages.set("/private", redirect("http://127.0.0.2:8080/"));
  site.pages.set("/metadata", redirect("http://169.254.169.254/latest/meta-data/"));
  site.pages.set("/script", redirect("javascript:alert(1)"));
  site.pages.set("/error", status(500));
  site.pages.set("/cut", (_request, response) => {
    response.writeHead(200, { "content-length": "1000" }).write(LINK);
    setTimeout(() => response.destroy(), 20);
  });
  for (const path of ["/loop", "/private", "/metadata", "/script", "/error", "/cut", "/nothing"])
    await refused(site.url + path);
  await refused("http://127.0.0.3/");
  await refused("http://[::1]/");
  await refused(`http://127.0.0.1:22/`);
});

test("feed search: invalid documents → an error that points to the value, and no request", async () => {
  const site = await startFeeds();
  const { call } = fetching;
  const post = async (document: unknown) => {
    const { status, json } = await call("POST", "/v1/feed-searches", {
      headers: { "Content-Type": PLAIN },
      body: JSON.stringify(document),
    });
    const [{ code, source }] = json.errors;
    return [status, code, source.pointer];
  };
  const at = "/data/attributes/url";
  assert.deepEqual(await post(body("")), [422, "feed-url-missing", at]);
  assert.deepEqual(await post(body(1)), [422, "feed-url-missing", at]);
  assert.deepEqual(await post(body(undefined)), [422, "feed-url-missing", "/data/attributes"]);
  assert.deepEqual(await post(body("file:///etc/passwd")), [422, "feed-url-not-http", at]);
  assert.deepEqual(await post(body(`${site.url} `)), [422, "feed-url-whitespace", at]);
  assert.deepEqual(await post(body(`${site.url}/${"x".repeat(2_048)}`)), [422, "feed-url-too-long", at]);
  assert.deepEqual(await post({ data: { type: "feed", attributes: {} } }), [409, "type-mismatch", "/data/type"]);
  assert.deepEqual(site.requests, []);
});

test("feed search: EARMARK_FETCH_FEEDS=false → fetching-disabled", async () => {
  const { url } = quiet;
  const findFeeds = createFeedSearch({ url, retries: 0 });
  assert.equal(await findFeeds("https://site.example/").catch(codeOf), "fetching-disabled");
});

test("feed search: one account has two running → a third is rejected, another account's is not; 20 a minute", async () => {
  const site = await startFeeds();
  const server = await start(FETCH);
  const [ann, bob] = [await newUser(server), await newUser(server)];
  const searchOf = ({ Authorization }: { Authorization: string }) =>
    createFeedSearch({ url: server.url, token: Authorization.slice("Bearer ".length), retries: 0 });
  const held: (() => void)[] = [];
  const { promise: bothRun, resolve } = Promise.withResolvers<void>();
  site.pages.set("/slow", (_request, response) => {
    held.push(() => response.end(LINK));
    if (held.length === 2) resolve();
  });
  site.pages.set("/", html(LINK));
  const slow = [1, 2].map(() => searchOf(ann)(`${site.url}/slow`));
  await bothRun;
  assert.equal(await searchOf(ann)(`${site.url}/`).catch(codeOf), "too-many-searches");
  assert.equal((await searchOf(bob)(`${site.url}/`)).length, 1);
  for (const finish of held) finish();
  assert.deepEqual((await Promise.all(slow)).flat().length, 2);
  for (let count = 2; count < 20; count += 1) await searchOf(ann)(`${site.url}/`);
  assert.equal(await searchOf(ann)(`${site.url}/`).catch(codeOf), "rate-limited");
  assert.equal((await searchOf(bob)(`${site.url}/`)).length, 1);
});

test("feed search: the client disconnects → the fetch is aborted, and its place is free", async () => {
  const site = await startFeeds();
  const { url } = fetching;
  const findFeeds = createFeedSearch({ url, retries: 0 });
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const abort = new AbortController();
  site.pages.set("/slow", (_request, response) => {
    response.once("close", resolve);
    abort.abort();
  });
  await assert.rejects(findFeeds(`${site.url}/slow`, { signal: abort.signal }));
  await closed;
});

test("feed search: links of apps → the feed in the link; https first, then http", async () => {
  const site = await startFeeds();
  const findFeeds = createFeedSearch({ url: fetching.url, retries: 0 });
  const feed = site.feed("/feed", { title: "Title", author: "Ann" });
  const found = [{ id: guid(feed), feedUrl: feed, title: "Title", author: "Ann" }];
  const rest = feed.slice("http://".length);
  for (const link of [
    `feed://${rest}`,
    `itpc://${rest}`,
    `antennapod-subscribe:${feed}`,
    `https://antennapod.org/deeplink/subscribe?url=${encodeURIComponent(feed)}&title=X`,
    `https://podcastaddict.com/feed/${encodeURIComponent(feed)}`,
  ])
    assert.deepEqual(await findFeeds(link), found, link);
  const inside = `https://antennapod.org/deeplink/subscribe?url=${encodeURIComponent("http://169.254.169.254/latest")}`;
  assert.equal(await findFeeds(inside).catch(codeOf), "page-unavailable");
});

test("feed search: a link to a service without feeds, or to an episode → says so, without a request", async () => {
  const { url } = fetching;
  const failure = (link: string) =>
    createFeedSearch({ url, retries: 0 })(link).catch((error) => [error.code, error.detail]);
  const [code, detail] = (await failure("https://open.spotify.com/show/1")) as string[];
  assert.equal(code, "service-without-feeds");
  assert.match(detail ?? "", /^Spotify does not say/);
  const [episode, reason] = (await failure("https://www.youtube.com/watch?v=1")) as string[];
  assert.equal(episode, "single-episode");
  assert.match(reason ?? "", /^This YouTube link/);
});

test("feed search: a link with Apple's number → looked up in the directory, also without fetching feeds", async () => {
  const directory = await startDirectory([podcast({ feedUrl: "https://feeds.example/show" })]);
  const { url } = await startServer({
    EARMARK_DIRECTORY: directory.url,
    EARMARK_FETCH_FEEDS: "false",
    EARMARK_FETCH_NETWORKS: THIS_MACHINE,
  });
  const findFeeds = createFeedSearch({ url, retries: 0 });
  const feedUrl = "https://feeds.example/show";
  const found = [{ id: guid(feedUrl), feedUrl, title: "The Show", author: "Ann Author" }];
  assert.deepEqual(await findFeeds("https://podcasts.apple.com/us/podcast/the-show/id123456"), found);
  assert.deepEqual(await findFeeds("https://overcast.fm/itunes99/the-show"), found);
  assert.deepEqual(directory.requests, ["/lookup?entity=podcast&id=123456", "/lookup?entity=podcast&id=99"]);
  // Without a result, Apple's page is fetched, which this server does not do.
  directory.respondWith(sendResults([]));
  assert.equal(await findFeeds("https://pca.st/itunes/5").catch(codeOf), "fetching-disabled");
  assert.equal(await findFeeds("https://site.example/").catch(codeOf), "fetching-disabled");
});

test("earmark add --find: pages → their first feeds are added; without feeds → rejected; no server → an error", async () => {
  const site = await startFeeds();
  const { url } = fetching;
  site.pages.set("/", html(`${LINK}<link rel="alternate" type="application/atom+xml" href="/comments">`));
  site.pages.set("/none", html("<p>Hello"));
  const added = await runInProcess([
    "add",
    "--find",
    `${site.url}/`,
    `${site.url}/none`,
    `${site.url}/gone`,
    "--server",
    url,
  ]);
  assert.equal(added.code, 1);
  assert.deepEqual(added.stdout.trimEnd().split("\n"), [
    `added\t${site.url}/rss`,
    `refused\t${site.url}/none\tThe page declares no feed.`,
    `refused\t${site.url}/gone\tThe server cannot fetch this web page.`,
  ]);
  assert.match(added.stderr, /has other feeds: .*\/comments/);
  const listed = await runInProcess(["list", "--server", url]);
  assert.match(listed.stdout, /\/rss/);
  const local = await runInProcess(["add", "--find", `${site.url}/`]);
  assert.deepEqual([local.code === 0, local.stderr.includes("--find needs --server")], [false, true]);
  const disabled = await runInProcess(["add", "--find", `${site.url}/`, "--server", quiet.url]);
  assert.match(disabled.stderr, /does not fetch feeds/);
});
