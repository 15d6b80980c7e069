import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { guid } from "../client/src/index.ts";
import { podcast, sendJson, sendResults, startDirectory } from "./support/directory.ts";
import { startFeeds, status } from "./support/feeds.ts";
import { THIS_MACHINE } from "./support/fetching.ts";
import { newUser, start } from "./support/http-accounts.ts";
import { add, newId, PLAIN, startServer, type TestServer } from "./support/server.ts";

const MIB = 1024 * 1024;

type Headers = Readonly<Record<string, string>>;

const search = (server: Pick<TestServer, "call">, query: unknown, headers: Headers = {}) =>
  server.call("POST", "/v1/podcast-searches", {
    headers: { "Content-Type": PLAIN, ...headers },
    body: JSON.stringify({ data: { type: "podcast-search", attributes: { query } } }),
  });
const codesOf = async (server: TestServer, query: unknown) => {
  const { status, json } = await search(server, query);
  return [status, json.errors?.[0].code];
};

async function startWith(results?: readonly unknown[], settings: Headers = {}) {
  const directory = await startDirectory(results);
  const server = await startServer({
    EARMARK_DIRECTORY: directory.url,
    EARMARK_FETCH_NETWORKS: THIS_MACHINE,
    ...settings,
  });
  return { directory, server };
}

test("podcast search: words → the directory's podcasts, with the caller's own subscriptions", async () => {
  const { directory, server } = await startWith([
    podcast({}),
    podcast({ feedUrl: "http://other.example/feed", collectionName: "Other", artistName: undefined }),
  ]);
  const feedUrl = "https://feeds.example/show";
  const own = newId();
  await server.operate([add(own, "http://other.example/feed/")]);
  const { status, json } = await search(server, "  The   Show ");
  assert.equal(status, 200);
  assert.deepEqual(json.data, [
    {
      type: "podcast-search-result",
      id: guid(feedUrl),
      attributes: {
        feed_url: feedUrl,
        title: "The Show",
        author: "Ann Author",
        artwork_url: "https://img.example/600.jpg",
        subscription_id: null,
      },
    },
    {
      type: "podcast-search-result",
      id: guid("http://other.example/feed"),
      attributes: {
        feed_url: "http://other.example/feed",
        title: "Other",
        artwork_url: "https://img.example/600.jpg",
        subscription_id: own,
      },
    },
  ]);
  assert.deepEqual(directory.requests, ["/search?media=podcast&term=the+show&limit=25"]);
  await search(server, "the show");
  assert.equal(directory.requests.length, 1, "cached");
  await search(server, "another show");
  assert.equal(directory.requests.length, 2);
});

test("podcast search: apps → the same as a document of the gPodder API; no words → nothing, and nobody is asked", async () => {
  const { directory, server } = await startWith([
    podcast({}),
    podcast({ feedUrl: "https://b.example/", collectionName: 1 }),
  ]);
  const get = async (path: string) => (await server.call("GET", path)).json;
  assert.deepEqual(await get("/search.json"), []);
  assert.deepEqual(await get("/search.json?q=%20"), []);
  assert.deepEqual(await get(`/search.json?q=${"x".repeat(201)}`), []);
  assert.deepEqual(directory.requests, []);
  const common = { author: "Ann Author", description: "", logo_url: "https://img.example/600.jpg", subscribers: 0 };
  const website = "https://podcasts.apple.com/podcast/id1";
  assert.deepEqual(await get("/search.json?q=The%20Show&scale_logo=64"), [
    { url: "https://feeds.example/show", title: "The Show", ...common, website },
    { url: "https://b.example/", title: "https://b.example/", ...common, website },
  ]);
});

test("podcast search: no directory → 404 and no request; fetching disabled → off unless it is set", async () => {
  const directory = await startDirectory();
  const off = await startServer({ EARMARK_DIRECTORY: "off", EARMARK_FETCH_FEEDS: "true" });
  assert.deepEqual(await codesOf(off, "show"), [404, "directory-disabled"]);
  assert.deepEqual(await codesOf(off, 1), [404, "directory-disabled"]);
  assert.deepEqual((await off.call("GET", "/search.json?q=show")).json, []);
  const unset = await startServer({ EARMARK_DIRECTORY: "", EARMARK_FETCH_FEEDS: "false" });
  assert.deepEqual(await codesOf(unset, "show"), [404, "directory-disabled"]);
  const set = await startServer({ EARMARK_DIRECTORY: directory.url, EARMARK_FETCH_NETWORKS: THIS_MACHINE });
  assert.equal((await search(set, "show")).status, 200);
  assert.equal(directory.requests.length, 1);
});

test("podcast search: invalid documents → an error that points to the value, and no request", async () => {
  const { directory, server } = await startWith();
  const at = "/data/attributes/query";
  const post = async (query: unknown) => {
    const { json, status } = await search(server, query);
    return [status, json.errors[0].code, json.errors[0].source.pointer];
  };
  assert.deepEqual(await post(undefined), [422, "attribute-missing", "/data/attributes"]);
  for (const query of ["", "  ", 1, null, ["a"], "x".repeat(201), "a\u0000b", "a\u001bb", "\ud800"])
    assert.deepEqual(await post(query), [422, "invalid-attribute", at], JSON.stringify(query));
  assert.deepEqual(directory.requests, []);
});

test("podcast search: hostile entries → dropped or cleaned one by one", async () => {
  const deep = JSON.parse(`${"[".repeat(40)}${"]".repeat(40)}`);
  const { server } = await startWith([
    null,
    1,
    "text",
    [],
    {},
    deep,
    podcast({ feedUrl: undefined }),
    podcast({ feedUrl: 1 }),
    podcast({ feedUrl: ["https://a.example/"] }),
    podcast({ feedUrl: "javascript:alert(1)" }),
    podcast({ feedUrl: "file:///etc/passwd" }),
    podcast({ feedUrl: "//a.example/feed" }),
    podcast({ feedUrl: "/relative" }),
    podcast({ feedUrl: `https://a.example/${"x".repeat(5_000)}` }),
    podcast({ feedUrl: "https://user:secret@a.example/feed#x", artworkUrl600: "javascript:alert(1)" }),
    podcast({ feedUrl: "http://a.example/feed/" }),
    podcast({ feedUrl: "https://b.example/", collectionName: "A\u0000B\u202eC\n D", artistName: { a: 1 } }),
    podcast({ feedUrl: "https://c.example/", collectionName: "x".repeat(4_000), artworkUrl600: "data:image/png,x" }),
  ]);
  const { json } = await search(server, "show");
  const attributes = json.data.map((each: { attributes: object }) => each.attributes);
  const common = { author: "Ann Author", subscription_id: null };
  assert.deepEqual(attributes, [
    { feed_url: "https://a.example/feed", title: "The Show", ...common },
    {
      feed_url: "https://b.example/",
      title: "A BC D",
      artwork_url: "https://img.example/600.jpg",
      subscription_id: null,
    },
    { feed_url: "https://c.example/", title: "x".repeat(300), ...common },
  ]);
});

test("podcast search: a thousand results → the first 25", async () => {
  const results = Array.from({ length: 1_000 }, (_, index) => ({ feedUrl: `https://a.example/${index}` }));
  const { server } = await startWith(results);
  const { json } = await search(server, "show");
  assert.equal(json.data.length, 25);
  assert.equal(json.data[24].attributes.feed_url, "https://a.example/24");
});

test("podcast search: hostile directories → directory-unavailable with a reason, not cached; then it works again", async () => {
  const elsewhere = await startFeeds();
  elsewhere.pages.set("/", sendResults([podcast({})]));
  const { directory, server } = await startWith(undefined, { EARMARK_FETCH_NETWORKS: "127.0.0.1/32" });
  const endless: RequestListener = (_request, response) => {
    response.writeHead(200).write('{"results":[');
    const write = () => {
      while (!response.destroyed && response.write(`{"a":"${"x".repeat(16_000)}"},`));
    };
    response.on("drain", write);
    write();
  };
  const text =
    (body: string | Buffer, headers: Headers = {}): RequestListener =>
    (_request, response) =>
      response.writeHead(200, headers).end(body);
  const cut: RequestListener = (_request, response) => {
    response.writeHead(200, { "content-length": "1000" }).write('{"results":[');
    setTimeout(() => response.destroy(), 20);
  };
  const cases: readonly (readonly [name: string, reason: RegExp, respond: RequestListener])[] = [
    ["HTML", /something other than/, text("<!doctype html><p>Sign in")],
    ["empty", /something other than/, text("")],
    ["no list", /something other than/, sendJson({})],
    ["wrong list", /something other than/, sendJson({ results: { feedUrl: "https://a.example/" } })],
    ["an array", /something other than/, sendJson([podcast({})])],
    ["deep", /something other than/, text(`{"results":[${"[".repeat(100)}${"]".repeat(100)}]}`)],
    ["endless", /something other than/, endless],
    ["bomb", /something other than/, text(gzipSync(" ".repeat(16 * MIB)), { "content-encoding": "gzip" })],
    ["cut", /something other than|does not respond/, cut],
    ["503", /rejected/, status(503)],
    ["403", /rejected/, status(403)],
    ["another host", /rejected/, status(302, { location: `${elsewhere.url.replace("127.0.0.1", "127.0.0.2")}/` })],
    ["metadata", /rejected/, status(302, { location: "http://169.254.169.254/latest/meta-data/" })],
    ["script", /does not respond|rejected/, status(302, { location: "javascript:alert(1)" })],
    ["loop", /does not respond/, status(302, { location: "/search" })],
    ["reset", /does not respond/, (request) => request.socket.destroy()],
  ];
  let count = 0;
  for (const [name, reason, respond] of cases) {
    directory.respondWith(respond);
    count += 1;
    // Every account may search 20 times a minute.
    const { status, json } = await search(server, "show");
    assert.deepEqual([status, json.errors[0].code], [503, "directory-unavailable"], name);
    assert.match(json.errors[0].detail, reason, name);
  }
  assert.ok(count < 20);
  assert.deepEqual(elsewhere.requests, []);
  directory.respondWith(sendResults([podcast({})]));
  assert.equal((await search(server, "show")).json.data.length, 1);
});

test("podcast search: a directory on a private address that is not allowed, or down → directory-unavailable", async () => {
  const directory = await startDirectory();
  const inside = await startServer({ EARMARK_DIRECTORY: directory.url });
  const { json } = await search(inside, "show");
  assert.equal(json.errors[0].code, "directory-unavailable");
  assert.match(json.errors[0].detail, /EARMARK_FETCH_NETWORKS/);
  assert.deepEqual(directory.requests, []);
  const down = await startServer({
    EARMARK_DIRECTORY: "http://127.0.0.1:9/search",
    EARMARK_FETCH_NETWORKS: THIS_MACHINE,
  });
  assert.deepEqual(await codesOf(down, "show"), [503, "directory-unavailable"]);
});

test("podcast search: the client disconnects → the request to the directory is aborted", {
  timeout: 20_000,
}, async () => {
  const { directory, server } = await startWith();
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const abort = new AbortController();
  directory.respondWith((_request, response) => {
    response.once("close", resolve);
    abort.abort();
  });
  const body = JSON.stringify({ data: { type: "podcast-search", attributes: { query: "show" } } });
  const init = { method: "POST", headers: { "Content-Type": PLAIN }, body, signal: abort.signal };
  await assert.rejects(fetch(`${server.url}/v1/podcast-searches`, init));
  await closed;
});

test("podcast search: searches of apps → count too", async () => {
  const { server } = await startWith();
  const asApp = async () => (await server.call("GET", "/search.json?q=show")).status;
  for (let count = 0; count < 19; count += 1) assert.equal((await search(server, "show")).status, 200);
  assert.equal(await asApp(), 200);
  assert.equal(await asApp(), 429);
  assert.equal((await search(server, "show")).status, 429);
});

test("podcast search: 20 a minute per account; another account has its own", async () => {
  const directory = await startDirectory();
  const server = await start({ EARMARK_DIRECTORY: directory.url, EARMARK_FETCH_NETWORKS: THIS_MACHINE });
  const [ann, bob] = [await newUser(server), await newUser(server)].map(({ Authorization }) => ({ Authorization }));
  for (let count = 0; count < 20; count += 1) assert.equal((await search(server, "show", ann)).status, 200);
  const { status, headers, json } = await search(server, "show", ann);
  assert.deepEqual([status, json.errors[0].code], [429, "rate-limited"]);
  assert.ok(Number(headers["retry-after"]) > 0);
  assert.equal((await search(server, "show", bob)).status, 200);
  assert.equal(directory.requests.length, 1);
});
