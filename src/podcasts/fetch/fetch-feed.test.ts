import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingHttpHeaders, RequestListener } from "node:http";
import { test } from "node:test";
import { listen } from "../../../test/support/listen.ts";
import { FEED, fetchDirectly, reasonOf, serve, serveRaw, USER_AGENT } from "./fetch-test-support.ts";

/** A server that records the headers of requests. */
async function record(respond: RequestListener) {
  const seen: IncomingHttpHeaders[] = [];
  const url = await listen((request, response) => {
    seen.push(request.headers);
    respond(request, response);
  });
  return { url, seen };
}

test("conditional requests: validators → sent back and returned as they are", async () => {
  const { url, seen } = await record((request, response) => {
    if (request.headers["if-none-match"] === 'W/"weak"') response.writeHead(304).end();
    else response.writeHead(200, { etag: 'W/"weak"', "last-modified": "Mon, 16 Nov 2026 08:00:00 GMT" }).end(FEED);
  });
  const first = await fetchDirectly(url);
  assert.ok(first.kind === "read");
  const { etag, lastModified } = first;
  assert.deepEqual([etag, lastModified], ['W/"weak"', "Mon, 16 Nov 2026 08:00:00 GMT"]);
  assert.deepEqual(await fetchDirectly({ url, etag, lastModified }), { kind: "unchanged" });
  assert.equal(seen[0]?.["if-none-match"], undefined);
  assert.equal(seen[1]?.["if-modified-since"], lastModified);
});

test("conditional requests: 200 with the same ETag → read; 304 without validators → failure", async () => {
  const url = await serve({
    "/same": (_request, response) => response.writeHead(200, { etag: '"a"' }).end(FEED),
    "/304": (_request, response) => response.writeHead(304).end(),
  });
  assert.equal(reasonOf(await fetchDirectly({ url: `${url}/same`, etag: '"a"' })), "read");
  assert.deepEqual(await fetchDirectly(`${url}/304`), { kind: "failed", reason: "http-status", status: 304 });
});

test("conditional requests: invalid or long validators → neither sent nor returned", async () => {
  const { url, seen } = await record((_request, response) => {
    response.writeHead(200, { etag: `"${"x".repeat(1_000)}"`, "last-modified": "" }).end(FEED);
  });
  const outcome = await fetchDirectly({ url, etag: "a\r\nx-evil: 1", lastModified: "\u4e00" });
  assert.deepEqual(outcome, { kind: "read", metadata: { title: "Title" }, needsUserAgentSuffix: false });
  for (const name of ["if-none-match", "if-modified-since", "x-evil"]) assert.equal(seen[0]?.[name], undefined, name);
});

test("content: wrong Content-Type → read if it is a feed; a page or an empty body → not a feed", async () => {
  const page = "<!doctype html><html><title>Sign in</title></html>";
  const bodies: readonly (readonly [type: string, body: string, expected: string])[] = [
    ["text/html", FEED, "read"],
    ["application/octet-stream", FEED, "read"],
    ["application/rss+xml", page, "not-a-feed"],
    ["text/html", page, "not-a-feed"],
    ["text/xml", "", "not-a-feed"],
  ];
  const url = await serve(
    Object.fromEntries(
      bodies.map(([type, body], index) => [
        `/${index}`,
        (_request, response) => response.writeHead(200, { "content-type": type }).end(body),
      ]),
    ),
  );
  for (const [index, [type, , expected]] of bodies.entries())
    assert.equal(reasonOf(await fetchDirectly(`${url}/${index}`)), expected, `${index}: ${type}`);
});

test("statuses: other than 200 → status and Retry-After", async () => {
  const url = await listen((request, response) => {
    const status = Number(request.url?.slice(1));
    response.writeHead(status, { "retry-after": "120", "content-type": "text/html" }).end(FEED);
  });
  for (const status of [201, 204, 206, 300, 400, 401, 404, 410, 429, 500, 503])
    assert.deepEqual(await fetchDirectly(`${url}/${status}`), {
      kind: "failed",
      reason: "http-status",
      status,
      retryAfterSeconds: 120,
    });
});

test("freshness: Cache-Control → seconds, also for a 304", async () => {
  const url = await listen((request, response) => {
    const status = request.headers["if-none-match"] === undefined ? 200 : 304;
    response.writeHead(status, { "cache-control": "public, max-age=600" }).end(status === 200 ? FEED : "");
  });
  const read = await fetchDirectly(url);
  assert.equal(read.kind === "read" && read.maxAgeSeconds, 600);
  assert.deepEqual(await fetchDirectly({ url, etag: '"a"' }), { kind: "unchanged", maxAgeSeconds: 600 });
});

test("user agent: rejected with a challenge → retried with the suffix, which later requests use", async () => {
  const suffixed = `${USER_AGENT}; like iTMS`;
  const { url, seen } = await record((request, response) => {
    if (request.headers["user-agent"] === suffixed) response.end(FEED);
    else response.writeHead(403, { "content-type": "text/html; charset=utf-8" }).end("<html>Just a moment</html>");
  });
  const agents = () => seen.splice(0).map((headers) => headers["user-agent"]);
  const outcome = await fetchDirectly(url);
  assert.ok(outcome.kind === "read");
  assert.equal(outcome.needsUserAgentSuffix, true);
  assert.deepEqual(agents(), [USER_AGENT, suffixed]);
  const again = await fetchDirectly({ url, needsUserAgentSuffix: true });
  assert.equal(again.kind === "read" && again.needsUserAgentSuffix, true);
  assert.deepEqual(agents(), [suffixed]);
});

test("user agent: the suffix is rejected → retried without it", async () => {
  const url = await listen((request, response) => {
    if (request.headers["user-agent"] === USER_AGENT) response.end(FEED);
    else response.writeHead(403, { "cf-mitigated": "challenge" }).end();
  });
  const outcome = await fetchDirectly({ url, needsUserAgentSuffix: true });
  assert.equal(outcome.kind === "read" && outcome.needsUserAgentSuffix, false);
});

test("user agent: rejected twice, or without a challenge → failure", async () => {
  const html = await record((_request, response) => response.writeHead(403, { "content-type": "text/html" }).end("x"));
  const plain = await record((_request, response) =>
    response.writeHead(403, { "content-type": "text/plain" }).end("x"),
  );
  const expected = { kind: "failed", reason: "http-status", status: 403 };
  assert.deepEqual(await fetchDirectly(html.url), expected);
  assert.equal(html.seen.length, 2);
  assert.deepEqual(await fetchDirectly(plain.url), expected);
  assert.equal(plain.seen.length, 1);
});

test("connections: the publisher keeps one open → the fetcher closes it; every fetch connects and is checked again", async () => {
  const closings: Promise<unknown>[] = [];
  let received = 0;
  const url = await serveRaw((socket) => {
    closings.push(once(socket, "close"));
    socket.on("data", () => {
      received += 1;
    });
    socket.write(`HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: ${FEED.length}\r\n\r\n${FEED}`);
  });
  const isAllowed = { now: true };
  const check = { isAllowed: () => isAllowed.now };
  for (let count = 0; count < 2; count += 1) assert.equal(reasonOf(await fetchDirectly(url, check)), "read");
  isAllowed.now = false;
  assert.equal(reasonOf(await fetchDirectly(url, check)), "not-public");
  await Promise.all(closings);
  assert.deepEqual([closings.length, received], [2, 0], "one request on each of two connections");
});

test("outcomes: credentials and tokens in the URL → not in any failure", async () => {
  const url = await serve({ "/x?token=secret": (_request, response) => response.writeHead(500).end("secret") });
  for (const address of [
    `${url.replace("//", "//secret:secret@")}/x?token=secret`,
    `http://secret:secret@127.0.0.1:1/secret`,
    "ftp://secret@a.example/",
  ]) {
    const outcome = await fetchDirectly(address);
    assert.equal(outcome.kind, "failed");
    assert.doesNotMatch(JSON.stringify(outcome), /secret/);
  }
});
