import { join } from "node:path";
import { type Bench, inTurns, paging, stopServers, type Work } from "./bench.ts";
import type { Engine } from "./engines.ts";
import type { Measurement } from "./load.ts";
import { findMissing, startOpodsync } from "./opodsync.ts";
import { makeToken, PASSWORD, type Server, startBaseline, USER } from "./processes.ts";
import { costsOf } from "./rates.ts";
import { type Comparison, compare, type Line, ratesOf, rowOf, type Target } from "./report.ts";
import { measureRequests } from "./sync.ts";
import { readCpuSeconds, readCpuSecondsOfAll } from "./usage.ts";

const FEEDS = 100;
const CONNECTIONS = 16;
const ACTIONS = 20_000;
const LISTED = 10_000;
const LIST = `/api/2/subscriptions/${USER}/phone.json`;
const EPISODES = `/api/2/episodes/${USER}.json`;
const BASIC = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString("base64")}`;
const feeds = Array.from({ length: FEEDS }, (_, index) => `https://feeds.example.com/shows/${index}/episodes.xml`);

/** What an app repeats. */
export type AppRequest = "list with a cookie" | "list with a password" | "re-add";

interface Contender {
  readonly name: string;
  readonly server: Server;
  readonly work: Work;
  readonly runs: Measurement[];
}

/** Compares requests of an app with oPodSync and with the baseline. Every response is checked. */
export async function compareApps(bench: Bench, name: string, what: AppRequest, target: Target): Promise<Line> {
  const database = await bench.sqlite.create();
  const contenders = [await contend("Earmark", await bench.earmark(database, [makeToken(database)]), what)];
  const missing = findMissing();
  if (missing === undefined)
    contenders.push(await contend("oPodSync", await startOpodsync(join(bench.folder, `opodsync ${what}`)), what));
  else bench.logProgress(`    not compared with oPodSync: ${missing}`);
  contenders.push(await contend("baseline", await startBaseline(await bench.sqlite.create(), "grouped"), what));

  const { warmUpRounds, rounds } = bench.plan;
  for (let round = 1 - warmUpRounds; round <= rounds; round += 1) {
    for (const { server, work, runs } of inTurns(contenders, round)) {
      const run = await bench.measure([server], work);
      if (round > 0) runs.push(run);
    }
  }
  await stopServers(contenders.map(({ server }) => server));
  const [ours = [], peers, baselines = []] = ["Earmark", "oPodSync", "baseline"].map(
    (of) => contenders.find((each) => each.name === of)?.runs,
  );
  const comparisons: Comparison[] = [
    ...(peers === undefined
      ? []
      : [
          compare("times oPodSync's rate", ratesOf(ours), ratesOf(peers), target),
          compare("requests in the CPU time of one", costsOf(peers), costsOf(ours)),
        ]),
    compare("of the baseline's rate", ratesOf(ours), ratesOf(baselines)),
  ];
  const rows = contenders.map(({ name: row, runs }) => rowOf(row, FEEDS, runs, row === "Earmark" ? comparisons : []));
  return { name, rows };
}

/** Gives the server a list of 100 feeds, and writes the request that it will get. */
async function contend(name: string, server: Server, what: AppRequest): Promise<Contender> {
  const body = JSON.stringify({ add: feeds, remove: [] });
  const url = `http://127.0.0.1:${server.port}${LIST}`;
  const login = await fetch(url, { method: "POST", headers: { authorization: BASIC }, body });
  if (login.status !== 200) throw new Error(`${name} returned ${login.status}: ${await login.text()}`);
  await login.arrayBuffer();
  const cookie = login.headers
    .getSetCookie()
    .map((each) => each.split(";")[0])
    .join("; ");
  const headers = what === "list with a password" ? `Authorization: ${BASIC}\r\n` : `Cookie: ${cookie}\r\n`;
  const workload =
    what === "re-add"
      ? { request: writeRequest("POST", LIST, headers, body), text: '"timestamp"', count: 1 }
      : { request: writeRequest("GET", `${LIST}?since=0`, headers), text: "feeds.example.com", count: FEEDS };
  return { name, server, work: { connections: CONNECTIONS, workload: { kind: "same", ...workload } }, runs: [] };
}

function writeRequest(method: string, path: string, headers: string, body?: string): string {
  const length = body === undefined ? "" : `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}${length}\r\n${body ?? ""}`;
}

/** CPU time of the server and its database for the first upload of a long history, and for reading it back. */
export async function measureActions(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const actions = Array.from({ length: ACTIONS }, (_, index) => ({
    podcast: feeds[index % FEEDS],
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
    const server = await bench.earmark(database);
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
  const request = writeRequest("GET", `${LIST}?since=${timestamp}`, "Cookie: sessionid=local.phone\r\n");
  return { kind: "same", request, text: '"add":[]', count: 1 };
}

/** Compares a poll that finds nothing new with a page of 25. */
export async function compareEmptyPoll(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
  const measured = await measureRequests(bench, engine, LISTED, async (port) => [
    { name: "empty poll", parts: 1, workload: await writePoll(port) },
    { name: "page of 25", parts: 25, workload: paging(25, LISTED) },
  ]);
  const [polls = [], pages = []] = measured.map(({ runs }) => runs);
  const comparisons = [compare("times the time of a page", ratesOf(pages), ratesOf(polls), target)];
  return { name, rows: [rowOf("empty poll", 1, polls, comparisons), rowOf("page of 25", 25, pages)] };
}
