import { parseArgs } from "node:util";
import { Bench, FULL, QUICK } from "./bench.ts";
import { drawBars } from "./chart.ts";
import { postgresParts, sqliteParts } from "./lines.ts";
import { describeMachine, type Machine } from "./machine.ts";
import { drawLines, goalsOf, isReached, type Line, toRecord, writeMarkdown } from "./report.ts";
import { fillIn, keep } from "./results.ts";
import { measureScaling, SCALING_ROUNDS } from "./scaling.ts";

/**
 * How near Earmark comes to its floor, and whether it stays fast as it grows. Only what ran in turns in one run on one
 * machine is compared, so the ratios are what to read; the digits beside them are this machine's at this hour.
 */
const { values: options } = parseArgs({
  options: {
    /** Some minutes become one; the figures are rough. */
    quick: { type: "boolean", default: false },
    /** Only the lines whose names hold this, such as `postgres`. */
    only: { type: "string", default: "" },
    /** Cost as users, lists and requests grow, instead of the lines. */
    scaling: { type: "boolean", default: false },
    /** The most rows of a file in that; ten million take some minutes more. */
    rows: { type: "string", default: "1000000" },
    /** A folder for CPU profiles of Earmark's threads. */
    profile: { type: "string" },
    /** A folder for the results. Without it only a run of everything is kept, in `bench/results`. */
    results: { type: "string" },
  },
});

function say(words: string): void {
  process.stderr.write(`${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${words}\n`);
}

const isWhole = !options.quick && options.only === "" && options.profile === undefined;
const bench = new Bench(options.quick ? QUICK : FULL, { profile: options.profile, say });

async function measureLines(machine: Machine): Promise<void> {
  const parts = [...sqliteParts(), ...postgresParts()].filter(({ name }) =>
    name.toLowerCase().includes(options.only.toLowerCase()),
  );
  // Whether there is one is better known now than after the minutes of the other engine.
  if (parts.some(({ name }) => name.startsWith("PostgreSQL"))) await bench.postgresServer.start();
  const versions = { ...machine.versions, postgresql: await bench.postgresServer.version() };
  const lines: Line[] = [];
  try {
    for (const { name, measure } of parts) {
      say(name);
      lines.push(...(await measure(bench, name)));
    }
  } finally {
    // What was measured before something went wrong is still worth reading.
    process.stdout.write(drawLines(lines));
  }
  process.stdout.write(`${describe({ ...machine, versions })}\n`);
  const judged = goalsOf(lines).map(({ comparison }) => isReached(comparison));
  const reached = judged.filter((each) => each === true).length;
  const missed = judged.filter((each) => each === false).length;
  process.stdout.write(`Targets reached: ${reached} of ${reached + missed}. Every answer was right.\n`);
  const record = { ...machine, versions, plan: bench.plan, lines: toRecord(lines) };
  const saved = keep("bench", record, drawBars(lines, describe(machine)), { isWhole, folder: options.results });
  if (saved === "here") fillIn("bench", `${describe({ ...machine, versions })}\n\n${writeMarkdown(lines)}`);
}

async function measureGrowth(machine: Machine): Promise<void> {
  const { text, record, chart, markdown } = await measureScaling(bench, options.quick ? 100_000 : Number(options.rows));
  process.stdout.write(`${text}${describe(machine)}\n`);
  const whole = { ...machine, ...record };
  const saved = keep("scaling", whole, chart, { isWhole, folder: options.results });
  if (saved === "here") fillIn("scaling", `${describe(machine)}\n\n${markdown}`);
}

function describe({ date, cpu, cores, memoryGiB, versions, syncMs, loadBefore }: Machine): string {
  const named = Object.entries(versions).flatMap(([name, version]) =>
    version === undefined ? [] : [`${name} ${version}`],
  );
  return [
    `Medians of ${options.scaling ? SCALING_ROUNDS : bench.plan.rounds} rounds in turns, with least and most, on ${date.slice(0, 10)}.`,
    `${cores} cores (${cpu}) and ${memoryGiB} GiB, shared by servers, database and load;`,
    `a sync of the disk takes ${syncMs.median.toFixed(2)} ms; load before the run ${loadBefore.toFixed(2)}.`,
    `Versions: ${named.join(", ")}.`,
  ].join(" ");
}

process.once("exit", () => bench.kill());
const interruption = new Promise<void>((resolve) => {
  const interrupt = () => {
    // A second one does not wait for what the first has begun to stop.
    if (process.exitCode === 1) process.exit();
    process.exitCode = 1;
    resolve();
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, interrupt);
});
try {
  const machine = describeMachine(bench.folder);
  await Promise.race([options.scaling ? measureGrowth(machine) : measureLines(machine), interruption]);
} finally {
  await bench.close();
}
process.exit();
