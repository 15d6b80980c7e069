import { chmodSync, copyFileSync, existsSync, linkSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { UserError } from "../../util/user-error.ts";
import {
  type Archive,
  keyBeforeAll,
  type Row,
  type Source,
  TABLES,
  type Table,
  type Target,
} from "../shared/tables.ts";
import { claimAndMigrate, claimPath, RESTORING, realPath, refuseForeignFile, syncFile } from "./file.ts";
import { migrateSchema } from "./schema.ts";

const ROWS_PER_QUERY = 5_000;

export function openSqliteArchive(path: string): Archive {
  return {
    async read() {
      if (!existsSync(path)) throw new UserError(`No database at ${path}.`);
      const release = claimAndMigrate(path);
      return createSource(new DatabaseSync(path, { readOnly: true }), release);
    },
    async openEmpty() {
      const release = claimAndMigrate(path);
      try {
        const existing = createSource(new DatabaseSync(path, { readOnly: true }), () => undefined);
        const counts = await Promise.all(TABLES.map((table) => existing.count(table)));
        await existing.close();
        if (counts.some((count) => count > 0))
          throw new UserError(`${path} is not empty; nothing was copied. Choose another file.`);
        return buildFile(path, `${path}-copying`, release);
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}

/**
 * Replaces a database that no server has open, whatever its version and condition, and keeps the old one under the name
 * that `nameOldDatabase` returns. At any time the path is either the old database or the new one.
 */
export function replaceFile(given: string, nameOldDatabase: (path: string) => string): Target {
  refuseForeignFile(given);
  const release = claimPath(given);
  const path = realPath(given);
  try {
    return buildFile(path, path + RESTORING, release, () => {
      if (existsSync(path)) keepFile(path, nameOldDatabase(path));
    });
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Durably links a database under a second name. Its write-ahead log is linked first, because SQLite might delete it, and
 * kept only if the database is damaged and the log cannot be merged.
 */
function keepFile(path: string, kept: string): void {
  if (existsSync(`${path}-wal`)) linkFile(`${path}-wal`, `${kept}-wal`);
  try {
    makeSingleFile(path);
    rmSync(`${kept}-wal`, { force: true });
  } catch {
    // Damaged: its log cannot be merged.
  }
  linkFile(path, kept);
  syncFile(dirname(path));
}

function linkFile(path: string, other: string): void {
  try {
    linkSync(path, other);
  } catch {
    // The file system has no hard links.
    copyFileSync(path, other);
    syncFile(other);
  }
}

/** Merges the write-ahead log into the database, so that it is a single file. */
export function makeSingleFile(path: string): void {
  const database = new DatabaseSync(path);
  try {
    database.exec("pragma wal_checkpoint(truncate); pragma journal_mode = delete");
  } finally {
    database.close();
  }
}

export function createSource(database: DatabaseSync, release: () => void): Source {
  return {
    async count({ name }) {
      return Number(database.prepare(`select count(*) as count from ${name}`).get()?.["count"]);
    },
    async *rows(table) {
      const columns = table.columns.map(([name]) => name);
      const key = columns.slice(0, table.keyColumns);
      const order = key.join(", ");
      const next = database.prepare(
        `select ${columns.join(", ")} from ${table.name} where (${order}) > (${key.map(() => "?").join(", ")}) order by ${order} limit ${ROWS_PER_QUERY}`,
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

/** Writes the rows to another file, which replaces the one at the path when it is complete and durable. */
function buildFile(path: string, unfinished: string, release: () => void, keep?: () => void): Target {
  for (const suffix of ["", "-journal"]) rmSync(unfinished + suffix, { force: true });
  const database = new DatabaseSync(unfinished);
  chmodSync(unfinished, 0o600);
  migrateSchema(database);
  database.exec("pragma synchronous = off");
  let isFinished = false;
  const source = createSource(database, () => undefined);
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
      database.exec(`insert into subscribers
        select feed, user_id from subscriptions where feed in (select feed from podcasts) order by feed, user_id`);
      database.close();
      isFinished = true;
      syncFile(unfinished);
      keep?.();
      // SQLite would apply the old database's log to the new one.
      for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
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
