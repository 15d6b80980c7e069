import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  addUser,
  atTerminal,
  ENGINES,
  earmark,
  newFile,
  serve,
  succeed,
  within,
} from "../../test/support/account-commands.ts";
import { IMPORTING } from "../../test/support/account-imports.ts";
import { startInProcess, withStore } from "../../test/support/commands.ts";
import { OLD_FEEDS, startOldServer } from "../../test/support/old-server.ts";
import { temporaryFolder } from "../../test/support/server.ts";
import { asUser } from "../accounts/caller.ts";
import { AppSync } from "../apps/sync.ts";
import { toAddition } from "../lists/imports.ts";
import type { Addition } from "../lists/subscription.ts";

const FEED = "https://feeds.example/a";
const write = (text: string) => {
  const path = join(temporaryFolder(), "export.json");
  writeFileSync(path, text);
  return path;
};
const portable = (text: string) =>
  JSON.parse(text).data.filter(({ type }: { type: string }) => type === "subscription" || type === "episode-action");

for (const [engine, newDatabase] of ENGINES) {
  test(`user import on ${engine}: the export of another account → added once; --dry-run → only counted`, async () => {
    const database = await newDatabase();
    for (const name of ["ann", "bob"]) await addUser(database, name);
    await within(database, async (accounts, store) => {
      const caller = asUser((await accounts.findByName("ann", undefined))?.user ?? assert.fail());
      await store.change(caller, [toAddition(FEED, { title: "Mine" }) as Addition], new Date("2020-01-01"));
      const action = { podcast: FEED, episode: "https://media.example/1", kind: "play", position: 9 } as const;
      const rest = { guid: undefined, device: undefined, actedAt: new Date("2020-01-02"), started: 0, total: 99 };
      await new AppSync(store).addActions(
        caller,
        { key: "x", device: undefined },
        [{ ...action, ...rest }],
        new Date(),
      );
    });
    const exported = await succeed(database, ["user", "export", "ann"]);
    const path = write(exported);
    const preview = await earmark(database, ["user", "import", "bob", path, "--dry-run"]);
    assert.match(preview.stderr, /Subscriptions: 1 of 1 would be added, 0 already subscribed, 0 refused\./);
    assert.match(preview.stderr, /Episode actions: 1 of 1 would be added, .*\nDry run: nothing was changed\.\n$/);
    assert.deepEqual(portable(await succeed(database, ["user", "export", "bob"])), []);
    const imported = await earmark(database, ["user", "import", "bob", "-", "--json"], { input: exported });
    assert.deepEqual(JSON.parse(imported.stdout), {
      dry_run: false,
      subscriptions: { found: 1, added: 1, already_subscribed: 0, refused: 0 },
      episode_actions: { found: 1, added: 1, not_newer: 0, refused: 0 },
    });
    assert.deepEqual(portable(await succeed(database, ["user", "export", "bob"])), portable(exported));
    const again = await earmark(database, ["user", "import", "bob", path]);
    assert.match(again.stderr, /0 of 1 added, 1 already subscribed, .*\n.* 0 of 1 added, 1 not newer, 0 refused\.\n$/);
  });
}

test("user import: another file, or no such account → says so, and nothing is imported", async () => {
  const database = `file:${temporaryFolder()}/earmark.db`;
  await addUser(database, "ann");
  const wrong = { data: [{ type: "subscription", id: "x", attributes: {} }] };
  for (const [text, words] of [
    ["<opml/>", /export\.json: The body must be one JSON document/],
    ["[]", /export\.json: .* Nothing was imported\.\n$/],
    [JSON.stringify(wrong), /export\.json \(\/data\/0\/id\): /],
  ] as const) {
    const ended = await earmark(database, ["user", "import", "ann", write(text)]);
    assert.deepEqual([ended.code, ended.stdout], [1, ""]);
    assert.match(ended.stderr, words);
  }
  const ended = await earmark(database, ["user", "import", "bob", write('{"data":[{"type":"account"}]}')]);
  assert.match(ended.stderr, /"bob"|attributes|export/);
  assert.equal(ended.code, 1);
});

const RESULT = /Subscriptions: 3 of 3 added, 0 already subscribed, 0 refused\.\nEpisode actions: 5 of 5 added, .*\n$/;

for (const [engine, newDatabase] of ENGINES) {
  test(`import --from on ${engine}: an account on another server → in the local database, once`, async () => {
    const old = await startOldServer();
    const database = await newDatabase();
    await withStore(database, async () => undefined);
    const args = ["import", "--from", old.url, "--user", old.name, "--password-stdin"];
    const given = { input: `${old.password}\n`, settings: IMPORTING };
    const preview = await earmark(database, [...args, "--dry-run"], given);
    assert.deepEqual([preview.code, preview.stdout], [0, ""], preview.stderr);
    assert.match(
      preview.stderr,
      /3 of 3 would be added.*\n.*5 of 5 would be added.*\nDry run: nothing was changed\.\n$/,
    );
    const done = await earmark(database, [...args, "--json"], given);
    assert.match(done.stderr, RESULT);
    assert.equal(JSON.parse(done.stdout).episode_actions.added, 5);
    assert.equal((await succeed(database, ["list"])).trim().split("\n").length, OLD_FEEDS.length + 1);
    assert.match((await earmark(database, args, given)).stderr, /0 of 3 added, 3 already subscribed/);
  });
}

test("import --from: into an account of the database, or on a server; the password typed without echo", async () => {
  const old = await startOldServer();
  const database = await newFile();
  await addUser(database, "ann");
  const args = ["import", "--from", old.url, "--user", old.name];
  const given = { input: old.password, settings: IMPORTING };
  const refused = await earmark(database, [...args, "--password-stdin"], given);
  assert.match(refused.stderr, /This database has accounts\./);
  const local = await earmark(database, [...args, "--password-stdin", "--account", "ann"], given);
  assert.match(local.stderr, RESULT);

  const other = await newFile();
  const { url } = await serve(other, { ...IMPORTING, EARMARK_ACCOUNTS: "false" });
  const typed = await atTerminal(await newFile(), [...args, "--server", url], [["Password of", `${old.password}\r`]]);
  assert.match(typed.stderr, RESULT);
  assert.match(typed.stderr, /Password of user-\d+ at \S+: <silent>.*<echo>/s);
  assert.ok(!typed.stderr.includes(old.password));
  assert.match(typed.stderr, /Signing in….*█/s);
});

test("import --from without --user: prints the login page of a Nextcloud server, and waits", async () => {
  const old = await startOldServer();
  const database = await newFile();
  const { ended, stderr } = startInProcess(["import", "--from", old.url], { DATABASE_URL: database, ...IMPORTING });
  let [said, isAllowed] = ["", false];
  for await (const chunk of stderr) {
    said += chunk;
    const [, link] = /allow access: (\S+)\n/.exec(said) ?? [];
    if (link === undefined || isAllowed) continue;
    isAllowed = true;
    await old.allow(link);
  }
  assert.equal(await ended, 0);
  assert.match(said, RESULT);
});

test("import --from: refused → says why; nothing is imported", async () => {
  const old = await startOldServer();
  const database = await newFile();
  const from = ["import", "--from", old.url];
  for (const [args, code, words, settings] of [
    [[...from, "--user", old.name, "--password-stdin"], 1, /^earmark: .*password/m, IMPORTING],
    [[...from, "--user", old.name, "--password-stdin"], 1, /EARMARK_FETCH_NETWORKS/, {}],
    [[...from, "--password-stdin"], 64, /--password-stdin needs --user/, IMPORTING],
    [[...from, "--user", old.name], 64, /--password-stdin/, IMPORTING],
    [[...from, "x.opml"], 64, /either FILE or --from URL/, IMPORTING],
    [["import"], 64, /either FILE or --from URL/, IMPORTING],
    [["import", "x.opml", "--account", "ann"], 64, /--account needs --from/, IMPORTING],
    [["import", "x.opml", "y.opml"], 64, /usage: earmark import/, IMPORTING],
  ] as const) {
    const ended = await earmark(database, args, { input: "wrong", settings });
    assert.deepEqual([ended.code, ended.stdout], [code, ""], `${args.join(" ")}: ${ended.stderr}`);
    assert.match(ended.stderr, words);
  }
});
