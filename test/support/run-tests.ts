import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { availableParallelism } from "node:os";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

/** The tests of the HTTP API that run a second time, on PostgreSQL. */
export const API_TESTS = [
  "src/http/{operations,updates,changes,events,subscriptions,accounts,imports,quota}*.test.ts",
  "src/http/{app-authentication,nextcloud}.test.ts",
  "test/{access-apps,access-ends,podcasts,properties}*.test.ts",
  "test/apps/*.test.ts",
];

/** A test file that takes longer has hung. */
const TIMEOUT_MS = 5 * 60_000;
/** Test files also wait, for timers and other programs. More of them than cores keep the cores busy. */
const AT_A_TIME = Math.ceil(1.5 * availableParallelism());

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

/** Runs each test file in a process of its own, and prints the output of those that fail. */
export async function runTests(jobs: readonly Job[]): Promise<void> {
  const queue = jobs.values();
  const failed: string[] = [];
  const work = async () => {
    for (const { file, environment, onEnd } of queue) {
      const start = performance.now();
      const env = { ...process.env, ...environment };
      const options = { cwd: ROOT, env, timeout: TIMEOUT_MS, killSignal: "SIGKILL", signal: stopping.signal } as const;
      const child = spawn(process.execPath, [file], options);
      const outputs = Promise.all([text(child.stdout), text(child.stderr)]);
      const [status] = await once(child, "close");
      const name = `${file}${environment["TEST_ENGINE"] === undefined ? "" : " on PostgreSQL"}`;
      if (status !== 0) {
        failed.push(name);
        process.stdout.write((await outputs).join(""));
      }
      await onEnd?.((await outputs)[0]);
      process.stdout.write(`${status === 0 ? "✔" : "✖"} ${name} (${secondsSince(start)})\n`);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  if (failed.length > 0) throw new Error(`failed:\n${failed.join("\n")}`);
}
