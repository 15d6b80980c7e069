import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import { RequestFailure } from "../../errors/catalog.ts";
import { idOf, type Method, pathOf, Router, route, routeOf, toOriginForm } from "./router.ts";

const get = (path: string, method: Method = "GET") =>
  route(method, path, { access: "open", run: async () => undefined });
const router = new Router([
  get("/"),
  get("/v1/subscriptions"),
  get("/v1/subscriptions", "POST"),
  get("/v1/subscriptions.opml"),
  get("/v1/subscriptions/:id"),
  get("/api/2/subscriptions/:user/:device.json"),
  get("/api/2/subscriptions/:user/:device.json", "PUT"),
]);

const find = (path: string) => {
  const match = router.find(path);
  return match && [match.pathRoutes.path, { ...match.params }];
};

test("router: fixed and parametric paths → the path and its decoded parameters", () => {
  assert.deepEqual(find("/"), ["/", {}]);
  assert.deepEqual(find("/v1/subscriptions"), ["/v1/subscriptions", {}]);
  assert.deepEqual(find("/v1/subscr%69ptions"), ["/v1/subscriptions", {}]);
  assert.deepEqual(find("/v1/subscriptions.opml"), ["/v1/subscriptions.opml", {}]);
  assert.deepEqual(find("/v1/subscriptions/a%2Fb%20c"), ["/v1/subscriptions/:id", { id: "a/b c" }]);
  assert.deepEqual(find(`/v1/subscriptions/${"x".repeat(20_000)}`)?.[0], "/v1/subscriptions/:id");
});

test("router: two parameters and a suffix → both parameters", () => {
  const expected = ["/api/2/subscriptions/:user/:device.json", { user: "ann", device: "my.phone" }];
  assert.deepEqual(find("/api/2/subscriptions/ann/my.phone.json"), expected);
  assert.equal(find("/api/2/subscriptions/ann/phone"), undefined);
});

test("router: an unknown path or an empty parameter → no match", () => {
  for (const path of [
    "/v1",
    "/v1/subscriptions/",
    "/v1/subscriptions/a/b",
    "/V1/subscriptions",
    "//",
    "/v1//x",
    "/%zz",
  ])
    assert.equal(find(path), undefined, path);
});

test("router: known method → its route (HEAD uses GET's); unknown method → 405 with Allow; no match → 404, or 400 if malformed", () => {
  const choose = (method: string, url: string) => {
    try {
      return routeOf(router.find(url), { method, url } as IncomingMessage).method;
    } catch (thrown) {
      assert.ok(thrown instanceof RequestFailure);
      return [thrown.error.code, thrown.headers["allow"]];
    }
  };
  assert.equal(choose("GET", "/v1/subscriptions"), "GET");
  assert.equal(choose("HEAD", "/v1/subscriptions"), "GET");
  assert.equal(choose("POST", "/v1/subscriptions"), "POST");
  assert.equal(choose("PUT", "/api/2/subscriptions/ann/phone.json"), "PUT");
  assert.deepEqual(choose("PUT", "/v1/subscriptions"), ["method-not-allowed", "GET, HEAD, POST"]);
  assert.deepEqual(choose("GET", "/nothing"), ["unknown-path", undefined]);
  assert.deepEqual(choose("GET", "/v1/subscriptions/%ff"), ["malformed-target", undefined]);
});

test("router: a target in absolute form → its path; a path → without its query", () => {
  for (const [target, path] of [
    ["/a?b", "/a?b"],
    ["http://x.example/a", "/a"],
    ["HTTPS://x.example", "/"],
    ["http://x.example?q", "/?q"],
    ["*", "/*"],
  ] as const)
    assert.equal(toOriginForm(target), path);
  assert.deepEqual(["/a", "/a?b?c", "/a#b?c"].map(pathOf), ["/a", "/a", "/a"]);
});

test("router: an id → in lower case; not a UUID → 400", () => {
  assert.equal(idOf({ id: "ABCDEF01-2345-6789-abcd-ef0123456789" }), "abcdef01-2345-6789-abcd-ef0123456789");
  for (const params of [{ id: "x" }, {}])
    assert.throws(
      () => idOf(params),
      (thrown) => thrown instanceof RequestFailure && thrown.error.code === "invalid-id",
    );
});
