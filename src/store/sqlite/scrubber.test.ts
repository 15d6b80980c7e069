import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { addTo, removeFrom } from "../../../test/support/lists.ts";
import { temporaryFolder } from "../../../test/support/server.ts";
import { asUser } from "../../accounts/caller.ts";
import type { Addition } from "../../lists/subscription.ts";
import { openStore } from "../open.ts";
import type { Store } from "../shared/contract.ts";
import { WRITER_BUSY_MS } from "./file.ts";
import { Scrubber } from "./scrubber.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const MARKER = /MARK[0-9a-f]{16}/g;
const newMarker = () => `MARK${randomBytes(8).toString("hex")}`;
const ACCOUNT = { issuer: "", isCreatedByOperator: false, invitationHash: undefined };

function newAddition(marker: string): Addition {
  const id = randomUUID();
  const feedUrl = `https://u:${marker}@x.example/${"p".repeat(Math.random() * 200)}`;
  return { kind: "add", id, feedUrl, normalizedUrl: feedUrl };
}

/** Every marker that the database's files contain. */
function markersIn(file: string): Set<string> {
  const names = ["", "-wal", "-shm"].map((suffix) => file + suffix).filter(existsSync);
  return new Set(names.flatMap((name) => readFileSync(name, "latin1").match(MARKER) ?? []));
}

async function open(context: { after(work: () => Promise<void>): void }): Promise<{ store: Store; file: string }> {
  const file = join(temporaryFolder(), "earmark.db");
  const store = await openStore(`file:${file}`, { connections: 1 });
  context.after(() => store.close());
  return { store, file };
}

/** Adds and removes at random for several users, so that pages split and merge. Returns what the users have now, and what was removed. */
async function churn(store: Store, users: readonly number[], count: number) {
  const live: { readonly user: number; readonly id: string; readonly marker: string }[] = [];
  const removed: typeof live = [];
  for (let turn = 0; turn < count; turn += 100) {
    const removals = Array.from({ length: Math.min(35, live.length) }, () => {
      const [item] = live.splice(Math.floor(Math.random() * live.length), 1);
      if (item === undefined) return undefined;
      removed.push(item);
      return removeFrom(store, asUser(item.user), item.id, NOW);
    });
    const additions = users.map((user) => {
      const added = Array.from({ length: Math.ceil(65 / users.length) }, () => {
        const marker = newMarker();
        const addition = newAddition(marker);
        live.push({ user, id: addition.id, marker });
        return addition;
      });
      return addTo(store, asUser(user), added, NOW);
    });
    await Promise.all([...removals, ...additions]);
  }
  return { live, removed };
}

test("erasing: removals are forgotten → gone from all files after the sweep", async (t) => {
  const { store, file } = await open(t);
  const { live, removed } = await churn(store, [1, 2, 3, 4, 5], 10_000);
  const expected = new Set(live.map(({ marker }) => marker));
  await store.forgetRemovals(NOW);
  await store.accounts.sweep(NOW);
  assert.equal(markersIn(file).size, live.length + removed.length, "they are recorded until then");
  await store.forgetRemovals(new Date(NOW.getTime() + 1));
  assert.ok(
    [...markersIn(file)].some((marker) => !expected.has(marker)),
    "the log has copies until the sweep",
  );
  await store.accounts.sweep(NOW);
  assert.deepEqual(markersIn(file), expected);
  assert.equal(statSync(`${file}-wal`).size, 0);
});

test("erasing: a deleted account, a changed password → gone from all files after the sweep", async (t) => {
  const { store, file } = await open(t);
  const [deleted, former, current] = [newMarker(), newMarker(), newMarker()];
  await store.accounts.create(3, { ...ACCOUNT, name: "ann", passwordHash: deleted }, NOW);
  await store.accounts.create(4, { ...ACCOUNT, name: "bob", passwordHash: former }, NOW);
  const { live, removed } = await churn(store, [1, 2, 3, 4, 5], 10_000);
  assert.equal(await store.accounts.delete(asUser(3), NOW), "deleted");
  assert.equal(await store.accounts.setPassword(asUser(4), { passwordHash: current }, NOW), true);
  await store.accounts.sweep(NOW);
  const expected = [...live, ...removed].filter(({ user }) => user !== 3).map(({ marker }) => marker);
  assert.deepEqual(markersIn(file), new Set([...expected, current]));
  assert.equal(statSync(`${file}-wal`).size, 0);
});

test("erasing: a reader needs the log → it is emptied by the next sweep", async (t) => {
  const { store, file } = await open(t);
  const [old, current] = [newMarker(), newMarker()];
  await store.accounts.create(3, { ...ACCOUNT, name: "ann", passwordHash: old }, NOW);
  const reader = new DatabaseSync(file, { readOnly: true });
  reader.exec("begin; select * from lists");
  assert.equal(await store.accounts.setPassword(asUser(3), { passwordHash: current }, NOW), true);
  await store.accounts.sweep(NOW);
  assert.ok(markersIn(file).has(old));
  reader.close();
  await store.accounts.sweep(NOW);
  assert.deepEqual(markersIn(file), new Set([current]));
});

test("erasing: a store is closed → no log is left", async () => {
  const file = join(temporaryFolder(), "earmark.db");
  const store = await openStore(`file:${file}`, { connections: 1 });
  await addTo(store, asUser(1), [newAddition(newMarker())], NOW);
  await store.close();
  assert.equal(existsSync(`${file}-wal`), false);
});

test("upgrade: an index is replaced, then its rows are deleted → no remnants in pages that became free", async () => {
  const file = join(temporaryFolder(), "earmark.db");
  const database = new DatabaseSync(file);
  const fixture = new URL("../../../test/fixtures/schemas/sqlite-13.sql", import.meta.url);
  database.exec(`${readFileSync(fixture, "utf8")}; pragma secure_delete = on; begin`);
  const insert = database.prepare(
    "insert into subscriptions (user_id, sequence, id, feed, feed_url, subscribed_at) values (7, ?, ?, ?, '', 0)",
  );
  for (let index = 0; index < 5_000; index += 1) insert.run(index, Buffer.from(`a${index}`), Buffer.from(newMarker()));
  database.exec("commit");
  database.close();
  await (await openStore(`file:${file}`, { connections: 1 })).close();
  const migrated = new DatabaseSync(file);
  migrated.exec("pragma secure_delete = on; delete from subscriptions where user_id = 7");
  migrated.close();
  assert.equal(markersIn(file).size, 0);
});

test("scrubber: no change since the last rewrite → not rewritten again", () => {
  const file = join(temporaryFolder(), "x.db");
  const [database, other] = [new DatabaseSync(file), new DatabaseSync(file)];
  const scrubber = new Scrubber(database);
  const isRewritten = () => {
    const free = () => Number(database.prepare("pragma freelist_count").get()?.["freelist_count"]);
    // This leaves free pages, but counts as no change of rows.
    database.exec("create table t as select zeroblob(200000) as x; drop table t");
    assert.ok(free() > 0);
    scrubber.run();
    return free() === 0;
  };
  database.exec("create table r (x)");
  assert.equal(isRewritten(), true, "earlier processes may have removed something");
  assert.equal(isRewritten(), false);
  for (const connection of [database, other]) {
    for (const change of ["insert into r values (1)", "update r set x = 2", "delete from r"]) {
      connection.exec(change);
      assert.equal(isRewritten(), true, change);
      assert.equal(isRewritten(), false);
    }
  }
  for (const each of [database, other]) each.close();
});

test("scrubber: another process is writing → fails, and later writes wait as briefly as before", () => {
  const file = join(temporaryFolder(), "x.db");
  const [database, other] = [new DatabaseSync(file), new DatabaseSync(file)];
  database.exec(`create table t (x); pragma busy_timeout = ${WRITER_BUSY_MS}`);
  other.exec("begin immediate");
  assert.equal(new Scrubber(database).run(), true);
  assert.deepEqual({ ...database.prepare("pragma busy_timeout").get() }, { timeout: WRITER_BUSY_MS });
  for (const each of [database, other]) each.close();
});
