import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createPostgres, createSqlite, type Engine } from "./engines.ts";
import { drawTable, ratios, show, summarize } from "./figures.ts";
import type { Bound, Measurement, MeasureOrder, TimePagesOrder } from "./load.ts";
import { PostgresServer } from "./postgres.ts";
import { prefill, trim } from "./prefill.ts";
import {
  killAll,
  type Load,
  type Server,
  startEarmark,
  startEarmarkWithAccounts,
  startFloor,
  startLoad,
  stopAll,
} from "./processes.ts";
import { requireSameAnswers } from "./same-answers.ts";

/**
 * How near Earmark comes to its floor, and whether it stays fast as it grows. Only what ran in turns in one run on one
 * machine is compared, so the ratios are what to read; the digits beside them are this machine's at this hour.
 */
const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    /** Only the lines whose names hold this, such as `postgres`. */
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
const MOST_PROCESSES = 4;
/** Rounds of single requests that do not count: it takes some hundreds of them until the server is compiled. */
const WARM_UP_ROUNDS = 5;

const folder = mkdtempSync(join(tmpdir(), "earmark-bench-"));
const sqlite = createSqlite(folder);
const postgresServer = new PostgresServer(folder);
const postgres = createPostgres(postgresServer);
const rows: string[][] = [];

function say(words: string): void {
  process.stderr.write(`${(performance.now() / 1000).toFixed(0).padStart(4)} s  ${words}\n`);
}

function earmarkOn(place: string, start = startEarmark): Promise<Server> {
  const profile = options.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${options.profile}`];
  return start(place, profile);
}

type Work = Pick<MeasureOrder, "connections" | "workload">;

async function measure(
  load: Load,
  servers: readonly Server[],
  work: Work,
  warmUp: Bound,
  bound: Bound,
): Promise<Measurement> {
  const addresses = servers.map(({ pid, port, token }) => ({ pid, port, token }));
  const measurement = await load.run({ kind: "measure", servers: addresses, ...work, warmUp, measure: bound });
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

interface Contender {
  readonly name: string;
  readonly servers: readonly Server[];
  readonly runs: Measurement[];
}

/** Earmark and its floor in turns. */
async function compareWithFloor(
  load: Load,
  name: string,
  engine: Engine,
  work: Work,
  { withEach = false } = {},
): Promise<void> {
  const places: string[] = [];
  const create = async () => {
    const place = await engine.create();
    places.push(place);
    return place;
  };
  const contenders: Contender[] = [
    { name: "Earmark", servers: [await earmarkOn(await create())], runs: [] },
    ...(withEach
      ? [{ name: "a transaction each", servers: [await startFloor(await create(), "each")], runs: [] }]
      : []),
    { name: "floor", servers: [await startFloor(await create(), engine.floor)], runs: [] },
  ];
  await requireSameAnswers(contenders.flatMap(({ servers }) => servers.map(({ port }) => port)));
  if (work.workload.kind === "pages") {
    for (const { servers } of contenders) await fillList(load, servers, work.workload.total);
    for (const place of places) await engine.settle(place);
  }
  await takeTurns(load, contenders, work);
  for (const { servers } of contenders) for (const server of servers) await server.stop();
  for (const place of places) await engine.drop(place);
  report(name, work.workload, contenders, (rate, base) => `${show(ratios(rate, base))} of the floor's rate`);
}

async function fillList(load: Load, servers: readonly Server[], length: number): Promise<void> {
  const filling = { connections: 1, workload: { kind: "add", operations: 1_000 } } as const;
  // The first answer ends the warm-up, and is one of the list's thousands all the same.
  const bound = { ms: ANY, requests: length / 1_000 - 1 };
  await measure(load, servers, filling, { ms: 0, requests: 0 }, bound);
}

async function takeTurns(load: Load, contenders: readonly Contender[], work: Work): Promise<void> {
  const warmUp = { ms: plan.warmUpMs, requests: ANY };
  const bound = { ms: plan.measureMs, requests: ANY };
  // One round before the first that counts, in which all of them are compiled.
  for (let round = 0; round <= plan.rounds; round += 1) {
    for (const { servers, runs } of inTurns(contenders, round)) {
      const run = await measure(load, servers, work, warmUp, bound);
      if (round > 0) runs.push(run);
    }
  }
}

/** What it costs to know who asks. */
async function compareAccounts(load: Load, name: string, engine: Engine, work: Work): Promise<void> {
  const [withAccounts, without] = [await engine.create(), await engine.create()];
  const contenders: Contender[] = [
    { name: "with a token", servers: [await earmarkOn(withAccounts, startEarmarkWithAccounts)], runs: [] },
    { name: "without accounts", servers: [await earmarkOn(without)], runs: [] },
  ];
  if (work.workload.kind === "pages") {
    for (const { servers } of contenders) await fillList(load, servers, work.workload.total);
    for (const place of [withAccounts, without]) await engine.settle(place);
  }
  await takeTurns(load, contenders, work);
  for (const { servers } of contenders) for (const server of servers) await server.stop();
  for (const place of [withAccounts, without]) await engine.drop(place);
  report(name, work.workload, contenders, (rate, base) => `${show(ratios(rate, base))} of the rate without`);
}

/** Whether more processes on one database do more. There is one user, so all of them write to one list. */
async function compareProcesses(load: Load, name: string, engine: Engine, work: Work): Promise<void> {
  const place = await engine.create();
  const servers: Server[] = [];
  for (let count = 0; count < MOST_PROCESSES; count += 1) servers.push(await earmarkOn(place));
  if (work.workload.kind === "pages") {
    await fillList(load, servers, work.workload.total);
    await engine.settle(place);
  }
  // Those that have no load in a turn sleep through it.
  const contenders: Contender[] = [
    { name: `${MOST_PROCESSES} processes`, servers, runs: [] },
    { name: "2 processes", servers: servers.slice(0, 2), runs: [] },
    { name: "1 process", servers: servers.slice(0, 1), runs: [] },
  ];
  await takeTurns(load, contenders, work);
  for (const server of servers) await server.stop();
  await engine.drop(place);
  report(name, work.workload, contenders, (rate, base) => `${show(ratios(rate, base))} of one process's rate`);
}

/** Whether a page costs the same wherever it lies in a long list, also when the list has gaps. */
async function comparePages(load: Load, name: string, engine: Engine): Promise<void> {
  const [whole, gapped] = [await engine.create(), await engine.create()];
  for (const place of [whole, gapped]) {
    await (await earmarkOn(place)).stop();
    await engine.fill(place, LONG_LIST);
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
  const ids = await engine.pickIds(gapped, REMOVED);
  await load.run({ kind: "remove", port: lists[1]?.server.port ?? 0, ids });
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
  for (const place of [whole, gapped]) await engine.drop(place);
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
async function compareSizes(load: Load, name: string): Promise<void> {
  const size = plan.growthRows.toLocaleString("en");
  const [others, own] = [await sqlite.create(), await sqlite.create()];
  for (const path of [others, own]) await (await earmarkOn(path)).stop();
  say(`    writing ${size} rows, twice`);
  prefill(others, { count: plan.growthRows / LIST_OF_OTHERS, length: LIST_OF_OTHERS });
  prefill(own, { count: 1, length: plan.growthRows });
  const contenders = [
    { name: `${size} rows, lists of 1,000`, file: async () => trim(others, LIST_OF_OTHERS), runs: [] as Measurement[] },
    { name: `${size} rows, all in this list`, file: async () => trim(own, plan.growthRows), runs: [] as Measurement[] },
    { name: "empty", file: sqlite.create, runs: [] as Measurement[] },
  ];
  const work = { connections: 8, workload: { kind: "add", operations: 100 } } as const;
  const warmUp = { ms: ANY, requests: plan.growthRequests / 2 };
  const bound = { ms: ANY, requests: plan.growthRequests };
  for (let round = 0; round < plan.growthRounds; round += 1) {
    for (const { file, runs } of inTurns(contenders, round)) {
      const server = await earmarkOn(await file());
      runs.push(await measure(load, [server], work, warmUp, bound));
      await server.stop();
    }
  }
  report(name, work.workload, contenders, (rate, base) => `${show(ratios(base, rate))} times the empty one's time`);
}

type Line = readonly [name: string, compare: (load: Load, name: string) => Promise<void>];

/** The lines that both engines have. */
function linesOf(engine: Engine): Line[] {
  const line = (kind: string, work: Work, extra = {}): Line => [
    `${engine.name}: ${kind}`,
    (load, name) => compareWithFloor(load, name, engine, work, extra),
  ];
  const accountLine = (kind: string, work: Work): Line => [
    `${engine.name}: ${kind}`,
    (load, name) => compareAccounts(load, name, engine, work),
  ];
  return [
    line("adds, 1 per request", { connections: 32, workload: adding(1) }, { withEach: engine === sqlite }),
    line("adds, 100 per request", { connections: 8, workload: adding(100) }),
    line("adds, 1,000 per request", { connections: 4, workload: adding(1_000) }),
    line("pages of 25", { connections: 32, workload: paging(25) }),
    line("pages of 100", { connections: 32, workload: paging(100) }),
    [
      `${engine.name}: a page of 25, list of ${LONG_LIST.toLocaleString("en")}`,
      (load, name) => comparePages(load, name, engine),
    ],
    accountLine("adds, 1 per request, with a token", { connections: 32, workload: adding(1) }),
    accountLine("adds, 100 per request, with a token", { connections: 8, workload: adding(100) }),
    accountLine("pages of 25, with a token", { connections: 32, workload: paging(25) }),
  ];
}

function adding(operations: number): Work["workload"] {
  return { kind: "add", operations };
}

function paging(size: number): Work["workload"] {
  return { kind: "pages", size, total: LISTED };
}

function linesByProcesses(): Line[] {
  const line = (kind: string, work: Work): Line => [
    `PostgreSQL: ${kind}, by processes`,
    (load, name) => compareProcesses(load, name, postgres, work),
  ];
  return [
    line("adds, 100 per request", { connections: 16, workload: adding(100) }),
    line("pages of 25", { connections: 32, workload: paging(25) }),
  ];
}

async function main(): Promise<void> {
  const all: Line[] = [
    ...linesOf(sqlite),
    ["SQLite: adds, 100 per request, by size", compareSizes],
    ...linesOf(postgres),
    ...linesByProcesses(),
  ];
  const lines = all.filter(([name]) => name.toLowerCase().includes(options.only.toLowerCase()));
  // Whether there is one is better known now than after the minutes of the other engine.
  if (lines.some(([name]) => name.startsWith(postgres.name))) await postgresServer.start();
  const load = startLoad();
  for (const [name, compare] of lines) {
    say(name);
    await compare(load, name);
  }
  const head = ["line", "server", "requests/s", "operations or items/s", "CPU µs each", "compared"];
  process.stdout.write(drawTable(head, rows));
  process.stdout.write(
    `Medians of ${plan.rounds} rounds in turns (by size: ${plan.growthRounds}), with least and most. The ratios are what to read.\n`,
  );
  process.stdout.write(
    `Servers, database and load shared ${availableParallelism()} cores: more processes than these can do no more.\n`,
  );
}

process.once("exit", () => {
  killAll();
  postgresServer.kill();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});
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
  await Promise.race([main(), interruption]);
} finally {
  await stopAll();
  await postgresServer.stop();
}
process.exit();
