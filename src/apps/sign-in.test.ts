import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { temporaryFolder } from "../../test/support/server.ts";
import { Accounts } from "../accounts/accounts.ts";
import { asUser } from "../accounts/caller.ts";
import { isAccountRefusal, refuse } from "../accounts/refusals.ts";
import { openStore } from "../store/open.ts";
import { APP_SESSION_MS, AppSignIn, type AppUser } from "./sign-in.ts";

const PASSWORD = "correct horse battery";
const NOW = new Date("2031-01-01T00:00:00Z");
const DAY = 24 * 60 * 60_000;
const after = (ms: number) => new Date(NOW.getTime() + ms);

async function open() {
  const path = `${temporaryFolder()}/earmark.db`;
  const store = await openStore(`file:${path}`, { connections: 1 });
  const accounts = new Accounts(store.accounts, { signUp: true });
  const created = await accounts.create("ann", PASSWORD, NOW);
  assert.ok(!isAccountRefusal(created));
  return { path, store, accounts, user: created.user, signIn: new AppSignIn(accounts) };
}

let networks = 0;
const attempt = (name: string, password: string) => {
  networks += 1;
  return { name, password, networks: [`10.0.0.${networks}`] };
};

function isSignedIn(user: AppUser | object): user is AppUser {
  return "account" in user;
}

test("app sign-in: same password again → verified once, then cached", async () => {
  const { store, signIn } = await open();
  // More than the ten attempts that one network has for a name.
  for (let each = 0; each < 50; each += 1)
    assert.ok(isSignedIn(await signIn.withPassword({ name: "Ann", password: PASSWORD, networks: ["192.0.2.1"] }, NOW)));
  await store.close();
});

test("app sign-in: the same password in several requests at once → one attempt", async () => {
  const { store, signIn } = await open();
  const one = { name: "ann", password: PASSWORD, networks: ["192.0.2.1"] };
  const users = await Promise.all(Array.from({ length: 30 }, () => signIn.withPassword(one, NOW)));
  assert.ok(users.every(isSignedIn));
  await store.close();
});

test("app sign-in: wrong password or unknown name → rejected, then rate-limited", async () => {
  const { store, signIn } = await open();
  const wrong = { name: "ann", password: "wrong", networks: ["192.0.2.1"] };
  const refusals: unknown[] = [];
  for (let each = 0; each < 11; each += 1) refusals.push(await signIn.withPassword(wrong, NOW));
  assert.deepEqual(refusals[0], refuse({ reason: "wrong-password" }));
  assert.equal((refusals.at(-1) as { reason: string }).reason, "too-often");
  assert.deepEqual(await signIn.withPassword(attempt("nobody", PASSWORD), NOW), refuse({ reason: "wrong-password" }));
  await store.close();
});

test("app sign-in: changed password → the old password and its sessions are rejected at once", async () => {
  const { store, accounts, signIn, user } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const session = (await signIn.openSession(found, "phone", NOW)) ?? "";
  assert.equal((await signIn.readSession(session, NOW))?.device, "phone");
  const account = await accounts.get(user);
  assert.ok(account);
  assert.equal(await accounts.setPassword(account, "another horse battery", NOW), undefined);
  assert.ok(!isSignedIn(await signIn.withPassword(attempt("ann", PASSWORD), NOW)));
  assert.equal(await signIn.readSession(session, NOW), undefined);
  assert.ok(isSignedIn(await signIn.withPassword(attempt("ann", "another horse battery"), NOW)));
  await store.close();
});

test("app sign-in: token as password → accepted only with the name of its account, until revoked", async () => {
  const { store, accounts, signIn, user } = await open();
  const issued = await accounts.createToken(asUser(user), { label: "x", scope: "write", expiresAt: undefined }, NOW);
  assert.ok(!isAccountRefusal(issued));
  const { secret, credential } = issued;
  const found = await signIn.withPassword(attempt("ANN", secret), NOW);
  assert.ok(isSignedIn(found));
  assert.equal(found.token?.id, credential.id);
  assert.ok(!isSignedIn(await signIn.withPassword(attempt("bob", secret), NOW)));
  assert.ok(!isSignedIn(await signIn.withPassword(attempt("ann", `${secret}x`), NOW)));
  const session = (await signIn.openSession(found, undefined, NOW)) ?? "";
  assert.ok(!session.includes(secret.slice(4)));
  assert.equal((await signIn.readSession(session, NOW))?.user.token?.id, credential.id);
  await accounts.removeCredential(asUser(user), "token", credential.id, NOW);
  assert.equal(await signIn.readSession(session, NOW), undefined);
  assert.ok(!isSignedIn(await signIn.withPassword(attempt("ann", secret), NOW)));
  await store.close();
});

test("app sign-in: deleted account → password and session are rejected", async () => {
  const { store, accounts, signIn, user } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const session = (await signIn.openSession(found, undefined, NOW)) ?? "";
  await accounts.delete(asUser(user), NOW);
  assert.equal(await signIn.readSession(session, NOW), undefined);
  assert.ok(!isSignedIn(await signIn.withPassword(attempt("ann", PASSWORD), NOW)));
  await store.close();
});

test("app session: in another process → accepted until the password is changed", async () => {
  const { store, accounts, signIn, user } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const session = (await signIn.openSession(found, "phone", NOW)) ?? "";
  const elsewhere = new AppSignIn(new Accounts(store.accounts, { signUp: false }));
  assert.equal((await elsewhere.readSession(session, NOW))?.device, "phone");
  const account = await accounts.get(user);
  assert.ok(account);
  await accounts.setPassword(account, "another horse battery", NOW);
  assert.equal(await elsewhere.readSession(session, NOW), undefined);
  await store.close();
});

test("app session: opened again → the same session, for each device, until it is ended", async () => {
  const { store, signIn } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const [session, same] = await Promise.all([1, 2].map(() => signIn.openSession(found, "phone", NOW)));
  assert.ok(session !== undefined);
  assert.equal(same, session);
  const desk = (await signIn.openSession(found, "desk", NOW)) ?? "";
  assert.notEqual(desk, session);
  assert.equal(await signIn.openSession(found, "phone", after(59 * DAY)), session);
  await signIn.endSession(session, NOW);
  await signIn.endSession(session, NOW);
  assert.equal(await signIn.readSession(session, NOW), undefined);
  assert.equal((await signIn.readSession(desk, NOW))?.device, "desk");
  const next = await signIn.openSession(found, "phone", NOW);
  assert.ok(next !== undefined && next !== session);
  await store.close();
});

test("app session: used → lasts; not used for 60 days → ends and is deleted", async () => {
  const { store, signIn, user } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const session = (await signIn.openSession(found, undefined, NOW)) ?? "";
  assert.ok(await signIn.readSession(session, after(59 * DAY)));
  while ((await store.accounts.listCredentials(user, "app-session"))[0]?.usedAt === undefined) await setTimeout(10);
  await store.accounts.sweep(after(118 * DAY));
  assert.ok(await signIn.readSession(session, after(118 * DAY)));
  await setTimeout(100);
  assert.equal(await signIn.readSession(session, after(118 * DAY + APP_SESSION_MS)), undefined);
  await store.accounts.sweep(after(118 * DAY + APP_SESSION_MS));
  assert.deepEqual(await store.accounts.listCredentials(user, "app-session"), []);
  await store.close();
});

test("app session: more than 200 → the least recently used one ends", async () => {
  const { store, signIn, user } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const sessions: string[] = [];
  for (let each = 0; each < 201; each += 1)
    sessions.push((await signIn.openSession(found, `device-${each}`, after(each))) ?? "");
  assert.equal((await store.accounts.listCredentials(user, "app-session")).length, 200);
  assert.equal(await signIn.readSession(sessions[0] ?? "", after(300)), undefined);
  for (const session of sessions.slice(1)) assert.ok(await signIn.readSession(session, after(300)));
  await store.close();
});

test("app session: the database has only a hash of its secret", async () => {
  const { path, store, signIn } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const session = (await signIn.openSession(found, "phone", NOW)) ?? "";
  const other = await open();
  assert.equal(await other.signIn.readSession(session, NOW), undefined);
  for (const text of ["", "x", `${session}x`, session.slice(1)])
    assert.equal(await signIn.readSession(text, NOW), undefined);
  await Promise.all([store.close(), other.store.close()]);
  const content = readFileSync(path, "latin1");
  assert.ok(!content.includes(session));
  assert.ok(!content.includes(Buffer.from(session, "base64url").toString("latin1")));
});
