import { chmodSync, constants, copyFileSync, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { StartFailure } from "./opening.ts";
import { claimFile, isOurs, readVersion, shareFile, syncFile } from "./sqlite-file.ts";

/** How many pages are copied before writers get their turn. */
const PAGES_AT_A_TIME = 500;

/** Copies a database page by page as it stands at one instant, also while others write. */
export async function backUpFile(
  path: string,
  target: string,
  onProgress: (done: number, total: number) => void,
): Promise<void> {
  if (!existsSync(path)) throw new StartFailure(`There is no database at ${path}.`);
  shareFile(path);
  const source = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    // A transaction that only reads keeps its instant, so that the copy does not begin again with every write.
    source.exec("begin; select count(*) from lists");
    await backup(source, target, {
      rate: PAGES_AT_A_TIME,
      progress: ({ totalPages, remainingPages }) => onProgress(totalPages - remainingPages, totalPages),
    });
  } finally {
    source.close();
  }
}

/** Takes a database out of its write-ahead log, so that it is one file and no more. */
export function makeSingleFile(path: string): void {
  const database = new DatabaseSync(path);
  database.exec("pragma wal_checkpoint(truncate); pragma journal_mode = delete");
  database.close();
}

/** Throws unless the file is a whole database of ours. Returns how many subscriptions it has. */
export function checkFile(path: string): number {
  if (!statSync(path).isFile() || !isOurs(path)) throw new StartFailure(`${path} is not a database of Earmark.`);
  if (existsSync(`${path}-wal`) && statSync(`${path}-wal`).size > 0) {
    throw new StartFailure(
      `${path} is not a backup but a database with a log beside it (${path}-wal), which would be left out. Make a backup of it first: DATABASE_URL=file:${path} earmark backup FILE`,
    );
  }
  // Nobody writes to it, and nothing is left beside it.
  const url = pathToFileURL(resolve(path));
  url.searchParams.set("immutable", "1");
  const database = new DatabaseSync(url, { readOnly: true });
  try {
    readVersion(database, path);
    const [finding] = Object.values(database.prepare("pragma integrity_check(1)").get() ?? {});
    if (finding !== "ok") throw new StartFailure(`${path} is damaged (${finding}).`);
    const { rows } = database.prepare("select count(*) as rows from subscriptions").get() as { rows: number };
    return rows;
  } finally {
    database.close();
  }
}

/** Puts a copy of `source` in the place of a database that no server holds. Returns where the old one is now. */
export function replaceFile(path: string, source: string, now: Date): string | undefined {
  const isThere = existsSync(path);
  const release = claimFile(path);
  try {
    const kept = `${path}-before-${now.toISOString().replaceAll(/[:.]/g, "-")}`;
    const incoming = `${path}-restoring`;
    rmSync(incoming, { force: true });
    copyFileSync(source, incoming, constants.COPYFILE_EXCL);
    chmodSync(incoming, 0o600);
    syncFile(incoming);
    // Nothing may be left in its log when it moves.
    makeSingleFile(path);
    if (isThere) renameSync(path, kept);
    for (const rest of ["-wal", "-shm"]) rmSync(path + rest, { force: true });
    renameSync(incoming, path);
    return isThere ? kept : undefined;
  } finally {
    release();
  }
}
