import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { cleanEnvironment, EARMARK } from "../../../test/support/process.ts";
import { temporaryFolder } from "../../../test/support/server.ts";
import { openStore } from "../open.ts";
import {
  assertNoLateWrites,
  assertRevokedEverywhere,
  describeAccounts,
  fillAccount,
} from "../suites/accounts.suite.ts";

const folder = temporaryFolder();
let files = 0;

await describeAccounts("SQLite", async () => {
  files += 1;
  const store = await openStore(`file:${join(folder, `${files}.db`)}`, { connections: 1 });
  return { accounts: store.accounts, administration: store.administration, subscriptions: store };
});

test("access: a revocation is confirmed → the credential is rejected at its next use", async (t) => {
  const url = `file:${join(folder, "revoked.db")}`;
  const store = await openStore(url, { connections: 1 });
  t.after(() => store.close());
  await assertRevokedEverywhere(store, store);
});

test("access: a revocation by a command is confirmed → the server rejects the credential", async (t) => {
  const url = `file:${join(folder, "with-command.db")}`;
  const server = await openStore(url, { connections: 1 });
  const command = await openStore(url, { connections: 1, allowRunningServer: true });
  t.after(() => command.close().then(() => server.close()));
  await assertRevokedEverywhere(command, server);
});

test("access: a revocation in this process is confirmed → no write with that credential appears later", async (t) => {
  const store = await openStore(`file:${join(folder, "late.db")}`, { connections: 1 });
  t.after(() => store.close());
  const stores = { accounts: store.accounts, administration: store.administration, subscriptions: store };
  await assertNoLateWrites(stores, stores);
});

test("access: a revocation by a command is confirmed → no write of the server with that credential appears later", async (t) => {
  const url = `file:${join(folder, "late-with-command.db")}`;
  const server = await openStore(url, { connections: 1 });
  const command = await openStore(url, { connections: 1, allowRunningServer: true });
  t.after(() => command.close().then(() => server.close()));
  await assertNoLateWrites(
    { accounts: command.accounts, administration: command.administration, subscriptions: command },
    { accounts: server.accounts, administration: server.administration, subscriptions: server },
  );
});

test("deletion: the process is killed halfway → the next sweep finishes it", async (t) => {
  const file = join(folder, "killed.db");
  const options = { connections: 1 };
  const first = await openStore(`file:${file}`, options);
  await fillAccount(first, 4_711, 10_000);
  await fillAccount(first, 4_712, 10);
  await first.close();
  const child = spawn(process.execPath, [EARMARK, "user", "delete", "user-4711", "--yes"], {
    env: cleanEnvironment({ DATABASE_URL: `file:${file}` }),
    stdio: "ignore",
  });
  t.after(() => child.kill("SIGKILL"));
  const watcher = new DatabaseSync(file);
  t.after(() => watcher.close());
  const count = (table: string, user: number) =>
    Number(watcher.prepare(`select count(*) as rows from ${table} where user_id = ?`).get(user)?.["rows"]);
  while (count("erasures", 4_711) === 0) await sleep(1);
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.ok(count("subscriptions", 4_711) > 0, "the deletion was in progress");
  assert.equal(count("accounts", 4_711), 0);

  const next = await openStore(`file:${file}`, options);
  t.after(() => next.close());
  await next.accounts.sweep(new Date());
  for (const table of ["subscriptions", "removals", "erasures"]) assert.equal(count(table, 4_711), 0, table);
  assert.equal((await next.page(4_712, { offset: 0, size: 100 })).total, 9);
});
