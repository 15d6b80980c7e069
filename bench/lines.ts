import { type AppRequest, compareApps, compareEmptyPoll, measureActions } from "./apps.ts";
import { adding, type Bench, paging, type Work } from "./bench.ts";
import { compareCluster, compareClusterSizes } from "./cluster.ts";
import { comparePagesDuringAdds, comparePagesDuringImport } from "./concurrent.ts";
import { compareDuringFetching } from "./during-fetching.ts";
import type { Engine } from "./engines.ts";
import { measureFetching } from "./fetching.ts";
import { measureBulkMemory } from "./memory.ts";
import { compareAccounts, comparePages, comparePodcasts, compareSizes, compareWithBaseline } from "./rates.ts";
import type { Line, Target } from "./report.ts";
import { compareChanges, compareRemovals, measureStreams } from "./sync.ts";

/** One benchmark: its name and how to measure it. */
export interface Benchmark {
  readonly name: string;
  readonly measure: (bench: Bench, name: string) => Promise<Line>;
}

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

export function sqliteBenchmarks(): Benchmark[] {
  const againstBaseline = (kind: string, work: Work, target: Target): Benchmark => ({
    name: `SQLite: ${kind}`,
    measure: (bench, name) => compareWithBaseline(bench, name, bench.sqlite, work, { target }),
  });
  const peer = (what: AppRequest, target: Target): Benchmark => ({
    name: `SQLite: apps, ${what} of 100 feeds`,
    measure: (bench, name) => compareApps(bench, name, what, target),
  });
  return [
    againstBaseline("adds, 1 per request", SINGLES, { atLeast: 0.7 }),
    againstBaseline("adds, 100 per request", HUNDREDS, { atLeast: 0.75 }),
    againstBaseline("adds, 1,000 per request", THOUSANDS, { atLeast: 0.75 }),
    againstBaseline("pages of 25", PAGES_OF_25, { atLeast: 0.8 }),
    againstBaseline("pages of 100", PAGES_OF_100, { atLeast: 0.8 }),
    {
      name: "SQLite: pages of 25 during adds of 1,000 per request",
      measure: (bench, name) =>
        comparePagesDuringAdds(bench, name, { rate: { atLeast: 0.6 }, p99: P99_UNDER_LOAD, adds: { atLeast: 0.5 } }),
    },
    {
      name: "SQLite: pages of 25 during an import of 20,000 feeds",
      measure: (bench, name) => comparePagesDuringImport(bench, name, P99_UNDER_LOAD),
    },
    ...sharedBenchmarks("SQLite", (bench) => bench.sqlite),
    peer("list with a cookie", { atLeast: 10 }),
    peer("re-add", { atLeast: 4 }),
    peer("list with a password", { atLeast: 50 }),
    {
      name: "SQLite: adds, 100 per request, by database size",
      measure: (bench, name) => compareSizes(bench, name, { atMost: 1.5 }),
    },
    {
      name: "SQLite: 5,000 event streams",
      measure: (bench, name) =>
        measureStreams(bench, name, { mib: { atMost: 100 }, seconds: { atMost: 1 }, p99: { atMost: 1.5 } }),
    },
    {
      name: "SQLite: memory after a minute of adds, 10,000 per request",
      measure: (bench, name) => measureBulkMemory(bench, name, { atMost: 300 }),
    },
  ];
}

export function fetchingBenchmarks(): Benchmark[] {
  return [
    {
      name: "Fetching: feeds of 2 MB, 8 at a time",
      measure: (bench, name) => measureFetching(bench, name, { cpu: { atMost: 10 }, memory: { atMost: 60 } }),
    },
  ];
}

/** Small inserts are faster one group at a time, large ones in parallel; the faster variant is the baseline. */
export function postgresBenchmarks(): Benchmark[] {
  const againstBaseline = (
    kind: string,
    work: Work,
    options: Parameters<typeof compareWithBaseline>[4],
  ): Benchmark => ({
    name: `PostgreSQL: ${kind}`,
    measure: (bench, name) => compareWithBaseline(bench, name, bench.postgres, work, options),
  });
  const [adds, pages] = [{ atLeast: 0.5 }, { atLeast: 0.6 }];
  return [
    againstBaseline("adds, 1 per request", SINGLES, { target: adds, baseline: "serial" }),
    againstBaseline("adds, 100 per request", HUNDREDS, { target: adds }),
    againstBaseline("adds, 1,000 per request", THOUSANDS, { target: adds }),
    againstBaseline("pages of 25", PAGES_OF_25, { target: pages }),
    againstBaseline("pages of 100", PAGES_OF_100, { target: pages }),
    ...sharedBenchmarks("PostgreSQL", (bench) => bench.postgres),
  ];
}

/** On the cluster at TEST_CITUS_URLS. */
export function clusterBenchmarks(): Benchmark[] {
  const [adds, pages, polls] = ["adds, 100 per request", "pages of 25", "app polls"] as const;
  const cluster = (kind: Parameters<typeof compareCluster>[2], target: Target): Benchmark => ({
    name: `Citus: ${kind}`,
    measure: (bench, name) => compareCluster(bench, name, kind, target),
  });
  const sizes = (kind: Parameters<typeof compareCluster>[2]): Benchmark => ({
    name: `Citus: ${kind}, by database size`,
    measure: (bench, name) => compareClusterSizes(bench, name, kind, { atMost: 1.5 }),
  });
  return [
    cluster(adds, { atLeast: 0.4 }),
    cluster(pages, { atLeast: 0.5 }),
    cluster(polls, { atLeast: 0.5 }),
    ...[adds, pages].map(sizes),
  ];
}

function sharedBenchmarks(engine: Engine["name"], engineOf: (bench: Bench) => Engine): Benchmark[] {
  const withToken = (kind: string, work: Work): Benchmark => ({
    name: `${engine}: ${kind}, with a token`,
    measure: (bench, name) => compareAccounts(bench, name, engineOf(bench), work, WITH_TOKEN),
  });
  return [
    {
      name: `${engine}: a page of 25, list of 100,000`,
      measure: (bench, name) => comparePages(bench, name, engineOf(bench), ANY_PAGE),
    },
    {
      name: `${engine}: pages of 100 with podcasts`,
      measure: (bench, name) => comparePodcasts(bench, name, engineOf(bench), { atLeast: 0.5 }),
    },
    withToken("adds, 1 per request", SINGLES),
    withToken("adds, 100 per request", HUNDREDS),
    withToken("pages of 25", PAGES_OF_25),
    {
      name: `${engine}: apps, 20,000 episode actions`,
      measure: (bench, name) => measureActions(bench, name, engineOf(bench), { atMost: 1 }),
    },
    {
      name: `${engine}: apps, empty poll`,
      measure: (bench, name) => compareEmptyPoll(bench, name, engineOf(bench), ANY_PAGE),
    },
    {
      name: `${engine}: changes, list of 100,000`,
      measure: (bench, name) =>
        compareChanges(bench, name, engineOf(bench), { nothing: { atLeast: 1 }, some: ANY_PAGE }),
    },
    {
      name: `${engine}: pages of 25 and adds during fetches of 2 MB feeds`,
      measure: (bench, name) => compareDuringFetching(bench, name, engineOf(bench), { atMost: 1.5 }),
    },
    {
      name: `${engine}: removals, 1,000 per request`,
      measure: (bench, name) => compareRemovals(bench, name, engineOf(bench), { atLeast: 0.5 }),
    },
  ];
}
