import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { temporaryFolder } from "../../../test/support/server.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { UserError } from "../../util/user-error.ts";
import { BASE_VERSION } from "../shared/schema-version.ts";
import { claimAndMigrate, inspectFile, isEarmarkFile, openConnection, shareFile, wrapReadErrors } from "./file.ts";
import { findForeignSchema, isSchemaCurrent, NEWEST_VERSION } from "./schema.ts";

const newFile = () => join(temporaryFolder(), "earmark.db");
const isUserError = (message: string) => (error: Error) =>
  error instanceof UserError && error.message.includes(message);
const settingOf = (database: DatabaseSync, pragma: string) =>
  Object.values(database.prepare(`pragma ${pragma}`).get() ?? {})[0];

test("claim: a missing file → created with its folders; claimed again through a link → rejected until released", () => {
  const file = join(temporaryFolder(), "a", "b", "earmark.db");
  const release = claimAndMigrate(file);
  assert.ok(isEarmarkFile(file));
  const link = newFile();
  symlinkSync(file, link);
  assert.throws(
    () => claimAndMigrate(link),
    isUserError(`Another Earmark process is using ${file}. Stop it first, or set DATABASE_URL to another file.`),
  );
  release();
  claimAndMigrate(link)();
});

test("claim: another process holds the lock briefly → waits for it", async () => {
  const file = newFile();
  claimAndMigrate(file)();
  // In another thread, because waiting blocks this one.
  const holder = new Worker(
    `const { DatabaseSync } = require("node:sqlite");
     const { parentPort, workerData } = require("node:worker_threads");
     const lock = new DatabaseSync(workerData + "-lock");
     lock.exec("begin exclusive");
     parentPort.postMessage("held");
     setTimeout(() => lock.close(), 100);`,
    { eval: true, workerData: file },
  );
  await once(holder, "message");
  claimAndMigrate(file)();
  await once(holder, "exit");
});

test("open: any connection → durable settings", () => {
  const file = newFile();
  claimAndMigrate(file)();
  for (const readOnly of [false, true]) {
    const database = openConnection(file, { readOnly, cacheKiB: 1_234 });
    const values = ["journal_mode", "synchronous", "secure_delete", "cache_size", "trusted_schema", "cell_size_check"];
    assert.deepEqual(
      [...values, "wal_autocheckpoint", "journal_size_limit"].map((name) => settingOf(database, name)),
      ["wal", 2, 1, -1_234, 0, 1, 16_000, 2 * 16_000 * 4_096],
    );
    assert.equal(isSchemaCurrent(database), true);
    database.close();
  }
  const connection = openConnection(file, { readOnly: true, cacheKiB: 1 });
  assert.throws(() => connection.exec("delete from lists"), /readonly/);
  connection.close();
});

test("open: no write-ahead log possible → rejected", () => {
  assert.throws(
    () => openConnection(":memory:", { readOnly: false, cacheKiB: 1 }),
    isUserError("SQLite cannot guarantee durable writes here (journal_mode is memory, must be wal)."),
  );
});

test("claim: a file of any schema since 0.2.0 → migrated, data kept", () => {
  for (let version = BASE_VERSION; version < NEWEST_VERSION; version += 1) {
    const file = newFile();
    const database = new DatabaseSync(file);
    const fixture = new URL(`../../../test/fixtures/schemas/sqlite-${version}.sql`, import.meta.url);
    database.exec(readFileSync(fixture, "utf8"));
    assert.equal(isSchemaCurrent(database), false);
    const read = () => database.prepare("select user_id, sequence, id, feed, feed_url from subscriptions").all();
    const before = read();
    assert.ok(before.length > 0);
    claimAndMigrate(file)();
    assert.equal(isSchemaCurrent(database), true);
    assert.equal(findForeignSchema(database, NEWEST_VERSION), undefined, `schema ${version}`);
    assert.deepEqual(read(), before);
    const subscribers = database.prepare("select user_id from subscribers order by user_id").all();
    assert.deepEqual(
      subscribers.map(({ user_id }) => user_id),
      [1, 38773490085137],
    );
    const admins = database.prepare("select name from accounts where is_admin = 1").all();
    assert.deepEqual(
      admins.map(({ name }) => name),
      ["ann"],
    );
    const removed = database.prepare("select user_id, count(*) as count from removals group by user_id").all();
    const inSets = database
      .prepare("select user_id, sum(removed) as count from change_sets where kind = 'unknown' group by user_id")
      .all();
    assert.deepEqual(inSets, removed, "what was removed before is in the history");
    database.close();
  }
});

test("schema: a duplicate id, feed or sequence of a user → rejected by an index", () => {
  const file = newFile();
  claimAndMigrate(file)();
  const database = new DatabaseSync(file);
  const insert = (user: number, sequence: number, id: string, feed: string) =>
    database
      .prepare(
        "insert into subscriptions (user_id, sequence, id, feed, feed_url, subscribed_at) values (?, ?, ?, ?, '', 0)",
      )
      .run(user, sequence, Buffer.from(id), Buffer.from(feed));
  insert(1, 1, "a", "x");
  insert(2, 1, "a", "x");
  assert.throws(() => insert(1, 2, "a", "y"), /UNIQUE/);
  assert.throws(() => insert(1, 2, "b", "x"), /UNIQUE/);
  assert.throws(() => insert(1, 1, "b", "y"), /UNIQUE/);
  database.close();
});

test("claim: a foreign file or a newer schema → rejected and unchanged", () => {
  const foreign = newFile();
  const database = new DatabaseSync(foreign);
  database.exec("create table x (y)");
  database.close();
  const before = readFileSync(foreign);
  assert.throws(
    () => claimAndMigrate(foreign),
    isUserError(`${foreign} is not an Earmark database. It was not changed; set DATABASE_URL to another file.`),
  );
  assert.deepEqual(readFileSync(foreign), before);
  assert.equal(existsSync(`${foreign}-lock`), false);

  const newer = newFile();
  claimAndMigrate(newer)();
  const other = new DatabaseSync(newer);
  other.exec(`pragma user_version = ${NEWEST_VERSION + 1}`);
  other.close();
  assert.throws(
    () => claimAndMigrate(newer),
    isUserError(
      `${newer} was written by a newer Earmark (schema version ${NEWEST_VERSION + 1}; this Earmark supports up to ${NEWEST_VERSION}).`,
    ),
  );
  assert.throws(() => claimAndMigrate(newer), isUserError("newer"), "the lock is released");
});

test("claim: a damaged file or a folder in its place → rejected with advice", () => {
  const file = newFile();
  claimAndMigrate(file)();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, 2 * 4_096, 3 * 4_096));
  assert.throws(() => claimAndMigrate(file), isUserError("It was not changed; restore a backup."));
  const [, integrity] = inspectFile(file);
  assert.equal(integrity?.state, "error");
  assert.match(integrity?.what ?? "", /^The database is damaged \(.+\)$/s);
  assert.equal(integrity?.advice, "Restore a backup: earmark restore FILE");

  const folder = temporaryFolder();
  mkdirSync(join(folder, "earmark.db"));
  assert.throws(
    () => claimAndMigrate(join(folder, "earmark.db")),
    isUserError("Check that it is an intact Earmark database"),
  );
});

test("share: a running server → allowed, unless it has another schema version", () => {
  const file = newFile();
  shareFile(file)();
  assert.ok(isEarmarkFile(file));
  const release = claimAndMigrate(file);
  shareFile(file)();
  const database = new DatabaseSync(file);
  database.exec("pragma user_version = 1");
  assert.throws(
    () => shareFile(file),
    isUserError(`A server of a different Earmark version is using ${file}. Stop it first.`),
  );
  database.exec(`pragma user_version = ${NEWEST_VERSION}`);
  database.close();
  release();
  const foreign = newFile();
  writeFileSync(foreign, "x".repeat(200));
  assert.throws(() => shareFile(foreign), isUserError("is not an Earmark database"));
});

test("read: fails → StoreUnavailable with the cause", () => {
  assert.equal(
    wrapReadErrors(() => 1),
    1,
  );
  const cause = new Error("x");
  assert.throws(
    () =>
      wrapReadErrors(() => {
        throw cause;
      }),
    (error: Error) => error instanceof StoreUnavailable && error.cause === cause,
  );
});
