import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createAccount } from "../../test/support/accounts.ts";
import { serveInProcess, withStore } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { databaseOf } from "../../test/support/postgres-stores.ts";
import { callServer } from "../../test/support/server.ts";
import { startCleanup } from "./cleanup.ts";

/** Waits until `isDone`; the test runner's time limit ends the wait otherwise. */
async function until(isDone: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isDone())) await sleep(5);
}

test("cleanup: a step fails → reported with its name, and the others run, again and again", async () => {
  const runs: string[] = [];
  const failures: unknown[] = [];
  const step = (name: string, error?: Error) => async () => {
    runs.push(name);
    if (error !== undefined) throw error;
  };
  const cleanup = startCleanup({
    steps: { one: step("one", new Error("broken")), two: step("two"), three: step("three", new Error("too")) },
    intervalMs: 1,
    leases: undefined,
    onFailure: (name, error) => failures.push([name, (error as Error).message]),
  });
  await until(() => runs.length >= 6);
  cleanup.stop();
  assert.deepEqual(runs.slice(0, 6), ["one", "two", "three", "one", "two", "three"]);
  assert.deepEqual(failures.slice(0, 2), [
    ["one", "broken"],
    ["three", "too"],
  ]);
});

test("cleanup: a run takes longer than the interval → the next begins after it", async () => {
  let [running, most, count] = [0, 0, 0];
  const step = async () => {
    running += 1;
    most = Math.max(most, running);
    await sleep(20);
    running -= 1;
    count += 1;
  };
  const cleanup = startCleanup({ steps: { step }, intervalMs: 1, onFailure: assert.fail, leases: undefined });
  await until(() => count === 3);
  cleanup.stop();
  assert.equal(most, 1);
});

test("cleanup: stopped during a step → no other starts, and its failure is not reported", async () => {
  const { promise: closed, reject: close } = Promise.withResolvers<void>();
  const steps = { one: () => closed, two: () => assert.fail("started") };
  const cleanup = startCleanup({ steps, intervalMs: 1, onFailure: assert.fail, leases: undefined });
  cleanup.stop();
  close(new Error("the store is closed"));
  await sleep(10);
});

test("cleanup: a real server cannot erase removals → logged and counted, and expired sessions are deleted", async () => {
  const postgres = await sharedPostgres();
  const url = await postgres.migratedDatabase();
  await withStore(url, (store) => createAccount(store, { name: "ann", password: "" }, new Date(0)));
  await postgres.query("alter table earmark.removals rename column removed_at to renamed", databaseOf(url));
  const sessions = () => postgres.query("select 1 from earmark.credentials where kind = 'session'", databaseOf(url));
  assert.equal((await sessions()).length, 1);
  const token = "a".repeat(32);
  const settings = { EARMARK_ACCOUNTS: "true", EARMARK_METRICS: "true", EARMARK_METRICS_TOKEN: token };
  const server = await serveInProcess({ DATABASE_URL: url, ...settings });
  await until(async () => (await sessions()).length === 0);
  const headers = { Authorization: `Bearer ${token}` };
  const { text } = await callServer(server.port, "GET", "/metrics", { headers });
  assert.match(text, /^earmark_cleanup_failures_total\{step="removals"\} 1$/m);
  assert.doesNotMatch(text, /^earmark_cleanup_failures_total\{step="accounts"\}/m);
  assert.match(server.output(), /^\{"level":50,.*"step":"removals",.*"msg":"cleanup failed"\}$/m);
});
