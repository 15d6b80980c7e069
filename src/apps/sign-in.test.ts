import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryFolder } from "../../test/support/server.ts";
import { Accounts } from "../accounts/accounts.ts";
import { asUser } from "../accounts/caller.ts";
import { isAccountRefusal, refuse } from "../accounts/refusals.ts";
import { openStore } from "../store/open.ts";
import { APP_SESSION_MS, AppSignIn, type AppUser } from "./sign-in.ts";

const PASSWORD = "correct horse battery";
const NOW = new Date("2031-01-01T00:00:00Z");
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
  const session = await signIn.writeSession(found, "phone", NOW);
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
  const session = await signIn.writeSession(found, undefined, NOW);
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
  const session = await signIn.writeSession(found, undefined, NOW);
  await accounts.delete(asUser(user), NOW);
  assert.equal(await signIn.readSession(session, NOW), undefined);
  assert.ok(!isSignedIn(await signIn.withPassword(attempt("ann", PASSWORD), NOW)));
  await store.close();
});

test("app session: in another process → accepted until the password is changed", async () => {
  const { store, accounts, signIn, user } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const session = await signIn.writeSession(found, "phone", NOW);
  const elsewhere = new AppSignIn(new Accounts(store.accounts, { signUp: false }));
  assert.equal((await elsewhere.readSession(session, NOW))?.device, "phone");
  const account = await accounts.get(user);
  assert.ok(account);
  await accounts.setPassword(account, "another horse battery", NOW);
  assert.equal(await elsewhere.readSession(session, NOW), undefined);
  await store.close();
});

test("app session: opened again within the hour → the same session; later → a new one", async () => {
  const { store, signIn } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const session = await signIn.writeSession(found, "phone", NOW);
  assert.equal(await signIn.writeSession(found, "phone", after(59 * 60_000)), session);
  assert.notEqual(await signIn.writeSession(found, "desk", NOW), session);
  assert.notEqual(await signIn.writeSession(found, "phone", after(60 * 60_000)), session);
  await store.close();
});

test("app session: after a month → signed with a new key, which every process accepts", async () => {
  const { store, accounts, signIn } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const keyOf = (session: string) => session.split("~").at(-2);
  const first = await signIn.writeSession(found, undefined, NOW);
  const day = 24 * 60 * 60_000;
  const late = after(31 * day);
  const second = await signIn.writeSession(found, undefined, late);
  assert.notEqual(keyOf(second), keyOf(first));
  for (const session of [first, second]) assert.ok(await new AppSignIn(accounts).readSession(session, late));
  await accounts.store.sweep(after(130 * day));
  assert.equal(await store.accounts.findCredential(keyOf(first) ?? ""), undefined);
  assert.ok(await store.accounts.findCredential(keyOf(second) ?? ""));
  await store.close();
});

test("app session: tampered, expired, malformed or from another server → not accepted", async () => {
  const { store, signIn } = await open();
  const found = await signIn.withPassword(attempt("ann", PASSWORD), NOW);
  assert.ok(isSignedIn(found));
  const session = await signIn.writeSession(found, "phone", NOW);
  const [holder, issued, device, key, signature = ""] = session.split("~");
  for (const text of [
    "",
    "x",
    `${Number(holder) + 1}~${issued}~${device}~${key}~${signature}`,
    `${holder}~zzzzzz~${device}~${key}~${signature}`,
    `${holder}~${issued}~tablet~${key}~${signature}`,
    `${holder}~${issued}~${device}~${"A".repeat(43)}~${signature}`,
    `${holder}~${issued}~${device}~${key}~${"A".repeat(86)}`,
    `${session}~`,
  ])
    assert.equal(await signIn.readSession(text, NOW), undefined, text);
  assert.equal(await signIn.readSession(session, after(APP_SESSION_MS + 1_000)), undefined);
  const other = await open();
  assert.equal(await other.signIn.readSession(session, NOW), undefined);
  assert.equal((await signIn.readSession(session, NOW))?.user.account.name, "ann");
  await other.store.close();
  await store.close();
});

/** Every value of the database that has the length of a private key. */
function readSeeds(path: string): Buffer[] {
  const file = new DatabaseSync(path, { readOnly: true });
  const tables = file.prepare("select name from sqlite_schema where type = 'table'").all();
  const values = tables
    .flatMap(({ name }) => file.prepare(`select * from "${name}"`).all())
    .flatMap((row) => Object.values(row))
    .flatMap((value) => {
      const bytes = value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(String(value), "base64url");
      return bytes.length >= 32 ? [bytes.subarray(0, 32), bytes.subarray(-32)] : [];
    });
  file.close();
  return values;
}

const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

test("app session: signed with anything that the database contains → not accepted", async () => {
  const { path, store, accounts, signIn, user } = await open();
  const issued = await accounts.createToken(asUser(user), { label: "x", scope: "write", expiresAt: undefined }, NOW);
  assert.ok(!isAccountRefusal(issued));
  for (const secret of [PASSWORD, issued.secret]) {
    const app = await signIn.withPassword(attempt("ann", secret), NOW);
    assert.ok(isSignedIn(app));
    const session = await signIn.writeSession(app, "phone", NOW);
    assert.ok(await signIn.readSession(session, NOW));
    const [holder, hour, device, known] = session.split("~");
    const content = `${holder}~${hour}~${device}`;
    const seeds = readSeeds(path);
    assert.ok(
      seeds.some((seed) => seed.toString("base64url") === known),
      "the public key is among the values",
    );
    for (const seed of seeds) {
      const key = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: "der", type: "pkcs8" });
      const signature = sign(null, Buffer.from(`app session\0${app.credentialVersion}\0${content}`), key).toString(
        "base64url",
      );
      const mine = createPublicKey(key).export({ format: "jwk" }).x;
      for (const id of [known, mine, seed.toString("base64url")])
        assert.equal(await signIn.readSession(`${content}~${id}~${signature}`, NOW), undefined);
    }
  }
  await store.close();
});
