import { ANY, adding, type Bench } from "./bench.ts";
import { startEarmark } from "./processes.ts";
import { type Line, rowOf, type Target } from "./report.ts";
import { readPeakMiB, readResidentMiB } from "./usage.ts";

/** Requests of the maximum size that fit into the write queue at the same time: long ones may use three quarters of it. */
const CONNECTIONS = 3;

/** Resident memory after as many requests of the maximum size as the server can process. */
export async function measureBulkMemory(bench: Bench, name: string, target: Target): Promise<Line> {
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
