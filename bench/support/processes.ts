import { type ChildProcess, execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ENVIRONMENT } from "../../test/support/process.ts";
import type { Measurement, MeasureOrder, Order, Report, TimePagesOrder } from "./load.ts";

export interface Server {
  readonly pid: number;
  readonly port: number;
  /** API tokens, on a server with accounts. */
  readonly tokens: readonly string[];
  readonly onPostgres: boolean;
  stop(): Promise<void>;
}

export interface Load {
  run(order: MeasureOrder): Promise<Measurement>;
  run(order: TimePagesOrder): Promise<number[]>;
  /** Ends the current measurement. */
  finish(): void;
}

/** Processes started here that have not exited. */
const running = new Set<Tracked>();

interface Tracked {
  readonly child: ChildProcess;
  /** Rejects when the process exits. */
  readonly ended: Promise<never>;
}

/** Limits are counted, but never reached. */
const WITH_ACCOUNTS = {
  EARMARK_ACCOUNTS: "true",
  EARMARK_REQUESTS_PER_MINUTE: "1000000",
  EARMARK_OPERATIONS_PER_MINUTE: "100000000",
  EARMARK_MAX_SUBSCRIPTIONS_PER_USER: "1000000000",
};

export const THIS_CHECKOUT = at("../..");

export interface StartOptions {
  /** The root of the repository to run. */
  readonly checkout?: string;
  /** Starts the server with accounts, unless empty. */
  readonly tokens?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
}

/** The program as `npm start` runs it, with defaults. */
export async function startEarmark(
  database: string,
  { checkout = THIS_CHECKOUT, tokens = [], settings = {} }: StartOptions = {},
): Promise<Server> {
  const { scripts } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as {
    scripts: { start: string };
  };
  const options = scripts.start.split(" ").filter((word) => word.startsWith("--"));
  const server = await startServer([...options, join(checkout, "bin/earmark"), "serve"], {
    PORT: "0",
    DATABASE_URL: urlOf(database),
    EARMARK_FETCH_FEEDS: "false",
    EARMARK_DIRECTORY: "off",
    ...ENVIRONMENT,
    ...(tokens.length === 0 ? {} : WITH_ACCOUNTS),
    ...settings,
  });
  return { ...server, tokens, onPostgres: isUrl(database) };
}

/** Creates an account and a token in a database that no server has open. */
export function makeToken(database: string, checkout = THIS_CHECKOUT): string {
  const command = (args: readonly string[], input: string) =>
    execFileSync(process.execPath, [join(checkout, "bin/earmark"), ...args], {
      env: { ...inherited(), DATABASE_URL: urlOf(database) },
      input,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "ignore"],
    });
  command(["user", "add", "ann", "--password-stdin"], "a password for the bench");
  return command(["token", "create", "ann", "--label", "bench"], "").trim();
}

function urlOf(database: string): string {
  return isUrl(database) ? database : `file:${database}`;
}

function isUrl(database: string): boolean {
  return database.startsWith("postgres");
}

/**
 * Compiled code is cached between starts, as in Earmark. On PostgreSQL, small inserts are faster one group at a time
 * (`isSerial`), large ones in parallel; the faster variant is the baseline.
 */
export async function startBaseline(database: string, isSerial: boolean): Promise<Server> {
  const settings = { NODE_COMPILE_CACHE: at("../../node_modules/.cache/earmark") };
  const server = await startServer([at("../baseline/server.ts"), database, isSerial ? "serial" : "parallel"], settings);
  return { ...server, onPostgres: isUrl(database) };
}

export function startLoad(first: number): Load {
  const { child, ended } = track(
    fork(at("load.ts"), [String(first)], { execPath: process.execPath, stdio: "inherit", serialization: "advanced" }),
  );
  const run = async (order: Order) => {
    child.send(order);
    const [report] = (await Promise.race([once(child, "message"), ended])) as [Report];
    if ("failure" in report) throw new Error(report.failure);
    return report.value;
  };
  return { run, finish: () => child.send("finish") } as Load;
}

/** Ends all remaining processes at once. */
export function killAll(): void {
  for (const { child } of running) child.kill("SIGKILL");
}

export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(stop));
}

/** Servers print their URL in a line of JSON. */
async function startServer(args: readonly string[], settings: Readonly<Record<string, string>>): Promise<Server> {
  const tracked = track(
    spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...inherited(), ...settings },
    }),
  );
  const { pid, stdout } = tracked.child;
  if (pid === undefined || stdout === null) throw new Error(`cannot start ${args.join(" ")}`);
  const url = new Promise<string>((resolve) => {
    createInterface(stdout).on("line", (line) => {
      const entry = JSON.parse(line) as { url?: string; level?: number; msg?: string };
      if (entry.url !== undefined) resolve(entry.url);
      // Under full load the largest requests are slow.
      else if ((entry.level ?? 0) > 30 && entry.msg !== "slow request") process.stderr.write(`${line}\n`);
    });
  });
  const port = Number(new URL(await Promise.race([url, tracked.ended])).port);
  return { pid, port, tokens: [], onPostgres: false, stop: () => stop(tracked) };
}

/** Settings of the current user must not influence the measurement. */
function inherited(): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith("EARMARK_") && name !== "HOST");
  return Object.fromEntries(others);
}

async function stop(tracked: Tracked): Promise<void> {
  if (!running.has(tracked)) return;
  // A server that has not noticed yet that its clients are gone waits a second for them.
  await sleep(30);
  const exit = once(tracked.child, "exit");
  tracked.child.kill();
  await exit;
}

function track(child: ChildProcess): Tracked {
  const ended = once(child, "exit").then(([code, signal]) => {
    running.delete(tracked);
    throw new Error(`process ${child.pid} ended early (${code ?? signal}): ${child.spawnargs.join(" ")}`);
  });
  ended.catch(() => {});
  const tracked = { child, ended };
  running.add(tracked);
  return tracked;
}

function at(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
