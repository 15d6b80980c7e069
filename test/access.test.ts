import assert from "node:assert/strict";
import { test } from "node:test";
import { Accounts } from "../src/accounts/accounts.ts";
import {
  bearer,
  bodyOf,
  cookie,
  expectedStatus,
  type Headers,
  headersFor,
  METRICS_TOKEN,
  one,
  sendTo,
  startWithAccounts,
  targetsOf,
  WAYS,
  wayOf,
  withoutApps,
} from "./support/access.ts";
import { AccessMatrix } from "./support/access-matrix.ts";
import { document, fromElsewhere, type SignedIn, signUp } from "./support/accounts.ts";
import { startDiscovery } from "./support/oidc-issuer.ts";
import { ATOMIC, add, newId, PLAIN, startServer } from "./support/server.ts";

const clocked = await startWithAccounts({
  EARMARK_OIDC_ISSUER: await startDiscovery(),
  EARMARK_OIDC_CLIENT_ID: "earmark",
});
const { server, clock } = clocked;
const { port } = server;
const accounts = new Accounts(server.store.accounts, { signUp: false });
// Before the first test is registered: otherwise the server would be closed after it.
const matrix = await AccessMatrix.open(clocked, ["ann", "bob"]);

test("access: every route → covered by these tests with its access class", () => {
  const found = withoutApps(server.server.routes).map(({ method, path, access }) => `${method} ${path}: ${access}`);
  const known = Object.entries(WAYS).flatMap(([path, ways]) =>
    Object.entries(ways).map(([method, { access }]) => `${method} ${path}: ${access}`),
  );
  assert.deepEqual(found.toSorted(), known.toSorted());
});

/** Every route as ann, with her credentials and with bob's. reliability/access.ts tries more ids, also as bob. */
const tries = targetsOf(server.server.routes).map((target) => ({
  ...target,
  access: wayOf(target.path, target.method).access,
}));

test("access: every route, with every credential", async (t) => {
  for (const { method, path, access } of tries) {
    await t.test(`access: ${method} ${path} → allowed with access "${access}", to the user's own data only`, () =>
      matrix.tryWay(path, method, "ann", { isQuick: true }),
    );
  }

  await t.test("access: every route but those for administrators → succeeded at least once", () => {
    const open = tries.filter(({ access }) => access !== "admin");
    const wanted = open.map(({ method, path }) => `ann ${method} ${path}`);
    assert.deepEqual([...matrix.successes.keys()].toSorted(), wanted.toSorted());
    const done = [...matrix.successes.values()].reduce((sum, count) => sum + count, 0);
    t.diagnostic(`${matrix.requests} requests, ${done} of them successful`);
    assert.ok(matrix.requests > 2_000, `${matrix.requests} requests`);
  });

  await t.test("access: invalid or missing credentials → identical responses on every route", () => {
    const kinds = [PLAIN, ATOMIC].flatMap((media) =>
      ["no", "wrong"].flatMap((which) =>
        (media === PLAIN ? ["with", "without"] : ["with"]).map(
          (body) => `${media}, ${body} body, ${which} credentials`,
        ),
      ),
    );
    assert.deepEqual([...matrix.refusals.keys()].toSorted(), kinds.toSorted());
    for (const [kind, responses] of matrix.refusals) {
      assert.equal(responses.size, 1, `${kind}:\n${[...responses].join("\n---\n")}`);
      const [bytes = ""] = responses;
      const media = kind.startsWith(ATOMIC) ? ATOMIC : PLAIN;
      assert.ok(bytes.toLowerCase().includes(`\r\ncontent-type: ${media}\r\n`), bytes);
      const challenge = `Bearer realm="Earmark"${kind.includes("wrong") ? ', error="invalid_token"' : ""}`;
      assert.ok(bytes.includes(`\r\nwww-authenticate: ${challenge}\r\n`), bytes);
      if (kind.includes("without body")) continue;
      const document = JSON.parse(bytes.slice(bytes.indexOf("\r\n\r\n")));
      assert.deepEqual(Object.keys(document), ["jsonapi", "errors"]);
      assert.equal(document.errors.length, 1);
      assert.equal(document.errors[0].status, "401");
      assert.deepEqual(document.jsonapi.ext, media === ATOMIC ? ["https://jsonapi.org/ext/atomic"] : undefined);
    }
  });
});

test("access: unauthorized and otherwise invalid request → 401 or 403 first", async () => {
  const wrong: readonly { readonly headers?: Headers; readonly body?: string; readonly query?: string }[] = [
    { body: "not JSON" },
    { body: "" },
    { body: `{"data":{"__proto__":1}}` },
    { body: `{"data":null}` },
    { headers: { "Content-Type": "text/plain" }, body: "{}" },
    { headers: { Accept: "text/html" } },
    { headers: { "Content-Encoding": "gzip" }, body: "{}" },
    { query: "?nonsense=1" },
    { query: "?page[size]=0" },
    { query: "?page[size]=1&page[size]=1" },
    { query: "?%ff" },
  ];
  let tried = 0;
  for (const { method, path: url } of targetsOf(server.server.routes)) {
    const way = wayOf(url, method);
    if (way.access === "open") continue;
    const refused = matrix
      .credentialsOf("ann")
      .filter((one) => [401, 403].includes(expectedStatus(way, one, undefined)));
    for (const credential of refused.filter(({ name }) => /^(none|a read token)$/.test(name))) {
      const responses = new Set<string>();
      const [{ path } = assert.fail()] = await matrix.placesOf(url, "ann");
      for (const { headers = {}, body, query = "" } of [{}, ...wrong]) {
        const all = { ...headersFor(url, way, { name: "ann" }), ...headers, ...credential.headers };
        const response = await matrix.send(method, path + query, all, body);
        assert.equal(response.status, expectedStatus(way, credential, undefined), `${method} ${path}${query}`);
        responses.add(response.bytes);
        tried += 1;
      }
      assert.equal(responses.size, 1, `${credential.name}: ${method} ${url}\n${[...responses].join("\n---\n")}`);
    }
  }
  assert.ok(tried > 500, String(tried));
});

test("access: same id and feed in two lists → independent, nothing shared", async () => {
  const [dan, eve] = [
    await signUp(port, "dan", "the password of dan", fromElsewhere()),
    await signUp(port, "eve", "the password of eve", fromElsewhere()),
  ];
  const [id, feed] = [newId(), "https://feeds.example/the-same"];
  const look = async ({ cookie: Cookie }: SignedIn) => {
    const [me, list] = [
      await server.call("GET", "/v1/me", { headers: { Cookie } }),
      await server.call("GET", "/v1/subscriptions", { headers: { Cookie } }),
    ];
    assert.equal(me.json.meta.counts.subscriptions, list.json.meta.total);
    return { total: list.json.meta.total as number, text: list.text };
  };
  const post = (who: SignedIn, ofId: string, feedUrl: string) =>
    matrix.send(
      "POST",
      "/v1/subscriptions",
      { Cookie: who.cookie, "Content-Type": PLAIN },
      one("subscription", { id: ofId, attributes: { feed_url: feedUrl } }),
    );
  const operate = async (who: SignedIn, ofId: string, feedUrl: string): Promise<string> => {
    const response = await server.call("POST", "/v1/operations", {
      headers: { Cookie: who.cookie, "Content-Type": ATOMIC },
      body: JSON.stringify({ "atomic:operations": [add(ofId, feedUrl)] }),
    });
    const [result] = response.json["atomic:results"];
    return result.data === undefined ? result.errors[0].status : "added";
  };

  const first = await post(dan, id, feed);
  assert.equal(first.status, 201);
  assert.equal((await look(eve)).total, 0);
  // Nothing tells that somebody else has them already. A state belongs to one account.
  const second = await post(eve, id, feed);
  const withoutStates = (bytes: string) => bytes.replaceAll(/"(state\w*)":"[^"]*"/g, '"$1":""');
  assert.equal(withoutStates(second.bytes), withoutStates(first.bytes));
  for (const who of [dan, eve]) {
    assert.equal((await post(who, id, "https://feeds.example/another")).status, 409);
    assert.equal((await post(who, newId(), feed)).status, 409);
    assert.equal(await operate(who, id, "https://feeds.example/another"), "409");
    assert.equal(await operate(who, newId(), feed), "409");
    assert.equal((await look(who)).total, 1);
  }

  const before = await look(eve);
  const more = newId();
  assert.equal(await operate(dan, more, "https://feeds.example/more"), "added");
  assert.equal((await matrix.send("DELETE", `/v1/subscriptions/${id}`, { Cookie: dan.cookie })).status, 204);
  assert.deepEqual(await look(eve), before);
  assert.equal(await operate(eve, more, "https://feeds.example/more"), "added");
  assert.deepEqual([(await look(dan)).total, (await look(eve)).total], [1, 2]);
  // When an account goes, only its own list goes with it.
  assert.equal((await matrix.send("DELETE", "/v1/me", { Cookie: dan.cookie })).status, 204);
  assert.equal((await look(eve)).total, 2);
});

test("access: secret used as another kind of credential → 401", async () => {
  const { session, writeToken } = matrix.personOf("ann");
  const secrets = { session, token: writeToken, invitation: matrix.invitation } as const;
  const kinds = ["session", "token", "invitation", "setup"] as const;
  for (const [made, secret] of Object.entries(secrets)) {
    for (const kind of kinds)
      assert.equal((await accounts.verifyCredential(secret, kind, clock.now))?.kind, made === kind ? kind : undefined);
  }
  for (const wrong of [session, writeToken, `emi_${session}`, METRICS_TOKEN]) {
    const body = document("account", { name: "mallory", password: "the password of mallory", invitation: wrong });
    const headers = { "Content-Type": PLAIN, ...fromElsewhere() };
    assert.equal((await matrix.send("POST", "/v1/accounts", headers, body)).status, 403);
  }
});

test("access: server without accounts → no account routes, every request is the local user", async () => {
  const local = await startServer({ EARMARK_METRICS: "true" });
  const here = new Set(withoutApps(local.server.routes).map(({ path }) => path));
  const missing = Object.keys(WAYS).filter((url) => !here.has(url));
  assert.deepEqual(missing, [
    "/v1/accounts",
    "/v1/invitation-checks",
    "/v1/sessions",
    "/v1/sessions/:id",
    "/v1/tokens",
    "/v1/tokens/:id",
    "/v1/passkeys",
    "/v1/passkeys/:id",
    "/v1/passkey-options/sign-in",
    "/v1/passkey-options/registration",
    "/v1/second-factor",
    "/v1/second-factor/enrollment",
    "/v1/second-factor/recovery-codes",
    "/v1/identities",
    "/v1/identities/:id",
    "/v1/oidc-logins",
    "/oidc/callback",
    "/v1/app-logins/:token",
    "/v1/password-resets",
    "/v1/accounts/:account",
    "/v1/accounts/:account/second-factor",
    "/v1/accounts/:account/reset-links",
    "/v1/invitations",
    "/v1/invitations/:id",
    "/v1/audit-log",
    "/join",
    "/reset-password",
  ]);
  assert.deepEqual(
    [...here].filter((url) => WAYS[url] === undefined),
    [],
  );
  for (const url of missing) {
    for (const [method, way] of Object.entries(WAYS[url] ?? {})) {
      const path = url.replace(/:(id|token|account)/, newId());
      const body = await way.body?.(matrix.personOf("ann"), path);
      const response = await sendTo(local.port, method, path, headersFor(url, way, { name: "ann" }), body);
      assert.equal(response.status, 404, `${method} ${path}`);
      assert.equal(JSON.parse(bodyOf(response)).errors[0].code, "unknown-path");
    }
  }
  const { status, headers } = await local.call("DELETE", "/v1/me");
  assert.deepEqual([status, headers["allow"]], [405, "GET, HEAD, PATCH"]);
  for (const headers of [{}, bearer("garbage"), cookie("garbage")]) {
    const { status, json } = await local.call("GET", "/v1/me", { headers });
    assert.equal(status, 200);
    const nobody = { name: "local", issuer: null, role: null, created_at: null, follow_moves: true };
    assert.deepEqual(json.data.attributes, nobody);
    assert.deepEqual(json.meta.counts, { subscriptions: 0, tokens: 0, sessions: 0 });
    assert.equal(json.meta.credential, null);
    assert.equal((await local.call("HEAD", "/v1/me", { headers })).status, 200);
  }
});
