import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { temporaryFolder } from "../../../test/support/server.ts";
import { asUser } from "../../accounts/caller.ts";
import { subscriptionBatches } from "../../lists/list-store.ts";
import { openStore } from "../open.ts";
import { A, createAppContext, play, url } from "../suites/apps-test-support.ts";

/** The plan of each statement that this thread has prepared. */
const plans = new Map<string, string>();
const { prepare } = DatabaseSync.prototype;
DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql, ...options) {
  const statement = prepare.call(this, sql, ...options);
  if (/^\s*(select|insert|update|delete)/i.test(sql)) {
    const steps = prepare.call(this, `explain query plan ${sql}`).all() as { detail: string }[];
    plans.set(sql, steps.map(({ detail }) => detail).join("\n"));
  }
  return statement;
};

const store = await openStore(`file:${temporaryFolder()}/earmark.db`, { connections: 1 });
after(() => store.close());

test("plans: statements of a request → none reads all rows of a table or of a user", async () => {
  const { newUser, add, remove, feeds, actions, upload } = createAppContext(store);
  const user = newUser();
  await add(user, A, url("a"), url("b"), url("c%20d"));
  await upload(user, A, play("a", 1));
  await remove(user, A, url("b"), url("c d"));
  await feeds(user, A, 0);
  await actions(user, A, 0);
  await store.apps.actions(user, { after: 0, upTo: 10, limit: 10, feed: "feeds.example/a" });
  await store.apps.actionPage(user, { offset: 0, size: 10, feed: "feeds.example/a" });
  await store.apps.spellings(user, ["feeds.example/a"]);
  await store.page(user, { offset: 0, size: 10 });
  await store.readChanges(user, { sequence: 0, removalsAfter: 0 }, 10);
  await store.history.pageOf(user, randomUUID(), { offset: 0, size: 10 });
  for await (const items of subscriptionBatches(store, user)) assert.ok(items.length > 0);
  const checked = [...plans].filter(([sql]) => sql.includes("user_id = ?"));
  assert.ok(checked.length > 10);
  for (const [sql, plan] of checked) {
    // "change" is a subquery.
    assert.doesNotMatch(plan, /^SCAN (?!CONSTANT ROW|change$)/m, sql);
    if (sql.includes("change_sets as s"))
      assert.match(plan, /SEARCH s USING PRIMARY KEY \(user_id=\? AND sequence=\?\)/);
    if (/[^+]\bfeed = \?/.test(sql)) assert.match(plan, /feed=\?/, sql);
  }
});

for (const hasStatistics of [false, true]) {
  const when = hasStatistics ? "statistics from when the lists were short" : "no statistics";
  test(`plans: statements that depend on subscribers, ${when} → each row is found by its whole key`, async () => {
    const file = `${temporaryFolder()}/earmark.db`;
    const server = await openStore(`file:${file}`, { connections: 1 });
    const account = { name: "n", issuer: "", passwordHash: "p", isCreatedByOperator: false, invitationHash: undefined };
    await server.accounts.create(7, account, new Date());
    for (const user of [7, 8, 9]) await createAppContext(server).add(user, A, url("a"));
    await server.close();
    const database = new DatabaseSync(file);
    if (hasStatistics) database.exec("analyze");
    database.close();
    // Like a command, so that this thread also writes.
    const likeCommand = await openStore(`file:${file}`, { connections: 1, allowRunningServer: true });
    const { podcasts, accounts } = likeCommand;
    plans.clear();
    const id = "f".repeat(32);
    await podcasts.create([{ user: 1, id }], new Date());
    await podcasts.subscribers([id]);
    await podcasts.findByTitle(id, "T", 0, 10);
    await podcasts.changedFeeds(1, 0, 10);
    await podcasts.eraseUnused(new Date());
    assert.equal(await accounts.delete(asUser(7), new Date()), "deleted");
    await likeCommand.close();
    const checked = [...plans].filter(([sql]) => /\bfeed\b/.test(sql));
    assert.ok(checked.length >= 12);
    for (const [sql, plan] of checked)
      assert.doesNotMatch(plan, /^SCAN (?!json_each)|\(user_id=\?\)$|TEMP B-TREE/m, `${sql}\n${plan}`);
  });
}
