import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, EarmarkError } from "../client/src/index.ts";
import { inviteTo } from "./support/accounts.ts";
import { failureOf, feedsOf, keepCookie, openBrowser, outcomesOf, PASSWORD, refusalOf } from "./support/client.ts";
import { startServer } from "./support/server.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

let aheadMs = 0;
const server = await startServer(
  { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true", EARMARK_BASE_PATH: "/pods" },
  () => new Date(Date.now() + aheadMs),
);
const url = `${server.url}/pods`;

test("session: sign up, out and in → signed in", async () => {
  const client = openBrowser(url);
  assert.equal(await client.signUp({ name: "Ada", password: PASSWORD, invitation: undefined }), undefined);
  const { name, credential } = await client.me();
  assert.deepEqual([name, credential?.kind, credential?.scope], ["ada", "session", "write"]);
  assert.deepEqual(outcomesOf(await client.subscribe(feedsOf(2))), ["added", "added"]);

  assert.equal(await client.signOut(), undefined);
  assert.deepEqual(await refusalOf(client.me()), [401, "unauthenticated"]);
  // Signing out again succeeds.
  await client.signOut();

  assert.equal(await client.signIn({ name: "ADA", password: PASSWORD }), undefined);
  assert.deepEqual((await client.me()).counts, { subscriptions: 2, tokens: 0, sessions: 1 });
});

test("me: followMoves changed → the updated user", async () => {
  const client = openBrowser(url);
  await client.signUp({ name: "frances", password: PASSWORD });
  assert.equal((await client.me()).followMoves, true);
  assert.deepEqual(await client.changeMe({ followMoves: false }), await client.me());
  assert.equal((await client.me()).followMoves, false);
});

test("sign-up: name taken or invalid password → rejected", async () => {
  const person = { name: "grace", password: PASSWORD };
  await openBrowser(url).signUp(person);
  const client = openBrowser(url);
  assert.deepEqual(await refusalOf(client.signUp(person)), [409, "name-taken"]);
  const short = await failureOf(client.signUp({ name: "hopper", password: "short" }), EarmarkError);
  assert.deepEqual([short.status, short.errors[0]?.source?.pointer], [422, "/data/attributes/password"]);
  const wrong = await failureOf(client.signIn({ ...person, password: "wrong horse battery" }), EarmarkError);
  assert.deepEqual(
    [wrong.status, wrong.code, wrong.detail, wrong.errors.length],
    [401, "sign-in-failed", "Invalid name or password.", 1],
  );
  assert.deepEqual(await refusalOf(client.sessions()), [401, "unauthenticated"]);
});

test("invitation: used twice → rejected", async () => {
  const { url, store } = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "false" });
  const invitation = await inviteTo(store);
  const client = openBrowser(url);
  assert.deepEqual(await refusalOf(client.signUp({ name: "ann", password: PASSWORD })), [403, "sign-up-closed"]);
  await client.signUp({ name: "ann", password: PASSWORD, invitation });
  assert.equal((await client.me()).name, "ann");
  const late = openBrowser(url).signUp({ name: "bob", password: PASSWORD, invitation });
  assert.deepEqual(await refusalOf(late), [403, "invalid-invitation"]);
});

test("token: created, used, listed and revoked → rejected afterwards", async () => {
  const client = openBrowser(url);
  await client.signUp({ name: "edith", password: PASSWORD });
  const { secret, ...phone } = await client.createToken({ label: "phone" });
  assert.match(secret, /^emk_/);
  assert.ok(Math.abs(phone.createdAt.getTime() - Date.now() - aheadMs) < 60_000);
  const { id, createdAt } = phone;
  assert.deepEqual(phone, {
    id,
    kind: "token",
    label: "phone",
    scope: "write",
    createdAt,
    lastUsedAt: null,
    expiresAt: null,
    isCurrent: false,
  });
  const expiresAt = new Date(Date.now() + aheadMs + 30 * DAY_MS);
  // Tokens are listed in the order of creation.
  aheadMs += 1_000;
  const radio = await client.createToken({ label: "radio", scope: "read", expiresAt });
  assert.deepEqual([radio.scope, radio.expiresAt], ["read", expiresAt]);

  const app = createClient({ url: url, token: secret });
  assert.deepEqual(outcomesOf(await app.subscribe(feedsOf(1))), ["added"]);
  const reader = createClient({ url: url, token: radio.secret });
  assert.deepEqual(await refusalOf(reader.subscribe(feedsOf(1))), [403, "insufficient-scope"]);
  // These need a session.
  assert.deepEqual(await refusalOf(app.tokens()), [403, "session-required"]);
  assert.deepEqual(await refusalOf(app.signOut()), [403, "session-required"]);

  const listed = await client.tokens();
  assert.deepEqual(
    listed.map(({ label, isCurrent }) => [label, isCurrent]),
    [
      ["phone", false],
      ["radio", false],
    ],
  );
  assert.deepEqual({ ...listed[0], lastUsedAt: null }, phone);
  assert.equal(await client.revoke(phone), true);
  assert.equal(await client.revoke(phone), false);
  assert.deepEqual(await refusalOf(app.me()), [401, "invalid-credentials"]);
  assert.equal((await client.tokens()).length, 1);

  assert.deepEqual(await refusalOf(client.createToken({ label: "" })), [422, "invalid-label"]);
  assert.deepEqual(await refusalOf(client.createToken({ label: "late", expiresAt: new Date(0) })), [
    422,
    "invalid-expiry",
  ]);
  // An invalid date must not become a token that never expires.
  await failureOf(client.createToken({ label: "never", expiresAt: new Date(Number.NaN) }), RangeError);
  assert.equal((await client.tokens()).length, 1);
});

test("tokens: several pages → all listed", async () => {
  const browser = keepCookie();
  const asked: string[] = [];
  const client = openBrowser(url, {
    fetch: (address, init) => {
      const short = address.replace("page[size]=100", "page[size]=2");
      asked.push(short.slice(url.length));
      return browser(short, init);
    },
  });
  await client.signUp({ name: "joan", password: PASSWORD });
  for (const label of ["a", "b", "c", "d", "e"]) {
    aheadMs += 1_000;
    await client.createToken({ label });
  }
  asked.length = 0;
  assert.equal((await client.tokens()).map(({ label }) => label).join(""), "abcde");
  assert.deepEqual(
    asked.map((path) => decodeURI(path)),
    [1, 2, 3].map((number) => `/v1/tokens?page[number]=${number}&page[size]=2`),
  );
  assert.equal((await client.sessions()).length, 1);
});

test("sessions: revoked or password changed → signed out", async () => {
  const person = { name: "mary", password: PASSWORD };
  const [desk, sofa, train] = [openBrowser(url), openBrowser(url), openBrowser(url)];
  await desk.signUp(person);
  await sofa.signIn(person);
  const sessions = await sofa.sessions();
  assert.deepEqual(
    sessions.map(({ kind, scope, label, isCurrent }) => [kind, scope, label, isCurrent]),
    [
      ["session", "write", "node", false],
      ["session", "write", "node", true],
    ],
  );
  const [first] = sessions;
  assert.ok(first?.expiresAt instanceof Date);
  assert.equal(first.expiresAt.getTime() - first.createdAt.getTime(), 90 * DAY_MS);
  assert.equal(await sofa.revoke(first), true);
  assert.deepEqual(await refusalOf(desk.me()), [401, "invalid-credentials"]);
  await desk.signOut();

  await train.signIn(person);
  const newPassword = "a longer one this time";
  const wrong = train.changePassword({ current: newPassword, new: newPassword });
  assert.deepEqual(await refusalOf(wrong), [403, "wrong-password"]);
  assert.equal(await train.changePassword({ current: PASSWORD, new: newPassword }), undefined);
  assert.deepEqual(await refusalOf(sofa.me()), [401, "invalid-credentials"]);
  assert.deepEqual(
    (await train.sessions()).map(({ isCurrent }) => isCurrent),
    [true],
  );
  assert.deepEqual(await refusalOf(sofa.signIn(person)), [401, "sign-in-failed"]);
  await sofa.signIn({ ...person, password: newPassword });
});

test("account: export and delete → recent sign-in required", async () => {
  const person = { name: "hedy", password: PASSWORD };
  const client = openBrowser(url);
  await client.signUp(person);
  const { secret } = await client.createToken({ label: "phone" });
  await client.subscribe(feedsOf(3));
  const { data } = JSON.parse(await client.exportAccount());
  assert.deepEqual(
    data.map(({ type }: { readonly type: string }) => type),
    ["account", "token", "session", "subscription", "subscription", "subscription", "change-set"],
  );

  aheadMs += 11 * 60 * 1_000;
  assert.deepEqual(await refusalOf(client.deleteAccount()), [403, "recent-sign-in-required"]);
  await client.signIn(person);
  assert.equal(await client.deleteAccount(), undefined);
  assert.deepEqual(await refusalOf(client.me()), [401, "unauthenticated"]);
  assert.deepEqual(await refusalOf(createClient({ url: url, token: secret }).me()), [401, "invalid-credentials"]);
  assert.deepEqual(await refusalOf(client.signIn(person)), [401, "sign-in-failed"]);
  await client.signUp(person);
  assert.equal((await client.me()).counts.subscriptions, 0);
});

test("no accounts: sign-in → 404; export → the list", async () => {
  const { url } = await startServer();
  const client = createClient({ url });
  await client.signOut();
  assert.equal((await failureOf(client.signIn({ name: "ann", password: PASSWORD }), EarmarkError)).status, 404);
  assert.equal((await failureOf(client.tokens(), EarmarkError)).status, 404);
  assert.equal(JSON.parse(await client.exportAccount()).data.length, 1);
});
