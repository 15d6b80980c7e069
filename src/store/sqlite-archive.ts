import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { StartFailure } from "./opening.ts";
import { claimFile, createSchema, syncFile } from "./sqlite-file.ts";
import { type Archive, keyBeforeAll, type Row, type Source, TABLES, type Table, type Target } from "./tables.ts";

const ROWS = 5_000;

export function openSqliteArchive(path: string): Archive {
  return {
    async read() {
      if (!existsSync(path)) throw new StartFailure(`There is no database at ${path}.`);
      const release = claimFile(path);
      return readFile(new DatabaseSync(path, { readOnly: true }), release);
    },
    async replaceEmpty() {
      const release = claimFile(path);
      try {
        const present = readFile(new DatabaseSync(path, { readOnly: true }), () => undefined);
        const counts = await Promise.all(TABLES.map((table) => present.count(table)));
        await present.close();
        if (counts.some((count) => count > 0))
          throw new StartFailure(`${path} is not empty; nothing was copied. Name another file.`);
        return buildFile(path, release);
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}

function readFile(database: DatabaseSync, release: () => void): Source {
  return {
    async count({ name }) {
      return Number(database.prepare(`select count(*) as count from ${name}`).get()?.["count"]);
    },
    async *rows(table) {
      const columns = table.columns.map(([name]) => name);
      const key = columns.slice(0, table.keyColumns);
      const order = key.join(", ");
      const next = database.prepare(
        `select ${columns.join(", ")} from ${table.name} where (${order}) > (${key.map(() => "?").join(", ")}) order by ${order} limit ${ROWS}`,
      );
      next.setReturnArrays(true);
      let last = keyBeforeAll(table);
      for (;;) {
        const rows = (next.all(...toSqlite(table, last)) as unknown as Row[]).map((row) => fromSqlite(table, row));
        if (rows.length === 0) return;
        yield rows;
        last = rows.at(-1)?.slice(0, table.keyColumns) ?? [];
      }
    },
    async close() {
      database.close();
      release();
    },
  };
}

/** The rows go to a file beside it, which takes the place of the empty one when it is whole and on the disk. */
function buildFile(path: string, release: () => void): Target {
  const unfinished = `${path}-copying`;
  rmSync(unfinished, { force: true });
  const database = new DatabaseSync(unfinished);
  createSchema(database);
  database.exec("pragma synchronous = off");
  let isFinished = false;
  const source = readFile(database, () => undefined);
  return {
    ...source,
    async write(table, rows) {
      const insert = database.prepare(
        `insert into ${table.name} (${table.columns.map(([name]) => name).join(", ")}) values (${table.columns.map(() => "?").join(", ")})`,
      );
      database.exec("begin");
      for (const row of rows) insert.run(...toSqlite(table, row));
      database.exec("commit");
    },
    async finish() {
      database.close();
      isFinished = true;
      syncFile(unfinished);
      // The empty one was opened before: what it left beside it would be taken for the new one's.
      for (const rest of ["-wal", "-shm"]) rmSync(path + rest, { force: true });
      renameSync(unfinished, path);
      syncFile(dirname(path));
      release();
    },
    async close() {
      if (isFinished) return;
      database.close();
      rmSync(unfinished, { force: true });
      release();
    },
  };
}

function fromSqlite(table: Table, row: Row): Row {
  return row.map((value, index) =>
    table.columns[index]?.[1] === "key" ? Buffer.from(value as Uint8Array).toString("hex") : value,
  );
}

function toSqlite(table: Table, row: Row): SQLInputValue[] {
  return row.map((value, index) => (table.columns[index]?.[1] === "key" ? Buffer.from(String(value), "hex") : value));
}
