import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { additionsOf as additions, addTo, removeFrom } from "../../../test/support/lists.ts";
import { temporaryFolder } from "../../../test/support/server.ts";
import { asUser, BY_PAGE } from "../../accounts/caller.ts";
import { changesSince, positionAt } from "../../lists/changes.ts";
import type { Addition } from "../../lists/subscription.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { UserError } from "../../util/user-error.ts";
import { openStore } from "../open.ts";
import type { Store } from "../shared/contract.ts";
import type { StoreOptions } from "../shared/options.ts";
import { credential, newAccountNamed } from "../suites/accounts-test-support.ts";
import { describeStore } from "../suites/contract.suite.ts";
import { NEWEST_VERSION } from "./schema.ts";

const NOW = new Date();
const USER = 1;

async function open(path: string, options: Partial<StoreOptions> = {}): Promise<Store> {
  const store = await openStore(`file:${path}`, { connections: 1, ...options });
  after(() => store.close());
  return store;
}

const isUnavailable = (isOutcomeUnknown: boolean) => (error: Error) =>
  error instanceof StoreUnavailable && error.isOutcomeUnknown === isOutcomeUnknown;

const newFile = () => join(temporaryFolder(), "data", "earmark.db");

/** It waits for twenty seconds, during which the other tests run. */
const lockedOut = lockOut();

describeStore("SQLite", await open(newFile()));

test("close: then open again → same list, and no log file is left", async () => {
  const file = newFile();
  const first = await open(file);
  await addTo(first, asUser(USER), additions(0, 10), NOW);
  await removeFrom(first, asUser(USER), additions(3, 1)[0]?.id ?? "", NOW);
  const before = await first.page(USER, { offset: 0, size: 100 });
  await first.close();
  assert.deepEqual(readdirSync(join(file, "..")).sort(), ["earmark.db", "earmark.db-lock"]);
  const second = await open(file);
  assert.deepEqual(await second.page(USER, { offset: 0, size: 100 }), before);
});

test("close: nothing was written → no log file is left", async () => {
  const file = newFile();
  const store = await open(file);
  assert.ok(existsSync(`${file}-wal`));
  await store.close();
  assert.deepEqual(readdirSync(join(file, "..")).sort(), ["earmark.db", "earmark.db-lock"]);
});

test("change: any kind → next sequence number; removals are recorded with their URL", async () => {
  const file = newFile();
  const store = await open(file);
  const [a, b, c] = additions(0, 3) as [Addition, Addition, Addition];
  await addTo(store, asUser(USER), [a, b, a], NOW);
  await removeFrom(store, asUser(USER), a.id, NOW);
  await removeFrom(store, asUser(USER), a.id, NOW);
  await addTo(store, asUser(USER), [c, a], NOW);
  await removeFrom(store, asUser(USER), b.id, NOW);
  const database = new DatabaseSync(file, { readOnly: true });
  const rows = (sql: string) =>
    database
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }));
  assert.deepEqual(rows("select sequence, feed_url from subscriptions order by sequence"), [
    { sequence: 4, feed_url: c.feedUrl },
    { sequence: 5, feed_url: a.feedUrl },
  ]);
  const id = (addition: Addition) => addition.id.replaceAll("-", "").toUpperCase();
  const removals = "select sequence, hex(id) as id, removed_at as at, added_sequence as added, feed_url from removals";
  assert.deepEqual(rows(`${removals} order by sequence`), [
    { sequence: 3, id: id(a), at: NOW.getTime(), added: 1, feed_url: a.feedUrl },
    { sequence: 6, id: id(b), at: NOW.getTime(), added: 2, feed_url: b.feedUrl },
  ]);
  assert.deepEqual(rows("select sequence, total from lists"), [{ sequence: 6, total: 2 }]);
  database.close();
});

test("history of a subscription: a set from before the server recorded authors → has only removals", async () => {
  const file = newFile();
  const store = await open(file);
  const [a, b, c] = additions(0, 3) as [Addition, Addition, Addition];
  await addTo(store, asUser(USER), [a, b], NOW);
  await removeFrom(store, asUser(USER), a.id, NOW);
  await addTo(store, { ...asUser(USER), author: BY_PAGE }, [c], NOW);
  const database = new DatabaseSync(file);
  const totals = async () => {
    const range = { offset: 0, size: 5 };
    return Promise.all([a, b, c].map(async ({ id }) => (await store.history.pageOf(USER, id, range)).total));
  };
  assert.deepEqual(await totals(), [1, 1, 1]);
  database.exec("update change_sets set kind = 'unknown'");
  assert.deepEqual(await totals(), [1, 0, 1]);
  database.exec("update change_sets set last_sequence = 2");
  assert.deepEqual(await totals(), [0, 0, 1], "the removal is after the set");
  database.close();
});

test("removals: more than 10,000 changes → only those among the latest are recorded", async () => {
  const file = newFile();
  const store = await open(file);
  const ids = additions(0, 4).map(({ id }) => id);
  await addTo(store, asUser(USER), additions(0, 4), NOW);
  await removeFrom(store, asUser(USER), ids[0] ?? "", NOW);
  const database = new DatabaseSync(file);
  const recorded = () =>
    database
      .prepare("select sequence from removals order by sequence")
      .all()
      .map((row) => row["sequence"]);
  assert.deepEqual(recorded(), [5]);
  database.exec("update lists set sequence = 10003");
  await removeFrom(store, asUser(USER), ids[1] ?? "", NOW);
  assert.deepEqual(recorded(), [5, 10_004]);
  assert.equal((await changesSince(store, USER, positionAt(4), 9))?.removed.length, 2);
  await removeFrom(store, asUser(USER), ids[2] ?? "", NOW);
  assert.deepEqual(recorded(), [10_004, 10_005]);
  assert.equal(await changesSince(store, USER, positionAt(4), 9), undefined, "the position has expired");
  database.close();
  const { items } = await store.page(USER, { offset: 0, size: 9 });
  assert.deepEqual(
    items.map(({ id }) => id),
    [ids[3]],
  );
});

test("open: another server has the file → rejected until it closes", async () => {
  const file = newFile();
  const first = await open(file);
  await assert.rejects(
    open(file),
    (error: Error) => error instanceof UserError && error.message.includes("Another Earmark process is using"),
  );
  await first.close();
  await open(file);
});

test("open: a foreign file → rejected and unchanged", async () => {
  const folder = temporaryFolder();
  const foreign = join(folder, "foreign.db");
  const database = new DatabaseSync(foreign);
  database.exec("pragma journal_mode = wal; create table t (x); insert into t values (1)");
  database.close();
  const text = join(folder, "text.db");
  writeFileSync(text, "not a database");
  const short = join(folder, "short.db");
  writeFileSync(short, "x");
  const entries = readdirSync(folder);
  for (const file of [foreign, text, short]) {
    const [bytes, { mtimeMs }] = [readFileSync(file), statSync(file)];
    await assert.rejects(
      open(file),
      (error: Error) => error instanceof UserError && error.message.includes("not an Earmark database"),
    );
    assert.deepEqual(readFileSync(file), bytes);
    assert.equal(statSync(file).mtimeMs, mtimeMs);
  }
  assert.deepEqual(readdirSync(folder), entries, "no other files were created");
});

test("open, page: a damaged file → an error, never a shorter list", async () => {
  const file = newFile();
  const first = await open(file);
  await addTo(first, asUser(USER), additions(0, 31), NOW);
  await first.close();
  const bytes = readFileSync(file);
  bytes.fill("X", 4_100, 4_128);
  writeFileSync(file, bytes);
  await assert.rejects(open(file), (error: Error) => error instanceof UserError && error.message.includes("damaged"));

  // A file that is damaged while it is open, or is too large to be checked at start.
  const other = newFile();
  const store = await open(other);
  await addTo(store, asUser(USER), additions(0, 31), NOW);
  const tamperer = new DatabaseSync(other);
  tamperer.exec("delete from subscriptions where sequence = 7");
  await assert.rejects(store.page(USER, { offset: 0, size: 100 }), StoreUnavailable);
  tamperer.exec("delete from lists");
  tamperer.close();
  await assert.rejects(store.page(USER, { offset: 0, size: 25 }), StoreUnavailable);
});

/** Executes SQL on the file of an open store. */
function executeSql(file: string, sql: string): void {
  const other = new DatabaseSync(file);
  other.exec(sql);
  other.close();
}

function endWriterAtNextGroup(): void {
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function () {
    Worker.prototype.postMessage = postMessage;
    void this.terminate();
  };
}

test("change: failure before the commit → not done; at the commit → unknown; then it recovers", async () => {
  const file = newFile();
  const store = await open(file);
  const refuse = "create trigger no before insert on subscriptions begin select raise(abort, 'no'); end";
  executeSql(file, refuse);
  await assert.rejects(addTo(store, asUser(USER), additions(0, 1), NOW), isUnavailable(false));
  executeSql(file, "drop trigger no");
  await addTo(store, asUser(USER), additions(0, 1), NOW);
  executeSql(file, refuse);
  await assert.rejects(addTo(store, asUser(USER), additions(1, 1), NOW), isUnavailable(false));
  executeSql(
    file,
    `drop trigger no;
     create table parent (id integer primary key);
     create table child (parent references parent deferrable initially deferred);
     create trigger no after insert on subscriptions begin insert into child values (1); end`,
  );
  await assert.rejects(addTo(store, asUser(USER), additions(1, 1), NOW), isUnavailable(true));
  executeSql(file, "drop trigger no");
  await store.ready();
  assert.ok((await addTo(store, asUser(USER), additions(1, 1), NOW)).every(({ kind }) => kind === "done"));
  assert.equal((await store.page(USER, { offset: 0, size: 1 })).total, 2);
});

test("writer thread: ends during a write → unknown, and a new one starts", async () => {
  const store = await open(newFile());
  await addTo(store, asUser(USER), additions(0, 1), NOW);
  endWriterAtNextGroup();
  await assert.rejects(addTo(store, asUser(USER), additions(1, 1), NOW), isUnavailable(true));
  await store.ready();
  await addTo(store, asUser(USER), additions(1, 1), NOW);
  assert.equal((await store.page(USER, { offset: 0, size: 1 })).total, 2);
});

test("writer thread: cannot be restarted → not done, and the store can be closed", async () => {
  const file = newFile();
  const store = await open(file);
  await addTo(store, asUser(USER), additions(0, 1), NOW);
  endWriterAtNextGroup();
  await assert.rejects(addTo(store, asUser(USER), additions(1, 1), NOW), isUnavailable(true));
  renameSync(file, `${file}-away`);
  mkdirSync(file);
  await assert.rejects(addTo(store, asUser(USER), additions(1, 1), NOW), isUnavailable(false));
  await assert.rejects(store.ready(), StoreUnavailable);
  await store.close();
});

test("open: a server is running → shares its file; another schema version → not ready", async () => {
  const file = newFile();
  const store = await open(file);
  const second = await open(file, { allowRunningServer: true });
  await addTo(second, asUser(USER), additions(0, 2), NOW);
  const removing = removeFrom(store, asUser(USER), additions(0, 1)[0]?.id ?? "", NOW);
  assert.equal(await removing, true);
  assert.equal((await second.page(USER, { offset: 0, size: 1 })).total, 1);
  for (const version of [NEWEST_VERSION - 1, NEWEST_VERSION + 1]) {
    executeSql(file, `pragma user_version = ${version}`);
    await assert.rejects(store.ready(), StoreUnavailable);
  }
});

test("open: an empty file → used as a new database", async () => {
  const file = join(temporaryFolder(), "empty.db");
  writeFileSync(file, "");
  await addTo(await open(file), asUser(USER), additions(0, 1), NOW);
});

test("open: a newer schema → rejected", async () => {
  const file = newFile();
  await (await open(file)).close();
  const database = new DatabaseSync(file);
  database.exec("pragma user_version = 99");
  database.close();
  await assert.rejects(
    open(file),
    (error: Error) => error instanceof UserError && error.message.includes("newer Earmark"),
  );
});

test("open: impossible path → an error that names it", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "file"), "");
  mkdirSync(join(folder, "folder"));
  for (const path of [join(folder, "file", "earmark.db"), join(folder, "folder")]) {
    await assert.rejects(open(path), (error: Error) => error instanceof UserError && error.message.includes(path));
  }
});

test("open: file header → application id and write-ahead log", async () => {
  const file = newFile();
  const store = await open(file);
  await addTo(store, asUser(USER), additions(0, 1), NOW);
  const header = readFileSync(file);
  assert.equal(header.toString("latin1", 68, 72), "EARM");
  assert.deepEqual([header[18], header[19]], [2, 2], "write-ahead log");
  assert.ok(existsSync(`${file}-wal`));
});

test("queue: waiting requests → share a transaction", async () => {
  const groups: number[] = [];
  const store = await open(newFile(), { onCommit: (operations) => groups.push(operations) });
  await Promise.all(Array.from({ length: 100 }, (_, index) => addTo(store, asUser(USER), additions(index, 1), NOW)));
  assert.deepEqual(groups, [100]);
  groups.length = 0;
  await Promise.all(
    Array.from({ length: 5 }, (_, index) => addTo(store, asUser(USER), additions(1_000 + index * 900, 900), NOW)),
  );
  assert.deepEqual(groups, [1_800, 1_800, 900], "but a transaction does not grow without bound");
});

test("queue: a job that cannot be executed → fails alone; others in its transaction are stored", async () => {
  const groups: number[] = [];
  const store = await open(newFile(), { onCommit: (operations) => groups.push(operations) });
  const poisoned = additions(1, 2).map((each) => ({ ...each, feedUrl: {} as string }));
  const attempts = await Promise.allSettled([
    addTo(store, asUser(1), additions(0, 1), NOW),
    addTo(store, asUser(2), poisoned, NOW),
    addTo(store, asUser(1), additions(1, 2), NOW),
    addTo(store, asUser(2), additions(0, 2), NOW),
    removeFrom(store, asUser(1), additions(0, 1)[0]?.id ?? "", NOW),
    addTo(store, asUser(3), [...additions(0, 1), ...poisoned], NOW),
  ]);
  assert.deepEqual(groups, [11], "one group");
  assert.deepEqual(
    attempts.flatMap(({ status }, index) => (status === "rejected" ? [index] : [])),
    [1, 5],
  );
  for (const attempt of attempts) if (attempt.status === "rejected") assert.ok(isUnavailable(false)(attempt.reason));
  const totals = [1, 2, 3].map(async (user) => (await store.page(user, { offset: 0, size: 1 })).total);
  assert.deepEqual(await Promise.all(totals), [2, 2, 0]);
  await store.ready();
  assert.equal(
    (await addTo(store, asUser(3), additions(0, 1), NOW)).every(({ kind }) => kind === "done"),
    true,
  );
});

test("queue: a named write that throws → nothing of it is stored; others in its transaction are", async () => {
  const groups: number[] = [];
  const store = await open(newFile(), { onCommit: (operations) => groups.push(operations) });
  const { accounts, apps } = store;
  for (const user of [11, 12])
    await accounts.create(user, newAccountNamed(`u${user}`, { isCreatedByOperator: false, passwordHash: "old" }), NOW);
  const session = credential(11, { kind: "session" });
  await accounts.addCredential(asUser(11), session);
  groups.length = 0;
  // It fails at the audit log, after it has set the password and ended the session.
  const resetBy = { name: {} as string, address: "" };
  const attempts = await Promise.allSettled([
    accounts.setPassword(asUser(12), { passwordHash: "new" }, NOW),
    accounts.setPassword(asUser(11), { passwordHash: "new", resetBy }, NOW),
    apps.saveDevice(asUser(11), { key: "app", device: "phone" }, {}, NOW),
    addTo(store, asUser(11), additions(0, 1), NOW),
  ]);
  assert.deepEqual(groups, [4], "one group");
  assert.deepEqual(
    attempts.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled", "fulfilled"],
  );
  assert.ok(attempts[1]?.status === "rejected" && isUnavailable(false)(attempts[1].reason));
  assert.equal((await accounts.get(11))?.passwordHash, "old");
  assert.equal((await accounts.listCredentials(11, "session")).length, 1);
  assert.equal((await accounts.get(12))?.passwordHash, "new");
  assert.equal((await apps.devices(11)).length, 1);
  assert.equal((await store.page(11, { offset: 0, size: 1 })).total, 1);
  await store.ready();
  assert.equal(await accounts.setPassword(asUser(11), { passwordHash: "new" }, NOW), true);
});

test("close: writes are queued → written first, and later ones rejected", async () => {
  const file = newFile();
  const store = await open(file);
  const attempts = Array.from({ length: 20 }, (_, index) => addTo(store, asUser(USER), additions(index * 10, 10), NOW));
  await store.close();
  assert.ok((await Promise.all(attempts)).flat().every(({ kind }) => kind === "done"));
  await assert.rejects(addTo(store, asUser(USER), additions(1_000, 1), NOW), StoreUnavailable);
  assert.equal((await (await open(file)).page(USER, { offset: 0, size: 1 })).total, 200);
});

test(
  "lock: another program holds the file → writes fail, reads work, not ready; then it recovers",
  { timeout: 30_000 },
  () => lockedOut,
);

async function lockOut(): Promise<void> {
  const file = newFile();
  const store = await open(file);
  await addTo(store, asUser(USER), additions(0, 100), NOW);
  const other = new DatabaseSync(file, { timeout: 0 });
  other.exec("begin immediate");
  const group = [1, 2, 3, 4].map((number) => addTo(store, asUser(USER), additions(100 * number, 100), NOW));
  const failed = group.map((attempt) => assert.rejects(attempt, isUnavailable(false)));
  assert.equal((await store.page(USER, { offset: 0, size: 1 })).total, 100);
  await Promise.all(failed);
  await assert.rejects(store.ready(), StoreUnavailable);
  other.close();
  await store.ready();
  assert.equal((await store.page(USER, { offset: 0, size: 1 })).total, 100);
  assert.ok((await addTo(store, asUser(USER), additions(100, 100), NOW)).every(({ kind }) => kind === "done"));
}

test("lock: held briefly → the write waits", async () => {
  const file = newFile();
  const store = await open(file);
  const other = new DatabaseSync(file);
  other.exec("begin immediate");
  const attempt = addTo(store, asUser(USER), additions(0, 1), NOW);
  await sleep(50);
  other.close();
  assert.ok((await attempt).every(({ kind }) => kind === "done"));
});

test("close: twice → no error", async () => {
  const store = await open(newFile());
  await Promise.all([store.close(), store.close()]);
});
