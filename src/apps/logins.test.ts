import assert from "node:assert/strict";
import { after, test } from "node:test";
import { temporaryFolder } from "../../test/support/server.ts";
import { Accounts } from "../accounts/accounts.ts";
import { hashSecret } from "../accounts/hash-secret.ts";
import { Signatures } from "../accounts/signatures.ts";
import { openStore } from "../store/open.ts";
import { APP_LOGIN_MS, readAppLoginId, readPollToken, startAppLogin } from "./logins.ts";

const NOW = new Date("2031-01-01T00:00:00Z");
const HASH = "a".repeat(43);
const ORIGIN = { app: "Kasts/25.04 (“Ünïcode”)", address: "2001:db8::1" };
const later = (ms: number) => new Date(NOW.getTime() + ms);

const store = await openStore(`file:${temporaryFolder()}/earmark.db`, { connections: 1 });
after(() => store.close());
const signatures = () => new Signatures(new Accounts(store.accounts, { signUp: false }));
const own = signatures();
const start = (at = NOW) => startAppLogin(own, ORIGIN, at);

test("app login: poll token and link → the same token; the link has app, address and time", async () => {
  const { pollToken, id } = await start();
  const secret = readPollToken(pollToken, NOW) ?? "";
  assert.match(secret, /^emk_[\w-]{43}$/);
  const expiresAt = later(APP_LOGIN_MS);
  assert.deepEqual(await readAppLoginId(own, id, NOW), {
    ...ORIGIN,
    hash: hashSecret(secret),
    requestedAt: NOW,
    expiresAt,
  });
  assert.ok(!pollToken.includes(secret) && !id.includes(secret.slice(4)) && !id.includes(pollToken));
  assert.match(id, /^[\w~-]+$/);
});

test("app login: another process → reads the same", async () => {
  const { id } = await start();
  assert.equal((await readAppLoginId(signatures(), id, NOW))?.address, ORIGIN.address);
});

test("app login: started twice → different tokens", async () => {
  assert.notEqual((await start()).id, (await start()).id);
});

test("app login: after 20 minutes → expired", async () => {
  const { pollToken, id } = await start();
  assert.equal(readPollToken(pollToken, later(APP_LOGIN_MS)), undefined);
  assert.equal(await readAppLoginId(own, id, later(APP_LOGIN_MS)), undefined);
  assert.ok(readPollToken(pollToken, later(APP_LOGIN_MS - 1_000)));
  assert.ok(await readAppLoginId(own, id, later(APP_LOGIN_MS - 1_000)));
});

test("app login: a later expiry in the poll token → a different token", async () => {
  const { pollToken } = await start();
  const { pollToken: other } = await start(later(60_000));
  const forged = other.slice(0, other.lastIndexOf("~")) + pollToken.slice(pollToken.lastIndexOf("~"));
  assert.notEqual(readPollToken(forged, NOW), readPollToken(pollToken, NOW));
});

test("app login: one part of the link replaced with that of another link → not accepted", async () => {
  const [one, other] = await Promise.all([
    start(),
    startAppLogin(own, { app: "x", address: "192.0.2.1" }, later(60_000)),
  ]);
  const [parts, others] = [one.id.split("~"), other.id.split("~")];
  assert.equal(parts.length, 5);
  for (const index of [0, 1, 2, 4]) {
    const forged = parts.map((part, at) => (at === index ? others[index] : part)).join("~");
    assert.equal(await readAppLoginId(own, forged, later(60_000)), undefined, `part ${index}`);
  }
});

test("app login: malformed poll token or link → undefined", async () => {
  for (const text of ["", "~", "x", `poll~zzzzzzzz~${HASH}`, `zzzzzzzz~${HASH}`, `1~${HASH}`, "emk_x"]) {
    assert.equal(readPollToken(text, NOW), undefined, text);
    assert.equal(await readAppLoginId(own, text, NOW), undefined, text);
  }
});
