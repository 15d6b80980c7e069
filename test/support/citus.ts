import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { engineFor } from "../../src/store/open.ts";
import { codeOf } from "../../src/store/postgres/connection.ts";
import { query, setNewEpoch } from "./postgres-cluster.ts";

/** URLs of the nodes of a running Citus cluster, the coordinator first. Empty without TEST_CITUS_URLS. */
export const NODES = (process.env["TEST_CITUS_URLS"] ?? "").split(",").filter((url) => url !== "");

/** Names of databases begin with this, so that the run that set it can drop them. */
const PREFIX = process.env["TEST_CITUS_PREFIX"] ?? "test_";

/** Few, because most of the time goes into creating them. */
const SHARDS = 4;

/** PostgreSQL's code for a database that is in use. */
const OBJECT_IN_USE = "55006";
const DROP_TRIES = 10;

export function databaseOn(node: string, name: string): string {
  return Object.assign(new URL(node), { pathname: `/${name}` }).href;
}

/** A URL that names all nodes, so that connections are spread over them. */
export function overAllNodes(url: string): string {
  const { username, pathname } = new URL(url);
  return `postgres://${username}@${NODES.map((node) => new URL(node).host)}${pathname}?load_balance_hosts=random`;
}

function newName(): string {
  return `${PREFIX}${randomBytes(6).toString("hex")}`;
}

/** Creates a database on every node and connects them. Returns its URL on the coordinator. */
export async function createClusterDatabase(nodes = NODES): Promise<string> {
  const name = newName();
  await Promise.all(
    nodes.map(async (node) => {
      await query(node, `create database ${name}`);
      await query(databaseOn(node, name), "create extension citus");
    }),
  );
  const [coordinator = "", ...workers] = nodes;
  const url = databaseOn(coordinator, name);
  await query(url, `alter database ${name} set citus.shard_count = ${SHARDS}`);
  const { hostname, port } = new URL(coordinator);
  await query(url, `select citus_set_coordinator_host('${hostname}', ${port})`);
  for (const worker of workers) await addNode(url, worker);
  return url;
}

export async function addNode(url: string, worker: string): Promise<void> {
  const { hostname, port } = new URL(worker);
  await query(url, `select citus_add_node('${hostname}', ${port})`);
}

/** The same, with Earmark's tables distributed over the nodes. A copy of TEST_CITUS_TEMPLATE, if set, is there sooner. */
export async function createDistributedDatabase(): Promise<string> {
  const template = process.env["TEST_CITUS_TEMPLATE"];
  if (template !== undefined) {
    const name = newName();
    await Promise.all(NODES.map((node) => query(node, `create database ${name} template ${template}`)));
    return setNewEpoch(databaseOn(NODES[0] ?? "", name));
  }
  const url = await createClusterDatabase();
  await engineFor(url).migrate(url, { distribute: true });
  return url;
}

/** A distributed database to copy, which nobody can connect to. */
export async function createTemplate(): Promise<string> {
  const name = new URL(await createDistributedDatabase()).pathname.slice(1);
  for (const node of NODES) {
    await query(node, `alter database ${name} allow_connections false`);
    await query(node, `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${name}'`);
  }
  return name;
}

/** Drops the databases whose names begin with `prefix`. */
export async function dropDatabases(prefix: string): Promise<void> {
  for (const node of NODES) {
    const rows = await query(node, `select datname as name from pg_database where starts_with(datname, '${prefix}')`);
    for (const { name } of rows) await dropDatabase(node, String(name));
  }
}

/** On a busy machine, its last connections and transactions of several nodes may take longer to end than PostgreSQL waits. */
async function dropDatabase(node: string, name: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await query(node, `drop database ${name} with (force)`);
      return;
    } catch (error) {
      if (codeOf(error) !== OBJECT_IN_USE || tries === DROP_TRIES) throw error;
      await sleep(1_000);
    }
  }
}
