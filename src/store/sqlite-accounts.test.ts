import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/harness.ts";
import { describeAccounts, requireEnds } from "./accounts.suite.ts";
import { openStore } from "./open.ts";

const folder = temporaryFolder();
let files = 0;

describeAccounts("SQLite", async () => {
  files += 1;
  const store = await openStore(`file:${join(folder, `${files}.db`)}`, { maxWaiting: 50_000, connections: 1 });
  return { accounts: store.accounts, subscriptions: store };
});

test("what was revoked is refused when it is answered, however soon it is used again", async (t) => {
  const url = `file:${join(folder, "revoked.db")}`;
  const store = await openStore(url, { maxWaiting: 50_000, connections: 1 });
  t.after(() => store.close());
  await requireEnds(store.accounts, store.accounts);
});

test("what a command has revoked beside a server is refused there when the command has its answer", async (t) => {
  const url = `file:${join(folder, "beside.db")}`;
  const server = await openStore(url, { maxWaiting: 50_000, connections: 1 });
  const command = await openStore(url, { maxWaiting: 50_000, connections: 1, beside: true });
  t.after(() => command.close().then(() => server.close()));
  await requireEnds(command.accounts, server.accounts);
});
