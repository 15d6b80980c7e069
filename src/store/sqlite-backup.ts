import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { UserError } from "../user-error.ts";
import { readFile } from "./sqlite-archive.ts";
import { isOurs, shareFile } from "./sqlite-file.ts";
import { createSchema, isNewest, readNumber, readVersion, refuseForeignSchema } from "./sqlite-schema.ts";
import type { Source } from "./tables.ts";

const PROGRESS_MS = 200;

/**
 * Copies the live content of a database as it is at one instant, also while others write. Unlike a copy of its pages it
 * has no remains of what was deleted. A thread does it, so that progress can be shown.
 */
export async function backUpFile(
  path: string,
  target: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  if (!existsSync(path)) throw new UserError(`There is no database at ${path}.`);
  shareFile(path);
  const total = liveBytes(path);
  const worker = new Worker(new URL("./sqlite-vacuum.ts", import.meta.url), { workerData: { path, target } });
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

/** Throws unless the file is a whole database of ours. Returns how many subscriptions it has. */
export function checkFile(path: string): number {
  if (!statSync(path).isFile() || !isOurs(path)) throw new UserError(`${path} is not a database of Earmark.`);
  if (existsSync(`${path}-wal`) && statSync(`${path}-wal`).size > 0) {
    throw new UserError(
      `${path} is not a backup but a database with a log beside it (${path}-wal), which would be left out. Make a backup of it first: DATABASE_URL=file:${path} earmark backup FILE`,
    );
  }
  const database = openUnchanged(path);
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

/** Reads a backup that was checked. The file itself stays as it is: one of an earlier version is upgraded in a copy. */
export function readBackup(path: string): Source {
  const database = openUnchanged(path);
  if (isNewest(database)) return readFile(database, () => undefined);
  database.close();
  const folder = mkdtempSync(join(tmpdir(), "earmark-"));
  const removeCopy = () => rmSync(folder, { recursive: true, force: true });
  try {
    const copy = join(folder, "backup.db");
    copyFileSync(path, copy);
    const upgraded = new DatabaseSync(copy);
    createSchema(upgraded, readVersion(upgraded, path));
    return readFile(upgraded, removeCopy);
  } catch (error) {
    removeCopy();
    throw error;
  }
}

/** Nobody writes to it, and nothing is left beside it. */
function openUnchanged(path: string): DatabaseSync {
  const url = pathToFileURL(resolve(path));
  url.searchParams.set("immutable", "1");
  const database = new DatabaseSync(url, { readOnly: true });
  database.exec("pragma trusted_schema = off; pragma cell_size_check = on");
  return database;
}
