import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  basic,
  documentOf,
  fromNewNetwork,
  JSONAPI,
  newUser,
  PASSWORD,
  start,
} from "../../../../test/support/http-accounts.ts";
import { APP_LOGIN_MS } from "../../../apps/logins.ts";

describe("Nextcloud login flow", async () => {
  const server = await start();
  const ann = await newUser(server);
  const startLogin = async () => {
    const type = { "Content-Type": "application/x-www-form-urlencoded" };
    const headers = { "User-Agent": "AntennaPod/3.9", "X-Forwarded-For": "192.0.2.7", ...type };
    const response = await server.call("POST", "/index.php/login/v2", { headers });
    assert.equal(response.status, 200);
    const { poll, login } = response.json;
    assert.equal(poll.endpoint, `${server.url}/index.php/login/v2/poll`);
    const fragment = new URLSearchParams(new URL(login).hash.slice(1));
    return { token: String(poll.token), id: fragment.get("app-login") ?? "" };
  };
  const poll = (token: string) =>
    server.call("POST", "/index.php/login/v2/poll", { body: new URLSearchParams({ token }).toString() });
  const approve = (
    id: string,
    headers: Readonly<Record<string, string>> = { Cookie: ann.Cookie },
    label = "AntennaPod",
  ) =>
    server.call("POST", `/v1/app-logins/${id}`, {
      headers: { ...JSONAPI, ...headers },
      body: documentOf("app-login", { label }),
    });

  const show = (id: string, headers: Readonly<Record<string, string>> = { Cookie: ann.Cookie }) =>
    server.call("GET", `/v1/app-logins/${id}`, { headers });
  const deny = (id: string) => server.call("DELETE", `/v1/app-logins/${id}`, { headers: { Cookie: ann.Cookie } });

  test("login flow: started too often from one network → 429, and other networks are not affected", async () => {
    const start = (address: string) =>
      server.call("POST", "/index.php/login/v2", { headers: { "X-Forwarded-For": address } });
    const retries = [];
    for (let times = 0; times < 100; times += 1) retries.push((await start("198.51.100.1")).status);
    assert.deepEqual(new Set(retries), new Set([200]));
    const refused = await start("198.51.100.1");
    assert.deepEqual([refused.status, refused.headers["retry-after"]], [429, "3"]);
    assert.deepEqual(Object.keys(refused.json), ["message"]);
    assert.equal((await start("203.0.113.1")).status, 200);
    server.wait(3_000);
    assert.deepEqual([(await start("198.51.100.1")).status, (await start("198.51.100.1")).status], [200, 429]);
  });

  test("login flow: not approved → 404 after a while, in JSON", async () => {
    const { token } = await startLogin();
    const answer = poll(token);
    assert.equal(await Promise.race([answer, sleep(500)]), undefined);
    const response = await answer;
    assert.equal(response.status, 404);
    assert.equal(response.headers["content-type"], "application/json");
  });

  test("login flow: approved → a token, which works as password and as bearer until it is revoked", async () => {
    const { token, id } = await startLogin();
    const approved = await approve(id);
    assert.equal(approved.status, 201, approved.text);
    assert.equal(approved.json.data.attributes.label, "AntennaPod");
    const response = await poll(token);
    assert.equal(response.status, 200);
    const { server: url, loginName, appPassword } = response.json;
    assert.deepEqual([url, loginName], [server.url, ann.name]);
    assert.ok(!approved.text.includes(appPassword));
    const json = await server.call("POST", "/index.php/login/v2/poll", { body: JSON.stringify({ token }) });
    assert.deepEqual(json.json, response.json);
    const path = "/ocs/v2.php/core/getapppassword";
    for (const headers of [basic(loginName, appPassword), { Authorization: `Bearer ${appPassword}` }])
      assert.equal((await server.call("GET", path, { headers })).status, 403, "it is an app password already");
    const tokens = await server.call("GET", "/v1/tokens", { headers: { Cookie: ann.Cookie } });
    assert.ok(tokens.json.data.some((each: { id: string }) => each.id === approved.json.data.id));
    const revoked = await server.call("DELETE", approved.json.data.links.self, { headers: { Cookie: ann.Cookie } });
    assert.equal(revoked.status, 204);
    assert.equal((await server.call("GET", path, { headers: basic(loginName, appPassword) })).status, 401);
    assert.equal((await poll(token)).status, 404);
  });

  test("login flow: approved twice → one token; by somebody else → rejected", async () => {
    const { id } = await startLogin();
    const first = await approve(id);
    const second = await approve(id);
    assert.equal(second.status, 201);
    assert.equal(second.json.data.id, first.json.data.id);
    const bob = await newUser(server);
    assert.equal((await approve(id, { Cookie: bob.Cookie })).status, 404);
    assert.equal((await show(id, { Cookie: bob.Cookie })).status, 404);
    assert.equal((await deny(id)).status, 404, "it was allowed");
    assert.equal((await show(id)).json.data.attributes.status, "allowed");
  });

  test("login flow: shown → the app, its address, and when it asked", async () => {
    const { id } = await startLogin();
    const { status, json } = await show(id);
    assert.equal(status, 200);
    const seconds = Math.floor(server.now().getTime() / 1_000) * 1_000;
    assert.deepEqual(json.data, {
      type: "app-login",
      id,
      attributes: {
        app: "AntennaPod/3.9",
        address: "192.0.2.7",
        requested_at: new Date(seconds).toISOString(),
        expires_at: new Date(seconds + APP_LOGIN_MS).toISOString(),
        status: "pending",
      },
      links: { self: `/v1/app-logins/${id}` },
    });
    assert.equal((await show(id, {})).status, 401);
    assert.equal((await show(id, { Authorization: ann.Authorization })).status, 403);
  });

  test("login flow: denied → the app is told at once, and it can no longer be allowed", async () => {
    const { token, id } = await startLogin();
    assert.equal((await deny(id)).status, 204);
    assert.equal((await deny(id)).status, 204, "again");
    const response = await poll(token);
    assert.equal(response.status, 403);
    assert.deepEqual(response.json, { message: "Access was denied." });
    assert.equal((await approve(id)).status, 404);
    assert.equal((await show(id)).json.data.attributes.status, "denied");
  });

  test("login flow: approval without a session → 401; with a token → 403; from another site → 403", async () => {
    const { token, id } = await startLogin();
    assert.equal((await approve(id, {})).status, 401);
    assert.equal((await approve(id, { Authorization: ann.Authorization })).status, 403);
    assert.equal((await approve(id, { Cookie: ann.Cookie, Origin: "https://evil.example" })).status, 403);
    assert.equal((await poll(token)).status, 404);
  });

  test("login flow: unknown or expired → 404", async () => {
    const { token, id } = await startLogin();
    for (const unknown of ["x", `${id}x`, token]) assert.equal((await approve(unknown)).status, 404);
    server.wait(APP_LOGIN_MS);
    assert.equal((await approve(id)).status, 404);
    assert.equal((await poll(token)).status, 404);
    assert.equal((await poll("")).status, 404);
  });

  test("app password: requested with the account's password, then revoked → no longer accepted", async () => {
    const { name } = await newUser(server);
    const headers = { ...basic(name, PASSWORD), ...fromNewNetwork(), "OCS-APIRequest": "true" };
    const response = await server.call("GET", "/ocs/v2.php/core/getapppassword", { headers });
    assert.equal(response.status, 200);
    const [, password = ""] = /<apppassword>(.+)<\/apppassword>/.exec(response.text) ?? [];
    const own = basic(name, password);
    assert.equal((await server.call("GET", "/ocs/v2.php/core/getapppassword", { headers: own })).status, 403);
    assert.equal((await server.call("DELETE", "/ocs/v2.php/core/apppassword", { headers: own })).status, 200);
    assert.equal((await server.call("DELETE", "/ocs/v2.php/core/apppassword", { headers: own })).status, 401);
    assert.equal((await server.call("DELETE", "/ocs/v2.php/core/apppassword", { headers })).status, 400);
  });

  test("app password: HEAD → 405, and no token", async () => {
    const { name, Cookie } = await newUser(server);
    const headers = { ...basic(name, PASSWORD), ...fromNewNetwork() };
    const tokens = async () => (await server.call("GET", "/v1/tokens", { headers: { Cookie } })).json.data.length;
    const before = await tokens();
    const response = await server.call("HEAD", "/ocs/v2.php/core/getapppassword", { headers });
    assert.deepEqual([response.status, response.headers["allow"]], [405, "GET"]);
    assert.equal(await tokens(), before);
    assert.equal((await server.call("GET", "/ocs/v2.php/core/getapppassword", { headers })).status, 200);
    assert.equal(await tokens(), before + 1);
  });
});

describe("Nextcloud paths", async () => {
  const server = await start({ EARMARK_BASE_PATH: "/pods" });
  const { name, Authorization } = await newUser(server);
  const headers = basic(name, Authorization.slice("Bearer ".length));

  for (const start of ["", "/index.php", "/pods", "/pods/index.php"]) {
    test(`Nextcloud paths: below "${start}" → an app can sign in and sync`, async () => {
      const send = (method: string, path: string, body?: string) =>
        server.call(method, start + path, { headers, ...(body === undefined ? {} : { body }) });
      const status = await send("GET", "/status.php");
      assert.equal(status.headers["content-type"], "application/json");
      assert.deepEqual([status.status, status.json.installed, status.json.maintenance], [200, true, false]);
      const login = await send("POST", "/login/v2");
      assert.equal(login.json.poll.endpoint, `${server.url}/pods/index.php/login/v2/poll`);
      assert.equal((await send("POST", `/login/v2/poll?token=${login.json.poll.token}`)).status, 404);

      const app = "/apps/gpoddersync";
      const feed = `https://feeds.example${start}/feed`;
      await send("POST", `${app}/subscription_change/create`, JSON.stringify({ add: [feed], remove: [] }));
      assert.ok((await send("GET", `${app}/subscriptions?since=0`)).json.add.includes(feed));
      const action = { podcast: feed, episode: "https://a.example/1.mp3", action: "play", position: 5 };
      await send("POST", `${app}/episode_action/create`, JSON.stringify([action]));
      const { actions } = (await send("GET", `${app}/episode_action?since=0`)).json;
      assert.ok(actions.some(({ podcast }: { podcast: string }) => podcast === feed));
      assert.equal((await send("GET", "/ocs/v2.php/core/getapppassword")).status, 403, "it is an app password already");

      for (const unknown of [`${app}/unknown`, "/login/v3", "/ocs/v2.php/unknown"]) {
        const { status: code, json } = await send("GET", unknown);
        assert.deepEqual([code, Object.keys(json)], [404, ["message"]], unknown);
      }
    });
  }
});
