import { costsOf } from "./adding-and-listing.ts";
import {
  adding,
  type Bench,
  type Benchmark,
  type Benchmarks,
  type Contender,
  onEngines,
  type PrepareWork,
  paging,
  partsOf,
  stopServers,
} from "./support/bench.ts";
import type { Engine } from "./support/databases.ts";
import type { Measurement } from "./support/load.ts";
import { makeToken, startEarmark, THIS_CHECKOUT } from "./support/processes.ts";
import { compare, type Line, ratesOf, rowOf } from "./support/report.ts";
import { addsOf, operate, readState, writePoll, writeRequest } from "./syncing.ts";

const LISTED = 10_000;
const CHANGED = 100;
/** Two versions differ by less than a round varies. */
const ROUNDS = 2;

const ADDS: Readonly<Record<string, PrepareWork>> = {
  "adds, 1 per request": async () => ({ connections: 32, workload: adding(1) }),
  "adds, 100 per request": async () => ({ connections: 8, workload: adding(100) }),
  "adds, 1,000 per request": async () => ({ connections: 4, workload: adding(1_000) }),
};
const PAGES: Readonly<Record<string, PrepareWork>> = {
  "pages of 25": async () => ({ connections: 32, workload: paging(25, LISTED) }),
  "pages of 100": async () => ({ connections: 32, workload: paging(100, LISTED) }),
};
const SYNC: Readonly<Record<string, PrepareWork>> = {
  "changes, none": async ({ port }) => askChanges(await readState(port), '"data":[]', 1),
  "changes, 100": async ({ port }) => {
    const before = await readState(port);
    await operate(port, addsOf(CHANGED));
    return askChanges(before, '{"type":"subscription"', CHANGED);
  },
  "app uploads, 100 actions per request": async () => ({
    connections: 4,
    workload: { kind: "actions", count: 100 },
  }),
  "app polls": async ({ port }) => ({ connections: 16, workload: await writePoll(port) }),
};

function askChanges(state: string, text: string, count: number) {
  const request = writeRequest(`/v1/changes?page[after]=${state}`, "");
  return { connections: 16, workload: { kind: "same", request, text, count } } as const;
}

/** Every rate of this checkout and of another one. */
export function againstCheckout(other: string): Benchmarks {
  return onEngines((_, engineOf) => {
    const all = ({ withToken }: { readonly withToken: boolean }, works: Readonly<Record<string, PrepareWork>>) =>
      Object.entries(works).map(([name, prepare]): [string, Benchmark] => [
        `${name}${withToken ? ", with a token" : ""}`,
        (bench, full) => compareCheckouts(bench, full, engineOf(bench), other, prepare, withToken),
      ]);
    const rates = { ...ADDS, ...PAGES };
    return Object.fromEntries([
      ...all({ withToken: false }, { ...rates, ...SYNC }),
      ...all({ withToken: true }, rates),
    ]);
  });
}

async function compareCheckouts(
  bench: Bench,
  name: string,
  engine: Engine,
  other: string,
  prepare: PrepareWork,
  withToken: boolean,
): Promise<Line> {
  const { lives, rounds } = bench.plan;
  const [ours, theirs]: [Measurement[], Measurement[]] = [[], []];
  let parts = 1;
  for (let life = 0; life < lives; life += 1) {
    const contenders: Contender[] = [];
    const databases: string[] = [];
    for (const [checkout, runs] of [[THIS_CHECKOUT, ours] as const, [other, theirs] as const]) {
      const database = await engine.create();
      databases.push(database);
      const tokens = withToken ? [makeToken(database, checkout)] : [];
      const server = await startEarmark(database, { checkout, tokens });
      await bench.fillList(server, LISTED);
      await engine.settle(database);
      const work = await prepare(server);
      parts = partsOf(work);
      contenders.push({ name: checkout, server, work, runs });
    }
    await bench.takeTurns(contenders, (ROUNDS * rounds) / lives);
    await stopServers(contenders.map(({ server }) => server));
    for (const database of databases) await engine.drop(database);
  }
  const comparisons = [
    compare("of the other checkout's rate", ratesOf(ours), ratesOf(theirs)),
    compare("times the other checkout's CPU", costsOf(ours), costsOf(theirs)),
  ];
  return { name, rows: [rowOf("Earmark", parts, ours, comparisons), rowOf("other checkout", parts, theirs)] };
}
