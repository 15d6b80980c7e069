import assert from "node:assert/strict";
import { before, suite, test } from "node:test";
import { asUser } from "../src/accounts/caller.ts";
import { linkUser } from "../src/accounts/linked-users.ts";
import { isAccountRefusal } from "../src/accounts/refusals.ts";
import { holdBack, writeRequest } from "./support/accounts.ts";
import { openEvents } from "./support/events.ts";
import { cookieOf, documentOf, fromNewNetwork, JSONAPI, PASSWORD, signIn, start } from "./support/http-accounts.ts";
import { AUDIENCE, startIssuer } from "./support/oidc-issuer.ts";
import { ATOMIC, add, newId } from "./support/server.ts";

const issuer = await startIssuer();
const server = await start({
  EARMARK_AUTH_HEADER: "Remote-User",
  EARMARK_OIDC_ISSUER: issuer.url,
  EARMARK_OIDC_AUDIENCE: AUDIENCE,
  EARMARK_OIDC_SIGN_UP: "true",
});
const { accounts, administration, call, port } = server;

let admin = "";
before(async () => {
  assert.ok(!isAccountRefusal(await accounts.create("admin", PASSWORD, server.now())));
  admin = cookieOf(await signIn(server, "admin"));
});

type Headers = Readonly<Record<string, string>>;
const bearer = async (sub: string) => ({ Authorization: `Bearer ${await issuer.sign(issuer.key, { sub })}` });
const statusOf = async (headers: Headers) => {
  const { status, json } = await call("GET", "/v1/me", { headers: { ...headers, ...fromNewNetwork() } });
  return json.errors === undefined ? status : `${status} ${json.errors[0].code}`;
};
const idOf = async (headers: Headers): Promise<string> => (await call("GET", "/v1/me", { headers })).json.data.id;

async function change(id: string, attributes: object): Promise<void> {
  const headers = { ...JSONAPI, Cookie: admin };
  const response = await call("PATCH", `/v1/accounts/${id}`, { headers, body: documentOf("account", attributes) });
  assert.equal(response.status, 200, response.text);
}

/** Users that somebody else authenticates, and the headers of their requests. */
const WAYS: Readonly<Record<string, () => Promise<Headers>>> = {
  "header of a proxy, account without a password": async () => ({ "Remote-User": "walter" }),
  "header of a proxy, account with a password": async () => {
    await accounts.create("paula", PASSWORD, server.now());
    return { "Remote-User": "paula" };
  },
  "JWT, account of the identity": () => bearer("carol"),
  "JWT, identity that is linked to an account": async () => {
    const created = await accounts.create("linda", PASSWORD, server.now());
    assert.ok(!isAccountRefusal(created));
    const identity = { issuer: issuer.url, subject: "linda at the provider" };
    assert.ok(!isAccountRefusal(await linkUser(accounts, asUser(created.user), identity, "", server.now())));
    return bearer(identity.subject);
  },
};

suite("disabled accounts", () => {
  for (const [name, prepare] of Object.entries(WAYS)) {
    let headers: Headers;
    before(async () => {
      headers = await prepare();
    });

    test(`disabled: ${name} → requests are rejected, and streams end, until it is enabled`, async () => {
      assert.equal(await statusOf(headers), 200);
      const id = await idOf(headers);
      const { ended } = await openEvents(port, { ...headers });
      await change(id, { disabled: true });
      await ended;
      assert.equal(await statusOf(headers), "403 account-disabled");
      await change(id, { disabled: false });
      assert.equal(await statusOf(headers), 200);
    });

    test(`disabled: ${name}, in the middle of a request → nothing is written`, async () => {
      const id = await idOf(headers);
      const body = JSON.stringify({ "atomic:operations": [add(newId(), "https://feeds.example/one")] });
      const request = writeRequest("POST", "/v1/operations", { "Content-Type": ATOMIC, ...headers }, body);
      const response = await holdBack(port, request, () => change(id, { disabled: true }));
      // 403 if the user was authenticated only after that.
      assert.ok([401, 403].includes(response.status), response.bytes);
      await change(id, { disabled: false });
      assert.equal((await call("GET", "/v1/subscriptions", { headers })).json.data.length, 0);
    });
  }

  test("disabled: reset link → no longer valid, and no other can be created", async () => {
    const created = await accounts.create("rita", PASSWORD, server.now());
    assert.ok(!isAccountRefusal(created));
    const path = `/v1/accounts/${created.user}/reset-links`;
    const link = (await call("POST", path, { headers: { Cookie: admin } })).json.data.attributes.url.split("#")[1];
    const reset = async () => {
      const body = documentOf("password-reset", { link, password: "a longer one this time" });
      return call("POST", "/v1/password-resets", { headers: { ...JSONAPI, ...fromNewNetwork() }, body });
    };
    await change(String(created.user), { disabled: true });
    assert.equal((await reset()).json.errors[0].code, "invalid-reset-link");
    const another = await call("POST", path, { headers: { Cookie: admin } });
    assert.equal(another.json.errors[0].code, "account-disabled");
    await change(String(created.user), { disabled: false });
    assert.equal((await reset()).json.errors[0].code, "invalid-reset-link");
  });

  test("audit log: account created by the first request of a proxy or provider → names the user, with the address", async () => {
    const network = fromNewNetwork();
    await call("GET", "/v1/me", { headers: { "Remote-User": "Newcomer", ...network } });
    await call("GET", "/v1/me", { headers: { ...(await bearer("newcomer at the provider")), ...network } });
    const { entries } = await administration.store.auditLog({ offset: 0, size: 100 });
    for (const name of ["newcomer", "oidc:newcomer at the provider"]) {
      const created = entries.filter(({ target }) => target === name);
      assert.deepEqual(
        created.map(({ action, actor, address }) => [action, actor, address]),
        [["account-signed-up", name, network["X-Forwarded-For"]]],
      );
    }
  });

  test("last administrator: signed in by a proxy or provider → cannot disable or demote themselves, or delete the account", async () => {
    const headers = { "Remote-User": "admin" };
    const id = await idOf(headers);
    for (const attributes of [{ disabled: true }, { role: "member" }]) {
      const body = documentOf("account", attributes);
      const response = await call("PATCH", `/v1/accounts/${id}`, { headers: { ...JSONAPI, ...headers }, body });
      assert.equal(response.json.errors[0].code, "last-admin");
    }
    for (const path of [`/v1/accounts/${id}`, "/v1/me"])
      assert.equal((await call("DELETE", path, { headers })).json.errors[0].code, "last-admin");
    assert.equal(await statusOf(headers), 200);
  });
});
