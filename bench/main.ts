import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { NODES } from "../test/support/citus.ts";
import { ADDING_AND_LISTING } from "./adding-and-listing.ts";
import { againstCheckout } from "./against.ts";
import { CLUSTER } from "./cluster.ts";
import { FETCHING } from "./fetching.ts";
import { Bench, type Benchmarks, FULL, QUICK } from "./support/bench.ts";
import { describeMachine } from "./support/machine.ts";
import { drawLines, isReached, type Line } from "./support/report.ts";
import { SYNCING } from "./syncing.ts";
import { UNDER_LOAD } from "./under-load.ts";

const USAGE = `Measures Earmark against a baseline: a server that does the same work without any checks.
Only ratios within one run are comparable; absolute figures depend on the machine.

Usage: npm run bench -- [--quick] [--only TEXT] [--against FOLDER]

  --quick           3 minutes instead of 40, with rough figures
  --only TEXT       run only benchmarks whose name contains TEXT, such as "postgres", or one table of
                    docs/performance.md: "adding and listing", "under load", "syncing" or "fetching"
  --against FOLDER  compare with another checkout of Earmark instead of the baseline
`;

/** The tables of docs/performance.md. */
const TABLES = {
  "adding and listing": ADDING_AND_LISTING,
  "under load": UNDER_LOAD,
  syncing: SYNCING,
  fetching: FETCHING,
};

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
  const own = { ...TABLES, ...(NODES.length > 0 ? { cluster: CLUSTER } : {}) };
  const tables: Readonly<Record<string, Benchmarks>> =
    options.against === undefined ? own : { against: againstCheckout(resolve(options.against)) };
  const chosen = Object.entries(tables).flatMap(([table, benchmarks]) =>
    Object.entries(benchmarks).filter(([name]) => table === wanted || name.toLowerCase().includes(wanted)),
  );
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
