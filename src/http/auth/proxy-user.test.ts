import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { document } from "../../../test/support/accounts.ts";
import { newUser, PASSWORD, start } from "../../../test/support/http-accounts.ts";
import { newId, PLAIN } from "../../../test/support/server.ts";

const HEADER = { EARMARK_AUTH_HEADER: "Remote-User" };
/** The test is a trusted proxy. */
const server = await start({ ...HEADER, EARMARK_SIGN_UP: "false" });
const signUpServer = await start({ ...HEADER, EARMARK_SIGN_UP: "true" });
/** The test is not a trusted proxy. */
const untrusting = await start({ ...HEADER, EARMARK_TRUSTED_PROXIES: "10.1.2.3" });
await server.accounts.create("ann", PASSWORD, server.now());
await server.accounts.create("bob", PASSWORD, server.now());
await server.accounts.create("cleo", PASSWORD, server.now());

const as = (name: string, more: Record<string, string> = {}) => ({ headers: { "Remote-User": name, ...more } });
const nameOf = ({ json }: { json: { data: { attributes: { name: string } } } }) => json.data.attributes.name;
const codeOf = ({ json }: { json: { errors: { code: string }[] } }) => json.errors[0]?.code;

suite("header of a proxy", () => {
  test("header: existing name in any spelling → that account, with all rights of a signed-in user", async () => {
    for (const name of ["ann", "Ann", "ANN"]) assert.equal(nameOf(await server.call("GET", "/v1/me", as(name))), "ann");
    assert.equal((await server.call("GET", "/v1/tokens", as("ann"))).status, 200);
    const { json } = await server.call("GET", "/v1/me", as("ann"));
    assert.equal(json.meta.credential, null);
    const body = document("account", { current_password: PASSWORD, password: "another password" });
    const headers = { "Content-Type": PLAIN, "Remote-User": "ann" };
    assert.equal(codeOf(await server.call("PATCH", "/v1/me", { headers, body })), "no-password");
  });

  test("header: unknown or invalid name → no account, and none is created", async () => {
    for (const name of ["carol", "ann, bob", "ann bob", "oidc:ann", "ann\u00aa", "ã¤nn", "x".repeat(65), "../ann"])
      assert.deepEqual(codeOf(await server.call("GET", "/v1/me", as(name))), "no-account", name);
    const twice = await server.call("GET", "/v1/me", { headers: { "Remote-User": ["ann", "bob"] } });
    assert.equal(codeOf(twice), "no-account");
    const { accounts } = await server.administration.store.page({ offset: 0, size: 10 });
    assert.ok(accounts.every(({ name }) => ["ann", "bob", "cleo"].includes(name)));
  });

  test("header: unknown name, sign-up on → a new account without a password", async () => {
    assert.equal(nameOf(await signUpServer.call("GET", "/v1/me", as("Carol"))), "carol");
    const again = await signUpServer.call("GET", "/v1/me", as("carol"));
    assert.equal(nameOf(again), "carol");
    const { accounts } = await signUpServer.administration.store.page({ offset: 0, size: 100 });
    assert.equal(accounts.filter(({ name }) => name === "carol").length, 1);
    for (const password of ["", "carol", "null"]) {
      const body = document("session", { name: "carol", password });
      assert.equal(
        (await signUpServer.call("POST", "/v1/sessions", { headers: { "Content-Type": PLAIN }, body })).status,
        401,
      );
    }
  });

  test("header: concurrent first requests of a new user → one account", async () => {
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => signUpServer.call("GET", "/v1/me", as("dora"))),
    );
    assert.equal(new Set(responses.map(({ json }) => json.data.id)).size, 1);
  });

  test("header: from anyone but a trusted proxy → rejected on every route, even if empty", async () => {
    for (const path of ["/v1/me", "/", "/healthz", "/v1/subscriptions", "/api/2/auth/ann/login.json", "/nowhere"])
      for (const value of ["ann", ""]) assert.equal((await untrusting.call("GET", path, as(value))).status, 403, path);
    assert.equal(codeOf(await untrusting.call("GET", "/v1/me", as("ann"))), "untrusted-auth-header");
    const user = await newUser(untrusting);
    const { Cookie, Authorization } = user;
    for (const credentials of [{ Cookie }, { Authorization }] as Record<string, string>[]) {
      assert.equal((await untrusting.call("GET", "/v1/me", { headers: credentials })).status, 200);
      assert.equal((await untrusting.call("GET", "/v1/me", as("ann", credentials))).status, 403);
    }
    const forwarded = as("ann", { "X-Forwarded-For": "10.1.2.3" });
    assert.equal((await untrusting.call("GET", "/v1/me", forwarded)).status, 403, "the peer counts, not the header");
  });

  test("header: not sent, or empty → other credentials", async () => {
    for (const headers of [{}, { "Remote-User": "" }])
      assert.equal((await server.call("GET", "/v1/me", { headers })).status, 401);
    const { Cookie } = await newUser(signUpServer);
    assert.equal((await signUpServer.call("GET", "/v1/me", as("", { Cookie }))).status, 200);
  });

  test("header: with a token → the token is used; with a session, or a password for the proxy → the header is used", async () => {
    const { name, Cookie, Authorization } = await newUser(signUpServer);
    assert.equal(nameOf(await signUpServer.call("GET", "/v1/me", as("eve", { Authorization }))), name);
    assert.equal(nameOf(await signUpServer.call("GET", "/v1/me", as("eve", { Cookie }))), "eve");
    const basic = `Basic ${btoa("eve:secret")}`;
    assert.equal(nameOf(await signUpServer.call("GET", "/v1/me", as("eve", { Authorization: basic }))), "eve");
    assert.equal(
      (await signUpServer.call("GET", "/v1/me", as("eve", { Authorization: "Bearer emk_wrong" }))).status,
      401,
    );
  });

  test("header: other names for it → ignored", async () => {
    for (const header of ["Remote_User", "X-Remote-User", "X-Forwarded-User"])
      assert.equal((await server.call("GET", "/v1/me", { headers: { [header]: "ann" } })).status, 401, header);
  });

  test("header: request from a page on another site → rejected, also with a password that the browser knows", async () => {
    const body = JSON.stringify({
      data: { type: "subscription", id: newId(), attributes: { feed_url: "https://feeds.example/a" } },
    });
    const basic = { Authorization: `Basic ${btoa("ann:secret")}` };
    const site: Record<string, string>[] = [
      { "Sec-Fetch-Site": "cross-site" },
      { "Sec-Fetch-Site": "same-site" },
      { Origin: "https://evil.example" },
      { Origin: "null" },
    ];
    for (const from of site) {
      for (const credentials of [{}, basic]) {
        const headers = { ...as("ann").headers, "Content-Type": PLAIN, ...from, ...credentials };
        const response = await server.call("POST", "/v1/subscriptions", { headers, body });
        assert.deepEqual([response.status, codeOf(response)], [403, "forbidden-origin"], JSON.stringify(headers));
      }
    }
    const read = as("ann", { "Sec-Fetch-Site": "cross-site" });
    assert.equal((await server.call("GET", "/v1/subscriptions", read)).status, 403);
    const own = { ...as("ann", { "Sec-Fetch-Site": "same-origin", "Content-Type": PLAIN }), body };
    assert.equal((await server.call("POST", "/v1/subscriptions", own)).status, 201);
  });

  test("header: podcast apps → sign in with their own credentials, not with the header", async () => {
    const login = "/api/2/auth/ann/login.json";
    assert.equal((await server.call("POST", login, as("ann"))).status, 401, "the header does not sign apps in");
    const Authorization = `Basic ${btoa(`ann:${PASSWORD}`)}`;
    assert.equal((await server.call("POST", login, as("bob", { Authorization }))).status, 200);
    assert.equal((await server.call("POST", login, { headers: { Authorization } })).status, 200);
  });

  test("header: deleted account → no longer has access", async () => {
    assert.equal((await server.call("DELETE", "/v1/me", as("cleo"))).status, 204);
    assert.equal(codeOf(await server.call("GET", "/v1/me", as("cleo"))), "no-account");
  });

  test("header: not configured → ignored", async () => {
    const plain = await start();
    assert.equal((await plain.call("GET", "/v1/me", as("ann"))).status, 401);
  });
});
