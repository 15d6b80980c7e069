import type { Bench, Work } from "./bench.ts";
import type { Engine } from "./engines.ts";
import { startEarmark } from "./processes.ts";
import type { Line, Target } from "./report.ts";
import { readCpuSeconds, readCpuSecondsOfAll } from "./usage.ts";

const FEEDS = 100;
const ACTIONS = 20_000;
const LIST = "/api/2/subscriptions/ann/phone.json";
const EPISODES = "/api/2/episodes/ann.json";

/** CPU time of the server and its database for the first upload of a long history, and for reading it back. */
export async function measureActions(bench: Bench, name: string, engine: Engine, target: Target): Promise<Line> {
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
