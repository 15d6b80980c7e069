import assert from "node:assert/strict";
import { test } from "node:test";
import { ATOMIC, add, newId, PLAIN, startServer } from "../../../test/support/server.ts";

/** A server whose list holds `count` subscriptions, and their ids in order. */
async function serverWith(count: number) {
  const server = await startServer();
  const ids = Array.from({ length: count }, newId);
  if (count > 0) await server.operate(ids.map((id, index) => add(id, `https://feeds.example/${index}`)));
  const list = async (query = "") => {
    const response = await server.call("GET", `/v1/subscriptions${query}`);
    assert.equal(response.status, 200, response.text);
    return response.json;
  };
  return { ...server, ids, list };
}

test("http: HEAD → like GET, without the body", async () => {
  const { call, ids } = await serverWith(30);
  for (const path of [
    "/v1/subscriptions",
    "/v1/subscriptions?page[number]=2",
    `/v1/subscriptions/${ids[0]}`,
    "/v1/subscriptions?x=1",
    `/v1/subscriptions/${newId()}`,
  ]) {
    const [get, head] = [await call("GET", path), await call("HEAD", path)];
    assert.equal(head.status, get.status);
    assert.equal(head.text, "");
    const { date: _, ...headers } = head.headers;
    const { date: __, ...expected } = get.headers;
    assert.deepEqual(headers, expected);
  }
});

test("http: Content-Type without a body → ignored", async () => {
  const { call, ids } = await serverWith(1);
  for (const type of ["application/json", ATOMIC, "garbage"]) {
    const headers = { "Content-Type": type };
    assert.equal((await call("GET", "/v1/subscriptions", { headers })).status, 200);
    assert.equal((await call("HEAD", "/v1/subscriptions", { headers })).status, 200);
    assert.equal((await call("DELETE", `/v1/subscriptions/${newId()}`, { headers })).status, 404);
  }
  assert.equal(
    (await call("DELETE", `/v1/subscriptions/${ids[0]}`, { headers: { "Content-Type": PLAIN } })).status,
    204,
  );
});

test("http: Accept with only the extension or another type → 406", async () => {
  const { call } = await serverWith(0);
  for (const [accept, status] of [
    [ATOMIC, 406],
    ["application/json", 406],
    [`${PLAIN};q=0`, 406],
    [PLAIN, 200],
    ["*/*", 200],
    [`${ATOMIC}, ${PLAIN}`, 200],
  ] as const) {
    const response = await call("GET", "/v1/subscriptions", { headers: { Accept: accept } });
    assert.equal(response.status, status, accept);
    assert.equal(response.headers["content-type"], PLAIN);
    assert.equal(response.headers["vary"], "Accept");
    if (status === 406) assert.deepEqual(response.json.errors[0].source, { header: "Accept" });
  }
});

test("http: a method that a path does not have → 405 with Allow", async () => {
  const { call } = await serverWith(0);
  for (const [path, allow] of [
    ["/v1/subscriptions", "GET, HEAD, POST"],
    [`/v1/subscriptions/${newId()}`, "GET, HEAD, PATCH, DELETE"],
    ["/healthz", "GET, HEAD"],
  ] as const) {
    for (const method of ["PUT", "OPTIONS", "TRACE", "QUERY", "PROPFIND"]) {
      const response = await call(method, path);
      assert.deepEqual([response.status, response.headers["allow"]], [405, allow], `${method} ${path}`);
    }
  }
});

test("http: an unknown path → 404 as JSON:API", async () => {
  const { call } = await serverWith(0);
  for (const path of [
    "/v1",
    "/v1/",
    "/V1/Operations",
    "//v1/operations",
    "/v1/operations/",
    "/v1/subscriptions/",
    "/v1%2fsubscriptions",
    "/v1/../../etc/passwd",
    "/v1/%2e%2e/",
    "/metrics",
    "/v2/subscriptions",
  ]) {
    const response = await call("GET", path);
    assert.equal(response.status, 404, path);
    assert.equal(response.headers["content-type"], PLAIN);
    assert.deepEqual(response.json.errors[0].status, "404");
  }
});

test("http: a trailing slash → 404 for every method", async () => {
  const { call } = await serverWith(0);
  for (const method of ["GET", "HEAD", "POST", "PUT", "DELETE"])
    assert.equal((await call(method, "/v1/subscriptions/")).status, 404, method);
});

test("http: override, forwarding and non-matching conditional headers → ignored", async () => {
  const { call, list, ids } = await serverWith(1);
  const expected = await list();
  const tricks = {
    "X-HTTP-Method-Override": "DELETE",
    "X-Forwarded-For": "1.2.3.4",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    Forwarded: "host=evil.example",
    Range: "bytes=0-1",
    "If-Match": "*",
    "If-None-Match": '"of another list"',
  };
  const response = await call("GET", "/v1/subscriptions", { headers: tricks });
  assert.equal(response.status, 200);
  assert.deepEqual(response.json, expected);
  assert.equal((await call("GET", `/v1/subscriptions/${ids[0]}`, { headers: tricks })).status, 200);
});

test("http: an unknown Host → 421 unless allowed", async () => {
  const { call } = await startServer({ EARMARK_ALLOWED_HOSTS: "pods.example, Other.example" });
  const status = async (headers: Record<string, string>) =>
    (await call("GET", "/v1/subscriptions", { headers })).status;
  for (const host of [
    "localhost",
    "LOCALHOST:8080",
    "127.0.0.1",
    "127.0.0.1:1",
    "[::1]:8080",
    "10.1.2.3",
    "pods.example",
    "PODS.example:443",
    "other.example",
  ]) {
    assert.equal(await status({ Host: host }), 200, host);
  }
  for (const host of ["evil.example", "localhost.evil.example", "pods.example.evil.example", "127.0.0.1.evil.example"])
    assert.equal(await status({ Host: host }), 421, host);
  for (const host of ["a b", "a/b", "user@localhost", "localhost:x", "localhost, localhost"])
    assert.equal(await status({ Host: host }), 400, `<${host}>`);
});

test("http: a web page on another site → 403", async () => {
  const { call, port } = await startServer({ EARMARK_ALLOWED_HOSTS: "pods.example" });
  const status = async (headers: Record<string, string>) =>
    (await call("GET", "/v1/subscriptions", { headers })).status;
  for (const origin of [
    "https://evil.example",
    "null",
    "file://",
    "http://127.0.0.1.evil.example",
    "http://127.0.0.2",
    "http://127.0.0.1:5173",
  ])
    assert.equal(await status({ Origin: origin }), 403, origin);
  for (const site of ["cross-site", "same-site"]) assert.equal(await status({ "Sec-Fetch-Site": site }), 403, site);
  for (const origin of [`http://127.0.0.1:${port}`, "https://pods.example"])
    assert.equal(await status({ Origin: origin }), 200, origin);
  for (const site of ["same-origin", "none"]) assert.equal(await status({ "Sec-Fetch-Site": site }), 200, site);
  const response = await call("GET", "/v1/subscriptions", { headers: { Origin: "https://evil.example" } });
  assert.equal(response.headers["access-control-allow-origin"], undefined);
  assert.equal(response.json.errors[0].status, "403");
});
