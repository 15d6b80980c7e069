import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect, promisify } from "node:util";
import {
  base64url,
  CompactEncrypt,
  decodeJwt,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  SignJWT,
} from "jose";
import { RequestFailure } from "../errors.ts";
import { createVerifier, type VerifierOptions } from "./oidc.ts";

const AUDIENCE = "https://earmark.example/";
const DISCOVERY = "/.well-known/openid-configuration";
const NOW = new Date();
/** In seconds from now, as JWTs count. */
const at = (seconds: number) => Math.floor(NOW.getTime() / 1_000) + seconds;
const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000);

type Pair = Awaited<ReturnType<typeof generateKeyPair>> & { readonly alg: string; readonly jwk: JWK };

async function newKey(alg = "ES256"): Promise<Pair> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...pair, alg, jwk: { ...(await exportJWK(pair.publicKey)), kid: randomUUID() } };
}

type Answer = (response: ServerResponse) => void;

const json =
  (document: unknown): Answer =>
  (response) =>
    void response.end(JSON.stringify(document));

/** An issuer that does as it is told: what it serves can be changed at any time, and it can go down and come up again. */
async function startIssuer() {
  const key = await newKey();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? "");
    response.setHeader("connection", "close");
    const answer = issuer.answers[request.url ?? ""];
    if (answer === undefined) response.writeHead(404).end();
    else answer(response);
  });
  const listen = async (port: number) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  after(stop);
  const claims = { iss: url, aud: AUDIENCE, sub: "alice", iat: at(0), exp: at(600) };
  const issuer = {
    url,
    key,
    requests,
    answers: {
      [DISCOVERY]: json({ issuer: url, jwks_uri: `${url}/keys` }),
      "/keys": json({ keys: [key.jwk] }),
    } as Record<string, Answer>,
    /** Undefined takes a claim or a part of the header away. */
    sign: (
      { alg, jwk, privateKey }: Pair,
      changes: Record<string, unknown> = {},
      header: Record<string, unknown> = {},
    ) =>
      new SignJWT({ ...claims, ...changes })
        .setProtectedHeader({ alg, kid: jwk.kid, ...header } as JWTHeaderParameters)
        .sign(privateKey),
    stop,
    start: () => listen(port),
  };
  return issuer;
}

/** A verifier for an issuer, with everything that it complained of. */
function verifierFor(issuer: string, options: Partial<VerifierOptions> = {}) {
  const troubles: unknown[] = [];
  const verifier = createVerifier({
    issuer,
    audience: AUDIENCE,
    onTrouble: (error) => troubles.push(error),
    ...options,
  });
  return { troubles, verify: (jwt: string, now = NOW) => verifier(jwt, now) };
}

const isUnreachable = (error: unknown) => {
  assert.ok(error instanceof RequestFailure);
  assert.deepEqual(error.error, {
    status: 503,
    code: "identity-provider-unavailable",
    title: "Service Unavailable",
    detail: "The identity provider is unavailable. Nothing was changed; try again.",
  });
  assert.deepEqual(error.headers, { "retry-after": "5" });
  return true;
};

const part = (value: unknown) => base64url.encode(JSON.stringify(value));

/** What this test asks of the real provider, which has no types of its own. */
interface OidcProvider {
  readonly Provider: new (issuer: string, configuration: object) => { callback(): RequestListener };
}

/** A certified implementation, not ours. */
async function startProvider() {
  const name: string = "oidc-provider";
  const { Provider }: OidcProvider = await import(name);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await newKey("RS256");
  const provider = new Provider(url, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), use: "sig", alg: "RS256" }] },
    clients: [
      {
        client_id: "app",
        client_secret: "secret",
        grant_types: ["client_credentials", "authorization_code"],
        redirect_uris: [`${url}/back`],
      },
    ],
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
    // Its defaults, but it would complain of them.
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    ttl: { AccessToken: 600, ClientCredentials: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
  });
  server.on("request", provider.callback());

  const post = (body: Record<string, string>) => ({ method: "POST", body: new URLSearchParams(body) });
  const credentials = { client_id: "app", client_secret: "secret" };
  const tokens = async (grant: Record<string, string>) => {
    const basic = Buffer.from("app:secret").toString("base64");
    const headers = { authorization: `Basic ${basic}` };
    const response = await fetch(`${url}/token`, { ...post(grant), headers });
    const body = await response.text();
    assert.equal(response.status, 200, body);
    return JSON.parse(body) as { access_token: string; id_token: string };
  };

  /** What a browser does while someone logs in and consents. */
  const logIn = async (login: string, resource: string) => {
    const cookies = new Map<string, string>();
    const back = `${url}/back`;
    const query = { client_id: credentials.client_id, response_type: "code", redirect_uri: back, resource };
    let next = `${url}/auth?${new URLSearchParams({ ...query, scope: "openid subscriptions" })}`;
    const forms = [{ prompt: "login", login, password: "any" }, { prompt: "consent" }];
    for (let hops = 0; !next.startsWith(back); hops += 1) {
      assert.ok(hops < 10, next);
      const form = next.includes("/interaction/") ? forms.shift() : undefined;
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
      const response = await fetch(next, {
        ...(form === undefined ? {} : post(form as Record<string, string>)),
        headers: { cookie },
        redirect: "manual",
      });
      for (const line of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (name !== undefined && value !== undefined) cookies.set(name, value);
      }
      const location = response.headers.get("location");
      assert.ok(location, await response.text());
      next = new URL(location, url).href;
    }
    const code = new URL(next).searchParams.get("code");
    assert.ok(code, next);
    return tokens({ grant_type: "authorization_code", code, redirect_uri: back, resource });
  };
  return { url, tokens, logIn };
}

const provider = await startProvider();

test("an access token that a real provider gave an app is accepted", async () => {
  const grant = { grant_type: "client_credentials", scope: "subscriptions" };
  const { access_token: jwt } = await provider.tokens({ ...grant, resource: AUDIENCE });
  const { verify, troubles } = verifierFor(provider.url);
  const now = new Date();
  const vouched = await verify(jwt, now);
  assert.equal(vouched?.subject, "app");
  assert.equal(vouched.issuedAt.getTime(), (decodeJwt(jwt).iat ?? 0) * 1_000);
  assert.equal(await verify(jwt, new Date(now.getTime() + 24 * 3_600_000)), undefined);
  const { access_token: other } = await provider.tokens({ ...grant, resource: "https://other.example/" });
  assert.equal(await verify(other, now), undefined);
  assert.deepEqual(troubles, []);
});

test("the tokens of someone who logged in at a real provider are accepted, each by its own audience", async () => {
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
const { verify, troubles } = verifierFor(issuer.url);

suite("algorithms", { concurrency: true }, () => {
  for (const alg of ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]) {
    test(`a JWT signed with ${alg} is accepted`, async () => {
      const key = await newKey(alg);
      const issuer = await startIssuer();
      issuer.answers["/keys"] = json({ keys: [issuer.key.jwk, key.jwk] });
      const { verify } = verifierFor(issuer.url);
      const expected = { subject: "alice", issuedAt: new Date(at(0) * 1_000) };
      assert.deepEqual(await verify(await issuer.sign(key)), expected);
    });
  }
});

test("an issuer whose name ends with a slash is found", async () => {
  const issuer = await startIssuer();
  const name = `${issuer.url}/`;
  issuer.answers[DISCOVERY] = json({ issuer: name, jwks_uri: `${issuer.url}/keys` });
  const { verify } = verifierFor(name);
  assert.equal((await verify(await issuer.sign(issuer.key, { iss: name })))?.subject, "alice");
  assert.equal(await verify(await issuer.sign(issuer.key)), undefined);
});

test("a JWT may be for several audiences, and may leave its key unnamed when there is one alone", async () => {
  assert.ok(await verify(await sign(key, { aud: ["https://other.example/", AUDIENCE] })));
  assert.ok(await verify(await sign(key, {}, { kid: undefined })));
});

const UNFIT_CLAIMS: readonly (readonly [string, Record<string, unknown>])[] = [
  ["for another audience", { aud: "https://earmark.example" }],
  ["for other audiences", { aud: ["https://other.example/"] }],
  ["without an audience", { aud: undefined }],
  ["of another issuer", { iss: `${issuer.url}/` }],
  ["without an issuer", { iss: undefined }],
  ["that has expired", { exp: at(-60) }],
  ["that never expires", { exp: undefined }],
  ["whose expiry is no number", { exp: String(at(600)) }],
  ["that does not hold yet", { nbf: at(60) }],
  ["without a time of issue", { iat: undefined }],
  ["that will be issued in the future", { iat: at(60) }],
  ["that was issued at no time", { iat: -1e300 }],
  ["without a subject", { sub: undefined }],
  ["with an empty subject", { sub: "" }],
  ["with a subject that is no text", { sub: 17 }],
  ["with a subject that is too long", { sub: "x".repeat(256) }],
  ["with a control character in its subject", { sub: "al\u0000ice" }],
  ["with a subject that is no Unicode", { sub: "alice\ud800" }],
];
for (const [what, changes] of UNFIT_CLAIMS) {
  test(`a JWT ${what} is refused`, async () => assert.equal(await verify(await sign(key, changes)), undefined));
}

test("a subject may have 255 characters of any language", async () => {
  for (const sub of ["x".repeat(255), "Åse 🎧"]) assert.equal((await verify(await sign(key, { sub })))?.subject, sub);
});

test("clocks may differ by half a minute, and no more", async () => {
  const jwt = await sign(key, { nbf: at(0), exp: at(600) });
  assert.ok(await verify(jwt, later(625)));
  assert.equal(await verify(jwt, later(635)), undefined);
  assert.ok(await verify(jwt, later(-25)));
  assert.equal(await verify(jwt, later(-35)), undefined);
});

test("what a provider signs besides access tokens and ID tokens is refused", async () => {
  for (const typ of ["JWT", "jwt", "at+jwt", "application/at+jwt"])
    assert.ok(await verify(await sign(key, {}, { typ })));
  for (const typ of ["logout+jwt", "secevent+jwt", "dpop+jwt", ""]) {
    assert.equal(await verify(await sign(key, {}, { typ })), undefined, typ);
  }
});

test("a JWT that was changed after it was signed is refused", async () => {
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

test("a JWT that is signed with no algorithm, or with a public key as secret, is refused", async () => {
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

test("a secret among the keys of the provider opens nothing", async () => {
  const issuer = await startIssuer();
  const secret = Buffer.from("a secret that is long enough to be one");
  const k = base64url.encode(secret);
  issuer.answers["/keys"] = json({ keys: [{ kty: "oct", kid: "1", alg: "HS256", k }] });
  const jwt = new SignJWT(decodeJwt(await issuer.sign(issuer.key))).setProtectedHeader({ alg: "HS256", kid: "1" });
  assert.equal(await verifierFor(issuer.url).verify(await jwt.sign(secret)), undefined);
  assert.deepEqual(issuer.requests, []);
});

test("a JWT that was signed by a stranger is refused, whatever key it names or brings along", async () => {
  const stranger = await newKey();
  const { kid } = key.jwk;
  const trap = await startIssuer();
  trap.answers["/keys"] = json({ keys: [{ ...stranger.jwk, kid }] });
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

test("what is no JWT, or too long for one, is refused before the provider is asked", async () => {
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

test("bad JWTs are no trouble of the provider", () => assert.deepEqual(troubles, []));

test("the provider is asked once for many JWTs at a time, and not again", async () => {
  const issuer = await startIssuer();
  const { verify } = verifierFor(issuer.url);
  assert.deepEqual(issuer.requests, []);
  const jwt = await issuer.sign(issuer.key);
  for (const vouched of await Promise.all(Array.from({ length: 50 }, () => verify(jwt)))) assert.ok(vouched);
  assert.ok(await verify(jwt));
  assert.deepEqual(issuer.requests, [DISCOVERY, "/keys"]);
});

/** As many requests as strangers may cause in the little time that these tests take. */
const HANDFUL = 5;

test("a thousand JWTs with keys that nobody knows make a handful of requests", async () => {
  const issuer = await startIssuer();
  const { verify } = verifierFor(issuer.url);
  const stranger = await newKey();
  const guess = async () => verify(await issuer.sign(stranger, {}, { kid: randomUUID() }));
  for (let round = 0; round < 20; round += 1) {
    const outcomes = await Promise.all(Array.from({ length: 50 }, guess));
    assert.ok(outcomes.every((outcome) => outcome === undefined));
  }
  assert.ok(issuer.requests.length <= HANDFUL, String(issuer.requests));
});

for (const [path, known] of [
  [DISCOVERY, false],
  ["/keys", false],
  ["/keys", true],
] as const) {
  const before = known ? "after its keys were known" : "from the beginning";
  test(`JWTs that cannot be judged make a handful of requests to a provider whose ${path} fails ${before}`, async () => {
    const issuer = await startIssuer();
    const { verify, troubles } = verifierFor(issuer.url, { cooldownMs: 400 });
    if (known) {
      assert.ok(await verify(await issuer.sign(issuer.key)));
      await sleep(450);
    }
    issuer.answers[path] = (response) => void response.writeHead(500).end();
    for (let round = 0; round < 20; round += 1) {
      const jwt = await issuer.sign(issuer.key, {}, { kid: randomUUID() });
      await Promise.all(Array.from({ length: 10 }, () => assert.rejects(verify(jwt), isUnreachable)));
    }
    assert.ok(issuer.requests.length <= HANDFUL, String(issuer.requests));
    assert.equal(String(troubles[0]), `Error: ${issuer.url}${path} answered 500`);
  });
}

test("a key that the provider has since made is picked up after the cool-down, and not before", async () => {
  const issuer = await startIssuer();
  const young = await newKey();
  const jwt = await issuer.sign(young);
  const patient = verifierFor(issuer.url, { cooldownMs: 60_000 });
  const { verify } = verifierFor(issuer.url, { cooldownMs: 30 });
  for (const each of [patient.verify, verify]) assert.ok(await each(await issuer.sign(issuer.key)));
  issuer.answers["/keys"] = json({ keys: [issuer.key.jwk, young.jwk] });
  await sleep(50);
  assert.equal((await verify(jwt))?.subject, "alice");
  assert.equal(await patient.verify(jwt), undefined);
  assert.ok(await verify(await issuer.sign(issuer.key)));
});

test("when the provider is down at first, JWTs cannot be judged until it is up", async () => {
  const issuer = await startIssuer();
  const jwt = await issuer.sign(issuer.key);
  await issuer.stop();
  const { verify, troubles } = verifierFor(issuer.url, { cooldownMs: 30 });
  await assert.rejects(verify(jwt), isUnreachable);
  assert.equal(troubles.length, 1);
  assert.match(inspect(troubles), /ECONNREFUSED/);
  await issuer.start();
  await sleep(50);
  assert.equal((await verify(jwt))?.subject, "alice");
});

test("when the provider goes down, keys that are known go on working, however old they are", async () => {
  const issuer = await startIssuer();
  const { verify, troubles } = verifierFor(issuer.url, { cooldownMs: 30, maxAgeMs: 30 });
  const jwt = await issuer.sign(issuer.key);
  assert.ok(await verify(jwt));
  await issuer.stop();
  for (let round = 0; round < 3; round += 1) {
    await sleep(50);
    assert.ok(await verify(jwt));
  }
  assert.ok(troubles.length > 0);
  // It may be a new key, so nothing can be said; a known key with a wrong signature is wrong all the same.
  const stranger = await newKey();
  await assert.rejects(verify(await issuer.sign(stranger)), isUnreachable);
  assert.equal(await verify(await issuer.sign(stranger, {}, { kid: issuer.key.jwk.kid })), undefined);
});

test("nobody waits a second time for a provider that does not answer, when the keys are known", async () => {
  const issuer = await startIssuer();
  const { verify, troubles } = verifierFor(issuer.url, { cooldownMs: 30, maxAgeMs: 30, timeoutMs: 1_000 });
  const jwt = await issuer.sign(issuer.key);
  assert.ok(await verify(jwt));
  issuer.answers["/keys"] = () => undefined;
  await sleep(50);
  assert.ok(await verify(jwt));
  assert.equal(troubles.length, 1);
  await sleep(50);
  assert.ok(await verify(jwt));
  assert.equal(troubles.length, 1);
});

test("a key that the provider has withdrawn stops working when the keys are renewed", async () => {
  const issuer = await startIssuer();
  const { verify } = verifierFor(issuer.url, { cooldownMs: 30, maxAgeMs: 30 });
  const jwt = await issuer.sign(issuer.key);
  assert.ok(await verify(jwt));
  issuer.answers["/keys"] = json({ keys: [(await newKey()).jwk] });
  await sleep(50);
  assert.equal(await verify(jwt), undefined);
});

const elsewhere = await startIssuer();
const redirect: Answer = (response) => void response.writeHead(302, { location: elsewhere.url + DISCOVERY }).end();
const UNFIT_ANSWERS: readonly (readonly [string, string, (url: string) => Answer, RegExp])[] = [
  [
    "whose discovery names another issuer",
    DISCOVERY,
    (url) => json({ issuer: `${url}/`, jwks_uri: `${url}/keys` }),
    /of another issuer/,
  ],
  ["whose discovery redirects", DISCOVERY, () => redirect, /answered 302/],
  ["whose discovery is no JSON", DISCOVERY, () => (response) => void response.end("<html>"), /JSON/],
  ["whose discovery is no object", DISCOVERY, () => json([]), /not an object/],
  ["whose discovery names no keys", DISCOVERY, (url) => json({ issuer: url }), /jwks_uri/],
  [
    "whose discovery names keys in a file",
    DISCOVERY,
    (url) => json({ issuer: url, jwks_uri: "file:///keys" }),
    /jwks_uri/,
  ],
  ["whose discovery is endless", DISCOVERY, () => endless, /longer than/],
  ["whose discovery hangs", DISCOVERY, () => () => undefined, /Timeout/],
  ["whose discovery stops in the middle", DISCOVERY, () => (response) => void response.write("{"), /Timeout/],
  ["whose keys redirect", "/keys", () => redirect, /answered 302/],
  ["whose keys are no set of keys", "/keys", () => json({ keys: "none" }), /JSON Web Key Set malformed/],
  ["whose keys are endless", "/keys", () => endless, /longer than/],
  ["whose keys hang", "/keys", () => () => undefined, /Timeout/],
];
function endless(response: ServerResponse): void {
  const more = () => {
    while (!response.destroyed && response.write(" ".repeat(64 * 1024)));
  };
  response.on("drain", more);
  more();
}
suite("providers that count as down", { concurrency: true }, () => {
  for (const [what, path, answer, expected] of UNFIT_ANSWERS) {
    test(`a provider ${what} counts as down, and the log hears why, but nothing of the JWT`, async () => {
      const issuer = await startIssuer();
      issuer.answers[path] = answer(issuer.url);
      const { verify, troubles } = verifierFor(issuer.url, { timeoutMs: 1_000 });
      const jwt = await issuer.sign(issuer.key, { sub: "alice-in-the-log" });
      await assert.rejects(verify(jwt), isUnreachable);
      await assert.rejects(verify(jwt), isUnreachable);
      assert.equal(issuer.requests.filter((asked) => asked === path).length, 1);
      assert.equal(troubles.length, 1);
      const log = inspect(troubles, { depth: 10, showHidden: true });
      assert.match(log, expected);
      for (const secret of [...jwt.split("."), "alice-in-the-log", String(issuer.key.jwk.kid)]) {
        assert.ok(!log.includes(secret), log);
      }
      assert.deepEqual(elsewhere.requests, []);
    });
  }
});

test("keys of an https issuer are never fetched without encryption", async () => {
  const issuer = await startIssuer();
  const real = globalThis.fetch;
  // The one thing that a test cannot have is a certificate that Node trusts: here https: is spoken as http:.
  globalThis.fetch = (url, options) => real(String(url).replace("https:", "http:"), options);
  try {
    const name = issuer.url.replace("http:", "https:");
    const jwt = await issuer.sign(issuer.key, { iss: name });
    issuer.answers[DISCOVERY] = json({ issuer: name, jwks_uri: `${issuer.url}/keys` });
    const { verify, troubles } = verifierFor(name);
    await assert.rejects(verify(jwt), isUnreachable);
    assert.match(String(troubles), /jwks_uri that is no https: address/);
    issuer.answers[DISCOVERY] = json({ issuer: name, jwks_uri: `${name}/keys` });
    assert.ok(await verifierFor(name).verify(jwt));
  } finally {
    globalThis.fetch = real;
  }
});

test("a key that cannot be used is told to the log once in a cool-down, without anything of the JWT", async () => {
  const issuer = await startIssuer();
  const { kid } = issuer.key.jwk;
  const broken = { ...issuer.key.jwk, y: issuer.key.jwk.x };
  const leaked = { ...(await exportJWK(issuer.key.privateKey)), kid };
  for (const jwk of [broken, leaked]) {
    issuer.answers["/keys"] = json({ keys: [jwk] });
    const { verify, troubles } = verifierFor(issuer.url);
    const jwt = await issuer.sign(issuer.key);
    for (let round = 0; round < 5; round += 1) assert.equal(await verify(jwt), undefined);
    assert.equal(troubles.length, 1);
    const log = inspect(troubles, { depth: 10, showHidden: true });
    for (const secret of [...jwt.split("."), "alice", String(leaked.d)]) assert.ok(!log.includes(secret), log);
  }
});

test("what verifies JWTs is loaded when the first JWT comes", async () => {
  const script = `
    import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) { if (name === "jose") console.log("jose"); return next(name, context); } });
    const { createVerifier } = await import(${JSON.stringify(import.meta.resolve("./oidc.ts"))});
    const verify = createVerifier({ issuer: "http://127.0.0.1:9", audience: "x" });
    await verify("no JWT", new Date());
    console.log("started");
    await verify("e30.e30.AA", new Date());`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  assert.equal(stdout, "started\njose\n");
});
