import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { addUser, ENGINES, earmark, succeed, within } from "../../test/support/account-commands.ts";
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
    assert.match(preview.stderr, /Subscriptions: 1 of 1 would be added, 0 already subscribed, 0 rejected\./);
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
    assert.match(again.stderr, /0 of 1 added, 1 already subscribed, .*\n.* 0 of 1 added, 1 not newer, 0 rejected\.\n$/);
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
