import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { drawTable, ratios, show, summarize } from "./figures.ts";
import type { Bound, Measurement, MeasureOrder, TimePagesOrder } from "./load.ts";
import { pickIds, prefill, trim } from "./prefill.ts";
import { killAll, type Load, type Server, startEarmark, startFloor, startLoad, stopAll } from "./processes.ts";
import { requireSameAnswers } from "./same-answers.ts";

/**
 * How near Earmark comes to its floor, and whether it stays fast as it grows. Only what ran in turns in one run on one
 * machine is compared, so the ratios are what to read; the digits beside them are this machine's at this hour.
 */
const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    /** Only the lines whose names match. */
    only: { type: "string", default: "" },
    /** A folder for CPU profiles of Earmark's threads. */
    profile: { type: "string" },
  },
});

/** No bound; a number that JSON can carry to the load. */
const ANY = Number.MAX_SAFE_INTEGER;
const plan = options.quick
  ? { rounds: 3, warmUpMs: 40, measureMs: 120, turns: 30, growthRounds: 2, growthRows: 200_000, growthRequests: 40 }
  : {
      rounds: 5,
      warmUpMs: 500,
      measureMs: 1_700,
      turns: 300,
      growthRounds: 5,
      growthRows: 5_000_000,
      growthRequests: 500,
    };
const LISTED = 10_000;
const LONG_LIST = 100_000;
const REMOVED = 1_000;
const LIST_OF_OTHERS = 1_000;
/** Rounds of single requests that do not count: it takes some hundreds of them until the server is compiled. */
const WARM_UP_ROUNDS = 5;

const folder = mkdtempSync(join(tmpdir(), "earmark-bench-"));
const rows: string[][] = [];
let files = 0;

function newFile(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

function say(words: string): void {
  process.stderr.write(`${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${words}\n`);
}

function earmarkOn(path: string): Promise<Server> {
  const profile = options.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${options.profile}`];
  return startEarmark(path, profile);
}

async function measure(
  load: Load,
  server: Server,
  work: Pick<MeasureOrder, "connections" | "workload">,
  warmUp: Bound,
  bound: Bound,
): Promise<Measurement> {
  const { pid, port } = server;
  const measurement = await load.run({ kind: "measure", pid, port, ...work, warmUp, measure: bound });
  if (measurement.loadShare > 0.9) say("    the load took a whole core: it may have measured itself");
  return measurement;
}

/** Forth in one round and back in the next: what one leaves to the disk should not always burden the same other. */
function inTurns<T>(contenders: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? contenders : contenders.toReversed();
}

/** Operations of an addition, items of a page. */
function partsOf(workload: MeasureOrder["workload"]): number {
  return workload.kind === "add" ? workload.operations : workload.size;
}

/** The rows of a line: one for each contender, its rate held against that of the last one. */
function report(
  name: string,
  workload: MeasureOrder["workload"],
  contenders: readonly { readonly name: string; readonly runs: readonly Measurement[] }[],
  compare: (rate: readonly number[], base: readonly number[]) => string,
): void {
  const parts = partsOf(workload);
  const rates = contenders.map(({ runs }) => runs.map(({ requests, seconds }) => requests / seconds));
  const costs = contenders.map(({ runs }) =>
    runs.map(({ cpuSeconds, requests }) => (cpuSeconds * 1e6) / (requests * parts)),
  );
  const [base = [], baseCost = []] = [rates.at(-1), costs.at(-1)];
  for (const [index, contender] of contenders.entries()) {
    const [rate = [], cpu = []] = [rates[index], costs[index]];
    const cpuRatio = cpu.some(Number.isNaN) ? "" : `; CPU ${show(ratios(cpu, baseCost))}`;
    rows.push([
      index === 0 ? name : "",
      contender.name,
      show(summarize(rate)),
      show(summarize(rate.map((each) => each * parts))),
      cpu.some(Number.isNaN) ? "" : show(summarize(cpu)),
      rate === base ? "" : `${compare(rate, base)}${cpuRatio}`,
    ]);
  }
}

/** Earmark and its floor in turns. */
async function compareWithFloor(
  load: Load,
  name: string,
  work: Pick<MeasureOrder, "connections" | "workload">,
  { withEach = false } = {},
): Promise<void> {
  if (!name.includes(options.only)) return;
  say(name);
  const contenders = [
    { name: "Earmark", server: await earmarkOn(newFile()), runs: [] as Measurement[] },
    ...(withEach
      ? [{ name: "a transaction each", server: await startFloor(newFile(), "each"), runs: [] as Measurement[] }]
      : []),
    { name: "floor", server: await startFloor(newFile(), "groups"), runs: [] as Measurement[] },
  ];
  await requireSameAnswers(contenders.map(({ server }) => server.port));
  const { workload } = work;
  if (workload.kind === "pages") {
    const filling = { connections: 1, workload: { kind: "add", operations: 1_000 } } as const;
    // The first answer ends the warm-up, and is one of the list's thousands all the same.
    const bound = { ms: ANY, requests: workload.total / 1_000 - 1 };
    for (const { server } of contenders) await measure(load, server, filling, { ms: 0, requests: 0 }, bound);
  }
  const warmUp = { ms: plan.warmUpMs, requests: ANY };
  const bound = { ms: plan.measureMs, requests: ANY };
  // One round before the first that counts, in which all of them are compiled.
  for (let round = 0; round <= plan.rounds; round += 1) {
    for (const { server, runs } of inTurns(contenders, round)) {
      const run = await measure(load, server, work, warmUp, bound);
      if (round > 0) runs.push(run);
    }
  }
  for (const { server } of contenders) await server.stop();
  report(name, workload, contenders, (rate, base) => `${show(ratios(rate, base))} of the floor's rate`);
}

/** Whether a page costs the same wherever it lies in a long list, also when the list has gaps. */
async function comparePages(load: Load): Promise<void> {
  const name = `a page of 25, list of ${LONG_LIST.toLocaleString("en")}`;
  if (!name.includes(options.only)) return;
  say(name);
  const [whole, gapped] = [newFile(), newFile()];
  for (const path of [whole, gapped]) {
    await (await earmarkOn(path)).stop();
    prefill(path, { count: 1, length: LONG_LIST });
  }
  const lists = [
    { name: "", server: await earmarkOn(whole), pages: threePages(LONG_LIST), rounds: [] as number[][] },
    {
      name: `after ${REMOVED.toLocaleString("en")} removals: `,
      server: await earmarkOn(gapped),
      pages: threePages(LONG_LIST - REMOVED),
      rounds: [] as number[][],
    },
  ];
  await load.run({ kind: "remove", port: lists[1]?.server.port ?? 0, ids: pickIds(gapped, REMOVED) });
  for (let round = -WARM_UP_ROUNDS; round < plan.rounds; round += 1) {
    for (const { server, pages, rounds } of inTurns(lists, round)) {
      const medians = await load.run({ kind: "time-pages", port: server.port, pages, turns: plan.turns });
      if (round >= 0) rounds.push(medians);
    }
  }
  const first = lists[0]?.rounds.map((medians) => medians[0] ?? Number.NaN) ?? [];
  for (const { name: state, server, rounds } of lists) {
    await server.stop();
    for (const [index, place] of ["first", "middle", "last"].entries()) {
      const times = rounds.map((medians) => medians[index] ?? Number.NaN);
      const isFirst = state === "" && index === 0;
      rows.push([
        isFirst ? name : "",
        `${state}${place} page`,
        show(summarize(times.map((ms) => 1_000 / ms))),
        show(summarize(times.map((ms) => 25_000 / ms))),
        "",
        isFirst ? "" : `${show(ratios(times, first))} times the first page's time`,
      ]);
    }
  }
}

function threePages(total: number): TimePagesOrder["pages"] {
  const last = Math.ceil(total / 25);
  return [1, Math.ceil(last / 2), last].map((number) => ({
    number,
    size: 25,
    items: Math.min(25, total - (number - 1) * 25),
  }));
}

/**
 * Whether additions stay fast in a large file. Each round starts all of them anew, so that the empty one is empty
 * and the lists are as long as they are said to be.
 */
async function compareSizes(load: Load): Promise<void> {
  const name = "adds, 100 per request, by size";
  if (!name.includes(options.only)) return;
  say(name);
  const size = plan.growthRows.toLocaleString("en");
  const [others, own] = [newFile(), newFile()];
  for (const path of [others, own]) await (await earmarkOn(path)).stop();
  say(`    writing ${size} rows, twice`);
  prefill(others, { count: plan.growthRows / LIST_OF_OTHERS, length: LIST_OF_OTHERS });
  prefill(own, { count: 1, length: plan.growthRows });
  const contenders = [
    { name: `${size} rows, lists of 1,000`, file: () => trim(others, LIST_OF_OTHERS), runs: [] as Measurement[] },
    { name: `${size} rows, all in this list`, file: () => trim(own, plan.growthRows), runs: [] as Measurement[] },
    { name: "empty", file: newFile, runs: [] as Measurement[] },
  ];
  const work = { connections: 8, workload: { kind: "add", operations: 100 } } as const;
  const warmUp = { ms: ANY, requests: plan.growthRequests / 2 };
  const bound = { ms: ANY, requests: plan.growthRequests };
  for (let round = 0; round < plan.growthRounds; round += 1) {
    for (const { file, runs } of inTurns(contenders, round)) {
      const server = await earmarkOn(file());
      runs.push(await measure(load, server, work, warmUp, bound));
      await server.stop();
    }
  }
  report(name, work.workload, contenders, (rate, base) => `${show(ratios(base, rate))} times the empty one's time`);
}

async function main(): Promise<void> {
  const load = startLoad();
  const adding = (operations: number) => ({ kind: "add", operations }) as const;
  const paging = (size: number) => ({ kind: "pages", size, total: LISTED }) as const;
  await compareWithFloor(load, "adds, 1 per request", { connections: 32, workload: adding(1) }, { withEach: true });
  await compareWithFloor(load, "adds, 100 per request", { connections: 8, workload: adding(100) });
  await compareWithFloor(load, "adds, 1,000 per request", { connections: 4, workload: adding(1_000) });
  await compareWithFloor(load, "pages of 25", { connections: 32, workload: paging(25) });
  await compareWithFloor(load, "pages of 100", { connections: 32, workload: paging(100) });
  await comparePages(load);
  await compareSizes(load);
  const head = ["line", "server", "requests/s", "operations or items/s", "CPU µs each", "compared"];
  process.stdout.write(drawTable(head, rows));
  process.stdout.write(
    `Medians of ${plan.rounds} rounds in turns (by size: ${plan.growthRounds}), with least and most. The ratios are what to read.\n`,
  );
}

process.once("exit", () => {
  killAll();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
try {
  await main();
} finally {
  await stopAll();
}
