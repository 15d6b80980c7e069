import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  ACCOUNTS,
  BASE,
  breakReadiness,
  createToken,
  type Headers,
  signUp,
  subscription,
  unsafeRequests,
} from "./support/browser-requests.ts";
import { ATOMIC, type HttpResponse, newId, PLAIN, startServer } from "./support/server.ts";

suite("CORS", () => {
  const APP = "https://app.example";
  const open = startServer({
    ...ACCOUNTS,
    EARMARK_BASE_PATH: BASE,
    EARMARK_CORS_ORIGINS: `${APP}, http://localhost:3000`,
  });
  const preflightHeaders = (origin: string, method = "POST"): Headers => ({
    Origin: origin,
    "Access-Control-Request-Method": method,
    "Access-Control-Request-Headers": "authorization,content-type",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "cors",
  });
  const crossOriginHeaders = ({ headers }: HttpResponse) =>
    Object.keys(headers).filter((name) => name.startsWith("access-control-"));

  test("CORS: not configured → no response has CORS headers", async () => {
    for (const settings of [ACCOUNTS, {}]) {
      const server = await startServer(settings);
      for (const origin of [APP, "null", "*", `http://127.0.0.1:${server.port}`, "http://localhost"]) {
        for (const [method, path] of [
          ["GET", "/v1/subscriptions"],
          ["POST", "/v1/operations"],
          ["OPTIONS", "/v1/operations"],
          ["OPTIONS", "/nowhere"],
          ["GET", "/healthz"],
        ] as const) {
          const response = await server.call(method, path, { headers: preflightHeaders(origin) });
          assert.deepEqual(crossOriginHeaders(response), [], `${method} ${path} from ${origin}`);
          assert.equal(response.headers["vary"], "Accept");
          if (method === "OPTIONS") assert.notEqual(response.status, 204);
        }
      }
    }
  });

  test("CORS: preflight from an allowed origin → allowed methods and headers, no credentials", async () => {
    const { call, server } = await open;
    for (const url of new Set(server.routes.map(({ path }) => path))) {
      for (const base of [BASE, ""]) {
        const path = `${base}${url.replace(":id", newId())}`;
        for (const origin of [APP, "http://localhost:3000"]) {
          const response = await call("OPTIONS", path, { headers: preflightHeaders(origin) });
          assert.deepEqual([response.status, response.text], [204, ""], path);
          const { headers } = response;
          assert.equal(headers["access-control-allow-origin"], origin);
          assert.equal(headers["access-control-allow-headers"], "Accept, Authorization, Content-Type, If-None-Match");
          assert.match(String(headers["access-control-max-age"]), /^[1-9]\d*$/);
          assert.equal(headers["access-control-allow-credentials"], undefined);
          assert.match(String(headers["vary"]), /\bOrigin\b/);
          const refused = await call("PROPFIND", path, { headers: { Authorization: "Bearer x", Origin: origin } });
          assert.equal(refused.status, 405);
          assert.equal(headers["access-control-allow-methods"], refused.headers["allow"], path);
        }
      }
    }
  });

  test("CORS: an origin that differs in any character → rejected", async () => {
    const { call } = await open;
    for (const origin of [
      "https://APP.example",
      "HTTPS://app.example",
      "http://app.example",
      "https://app.example:443",
      "https://app.example:8443",
      "https://app.example/",
      "https://app.example.evil",
      "https://app.example.evil.example",
      "https://evil-app.example",
      "https://evil.example/https://app.example",
      "https://app.example@evil.example",
      "https://sub.app.example",
      "https://app.example.",
      "https://app.example, https://evil.example",
      "https://app.example https://evil.example",
      "app.example",
      "http://localhost:3001",
      "http://localhost",
      "null",
      "*",
    ]) {
      const preflight = await call("OPTIONS", "/v1/operations", { headers: preflightHeaders(origin) });
      assert.deepEqual(crossOriginHeaders(preflight), [], origin);
      assert.equal(preflight.status, 403, origin);
      const actual = await call("GET", "/v1/me", { headers: { Origin: origin, Authorization: "Bearer x" } });
      assert.deepEqual([actual.status, crossOriginHeaders(actual)], [401, []], origin);
    }
    const twice = await call("OPTIONS", "/v1/operations", {
      headers: { ...preflightHeaders(APP), Origin: [APP, APP] },
    });
    assert.deepEqual([twice.status, crossOriginHeaders(twice)], [403, []]);
  });

  test("CORS: allowed origin with a token → CORS headers on every response, errors included", async () => {
    const server = await startServer({
      ...ACCOUNTS,
      EARMARK_CORS_ORIGINS: APP,
      EARMARK_MAX_BODY_BYTES: "8192",
    });
    breakReadiness(server);
    const token = await createToken(server, await signUp(server, "ann"));
    const from = { Origin: APP, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors" };
    const headers = { ...from, Authorization: `Bearer ${token}` };
    const plain = { ...headers, "Content-Type": PLAIN };
    const id = newId();
    for (const [status, method, path, sent, body] of [
      [200, "GET", "/v1/subscriptions", headers],
      [201, "POST", "/v1/subscriptions", plain, subscription(id)],
      [409, "POST", "/v1/subscriptions", plain, subscription(id)],
      [204, "DELETE", `/v1/subscriptions/${id}`, headers],
      [200, "GET", "/v1/subscriptions.opml", headers],
      [200, "HEAD", "/v1/subscriptions", headers],
      [400, "GET", "/v1/subscriptions?page[size]=0", headers],
      [401, "GET", "/v1/subscriptions", from],
      [401, "GET", "/v1/subscriptions", { ...from, Authorization: "Bearer wrong" }],
      [403, "GET", "/v1/tokens", headers],
      [404, "GET", `/v1/subscriptions/${id}`, headers],
      [404, "GET", "/nowhere", headers],
      [405, "PUT", "/v1/subscriptions", headers],
      [406, "GET", "/v1/subscriptions", { ...headers, Accept: "text/html" }],
      [413, "POST", "/v1/subscriptions", plain, " ".repeat(9_000)],
      [413, "POST", "/v1/subscriptions", plain, " ".repeat(100_000)],
      [415, "POST", "/v1/subscriptions", { ...headers, "Content-Type": "application/json" }, "{}"],
      [422, "POST", "/v1/subscriptions", plain, "{}"],
      [503, "GET", "/readyz", headers],
    ] as const) {
      const response = await server.call(method, path, { headers: sent, ...(body === undefined ? {} : { body }) });
      assert.equal(response.status, status, `${method} ${path}: ${response.text}`);
      assert.equal(response.headers["access-control-allow-origin"], APP, `${status} ${method} ${path}`);
      assert.equal(response.headers["access-control-allow-credentials"], undefined);
      assert.match(String(response.headers["vary"]), /\bOrigin\b/);
      const shown = String(response.headers["access-control-expose-headers"]);
      for (const name of ["ETag", "Location", "Retry-After", "WWW-Authenticate"])
        assert.ok(shown.includes(name), shown);
    }
  });

  test("CORS: allowed origin over the rate limit → 429 with CORS headers", async () => {
    const server = await startServer({
      ...ACCOUNTS,
      EARMARK_CORS_ORIGINS: APP,
      EARMARK_REQUESTS_PER_MINUTE: "3",
    });
    const token = await createToken(server, await signUp(server, "ann"));
    const headers = { Origin: APP, Authorization: `Bearer ${token}` };
    const responses = [];
    for (let count = 0; count < 4; count += 1) responses.push(await server.call("GET", "/v1/me", { headers }));
    const refused = responses.find(({ status }) => status === 429);
    assert.equal(refused?.headers["access-control-allow-origin"], APP);
    assert.match(String(refused?.headers["retry-after"]), /^\d+$/);
    // Preflights do not count towards the limit, because browsers send them on their own.
    assert.equal((await server.call("OPTIONS", "/v1/me", { headers: preflightHeaders(APP) })).status, 204);
  });

  test("CORS: allowed origin with a session cookie → 403", async () => {
    const server = await open;
    const Cookie = await signUp(server, "cookie");
    const count = async () => (await server.call("GET", "/v1/me", { headers: { Cookie } })).json.meta.counts;
    const before = await count();
    for (const [method, path, body] of unsafeRequests(newId(), newId())) {
      for (const site of [{}, { "Sec-Fetch-Site": "cross-site" }, { "Sec-Fetch-Site": "same-site" }]) {
        const type = path === "/v1/operations" ? ATOMIC : PLAIN;
        const headers = { Cookie, Origin: APP, "Content-Type": type, ...site };
        const response = await server.call(method, path, { headers, ...(body === undefined ? {} : { body }) });
        assert.equal(response.status, 403, `${method} ${path}`);
        assert.equal(response.json.errors[0].title, "Cross-Site Request Refused");
        assert.equal(response.headers["set-cookie"], undefined);
      }
    }
    assert.deepEqual(await count(), before);
  });

  test("CORS: OPTIONS that is not a preflight → 405", async () => {
    const { call } = await open;
    const responses = [
      await call("OPTIONS", "/v1/operations"),
      await call("OPTIONS", `${BASE}/v1/operations`),
      await call("OPTIONS", "/v1/operations", { headers: { "Access-Control-Request-Method": "POST" } }),
      await call("OPTIONS", "/v1/operations", { headers: { Origin: APP, Authorization: "Bearer x" } }),
    ];
    for (const { status, headers } of responses) assert.deepEqual([status, headers["allow"]], [405, "POST"]);
    assert.equal((await call("OPTIONS", "/nowhere")).status, 404);
    assert.notEqual((await call("OPTIONS", "/nowhere", { headers: preflightHeaders(APP) })).status, 204);
  });

  test("CORS: server without accounts → an allowed origin needs no token, others are rejected", async () => {
    const { call } = await startServer({ EARMARK_CORS_ORIGINS: APP });
    const post = (origin: string) => {
      const headers = { Origin: origin, "Sec-Fetch-Site": "cross-site", "Content-Type": PLAIN };
      return call("POST", "/v1/subscriptions", { headers, body: subscription() });
    };
    assert.equal((await call("OPTIONS", "/v1/subscriptions", { headers: preflightHeaders(APP) })).status, 204);
    const added = await post(APP);
    assert.deepEqual([added.status, added.headers["access-control-allow-origin"]], [201, APP]);
    for (const origin of ["https://app.example.evil", "http://app.example", "null"]) {
      const refused = await post(origin);
      assert.deepEqual([refused.status, crossOriginHeaders(refused)], [403, []], origin);
    }
    assert.equal((await call("GET", "/v1/subscriptions")).json.meta.total, 1);
  });
});
