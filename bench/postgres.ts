import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { freePort, launch, makeCluster, query, urlOf } from "../test/support/postgres-cluster.ts";

/**
 * The server of BENCH_POSTGRES_URL, or the one from npm, started in `folder` with its durable defaults. Uses new databases,
 * which are dropped afterwards.
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
      const advice = named === "" ? "Set BENCH_POSTGRES_URL" : "Check BENCH_POSTGRES_URL";
      throw new Error(`No PostgreSQL found. ${advice}, or use --only sqlite.`, {
        cause: error,
      });
    }
  }

  /** The process, if it was started here. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Undefined when PostgreSQL was not needed. */
  async version(): Promise<string | undefined> {
    if (this.#url === "") return undefined;
    const [row] = await query(this.#url, "show server_version");
    return String(row?.["server_version"]);
  }

  async create(): Promise<string> {
    const name = `earmark_bench_${randomBytes(6).toString("hex")}`;
    await query(this.#url, `create database ${name}`);
    const url = new URL(this.#url);
    url.pathname = name;
    this.#databases.add(url.href);
    return url.href;
  }

  /** At once, because autovacuum of an unused database would disturb later measurements. */
  async drop(url: string): Promise<void> {
    await query(this.#url, `drop database ${new URL(url).pathname.slice(1)} with (force)`);
    this.#databases.delete(url);
  }

  async stop(): Promise<void> {
    this.kill();
    await this.#exit;
    if (this.#child === undefined) for (const url of this.#databases) await this.drop(url);
  }

  /** SIGQUIT ends its child processes too, which SIGKILL would not. */
  kill(): void {
    this.#child?.kill("SIGQUIT");
  }

  async #startHere(): Promise<string> {
    const port = await freePort();
    const child = await launch(makeCluster(join(this.#folder, "postgres")), port);
    this.#child = child;
    this.#exit = once(child, "exit");
    return urlOf(port, "postgres");
  }
}
