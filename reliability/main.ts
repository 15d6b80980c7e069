import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { find, runTests, stopTests } from "../test/support/run-tests.ts";
import { access } from "./access.ts";
import { attacks } from "./attacks.ts";
import { backups } from "./backup.ts";
import { badInput } from "./bad-input.ts";
import { gracefulStop } from "./graceful-stop.ts";
import { interrupted } from "./interrupted.ts";
import { kill } from "./kill.ts";
import { killApps } from "./kill-apps.ts";
import { killWrites } from "./kill-writes.ts";
import { power } from "./power.ts";
import { randomizedTests } from "./randomized.ts";
import { revocation } from "./revocation.ts";
import { sameFeed } from "./same-feed.ts";
import { slowClients } from "./slow-clients.ts";
import { startup } from "./startup.ts";
import { storage } from "./storage.ts";
import { draw, examine, type Line } from "./support/report.ts";
import { abandonRuns, type ReliabilityTest, type Scale } from "./support/run.ts";
import { unknownOutcome } from "./unknown-outcome.ts";
import { upgrades } from "./upgrades.ts";

/** In the order of docs/reliability.md. */
const TESTS: readonly ReliabilityTest[] = [
  kill,
  killApps,
  killWrites,
  interrupted,
  power,
  storage,
  sameFeed,
  unknownOutcome,
  attacks,
  slowClients,
  gracefulStop,
  badInput,
  access,
  revocation,
  backups,
  upgrades,
  startup,
  randomizedTests,
];

const USAGE = `Tests the promises of docs/reliability.md: one line per test and one for its control, then the test files in
reliability/.

Usage: npm run test:reliability -- [--quick] [--only TEXT] [--seed N]

  --quick      4 minutes instead of 60
  --only TEXT  run only tests and files whose name contains TEXT; "tests" are all files
  --seed N     repeat the random choices of a run
`;

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    help: { type: "boolean", default: false },
  },
});

/** Test files that wait for timeouts or decode large images: not part of the whole quick run. */
const LONG_FILES = /event-streams|image-bombs/;

/** Runs the tests and returns how many lines failed. */
async function runProofs(tests: readonly ReliabilityTest[], scale: Scale): Promise<number> {
  // The short run judges no timings, so several tests run in parallel; they are printed in order.
  const lanes = scale.isQuick ? availableParallelism() : 1;
  const results = tests.map(() => Promise.withResolvers<Line[]>());
  const left = tests.entries();
  const run = async () => {
    for (const [index, test] of left) results[index]?.resolve(await examine(test, scale));
  };
  const running = Promise.all(Array.from({ length: lanes }, run));
  let failed = 0;
  for (const { promise } of results) {
    for (const line of await promise) {
      process.stdout.write(draw(line, scale.seed));
      if (!line.isKept) failed += 1;
    }
  }
  await running;
  return failed;
}

/** One at a time: they measure, or put as much load on a server as they can. Returns how many runs failed. */
async function runFiles(files: readonly string[], seed: number): Promise<number> {
  const environment = { SEED: String(seed) };
  const jobs = files.map((file) => ({ file, environment }));
  try {
    await runTests(jobs, 1);
    return 0;
  } catch (error) {
    process.stdout.write(`${(error as Error).message}\n`);
    return 1;
  }
}

if (values.help) process.stdout.write(USAGE);
else {
  const wanted = values.only.toLowerCase();
  const tests = TESTS.filter(({ name }) => wanted !== "tests" && name.toLowerCase().includes(wanted));
  const files = find(["reliability/*.test.ts"]).filter(
    (file) =>
      (wanted === "tests" || file.includes(wanted)) && !(values.quick && wanted === "" && LONG_FILES.test(file)),
  );
  if (tests.length + files.length === 0) throw new Error(`No test has "${values.only}" in its name.`);
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      stopTests();
      void abandonRuns().finally(() => process.exit(1));
    });
  const seed = Number(values.seed);
  const log = (message: string) => void (process.stderr.isTTY && process.stderr.write(`      ${message}\n`));
  const failed = (await runProofs(tests, { isQuick: values.quick, seed, log })) + (await runFiles(files, seed));
  process.stdout.write(failed === 0 ? "All promises kept.\n" : `${failed} lines FAILED\n`);
  process.exitCode = failed === 0 ? 0 : 1;
}
