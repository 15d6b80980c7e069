import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresServer } from "../test/support/postgres.ts";
import { type Run, replacingSql, serve, stop } from "./support/run.ts";

type Settings = Readonly<Record<string, string>>;

/** Where a start is tried: an empty folder, and databases to copy. */
export interface Site {
  readonly run: Run;
  readonly folder: string;
  readonly intact: string;
  readonly withAccounts: string;
}

/** A start that must be refused, with a message that names the cause and what to do. */
export type Case = readonly [
  name: string,
  words: readonly RegExp[],
  prepare: (site: Site) => Settings | Promise<Settings>,
  exitCode?: number,
];

const INVALID_SETTINGS = 78;
const fileIn = ({ folder }: Site) => `${folder}/earmark.db`;
const onFile = (site: Site): Settings => ({ DATABASE_URL: `file:${fileIn(site)}` });

/** A copy of the intact database, changed by a statement. */
function copied(site: Site, sql = "", settings: Settings = {}): Settings {
  copyFileSync(site.intact, fileIn(site));
  if (sql !== "") changed(fileIn(site), sql);
  return { ...onFile(site), ...settings };
}

function changed(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

function written(site: Site, content: string | Buffer): Settings {
  writeFileSync(fileIn(site), content);
  return onFile(site);
}

export const ON_FILES: readonly Case[] = [
  [
    "commits that do not wait for the disk",
    [/synchronous is 1, must be 2/, /network drive/],
    (site) => copied(site, "", { NODE_OPTIONS: replacingSql({ "synchronous = full": "synchronous = normal" }) }),
  ],
  [
    "no write-ahead log",
    [/journal_mode is delete, must be wal/],
    (site) => {
      const NODE_OPTIONS = replacingSql({ "journal_mode = wal": "journal_mode" });
      return copied(site, "pragma journal_mode = delete", { NODE_OPTIONS });
    },
  ],
  [
    "a database of another program",
    [/is not an Earmark database/, /not changed/, /set DATABASE_URL to another file/],
    (site) => {
      changed(fileIn(site), "create table songs (name text); insert into songs values ('x')");
      return onFile(site);
    },
  ],
  [
    "a file that is no database",
    [/is not an Earmark database/, /set DATABASE_URL to another file/],
    (site) => written(site, "Dear diary,\n".repeat(100)),
  ],
  [
    "a file of a newer version",
    [/newer Earmark \(schema version 99/, /install that version/],
    (site) => copied(site, "pragma user_version = 99"),
  ],
  [
    "a damaged file",
    [/is damaged|Cannot open the database/, /restore a backup|Check that it is an intact/],
    (site) => {
      const bytes = readFileSync(site.intact);
      return written(site, bytes.fill(0xa5, bytes.length / 2));
    },
  ],
  [
    "a file that another server has",
    [/Another Earmark process is using/, /Stop it first, or set DATABASE_URL/],
    async (site) => {
      await serve(site.run, copied(site));
      // Its cleanup, which may rewrite the file, begins when it listens.
      for (let before = Buffer.alloc(0), now = readFileSync(fileIn(site)); !now.equals(before); ) {
        before = now;
        await sleep(1_000);
        now = readFileSync(fileIn(site));
      }
      return onFile(site);
    },
  ],
  [
    "accounts, served without authentication",
    [/has accounts/, /Set EARMARK_ACCOUNTS=true/, /EARMARK_ALLOW_ANONYMOUS=true/],
    (site) => written(site, readFileSync(site.withAccounts)),
  ],
  [
    "a place that may not be written to",
    [/Cannot open the database/, /may write to its folder/],
    ({ folder }) => {
      // Root may write everywhere except in /proc.
      if (process.getuid?.() === 0) return { DATABASE_URL: "file:/proc/nowhere/earmark.db" };
      mkdirSync(`${folder}/closed`);
      chmodSync(`${folder}/closed`, 0o500);
      return { DATABASE_URL: `file:${folder}/closed/earmark.db` };
    },
  ],
  [
    "a folder in place of the file",
    [/Cannot open the database/, /Check that it is an intact/],
    (site) => {
      mkdirSync(fileIn(site));
      return onFile(site);
    },
  ],
  [
    "a file in place of the folder",
    [/Cannot open the database/, /may write to its folder/],
    (site) => ({ DATABASE_URL: `${written(site, "Dear diary,\n")["DATABASE_URL"]}/earmark.db` }),
  ],
];

const WEAK_ADMIN = {
  EARMARK_ACCOUNTS: "true",
  EARMARK_ADMIN_USER: "ann",
  EARMARK_ADMIN_PASSWORD: "password1234",
};

export const WITH_SETTINGS: readonly Case[] = [
  [
    "invalid settings",
    [/PORT=99999/, /EARMARK_MAX_OPERATION: unknown setting; did you mean/, /--help/],
    (site) => copied(site, "", { PORT: "99999", EARMARK_MAX_OPERATION: "5" }),
    INVALID_SETTINGS,
  ],
  [
    "an unsupported database",
    [/DATABASE_URL/, /--help/],
    () => ({ DATABASE_URL: "mysql://localhost/x" }),
    INVALID_SETTINGS,
  ],
  [
    "open to the network without accounts",
    [/HOST/, /EARMARK_ALLOW_ANONYMOUS=true/],
    (site) => copied(site, "", { HOST: "0.0.0.0" }),
    INVALID_SETTINGS,
  ],
  [
    "a common admin password",
    [/Check EARMARK_ADMIN_USER and EARMARK_ADMIN_PASSWORD/],
    (site) => copied(site, "", WEAK_ADMIN),
  ],
  [
    "a port that is in use",
    [/Port \d+ is in use/, /set PORT to another/],
    async (site) => {
      const taken = createServer().listen(0, "127.0.0.1");
      site.run.onEnd(() => taken.close());
      await once(taken, "listening");
      return copied(site, "", { PORT: String((taken.address() as AddressInfo).port) });
    },
  ],
];

/** `safe` is durable, `unsafe` is not. */
export function onPostgres(safe: PostgresServer, unsafe: PostgresServer, standby: PostgresServer): readonly Case[] {
  const cannotUse = [/Cannot use the database/, /Check DATABASE_URL/];
  const at = (port: number, name: string) => ({ DATABASE_URL: `postgres://earmark@127.0.0.1:${port}/${name}` });
  return [
    [
      "PostgreSQL that does not wait for the disk",
      [/fsync=off/, /Set fsync=on/],
      async () => ({ DATABASE_URL: await unsafe.database() }),
    ],
    ["a database that PostgreSQL does not have", [...cannotUse, /does not exist/], () => at(safe.port, "nowhere")],
    [
      "a database of a newer version on PostgreSQL",
      [/newer Earmark/, /install that version/i],
      async ({ run }) => {
        const url = await safe.database();
        await stop(await serve(run, { DATABASE_URL: url }), "SIGTERM");
        await safe.query("update earmark.schema set version = 99", new URL(url).pathname.slice(1));
        return { DATABASE_URL: url };
      },
    ],
    ["a standby of PostgreSQL", cannotUse, () => at(standby.port, "postgres")],
    ["PostgreSQL that is not there", [...cannotUse, /and that the server is running/], () => at(1, "earmark")],
  ];
}
