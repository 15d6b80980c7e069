import { join } from "node:path";
import { temporaryFolder } from "../../test/harness.ts";
import { describeAccounts } from "./accounts.suite.ts";
import { openStore } from "./open.ts";

const folder = temporaryFolder();
let files = 0;

describeAccounts("SQLite", async () => {
  files += 1;
  const store = await openStore(`file:${join(folder, `${files}.db`)}`, { maxWaiting: 50_000, connections: 1 });
  return { accounts: store.accounts, subscriptions: store };
});
