import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { NODES } from "../test/support/citus.ts";
import { againstCheckout } from "./against.ts";
import { Bench, FULL, QUICK } from "./bench.ts";
import { CLUSTER, FETCHING, POSTGRES, SQLITE } from "./lines.ts";
import { describeMachine } from "./machine.ts";
import { drawLines, isReached, type Line } from "./report.ts";

const USAGE = `Measures Earmark against a baseline: a server that does the same work without any checks.
Only ratios within one run are comparable; absolute figures depend on the machine.

Usage: npm run bench -- [--quick] [--only TEXT] [--against FOLDER]

  --quick           3 minutes instead of 40, with rough figures
  --only TEXT       run only benchmarks whose name contains TEXT, such as "postgres"
  --against FOLDER  compare with another checkout of Earmark instead of the baseline
`;

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    against: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

function logProgress(message: string): void {
  process.stderr.write(`${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${message}\n`);
}

async function run(bench: Bench): Promise<void> {
  const wanted = options.only.toLowerCase();
  const own = { ...SQLITE, ...POSTGRES, ...FETCHING, ...(NODES.length > 0 ? CLUSTER : {}) };
  const all = options.against === undefined ? own : againstCheckout(resolve(options.against));
  const chosen = Object.entries(all).filter(([name]) => name.toLowerCase().includes(wanted));
  if (chosen.length === 0) throw new Error(`No benchmark has "${options.only}" in its name.`);
  // Started first so that a missing PostgreSQL fails now and not after minutes of SQLite.
  if (chosen.some(([name]) => name.startsWith("PostgreSQL"))) await bench.postgresServer.start();
  const machine = describeMachine(bench.folder, await bench.postgresServer.version());
  const lines: Line[] = [];
  try {
    for (const [name, measure] of chosen) {
      logProgress(name);
      lines.push(await measure(bench, name));
    }
  } finally {
    // Results up to a failure are still worth reading.
    process.stdout.write(drawLines(lines));
  }
  const judged = lines.flatMap(({ rows }) =>
    rows.flatMap(({ comparisons }) => comparisons.filter(({ target }) => target)),
  );
  process.stdout.write(`\n${machine}\n\n`);
  const reached = judged.filter(isReached).length;
  process.stdout.write(`Targets reached: ${reached} of ${judged.length}. Every response was correct.\n`);
}

if (options.help) process.stdout.write(USAGE);
else {
  const bench = new Bench(options.quick ? QUICK : FULL, logProgress);
  process.once("exit", () => bench.kill());
  const interruption = new Promise<void>((resolve) => {
    const interrupt = () => {
      // A second signal does not wait for the shutdown that the first one started.
      if (process.exitCode === 1) process.exit();
      process.exitCode = 1;
      resolve();
    };
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
  });
  try {
    await Promise.race([run(bench), interruption]);
  } finally {
    await bench.close();
  }
  process.exit();
}
