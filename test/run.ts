import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import "../bin/compile-cache.js";

/** What `npm test` runs, in this order; the first that fails ends it. */
const STEPS: readonly (readonly [name: string, command: string, ...rest: string[]])[] = [
  ["format, lint and import table", "biome", "check", "--error-on-warnings"],
  ["types", "tsc"],
  ["types of the page", "tsc", "-p", "web"],
  [
    "tests",
    "node",
    "--test",
    `--test-concurrency=${availableParallelism()}`,
    "src/**/*.test.ts",
    "test/**/*.test.ts",
    "reliability/**/*.test.ts",
  ],
  ["promises, in short", "node", "reliability/main.ts", "--quick"],
  // By itself, since it compares how fast things are.
  ["bench, in short", "node", "--test", "--test-concurrency=1", "bench/*.test.ts"],
];

for (const [name, command, ...rest] of STEPS) {
  process.stdout.write(`\n== ${name}\n`);
  const { status } = spawnSync(command, rest, { stdio: "inherit", shell: false });
  if (status !== 0) process.exit(status ?? 1);
}
