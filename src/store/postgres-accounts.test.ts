import { test } from "node:test";
import { startPostgres } from "../../test/postgres.ts";
import { describeAccounts, requireEnds, requireNoLateWrites } from "./accounts.suite.ts";
import { openStore } from "./open.ts";

const server = await startPostgres();

describeAccounts("PostgreSQL", async () => {
  const store = await openStore(await server.database(), { maxWaiting: 50_000, connections: 10 });
  return { accounts: store.accounts, subscriptions: store };
});

test("what one process has taken away is known to no other when it is answered", async (t) => {
  const url = await server.database();
  const [here, there] = await Promise.all([
    openStore(url, { maxWaiting: 50_000, connections: 2 }),
    openStore(url, { maxWaiting: 50_000, connections: 2 }),
  ]);
  t.after(() => Promise.all([here.close(), there.close()]));
  await requireEnds(here.accounts, there.accounts);
});

for (const processes of ["this process", "another process"]) {
  test(`access: a revocation in ${processes} is answered → no write under it appears later`, async (t) => {
    const url = await server.database();
    const open = () => openStore(url, { maxWaiting: 50_000, connections: 5 });
    const here = await open();
    const there = processes === "this process" ? here : await open();
    t.after(() => Promise.all([here.close(), there.close()]));
    await requireNoLateWrites(
      { accounts: here.accounts, subscriptions: here },
      { accounts: there.accounts, subscriptions: there },
    );
  });
}
