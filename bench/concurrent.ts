import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ANY, adding, type Bench, inTurns, paging, stopServers, type Work } from "./bench.ts";
import type { Measurement } from "./load.ts";
import type { Server } from "./processes.ts";
import { compare, type Line, ratesOf, rowOf, type Target } from "./report.ts";

const LISTED = 10_000;
const PAGES: Work = { connections: 32, workload: paging(25, LISTED) };
const BULK: Work = { connections: 4, workload: adding(1_000) };
const FEEDS = 20_000;

/**
 * Reads pages while clients add as fast as they can, on the same server and on another one. Both cases share the
 * machine with the same load, so the ratio is the cost of sharing one process. The add rate has a target too, because a
 * server that starves writers would serve pages quickly.
 */
export async function comparePagesDuringAdds(
  bench: Bench,
  name: string,
  targets: { readonly rate: Target; readonly p99: Target; readonly adds: Target },
): Promise<Line> {
  const [shared, own, neighbour] = await startThree(bench);
  const contenders = [
    { name: "adds on the same server", pages: shared, additions: shared },
    { name: "adds on another server", pages: own, additions: neighbour },
    { name: "no adds", pages: own, additions: undefined },
  ].map((contender) => ({ ...contender, runs: [] as Measurement[], added: [] as Measurement[] }));
  for (let round = 0; round <= bench.plan.rounds; round += 1) {
    for (const { pages, additions, runs, added } of inTurns(contenders, round)) {
      const adding = additions === undefined ? undefined : bench.measureBeside([additions], BULK);
      const run = await bench.measure([pages], PAGES);
      bench.otherLoad.finish();
      const other = await adding;
      if (round === 0) continue;
      runs.push(run);
      if (other !== undefined) added.push(other);
    }
  }
  await stopServers([shared, own, neighbour]);
  const [same, other, alone] = contenders.map(({ runs }) => runs);
  const [addedHere = [], addedThere = []] = contenders.map(({ added }) => ratesOf(added));
  const slowed = compare("of their rate when they go to another server", addedHere, addedThere, targets.adds);
  const rows = contenders.flatMap(({ name: contender, runs, added }, index) => {
    const pages = rowOf(`pages, ${contender}`, 25, runs, index === 0 ? comparisons() : []);
    return added.length === 0 ? [pages] : [pages, rowOf("  the adds", 1_000, added, index === 0 ? [slowed] : [])];
  });
  return { name, rows };

  function comparisons() {
    const [here = [], there = [], none = []] = [same, other, alone];
    return [
      compare("of the rate with adds elsewhere", ratesOf(here), ratesOf(there), targets.rate),
      compare("times its p99", p99Of(here), p99Of(there), targets.p99),
      compare("of the rate without adds", ratesOf(here), ratesOf(none)),
      compare("times its p99", p99Of(here), p99Of(none)),
    ];
  }
}

async function startThree(bench: Bench): Promise<[Server, Server, Server]> {
  const start = async () => bench.earmark(await bench.sqlite.create());
  const servers: [Server, Server, Server] = [await start(), await start(), await start()];
  for (const server of servers) await bench.fillList([server], LISTED);
  return servers;
}

function p99Of(runs: readonly Measurement[]): number[] {
  return runs.map(({ p99Ms }) => p99Ms);
}

/** Reads pages for the duration of an import, and for the same time without one. */
export async function comparePagesDuringImport(bench: Bench, name: string, target: Target): Promise<Line> {
  const server = await bench.earmark(await bench.sqlite.create());
  await bench.fillList([server], LISTED);
  const during: Measurement[] = [];
  const alone: Measurement[] = [];
  const seconds: number[] = [];
  let ms = bench.plan.measureMs;
  const measurePages = (bound: number) => bench.measure([server], PAGES, { ms: bound, requests: ANY });
  for (let round = 0; round <= bench.plan.rounds; round += 1) {
    const quiet = await measurePages(ms);
    const busy = measurePages(ANY);
    await sleep(bench.plan.warmUpMs + 20);
    const started = performance.now();
    await importFeeds(server, round);
    ms = performance.now() - started;
    bench.load.finish();
    const run = await busy;
    if (round === 0) continue;
    alone.push(quiet);
    during.push(run);
    seconds.push(ms / 1_000);
  }
  await server.stop();
  return {
    name,
    rows: [
      rowOf("pages during the import", 25, during, [
        compare("times the p99 alone", p99Of(during), p99Of(alone), target),
        compare("of the rate alone", ratesOf(during), ratesOf(alone)),
        { what: "s for the import", rounds: seconds },
      ]),
      rowOf("pages alone", 25, alone),
    ],
  };
}

/** Throws unless every feed was added. */
function importFeeds({ port }: Server, round: number): Promise<void> {
  const outlines = Array.from({ length: FEEDS }, (_, index) => {
    const number = round * FEEDS + index;
    return `<outline type="rss" text="Show ${number}" xmlUrl="https://feeds.example.org/import/${number}/rss.xml"/>`;
  });
  const file = `<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0"><head/><body>${outlines.join("\n")}</body></opml>`;
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "text/x-opml", "content-length": Buffer.byteLength(file) };
    const path = "/v1/imports";
    const outgoing = request({ port, host: "127.0.0.1", method: "POST", path, headers, agent: false }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const text = Buffer.concat(chunks).toString("latin1");
        if (incoming.statusCode === 200 && text.includes(`"added":${FEEDS},`) && text.endsWith("]}")) resolve();
        else reject(new Error(`import failed (${incoming.statusCode}): ${text.slice(0, 1_000)}`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(file);
  });
}
