import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import {
  basic,
  cookieOf,
  fromNewNetwork,
  newUser,
  PASSWORD,
  signUp,
  start,
} from "../../../test/support/http-accounts.ts";
import { type HttpResponse, startServer, type TestServer } from "../../../test/support/server.ts";

const tokenOf = ({ Authorization }: { Authorization: string }) => Authorization.slice("Bearer ".length);

async function get(
  server: TestServer,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpResponse> {
  const response = await server.call("GET", path, { headers: { ...fromNewNetwork(), ...headers } });
  assert.equal(response.headers["cache-control"], "no-store");
  if (response.status >= 400) {
    assert.equal(response.headers["content-type"], "application/json");
    assert.equal(typeof response.json.message, "string");
  }
  return response;
}

describe("signing in as an app", async () => {
  const server = await start();
  const ann = await newUser(server);
  const bob = await newUser(server);
  const list = `/subscriptions/${ann.name}.json`;
  const nextcloud = "/index.php/login/v2";

  test("app sign-in: no credentials → 401 that asks for Basic", async () => {
    const response = await get(server, list);
    assert.equal(response.status, 401);
    assert.equal(response.headers["www-authenticate"], 'Basic realm="Earmark", charset="UTF-8"');
    assert.equal(response.headers["set-cookie"], undefined);
  });

  test("app sign-in: password or token as Basic → 200 and a session that later requests can use instead", async () => {
    for (const password of [PASSWORD, tokenOf(ann)]) {
      const response = await get(server, list, basic(ann.name.toUpperCase(), password));
      assert.equal(response.status, 200, response.text);
      const cookies = [response.headers["set-cookie"]].flat();
      assert.equal(cookies.length, 1);
      assert.match(String(cookies[0]), /^sessionid=[\w.~-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
      const again = await get(server, list, { Cookie: cookieOf(response) });
      assert.equal(again.status, 200);
      assert.equal(again.headers["set-cookie"], undefined, "a fresh session is not renewed");
    }
  });

  test("app sign-in: UTF-8 password, URL-safe base64 → 200", async () => {
    const password = "pässwörd ÿ?>~ÿ?>~";
    assert.equal((await signUp(server, "kodi", password)).status, 201);
    const text = Buffer.from(`kodi:${password}`);
    for (const encoded of [text.toString("base64"), text.toString("base64url")])
      assert.equal((await get(server, "/subscriptions/kodi.json", { Authorization: `Basic ${encoded}` })).status, 200);
    assert.notEqual(text.toString("base64"), text.toString("base64url"));
  });

  test("app sign-in: over https → the cookie is Secure", async () => {
    const response = await get(server, list, { ...basic(ann.name, PASSWORD), "X-Forwarded-Proto": "https" });
    assert.match(String(response.headers["set-cookie"]), /; Secure$/);
  });

  test("app sign-in: Basic and a session → Basic takes precedence", async () => {
    const session = cookieOf(await get(server, list, basic(ann.name, PASSWORD)));
    const other = cookieOf(await get(server, `/subscriptions/${bob.name}.json`, basic(bob.name, PASSWORD)));
    for (const Cookie of ["sessionid=stale", "sessionid=", other, `sessionid=x; ${session}`])
      assert.equal((await get(server, list, { ...basic(ann.name, PASSWORD), Cookie })).status, 200, Cookie);
    assert.equal((await get(server, list, { ...basic(ann.name, "wrong"), Cookie: session })).status, 401);
  });

  test("app sign-in: invalid credentials → 401", async () => {
    for (const headers of [
      basic(ann.name, "wrong"),
      basic("nobody", PASSWORD),
      basic(bob.name, tokenOf(ann)),
      basic(ann.name, `${tokenOf(ann)}x`),
      { Authorization: "Basic" },
      { Authorization: "Basic !!!" },
      { Authorization: "Basic YW5u" },
      { Authorization: "Digest x" },
      { Authorization: ann.Authorization },
      { Cookie: "sessionid=x" },
      { Cookie: ann.Cookie },
    ])
      assert.equal((await get(server, list, headers)).status, 401, JSON.stringify(headers));
  });

  test("app sign-in: another user's path → 400 with Basic, 401 with a session", async () => {
    const path = `/subscriptions/${bob.name}.json`;
    assert.equal((await get(server, path, basic(ann.name, PASSWORD))).status, 400);
    const session = cookieOf(await get(server, list, basic(ann.name, PASSWORD)));
    assert.equal((await get(server, path, { Cookie: session })).status, 401);
  });

  test("app sign-in: app session → accepted on app routes only", async () => {
    const session = cookieOf(await get(server, list, basic(ann.name, PASSWORD)));
    const secret = session.slice("sessionid=".length);
    for (const headers of [
      { Cookie: session },
      { Cookie: `earmark=${secret}` },
      { Authorization: `Bearer ${secret}` },
      basic(ann.name, PASSWORD),
      basic(ann.name, tokenOf(ann)),
    ])
      assert.equal((await server.call("GET", "/v1/subscriptions", { headers })).status, 401);
  });

  test("app sign-in: many wrong passwords from one network → 429", async () => {
    const network = { "X-Forwarded-For": "198.51.100.7" };
    const statuses: number[] = [];
    for (let each = 0; each < 12; each += 1)
      statuses.push((await get(server, list, { ...basic(ann.name, "wrong"), ...network })).status);
    assert.deepEqual(statuses.slice(0, 10), new Array(10).fill(401));
    assert.equal(statuses.at(-1), 429);
    assert.equal((await get(server, list, basic(ann.name, PASSWORD))).status, 200);
  });

  test("app sign-in: session in use → its cookie is renewed; 60 days without use → expired", async () => {
    const timed = await start();
    const { name } = await newUser(timed);
    const path = `/subscriptions/${name}.json`;
    const Cookie = cookieOf(await get(timed, path, basic(name, PASSWORD)));
    const day = 24 * 60 * 60 * 1_000;
    timed.wait(2 * day);
    // The use is recorded after the response, so one of the next requests finds it.
    for (let request = 0; request < 5; request += 1) {
      const renewed = await get(timed, path, { Cookie });
      assert.equal(renewed.status, 200);
      if (request === 0) assert.equal(cookieOf(renewed), Cookie);
      timed.wait(6 * 60_000);
      await setTimeout(60);
    }
    timed.wait(59 * day);
    assert.equal((await get(timed, path, { Cookie })).status, 200);
    timed.wait(122 * day);
    assert.equal((await get(timed, path, { Cookie })).status, 401);
  });

  test("app sign-in: read-only token → may read, not write", async () => {
    const reader = await newUser(server, "read");
    const headers = { ...basic(reader.name, tokenOf(reader)), ...fromNewNetwork() };
    assert.equal((await get(server, `/subscriptions/${reader.name}.json`, headers)).status, 200);
    const path = `/api/2/subscriptions/${reader.name}/phone.json`;
    const response = await server.call("POST", path, { headers, body: '{"add":[],"remove":[]}' });
    assert.equal(response.status, 403);
    assert.equal(response.headers["content-type"], "application/json");
  });

  test("app routes: web pages of other sites → 403, also with credentials", async () => {
    const own = basic(ann.name, PASSWORD);
    for (const headers of [
      { "Sec-Fetch-Site": "cross-site" },
      { "Sec-Fetch-Site": "same-site" },
      { Origin: "https://evil.example" },
      { Origin: "null" },
      { Origin: "tauri://localhost", "Sec-Fetch-Site": "cross-site" },
      { Origin: "http://tauri.localhost.evil.example" },
    ])
      assert.equal((await get(server, list, { ...own, ...headers })).status, 403, JSON.stringify(headers));
    for (const headers of [
      { Origin: "tauri://localhost" },
      { Origin: "http://tauri.localhost" },
      { Origin: "https://tauri.localhost" },
      { Origin: server.url },
      { "Sec-Fetch-Site": "none" },
    ]) {
      assert.equal((await get(server, list, { ...own, ...headers })).status, 200, JSON.stringify(headers));
      assert.equal((await server.call("POST", nextcloud, { headers })).status, 200);
    }
  });

  test("app routes: repeated slashes → treated as one; other routes → 404", async () => {
    const own = basic(ann.name, PASSWORD);
    for (const path of [`/${list}`, `///subscriptions//${ann.name}.json`])
      assert.equal((await get(server, path, own)).status, 200, path);
    assert.equal((await server.call("POST", "//index.php/login/v2")).status, 200);
    for (const path of ["//v1/me", "/v1//me", "//healthz"])
      assert.equal((await server.call("GET", path, { headers: own })).status, 404, path);
  });

  test("app routes: name with dots, percent-encoded or in capitals → the same user", async () => {
    assert.equal((await signUp(server, "ann.b+c@x.org")).status, 201);
    const own = basic("ann.b+c@x.org", PASSWORD);
    for (const name of ["ann.b+c@x.org", "ann.b%2Bc%40x.org", "ANN.B+c@X.org"])
      assert.equal((await get(server, `/subscriptions/${name}.json`, own)).status, 200, name);
  });

  test("app routes: unknown path, method or body → an error in JSON", async () => {
    const own = basic(ann.name, PASSWORD);
    for (const path of [
      "/api/2/nothing.json",
      `/subscriptions/${ann.name}.xml`,
      "/index.php/apps/news",
      "/ocs/v1.php/x",
    ])
      assert.equal((await get(server, path, own)).status, 404, path);
    const feeds = `/api/2/subscriptions/${ann.name}/phone.json`;
    for (const [method, path, body, status] of [
      ["DELETE", feeds, undefined, 405],
      ["POST", feeds, "", 400],
      ["POST", feeds, "not json", 400],
      ["POST", feeds, "[]", 400],
      ["POST", feeds, '{"add":"x"}', 400],
      ["POST", feeds, '{"add":["https://a.example/"],"remove":["https://a.example/"]}', 400],
      ["POST", `/api/2/subscriptions/${ann.name}/my%20phone.json`, "{}", 400],
      ["GET", `${feeds}?since=soon`, undefined, 400],
      ["POST", `/api/2/episodes/${ann.name}.json`, "{}", 400],
      ["POST", `/api/2/devices/${ann.name}/phone.json`, "[]", 400],
    ] as const) {
      const options = { headers: { ...own, ...fromNewNetwork() }, ...(body === undefined ? {} : { body }) };
      const response = await server.call(method, path, options);
      assert.equal(response.status, status, `${method} ${path} ${body}: ${response.text}`);
      assert.equal(response.headers["content-type"], "application/json");
      assert.equal(typeof response.json.message, "string");
    }
  });

  test("logout: with or without a session → 200, and the cookie is cleared", async () => {
    const path = `/api/2/auth/${ann.name}/logout.json`;
    const response = await server.call("POST", path);
    assert.equal(response.status, 200);
    assert.match(String(response.headers["set-cookie"]), /^sessionid=; .*Max-Age=0/);
  });

  test("logout: with a session → it ends; the next login opens another", async () => {
    const logIn = () =>
      server.call("POST", `/api/2/auth/${ann.name}/login.json`, { headers: basic(ann.name, PASSWORD) });
    const devices = async (cookie: string) => get(server, `/api/2/devices/${ann.name}.json`, { Cookie: cookie });
    const cookie = cookieOf(await logIn());
    assert.equal((await devices(cookie)).status, 200);
    await server.call("POST", `/api/2/auth/${ann.name}/logout.json`, { headers: { Cookie: cookie } });
    assert.equal((await devices(cookie)).status, 401);
    const next = cookieOf(await logIn());
    assert.notEqual(next, cookie);
    assert.equal((await devices(next)).status, 200);
  });

  test("client configuration → the URL of the server", async () => {
    const { json } = await get(server, "/clientconfig.json");
    assert.equal(json.mygpo.baseurl, `${server.url}/`);
  });

  test("directory → empty, without credentials", async () => {
    for (const path of ["/toplist/50.json", "/api/2/tags/10.json", "/api/2/tag/news/10.json"])
      assert.deepEqual((await get(server, path)).json, [], path);
    for (const path of [
      `/api/2/favorites/${ann.name}.json`,
      `/api/2/lists/${ann.name}.json`,
      "/suggestions/10.json",
      "/search.json?q=x",
    ]) {
      assert.equal((await get(server, path)).status, 401);
      assert.deepEqual((await get(server, path, basic(ann.name, PASSWORD))).json, [], path);
    }
  });
});

describe("apps without accounts", async () => {
  const server = await startServer();

  test("no accounts: any or no credentials → 200, with a session", async () => {
    for (const headers of [{}, basic("anyone", "anything"), { Authorization: "Bearer x" }]) {
      const response = await get(server, "/subscriptions/anyone.json", headers);
      assert.equal(response.status, 200);
      assert.match(String(response.headers["set-cookie"]), /^sessionid=[^;]+; Path=\//);
      assert.equal((await get(server, "/subscriptions/other.json", { Cookie: cookieOf(response) })).status, 200);
    }
  });

  test("no accounts: login flow → approved at once", async () => {
    const { json } = await server.call("POST", "/index.php/login/v2");
    const approved = await server.call("POST", "/index.php/login/v2/poll", { body: `token=${json.poll.token}` });
    assert.equal(approved.status, 200);
    assert.equal(approved.json.server, server.url);
  });

  test("no accounts: web pages of other sites → 403; the app Cardo → 200", async () => {
    const path = "/subscriptions/anyone.json";
    assert.equal((await get(server, path, { Origin: "https://evil.example" })).status, 403);
    assert.equal((await get(server, path, { "Sec-Fetch-Site": "cross-site" })).status, 403);
    for (const Origin of ["tauri://localhost", "http://tauri.localhost"])
      assert.equal((await get(server, path, { Origin })).status, 200);
  });
});

test("base path: forwarded or removed by a proxy → both work", async () => {
  const server = await start({ EARMARK_BASE_PATH: "/earmark" });
  const { name } = await newUser(server);
  for (const path of [
    `/earmark/subscriptions/${name}.json`,
    `/earmark//subscriptions/${name}.json`,
    `/subscriptions/${name}.json`,
  ]) {
    const response = await get(server, path, basic(name, PASSWORD));
    assert.equal(response.status, 200, path);
    assert.match(String(response.headers["set-cookie"]), /; Path=\/earmark\/;/);
  }
});
