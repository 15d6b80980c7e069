import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresServer } from "../test/support/postgres.ts";
import { preloading, type Run, serve, stop } from "./support/run.ts";

/** A start that must be refused. */
export interface Case {
  readonly name: string;
  readonly code: number;
  /** The message must name the cause and what to do. */
  readonly words: readonly RegExp[];
  /** Prepares the folder and returns the settings. */
  prepare(folder: string, run: Run): Settings | Promise<Settings>;
}

type Settings = Readonly<Record<string, string>>;

const WRONG_SETTINGS = 78;
const file = (folder: string) => `${folder}/earmark.db`;
const onFile = (folder: string): Settings => ({ DATABASE_URL: `file:${file(folder)}` });

/** Replaces statements of SQLite. */
function disobey(method: "exec" | "prepare", asked: string, done: string): string {
  return preloading(`import { DatabaseSync } from "node:sqlite";
const original = DatabaseSync.prototype.${method};
DatabaseSync.prototype.${method} = function (sql) { return original.call(this, sql.replace("${asked}", "${done}")); };`);
}

/** `database` is an intact file, `withAccounts` one with an account. */
export function casesOfFiles(database: string, withAccounts: string): readonly Case[] {
  const change = (path: string, sql: string) => {
    copyFileSync(database, path);
    const changed = new DatabaseSync(path);
    changed.exec(sql);
    changed.close();
  };
  return [
    {
      name: "commits that do not wait for the disk",
      code: 1,
      words: [/synchronous is 1, must be 2/, /network drive/],
      prepare(folder) {
        copyFileSync(database, file(folder));
        return { ...onFile(folder), NODE_OPTIONS: disobey("exec", "synchronous = full", "synchronous = normal") };
      },
    },
    {
      name: "no write-ahead log",
      code: 1,
      words: [/journal_mode is delete, must be wal/],
      prepare(folder) {
        change(file(folder), "pragma journal_mode = delete");
        return { ...onFile(folder), NODE_OPTIONS: disobey("prepare", "journal_mode = wal", "journal_mode") };
      },
    },
    {
      name: "a database of another program",
      code: 1,
      words: [/is not an Earmark database/, /not changed/, /set DATABASE_URL to another file/],
      prepare(folder) {
        const foreign = new DatabaseSync(file(folder));
        foreign.exec("create table songs (name text); insert into songs values ('x')");
        foreign.close();
        return onFile(folder);
      },
    },
    {
      name: "a file that is no database",
      code: 1,
      words: [/is not an Earmark database/, /set DATABASE_URL to another file/],
      prepare(folder) {
        writeFileSync(file(folder), "Dear diary,\n".repeat(100));
        return onFile(folder);
      },
    },
    {
      name: "a file of a newer version",
      code: 1,
      words: [/newer Earmark \(schema version 99/, /install that version/],
      prepare(folder) {
        change(file(folder), "pragma user_version = 99");
        return onFile(folder);
      },
    },
    {
      name: "a damaged file",
      code: 1,
      words: [/is damaged|Cannot open the database/, /restore a backup|Check that it is an intact/],
      prepare(folder) {
        const bytes = readFileSync(database);
        writeFileSync(file(folder), bytes.fill(0xa5, bytes.length / 2));
        return onFile(folder);
      },
    },
    {
      name: "a file that another server has",
      code: 1,
      words: [/Another Earmark process is using/, /Stop it first, or set DATABASE_URL/],
      async prepare(folder, run) {
        copyFileSync(database, file(folder));
        await serve(run, onFile(folder));
        // Its cleanup, which may rewrite the file, begins when it listens.
        for (let before = Buffer.alloc(0), now = readFileSync(file(folder)); !now.equals(before); ) {
          before = now;
          await sleep(1_000);
          now = readFileSync(file(folder));
        }
        return onFile(folder);
      },
    },
    {
      name: "accounts, served without authentication",
      code: 1,
      words: [/has accounts/, /Set EARMARK_ACCOUNTS=true/, /EARMARK_ALLOW_ANONYMOUS=true/],
      prepare(folder) {
        copyFileSync(withAccounts, file(folder));
        return onFile(folder);
      },
    },
    {
      name: "a place that may not be written to",
      code: 1,
      words: [/Cannot open the database/, /may write to its folder/],
      prepare(folder) {
        // Root may write everywhere except in /proc.
        if (process.getuid?.() === 0) return { DATABASE_URL: "file:/proc/nowhere/earmark.db" };
        mkdirSync(`${folder}/closed`);
        chmodSync(`${folder}/closed`, 0o500);
        return { DATABASE_URL: `file:${folder}/closed/earmark.db` };
      },
    },
    {
      name: "a folder in place of the file",
      code: 1,
      words: [/Cannot open the database/, /Check that it is an intact/],
      prepare(folder) {
        mkdirSync(file(folder));
        return onFile(folder);
      },
    },
    {
      name: "a file in place of the folder",
      code: 1,
      words: [/Cannot open the database/, /may write to its folder/],
      prepare(folder) {
        writeFileSync(file(folder), "Dear diary,\n");
        return { DATABASE_URL: `file:${file(folder)}/earmark.db` };
      },
    },
  ];
}

export function casesOfSettings(database: string): readonly Case[] {
  const withDatabase = (folder: string): Settings => {
    copyFileSync(database, file(folder));
    return onFile(folder);
  };
  return [
    {
      name: "invalid settings",
      code: WRONG_SETTINGS,
      words: [/PORT=99999/, /EARMARK_MAX_OPERATION: unknown setting; did you mean/, /--help/],
      prepare: (folder) => ({ ...withDatabase(folder), PORT: "99999", EARMARK_MAX_OPERATION: "5" }),
    },
    {
      name: "an unsupported database",
      code: WRONG_SETTINGS,
      words: [/DATABASE_URL/, /--help/],
      prepare: () => ({ DATABASE_URL: "mysql://localhost/x" }),
    },
    {
      name: "open to the network without accounts",
      code: WRONG_SETTINGS,
      words: [/HOST/, /EARMARK_ALLOW_ANONYMOUS=true/],
      prepare: (folder) => ({ ...withDatabase(folder), HOST: "0.0.0.0" }),
    },
    {
      name: "a common admin password",
      code: 1,
      words: [/Check EARMARK_ADMIN_USER and EARMARK_ADMIN_PASSWORD/],
      prepare: (folder) => ({
        ...withDatabase(folder),
        EARMARK_ACCOUNTS: "true",
        EARMARK_ADMIN_USER: "ann",
        EARMARK_ADMIN_PASSWORD: "password1234",
      }),
    },
    {
      name: "a port that is in use",
      code: 1,
      words: [/Port \d+ is in use/, /set PORT to another/],
      async prepare(folder, run) {
        const taken = createServer().listen(0, "127.0.0.1");
        run.onEnd(() => taken.close());
        await once(taken, "listening");
        return { ...withDatabase(folder), PORT: String((taken.address() as AddressInfo).port) };
      },
    },
  ];
}

/** `safe` is durable, `unsafe` is not. */
export function casesOfPostgres(
  safe: PostgresServer,
  unsafe: PostgresServer,
  standby: PostgresServer,
): readonly Case[] {
  return [
    {
      name: "PostgreSQL that does not wait for the disk",
      code: 1,
      words: [/fsync=off/, /Set fsync=on/],
      prepare: async () => ({ DATABASE_URL: await unsafe.database() }),
    },
    {
      name: "a database that PostgreSQL does not have",
      code: 1,
      words: [/Cannot use the database/, /does not exist/, /Check DATABASE_URL/],
      prepare: () => ({ DATABASE_URL: `postgres://earmark@127.0.0.1:${safe.port}/nowhere` }),
    },
    {
      name: "a database of a newer version on PostgreSQL",
      code: 1,
      words: [/newer Earmark/, /install that version/i],
      async prepare(_folder, run) {
        const url = await safe.database();
        await stop(await serve(run, { DATABASE_URL: url }), "SIGTERM");
        await safe.query("update earmark.schema set version = 99", new URL(url).pathname.slice(1));
        return { DATABASE_URL: url };
      },
    },
    {
      name: "a standby of PostgreSQL",
      code: 1,
      words: [/Cannot use the database/, /Check DATABASE_URL/],
      prepare: () => ({ DATABASE_URL: `postgres://earmark@127.0.0.1:${standby.port}/postgres` }),
    },
    {
      name: "PostgreSQL that is not there",
      code: 1,
      words: [/Cannot use the database/, /Check DATABASE_URL, and that the server is running/],
      prepare: () => ({ DATABASE_URL: "postgres://earmark@127.0.0.1:1/earmark" }),
    },
  ];
}
