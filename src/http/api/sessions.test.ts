import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  cookieOf,
  documentOf,
  fromNewNetwork,
  JSONAPI,
  MINUTE,
  newUser,
  PASSWORD,
  pointerOf,
  signIn,
  start,
  titleOf,
} from "../../../test/support/http-accounts.ts";
import { newId } from "../../../test/support/server.ts";
import { SESSION_MS } from "../../accounts/accounts.ts";
import { asUser } from "../../accounts/caller.ts";
import { hashSecret } from "../../accounts/hash-secret.ts";

const IDLE_MS = 14 * 24 * 60 * 60_000;

describe("sessions", async () => {
  const server = await start();
  const { call } = server;
  const me = (Cookie: string) => call("GET", "/v1/me", { headers: { Cookie } });
  const sessions = async (Cookie: string) => (await call("GET", "/v1/sessions", { headers: { Cookie } })).json.data;

  test("sessions: sign-in with a preset session cookie → a new session (session fixation)", async () => {
    const { name } = await newUser(server);
    const preset = `earmark=${"A".repeat(43)}`;
    const response = await call("POST", "/v1/sessions", {
      headers: { ...JSONAPI, ...fromNewNetwork(), Cookie: preset },
      body: documentOf("session", { name, password: PASSWORD }),
    });
    assert.notEqual(cookieOf(response), preset);
    assert.equal((await me(preset)).status, 401);
    assert.notEqual(cookieOf(await signIn(server, name)), cookieOf(response));
  });

  test("sessions: listed → with user agent; ended → rejected at once", async () => {
    const { name, Cookie } = await newUser(server);
    server.wait(1);
    const other = await call("POST", "/v1/sessions", {
      headers: { ...JSONAPI, ...fromNewNetwork(), "User-Agent": "A phone/1.0" },
      body: documentOf("session", { name, password: PASSWORD }),
    });
    const listed = await sessions(Cookie);
    assert.deepEqual(
      listed.map(({ attributes }: { attributes: { label: string; current: boolean } }) => [
        attributes.label,
        attributes.current,
      ]),
      [
        ["", true],
        ["A phone/1.0", false],
      ],
    );
    const path = other.json.data.links.self;
    assert.equal((await call("GET", path, { headers: { Cookie } })).json.data.id, other.json.data.id);
    const ended = await call("DELETE", path, { headers: { Cookie } });
    assert.deepEqual([ended.status, ended.headers["set-cookie"]], [204, undefined]);
    assert.equal((await me(cookieOf(other))).status, 401);
    assert.equal((await sessions(Cookie)).length, 1);
  });

  test("sessions: end the current one → signed out, cookie cleared", async () => {
    const { Cookie } = await newUser(server);
    const [{ links }] = await sessions(Cookie);
    const response = await call("DELETE", links.self, { headers: { Cookie } });
    assert.equal(response.status, 204);
    assert.match(String(response.headers["set-cookie"]), /^earmark=; Path=\/; Max-Age=0;/);
    assert.equal((await me(Cookie)).status, 401);
  });

  test("sessions: idle for long, or too old → expired", async () => {
    const { Cookie } = await newUser(server);
    const use = async () => {
      // The last use is written after the response; the next lookup of the credential shows it.
      const isWritten = async () => {
        const response = await me(Cookie);
        assert.equal(response.status, 200, "as long as it is used");
        const [session] = await server.store.accounts.listCredentials(Number(response.json.data.id), "session");
        return session?.usedAt?.getTime() === server.now().getTime();
      };
      for (let tries = 0; tries < 500 && !(await isWritten()); tries += 1)
        await new Promise((resolve) => setTimeout(resolve, 5));
    };
    let age = 0;
    for (; age + IDLE_MS - 1 < SESSION_MS; age += IDLE_MS - 1) {
      server.wait(IDLE_MS - 1);
      await use();
    }
    server.wait(SESSION_MS - age - 1);
    assert.equal((await me(Cookie)).status, 200);
    server.wait(1);
    assert.equal((await me(Cookie)).status, 401, "at its end");
    const { Cookie: idle } = await newUser(server);
    assert.equal((await me(idle)).status, 200);
    server.wait(IDLE_MS);
    assert.equal((await me(idle)).status, 401, "not used");
  });

  test("sessions: a new password → all other sessions end, tokens stay", async () => {
    const { name, Cookie, Authorization } = await newUser(server);
    const other = cookieOf(await signIn(server, name));
    const change = (attributes: object) =>
      call("PATCH", "/v1/me", {
        headers: { ...JSONAPI, ...fromNewNetwork(), Cookie },
        body: documentOf("account", attributes),
      });
    const wrong = await change({ current_password: "not it at all", password: "another password" });
    assert.deepEqual(
      [wrong.status, titleOf(wrong), pointerOf(wrong)],
      [403, "Wrong Password", "/data/attributes/current_password"],
    );
    const weak = await change({ current_password: PASSWORD, password: "password" });
    assert.deepEqual([weak.status, pointerOf(weak)], [422, "/data/attributes/password"]);
    assert.equal((await me(other)).status, 200);
    assert.equal((await change({ current_password: PASSWORD, password: "another password" })).status, 204);
    assert.equal((await me(Cookie)).status, 200);
    assert.equal((await me(other)).status, 401);
    assert.equal((await call("GET", "/v1/me", { headers: { Authorization } })).status, 200);
    assert.equal((await signIn(server, name)).status, 401);
    assert.equal((await signIn(server, name, "another password")).status, 201);
  });

  test("sessions: too many → the least recently used one ends", async () => {
    const { Cookie } = await newUser(server);
    const user = Number((await me(Cookie)).json.data.id);
    const account = await server.store.accounts.get(user);
    for (let count = 1; count < 100; count += 1) {
      const credential = {
        id: newId(),
        kind: "session",
        user,
        scope: "write",
        label: "old",
        createdAt: new Date(server.now().getTime() - count),
        usedAt: undefined,
        expiresAt: new Date(server.now().getTime() + SESSION_MS),
      } as const;
      await server.store.accounts.addCredential(asUser(user), {
        credential,
        hash: hashSecret(newId()),
      });
    }
    assert.equal((await sessions(Cookie)).length, 25, "a page");
    assert.equal((await me(Cookie)).json.meta.counts.sessions, 100);
    assert.equal((await signIn(server, account?.account.name)).status, 201);
    assert.equal((await me(Cookie)).json.meta.counts.sessions, 100);
  });
});

describe("tokens", async () => {
  const server = await start();
  const { call } = server;
  const create = (Cookie: string, attributes: object) =>
    call("POST", "/v1/tokens", { headers: { ...JSONAPI, Cookie }, body: documentOf("token", attributes) });

  test("tokens: created → shown once, with 256 bits", async () => {
    const { Cookie } = await newUser(server);
    const response = await create(Cookie, { label: "Küche 🎧", scope: "write" });
    assert.equal(response.status, 201);
    assert.equal(response.headers["location"], response.json.data.links.self);
    const { token, ...rest } = response.json.data.attributes;
    assert.match(token, /^emk_[\w-]{43}$/);
    assert.equal(Buffer.from(token.slice(4), "base64url").length, 32);
    assert.deepEqual(rest, {
      label: "Küche 🎧",
      scope: "write",
      created_at: server.now().toISOString(),
      last_used_at: null,
      expires_at: null,
    });
    const again = await call("GET", response.json.data.links.self, { headers: { Cookie } });
    assert.deepEqual(again.json.data.attributes, rest);
    const all = await call("GET", "/v1/tokens", { headers: { Cookie } });
    assert.equal(all.json.meta.total, 2);
    assert.doesNotMatch(all.text, /emk_/);
  });

  test("tokens: used → last use is recorded to within minutes", async () => {
    const { Cookie, Authorization } = await newUser(server);
    const used = async () => {
      // The last use is written after the response; the next lookup of the credential shows it.
      for (let tries = 0; tries < 100; tries += 1) {
        await call("GET", "/v1/subscriptions", { headers: { Authorization } });
        const [{ attributes }] = (await call("GET", "/v1/tokens", { headers: { Cookie } })).json.data;
        if (attributes.last_used_at === server.now().toISOString()) return attributes.last_used_at;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return undefined;
    };
    assert.equal(await used(), server.now().toISOString());
    server.wait(5 * MINUTE);
    assert.equal(await used(), server.now().toISOString());
  });

  test("tokens: revoked → rejected at the next request", async () => {
    const { Cookie, Authorization, tokenId } = await newUser(server);
    const ask = () => call("GET", "/v1/subscriptions", { headers: { Authorization } });
    assert.equal((await ask()).status, 200);
    assert.equal((await call("DELETE", `/v1/tokens/${tokenId.toUpperCase()}`, { headers: { Cookie } })).status, 204);
    assert.equal((await ask()).status, 401);
    const again = await call("DELETE", `/v1/tokens/${tokenId}`, { headers: { Cookie } });
    assert.deepEqual([again.status, titleOf(again)], [404, "Token not found"]);
    assert.equal((await call("DELETE", "/v1/tokens/nonsense", { headers: { Cookie } })).status, 400);
  });

  test("tokens: an invalid label, scope or expiry → rejected", async () => {
    const { Cookie } = await newUser(server);
    const past = new Date(server.now().getTime() - 1).toISOString();
    for (const [attributes, member] of [
      [{ scope: "read" }, ""],
      [{ label: "", scope: "read" }, "/label"],
      [{ label: "x".repeat(101), scope: "read" }, "/label"],
      [{ label: "x\u0000", scope: "read" }, "/label"],
      [{ label: "x\ud800", scope: "read" }, "/label"],
      [{ label: "x" }, ""],
      [{ label: "x", scope: "admin" }, "/scope"],
      [{ label: "x", scope: "read", expires_at: past }, "/expires_at"],
      [{ label: "x", scope: "read", expires_at: "tomorrow" }, "/expires_at"],
      [{ label: "x", scope: "read", expires_at: "2999-02-31" }, "/expires_at"],
      [{ label: "x", scope: "read", expires_at: 1e15 }, "/expires_at"],
    ] as const) {
      const response = await create(Cookie, attributes);
      assert.deepEqual(
        [response.status, pointerOf(response)],
        [422, `/data/attributes${member}`],
        JSON.stringify(attributes),
      );
    }
    assert.equal((await create(Cookie, { label: "x", scope: "read", expires_at: null })).status, 201);
  });

  test("tokens: more than a hundred → rejected", async () => {
    const { Cookie } = await newUser(server);
    for (let count = 1; count < 100; count += 1)
      assert.equal((await create(Cookie, { label: `${count}`, scope: "read" })).status, 201);
    const response = await create(Cookie, { label: "one more", scope: "read" });
    assert.deepEqual(
      [response.status, titleOf(response), response.json.errors[0].meta],
      [409, "Too Many Tokens", { max: 100 }],
    );
    const page = await call("GET", "/v1/tokens?page[number]=4&page[size]=30", { headers: { Cookie } });
    assert.equal(page.json.data.length, 10);
    assert.equal(page.json.links.prev, "/v1/tokens?page[number]=3&page[size]=30");
    assert.equal(page.json.links.next, null);
    assert.equal((await call("GET", "/v1/tokens?page[size]=101", { headers: { Cookie } })).status, 400);
    assert.equal((await call("GET", "/v1/tokens?sort=label", { headers: { Cookie } })).status, 400);
  });
});
