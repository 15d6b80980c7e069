import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedPostgres } from "../../../test/support/postgres.ts";
import { hashOf } from "./nodes.ts";

test("nodes: users → the hash by which PostgreSQL distributes them", async () => {
  const users = [0, 1, 2, 4_711, 2 ** 31, 2 ** 32 - 1, 2 ** 32 + 5, 123_456_789_012_345, 2 ** 52 + 77];
  const server = await sharedPostgres();
  const rows = await server.query(
    `select hashint8(id) as hash from unnest(array[${users}]::bigint[]) with ordinality as given (id, n) order by n`,
  );
  assert.deepEqual(
    users.map(hashOf),
    rows.map(({ hash }) => hash),
  );
});
