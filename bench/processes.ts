import { type ChildProcess, execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Measurement, MeasureOrder, Order, RemoveOrder, Report, TimePagesOrder } from "./load.ts";

export interface Server {
  readonly pid: number;
  readonly port: number;
  /** What a client has to show, on a server with accounts. */
  readonly token?: string;
  stop(): Promise<void>;
}

export interface Load {
  run(order: MeasureOrder): Promise<Measurement>;
  run(order: TimePagesOrder | RemoveOrder): Promise<number[]>;
}

/** Every process that was started here and has not ended. */
const running = new Set<Tracked>();

interface Tracked {
  readonly child: ChildProcess;
  /** Rejects when the process ends, for whoever waits for something else from it. */
  readonly ended: Promise<never>;
}

/** The program as it is installed, with its defaults. */
export function startEarmark(place: string, nodeOptions: readonly string[] = []): Promise<Server> {
  const url = place.startsWith("postgres") ? place : `file:${place}`;
  return startServer([...nodeOptions, at("../bin/earmark"), "serve"], { PORT: "0", DATABASE_URL: url });
}

/** With accounts, a user, and a token of hers; the limits are counted, but high enough to be out of the way. */
export async function startEarmarkWithAccounts(place: string, nodeOptions: readonly string[] = []): Promise<Server> {
  const url = place.startsWith("postgres") ? place : `file:${place}`;
  const command = (args: readonly string[], input: string) =>
    execFileSync(process.execPath, [at("../bin/earmark"), ...args], {
      env: { ...process.env, DATABASE_URL: url },
      input,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "ignore"],
    });
  command(["user", "add", "ann", "--password-stdin"], "a password for the bench");
  const token = command(["token", "create", "ann", "--label", "bench"], "").trim();
  const server = await startServer([...nodeOptions, at("../bin/earmark"), "serve"], {
    PORT: "0",
    DATABASE_URL: url,
    EARMARK_ACCOUNTS: "on",
    EARMARK_REQUESTS_PER_MINUTE: "1000000",
    EARMARK_OPERATIONS_PER_MINUTE: "100000000",
  });
  return { ...server, token };
}

export function startFloor(place: string, mode: "groups" | "each" | "postgres"): Promise<Server> {
  return startServer([at("floor.ts"), place, mode], {});
}

export function startLoad(): Load {
  const { child, ended } = track(fork(at("load.ts"), { execPath: process.execPath, stdio: "inherit" }));
  const run = async (order: Order) => {
    child.send(order);
    const [report] = (await Promise.race([once(child, "message"), ended])) as [Report];
    if ("failure" in report) throw new Error(report.failure);
    return report.value;
  };
  return { run } as Load;
}

/** Ends what is left, for the end of the run however it comes; nothing of theirs is worth keeping. */
export function killAll(): void {
  for (const { child } of running) child.kill("SIGKILL");
}

export async function stopAll(): Promise<void> {
  await Promise.all([...running].map(stop));
}

/** A server says where it listens in a line of JSON. */
async function startServer(args: readonly string[], settings: Readonly<Record<string, string>>): Promise<Server> {
  // The settings of whoever runs this must not change what is measured.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("EARMARK_") && name !== "HOST");
  const tracked = track(
    spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...Object.fromEntries(inherited), ...settings },
    }),
  );
  const { pid, stdout } = tracked.child;
  if (pid === undefined || stdout === null) throw new Error(`cannot start ${args.join(" ")}`);
  const url = new Promise<string>((resolve) => {
    createInterface(stdout).on("line", (line) => {
      const entry = JSON.parse(line) as { url?: string; level?: number };
      if (entry.url !== undefined) resolve(entry.url);
      else if ((entry.level ?? 0) > 30) process.stderr.write(`${line}\n`);
    });
  });
  const port = Number(new URL(await Promise.race([url, tracked.ended])).port);
  return { pid, port, stop: () => stop(tracked) };
}

async function stop(tracked: Tracked): Promise<void> {
  if (!running.has(tracked)) return;
  // A server that does not know yet that its clients have gone waits a second for them.
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
