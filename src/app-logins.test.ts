import assert from "node:assert/strict";
import { test } from "node:test";
import { hashSecret } from "./accounts.ts";
import { APP_LOGIN_MS, readAppLoginId, readPollToken, startAppLogin } from "./app-logins.ts";

const NOW = new Date("2031-01-01T00:00:00Z");
const HASH = "a".repeat(43);
const after = (ms: number) => new Date(NOW.getTime() + ms);

test("app login: poll token and link → the same token", () => {
  const { pollToken, id } = startAppLogin(NOW);
  const secret = readPollToken(pollToken, NOW) ?? "";
  assert.match(secret, /^emk_[\w-]{43}$/);
  assert.equal(readAppLoginId(id, NOW), hashSecret(secret));
  assert.ok(!pollToken.includes(secret) && !id.includes(secret.slice(4)) && !id.includes(pollToken));
});

test("app login: two → different tokens", () => {
  assert.notEqual(startAppLogin(NOW).id, startAppLogin(NOW).id);
});

test("app login: after 20 minutes → expired", () => {
  const { pollToken, id } = startAppLogin(NOW);
  for (const read of [
    () => readPollToken(pollToken, after(APP_LOGIN_MS)),
    () => readAppLoginId(id, after(APP_LOGIN_MS)),
  ])
    assert.equal(read(), undefined);
  assert.ok(readPollToken(pollToken, after(APP_LOGIN_MS - 1_000)));
  assert.ok(readAppLoginId(id, after(APP_LOGIN_MS - 1_000)));
});

test("app login: a later expiry in the poll token → another token", () => {
  const { pollToken } = startAppLogin(NOW);
  const { pollToken: later } = startAppLogin(after(60_000));
  const forged = later.slice(0, later.lastIndexOf("~")) + pollToken.slice(pollToken.lastIndexOf("~"));
  assert.notEqual(readPollToken(forged, NOW), readPollToken(pollToken, NOW));
});

test("app login: other text → none", () => {
  for (const text of ["", "~", "x", `poll~zzzzzzzz~${HASH}`, `zzzzzzzz~${HASH}`, `1~${HASH}`, "emk_x"]) {
    assert.equal(readPollToken(text, NOW), undefined, text);
    assert.equal(readAppLoginId(text, NOW), undefined, text);
  }
});
