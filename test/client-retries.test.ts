import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, EarmarkError, guid, NetworkError, type Retry } from "../client/src/index.ts";
import {
  everyIdOf,
  type Fate,
  failureOf,
  feedsOf,
  newClient,
  newPerson,
  outcomesOf,
  serverUrl,
  startProxy,
  startProxyWith,
} from "./support/client.ts";
import { listen } from "./support/listen.ts";
import { ATOMIC, newId, PLAIN, startServer } from "./support/server.ts";

test("retry: rate limit → waits and continues", async () => {
  // The server's clock stands still until the client waits.
  let now = Date.now();
  const { url, store } = await startServer(
    { EARMARK_ACCOUNTS: "true", EARMARK_OPERATIONS_PER_MINUTE: "900" },
    () => new Date(now),
    undefined,
    () => now,
  );
  const retries: Retry[] = [];
  const steps: number[] = [];
  const client = createClient({
    url,
    token: (await newPerson({ store })).token,
    onRetry: (retry) => {
      retries.push(retry);
      now += retry.delayMs;
    },
  });
  const results = await client.subscribe(feedsOf(910), { onProgress: ({ done }) => steps.push(done) });
  assert.deepEqual(
    outcomesOf(results),
    feedsOf(910).map(() => "added"),
  );
  // A request never has more operations than the limit per minute.
  assert.deepEqual(steps, [900, 910]);
  const [retry] = retries;
  assert.ok(retry?.error instanceof EarmarkError);
  const { retryAfter = 0 } = retry.error;
  assert.equal(retryAfter, 1);
  assert.deepEqual([retry.attempt, retry.delayMs, retry.error.code], [1, 1_000, "rate-limited"]);
});

test("retry: Retry-After → waits that long", async () => {
  const fates: (() => Fate)[] = [
    () => ({ status: 503, headers: { "Retry-After": "when it is done" } }),
    () => ({ status: 502, body: "<h1>Bad Gateway</h1>" }),
    () => ({ status: 503, headers: { "Retry-After": "1" } }),
    () => ({ status: 429, headers: { "Retry-After": new Date(Date.now() + 2_000).toUTCString() } }),
    () => ({ status: 503, headers: { "Retry-After": "0" } }),
  ];
  let isWaiting = false;
  let early = 0;
  const proxy = await startProxy(({ path }) => {
    if (isWaiting) early += 1;
    return (path === "/v1/operations" && fates.shift()?.()) || "pass";
  });
  const retries: Retry[] = [];
  const client = await newClient({
    url: proxy.url,
    onRetry(retry) {
      retries.push(retry);
      isWaiting = retry.delayMs > 0;
      setTimeout(() => {
        isWaiting = false;
      }, retry.delayMs - 10);
    },
  });
  assert.deepEqual(outcomesOf(await client.subscribe(feedsOf(2))), ["added", "added"]);
  const [first = 0, second = 0, third, fourth = 0, fifth] = retries.map(({ delayMs }) => delayMs);
  assert.ok(first >= 250 && first <= 500, String(first));
  assert.ok(second >= 500 && second <= 1_000, String(second));
  assert.equal(third, 1_000);
  // Dates have whole seconds.
  assert.ok(fourth >= 500 && fourth <= 2_000, String(fourth));
  assert.equal(fifth, 0);
  assert.equal(early, 0, "sent before the end of a delay");
  assert.deepEqual(
    retries.map(({ attempt }) => attempt),
    [1, 2, 3, 4, 5],
  );
});

test("retry: long Retry-After or too many attempts → error", async () => {
  const away = { status: 503, headers: { "Retry-After": "3600" } };
  const far = await newClient({ url: (await startProxyWith(away)).url });
  const failure = await failureOf(far.subscribe(feedsOf(1)), EarmarkError);
  assert.deepEqual([failure.status, failure.title, failure.retryAfter], [503, "Service Unavailable", 3_600]);

  const busy = { status: 503, headers: { "Retry-After": "0" } };
  const proxy = await startProxyWith(busy, busy, busy, busy);
  const client = await newClient({ url: proxy.url, retries: 3 });
  await failureOf(client.subscribe(feedsOf(1)), EarmarkError);
  assert.equal(proxy.operations().length, 4);
});

for (const [cut, moment] of [
  ["cut before", "before the server gets the request"],
  ["cut within", "during the response"],
  ["cut after", "after the request, before the response"],
] as const) {
  test(`lost response: connection cut ${moment} → added feeds are reported as added`, async () => {
    const { token } = await newPerson();
    const before = createClient({ url: serverUrl, token });
    const known = feedsOf(130, "known");
    const other = { url: "https://feeds.example/other", id: newId() };
    await before.subscribe([...known, other]);

    const proxy = await startProxyWith(cut);
    const retries: Retry[] = [];
    const client = createClient({ url: proxy.url, token, onRetry: (retry) => retries.push(retry) });
    const results = await client.subscribe([
      ...feedsOf(200, "new"),
      ...known.slice(90),
      other.url,
      "not an address",
      "https://feeds.example/new/3",
      "http://feeds.example/new/4/",
    ]);
    assert.deepEqual(
      retries.map(({ error }) => error.name),
      ["NetworkError"],
    );
    assert.deepEqual(outcomesOf(results), [
      ...feedsOf(200).map(() => "added"),
      ...feedsOf(41).map(() => "already-subscribed"),
      "feed-url-whitespace",
      ...feedsOf(2).map(() => "already-subscribed"),
    ]);
    const { items } = await client.page({ number: 3 });
    assert.deepEqual(
      results.slice(69, 169).map((result) => result.outcome === "added" && result.subscription),
      items,
    );
  });
}

test("lost response: another client adds feeds → not reported as added", async () => {
  const { token } = await newPerson();
  const other = createClient({ url: serverUrl, token });
  const fates: Fate[] = ["pass", "cut after"];
  const proxy = await startProxy(async ({ path }) => {
    const fate = (path === "/v1/operations" && fates.shift()) || "pass";
    // Feeds that others add move ours further back than the client expects.
    if (fates.length === 1) await other.subscribe(feedsOf(2, "other"));
    // The same feed with another id, and another URL of a feed with the same id.
    if (fate === "cut after") {
      await other.subscribe([
        { url: "https://feeds.example/b/1", id: newId() },
        { url: "http://feeds.example/b/2", id: guid("https://feeds.example/b/2") },
      ]);
    }
    return fate;
  });
  const feeds = [...feedsOf(1_000, "a"), ...feedsOf(5, "b"), "https://feeds.example/a/999"];
  const results = await createClient({ url: proxy.url, token }).subscribe(feeds);
  assert.deepEqual(
    outcomesOf(results.slice(0, 1_000)),
    feedsOf(1_000).map(() => "added"),
  );
  assert.deepEqual(outcomesOf(results.slice(1_000)), [
    "added",
    "already-subscribed",
    "already-subscribed",
    "added",
    "added",
    "already-subscribed",
  ]);
  // The client read only the end of the list.
  assert.equal(proxy.all.filter(({ path }) => path.startsWith("/v1/subscriptions?")).length, 1);
});

test("lost response: any request → retried", async () => {
  const asked = new Set<string>();
  const proxy = await startProxy(({ method, path }) => {
    const isFirst = !asked.has(method + path);
    asked.add(method + path);
    return isFirst ? "cut after" : "pass";
  });
  const client = await newClient({ url: proxy.url });
  const [result] = await client.subscribe(["https://podnews.net/rss"]);
  assert.equal(result?.outcome, "added");
  assert.deepEqual(await everyIdOf(client), [result?.id]);
  // The first attempt removed it.
  assert.equal(await client.remove(guid("https://podnews.net/rss")), false);
  assert.equal((await client.me()).counts.subscriptions, 0);
});

test("network: server unreachable → NetworkError after the retries", async () => {
  // No server listens on this port.
  const retries: Retry[] = [];
  const client = createClient({ url: "http://127.0.0.1:1", retries: 1, onRetry: (retry) => retries.push(retry) });
  const failure = await failureOf(client.me(), NetworkError);
  assert.ok(failure.cause instanceof TypeError);
  assert.equal(retries.length, 1);
  assert.ok(retries[0] !== undefined && retries[0].delayMs >= 250 && retries[0].delayMs <= 500);
});

test("response: not from Earmark → EarmarkError without errors", async () => {
  const replies: Record<string, [number, Record<string, string>, string]> = {
    "/page/v1/me": [200, { "Content-Type": "text/html" }, "<h1>Welcome</h1>"],
    "/other/v1/me": [200, { "Content-Type": PLAIN }, "{}"],
    "/moved/v1/me": [301, { Location: "https://pods.example/v1/me" }, ""],
    "/proxy/v1/me": [403, { "Content-Type": "text/html" }, "<h1>Go away</h1>"],
    "/short/v1/me": [
      200,
      {},
      JSON.stringify({
        data: { attributes: { name: "local", issuer: null, created_at: null } },
        meta: {
          credential: null,
          counts: { subscriptions: 0 },
          limits: { operations_per_request: 10, body_bytes: 10_000 },
        },
      }),
    ],
    "/short/v1/operations": [200, { "Content-Type": ATOMIC }, '{"atomic:results":[]}'],
  };
  const url = await listen(({ url: path = "" }, response) => {
    const [status, headers, body] = replies[path] ?? [404, {}, ""];
    response.writeHead(status, headers).end(body);
  });
  const failures = ["page", "other", "moved", "proxy"].map(async (name) => {
    const { status, code, title, errors } = await failureOf(createClient({ url: `${url}/${name}` }).me(), EarmarkError);
    assert.deepEqual(errors, []);
    return [status, code, title];
  });
  assert.deepEqual(await Promise.all(failures), [
    [200, "invalid-response", "Invalid Response"],
    [200, "invalid-response", "Invalid Response"],
    [301, undefined, "Moved Permanently"],
    [403, undefined, "Forbidden"],
  ]);
  const short = await createClient({ url: `${url}/short` }).subscribe(feedsOf(1));
  assert.deepEqual(outcomesOf(short), ["invalid-response"]);
  assert.throws(() => createClient({ url: "pods.example" }), TypeError);
});

test("fetch option: own fetch → called for each request", async () => {
  const { token } = await newPerson();
  const sent: (readonly [string | undefined, string])[] = [];
  const client = createClient({
    url: serverUrl,
    token,
    fetch: (address, init) => {
      sent.push([init.method, address]);
      assert.equal(new Headers(init.headers).get("Authorization"), `Bearer ${token}`);
      return fetch(address, init);
    },
  });
  await client.page({ number: 2, size: 3 });
  assert.deepEqual(sent, [["GET", `${serverUrl}/v1/subscriptions?page[number]=2&page[size]=3`]]);
});

test("import: 503 or lost response → not retried", async () => {
  const fates: Fate[] = [
    { status: 429, headers: { "Retry-After": "0" } },
    { status: 503, headers: { "Retry-After": "0" } },
    "cut after",
    "cut after",
  ];
  const proxy = await startProxy(({ path }) => (path.startsWith("/v1/imports") && fates.shift()) || "pass");
  const client = await newClient({ url: proxy.url });
  const opml = '<opml version="2.0"><body><outline xmlUrl="https://podnews.net/rss"/></body></opml>';
  assert.equal((await failureOf(client.importOpml(opml), EarmarkError)).status, 503);
  assert.ok((await failureOf(client.importOpml(opml), NetworkError)).cause instanceof Error);
  assert.equal((await client.importOpml(opml, { dryRun: true })).counts.alreadySubscribed, 1);
  assert.equal(fates.length, 0);
});
