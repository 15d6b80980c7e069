import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import {
  adding,
  type Bench,
  type Benchmarks,
  inTurns,
  onEngines,
  paging,
  stopServers,
  type Work,
} from "./support/bench.ts";
import type { Engine } from "./support/databases.ts";
import { createFeed } from "./support/feed.ts";
import type { FetchTask } from "./support/fetching-process.ts";
import type { Measurement } from "./support/load.ts";
import { readCpuSeconds, readResidentMiB } from "./support/machine.ts";
import { type Server, startEarmark } from "./support/processes.ts";
import { compare, type Line, p99sOf, type Row, rowOf, type Target } from "./support/report.ts";
import { additionOf, operate } from "./syncing.ts";

/** Feeds per round: enough for an accurate CPU time, which is counted in hundredths of a second. */
const FEEDS = 200;
const CONCURRENCY = 8;
const SAMPLE_MS = 5;

/** Measures CPU time and memory of a process that fetches long feeds from this one. */
async function measureFetching(
  bench: Bench,
  name: string,
  targets: { readonly cpu: Target; readonly memory: Target },
): Promise<Line> {
  const [withArtwork, withoutArtwork] = [createFeed(true), createFeed(false)];
  const bodies = new Map([
    ["/artwork", { body: withArtwork, encoding: "identity" }],
    ["/gzip", { body: gzipSync(withArtwork), encoding: "gzip" }],
    ["/no-artwork", { body: withoutArtwork, encoding: "identity" }],
  ]);
  const server = createServer((request, response) => {
    const feed = bodies.get(request.url ?? "");
    response.writeHead(200, { "content-encoding": feed?.encoding }).end(feed?.body);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const rows: Row[] = [
      await measureFeed(bench, "feed with artwork", `${url}/artwork`, targets),
      await measureFeed(bench, "the same, gzip", `${url}/gzip`, targets),
      await measureFeed(bench, "feed without artwork", `${url}/no-artwork`, targets),
    ];
    return { name, rows };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function measureFeed(
  { plan }: Bench,
  name: string,
  url: string,
  targets: { readonly cpu: Target; readonly memory: Target },
): Promise<Row> {
  const [cpu, memory]: [number[], number[]] = [[], []];
  for (let round = 0; round < plan.rounds; round += 1) {
    const child = fork(fileURLToPath(new URL("support/fetching-process.ts", import.meta.url)));
    await once(child, "message");
    const idleMiB = readResidentMiB(child.pid ?? 0);
    await run(child, { url, feeds: 2 * CONCURRENCY, concurrency: CONCURRENCY });
    const before = readCpuSeconds(child.pid ?? 0);
    const peakMiB = await run(child, { url, feeds: FEEDS, concurrency: CONCURRENCY });
    cpu.push(((readCpuSeconds(child.pid ?? 0) - before) * 1_000) / FEEDS);
    memory.push(peakMiB - idleMiB);
    child.disconnect();
    await once(child, "exit");
  }
  return {
    name,
    comparisons: [
      { what: "ms of CPU per feed", rounds: cpu, target: targets.cpu },
      { what: "MiB above idle", rounds: memory, target: targets.memory },
    ],
  };
}

/** Returns the peak resident memory while the child fetches. */
async function run(child: ChildProcess, task: FetchTask): Promise<number> {
  let peakMiB = 0;
  const sample = () => {
    peakMiB = Math.max(peakMiB, readResidentMiB(child.pid ?? 0));
  };
  const timer = setInterval(sample, SAMPLE_MS);
  child.send(task);
  const [result] = await once(child, "message");
  clearInterval(timer);
  if (result !== task.feeds) throw new Error(`${result} of ${task.feeds} feeds were read`);
  return peakMiB;
}

const LISTED = 10_000;
const PAGES: Work = { connections: 4, workload: paging(25, LISTED) };
const ADDS: Work = { connections: 2, workload: adding(1) };
/** Per round, each on a host of its own (Linux has all of 127.0.0.0/8). All rounds together fetch 2,100. */
const FETCHED = 300;
const STARTED = 20;
const SETTINGS = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: "127.0.0.0/8" };

/** Reads pages and adds feeds on a server that fetches, and on one that does not. */
async function compareDuringFetching(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const publisher = fork(fileURLToPath(new URL("support/publisher.ts", import.meta.url)));
  const [port] = (await once(publisher, "message")) as [number];
  const databases = [await engine.create(), await engine.create()] as const;
  const servers = [await startEarmark(databases[0], { settings: SETTINGS }), await startEarmark(databases[1])] as const;
  for (const server of servers) await bench.fillList(server, LISTED);
  const contenders = servers.map((server) => ({ server, pages: [] as Measurement[], adds: [] as Measurement[] }));
  for (let round = 0; round <= bench.plan.rounds; round += 1) {
    for (const { server, pages, adds } of inTurns(contenders, round)) {
      const isFetching = server === servers[0];
      const before = await countOf(publisher);
      if (isFetching) await subscribe(server, port, round);
      while (isFetching && (await countOf(publisher)) < before + STARTED) await sleep(1);
      const beside = bench.measureBeside(server, ADDS);
      const run = await bench.measure(server, PAGES);
      bench.otherLoad.finish();
      const added = await beside;
      const served = (await countOf(publisher)) - before;
      if (isFetching && served >= FETCHED) throw new Error("all feeds were fetched before the measurement ended");
      while (isFetching && (await countOf(publisher)) < before + FETCHED) await sleep(100);
      if (round === 0) continue;
      pages.push(run);
      adds.push(added);
    }
  }
  publisher.disconnect();
  await stopServers(servers);
  for (const database of databases) await engine.drop(database);
  const [busy, idle] = contenders as [(typeof contenders)[0], (typeof contenders)[0]];
  const slower = (kind: "pages" | "adds") =>
    compare("times the p99 without fetching", p99sOf(busy[kind]), p99sOf(idle[kind]), target);
  return {
    name,
    rows: [
      rowOf("pages", 25, busy.pages, [slower("pages")]),
      rowOf("pages, no fetching", 25, idle.pages),
      rowOf("adds", 1, busy.adds, [slower("adds")]),
      rowOf("adds, no fetching", 1, idle.adds),
    ],
  };
}

async function subscribe({ port }: Server, publisherPort: number, round: number): Promise<void> {
  const operations = Array.from({ length: FETCHED }, (_, index) => {
    const feed_url = `http://127.1.${index >> 8}.${index & 255}:${publisherPort}/${round}`;
    return additionOf(feed_url);
  });
  await operate(port, operations);
}

/** Number of feeds that have been requested. */
async function countOf(publisher: ChildProcess): Promise<number> {
  publisher.send("count");
  const [count] = (await once(publisher, "message")) as [number];
  return count;
}

export const FETCHING: Benchmarks = {
  ...onEngines((_, engineOf) => ({
    "pages of 25 and adds during fetches of 2 MB feeds": (bench, name) =>
      compareDuringFetching(bench, name, engineOf(bench), { atMost: 1.5 }),
  })),
  "Fetching: feeds of 2 MB, 8 at a time": (bench, name) =>
    measureFetching(bench, name, { cpu: { atMost: 10 }, memory: { atMost: 60 } }),
};
