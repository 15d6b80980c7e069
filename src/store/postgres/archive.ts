import { UserError } from "../../util/user-error.ts";
import { displayNameOf } from "../shared/options.ts";
import {
  type Archive,
  keyBeforeAll,
  type Row,
  type Source,
  TABLES,
  type Table,
  type Target,
  type Value,
} from "../shared/tables.ts";
import { type Connection, Postgres } from "./connection.ts";
import { isSchemaCurrent, prepareDatabase, renewEpoch } from "./schema.ts";

const ROWS_PER_QUERY = 5_000;
const ARRAYS = { number: "bigint[]", text: "text[]", key: "uuid[]", bytes: "bytea[]" } as const;

export function openPostgresArchive(url: string): Archive {
  const name = displayNameOf(url);
  return {
    async read() {
      const { connection, close } = await begin(url, "begin isolation level repeatable read read only");
      if (await isSchemaCurrent(connection)) return createSource(connection, close);
      await close("rollback");
      throw new UserError(
        `The database at ${name} does not have the tables of this Earmark version. Check the URL; if the database is from an older version, set DATABASE_URL to it and run \`earmark migrate\` first.`,
      );
    },
    async openEmpty() {
      const postgres = new Postgres(url, 1, { hasLongTimeouts: true });
      await prepareDatabase(postgres, name).finally(() => postgres.close());
      const { connection, close } = await begin(url, "begin");
      const target = createSource(connection, close);
      // Concurrent writers wait until it is filled.
      await connection.query(
        `lock table ${TABLES.map((table) => `earmark.${table.name}`).join(", ")} in exclusive mode`,
      );
      const counts = [];
      for (const table of TABLES) counts.push(await target.count(table));
      if (counts.every((count) => count === 0)) return createTarget(target, connection, close);
      await close("rollback");
      throw new UserError(`The database at ${name} is not empty; nothing was copied. Choose another.`);
    },
  };
}

/** Begins a transaction on a new connection; `close` ends both. */
async function begin(
  url: string,
  statement: string,
): Promise<{ connection: Connection; close: (end: "commit" | "rollback") => Promise<void> }> {
  const postgres = new Postgres(url, 1, { hasLongTimeouts: true });
  const connection = await postgres.take();
  await connection.query(statement);
  let isOpen = true;
  const close = async (end: "commit" | "rollback") => {
    if (!isOpen) return;
    isOpen = false;
    try {
      await connection.query(end);
    } finally {
      connection.release();
      await postgres.close();
    }
  };
  return { connection, close };
}

function createSource(connection: Connection, close: (end: "rollback") => Promise<void>): Source {
  return {
    async count({ name }) {
      const { rows } = await connection.query(`select count(*) as count from earmark.${name}`);
      return Number(rows[0]?.count);
    },
    async *rows(table) {
      const columns = table.columns.map(([name]) => name);
      const key = columns.slice(0, table.keyColumns);
      const order = key.join(", ");
      let last = keyBeforeAll(table);
      for (;;) {
        const { rows } = await connection.query({
          text: `select ${columns.join(", ")} from earmark.${table.name}
                 where (${order}) > (${key.map((_, index) => `$${index + 1}`).join(", ")}) order by ${order} limit ${ROWS_PER_QUERY}`,
          values: [...last],
          rowMode: "array",
        });
        if (rows.length === 0) return;
        const values = (rows as Value[][]).map((row) => fromPostgres(table, row));
        yield values;
        last = values.at(-1)?.slice(0, table.keyColumns) ?? [];
      }
    },
    close: () => close("rollback"),
  };
}

function createTarget(
  source: Source,
  connection: Connection,
  close: (end: "commit" | "rollback") => Promise<void>,
): Target {
  return {
    ...source,
    async write(table, rows) {
      const columns = table.columns.map(([name]) => name).join(", ");
      const arrays = table.columns.map(([, kind], index) => `$${index + 1}::${ARRAYS[kind]}`).join(", ");
      // Copied rows were not written by any writer's transaction.
      const marked = table.name === "subscriptions" || table.name === "removals";
      await connection.query(
        `insert into earmark.${table.name} (${columns}${marked ? ", written_by" : ""})
         select *${marked ? ", 0" : ""} from unnest(${arrays})`,
        table.columns.map((_, index) => rows.map((row) => row[index])),
      );
      if (table.name === "credentials") {
        const valuesOf = (name: string) => {
          const index = table.columns.findIndex(([column]) => column === name);
          return rows.map((row) => row[index]);
        };
        await connection.query(
          "insert into earmark.credential_users (hash, user_id) select * from unnest($1::bytea[], $2::bigint[])",
          [valuesOf("hash"), valuesOf("user_id")],
        );
      }
    },
    async finish() {
      await renewEpoch(connection);
      await close("commit");
    },
  };
}

function fromPostgres(table: Table, row: readonly Value[]): Row {
  return row.map((value, index) => {
    const kind = table.columns[index]?.[1];
    if (value === null) return null;
    if (kind === "number") return Number(value);
    return kind === "key" ? String(value).replaceAll("-", "") : value;
  });
}
