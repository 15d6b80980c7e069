import assert from "node:assert/strict";
import { test } from "node:test";
import {
  atTerminal,
  CTRL_C,
  CTRL_D,
  earmark,
  namesOf,
  newFile,
  OTHER_PASSWORD,
  PASSWORD,
  prepare,
  succeed,
  within,
} from "../../test/support/account-commands.ts";
import { isAccountRefusal } from "../accounts/refusals.ts";

/** The passwords among them that sign in. */
const passwordsOf = (database: string, name: string, candidates: readonly string[]) =>
  within(database, async (accounts) => {
    const right: string[] = [];
    for (const password of candidates) {
      const opened = await accounts.signIn(
        { name, password, networks: ["test"], label: "test", address: "" },
        new Date(),
      );
      if (!isAccountRefusal(opened)) right.push(password);
    }
    return right;
  });

test("passwords: on standard input → used exactly as given, except for one trailing line break", async () => {
  const database = await newFile();
  const passwords: readonly (readonly [input: string, password: string])[] = [
    ["no line break", "no line break"],
    ["  spaces around \n", "  spaces around "],
    ["from Windows\r\n", "from Windows"],
    ["two of them\n\n", "two of them\n"],
    ["several\nlines", "several\nlines"],
    ["e\u0301 🎧 \u0000 \u0007\n", "e\u0301 🎧 \u0000 \u0007"],
    [`${"🎧x".repeat(128)}\n`, "🎧x".repeat(128)],
  ];
  await prepare(database, "ann");
  for (const [index, [input]] of passwords.entries()) {
    await succeed(database, ["user", "add", `u${index}`, "--password-stdin"], input);
  }
  for (const [index, [, password]] of passwords.entries()) {
    const candidates = new Set([password, password.trim(), `${password}\n`, password.normalize("NFC")]);
    assert.deepEqual(await passwordsOf(database, `u${index}`, [...candidates]), [password]);
  }
});

test("passwords: too short, too long, common or equal to the name → rejected and not printed", async () => {
  const database = await newFile();
  await prepare(database, "ann");
  const refused: readonly (readonly [password: string, message: RegExp])[] = [
    ["", /must have at least 8 characters/],
    ["7 chars\n", /must have at least 8 characters/],
    ["z9".repeat(129), /must have at most 256 characters/],
    ["z9".repeat(50_000), /on standard input is too long/],
    ["iloveyou\n", /is one of the most common/],
    ["TRUSTNO1", /is one of the most common/],
    ["Zed@example.org", /must not be the same as the name/],
  ];
  for (const [input, message] of refused) {
    const ended = await earmark(database, ["user", "add", "zed@example.org", "--password-stdin"], { input });
    assert.deepEqual([ended.code, ended.stdout], [1, ""]);
    assert.match(ended.stderr, message);
    if (input !== "") assert.ok(!ended.stderr.includes(input.trim()));
  }
  assert.deepEqual(await namesOf(database), ["ann"]);
  const changed = await earmark(database, ["user", "passwd", "ann", "--password-stdin"], { input: "iloveyou" });
  assert.equal(changed.code, 1);
  assert.deepEqual(await passwordsOf(database, "ann", ["iloveyou", PASSWORD]), [PASSWORD]);
});

test("passwords: on the command line → rejected and not printed", async () => {
  const database = await newFile();
  const attempts = [
    ["user", "add", "ann", "--password", PASSWORD],
    ["user", "add", "ann", `--password=${PASSWORD}`],
    ["user", "add", "ann", `--password-stdin=${PASSWORD}`],
    ["user", "add", "ann", "-p", PASSWORD],
    ["user", "add", "ann", `-p${PASSWORD}`],
    ["user", "add", "ann", PASSWORD],
    ["user", "add", "ann", "--password-stdin", PASSWORD],
    ["user", "passwd", "ann", PASSWORD],
    ["user", "pass", "ann", PASSWORD],
    ["passwd", PASSWORD],
  ];
  for (const args of attempts) {
    const { code, stdout, stderr } = await earmark(database, args, { input: PASSWORD });
    assert.deepEqual([code, stdout], [64, ""], `${args.join(" ")}: ${stderr}`);
    assert.match(stderr, /^earmark: .*\nSee: .*--help\n$/);
    assert.ok(!stderr.includes(PASSWORD), stderr);
  }
  assert.deepEqual(await namesOf(database), []);
});

test("passwords: at a terminal → asked for twice, without echo", async () => {
  const database = await newFile();
  const added = await atTerminal(
    database,
    ["user", "add", "ann"],
    [
      ["Password: <silent>", `${PASSWORD}x\u007f\r`],
      ["Repeat password: <silent>", `${PASSWORD}\r`],
    ],
  );
  assert.deepEqual([added.code, added.stdout], [0, ""]);
  assert.match(
    added.stderr,
    /^Password: <silent><echo>\nRepeat password: <silent><echo>\nDatabase: .*\nCreated account "ann"/,
  );
  const changed = await atTerminal(
    database,
    ["user", "passwd", "ann"],
    [
      ["Password: <silent>", `${OTHER_PASSWORD}\r`],
      ["Repeat password: <silent>", `${OTHER_PASSWORD}\r`],
    ],
  );
  assert.equal(changed.code, 0);
  assert.match(
    changed.stderr,
    /^Database: .*\nPassword: <silent><echo>\nRepeat password: <silent><echo>\nChanged the password of "ann"/,
  );
  const unknown = await atTerminal(database, ["user", "passwd", "bob"], []);
  assert.equal(unknown.code, 1);
  assert.doesNotMatch(unknown.stderr, /Password: /, "no password prompt for an unknown account");
  assert.deepEqual(await passwordsOf(database, "ann", [PASSWORD, OTHER_PASSWORD]), [OTHER_PASSWORD]);
});

test("passwords: no match, Ctrl-C or end of input → nothing changes", async () => {
  const database = await newFile();
  const typed: readonly (readonly (string | undefined)[])[] = [
    [`${PASSWORD}\r`, `${PASSWORD} \r`],
    [`corr${CTRL_C}`],
    [`${PASSWORD}\r`, `corr${CTRL_C}`],
    [CTRL_D],
    [`${PASSWORD}\r`, CTRL_D],
    [undefined],
    [`${PASSWORD}\r`, undefined],
  ];
  for (const [first, ...second] of typed) {
    const { code, stdout, stderr } = await atTerminal(
      database,
      ["user", "add", "ann"],
      [["Password: <silent>", first], ...second.map((text) => ["Repeat password: <silent>", text] as const)],
    );
    assert.deepEqual([code, stdout], [1, ""], JSON.stringify([first, ...second]));
    assert.match(stderr, /<echo>\nearmark: .*Nothing was changed\.\n$/);
    assert.doesNotMatch(stderr, /corr/);
  }
  assert.deepEqual(await namesOf(database), []);
});
