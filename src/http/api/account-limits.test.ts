import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  cookieOf,
  documentOf,
  JSONAPI,
  MINUTE,
  newUser,
  PASSWORD,
  signIn,
  signUp,
  start,
  titleOf,
} from "../../../test/support/http-accounts.ts";
import { ATOMIC, add, type HttpResponse, newId, PLAIN, startServer } from "../../../test/support/server.ts";

/** Each test sends its requests from other networks. */
const server = await start();

describe("account limits", () => {
  test("limits: password guesses for one name → ten, then one a minute; from another network → allowed", async () => {
    const { name } = await newUser(server);
    const attacker = { "X-Forwarded-For": "198.51.100.1" };
    for (let guess = 0; guess < 10; guess += 1)
      assert.equal((await signIn(server, name, "wrong password", attacker)).status, 401);
    const limited = await signIn(server, name, PASSWORD, attacker);
    assert.deepEqual([limited.status, limited.headers["retry-after"]], [429, "60"]);
    assert.equal(limited.headers["content-type"], PLAIN);
    assert.equal(titleOf(limited), "Too Many Requests");
    assert.equal((await signIn(server, name.toUpperCase(), PASSWORD, attacker)).status, 429, "in any case");
    assert.equal((await signIn(server, "nobody", PASSWORD, attacker)).status, 401, "another name");
    assert.equal(
      (await signIn(server, name, PASSWORD, { "X-Forwarded-For": "198.51.100.2" })).status,
      201,
      "elsewhere",
    );
    server.wait(MINUTE);
    assert.equal((await signIn(server, name, "wrong password", attacker)).status, 401);
    assert.equal((await signIn(server, name, PASSWORD, attacker)).status, 429);
  });

  test("limits: attempts from one IPv6 /64 → 100, then 429; from another /64 → allowed", async () => {
    const from = (host: number) => ({ "X-Forwarded-For": `2001:db8::${host.toString(16)}` });
    // An invalid name is rejected before hashing, which keeps this fast, but it still counts.
    const tries = await Promise.all(
      Array.from({ length: 110 }, (_, index) =>
        server.call("POST", "/v1/accounts", {
          headers: { ...JSONAPI, ...from(index + 1) },
          body: documentOf("account", { name: "?", password: PASSWORD }),
        }),
      ),
    );
    assert.equal(tries.filter(({ status }) => status === 422).length, 100);
    assert.equal(tries.filter(({ status }) => status === 429).length, 10);
    assert.equal((await signIn(server, "nobody", PASSWORD, { "X-Forwarded-For": "2001:db8:0:1::1" })).status, 401);
  });

  for (const [width, max, addressOf] of [
    ["/56", 200, (index: number) => `2001:db8:1:${(index % 256).toString(16)}::1`],
    ["/48", 400, (index: number) => `2001:db8:2:${(index * 256).toString(16)}::1`],
    ["/24", 800, (index: number) => `192.0.2.${index % 256}`],
  ] as const) {
    test(`limits: attempts from a whole ${width} → ${max}, then 429`, async () => {
      const tries = await Promise.all(
        Array.from({ length: max + 10 }, (_, index) =>
          server.call("POST", "/v1/accounts", {
            headers: { ...JSONAPI, "X-Forwarded-For": addressOf(width === "/48" ? index % 256 : index) },
            body: documentOf("account", { name: "?", password: PASSWORD }),
          }),
        ),
      );
      assert.equal(tries.filter(({ status }) => status === 422).length, max);
      assert.equal(tries.filter(({ status }) => status === 429).length, 10);
      const neighbour = { "X-Forwarded-For": "2001:db8:3::1" };
      assert.equal((await signIn(server, "nobody", PASSWORD, neighbour)).status, 401);
    });
  }

  test("limits: password guesses for one name from a /56 → 20, then 429; from another /56 → 201", async () => {
    const { name } = await newUser(server);
    const from = (household: number) => ({ "X-Forwarded-For": `2001:db8:4:${household.toString(16)}::1` });
    for (let guess = 0; guess < 20; guess += 1)
      assert.equal((await signIn(server, name, "wrong password", from(guess))).status, 401);
    assert.equal((await signIn(server, name, PASSWORD, from(20))).status, 429);
    assert.equal((await signIn(server, name, PASSWORD, from(0x100))).status, 201, "the next /56");
  });

  test("limits: a flood of guesses from a /48 → sign-ins from elsewhere succeed", async () => {
    const people = [await newUser(server), await newUser(server), await newUser(server)];
    const guesses: Promise<HttpResponse>[] = [];
    const guess = (index: number) => {
      const from = { "X-Forwarded-For": `2001:db8:5:${(index * 7).toString(16)}::1` };
      guesses.push(signIn(server, `name-${index % 50}`, "wrong password", from));
    };
    for (let index = 0; index < 300; index += 1) guess(index);
    for (let index = 0; index < 12; index += 1) {
      for (let more = 0; more < 20; more += 1) guess(300 + 20 * index + more);
      const { name } = people[index % people.length] ?? { name: "" };
      const from = { "X-Forwarded-For": `10.200.${index}.1` };
      assert.equal((await signIn(server, name, PASSWORD, from)).status, 201, `sign-in ${index}`);
    }
    const refused = (await Promise.all(guesses)).filter(({ status }) => status === 503);
    assert.ok(refused.length > 0, "there were more guesses than can be hashed");
  });

  test("limits: requests per minute → 429 for that account only", async () => {
    const server = await start({ EARMARK_REQUESTS_PER_MINUTE: "20" });
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const ask = ({ Authorization }: { Authorization: string }) =>
      server.call("GET", "/v1/subscriptions", { headers: { Authorization } });
    for (let count = 0; count < 20; count += 1) assert.equal((await ask(ann)).status, 200);
    const limited = await ask(ann);
    assert.deepEqual([limited.status, limited.headers["retry-after"]], [429, "3"]);
    assert.match(limited.json.errors[0].detail, /20 requests per minute/);
    assert.equal((await ask(bob)).status, 200);
    server.wait(3_000);
    assert.equal((await ask(ann)).status, 200);
    assert.equal((await ask(ann)).status, 429);
  });

  test("limits: long requests → count as several; one is allowed with a full allowance", async () => {
    for (const [path, count] of [
      ["/v1/changes?page[size]=100", 60],
      ["/v1/changes", 12],
      ["/v1/removals?page[size]=1000", 6],
      ["/v1/subscriptions?page[size]=100&page[number]=101", 60],
      ["/v1/subscriptions?page[size]=100&page[number]=102", 30],
      ["/v1/subscriptions.opml", 3],
    ] as const) {
      const server = await start({ EARMARK_REQUESTS_PER_MINUTE: "60" });
      const { Authorization } = await newUser(server);
      let served = 0;
      while ((await server.call("GET", path, { headers: { Authorization } })).status === 200) served += 1;
      assert.equal(served, count, path);
    }
    const strict = await start({ EARMARK_REQUESTS_PER_MINUTE: "5" });
    const { Authorization } = await newUser(strict);
    assert.equal((await strict.call("GET", "/v1/subscriptions.opml", { headers: { Authorization } })).status, 200);
    assert.equal((await strict.call("GET", "/v1/subscriptions", { headers: { Authorization } })).status, 429);
  });

  test("limits: operations per minute → 429, nothing of the request applied", async () => {
    const server = await start({ EARMARK_OPERATIONS_PER_MINUTE: "100" });
    const { Authorization } = await newUser(server);
    const send = (count: number) =>
      server.call("POST", "/v1/operations", {
        headers: { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC },
        body: JSON.stringify({
          "atomic:operations": Array.from({ length: count }, () => add(newId(), `https://feeds.example/${newId()}`)),
        }),
      });
    const total = async () =>
      (await server.call("GET", "/v1/subscriptions", { headers: { Authorization } })).json.meta.total;
    assert.equal((await send(60)).status, 200);
    const limited = await send(60);
    assert.deepEqual([limited.status, limited.headers["content-type"]], [429, ATOMIC]);
    assert.equal(await total(), 60);
    assert.equal((await send(40)).status, 200);
    server.wait(MINUTE);
    // With a full allowance, a single request may exceed the limit.
    assert.equal((await send(150)).status, 200);
    assert.equal(await total(), 250);
    assert.equal((await send(1)).status, 429);
  });

  test("limits: operations per minute, a long document → allowed with a full allowance, whatever it contains", async () => {
    const server = await start({ EARMARK_OPERATIONS_PER_MINUTE: "300" });
    const { Authorization } = await newUser(server);
    const played = { action: "play", acted_at: "2026-01-02T03:04:05.678Z", feed_url: "https://feeds.example/" };
    const data = Array.from({ length: 1_000 }, (_, index) => {
      return {
        type: "episode-action",
        id: newId(),
        attributes: { ...played, media_url: `https://m.example/${index}` },
      };
    });
    const send = async () =>
      (
        await server.call("POST", "/v1/me/import", {
          headers: { ...JSONAPI, Authorization },
          body: JSON.stringify({ data }),
        })
      ).status;
    assert.deepEqual([await send(), await send()], [200, 429]);
    server.wait(MINUTE);
    assert.equal(await send(), 200);
  });

  test("limits: operations per minute, files → one per feed, but at least one per KiB", async () => {
    const server = await start({ EARMARK_OPERATIONS_PER_MINUTE: "30" });
    const { Authorization } = await newUser(server);
    const send = async (body: string) => {
      const headers = { Authorization, "Content-Type": "text/plain" };
      return (await server.call("POST", "/v1/imports", { headers, body })).status;
    };
    const padded = `https://feeds.example/1\n${"# padding\n".repeat(1_000)}`;
    const feeds = Array.from({ length: 9 }, (_, index) => `https://feeds.example/${index}\n`).join("");
    for (const [file, status] of [
      [padded, 200],
      [padded, 200],
      [feeds, 200],
      [padded, 429],
    ] as const)
      assert.equal(await send(file), status);
  });
});

describe("/v1/me", async () => {
  const server = await start();
  const { call } = server;

  test("/v1/me: signed in → name, counts and limits", async () => {
    const { name, Authorization, tokenId } = await newUser(server);
    const { json } = await call("GET", "/v1/me", { headers: { Authorization } });
    assert.deepEqual(json.data.attributes, {
      name,
      issuer: null,
      role: "member",
      created_at: server.now().toISOString(),
      follow_moves: true,
    });
    const { state, ...meta } = json.meta;
    assert.match(state, /^[\w-]{36}$/);
    assert.deepEqual(meta, {
      credential: { kind: "token", id: tokenId, scope: "write" },
      counts: { subscriptions: 0, tokens: 1, sessions: 1 },
      limits: {
        operations_per_request: 10_000,
        body_bytes: 8_388_608,
        page_size: 100,
        requests_per_minute: 6_000,
        operations_per_minute: 100_000,
        subscriptions: 20_000,
      },
    });
  });

  test("/v1/me/export: a long list → everything, without secrets", async () => {
    const { name, Cookie, Authorization } = await newUser(server);
    const operations = Array.from({ length: 6_000 }, (_, index) => add(newId(), `https://feeds.example/${index}`));
    await call("POST", "/v1/operations", {
      headers: { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC },
      body: JSON.stringify({ "atomic:operations": operations }),
    });
    const byToken = await call("GET", "/v1/me/export", { headers: { Authorization } });
    assert.deepEqual([byToken.status, titleOf(byToken)], [403, "Sign In Needed"]);
    for (const headers of [{ Cookie }]) {
      const response = await call("GET", "/v1/me/export", { headers });
      assert.equal(response.status, 200);
      assert.equal(response.headers["content-type"], PLAIN);
      assert.equal(response.headers["content-disposition"], 'attachment; filename="earmark.json"');
      const types = response.json.data.map(({ type }: { type: string }) => type);
      assert.deepEqual(types.slice(0, 4), ["account", "token", "session", "subscription"]);
      assert.equal(types.length, 6_004);
      assert.equal(response.json.data[0].attributes.name, name);
      assert.doesNotMatch(response.text, /emk_|argon2/);
    }
  });

  test("/v1/me: DELETE → only with a recent sign-in, deletes everything", async () => {
    const { name, Cookie, Authorization } = await newUser(server);
    const other = await newUser(server);
    await call("POST", "/v1/operations", {
      headers: { Authorization, "Content-Type": ATOMIC, Accept: ATOMIC },
      body: JSON.stringify({ "atomic:operations": [add(newId(), "https://feeds.example/1")] }),
    });
    server.wait(11 * MINUTE);
    const stale = await call("DELETE", "/v1/me", { headers: { Cookie } });
    assert.deepEqual([stale.status, titleOf(stale)], [403, "Sign In Again"]);
    const fresh = cookieOf(await signIn(server, name));
    const response = await call("DELETE", "/v1/me", { headers: { Cookie: fresh } });
    assert.equal(response.status, 204);
    assert.match(String(response.headers["set-cookie"]), /Max-Age=0/);
    for (const headers of [{ Cookie }, { Cookie: fresh }, { Authorization }])
      assert.equal((await call("GET", "/v1/me", { headers })).status, 401);
    assert.equal((await signIn(server, name)).status, 401);
    assert.equal((await call("GET", "/v1/me", { headers: { Cookie: other.Cookie } })).status, 200);
    // The name is available again, and the new account is empty.
    const again = await signUp(server, name);
    assert.equal(again.status, 201);
    assert.equal((await call("GET", "/v1/subscriptions", { headers: { Cookie: cookieOf(again) } })).json.meta.total, 0);
  });

  test("/v1/me: no accounts → the local user, no sign-in", async () => {
    const local = await startServer();
    const { json } = await local.call("GET", "/v1/me");
    const nobody = { name: "local", issuer: null, role: null, created_at: null, follow_moves: true };
    assert.deepEqual(json.data.attributes, nobody);
    assert.equal(json.meta.credential, null);
    assert.equal(json.meta.limits.requests_per_minute, null);
    assert.equal(json.meta.limits.subscriptions, null);
    assert.equal((await local.call("GET", "/v1/me/export")).json.data.length, 1);
    assert.equal((await local.call("DELETE", "/v1/me")).status, 405);
    for (const path of ["/v1/tokens", "/v1/sessions", "/v1/accounts", "/join"])
      assert.equal((await local.call("GET", path)).status, 404, path);
  });
});
