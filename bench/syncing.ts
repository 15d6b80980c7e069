import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import {
  adding,
  type Bench,
  type Benchmarks,
  type Contender,
  onEngines,
  paging,
  partsOf,
  type Work,
} from "./support/bench.ts";
import { type Engine, prefillTokens } from "./support/databases.ts";
import type { Measurement } from "./support/load.ts";
import { readCpuSeconds, readCpuSecondsOfAll, readResidentMiB } from "./support/machine.ts";
import { startEarmark } from "./support/processes.ts";
import { compare, type Line, p99sOf, ratesOf, rowOf, type Target } from "./support/report.ts";
import { ATOMIC, PLAIN } from "./support/requests.ts";

const CONNECTIONS = 16;
const LONG_LIST = 100_000;
const CHANGED = 100;
const REMOVED = 1_000;
const STREAMS = 5_000;
const STREAMS_PER_USER = 10;
/** Pause after opening or closing all streams. */
const SETTLING_MS = 1_000;

/** Compares asking what has changed in a long list with reading pages of it. */
async function compareChanges(
  bench: Bench,
  name: string,
  engine: Engine,
  { nothing, some }: { readonly nothing: Target; readonly some: Target },
): Promise<Line> {
  const database = await engine.create();
  const server = await startEarmark(database);
  await bench.fillList(server, LONG_LIST);
  await engine.settle(database);
  const before = await readState(server.port);
  await operate(server.port, addsOf(CHANGED));
  const state = await readState(server.port);
  const since = (text: string) => `/v1/changes?page[after]=${text}`;
  const same = (path: string, headers: string, text: string, count: number, status = 200) =>
    ({ kind: "same", request: writeRequest(path, headers), text, count, status }) as const;
  const workloads: Readonly<Record<string, Work["workload"]>> = {
    "changes, none": same(since(state), "", '"data":[]', 1),
    "If-None-Match, status 304": same("/v1/subscriptions", `If-None-Match: "${state}"\r\n`, '"data"', 0, 304),
    "page of 25": paging(25, 1_000),
    [`changes of ${CHANGED}`]: same(since(before), "", '{"type":"subscription"', CHANGED),
    "page of 100": paging(100, 1_000),
  };
  const contenders = Object.entries(workloads).map(
    ([contender, workload]): Contender => ({
      name: contender,
      server,
      work: { connections: CONNECTIONS, workload },
      runs: [],
    }),
  );
  await bench.takeTurns(contenders);
  await server.stop();
  await engine.drop(database);
  const [none = [], unchanged = [], page25 = [], changes = [], page100 = []] = contenders.map(({ runs }) =>
    ratesOf(runs),
  );
  const comparisons = [
    [compare("times the rate of pages of 25", none, page25, nothing)],
    [compare("times the rate of pages of 25", unchanged, page25, nothing)],
    [],
    [compare("times the time of a page of 100", page100, changes, some)],
  ];
  return {
    name,
    rows: contenders.map(({ name: row, work, runs }, at) => rowOf(row, partsOf(work), runs, comparisons[at])),
  };
}

/** Compares removing subscriptions with adding them, one request at a time. */
async function compareRemovals(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const database = await engine.create();
  const server = await startEarmark(database);
  await bench.fillList(server, LONG_LIST);
  await engine.settle(database);
  const ratios: number[] = [];
  const rounds = 5 * bench.plan.rounds;
  for (let round = -2; round < rounds; round += 1) {
    const adds = addsOf(REMOVED);
    const removals = adds.map(({ data }) => removalOf(data.id));
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
async function measureStreams(
  bench: Bench,
  name: string,
  targets: { readonly mib: Target; readonly seconds: Target; readonly p99: Target },
): Promise<Line> {
  const database = await bench.sqlite.create();
  await (await startEarmark(database)).stop();
  const tokens = prefillTokens(database, STREAMS / STREAMS_PER_USER);
  const server = await startEarmark(database, { tokens: tokens.slice(0, 1) });
  const { port, pid } = server;
  const work: Work = { connections: 8, workload: paging(25, 1_000) };
  await bench.measure(server, { connections: 1, workload: adding(1_000) }, { ms: 60_000, requests: 1 });
  const measurePages = () => bench.measure(server, work);
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
  const comparisons = [
    { what: "MiB above idle", rounds: mib, target: targets.mib },
    { what: `s until all are notified of ${tokens.length} changes`, rounds: seconds, target: targets.seconds },
    compare("times the p99 of pages", p99sOf(withStreams), p99sOf(without), targets.p99),
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

export function writeRequest(path: string, headers: string, accept = PLAIN): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: ${accept}\r\n${headers}\r\n`;
}

export async function readState(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/me`);
  const { meta } = (await response.json()) as { meta: { state: string } };
  return meta.state;
}

export function addsOf(count: number) {
  return Array.from({ length: count }, () => additionOf(`https://feeds.example.com/shows/${crypto.randomUUID()}.xml`));
}

export function additionOf(feed_url: string) {
  return { op: "add", data: { type: "subscription", id: crypto.randomUUID(), attributes: { feed_url } } };
}

function removalOf(id: string) {
  return { op: "remove", ref: { type: "subscription", id } };
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

const FEEDS = 100;
const ACTIONS = 20_000;
const LIST = "/api/2/subscriptions/ann/phone.json";
const EPISODES = "/api/2/episodes/ann.json";

/** CPU time of the server and its database for the first upload of a long history, and for reading it back. */
async function measureActions(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const actions = Array.from({ length: ACTIONS }, (_, index) => ({
    podcast: `https://feeds.example.com/shows/${index % FEEDS}/episodes.xml`,
    episode: `https://media.example.com/shows/${index % FEEDS}/${index}.mp3`,
    guid: `episode-${index}`,
    action: "play",
    device: "phone",
    timestamp: "2026-01-01T10:00:00",
    started: 0,
    position: index,
    total: ACTIONS,
  }));
  const body = JSON.stringify(actions);
  const [up, down]: [number[], number[]] = [[], []];
  for (let round = 1; round <= bench.plan.sizeRounds; round += 1) {
    const database = await engine.create();
    const server = await startEarmark(database);
    const usage = () =>
      readCpuSeconds(server.pid) + (server.onPostgres ? readCpuSecondsOfAll(bench.postgresServer.pid ?? 0) : 0);
    const measure = async (into: number[], path: string, options: RequestInit) => {
      const before = usage();
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`, options);
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${response.status}: ${text.slice(0, 500)}`);
      into.push(usage() - before);
      return JSON.parse(text);
    };
    await measure(up, EPISODES, { method: "POST", body });
    const { actions: read } = await measure(down, `${EPISODES}?since=0`, {});
    if (read.length !== ACTIONS) throw new Error(`${read.length} actions of ${ACTIONS}`);
    await server.stop();
    await engine.drop(database);
  }
  const comparisons = [
    { what: "s of CPU to upload", rounds: up, target },
    { what: "s of CPU to read back", rounds: down, target },
  ];
  return { name, rows: [{ name: "Earmark", comparisons }] };
}

/** A poll of an app that has everything. */
export async function writePoll(port: number): Promise<Work["workload"]> {
  const response = await fetch(`http://127.0.0.1:${port}${LIST}?since=0`);
  const { timestamp } = (await response.json()) as { timestamp: number };
  const target = `${LIST}?since=${timestamp}`;
  const request = `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: sessionid=local.phone\r\n\r\n`;
  return { kind: "same", request, text: '"add":[]', count: 1 };
}

export const SYNCING: Benchmarks = {
  ...onEngines((_, engineOf) => ({
    "apps, 20,000 episode actions": (bench, name) => measureActions(bench, name, engineOf(bench), { atMost: 1 }),
    "changes, list of 100,000": (bench, name) =>
      compareChanges(bench, name, engineOf(bench), { nothing: { atLeast: 1 }, some: { atMost: 1.5 } }),
    "removals, 1,000 per request": (bench, name) => compareRemovals(bench, name, engineOf(bench), { atLeast: 0.5 }),
  })),
  "SQLite: 5,000 event streams": (bench, name) =>
    measureStreams(bench, name, { mib: { atMost: 100 }, seconds: { atMost: 1 }, p99: { atMost: 1.5 } }),
};
