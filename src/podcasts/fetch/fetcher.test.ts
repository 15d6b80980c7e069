import assert from "node:assert/strict";
import { after, test } from "node:test";
import { FEED, reasonOf, serve, USER_AGENT } from "./fetch-test-support.ts";
import { Fetcher } from "./fetcher.ts";

const url = await serve({
  "/feed": (_request, response) => response.end(FEED),
  "/image": (_request, response) => response.end(Buffer.alloc(1_000_000, 7)),
  "/large": (_request, response) => response.writeHead(200, { "content-length": 9 * 1024 * 1024 }).write("x"),
  "/endless": (_request, response) => {
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536)));
    };
    response.on("drain", write);
    write();
  },
  "/private": ({ headers }, response) =>
    headers.authorization === undefined ? response.writeHead(401).end() : response.end("x"),
  "/silent": () => undefined,
});

const create = (
  networks: readonly string[] = ["127.0.0.0/8"],
  timeouts?: { connectMs: number; firstByteMs: number; totalMs: number },
) => {
  const fetcher = new Fetcher({ networks, userAgent: USER_AGENT, ...(timeouts && { timeouts }) });
  after(() => fetcher.close());
  return fetcher;
};

const fetcher = create();

test("fetcher: many feeds at a time → each has its own outcome", async () => {
  const paths = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? "/feed" : "/missing"));
  const outcomes = await Promise.all(paths.map((path) => fetcher.fetchFeed({ url: url + path })));
  assert.deepEqual(
    outcomes.map(reasonOf),
    paths.map((path) => (path === "/feed" ? "read" : "http-status")),
  );
});

test("fetcher: no extra networks allowed → private addresses are not fetched", async () => {
  const fetcher = create([]);
  for (const address of [url, url.replace("127.0.0.1", "localhost"), "http://10.0.0.1/", "http://[::1]/"])
    assert.equal(reasonOf(await fetcher.fetchFeed({ url: address })), "not-public", address);
});

test("fetcher: images → bytes; too large → failure", async () => {
  const image = await fetcher.fetchImage(`${url}/image`);
  assert.ok(image.kind === "image");
  assert.equal(Buffer.compare(image.bytes, Buffer.alloc(1_000_000, 7)), 0);
  for (const [path, expected] of [
    ["/large", { kind: "failed", reason: "too-large" }],
    ["/endless", { kind: "failed", reason: "too-large" }],
    ["/missing", { kind: "failed", reason: "http-status", status: 404 }],
  ] as const)
    assert.deepEqual(await fetcher.fetchImage(url + path), expected, path);
});

test("fetcher: image of a private feed → credentials sent to the same origin only", async () => {
  const feedUrl = `${url.replace("//", "//user:password@")}/feed`;
  assert.equal((await fetcher.fetchImage(`${url}/private`, feedUrl)).kind, "image");
  assert.equal((await fetcher.fetchImage(`${url}/private`)).kind, "failed");
  const other = feedUrl.replace("127.0.0.1", "localhost");
  assert.equal((await fetcher.fetchImage(`${url}/private`, other)).kind, "failed");
});

test("fetcher: aborted or closed → fetches end at once as aborted", async () => {
  const fetcher = create();
  const aborted = { kind: "failed", reason: "aborted" };
  assert.deepEqual(await fetcher.fetchFeed({ url: `${url}/silent` }, AbortSignal.timeout(50)), aborted);
  assert.deepEqual(await fetcher.fetchFeed({ url: `${url}/feed` }, AbortSignal.abort()), aborted);
  const waiting = fetcher.fetchFeed({ url: `${url}/silent` });
  await fetcher.close();
  assert.deepEqual(await waiting, aborted);
  assert.deepEqual(await fetcher.fetchFeed({ url: `${url}/feed` }), aborted);
});

test("fetcher: the thread crashes → fetches in progress fail, the next fetch starts a new thread", async () => {
  // Invalid networks make the thread throw when it starts.
  const networks = ["invalid"];
  const fetcher = create(networks);
  const outcomes = await Promise.all([1, 2].map(() => fetcher.fetchFeed({ url: `${url}/feed` })));
  assert.deepEqual(outcomes.map(reasonOf), ["worker-crashed", "worker-crashed"]);
  networks[0] = "127.0.0.0/8";
  assert.equal(reasonOf(await fetcher.fetchFeed({ url: `${url}/feed` })), "read");
});

test("fetcher: shorter timeouts → timeout", async () => {
  const fetcher = create(undefined, { connectMs: 10_000, firstByteMs: 50, totalMs: 10_000 });
  assert.equal(reasonOf(await fetcher.fetchFeed({ url: `${url}/silent` })), "timeout");
});

const service = await serve({
  "/actions": (_request, response) => {
    const actions = Array.from({ length: 1_234 }, (_, index) => ({
      podcast: `p${index}`,
      position: index,
      other: "x",
    }));
    const urls = [["a", "b"], "x".repeat(5_000)];
    response.setHeader("set-cookie", ["other=1", "sessionid=abc; Path=/"]);
    response.end(JSON.stringify({ actions, timestamp: 5, update_urls: urls }));
  },
  "/echo": (request, response) => {
    const { method, headers } = request;
    request.setEncoding("utf8").on("data", (body) => {
      response.end(JSON.stringify({ method, body, authorization: headers.authorization }));
    });
  },
  "/moved": (_request, response) => response.writeHead(302, { location: "/actions" }).end(),
  "/elsewhere": (_request, response) => response.writeHead(301, { location: "http://127.0.0.2/x" }).end(),
  "/secure": ({ headers }, response) => response.writeHead(301, { location: `https://${headers.host}/x` }).end(),
  "/html": (_request, response) => response.end("<html>"),
  "/blank": (_request, response) => response.end(" ".repeat(100_000)),
  "/silent": () => undefined,
});

const REQUEST = { members: ["podcast", "position"], maxBytes: 1_000_000, timeoutMs: 10_000 };
const callService = async (path: string, more: object = {}) => {
  const items: { list: string; items: readonly unknown[] }[] = [];
  const onItems = async (piece: (typeof items)[number]) => void items.push(piece);
  const request = { ...REQUEST, url: service + path, ...more };
  return { outcome: await fetcher.call(request, onItems, new AbortController().signal), items };
};

test("fetcher: another server's API → its lists in pieces, with the requested members, and the rest", async () => {
  const { outcome, items } = await callService("/actions");
  assert.ok(outcome.kind === "response");
  const { bytes, ...rest } = outcome;
  assert.deepEqual(rest, {
    kind: "response",
    status: 200,
    url: `${service}/actions`,
    redirect: undefined,
    session: "abc",
    document: { actions: [], timestamp: 5, update_urls: [] },
  });
  assert.ok(bytes > 50_000);
  const actions = items.filter(({ list }) => list === "actions").flatMap((piece) => piece.items);
  assert.equal(actions.length, 1_234);
  assert.ok(items.every((piece) => piece.items.length <= 500));
  assert.deepEqual(actions[7], { podcast: "p7", position: 7 });
  assert.deepEqual(items.at(-1), { list: "update_urls", items: [false, false] });
});

test("fetcher: another server's API → method, headers and body are sent; only redirects within the host followed", async () => {
  const headers = { authorization: "Basic x", "content-type": "text/plain" };
  const echo = await callService("/echo", { method: "POST", body: "hello", headers });
  assert.ok(echo.outcome.kind === "response");
  assert.deepEqual(echo.outcome.document, { method: "POST", body: "hello", authorization: "Basic x" });
  const moved = await callService("/moved");
  assert.ok(moved.outcome.kind === "response");
  assert.deepEqual([moved.outcome.status, moved.outcome.url], [200, `${service}/actions`]);
  const post = await callService("/moved", { method: "POST" });
  assert.ok(post.outcome.kind === "response");
  assert.deepEqual([post.outcome.status, post.outcome.redirect], [302, `${service}/actions`]);
  const elsewhere = await callService("/elsewhere");
  assert.ok(elsewhere.outcome.kind === "response");
  assert.deepEqual([elsewhere.outcome.status, elsewhere.outcome.redirect], [301, "http://127.0.0.2/x"]);
  assert.deepEqual((await callService("/secure")).outcome, { kind: "failed", reason: "tls" });
});

test("fetcher: another server's API → no JSON, too large, slow, private: known without its text", async () => {
  const html = await callService("/html");
  assert.ok(html.outcome.kind === "response");
  assert.deepEqual([html.outcome.document, html.items], [undefined, []]);
  const failed = async (...args: Parameters<typeof callService>) => {
    const { outcome } = await callService(...args);
    return outcome.kind === "failed" ? outcome.reason : outcome.status;
  };
  assert.equal(await failed("/blank", { maxBytes: 50_000 }), "too-large");
  assert.equal(await failed("/silent", { timeoutMs: 50 }), "timeout");
  assert.equal(await failed("", { url: "http://10.0.0.1/" }), "not-public");
  assert.equal(await failed("", { url: "http://127.0.0.1:22/" }), "bad-url");
});
