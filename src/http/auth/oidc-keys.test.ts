import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect, promisify } from "node:util";
import { exportJWK } from "jose";
import {
  DISCOVERY,
  isUnavailable,
  json,
  newKey,
  type Respond,
  startIssuer,
  verifierFor,
} from "../../../test/support/oidc-issuer.ts";

test("OIDC keys: many JWTs at once → one discovery and one key request", async () => {
  const issuer = await startIssuer();
  const { verify } = verifierFor(issuer.url);
  assert.deepEqual(issuer.requests, []);
  const jwt = await issuer.sign(issuer.key);
  for (const identity of await Promise.all(Array.from({ length: 50 }, () => verify(jwt)))) assert.ok(identity);
  assert.ok(await verify(jwt));
  assert.deepEqual(issuer.requests, [DISCOVERY, "/keys"]);
});

/** Maximum requests to the provider that bad JWTs may cause during a test. */
const HANDFUL = 5;

test("OIDC keys: a thousand JWTs with unknown keys → a handful of requests", async () => {
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
  const when = known ? "after its keys were fetched" : "from the start";
  test(`OIDC keys: ${path} fails ${when} → 503, a handful of requests`, async () => {
    const issuer = await startIssuer();
    const { verify, reported } = verifierFor(issuer.url, { cooldownMs: 400 });
    if (known) {
      assert.ok(await verify(await issuer.sign(issuer.key)));
      await sleep(450);
    }
    issuer.responses[path] = (response) => void response.writeHead(500).end();
    for (let round = 0; round < 20; round += 1) {
      const jwt = await issuer.sign(issuer.key, {}, { kid: randomUUID() });
      await Promise.all(Array.from({ length: 10 }, () => assert.rejects(verify(jwt), isUnavailable)));
    }
    assert.ok(issuer.requests.length <= HANDFUL, String(issuer.requests));
    assert.equal(String(reported[0]), `Error: ${issuer.url}${path} returned 500`);
  });
}

test("OIDC keys: new key at the provider → fetched after the cool-down, not before", async () => {
  const issuer = await startIssuer();
  const added = await newKey();
  const jwt = await issuer.sign(added);
  const patient = verifierFor(issuer.url, { cooldownMs: 60_000 });
  const { verify } = verifierFor(issuer.url, { cooldownMs: 30 });
  for (const each of [patient.verify, verify]) assert.ok(await each(await issuer.sign(issuer.key)));
  issuer.responses["/keys"] = json({ keys: [issuer.key.jwk, added.jwk] });
  await sleep(50);
  assert.equal((await verify(jwt))?.subject, "alice");
  assert.equal(await patient.verify(jwt), undefined);
  assert.ok(await verify(await issuer.sign(issuer.key)));
});

test("OIDC keys: provider down at first → 503 until it is up", async () => {
  const issuer = await startIssuer();
  const jwt = await issuer.sign(issuer.key);
  await issuer.stop();
  const { verify, reported } = verifierFor(issuer.url, { cooldownMs: 30 });
  await assert.rejects(verify(jwt), isUnavailable);
  assert.equal(reported.length, 1);
  assert.match(inspect(reported), /ECONNREFUSED/);
  await issuer.start();
  await sleep(50);
  assert.equal((await verify(jwt))?.subject, "alice");
});

test("OIDC keys: provider goes down → cached keys keep working at any age", async () => {
  const issuer = await startIssuer();
  const { verify, reported } = verifierFor(issuer.url, { cooldownMs: 30, maxAgeMs: 30 });
  const jwt = await issuer.sign(issuer.key);
  assert.ok(await verify(jwt));
  await issuer.stop();
  for (let round = 0; round < 3; round += 1) {
    await sleep(50);
    assert.ok(await verify(jwt));
  }
  assert.ok(reported.length > 0);
  // An unknown key may be new, so 503; a bad signature for a cached key is invalid.
  const stranger = await newKey();
  await assert.rejects(verify(await issuer.sign(stranger)), isUnavailable);
  assert.equal(await verify(await issuer.sign(stranger, {}, { kid: issuer.key.jwk.kid })), undefined);
});

test("OIDC keys: provider hangs while keys are cached → only the first JWT waits", async () => {
  const issuer = await startIssuer();
  const { verify, reported } = verifierFor(issuer.url, { cooldownMs: 30, maxAgeMs: 30, timeoutMs: 1_000 });
  const jwt = await issuer.sign(issuer.key);
  assert.ok(await verify(jwt));
  issuer.responses["/keys"] = () => undefined;
  await sleep(50);
  assert.ok(await verify(jwt));
  assert.equal(reported.length, 1);
  await sleep(50);
  assert.ok(await verify(jwt));
  assert.equal(reported.length, 1);
});

test("OIDC keys: key withdrawn by the provider → rejected after the keys are renewed", async () => {
  const issuer = await startIssuer();
  const { verify } = verifierFor(issuer.url, { cooldownMs: 30, maxAgeMs: 30 });
  const jwt = await issuer.sign(issuer.key);
  assert.ok(await verify(jwt));
  issuer.responses["/keys"] = json({ keys: [(await newKey()).jwk] });
  await sleep(50);
  assert.equal(await verify(jwt), undefined);
});

const elsewhere = await startIssuer();
const redirect: Respond = (response) => void response.writeHead(302, { location: elsewhere.url + DISCOVERY }).end();
const BAD_RESPONSES: readonly (readonly [string, string, (url: string) => Respond, RegExp])[] = [
  [
    "whose discovery names another issuer",
    DISCOVERY,
    (url) => json({ issuer: `${url}/`, jwks_uri: `${url}/keys` }),
    /names another issuer/,
  ],
  ["whose discovery redirects", DISCOVERY, () => redirect, /returned 302/],
  ["whose discovery is not JSON", DISCOVERY, () => (response) => void response.end("<html>"), /JSON/],
  ["whose discovery is not an object", DISCOVERY, () => json([]), /not an object/],
  ["whose discovery names no keys", DISCOVERY, (url) => json({ issuer: url }), /jwks_uri/],
  [
    "whose discovery names keys in a file",
    DISCOVERY,
    (url) => json({ issuer: url, jwks_uri: "file:///keys" }),
    /jwks_uri/,
  ],
  ["whose discovery is endless", DISCOVERY, () => endless, /longer than/],
  ["whose discovery hangs", DISCOVERY, () => () => undefined, /Timeout/],
  ["whose discovery response stalls", DISCOVERY, () => (response) => void response.write("{"), /Timeout/],
  ["whose keys redirect", "/keys", () => redirect, /returned 302/],
  ["whose keys are not a key set", "/keys", () => json({ keys: "none" }), /JSON Web Key Set malformed/],
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
suite("unavailable providers", { concurrency: true }, () => {
  for (const [what, path, respondAt, expected] of BAD_RESPONSES) {
    test(`OIDC keys: provider ${what} → 503, reason logged without the JWT`, async () => {
      const issuer = await startIssuer();
      issuer.responses[path] = respondAt(issuer.url);
      const { verify, reported } = verifierFor(issuer.url, { timeoutMs: 1_000 });
      const jwt = await issuer.sign(issuer.key, { sub: "alice-in-the-log" });
      await assert.rejects(verify(jwt), isUnavailable);
      await assert.rejects(verify(jwt), isUnavailable);
      assert.equal(issuer.requests.filter((url) => url === path).length, 1);
      assert.equal(reported.length, 1);
      const log = inspect(reported, { depth: 10, showHidden: true });
      assert.match(log, expected);
      for (const secret of [...jwt.split("."), "alice-in-the-log", String(issuer.key.jwk.kid)]) {
        assert.ok(!log.includes(secret), log);
      }
      assert.deepEqual(elsewhere.requests, []);
    });
  }
});

test("OIDC keys: https issuer with an http jwks_uri → 503", async () => {
  const issuer = await startIssuer();
  const real = globalThis.fetch;
  // A test has no certificate that Node trusts, so https: requests are sent over http:.
  globalThis.fetch = (url, options) => real(String(url).replace("https:", "http:"), options);
  try {
    const name = issuer.url.replace("http:", "https:");
    const jwt = await issuer.sign(issuer.key, { iss: name });
    issuer.responses[DISCOVERY] = json({ issuer: name, jwks_uri: `${issuer.url}/keys` });
    const { verify, reported } = verifierFor(name);
    await assert.rejects(verify(jwt), isUnavailable);
    assert.match(String(reported), /jwks_uri that is not an https: URL/);
    issuer.responses[DISCOVERY] = json({ issuer: name, jwks_uri: `${name}/keys` });
    assert.ok(await verifierFor(name).verify(jwt));
  } finally {
    globalThis.fetch = real;
  }
});

test("OIDC keys: unusable key → logged once per cool-down, without the JWT", async () => {
  const issuer = await startIssuer();
  const { kid } = issuer.key.jwk;
  const broken = { ...issuer.key.jwk, y: issuer.key.jwk.x };
  const leaked = { ...(await exportJWK(issuer.key.privateKey)), kid };
  for (const jwk of [broken, leaked]) {
    issuer.responses["/keys"] = json({ keys: [jwk] });
    const { verify, reported } = verifierFor(issuer.url);
    const jwt = await issuer.sign(issuer.key);
    for (let round = 0; round < 5; round += 1) assert.equal(await verify(jwt), undefined);
    assert.equal(reported.length, 1);
    const log = inspect(reported, { depth: 10, showHidden: true });
    for (const secret of [...jwt.split("."), "alice", String(leaked.d)]) assert.ok(!log.includes(secret), log);
  }
});

test("OIDC keys: jose → loaded by the first JWT, not before", async () => {
  const script = `
    import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) { if (name === "jose") console.log("jose"); return next(name, context); } });
    const { createJwtVerifier } = await import(${JSON.stringify(import.meta.resolve("./jwt-verifier.ts"))});
    const verify = createJwtVerifier({ issuer: "http://127.0.0.1:9", audience: "x" });
    await verify("no JWT", new Date());
    console.log("started");
    await verify("e30.e30.AA", new Date());`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  assert.equal(stdout, "started\njose\n");
});
