import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { adding, type Bench, inTurns, paging, type Work } from "./bench.ts";
import type { Engine } from "./engines.ts";
import type { Measurement } from "./load.ts";
import { prefillTokens } from "./prefill.ts";
import { type Comparison, compare, type Line, ratesOf, rowOf, type Target } from "./report.ts";
import { ATOMIC, PLAIN } from "./requests.ts";
import { readResidentMiB } from "./usage.ts";

const CONNECTIONS = 16;
const LONG_LIST = 100_000;
const CHANGED = 100;
const REMOVED = 1_000;
const STREAMS = 5_000;
const STREAMS_PER_USER = 10;
/** Pause after opening or closing all streams. */
const SETTLING_MS = 1_000;

/** A request to repeat, and the number of items in its response. */
export interface Repeated {
  readonly name: string;
  readonly parts: number;
  readonly workload: Work["workload"];
}

/** Measures different requests, in turns, to one server with a list of this length. Result N belongs to request N. */
export async function measureRequests(
  bench: Bench,
  engine: Engine,
  length: number,
  requestsOf: (port: number) => Promise<readonly Repeated[]>,
): Promise<(Repeated & { readonly runs: readonly Measurement[] })[]> {
  const database = await engine.create();
  const server = await bench.earmark(database);
  await bench.fillList([server], length);
  await engine.settle(database);
  const contenders = (await requestsOf(server.port)).map((request) => ({ ...request, runs: [] as Measurement[] }));
  const { warmUpRounds, rounds } = bench.plan;
  for (let round = 1 - warmUpRounds; round <= rounds; round += 1) {
    for (const { workload, runs } of inTurns(contenders, round)) {
      const run = await bench.measure([server], { connections: CONNECTIONS, workload });
      if (round > 0) runs.push(run);
    }
  }
  await server.stop();
  await engine.drop(database);
  return contenders;
}

/** Compares asking what has changed in a long list with reading pages of it. */
export async function compareChanges(
  bench: Bench,
  name: string,
  engine: Engine,
  { nothing, some }: { readonly nothing: Target; readonly some: Target },
): Promise<Line> {
  const measured = await measureRequests(bench, engine, LONG_LIST, async (port) => {
    const before = await readState(port);
    await operate(port, addsOf(CHANGED));
    const state = await readState(port);
    const since = (text: string) => `/v1/changes?page[after]=${text}`;
    const same = (path: string, headers: string, text: string, count: number, status = 200) =>
      ({ kind: "same", request: writeRequest(path, headers), text, count, status }) as const;
    return [
      { name: "changes, none", parts: 1, workload: same(since(state), "", '"data":[]', 1) },
      {
        name: "If-None-Match, status 304",
        parts: 1,
        workload: same("/v1/subscriptions", `If-None-Match: "${state}"\r\n`, '"data"', 0, 304),
      },
      { name: "page of 25", parts: 25, workload: paging(25, LONG_LIST) },
      {
        name: `changes of ${CHANGED}`,
        parts: CHANGED,
        workload: same(since(before), "", '{"type":"subscription"', CHANGED),
      },
      { name: "page of 100", parts: 100, workload: paging(100, LONG_LIST) },
    ];
  });
  const [none, unchanged, page25, changes, page100] = measured.map(({ runs }) => ratesOf(runs));
  const comparisons: readonly (readonly Comparison[])[] = [
    [compare("times the rate of pages of 25", none ?? [], page25 ?? [], nothing)],
    [compare("times the rate of pages of 25", unchanged ?? [], page25 ?? [], nothing)],
    [],
    [compare("times the time of a page of 100", page100 ?? [], changes ?? [], some)],
    [],
  ];
  return { name, rows: measured.map(({ name: row, parts, runs }, at) => rowOf(row, parts, runs, comparisons[at])) };
}

/** Compares removing subscriptions with adding them, one request at a time. */
export async function compareRemovals(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const database = await engine.create();
  const server = await bench.earmark(database);
  await bench.fillList([server], LONG_LIST);
  await engine.settle(database);
  const ratios: number[] = [];
  const rounds = 5 * bench.plan.rounds;
  for (let round = -2; round < rounds; round += 1) {
    const adds = addsOf(REMOVED);
    const removals = adds.map(({ data: { type, id } }) => ({ op: "remove", ref: { type, id } }));
    const added = await operate(server.port, adds);
    const removed = await operate(server.port, removals);
    if (round >= 0) ratios.push(added / removed);
  }
  await server.stop();
  await engine.drop(database);
  return {
    name,
    rows: [{ name: "removals", comparisons: [{ what: "times the rate of adds", rounds: ratios, target }] }],
  };
}

/** Measures the memory of thousands of open event streams, how soon they are notified, and their effect on other requests. */
export async function measureStreams(
  bench: Bench,
  name: string,
  targets: { readonly mib: Target; readonly seconds: Target; readonly p99: Target },
): Promise<Line> {
  const database = await bench.sqlite.create();
  await (await bench.earmark(database)).stop();
  const tokens = prefillTokens(database, STREAMS / STREAMS_PER_USER);
  const server = await bench.earmark(database, tokens.slice(0, 1));
  const { port, pid } = server;
  const work: Work = { connections: 8, workload: paging(25, 1_000) };
  await bench.measure([server], { connections: 1, workload: adding(1_000) }, { ms: 60_000, requests: 1 });
  const measurePages = () => bench.measure([server], work);
  for (let round = 0; round < 2; round += 1) await measurePages();

  const idle = readResidentMiB(pid);
  const [without, withStreams]: [Measurement[], Measurement[]] = [[], []];
  const [mib, seconds]: [number[], number[]] = [[], []];
  for (let round = 0; round < bench.plan.rounds; round += 1) {
    without.push(await measurePages());
    const streams = await Promise.all(
      tokens.flatMap((token, user) =>
        Array.from({ length: STREAMS_PER_USER }, () => openStream(port, token, `127.1.${user >> 8}.${user & 255}`)),
      ),
    );
    await sleep(SETTLING_MS);
    mib.push(readResidentMiB(pid) - idle);
    withStreams.push(await measurePages());
    const started = performance.now();
    const notified = Promise.all(streams.map((socket) => once(socket, "event")));
    await Promise.all(tokens.map((token) => operate(port, addsOf(1), token)));
    await notified;
    seconds.push((performance.now() - started) / 1_000);
    for (const socket of streams) socket.destroy();
    await sleep(SETTLING_MS);
  }
  await server.stop();
  const p99 = (runs: readonly Measurement[]) => runs.map(({ p99Ms }) => p99Ms);
  const comparisons = [
    { what: "MiB above idle", rounds: mib, target: targets.mib },
    { what: `s until all are notified of ${tokens.length} changes`, rounds: seconds, target: targets.seconds },
    compare("times the p99 of pages", p99(withStreams), p99(without), targets.p99),
  ];
  const rows = [rowOf("pages with streams", 25, withStreams, comparisons), rowOf("pages alone", 25, without)];
  return { name, rows };
}

/**
 * Resolves when the first event has arrived; later ones are emitted as "event". Each user has its own local address,
 * because one network may open only half of all connections (on Linux, all of 127.0.0.0/8 is local).
 */
async function openStream(port: number, token: string, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("data", (chunk) => chunk.includes("data:") && socket.emit("event"));
  socket.write(writeRequest("/v1/events", `Authorization: Bearer ${token}\r\n`, "text/event-stream"));
  await once(socket, "event");
  return socket;
}

function writeRequest(path: string, headers: string, accept = PLAIN): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: ${accept}\r\n${headers}\r\n`;
}

async function readState(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/me`);
  const { meta } = (await response.json()) as { meta: { state: string } };
  return meta.state;
}

function addsOf(count: number) {
  return Array.from({ length: count }, () => {
    const id = crypto.randomUUID();
    const attributes = { feed_url: `https://feeds.example.com/shows/${id}.xml` };
    return { op: "add", data: { type: "subscription", id, attributes } };
  });
}

/** Sends operations and returns the duration in milliseconds. */
export async function operate(port: number, operations: readonly unknown[], token?: string): Promise<number> {
  const body = JSON.stringify({ "atomic:operations": operations });
  const headers = { "content-type": ATOMIC, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  const started = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/v1/operations`, { method: "POST", headers, body });
  const text = await response.text();
  if (response.status !== 200 || text.includes('"errors"'))
    throw new Error(`${response.status}: ${text.slice(0, 500)}`);
  return performance.now() - started;
}
