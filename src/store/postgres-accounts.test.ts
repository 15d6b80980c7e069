import { startPostgres } from "../../test/postgres.ts";
import { describeAccounts } from "./accounts.suite.ts";
import { openStore } from "./open.ts";

const server = await startPostgres();

describeAccounts("PostgreSQL", async () => {
  const store = await openStore(await server.database(), { maxWaiting: 50_000, connections: 10 });
  return { accounts: store.accounts, subscriptions: store };
});
