import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { describe, test } from "node:test";
import type { Access } from "../src/http/wire/access.ts";
import { basic, type Headers } from "./apps/app.ts";
import { cookieOf, fromNewNetwork, newUser, PASSWORD, signUp, start } from "./support/http-accounts.ts";
import { ATOMIC, add, newId } from "./support/server.ts";

interface Way {
  readonly access: Access;
  readonly status?: number;
  readonly body?: string;
}

const read: Way = { access: "read" };
const open: Way = { access: "open" };
const feeds: Way = { access: "write", body: '{"add":[],"remove":[]}' };
const device: Way = { access: "write", body: "{}" };
const list: Way = { access: "write", body: "[]" };
const NEXTCLOUD = "/apps/gpoddersync";

const NEXTCLOUD_WAYS: Readonly<Record<string, Way>> = {
  [`GET ${NEXTCLOUD}/subscriptions`]: read,
  [`GET ${NEXTCLOUD}/subscription_changes/:number`]: read,
  [`POST ${NEXTCLOUD}/subscription_change/create`]: feeds,
  [`GET ${NEXTCLOUD}/episode_action`]: read,
  [`POST ${NEXTCLOUD}/episode_action/create`]: list,
  "POST /login/v2": open,
  "POST /login/v2/poll": { access: "open", status: 404, body: "token=x" },
  // With a token it is refused: the app has what it asks for.
  "GET /ocs/v2.php/core/getapppassword": { access: "write", status: 403 },
  // Has a test of its own, since it ends the token.
  "DELETE /ocs/v2.php/core/apppassword": { access: "write" },
  "GET /status.php": open,
};

/** Every route of podcast apps, who may use it, and a request that succeeds without a change. */
const WAYS: Readonly<Record<string, Way>> = {
  "POST /api/2/auth/:user/login.json": read,
  "POST /api/2/auth/:user/logout.json": open,
  "GET /api/2/devices/:user.json": read,
  "POST /api/2/devices/:user/:device.json": device,
  "PUT /api/2/devices/:user/:device.json": device,
  "GET /api/2/sync-devices/:user.json": read,
  "POST /api/2/sync-devices/:user.json": device,
  "GET /api/2/subscriptions/:user/:device.json": read,
  "POST /api/2/subscriptions/:user/:device.json": feeds,
  "GET /api/2/episodes/:user.json": read,
  "POST /api/2/episodes/:user.json": list,
  "POST /api/2/episodes/:user/:device.json": list,
  "GET /subscriptions/:user.json": read,
  "GET /subscriptions/:user.txt": read,
  "GET /subscriptions/:user.opml": read,
  "GET /subscriptions/:user/:device.json": read,
  "GET /subscriptions/:user/:device.txt": read,
  "GET /subscriptions/:user/:device.opml": read,
  "PUT /subscriptions/:user/:device.json": { access: "write", body: '["MARK"]' },
  "PUT /subscriptions/:user/:device.txt": { access: "write", body: "MARK" },
  "PUT /subscriptions/:user/:device.opml": {
    access: "write",
    body: '<opml><body><outline xmlUrl="MARK"/></body></opml>',
  },
  "POST /subscriptions/:user/:device.json": { access: "write", body: '["MARK"]' },
  "POST /subscriptions/:user/:device.txt": { access: "write", body: "MARK" },
  "POST /subscriptions/:user/:device.opml": {
    access: "write",
    body: '<opml><body><outline xmlUrl="MARK"/></body></opml>',
  },
  "GET /clientconfig.json": open,
  "GET /api/2/favorites/:user.json": read,
  "GET /api/2/lists/:user.json": read,
  "GET /api/2/settings/:user/:scope.json": read,
  "GET /suggestions/:count.json": read,
  "GET /toplist/:count.json": open,
  "GET /search.json": read,
  "GET /api/2/tags/:count.json": open,
  "GET /api/2/tag/:tag/:count.json": open,
  ...NEXTCLOUD_WAYS,
  ...Object.fromEntries(Object.entries(NEXTCLOUD_WAYS).map(([key, way]) => [key.replace(" ", " /index.php"), way])),
};

describe("access to the routes of apps", async () => {
  const server = await start();
  const { routes } = server.server;
  const expiry = new Date(server.now().getTime() + 60_000);

  const subscribe = async (Authorization: string, mark: string) => {
    const body = JSON.stringify({ "atomic:operations": [add(newId(), mark)] });
    const response = await server.call("POST", "/v1/operations", {
      headers: { Authorization, "Content-Type": ATOMIC },
      body,
    });
    assert.equal(response.status, 200);
  };
  const sessionFor = async (name: string, secret: string) => {
    const headers = { ...basic(name, secret), ...fromNewNetwork() };
    const response = await server.call("GET", `/subscriptions/${name}.json`, { headers });
    assert.equal(response.status, 200, response.text);
    return { Cookie: cookieOf(response) };
  };
  const newPerson = async () => {
    const user = await newUser(server);
    const account = await server.accounts.findByName(user.name);
    assert.ok(account);
    const caller = { user: account.user, credentialHash: undefined, maxSubscriptions: 1_000 };
    const issue = async (scope: "read" | "write", expiresAt: Date | undefined) => {
      const issued = await server.accounts.createToken(caller, { label: "x", scope, expiresAt }, server.now());
      assert.ok("secret" in issued);
      return issued;
    };
    const write = (await issue("write", undefined)).secret;
    const revoked = await issue("write", undefined);
    const expired = (await issue("write", expiry)).secret;
    const ended = {
      "a revoked token": basic(user.name, revoked.secret),
      "a session of a revoked token": await sessionFor(user.name, revoked.secret),
      "an expired token": basic(user.name, expired),
      "a session of an expired token": await sessionFor(user.name, expired),
    };
    await server.accounts.removeCredential(caller, "token", revoked.credential.id, server.now());
    const mark = `https://feeds.example/of-${user.name}`;
    await subscribe(user.Authorization, mark);
    return { ...user, issue, write, read: (await issue("read", undefined)).secret, ended, mark };
  };
  type Person = Awaited<ReturnType<typeof newPerson>>;

  const gone = await newUser(server);
  const goneToken = gone.Authorization.slice("Bearer ".length);
  const ofGone = { session: await sessionFor(gone.name, PASSWORD), token: await sessionFor(gone.name, goneToken) };
  assert.equal((await server.call("DELETE", "/v1/me", { headers: { Cookie: gone.Cookie } })).status, 204);
  const [ann, bob] = [await newPerson(), await newPerson()];
  server.wait(61_000);

  const valid = async ({ name, write, read: reading }: Person) => ({
    "the password": { headers: basic(name, PASSWORD), scope: "write" },
    "a token": { headers: basic(name, write), scope: "write" },
    "a session of the password": { headers: await sessionFor(name, PASSWORD), scope: "write" },
    "a session of a token": { headers: await sessionFor(name, write), scope: "write" },
    "a read-only token": { headers: basic(name, reading), scope: "read" },
    "a session of a read-only token": { headers: await sessionFor(name, reading), scope: "read" },
  });
  /** Sessions that somebody makes who knows their form and has one of another account. */
  const forge = async (): Promise<Record<string, Headers>> => {
    const [own, others] = [await sessionFor(ann.name, PASSWORD), await sessionFor(bob.name, PASSWORD)];
    const parts = (cookie: string) => cookie.replace("sessionid=", "").split("~");
    const [user = "", issued = "", device = "", key = "", signature = ""] = parts(own.Cookie);
    const [, , , , otherSignature = ""] = parts(others.Cookie);
    const foreign = generateKeyPairSync("ed25519");
    const foreignKey = foreign.publicKey.export({ format: "jwk" }).x ?? "";
    const content = [user, issued, device].join("~");
    const foreignSignature = sign(null, Buffer.from(`app session\0\0${content}`), foreign.privateKey);
    const forged = {
      "a session with the signature of another": [user, issued, device, key, otherSignature],
      "a session with a later time": [user, "zzzzzz", device, key, signature],
      "a session with another device": [user, issued, "other", key, signature],
      "a session signed with a foreign key": [user, issued, device, foreignKey, foreignSignature.toString("base64url")],
      "a session without a signature": [user, issued, device, key, ""],
      "a session of a server without accounts": ["local.phone"],
    };
    return Object.fromEntries(
      Object.entries(forged).map(([what, all]) => [what, { Cookie: `sessionid=${all.join("~")}` }]),
    );
  };
  const invalid: Readonly<Record<string, Headers>> = {
    none: {},
    ...(await forge()),
    "the name of another beside a token": basic(bob.name, ann.write),
    "a tampered token": basic(ann.name, `${ann.write.slice(0, -2)}xx`),
    "a session of the web page": { Cookie: ann.Cookie },
    "a session of the web page as session of an app": { Cookie: ann.Cookie.replace("earmark", "sessionid") },
    "a token as session": { Cookie: `sessionid=${ann.write}` },
    "garbage as session": { Cookie: "sessionid=garbage" },
    "a tampered session": { Cookie: (await sessionFor(ann.name, PASSWORD)).Cookie.replace(/.$/, "!") },
    ...ann.ended,
    "a token of a deleted account": basic(gone.name, goneToken),
    "a session of a deleted account": ofGone.session,
    "a session of a token of a deleted account": ofGone.token,
  };
  /** Each takes a password to be hashed, so these are tried on two routes only. */
  const wrongPasswords: Readonly<Record<string, Headers>> = {
    "a wrong password": basic(ann.name, "wrong password"),
    "no password": basic(ann.name, ""),
    "an unknown name": basic("nobody", PASSWORD),
    "the password of a deleted account": basic(gone.name, PASSWORD),
  };
  const HASHING = ["GET /api/2/devices/:user.json", `POST ${NEXTCLOUD}/episode_action/create`];

  const pathFor = (path: string, name: string) =>
    path
      .replace(":user", name)
      .replace(":device", "phone")
      .replace(/:(count|number)/, "5")
      .replace(/:\w+/, "x");
  const send = (key: string, name: string, headers: Headers) => {
    const [method = "", path = ""] = key.split(" ");
    const body = WAYS[key]?.body?.replace("MARK", name === ann.name ? ann.mark : bob.mark);
    const type = path.endsWith(".opml") ? { "Content-Type": "text/x-opml" } : {};
    const options = { headers: { ...fromNewNetwork(), ...type, ...headers }, ...(body === undefined ? {} : { body }) };
    return server.call(method, pathFor(path, name), options);
  };
  const listOf = async ({ Authorization }: Person) =>
    (await server.call("GET", "/v1/subscriptions", { headers: { Authorization } })).text;

  test("access: routes of apps → all of them are in the table", () => {
    const found = routes.filter(({ dialect }) => dialect.app !== undefined);
    assert.deepEqual(
      found.map(({ method, path, access }) => `${method} ${path}: ${access}`).sort(),
      Object.entries(WAYS)
        .map(([key, { access }]) => `${key}: ${access}`)
        .sort(),
    );
  });

  for (const [key, { access, status = 200 }] of Object.entries(WAYS)) {
    if (key.startsWith("DELETE")) continue;
    const path = key.split(" ")[1] ?? "";
    const isNextcloud = key.replace(" /index.php", " ") in NEXTCLOUD_WAYS;

    test(`access: ${key}, valid credentials → own data only`, async () => {
      const before = await listOf(ann);
      for (const [what, { headers, scope }] of Object.entries(await valid(bob))) {
        const isRefused = access === "write" && scope === "read";
        const isPassword = what.includes("password") && path.includes("/ocs/");
        const response = await send(key, bob.name, headers);
        const expected = isPassword ? 200 : isRefused ? 403 : status;
        assert.equal(response.status, expected, `${what}: ${response.text}`);
        assert.ok(!response.text.includes(ann.mark), what);
        if (!path.includes(":user") || access === "open") continue;
        const other = await send(key, ann.name, headers);
        assert.equal(other.status, "Authorization" in headers ? (isRefused ? 403 : 400) : isRefused ? 403 : 401, what);
        assert.ok(!other.text.includes(ann.mark), what);
      }
      assert.equal(await listOf(ann), before);
    });

    test(`access: ${key}, invalid credentials → ${access === "open" ? "make no difference" : "401"}`, async () => {
      for (const [what, headers] of Object.entries({ ...invalid, ...(HASHING.includes(key) ? wrongPasswords : {}) })) {
        const response = await send(key, ann.name, headers);
        assert.equal(response.status, access === "open" ? status : 401, `${what}: ${response.text}`);
        if (access === "open") break;
        assert.equal(response.headers["www-authenticate"], 'Basic realm="Earmark", charset="UTF-8"', what);
        assert.equal(response.headers["set-cookie"], undefined, what);
        assert.equal(response.headers["content-type"], "application/json", what);
      }
      const bearer = await send(key, ann.name, { Authorization: `Bearer ${ann.write}` });
      assert.equal(bearer.status, access === "open" || isNextcloud ? status : 401, "a bearer token");
    });
  }

  for (const key of Object.keys(WAYS)) {
    const [method = "", path = ""] = key.split(" ");

    test(`access: ${key}, from a page on another site → 403, nothing changes`, async () => {
      const before = await listOf(bob);
      for (const credentials of [basic(bob.name, bob.write), await sessionFor(bob.name, PASSWORD), {}]) {
        for (const from of [
          { Origin: "https://evil.example" },
          { Origin: "null" },
          { "Sec-Fetch-Site": "cross-site" },
          { Origin: server.url, "Sec-Fetch-Site": "cross-site" },
        ]) {
          const response = await send(key, bob.name, { ...credentials, ...(from as Headers) });
          assert.equal(response.status, 403, JSON.stringify(from));
          assert.equal(response.headers["access-control-allow-origin"], undefined);
          assert.equal(response.headers["set-cookie"], undefined);
        }
      }
      assert.equal(await listOf(bob), before);
    });

    test(`access: HEAD and OPTIONS for ${key} → like GET without a body, or 405`, async () => {
      const call = (other: string, headers: Headers) =>
        server.call(other, pathFor(path, bob.name), { headers: { ...fromNewNetwork(), ...headers } });
      const options = await call("OPTIONS", basic(bob.name, bob.write));
      assert.equal(options.status, 405);
      const isRead = method === "GET" && !path.includes("/ocs/");
      assert.equal(String(options.headers["allow"]).split(", ").includes(method), true);
      if (!isRead) return;
      const head = await call("HEAD", basic(bob.name, bob.write));
      assert.deepEqual([head.status, head.text], [200, ""]);
      if (WAYS[key]?.access !== "open") assert.equal((await call("HEAD", {})).status, 401);
    });
  }

  test("access: DELETE app password → ends the token that it was sent with, and no other", async () => {
    const key = "DELETE /ocs/v2.php/core/apppassword";
    for (const headers of Object.values(invalid)) assert.equal((await send(key, ann.name, headers)).status, 401);
    assert.equal((await send(key, bob.name, basic(bob.name, bob.read))).status, 403);
    const { secret } = await bob.issue("write", undefined);
    assert.equal((await send(key, bob.name, basic(bob.name, secret))).status, 200);
    assert.equal((await send(key, bob.name, basic(bob.name, secret))).status, 401);
    for (const { name, read: other } of [ann, bob]) await sessionFor(name, other);
    await sessionFor(ann.name, ann.write);
  });

  test("access: sign-up of a name that an account had → nothing of the old account works", async () => {
    assert.equal((await signUp(server, gone.name, "another password")).status, 201);
    for (const headers of [basic(gone.name, PASSWORD), basic(gone.name, goneToken), ofGone.session, ofGone.token])
      assert.equal((await send("GET /subscriptions/:user.json", gone.name, headers)).status, 401);
  });
});
