import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/harness.ts";
import { describeAccounts, requireEnds, requireNoLateWrites } from "./accounts.suite.ts";
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

test("access: a revocation in this process is answered → no write under it appears later", async (t) => {
  const store = await openStore(`file:${join(folder, "late.db")}`, { maxWaiting: 50_000, connections: 1 });
  t.after(() => store.close());
  const stores = { accounts: store.accounts, subscriptions: store };
  await requireNoLateWrites(stores, stores);
});

test("access: a revocation by a command is answered → no write of the server under it appears later", async (t) => {
  const url = `file:${join(folder, "late-beside.db")}`;
  const server = await openStore(url, { maxWaiting: 50_000, connections: 1 });
  const command = await openStore(url, { maxWaiting: 50_000, connections: 1, beside: true });
  t.after(() => command.close().then(() => server.close()));
  await requireNoLateWrites(
    { accounts: command.accounts, subscriptions: command },
    { accounts: server.accounts, subscriptions: server },
  );
});
