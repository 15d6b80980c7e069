import { availableParallelism } from "node:os";
import { ANY, adding, type Bench, inTurns, partsOf, stopServers, type Work } from "./bench.ts";
import type { Engine } from "./engines.ts";
import type { Measurement, TimePagesOrder } from "./load.ts";
import { type Lists, prefill, prefillTokens, trim } from "./prefill.ts";
import { type FloorMode, makeToken, type Server, startFloor } from "./processes.ts";
import { type Comparison, compare, type Line, ratesOf, rowOf, type Target } from "./report.ts";
import { requireSameAnswers } from "./same-answers.ts";
import { readCpuSeconds } from "./usage.ts";

/** How fast it is, beside something that does the same work in the same run. */

const LONG_LIST = 100_000;
const REMOVED = 1_000;
const LIST_LENGTH = 1_000;
/** Users whose lists are added to in a large file, each request to another one. */
const USERS = 500;
const MOST_PROCESSES = 4;
/** So many cores let two processes, a database and the load run at the same time. */
const CORES_FOR_TWO = 4;
/** With a token and without are so much alike that it takes more rounds to tell them apart: single ones differ by a third. */
const ROUNDS_FOR_TOKENS = 2;
/** Rounds of single requests that do not count: it takes some hundreds of them until the server is compiled. */
const WARM_UP_ROUNDS = 5;

/** What was measured of somebody. */
interface Measured {
  readonly name: string;
  readonly runs: readonly Measurement[];
}

/** Rate and CPU time of each beside those of the last one. */
function rowsOf(
  contenders: readonly Measured[],
  work: Work,
  compareWith: (contender: Measured, base: Measured) => readonly Comparison[],
): Line["rows"] {
  const base = contenders.at(-1);
  return contenders.map((contender) =>
    rowOf(
      contender.name,
      partsOf(work),
      contender.runs,
      base === undefined || base === contender ? [] : compareWith(contender, base),
    ),
  );
}

/** CPU time for a request. */
function costsOf(runs: readonly Measurement[]): number[] {
  return runs.map(({ cpuSeconds, databaseSeconds, requests }) => (cpuSeconds + (databaseSeconds || 0)) / requests);
}

/** Another way to do the same work without checks, which Earmark is held against besides its floor. */
export interface OtherFloor {
  readonly name: string;
  readonly mode: FloorMode;
  readonly target?: Target;
}

/** Who takes part in a comparison: each of its processes gets a place of its own. */
interface Rival {
  readonly name: string;
  start(place: string): Promise<Server>;
}

/** Lets rivals do the same work in turns, in several lives. */
async function measureRivals(
  bench: Bench,
  engine: Engine,
  work: Work,
  rivals: readonly Rival[],
  {
    rounds = bench.plan.rounds,
    check = async () => {},
  }: { rounds?: number; check?: (servers: Server[]) => Promise<void> },
): Promise<Measured[]> {
  const { lives } = bench.plan;
  const runs = rivals.map((): Measurement[] => []);
  for (let life = 0; life < lives; life += 1) {
    const places: string[] = [];
    const servers: Server[] = [];
    for (const { start } of rivals) {
      const place = await engine.create();
      places.push(place);
      servers.push(await start(place));
    }
    await check(servers);
    if (work.workload.kind === "pages") {
      for (const server of servers) await bench.fillList([server], work.workload.total);
      for (const place of places) await engine.settle(place);
    }
    const contenders = servers.map((server, at) => ({ servers: [server], runs: runs[at] ?? [] }));
    await bench.takeTurns(contenders, work, rounds / lives);
    await stopServers(servers);
    for (const place of places) await engine.drop(place);
  }
  return rivals.map(({ name }, at) => ({ name, runs: runs[at] ?? [] }));
}

/** Earmark, its floor, and other ways to do the same. */
export async function compareWithFloor(
  bench: Bench,
  name: string,
  engine: Engine,
  work: Work,
  { target, floor = engine.floor, others = [] }: { target?: Target; floor?: FloorMode; others?: readonly OtherFloor[] },
): Promise<Line> {
  const floors = [...others, { name: "floor", mode: floor }];
  const rivals = floors.map(({ name: rival, mode }) => ({
    name: rival,
    start: (place: string) => startFloor(place, mode),
  }));
  const contenders = await measureRivals(
    bench,
    engine,
    work,
    [{ name: "Earmark", start: (place) => bench.earmark(place) }, ...rivals],
    { check: (servers) => requireSameAnswers(servers.map(({ port }) => port)) },
  );
  const [earmark, ...rest] = contenders;
  const own = earmark?.runs ?? [];
  const comparisons = rest.toReversed().flatMap(({ name: rival, runs }) => {
    const other = others.find((each) => each.name === rival);
    if (other !== undefined) return [compare(`times ${other.name}`, ratesOf(own), ratesOf(runs), other.target)];
    return [
      compare("of the floor's rate", ratesOf(own), ratesOf(runs), target),
      compare("times the floor's CPU", costsOf(own), costsOf(runs)),
    ];
  });
  return { name, rows: rowsOf(contenders, work, (contender) => (contender === earmark ? comparisons : [])) };
}

/** What it costs to know who asks. */
export async function compareAccounts(
  bench: Bench,
  name: string,
  engine: Engine,
  work: Work,
  target?: Target,
): Promise<Line> {
  const rivals = [
    { name: "with a token", start: (place: string) => bench.earmark(place, [makeToken(place)]) },
    { name: "without accounts", start: (place: string) => bench.earmark(place) },
  ];
  const contenders = await measureRivals(bench, engine, work, rivals, {
    rounds: ROUNDS_FOR_TOKENS * bench.plan.rounds,
  });
  const compareWith = ({ runs }: Measured, base: Measured) => [
    compare("of the rate without", ratesOf(runs), ratesOf(base.runs), target),
    compare("times the CPU without", costsOf(runs), costsOf(base.runs)),
  ];
  return { name, rows: rowsOf(contenders, work, compareWith) };
}

/** Whether more processes on one database do more. There is one user, so all of them write to one list. */
export async function compareProcesses(
  bench: Bench,
  name: string,
  engine: Engine,
  work: Work,
  target: Target,
): Promise<Line> {
  const place = await engine.create();
  const servers: Server[] = [];
  for (let count = 0; count < MOST_PROCESSES; count += 1) servers.push(await bench.earmark(place));
  if (work.workload.kind === "pages") {
    await bench.fillList(servers, work.workload.total);
    await engine.settle(place);
  }
  // Those that have no load in a turn sleep through it.
  const first = (count: number) => ({ servers: servers.slice(0, count), runs: [] as Measurement[] });
  const two = { name: "2 processes", ...first(2) };
  const contenders = [
    { name: `${MOST_PROCESSES} processes`, ...first(MOST_PROCESSES) },
    two,
    { name: "1 process", ...first(1) },
  ];
  await bench.takeTurns(contenders, work);
  await stopServers(servers);
  await engine.drop(place);
  const cores = availableParallelism();
  const unjudged = cores < CORES_FOR_TWO ? `only ${cores} cores` : undefined;
  const compareWith = (contender: Measured, base: Measured) => [
    compare(
      "of one process's rate",
      ratesOf(contender.runs),
      ratesOf(base.runs),
      contender === two ? target : undefined,
      unjudged,
    ),
  ];
  return { name, rows: rowsOf(contenders, work, compareWith) };
}

/** Whether a page costs the same wherever it lies in a long list, also when the list has gaps. */
export async function comparePages(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const { rounds, turns } = bench.plan;
  const [whole, gapped] = [await engine.create(), await engine.create()];
  for (const place of [whole, gapped]) {
    await (await bench.earmark(place)).stop();
    await engine.fill(place, LONG_LIST);
  }
  const lists = [
    { state: "", server: await bench.earmark(whole), pages: pagesOf(LONG_LIST) },
    {
      state: `after ${REMOVED.toLocaleString("en")} removals: `,
      server: await bench.earmark(gapped),
      pages: pagesOf(LONG_LIST - REMOVED),
    },
  ].map((list) => ({ ...list, times: [] as number[][], costs: [] as number[] }));
  const ids = await engine.pickIds(gapped, REMOVED);
  await bench.load.run({ kind: "remove", port: lists[1]?.server.port ?? 0, ids });
  for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
    for (const { server, pages, times, costs } of inTurns(lists, round)) {
      const before = readCpuSeconds(server.pid);
      const medians = await bench.load.run({ kind: "time-pages", port: server.port, pages, turns });
      if (round < 0) continue;
      times.push(medians);
      costs.push(((readCpuSeconds(server.pid) - before) * 1e6) / (turns * pages.length * PAGE_SIZE));
    }
  }
  const rows = lists.flatMap(({ state, times, costs }) => {
    const own = state === "" ? undefined : target;
    const first = times.map((medians) => medians[0] ?? Number.NaN);
    return PLACES.map((place, index) => {
      const ms = times.map((medians) => medians[index] ?? Number.NaN);
      return {
        name: `${state}${place} page`,
        parts: PAGE_SIZE,
        requestsPerSecond: ms.map((each) => 1_000 / each),
        medianMs: ms,
        cpuMicroseconds: index === 0 ? costs : [],
        comparisons: index === 0 ? [] : [compare("times its first page's time", ms, first, own)],
      };
    });
  });
  await stopServers(lists.map(({ server }) => server));
  for (const place of [whole, gapped]) await engine.drop(place);
  return { name, rows };
}

const PAGE_SIZE = 25;
const PLACES = ["first", "middle", "last"];

function pagesOf(total: number): TimePagesOrder["pages"] {
  const last = Math.ceil(total / PAGE_SIZE);
  return [1, Math.ceil(last / 2), last].map((number) => ({
    number,
    size: PAGE_SIZE,
    items: Math.min(PAGE_SIZE, total - (number - 1) * PAGE_SIZE),
  }));
}

/**
 * Whether additions stay fast in a large file. Each request is another user's, and each round starts all of them anew,
 * so that the lists are as long as they are said to be when it begins.
 */
export async function compareSizes(bench: Bench, name: string, target?: Target): Promise<Line> {
  const { sizeRounds, rows, sizeRequests } = bench.plan;
  const work = { connections: 8, workload: adding(100) };
  const contenders = [];
  for (const size of rows.toReversed()) {
    const lists = { count: size / LIST_LENGTH, length: LIST_LENGTH };
    const { path, tokens } = await makeFile(bench, lists);
    contenders.push({
      name: `${size.toLocaleString("en")} rows`,
      path,
      tokens,
      runs: [] as Measurement[],
    });
  }
  for (let round = 0; round < sizeRounds; round += 1) {
    for (const { path, tokens, runs } of inTurns(contenders, round)) {
      trim(path, { count: tokens.length, length: LIST_LENGTH });
      const server = await bench.earmark(path, tokens);
      const warmUp = { ms: ANY, requests: sizeRequests / 4 };
      runs.push(await bench.measure([server], work, { ms: ANY, requests: sizeRequests }, warmUp));
      await server.stop();
    }
  }
  const small = `times the time at ${rows[0].toLocaleString("en")} rows`;
  const compareWith = ({ runs }: Measured, base: Measured) => [
    compare(small, ratesOf(base.runs), ratesOf(runs), target),
    compare("times its CPU", costsOf(runs), costsOf(base.runs)),
  ];
  return { name, rows: rowsOf(contenders, work, compareWith) };
}

/** A file that Earmark has made, filled with lists. */
export async function fillFile(bench: Bench, lists: Lists): Promise<string> {
  const path = await bench.sqlite.create();
  await (await bench.earmark(path)).stop();
  bench.say(`    writing ${(lists.count * lists.length).toLocaleString("en")} rows`);
  prefill(path, lists);
  return path;
}

/** One whose first users have tokens. */
export async function makeFile(
  bench: Bench,
  lists: Lists,
): Promise<{ readonly path: string; readonly tokens: readonly string[] }> {
  const path = await fillFile(bench, lists);
  return { path, tokens: prefillTokens(path, Math.min(USERS, lists.count)) };
}
