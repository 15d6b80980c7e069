import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreUnavailable } from "../subscriptions.ts";
import { UserError } from "../user-error.ts";
import {
  APPLICATION_ID,
  createSchema,
  findForeignSchema,
  isNewest,
  NEWEST_VERSION,
  readNumber,
  readVersion,
  refuseForeignSchema,
} from "./sqlite-schema.ts";
import type { Finding } from "./store-options.ts";

/** How long a statement waits for another program's lock on the file, such as a backup tool's. */
const BUSY_MS = 5_000;
/** The same for the writer, which has its own way to wait longer. */
export const WRITER_BUSY_MS = 1;
/**
 * How long the write-ahead log grows before it is copied into the file. A page that many groups change is then copied
 * once for all of them; at SQLite's default of 1,000 a busy server would copy after every group.
 */
const LOG_PAGES = 16_000;
const PAGE_BYTES = 4_096;
/** How long a start waits for another process that has the file locked. */
const LOCKING_MS = 1_000;
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
/** The first version that overwrites what is deleted: a file of an earlier one is rewritten once. */
const OVERWRITING_VERSION = 3;
/** Files up to this size are checked at start, which takes some tens of milliseconds. */
const CHECKED_BYTES = 16 * 1024 * 1024;

/**
 * Claims the file for this process, makes it if there is none, and brings it to the newest version. Returns how to let
 * go of it. What is not ours is refused and left as it is, and so is a file that another server holds.
 */
export function claimFile(path: string, onWarning?: (warning: string) => void): () => void {
  try {
    refuseForeignFile(path);
    refuseUnfinishedRestore(path);
    const release = claimPath(path);
    try {
      migrate(path, onWarning);
      return release;
    } catch (error) {
      release();
      throw error;
    }
  } catch (error) {
    throw cannotOpen(path, error);
  }
}

/** Claims the path of a file for this process, whatever is there. */
export function claimPath(path: string): () => void {
  makeFolder(dirname(path));
  return lockFilePatiently(realPath(path));
}

export function cannotOpen(path: string, error: unknown): UserError {
  if (error instanceof UserError) return error;
  return new UserError(
    `Cannot open the database ${path}: ${(error as Error).message}. Check that it is a whole file of Earmark, that this user may write to its folder, and that the disk has room.`,
  );
}

/** One at a time: asked for all at once, Node never comes back from places like /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  mkdirSync(folder);
}

/** The same file must use the same lock, whatever links lead to it. */
export function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path));
}

function migrate(path: string, onWarning: ((warning: string) => void) | undefined): void {
  const database = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    const version = readVersion(database, path);
    refuseForeignSchema(database, version, path);
    if (version > 0 && statSync(path).size <= CHECKED_BYTES) refuseDamagedFile(database, path);
    if (version > 0 && version < OVERWRITING_VERSION) rewrite(database, path, onWarning);
    createSchema(database, version);
    setDurability(database);
  } finally {
    database.close();
  }
}

/** Rewrites a file without the remains of what was deleted. That needs twice its size of free room. */
function rewrite(database: DatabaseSync, path: string, onWarning: ((warning: string) => void) | undefined): void {
  try {
    database.exec("vacuum");
  } catch (error) {
    onWarning?.(
      `${path} still has remains of what was deleted from it, because it could not be rewritten (${(error as Error).message}). Free twice its size on the disk; then, with the server stopped, run "earmark backup FILE" and "earmark restore FILE".`,
    );
  }
}

function refuseDamagedFile(database: DatabaseSync, path: string): void {
  const [finding] = Object.values(database.prepare("pragma quick_check(1)").get() ?? {});
  if (finding !== "ok") {
    throw new UserError(`${path} is damaged (${finding}). It was left as it is; put a backup in its place.`);
  }
}

/** Reads the header by itself: SQLite would already write beside a foreign file when it opens it. */
export function isOurs(path: string): boolean {
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
  if (existsSync(path) && statSync(path).size > 0 && !isOurs(path)) {
    throw new UserError(
      `${path} is not a database of Earmark. It was left as it is; set DATABASE_URL to another file.`,
    );
  }
}

/** What a restore writes to, until the new database is complete. */
export const RESTORING = "-restoring";

/** A restore that was interrupted must not end as an empty database. */
function refuseUnfinishedRestore(path: string): void {
  if (existsSync(path) || !existsSync(path + RESTORING)) return;
  throw new UserError(
    `A restore to ${path} was interrupted. Run "earmark restore FILE" again, or delete ${path}${RESTORING} to start with an empty database.`,
  );
}

/** A connection that keeps the promise: what is committed is on the disk, or nothing starts. */
export function openConnection(
  path: string,
  options: { readonly readOnly: boolean; readonly cacheKiB: number },
): DatabaseSync {
  const database = new DatabaseSync(path, { readOnly: options.readOnly, timeout: BUSY_MS });
  try {
    setDurability(database);
    database.exec(`pragma cache_size = -${options.cacheKiB}; pragma trusted_schema = off; pragma cell_size_check = on`);
    // A file for temporary data would keep what is rewritten.
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

/**
 * Drivers and builds have weaker defaults of their own, so these are set on every connection, and read back: what is
 * committed is durable, and what is deleted is overwritten.
 */
function setDurability(database: DatabaseSync): void {
  const mode = database.prepare("pragma journal_mode = wal").get()?.["journal_mode"];
  database.exec("pragma synchronous = full; pragma secure_delete = on");
  const level = readNumber(database, "pragma synchronous");
  const erasing = readNumber(database, "pragma secure_delete");
  if (mode !== "wal" || level !== 2 || erasing !== 1) {
    throw new UserError(
      `SQLite would not keep its promise here (journal_mode ${mode}, synchronous ${level}, secure_delete ${erasing}; wal, 2 and 1 are needed). Is the file on a network drive?`,
    );
  }
}

export function isBusy(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === SQLITE_BUSY;
}

export function isFull(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === SQLITE_FULL;
}

/**
 * A lock of the operating system, which ends with the process however it ends. It is on a file beside the database,
 * since SQLite's own would keep our readers out as well.
 */
function lockFile(path: string): () => void {
  const lock = new DatabaseSync(`${path}-lock`, { timeout: 0 });
  try {
    lock.exec("pragma locking_mode = exclusive; begin exclusive");
    return () => lock.close();
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    throw new FileInUse(`Another Earmark is running on ${path}. Stop it first, or set DATABASE_URL to another file.`);
  }
}

class FileInUse extends UserError {}

/** Another command may have it locked briefly while it migrates the file. */
function lockFilePatiently(path: string): () => void {
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

/** For one who works on the file for a moment beside a server that may be running: brings it up to date if none is. */
export function shareFile(path: string): () => void {
  if (!isUpToDate(path)) {
    try {
      claimFile(path)();
    } catch (error) {
      if (!(error instanceof FileInUse)) throw error;
      if (!isUpToDate(path))
        throw new UserError(`The Earmark that is running on ${path} is of another version. Stop it first.`);
    }
  }
  return () => undefined;
}

function isUpToDate(path: string): boolean {
  if (!existsSync(path) || !isOurs(path)) return false;
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    return isNewest(database);
  } finally {
    database.close();
  }
}

/** What can be told of a file without changing it. */
export function examineFile(path: string): readonly Finding[] {
  if (!existsSync(path))
    return [{ state: "ok", what: `There is no database at ${path} yet; the first start makes it` }];
  if (!isOurs(path))
    return [
      { state: "error", what: `${path} is not a database of Earmark`, advice: "Set DATABASE_URL to another file." },
    ];
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    const version = readVersion(database, path);
    const mode = database.prepare("pragma journal_mode").get()?.["journal_mode"];
    const difference = findForeignSchema(database, version);
    const [finding] = Object.values(database.prepare("pragma quick_check(1)").get() ?? {});
    // A backup that was just put in place has no log yet, and a connection that only reads cannot make one.
    if (mode === "wal") setDurability(database);
    return [
      version === NEWEST_VERSION
        ? { state: "ok", what: `The database is of this version (schema ${version})` }
        : { state: "ok", what: `The next start brings the database from schema ${version} to ${NEWEST_VERSION}` },
      ...(difference === undefined
        ? []
        : [
            {
              state: "error",
              what: `The database has ${difference}`,
              advice: "Put a backup in its place: earmark restore FILE",
            } as const,
          ]),
      finding === "ok"
        ? { state: "ok", what: "The database is whole" }
        : {
            state: "error",
            what: `The database is damaged (${finding})`,
            advice: "Put a backup in its place: earmark restore FILE",
          },
      mode === "wal"
        ? { state: "ok", what: "It is kept safely: journal_mode wal, synchronous full" }
        : { state: "ok", what: `The next start keeps it safely: journal_mode wal instead of ${mode}` },
    ];
  } finally {
    database.close();
  }
}

export function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new StoreUnavailable("the database cannot be read", { cause });
  }
}
