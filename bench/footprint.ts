import { setTimeout as sleep } from "node:timers/promises";
import { ANY, adding, type Bench, inTurns } from "./bench.ts";
import { startFloor } from "./processes.ts";
import { fillFile } from "./rates.ts";
import { type Line, type Row, rowOf, type Target } from "./report.ts";
import { readCpuSeconds, readPeakMiB, readResidentMiB } from "./usage.ts";

/** How soon it is there, and what it holds on to. */

const CONNECTIONS = 4_000;
/** After this long with nothing to do a server is taken to be idle. */
const IDLE_MS = 1_000;

/** From the start of the process to its first answer, which is the first page of a list. */
export async function compareStarts(
  bench: Bench,
  targets: { readonly empty: Target; readonly full: Target; readonly idle: Target },
): Promise<Line[]> {
  const path = await fillFile(bench, { count: bench.plan.startRows / 1_000, length: 1_000 });
  const rows = bench.plan.startRows.toLocaleString("en");
  const contenders = [
    { name: "Earmark, empty", start: async () => bench.earmark(await bench.sqlite.create()), target: targets.empty },
    { name: `Earmark, ${rows} rows`, start: () => bench.earmark(path), target: targets.full },
    { name: "floor, empty", start: async () => startFloor(await bench.sqlite.create(), "groups"), target: undefined },
  ].map((contender) => ({ ...contender, seconds: [] as number[], cpu: [] as number[], idle: [] as number[] }));
  for (let round = 0; round <= bench.plan.rounds; round += 1) {
    for (const { start, seconds, cpu, idle } of inTurns(contenders, round)) {
      const started = performance.now();
      const server = await start();
      await bench.load.run({ kind: "hold", port: server.port, connections: 1 });
      const took = (performance.now() - started) / 1_000;
      const used = readCpuSeconds(server.pid) * 1e6;
      await sleep(IDLE_MS);
      const resident = readResidentMiB(server.pid);
      await bench.load.run({ kind: "hold", port: server.port, connections: 0 });
      await server.stop();
      // The first of each is compiled.
      if (round === 0) continue;
      seconds.push(took);
      cpu.push(used);
      idle.push(resident);
    }
  }
  const startRow = (contender: (typeof contenders)[number]): Row => ({
    name: contender.name,
    cpuMicroseconds: contender.cpu,
    comparisons: [goal("s to the first answer", contender.seconds, contender.target)],
  });
  const idleRow = (contender: (typeof contenders)[number]): Row => ({
    name: contender.name,
    comparisons: [goal("MiB", contender.idle, contender.name.startsWith("Earmark") ? targets.idle : undefined)],
  });
  return [
    { name: "SQLite: start to first answer", rows: contenders.map(startRow) },
    { name: "SQLite: memory when idle", rows: contenders.map(idleRow) },
  ];
}

function goal(what: string, rounds: readonly number[], target: Target | undefined) {
  return target === undefined ? { what, rounds } : { what, rounds, target };
}

/** Memory after the largest requests that are allowed, as many as it can take. */
export async function measureBulkMemory(bench: Bench, name: string, target: Target): Promise<Line> {
  const work = { connections: 4, workload: adding(10_000) };
  const server = await bench.earmark(await bench.sqlite.create());
  const run = await bench.measure([server], work, { ms: bench.plan.bulkMs, requests: ANY });
  const comparisons = [
    goal("MiB afterwards", [readResidentMiB(server.pid)], target),
    goal("MiB at most", [readPeakMiB(server.pid)], undefined),
  ];
  await server.stop();
  return { name, rows: [rowOf("Earmark", 10_000, [run], comparisons)] };
}

/** Memory with connections that have asked once and then stay. */
export async function measureIdleConnections(bench: Bench, name: string, target: Target): Promise<Line> {
  const contenders = [
    { name: "Earmark", start: async () => bench.earmark(await bench.sqlite.create()), target },
    { name: "floor", start: async () => startFloor(await bench.sqlite.create(), "groups"), target: undefined },
  ].map((contender) => ({ ...contender, cpu: [] as number[], resident: [] as number[] }));
  for (let round = 0; round < bench.plan.rounds; round += 1) {
    for (const { start, cpu, resident } of inTurns(contenders, round)) {
      const server = await start();
      const before = readCpuSeconds(server.pid);
      await bench.load.run({ kind: "hold", port: server.port, connections: CONNECTIONS });
      cpu.push(((readCpuSeconds(server.pid) - before) * 1e6) / CONNECTIONS);
      await sleep(IDLE_MS);
      resident.push(readResidentMiB(server.pid));
      await bench.load.run({ kind: "hold", port: server.port, connections: 0 });
      await server.stop();
    }
  }
  const rows = contenders.map(({ name: contender, cpu, resident, target: own }) => ({
    name: contender,
    cpuMicroseconds: cpu,
    comparisons: [goal("MiB", resident, own)],
  }));
  return { name, rows };
}
