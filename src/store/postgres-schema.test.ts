import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection } from "./postgres-connection.ts";
import { distribute } from "./postgres-schema.ts";

/** A fake cluster with these distributed tables, and the tables it is asked to distribute. */
function cluster(...spread: readonly string[]): { connection: Connection; told: string[] } {
  const told: string[] = [];
  const query = async (sql: string) => {
    if (sql.includes("pg_extension")) return { rows: sql.includes("where extname = 'citus'") ? [{}] : [] };
    if (sql.includes("pg_dist_partition")) return { rows: spread.map((name) => ({ name: `earmark.${name}` })) };
    told.push(sql);
    return { rows: [] };
  };
  return { connection: { query } as unknown as Connection, told };
}

test("distribute: new tables → by user and colocated, the others by their key", async () => {
  const { connection, told } = cluster();
  const together = ", colocate_with => 'earmark.lists'";
  const tables = [
    ["lists", "user_id", ""],
    ["subscriptions", "user_id", together],
    ["removals", "user_id", together],
    ["gaps", "user_id", together],
    ["erasures", "user_id", together],
    ["accounts", "user_id", together],
    ["identities", "key", ""],
    ["credentials", "hash", ""],
    ["limits", "key", ""],
    ["devices", "user_id", together],
    ["sync_marks", "user_id", together],
    ["sync_clients", "user_id", together],
    ["feed_spellings", "user_id", together],
    ["episode_actions", "user_id", together],
    ["podcasts", "feed", ""],
    ["artwork", "feed", ""],
  ];
  assert.deepEqual(
    await distribute(connection),
    tables.map(([name]) => name),
  );
  assert.deepEqual(
    told,
    tables.map(([name, by, where]) => `select create_distributed_table('earmark.${name}', '${by}'${where})`),
  );
});

test("distribute: a table that is already distributed → skipped", async () => {
  const { connection, told } = cluster(
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
    "podcasts",
    "artwork",
  );
  assert.deepEqual(await distribute(connection), ["identities", "limits"]);
  assert.equal(told.length, 2);
});
