import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Authenticator, type Ceremony } from "../../../test/support/authenticator.ts";
import {
  cookieOf,
  documentOf,
  fromNewNetwork,
  JSONAPI,
  MINUTE,
  newUser,
  PASSWORD,
  start,
} from "../../../test/support/http-accounts.ts";
import { NOBODY } from "../../accounts/account-store.ts";
import { asUser } from "../../accounts/caller.ts";

type TestServer = Awaited<ReturnType<typeof start>>;
const server = await start();
const HOST = { Host: "localhost" };
const SITE = { host: "localhost", origin: "http://localhost" };

async function optionsOf({ call }: TestServer, purpose: "sign-in" | "registration", headers = {}) {
  const reply = await call("GET", `/v1/passkey-options/${purpose}`, { headers: { ...HOST, ...headers } });
  assert.equal(reply.status, 200, reply.text);
  return reply.json.meta.options;
}

function addWith({ call }: TestServer, Cookie: string, passkey: unknown, label = "phone") {
  const headers = { ...JSONAPI, ...HOST, Cookie };
  return call("POST", "/v1/passkeys", { headers, body: documentOf("passkey", { label, passkey }) });
}

function signInWith({ call }: TestServer, passkey: unknown, headers: object = fromNewNetwork()) {
  return call("POST", "/v1/sessions", {
    headers: { ...JSONAPI, ...HOST, ...headers },
    body: documentOf("session", { passkey }),
  });
}

/** Adds a passkey to the account with this session. */
async function newPasskey(at: TestServer, Cookie: string) {
  const authenticator = new Authenticator();
  const { challenge, user } = await optionsOf(at, "registration", { Cookie });
  authenticator.userHandle = user.id;
  const reply = await addWith(at, Cookie, authenticator.create({ challenge, ...SITE }));
  assert.equal(reply.status, 201, reply.text);
  return { authenticator, id: String(reply.json.data.id) };
}

const challengeOf = async (at: TestServer) => String((await optionsOf(at, "sign-in")).challenge);
const codeOf = ({ json }: { json: { errors: { code: string }[] } }) => json.errors[0]?.code;
const countFailures = ({ log }: TestServer) => log().match(/"way":"passkey","msg":"failed sign-in"/g)?.length ?? 0;

suite("passkeys", () => {
  test("passkeys: several of one account → each signs in, and is listed without its key", async () => {
    const { name, Cookie } = await newUser(server);
    for (let count = 0; count < 2; count += 1) {
      const { authenticator } = await newPasskey(server, Cookie);
      const reply = await signInWith(server, authenticator.use({ challenge: await challengeOf(server), ...SITE }));
      assert.equal(reply.status, 201, reply.text);
      const me = await server.call("GET", "/v1/me", { headers: { Cookie: cookieOf(reply) } });
      assert.equal(me.json.data.attributes.name, name);
    }
    const list = await server.call("GET", "/v1/passkeys", { headers: { Cookie } });
    assert.deepEqual(
      list.json.data.map((each: { attributes: object }) => Object.entries(each.attributes)[0]),
      Array(2).fill(["label", "phone"]),
    );
    const everything = await server.call("GET", "/v1/me/export", { headers: { Cookie } });
    assert.equal(everything.json.data.filter(({ type }: { type: string }) => type === "passkey").length, 2);
  });

  test("passkeys: options → require a discoverable passkey and user verification, exclude existing ones", async () => {
    const { Cookie } = await newUser(server);
    const { authenticator } = await newPasskey(server, Cookie);
    const creation = await optionsOf(server, "registration", { Cookie });
    assert.deepEqual(creation.excludeCredentials, [{ type: "public-key", id: authenticator.id }]);
    assert.deepEqual(creation.authenticatorSelection, {
      residentKey: "required",
      requireResidentKey: true,
      userVerification: "required",
    });
    const request = await optionsOf(server, "sign-in");
    assert.deepEqual([request.rpId, request.userVerification, request.allowCredentials], ["localhost", "required", []]);
  });

  test("passkeys: removed → no longer signs in, and other sessions end", async () => {
    const { Cookie } = await newUser(server);
    const { authenticator, id } = await newPasskey(server, Cookie);
    const other = cookieOf(
      await signInWith(server, authenticator.use({ challenge: await challengeOf(server), ...SITE })),
    );
    assert.equal((await server.call("DELETE", `/v1/passkeys/${id}`, { headers: { Cookie } })).status, 204);
    assert.equal((await server.call("GET", "/v1/me", { headers: { Cookie: other } })).status, 401);
    assert.equal((await server.call("GET", "/v1/me", { headers: { Cookie } })).status, 200);
    const before = countFailures(server);
    const reply = await signInWith(server, authenticator.use({ challenge: await challengeOf(server), ...SITE }));
    assert.deepEqual([reply.status, codeOf(reply), countFailures(server)], [401, "passkey-failed", before + 1]);
  });

  test("passkeys: response used twice → rejected the second time, also to create one", async () => {
    const { Cookie } = await newUser(server);
    const { authenticator } = await newPasskey(server, Cookie);
    const response = authenticator.use({ challenge: await challengeOf(server), ...SITE });
    assert.equal((await signInWith(server, response)).status, 201);
    assert.equal(codeOf(await signInWith(server, response)), "passkey-failed");
    const created = new Authenticator();
    const { challenge } = await optionsOf(server, "registration", { Cookie });
    const creation = created.create({ challenge, ...SITE });
    const { json } = await addWith(server, Cookie, creation);
    assert.equal((await server.call("DELETE", json.data.links.self, { headers: { Cookie } })).status, 204);
    assert.equal(codeOf(await addWith(server, Cookie, creation)), "invalid-passkey");
  });

  test("passkeys: an account with an authenticator app → signs in without a code", async () => {
    const { user, Cookie } = await newUser(server);
    const { authenticator } = await newPasskey(server, Cookie);
    const added = { secret: "GEZDGNBVGY3TQOJQ", step: 1, latest: 1, recoveryHashes: [], keepSession: undefined };
    assert.equal(await server.store.accounts.secondFactors.add(asUser(user), added, server.now()), "added");
    const response = authenticator.use({ challenge: await challengeOf(server), ...SITE });
    assert.equal((await signInWith(server, response)).status, 201);
  });

  test("passkeys: two requests with the same response at once → one session", async () => {
    const { Cookie } = await newUser(server);
    const { authenticator } = await newPasskey(server, Cookie);
    const response = authenticator.use({ challenge: await challengeOf(server), ...SITE });
    const replies = await Promise.all([signInWith(server, response), signInWith(server, response)]);
    assert.deepEqual(replies.map(({ status }) => status).toSorted(), [201, 401]);
  });

  test("passkeys: counter that does not increase → rejected, because the passkey may be cloned", async () => {
    const { Cookie } = await newUser(server);
    const { authenticator } = await newPasskey(server, Cookie);
    for (const [counter, status] of [
      [5, 201],
      [5, 401],
      [4, 401],
      [0, 401],
      [6, 201],
    ] as const) {
      authenticator.counter = counter;
      const reply = await signInWith(server, authenticator.use({ challenge: await challengeOf(server), ...SITE }));
      assert.equal(reply.status, status, `counter ${counter}`);
    }
  });

  const CHANGES: readonly (readonly [string, Partial<Ceremony>])[] = [
    ["for another site", { host: "evil.example", origin: "http://evil.example" }],
    ["from another origin", { origin: "http://evil.example" }],
    ["from another port", { origin: "http://localhost:8081" }],
    ["for a parent domain", { host: "host" }],
    ["of another type", { type: "webauthn.other" }],
    ["without verification of the user", { isVerified: false }],
    ["with a challenge of its own", { challenge: "AAAA" }],
    ["with an empty challenge", { challenge: "" }],
  ];
  for (const [what, changes] of CHANGES) {
    test(`passkeys: response ${what} → rejected`, async () => {
      const { Cookie } = await newUser(server);
      const { authenticator } = await newPasskey(server, Cookie);
      const ceremony = { challenge: await challengeOf(server), ...SITE };
      assert.equal(codeOf(await signInWith(server, authenticator.use({ ...ceremony, ...changes }))), "passkey-failed");
      const { challenge } = await optionsOf(server, "registration", { Cookie });
      const created = new Authenticator().create({ challenge, ...SITE, ...changes });
      assert.equal(codeOf(await addWith(server, Cookie, created)), "invalid-passkey");
      // The challenge was not used up.
      assert.equal((await signInWith(server, authenticator.use(ceremony))).status, 201);
    });
  }

  test("passkeys: challenge for another purpose, user or server → rejected", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const { authenticator } = await newPasskey(server, ann.Cookie);
    const ofAnn = (await optionsOf(server, "registration", { Cookie: ann.Cookie })).challenge;
    const foreign = await challengeOf(await start());
    for (const challenge of [ofAnn, foreign])
      assert.equal(codeOf(await signInWith(server, authenticator.use({ challenge, ...SITE }))), "passkey-failed");
    for (const challenge of [ofAnn, await challengeOf(server)]) {
      const created = new Authenticator().create({ challenge, ...SITE });
      assert.equal(codeOf(await addWith(server, bob.Cookie, created)), "invalid-passkey");
    }
  });

  test("passkeys: passkey of another account → cannot be added, and the user handle must match", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const { authenticator } = await newPasskey(server, ann.Cookie);
    const { challenge, user } = await optionsOf(server, "registration", { Cookie: bob.Cookie });
    assert.equal(
      codeOf(await addWith(server, bob.Cookie, authenticator.create({ challenge, ...SITE }))),
      "invalid-passkey",
    );
    for (const handle of [user.id, "", "AAAA"]) {
      authenticator.userHandle = handle;
      const response = authenticator.use({ challenge: await challengeOf(server), ...SITE });
      assert.equal(codeOf(await signInWith(server, response)), "passkey-failed");
    }
  });

  test("passkeys: challenge older than five minutes → rejected; sign-in more than ten minutes ago → none can be added", async () => {
    const late = await start();
    const { Cookie } = await newUser(late);
    const { authenticator } = await newPasskey(late, Cookie);
    const response = authenticator.use({ challenge: await challengeOf(late), ...SITE });
    const { challenge } = await optionsOf(late, "registration", { Cookie });
    late.wait(5 * MINUTE);
    assert.equal(codeOf(await signInWith(late, response)), "passkey-failed");
    assert.equal(
      codeOf(await addWith(late, Cookie, new Authenticator().create({ challenge, ...SITE }))),
      "invalid-passkey",
    );
    late.wait(6 * MINUTE);
    const headers = { ...HOST, Cookie };
    assert.equal(
      codeOf(await late.call("GET", "/v1/passkey-options/registration", { headers })),
      "recent-sign-in-required",
    );
    const reply = await addWith(late, Cookie, new Authenticator().create({ challenge, ...SITE }));
    assert.equal(codeOf(reply), "recent-sign-in-required");
  });

  test("passkeys: attestation with certificates → rejected, without a request to the hosts they name", async () => {
    const { Cookie } = await newUser(server);
    for (const fmt of ["packed", "fido-u2f", "tpm", "apple", "android-key"]) {
      const { challenge } = await optionsOf(server, "registration", { Cookie });
      const statement = [0xa1, 0x63, ...Buffer.from("x5c"), 0x81, 0x41, 0x30];
      const created = new Authenticator().create({ challenge, ...SITE }, { fmt, statement });
      assert.equal(codeOf(await addWith(server, Cookie, created)), "invalid-passkey", fmt);
    }
  });

  test("passkeys: anything that is not a response → a clear error", async () => {
    const { Cookie } = await newUser(server);
    const nested = "\u0081".repeat(10_000);
    const cbor = Buffer.from(nested, "latin1").toString("base64url");
    for (const passkey of [
      {},
      { id: 5 },
      { id: "x".repeat(5_000) },
      { id: "AA", rawId: "AA", type: "public-key", response: null },
      { id: "AA", rawId: "AA", type: "public-key", response: { clientDataJSON: "e30", attestationObject: cbor } },
      { id: "AA", rawId: "AA", type: "public-key", response: { clientDataJSON: "", attestationObject: "o2" } },
    ]) {
      assert.equal(codeOf(await signInWith(server, passkey)), "passkey-failed", JSON.stringify(passkey).slice(0, 80));
      assert.equal(codeOf(await addWith(server, Cookie, passkey)), "invalid-passkey");
    }
    for (const passkey of ["x", null, 5, []]) {
      assert.equal(codeOf(await signInWith(server, passkey)), "invalid-attribute", String(passkey));
      assert.equal(codeOf(await addWith(server, Cookie, passkey)), "invalid-attribute");
    }
    assert.equal(codeOf(await addWith(server, Cookie, undefined)), "attribute-missing");
    assert.equal(codeOf(await addWith(server, Cookie, {}, "")), "invalid-label");
  });

  test("passkeys: more than 20 → rejected", async () => {
    const { Cookie } = await newUser(server);
    for (let count = 0; count < 20; count += 1) await newPasskey(server, Cookie);
    const { challenge } = await optionsOf(server, "registration", { Cookie });
    const reply = await addWith(server, Cookie, new Authenticator().create({ challenge, ...SITE }));
    assert.deepEqual([codeOf(reply), reply.json.errors[0].meta.max], ["too-many-passkeys", 20]);
  });

  test("passkeys: too many attempts from one network → 429", async () => {
    const network = fromNewNetwork();
    const statuses = [];
    for (let count = 0; count < 101; count += 1)
      statuses.push((await signInWith(server, { id: "AA" }, network)).status);
    assert.deepEqual([statuses[0], statuses.at(-1)], [401, 429]);
  });

  test("passkeys: disabled account → rejected and not in the log as a failed sign-in; enabled → signs in", async () => {
    const { name, Cookie } = await newUser(server);
    const { authenticator } = await newPasskey(server, Cookie);
    const user = (await server.accounts.findByName(name))?.user ?? 0;
    await server.accounts.create("operator", PASSWORD, server.now());
    const change = (kind: "disable" | "enable") =>
      server.administration.change(asUser(NOBODY), user, kind, server.now());
    const use = async () => authenticator.use({ challenge: await challengeOf(server), ...SITE });
    const before = countFailures(server);
    assert.equal(await change("disable"), undefined);
    assert.equal(codeOf(await signInWith(server, await use())), "account-disabled");
    assert.equal(countFailures(server), before);
    assert.equal((await server.accounts.store.listCredentials(user, "session")).length, 0);
    // Only the owner learns that the account is disabled.
    const forged = authenticator.use({ challenge: await challengeOf(server), ...SITE, isVerified: false });
    assert.equal(codeOf(await signInWith(server, forged)), "passkey-failed");
    assert.equal(await change("enable"), undefined);
    assert.equal((await signInWith(server, await use())).status, 201);
  });

  test("passkeys: EARMARK_PUBLIC_URL → its host and origin, whatever the request says", async () => {
    const named = await start({ EARMARK_PUBLIC_URL: "https://pods.example" });
    const { Cookie } = await newUser(named);
    const { rp, challenge, user } = await optionsOf(named, "registration", { Cookie });
    assert.equal(rp.id, "pods.example");
    assert.equal((await optionsOf(named, "sign-in", { "X-Forwarded-Host": "other.example" })).rpId, "pods.example");
    const authenticator = new Authenticator();
    authenticator.userHandle = user.id;
    const site = { host: "pods.example", origin: "https://pods.example" };
    assert.equal((await addWith(named, Cookie, authenticator.create({ challenge, ...site }))).status, 201);
    for (const [origin, status] of [
      ["http://pods.example", 401],
      ["https://pods.example", 201],
    ] as const) {
      const use = authenticator.use({ challenge: await challengeOf(named), ...site, origin });
      assert.equal((await signInWith(named, use)).status, status, origin);
    }
  });

  test("passkeys: behind a proxy → the public host and only the scheme that the proxy reports", async () => {
    const { Cookie } = await newUser(server);
    const proxied = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "pods.example" };
    const secure = { Cookie: Cookie.replace("earmark=", "__Host-earmark=") };
    const authenticator = new Authenticator();
    const { rp, challenge, user } = await optionsOf(server, "registration", { ...proxied, ...secure });
    assert.equal(rp.id, "pods.example");
    authenticator.userHandle = user.id;
    const created = authenticator.create({ challenge, host: "pods.example", origin: "https://pods.example" });
    const body = documentOf("passkey", { label: "phone", passkey: created });
    const headers = { ...JSONAPI, ...HOST, ...proxied };
    const reply = await server.call("POST", "/v1/passkeys", { headers: { ...headers, ...secure }, body });
    assert.equal(reply.status, 201, reply.text);
    for (const [scheme, status] of [
      ["http", 401],
      ["https", 201],
    ] as const) {
      const response = authenticator.use({
        challenge: await challengeOf(server),
        host: "pods.example",
        origin: `${scheme}://pods.example`,
      });
      assert.equal((await signInWith(server, response, { ...proxied, ...fromNewNetwork() })).status, status, scheme);
    }
  });
});
