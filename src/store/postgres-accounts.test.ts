import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { asUser } from "../subscriptions.ts";
import { describeAccounts, fillAccount, requireEnds, requireNoLateWrites } from "./accounts.suite.ts";
import { openStore } from "./engines.ts";

const server = await sharedPostgres();

await describeAccounts("PostgreSQL", async () => {
  const store = await openStore(await server.database(), { connections: 10 });
  return { accounts: store.accounts, people: store.people, subscriptions: store };
});

test("access: a revocation in one process is confirmed → refused by the others", async (t) => {
  const url = await server.database();
  const [here, there] = await Promise.all([openStore(url, { connections: 2 }), openStore(url, { connections: 2 })]);
  t.after(() => Promise.all([here.close(), there.close()]));
  await requireEnds(here, there);
});

for (const processes of ["this process", "another process"]) {
  test(`access: a revocation in ${processes} is answered → no write under it appears later`, async (t) => {
    const url = await server.database();
    const open = () => openStore(url, { connections: 5 });
    const here = await open();
    const there = processes === "this process" ? here : await open();
    t.after(() => Promise.all([here.close(), there.close()]));
    await requireNoLateWrites(
      { accounts: here.accounts, people: here.people, subscriptions: here },
      { accounts: there.accounts, people: there.people, subscriptions: there },
    );
  });
}

test("deletion: the process stops in between → the next sweep finishes it", async (t) => {
  const url = await server.database();
  const options = { connections: 3 };
  const [first, next] = [await openStore(url, options), await openStore(url, options)];
  t.after(() => next.close());
  await fillAccount(first, 4_711, 20_000);
  await fillAccount(first, 4_712, 10);
  const count = async (table: string, user: number) => {
    const [row] = await server.query(`select count(*) as rows from earmark.${table} where user_id = ${user}`, name);
    return Number(row?.["rows"]);
  };
  const name = new URL(url).pathname.slice(1);
  const deleting = assert.rejects(first.accounts.delete(asUser(4_711), new Date()), {
    name: "StoreUnavailable",
    unknown: true,
  });
  while ((await next.accounts.get(4_711)) !== undefined) await setImmediate();
  await first.close();
  await deleting;
  assert.ok((await count("subscriptions", 4_711)) > 0, "it was in between");

  await next.accounts.sweep(new Date());
  for (const table of ["subscriptions", "removals", "gaps", "erasures"])
    assert.equal(await count(table, 4_711), 0, table);
  assert.equal((await next.page(4_712, { offset: 0, size: 100 })).total, 9);
});
