import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { UserError } from "../../util/user-error.ts";
import type { Source } from "../shared/tables.ts";
import { createSource } from "./archive.ts";
import { isEarmarkFile, shareFile } from "./file.ts";
import { isSchemaCurrent, migrateSchema, readNumber, readVersion, refuseForeignSchema } from "./schema.ts";

const PROGRESS_MS = 200;

/**
 * Copies a snapshot of the live content of a database, even while others write. Unlike a copy of its pages, it contains
 * no deleted data. A worker thread copies, so that this one can show progress.
 */
export async function backUpFile(
  path: string,
  target: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  if (!existsSync(path)) throw new UserError(`No database at ${path}.`);
  shareFile(path);
  const total = liveBytes(path);
  const worker = new Worker(new URL("./vacuum.ts", import.meta.url), { workerData: { path, target } });
  const watch = setInterval(() => {
    if (existsSync(target)) onProgress(Math.min(statSync(target).size, total), total);
  }, PROGRESS_MS);
  try {
    // Rejects with what the worker throws.
    await once(worker, "exit");
    onProgress(total, total);
  } finally {
    clearInterval(watch);
  }
}

function liveBytes(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    const pages = readNumber(database, "pragma page_count") - readNumber(database, "pragma freelist_count");
    return pages * readNumber(database, "pragma page_size");
  } finally {
    database.close();
  }
}

/** Throws unless the file is an intact Earmark database. Returns its number of subscriptions. */
export function checkFile(path: string): number {
  if (!statSync(path).isFile() || !isEarmarkFile(path)) throw new UserError(`${path} is not an Earmark database.`);
  if (existsSync(`${path}-wal`) && statSync(`${path}-wal`).size > 0) {
    throw new UserError(
      `${path} is not a backup but a database with a write-ahead log (${path}-wal), which a restore would leave out. Back it up first: DATABASE_URL=file:${path} earmark backup FILE`,
    );
  }
  const database = openImmutable(path);
  try {
    refuseForeignSchema(database, readVersion(database, path), path);
    const [finding] = Object.values(database.prepare("pragma integrity_check(1)").get() ?? {});
    if (finding !== "ok") throw new UserError(`${path} is damaged (${finding}).`);
    const { rows } = database.prepare("select count(*) as rows from subscriptions").get() as { rows: number };
    return rows;
  } finally {
    database.close();
  }
}

/** Reads a checked backup without changing it. A backup of an earlier version is copied, and the copy is migrated. */
export function readBackup(path: string): Source {
  const database = openImmutable(path);
  if (isSchemaCurrent(database)) return createSource(database, () => undefined);
  database.close();
  const folder = mkdtempSync(join(tmpdir(), "earmark-"));
  const removeCopy = () => rmSync(folder, { recursive: true, force: true });
  try {
    const copy = join(folder, "backup.db");
    copyFileSync(path, copy);
    const migrated = new DatabaseSync(copy);
    migrateSchema(migrated, readVersion(migrated, path));
    return createSource(migrated, removeCopy);
  } catch (error) {
    removeCopy();
    throw error;
  }
}

/** Opens a file that has no writers, without creating files next to it. */
function openImmutable(path: string): DatabaseSync {
  const url = pathToFileURL(resolve(path));
  url.searchParams.set("immutable", "1");
  const database = new DatabaseSync(url, { readOnly: true });
  database.exec("pragma trusted_schema = off; pragma cell_size_check = on");
  return database;
}
