import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  addUser,
  atTerminal,
  bearer,
  CONCURRENT,
  CTRL_C,
  CTRL_D,
  cookieOf,
  createToken,
  ENGINES,
  earmark,
  earmarkProcess,
  feedsOf,
  list,
  me,
  namesOf,
  newFile,
  OTHER_PASSWORD,
  PASSWORD,
  prepare,
  serve,
  serveProcess,
  signIn,
  signUp,
  statusOfToken,
  stop,
  subscribe,
  succeed,
  TOKEN,
  WITH_ACCOUNTS,
} from "../../test/support/account-commands.ts";
import { newId } from "../../test/support/server.ts";

type Case = readonly [args: readonly string[], code: number, words: RegExp];

/** Expects no data, this exit code, and a message that gives the reason. */
async function assertAllRefused(database: string, cases: readonly Case[]): Promise<void> {
  for (const [args, code, words] of cases) {
    const ended = await earmark(database, args, { input: PASSWORD });
    assert.deepEqual([ended.code, ended.stdout], [code, ""], `${args.join(" ")}: ${ended.stderr}`);
    assert.match(ended.stderr, words);
  }
}

for (const [engine, newDatabase] of ENGINES) {
  describe(`account commands on ${engine}`, CONCURRENT, () => {
    test("account commands: each command → has its effect", async () => {
      const database = await newDatabase();
      // On SQLite, some commands run in their own process, to check its exit codes and standard streams.
      const run = engine === "SQLite" ? earmarkProcess : earmark;
      const added = await run(database, ["user", "add", "Ann", "--password-stdin"], { input: PASSWORD });
      assert.deepEqual([added.code, added.stdout], [0, ""]);
      assert.match(added.stderr, /^Database: .* \(new\)\nCreated account "ann"\. .* EARMARK_ACCOUNTS=true .*\n$/);
      const bob = await earmark(database, ["user", "add", "bob", "--password-stdin"], {
        input: PASSWORD,
        settings: WITH_ACCOUNTS,
      });
      assert.deepEqual([bob.code, bob.stdout], [0, ""]);
      assert.match(bob.stderr, /^Database: \S+\nCreated account "bob"\./);
      const [ann, ...others] = await list(database, "user", "list");
      assert.deepEqual(
        { ...ann, created_at: "" },
        {
          name: "ann",
          issuer: null,
          created_at: "",
          subscriptions: 0,
          role: "administrator",
          last_seen_on: null,
          stored_rows: 0,
          state: "enabled",
        },
      );
      assert.equal(others.length, 1);
      const { stdout: table } = await earmark(database, ["user", "list"]);
      assert.match(table, /^(?:(?:ann|bob)\t\d{4}-\d\d-\d\dT[\d:.]+Z\t0\b.*\n){2}$/);

      const created = await run(database, ["token", "create", "ANN", "--label", "phone – ☎"]);
      assert.equal(created.code, 0);
      assert.match(created.stdout, TOKEN);
      assert.match(created.stderr, /^Database: \S+\nCopy the token now; it is not shown again:\n$/);
      await createToken(database, "ann", "--read-only", "--days", "30");
      const [phone, reader] = await list(database, "token", "list", "ann");
      assert.deepEqual(
        { ...phone, id: "" },
        { id: "", label: "phone – ☎", scope: "write", state: "valid", last_used_at: null, expires_at: null },
      );
      assert.equal(reader?.["scope"], "read");
      const days = (Date.parse(String(reader?.["expires_at"])) - Date.now()) / 86_400_000;
      assert.ok(days > 29.9 && days <= 30, `${days}`);
      const { stdout: tokens } = await earmark(database, ["token", "list", "ann"]);
      const cells = tokens.split("\n")[0]?.split("\t") ?? [];
      assert.deepEqual([...cells.slice(0, 3), cells.at(-1)], [phone?.["id"], "write", "valid", "phone – ☎"]);
      assert.deepEqual(await list(database, "token", "list", "bob"), []);

      const exported = await earmark(database, ["user", "export", "ann"]);
      assert.equal(exported.code, 0);
      const types = JSON.parse(exported.stdout).data.map(({ type }: { type: string }) => type);
      assert.deepEqual(types, ["account", "token", "token"]);
      assert.doesNotMatch(exported.stdout, /argon2|emk_|password/);

      const revoked = await earmark(database, ["token", "revoke", "ann", String(phone?.["id"]).toUpperCase()]);
      assert.deepEqual([revoked.code, revoked.stdout], [0, ""]);
      assert.match(revoked.stderr, /\nToken revoked\.\n$/);
      assert.deepEqual(await list(database, "token", "list", "ann"), [reader]);

      const input = `${OTHER_PASSWORD}\n`;
      const changed = await earmark(database, ["user", "passwd", "ann", "--password-stdin"], { input });
      assert.deepEqual([changed.code, changed.stdout], [0, ""]);
      assert.match(changed.stderr, /^Database: \S+\nChanged the password of "ann" and ended all sessions\./);

      const settings = { EARMARK_BASE_PATH: "/pods/" };
      const invited = await earmark(database, ["user", "invite", "--days", "2"], { settings });
      assert.equal(invited.code, 0);
      assert.match(invited.stdout, /^\/pods\/join#emi_[\w-]{43}\n$/);
      assert.match(invited.stderr, /within 2 days/);

      for (const [name, ...yes] of [
        ["bob", "--yes"],
        ["ann", "-y"],
      ] as const) {
        const deleted = await earmark(database, ["user", "delete", name, ...yes]);
        assert.deepEqual([deleted.code, deleted.stdout], [0, ""]);
        assert.match(deleted.stderr, new RegExp(`^Database: \\S+\nDeleted account "${name}" and all its data\\.\n$`));
      }
      assert.deepEqual(await namesOf(database), []);
    });

    test("account commands: an unknown account or token, or a taken name → rejected, nothing changes", async () => {
      const database = await newDatabase();
      await prepare(database, "ann");
      const [token] = await list(database, "token", "list", "ann");
      await prepare(database, "bob");
      const id = newId();
      await assertAllRefused(database, [
        [["user", "add", "ANN", "--password-stdin"], 1, /\nearmark: An account with this name already exists\.\n$/],
        [["user", "passwd", "eve", "--password-stdin"], 1, /\nearmark: No account "eve" in .*user list\n$/],
        [["user", "delete", "eve", "--yes"], 1, /No account "eve"/],
        [["token", "revoke", "ann", id], 1, /"ann" has no token with id/],
        [["token", "revoke", "ann", "x' or 1=1"], 1, /"ann" has no token with id/],
        [["token", "revoke", "bob", String(token?.["id"])], 1, /"bob" has no token with id/],
      ]);
      assert.deepEqual(await namesOf(database), ["ann", "bob"]);
      assert.deepEqual(await list(database, "token", "list", "ann"), [token]);
    });

    test("account commands: a server is running → its next request sees the change", async () => {
      const database = await newDatabase();
      const server = await (engine === "SQLite" ? serveProcess : serve)(database);
      await addUser(database, "ann");
      await prepare(database, "bob");
      const session = await signIn(server, "ann", PASSWORD);
      assert.equal(session.status, 201);

      const [phone, tablet] = [await createToken(database, "ann"), await createToken(database, "ann", "--read-only")];
      assert.deepEqual([await statusOfToken(server, phone), await statusOfToken(server, tablet)], [200, 200]);
      assert.equal((await subscribe(server, 3, bearer(phone))).status, 200);
      assert.equal((await subscribe(server, 1, bearer(tablet))).status, 403);
      assert.deepEqual(
        (await list(database, "user", "list")).map(({ name, subscriptions }) => [name, subscriptions]).sort(),
        [
          ["ann", 3],
          ["bob", 0],
        ],
      );
      const { data } = JSON.parse(await succeed(database, ["user", "export", "ann"]));
      assert.deepEqual(
        data.map(({ type }: { type: string }) => type),
        ["account", "token", "token", "session", ...Array(3).fill("subscription"), "change-set"],
      );

      const [first] = await list(database, "token", "list", "ann");
      assert.notEqual(first?.["last_used_at"], null);
      await succeed(database, ["token", "revoke", "ann", String(first?.["id"])]);
      assert.deepEqual([await statusOfToken(server, phone), await statusOfToken(server, tablet)], [401, 200]);

      assert.equal((await me(server, cookieOf(session))).status, 200);
      await succeed(database, ["user", "passwd", "ann", "--password-stdin"], OTHER_PASSWORD);
      assert.equal((await me(server, cookieOf(session))).status, 401, "every session has ended");
      assert.equal(await statusOfToken(server, tablet), 200, "a token stays valid");
      assert.equal((await signIn(server, "ann", PASSWORD)).status, 401);
      assert.equal((await signIn(server, "ann", OTHER_PASSWORD)).status, 201);

      const [, invitation = ""] = (await succeed(database, ["user", "invite"])).trim().split("#");
      assert.equal((await signUp(server, invitation, "cyd")).status, 201);
      assert.equal((await signUp(server, invitation, "dan")).status, 403, "an invitation works once");

      await succeed(database, ["user", "admin", "bob"]);
      await succeed(database, ["user", "delete", "ann", "--yes"]);
      assert.equal(await statusOfToken(server, tablet), 401);
      assert.equal((await signIn(server, "ann", OTHER_PASSWORD)).status, 401);
      assert.deepEqual(await namesOf(database), ["bob", "cyd"]);
      assert.deepEqual(
        await feedsOf(server, bearer(await prepare(database, "ann"))),
        [],
        "another ann starts with an empty list",
      );
      await stop(server);
    });

    test("account commands: several at once on a busy server → all succeed", async () => {
      const database = await newDatabase();
      const token = await prepare(database, "ann");
      const settings = { EARMARK_OPERATIONS_PER_MINUTE: "100000000", EARMARK_MAX_SUBSCRIPTIONS_PER_USER: "1000000" };
      // Processes contend for the lock of a file, connections for the rows of a database server.
      const [serveBusy, run] = engine === "SQLite" ? [serveProcess, earmarkProcess] : [serve, earmark];
      const server = await serveBusy(database, settings);
      let isOver = false;
      let written = 0;
      const load = Array.from({ length: 2 }, async () => {
        while (!isOver) {
          assert.equal((await subscribe(server, 500, bearer(token))).status, 200);
          written += 500;
        }
      });
      const create = () => run(database, ["token", "create", "ann", "--label", "an app"]);
      const created = await Promise.all(Array.from({ length: 3 }, create)).finally(async () => {
        isOver = true;
        await Promise.all(load);
      });
      for (const { stdout, stderr } of created) {
        assert.match(stdout, TOKEN, stderr);
        assert.equal(await statusOfToken(server, stdout.trim()), 200);
      }
      assert.equal((await list(database, "token", "list", "ann")).length, 4);
      assert.equal((await me(server, bearer(token))).json.meta.counts.subscriptions, written);
      await stop(server);
    });
  });
}

test("account commands: invalid usage → an error that names it", async () => {
  const database = await newFile();
  await prepare(database, "ann");
  await assertAllRefused(database, [
    [["user", "export", "eve"], 1, /No account "eve"/],
    [["token", "create", "eve", "--label", "x"], 1, /No account "eve"/],
    [["token", "list", "eve"], 1, /No account "eve"/],
    [["token", "revoke", "eve", newId()], 1, /No account "eve"/],
    [["user", "add", "ann smith", "--password-stdin"], 1, /earmark: A name must have 1 to 64 characters/],
    [["token", "create", "ann"], 1, /--label is required/],
    [["token", "create", "ann", "--label", ""], 1, /--label must have 1 to 100 characters/],
    [["token", "create", "ann", "--label", "a\tb"], 1, /--label must not contain control characters/],
    [["token", "create", "ann", "--label", "x", "--days", "0"], 1, /--days must be a whole number from 1 to 3650/],
    [["user", "invite", "--days", "3651"], 1, /--days must be a whole number from 1 to 3650/],
    [["user"], 64, /"user"/],
    [["user", "add"], 64, /usage: earmark user add NAME/],
    [["user", "list", "ann"], 64, /usage: earmark user list/],
    [["token", "revoke", "ann"], 64, /usage: earmark token revoke NAME ID/],
    [["token", "list", "ann", "--password-stdin"], 64, /unknown option for "token list": --password-stdin/],
    [["user", "add", "ann"], 64, /cannot ask for a password without a terminal; pipe it in with --password-stdin/],
  ]);
});

test("account commands: several at once on a new database → all succeed", async () => {
  for (const [engine, newDatabase] of ENGINES) {
    const database = await newDatabase();
    const run = engine === "SQLite" ? earmarkProcess : earmark;
    const commands = Array.from({ length: 3 }, (_, number) =>
      run(database, ["user", "add", `user-${number}`, "--password-stdin"], { input: PASSWORD }),
    );
    for (const { code, stderr } of await Promise.all(commands)) assert.equal(code, 0, stderr);
    assert.equal((await namesOf(database)).length, 3);
  }
});

test("account commands: invalid settings → exit code 78", async () => {
  const settings = { EARMARK_ACCOUNTS: "yes", EARMARK_ADMIN_PASSWORD: PASSWORD, EARMARK_METRICS_TOKEN: "canary" };
  const { code, stdout, stderr } = await earmark(await newFile(), ["user", "list"], { settings });
  assert.deepEqual([code, stdout], [78, ""]);
  assert.match(stderr, /EARMARK_ACCOUNTS=yes: must be true or false/);
  assert.match(stderr, /EARMARK_ADMIN_USER, EARMARK_ADMIN_PASSWORD: must be set together/);
  assert.doesNotMatch(stderr, /correct horse|canary/);
});

test("user delete: without confirmation → nothing changes", async () => {
  const database = await newFile();
  await prepare(database, "ann");
  const withoutTerminal = await earmark(database, ["user", "delete", "ann"], { input: "y\n" });
  assert.deepEqual([withoutTerminal.code, withoutTerminal.stdout], [64, ""]);
  assert.match(withoutTerminal.stderr, /\nearmark: Delete "ann" with 0 subscriptions.* Confirm with --yes\n/);
  for (const text of ["n\r", "yesterday\r", CTRL_C, CTRL_D, undefined]) {
    const { code, stdout, stderr } = await atTerminal(database, ["user", "delete", "ann"], [["[y/N] ", text]]);
    assert.deepEqual([code, stdout], [1, ""], JSON.stringify(text));
    assert.match(stderr, /earmark: Canceled\. Nothing was changed\.\n$/);
  }
  assert.deepEqual(await namesOf(database), ["ann"]);
  const { code, stderr } = await atTerminal(database, ["user", "delete", "ann"], [["[y/N] ", "Yes\r"]]);
  assert.equal(code, 0);
  assert.match(stderr, /Deleted account "ann" and all its data\.\n$/);
  assert.deepEqual(await namesOf(database), []);
});
