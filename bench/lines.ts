import { adding, type Bench, paging, type Work } from "./bench.ts";
import { comparePagesBesideAdditions, comparePagesBesideImport } from "./beside.ts";
import type { Engine } from "./engines.ts";
import { compareStarts, measureBulkMemory, measureIdleConnections } from "./footprint.ts";
import { compareAccounts, comparePages, compareProcesses, compareSizes, compareWithFloor } from "./rates.ts";
import type { Line, Target } from "./report.ts";

/** A part of the bench: what it is called, and how to measure it. */
export interface Part {
  readonly name: string;
  measure(bench: Bench, name: string): Promise<readonly Line[]>;
}

/** Length of the lists from which pages are read. */
const LISTED = 10_000;

const SINGLES: Work = { connections: 32, workload: adding(1) };
const HUNDREDS: Work = { connections: 8, workload: adding(100) };
const THOUSANDS: Work = { connections: 4, workload: adding(1_000) };
const PAGES_OF_25: Work = { connections: 32, workload: paging(25, LISTED) };
const PAGES_OF_100: Work = { connections: 32, workload: paging(100, LISTED) };

const OF_A_PAGE: Target = { atLeast: 0.8 };
const WITH_TOKEN: Target = { atLeast: 0.9 };
const ANY_PAGE: Target = { atMost: 1.5 };
const TWO_PROCESSES: Target = { atLeast: 1.6 };

function part(name: string, measure: (bench: Bench, name: string) => Promise<Line>): Part {
  return { name, measure: async (bench, own) => [await measure(bench, own)] };
}

export function sqliteParts(): Part[] {
  const each = { name: "a transaction each", mode: "each", target: { atLeast: 3 } } as const;
  const floor = (kind: string, work: Work, target: Target, others: readonly (typeof each)[] = []) =>
    part(`SQLite: ${kind}`, (bench, name) => compareWithFloor(bench, name, bench.sqlite, work, { target, others }));
  return [
    floor("adds, 1 per request", SINGLES, { atLeast: 0.8 }, [each]),
    floor("adds, 100 per request", HUNDREDS, { atLeast: 0.75 }),
    floor("adds, 1,000 per request", THOUSANDS, { atLeast: 0.75 }),
    floor("pages of 25", PAGES_OF_25, OF_A_PAGE),
    floor("pages of 100", PAGES_OF_100, OF_A_PAGE),
    part("SQLite: pages of 25 while 1,000 per request are added", (bench, name) =>
      comparePagesBesideAdditions(bench, name, {
        rate: { atLeast: 0.6 },
        p99: { atMost: 3 },
        additions: { atLeast: 0.5 },
      }),
    ),
    part("SQLite: pages of 25 while 20,000 feeds are imported", (bench, name) =>
      comparePagesBesideImport(bench, name, { atMost: 2 }),
    ),
    ...sharedParts((bench) => bench.sqlite, "SQLite"),
    part("SQLite: adds, 100 per request, by size", (bench, name) => compareSizes(bench, name, { atMost: 1.5 })),
    {
      name: "SQLite: start, and memory when idle",
      measure: (bench) => compareStarts(bench, { empty: { atMost: 0.4 }, full: { atMost: 0.5 }, idle: { atMost: 90 } }),
    },
    part("SQLite: memory after a minute of 10,000 per request", (bench, name) =>
      measureBulkMemory(bench, name, { atMost: 200 }),
    ),
    part("SQLite: memory with 4,000 idle connections", (bench, name) =>
      measureIdleConnections(bench, name, { atMost: 250 }),
    ),
  ];
}

/** Inserts side by side are faster than one at a time, where each is large; small ones are better shared. */
export function postgresParts(): Part[] {
  const floor = (kind: string, work: Work, options: Parameters<typeof compareWithFloor>[4]) =>
    part(`PostgreSQL: ${kind}`, (bench, name) => compareWithFloor(bench, name, bench.postgres, work, options));
  const oneAtATime = { name: "one insert at a time", mode: "one at a time" } as const;
  const sideBySide = { name: "inserts side by side", mode: "side by side" } as const;
  const byProcesses = (kind: string, work: Work) =>
    part(`PostgreSQL: ${kind}, by processes`, (bench, name) =>
      compareProcesses(bench, name, bench.postgres, work, TWO_PROCESSES),
    );
  return [
    floor("adds, 1 per request", SINGLES, { floor: "one at a time", others: [sideBySide] }),
    floor("adds, 100 per request", HUNDREDS, { others: [oneAtATime] }),
    floor("adds, 1,000 per request", THOUSANDS, { target: { atLeast: 0.7 }, others: [oneAtATime] }),
    floor("pages of 25", PAGES_OF_25, { target: OF_A_PAGE }),
    floor("pages of 100", PAGES_OF_100, { target: OF_A_PAGE }),
    ...sharedParts((bench) => bench.postgres, "PostgreSQL"),
    byProcesses("adds, 100 per request", { ...HUNDREDS, connections: 16 }),
    byProcesses("pages of 25", PAGES_OF_25),
  ];
}

/** What is the same on both engines. */
function sharedParts(engineOf: (bench: Bench) => Engine, engine: Engine["name"]): Part[] {
  const account = (kind: string, work: Work) =>
    part(`${engine}: ${kind}, with a token`, (bench, name) =>
      compareAccounts(bench, name, engineOf(bench), work, WITH_TOKEN),
    );
  return [
    part(`${engine}: a page of 25, list of 100,000`, (bench, name) =>
      comparePages(bench, name, engineOf(bench), ANY_PAGE),
    ),
    account("adds, 1 per request", SINGLES),
    account("adds, 100 per request", HUNDREDS),
    account("pages of 25", PAGES_OF_25),
  ];
}
