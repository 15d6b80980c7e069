import { type ChildProcess, spawn } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The tests of the HTTP API that run a second time, on PostgreSQL. */
export const API_TESTS = [
  "src/http/{operations,updates,changes,events,subscriptions,accounts,imports,quota}*.test.ts",
  "src/http/{app-authentication,nextcloud}.test.ts",
  "test/{access-apps,access-ends,podcasts-api,podcasts-fetch,podcasts-private,properties}*.test.ts",
  "test/apps/*.test.ts",
];

/** Tests that measure the memory or speed of their process, replace its timers for good, or hash at the real cost. */
const ALONE = [
  "src/http/{body,body-framing,event-hub,pipelining,timeouts}.test.ts",
  "src/{limits,passwords,opml/read}.test.ts",
  "reliability/linear-*.test.ts",
];

/** A test file that takes longer has hung, and so has a process that does not end after its last file. */
const TIMEOUT_MS = 10 * 60_000;
/** A file that failed may have left something open. */
const FAILED_TIMEOUT_MS = 30_000;
/** Test files also wait, for timers and other programs. More of them than cores keep the cores busy. */
const AT_A_TIME = Math.round(2.5 * availableParallelism());

const PROGRAM = fileURLToPath(new URL("test-process.ts", import.meta.url));
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const find = (patterns: readonly string[]) => [
  ...new Set(patterns.flatMap((pattern) => globSync(pattern, { cwd: ROOT }).sort())),
];
export const secondsSince = (start: number) => `${((performance.now() - start) / 1_000).toFixed(1)} s`;

export interface Job {
  readonly file: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly onEnd?: (output: string) => Promise<void>;
}

const stopping = new AbortController();

/** Ends the test files that are running; then `runTests` fails. */
export const stopTests = () => stopping.abort();

/** Runs the test files, many of them in one process, and prints the output of those that fail. */
export async function runTests(jobs: readonly Job[], atATime = AT_A_TIME): Promise<void> {
  const queue = jobs.values();
  const alone = find(ALONE);
  const failed: string[] = [];
  const work = async () => {
    let shared: TestProcess | undefined;
    for (const { file, environment, onEnd } of queue) {
      const start = performance.now();
      const isAlone = onEnd !== undefined || alone.includes(file);
      if (!isAlone && shared !== undefined && !shared.has(environment)) shared = await retire(shared);
      const runner = (isAlone ? undefined : shared) ?? new TestProcess(environment);
      let passed = await runner.run(file);
      stopping.signal.throwIfAborted();
      if (isAlone || !passed) passed = (await runner.end(passed ? TIMEOUT_MS : FAILED_TIMEOUT_MS)) && passed;
      shared = isAlone ? shared : passed ? runner : undefined;
      const name = `${file}${environment["TEST_ENGINE"] === undefined ? "" : " on PostgreSQL"}`;
      if (!passed) {
        failed.push(name);
        process.stdout.write(runner.output);
      }
      await onEnd?.(runner.output);
      process.stdout.write(`${passed ? "✔" : "✖"} ${name} (${secondsSince(start)})\n`);
    }
    if (shared !== undefined) await retire(shared);
  };
  const retire = async (runner: TestProcess) => {
    if (await runner.end(TIMEOUT_MS)) return undefined;
    process.stdout.write(runner.output);
    failed.push(`the process of ${runner.files.join(", ")}`);
    return undefined;
  };
  await Promise.all(Array.from({ length: atATime }, work));
  if (failed.length > 0) throw new Error(`failed:\n${failed.join("\n")}`);
}

/** A process that runs test files one after the other. */
class TestProcess {
  readonly files: string[] = [];
  /** What the process printed since the last file started. */
  output = "";
  readonly #environment: string;
  readonly #child: ChildProcess;
  readonly #closed: Promise<number | null>;

  constructor(environment: NodeJS.ProcessEnv) {
    this.#environment = JSON.stringify(environment);
    const env = { ...process.env, ...environment };
    const options = { cwd: ROOT, env, killSignal: "SIGKILL", signal: stopping.signal } as const;
    this.#child = spawn(process.execPath, [PROGRAM], { ...options, stdio: ["ignore", "pipe", "pipe", "ipc"] });
    const exited = new Promise<number | null>((resolve) => this.#child.once("exit", resolve));
    const read = async (stream: Readable | null) => {
      for await (const chunk of stream?.setEncoding("utf8") ?? []) this.output += chunk;
    };
    // Not the event "close", which does not come after disconnect().
    this.#closed = Promise.all([exited, read(this.#child.stdout), read(this.#child.stderr)]).then(([status]) => status);
    // The process was stopped or has crashed, so it closes.
    this.#child.on("error", () => undefined);
  }

  has(environment: NodeJS.ProcessEnv): boolean {
    return this.#environment === JSON.stringify(environment);
  }

  /** Whether the file passed. If not, the process cannot run others. */
  async run(file: string): Promise<boolean> {
    this.files.push(file);
    this.output = "";
    const answered = new Promise((resolve) => this.#child.once("message", resolve));
    this.#child.send(file);
    return (await this.#killLate(Promise.race([answered, this.#closed]), TIMEOUT_MS)) === true;
  }

  /** Whether the process ended by itself and without an error. */
  async end(timeoutMs: number): Promise<boolean> {
    if (this.#child.connected) this.#child.disconnect();
    return (await this.#killLate(this.#closed, timeoutMs)) === 0;
  }

  #killLate<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), timeoutMs);
    return work.finally(() => clearTimeout(timer));
  }
}
