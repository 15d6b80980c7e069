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
