import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryFolder } from "../../test/harness.ts";
import { describeAccounts, requireEndsElsewhere } from "./accounts.suite.ts";
import { openStore } from "./open.ts";
import { SqliteAccounts } from "./sqlite-accounts.ts";
import { createSchema } from "./sqlite-file.ts";

const folder = temporaryFolder();
let files = 0;

describeAccounts("SQLite", async () => {
  files += 1;
  const store = await openStore(`file:${join(folder, `${files}.db`)}`, { maxWaiting: 50_000, connections: 1 });
  return { accounts: store.accounts, subscriptions: store };
});

test("a token that was revoked is refused at once, however soon it is used again", async () => {
  const file = join(folder, "revoked.db");
  const writer = new DatabaseSync(file);
  createSchema(writer);
  const reader = new DatabaseSync(file, { readOnly: true });
  writer.exec("insert into credentials values (x'01', 7, zeroblob(16), 'token', 'read', '', 1, 0, 0)");
  const accounts = new SqliteAccounts(
    reader,
    async () => {
      writer.exec("delete from credentials");
      return 1;
    },
    false,
  );
  const hash = Buffer.from([1]).toString("base64url");
  assert.equal((await accounts.findCredential(hash))?.user, 7);
  assert.equal(await accounts.removeCredential(7, "token", "00000000-0000-0000-0000-000000000000"), true);
  assert.equal(await accounts.findCredential(hash), undefined);
  reader.close();
  writer.close();
});

test("what a command has revoked beside a server is refused there when the command has its answer", async (t) => {
  const url = `file:${join(folder, "beside.db")}`;
  const server = await openStore(url, { maxWaiting: 50_000, connections: 1 });
  const command = await openStore(url, { maxWaiting: 50_000, connections: 1, beside: true });
  t.after(() => command.close().then(() => server.close()));
  await requireEndsElsewhere(command.accounts, server.accounts);
});
