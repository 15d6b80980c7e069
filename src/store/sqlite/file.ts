import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { NO_PODCASTS, type PodcastCounts } from "../../podcasts/podcast-store.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { UserError } from "../../util/user-error.ts";
import { all, get } from "../shared/database.ts";
import type { Finding } from "../shared/options.ts";
import { COUNT_FAILURES, COUNT_PODCASTS, describeCounts, type FailureCount } from "../shared/podcast-rows.ts";
import { Runner } from "./database.ts";
import {
  APPLICATION_ID,
  findForeignSchema,
  isSchemaCurrent,
  migrateSchema,
  NEWEST_VERSION,
  readNumber,
  readVersion,
  refuseForeignSchema,
} from "./schema.ts";

/** How long a statement waits for another program's lock on the file, such as a backup tool's. */
const BUSY_MS = 5_000;
/** The same for the writer, which implements its own wait. */
export const WRITER_BUSY_MS = 1;
/**
 * Pages in the write-ahead log before a checkpoint. A page that many groups change is then copied once for all of them;
 * with SQLite's default of 1,000 a busy server would checkpoint after every group.
 */
const LOG_PAGES = 16_000;
const PAGE_BYTES = 4_096;
/** How long a start waits for another process that has the file locked. */
const LOCKING_MS = 1_000;
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const [SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN] = [8, 10, 14];
const FILE_FAILURES: ReadonlySet<number> = new Set([
  SQLITE_BUSY,
  SQLITE_READONLY,
  SQLITE_IOERR,
  SQLITE_FULL,
  SQLITE_CANTOPEN,
]);
/** Files up to this size are checked at start, which takes less than 100 ms. */
const CHECKED_BYTES = 16 * 1024 * 1024;

/**
 * Locks the file for this process, creates it if it does not exist, and migrates it to the newest version. Returns a
 * function that releases the lock. Throws if it is not an Earmark database or another server uses it.
 */
export function claimAndMigrate(path: string): () => void {
  try {
    refuseForeignFile(path);
    refuseUnfinishedRestore(path);
    const release = claimPath(path);
    try {
      migrate(path);
      return release;
    } catch (error) {
      release();
      throw error;
    }
  } catch (error) {
    throw cannotOpen(path, error);
  }
}

/** Locks the path of a file for this process, whatever it contains. */
export function claimPath(path: string): () => void {
  createFolder(dirname(path));
  return lockFileWithRetries(realPath(path));
}

export function cannotOpen(path: string, error: unknown): UserError {
  if (error instanceof UserError) return error;
  return new UserError(
    `Cannot open the database ${path}: ${(error as Error).message}. Check that it is an intact Earmark database, that this user may write to its folder, and that the disk is not full.`,
  );
}

/** Creates one folder at a time, because a recursive mkdir never returns in places like /proc. */
function createFolder(folder: string): void {
  if (existsSync(folder)) return;
  createFolder(dirname(folder));
  mkdirSync(folder);
}

/** The same file must use the same lock, whatever links lead to it. */
export function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path));
}

function migrate(path: string): void {
  const database = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    const version = readVersion(database, path);
    refuseForeignSchema(database, version, path);
    if (version > 0 && statSync(path).size <= CHECKED_BYTES) refuseDamagedFile(database, path);
    // Before a migration drops an index, whose pages are then free.
    database.exec("pragma secure_delete = on");
    migrateSchema(database, version);
    setDurability(database);
  } finally {
    database.close();
  }
}

function refuseDamagedFile(database: DatabaseSync, path: string): void {
  const [finding] = Object.values(database.prepare("pragma quick_check(1)").get() ?? {});
  if (finding !== "ok") {
    throw new UserError(`${path} is damaged (${finding}). It was not changed; restore a backup.`);
  }
}

/** Reads only the header, because SQLite may create files next to a foreign file when it opens it. */
export function isEarmarkFile(path: string): boolean {
  const header = Buffer.alloc(100);
  const file = openSync(path, "r");
  readSync(file, header);
  closeSync(file);
  return header.toString("latin1", 0, 16) === "SQLite format 3\0" && header.readUInt32BE(68) === APPLICATION_ID;
}

export function syncFile(path: string): void {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
}

export function refuseForeignFile(path: string): void {
  if (existsSync(path) && statSync(path).size > 0 && !isEarmarkFile(path)) {
    throw new UserError(`${path} is not an Earmark database. It was not changed; set DATABASE_URL to another file.`);
  }
}

/** Suffix of the file that a restore writes until the new database is complete. */
export const RESTORING = "-restoring";

/** After an interrupted restore, a start must not create an empty database. */
function refuseUnfinishedRestore(path: string): void {
  if (existsSync(path) || !existsSync(path + RESTORING)) return;
  throw new UserError(
    `A restore to ${path} was interrupted. Run "earmark restore FILE" again, or delete ${path}${RESTORING} to start with an empty database.`,
  );
}

/** Opens a connection whose commits are durable; throws if that is impossible. */
export function openConnection(
  path: string,
  options: { readonly readOnly: boolean; readonly cacheKiB: number },
): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: options.readOnly, timeout: BUSY_MS });
  try {
    setDurability(database);
    database.exec(`pragma cache_size = -${options.cacheKiB}; pragma trusted_schema = off; pragma cell_size_check = on`);
    // Temporary files would contain the data that is rewritten.
    database.exec("pragma temp_store = memory");
    database.exec(
      `pragma wal_autocheckpoint = ${LOG_PAGES}; pragma journal_size_limit = ${2 * LOG_PAGES * PAGE_BYTES}`,
    );
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The last connection to close removes the write-ahead log, but only if it may write. */
export function removeLog(path: string): void {
  try {
    if (existsSync(path)) openConnection(path, { readOnly: false, cacheKiB: 0 }).close();
  } catch {
    // The next start reads the log.
  }
}

/**
 * Configures the connection so that commits are durable and SQLite overwrites deleted data. Some drivers and builds have
 * weaker defaults, so this is set on every connection and verified.
 */
function setDurability(database: DatabaseSync): void {
  const mode = database.prepare("pragma journal_mode = wal").get()?.["journal_mode"];
  database.exec("pragma synchronous = full; pragma secure_delete = on");
  const level = readNumber(database, "pragma synchronous");
  const erasing = readNumber(database, "pragma secure_delete");
  const wrong = [
    ["journal_mode", mode, "wal"],
    ["synchronous", level, 2],
    ["secure_delete", erasing, 1],
  ].filter(([, value, needed]) => value !== needed);
  if (wrong.length === 0) return;
  const reasons = wrong.map(([name, value, needed]) => `${name} is ${value}, must be ${needed}`).join("; ");
  throw new UserError(`SQLite cannot guarantee durable writes here (${reasons}). Is the file on a network drive?`);
}

export function isBusy(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === SQLITE_BUSY;
}

export function isFull(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === SQLITE_FULL;
}

/** Whether the file is locked, full, read-only or cannot be read or written: then no other write would succeed either. */
export function isFileFailure(error: unknown): boolean {
  const { errcode } = error as { errcode?: number };
  // The primary code; the other bits say more.
  return errcode !== undefined && FILE_FAILURES.has(errcode & 0xff);
}

/**
 * An operating-system lock, which is released however the process ends. It is on a separate file, because SQLite's own
 * lock would block our readers as well.
 */
function lockFile(path: string): () => void {
  const lock = new DatabaseSync(`${path}-lock`, { timeout: 0 });
  try {
    lock.exec("pragma locking_mode = exclusive; begin exclusive");
    return () => lock.close();
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    throw new FileInUse(
      `Another Earmark process is using ${path}. Stop it first, or set DATABASE_URL to another file.`,
    );
  }
}

class FileInUse extends UserError {}

/** Retries for a while, because another command may lock the file briefly to migrate it. */
function lockFileWithRetries(path: string): () => void {
  const deadline = performance.now() + LOCKING_MS;
  for (;;) {
    try {
      return lockFile(path);
    } catch (error) {
      if (!(error instanceof FileInUse) || performance.now() > deadline) throw error;
      sleep(20);
    }
  }
}

/** Blocks the thread. */
export function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** For commands that use the file while a server may be running. Migrates it if no server is running. Keeps no lock. */
export function shareFile(path: string): () => void {
  if (!isUpToDate(path)) {
    try {
      claimAndMigrate(path)();
    } catch (error) {
      if (!(error instanceof FileInUse)) throw error;
      if (!isUpToDate(path))
        throw new UserError(`A server of a different Earmark version is using ${path}. Stop it first.`);
    }
  }
  return () => undefined;
}

function isUpToDate(path: string): boolean {
  if (!existsSync(path) || !isEarmarkFile(path)) return false;
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    return isSchemaCurrent(database);
  } finally {
    database.close();
  }
}

/** Checks a file without changing it. */
export function inspectFile(path: string): readonly Finding[] {
  if (!existsSync(path)) return [{ state: "ok", what: `No database at ${path} yet; the first start creates it` }];
  if (!isEarmarkFile(path))
    return [
      { state: "error", what: `${path} is not an Earmark database`, advice: "Set DATABASE_URL to another file." },
    ];
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    const version = readVersion(database, path);
    const mode = database.prepare("pragma journal_mode").get()?.["journal_mode"];
    const difference = findForeignSchema(database, version);
    const [finding] = Object.values(database.prepare("pragma quick_check(1)").get() ?? {});
    // A newly restored backup has no log yet, and a read-only connection cannot create one.
    if (mode === "wal") setDurability(database);
    return [
      version === NEWEST_VERSION
        ? { state: "ok", what: `The database schema is current (version ${version})` }
        : {
            state: "ok",
            what: `On its next start, the server will migrate the database schema from version ${version} to ${NEWEST_VERSION}`,
          },
      ...(difference === undefined
        ? []
        : [
            {
              state: "error",
              what: `The database has ${difference}`,
              advice: "Restore a backup: earmark restore FILE",
            } as const,
          ]),
      finding === "ok"
        ? { state: "ok", what: "The integrity check passed" }
        : {
            state: "error",
            what: `The database is damaged (${finding})`,
            advice: "Restore a backup: earmark restore FILE",
          },
      mode === "wal"
        ? { state: "ok", what: "Writes are durable: journal_mode wal, synchronous full" }
        : {
            state: "ok",
            what: `On its next start, the server will make writes durable: journal_mode wal instead of ${mode}`,
          },
      ...(version === NEWEST_VERSION && difference === undefined && finding === "ok"
        ? [inspectPodcasts(database)]
        : []),
    ];
  } finally {
    database.close();
  }
}

/** Reports a failed read as `StoreUnavailable`. */
export function wrapReadErrors<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new StoreUnavailable("the database cannot be read", { cause });
  }
}

function inspectPodcasts(database: DatabaseSync): Finding {
  const runner = new Runner(database);
  const counts = runner.run(get<PodcastCounts>(COUNT_PODCASTS, Date.now()));
  return describeCounts(counts ?? NO_PODCASTS, runner.run(all<FailureCount>(COUNT_FAILURES)));
}
