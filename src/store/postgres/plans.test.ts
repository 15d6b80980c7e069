import assert from "node:assert/strict";
import { test } from "node:test";
import pg from "pg";
import { additionsOf, addTo } from "../../../test/support/lists.ts";
import { startPostgres } from "../../../test/support/postgres.ts";
import { databaseOf, open, USER } from "../../../test/support/postgres-stores.ts";
import { asUser } from "../../accounts/caller.ts";
import { AppSync } from "../../apps/sync.ts";
import { changesSince, positionAt } from "../../lists/changes.ts";
import type { Store } from "../shared/contract.ts";

// The tests decide when statistics are updated.
const server = await startPostgres(["autovacuum=off"]);
const LISTS = 20_000;
const LIST_LENGTH = 60_000;

test("plans: many lists and a long one → sequences and changes reuse a plan and never scan a whole table", async (t) => {
  const url = await server.database();
  const name = databaseOf(url);
  await (await open(url)).close();
  await server.query(`insert into earmark.lists select n + 1000, 1, 1 from generate_series(1, ${LISTS}) as n`, name);
  await server.query(`insert into earmark.lists values (${USER}, ${LIST_LENGTH}, ${LIST_LENGTH})`, name);
  await server.query(
    `insert into earmark.subscriptions (user_id, sequence, id, feed, subscribed_at, written_by, feed_url)
     select ${USER}, n, gen_random_uuid(), gen_random_uuid(), 0, 0, 'https://feeds.example/' || n
     from generate_series(1, ${LIST_LENGTH}) as n`,
    name,
  );
  await server.query("vacuum analyze earmark.lists", name);
  await server.query("vacuum analyze earmark.subscriptions", name);
  const read = async () => {
    const [row] = await server.query(
      `select sum(seq_scan) as scans, sum(seq_tup_read + idx_tup_fetch) as rows from pg_stat_user_tables
       where relname in ('lists', 'subscriptions', 'removals')`,
      name,
    );
    return { scans: Number(row?.["scans"]), rows: Number(row?.["rows"]) };
  };
  const before = await read();
  const queries = t.mock.method(pg.Client.prototype, "query").mock;
  const store = await open(url, { connections: 1 });
  const users = Array.from({ length: 200 }, (_, index) => 1_001 + index * 97);
  // Often enough for PostgreSQL to choose a plan that does not depend on the parameters.
  for (let round = 0; round < 10; round += 1) {
    assert.equal((await store.sequences(users)).filter((sequence) => sequence === 1).length, users.length);
    assert.equal((await changesSince(store, USER, positionAt(LIST_LENGTH - 100), 500))?.changed.length, 100);
    assert.equal((await changesSince(store, USER, positionAt(LIST_LENGTH), 500))?.changed.length, 0);
  }
  assert.ok(await reusesPlans(queries.calls.at(-1)?.this as pg.Client));
  await closeFully(store, name);
  const { scans, rows } = await read();
  assert.equal(scans - before.scans, 0);
  const count = rows - before.rows;
  assert.ok(count >= 200 && count < 10 * (200 + 100 + 20), `${count} rows read`);
});

/** Waits until the store's connections have ended: then they report their statistics, which may be after `close`. */
async function closeFully(store: Store, database: string): Promise<void> {
  await store.close();
  const others = `select pid from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`;
  while ((await server.query(others, database)).length > 0);
}

/** Whether every statement of the connection got a plan that does not depend on the parameters. */
async function reusesPlans(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query("select generic_plans from pg_prepared_statements");
  return rows.length > 0 && rows.every(({ generic_plans: count }) => Number(count) > 0);
}

test("plans: podcasts without subscribers are erased → never scans all subscriptions, or all of a popular feed", async () => {
  const url = await server.database();
  const name = databaseOf(url);
  const first = await open(url, { connections: 1 });
  const [popular, unused] = ["f".repeat(32), "e".repeat(32)];
  await server.query(
    `insert into earmark.subscriptions (user_id, sequence, id, feed, subscribed_at, written_by, feed_url)
     select n, 1, gen_random_uuid(), case when n % 2 = 0 then '${popular}' else gen_random_uuid() end, 0, 0, ''
     from generate_series(1, ${LIST_LENGTH}) as n`,
    name,
  );
  await server.query("vacuum analyze earmark.subscriptions", name);
  const feeds = await server.query(
    "select feed from earmark.subscriptions where user_id < 200 and user_id % 2 = 1",
    name,
  );
  const ids = [popular, unused, ...feeds.map(({ feed }) => String(feed))];
  await first.podcasts.create(
    ids.map((id) => ({ user: 1, id })),
    new Date(0),
  );
  await closeFully(first, name);
  const read = async () => {
    const [row] = await server.query(
      "select seq_scan as scans, idx_tup_fetch as rows from pg_stat_user_tables where relname = 'subscriptions'",
      name,
    );
    return { scans: Number(row?.["scans"]), rows: Number(row?.["rows"]) };
  };
  const before = await read();
  const store = await open(url, { connections: 1 });
  await store.podcasts.eraseUnused(new Date());
  await closeFully(store, name);
  const { scans, rows } = await read();
  assert.equal(scans - before.scans, 0);
  assert.ok(rows - before.rows < 2_000, `${rows - before.rows} rows read`);
  const left = await server.query("select feed from earmark.podcasts", name);
  assert.equal(left.length, ids.length - 1);
});

test("plans: statistics from before a user's first write → looking up many feeds or actions reads the list at most once", async () => {
  const url = await server.database();
  const name = databaseOf(url);
  const [batches, size] = [3, 2_000];
  const now = new Date();
  /** On one connection. */
  const write = async (user: number) => {
    const store = await open(url, { connections: 1 });
    const sync = new AppSync(store);
    for (let start = 0; start < batches * size; start += size) {
      await addTo(store, asUser(user), additionsOf(start, size), now);
      const actions = additionsOf(start, size).map(({ id, feedUrl }) => ({
        ...{ podcast: feedUrl, episode: `https://media.example/${id}`, guid: undefined, device: undefined },
        ...{ kind: "play" as const, actedAt: now, position: 1, started: 0, total: 9 },
      }));
      await sync.addActions(asUser(user), { key: "phone", device: "phone" }, actions, now);
      const keys = additionsOf(start, size).map(({ id }) => ({ kind: "id", id }) as const);
      assert.ok((await store.find(user, keys)).every((found) => found !== undefined));
    }
    await closeFully(store, name);
  };
  const read = async () => {
    const [row] = await server.query(
      `select sum(seq_tup_read + idx_tup_fetch) as rows from pg_stat_user_tables
       where relname in ('subscriptions', 'episode_actions')`,
      name,
    );
    return Number(row?.["rows"]);
  };
  await write(1);
  for (const table of ["subscriptions", "episode_actions"]) {
    await server.query(
      `create temp table copied as table earmark.${table};
       update copied set user_id = 2; insert into earmark.${table} table copied;
       update copied set user_id = 3; insert into earmark.${table} table copied`,
      name,
    );
    await server.query(`vacuum analyze earmark.${table}`, name);
  }
  await write(4);
  const before = await read();
  await write(4);
  const rows = (await read()) - before;
  assert.ok(rows < 10 * batches * batches * size, `${rows} rows read`);
});
