import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { base64url, CompactEncrypt, decodeJwt, exportSPKI, generateKeyPair, SignJWT } from "jose";
import {
  AUDIENCE,
  at,
  DISCOVERY,
  json,
  later,
  newKey,
  startIssuer,
  verifierFor,
} from "../../../test/support/oidc-issuer.ts";
import { Browser, CLIENT, listenForProvider } from "../../../test/support/oidc-provider.ts";

const part = (value: unknown) => base64url.encode(JSON.stringify(value));

/** Starts a certified third-party provider that issues JWTs as access tokens. */
async function startProvider() {
  const { url, configure } = await listenForProvider();
  const back = `${url}/back`;
  await configure([back], {
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, audience: string) => ({
          scope: "subscriptions",
          audience,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
    pkce: { required: () => false },
  });
  const tokens = async (grant: Record<string, string>) => {
    const basic = Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString("base64");
    const headers = { authorization: `Basic ${basic}` };
    const response = await fetch(`${url}/token`, { method: "POST", body: new URLSearchParams(grant), headers });
    const body = await response.text();
    assert.equal(response.status, 200, body);
    return JSON.parse(body) as { access_token: string; id_token: string };
  };
  const logIn = async (login: string, resource: string) => {
    const query = { client_id: CLIENT.id, response_type: "code", redirect_uri: back, resource };
    const start = `${url}/auth?${new URLSearchParams({ ...query, scope: "openid subscriptions" })}`;
    const code = new URL(await new Browser().logIn(start, back, login)).searchParams.get("code");
    assert.ok(code);
    return tokens({ grant_type: "authorization_code", code, redirect_uri: back, resource });
  };
  return { url, tokens, logIn };
}

const provider = await startProvider();

test("OIDC: access token of a real provider for an app → accepted", async () => {
  const grant = { grant_type: "client_credentials", scope: "subscriptions" };
  const { access_token: jwt } = await provider.tokens({ ...grant, resource: AUDIENCE });
  const { verify, reported } = verifierFor(provider.url);
  const now = new Date();
  const identity = await verify(jwt, now);
  assert.equal(identity?.subject, "app");
  assert.equal(identity.issuedAt.getTime(), (decodeJwt(jwt).iat ?? 0) * 1_000);
  assert.equal(await verify(jwt, new Date(now.getTime() + 24 * 3_600_000)), undefined);
  const { access_token: other } = await provider.tokens({ ...grant, resource: "https://other.example/" });
  assert.equal(await verify(other, now), undefined);
  assert.deepEqual(reported, []);
});

test("OIDC: tokens of a user of a real provider → accepted for their own audience only", async () => {
  const { access_token: access, id_token: id } = await provider.logIn("alice", AUDIENCE);
  const now = new Date();
  const api = verifierFor(provider.url);
  assert.equal((await api.verify(access, now))?.subject, "alice");
  assert.equal(await api.verify(id, now), undefined);
  const app = verifierFor(provider.url, { audience: "app" });
  assert.equal((await app.verify(id, now))?.subject, "alice");
  assert.equal(await app.verify(access, now), undefined);
});

const issuer = await startIssuer();
const { key, sign } = issuer;
const { verify, reported } = verifierFor(issuer.url);

suite("algorithms", { concurrency: true }, () => {
  for (const alg of ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]) {
    test(`OIDC: JWT signed with ${alg} → accepted`, async () => {
      const key = await newKey(alg);
      const issuer = await startIssuer();
      issuer.responses["/keys"] = json({ keys: [issuer.key.jwk, key.jwk] });
      const { verify } = verifierFor(issuer.url);
      const expected = { subject: "alice", issuedAt: new Date(at(0) * 1_000) };
      assert.deepEqual(await verify(await issuer.sign(key)), expected);
    });
  }
});

test("OIDC: issuer with a trailing slash → found", async () => {
  const issuer = await startIssuer();
  const name = `${issuer.url}/`;
  issuer.responses[DISCOVERY] = json({ issuer: name, jwks_uri: `${issuer.url}/keys` });
  const { verify } = verifierFor(name);
  assert.equal((await verify(await issuer.sign(issuer.key, { iss: name })))?.subject, "alice");
  assert.equal(await verify(await issuer.sign(issuer.key)), undefined);
});

test("OIDC: several audiences, or no key id with a single key → accepted", async () => {
  assert.ok(await verify(await sign(key, { aud: ["https://other.example/", AUDIENCE] })));
  assert.ok(await verify(await sign(key, {}, { kid: undefined })));
});

const INVALID_CLAIMS: readonly (readonly [string, Record<string, unknown>])[] = [
  ["for another audience", { aud: "https://earmark.example" }],
  ["for other audiences", { aud: ["https://other.example/"] }],
  ["without an audience", { aud: undefined }],
  ["of another issuer", { iss: `${issuer.url}/` }],
  ["without an issuer", { iss: undefined }],
  ["that has expired", { exp: at(-60) }],
  ["that never expires", { exp: undefined }],
  ["whose expiry is not a number", { exp: String(at(600)) }],
  ["that is not valid yet", { nbf: at(60) }],
  ["without an issue time", { iat: undefined }],
  ["issued in the future", { iat: at(60) }],
  ["with an invalid issue time", { iat: -1e300 }],
  ["without a subject", { sub: undefined }],
  ["with an empty subject", { sub: "" }],
  ["with a subject that is not a string", { sub: 17 }],
  ["with a subject that is too long", { sub: "x".repeat(256) }],
  ["with a control character in its subject", { sub: "al\u0000ice" }],
  ["with a lone surrogate in its subject", { sub: "alice\ud800" }],
];
for (const [what, changes] of INVALID_CLAIMS) {
  test(`OIDC: JWT ${what} → rejected`, async () => assert.equal(await verify(await sign(key, changes)), undefined));
}

test("OIDC: subject of 255 characters, or in any script → accepted", async () => {
  for (const sub of ["x".repeat(255), "Åse 🎧"]) assert.equal((await verify(await sign(key, { sub })))?.subject, sub);
});

test("OIDC: clock skew of up to 30 seconds → accepted", async () => {
  const jwt = await sign(key, { nbf: at(0), exp: at(600) });
  assert.ok(await verify(jwt, later(625)));
  assert.equal(await verify(jwt, later(635)), undefined);
  assert.ok(await verify(jwt, later(-25)));
  assert.equal(await verify(jwt, later(-35)), undefined);
});

test("OIDC: JWT that is neither an access token nor an ID token → rejected", async () => {
  for (const typ of ["JWT", "jwt", "at+jwt", "application/at+jwt"])
    assert.ok(await verify(await sign(key, {}, { typ })));
  for (const typ of ["logout+jwt", "secevent+jwt", "dpop+jwt", ""]) {
    assert.equal(await verify(await sign(key, {}, { typ })), undefined, typ);
  }
});

test("OIDC: JWT changed after signing → rejected", async () => {
  const jwt = await sign(key);
  assert.ok(await verify(jwt));
  const [header = "", payload = "", signature = ""] = jwt.split(".");
  const flipped = base64url.decode(signature).map((byte, index) => (index === 5 ? byte ^ 1 : byte));
  const changed = [
    [header, part({ ...decodeJwt(jwt), sub: "bob" }), signature],
    [header, payload, base64url.encode(flipped)],
    [header, payload, signature.slice(0, -4)],
    [part({ alg: "ES256", kid: key.jwk.kid, typ: "JWT" }), payload, signature],
    [part({ alg: "ES384", kid: key.jwk.kid }), payload, signature],
  ];
  for (const parts of changed) assert.equal(await verify(parts.join(".")), undefined, parts.join("."));
});

test("OIDC: JWT without signature, or with a public key as secret → rejected", async () => {
  const payload = part(decodeJwt(await sign(key)));
  for (const alg of ["none", "None", "NONE"]) {
    const header = part({ alg, kid: key.jwk.kid });
    for (const signature of ["", "AAAA"]) assert.equal(await verify(`${header}.${payload}.${signature}`), undefined);
  }
  for (const secret of [await exportSPKI(key.publicKey), JSON.stringify(key.jwk), String(key.jwk.x)]) {
    for (const alg of ["HS256", "HS512"]) {
      const jwt = new SignJWT(decodeJwt(await sign(key))).setProtectedHeader({ alg, kid: String(key.jwk.kid) });
      assert.equal(await verify(await jwt.sign(Buffer.from(secret))), undefined);
    }
  }
});

test("OIDC: symmetric key at the provider → rejected", async () => {
  const issuer = await startIssuer();
  const secret = Buffer.from("a secret that is long enough to be one");
  const k = base64url.encode(secret);
  issuer.responses["/keys"] = json({ keys: [{ kty: "oct", kid: "1", alg: "HS256", k }] });
  const jwt = new SignJWT(decodeJwt(await issuer.sign(issuer.key))).setProtectedHeader({ alg: "HS256", kid: "1" });
  assert.equal(await verifierFor(issuer.url).verify(await jwt.sign(secret)), undefined);
  assert.deepEqual(issuer.requests, []);
});

test("OIDC: JWT signed with a foreign key → rejected, whatever key its header names", async () => {
  const stranger = await newKey();
  const { kid } = key.jwk;
  const trap = await startIssuer();
  trap.responses["/keys"] = json({ keys: [{ ...stranger.jwk, kid }] });
  for (const header of [
    { kid },
    { kid: undefined },
    { kid, jwk: stranger.jwk },
    { kid, jku: `${trap.url}/keys` },
    { kid: 5 },
  ]) {
    assert.equal(await verify(await sign(stranger, {}, header)), undefined);
  }
  assert.deepEqual(trap.requests, []);
});

test("OIDC: not a JWT, encrypted or too long → rejected without a request to the provider", async () => {
  const issuer = await startIssuer();
  const { verify } = verifierFor(issuer.url);
  const long = await issuer.sign(issuer.key, { padding: "x".repeat(9 * 1024) });
  const encrypted = await new CompactEncrypt(Buffer.from(await issuer.sign(issuer.key)))
    .setProtectedHeader({ alg: "RSA-OAEP", enc: "A128GCM" })
    .encrypt((await generateKeyPair("RSA-OAEP")).publicKey);
  const jwt = await issuer.sign(issuer.key);
  const texts = ["", "x", "a.b", "a.b.", "..", "a.b.c.d", "a.b.c", "e30.e30.AA", ` ${jwt}`, `${jwt}\n`, `${jwt}=`];
  for (const text of [...texts, long, encrypted]) assert.equal(await verify(text), undefined, text);
  assert.deepEqual(issuer.requests, []);
  assert.ok(await verify(jwt));
});

test("OIDC: invalid JWTs → not reported as errors of the provider", () => assert.deepEqual(reported, []));
