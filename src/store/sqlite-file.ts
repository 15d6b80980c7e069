import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreUnavailable } from "../subscriptions.ts";
import { type Finding, StartFailure } from "./opening.ts";

/** "EARM", in the header of every file that is ours. */
const APPLICATION_ID = 0x4541524d;

/**
 * Append-only: a released step never changes, and the number of steps is the version of the file.
 *
 * Every change of a user's list takes that user's next sequence number. An item keeps the number under which it was
 * added, which is also its place in the order; a removal is remembered under its own. So what changed after N can be
 * told from the two tables by their primary keys. A removal forgets the address, which may hold a password.
 *
 * An account has the list of the same user. What must be unique among all users leads a table of its own: who someone
 * is (`identities`), and the hash of every secret (`credentials`).
 */
const MIGRATIONS: readonly string[] = [
  `
  create table lists (
    user_id integer primary key,
    sequence integer not null,
    total integer not null
  ) strict;

  create table subscriptions (
    user_id integer not null,
    sequence integer not null,
    id blob not null,
    feed blob not null,
    feed_url text not null,
    subscribed_at integer not null,
    primary key (user_id, sequence)
  ) strict, without rowid;
  create unique index subscriptions_by_id on subscriptions (user_id, id);
  create unique index subscriptions_by_feed on subscriptions (user_id, feed);

  create table removals (
    user_id integer not null,
    sequence integer not null,
    id blob not null,
    removed_at integer not null,
    primary key (user_id, sequence)
  ) strict, without rowid;

  create table gaps (
    user_id integer primary key,
    counts blob not null
  ) strict;
  `,
  `
  create table accounts (
    user_id integer primary key,
    name text not null,
    issuer text not null,
    password text not null,
    created_at integer not null
  ) strict;

  create table identities (
    key blob primary key,
    user_id integer not null
  ) strict, without rowid;

  create table credentials (
    hash blob primary key,
    user_id integer not null,
    id blob not null,
    kind text not null,
    scope text not null,
    label text not null,
    created_at integer not null,
    used_at integer not null,
    expires_at integer not null
  ) strict, without rowid;
  create index credentials_by_user on credentials (user_id, kind, created_at);
  `,
];

/** How long a statement waits for a lock that another program holds on the file, such as a backup tool's. */
const BUSY_MS = 5_000;
/**
 * How long the write-ahead log grows before it is copied into the file. A page that many groups change is then copied
 * once for all of them; at SQLite's default of 1,000 a busy server would copy after every group.
 */
const LOG_PAGES = 16_000;
const PAGE_BYTES = 4_096;
/** How long a start waits for whoever else holds the file. */
const LOCKING_MS = 1_000;
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
/** A file up to this size is looked through at start, which takes some tens of milliseconds. */
const CHECKED_BYTES = 16 * 1024 * 1024;

/**
 * Claims the file for this process, makes it if there is none, and brings it to the newest version. Returns how to let
 * go of it. What is not ours is refused and left as it is, and so is a file that another server holds.
 */
export function claimFile(path: string): () => void {
  try {
    refuseForeignFile(path);
    makeFolder(dirname(path));
    const release = lockFilePatiently(realPath(path));
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

export function cannotOpen(path: string, error: unknown): StartFailure {
  if (error instanceof StartFailure) return error;
  return new StartFailure(
    `Cannot open the database ${path}: ${(error as Error).message}. Check that it is a whole file of Earmark, that this user may write to its folder, and that the disk has room.`,
  );
}

/** One at a time: asked for all at once, Node never comes back from places like /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  mkdirSync(folder);
}

/** The same file must be the same lock, whatever links lead to it. */
function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path));
}

function migrate(path: string): void {
  const database = new DatabaseSync(path, { timeout: BUSY_MS });
  try {
    const version = readVersion(database, path);
    if (version > 0 && statSync(path).size <= CHECKED_BYTES) refuseDamagedFile(database, path);
    createSchema(database, version);
    setDurability(database);
  } finally {
    database.close();
  }
}

/** Throws for a file that only a newer program can read. */
export function readVersion(database: DatabaseSync, path: string): number {
  const version = readNumber(database, "pragma user_version");
  if (version <= MIGRATIONS.length) return version;
  throw new StartFailure(
    `${path} was written by a newer Earmark (schema ${version}, this one knows ${MIGRATIONS.length}). It was left as it is; install that version or a later one.`,
  );
}

function refuseDamagedFile(database: DatabaseSync, path: string): void {
  const [finding] = Object.values(database.prepare("pragma quick_check(1)").get() ?? {});
  if (finding !== "ok") {
    throw new StartFailure(`${path} is damaged (${finding}). It was left as it is; put a backup in its place.`);
  }
}

/** Takes a database from a version to the newest one. */
export function createSchema(database: DatabaseSync, version = 0): void {
  // A new file is still in its rollback journal: so this stands in the file itself before there is a write-ahead log.
  if (version === 0) database.exec(`pragma application_id = ${APPLICATION_ID}`);
  for (const [index, step] of MIGRATIONS.entries()) {
    if (index >= version) database.exec(`begin immediate; ${step}; pragma user_version = ${index + 1}; commit`);
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

function refuseForeignFile(path: string): void {
  if (existsSync(path) && statSync(path).size > 0 && !isOurs(path)) {
    throw new StartFailure(
      `${path} is not a database of Earmark. It was left as it is; set DATABASE_URL to another file.`,
    );
  }
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
    database.exec(
      `pragma wal_autocheckpoint = ${LOG_PAGES}; pragma journal_size_limit = ${2 * LOG_PAGES * PAGE_BYTES}`,
    );
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Drivers and builds have weaker defaults of their own, so both are set on every connection, and read back. */
function setDurability(database: DatabaseSync): void {
  const mode = database.prepare("pragma journal_mode = wal").get()?.["journal_mode"];
  database.exec("pragma synchronous = full");
  const level = readNumber(database, "pragma synchronous");
  if (mode !== "wal" || level !== 2) {
    throw new StartFailure(
      `SQLite would not keep its promise here (journal_mode ${mode}, synchronous ${level}; wal and 2 are needed). Is the file on a network drive?`,
    );
  }
}

export function isNewest(database: DatabaseSync): boolean {
  return readNumber(database, "pragma user_version") === MIGRATIONS.length;
}

/** Writes something that changes nothing: fails when nothing can be written. */
export function touch(database: DatabaseSync): void {
  database.exec(`pragma user_version = ${MIGRATIONS.length}`);
}

export function isBusy(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === SQLITE_BUSY;
}

export function isFull(error: unknown): boolean {
  return (error as { errcode?: number }).errcode === SQLITE_FULL;
}

function readNumber(database: DatabaseSync, pragma: string): number {
  return Number(Object.values(database.prepare(pragma).get() ?? {})[0]);
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

class FileInUse extends StartFailure {}

/** A command beside us may hold it for a moment, to bring the file up to date. */
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

/** Waits without giving way to anything else; for threads that have nothing else to do. */
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
        throw new StartFailure(`The Earmark that is running on ${path} is of another version. Stop it first.`);
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
      { state: "wrong", what: `${path} is not a database of Earmark`, advice: "Set DATABASE_URL to another file." },
    ];
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    const version = readVersion(database, path);
    const mode = database.prepare("pragma journal_mode").get()?.["journal_mode"];
    const [finding] = Object.values(database.prepare("pragma quick_check(1)").get() ?? {});
    // A backup that was just put in place has no log yet, and a connection that only reads cannot make one.
    if (mode === "wal") setDurability(database);
    return [
      version === MIGRATIONS.length
        ? { state: "ok", what: `The database is of this version (schema ${version})` }
        : { state: "ok", what: `The next start brings the database from schema ${version} to ${MIGRATIONS.length}` },
      finding === "ok"
        ? { state: "ok", what: "The database is whole" }
        : {
            state: "wrong",
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
