import assert from "node:assert/strict";
import { test } from "node:test";
import { createAccountImports } from "../client/src/account-imports.ts";
import { createClient } from "../client/src/index.ts";
import { feedsOf, refusalOf } from "./support/client.ts";
import { startServer } from "./support/server.ts";

const NO_ACTIONS = { found: 0, added: 0, notNewer: 0, refused: 0 };

test("client, export of an account: imported into another server → added once", async () => {
  const [source, target] = [await startServer(), await startServer()];
  const from = createClient({ url: source.url });
  await from.subscribe(feedsOf(3));
  const document = await from.exportAccount();
  const imports = createAccountImports({ url: target.url });
  const { id, ...preview } = await imports.importExport(document, { dryRun: true });
  const subscriptions = { found: 3, added: 3, alreadySubscribed: 0, refused: 0 };
  const expected = { url: null, kind: "earmark", dryRun: true, subscriptions, episodeActions: NO_ACTIONS };
  assert.deepEqual([typeof id, preview], ["string", expected]);
  const done = await imports.importExport(new Blob([document]));
  assert.deepEqual([done.dryRun, done.subscriptions], [false, subscriptions]);
  const to = createClient({ url: target.url });
  assert.deepEqual((await to.page()).items, (await from.page()).items);
  const again = await imports.importExport(document);
  assert.deepEqual(again.subscriptions, { found: 3, added: 0, alreadySubscribed: 3, refused: 0 });
});

test("client, export of an account: another document → rejected with its code", async () => {
  const { url } = await startServer();
  const imports = createAccountImports({ url });
  assert.deepEqual(await refusalOf(imports.importExport("{}")), [400, "malformed-document"]);
});
