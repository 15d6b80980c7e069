import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { ReliabilityTest, Run } from "./support/run.ts";

type RandomTest = readonly [file: string, runs: number];

/** Tests with random choices, repeated more often than by `npm test`. Their controls are tests in the same files. */
const TESTS: readonly RandomTest[] = [
  ["test/change-history.test.ts", 1_000],
  ["test/replica-convergence.test.ts", 1_000],
  ["reliability/replica-processes.test.ts", 30],
  ["src/store/sqlite/apps.test.ts", 1_000],
  ["src/store/postgres/apps.test.ts", 200],
  ["test/properties.test.ts", 2_000],
  ["test/apps/properties.test.ts", 2_000],
];
const QUICK: readonly RandomTest[] = [["test/replica-convergence.test.ts", 20]];

export const randomizedTests: ReliabilityTest = {
  name: "randomized tests",
  promises: ["P5"],
  async check(run) {
    const tests = run.isQuick ? QUICK : TESTS;
    const violations: string[] = [];
    for (const test of tests) {
      run.log(test.join(": "));
      violations.push(...(await failuresOf(run, test)));
    }
    return { figures: tests.map(([file, runs]) => `${file}: ${runs.toLocaleString("en")}`).join("; "), violations };
  },
};

/** The output of the test, if it failed. */
async function failuresOf({ seed, onEnd }: Run, [file, runs]: RandomTest): Promise<string[]> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(`../${file}`, import.meta.url))], {
    env: { ...process.env, RUNS: String(runs), SEED: String(seed) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onEnd(() => child.kill("SIGKILL"));
  const [output, [status]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return status === 0 ? [] : [output];
}
