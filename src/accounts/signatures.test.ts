import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryFolder } from "../../test/support/server.ts";
import { openStore } from "../store/open.ts";
import { NOBODY } from "./account-store.ts";
import { Accounts } from "./accounts.ts";
import { Signatures } from "./signatures.ts";

const DAY = 24 * 60 * 60_000;
const NOW = new Date("2031-01-01T00:00:00Z");
const after = (ms: number) => new Date(NOW.getTime() + ms);

async function open() {
  const store = await openStore(`file:${temporaryFolder()}/earmark.db`, { connections: 1 });
  const create = () => new Signatures(new Accounts(store.accounts, { signUp: false }));
  return { store, create, keys: () => store.accounts.listCredentials(NOBODY, "ticket-key") };
}

test("signatures: in another process, and after a restart → valid, with one key", async () => {
  const { store, create, keys } = await open();
  const signature = await create().sign("text", NOW);
  assert.equal(await create().verify("text", signature, after(DAY)), true);
  await create().sign("other", after(29 * DAY));
  assert.equal((await keys()).length, 1);
  await store.close();
});

test("signatures: after a month → a new key; the old one is accepted until its signatures have expired", async () => {
  const { store, create, keys } = await open();
  const signatures = create();
  const first = await signatures.sign("text", NOW);
  assert.equal(await signatures.sign("text", after(30 * DAY - 1)), first);
  const second = await signatures.sign("text", after(30 * DAY + 1));
  assert.notEqual(second, first);
  for (const signature of [first, second])
    assert.equal(await create().verify("text", signature, after(30 * DAY + 1)), true);
  assert.equal(await signatures.verify("text", first, after(31 * DAY)), false);
  await store.accounts.sweep(after(31 * DAY));
  assert.equal((await keys()).length, 1);
  await store.close();
});

test("signatures: changed, of another text or of another server → invalid", async () => {
  const [one, other] = [await open(), await open()];
  const signature = await one.create().sign("text", NOW);
  const [id = "", code = ""] = signature.split("~");
  const flipped = code.startsWith("A") ? `B${code.slice(1)}` : `A${code.slice(1)}`;
  for (const wrong of ["", id, `${id}~`, `${id}~${flipped}`, `${id}~${code}A`, `${crypto.randomUUID()}~${code}`])
    assert.equal(await one.create().verify("text", wrong, NOW), false, wrong);
  assert.equal(await one.create().verify("another", signature, NOW), false);
  assert.equal(await other.create().verify("text", signature, NOW), false);
  await Promise.all([one.store.close(), other.store.close()]);
});

test("seals: in another process → opened; changed, in another context, of another server or expired → not", async () => {
  const [one, other] = [await open(), await open()];
  const text = '{"token":"secret é"}';
  const sealed = await one.create().seal(text, "context", NOW);
  assert.match(sealed, /^[\w~-]+$/);
  assert.ok(
    !Buffer.from(sealed.split("~")[1] ?? "", "base64url")
      .toString()
      .includes("secret"),
  );
  assert.equal(await one.create().unseal(sealed, "context", after(DAY)), text);
  assert.notEqual(await one.create().seal(text, "context", NOW), sealed);
  const [id = "", code = ""] = sealed.split("~");
  const flipped = code.startsWith("A") ? `B${code.slice(1)}` : `A${code.slice(1)}`;
  for (const wrong of ["", id, `${id}~`, `${id}~AA`, `${id}~${flipped}`, `${id}~${code.slice(0, -4)}`, `x${sealed}`])
    assert.equal(await one.create().unseal(wrong, "context", NOW), undefined, wrong);
  assert.equal(await one.create().unseal(sealed, "other", NOW), undefined);
  assert.equal(await other.create().unseal(sealed, "context", NOW), undefined);
  assert.equal(await one.create().unseal(sealed, "context", after(31 * DAY)), undefined);
  const signature = await one.create().sign(text, NOW);
  assert.equal(await one.create().unseal(signature, "context", NOW), undefined);
  await Promise.all([one.store.close(), other.store.close()]);
});
