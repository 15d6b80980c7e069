import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { additionsOf as additions, addTo, statusOf } from "../../../test/support/lists.ts";
import { CONNECT_TIMEOUT, sharedPostgres, startPostgres } from "../../../test/support/postgres.ts";
import {
  databaseOf,
  isKnownFailure,
  isUnavailable,
  NOW,
  open,
  openOverProxy,
  total,
  USER,
} from "../../../test/support/postgres-stores.ts";
import { asUser } from "../../accounts/caller.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { openStore } from "../open.ts";

const server = await sharedPostgres();
const SHORT_TIMEOUT = "connect_timeout=1";

/** Opens `count` connections, so that few or none are left for the store. */
async function occupy(url: string, count: number): Promise<pg.Client[]> {
  const hogs = Array.from({ length: count }, () => new pg.Client({ connectionString: url }));
  await Promise.all(hogs.map((hog) => hog.connect()));
  return hogs;
}

test("outage: server unreachable → fails, and recovers within two seconds", async () => {
  const { store, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0), NOW);
  proxy.mode = "refuse";
  await Promise.all([
    assert.rejects(addTo(store, asUser(USER), additions(1), NOW), isKnownFailure),
    assert.rejects(store.page(USER, { offset: 0, size: 1 }), isUnavailable),
    assert.rejects(store.ready(), isUnavailable),
  ]);
  proxy.mode = "pass";
  await sleep(1_000);
  assert.equal(statusOf((await addTo(store, asUser(USER), additions(1), NOW))[0]), "added");
  await store.ready();
});

test("outage: server silent → fails", async () => {
  const { store, proxy } = await openOverProxy(server, SHORT_TIMEOUT);
  await addTo(store, asUser(USER), additions(0), NOW);
  proxy.mode = "stall";
  await assert.rejects(store.page(USER, { offset: 0, size: 1 }), isUnavailable);
  proxy.mode = "refuse";
  proxy.mode = "pass";
  assert.equal(await total(store), 1);
});

test("outage: 300 ms → not noticed", async () => {
  const { store, proxy } = await openOverProxy(server);
  await addTo(store, asUser(USER), additions(0), NOW);
  proxy.mode = "refuse";
  setTimeout(() => (proxy.mode = "pass"), 300);
  assert.equal(statusOf((await addTo(store, asUser(USER), additions(1), NOW))[0]), "added");
  proxy.mode = "refuse";
  setTimeout(() => (proxy.mode = "pass"), 300);
  assert.equal(await total(store), 2);
});

// The tests from here on stop it or use all its connections.
const own = await startPostgres(["max_connections=10", "superuser_reserved_connections=0"]);
for (const mode of ["fast", "immediate"] as const) {
  test(`outage: restart (${mode}) while clients write → nothing confirmed is lost`, async () => {
    const store = await open(await own.migratedDatabase());
    const acknowledged = new Set<string>();
    let next = 0;
    let stopping = false;
    const client = async (user: number) => {
      while (!stopping) {
        const batch = additions(next, 20);
        next += 20;
        try {
          const outcomes = await addTo(store, asUser(user), batch, NOW);
          for (const outcome of outcomes) {
            assert.equal(statusOf(outcome), "added");
            if (outcome.kind === "done") acknowledged.add(`${user} ${outcome.subscription.id}`);
          }
        } catch (error) {
          assert.ok(error instanceof StoreUnavailable, String(error));
        }
      }
    };
    const clients = [1, 2, 3, 4].map(client);
    try {
      await sleep(300);
      await own.stop(mode);
      await own.start();
      const [before, start] = [acknowledged.size, performance.now()];
      while (acknowledged.size === before && performance.now() < start + 2_000) await sleep(10);
      assert.ok(acknowledged.size > before, "recovered within two seconds");
    } finally {
      stopping = true;
      await Promise.all(clients);
    }
    const found = new Set<string>();
    for (const user of [1, 2, 3, 4]) {
      for (const { id } of (await store.page(user, { offset: 0, size: 1_000_000 })).items) found.add(`${user} ${id}`);
    }
    assert.deepEqual(
      [...acknowledged].filter((key) => !found.has(key)),
      [],
    );
    await store.close();
  });
}

test("outage: backends killed → nothing lost, nothing done twice", async () => {
  const url = await server.migratedDatabase();
  const store = await open(url);
  const name = databaseOf(url);
  const kill = () => server.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  const statuses: (string | undefined)[] = [];
  // Once per five writes, while one of them is running or between two.
  for (let first = 0; first < 150; first += 5) {
    const killed = kill();
    for (let number = first; number < first + 5; number += 1)
      statuses.push(statusOf((await addTo(store, asUser(USER), additions(number), NOW))[0]));
    await killed;
  }
  assert.deepEqual(new Set(statuses), new Set(["added"]));
  assert.equal(await total(store), 150);
});

test("connections: none free at start → waits, and reports it once", async () => {
  const url = await own.migratedDatabase();
  const hogs = await occupy(url, 10);
  let waited = 0;
  const starved = openStore(url, { connections: 1, onWaiting: () => (waited += 1) });
  while (waited === 0) await sleep(10);
  await sleep(300);
  await Promise.all(hogs.map((hog) => hog.end()));
  const later = await starved;
  assert.equal(waited, 1, "the wait is reported once");
  assert.equal(statusOf((await addTo(later, asUser(USER), additions(0), NOW))[0]), "added");
  await later.close();
});

test("failover: the standby is promoted → it is found", async () => {
  const url = await own.migratedDatabase();
  const standby = await own.standby();
  const name = databaseOf(url);
  const both = await open(
    `postgres://earmark@127.0.0.1:${standby.port},127.0.0.1:${own.port}/${name}?target_session_attrs=read-write`,
  );
  assert.equal(statusOf((await addTo(both, asUser(USER), additions(0), NOW))[0]), "added", "the standby is skipped");
  for (
    let tries = 0;
    tries < 100 && (await standby.query("select count(*)::int as n from earmark.subscriptions", name))[0]?.["n"] !== 1;
    tries += 1
  )
    await sleep(50);
  await own.stop("immediate");
  await standby.query("select pg_promote()");
  assert.equal(statusOf((await addTo(both, asUser(USER), additions(1), NOW))[0]), "added");
  assert.equal(await total(both), 2);
});

test("failover: the primary becomes read-only → writes fail, then recover", async () => {
  const url = await server.migratedDatabase();
  const name = databaseOf(url);
  const store = await open(url, { connections: 1 });
  await addTo(store, asUser(USER), additions(0), NOW);
  await server.query(`alter database ${name} set default_transaction_read_only = on`);
  await server.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  await assert.rejects(addTo(store, asUser(USER), additions(1), NOW), isKnownFailure);
  const adding = addTo(store, asUser(USER), additions(1), NOW);
  await sleep(100);
  await server.query(`alter database ${name} reset default_transaction_read_only`);
  assert.equal(statusOf((await adding)[0]), "added");
});

test("connections: all in use → a read waits, then fails", async () => {
  const url = (await server.migratedDatabase()).replace(CONNECT_TIMEOUT, SHORT_TIMEOUT);
  const store = await open(url, { connections: 1 });
  await addTo(store, asUser(USER), additions(0), NOW);
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query("begin; lock table earmark.lists in access exclusive mode");
  const writing = assert.rejects(addTo(store, asUser(USER), additions(1), NOW), isUnavailable);
  await assert.rejects(total(store), isUnavailable);
  await writing;
  await blocker.query("rollback");
  await blocker.end();
  assert.equal(statusOf((await addTo(store, asUser(USER), additions(1), NOW))[0]), "added");
  assert.equal(await total(store), 2);
});

test("connections: all in use by reads of one user → another's reads and writes are next", async () => {
  const url = await server.migratedDatabase();
  const store = await open(url, { connections: 2 });
  for (const user of [1, 2]) await addTo(store, asUser(user), additions(0), NOW);
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query("begin; lock table earmark.lists in access exclusive mode");
  const order: string[] = [];
  const done = (name: string) => () => order.push(name);
  const reads = Array.from({ length: 30 }, () => total(store, 1).then(done("slow")));
  const others = [
    total(store, 2).then(done("page")),
    store.readChanges(2, { sequence: 0, removalsAfter: 0 }, 10).then(done("changes")),
    addTo(store, asUser(3), additions(0), NOW).then(done("add")),
  ];
  await blocker.query("rollback");
  await blocker.end();
  await Promise.all([...reads, ...others]);
  for (const name of ["page", "changes", "add"]) assert.ok(order.indexOf(name) < 20, order.join());
});

test("change: one user's list is locked → other users write", async () => {
  const url = await server.migratedDatabase();
  const store = await open(url, { connections: 2 });
  await addTo(store, asUser(1), additions(0), NOW);
  await addTo(store, asUser(2), additions(0), NOW);
  const blocker = new pg.Client({ connectionString: url });
  await blocker.connect();
  await blocker.query("begin; select 1 from earmark.lists where user_id = 1 for update");
  const held = Array.from({ length: 20 }, (_, index) => addTo(store, asUser(1), additions(10 + index), NOW));
  assert.equal(statusOf((await addTo(store, asUser(2), additions(1), NOW))[0]), "added");
  await blocker.query("rollback");
  await blocker.end();
  for (const outcomes of await Promise.all(held)) assert.equal(statusOf(outcomes[0]), "added");
});

test("change: two stores, serializable isolation → both succeed", async () => {
  const url = await server.migratedDatabase();
  await server.query(`alter database ${databaseOf(url)} set default_transaction_isolation = 'serializable'`);
  const [one, other] = [await open(url), await open(url)];
  const statuses: (string | undefined)[] = [];
  await Promise.all(
    [one, other].map(async (store, side) => {
      for (let number = 0; number < 40; number += 1)
        statuses.push(statusOf((await addTo(store, asUser(USER), additions(2 * number + side), NOW))[0]));
    }),
  );
  assert.deepEqual(new Set(statuses), new Set(["added"]));
  assert.equal(await total(one), 80);
});
