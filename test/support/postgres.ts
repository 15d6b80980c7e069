import type { ChildProcess } from "node:child_process";
import { hash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { engineFor } from "../../src/store/open.ts";
import { codeOf } from "../../src/store/postgres/connection.ts";
import { BASE, MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { createDistributedDatabase, databaseOn, NODES } from "./citus.ts";
import {
  type Cluster,
  copyData,
  freePort,
  giveToServer,
  launch,
  makeCluster,
  query,
  setNewEpoch,
  urlOf,
} from "./postgres-cluster.ts";

/** On a busy machine, a connection may take longer than the default. */
export const CONNECT_TIMEOUT = "connect_timeout=20";

/** A server that other tests may use at the same time. */
export interface SharedPostgres {
  readonly port: number;
  /** Creates an empty database. */
  database(): Promise<string>;
  /** Creates a database with Earmark's tables, sooner than a migration does. */
  migratedDatabase(): Promise<string>;
  query(sql: string, database?: string): Promise<Record<string, unknown>[]>;
}

export interface PostgresServer extends SharedPostgres {
  stop(mode: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
  /** A second server that follows this one and can only be read, until it is promoted. */
  standby(): Promise<PostgresServer>;
}

/** Registers what runs at the end, in reverse order. */
export type Later = (cleanup: () => unknown) => void;

/**
 * The cluster at TEST_CITUS_URLS, with distributed tables in every database; else the server at TEST_POSTGRES_URL, which
 * `npm test` starts once for all files; else one for this file.
 */
export async function sharedPostgres(): Promise<SharedPostgres> {
  const [coordinator] = NODES;
  const given = coordinator ?? process.env["TEST_POSTGRES_URL"];
  if (given === undefined) return startPostgres(["max_connections=300"]);
  const shared = accessTo(given);
  if (coordinator === undefined) return shared;
  const database = async () => `${await createDistributedDatabase()}?${CONNECT_TIMEOUT}`;
  return { ...shared, database, migratedDatabase: database };
}

function accessTo(url: string): SharedPostgres {
  return {
    port: Number(new URL(url).port || 5_432),
    database: () => createDatabase(url),
    migratedDatabase: () => copyMigrated(url),
    query: (sql, database = "postgres") => query(databaseOn(url, database), sql),
  };
}

/** Starts a server for the tests of a file. */
export async function startPostgres(settings: readonly string[] = [], later: Later = after): Promise<PostgresServer> {
  const home = mkdtempSync(join(tmpdir(), "earmark-postgres-"));
  later(() => rmSync(home, { recursive: true, force: true }));
  const cluster = makeCluster(join(home, "cluster"));
  const certificate = settings.includes("ssl=on") ? placeCertificate(cluster.data) : [];
  return runServer(cluster, [...settings, ...certificate], later);
}

function placeCertificate(data: string): string[] {
  const settings = [];
  for (const [setting, name] of [
    ["ssl_cert_file", "localhost.crt"],
    ["ssl_key_file", "localhost.key"],
  ] as const) {
    const place = join(data, name);
    cpSync(fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url)), place);
    chmodSync(place, 0o600);
    giveToServer(place);
    settings.push(`${setting}=${place}`);
  }
  return settings;
}

async function runServer(cluster: Cluster, settings: readonly string[], later: Later): Promise<PostgresServer> {
  const port = await freePort();
  let child: ChildProcess | undefined;
  const start = async () => {
    child = await launch(cluster, port, settings);
  };
  const stop = async (mode: "fast" | "immediate") => {
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await ended;
  };
  later(() => stop("immediate"));
  await start();
  return {
    ...accessTo(urlOf(port, "postgres")),
    start,
    stop,
    async standby() {
      const copy = `${cluster.data}-standby`;
      await stop("fast");
      copyData(cluster.data, copy);
      writeFileSync(join(copy, "standby.signal"), "");
      giveToServer(join(copy, "standby.signal"));
      await start();
      const follow = `primary_conninfo=host=127.0.0.1 port=${port} user=earmark`;
      return runServer({ ...cluster, data: copy }, [...settings, follow], later);
    },
  };
}

/** A migrated database to copy. The server may also have one of another version. */
const MIGRATED = `test_${hash("sha256", BASE + MIGRATIONS.join()).slice(0, 12)}`;

async function copyMigrated(server: string): Promise<string> {
  try {
    return await setNewEpoch(await createDatabase(server, `template ${MIGRATED}`));
  } catch (error) {
    if (codeOf(error) !== "3D000") throw error;
  }
  const url = await createDatabase(server);
  await engineFor(url).migrate(url, { distribute: false });
  await query(server, `alter database ${new URL(url).pathname.slice(1)} rename to ${MIGRATED}`).catch((error) => {
    // Another process was faster, or is renaming its database at the same time.
    if (!/^(42P04|23505)$/.test(codeOf(error) ?? "")) throw error;
  });
  return copyMigrated(server);
}

async function createDatabase(server: string, options = ""): Promise<string> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  await query(server, `create database ${name} ${options}`);
  const url = databaseOn(server, name);
  return `${url}${url.includes("?") ? "&" : "?"}${CONNECT_TIMEOUT}`;
}
