import { UserError } from "../../util/user-error.ts";
import type { Finding } from "../shared/options.ts";
import { TABLES } from "../shared/tables.ts";
import type { Connection } from "./connection.ts";

/** The tables that a cluster distributes, and the column that decides which node has a row. */
export const DISTRIBUTED_TABLES: readonly (readonly [table: string, column: string])[] = [
  ...TABLES.map(({ name, distributedBy }) => [name, distributedBy] as const),
  ["rate_limits", "key"],
  ["leases", "key"],
  ["credential_users", "hash"],
  ["commits", "user_id"],
  ["artwork", "feed"],
];
/** Small tables of which every node has a copy. */
export const REFERENCE_TABLES = ["schema", "epoch", "last_backup"];

interface ClusterTable {
  readonly name: string;
  /** Undefined for a table that every node has a copy of. */
  readonly column: string | undefined;
  /** Tables with the same number have equal keys on the same node. */
  readonly colocation: number;
}

/** Distributes the tables over the nodes of a Citus cluster, the rows of one user together. Safe to repeat. */
export async function distribute(connection: Connection): Promise<readonly string[]> {
  const tables = await readTables(connection);
  if (tables === undefined) {
    throw new UserError(
      "This database has no Citus extension, so its tables stay on one server. To distribute them, add it on every node (create extension citus) and try again.",
    );
  }
  const changed: string[] = [];
  for (const [name, column] of DISTRIBUTED_TABLES) {
    const existing = tables.find((table) => table.name === name);
    if (existing?.column === column) continue;
    const colocation = column === "user_id" && name !== "lists" ? ", colocate_with => 'earmark.lists'" : "";
    const command = existing === undefined ? "create_distributed_table" : "alter_distributed_table";
    await connection.query(`select ${command}('earmark.${name}', '${column}'${colocation})`);
    changed.push(name);
  }
  for (const name of REFERENCE_TABLES.filter((copied) => !tables.some((table) => table.name === copied))) {
    await connection.query(`select create_reference_table('earmark.${name}')`);
    changed.push(name);
  }
  return changed;
}

/** Distributes new tables of a database whose lists are distributed. */
export async function distributeNewTables(connection: Connection): Promise<void> {
  const tables = await readTables(connection);
  if (tables?.some(({ name }) => name === "lists")) await distribute(connection);
}

/** In a cluster, only the coordinator can create tables; a worker would create one of its own. */
export async function requireCoordinator(connection: Connection): Promise<void> {
  if (!(await hasCitus(connection))) return;
  const { rows } = await connection.query("select citus_is_coordinator() as coordinator");
  if (rows[0]?.coordinator !== true) throw new Error("the cluster's coordinator is unavailable");
}

async function hasCitus(connection: Connection): Promise<boolean> {
  return (await connection.query("select 1 from pg_extension where extname = 'citus'")).rows.length > 0;
}

/** The distributed tables; undefined without Citus. */
async function readTables(connection: Connection): Promise<readonly ClusterTable[] | undefined> {
  if (!(await hasCitus(connection))) return undefined;
  const { rows } = await connection.query<{ name: string; column: string | null; colocation: number }>(
    `select relname as name, column_to_column_name(logicalrelid, partkey) as column, colocationid as colocation
     from pg_dist_partition join pg_class on pg_class.oid = logicalrelid
     where relnamespace = 'earmark'::regnamespace`,
  );
  return rows.map(({ column, ...table }) => ({ ...table, column: column ?? undefined }));
}

/** Findings about the cluster; none if the tables are not distributed. */
export async function inspectCluster(connection: Connection): Promise<readonly Finding[]> {
  const tables = await readTables(connection);
  const lists = tables?.find(({ name }) => name === "lists");
  if (tables === undefined || lists === undefined) return [];
  const { rows: nodes } = await connection.query<NodeRow>(
    `select nodename || ':' || nodeport as name, isactive as active, metadatasynced as synced,
       (select count(*)::int from pg_dist_placement as p join pg_dist_shard as s using (shardid)
        where p.groupid = n.groupid and s.logicalrelid = 'earmark.lists'::regclass) as shards
     from pg_dist_node as n where noderole = 'primary' and (shouldhaveshards or not isactive) order by nodeid`,
  );
  const { rows: unreachable } = await connection.query<{ name: string }>(
    `select distinct to_nodename || ':' || to_nodeport as name from citus_check_cluster_node_health()
     where result is not true order by 1`,
  );
  return [
    inspectNodes(
      nodes,
      unreachable.map(({ name }) => name),
    ),
    inspectPlacement(nodes),
    inspectTables(tables, lists.colocation),
  ];
}

interface NodeRow {
  readonly name: string;
  readonly active: boolean;
  /** Whether it has the current metadata of Citus; only then can Earmark connect to it directly. */
  readonly synced: boolean;
  readonly shards: number;
}

function inspectNodes(nodes: readonly NodeRow[], unreachable: readonly string[]): Finding {
  const down = [...new Set([...unreachable, ...nodes.filter(({ active }) => !active).map(({ name }) => name)])];
  if (down.length > 0) {
    return {
      state: "error",
      what: `Nodes of the cluster are unreachable: ${down.join(", ")}`,
      advice: "Bring the nodes back up; until then, users whose lists are on them get errors.",
    };
  }
  const unsynced = nodes.filter(({ synced }) => !synced).map(({ name }) => name);
  if (unsynced.length === 0)
    return { state: "ok", what: `The cluster has ${nodes.length} nodes with data, all reachable` };
  return {
    state: "warning",
    what: `Nodes of the cluster have outdated metadata: ${unsynced.join(", ")}`,
    advice: "Run `select start_metadata_sync_to_all_nodes()` on the coordinator.",
  };
}

/** With evenly sized shards, the node with the most of them fills up first. */
function inspectPlacement(nodes: readonly NodeRow[]): Finding {
  const total = nodes.reduce((sum, { shards }) => sum + shards, 0);
  const skewed = nodes.some(({ shards }) => Math.abs(shards - total / nodes.length) > 1);
  const counts = nodes.map(({ name, shards }) => `${name} has ${shards}`).join(", ");
  if (!skewed) return { state: "ok", what: `${total} shards are spread evenly over the nodes` };
  return {
    state: "warning",
    what: `${total} shards are spread unevenly over the nodes: ${counts}`,
    advice: "Run `select citus_rebalance_start()` on the coordinator.",
  };
}

function inspectTables(tables: readonly ClusterTable[], colocation: number): Finding {
  const expected = [...DISTRIBUTED_TABLES, ...REFERENCE_TABLES.map((name) => [name, undefined] as const)];
  const wrong = expected.filter(([name, column]) => {
    const table = tables.find((each) => each.name === name);
    return table?.column !== column || table === undefined || (column === "user_id" && table.colocation !== colocation);
  });
  if (wrong.length === 0) return { state: "ok", what: "All tables are distributed, with each user's rows on one node" };
  return {
    state: "warning",
    what: `Tables are not distributed as expected: ${wrong.map(([name]) => name).join(", ")}`,
    advice: "Run `earmark migrate --distribute`.",
  };
}
