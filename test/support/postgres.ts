import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { createDistributedDatabase, NODES } from "./citus.ts";
import {
  type Cluster,
  copyData,
  freePort,
  giveToServer,
  launch,
  makeCluster,
  query,
  urlOf,
} from "./postgres-cluster.ts";

/** A server that other tests may use at the same time. */
export interface SharedPostgres {
  readonly port: number;
  /** Creates a database. */
  database(): Promise<string>;
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
  return {
    port: Number(new URL(given).port || 5_432),
    database: () => (coordinator === undefined ? createDatabase(given) : createDistributedDatabase()),
    query: (sql, database = "postgres") => query(Object.assign(new URL(given), { pathname: `/${database}` }).href, sql),
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
    port,
    start,
    stop,
    query: (sql, database = "postgres") => query(urlOf(port, database), sql),
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
    database: () => createDatabase(urlOf(port, "postgres")),
  };
}

async function createDatabase(server: string): Promise<string> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  await query(server, `create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  // On a busy machine, a connection may take longer than the default.
  url.searchParams.set("connect_timeout", "20");
  return url.href;
}
