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
import { power } from "./power.ts";
import { randomizedTests } from "./randomized.ts";
import { accessEnds } from "./revocation.ts";
import { sameFeed } from "./same-feed.ts";
import { slowClients } from "./slow-clients.ts";
import { start } from "./startup.ts";
import { storage } from "./storage.ts";
import { draw, examine, type Line } from "./support/report.ts";
import { abandonRuns, type ReliabilityTest } from "./support/run.ts";
import { unknownOutcome } from "./unknown-outcome.ts";
import { upgrades } from "./upgrades.ts";

/** In the order of docs/reliability.md. */
const TESTS: readonly ReliabilityTest[] = [
  kill,
  killApps,
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
  accessEnds,
  backups,
  upgrades,
  start,
  randomizedTests,
];

const USAGE = `Tests the promises of docs/reliability.md: one line per test and one for its control, then the test files in
reliability/.

Usage: npm run test:reliability -- [--quick] [--only TEXT] [--seed N]

  --quick      5 minutes instead of 40
  --only TEXT  run only tests and files whose name contains TEXT
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

if (values.help) process.stdout.write(USAGE);
else {
  const wanted = values.only.toLowerCase();
  const chosen = TESTS.filter(({ name }) => name.toLowerCase().includes(wanted));
  const files = find(["reliability/**/*.test.ts"]).filter((file) => file.includes(wanted));
  if (chosen.length + files.length === 0) throw new Error(`No test has "${values.only}" in its name.`);
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => {
      stopTests();
      void abandonRuns().finally(() => process.exit(1));
    });
  const seed = Number(values.seed);
  const log = (message: string) => void (process.stderr.isTTY && process.stderr.write(`      ${message}\n`));
  // The short run judges no timings, so several tests run in parallel; they are printed in order.
  const lanes = values.quick ? availableParallelism() : 1;
  const results = chosen.map(() => Promise.withResolvers<Line[]>());
  const left = chosen.entries();
  const run = async () => {
    for (const [index, test] of left)
      results[index]?.resolve(await examine(test, { isQuick: values.quick, seed, log }));
  };
  const running = Promise.all(Array.from({ length: lanes }, run));
  let broken = 0;
  for (const { promise } of results) {
    for (const line of await promise) {
      process.stdout.write(draw(line, seed));
      if (!line.isKept) broken += 1;
    }
  }
  await running;
  const environment = { SEED: String(seed) };
  const jobs = files.map((file) => ({ file, environment }));
  // One at a time: they measure, or put as much load on a server as they can.
  await runTests(jobs, 1).catch((error: Error) => {
    broken += 1;
    process.stdout.write(`${error.message}\n`);
  });
  process.stdout.write(broken === 0 ? "All promises kept.\n" : `${broken} lines FAILED\n`);
  process.exitCode = broken === 0 ? 0 : 1;
}
