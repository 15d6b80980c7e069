import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { type Cluster, freePort, giveToServer, launch, makeCluster, query, urlOf } from "./postgres-cluster.ts";

export interface PostgresServer {
  readonly port: number;
  /** A new database on this server. */
  database(): Promise<string>;
  stop(mode: "fast" | "immediate"): Promise<void>;
  start(): Promise<void>;
  query(sql: string, database?: string): Promise<Record<string, unknown>[]>;
  /** A second server that follows this one and can only be read, until it is promoted. */
  standby(): Promise<PostgresServer>;
}

/** What has to be put away at the end, the latest first. */
export type Later = (putAway: () => unknown) => void;

/** A real server of its own for the tests of a file. */
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
      cpSync(cluster.data, copy, { recursive: true });
      writeFileSync(join(copy, "standby.signal"), "");
      for (const path of ["", ...readdirSync(copy, { recursive: true })]) giveToServer(join(copy, String(path)));
      chmodSync(copy, 0o700);
      await start();
      const follow = `primary_conninfo=host=127.0.0.1 port=${port} user=earmark`;
      return runServer({ ...cluster, data: copy }, [...settings, follow], later);
    },
    database: () => createDatabase(urlOf(port, "postgres")),
  };
}

/** A new database on the server of this URL. */
export async function createDatabase(server: string): Promise<string> {
  const name = `test_${randomBytes(6).toString("hex")}`;
  await query(server, `create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** A new database for one suite: on the server that TEST_POSTGRES_URL names, or else on this one. */
export async function suiteDatabase(server: PostgresServer): Promise<string> {
  const given = process.env["TEST_POSTGRES_URL"];
  return given === undefined ? server.database() : createDatabase(given);
}
