import assert from "node:assert/strict";
import { test } from "node:test";
import { NOBODY } from "../src/accounts/account-store.ts";
import { Accounts } from "../src/accounts/accounts.ts";
import { Administration } from "../src/accounts/administration.ts";
import type { AdminAction } from "../src/accounts/administration-store.ts";
import { asUser, type UserId } from "../src/accounts/caller.ts";
import {
  bearer,
  bodyOf,
  type Headers,
  headersFor,
  sendTo,
  startWithAccounts,
  targetsOf,
  type Way,
  wayOf,
  withoutApps,
} from "./support/access.ts";
import {
  createAccount,
  document,
  fromElsewhere,
  holdBack,
  inviteTo,
  newToken,
  type SignedIn,
  signIn,
  writeRequest,
} from "./support/accounts.ts";
import { openEvents } from "./support/events.ts";
import { run } from "./support/process.ts";
import { newId, PLAIN } from "./support/server.ts";

const { server, clock } = await startWithAccounts();
const { port, store } = server;
const COMMAND = asUser(NOBODY);
const administration = new Administration(store.administration, new Accounts(store.accounts, { signUp: false }));
const PASSWORD = "the password of everybody here";

interface Person extends SignedIn {
  readonly user: UserId;
}

let people = 0;
async function newPerson(kind?: AdminAction): Promise<Person> {
  people += 1;
  const person = await createAccount(store, { name: `person-${people}`, password: PASSWORD }, clock.now);
  if (kind !== undefined) assert.equal(await administration.change(COMMAND, person.user, kind, clock.now), undefined);
  return person;
}
// So that no test meets the last administrator.
await newPerson("promote");
const admin = await newPerson("promote");

const cookieOf = ({ cookie: Cookie }: SignedIn): Headers => ({ Cookie });
const routes = targetsOf(server.server.routes).filter(({ path, method }) => wayOf(path, method).access === "admin");

/** A path to something that is there. */
async function pathOf(url: string): Promise<string> {
  if (url.includes(":account")) return url.replace(":account", String((await newPerson()).user));
  if (!url.includes(":id")) return url;
  await inviteTo(store, clock.now);
  const invitations = await store.accounts.listCredentials(NOBODY, "invitation");
  return url.replace(":id", invitations.at(-1)?.id ?? "");
}

async function send(url: string, method: string, headers: Headers): Promise<{ status: number; code: string }> {
  const way = wayOf(url, method);
  const response = await sendTo(
    port,
    method,
    await pathOf(url),
    { ...headersFor(url, way, { name: "admin" }), ...headers },
    await way.body?.({} as Parameters<NonNullable<Way["body"]>>[0], ""),
  );
  const { errors } = method === "HEAD" || response.status === 204 ? {} : JSON.parse(bodyOf(response));
  return { status: response.status, code: errors?.[0].code ?? "" };
}

test("access of administrators: routes → eleven, plus HEAD for each GET", () => {
  assert.equal(withoutApps(server.server.routes).filter(({ access }) => access === "admin").length, 11);
});

for (const { method, path } of routes) {
  test(`access of administrators: ${method} ${path} → for a session of an administrator only`, async () => {
    const code = (name: string) => (method === "HEAD" ? "" : name);
    const { token } = await newToken(port, admin, { label: "an app", scope: "write" });
    const { token: readToken } = await newToken(port, admin, { label: "an app", scope: "read" });
    const [member, demoted, disabled] = [await newPerson(), await newPerson("promote"), await newPerson("promote")];
    await administration.change(COMMAND, demoted.user, "demote", clock.now);
    await administration.change(COMMAND, disabled.user, "disable", clock.now);
    for (const [name, headers, status, error] of [
      ["nothing", {}, 401, "unauthenticated"],
      ["a token of an administrator", bearer(token), 403, "session-required"],
      ["a read-only token of an administrator", bearer(readToken), 403, "session-required"],
      ["the password", { Authorization: `Basic ${btoa(`${admin.name}:${PASSWORD}`)}` }, 401, "invalid-credentials"],
      ["a session of a member", cookieOf(member), 403, "admin-required"],
      ["a session of a former administrator", cookieOf(demoted), 403, "admin-required"],
      ["a session of a disabled administrator", cookieOf(disabled), 401, "invalid-credentials"],
      ["an invitation", bearer(await inviteTo(store, clock.now)), 401, "invalid-credentials"],
    ] as const)
      assert.deepEqual(await send(path, method, headers), { status, code: code(error) }, name);
    const { status } = await send(path, method, cookieOf(admin));
    assert.equal(status, wayOf(path, method).status);
  });
}

/** Everything by which an administrator loses the role, and what a request gets that began before. */
const ENDS: Readonly<Record<string, readonly [status: number, end: (who: Person) => Promise<unknown>]>> = {
  "demoted by another": [403, (who) => change(who, document("account", { role: "member" }))],
  "disabled by another": [401, (who) => change(who, document("account", { disabled: true }))],
  "deleted by another": [401, (who) => sendTo(port, "DELETE", `/v1/accounts/${who.user}`, cookieOf(admin))],
  "signed out": [401, async (who) => store.accounts.setPassword(asUser(who.user), { passwordHash: "x" }, clock.now)],
};

async function change({ user }: Person, body: string): Promise<void> {
  const headers = { ...cookieOf(admin), "Content-Type": PLAIN };
  assert.equal((await sendTo(port, "PATCH", `/v1/accounts/${user}`, headers, body)).status, 200);
}

const everything = async () => ({
  accounts: (await store.administration.page({ offset: 0, size: 10_000 })).accounts.map(
    ({ seenAt: _, ...person }) => person,
  ),
  invitations: await store.accounts.listCredentials(NOBODY, "invitation"),
  entries: (await store.administration.auditLog({ offset: 0, size: 1 })).total,
});

for (const { method, path: url } of routes.filter(({ method }) => method !== "GET" && method !== "HEAD")) {
  const way = wayOf(url, method);
  for (const [name, [status, end]] of Object.entries(ENDS)) {
    test(`${method} ${url}: the administrator is ${name} before the last byte of the request → ${status}, nothing is written`, async () => {
      const who = await newPerson("promote");
      const path = await pathOf(url);
      const headers = { ...headersFor(url, way, who), ...cookieOf(who) };
      const body = await way.body?.({} as Parameters<NonNullable<Way["body"]>>[0], "");
      let before: unknown;
      const response = await holdBack(port, writeRequest(method, path, headers, body), async () => {
        await end(who);
        before = await everything();
      });
      assert.equal(response.status, status, response.bytes);
      assert.deepEqual(await everything(), before);
    });
  }
}

for (const [name, args, status] of [
  ["demotes", ["user", "admin", "--revoke"], 403],
  ["disables", ["user", "disable"], 401],
  ["deletes", ["user", "delete", "--yes"], 401],
] as const) {
  test(`POST /v1/invitations: a command ${name} the administrator before the last byte of the request → ${status}`, async () => {
    const who = await newPerson("promote");
    const headers = { ...cookieOf(who), "Content-Type": PLAIN };
    const body = document("invitation", {});
    const response = await holdBack(port, writeRequest("POST", "/v1/invitations", headers, body), async () => {
      const { code, stderr } = await run([...args, who.name], { DATABASE_URL: server.databaseUrl });
      assert.equal(code, 0, stderr);
    });
    assert.equal(response.status, status, response.bytes);
  });
}

test("access: an account is disabled → every credential is rejected at once, and enabled → tokens work again", async () => {
  const who = await newPerson();
  const { token } = await newToken(port, who, { label: "an app", scope: "write" });
  const basic = (password: string) => ({ Authorization: `Basic ${btoa(`${who.name}:${password}`)}` });
  const app = `/api/2/devices/${who.name}.json`;
  const nextcloud = "/index.php/apps/gpoddersync/subscriptions?since=0";
  const opened = await server.call("GET", app, { headers: basic(PASSWORD) });
  const sessionId = String(opened.headers["set-cookie"]).split(";")[0] ?? "";
  const uses: readonly [path: string, headers: Headers, whenEnabled: number][] = [
    ["/v1/me", cookieOf(who), 401],
    ["/v1/me", bearer(token), 200],
    [app, basic(PASSWORD), 200],
    [app, basic(token), 200],
    [app, { Cookie: sessionId }, 200],
    [nextcloud, basic(PASSWORD), 200],
    [nextcloud, basic(token), 200],
  ];
  const statuses = () =>
    Promise.all(
      uses.map(async ([path, headers]) => (await sendTo(port, "GET", path, { ...headers, ...fromElsewhere() })).status),
    );
  assert.deepEqual(new Set(await statuses()), new Set([200]));
  const streams = await Promise.all([cookieOf(who), bearer(token)].map((headers) => openEvents(port, headers)));
  await change(who, document("account", { disabled: true }));
  assert.deepEqual(new Set(await statuses()), new Set([401]));
  await Promise.all(streams.map(({ ended }) => ended));
  const tryToSignIn = async (password: string) => {
    const { status, json } = await server.call("POST", "/v1/sessions", {
      headers: { "Content-Type": PLAIN, ...fromElsewhere() },
      body: document("session", { name: who.name, password }),
    });
    return [status, json.errors?.[0].code];
  };
  assert.deepEqual(await tryToSignIn(PASSWORD), [403, "account-disabled"]);
  assert.deepEqual(await tryToSignIn("another password"), [401, "sign-in-failed"]);
  await change(who, document("account", { disabled: false }));
  assert.deepEqual(
    await statuses(),
    uses.map(([, , status]) => status),
  );
  assert.equal((await signIn(port, who, fromElsewhere())).name, who.name);
});

test("access: last seen → the day of the last request, whatever the credential", async () => {
  const who = await newPerson();
  assert.equal((await server.call("GET", "/v1/me", { headers: cookieOf(who) })).status, 200);
  const seen = async () => {
    const { json } = await server.call("GET", `/v1/accounts/${who.user}`, { headers: cookieOf(admin) });
    return json.data.attributes.last_seen_on;
  };
  const day = clock.now.toISOString().slice(0, 10);
  for (let tries = 0; tries < 100 && (await seen()) !== day; tries += 1);
  assert.equal(await seen(), day);
  assert.equal((await server.call("GET", `/v1/accounts/${newId()}`, { headers: cookieOf(admin) })).status, 404);
});
