import assert from "node:assert/strict";
import { test } from "node:test";
import { type AccountImportProgress, createAccountImports } from "../client/src/account-imports.ts";
import { createClient, NetworkError } from "../client/src/index.ts";
import { IMPORTING } from "./support/account-imports.ts";
import { failureOf, feedsOf, refusalOf } from "./support/client.ts";
import { OLD_FEEDS, startOldServer } from "./support/old-server.ts";
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

const SUBSCRIPTIONS = { found: 3, added: 3, alreadySubscribed: 0, refused: 0 };
const ACTIONS = { found: 5, added: 5, notNewer: 0, refused: 0 };

test("client, account of another server: preview, import with progress, repeat → added once", async () => {
  const old = await startOldServer();
  const { url } = await startServer(IMPORTING);
  const imports = createAccountImports({ url });
  const source = { url: old.url, userName: old.name, password: old.password };
  const { id, ...preview } = await imports.importAccount(source, { dryRun: true });
  const expected = { url: old.url, kind: "gpodder", subscriptions: SUBSCRIPTIONS, episodeActions: ACTIONS };
  assert.deepEqual([typeof id, preview], ["string", { ...expected, dryRun: true }]);
  const seen: AccountImportProgress[] = [];
  const onProgress = (progress: AccountImportProgress) => seen.push(progress);
  const done = await imports.importAccount(source, { onProgress });
  assert.deepEqual({ ...done, id }, { ...expected, id, dryRun: false });
  assert.equal(seen[0]?.stage, "signing-in");
  assert.deepEqual(seen.at(-1)?.stage, "writing");
  assert.deepEqual(seen.at(-1)?.episodeActions.found, 5);
  const { items } = await createClient({ url }).page();
  assert.deepEqual(
    items.map(({ feedUrl }) => feedUrl),
    OLD_FEEDS,
  );
  const again = await imports.importAccount({ ...source, kind: "nextcloud" });
  assert.deepEqual([again.subscriptions.added, again.episodeActions.notNewer], [0, 5]);
});

test("client, login to a Nextcloud server: waits until it is allowed; the preview returns the next login", async () => {
  const old = await startOldServer();
  const { url } = await startServer(IMPORTING);
  const imports = createAccountImports({ url });
  const { loginUrl, login, expiresAt } = await imports.startLogin(old.url);
  assert.ok(loginUrl.startsWith(`${old.url}/`));
  assert.ok(expiresAt.getTime() > Date.now() + 60_000);
  const { promise: waiting, resolve } = Promise.withResolvers<void>();
  const running = imports.importAccount(
    { url: old.url, login },
    { dryRun: true, onProgress: ({ stage }) => stage === "waiting" && resolve() },
  );
  await waiting;
  await old.allow(loginUrl);
  const preview = await running;
  assert.deepEqual([preview.kind, preview.subscriptions, await old.tokens()], ["nextcloud", SUBSCRIPTIONS, 2]);
  assert.equal(typeof preview.login, "string");
  const done = await imports.importAccount({ url: old.url, login: preview.login ?? "" });
  assert.deepEqual([done.subscriptions, done.episodeActions, done.login], [SUBSCRIPTIONS, ACTIONS, undefined]);
  assert.equal(await old.tokens(), 1, "the app password was deleted");
});

test("client, account of another server: rejected, canceled or unreachable → thrown", async () => {
  const old = await startOldServer();
  const { url } = await startServer(IMPORTING);
  const imports = createAccountImports({ url });
  const source = { url: old.url, userName: old.name, password: "wrong" };
  assert.deepEqual(await refusalOf(imports.importAccount(source)), [422, "import-sign-in-failed"]);
  assert.deepEqual(await refusalOf(imports.startLogin("nonsense")), [422, "import-url-invalid"]);
  assert.deepEqual(await refusalOf(imports.importAccount({ url: old.url, login: "x" })), [422, "import-login-expired"]);
  const canceled = imports.importAccount({ ...source, password: old.password }, { signal: AbortSignal.abort() });
  await assert.rejects(canceled, { name: "AbortError" });
  const nowhere = createAccountImports({ url: "http://127.0.0.1:9" });
  await failureOf(nowhere.importAccount(source), NetworkError);
});

test("client, export of an account: another document → rejected with its code", async () => {
  const { url } = await startServer();
  const imports = createAccountImports({ url });
  assert.deepEqual(await refusalOf(imports.importExport("{}")), [400, "malformed-document"]);
});
