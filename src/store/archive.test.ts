import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryFolder } from "../../test/harness.ts";
import { Checksum, openArchive } from "./archive.ts";
import { examine } from "./examine.ts";
import { prepareStore } from "./open.ts";
import { StartFailure } from "./opening.ts";
import { backUpFile, checkFile, makeSingleFile, replaceFile } from "./sqlite-backup.ts";
import { type Row, TABLES, type Table, type Value } from "./tables.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const newFile = () => join(temporaryFolder(), "earmark.db");
const key = (number: number) => number.toString(16).padStart(32, "0");

/** A row of any table whose values are all its own. */
function rowOf({ columns }: Table, number: number): Row {
  const make = { number: (n: number) => n, text: String, key, bytes: (n: number) => Buffer.from(key(n), "hex") };
  return columns.map(([, kind], column): Value => make[kind](10 * number + column));
}

async function fill(file: string, rows: number): Promise<void> {
  const target = await openArchive(`file:${file}`).then((archive) => archive.replaceEmpty());
  for (const table of TABLES) {
    await target.write(
      table,
      Array.from({ length: rows }, (_, index) => rowOf(table, index + 1)),
    );
  }
  await target.finish();
  await target.close();
}

async function readAll(file: string): Promise<Record<string, Row[]>> {
  const source = await openArchive(`file:${file}`).then((archive) => archive.read());
  const all: Record<string, Row[]> = {};
  for (const table of TABLES) {
    const rows: Row[] = [];
    for await (const some of source.rows(table)) rows.push(...some);
    assert.equal(await source.count(table), rows.length);
    all[table.name] = rows;
  }
  await source.close();
  return all;
}

const refuses = (words: string) => (error: Error) => error instanceof StartFailure && error.message.includes(words);

test("everything that there is to keep comes back from a file as it was given", async () => {
  const file = newFile();
  await fill(file, 3);
  assert.deepEqual(readdirSync(join(file, "..")).sort(), ["earmark.db", "earmark.db-lock"]);
  const all = await readAll(file);
  assert.deepEqual(Object.keys(all), [
    "lists",
    "subscriptions",
    "removals",
    "gaps",
    "accounts",
    "identities",
    "credentials",
  ]);
  const plain = (rows: readonly Row[]) =>
    rows.map((row) => row.map((one) => (typeof one === "object" ? [...one] : one)));
  for (const table of TABLES) {
    const given = [1, 2, 3].map((number) => rowOf(table, number));
    assert.deepEqual(plain(all[table.name] ?? []), plain(given), table.name);
  }
});

test("a list of more rows than are read at a time is read whole and in order", async () => {
  const file = newFile();
  await fill(file, 0);
  const database = new DatabaseSync(file);
  database.exec(
    "insert into removals select 1 + n / 6000, n, zeroblob(16), n from (with recursive c (n) as (select 0 union all select n + 1 from c where n < 11999) select n from c)",
  );
  database.close();
  const { removals = [] } = await readAll(file);
  assert.equal(removals.length, 12_000);
  assert.ok(removals.every(([, sequence], index) => sequence === index));
});

test("a file with anything in it is not overwritten, and one that is not there is not read", async () => {
  const file = newFile();
  await fill(file, 1);
  const archive = await openArchive(`file:${file}`);
  await assert.rejects(archive.replaceEmpty(), refuses("is not empty; nothing was copied. Name another file."));
  assert.equal((await readAll(file))["lists"]?.length, 1);
  const missing = newFile();
  const other = await openArchive(`file:${missing}`);
  await assert.rejects(other.read(), refuses(`There is no database at ${missing}.`));
  assert.equal(existsSync(missing), false);
});

test("a copy that is broken off leaves an empty file, and the next one begins anew", async () => {
  const file = newFile();
  const target = await openArchive(`file:${file}`).then((archive) => archive.replaceEmpty());
  for (const table of TABLES) await target.write(table, [rowOf(table, 1)]);
  assert.equal(existsSync(`${file}-copying`), true);
  await target.close();
  assert.equal(existsSync(`${file}-copying`), false);
  writeFileSync(`${file}-copying`, "left by one that was killed");
  await fill(file, 1);
  assert.equal((await readAll(file))["lists"]?.length, 1);
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
  const [file, backup, other] = [newFile(), newFile(), newFile()];
  await assert.rejects(
    backUpFile(file, backup, () => undefined),
    refuses(`There is no database at ${file}.`),
  );
  await fill(file, 3);
  const progress: (readonly number[])[] = [];
  await backUpFile(file, backup, (done, total) => progress.push([done, total]));
  makeSingleFile(backup);
  assert.equal(checkFile(backup), 3);
  assert.deepEqual(readdirSync(join(backup, "..")), ["earmark.db"]);
  for (const [done = -1, total = 0] of progress) assert.ok(done >= 0 && done <= total);

  assert.equal(replaceFile(other, backup, NOW), undefined);
  assert.equal(checkFile(other), 3);
  assert.equal(statSync(other).mode & 0o777, 0o600);
  await fill(backup.replace("earmark", "empty"), 0);
  const kept = replaceFile(other, backup.replace("earmark", "empty"), NOW);
  assert.equal(kept, `${other}-before-2026-01-02T03-04-05-678Z`);
  assert.deepEqual([checkFile(other), checkFile(kept)], [0, 3]);
  assert.deepEqual(
    readdirSync(join(other, "..")).filter((name) => /wal|shm|restoring/.test(name)),
    [],
  );
});

test("what is not a whole backup is refused, with what to do", async () => {
  const file = newFile();
  writeFileSync(file, "x".repeat(200));
  assert.throws(() => checkFile(file), refuses(`${file} is not a database of Earmark.`));
  assert.throws(() => checkFile(join(file, "..")), refuses("is not a database of Earmark."));
  const good = newFile();
  await fill(good, 1);
  writeFileSync(`${good}-wal`, "");
  checkFile(good);
  writeFileSync(`${good}-wal`, "x");
  assert.throws(() => checkFile(good), refuses(`earmark backup FILE`));
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
