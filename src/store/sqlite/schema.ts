import { DatabaseSync } from "node:sqlite";
import { UserError } from "../../util/user-error.ts";
import { BASE_VERSION, refuseOldSchema } from "../shared/schema-version.ts";
import { BASE, MIGRATIONS } from "./migrations.ts";

/** "EARM", in the header of every Earmark database. */
export const APPLICATION_ID = 0x4541524d;

export const NEWEST_VERSION = BASE_VERSION + MIGRATIONS.length;

/** Throws if the file needs a newer or an older version of Earmark. */
export function readVersion(database: DatabaseSync, path: string): number {
  const version = readNumber(database, "pragma user_version");
  refuseOldSchema(version, path);
  if (version <= NEWEST_VERSION) return version;
  throw new UserError(
    `${path} was written by a newer Earmark (schema version ${version}; this Earmark supports up to ${NEWEST_VERSION}). It was not changed; install that version or a later one, or restore a pre-upgrade backup to a different file.`,
  );
}

/** Migrates a database from `version`, which is 0 if it is new, to `until`, which is 0 or at least BASE_VERSION. */
export function migrateSchema(database: DatabaseSync, version = 0, until = NEWEST_VERSION): void {
  // A new file still uses a rollback journal, so this is in the file itself before there is a write-ahead log.
  if (version === 0) database.exec(`pragma application_id = ${APPLICATION_ID}`);
  for (const [index, step] of [BASE, ...MIGRATIONS].entries()) {
    const reached = BASE_VERSION + index;
    if (reached > version && reached <= until)
      database.exec(`begin immediate; ${step}; pragma user_version = ${reached}; commit`);
  }
}

export function readEpoch(database: DatabaseSync): Uint8Array {
  return database.prepare("select value from epoch").get()?.["value"] as Uint8Array;
}

/** To be called when the history of the lists may have been replaced: clients must read them again. */
export function renewEpoch(path: string): void {
  const database = new DatabaseSync(path);
  try {
    database.exec("pragma synchronous = full; insert or replace into epoch values (1, randomblob(8))");
  } finally {
    database.close();
  }
}

export function isSchemaCurrent(database: DatabaseSync): boolean {
  return readNumber(database, "pragma user_version") === NEWEST_VERSION;
}

/** A write without effect; throws if the database is not writable. */
export function touch(database: DatabaseSync): void {
  database.exec(`pragma user_version = ${NEWEST_VERSION}`);
}

/** Tables that SQLite creates for its query planner. */
const STATISTICS = [
  ["table", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"],
  ["table", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"],
].map((entry) => entry.join("\n"));

/** A text for each table, index, trigger and view: type, name and SQL, each on its own line. */
function readSchema(database: DatabaseSync): string[] {
  const entries = database.prepare("select type, name, sql from sqlite_schema").all();
  return entries.map(({ type, name, sql }) => [type, name, String(sql).replaceAll(/\s+/g, " ")].join("\n"));
}

/** The first difference from the expected schema, if any. A foreign trigger, for example, could change data unnoticed. */
export function findForeignSchema(database: DatabaseSync, version: number): string | undefined {
  const model = new DatabaseSync(":memory:");
  try {
    migrateSchema(model, 0, version);
    const [expected, found] = [readSchema(model), readSchema(database)];
    const extra = found.find((entry) => !expected.includes(entry) && !STATISTICS.includes(entry));
    const missing = expected.find((entry) => !found.includes(entry));
    const describe = (entry: string) => entry.split("\n", 2).join(" ");
    if (extra !== undefined) return `a ${describe(extra)} that Earmark did not create`;
    return missing === undefined ? undefined : `no ${describe(missing)}`;
  } finally {
    model.close();
  }
}

export function refuseForeignSchema(database: DatabaseSync, version: number, path: string): void {
  const difference = findForeignSchema(database, version);
  if (difference === undefined) return;
  throw new UserError(`${path} has ${difference}. It was not changed; restore a backup, or use another file.`);
}

export function readNumber(database: DatabaseSync, pragma: string): number {
  return Number(Object.values(database.prepare(pragma).get() ?? {})[0]);
}
