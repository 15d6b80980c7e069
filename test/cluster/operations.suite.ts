import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { asUser } from "../../src/accounts/caller.ts";
import { inspectDatabase } from "../../src/store/open.ts";
import { NodeWatch } from "../../src/store/postgres/nodes.ts";
import { NEWEST_VERSION } from "../../src/store/postgres/schema.ts";
import { fill, readAll } from "../../src/store/suites/archive.suite.ts";
import {
  addNode,
  createClusterDatabase,
  createDistributedDatabase,
  databaseOn,
  NODES,
  overAllNodes,
} from "../support/citus.ts";
import { ClusterLoad } from "../support/cluster-load.ts";
import { additionsOf, addTo } from "../support/lists.ts";
import { query } from "../support/postgres-cluster.ts";
import { NOW, open, total } from "../support/postgres-stores.ts";
import { run } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";

const [coordinator = "", first = "", second = ""] = NODES;
const findings = async (url: string) => (await inspectDatabase(url)).map(({ state, what }) => `${state}: ${what}`);
const EVEN = [
  "ok: The cluster has 2 nodes with data, all reachable",
  "ok: 4 shards are spread evenly over the nodes",
  "ok: All tables are distributed, with each user's rows on one node",
];

/** The columns of these tables. */
async function columnsOf(url: string, tables: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const all = new Map<string, string>();
  for (const table of tables) {
    const rows = await query(
      url,
      `select string_agg(column_name, ', ' order by column_name) as names from information_schema.columns
       where table_schema = 'earmark' and table_name = '${table}'`,
    );
    all.set(table, String(rows[0]?.["names"]));
  }
  return all;
}

async function rowsOf(url: string, columns: ReadonlyMap<string, string>): Promise<Record<string, string[]>> {
  const all: Record<string, string[]> = {};
  for (const [table, names] of columns) {
    const rows = await query(
      url,
      `select to_jsonb(one)::text as row from (select ${names} from earmark.${table}) as one`,
    );
    all[table] = rows.map(({ row }) => String(row)).sort();
  }
  return all;
}

test("upgrade: schema 10, distributed as it was then, eight processes at once → same rows, all distributed again", async () => {
  const url = await createClusterDatabase();
  await query(url, readFileSync(new URL("../fixtures/schemas/postgres-10.sql", import.meta.url), "utf8"));
  const tables = [
    "lists",
    "subscriptions",
    "removals",
    "gaps",
    "erasures",
    "accounts",
    "credentials",
    "devices",
    "sync_marks",
    "sync_clients",
    "feed_spellings",
    "episode_actions",
  ];
  for (const table of tables) {
    const together = table === "lists" ? "" : ", colocate_with => 'earmark.lists'";
    await query(url, `select create_distributed_table('earmark.${table}', 'user_id'${together})`);
  }
  const others = { identities: "key", limits: "key", credential_users: "hash", podcasts: "feed", artwork: "feed" };
  for (const [table, column] of Object.entries(others))
    await query(url, `select create_distributed_table('earmark.${table}', '${column}')`);
  // The others are renamed or dropped.
  const columns = await columnsOf(
    url,
    tables.filter((table) => table !== "gaps"),
  );
  const before = await rowsOf(url, columns);
  const stores = await Promise.all(
    Array.from({ length: 8 }, (_, index) => open(index < 4 ? url : overAllNodes(url), { connections: 1 })),
  );
  assert.deepEqual(await rowsOf(url, columns), before);
  assert.ok((before["credentials"] ?? []).length > 0);
  const [row] = await query(url, "select encode(hash, 'base64') as hash from earmark.credentials where kind = 'token'");
  const hash = Buffer.from(String(row?.["hash"]), "base64").toString("base64url");
  for (const store of stores) {
    await addTo(store, asUser(4_711), additionsOf(stores.indexOf(store)), NOW);
    assert.equal((await store.accounts.findCredential(hash))?.kind, "token");
  }
  assert.equal(await total(stores[0] ?? assert.fail(), 4_711), stores.length);
  const found = await findings(url);
  assert.ok(found.includes(`ok: The database schema is current (version ${NEWEST_VERSION})`));
  assert.deepEqual(found.slice(-3), EVEN);
});

test("open: all nodes, an empty database → the coordinator creates the tables, workers refuse to", async () => {
  const url = await createClusterDatabase();
  const worker = databaseOn(first, new URL(url).pathname.slice(1));
  await assert.rejects(open(worker), /coordinator is unavailable/);
  const store = await open(overAllNodes(url), { connections: 3 });
  await addTo(store, asUser(1), additionsOf(0, 3), NOW);
  assert.equal(await total(await open(url)), 3);
});

test("connections: several nodes → spread over them", async () => {
  const url = await createDistributedDatabase();
  const name = new URL(url).pathname.slice(1);
  const store = await open(overAllNodes(url), { connections: 9 });
  await Promise.all(Array.from({ length: 50 }, (_, user) => addTo(store, asUser(user + 1), additionsOf(0, 3), NOW)));
  for (const node of NODES) {
    const rows = await query(
      node,
      `select 1 from pg_stat_activity where datname = '${name}' and application_name = 'earmark'`,
    );
    // One more for the ping.
    assert.ok(rows.length === 3 || rows.length === 4, `${rows.length} connections to ${node}`);
  }
});

test("nodes: users → the ones that have their rows", async () => {
  const url = await createDistributedDatabase();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  after(() => client.end());
  const watch = await NodeWatch.start(client, { query: async () => [], pending: () => [] });
  const users = Array.from({ length: 50 }, (_, index) => (index + 1) * 7_919);
  const nodes = await Promise.all(
    users.map(async (user) => {
      const { rows } = await client.query(
        `select nodename || ':' || nodeport as node from pg_dist_placement join pg_dist_node using (groupid)
         where shardid = get_shard_id_for_distribution_column('earmark.lists', $1::bigint)`,
        [user],
      );
      return rows[0]?.node;
    }),
  );
  assert.deepEqual(
    users.map((user) => watch?.nodeOf(user)),
    nodes,
  );
  assert.equal(new Set(nodes).size, 2);
  watch?.close();
});

test("doctor: tables not distributed, a node without shards → warnings", async () => {
  const url = await createClusterDatabase([coordinator, first]);
  assert.equal(
    (await findings(url)).some((line) => line.includes("cluster")),
    false,
  );
  const { code, stderr } = await run(["migrate", "--distribute"], { DATABASE_URL: url });
  assert.equal(code, 0);
  assert.match(stderr, /^Distributed at /);
  assert.match((await run(["migrate", "--distribute"], { DATABASE_URL: url })).stderr, /already distributed/);
  await query(url, "select undistribute_table('earmark.devices')");
  const name = new URL(url).pathname.slice(1);
  await query(second, `create database ${name}`);
  await query(databaseOn(second, name), "create extension citus");
  await addNode(url, second);
  const nodes = [first, second].map((node) => new URL(node).host);
  assert.deepEqual((await findings(url)).slice(-2), [
    `warning: 4 shards are spread unevenly over the nodes: ${nodes[0]} has 4, ${nodes[1]} has 0`,
    "warning: Tables are not distributed as expected: devices",
  ]);
  const { stdout: report } = await run(["doctor"], { DATABASE_URL: url });
  assert.match(report, /citus_rebalance_start/);
  await run(["migrate", "--distribute"], { DATABASE_URL: url });
  assert.equal((await findings(url)).at(-1), EVEN.at(-1));
});

test("copy: a file into a cluster and out again → the same rows", async () => {
  const folder = temporaryFolder();
  const [from, back] = [`file:${folder}/from.db`, `file:${folder}/back.db`];
  await fill(from, 50);
  const url = await createDistributedDatabase();
  for (const [source, target] of [
    [from, url],
    [url, back],
  ] as const) {
    const { code, stderr } = await run(["copy", "--from", source, "--to", target]);
    assert.equal(code, 0, stderr);
  }
  assert.deepEqual(await readAll(back), await readAll(from));
  assert.deepEqual((await findings(url)).slice(-3), EVEN);
});

test("rebalance: a node is added while users write → nothing confirmed is lost, every rejection is a whole 503", async () => {
  const url = await createClusterDatabase([coordinator, first]);
  await run(["migrate", "--distribute"], { DATABASE_URL: url });
  const load = await ClusterLoad.start(url, url, 6);
  const name = new URL(url).pathname.slice(1);
  await query(second, `create database ${name}`);
  await query(databaseOn(second, name), "create extension citus");
  await addNode(url, second);
  const started = performance.now();
  await query(url, "select citus_rebalance_start(shard_transfer_mode => 'force_logical')");
  for (;;) {
    const jobs = await query(url, "select state from citus_rebalance_status()");
    if (jobs.every(({ state }) => state === "finished")) break;
    assert.ok(
      jobs.every(({ state }) => state !== "failed"),
      JSON.stringify(jobs),
    );
    await sleep(100);
  }
  const ended = performance.now();
  const seen = load.experience(() => true, started, ended);
  const { acknowledged, refused, violations } = await load.finish();
  assert.deepEqual(violations, []);
  assert.deepEqual((await findings(url)).slice(-3), EVEN);
  process.stdout.write(
    `measured: rebalance of ${Math.round(ended - started)} ms: ${seen.requests} requests, ${seen.refused} refused, slowest ${seen.slowestMs} ms; ${acknowledged} confirmed, 0 lost, ${refused} refusals in all\n`,
  );
});
