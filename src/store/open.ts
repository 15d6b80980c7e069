import { UserError } from "../util/user-error.ts";
import type { Store } from "./shared/contract.ts";
import { displayNameOf, type Finding, type MigrateOptions, type StoreOptions } from "./shared/options.ts";
import type { Archive, Target } from "./shared/tables.ts";

/** A database engine. Its driver is loaded on first use, because an unneeded one would double the start time. */
export interface Engine {
  readonly matches: (url: string) => boolean;
  /** Whether an Earmark database of any version exists. Creates nothing. */
  readonly exists: (url: string) => Promise<boolean>;
  /** Opens the database, which is created or migrated if necessary. */
  readonly open: (url: string, options: StoreOptions) => Promise<Store>;
  /** Creates or migrates the database. With `distribute`, returns the tables that were distributed over a cluster. */
  readonly migrate: (
    url: string,
    options: MigrateOptions,
  ) => Promise<{ readonly distributed: readonly string[] | undefined }>;
  /** Checks the database without changing it. */
  readonly inspect: (url: string) => Promise<readonly Finding[]>;
  /** Access to all rows of a database, for backup, restore and copy. */
  readonly archive: (url: string) => Promise<Archive>;
  /** Writes a snapshot to a new SQLite file while others write; undefined if a backup copies rows instead. */
  readonly backUp: ((url: string, file: string, onProgress: OnProgress) => Promise<void>) | undefined;
  /** Replaces the database and keeps the old one under another name; undefined if a restore needs an empty database. */
  readonly replace: ((url: string, nameOldDatabase: (path: string) => string) => Promise<Target>) | undefined;
}

type OnProgress = (done: number, total: number) => void;

const FILE = "file:";
const pathOf = (url: string) => url.slice(FILE.length);

const sqlite: Engine = {
  matches: (url) => url.startsWith(FILE),
  exists: async (url) => (await import("node:fs")).existsSync(pathOf(url)),
  open: async (url, options) => (await import("./sqlite/store.ts")).openSqlite(pathOf(url), options),
  async migrate(url, { distribute, newEpoch }) {
    if (distribute)
      throw new UserError("A SQLite file cannot be distributed. Set DATABASE_URL to a PostgreSQL database.");
    const release = (await import("./sqlite/file.ts")).claimAndMigrate(pathOf(url));
    if (newEpoch === true) (await import("./sqlite/schema.ts")).renewEpoch(pathOf(url));
    release();
    return { distributed: undefined };
  },
  async inspect(url) {
    const [{ inspectDisk }, { inspectFile }] = await Promise.all([
      import("./sqlite/disk.ts"),
      import("./sqlite/file.ts"),
    ]);
    return [...inspectFile(pathOf(url)), ...inspectDisk(pathOf(url))];
  },
  archive: async (url) => (await import("./sqlite/archive.ts")).openSqliteArchive(pathOf(url)),
  backUp: async (url, file, onProgress) =>
    (await import("./sqlite/backup.ts")).backUpFile(pathOf(url), file, onProgress),
  replace: async (url, nameOldDatabase) =>
    (await import("./sqlite/archive.ts")).replaceFile(pathOf(url), nameOldDatabase),
};

const postgres: Engine = {
  matches: (url) => /^postgres(ql)?:\/\//.test(url),
  exists: async (url) => (await import("./postgres/schema.ts")).hasSchema(url),
  open: async (url, options) => (await import("./postgres/store.ts")).openPostgres(url, options),
  migrate: async (url, options) => (await import("./postgres/store.ts")).preparePostgres(url, options),
  inspect: async (url) => (await import("./postgres/schema.ts")).inspectPostgres(url),
  archive: async (url) => (await import("./postgres/archive.ts")).openPostgresArchive(url),
  backUp: undefined,
  replace: undefined,
};

const ENGINES = [sqlite, postgres];

/** The URL alone determines the engine. */
export function engineFor(url: string): Engine {
  const engine = ENGINES.find(({ matches }) => matches(url));
  if (engine === undefined) throw new UserError(`No database engine supports ${displayNameOf(url)}.`);
  return engine;
}

export function openStore(url: string, options: StoreOptions): Promise<Store> {
  return engineFor(url).open(url, options);
}

/** Like `Engine.inspect`, with a finding for a database that cannot be inspected. */
export async function inspectDatabase(url: string): Promise<readonly Finding[]> {
  try {
    return await engineFor(url).inspect(url);
  } catch (error) {
    return [
      {
        state: "error",
        what: `The database at ${displayNameOf(url)} is unavailable: ${(error as Error).message}`,
        advice: "Check DATABASE_URL and that this user has access.",
      },
    ];
  }
}
