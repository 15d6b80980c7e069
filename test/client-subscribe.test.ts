import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { createClient, EarmarkError, guid, type Progress } from "../client/src/index.ts";
import { newToken, signUp } from "./support/accounts.ts";
import { everyIdOf, failureOf, feedsOf, newClient, outcomesOf, startProxy, startProxyWith } from "./support/client.ts";
import { startServer } from "./support/server.ts";

test("guid: feed URL → podcast GUID", () => {
  for (const address of [
    "https://podnews.net/rss/",
    "https://podnews.net/rss",
    "HTTP://podnews.net/rss///",
    "podnews.net/rss",
  ]) {
    assert.equal(guid(address), "9b024349-ccf0-5f69-a609-6b82873eab3c");
  }
  assert.equal(guid("https://mp3s.nashownotes.com/pc20rss.xml"), "917393e3-1b1e-5cef-ace4-edaa54e1f810");
  // Every length around the block size of the hash.
  const namespace = Buffer.from("ead4c236bf5858c6a2c6a6b28d128cb6", "hex");
  for (let length = 0; length < 300; length += 1) {
    const name = "é🎧".slice(0, length % 4) + "x".repeat(length);
    const hash = createHash("sha1").update(namespace).update(Buffer.from(name.toWellFormed())).digest();
    hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6);
    hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
    assert.equal(guid(`https://${name}`).replaceAll("-", ""), hash.toString("hex", 0, 16));
  }
});

test("subscribe: 5,000 feeds → added in batches and listed in order", async () => {
  const { url, port } = await startServer();
  const proxy = await startProxy(() => "pass", port);
  const client = createClient({ url: proxy.url });
  const { limits, state, ...me } = await client.me();
  assert.deepEqual(me, {
    id: "1",
    name: "local",
    issuer: null,
    role: null,
    createdAt: null,
    credential: null,
    followMoves: true,
    counts: { subscriptions: 0, tokens: 0, sessions: 0 },
  });
  assert.equal(limits.operationsPerMinute, null);
  assert.equal((await client.changes()).state, state);
  proxy.all.length = 0;

  const feeds = feedsOf(5_000);
  const progress: Progress[] = [];
  const results = await client.subscribe(feeds, { onProgress: (step) => progress.push(step) });

  assert.deepEqual(
    results.map(({ feed }) => feed),
    feeds,
  );
  assert.deepEqual(new Set(outcomesOf(results)), new Set(["added"]));
  assert.equal(proxy.operations().length, 5);
  assert.equal(proxy.all.filter(({ path }) => path === "/v1/me").length, 1);
  assert.deepEqual(
    progress.map(({ done }) => done),
    Array.from({ length: 5 }, (_, index) => 1_000 * (index + 1)),
  );
  const { results: last, ...counts } = progress.at(-1) ?? assert.fail();
  assert.deepEqual(counts, { done: 5_000, total: 5_000, added: 5_000, alreadySubscribed: 0, refused: 0 });
  assert.deepEqual(last, results.slice(4_000));

  const listed = [];
  for await (const { id, feedUrl, subscribedAt } of createClient({ url }).subscriptions()) {
    assert.ok(Math.abs(Date.now() - subscribedAt.getTime()) < 60_000);
    listed.push([id, feedUrl]);
  }
  assert.deepEqual(
    listed,
    feeds.map((feed) => [guid(feed), feed]),
  );
});

test("subscribe: mixed feeds → one result per feed", async () => {
  const client = await newClient();
  const id = "0D9C2B1E-6A55-4C5C-8C0B-6B0E5A0A7F10";
  const given = [
    "https://feeds.example/one",
    { url: "https://feeds.example/two", id },
    "not an address",
    "http://feeds.example/one/",
    { url: "https://feeds.example/three", id },
    { url: "https://feeds.example/four", id: "four" },
    { url: "https://feeds.example/five", id: undefined },
  ];
  const steps: Progress[] = [];
  const results = await client.subscribe(new Set(given), { onProgress: (step) => steps.push(step) });
  assert.deepEqual(outcomesOf(results), [
    "added",
    "added",
    "feed-url-whitespace",
    "already-subscribed",
    "id-in-use",
    "invalid-id",
    "added",
  ]);
  assert.deepEqual(results[2], {
    feed: "not an address",
    id: guid("not an address"),
    outcome: "refused",
    error: {
      status: 422,
      code: "feed-url-whitespace",
      title: "Validation Failed",
      detail: "Invalid feed URL: it must not contain whitespace or control characters.",
    },
  });
  assert.deepEqual(results[3], {
    feed: "http://feeds.example/one/",
    id: guid("https://feeds.example/one"),
    outcome: "already-subscribed",
    error: {
      status: 409,
      code: "already-subscribed",
      title: "Already Subscribed",
      detail: "The user is already subscribed to this feed.",
    },
  });
  const [, second] = results;
  assert.ok(second?.outcome === "added");
  assert.equal(second.id, id.toLowerCase());
  assert.deepEqual(await client.get(id), second.subscription);
  assert.deepEqual(
    steps.map(({ added, alreadySubscribed, refused }) => [added, alreadySubscribed, refused]),
    [[3, 1, 3]],
  );
});

test("subscribe: no feed → no request; a string → one feed", async () => {
  const proxy = await startProxyWith();
  const client = await newClient({ url: proxy.url });
  assert.deepEqual(await client.subscribe([]), []);
  assert.equal(proxy.all.length, 0);
  assert.deepEqual(outcomesOf(await client.subscribe("https://feeds.example/one")), ["added"]);
});

test("subscribe: server limits → smaller requests", async () => {
  const { port } = await startServer({ EARMARK_MAX_OPERATIONS: "7", EARMARK_MAX_BODY_BYTES: "2048" });
  const proxy = await startProxy(() => "pass", port);
  const client = createClient({ url: proxy.url });
  const long = feedsOf(10, "é".repeat(300));
  const results = await client.subscribe([...feedsOf(20), ...long]);
  assert.deepEqual(new Set(outcomesOf(results)), new Set(["added"]));
  const sizes = proxy.operations().map(({ body }) => JSON.parse(body)["atomic:operations"].length);
  assert.ok(Math.max(...sizes) <= 7, String(sizes));
  for (const { body } of proxy.operations()) assert.ok(Buffer.byteLength(body) <= 2048);
});

test("subscribe: batchSize → feeds per request", async () => {
  const { port } = await startServer({ EARMARK_MAX_OPERATIONS: "40" });
  const proxy = await startProxy(() => "pass", port);
  const client = createClient({ url: proxy.url });
  const stepsOf = async (count: number, batchSize: number | undefined) => {
    const steps: number[] = [];
    const options = { batchSize, onProgress: ({ done }: Progress) => steps.push(done) };
    const results = await client.subscribe(feedsOf(count, `batches-of-${batchSize}`), options);
    assert.deepEqual(new Set(outcomesOf(results)), new Set(["added"]));
    return steps;
  };
  assert.deepEqual(await stepsOf(25, 10), [10, 20, 25]);
  // The server allows 40.
  assert.deepEqual(await stepsOf(100, 5_000), [40, 80, 100]);
  assert.deepEqual(await stepsOf(100, undefined), [40, 80, 100]);
  assert.deepEqual(await stepsOf(3, 1), [1, 2, 3]);
  // Invalid sizes become the default or the minimum.
  assert.deepEqual(await stepsOf(41, 0), [40, 41]);
  assert.deepEqual(await stepsOf(2, -5), [1, 2]);
});

test("subscribe: proxy returns 413 → smaller requests, only the long feed rejected", async () => {
  const refusal = {
    status: 413,
    headers: { "Content-Type": "text/html" },
    body: "<h1>413 Request Entity Too Large</h1>",
  };
  const proxy = await startProxy(({ body }) => (body.length > 20_000 ? refusal : "pass"));
  const client = await newClient({ url: proxy.url });
  const feeds = [...feedsOf(500, "a"), `https://feeds.example/${"x".repeat(30_000)}`, ...feedsOf(500, "b")];
  const results = await client.subscribe(feeds);
  assert.deepEqual(
    results.map(({ feed }) => feed),
    feeds,
  );
  assert.deepEqual(
    outcomesOf(results),
    feeds.map((_, index) => (index === 500 ? undefined : "added")),
  );
  assert.ok(proxy.operations().length < 60, String(proxy.operations().length));
});

test("token: account and base path → only its own list", async () => {
  const { url, port } = await startServer({
    EARMARK_ACCOUNTS: "true",
    EARMARK_SIGN_UP: "true",
    EARMARK_BASE_PATH: "/pods",
    EARMARK_OPERATIONS_PER_MINUTE: "900",
  });
  const [ann, bob] = [
    await signUp(port, "ann", "correct horse battery"),
    await signUp(port, "bob", "staple me a raven"),
  ];
  const { token, id } = await newToken(port, ann, { label: "phone", scope: "write" });
  const client = createClient({ url: `${url}/pods/`, token });
  assert.deepEqual(new Set(outcomesOf(await client.subscribe(feedsOf(250)))), new Set(["added"]));
  assert.equal((await everyIdOf(client)).length, 250);
  const { id: user, createdAt, state, ...me } = await client.me();
  assert.equal((await client.changes()).state, state);
  assert.ok(createdAt instanceof Date);
  assert.match(user, /^\d+$/);
  assert.deepEqual(me, {
    name: "ann",
    issuer: null,
    role: "member",
    credential: { kind: "token", id, scope: "write" },
    followMoves: true,
    counts: { subscriptions: 250, tokens: 1, sessions: 1 },
    limits: {
      operationsPerRequest: 10_000,
      bodyBytes: 8_388_608,
      pageSize: 100,
      requestsPerMinute: 6_000,
      operationsPerMinute: 900,
      subscriptions: 20_000,
    },
  });

  const reader = createClient({ url: `${url}/pods`, ...(await newToken(port, bob, { label: "tv", scope: "read" })) });
  assert.deepEqual(await everyIdOf(reader), []);
  const refused = await failureOf(reader.subscribe(feedsOf(1)), EarmarkError);
  assert.deepEqual([refused.status, refused.code], [403, "insufficient-scope"]);
  assert.equal(refused.message, "403 Insufficient Scope: This token is read-only.");

  const nobody = await failureOf(createClient({ url: `${url}/pods` }).me(), EarmarkError);
  assert.deepEqual([nobody.status, nobody.errors.length, nobody.retryAfter], [401, 1, undefined]);
});
