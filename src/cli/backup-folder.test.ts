import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { countListed, runInProcess } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { run } from "../../test/support/process.ts";
import { temporaryFolder } from "../../test/support/server.ts";

const postgres = await sharedPostgres();

/** A name as `backup --keep` gives it, for a day in the past unless told otherwise. */
const backupOf = (day: string, year = 2020) => `earmark-${year}-01-${day}T00-00-00.000Z.db`;

async function prepare() {
  const folder = temporaryFolder();
  const backups = join(folder, "backups");
  mkdirSync(backups);
  const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
  await runInProcess(["add", "https://a.example/1"], settings);
  const first = join(folder, "first.db");
  assert.equal((await runInProcess(["backup", first], settings)).code, 0);
  return {
    folder,
    backups,
    settings,
    addFiles: (...names: string[]) => names.map((name) => copyFileSync(first, join(backups, name))),
    keep: (count: string, target = backups, command: typeof run = runInProcess) =>
      command(["backup", "--keep", count, target], settings),
    /** The new backup is called "new". */
    names: () =>
      readdirSync(backups)
        .map((name) => (/^earmark-20(2[6-9]|[3-8])/.test(name) ? "new" : name))
        .sort(),
  };
}

describe("backup --keep", () => {
  test("backup --keep: an empty folder → a dated backup that can be restored", async () => {
    const { backups, keep, folder } = await prepare();
    const { code, stderr, stdout } = await keep("14");
    assert.deepEqual([code, stdout], [0, ""], stderr);
    const [name = "", ...others] = readdirSync(backups);
    assert.deepEqual(others, []);
    assert.match(name, /^earmark-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/);
    assert.doesNotMatch(stderr, /Deleted/);
    const restored = { DATABASE_URL: `file:${join(folder, "restored.db")}` };
    assert.equal((await runInProcess(["restore", join(backups, name), "--yes"], restored)).code, 0);
    assert.equal(countListed(await runInProcess(["list"], restored)), 1);
  });

  test("backup --keep: more than N → only the oldest are deleted", async () => {
    const { keep, addFiles, names } = await prepare();
    addFiles(backupOf("01"), backupOf("02"), backupOf("03"), backupOf("04"));
    const { code, stderr } = await keep("3");
    assert.equal(code, 0, stderr);
    assert.deepEqual(names(), [backupOf("03"), backupOf("04"), "new"]);
    assert.ok(stderr.includes(`Deleted 2 old backups: ${backupOf("02")}, ${backupOf("01")}.`), stderr);
  });

  test("backup --keep 1: files that it did not make → all kept", async () => {
    const { backups, folder, keep, addFiles, names } = await prepare();
    const others = [
      "my.db",
      "earmark.db",
      "earmark-2020-01-01.db",
      `${backupOf("01")}.bak`,
      "earmark-2020-13-01T00-00-00.000Z.db",
    ];
    addFiles(...others);
    writeFileSync(join(backups, backupOf("02")), "no database");
    mkdirSync(join(backups, backupOf("03")));
    symlinkSync(join(folder, "first.db"), join(backups, backupOf("04")));
    // Somebody has used this backup as a database.
    addFiles(backupOf("05"));
    writeFileSync(join(backups, `${backupOf("05")}-lock`), "");
    const before = names();
    const { code, stderr } = await keep("1");
    assert.equal(code, 0, stderr);
    assert.deepEqual(names(), [...before, "new"].sort());
  });

  test("backup --keep: the clock went back → neither the new backup nor the newest one is deleted", async () => {
    const { keep, addFiles, names } = await prepare();
    const later = [backupOf("01", 2090), backupOf("02", 2090)];
    addFiles(backupOf("01"), ...later);
    assert.equal((await keep("1")).code, 0);
    assert.deepEqual(names(), [later[1], "new"]);
  });

  test("backup --keep 1: several at the same time → at least one good backup is left", async () => {
    const { backups, keep, names, addFiles } = await prepare();
    addFiles(backupOf("01"));
    const ended = await Promise.all(Array.from({ length: 3 }, () => keep("1", backups, run)));
    // Of two in the same millisecond, one is refused.
    assert.ok(
      ended.some(({ code }) => code === 0),
      ended.map(({ stderr }) => stderr).join(""),
    );
    assert.ok(names().length >= 1);
    assert.ok(names().every((name) => name === "new"));
  });

  test("backup --keep: the backup fails → nothing is deleted", async () => {
    const { folder, backups, addFiles, names } = await prepare();
    addFiles(backupOf("01"), backupOf("02"));
    const { code } = await runInProcess(["backup", "--keep", "1", backups], {
      DATABASE_URL: `file:${join(folder, "none.db")}`,
    });
    assert.equal(code, 1);
    assert.deepEqual(names(), [backupOf("01"), backupOf("02")]);
  });

  test("backup --keep: remains of interrupted runs → deleted after a day", async () => {
    const { backups, keep, names } = await prepare();
    const [old, recent] = [`${backupOf("01")}-unfinished`, `${backupOf("02")}-unfinished`];
    for (const name of [old, `${old}-journal`, recent]) writeFileSync(join(backups, name), "");
    const lastWeek = new Date(Date.now() - 7 * 24 * 60 * 60 * 1_000);
    for (const name of [old, `${old}-journal`]) utimesSync(join(backups, name), lastWeek, lastWeek);
    assert.equal((await keep("1")).code, 0);
    assert.deepEqual(names(), [recent, "new"]);
  });

  test("backup --keep: a PostgreSQL database → rotated like a SQLite one", async () => {
    const { backups, addFiles, names } = await prepare();
    addFiles(backupOf("01"), backupOf("02"));
    const settings = { DATABASE_URL: await postgres.database() };
    await runInProcess(["add", "https://a.example/1", "https://a.example/2"], settings);
    const { code, stderr } = await runInProcess(["backup", "--keep", "2", backups], settings);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /2 subscriptions, verified/);
    assert.deepEqual(names(), [backupOf("02"), "new"]);
  });

  test("backup --keep: an invalid number or folder → rejected, nothing written", async () => {
    const { folder, backups, keep } = await prepare();
    for (const number of ["0", "-1", "1.5", "10001", "99999999999999999999", "all", ""])
      assert.deepEqual([(await runInProcess(["backup", `--keep=${number}`, backups])).code, number], [64, number]);
    assert.match((await keep("0")).stderr, /--keep must be a whole number from 1 to 10000/);
    for (const [target, message] of [
      [join(folder, "nowhere"), /No such folder: .*nowhere\./],
      [join(folder, "earmark.db"), /Not a folder: .*earmark\.db\./],
    ] as const) {
      const { code, stderr } = await keep("2", target);
      assert.equal(code, 1);
      assert.match(stderr, message);
    }
    assert.deepEqual(readdirSync(backups), []);
  });

  test("backup: a folder without --keep → rejected with advice", async () => {
    const { backups, settings } = await prepare();
    const { code, stderr } = await runInProcess(["backup", backups], settings);
    assert.equal(code, 1);
    assert.match(stderr, /is a folder\. Add a file name, or --keep N/);
  });
});
