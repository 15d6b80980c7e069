import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runInProcess } from "../../test/support/commands.ts";
import { run } from "../../test/support/process.ts";
import { temporaryFolder } from "../../test/support/server.ts";

const FEED = "https://feeds.example/1";

test("database: none, and a command that needs one → an error, and nothing is created", async () => {
  for (const args of [
    ["list"],
    ["export"],
    ["remove", FEED, "--yes"],
    ["import", "-", "--dry-run"],
    ["user", "list"],
    ["user", "invite"],
    ["token", "list", "ann"],
    ["backup", "copy.db"],
  ]) {
    const folder = temporaryFolder();
    const settings = { DATABASE_URL: `file:${join(folder, "data", "earmark.db")}` };
    const { code, stdout, stderr } = await runInProcess(args, settings, folder, "<opml><body/></opml>");
    assert.deepEqual([code, stdout], [1, ""], args.join(" "));
    assert.match(stderr, /^earmark: No database at .*earmark\.db\./, args.join(" "));
    assert.deepEqual(readdirSync(folder), [], args.join(" "));
  }
});

test("database: any command → names the database on stderr, but not with --quiet", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "earmark.db");
  const settings = { DATABASE_URL: `file:${path}` };
  assert.match((await runInProcess(["add", FEED], settings)).stderr, new RegExp(`^Database: ${path} \\(new\\)\n`));
  const { stdout, stderr } = await runInProcess(["list"], settings);
  assert.match(stdout, /feeds\.example/);
  assert.equal(stderr, `Database: ${path}\n`);
  assert.equal((await runInProcess(["list", "--quiet"], settings)).stderr, "");
});

test("database: --env-file → its settings, unless the environment has them", async () => {
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, "earmark.env"),
    `# Comment\nDATABASE_URL="file:${folder}/one.db"\nEARMARK_LOG_LEVEL=warn\n`,
  );
  const added = await run(["add", FEED, "--env-file", "earmark.env"], {}, folder);
  assert.match(added.stderr, /^Database: .*\/one\.db \(new\)\n/);
  const other = { DATABASE_URL: `file:${folder}/two.db` };
  const overridden = await runInProcess(["add", FEED, "--env-file", "earmark.env"], other, folder);
  assert.match(overridden.stderr, /^Database: .*\/two\.db \(new\)\n/);
  const config = await runInProcess(["config", "--env-file", "earmark.env"], {}, folder);
  assert.match(config.stdout, /^EARMARK_LOG_LEVEL\twarn\t/m);
  const missing = await run(["list", "--env-file", "nowhere.env"], {}, folder);
  // Some versions of Node read the option themselves, with the same meaning and another message.
  assert.notEqual(missing.code, 0);
  assert.equal(missing.stdout, "");
  assert.match(missing.stderr, /nowhere\.env/);
});

test("database: no DATABASE_URL, but a database in the current folder → used, with a warning", async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "data"));
  const path = join(folder, "data", "earmark.db");
  await runInProcess(["add", FEED], { DATABASE_URL: `file:${path}` });
  assert.ok(existsSync(path));
  const { code, stdout, stderr } = await runInProcess(["list"], {}, folder);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /feeds\.example/);
  assert.ok(stderr.startsWith(`Warning: Using file:${path}, which is in the current folder.`), stderr);
});

test("database: a setting that no longer has an effect → works, with a warning on stderr", async () => {
  const { code, stdout, stderr } = await runInProcess(["config"], { EARMARK_SLOW_REQUEST_MS: "1" });
  assert.equal(code, 0);
  assert.equal(stderr, "Warning: EARMARK_SLOW_REQUEST_MS no longer has an effect; remove it.\n");
  assert.doesNotMatch(stdout, /SLOW_REQUEST/);
});
