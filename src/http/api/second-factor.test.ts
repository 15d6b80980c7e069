import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  basic,
  cookieOf,
  documentOf,
  fromNewNetwork,
  JSONAPI,
  MINUTE,
  newUser,
  PASSWORD,
  pointerOf,
  start,
} from "../../../test/support/http-accounts.ts";
import { createPasskey } from "../../../test/support/passkeys.ts";
import type { HttpResponse } from "../../../test/support/server.ts";
import { asUser } from "../../accounts/caller.ts";
import { stepAt, totpCode } from "../../accounts/totp.ts";

type Server = Awaited<ReturnType<typeof start>>;
type User = Awaited<ReturnType<typeof newUser>>;
type Headers = Readonly<Record<string, string>>;

const STEP = 30_000;
const PATH = "/v1/second-factor";
const CODES = `${PATH}/recovery-codes`;
const ENROLLMENT = `${PATH}/enrollment`;
const codeOf = ({ json }: HttpResponse): string | undefined => json?.errors?.[0]?.code;
const outcomeOf = (response: HttpResponse) => [response.status, response.status < 400 ? undefined : codeOf(response)];
const attributesOf = ({ json }: HttpResponse) => json.data.attributes;

const signIn = ({ call }: Server, { name }: User, more: object = {}, headers: Headers = fromNewNetwork()) =>
  call("POST", "/v1/sessions", {
    headers: { ...JSONAPI, ...headers },
    body: documentOf("session", { name, password: PASSWORD, ...more }),
  });

const confirm = ({ call }: Server, { Cookie }: { Cookie: string }, attributes: object) =>
  call("POST", PATH, { headers: { ...JSONAPI, Cookie }, body: documentOf("second-factor", attributes) });

/** A user with an authenticator app, whose next codes it computes. */
async function newUserWithApp(server: Server) {
  const user = await newUser(server);
  const headers = { Cookie: user.Cookie };
  const { secret, ticket, uri } = (await server.call("GET", ENROLLMENT, { headers })).json.meta;
  const code = (offset = 0) => totpCode(secret, stepAt(server.now()) + offset);
  const added = await confirm(server, user, { ticket, one_time_code: code() });
  assert.equal(added.status, 201, added.text);
  const recoveryCodes: readonly string[] = attributesOf(added).recovery_codes;
  server.wait(STEP);
  return { ...user, headers, secret, ticket, uri, code, recoveryCodes };
}

async function addPasskey({ call, port }: Server, Cookie: string): Promise<void> {
  const passkey = await createPasskey(port, { Host: "127.0.0.1", Cookie });
  const body = documentOf("passkey", { label: "key", passkey });
  const added = await call("POST", "/v1/passkeys", { headers: { ...JSONAPI, Host: "127.0.0.1", Cookie }, body });
  assert.equal(added.status, 201, added.text);
}

async function auditOf(server: Server, { name }: { readonly name: string }) {
  const { entries } = await server.store.administration.auditLog({ offset: 0, size: 100 });
  return entries.filter(({ target, action }) => target === name && action !== "account-signed-up");
}

describe("second factors: an authenticator app", async () => {
  const server = await start();

  test("second factors: set up → a secret of 160 bits, a URI, and ten recovery codes, shown once", async () => {
    const user = await newUser(server);
    const headers = { Cookie: user.Cookie };
    const before = await server.call("GET", PATH, { headers });
    assert.deepEqual(attributesOf(before), { enabled: false, required: false, recovery_codes_left: 0 });
    const { meta } = (await server.call("GET", ENROLLMENT, { headers })).json;
    assert.match(meta.secret, /^[A-Z2-7]{32}$/);
    assert.equal(meta.uri, `otpauth://totp/Earmark:${user.name}?secret=${meta.secret}&issuer=Earmark`);
    assert.equal((await signIn(server, user)).status, 201, "not before it is confirmed");
    const right = totpCode(meta.secret, stepAt(server.now()));
    const wrong = await confirm(server, user, {
      ticket: meta.ticket,
      one_time_code: right === "000000" ? "1" : "000000",
    });
    assert.deepEqual(outcomeOf(wrong), [422, "invalid-one-time-code"]);
    assert.equal(pointerOf(wrong), "/data/attributes/one_time_code");
    const added = await confirm(server, user, { ticket: meta.ticket, one_time_code: right });
    assert.equal(added.status, 201);
    const codes = attributesOf(added).recovery_codes;
    assert.equal(new Set(codes).size, 10);
    for (const code of codes) assert.match(code, /^([a-z2-7]{4}-){3}[a-z2-7]{4}$/);
    assert.equal((await server.call("GET", "/v1/me", { headers })).status, 200, "this session remains");
    const after = attributesOf(await server.call("GET", PATH, { headers }));
    assert.deepEqual(after, { enabled: true, required: false, recovery_codes_left: 10 });
    const again = await confirm(server, user, {
      ticket: meta.ticket,
      one_time_code: totpCode(meta.secret, stepAt(server.now()) + 1),
    });
    assert.deepEqual(outcomeOf(again), [409, "second-factor-exists"]);
    const everything = (await server.call("GET", "/v1/me/export", { headers })).text;
    for (const secret of [meta.secret, ...codes]) assert.equal(everything.includes(secret), false, "not in the export");
  });

  test("second factors: a ticket of another user, expired or changed → 422", async () => {
    const [ann, bob] = [await newUser(server), await newUser(server)];
    const { ticket, secret } = (await server.call("GET", ENROLLMENT, { headers: { Cookie: ann.Cookie } })).json.meta;
    const attempt = (user: User, text: string) =>
      confirm(server, user, { ticket: text, one_time_code: totpCode(secret, stepAt(server.now())) });
    for (const [user, text] of [
      [bob, ticket],
      [ann, `${ticket}x`],
      [ann, ticket.replace(/~[\w-]{43}~/, `~${"A".repeat(43)}~`)],
      [ann, ""],
    ] as const)
      assert.deepEqual(outcomeOf(await attempt(user, text)), [422, "invalid-ticket"]);
    const missing = await confirm(server, ann, { ticket });
    assert.deepEqual(outcomeOf(missing), [422, "attribute-missing"]);
  });

  test("second factors: a sign-in more than ten minutes ago → 403 for every change", async () => {
    const user = await newUserWithApp(server);
    const { headers } = user;
    server.wait(10 * MINUTE);
    for (const [method, path] of [
      ["GET", ENROLLMENT],
      ["POST", CODES],
      ["DELETE", PATH],
    ] as const)
      assert.deepEqual(outcomeOf(await server.call(method, path, { headers })), [403, "recent-sign-in-required"]);
    const added = await confirm(server, user, { ticket: user.ticket, one_time_code: user.code() });
    assert.deepEqual(outcomeOf(added), [403, "recent-sign-in-required"]);
    assert.equal((await server.call("GET", PATH, { headers })).status, 200);
  });

  test("second factors: sign-in → asks for a code only after the right password, and takes each code once", async () => {
    const user = await newUserWithApp(server);
    assert.deepEqual(outcomeOf(await signIn(server, user, { password: "wrong" })), [401, "sign-in-failed"]);
    const withCode = { password: "wrong", one_time_code: user.code() };
    assert.deepEqual(outcomeOf(await signIn(server, user, withCode)), [401, "sign-in-failed"]);
    const asked = await signIn(server, user);
    assert.deepEqual(outcomeOf(asked), [401, "second-factor-required"]);
    assert.equal(asked.headers["set-cookie"], undefined);
    const spaced = user.code().replace(/^.../, "$& ");
    const opened = await signIn(server, user, { one_time_code: spaced });
    assert.equal(opened.status, 201, opened.text);
    assert.equal((await server.call("GET", "/v1/me", { headers: { Cookie: cookieOf(opened) } })).status, 200);
    const failed = [401, "one-time-code-failed"];
    for (const code of [user.code(), user.code(-1), "", "12345", "1234567", "x".repeat(64), "aaaa-aaaa-aaaa-aaaa"])
      assert.deepEqual(outcomeOf(await signIn(server, user, { one_time_code: code })), failed, code);
    assert.equal((await signIn(server, user, { one_time_code: user.code(1) })).status, 201);
    assert.equal(outcomeOf(await signIn(server, user, { one_time_code: 123456 }))[0], 422);
  });

  test("second factors: one code sent several times at once → one sign-in", async () => {
    const user = await newUserWithApp(server);
    const one_time_code = user.code();
    const responses = await Promise.all(Array.from({ length: 6 }, () => signIn(server, user, { one_time_code })));
    assert.deepEqual(responses.map(({ status }) => status).sort(), [201, 401, 401, 401, 401, 401]);
  });

  test("second factors: a recovery code → signs in once, also in capitals without hyphens, and is audited", async () => {
    const user = await newUserWithApp(server);
    const [first = "", second = "", third = ""] = user.recoveryCodes;
    const network = { "X-Forwarded-For": "198.51.100.77" };
    assert.equal((await signIn(server, user, { one_time_code: first }, network)).status, 201);
    assert.equal((await signIn(server, user, { one_time_code: second.replaceAll("-", "").toUpperCase() })).status, 201);
    assert.equal(codeOf(await signIn(server, user, { one_time_code: first })), "one-time-code-failed");
    assert.equal(attributesOf(await server.call("GET", PATH, user)).recovery_codes_left, 8);
    const entries = await auditOf(server, user);
    assert.equal(entries.filter(({ action }) => action === "second-factor-failed").length, 1);
    const used = entries.filter(({ action }) => action === "recovery-code-used");
    assert.equal(used.length, 2);
    assert.ok(used.some(({ actor, address }) => actor === user.name && address === "198.51.100.77"));
    const replaced = await server.call("POST", CODES, { headers: user.headers });
    assert.equal(replaced.status, 201);
    const [fresh = ""] = attributesOf(replaced).recovery_codes;
    assert.equal(codeOf(await signIn(server, user, { one_time_code: third })), "one-time-code-failed");
    assert.equal((await signIn(server, user, { one_time_code: fresh })).status, 201);
  });

  test("second factors: many wrong codes from many networks → 429, but a recovery code still signs in", async () => {
    const user = await newUserWithApp(server);
    const codes: (string | undefined)[] = [];
    for (let each = 0; each < 22; each += 1)
      codes.push(codeOf(await signIn(server, user, { one_time_code: "not right" })));
    const allowed = codes.indexOf("too-many-attempts");
    assert.ok(allowed > 15 && allowed < 21, `${allowed}`);
    assert.equal(codeOf(await signIn(server, user, { one_time_code: user.code() })), "too-many-attempts");
    const entries = (await auditOf(server, user)).filter(({ action }) => action === "second-factor-failed");
    assert.equal(entries.length, allowed);
    assert.equal((await signIn(server, user, { one_time_code: user.recoveryCodes[0] })).status, 201);
    server.wait(3 * MINUTE);
    assert.equal((await signIn(server, user, { one_time_code: user.code() })).status, 201);
  });

  test("second factors: wrong codes from one network → limited like wrong passwords", async () => {
    const user = await newUserWithApp(server);
    const network = fromNewNetwork();
    const codes: (string | undefined)[] = [];
    for (let each = 0; each < 12; each += 1)
      codes.push(codeOf(await signIn(server, user, { one_time_code: "not right" }, network)));
    assert.equal(codes[9], "one-time-code-failed");
    assert.equal(codes[10], "too-many-attempts");
  });

  test("second factors: the server's clock is set back or forward → codes of the new time work", async () => {
    const user = await newUserWithApp(server);
    for (const step of [-2 * 60 * MINUTE, 5 * 60 * MINUTE]) {
      assert.equal((await signIn(server, user, { one_time_code: user.code() })).status, 201);
      server.stepClock(step);
      assert.equal((await signIn(server, user, { one_time_code: user.code() })).status, 201);
      server.wait(MINUTE);
    }
  });

  test("second factors: removed → the password is enough; removing again is safe", async () => {
    const user = await newUserWithApp(server);
    for (const _ of [1, 2]) assert.equal((await server.call("DELETE", PATH, user)).status, 204);
    assert.equal((await signIn(server, user)).status, 201);
    assert.deepEqual(outcomeOf(await server.call("POST", CODES, user)), [409, "no-second-factor"]);
    const [latest] = await auditOf(server, user);
    assert.equal(latest?.action, "second-factor-removed");
  });

  test("second factors: set up → other sessions end, tokens remain", async () => {
    const user = await newUser(server);
    const other = cookieOf(await signIn(server, user));
    const { ticket, secret } = (await server.call("GET", ENROLLMENT, { headers: { Cookie: user.Cookie } })).json.meta;
    const one_time_code = totpCode(secret, stepAt(server.now()));
    assert.equal((await confirm(server, user, { ticket, one_time_code })).status, 201);
    assert.equal((await server.call("GET", "/v1/me", { headers: { Cookie: other } })).status, 401);
    const { Authorization } = user;
    assert.equal((await server.call("GET", "/v1/me", { headers: { Authorization } })).status, 200);
  });

  test("second factors: podcast apps → the password is refused, also by sessions opened with it; tokens work", async () => {
    const user = await newUser(server);
    const list = `/subscriptions/${user.name}.json`;
    const get = (headers: Headers) => server.call("GET", list, { headers: { ...fromNewNetwork(), ...headers } });
    const session = cookieOf(await get(basic(user.name, PASSWORD)));
    assert.equal((await get({ Cookie: session })).status, 200);
    const { ticket, secret } = (await server.call("GET", ENROLLMENT, { headers: { Cookie: user.Cookie } })).json.meta;
    const one_time_code = totpCode(secret, stepAt(server.now()));
    assert.equal((await confirm(server, user, { ticket, one_time_code })).status, 201);
    assert.equal((await get({ Cookie: session })).status, 401);
    const network = fromNewNetwork();
    for (let each = 0; each < 15; each += 1) {
      const refused = await get({ ...basic(user.name, PASSWORD), ...network });
      assert.equal(refused.status, 401, "an app that keeps trying is not locked out of the page's sign-in");
      assert.match(refused.json.message, /Create a token for the app/);
      assert.equal(refused.headers["set-cookie"], undefined);
    }
    assert.match((await get(basic(user.name, "wrong"))).json.message, /Invalid user name, password or token/);
    const path = `/api/2/auth/${user.name}/login.json`;
    const login = await server.call("POST", path, { headers: { ...fromNewNetwork(), ...basic(user.name, PASSWORD) } });
    assert.equal(login.status, 401);
    assert.equal((await get(basic(user.name, user.Authorization.slice("Bearer ".length)))).status, 200);
  });

  test("second factors: a reset link → needs the code too, and is not used up without it", async () => {
    const user = await newUserWithApp(server);
    const link = await server.administration.createResetLink(asUser(0), user.user, server.now());
    assert.ok("secret" in link);
    const reset = (more: object) =>
      server.call("POST", "/v1/password-resets", {
        headers: { ...JSONAPI, ...fromNewNetwork() },
        body: documentOf("password-reset", { link: link.secret, password: "another good password", ...more }),
      });
    assert.deepEqual(outcomeOf(await reset({})), [401, "second-factor-required"]);
    assert.deepEqual(outcomeOf(await reset({ one_time_code: "000-000-0" })), [401, "one-time-code-failed"]);
    const one_time_code = user.code();
    assert.deepEqual(outcomeOf(await reset({ one_time_code, password: "password" })), [422, "invalid-password"]);
    assert.equal((await reset({ one_time_code })).status, 201, "a bad password does not use up the code");
    const password = "another good password";
    assert.deepEqual(outcomeOf(await signIn(server, user, { password })), [401, "second-factor-required"]);
  });

  test("second factors: an account without a password → 403", async () => {
    const found = await server.accounts.findOrCreate("subject", "https://id.example", "192.0.2.1", server.now());
    assert.ok(found !== undefined);
    const opened = await server.accounts.openSession(found.account, {}, "test", server.now());
    assert.ok("secret" in opened);
    const headers = { Cookie: `earmark=${opened.secret}` };
    assert.deepEqual(outcomeOf(await server.call("GET", ENROLLMENT, { headers })), [403, "no-password"]);
  });

  test("second factors: the account is deleted → nothing of it remains", async () => {
    const user = await newUserWithApp(server);
    assert.equal((await server.call("DELETE", "/v1/me", user)).status, 204);
    assert.equal(await server.store.accounts.get(user.user), undefined);
    assert.deepEqual(await server.store.accounts.listCredentials(user.user, "recovery-code"), []);
  });
});

describe("second factors: administrators", async () => {
  const server = await start({ EARMARK_REQUIRE_SECOND_FACTOR: "admins" });
  const people = "/v1/accounts";
  const newAdmin = async () => {
    const user = await newUser(server);
    assert.equal(await server.administration.change(asUser(0), user.user, "promote", server.now()), undefined);
    return { ...user, headers: { Cookie: user.Cookie } };
  };
  const required = [403, "second-factor-setup-required"];

  test("second factors: required of administrators → nothing administrative until there is one", async () => {
    const admin = await newAdmin();
    const { headers } = admin;
    for (const [method, path] of [
      ["GET", people],
      ["GET", "/v1/audit-log"],
      ["POST", "/v1/invitations"],
      ["DELETE", `${people}/4711`],
    ] as const)
      assert.deepEqual(outcomeOf(await server.call(method, path, { headers })), required);
    assert.equal((await server.call("GET", "/v1/subscriptions", { headers })).status, 200);
    assert.equal(attributesOf(await server.call("GET", PATH, { headers })).required, true);
    const { ticket, secret } = (await server.call("GET", ENROLLMENT, { headers })).json.meta;
    const one_time_code = totpCode(secret, stepAt(server.now()));
    assert.equal((await confirm(server, admin, { ticket, one_time_code })).status, 201);
    assert.equal(attributesOf(await server.call("GET", PATH, { headers })).required, false, "no longer");
    const { json } = await server.call("GET", people, { headers });
    const own = json.data.find(({ id }: { readonly id: string }) => id === String(admin.user));
    assert.equal(own.attributes.second_factor, true);
    assert.equal((await server.call("DELETE", PATH, { headers })).status, 204);
    assert.deepEqual(outcomeOf(await server.call("GET", people, { headers })), required);
  });

  test("second factors: required of administrators, who has a passkey or no password → allowed", async () => {
    const { headers } = await newAdmin();
    assert.deepEqual(outcomeOf(await server.call("GET", people, { headers })), required);
    await addPasskey(server, headers.Cookie);
    assert.equal((await server.call("GET", people, { headers })).status, 200);
    const found = await server.accounts.findOrCreate("boss", "https://id.example", "192.0.2.1", server.now());
    assert.ok(found !== undefined);
    await server.administration.change(asUser(0), found.account.user, "promote", server.now());
    const opened = await server.accounts.openSession(found.account, {}, "test", server.now());
    assert.ok("secret" in opened);
    assert.equal((await server.call("GET", people, { headers: { Cookie: `earmark=${opened.secret}` } })).status, 200);
  });

  test("second factors: required of administrators → nobody else needs one", async () => {
    const { Cookie } = await newUser(server);
    assert.deepEqual(outcomeOf(await server.call("GET", people, { headers: { Cookie } })), [403, "admin-required"]);
    assert.equal(attributesOf(await server.call("GET", PATH, { headers: { Cookie } })).required, false);
  });

  test("second factors: reset by an administrator → the password is enough, audited; a recent sign-in is needed", async () => {
    const [admin, ann] = [await newAdmin(), await newUserWithApp(server)];
    await addPasskey(server, admin.Cookie);
    const reset = (id: string | number, headers: Headers = admin.headers) =>
      server.call("DELETE", `${people}/${id}/second-factor`, { headers });
    assert.deepEqual(outcomeOf(await reset(ann.user, ann.headers)), [403, "admin-required"]);
    assert.equal((await reset(4_711)).status, 404);
    assert.equal((await reset("x")).status, 404);
    assert.equal((await reset(ann.user)).status, 204);
    assert.equal((await signIn(server, ann)).status, 201);
    const [latest] = await auditOf(server, ann);
    assert.deepEqual([latest?.action, latest?.actor], ["second-factor-reset", admin.name]);
    server.wait(11 * MINUTE);
    assert.deepEqual(outcomeOf(await reset(ann.user)), [403, "recent-sign-in-required"]);
  });
});
