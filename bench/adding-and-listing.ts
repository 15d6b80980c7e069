import {
  ANY,
  adding,
  type Bench,
  type Benchmark,
  type Benchmarks,
  type Contender,
  type EngineName,
  inTurns,
  onEngines,
  paging,
  partsOf,
  stopServers,
  type Work,
} from "./support/bench.ts";
import { type Engine, type Lists, prefill, prefillTokens, trim } from "./support/databases.ts";
import type { Measurement, TimePagesOrder } from "./support/load.ts";
import { readCpuSeconds } from "./support/machine.ts";
import { makeToken, type Server, startBaseline, startEarmark } from "./support/processes.ts";
import { type Comparison, compare, type Line, ratesOf, rowOf, type Target } from "./support/report.ts";
import { ATOMIC, PLAIN } from "./support/requests.ts";

const LONG_LIST = 20_000;
const LIST_LENGTH = 1_000;
/** Users in a large database; each request adds to the list of another one. */
const USERS = 500;
/** The effect of a token is smaller than the noise of a round, so it takes more rounds to see. */
const ROUNDS_FOR_TOKENS = 2;
/** Uncounted rounds of single requests: it takes some hundreds until the JIT settles. */
const WARM_UP_ROUNDS = 5;

type Measured = Omit<Contender, "server">;

/** Compares rate and CPU time of each contender with the last one. */
function rowsOf(
  contenders: readonly Measured[],
  compareWith: (contender: Measured, base: Measured) => readonly Comparison[],
): Line["rows"] {
  const base = contenders.at(-1);
  return contenders.map((contender) =>
    rowOf(
      contender.name,
      partsOf(contender.work),
      contender.runs,
      base === undefined || base === contender ? [] : compareWith(contender, base),
    ),
  );
}

function compareWithout(what: string, target: Target | undefined) {
  return ({ runs }: Measured, base: Measured) => [
    compare(`of the rate without ${what}`, ratesOf(runs), ratesOf(base.runs), target),
    compare(`times the CPU without ${what}`, costsOf(runs), costsOf(base.runs)),
  ];
}

/** CPU seconds per request. */
export function costsOf(runs: readonly Measurement[]): number[] {
  return runs.map(({ cpuSeconds, databaseSeconds, requests }) => (cpuSeconds + (databaseSeconds || 0)) / requests);
}

/** A participant; each of its processes gets its own database. */
export interface Rival {
  readonly name: string;
  start(database: string): Promise<Server>;
}

/** Alternates between rivals doing the same work, over several processes of each. */
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
  const measured = rivals.map(({ name }): Measured => ({ name, work, runs: [] }));
  for (let life = 0; life < lives; life += 1) {
    const databases: string[] = [];
    const servers: Server[] = [];
    for (const { start } of rivals) {
      const database = await engine.create();
      databases.push(database);
      servers.push(await start(database));
    }
    await check(servers);
    if (work.workload.kind === "pages") {
      for (const server of servers) await bench.fillList(server, work.workload.total);
      for (const database of databases) await engine.settle(database);
    }
    const contenders = measured.flatMap((each, at) => servers.slice(at, at + 1).map((server) => ({ ...each, server })));
    await bench.takeTurns(contenders, rounds / lives);
    await stopServers(servers);
    for (const database of databases) await engine.drop(database);
  }
  return measured;
}

/** Compares Earmark with its baseline. */
export async function compareWithBaseline(
  bench: Bench,
  name: string,
  engine: Engine,
  work: Work,
  target?: Target,
): Promise<Line> {
  const rivals = [
    { name: "Earmark", start: (database: string) => startEarmark(database) },
    { name: "baseline", start: (database: string) => startBaseline(database, partsOf(work) === 1) },
  ];
  const contenders = await measureRivals(bench, engine, work, rivals, {
    check: (servers) => requireSameResponses(servers.map(({ port }) => port)),
  });
  const compareWith = ({ runs }: Measured, base: Measured) => [
    compare("of the baseline's rate", ratesOf(runs), ratesOf(base.runs), target),
    compare("times the baseline's CPU", costsOf(runs), costsOf(base.runs)),
  ];
  return { name, rows: rowsOf(contenders, compareWith) };
}

/** Compares pages with their podcasts and pages without, of one server. */
async function comparePodcasts(bench: Bench, name: string, engine: Engine, target?: Target): Promise<Line> {
  const [size, total] = [100, 10_000];
  const contenders = [
    { name: "with podcasts", query: "&include=podcast" },
    { name: "without", query: "" },
  ].map(({ name: contender, query }) => ({
    name: contender,
    work: { connections: 32, workload: paging(size, total, query) },
    runs: [] as Measurement[],
  }));
  const { lives, rounds } = bench.plan;
  for (let life = 0; life < lives; life += 1) {
    const place = await engine.create();
    const filled = await startEarmark(place);
    await bench.fillList(filled, total);
    await filled.stop();
    await engine.addPodcasts(place);
    await engine.settle(place);
    const server = await startEarmark(place);
    await bench.takeTurns(
      contenders.map((contender) => ({ ...contender, server })),
      rounds / lives,
    );
    await server.stop();
    await engine.drop(place);
  }
  return { name, rows: rowsOf(contenders, compareWithout("podcasts", target)) };
}

/** Measures the cost of authentication. */
export async function compareAccounts(
  bench: Bench,
  name: string,
  engine: Engine,
  work: Work,
  target?: Target,
): Promise<Line> {
  const rivals = [
    { name: "with a token", start: (database: string) => startEarmark(database, { tokens: [makeToken(database)] }) },
    { name: "without accounts", start: (database: string) => startEarmark(database) },
  ];
  const contenders = await measureRivals(bench, engine, work, rivals, {
    rounds: ROUNDS_FOR_TOKENS * bench.plan.rounds,
  });
  return { name, rows: rowsOf(contenders, compareWithout("a token", target)) };
}

/** Compares first, middle and last page of a list of the default limit. */
async function comparePages(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const { rounds, turns } = bench.plan;
  const database = await engine.create();
  const server = await startEarmark(database);
  await bench.fillList(server, LONG_LIST);
  await engine.settle(database);
  const pages = pagesOf(LONG_LIST);
  const times: number[][] = [];
  const costs: number[] = [];
  for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
    const before = readCpuSeconds(server.pid);
    const medians = await bench.load.run({ kind: "time-pages", port: server.port, pages, turns });
    if (round < 0) continue;
    times.push(medians);
    costs.push(((readCpuSeconds(server.pid) - before) * 1e6) / (turns * pages.length * PAGE_SIZE));
  }
  const rows = POSITIONS.map((position, index) => {
    const ms = times.map((medians) => medians[index] ?? Number.NaN);
    const more = ms.map((each, round) => each - (times[round]?.[0] ?? Number.NaN));
    return {
      name: `${position} page`,
      requestsPerSecond: ms.map((each) => 1_000 / each),
      cpuMicroseconds: index === 0 ? costs : [],
      comparisons: index === 0 ? [] : [{ what: "ms more than the first page", rounds: more, target }],
    };
  });
  await stopServers([server]);
  await engine.drop(database);
  return { name, rows };
}

const PAGE_SIZE = 25;
const POSITIONS = ["first", "middle", "last"];

function pagesOf(total: number): TimePagesOrder["pages"] {
  const last = Math.ceil(total / PAGE_SIZE);
  return [1, Math.ceil(last / 2), last].map((number) => ({
    number,
    size: PAGE_SIZE,
    items: Math.min(PAGE_SIZE, total - (number - 1) * PAGE_SIZE),
  }));
}

/**
 * Compares adds to a small and a large database. Each request is from another user, and every list is cut back to its
 * initial length before each round.
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
      work,
      runs: [] as Measurement[],
    });
  }
  for (let round = 0; round < sizeRounds; round += 1) {
    for (const { path, tokens, runs } of inTurns(contenders, round)) {
      trim(path, { count: tokens.length, length: LIST_LENGTH });
      const server = await startEarmark(path, { tokens });
      const warmUp = { ms: ANY, requests: sizeRequests / 4 };
      runs.push(await bench.measure(server, work, { ms: ANY, requests: sizeRequests }, warmUp));
      await server.stop();
    }
  }
  const small = `times the time at ${rows[0].toLocaleString("en")} rows`;
  const compareWith = ({ runs }: Measured, base: Measured) => [
    compare(small, ratesOf(base.runs), ratesOf(runs), target),
    compare("times its CPU", costsOf(runs), costsOf(base.runs)),
  ];
  return { name, rows: rowsOf(contenders, compareWith) };
}

/** Creates a database by starting Earmark once, then fills it. The first users have tokens. */
async function makeFile(
  bench: Bench,
  lists: Lists,
): Promise<{ readonly path: string; readonly tokens: readonly string[] }> {
  const path = await bench.sqlite.create();
  await (await startEarmark(path)).stop();
  bench.logProgress(`    writing ${(lists.count * lists.length).toLocaleString("en")} rows`);
  prefill(path, lists);
  return { path, tokens: prefillTokens(path, Math.min(USERS, lists.count)) };
}

const ADDITION = {
  op: "add",
  data: {
    type: "subscription",
    id: "ffffffff-0000-4000-8000-000000000000",
    attributes: { feed_url: "https://feeds.example.com/first.xml" },
  },
};

/** Throws unless all servers return the same bytes, except for timestamps and the state of the list. */
async function requireSameResponses(ports: readonly number[]): Promise<void> {
  const body = JSON.stringify({ "atomic:operations": [ADDITION] });
  const page = "/v1/subscriptions?page[number]=1&page[size]=25";
  const responses = await Promise.all(
    ports.map(async (port) => [
      await ask(port, "/v1/operations", { method: "POST", headers: { "content-type": ATOMIC, accept: ATOMIC }, body }),
      await ask(port, page, { headers: { accept: PLAIN } }),
    ]),
  );
  const texts = responses.map((response) =>
    response
      .join("\n")
      .replaceAll(/\d\d:\d\d:\d\d(\.\d+Z)?/g, "(time)")
      .replaceAll(/^(etag|content-length): .*\n/gm, "")
      .replaceAll(/,?"state(_before)?":"[^"]*"/g, "")
      .replaceAll(/,"meta":\{\}/g, ""),
  );
  for (const text of texts) {
    if (text !== texts[0])
      throw new Error(`the baseline and Earmark return different responses:\n${texts.join("\n\n")}`);
  }
}

/** Headers sorted by name, then the body. */
async function ask(port: number, path: string, options: RequestInit): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, options);
  const headers = [...response.headers].map(([name, value]) => `${name}: ${value}\n`).sort();
  return headers.join("") + (await response.text());
}

/** Length of the lists that pages are read from. */
const LISTED = 10_000;
const SINGLES: Work = { connections: 32, workload: adding(1) };
const HUNDREDS: Work = { connections: 8, workload: adding(100) };
const THOUSANDS: Work = { connections: 4, workload: adding(1_000) };
const PAGES_OF_25: Work = { connections: 32, workload: paging(25, LISTED) };
const PAGES_OF_100: Work = { connections: 32, workload: paging(100, LISTED) };

type Kind = "singles" | "adds" | "pages" | "laterPages";
const TARGETS: Readonly<Record<EngineName, Readonly<Record<Kind, Target>>>> = {
  SQLite: { singles: { atLeast: 0.7 }, adds: { atLeast: 0.75 }, pages: { atLeast: 0.8 }, laterPages: { atMost: 5 } },
  PostgreSQL: {
    singles: { atLeast: 0.5 },
    adds: { atLeast: 0.5 },
    pages: { atLeast: 0.6 },
    laterPages: { atMost: 10 },
  },
};

const ON_ENGINES = onEngines((engine, engineOf) => {
  const { singles, adds, pages, laterPages } = TARGETS[engine];
  const baseline =
    (work: Work, target: Target): Benchmark =>
    (bench, name) =>
      compareWithBaseline(bench, name, engineOf(bench), work, target);
  const withToken =
    (work: Work): Benchmark =>
    (bench, name) =>
      compareAccounts(bench, name, engineOf(bench), work, { atLeast: 0.8 });
  return {
    "adds, 1 per request": baseline(SINGLES, singles),
    "adds, 100 per request": baseline(HUNDREDS, adds),
    "adds, 1,000 per request": baseline(THOUSANDS, adds),
    "pages of 25": baseline(PAGES_OF_25, pages),
    "pages of 100": baseline(PAGES_OF_100, pages),
    "a page of 25, list of 20,000": (bench, name) => comparePages(bench, name, engineOf(bench), laterPages),
    "pages of 100 with podcasts": (bench, name) => comparePodcasts(bench, name, engineOf(bench), { atLeast: 0.5 }),
    "adds, 1 per request, with a token": withToken(SINGLES),
    "adds, 100 per request, with a token": withToken(HUNDREDS),
    "pages of 25, with a token": withToken(PAGES_OF_25),
  };
});

export const ADDING_AND_LISTING: Benchmarks = {
  ...ON_ENGINES,
  "SQLite: adds, 100 per request, by database size": (bench, name) => compareSizes(bench, name, { atMost: 1.5 }),
};
