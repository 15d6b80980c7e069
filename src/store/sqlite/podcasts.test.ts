import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { newId, temporaryFolder } from "../../../test/support/server.ts";
import { asUser, LOCAL_USER, type UserId } from "../../accounts/caller.ts";
import { copy } from "../../cli/copy.ts";
import { openStore } from "../open.ts";
import { describeDuplicates } from "../suites/duplicates.suite.ts";
import { describePodcasts } from "../suites/podcasts.suite.ts";
import { describeTitles } from "../suites/titles.suite.ts";
import { backUpFile } from "./backup.ts";

describeDuplicates("SQLite", () => openStore(`file:${join(temporaryFolder(), "earmark.db")}`, { connections: 1 }));
describeTitles("SQLite", () => openStore(`file:${join(temporaryFolder(), "earmark.db")}`, { connections: 1 }));
describePodcasts("SQLite", () => openStore(`file:${join(temporaryFolder(), "earmark.db")}`, { connections: 1 }));

test("backup and restore: podcasts → kept and due at once; artwork → not in the backup", async () => {
  const folder = temporaryFolder();
  const [file, backup, restored] = ["one.db", "backup.db", "two.db"].map((name) => join(folder, name));
  const url = `file:${file}`;
  const store = await openStore(url, { connections: 1 });
  const feedUrl = "https://feeds.example/kept";
  const [{ id } = { id: "" }] = await store.podcasts.find([feedUrl]);
  const at = new Date();
  await store.change(
    asUser(LOCAL_USER),
    [{ kind: "add", id: "00000000-0000-4000-8000-000000000001", feedUrl, normalizedUrl: "feeds.example/kept" }],
    at,
  );
  await store.podcasts.create([{ user: LOCAL_USER, id }], at);
  const record = (await store.podcasts.claim(id, at, at)) ?? assert.fail();
  const hash = "0123456789abcdef".repeat(2);
  const artwork = { hash, small: Buffer.from("a small image"), large: Buffer.from("a large image") };
  const known = { ...record, title: "T", status: "ok", artwork: hash, etag: "e", nextAt: 8e15, checkedAt: 5 } as const;
  assert.equal(await store.podcasts.record(id, at, known, artwork), true);
  await store.close();
  assert.ok(readFileSync(file ?? "").includes("a large image"));

  await backUpFile(file ?? "", backup ?? "", () => undefined);
  assert.ok(!readFileSync(backup ?? "").includes("a large image"));
  await copy(`file:${file}`, `file:${restored}`, { show: () => undefined, end: () => undefined });
  const other = await openStore(`file:${restored}`, { connections: 1 });
  after(() => other.close());
  assert.deepEqual(await other.podcasts.subscribers([id]), [[{ user: LOCAL_USER, feedUrl }]]);
  const [podcast] = await other.podcasts.find([feedUrl]);
  assert.deepEqual([podcast?.title, podcast?.status, podcast?.artwork], ["T", "ok", undefined]);
  const again = await other.podcasts.claim(id, at, new Date(at.getTime() + 1));
  assert.deepEqual([again?.nextAt, again?.etag, again?.artworkUrl], [0, null, null]);
});

test("subscribers: removed, updated or deleted subscriptions → no row without a subscription", async () => {
  const file = join(temporaryFolder(), "earmark.db");
  const store = await openStore(`file:${file}`, { connections: 1 });
  after(() => store.close());
  const [feedUrl, otherUrl] = ["https://feeds.example/1", "https://feeds.example/2"];
  const [{ id } = { id: "" }] = await store.podcasts.find([feedUrl]);
  const at = new Date();
  const account = { issuer: "", passwordHash: "p", isCreatedByOperator: false, invitationHash: undefined };
  const [stays, removes, updates, leaves] = [1, 2, 3, 4];
  for (const user of [stays, removes, updates, leaves]) {
    await store.accounts.create(user, { ...account, name: `n${user}` }, at);
    await store.change(
      asUser(user),
      [{ kind: "add", id: newId(), feedUrl, normalizedUrl: "feeds.example/1", title: `${user}` }],
      at,
    );
  }
  const all = [stays, removes, updates, leaves].map((user) => ({ user, id }));
  assert.deepEqual(await store.podcasts.create(all, at), [id]);
  const subscribers = () => {
    const database = new DatabaseSync(file, { readOnly: true });
    const users = database.prepare("select user_id from subscribers order by user_id").all();
    database.close();
    return users.map(({ user_id }) => user_id);
  };
  assert.deepEqual(subscribers(), [stays, removes, updates, leaves]);

  const subscriptionOf = async (user: UserId) => (await store.page(user, { offset: 0, size: 1 })).items[0]?.id ?? "";
  await store.change(asUser(updates), [{ kind: "update", id: await subscriptionOf(updates), title: "T" }], at);
  assert.deepEqual(subscribers(), [stays, removes, updates, leaves]);
  const update = { kind: "update", feedUrl: otherUrl, normalizedUrl: "feeds.example/2" } as const;
  await store.change(asUser(updates), [{ ...update, id: await subscriptionOf(updates) }], at);
  await store.change(asUser(removes), [{ kind: "remove", id: await subscriptionOf(removes) }], at);
  assert.deepEqual(subscribers(), [stays, leaves]);
  assert.equal(await store.accounts.delete(asUser(leaves), at), "deleted");
  assert.deepEqual(subscribers(), [stays]);
  // As if they had changed their lists just before this.
  assert.deepEqual(await store.podcasts.create(all, at), []);
  assert.deepEqual(subscribers(), [stays]);
});
