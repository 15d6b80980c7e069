import { measureActions } from "./apps.ts";
import { adding, type Bench, paging, type Work } from "./bench.ts";
import { type ClusterWork, compareCluster, compareClusterSizes } from "./cluster.ts";
import { comparePagesDuringAdds, comparePagesDuringImport } from "./concurrent.ts";
import { compareDuringFetching } from "./during-fetching.ts";
import { measureFetching } from "./fetching.ts";
import { measureBulkMemory } from "./memory.ts";
import { compareAccounts, comparePages, comparePodcasts, compareSizes, compareWithBaseline } from "./rates.ts";
import type { Line, Target } from "./report.ts";
import { compareChanges, compareRemovals, measureStreams } from "./sync.ts";

/** How to measure each benchmark, by name. */
export type Benchmarks = Readonly<Record<string, (bench: Bench, name: string) => Promise<Line>>>;

/** Length of the lists that pages are read from. */
const LISTED = 10_000;

const SINGLES: Work = { connections: 32, workload: adding(1) };
const HUNDREDS: Work = { connections: 8, workload: adding(100) };
const THOUSANDS: Work = { connections: 4, workload: adding(1_000) };
const PAGES_OF_25: Work = { connections: 32, workload: paging(25, LISTED) };
const PAGES_OF_100: Work = { connections: 32, workload: paging(100, LISTED) };

const WITH_TOKEN: Target = { atLeast: 0.8 };
const ANY_PAGE: Target = { atMost: 1.5 };
const P99_UNDER_LOAD: Target = { atMost: 3 };

export const SQLITE: Benchmarks = {
  ...onEngine("SQLite", {
    singles: { atLeast: 0.7 },
    adds: { atLeast: 0.75 },
    pages: { atLeast: 0.8 },
    laterPages: { atMost: 5 },
  }),
  "SQLite: pages of 25 during adds of 1,000 per request": (bench, name) =>
    comparePagesDuringAdds(bench, name, { rate: { atLeast: 0.6 }, p99: P99_UNDER_LOAD, adds: { atLeast: 0.5 } }),
  "SQLite: pages of 25 during an import of 20,000 feeds": (bench, name) =>
    comparePagesDuringImport(bench, name, P99_UNDER_LOAD),
  "SQLite: adds, 100 per request, by database size": (bench, name) => compareSizes(bench, name, { atMost: 1.5 }),
  "SQLite: 5,000 event streams": (bench, name) =>
    measureStreams(bench, name, { mib: { atMost: 100 }, seconds: { atMost: 1 }, p99: { atMost: 1.5 } }),
  "SQLite: memory after a minute of adds, 10,000 per request": (bench, name) =>
    measureBulkMemory(bench, name, { atMost: 300 }),
};

export const POSTGRES = onEngine("PostgreSQL", {
  singles: { atLeast: 0.5 },
  adds: { atLeast: 0.5 },
  pages: { atLeast: 0.6 },
  laterPages: { atMost: 10 },
});

export const FETCHING: Benchmarks = {
  "Fetching: feeds of 2 MB, 8 at a time": (bench, name) =>
    measureFetching(bench, name, { cpu: { atMost: 10 }, memory: { atMost: 60 } }),
};

/** On the cluster at TEST_CITUS_URLS. */
export const CLUSTER: Benchmarks = {
  ...onCluster("adds, 100 per request", { atLeast: 0.4 }),
  ...onCluster("pages of 25", { atLeast: 0.5 }),
  "Citus: app polls": (bench, name) => compareCluster(bench, name, "app polls", { atLeast: 0.5 }),
};

function onCluster(kind: ClusterWork, target: Target): Benchmarks {
  return {
    [`Citus: ${kind}`]: (bench, name) => compareCluster(bench, name, kind, target),
    [`Citus: ${kind}, by database size`]: (bench, name) => compareClusterSizes(bench, name, kind, { atMost: 1.5 }),
  };
}

function onEngine(
  engine: "SQLite" | "PostgreSQL",
  { singles, adds, pages, laterPages }: Readonly<Record<"singles" | "adds" | "pages" | "laterPages", Target>>,
): Benchmarks {
  const engineOf = (bench: Bench) => (engine === "SQLite" ? bench.sqlite : bench.postgres);
  const againstBaseline = (kind: string, work: Work, target: Target): Benchmarks => ({
    [`${engine}: ${kind}`]: (bench, name) => compareWithBaseline(bench, name, engineOf(bench), work, target),
  });
  const withToken = (kind: string, work: Work): Benchmarks => ({
    [`${engine}: ${kind}, with a token`]: (bench, name) =>
      compareAccounts(bench, name, engineOf(bench), work, WITH_TOKEN),
  });
  return {
    ...againstBaseline("adds, 1 per request", SINGLES, singles),
    ...againstBaseline("adds, 100 per request", HUNDREDS, adds),
    ...againstBaseline("adds, 1,000 per request", THOUSANDS, adds),
    ...againstBaseline("pages of 25", PAGES_OF_25, pages),
    ...againstBaseline("pages of 100", PAGES_OF_100, pages),
    [`${engine}: a page of 25, list of 20,000`]: (bench, name) =>
      comparePages(bench, name, engineOf(bench), laterPages),
    [`${engine}: pages of 100 with podcasts`]: (bench, name) =>
      comparePodcasts(bench, name, engineOf(bench), { atLeast: 0.5 }),
    ...withToken("adds, 1 per request", SINGLES),
    ...withToken("adds, 100 per request", HUNDREDS),
    ...withToken("pages of 25", PAGES_OF_25),
    [`${engine}: apps, 20,000 episode actions`]: (bench, name) =>
      measureActions(bench, name, engineOf(bench), { atMost: 1 }),
    [`${engine}: changes, list of 100,000`]: (bench, name) =>
      compareChanges(bench, name, engineOf(bench), { nothing: { atLeast: 1 }, some: ANY_PAGE }),
    [`${engine}: pages of 25 and adds during fetches of 2 MB feeds`]: (bench, name) =>
      compareDuringFetching(bench, name, engineOf(bench), { atMost: 1.5 }),
    [`${engine}: removals, 1,000 per request`]: (bench, name) =>
      compareRemovals(bench, name, engineOf(bench), { atLeast: 0.5 }),
  };
}
