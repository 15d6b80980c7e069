import { type ChildProcess, spawn } from "node:child_process";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The tests of the HTTP API that also pass on PostgreSQL. */
export const API_TESTS = [
  "src/http/{api/{operations,history,updates,changes,events,former-urls,subscriptions,imports,me,quota},auth/app-authentication,apps/nextcloud/routes}.test.ts",
  "test/{access-apps,access-ends-apps,account-imports,clock-steps,erasure,podcasts-api,podcasts-fair,podcasts-fetch,podcasts-private,podcasts-spellings,properties}*.test.ts",
  "test/apps/*.test.ts",
];
/** Those of them that depend on the order of writes, on several connections or on the clock of the database. */
export const ENGINE_TESTS = [
  "src/http/api/{changes,events,former-urls,history,operations}.test.ts",
  "test/{access-ends-apps,clock-steps,erasure,podcasts-fetch,properties}.test.ts",
  "test/apps/properties.test.ts",
];

/**
 * Tests that measure the memory, speed or open files of their process, replace its timers for good, or hash at the real
 * cost.
 */
const ALONE = [
  "src/http/api/event-hub.test.ts",
  "src/{accounts/password-cost,store/archive}.test.ts",
  "reliability/{linear-*,memory,password-duration,sign-in-duration,import-of-many,rejected-bodies}.test.ts",
];

/** A test file that takes longer has hung, and so has a process that does not end after its last file. */
const TIMEOUT_MS = 10 * 60_000;
/** A file that failed may have left something open. */
const FAILED_TIMEOUT_MS = 30_000;
/** Test files also wait, for timers and other programs. More of them than cores keep the cores busy. */
const AT_A_TIME = Math.round(2.5 * availableParallelism());

/** In CI, how many failed test files may run again. If more failed, it was not by chance. */
const MAX_REPEATED = 3;

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

const nameOf = ({ file, environment }: Job) =>
  `${file}${environment["TEST_ENGINE"] === undefined ? "" : " on PostgreSQL"}`;

/**
 * Runs the test files, many of them in one process, and prints the output of those that fail. In CI, if at most
 * three files fail, these run again at the end, with nothing else running: a shared machine can be too slow for a test,
 * and a browser can crash. Those that pass then are listed.
 */
export async function runTests(jobs: readonly Job[], atATime = AT_A_TIME): Promise<void> {
  const queue = jobs.values();
  const alone = find(ALONE);
  let failed: Job[] = [];
  const brokenProcesses: string[] = [];
  const work = async () => {
    let shared: TestProcess | undefined;
    for (const job of queue) {
      const isAlone = job.onEnd !== undefined || alone.includes(job.file);
      const runner = (isAlone ? undefined : shared) ?? new TestProcess(job.environment);
      const passed = await runJob(job, runner, isAlone);
      if (!passed) failed.push(job);
      if (!isAlone) shared = passed ? runner : undefined;
    }
    if (shared === undefined || (await shared.end(TIMEOUT_MS))) return;
    process.stdout.write(shared.output);
    brokenProcesses.push(`the process of ${shared.files.join(", ")}`);
  };
  await Promise.all(Array.from({ length: atATime }, work));
  if (process.env["CI"] === "true" && failed.length <= MAX_REPEATED) {
    const first = failed;
    failed = [];
    for (const job of first) if (!(await runJob(job, new TestProcess(job.environment), true))) failed.push(job);
    const flaky = first.filter((job) => !failed.includes(job));
    if (flaky.length > 0) process.stdout.write(`flaky, passed when run again:\n${flaky.map(nameOf).join("\n")}\n`);
  }
  const all = [...failed.map(nameOf), ...brokenProcesses];
  if (all.length > 0) throw new Error(`failed:\n${all.join("\n")}`);
}

/** Returns whether the file passed. With `isLast`, its process must also end without an error. */
async function runJob(job: Job, runner: TestProcess, isLast: boolean): Promise<boolean> {
  const start = performance.now();
  let passed = await runner.run(job);
  stopping.signal.throwIfAborted();
  if (isLast || !passed) passed = (await runner.end(passed ? TIMEOUT_MS : FAILED_TIMEOUT_MS)) && passed;
  if (!passed) process.stdout.write(runner.output);
  await job.onEnd?.(runner.output);
  process.stdout.write(`${passed ? "✔" : "✖"} ${nameOf(job)} (${secondsSince(start)})\n`);
  return passed;
}

/** A process that runs test files one after the other. */
class TestProcess {
  readonly files: string[] = [];
  /** What the process printed since the last file started. */
  output = "";
  readonly #child: ChildProcess;
  readonly #closed: Promise<number | null>;

  /** Some variables, such as NODE_OPTIONS, count only at the start of the process. */
  constructor(environment: NodeJS.ProcessEnv) {
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

  /** Whether the file passed. If not, the process cannot run others. */
  async run({ file, environment }: Job): Promise<boolean> {
    this.files.push(file);
    this.output = "";
    const answered = new Promise((resolve) => this.#child.once("message", resolve));
    this.#child.send({ file, environment });
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
