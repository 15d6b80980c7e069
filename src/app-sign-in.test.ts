import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryFolder } from "../test/support/server.ts";
import { Accounts, isRefused } from "./accounts.ts";
import { APP_SESSION_MS, AppSignIn, type AppUser } from "./app-sign-in.ts";
import { openStore } from "./store/engines.ts";
import { asUser } from "./subscriptions.ts";

const PASSWORD = "correct horse battery";
const NOW = new Date("2031-01-01T00:00:00Z");
const after = (ms: number) => new Date(NOW.getTime() + ms);

async function open() {
  const path = `${temporaryFolder()}/earmark.db`;
  const store = await openStore(`file:${path}`, { connections: 1 });
  const accounts = new Accounts(store.accounts, { signUp: true });
  const created = await accounts.create("ann", PASSWORD, NOW);
  assert.ok(!isRefused(created));
  return { path, store, accounts, user: created.user, signIn: new AppSignIn(accounts) };
}

let networks = 0;
const typed = (name: string, password: string) => {
  networks += 1;
  return { name, password, networks: [`10.0.0.${networks}`] };
};

function isIn(user: AppUser | object): user is AppUser {
  return "account" in user;
}

test("app sign-in: password → an attempt once, then remembered", async () => {
  const { store, signIn } = await open();
  // More than the ten attempts that one network has for a name.
  for (let each = 0; each < 50; each += 1)
    assert.ok(isIn(await signIn.withPassword({ name: "Ann", password: PASSWORD, networks: ["192.0.2.1"] }, NOW)));
  await store.close();
});

test("app sign-in: the same password in several requests at once → one attempt", async () => {
  const { store, signIn } = await open();
  const one = { name: "ann", password: PASSWORD, networks: ["192.0.2.1"] };
  const users = await Promise.all(Array.from({ length: 30 }, () => signIn.withPassword(one, NOW)));
  assert.ok(users.every(isIn));
  await store.close();
});

test("app sign-in: wrong password or unknown name → refused, and limited", async () => {
  const { store, signIn } = await open();
  const wrong = { name: "ann", password: "wrong", networks: ["192.0.2.1"] };
  const refusals: unknown[] = [];
  for (let each = 0; each < 11; each += 1) refusals.push(await signIn.withPassword(wrong, NOW));
  assert.deepEqual(refusals[0], { refused: "wrong-password" });
  assert.equal((refusals.at(-1) as { refused: string }).refused, "too-often");
  assert.deepEqual(await signIn.withPassword(typed("nobody", PASSWORD), NOW), { refused: "wrong-password" });
  await store.close();
});

test("app sign-in: changed password → the old one and its sessions end at once", async () => {
  const { store, accounts, signIn, user } = await open();
  const found = await signIn.withPassword(typed("ann", PASSWORD), NOW);
  assert.ok(isIn(found));
  const session = signIn.writeSession(found, "phone", NOW);
  assert.equal((await signIn.readSession(session, NOW))?.device, "phone");
  const account = await accounts.get(user);
  assert.ok(account);
  assert.equal(await accounts.setPassword(account, "another horse battery", NOW), undefined);
  assert.ok(!isIn(await signIn.withPassword(typed("ann", PASSWORD), NOW)));
  assert.equal(await signIn.readSession(session, NOW), undefined);
  assert.ok(isIn(await signIn.withPassword(typed("ann", "another horse battery"), NOW)));
  await store.close();
});

test("app sign-in: token → with its own name only, until it is revoked", async () => {
  const { store, accounts, signIn, user } = await open();
  const issued = await accounts.createToken(asUser(user), { label: "x", scope: "write", expiresAt: undefined }, NOW);
  assert.ok(!isRefused(issued));
  const { secret, credential } = issued;
  const found = await signIn.withPassword(typed("ANN", secret), NOW);
  assert.ok(isIn(found));
  assert.equal(found.token?.id, credential.id);
  assert.ok(!isIn(await signIn.withPassword(typed("bob", secret), NOW)));
  assert.ok(!isIn(await signIn.withPassword(typed("ann", `${secret}x`), NOW)));
  const session = signIn.writeSession(found, undefined, NOW);
  assert.ok(!session.includes(secret.slice(4)));
  assert.equal((await signIn.readSession(session, NOW))?.user.token?.id, credential.id);
  await accounts.removeCredential(asUser(user), "token", credential.id, NOW);
  assert.equal(await signIn.readSession(session, NOW), undefined);
  assert.ok(!isIn(await signIn.withPassword(typed("ann", secret), NOW)));
  await store.close();
});

test("app sign-in: deleted account → everything ends", async () => {
  const { store, accounts, signIn, user } = await open();
  const found = await signIn.withPassword(typed("ann", PASSWORD), NOW);
  assert.ok(isIn(found));
  const session = signIn.writeSession(found, undefined, NOW);
  await accounts.delete(asUser(user), NOW);
  assert.equal(await signIn.readSession(session, NOW), undefined);
  assert.ok(!isIn(await signIn.withPassword(typed("ann", PASSWORD), NOW)));
  await store.close();
});

test("app session: tampered, expired, other text or from another process → not accepted", async () => {
  const { store, accounts, signIn } = await open();
  const found = await signIn.withPassword(typed("ann", PASSWORD), NOW);
  assert.ok(isIn(found));
  const session = signIn.writeSession(found, "phone", NOW);
  const [holder, issued, device, signature] = session.split("~");
  for (const text of [
    "",
    "x",
    `${Number(holder) + 1}~${issued}~${device}~${signature}`,
    `${holder}~zzzzzz~${device}~${signature}`,
    `${holder}~${issued}~tablet~${signature}`,
    `${holder}~${issued}~${device}~${"A".repeat(43)}`,
    `${session}~`,
  ])
    assert.equal(await signIn.readSession(text, NOW), undefined, text);
  assert.equal(await signIn.readSession(session, after(APP_SESSION_MS + 1_000)), undefined);
  assert.equal(await new AppSignIn(accounts).readSession(session, NOW), undefined);
  assert.equal((await signIn.readSession(session, NOW))?.user.account.name, "ann");
  await store.close();
});

/** Every value of the database, each as someone who has read a backup might write it. */
function readValues(path: string): string[] {
  const file = new DatabaseSync(path, { readOnly: true });
  const tables = file.prepare("select name from sqlite_schema where type = 'table'").all();
  const values = tables
    .flatMap(({ name }) => file.prepare(`select * from "${name}"`).all())
    .flatMap((row) => Object.values(row))
    .flatMap((value) => {
      if (!(value instanceof Uint8Array)) return String(value);
      const bytes = Buffer.from(value);
      const hex = bytes.toString("hex");
      const asId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
      return [hex, asId, bytes.toString("base64url")];
    });
  file.close();
  return [...new Set(["", ...values])];
}

test("app session: signed with anything that the database contains → not accepted", async () => {
  const { path, store, accounts, signIn, user } = await open();
  const issued = await accounts.createToken(asUser(user), { label: "x", scope: "write", expiresAt: undefined }, NOW);
  assert.ok(!isRefused(issued));
  const found = await Promise.all(
    [PASSWORD, issued.secret].map((each) => signIn.withPassword(typed("ann", each), NOW)),
  );
  const values = readValues(path);
  for (const app of found) {
    assert.ok(isIn(app));
    assert.ok(values.includes(app.key), "what the signature depends on is among the values");
    const session = signIn.writeSession(app, "phone", NOW);
    assert.ok(await signIn.readSession(session, NOW));
    const content = session.slice(0, session.lastIndexOf("~"));
    const forge = (key: string, text: string) =>
      signIn.readSession(`${content}~${createHmac("sha256", key).update(text).digest("base64url")}`, NOW);
    for (const value of values) {
      for (const key of [value, Buffer.from(value, "hex").toString("latin1"), `earmark app session ${value}`])
        for (const text of [content, `${app.key}\0${content}`]) assert.equal(await forge(key, text), undefined, value);
    }
  }
  await store.close();
});
