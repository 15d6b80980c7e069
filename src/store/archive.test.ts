import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryFolder } from "../../test/harness.ts";
import { describeArchive, fill, readAll } from "./archive.suite.ts";
import { Checksum, openArchive } from "./archive.ts";
import { examine } from "./examine.ts";
import { prepareStore } from "./open.ts";
import { StartFailure } from "./opening.ts";
import { backUpFile, checkFile, makeSingleFile, replaceFile } from "./sqlite-backup.ts";
import type { Row } from "./tables.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const newFile = () => join(temporaryFolder(), "earmark.db");

const refuses = (words: string) => (error: Error) => error instanceof StartFailure && error.message.includes(words);

describeArchive("SQLite", async () => `file:${newFile()}`);

test("a file that is not there is not read, nor made", async () => {
  const missing = newFile();
  const archive = await openArchive(`file:${missing}`);
  await assert.rejects(archive.read(), refuses(`There is no database at ${missing}.`));
  assert.equal(existsSync(missing), false);
});

test("a copy stands beside the file until it is whole, and then alone", async () => {
  const file = newFile();
  writeFileSync(`${file}-copying`, "left by one that was killed");
  const target = await (await openArchive(`file:${file}`)).replaceEmpty();
  assert.equal(existsSync(`${file}-copying`), true);
  await target.close();
  assert.equal(existsSync(`${file}-copying`), false);
  await fill(`file:${file}`, 1);
  assert.deepEqual(readdirSync(join(file, "..")).sort(), ["earmark.db", "earmark.db-lock"]);
});

test("tables are equal when they have the same rows in the same order", () => {
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

test("a backup is one file that is whole, and is put in the place of another that is kept", async () => {
  const [file, backup, other, empty] = [newFile(), newFile(), newFile(), newFile()];
  await assert.rejects(
    backUpFile(file, backup, () => undefined),
    refuses(`There is no database at ${file}.`),
  );
  await fill(`file:${file}`, 3);
  const progress: (readonly number[])[] = [];
  await backUpFile(file, backup, (done, total) => progress.push([done, total]));
  makeSingleFile(backup);
  assert.equal(checkFile(backup), 3);
  assert.deepEqual(readdirSync(join(backup, "..")), ["earmark.db"]);
  for (const [done = -1, total = 0] of progress) assert.ok(done >= 0 && done <= total);

  assert.equal(replaceFile(other, backup, NOW), undefined);
  assert.equal(checkFile(other), 3);
  assert.equal(statSync(other).mode & 0o777, 0o600);
  await fill(`file:${empty}`, 0);
  const kept = replaceFile(other, empty, NOW);
  assert.equal(kept, `${other}-before-2026-01-02T03-04-05-678Z`);
  assert.deepEqual([checkFile(other), checkFile(kept)], [0, 3]);
  assert.deepEqual(
    readdirSync(join(other, "..")).filter((name) => /wal|shm|restoring/.test(name)),
    [],
  );
});

test("a backup is of the instant at which it began, and does not begin again when somebody writes", async () => {
  const [file, backup] = [newFile(), newFile()];
  await fill(`file:${file}`, 20);
  const writer = new DatabaseSync(file);
  writer.exec("pragma journal_mode = wal; create table large as select zeroblob(8000000)");
  const progress: number[] = [];
  await backUpFile(file, backup, (done) => {
    progress.push(done);
    if (progress.length < 10)
      writer.exec("delete from subscriptions where sequence = (select max(sequence) from subscriptions)");
  });
  writer.close();
  makeSingleFile(backup);
  assert.equal(checkFile(backup), 20);
  assert.ok(progress.length > 1, "in several parts");
  assert.deepEqual(
    progress,
    progress.toSorted((a, b) => a - b),
  );
});

test("no file stays open, whatever is done with it", async () => {
  const opened = () => readdirSync("/dev/fd").length;
  const [file, backup] = [newFile(), newFile()];
  const before = opened();
  await fill(`file:${file}`, 1);
  await readAll(`file:${file}`);
  await assert.rejects(fill(`file:${file}`, 1), StartFailure);
  const target = await (await openArchive(`file:${newFile()}`)).replaceEmpty();
  await target.close();
  await backUpFile(file, backup, () => undefined);
  makeSingleFile(backup);
  checkFile(backup);
  replaceFile(file, backup, NOW);
  await examine(`file:${file}`);
  assert.equal(opened(), before);
});

test("what is not a whole backup is refused, with what to do", async () => {
  const file = newFile();
  writeFileSync(file, "x".repeat(200));
  assert.throws(() => checkFile(file), refuses(`${file} is not a database of Earmark.`));
  assert.throws(() => checkFile(join(file, "..")), refuses("is not a database of Earmark."));
  const good = newFile();
  await fill(`file:${good}`, 1);
  writeFileSync(`${good}-wal`, "");
  checkFile(good);
  writeFileSync(`${good}-wal`, "x");
  assert.throws(() => checkFile(good), refuses(`earmark backup FILE`));
  const damaged = newFile();
  await fill(`file:${damaged}`, 30);
  const bytes = readFileSync(damaged);
  writeFileSync(damaged, bytes.fill("X", 4_100, 4_128));
  assert.throws(() => checkFile(damaged), refuses(`${damaged} is damaged (`));
  const newer = newFile();
  await fill(`file:${newer}`, 1);
  const database = new DatabaseSync(newer);
  database.exec("pragma user_version = 3; pragma journal_mode = delete");
  database.close();
  assert.throws(() => checkFile(newer), refuses("newer Earmark"));
});

test("a file is looked at without changing it", async () => {
  const file = newFile();
  const url = `file:${file}`;
  const states = async () => (await examine(url)).map(({ state, what }) => `${state}: ${what}`);
  assert.deepEqual(await states(), [`ok: There is no database at ${file} yet; the first start makes it`]);
  assert.equal(existsSync(file), false);
  assert.deepEqual(await prepareStore(url, { distribute: false }), { distributed: undefined });
  assert.deepEqual(await states(), [
    "ok: The database is of this version (schema 2)",
    "ok: The database is whole",
    "ok: It is kept safely: journal_mode wal, synchronous full",
  ]);
  makeSingleFile(file);
  assert.equal((await states())[2], "ok: The next start keeps it safely: journal_mode wal instead of delete");
  await assert.rejects(prepareStore(url, { distribute: true }), refuses("A file cannot be spread over a cluster"));
  const database = new DatabaseSync(file);
  database.exec("pragma user_version = 1");
  assert.equal((await states())[0], "ok: The next start brings the database from schema 1 to 2");
  database.exec("pragma user_version = 3");
  database.close();
  const [finding] = await examine(url);
  assert.equal(finding?.state, "wrong");
  assert.match(finding?.what ?? "", /^The database at .*earmark\.db cannot be used: .*was written by a newer Earmark/);
  assert.equal(finding?.advice, "Check DATABASE_URL, and that this user may open it.");
  writeFileSync(file, "x".repeat(200));
  assert.deepEqual(await examine(url), [
    { state: "wrong", what: `${file} is not a database of Earmark`, advice: "Set DATABASE_URL to another file." },
  ]);
});
