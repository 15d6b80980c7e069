import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import pg from "pg";
import { additionsOf, addTo } from "../../../test/support/lists.ts";
import { sharedPostgres } from "../../../test/support/postgres.ts";
import { AccessRevoked, asUser } from "../../accounts/caller.ts";
import { openStore } from "../open.ts";
import {
  assertNoLateWrites,
  assertRevokedEverywhere,
  describeAccounts,
  fillAccount,
} from "../suites/accounts.suite.ts";
import { NOW, newAccountNamed } from "../suites/accounts-test-support.ts";

const server = await sharedPostgres();

await describeAccounts("PostgreSQL", async () => {
  const store = await openStore(await server.migratedDatabase(), { connections: 10 });
  return { accounts: store.accounts, administration: store.administration, subscriptions: store };
});

test("access: a revocation in one process is confirmed → the others refuse the credential", async (t) => {
  const url = await server.migratedDatabase();
  const [here, there] = await Promise.all([openStore(url, { connections: 2 }), openStore(url, { connections: 2 })]);
  t.after(() => Promise.all([here.close(), there.close()]));
  await assertRevokedEverywhere(here, there);
});

for (const processes of ["this process", "another process"]) {
  test(`access: a revocation in ${processes} is confirmed → no write with that credential appears later`, async (t) => {
    const url = await server.migratedDatabase();
    const open = () => openStore(url, { connections: 5 });
    const here = await open();
    const there = processes === "this process" ? here : await open();
    t.after(() => Promise.all([here.close(), there.close()]));
    await assertNoLateWrites(
      { accounts: here.accounts, administration: here.administration, subscriptions: here },
      { accounts: there.accounts, administration: there.administration, subscriptions: there },
    );
  });
}

test("deletion: the process stops halfway → the next sweep finishes it", async (t) => {
  const url = await server.migratedDatabase();
  const options = { connections: 3 };
  const [first, next] = [await openStore(url, options), await openStore(url, options)];
  t.after(() => next.close());
  await fillAccount(first, 4_711, 10_000);
  await fillAccount(first, 4_712, 10);
  const count = async (table: string, user: number) => {
    const [row] = await server.query(`select count(*) as rows from earmark.${table} where user_id = ${user}`, name);
    return Number(row?.["rows"]);
  };
  const name = new URL(url).pathname.slice(1);
  const deleting = assert.rejects(first.accounts.delete(asUser(4_711), new Date()), {
    name: "StoreUnavailable",
    isOutcomeUnknown: true,
  });
  while ((await next.accounts.get(4_711)) !== undefined) await setImmediate();
  await first.close();
  await deleting;
  assert.ok((await count("subscriptions", 4_711)) > 0, "the deletion was in progress");

  await next.accounts.sweep(new Date());
  for (const table of ["subscriptions", "removals", "erasures"]) assert.equal(await count(table, 4_711), 0, table);
  assert.equal((await next.page(4_712, { offset: 0, size: 100 })).total, 9);
});

test("password: changed while writers that use it wait for the list → does not wait for them, and they are rejected", async (t) => {
  const url = await server.migratedDatabase();
  const store = await openStore(url, { connections: 5 });
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  t.after(() => Promise.all([store.close(), other.end()]));
  const account = newAccountNamed("ann", { isCreatedByOperator: false });
  const user = await store.accounts.create(4_711, account, NOW);
  assert.ok(typeof user === "number");
  await addTo(store, asUser(user), additionsOf(0), NOW);
  await other.query("begin");
  await other.query("select 1 from earmark.lists where user_id = $1 for update", [user]);
  const caller = { ...asUser(user), passwordHash: account.passwordHash };
  const writes = [
    addTo(store, caller, additionsOf(1), NOW),
    store.apps.saveDevice(caller, { key: "phone", device: "phone" }, {}, NOW),
  ].map((write) => assert.rejects(write, AccessRevoked));
  const waiting = `select 1 from pg_stat_activity
    where datname = current_database() and state = 'active' and query like '%from earmark.lists%for update'`;
  while ((await server.query(waiting, new URL(url).pathname.slice(1))).length < writes.length) await setImmediate();
  assert.equal(await store.accounts.setPassword(asUser(user), { passwordHash: "another hash" }, NOW), true);
  await other.query("rollback");
  await Promise.all(writes);
});

test("deletion: the administration is locked → waits if the account is an administrator's, and only then", async (t) => {
  const url = await server.migratedDatabase();
  const store = await openStore(url, { connections: 5 });
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  t.after(() => Promise.all([store.close(), other.end()]));
  const create = async (user: number, name: string) =>
    Number(await store.accounts.create(user, newAccountNamed(name, { isCreatedByOperator: false }), NOW));
  const [admin, user] = [await create(4_711, "ann"), await create(4_712, "bob")];
  const name = new URL(url).pathname.slice(1);
  await server.query(`update earmark.accounts set is_admin = case when user_id = ${admin} then 1 else 0 end`, name);
  await other.query("begin");
  await other.query("select 1 from earmark.schema where one for update");
  assert.equal(await store.accounts.delete(asUser(user), NOW), "deleted");
  let isDone = false;
  const deletion = store.accounts.delete(asUser(admin), NOW).finally(() => {
    isDone = true;
  });
  const waiting = `select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%earmark.schema%for update'`;
  while (!isDone && (await server.query(waiting, name)).length === 0) await setImmediate();
  assert.equal(isDone, false);
  await other.query("rollback");
  assert.equal(await deletion, "deleted");
});
