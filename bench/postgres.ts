import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { freePort, launch, makeCluster, query, urlOf } from "../test/support/postgres-cluster.ts";

/** A server with its durable defaults, in `folder`. */
export class PostgresServer {
  readonly #folder: string;
  #url = "";
  #child: ChildProcess | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async start(): Promise<void> {
    const port = await freePort();
    this.#child = await launch(makeCluster(join(this.#folder, "postgres")), port);
    this.#url = urlOf(port, "postgres");
  }

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
    return Object.assign(new URL(this.#url), { pathname: name }).href;
  }

  /** At once, because autovacuum of an unused database would disturb later measurements. */
  async drop(url: string): Promise<void> {
    await query(this.#url, `drop database ${new URL(url).pathname.slice(1)} with (force)`);
  }

  async stop(): Promise<void> {
    if (this.#child === undefined || this.#child.exitCode !== null) return;
    const exit = once(this.#child, "exit");
    this.kill();
    await exit;
  }

  /** SIGQUIT ends its child processes too, which SIGKILL would not. */
  kill(): void {
    this.#child?.kill("SIGQUIT");
  }
}
