import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { countListed, lines, runInProcess, serveInProcess, withStore } from "../../test/support/commands.ts";
import { sharedPostgres } from "../../test/support/postgres.ts";
import { run, start } from "../../test/support/process.ts";
import { ATOMIC, add, callServer, newId, temporaryFolder } from "../../test/support/server.ts";
import { asUser } from "../accounts/caller.ts";
import { hashSecret } from "../accounts/hash-secret.ts";

const postgres = await sharedPostgres();

describe("backup and restore", () => {
  test("backup: while a server writes → complete, and restored when the server is stopped", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
    const server = await start(settings);
    let isStopped = false;
    let written = 0;
    const writing = (async () => {
      while (!isStopped) {
        const operations = Array.from({ length: 50 }, () => add(newId(), `https://a.example/${newId()}`));
        const { status } = await callServer(server.port, "POST", "/v1/operations", {
          headers: { "Content-Type": ATOMIC, Accept: ATOMIC },
          body: JSON.stringify({ "atomic:operations": operations }),
        });
        if (status === 200) written += 50;
      }
    })();
    const copy = join(folder, "copy.db");
    for (let tries = 0; tries < 100 && written < 500; tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 20));
    const before = written;
    const taken = await run(["backup", copy], settings);
    assert.deepEqual([taken.code, taken.stdout], [0, ""], taken.stderr);
    const rows = Number(/: (\d+) subscriptions/.exec(taken.stderr)?.[1]);
    assert.ok(rows >= before && rows % 50 === 0, `${rows} rows in the snapshot, ${before} confirmed before it`);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith("copy")),
      ["copy.db"],
    );
    assert.match((await runInProcess(["backup", copy], settings)).stderr, /already exists/);
    const refused = await runInProcess(["restore", copy, "--yes"], settings);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Another Earmark process is using/);
    isStopped = true;
    await writing;
    await server.stop();
    assert.ok(written > rows);
    assert.equal((await runInProcess(["restore", copy], settings)).code, 64, "no terminal to ask for confirmation");
    const restored = await runInProcess(["restore", copy, "--yes"], settings);
    assert.equal(restored.code, 0, restored.stderr);
    assert.equal(countListed(await runInProcess(["list"], settings)), rows);
    const [kept = ""] = readdirSync(folder).filter((name) => name.startsWith("earmark.db-before-"));
    const old = await runInProcess(["list"], { DATABASE_URL: `file:${join(folder, kept)}` });
    assert.equal(countListed(old), written, "the old database is kept");
  });

  test("backup: a PostgreSQL database → restored on any engine", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: await postgres.database() };
    await runInProcess(["add", "https://a.example/1", "https://a.example/2"], settings);
    const copy = join(folder, "copy.db");
    assert.equal((await runInProcess(["backup", copy], settings)).code, 0);
    assert.deepEqual(readdirSync(folder), ["copy.db"]);
    const listed = (await runInProcess(["list"], settings)).stdout;
    for (const DATABASE_URL of [`file:${join(folder, "other.db")}`, await postgres.database()]) {
      const restored = await runInProcess(["restore", copy, "--yes"], { DATABASE_URL });
      assert.equal(restored.code, 0, restored.stderr);
      assert.equal((await runInProcess(["list"], { DATABASE_URL })).stdout, listed);
    }
    assert.match((await runInProcess(["restore", copy, "--yes"], settings)).stderr, /not empty/);
  });

  test("restore: a backup whose only credential is the key of tickets → does not ask about access", async () => {
    const folder = temporaryFolder();
    const DATABASE_URL = `file:${join(folder, "earmark.db")}`;
    await runInProcess(["user", "add", "ann", "--password-stdin"], { DATABASE_URL }, undefined, "a good password");
    const server = await serveInProcess({ DATABASE_URL, EARMARK_ACCOUNTS: "true" });
    assert.equal((await callServer(server.port, "POST", "/index.php/login/v2")).status, 200);
    const copy = join(folder, "copy.db");
    assert.equal((await runInProcess(["backup", copy], { DATABASE_URL })).code, 0);
    await server.stop();
    const restored = await runInProcess(["restore", copy, "--yes"], {
      DATABASE_URL: `file:${join(folder, "other.db")}`,
    });
    assert.equal(restored.code, 0, restored.stderr);
    assert.doesNotMatch(restored.stderr, /0 tokens/);
  });

  for (const engine of ["SQLite", "PostgreSQL"])
    test(`backup on ${engine}: its time → recorded in the database, for alerts and metrics`, async () => {
      const folder = temporaryFolder();
      const DATABASE_URL =
        engine === "SQLite" ? `file:${join(folder, "earmark.db")}` : await postgres.migratedDatabase();
      const last = () => withStore(DATABASE_URL, (store) => store.alerts.lastBackup());
      assert.equal(await last(), undefined);
      const before = Date.now();
      const { code, stderr } = await runInProcess(["backup", join(folder, "copy.db")], { DATABASE_URL });
      assert.equal(code, 0, stderr);
      const at = (await last())?.getTime() ?? 0;
      assert.ok(at >= before && at <= Date.now());
    });

  for (const engine of ["SQLite", "PostgreSQL"])
    test(`restore on ${engine}: a backup with tokens and sessions → they are valid only with --keep-access`, async () => {
      const folder = temporaryFolder();
      const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
      const target = async (name: string) => ({
        DATABASE_URL: engine === "SQLite" ? `file:${join(folder, name)}` : await postgres.database(),
      });
      await runInProcess(["user", "add", "ann", "--password-stdin"], settings, undefined, "a good password");
      await runInProcess(["token", "create", "ann", "--label", "phone"], settings);
      await runInProcess(["user", "invite"], settings);
      assert.equal((await runInProcess(["link", "create", "list", "--user", "ann"], settings)).code, 0);
      const secret = "GEZDGNBVGY3TQOJQ";
      await withStore(settings.DATABASE_URL, async ({ accounts }) => {
        const { user = 0 } = (await accounts.find("ann", ""))?.account ?? {};
        const codes = { recoveryHashes: [hashSecret("recovery code")], keepSession: undefined };
        await accounts.secondFactors.add(asUser(user), { secret, step: 1, latest: 1, ...codes }, new Date());
      });
      const copy = join(folder, "copy.db");
      await runInProcess(["backup", copy], settings);
      const credentials = "1 token, 0 sessions, 1 invitation, 1 recovery code and 1 secret link";

      const withoutFlag = await target("without-flag.db");
      const refused = await runInProcess(["restore", copy, "--yes"], withoutFlag);
      assert.equal(refused.code, 64);
      assert.ok(refused.stderr.includes(`The backup has ${credentials}`), refused.stderr);
      assert.match(refused.stderr, /--keep-access or --end-access/);
      assert.match(
        (await runInProcess(["user", "list"], withoutFlag)).stderr,
        /No database at/,
        "nothing was restored",
      );
      const both = await runInProcess(["restore", copy, "--yes", "--keep-access", "--end-access"], withoutFlag);
      assert.equal(both.code, 64);

      for (const [flag, count] of [
        ["--keep-access", 1],
        ["--end-access", 0],
      ] as const) {
        const restored = await target(`${flag}.db`);
        const { code, stderr } = await runInProcess(["restore", copy, "--yes", flag], restored);
        assert.equal(code, 0, stderr);
        assert.ok(stderr.includes(credentials), stderr);
        assert.match((await runInProcess(["user", "list"], restored)).stdout, /ann/);
        assert.equal(lines(await runInProcess(["token", "list", "ann"], restored)).length, count);
        assert.equal(lines(await runInProcess(["link", "list", "--user", "ann"], restored)).length, count);
        await withStore(restored.DATABASE_URL, async ({ accounts }) => {
          const found = await accounts.find("ann", "");
          assert.equal(found?.totpSecret, secret, "the second factor is never lost");
          const codes = await accounts.listCredentials(found.account.user, "recovery-code");
          assert.equal(codes.length, count);
        });
      }
    });

  test("restore: a trigger in the backup → rejected, nothing changes", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
    await runInProcess(["add", "https://a.example/1"], settings);
    const copy = join(folder, "copy.db");
    await runInProcess(["backup", copy], settings);
    const database = new DatabaseSync(copy);
    database.exec("create trigger spy after insert on subscriptions begin delete from gaps; end");
    database.close();
    await runInProcess(["add", "https://a.example/2"], settings);
    const { code, stderr } = await runInProcess(["restore", copy, "--yes"], settings);
    assert.equal(code, 1);
    assert.match(stderr, /has a trigger spy that Earmark did not create/);
    assert.equal(countListed(await runInProcess(["list"], settings)), 2);
  });

  test("restore: not a backup, or a damaged one → rejected", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
    await runInProcess(["add", ...Array.from({ length: 200 }, (_, index) => `https://a.example/${index}`)], settings);
    const [copy, damaged, foreign] = ["copy.db", "damaged.db", "foreign.db"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    await runInProcess(["backup", copy], settings);
    const bytes = readFileSync(copy);
    bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 6_000);
    writeFileSync(damaged, bytes);
    writeFileSync(foreign, "no database");
    const live = join(folder, "live.db");
    writeFileSync(live, readFileSync(copy));
    writeFileSync(`${live}-wal`, "what is not in the file yet");
    for (const path of [damaged, foreign, live, folder, join(folder, "nowhere.db")]) {
      const { code, stderr } = await runInProcess(["restore", path, "--yes"], settings);
      assert.equal(code, 1, path);
      assert.match(stderr, /damaged|not an Earmark database|not a backup|no such file|malformed/i);
    }
    assert.equal(countListed(await runInProcess(["list"], settings)), 200);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes("before")),
      [],
    );
  });

  test("backup: it fails → no file", async () => {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "earmark.db")}` };
    await runInProcess(["add", "https://a.example/1"], settings);
    const { code } = await runInProcess(["backup", join(folder, "nowhere", "copy.db")], settings);
    assert.equal(code, 1);
    assert.ok(!existsSync(join(folder, "nowhere")));
  });
});
