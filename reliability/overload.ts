import { readPeakMiB } from "../bench/usage.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { callServer } from "../test/support/server.ts";
import { ClientProcess } from "./client-process.ts";
import { withDefect } from "./faults/settings.ts";
import type { Order, Report } from "./overload-load.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./reliability-test.ts";

/** Few enough that no request waits in the queue. */
const NORMAL_CONNECTIONS = 8;
/** Adds per request. */
const OPERATIONS = 1_000;
/** Offered load, as a multiple of what the server can handle. */
const OVERLOAD_FACTOR = 10;
/** A refused client retries after this long on average. */
const RETRY_SECONDS = 1.5;
/** At least twice as many as the queue holds; at most as many as this machine can open. */
const [MIN_CONNECTIONS, MAX_CONNECTIONS] = [100, 2_000];

/** Connections open gradually during this time, which is not measured. */
const RAMP_MS = 1_000;

/** The phases, in order. */
interface Phases {
  /** Fills the list, because adds to an empty list are faster. */
  readonly fillMs: number;
  /** Measures normal throughput. */
  readonly beforeMs: number;
  readonly overloadMs: number;
  /** Lets the queue drain. */
  readonly recoveryMs: number;
  /** Measures normal throughput again. */
  readonly afterMs: number;
}
const FULL: Phases = { fillMs: 20_000, beforeMs: 10_000, overloadMs: 30_000, recoveryMs: 3_000, afterMs: 2_000 };
const QUICK: Phases = { fillMs: 500, beforeMs: 1_000, overloadMs: 2_000, recoveryMs: 1_500, afterMs: 500 };
const BRIEF: Phases = { fillMs: 100, beforeMs: 200, overloadMs: 500, recoveryMs: 0, afterMs: 100 };

const MIN_THROUGHPUT = 0.8;
const MAX_REFUSAL_MS = 250;
const MAX_MIB = 256;

/** Measurements of one server before, during and after the overload. */
export interface Measurement {
  readonly engine: string;
  /** Operations per second. */
  readonly before: number;
  readonly during: number;
  readonly after: number;
  /** Requests refused after the recovery. */
  readonly refusedAfter: number;
  /** Offered load, as a multiple of the load before. */
  readonly loadFactor: number;
  readonly refusalMs: readonly number[];
  readonly unexpected: readonly string[];
  readonly lagMs: number;
  readonly peakMiB: number;
}

export const overload: ReliabilityTest = {
  name: "overload",
  promises: ["P6"],
  async check(run) {
    const databases = [{ engine: "SQLite", url: `file:${run.folder}/earmark.db` }];
    if (!run.isQuick)
      databases.push({ engine: "PostgreSQL", url: await (await startPostgres([], run.onEnd)).database() });
    const measurements: Measurement[] = [];
    for (const { engine, url } of databases) {
      run.log(engine);
      measurements.push(
        run.isQuick
          ? await overloadServer(run, engine, url, QUICK, { EARMARK_MAX_QUEUED_OPERATIONS: "5000" })
          : await overloadServer(run, engine, url, FULL),
      );
    }
    return judge(measurements, !run.isQuick);
  },
  control: {
    name: "a server that returns 500 when it is overloaded",
    async check(run) {
      const settings = { ...withDefect("500 for 503"), EARMARK_MAX_QUEUED_OPERATIONS: "5000" };
      const url = `file:${run.folder}/earmark.db`;
      const measurement = await overloadServer(run, "SQLite", url, BRIEF, settings);
      return { ...judge([measurement], false), figures: `${measurement.refusalMs.length} refused` };
    },
  },
};

async function overloadServer(
  run: Run,
  engine: string,
  url: string,
  { fillMs, beforeMs, overloadMs, recoveryMs, afterMs }: Phases,
  settings: Readonly<Record<string, string>> = {},
): Promise<Measurement> {
  const server = await serve(run, { DATABASE_URL: url, EARMARK_METRICS: "true", ...settings });
  const clients = new ClientProcess<Order>(run, "./overload-load.ts");
  const load = (connections: number, rampMs: number, ms: number) =>
    clients.ask<Report>({ port: server.port, operations: OPERATIONS, connections, rampMs, ms });

  await load(NORMAL_CONNECTIONS, 0, fillMs);
  const before = await load(NORMAL_CONNECTIONS, 0, beforeMs);
  const perSecond = (count: number, ms: number) => (1_000 * count) / ms;
  const requests = perSecond(before.requests, beforeMs);
  const wanted = Math.ceil(OVERLOAD_FACTOR * RETRY_SECONDS * requests);
  const connections = Math.min(MAX_CONNECTIONS, Math.max(MIN_CONNECTIONS, wanted));
  await readLagMs(server.port);
  const during = await load(connections, RAMP_MS, overloadMs);
  const lagMs = await readLagMs(server.port);
  await load(NORMAL_CONNECTIONS, 0, recoveryMs);
  const after = await load(NORMAL_CONNECTIONS, 0, afterMs);
  return {
    engine,
    before: perSecond(before.completed, beforeMs),
    during: perSecond(during.completed, overloadMs),
    after: perSecond(after.completed, afterMs),
    refusedAfter: after.refusalMs.length,
    loadFactor: perSecond(during.requests, overloadMs) / requests,
    refusalMs: during.refusalMs,
    unexpected: [...before.unexpected, ...during.unexpected, ...after.unexpected],
    lagMs,
    peakMiB: readPeakMiB(server.child.pid ?? 0),
  };
}

/** Speed is checked only in a full run, which takes long enough to measure it. */
export function judge(measurements: readonly Measurement[], checksSpeed: boolean): Findings {
  const violations = measurements.flatMap((measurement) => {
    const { engine, before, during, after, refusedAfter, refusalMs, unexpected, peakMiB } = measurement;
    const found = unexpected.map((text) => `unexpected response: ${text}`);
    if (refusalMs.length === 0) found.push("no request was refused");
    if (checksSpeed) {
      const late = refusalMs.filter((ms) => ms > MAX_REFUSAL_MS).length;
      if (late > 0) found.push(`${late} of ${refusalMs.length} refusals took more than ${MAX_REFUSAL_MS} ms`);
      const normal = normalRate(measurement);
      if (during < MIN_THROUGHPUT * normal) found.push(`throughput fell to ${percent(during, normal)} under overload`);
      if (refusedAfter > 0) found.push(`${refusedAfter} requests were refused after the recovery`);
      if (after < before / 2) found.push(`throughput was ${percent(after, before)} of before after the recovery`);
      if (peakMiB > MAX_MIB) found.push(`used ${peakMiB.toFixed(0)} MiB`);
    }
    return found.map((text) => `${engine}: ${text}`);
  });
  return { figures: measurements.map(format).join("; "), violations };
}

/** The mean of before and after, because the list grows by several hundred thousand entries in between. */
function normalRate({ before, after }: Measurement): number {
  return (before + after) / 2;
}

function format(measurement: Measurement): string {
  const { engine, before, during, after, loadFactor, refusalMs, lagMs, peakMiB } = measurement;
  const sorted = refusalMs.toSorted((one, other) => one - other);
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? sorted.at(-1) ?? 0).toFixed(0);
  const rates = `${Math.round(before)} operations/s before, ${Math.round(during)} at ${loadFactor.toFixed(1)} × the load (${percent(during, normalRate(measurement))}), ${Math.round(after)} after`;
  const refusals = `${refusalMs.length} refused: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`;
  return `${engine}: ${rates}; ${refusals}; max event-loop lag ${lagMs.toFixed(0)} ms, peak memory ${peakMiB.toFixed(0)} MiB`;
}

function percent(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(0)} %`;
}

/** The maximum event-loop lag of the server since the last call. */
export async function readLagMs(port: number): Promise<number> {
  const { text } = await callServer(port, "GET", "/metrics");
  return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1] ?? Number.NaN);
}
