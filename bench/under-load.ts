import { setTimeout as sleep } from "node:timers/promises";
import { ANY, adding, type Bench, type Benchmarks, inTurns, paging, stopServers, type Work } from "./support/bench.ts";
import type { Measurement } from "./support/load.ts";
import { readPeakMiB, readResidentMiB } from "./support/machine.ts";
import { type Server, startEarmark } from "./support/processes.ts";
import { compare, type Line, p99sOf, ratesOf, rowOf, type Target } from "./support/report.ts";

const LISTED = 10_000;
const PAGES: Work = { connections: 32, workload: paging(25, LISTED) };
const BULK: Work = { connections: 4, workload: adding(1_000) };
const FEEDS = 20_000;

/**
 * Reads pages while clients add as fast as they can, on the same server and on another one. Both cases share the
 * machine with the same load, so the ratio is the cost of sharing one process. The add rate has a target too, because a
 * server that starves writers would serve pages quickly.
 */
async function comparePagesDuringAdds(
  bench: Bench,
  name: string,
  targets: { readonly rate: Target; readonly p99: Target; readonly adds: Target },
): Promise<Line> {
  const start = async () => {
    const server = await startEarmark(await bench.sqlite.create());
    await bench.fillList(server, LISTED);
    return server;
  };
  const [shared, own, neighbor] = [await start(), await start(), await start()];
  const contenders = [
    { name: "adds on the same server", pages: shared, additions: shared },
    { name: "adds on another server", pages: own, additions: neighbor },
  ].map((contender) => ({ ...contender, runs: [] as Measurement[], added: [] as Measurement[] }));
  for (let round = 0; round <= bench.plan.rounds; round += 1) {
    for (const { pages, additions, runs, added } of inTurns(contenders, round)) {
      const adding = bench.measureBeside(additions, BULK);
      const run = await bench.measure(pages, PAGES);
      bench.otherLoad.finish();
      const other = await adding;
      if (round === 0) continue;
      runs.push(run);
      added.push(other);
    }
  }
  await stopServers([shared, own, neighbor]);
  const [here = [], there = []] = contenders.map(({ runs }) => runs);
  const [addedHere = [], addedThere = []] = contenders.map(({ added }) => ratesOf(added));
  const compared = [
    compare("of the rate measured while the adds go to another server", ratesOf(here), ratesOf(there), targets.rate),
    compare("times the p99 measured while the adds go to another server", p99sOf(here), p99sOf(there), targets.p99),
  ];
  const slowed = compare(
    "of the adds' rate measured while the pages are read from another server",
    addedHere,
    addedThere,
    targets.adds,
  );
  const rows = contenders.flatMap(({ name: contender, runs, added }, index) => [
    rowOf(`pages, ${contender}`, 25, runs, index === 0 ? compared : []),
    rowOf(contender, 1_000, added, index === 0 ? [slowed] : []),
  ]);
  return { name, rows };
}

/** Reads pages for the duration of an import, and for the same time without one. */
async function comparePagesDuringImport(bench: Bench, name: string, target: Target): Promise<Line> {
  const server = await startEarmark(await bench.sqlite.create());
  await bench.fillList(server, LISTED);
  const during: Measurement[] = [];
  const alone: Measurement[] = [];
  let ms = bench.plan.measureMs;
  const measurePages = (bound: number) => bench.measure(server, PAGES, { ms: bound, requests: ANY });
  for (let round = 0; round <= bench.plan.rounds; round += 1) {
    const quiet = await measurePages(ms);
    const busy = measurePages(ANY);
    // A failed import is the error to report.
    busy.catch(() => undefined);
    await sleep(bench.plan.warmUpMs + 20);
    const started = performance.now();
    await importFeeds(server, round);
    ms = performance.now() - started;
    bench.load.finish();
    const run = await busy;
    if (round === 0) continue;
    alone.push(quiet);
    during.push(run);
  }
  await server.stop();
  const compared = compare("times the p99 without an import", p99sOf(during), p99sOf(alone), target);
  return {
    name,
    rows: [rowOf("pages during the import", 25, during, [compared]), rowOf("pages alone", 25, alone)],
  };
}

/** Throws unless every feed was added. */
async function importFeeds({ port }: Server, round: number): Promise<void> {
  const outlines = Array.from({ length: FEEDS }, (_, index) => {
    const number = round * FEEDS + index;
    return `<outline type="rss" text="Show ${number}" xmlUrl="https://feeds.example.org/import/${number}/rss.xml"/>`;
  });
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0"><head/><body>${outlines.join("\n")}</body></opml>`;
  const headers = { "content-type": "text/x-opml" };
  const response = await fetch(`http://127.0.0.1:${port}/v1/imports`, { method: "POST", headers, body });
  const text = await response.text();
  if (response.status !== 200 || !text.includes(`"added":${FEEDS},`) || !text.endsWith("]}"))
    throw new Error(`import failed (${response.status}): ${text.slice(0, 1_000)}`);
}

/** Requests of the maximum size that fit into the write queue at the same time: long ones may use three quarters of it. */
const CONNECTIONS = 3;

/** Resident memory after as many requests of the maximum size as the server can process. */
async function measureBulkMemory(bench: Bench, name: string, target: Target): Promise<Line> {
  const work = { connections: CONNECTIONS, workload: adding(10_000) };
  const server = await startEarmark(await bench.sqlite.create());
  const run = await bench.measure(server, work, { ms: bench.plan.bulkMs, requests: ANY });
  const comparisons = [
    { what: "MiB afterwards", rounds: [readResidentMiB(server.pid)], target },
    { what: "MiB at peak", rounds: [readPeakMiB(server.pid)] },
  ];
  await server.stop();
  return { name, rows: [rowOf("Earmark", 10_000, [run], comparisons)] };
}

export const UNDER_LOAD: Benchmarks = {
  "SQLite: pages of 25 during adds of 1,000 per request": (bench, name) =>
    comparePagesDuringAdds(bench, name, { rate: { atLeast: 0.6 }, p99: { atMost: 3 }, adds: { atLeast: 0.5 } }),
  "SQLite: pages of 25 during an import of 20,000 feeds": (bench, name) =>
    comparePagesDuringImport(bench, name, { atMost: 3 }),
  "SQLite: memory after a minute of adds, 10,000 per request": (bench, name) =>
    measureBulkMemory(bench, name, { atMost: 300 }),
};
