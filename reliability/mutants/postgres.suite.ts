import { after } from "node:test";
import { describeAccounts } from "../../src/store/accounts.suite.ts";
import { describeArchive } from "../../src/store/archive.suite.ts";
import { describeStore } from "../../src/store/contract.suite.ts";
import { openStore } from "../../src/store/engines.ts";
import { createDatabase } from "../../test/postgres.ts";

/** What any engine must do, on the server that TEST_POSTGRES_URL names: one server for all mutants. */
const server = process.env["TEST_POSTGRES_URL"] ?? "";
const open = async () => openStore(await createDatabase(server), { maxWaiting: 50_000, connections: 10 });

const subscriptions = await open();
after(() => subscriptions.close());
describeStore("PostgreSQL", subscriptions);
describeArchive("PostgreSQL", () => createDatabase(server));
describeAccounts("PostgreSQL", async () => {
  const store = await open();
  return { accounts: store.accounts, subscriptions: store };
});
