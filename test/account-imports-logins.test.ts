import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { detailOf, followImport, IMPORTING, importAccount, outcomeOf, startLogin } from "./support/account-imports.ts";
import { basic, documentOf, JSONAPI, newUser, start } from "./support/http-accounts.ts";
import {
  ANN,
  FEED,
  gpodderPaths,
  type OtherServer,
  play,
  type Received,
  startOther,
  status,
} from "./support/other-servers.ts";

const LOGIN_MS = 20 * 60_000;
const NAME = "ann@cloud.example";
const APP_PASSWORD = "app-password-1";

/** A server with accounts, as a new user sees it. */
async function startNew(importLimits: object = {}) {
  const server = await start(IMPORTING, { importLimits });
  const asUser = async () => {
    const { Authorization } = await newUser(server);
    const call: typeof server.call = (method, path, options = {}) =>
      server.call(method, path, { ...options, headers: { Authorization, ...options.headers } });
    return { ...server, call, Authorization };
  };
  return { ...(await asUser()), asUser };
}

interface Cloud extends OtherServer {
  /** The person allows the login. */
  allow: () => void;
  readonly state: { isAllowed: boolean; isDeleted: boolean; handedOut: number };
}

/** A Nextcloud server, whose poll address and login page may be elsewhere. */
async function startCloud(elsewhere?: { readonly poll?: string; readonly login?: string }): Promise<Cloud> {
  const state = { isAllowed: false, isDeleted: false, handedOut: 0 };
  const withPassword = (document: unknown) => (request: Received, response: ServerResponse) => {
    const isValid = request.authorization === basic(NAME, APP_PASSWORD).Authorization && !state.isDeleted;
    return isValid ? document : void response.writeHead(401).end('{"message":"Current user is not logged in"}');
  };
  const cloud = await startOther(
    {
      "/apps/gpoddersync/subscriptions": withPassword({ add: [FEED], remove: [], timestamp: 1_800_000_000 }),
      "/apps/gpoddersync/episode_action": withPassword({ actions: [play(1)], timestamp: 1_800_000_000 }),
      "POST /login/v2": () => ({
        poll: { token: "poll token&1", endpoint: `${elsewhere?.poll ?? cloud.url}/login/v2/poll` },
        login: `${elsewhere?.login ?? cloud.url}/login/v2/flow/abc`,
      }),
      "POST /login/v2/poll": ({ body }: Received, response: ServerResponse) => {
        if (new URLSearchParams(body).get("token") !== "poll token&1") return void response.writeHead(400).end();
        if (!state.isAllowed || state.handedOut > 0) return void response.writeHead(404).end("[]");
        state.handedOut += 1;
        return { server: "https://elsewhere.example", loginName: NAME, appPassword: APP_PASSWORD };
      },
      "DELETE /ocs/v2.php/core/apppassword": ({ authorization }: Received, response: ServerResponse) => {
        if (authorization !== basic(NAME, APP_PASSWORD).Authorization) return void response.writeHead(401).end();
        state.isDeleted = true;
        return {};
      },
    },
    true,
  );
  return { ...cloud, state, allow: () => void Object.assign(state, { isAllowed: true }) };
}

const loginOf = async (server: Parameters<typeof startLogin>[0], url: string) => {
  const { status: code, json, text } = await startLogin(server, url);
  assert.equal(code, 201, text);
  return json.data.attributes as { login_url: string; login: string; expires_at: string };
};
const COUNTS = {
  subscriptions: { found: 1, added: 1, already_subscribed: 0, refused: 0 },
  episode_actions: { found: 1, added: 1, not_newer: 0, refused: 0 },
};

test("account import login: allowed while the import waits → imported, and the app password is deleted", async () => {
  const [cloud, server] = [await startCloud(), await startNew()];
  const { login_url, login, expires_at } = await loginOf(server, cloud.url);
  assert.equal(login_url, `${cloud.url}/login/v2/flow/abc`);
  assert.equal(Date.parse(expires_at), server.now().getTime() + LOGIN_MS);
  for (const secret of ["poll", "127.0.0.1"]) assert.ok(!Buffer.from(login, "base64url").includes(secret));
  setTimeout(cloud.allow, 500);
  const { status: code, events } = await followImport(server, { url: cloud.url, login });
  assert.equal(code, 200);
  assert.deepEqual(
    [...new Set(events.map(({ event, data }) => data.stage ?? event))],
    ["waiting", "signing-in", "subscriptions", "episode-actions", "writing", "result"],
  );
  const { attributes } = events.at(-1)?.data.data ?? {};
  assert.deepEqual(attributes, { url: cloud.url, kind: "nextcloud", dry_run: false, ...COUNTS });
  assert.deepEqual(cloud.state, { isAllowed: true, isDeleted: true, handedOut: 1 });
  // Once used, it is worth nothing: Nextcloud knows neither the token nor the password any more.
  server.wait(LOGIN_MS);
  assert.equal(outcomeOf(await importAccount(server, { url: cloud.url, login })), "import-login-expired");
  for (const secret of [APP_PASSWORD, "poll token", login]) assert.ok(!server.log().includes(secret));
});

test("account import login: dry run → a new login for the import, which needs no one to wait for", async () => {
  const [cloud, server] = [await startCloud(), await startNew()];
  const { login } = await loginOf(server, `${cloud.url}/`);
  cloud.allow();
  const preview = await importAccount(server, { url: cloud.url, login }, "?dryRun=true");
  const { login: next, ...attributes } = preview.json.data.attributes;
  assert.deepEqual(attributes, { url: cloud.url, kind: "nextcloud", dry_run: true, ...COUNTS });
  assert.deepEqual([typeof next, cloud.state.isDeleted], ["string", false]);
  assert.notEqual(next, login);
  assert.ok(!Buffer.from(next, "base64url").includes(APP_PASSWORD));
  const again = await importAccount(server, { url: cloud.url, login: next }, "?dryRun=true");
  server.wait(LOGIN_MS - 1_000);
  const done = await importAccount(server, { url: cloud.url, login: again.json.data.attributes.login });
  assert.deepEqual(done.json.data.attributes, { url: cloud.url, kind: "nextcloud", dry_run: false, ...COUNTS });
  assert.deepEqual(cloud.state, { isAllowed: true, isDeleted: true, handedOut: 1 });
  // What the first dry run returned is worth nothing now.
  assert.equal(
    outcomeOf(await importAccount(server, { url: cloud.url, login: again.json.data.attributes.login })),
    "import-login-expired",
  );
});

test("account import login: forged, expired, of another account, origin or server → import-login-expired", async () => {
  const [cloud, server] = [await startCloud(), await startNew()];
  const { login } = await loginOf(server, cloud.url);
  const [id = "", code = ""] = login.split("~");
  const flipped = code.startsWith("A") ? `B${code.slice(1)}` : `A${code.slice(1)}`;
  const refused = async (as: Parameters<typeof importAccount>[0], url: string, text: string, what: string) => {
    const response = await importAccount(as, { url, login: text });
    assert.deepEqual([response.status, outcomeOf(response)], [422, "import-login-expired"], what);
    assert.match(detailOf(response), /Start it again/);
  };
  for (const forged of ["", "x", id, `${id}~`, `${id}~${flipped}`, `${login}A`, `${crypto.randomUUID()}~${code}`])
    await refused(server, cloud.url, forged, `forged: ${forged.slice(0, 50)}`);
  await refused(await server.asUser(), cloud.url, login, "another account");
  await refused(server, cloud.url.replace("127.0.0.1", "localhost"), login, "another origin");
  await refused(await startNew(), cloud.url, login, "another server");
  server.wait(LOGIN_MS);
  await refused(server, cloud.url, login, "expired");
  assert.deepEqual(
    cloud.requests.filter(({ url }) => url.includes("poll")),
    [],
  );
});

test("account import login: poll address or login page at another host → refused, and never asked", async () => {
  const server = await startNew();
  const other = await startOther({ "*": status(200) });
  for (const elsewhere of [{ poll: other.url.replace("127.0.0.1", "localhost") }, { login: "https://evil.example" }]) {
    const cloud = await startCloud(elsewhere);
    const response = await startLogin(server, cloud.url);
    assert.equal(outcomeOf(response), "import-server-failed");
    assert.match(detailOf(response), elsewhere.login === undefined ? /localhost:\d+/ : /evil\.example/);
  }
  // Behind a proxy, a server may not know its own scheme and port.
  const cloud = await startCloud({ poll: "https://127.0.0.1", login: "https://127.0.0.1:8443" });
  const { login, login_url } = await loginOf(server, cloud.url);
  assert.equal(login_url, `${cloud.url}/login/v2/flow/abc`);
  cloud.allow();
  assert.equal((await importAccount(server, { url: cloud.url, login })).status, 200);
  assert.deepEqual(other.requests, []);
});

test("account import login: an import that fails, or whose client disconnects → the app password is deleted", async () => {
  const server = await startNew();
  const broken = await startCloud();
  broken.paths["/apps/gpoddersync/episode_action"] = status(500);
  const { login } = await loginOf(server, broken.url);
  broken.allow();
  const response = await importAccount(server, { url: broken.url, login }, "?dryRun=true");
  assert.equal(outcomeOf(response), "import-server-failed");
  assert.ok(broken.state.isDeleted);

  const slow = await startCloud();
  const arrived = Promise.withResolvers<void>();
  const deleted = Promise.withResolvers<void>();
  slow.paths["/apps/gpoddersync/episode_action"] = () => arrived.resolve();
  slow.paths["DELETE /ocs/v2.php/core/apppassword"] = (_: Received, answer: ServerResponse) => {
    deleted.resolve();
    answer.end("{}");
  };
  const { login: second } = await loginOf(server, slow.url);
  slow.allow();
  const following = followImport(server, { url: slow.url, login: second }, "", (stream) => {
    void arrived.promise.then(() => stream.destroy());
  });
  await Promise.all([following, deleted.promise]);
});

test("account import login: not allowed within the wait → import-login-pending; denied → import-sign-in-failed", async () => {
  const server = await startNew({ waitMs: 5_000 });
  const cloud = await startCloud();
  const { login } = await loginOf(server, cloud.url);
  const started = performance.now();
  const pending = await importAccount(server, { url: cloud.url, login });
  assert.deepEqual([pending.status, outcomeOf(pending)], [409, "import-login-pending"]);
  assert.ok(performance.now() - started < 6_000);
  cloud.allow();
  assert.equal((await importAccount(server, { url: cloud.url, login })).status, 200);
  const denying = await startCloud();
  denying.paths["POST /login/v2/poll"] = status(403);
  const { login: denied } = await loginOf(server, denying.url);
  assert.equal(outcomeOf(await importAccount(server, { url: denying.url, login: denied })), "import-sign-in-failed");
});

test("account import login: 100 wait for a person → the next gets 503, and other imports are not affected", async () => {
  const [cloud, server] = [await startCloud(), await startNew()];
  const streams: { destroy: () => void }[] = [];
  const waiting: Promise<unknown>[] = [];
  for (let count = 0; count < 100; count += 1) {
    const user = await server.asUser();
    const { login } = await loginOf(user, cloud.url);
    const started = Promise.withResolvers<void>();
    const onStart = (stream: (typeof streams)[number]) => {
      streams.push(stream);
      started.resolve();
    };
    waiting.push(followImport(user, { url: cloud.url, login }, "", onStart));
    await started.promise;
  }
  const { login } = await loginOf(server, cloud.url);
  const next = await importAccount(server, { url: cloud.url, login });
  assert.deepEqual([next.status, outcomeOf(next)], [503, "too-many-imports"]);
  const other = await startOther(gpodderPaths());
  assert.equal((await importAccount(server, { url: other.url, ...ANN })).status, 200);
  for (const stream of streams) stream.destroy();
  await Promise.all(waiting);
});

test("account import login: from another Earmark → allowed there, imported, and no token remains", async () => {
  const [old, server] = [await start(), await startNew()];
  const ann = await newUser(old);
  const headers = { Cookie: ann.Cookie };
  const app = basic(ann.name, ann.Authorization.slice("Bearer ".length));
  await old.call("POST", `/api/2/subscriptions/${ann.name}/phone.json`, {
    headers: app,
    body: JSON.stringify({ add: [FEED], remove: [] }),
  });
  await old.call("POST", `/api/2/episodes/${ann.name}.json`, { headers: app, body: JSON.stringify([play(1)]) });
  const { login, login_url } = await loginOf(server, old.url);
  const id = new URLSearchParams(new URL(login_url).hash.slice(1)).get("app-login");
  const allowed = await old.call("POST", `/v1/app-logins/${id}`, {
    headers: { ...JSONAPI, ...headers },
    body: documentOf("app-login", { label: "Import" }),
  });
  assert.equal(allowed.status, 201);
  const tokens = async () => (await old.call("GET", "/v1/tokens", { headers })).json.meta.total;
  assert.equal(await tokens(), 2);
  const { json } = await importAccount(server, { url: old.url, login });
  assert.deepEqual(json.data.attributes, { url: old.url, kind: "nextcloud", dry_run: false, ...COUNTS });
  assert.equal(await tokens(), 1);
});

test("account import login: no Nextcloud there, or an invalid document → its code", async () => {
  const server = await startNew();
  const other = await startOther({ "*": "<!doctype html>" });
  assert.equal(outcomeOf(await startLogin(server, other.url)), "import-no-sync-server");
  assert.equal(outcomeOf(await startLogin(server, "ftp://a.example")), "import-url-invalid");
  assert.equal(outcomeOf(await startLogin(server, 5)), "invalid-attribute");
  assert.equal(outcomeOf(await startLogin(server, undefined)), "attribute-missing");
  const cloud = await startCloud();
  for (const document of [
    "<html>",
    [],
    { poll: {} },
    { poll: { token: "", endpoint: cloud.url }, login: cloud.url },
    { poll: { token: "x", endpoint: "ftp://x" }, login: cloud.url },
  ]) {
    cloud.paths["POST /login/v2"] = document;
    assert.equal(outcomeOf(await startLogin(server, cloud.url)), "import-server-failed");
  }
  const { login } = await loginOf(server, (await startCloud()).url);
  const response = await importAccount(server, { url: cloud.url, login, kind: "gpodder" });
  assert.equal(response.json.errors[0].source.pointer, "/data/attributes/kind");
});
