import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedPostgres } from "../../../test/support/postgres.ts";
import { databaseOf } from "../../../test/support/postgres-stores.ts";
import { engineFor } from "../open.ts";
import { DISTRIBUTED_TABLES, REFERENCE_TABLES } from "./cluster.ts";

const server = await sharedPostgres();
const url = await server.database();
await engineFor(url).migrate(url, { distribute: false });
const query = (sql: string) => server.query(sql, databaseOf(url));

test("cluster: every table → distributed or copied to all nodes", async () => {
  const rows = await query(
    "select relname as name from pg_class where relkind = 'r' and relnamespace = 'earmark'::regnamespace",
  );
  const names = rows.map(({ name }) => String(name)).sort();
  assert.deepEqual([...DISTRIBUTED_TABLES.map(([name]) => name), ...REFERENCE_TABLES].sort(), names);
});

test("cluster: unique indexes of a distributed table → have its distribution column", async () => {
  const rows = await query(
    `select relname as name, (select array_agg(attname::text) from pg_attribute where attrelid = indexrelid) as columns
     from pg_index join pg_class on pg_class.oid = indrelid
     where indisunique and relnamespace = 'earmark'::regnamespace`,
  );
  const columnOf = new Map(DISTRIBUTED_TABLES);
  const distributed = rows.filter(({ name }) => columnOf.has(String(name)));
  assert.ok(distributed.length >= DISTRIBUTED_TABLES.length);
  for (const { name, columns } of distributed)
    assert.ok((columns as string[]).includes(columnOf.get(String(name)) ?? ""), `${name}: ${columns}`);
});
