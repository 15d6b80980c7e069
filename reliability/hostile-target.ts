import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { p99Of } from "../bench/figures.ts";
import { readPeakMiB } from "../bench/usage.ts";
import { fromElsewhere, newToken, signUp } from "../test/support/accounts.ts";
import { type RunningServer, SERVE } from "../test/support/process.ts";
import { ATOMIC, callServer } from "../test/support/server.ts";
import { ClientProcess } from "./client-process.ts";
import { ACTIONS_OF_APPS, type Account, actions, longFeedUrl, operations } from "./hostile-attacks.ts";
import type { Command, HealthChecks, Load, ResponseCounts, Task, TaskResults, Usage } from "./hostile-process.ts";
import { preloading, type Run, serve, stop } from "./reliability-test.ts";

type Settings = Readonly<Record<string, string>>;
type User = Usage["accounts"][number];

/** How long the server gets to recover after an attack before it is restarted. */
const RECOVERY_MS = 10_000;
/** Health checks continue for this long after an attack. */
const AFTERWARDS_MS = 300;
const BATCH_SIZE = 1_000;
/** Together as many as an account may add per minute. */
const ACTIONS_PER_FEED = 4;
let accounts = 0;

/** The server under attack, with accounts, and the processes of its clients. */
export class Target {
  readonly #run: Run;
  readonly #settings: Settings;
  readonly #hostile: ClientProcess<Command>;
  readonly #watcher: ClientProcess<Command>;
  readonly #ordinary: ClientProcess<Command>;
  #server: RunningServer;
  /** Exit code or signal of the process; undefined while it runs. */
  ended: number | string | undefined;

  static async open(run: Run, settings: Settings = {}, command?: readonly string[]): Promise<Target> {
    const all = {
      DATABASE_URL: `file:${run.folder}/earmark.db`,
      EARMARK_ACCOUNTS: "true",
      EARMARK_SIGN_UP: "true",
      EARMARK_TRUSTED_PROXIES: "127.0.0.1",
      ...settings,
    };
    return new Target(run, all, await serve(run, all, command));
  }

  private constructor(run: Run, settings: Settings, server: RunningServer) {
    this.#run = run;
    this.#settings = settings;
    this.#hostile = new ClientProcess(run, "./hostile-process.ts");
    this.#watcher = new ClientProcess(run, "./hostile-process.ts");
    this.#ordinary = new ClientProcess(run, "./hostile-process.ts");
    this.#server = server;
    this.#follow(server);
  }

  get peakMiB(): number {
    return readPeakMiB(this.#server.child.pid ?? 0);
  }

  /** A new process on the same data. */
  async restart(settings: Settings = {}, command?: readonly string[]): Promise<void> {
    await this.stop();
    this.#server = await serve(this.#run, { ...this.#settings, ...settings }, command);
    this.ended = undefined;
    this.#follow(this.#server);
  }

  async stop(): Promise<void> {
    await stop(this.#server);
  }

  #follow(server: RunningServer): void {
    void server.ended.then((how) => {
      if (server === this.#server) this.ended = how;
    });
  }

  /** A new account, with a list of long URLs and many episode actions if `length` is given. */
  async addAccount(length = 0): Promise<User> {
    const { port } = this.#server;
    accounts += 1;
    const [name, password] = [`user${accounts}`, `password of user ${accounts}`];
    const { cookie } = await signUp(port, name, password, fromElsewhere());
    const { token } = await newToken(port, { cookie }, { label: "app", scope: "write" });
    for (let left = length; left > 0; left -= BATCH_SIZE) {
      const count = Math.min(left, BATCH_SIZE);
      await this.#post(token, "/v1/operations", operations(count, longFeedUrl));
      await this.#post(token, `${ACTIONS_OF_APPS}/create`, actions(count * ACTIONS_PER_FEED, 100));
    }
    return { name, password, cookie, token };
  }

  async addAccounts(count: number, length = 0): Promise<User[]> {
    const users: User[] = [];
    while (users.length < count) users.push(await this.addAccount(length));
    return users;
  }

  async #post(token: string, path: string, body: string): Promise<void> {
    const headers = { "Content-Type": ATOMIC, Authorization: `Bearer ${token}` };
    for (;;) {
      const response = await callServer(this.#server.port, "POST", path, { headers, body });
      if (response.status === 200) return;
      if (response.status !== 429 && response.status !== 503) throw new Error(`${response.status}: ${response.text}`);
      await sleep(1_000 * Number(response.headers["retry-after"]));
    }
  }

  /** Attacks for `ms`; with `untilSteady`, also until the memory of the server stops growing. */
  attack(loads: readonly Load[], ms = 0, untilSteady = false): Promise<ResponseCounts> {
    const { port, child } = this.#server;
    const untilSteadyPid = untilSteady ? child.pid : undefined;
    return this.#hostile.ask({ role: "attack", port, ms, loads, untilSteadyPid, isLowPriority: !this.#run.isQuick });
  }

  /** Sends health checks during `work`. */
  async watch<Result>(
    work: () => Promise<Result>,
  ): Promise<{ readonly checks: HealthChecks; readonly result: Result }> {
    const { port, child } = this.#server;
    const watching = this.#watcher.ask<HealthChecks>({ role: "watch", port, pid: child.pid ?? 0 });
    // An earlier failure is the one to report.
    watching.catch(() => undefined);
    try {
      const result = await work();
      await sleep(AFTERWARDS_MS);
      this.#watcher.send({ role: "stop watching" });
      return { result, checks: await watching };
    } finally {
      this.#watcher.send({ role: "stop watching" });
    }
  }

  use(tasks: readonly Task[], users: Usage["accounts"], ms: number): Promise<TaskResults> {
    return this.#ordinary.ask({ role: "use", port: this.#server.port, tasks, accounts: users, ms });
  }

  /** Waits until an ordinary client can add, list and export again; false if that takes too long. */
  async hasRecovered(user: Account): Promise<boolean> {
    const signal = AbortSignal.timeout(RECOVERY_MS);
    const headers = { Authorization: `Bearer ${user.token}` };
    const url = `http://127.0.0.1:${this.#server.port}`;
    const add = { method: "POST", headers: { ...headers, "Content-Type": ATOMIC }, body: operations(1, longFeedUrl) };
    while (!signal.aborted && this.ended === undefined) {
      try {
        const responses = [
          await fetch(`${url}/v1/operations`, { ...add, signal }),
          await fetch(`${url}/v1/subscriptions`, { headers, signal }),
          await fetch(`${url}/v1/subscriptions.opml`, { headers, signal }),
        ];
        for (const response of responses) await response.arrayBuffer();
        if (responses.every(({ ok }) => ok)) return true;
      } catch {
        // Timed out, or the server is down.
      }
      await sleep(100);
    }
    return false;
  }
}

/** Settings of a server that runs `code` at the start of every request except POST and `/healthz`. */
export function withCode(code: string): Settings {
  return {
    NODE_OPTIONS: preloading(`
      import { Server } from "node:http";
      const { emit } = Server.prototype;
      Server.prototype.emit = function (event, request, response) {
        if (event === "request" && request.url !== "/healthz" && request.method !== "POST") { ${code} }
        return emit.apply(this, arguments);
      };`),
  };
}

export const hold = (attack: string, connections: number) => ({ attack, connections, how: "hold" }) as const;
export const repeat = (attack: string, connections: number) => ({ attack, connections, how: "repeat" }) as const;

export interface Times {
  readonly p99Ms: number;
  readonly maxMs: number;
}

export function summarize(times: readonly number[]): Times {
  return { p99Ms: p99Of(times), maxMs: times.length === 0 ? Number.NaN : Math.max(...times) };
}

export function formatTimes({ p99Ms, maxMs }: Times): string {
  return `p99 ${p99Ms.toFixed(0)} ms, max ${maxMs.toFixed(0)} ms`;
}

const V1 = "/sys/fs/cgroup/memory";
const V2 = "/sys/fs/cgroup";
let groups = 0;

/** Creates a control group of this size for a process, or returns the reason why that is impossible. */
export function limitMemory(run: Run, bytes: number) {
  const isV1 = existsSync(`${V1}/memory.limit_in_bytes`);
  groups += 1;
  const group = `${isV1 ? V1 : V2}/earmark-${process.pid}-${groups}`;
  try {
    mkdirSync(group);
    run.onEnd(() => removeGroup(group));
    const limits = isV1 ? ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] : ["memory.max", "memory.swap.max"];
    for (const [index, file] of limits.entries()) {
      // The second file exists only with swap accounting.
      if (index === 0 || existsSync(`${group}/${file}`))
        writeFileSync(`${group}/${file}`, String(isV1 || index === 0 ? bytes : 0));
    }
  } catch (error) {
    return `cannot create a control group (${(error as NodeJS.ErrnoException).code ?? error})`;
  }
  const peak = `${group}/${isV1 ? "memory.max_usage_in_bytes" : "memory.peak"}`;
  return {
    command: ["sh", "-c", `echo $$ > ${group}/cgroup.procs && exec "$@"`, "sh", ...SERVE],
    peakMiB: () => (existsSync(peak) ? Number(readFileSync(peak, "latin1")) / 2 ** 20 : Number.NaN),
  };
}

/** A group can only be removed after its last process has exited. */
async function removeGroup(group: string): Promise<void> {
  for (let left = 50; left > 0; left -= 1) {
    try {
      rmdirSync(group);
      return;
    } catch {
      await sleep(100);
    }
  }
}
