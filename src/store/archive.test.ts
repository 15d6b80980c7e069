import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryFolder } from "../../test/support/server.ts";
import { UserError } from "../util/user-error.ts";
import { engineFor, inspectDatabase } from "./open.ts";
import { Checksum } from "./shared/checksum.ts";
import { type Row, TABLES } from "./shared/tables.ts";
import { makeSingleFile, replaceFile } from "./sqlite/archive.ts";
import { backUpFile, checkFile, readBackup } from "./sqlite/backup.ts";
import { NEWEST_VERSION } from "./sqlite/schema.ts";
import { describeArchive, fill, readAll } from "./suites/archive.suite.ts";

const newFile = () => join(temporaryFolder(), "earmark.db");

const isUserError = (message: string) => (error: Error) =>
  error instanceof UserError && error.message.includes(message);

/** Restores a backup as the command does. Returns where the old database is now. */
async function restore(file: string, backup: string): Promise<string | undefined> {
  let kept: string | undefined;
  const source = readBackup(backup);
  const target = replaceFile(file, (path) => {
    kept = `${path}-before`;
    return kept;
  });
  for (const table of TABLES) for await (const rows of source.rows(table)) await target.write(table, rows);
  await target.finish();
  await source.close();
  return kept;
}

describeArchive("SQLite", async () => `file:${newFile()}`);

test("archive: no file → an error, nothing is created", async () => {
  const missing = newFile();
  const archive = await engineFor(`file:${missing}`).archive(`file:${missing}`);
  await assert.rejects(archive.read(), isUserError(`No database at ${missing}.`));
  assert.equal(existsSync(missing), false);
});

test("archive: a copy → a second file until it is complete", async () => {
  const file = newFile();
  writeFileSync(`${file}-copying`, "left by one that was killed");
  const target = await (await engineFor(`file:${file}`).archive(`file:${file}`)).openEmpty();
  assert.equal(existsSync(`${file}-copying`), true);
  await target.close();
  assert.equal(existsSync(`${file}-copying`), false);
  await fill(`file:${file}`, 1);
  assert.deepEqual(readdirSync(join(file, "..")).sort(), ["earmark.db", "earmark.db-lock"]);
});

test("checksum: the same rows in the same order → equal", () => {
  const sum = (...groups: Row[][]) => {
    const checksum = new Checksum();
    for (const rows of groups) checksum.add(rows);
    assert.equal(checksum.rows, groups.flat().length);
    return checksum.digest();
  };
  const [a, b] = [
    [1, "x", Buffer.from("x")],
    [2, "y", Buffer.from("y")],
  ];
  assert.equal(sum([a, b]), sum([a], [b]));
  assert.equal(sum([[1, "x", new Uint8Array([0x78])], b]), sum([a, b]));
  assert.notEqual(sum([a, b]), sum([b, a]));
  assert.notEqual(sum([a]), sum([[1, "x", Buffer.from("z")]]));
  assert.notEqual(sum([["1"]]), sum([[1]]));
  assert.match(sum(), /^[0-9a-f]{64}$/);
});

test("backup: a single complete file → restored, and the old database is kept", async () => {
  const [file, backup, other, empty] = [newFile(), newFile(), newFile(), newFile()];
  await assert.rejects(
    backUpFile(file, backup, () => undefined),
    isUserError(`No database at ${file}.`),
  );
  await fill(`file:${file}`, 3);
  const progress: (readonly number[])[] = [];
  await backUpFile(file, backup, (done, total) => progress.push([done, total]));
  makeSingleFile(backup);
  assert.equal(checkFile(backup), 3);
  assert.deepEqual(readdirSync(join(backup, "..")), ["earmark.db"]);
  for (const [done = -1, total = 0] of progress) assert.ok(done >= 0 && done <= total);

  assert.equal(await restore(other, backup), undefined);
  assert.equal(checkFile(other), 3);
  assert.equal(statSync(other).mode & 0o777, 0o600);
  await fill(`file:${empty}`, 0);
  const kept = await restore(other, empty);
  assert.equal(kept, `${other}-before`);
  assert.deepEqual([checkFile(other), checkFile(kept)], [0, 3]);
  assert.deepEqual(
    readdirSync(join(other, "..")).filter((name) => /wal|shm|restoring/.test(name)),
    [],
  );
});

test("backup: others write meanwhile → a consistent snapshot", async () => {
  const [file, backup] = [newFile(), newFile()];
  await fill(`file:${file}`, 3_000);
  const writer = new DatabaseSync(file);
  writer.exec("pragma journal_mode = wal");
  // Each transaction removes one row from both tables, so in a snapshot both have lost the same number.
  const remove = ["subscriptions", "removals"].map(
    (table) => `delete from ${table} where sequence = (select max(sequence) from ${table})`,
  );
  let isDone = false;
  const backingUp = backUpFile(file, backup, () => undefined).finally(() => {
    isDone = true;
  });
  while (!isDone) {
    writer.exec(`begin; ${remove.join(";")}; commit`);
    await new Promise(setImmediate);
  }
  await backingUp;
  writer.close();
  makeSingleFile(backup);
  checkFile(backup);
  const { subscriptions, removals } = await readAll(`file:${backup}`);
  assert.equal(subscriptions?.length, removals?.length);
});

test("backup: deleted content in the file → only live content in the backup", async () => {
  const [file, backup] = [newFile(), newFile()];
  await fill(`file:${file}`, 1);
  const database = new DatabaseSync(file);
  database.exec("pragma secure_delete = off; pragma journal_mode = wal");
  const url = (index: number) => `https://u:secret-${index}@private.example/`;
  const insert = database.prepare(
    "insert into subscriptions (user_id, sequence, id, feed, feed_url, subscribed_at) values (7, ?, ?, ?, ?, 0)",
  );
  for (let index = 0; index < 1_000; index += 1)
    insert.run(index, Buffer.from(`a${index}`), Buffer.from(`b${index}`), url(index));
  database.exec("delete from subscriptions where user_id = 7");
  database.close();
  assert.ok(readFileSync(file).includes("secret-"), "the file still has deleted data");
  const shown: (readonly number[])[] = [];
  await backUpFile(file, backup, (done, total) => shown.push([done, total]));
  assert.ok(!readFileSync(backup).includes("secret-"));
  const [done, total] = shown.at(-1) ?? assert.fail();
  assert.equal(done, total);
});

test("schema: a trigger, view, table, index or changed table → rejected by start, restore and doctor", async () => {
  const cases = {
    "trigger copying":
      "create trigger copying after insert on subscriptions begin insert into erasures values (1, 1); end",
    "view spy": "create view spy as select * from subscriptions",
    "table extra": "create table extra (x)",
    "index fast": "create index fast on subscriptions (feed_url)",
    "table lists": "alter table lists add column x integer",
  };
  for (const [name, sql] of Object.entries(cases)) {
    const [file, other] = [newFile(), newFile()];
    await fill(`file:${file}`, 1);
    const database = new DatabaseSync(file);
    database.exec(sql);
    database.close();
    const message = `${file} has a ${name} that Earmark did not create.`;
    assert.throws(() => checkFile(file), isUserError(message));
    await assert.rejects(
      engineFor(`file:${file}`).migrate(`file:${file}`, { distribute: false }),
      isUserError(message),
    );
    const found = (await inspectDatabase(`file:${file}`)).filter(({ state }) => state === "error");
    assert.deepEqual(
      found.map(({ what }) => what),
      [`The database has a ${name} that Earmark did not create`],
    );
    await fill(`file:${other}`, 2);
    await restore(file, other);
    assert.equal(checkFile(file), 2, "a backup can replace it");
  }
  const file = newFile();
  await fill(`file:${file}`, 1);
  const database = new DatabaseSync(file);
  database.exec("analyze");
  checkFile(file);
  database.exec("drop index subscriptions_by_feed");
  database.close();
  assert.throws(() => checkFile(file), isUserError(`${file} has no index subscriptions_by_feed.`));
});

test("restore: a backup of an earlier version → its rows in the newest schema, and the backup unchanged", async () => {
  for (const version of [10, 13]) {
    const [backup, file] = [newFile(), newFile()];
    const database = new DatabaseSync(backup);
    const fixture = new URL(`../../test/fixtures/schemas/sqlite-${version}.sql`, import.meta.url);
    database.exec(readFileSync(fixture, "utf8"));
    const { rows } = database.prepare("select count(*) as rows from subscriptions").get() as { rows: number };
    database.close();
    const before = readFileSync(backup);
    await restore(file, backup);
    assert.equal(checkFile(file), rows);
    assert.equal((await readAll(`file:${file}`))["subscriptions"]?.length, rows);
    assert.deepEqual(readFileSync(backup), before);
    assert.deepEqual(readdirSync(join(backup, "..")), ["earmark.db"]);
  }
});

test("restore: the database is damaged → it is kept with its log, and the backup takes its place", async () => {
  const [file, backup] = [newFile(), newFile()];
  await fill(`file:${backup}`, 3);
  await fill(`file:${file}`, 1);
  const damaged = readFileSync(file).fill(0xff, 100, 4_096);
  writeFileSync(file, damaged);
  writeFileSync(`${file}-wal`, "log");
  const kept = (await restore(file, backup)) ?? assert.fail();
  assert.equal(checkFile(file), 3);
  assert.deepEqual([readFileSync(kept), readFileSync(`${kept}-wal`, "utf8")], [damaged, "log"]);
  assert.equal(existsSync(`${file}-wal`), false);
});

test("restore: interrupted at any point → the path has the complete old or new database", async () => {
  const [file, backup] = [newFile(), newFile()];
  await fill(`file:${file}`, 1);
  await fill(`file:${backup}`, 3);
  // While rows are copied, the old database stays usable, and leftover files do no harm.
  const broken = replaceFile(file, () => assert.fail("it was not finished"));
  await broken.write(TABLES[0] ?? assert.fail(), [[99, 0, 0, 0, 0, 1, 0, null, 0]]);
  writeFileSync(`${file}-left-by-kill`, readFileSync(`${file}-restoring`));
  await broken.close();
  writeFileSync(`${file}-restoring`, readFileSync(`${file}-left-by-kill`));
  await engineFor(`file:${file}`).migrate(`file:${file}`, { distribute: false });
  assert.equal((await readAll(`file:${file}`))["subscriptions"]?.length, 1);
  // The old database gets its second name while it is still at the path.
  let rowsWhenKept: number | undefined;
  const source = readBackup(backup);
  const target = replaceFile(file, (path) => {
    rowsWhenKept = checkFile(path);
    return `${path}-before`;
  });
  for (const table of TABLES) for await (const rows of source.rows(table)) await target.write(table, rows);
  await target.finish();
  await source.close();
  assert.equal(rowsWhenKept, 1);
  assert.deepEqual([checkFile(file), checkFile(`${file}-before`)], [3, 1]);
  assert.equal(existsSync(`${file}-restoring`), false);
});

test("restore: interrupted where there was no database → a start refuses to create an empty one", async () => {
  const [file, backup] = [newFile(), newFile()];
  await fill(`file:${backup}`, 3);
  writeFileSync(`${file}-restoring`, "left by a kill");
  await assert.rejects(
    engineFor(`file:${file}`).migrate(`file:${file}`, { distribute: false }),
    isUserError(`A restore to ${file} was interrupted.`),
  );
  assert.equal(existsSync(file), false);
  await restore(file, backup);
  assert.equal(checkFile(file), 3);
});

test("archive: every operation → leaves no file open", async () => {
  const countOpenFiles = () => readdirSync("/dev/fd").length;
  const [file, backup] = [newFile(), newFile()];
  const before = countOpenFiles();
  await fill(`file:${file}`, 1);
  await readAll(`file:${file}`);
  await assert.rejects(fill(`file:${file}`, 1), UserError);
  const target = await (await engineFor(`file:${newFile()}`).archive(`file:${newFile()}`)).openEmpty();
  await target.close();
  await backUpFile(file, backup, () => undefined);
  makeSingleFile(backup);
  checkFile(backup);
  await restore(file, backup);
  await inspectDatabase(`file:${file}`);
  assert.equal(countOpenFiles(), before);
});

test("restore: not an intact backup → rejected with advice", async () => {
  const file = newFile();
  writeFileSync(file, "x".repeat(200));
  assert.throws(() => checkFile(file), isUserError(`${file} is not an Earmark database.`));
  assert.throws(() => checkFile(join(file, "..")), isUserError("is not an Earmark database."));
  const good = newFile();
  await fill(`file:${good}`, 1);
  writeFileSync(`${good}-wal`, "");
  checkFile(good);
  writeFileSync(`${good}-wal`, "x");
  assert.throws(() => checkFile(good), isUserError(`earmark backup FILE`));
  const damaged = newFile();
  await fill(`file:${damaged}`, 30);
  const bytes = readFileSync(damaged);
  writeFileSync(damaged, bytes.fill("X", 4_100, 4_128));
  assert.throws(() => checkFile(damaged), isUserError(`${damaged} is damaged (`));
  const newer = newFile();
  await fill(`file:${newer}`, 1);
  const database = new DatabaseSync(newer);
  database.exec(`pragma user_version = ${NEWEST_VERSION + 1}; pragma journal_mode = delete`);
  database.close();
  assert.throws(() => checkFile(newer), isUserError("newer Earmark"));
});

test("inspect: a file in any state → findings, unchanged", async () => {
  const file = newFile();
  const url = `file:${file}`;
  /** Without the findings about the disk. */
  const inspect = async () => (await inspectDatabase(url)).filter(({ what }) => !/disk|file system|machine/.test(what));
  const states = async () => (await inspect()).map(({ state, what }) => `${state}: ${what}`);
  assert.deepEqual(await states(), [`ok: No database at ${file} yet; the first start creates it`]);
  assert.equal(existsSync(file), false);
  assert.deepEqual(await engineFor(url).migrate(url, { distribute: false }), { distributed: undefined });
  assert.deepEqual(await states(), [
    `ok: The database schema is current (version ${NEWEST_VERSION})`,
    "ok: The integrity check passed",
    "ok: Writes are durable: journal_mode wal, synchronous full",
    "ok: Feeds: 0 known, 0 to be fetched now, 0 failing",
  ]);
  makeSingleFile(file);
  assert.equal(
    (await states())[2],
    "ok: On its next start, the server will make writes durable: journal_mode wal instead of delete",
  );
  await assert.rejects(
    engineFor(url).migrate(url, { distribute: true }),
    isUserError("A SQLite file cannot be distributed."),
  );
  const database = new DatabaseSync(file);
  database.exec("drop index removals_by_time; pragma user_version = 13");
  assert.equal(
    (await states())[0],
    `ok: On its next start, the server will migrate the database schema from version 13 to ${NEWEST_VERSION}`,
  );
  database.exec(`pragma user_version = ${NEWEST_VERSION + 1}`);
  database.close();
  const [finding] = await inspectDatabase(url);
  assert.equal(finding?.state, "error");
  assert.match(finding?.what ?? "", /^The database at .*earmark\.db is unavailable: .*was written by a newer Earmark/);
  assert.equal(finding?.advice, "Check DATABASE_URL and that this user has access.");
  writeFileSync(file, "x".repeat(200));
  assert.deepEqual(await inspect(), [
    { state: "error", what: `${file} is not an Earmark database`, advice: "Set DATABASE_URL to another file." },
  ]);
});
