import assert from "node:assert/strict";
import { test } from "node:test";
import { EarmarkError, NetworkError } from "../client/src/index.ts";
import { type Fate, failureOf, openBrowser, PASSWORD, refusalOf, startProxy } from "./support/client.ts";

test("lost response: non-idempotent account request → not retried", async () => {
  const fates: Fate[] = [];
  const proxy = await startProxy(({ method }) => (method !== "GET" && fates.shift()) || "pass");
  const client = openBrowser(proxy.url);
  const busy = { status: 429, headers: { "Retry-After": "0" } };
  const away = { status: 503, headers: { "Retry-After": "0" } };
  const sent = () => proxy.all.splice(0).filter(({ method }) => method !== "GET").length;
  const person = { name: "radia", password: PASSWORD };
  const newPassword = "a longer one this time";

  fates.push("cut after");
  await failureOf(client.signUp(person), NetworkError);
  assert.equal(sent(), 1);
  // The account exists. Signing in twice is harmless.
  fates.push("cut after", away);
  await client.signIn(person);
  assert.equal(sent(), 3);

  const unsure: (() => Promise<unknown>)[] = [
    () => client.signUp({ ...person, name: "perlman" }),
    () => client.createToken({ label: "phone" }),
    () => client.changePassword({ current: PASSWORD, new: newPassword }),
    () => client.deleteAccount(),
  ];
  for (const call of unsure) {
    fates.push(busy, away);
    assert.equal((await failureOf(call(), EarmarkError)).status, 503);
    fates.push("cut before");
    await failureOf(call(), NetworkError);
    assert.equal(sent(), 3);
  }

  fates.push("cut after");
  await failureOf(client.createToken({ label: "phone" }), NetworkError);
  assert.deepEqual(
    (await client.tokens()).map(({ label }) => label),
    ["phone"],
  );
  fates.push("cut after");
  await failureOf(client.changePassword({ current: PASSWORD, new: newPassword }), NetworkError);
  await client.signIn({ ...person, password: newPassword });
  sent();
  fates.push("cut after");
  await failureOf(client.deleteAccount(), NetworkError);
  assert.equal(sent(), 1);
  assert.deepEqual(await refusalOf(client.me()), [401, "invalid-credentials"]);
});

test("lost response: sign-out → signed out", async () => {
  const fates: Fate[] = ["cut after", { status: 503, headers: { "Retry-After": "0" } }];
  const proxy = await startProxy(({ method }) => (method === "DELETE" && fates.shift()) || "pass");
  const client = openBrowser(proxy.url);
  const person = { name: "barbara", password: PASSWORD };
  await client.signUp(person);
  await client.signOut();
  assert.equal(fates.length, 0);
  await client.signIn(person);
  assert.equal((await client.sessions()).length, 1);

  fates.push({ status: 500 });
  assert.equal((await failureOf(client.signOut(), EarmarkError)).status, 500);
  const stopped = new AbortController();
  stopped.abort();
  assert.equal((await failureOf(client.signOut({ signal: stopped.signal }), DOMException)).name, "AbortError");
  assert.equal((await client.sessions()).length, 1);
});
