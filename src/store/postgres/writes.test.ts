import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { additionsOf as additions, addTo, idOf, removeFrom, statusOf } from "../../../test/support/lists.ts";
import { sharedPostgres } from "../../../test/support/postgres.ts";
import {
  databaseOf,
  isKnownFailure,
  NOW,
  open,
  openOverProxy,
  statementsOf,
  total,
  USER,
} from "../../../test/support/postgres-stores.ts";
import { AccessRevoked, asUser } from "../../accounts/caller.ts";
import { changesSince, positionAt } from "../../lists/changes.ts";
import { openStore } from "../open.ts";
import { credential, newAccountNamed } from "../suites/accounts-test-support.ts";

const server = await sharedPostgres();

/** Number of statements: to lock and read a list; of a group that reads, then writes; of one that adds without reading. */
const READ = 3;
const READ_AND_WRITE = READ + 3;
const ADD = 5;
/** Statements of a failed attempt to add without reading. */
const FAILED_ADD = 4;

test("change: a batch → as many statements as a single addition", async () => {
  const { store, proxy } = await openOverProxy(server);
  const adding = (from: number, count?: number) =>
    statementsOf(proxy, () => addTo(store, asUser(USER), additions(from, count), NOW));
  assert.equal(await adding(0), FAILED_ADD + READ + 2 + READ_AND_WRITE, "the first one creates the list");
  assert.equal(await adding(1), ADD);
  assert.equal(await adding(2, 5_000), ADD);
  assert.equal(await adding(5_001, 2), FAILED_ADD + READ_AND_WRITE, "with a conflict");
  assert.equal(await adding(5_001, 2), FAILED_ADD + READ + 1, "nothing to write");
  assert.equal(await total(store), 5_003);
});

test("change: a removal, an update → a few more statements", async () => {
  const { store, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0, 3), NOW);
  const removing = () => statementsOf(proxy, () => removeFrom(store, asUser(USER), idOf(0), NOW));
  assert.equal(await removing(), READ_AND_WRITE + 1);
  assert.equal(await removing(), READ + 1);
  const updating = () => store.change(asUser(USER), [{ kind: "update", id: idOf(1), title: "Mine" }], NOW);
  assert.equal(await statementsOf(proxy, updating), READ_AND_WRITE + 2, "what it replaced is kept");
});

test("change: requests at the same time → one transaction, in order", async () => {
  const { store, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0, 3), NOW);
  const statements = await statementsOf(proxy, async () => {
    const outcomes = await Promise.all([
      addTo(store, asUser(USER), additions(11), NOW),
      addTo(store, asUser(USER), additions(12), NOW),
      removeFrom(store, asUser(USER), idOf(12), NOW),
      addTo(store, asUser(USER), additions(12), NOW),
    ]);
    assert.deepEqual(
      outcomes.flat().map((outcome) => (typeof outcome === "boolean" ? outcome : statusOf(outcome))),
      ["added", "added", true, "added"],
    );
  });
  assert.equal(statements, READ_AND_WRITE + 1);
});

test("change: a transaction does not begin → nothing is written outside of it", async () => {
  const { store, other, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0), NOW);
  proxy.garbleBegin();
  await assert.rejects(addTo(store, asUser(USER), additions(1), NOW), isKnownFailure);
  assert.equal(await total(other), 1);
  assert.deepEqual((await addTo(store, asUser(USER), additions(1), NOW)).map(statusOf), ["added"]);
  assert.deepEqual(
    (await other.itemsAfter(USER, 0, 10)).items.map(({ id }) => id),
    [idOf(0), idOf(1)],
  );
});

test("change: three processes write one list → each feed once, in order, without gaps", async () => {
  const url = await server.migratedDatabase();
  const stores = [await open(url), await open(url), await open(url)];
  for (const [index, store] of stores.entries()) await addTo(store, asUser(USER), additions(index), NOW);
  const added: string[][] = [];
  await Promise.all(
    stores.map(async (store, side) => {
      for (let round = 0; round < 15; round += 1) {
        // Most batches differ between the processes; every fifth is the same.
        const isShared = round % 5 === 4;
        const from = isShared ? 100_000 + 100 * round : 1_000 * (1 + round) + 100 * side;
        const batch = side === 1 ? additions(from, 20).toReversed() : additions(from, 20);
        const outcomes = await addTo(store, asUser(USER), batch, NOW);
        const taken = batch.filter((_, index) => statusOf(outcomes[index]) === "added").map(({ id }) => id);
        if (!isShared) assert.equal(taken.length, 20);
        added.push(taken);
      }
    }),
  );
  const rows = await server.query(
    "select sequence::int, id from earmark.subscriptions order by sequence",
    databaseOf(url),
  );
  const positions = new Map(rows.map(({ id }, index) => [String(id), index]));
  assert.deepEqual(
    rows.map(({ sequence }) => sequence),
    rows.map((_, index) => index + 1),
  );
  assert.equal(rows.length, 3 + 3 * 12 * 20 + 3 * 20);
  assert.equal(added.flat().length, rows.length - 3);
  for (const ids of added) {
    const [first = 0] = ids.map((id) => positions.get(id));
    assert.deepEqual(
      ids.map((id) => positions.get(id)),
      ids.map((_, index) => first + index),
    );
  }
  for (const store of stores) assert.equal(await total(store), rows.length);
});

test("change: another process deletes the account → AccessRevoked, and nothing is left", async () => {
  const { store, other, url } = await openOverProxy(server);
  const account = {
    name: "ann",
    issuer: "",
    passwordHash: "hash",
    isCreatedByOperator: false,
    invitationHash: undefined,
  };
  const user = Number(await other.accounts.create(4_711, account, NOW));
  await addTo(store, asUser(user), additions(0, 3), NOW);
  await addTo(store, asUser(user), additions(3, 3), NOW);
  assert.equal(await other.accounts.delete(asUser(user), NOW), "deleted");
  await assert.rejects(addTo(store, asUser(user), additions(6, 3), NOW), AccessRevoked);
  const name = databaseOf(url);
  assert.deepEqual(await server.query("select * from earmark.subscriptions", name), []);
  assert.deepEqual(await server.query("select sequence::int, total::int from earmark.lists", name), [
    { sequence: -1, total: 0 },
  ]);
});

test("change: the list row is gone → it starts over", async () => {
  const { store, url } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0, 3), NOW);
  await addTo(store, asUser(USER), additions(3, 3), NOW);
  await server.query("delete from earmark.subscriptions; delete from earmark.lists", databaseOf(url));
  assert.deepEqual((await addTo(store, asUser(USER), additions(2, 3), NOW)).map(statusOf), ["added", "added", "added"]);
  const { items } = await store.page(USER, { offset: 1, size: 10 });
  assert.deepEqual(
    items.map(({ id }) => id),
    [idOf(3), idOf(4)],
  );
});

test("page: any offset → reads no rows after the page; of a list that was only added to, none before it", async () => {
  const url = await server.migratedDatabase();
  const store = await openStore(url, { connections: 1 });
  for (const user of [USER, 2, 3]) await addTo(store, asUser(user), additions(0, 3_000), NOW);
  assert.equal(await removeFrom(store, asUser(3), idOf(0), NOW), true);
  await server.query("analyze", databaseOf(url));
  const readRows = async () => {
    const [row] = await server.query(
      `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as read from pg_stat_user_tables
       where schemaname = 'earmark' and relname = 'subscriptions'`,
      databaseOf(url),
    );
    return Number(row?.["read"]);
  };
  await store.close();
  const before = await readRows();
  const reader = await openStore(url, { connections: 1 });
  for (let round = 0; round < 10; round += 1) {
    for (const user of [2, 3])
      for (const offset of [0, 1_500, 2_974])
        assert.equal((await reader.page(user, { offset, size: 25 })).items.length, 25);
  }
  // The number of rows read is reported when the connection closes.
  await reader.close();
  let read = 0;
  for (let tries = 0; tries < 100 && read === 0; tries += 1) {
    await sleep(50);
    read = (await readRows()) - before;
  }
  assert.equal(read, 10 * (3 * 25 + 25 + 1_525 + 2_999));
});

test("page: items were removed → one statement, and every page starts where it should", async () => {
  const { store, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0, 1_500), NOW);
  const removed = [7, 8, 9, 300, 1_200].map(idOf);
  for (const id of removed) assert.equal(await removeFrom(store, asUser(USER), id, NOW), true);
  const left = additions(0, 1_500).flatMap(({ id }) => (removed.includes(id) ? [] : id));
  for (let offset = 0; offset < 1_600; offset += 100) {
    const statements = await statementsOf(proxy, async () => {
      const page = await store.page(USER, { offset, size: 100 });
      assert.deepEqual(
        page.items.map(({ id }) => id),
        left.slice(offset, offset + 100),
      );
      assert.equal(page.total, left.length);
    });
    assert.equal(statements, 1);
  }
});

test("removals: more than 10,000 changes → only those among the latest are recorded", async () => {
  const url = await server.migratedDatabase();
  const store = await open(url);
  await addTo(store, asUser(USER), additions(0, 4), NOW);
  await removeFrom(store, asUser(USER), idOf(0), NOW);
  const recorded = async () =>
    (await server.query("select sequence::int from earmark.removals order by sequence", databaseOf(url))).map(
      ({ sequence }) => sequence,
    );
  assert.deepEqual(await recorded(), [5]);
  await server.query("update earmark.lists set sequence = 10003", databaseOf(url));
  await removeFrom(store, asUser(USER), idOf(1), NOW);
  assert.deepEqual(await recorded(), [5, 10_004]);
  assert.equal((await changesSince(store, USER, positionAt(4), 9))?.removed.length, 2);
  await removeFrom(store, asUser(USER), idOf(2), NOW);
  assert.deepEqual(await recorded(), [10_004, 10_005]);
  assert.equal(await changesSince(store, USER, positionAt(4), 9), undefined, "the position has expired");
  assert.deepEqual(
    (await store.page(USER, { offset: 0, size: 9 })).items.map(({ id }) => id),
    [idOf(3)],
  );
});

test("access: the caller's token was revoked → AccessRevoked, and its connection is used again", async () => {
  const url = await server.migratedDatabase();
  const store = await open(url, { connections: 1 });
  const token = credential(4_711);
  await store.accounts.create(4_711, newAccountNamed("ann", { isCreatedByOperator: false }), NOW);
  await store.accounts.addCredential(asUser(4_711), token);
  const caller = { ...asUser(4_711), credentialHash: token.hash };
  assert.equal(await store.accounts.removeCredential(caller, "token", token.credential.id, NOW), true);
  const inUse =
    "select pid, state from pg_stat_activity where datname = current_database() and application_name = 'earmark'";
  const connections = () => server.query(inUse, databaseOf(url));
  // Those of the migration may still be closing.
  while ((await connections()).length > 1) await sleep(5);
  const before = await connections();
  const writes = {
    "a change of the list": () => addTo(store, caller, additions(0), NOW),
    "a write of apps": () => store.apps.saveDevice(caller, { key: "app", device: "phone" }, {}, NOW),
    "a write of accounts": () => store.accounts.setPassword(caller, { passwordHash: "other" }, NOW),
  };
  for (const [name, write] of Object.entries(writes)) {
    await assert.rejects(write, AccessRevoked, name);
    assert.deepEqual(await connections(), before, name);
  }
  assert.deepEqual(
    before.map(({ state }) => state),
    ["idle"],
  );
});
