import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  cookieOf,
  documentOf,
  JSONAPI,
  MINUTE,
  newUser,
  signIn,
  start,
  titleOf,
} from "../../../test/support/http-accounts.ts";
import { ATOMIC, add, newId, PLAIN } from "../../../test/support/server.ts";

describe("request credentials", async () => {
  const server = await start();
  const { call } = server;
  const list = (headers: Record<string, string | string[]>, path = "/v1/subscriptions") =>
    call("GET", path, { headers });

  test("credentials: none → 401 in the route's media type", async () => {
    const plain = await list({});
    assert.equal(plain.status, 401);
    assert.equal(plain.headers["www-authenticate"], 'Bearer realm="Earmark"');
    assert.equal(plain.headers["content-type"], PLAIN);
    const atomic = await call("POST", "/v1/operations", { body: "nonsense" });
    assert.equal(atomic.status, 401);
    assert.equal(atomic.headers["content-type"], ATOMIC);
  });

  test("credentials: a bearer token → accepted after exactly one space, with the scheme in any case", async () => {
    const { Authorization } = await newUser(server);
    const token = Authorization.slice("Bearer ".length);
    for (const good of [Authorization, `bearer ${token}`, `BEARER ${token}`])
      assert.equal((await list({ Authorization: good })).status, 200, good);
    for (const bad of [
      "Bearer",
      "Bearer ",
      `Bearer  ${token}`,
      `Bearer\t${token}`,
      `Bearer ${token} x`,
      `Bearer ${token},`,
      `Basic ${Buffer.from(`ann:${token}`).toString("base64")}`,
      `Token ${token}`,
      token,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token}A`,
      `Bearer ${token.toUpperCase()}`,
      `Bearer emk_${"A".repeat(43)}`,
      `Bearer emk_${"A".repeat(8_000)}`,
      `Bearer ${"A".repeat(8_000)}`,
    ]) {
      const response = await list({ Authorization: bad });
      assert.equal(response.status, 401, bad.slice(0, 80));
      assert.equal(response.headers["www-authenticate"], 'Bearer realm="Earmark", error="invalid_token"');
    }
    assert.equal((await list({ Authorization: `Bearer ${"A".repeat(100 * 1024)}` })).status, 431);
  });

  test("credentials: two Authorization headers → rejected", async () => {
    const { Authorization } = await newUser(server);
    for (const two of [
      [Authorization, Authorization],
      [Authorization, "Bearer x"],
      ["Bearer x", Authorization],
    ])
      assert.equal((await list({ Authorization: two })).status, 401);
  });

  test("credentials: invalid, revoked or expired → the same response", async () => {
    const { Cookie, Authorization, tokenId } = await newUser(server);
    const expires_at = new Date(server.now().getTime() + MINUTE).toISOString();
    const short = await call("POST", "/v1/tokens", {
      headers: { ...JSONAPI, Cookie },
      body: documentOf("token", { label: "guest", scope: "read", expires_at }),
    });
    const expiring = `Bearer ${short.json.data.attributes.token}`;
    assert.equal((await list({ Authorization: expiring })).status, 200);
    assert.equal((await call("DELETE", `/v1/tokens/${tokenId}`, { headers: { Cookie } })).status, 204);
    server.wait(MINUTE);
    const responses = [
      await list({ Authorization: `Bearer emk_${"A".repeat(43)}` }),
      await list({ Authorization }),
      await list({ Authorization: expiring }),
      await list({ Authorization: `Bearer ${Cookie.split("=")[1]}` }),
      await list({ Cookie: "earmark=tampered" }),
      await list({ Cookie: Cookie.replace(/.$/, (last) => (last === "A" ? "B" : "A")) }),
      await list({ Authorization: "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ." }),
    ];
    for (const { status, text, headers } of responses) {
      assert.equal(status, 401);
      assert.equal(text, responses[0]?.text);
      assert.deepEqual({ ...headers, date: "" }, { ...responses[0]?.headers, date: "" });
    }
  });

  test("credentials: a token in the URL → 400", async () => {
    const { Authorization } = await newUser(server);
    const token = Authorization.slice("Bearer ".length);
    for (const query of [`access_token=${token}`, "access_token=x", `token=${token}`, `page[size]=${token}`]) {
      const response = await list({}, `/v1/subscriptions?${query}`);
      assert.deepEqual([response.status, titleOf(response)], [400, "Token In Query"], query);
      assert.doesNotMatch(response.text, /emk_/);
    }
    assert.equal((await list({ Authorization }, `/v1/subscriptions?access_token=${token}`)).status, 400);
  });

  test("credentials: a read-only token → reads only", async () => {
    const { Authorization } = await newUser(server, "read");
    const headers = { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC };
    const body = JSON.stringify({ "atomic:operations": [add(newId(), "https://feeds.example/1")] });
    const response = await call("POST", "/v1/operations", { headers, body });
    assert.deepEqual([response.status, titleOf(response)], [403, "Insufficient Scope"]);
    assert.match(String(response.headers["www-authenticate"]), /error="insufficient_scope"/);
    assert.equal((await list({ Authorization })).json.meta.total, 0);
  });

  test("credentials: a token → no access to the account itself", async () => {
    const { Authorization, Cookie } = await newUser(server);
    for (const [method, path] of [
      ["GET", "/v1/tokens"],
      ["POST", "/v1/tokens"],
      ["GET", "/v1/sessions"],
      ["PATCH", "/v1/me"],
      ["DELETE", "/v1/me"],
    ] as const) {
      const body = documentOf("account", { current_password: "a", password: "b" });
      const headers = { Authorization, "Content-Type": PLAIN };
      const response = await call(method, path, method === "PATCH" ? { headers, body } : { headers });
      assert.deepEqual([response.status, titleOf(response)], [403, "Sign In Needed"], `${method} ${path}`);
    }
    assert.equal((await call("GET", "/v1/me", { headers: { Cookie } })).status, 200);
  });

  test("cookies: several with our name, one valid → the valid one is used", async () => {
    const { name, Cookie } = await newUser(server);
    const planted = (count: number) =>
      Array.from({ length: count }, (_, index) => `earmark=planted-${index}; `).join("");
    for (const header of [
      `x=1; ${Cookie}; y=2`,
      `${Cookie}; ${Cookie}`,
      `earmark=; ${Cookie}`,
      `${Cookie}; ${planted(9)}`,
      `${planted(3)}${Cookie}`,
      `${planted(1).repeat(9)}${Cookie}`,
    ]) {
      const response = await list({ Cookie: header }, "/v1/me");
      assert.equal(response.json.data?.attributes.name, name, header);
    }
    assert.equal((await list({ Cookie: [Cookie, "earmark=planted"] })).status, 200);
    assert.equal((await list({ Cookie: `${planted(4)}${Cookie}` })).status, 401, "at most four are tried");
  });

  test("cookies: two different valid sessions → 401; a header that is too long → 431", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const other = cookieOf(await signIn(server, ann.name));
    for (const header of [`${ann.Cookie}; ${bob.Cookie}`, `${ann.Cookie}; earmark=x; ${other}`])
      assert.equal((await list({ Cookie: header })).status, 401, header);
    assert.equal((await list({ Cookie: "earmark=x; earmark=y" })).status, 401);
    assert.equal((await list({ Cookie: `earmark=${"A".repeat(8_192)}` })).status, 431);
  });

  test("credentials: a token and a cookie → the token is used", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const me = await list({ Authorization: ann.Authorization, Cookie: bob.Cookie }, "/v1/me");
    assert.equal(me.json.data.attributes.name, ann.name);
    assert.equal((await list({ Authorization: "Bearer x", Cookie: bob.Cookie })).status, 401);
  });
});
