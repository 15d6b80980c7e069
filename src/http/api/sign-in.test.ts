import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  cookieOf,
  fromNewNetwork,
  JSONAPI,
  MINUTE,
  newUser,
  PASSWORD,
  pointerOf,
  signIn,
  signUp,
  start,
  titleOf,
} from "../../../test/support/http-accounts.ts";
import { addTo } from "../../../test/support/lists.ts";
import { newId } from "../../../test/support/server.ts";
import { asUser } from "../../accounts/caller.ts";
import { isAccountRefusal } from "../../accounts/refusals.ts";

describe("sign-up and sign-in", async () => {
  const server = await start();

  test("sign-up: valid → an account and a session", async () => {
    const response = await signUp(server, "Ann.Smith");
    assert.equal(response.status, 201);
    assert.equal(response.headers["location"], "/v1/me");
    assert.equal(response.json.data.type, "account");
    assert.equal(response.json.data.attributes.name, "ann.smith");
    const me = await server.call("GET", "/v1/me", { headers: { Cookie: cookieOf(response) } });
    assert.deepEqual(me.json.data, response.json.data);
  });

  test("sign-in: valid → an HttpOnly, SameSite cookie", async () => {
    const { name } = await newUser(server);
    const plain = await signIn(server, name);
    assert.equal(plain.status, 201);
    assert.match(
      String(plain.headers["set-cookie"]),
      /^earmark=[\w-]{43}; Path=\/; Max-Age=7776000; HttpOnly; SameSite=Lax$/,
    );
    const https = await signIn(server, name, PASSWORD, { ...fromNewNetwork(), "X-Forwarded-Proto": "https" } as never);
    assert.match(
      String(https.headers["set-cookie"]),
      /^__Host-earmark=[\w-]{43}; Path=\/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure$/,
    );
    assert.equal(https.headers["location"], https.json.data.links.self);
    assert.equal(https.json.data.attributes.current, true);
  });

  test("names: other case, width or composition → the same name; lookalikes → rejected", async () => {
    assert.equal((await signUp(server, "Zoe-1")).status, 201);
    for (const same of ["zoe-1", "ZOE-1", "ｚｏｅ－１"]) {
      const again = await signUp(server, same);
      assert.deepEqual([again.status, titleOf(again), pointerOf(again)], [409, "Name Taken", "/data/attributes/name"]);
      assert.equal((await signIn(server, same)).status, 201);
    }
    for (const other of [
      "zоe-1",
      "zoé-1",
      "zoe\u0301-1",
      "zoe\u200b-1",
      "zoe 1",
      "",
      "-zoe",
      "a".repeat(65),
      "zoe\0",
    ]) {
      const response = await signUp(server, other);
      assert.deepEqual([response.status, pointerOf(response)], [422, "/data/attributes/name"], JSON.stringify(other));
      assert.equal((await signIn(server, other)).status, 401);
    }
  });

  test("passwords: any characters → used exactly", async () => {
    for (const [index, password] of [
      " leading and trailing ",
      "with\0nul inside",
      "🎧📻🎙️🎵🎧📻🎙️🎵",
      "x1".repeat(50),
      "y2".repeat(128),
      "caf\u00e9 au lait",
    ].entries()) {
      const name = `exact-${index}`;
      assert.equal((await signUp(server, name, password)).status, 201, password);
      assert.equal((await signIn(server, name, password)).status, 201, password);
      for (const wrong of [password.trim(), password.slice(0, 72), password.normalize("NFD"), `${password} `]) {
        if (wrong !== password) assert.equal((await signIn(server, name, wrong)).status, 401, wrong);
      }
    }
  });

  test("passwords: too short, too long or common → rejected with the reason, no account", async () => {
    const refused: readonly (readonly [password: string, problem: string])[] = [
      ["seven77", "too-short"],
      ["x".repeat(257), "too-long"],
      ["Password123", "too-common"],
      ["1234567890", "too-common"],
      ["aaaaaaaaaaaa", "too-common"],
      ["common-name", "same-as-name"],
      ["a\ud800bcdefgh", "lone-surrogates"],
    ];
    for (const [password, problem] of refused) {
      const response = await signUp(server, "common-name", password);
      assert.deepEqual([response.status, pointerOf(response)], [422, "/data/attributes/password"], password);
      const [error] = response.json.errors;
      assert.deepEqual([error.code, error.meta], ["invalid-password", { problem }]);
    }
    assert.equal((await signUp(server, "common-name")).status, 201);
  });

  test("passwords: a megabyte → rejected without reading it", async () => {
    const { name } = await newUser(server);
    assert.equal((await signIn(server, name, "x".repeat(1 << 20))).status, 413);
    assert.equal((await signIn(server, name, "x".repeat(8_000))).status, 422);
  });

  test("sign-in: a wrong password or an unknown name → the same response", async () => {
    const { name } = await newUser(server);
    const [wrong, unknown] = [
      await signIn(server, name, "wrong password"),
      await signIn(server, "nobody-at-all", PASSWORD),
    ];
    assert.equal(wrong.status, 401);
    assert.equal(wrong.headers["www-authenticate"], 'Bearer realm="Earmark"');
    assert.equal(wrong.text, unknown.text);
    assert.deepEqual({ ...wrong.headers, date: "" }, { ...unknown.headers, date: "" });
  });

  test("sign-in: failed → one warning with the client's address, without name and password", async () => {
    const logging = await start();
    await signUp(logging, "ann");
    for (const [name, password] of [
      ["ann", "canary-password"],
      ["canary-name", "canary-password"],
    ] as const)
      await signIn(logging, name, password, { "X-Forwarded-For": "2001:db8::7" });
    const warnings = logging
      .log()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      warnings.map(({ level, msg, client }) => [level, msg, client]),
      Array(2).fill([40, "failed sign-in", "2001:db8::7"]),
    );
    assert.doesNotMatch(logging.log(), /canary/);
  });

  test("documents: malformed or of another type → rejected", async () => {
    const post = (body: string, headers = {}) =>
      server.call("POST", "/v1/sessions", { headers: { ...JSONAPI, ...fromNewNetwork(), ...headers }, body });
    for (const [body, status, pointer] of [
      ["{", 400, undefined],
      ["[]", 400, ""],
      ["{}", 400, ""],
      ['{"data":[]}', 400, "/data"],
      ['{"data":{}}', 400, "/data"],
      ['{"data":{"type":"token"}}', 409, "/data/type"],
      ['{"data":{"type":"session"}}', 422, "/data"],
      ['{"data":{"type":"session","attributes":[]}}', 422, "/data/attributes"],
      ['{"data":{"type":"session","attributes":{"name":"x"}}}', 422, "/data/attributes"],
      ['{"data":{"type":"session","attributes":{"name":1,"password":"x"}}}', 422, "/data/attributes/name"],
    ] as const) {
      const response = await post(body);
      assert.deepEqual([response.status, pointerOf(response)], [status, pointer], body);
    }
    assert.equal((await post("{}", { "Content-Type": "application/json" })).status, 415);
    assert.equal((await post("{}", { Accept: "text/html" })).status, 406);
  });
});

describe("sign-up policy", () => {
  test("sign-up: by default → closed", async () => {
    const server = await start({ EARMARK_SIGN_UP: "false" });
    const response = await signUp(server, "stranger");
    assert.deepEqual([response.status, titleOf(response)], [403, "Sign-Up Closed"]);
    assert.equal((await signIn(server, "stranger")).status, 401);
  });

  test("invitations: used or expired → rejected", async () => {
    const server = await start({ EARMARK_SIGN_UP: "false" });
    const invite = async () => {
      const issued = await server.administration.invite(asUser(0), server.now());
      assert.ok(!isAccountRefusal(issued));
      return issued.secret;
    };
    const [used, late] = [await invite(), await invite()];
    const check = async (invitation: string) => {
      const body = JSON.stringify({ data: { type: "invitation-check", attributes: { invitation } } });
      const headers = { ...JSONAPI, ...fromNewNetwork() };
      return (await server.call("POST", "/v1/invitation-checks", { headers, body })).status;
    };
    // A check uses nothing up.
    for (const invitation of [used, used, late]) assert.equal(await check(invitation), 204);
    assert.equal((await signUp(server, "ann", "short", { invitation: used })).status, 422);
    assert.equal((await signUp(server, "ann", PASSWORD, { invitation: used })).status, 201);
    server.wait(8 * 24 * 60 * MINUTE);
    for (const invitation of [used, late, "emi_x", "", `${late}x`]) {
      const response = await signUp(server, "bob", PASSWORD, { invitation });
      assert.deepEqual([response.status, titleOf(response)], [403, "Invitation Not Valid"], invitation);
      assert.equal(await check(invitation), 403, invitation);
    }
  });

  test("setup link: the first account exists → rejected", async () => {
    const server = await start({ EARMARK_SIGN_UP: "false" });
    const [first, second] = [
      await server.administration.createSetupLink(server.now()),
      await server.administration.createSetupLink(server.now()),
    ];
    assert.ok(first !== undefined && second !== undefined);
    assert.equal((await signUp(server, "ann", PASSWORD, { invitation: first.secret })).status, 201);
    assert.equal((await signUp(server, "bob", PASSWORD, { invitation: second.secret })).status, 403);
    assert.equal(await server.administration.createSetupLink(server.now()), undefined);
  });

  test("sign-up: an existing local list → not taken over", async () => {
    const server = await start();
    await addTo(
      server.store,
      asUser(1),
      [{ kind: "add", id: newId(), feedUrl: "https://ann:secret@a.example/", normalizedUrl: "a.example" }],
      server.now(),
    );
    const stranger = await signUp(server, "stranger");
    assert.notEqual(stranger.json.data.id, "1");
    const list = await server.call("GET", "/v1/subscriptions", { headers: { Cookie: cookieOf(stranger) } });
    assert.equal(list.json.meta.total, 0);
    const created = await server.accounts.create("owner", PASSWORD, server.now());
    assert.equal("user" in created && created.user, 1);
  });

  test("names: oidc:NAME → cannot be chosen", async () => {
    const { accounts, now } = await start();
    const issuer = "https://id.example";
    const found = await accounts.findOrCreate("alice", issuer, "192.0.2.1", now());
    const created = await accounts.create("alice", PASSWORD, now());
    assert.equal((await accounts.findByName("oidc:alice", issuer))?.user, found?.account.user);
    assert.equal((await accounts.findByName("Alice", issuer))?.user, "user" in created && created.user);
    assert.equal(await accounts.findByName("oidc:alice"), undefined);
    assert.ok("reason" in (await accounts.create("oidc:alice", PASSWORD, now())));
  });

  test("invitations: invalid, sign-up open → rejected", async () => {
    const server = await start();
    assert.equal((await signUp(server, "ann", PASSWORD, { invitation: "emi_nothing" })).status, 403);
  });
});
