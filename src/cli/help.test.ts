import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { runInProcess } from "../../test/support/commands.ts";
import { run } from "../../test/support/process.ts";
import { temporaryFolder } from "../../test/support/server.ts";

test("config: settings → shown with their source, without secrets", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "password"), "from a file\n");
  const settings = {
    PORT: "9000",
    DATABASE_URL: "postgres://me:s3cret@db.example/earmark",
    EARMARK_ACCOUNTS: "true",
    EARMARK_ADMIN_USER: "ann",
    EARMARK_ADMIN_PASSWORD_FILE: join(folder, "password"),
  };
  const shown = await runInProcess(["config"], settings);
  assert.match(shown.stdout, /^PORT\t9000\tenvironment$/m);
  assert.match(shown.stdout, /^HOST\t127\.0\.0\.1\tdefault$/m);
  assert.match(shown.stdout, /^DATABASE_URL\tpostgres:\/\/db\.example\/earmark\tenvironment$/m);
  assert.match(shown.stdout, /^EARMARK_ADMIN_PASSWORD\t\(secret\)\tfile /m);
  assert.doesNotMatch(shown.stdout, /s3cret|from a file/);
  assert.equal((await runInProcess(["config"], { PORT: "x" })).code, 78);
});

test("usage: a typo → a suggestion", async () => {
  for (const [typed, meant] of [
    [["lst"], /Did you mean "list"\?/],
    [["improt", "x"], /Did you mean "import"\?/],
    [["usr", "add", "x"], /Did you mean "user add"\?/],
    [["user"], /"user" needs a subcommand: add, list/],
    [["add"], /usage: earmark add URL\.\.\./],
    [["list", "--dry-run"], /unknown option for "list": --dry-run/],
    [["list", "--nonsense"], /unknown option --nonsense\nSee/],
    [["list", "--jsn"], /unknown option --jsn\. Did you mean --json\?/],
    [["refresh", "--failing", "x"], /--failing cannot be combined with a URL or id/],
  ] as const) {
    const { code, stdout, stderr } = await runInProcess(typed);
    assert.deepEqual([code, stdout], [64, ""], typed.join(" "));
    assert.match(stderr, meant);
  }
});

test("help: all commands, a group and each command → usage, examples, options", async () => {
  const all = await run(["--help"]);
  assert.equal(all.code, 0);
  assert.ok(all.stdout.indexOf("Examples") < all.stdout.indexOf("Commands"));
  for (const name of ["serve", "import [FILE|-]", "token revoke NAME ID", "completion bash|zsh|fish"])
    assert.ok(all.stdout.includes(`  ${name} `), name);
  const one = await runInProcess(["token", "create", "--help"]);
  assert.match(
    one.stdout,
    /^Usage: earmark token create NAME \[OPTION\.\.\.\]\n\n.*\n\nExamples:\n {2}earmark token create ann --label AntennaPod/,
  );
  assert.match(one.stdout, /--read-only/);
  assert.match(one.stdout, /--days N .*token expires \(default: never\)/);
  // Two options mean something else in some commands.
  assert.match(
    (await runInProcess(["user", "invite", "--help"])).stdout,
    /--days N .*invitation expires \(default: 7\)/,
  );
  assert.match((await runInProcess(["doctor", "--help"])).stdout, /--server URL .*Also check the server/);
  const group = await runInProcess(["token", "--help"]);
  assert.match(group.stdout, /^Usage: earmark token COMMAND \[OPTION\.\.\.\]\n/);
  assert.deepEqual(group.stdout.match(/^ {2}\w+ \w+/gm), ["  token create", "  token list", "  token revoke"]);
});

test("completion: bash, zsh, fish → a script", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await runInProcess(["completion", shell]);
    assert.equal(code, 0);
    for (const word of ["serve", "import", "user", "revoke", "dry-run"])
      assert.ok(stdout.includes(word), `${shell}: ${word}`);
  }
  assert.equal((await runInProcess(["completion", "tcsh"])).code, 1);
  const { stdout: script } = await runInProcess(["completion", "bash"]);
  const complete = (...words: string[]) => {
    const test = `${script}\nCOMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")}); COMP_CWORD=${words.length - 1}; _earmark; echo "\${COMPREPLY[@]}"`;
    const { stdout, error } = spawnSync("bash", ["-c", test], { encoding: "utf8" });
    assert.equal(error, undefined, "bash comes with git on every system that git runs on");
    return stdout.trim().split(" ");
  };
  assert.deepEqual(complete("earmark", "im"), ["import"]);
  assert.deepEqual(complete("earmark", "token", ""), ["create", "list", "revoke"]);
  assert.deepEqual(complete("earmark", "token", "create", "--l"), ["--label"]);
  assert.deepEqual(complete("earmark", "import", "--d"), ["--dry-run"]);
});

test("help: as a command → the help of all commands, a group or one command", async () => {
  for (const [args, same] of [
    [["help"], ["--help"]],
    [
      ["help", "user"],
      ["user", "--help"],
    ],
    [
      ["help", "import"],
      ["import", "--help"],
    ],
    [
      ["help", "token", "create"],
      ["token", "create", "--help"],
    ],
  ] as const) {
    const [one, other] = [await runInProcess(args), await runInProcess(same)];
    assert.deepEqual([one.code, one.stdout], [0, other.stdout]);
  }
});
