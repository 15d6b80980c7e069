import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { constants, setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import sharp from "sharp";
import { adding, type Bench, inTurns, paging, stopServers, type Work } from "./bench.ts";
import type { Engine } from "./engines.ts";
import { createFeed } from "./fetching.ts";
import type { Measurement } from "./load.ts";
import { type Server, startEarmark } from "./processes.ts";
import { compare, type Line, p99sOf, rowOf, type Target } from "./report.ts";
import { additionOf, operate } from "./sync.ts";

const LISTED = 10_000;
const PAGES: Work = { connections: 4, workload: paging(25, LISTED) };
const ADDS: Work = { connections: 2, workload: adding(1) };
/** Per round, each on a host of its own (Linux has all of 127.0.0.0/8). All rounds together fetch 2,100. */
const FEEDS = 300;
const STARTED = 20;
const NOISE = { type: "gaussian", mean: 128, sigma: 20 } as const;
const SETTINGS = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: "127.0.0.0/8" };

/** Reads pages and adds feeds on a server that fetches, and on one that does not. */
export async function compareDuringFetching(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const publisher = fork(fileURLToPath(import.meta.url), ["publish"]);
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
      if (isFetching && served >= FEEDS) throw new Error("all feeds were fetched before the measurement ended");
      while (isFetching && (await countOf(publisher)) < before + FEEDS) await sleep(100);
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
  const operations = Array.from({ length: FEEDS }, (_, index) => {
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

/** The process that serves the feeds, all hosts together. */
async function publish(): Promise<void> {
  // Real publishers do not share the processor with the server.
  setPriority(constants.priority.PRIORITY_LOW);
  const body = createFeed(true);
  const cover = await sharp({ create: { width: 1_400, height: 1_400, channels: 3, background: "teal", noise: NOISE } })
    .jpeg()
    .toBuffer();
  let count = 0;
  const server = createServer((request, response) => {
    if (request.url === "/a.jpg") response.end(cover);
    else {
      count += 1;
      response.end(body);
    }
  }).listen(0, "0.0.0.0", () => process.send?.((server.address() as AddressInfo).port));
  process.on("message", () => process.send?.(count));
  process.on("disconnect", () => process.exit());
}

if (process.argv[2] === "publish" && process.send !== undefined) await publish();
