import assert from "node:assert/strict";
import { test } from "node:test";
import { fromNewNetwork, newUser, start } from "../../../test/support/http-accounts.ts";
import {
  AUDIENCE,
  DISCOVERY,
  json,
  newKey,
  type Pair,
  type Respond,
  startIssuer,
} from "../../../test/support/oidc-issuer.ts";

const CLIENT_ID = "earmark";

/** A server, and a provider whose responses can be chosen. */
async function startBoth(metadata: object = {}) {
  const issuer = await startIssuer();
  const { url } = issuer;
  const endpoints = { authorization_endpoint: `${url}/auth`, token_endpoint: `${url}/token`, jwks_uri: `${url}/keys` };
  const algorithms = { id_token_signing_alg_values_supported: ["ES256"] };
  issuer.responses[DISCOVERY] = jsonResponse({ issuer: url, ...endpoints, ...algorithms, ...metadata });
  issuer.responses["/keys"] = jsonResponse({ keys: [issuer.key.jwk] });
  const server = await start({
    EARMARK_OIDC_ISSUER: url,
    EARMARK_OIDC_CLIENT_ID: CLIENT_ID,
    EARMARK_OIDC_AUDIENCE: AUDIENCE,
    EARMARK_OIDC_SIGN_UP: "true",
  });

  /** Starts a login. Its provider authenticates the user that `respond` names. Returns the result and the session. */
  const logIn = async (
    respond: (nonce: string) => Promise<Respond> | Respond,
    Cookie = "",
    path = "/v1/oidc-logins",
  ) => {
    const begun = await server.call("POST", path, { headers: { ...fromNewNetwork(), Cookie } });
    if (begun.status !== 200) return { code: String(begun.json.errors[0].code), cookies: [] };
    const { searchParams } = new URL(begun.json.meta.authorization_url);
    issuer.responses["/token"] = await respond(searchParams.get("nonce") ?? "");
    const query = new URLSearchParams({ code: "any", state: searchParams.get("state") ?? "", iss: url });
    const own = String(begun.headers["set-cookie"]).split(";")[0] ?? "";
    const headers = { Cookie: [Cookie, own].filter((each) => each !== "").join("; "), ...fromNewNetwork() };
    const done = await server.call("GET", `/oidc/callback?${query}`, { headers });
    const [, code = ""] = /#sign-in-failed=([a-z-]+)$/.exec(String(done.headers["location"])) ?? [];
    const cookies = [done.headers["set-cookie"] ?? []].flat().filter((each) => !each.includes("Max-Age=0"));
    return { code, cookies };
  };
  /** An ID token with these changes to its claims and header. */
  const idToken =
    (changes: Record<string, unknown> = {}, key: Pair = issuer.key, header = {}) =>
    async (nonce: string) =>
      tokens({ id_token: await issuer.sign(key, { aud: CLIENT_ID, nonce, ...changes }, header) });
  return { issuer, server, logIn, idToken };
}

const jsonResponse =
  (document: unknown): Respond =>
  (response) => {
    response.setHeader("content-type", "application/json");
    json(document)(response);
  };
const tokens = (more: object) => jsonResponse({ access_token: "canary-access", token_type: "bearer", ...more });

const both = await startBoth();
const { issuer, server, logIn, idToken } = both;

test("login: valid ID token → signed in", async () => {
  const { code, cookies } = await logIn(idToken());
  assert.deepEqual([code, cookies.length], ["", 1]);
});

const stranger = await newKey();
const INVALID: readonly (readonly [string, Parameters<typeof idToken>])[] = [
  ["of another login", [{ nonce: "another" }]],
  ["without a nonce", [{ nonce: undefined }]],
  ["for another client", [{ aud: "another" }]],
  ["for another client as well", [{ aud: [CLIENT_ID, "another"], azp: "another" }]],
  ["of another issuer", [{ iss: "https://other.example" }]],
  ["that has expired", [{ iat: 1, exp: 2 }]],
  ["without an expiry", [{ exp: undefined }]],
  ["without a subject", [{ sub: undefined }]],
  ["with an empty subject", [{ sub: "" }]],
  ["with a subject that is too long", [{ sub: "x".repeat(256) }]],
  ["with a control character in its subject", [{ sub: "ali\u0000ce" }]],
  ["signed with a foreign key", [{}, stranger, { kid: issuer.key.jwk.kid }]],
  ["signed with an unknown key", [{}, stranger]],
];
for (const [what, changes] of INVALID) {
  test(`login: ID token ${what} → rejected`, async () => {
    const { code, cookies } = await logIn(idToken(...changes));
    assert.ok(["oidc-failed", "identity-provider-unavailable"].includes(code), code);
    assert.deepEqual(cookies, []);
  });
}

test("login: unsigned ID token, or none → rejected", async () => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: issuer.url, aud: CLIENT_ID, sub: "alice", iat: 1, exp: 9e9 };
  for (const respond of [
    (nonce: string) => tokens({ id_token: `${part({ alg: "none" })}.${part({ ...claims, nonce })}.` }),
    () => tokens({ id_token: "x.y.z" }),
    () => tokens({}),
  ]) {
    const { code, cookies } = await logIn(respond);
    assert.notEqual(code, "");
    assert.deepEqual(cookies, []);
  }
});

const HOSTILE: readonly (readonly [string, Respond])[] = [
  ["500", (response) => void response.writeHead(500).end("canary")],
  ["HTML", (response) => void response.writeHead(200, { "content-type": "text/html" }).end("<p>canary</p>")],
  ["a redirect", (response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end()],
  ["broken JSON", (response) => void response.writeHead(200, { "content-type": "application/json" }).end("{")],
  [
    "deeply nested JSON",
    (response) => void response.writeHead(200, { "content-type": "application/json" }).end("[".repeat(9e4)),
  ],
  ["a megabyte", jsonResponse({ id_token: "x".repeat(1e6) })],
  [
    "an endless body",
    (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const more = () => {
        while (!response.destroyed && response.write(" ".repeat(65_536)));
      };
      response.on("drain", more);
      more();
    },
  ],
  ["a closed connection", (response) => void response.destroy()],
];
for (const [what, respond] of HOSTILE) {
  test(`login: provider returns ${what} → unavailable, and nothing of it is shown or logged`, async () => {
    const { code, cookies } = await logIn(() => respond);
    assert.equal(code, "identity-provider-unavailable");
    assert.deepEqual(cookies, []);
    assert.doesNotMatch(server.log(), /canary/);
  });
}

test("login: provider that accepts a request and never responds → unavailable", { timeout: 30_000 }, async () => {
  const { code } = await logIn(() => () => undefined);
  assert.equal(code, "identity-provider-unavailable");
});

test("login: code that the provider rejects → failed; a wrong client secret → unavailable", async () => {
  const refuse = (error: string) => () => (response: Parameters<Respond>[0]) =>
    void response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }));
  assert.equal((await logIn(refuse("invalid_grant"))).code, "oidc-failed");
  assert.equal((await logIn(refuse("invalid_client"))).code, "identity-provider-unavailable");
  assert.match(server.log(), /"reason":"[^"]*invalid_client[^"]*","msg":"identity provider unavailable"/);
});

test("login: provider with invalid metadata, or down → unavailable", async () => {
  for (const metadata of [{ issuer: "https://other.example" }, { authorization_endpoint: "javascript:alert(1)" }]) {
    const { code } = await (await startBoth(metadata)).logIn(() => tokens({}));
    assert.equal(code, "identity-provider-unavailable", JSON.stringify(metadata));
  }
  const down = await startBoth();
  await down.issuer.stop();
  assert.equal((await down.logIn(() => tokens({}))).code, "identity-provider-unavailable");
});

test("JWT: of a linked user → the linked account, until it is unlinked", async () => {
  const { Cookie } = await newUser(server);
  assert.equal(
    (await logIn(idToken({ sub: "linked", preferred_username: "Li\u202enked" }), Cookie, "/v1/identities")).code,
    "",
  );
  const own = await server.call("GET", "/v1/me", { headers: { Cookie } });
  const bearer = async () => ({ Authorization: `Bearer ${await issuer.sign(issuer.key, { sub: "linked" })}` });
  const linked = await server.call("GET", "/v1/me", { headers: await bearer() });
  assert.equal(linked.json.data.id, own.json.data.id);
  const { json: list } = await server.call("GET", "/v1/identities", { headers: { Cookie } });
  assert.equal(list.data[0].attributes.label, "Linked", "without invisible characters");
  assert.equal((await server.call("DELETE", list.data[0].links.self, { headers: { Cookie } })).status, 204);
  const after = await server.call("GET", "/v1/me", { headers: await bearer() });
  assert.notEqual(after.json.data.id, own.json.data.id);
});
