import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { suite, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect, promisify } from "node:util";
import { exportJWK } from "jose";
import {
  type Answer,
  DISCOVERY,
  isUnreachable,
  json,
  newKey,
  startIssuer,
  verifierFor,
} from "../../test/oidc-issuer.ts";

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
