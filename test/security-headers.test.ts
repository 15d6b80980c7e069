import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { exchange } from "./support/accounts.ts";
import {
  ACCOUNTS,
  breakReadiness,
  createToken,
  type Headers,
  json,
  PASSWORD,
  parseResponse,
  signUp,
  subscription,
} from "./support/browser-requests.ts";
import { ATOMIC, type HttpResponse, newId, PLAIN, startServer, startServerWith } from "./support/server.ts";

suite("security headers", () => {
  const EXPECTED = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
  };
  const pick = (headers: HttpResponse["headers"]) =>
    Object.fromEntries(Object.keys(EXPECTED).map((name) => [name, headers[name]]));
  const METRICS_TOKEN = "for-prometheus-alone";
  const APP = "https://app.example";

  test("security headers: a response of any kind → has them", async () => {
    const server = await startServer({
      ...ACCOUNTS,
      EARMARK_MAX_BODY_BYTES: "8192",
      EARMARK_METRICS: "true",
      EARMARK_METRICS_TOKEN: METRICS_TOKEN,
      EARMARK_CORS_ORIGINS: APP,
      EARMARK_ALLOWED_HOSTS: "pods.example",
    });
    breakReadiness(server);
    const Cookie = await signUp(server, "ann");
    const Authorization = `Bearer ${await createToken(server, Cookie)}`;
    const plain = { Authorization, "Content-Type": PLAIN };
    const atomic = { Authorization, "Content-Type": ATOMIC };
    const id = newId();
    const session = { "Content-Type": PLAIN };
    const requests: readonly (readonly [number, string, string, Headers, string?])[] = [
      [200, "GET", "/v1/subscriptions", { Authorization }],
      [200, "HEAD", "/v1/subscriptions", { Authorization }],
      [200, "POST", "/v1/operations", atomic, '{"atomic:operations":[]}'],
      [200, "GET", "/v1/me", { Cookie }],
      [200, "GET", "/v1/me/export", { Cookie }],
      [200, "GET", "/healthz", {}],
      [200, "GET", "/metrics", { Authorization: `Bearer ${METRICS_TOKEN}` }],
      [201, "POST", "/v1/subscriptions", plain, subscription(id)],
      [201, "POST", "/v1/sessions", session, json("session", { name: "ann", password: PASSWORD })],
      [201, "POST", "/v1/accounts", session, json("account", { name: "bob", password: PASSWORD })],
      [204, "DELETE", `/v1/subscriptions/${id}`, { Authorization }],
      [204, "OPTIONS", "/v1/operations", { Origin: APP, "Access-Control-Request-Method": "POST" }],
      [400, "GET", "/v1/subscriptions?nonsense=1", { Authorization }],
      [400, "GET", "/v1/subscriptions/%ff", { Authorization }],
      [400, "GET", "/v1/me?access_token=x", {}],
      [401, "GET", "/v1/subscriptions", {}],
      [401, "GET", "/metrics", { Authorization }],
      [401, "POST", "/v1/sessions", session, json("session", { name: "ann", password: "wrong" })],
      [403, "DELETE", "/v1/me", { Cookie, Origin: "https://evil.example" }],
      [403, "GET", "/v1/tokens", { Authorization }],
      [404, "GET", "/nowhere", {}],
      [404, "GET", `/v1/subscriptions/${id}`, { Authorization }],
      [405, "PUT", "/v1/subscriptions", { Authorization }],
      [406, "GET", "/v1/subscriptions", { Authorization, Accept: "text/html" }],
      [409, "POST", "/v1/accounts", session, json("account", { name: "bob", password: PASSWORD })],
      [413, "POST", "/v1/subscriptions", plain, " ".repeat(9_000)],
      [413, "POST", "/v1/subscriptions", plain, " ".repeat(100_000)],
      [415, "POST", "/v1/subscriptions", { Authorization, "Content-Type": "text/plain" }, "x"],
      [417, "GET", "/v1/subscriptions", { Authorization, Expect: "wonders" }],
      [421, "GET", "/v1/subscriptions", { Authorization, Host: "evil.example" }],
      [422, "POST", "/v1/subscriptions", plain, "{}"],
      [431, "GET", "/v1/subscriptions", { Cookie: "a".repeat(9_000) }],
      [503, "GET", "/readyz", {}],
    ];
    for (const [status, method, path, headers, body] of requests) {
      const response = await server.call(method, path, { headers, ...(body === undefined ? {} : { body }) });
      assert.equal(response.status, status, `${method} ${path}: ${response.text}`);
      assert.deepEqual(pick(response.headers), EXPECTED, `${status} ${method} ${path}`);
      // No response reveals the software behind it.
      for (const name of ["server", "x-powered-by", "via"]) assert.equal(response.headers[name], undefined);
    }
  });

  test("security headers: 429 and 500 → have them", async () => {
    const server = await startServer({ ...ACCOUNTS, EARMARK_REQUESTS_PER_MINUTE: "2" });
    const headers = { Authorization: `Bearer ${await createToken(server, await signUp(server, "ann"))}` };
    const fail = () => Promise.reject(new TypeError("broken on purpose"));
    Object.assign(server.store, { page: fail });
    const failed = await server.call("GET", "/v1/subscriptions", { headers });
    const limited = await server.call("GET", "/v1/subscriptions", { headers });
    assert.deepEqual([failed.status, limited.status], [500, 429]);
    for (const response of [failed, limited]) assert.deepEqual(pick(response.headers), EXPECTED);
  });

  test("security headers: errors of the HTTP parser → have them", async () => {
    const { port } = await startServerWith({ limits: { headersTimeoutMs: 300 } });
    const cases = [
      [400, "this is not HTTP\r\n\r\n"],
      [400, "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"],
      [400, "GET / HTTP/1.1\r\nbad header\r\n\r\n"],
      [404, "FROBNICATE /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"],
      [405, "FROBNICATE /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\n\r\n"],
      [408, "GET / HTTP/1.1\r\nHost: loc"],
      [431, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`],
    ] as const;
    const check = async (status: number, bytes: string) => {
      const response = parseResponse(await exchange(port, bytes));
      assert.equal(response.status, status, bytes);
      assert.deepEqual(pick(response.headers), EXPECTED, bytes);
    };
    await Promise.all(cases.map(([status, bytes]) => check(status, bytes)));
  });

  test("security headers: the page → only its own files, no frames", async () => {
    const { call } = await startServer(ACCOUNTS);
    for (const path of ["/", "/join", "/assets/icon.svg"]) {
      const { status, headers } = await call("GET", path);
      assert.equal(status, 200);
      const policy = String(headers["content-security-policy"]);
      const cache = { "cache-control": "no-cache" };
      assert.deepEqual(pick(headers), { ...EXPECTED, ...cache, "content-security-policy": policy });
      const directives = policy.split("; ");
      for (const directive of [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types service-worker",
      ])
        assert.ok(directives.includes(directive), directive);
      assert.doesNotMatch(policy, /unsafe|\*|https?:|data:/);
    }
    // The page must not contain anything that its policy forbids.
    const { text } = await call("GET", "/join");
    assert.doesNotMatch(text, /<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|https?:\/\//);
  });
});
