import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readPeakMiB } from "../bench/usage.ts";
import { callServer } from "../test/harness.ts";
import { startPostgres } from "../test/postgres.ts";
import { withDefect } from "./faults/settings.ts";
import type { Order, Report } from "./overload-load.ts";
import { type Findings, type Proof, type Run, serve } from "./proof.ts";

/** As many as do not wait for one another. */
const FEW = 8;
/** Additions in each request. */
const OPERATIONS = 1_000;
const TIMES = 10;
/** Somebody who is refused comes again after one and a half seconds, on average. */
const RETURN_SECONDS = 1.5;
/** At least twice of what may wait; at most what this machine can open. */
const [LEAST, MOST] = [100, 2_000];

/** Whoever comes first sends for this long before it counts. */
const RAMP_MS = 1_000;

/**
 * How long the list grows first, for how long it is measured what the server can do, how long it is asked for more, and
 * when it is measured again. To an empty list additions are faster than to the one that the others find.
 */
interface Plan {
  readonly fillMs: number;
  readonly calmMs: number;
  readonly stormMs: number;
  readonly recoveryMs: number;
  readonly afterMs: number;
}
const FULL: Plan = { fillMs: 20_000, calmMs: 10_000, stormMs: 30_000, recoveryMs: 3_000, afterMs: 2_000 };
const QUICK: Plan = { fillMs: 500, calmMs: 1_000, stormMs: 2_000, recoveryMs: 1_500, afterMs: 500 };
const BRIEFLY: Plan = { fillMs: 100, calmMs: 200, stormMs: 500, recoveryMs: 0, afterMs: 100 };

const SHARE = 0.8;
const REFUSAL_MS = 250;
const MAX_MIB = 256;

/** What a server did at its best, far beyond that, and afterwards. */
export interface Weather {
  readonly engine: string;
  /** Operations a second. */
  readonly before: number;
  readonly overloaded: number;
  readonly afterwards: number;
  /** Who was refused when all should be normal again. */
  readonly refusedAfterwards: number;
  readonly times: number;
  readonly refusalMs: readonly number[];
  readonly wrong: readonly string[];
  readonly lagMs: number;
  readonly peakMiB: number;
}

export const overload: Proof = {
  name: "overload",
  promises: ["P6"],
  async prove(run) {
    const places = [{ engine: "SQLite", url: `file:${run.folder}/earmark.db` }];
    if (!run.isQuick) places.push({ engine: "PostgreSQL", url: await (await startPostgres([], run.later)).database() });
    const weathers: Weather[] = [];
    for (const { engine, url } of places) {
      run.say(engine);
      weathers.push(
        run.isQuick
          ? await overloadServer(run, engine, url, QUICK, { EARMARK_MAX_QUEUED_OPERATIONS: "5000" })
          : await overloadServer(run, engine, url, FULL),
      );
    }
    return judge(weathers, !run.isQuick);
  },
  control: {
    name: "a server that answers 500 when it is overloaded",
    async prove(run) {
      const settings = { ...withDefect("500 for 503"), EARMARK_MAX_QUEUED_OPERATIONS: "5000" };
      const url = `file:${run.folder}/earmark.db`;
      const weather = await overloadServer(run, "SQLite", url, BRIEFLY, settings);
      return { ...judge([weather], false), figures: `${weather.refusalMs.length} refused` };
    },
  },
};

async function overloadServer(
  run: Run,
  engine: string,
  url: string,
  { fillMs, calmMs, stormMs, recoveryMs, afterMs }: Plan,
  settings: Readonly<Record<string, string>> = {},
): Promise<Weather> {
  const server = await serve(run, { DATABASE_URL: url, EARMARK_METRICS: "true", ...settings });
  const child = fork(new URL("./overload-load.ts", import.meta.url));
  run.later(() => child.kill("SIGKILL"));
  const load = (connections: number, rampMs: number, ms: number) =>
    ask(child, { port: server.port, operations: OPERATIONS, connections, rampMs, ms });

  await load(FEW, 0, fillMs);
  const calm = await load(FEW, 0, calmMs);
  const perSecond = (count: number, ms: number) => (1_000 * count) / ms;
  const requests = perSecond(calm.requests, calmMs);
  const connections = Math.ceil(Math.min(MOST, Math.max(LEAST, TIMES * RETURN_SECONDS * requests)));
  await readLagMs(server.port);
  const storm = await load(connections, RAMP_MS, stormMs);
  const lagMs = await readLagMs(server.port);
  // What still waits from the storm may be in their way for so long.
  await load(FEW, 0, recoveryMs);
  const after = await load(FEW, 0, afterMs);
  child.disconnect();
  return {
    engine,
    before: perSecond(calm.completed, calmMs),
    overloaded: perSecond(storm.completed, stormMs),
    afterwards: perSecond(after.completed, afterMs),
    refusedAfterwards: after.refusalMs.length,
    times: perSecond(storm.requests, stormMs) / requests,
    refusalMs: storm.refusalMs,
    wrong: [...calm.wrong, ...storm.wrong, ...after.wrong],
    lagMs,
    peakMiB: readPeakMiB(server.child.pid ?? 0),
  };
}

async function ask(child: ChildProcess, order: Order): Promise<Report> {
  child.send(order);
  const early = once(child, "exit").then(() => {
    throw new Error("the load ended early");
  });
  const [report] = await Promise.race([once(child, "message"), early]);
  return report;
}

/** Speed is judged where there is time enough to measure it; that the load was refused at all, always. */
export function judge(weathers: readonly Weather[], isSpeedJudged: boolean): Findings {
  const violations = weathers.flatMap((weather) => {
    const { engine, before, overloaded, afterwards, refusedAfterwards, refusalMs, wrong, peakMiB } = weather;
    const found = wrong.map((words) => `neither done nor refused: ${words}`);
    if (refusalMs.length === 0) found.push("nobody was refused");
    if (isSpeedJudged) {
      const late = refusalMs.filter((ms) => ms > REFUSAL_MS).length;
      if (late > 0) found.push(`${late} of ${refusalMs.length} refusals took more than ${REFUSAL_MS} ms`);
      if (overloaded < SHARE * bestOf(weather))
        found.push(`did ${percent(overloaded, bestOf(weather))} of what it can`);
      if (refusedAfterwards > 0) found.push(`${refusedAfterwards} were refused when all was over`);
      if (afterwards < before / 2) found.push(`did ${percent(afterwards, before)} of before when all was over`);
      if (peakMiB > MAX_MIB) found.push(`took ${peakMiB.toFixed(0)} MiB`);
    }
    return found.map((words) => `${engine}: ${words}`);
  });
  return { figures: weathers.map(tell).join("; "), violations };
}

/** The mean of before and afterwards: the lists have grown by some hundred thousand in between. */
function bestOf({ before, afterwards }: Weather): number {
  return (before + afterwards) / 2;
}

function tell(weather: Weather): string {
  const { engine, before, overloaded, afterwards, times, refusalMs, lagMs, peakMiB } = weather;
  const sorted = refusalMs.toSorted((one, other) => one - other);
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? sorted.at(-1) ?? 0).toFixed(0);
  const rates = `${Math.round(before)} operations/s before, asked for ${times.toFixed(1)} × as much ${Math.round(overloaded)} (${percent(overloaded, bestOf(weather))}), ${Math.round(afterwards)} afterwards`;
  const refusals = `${refusalMs.length} refused: half in ${at(0.5)} ms, 99 % in ${at(0.99)}, all in ${at(1)}`;
  return `${engine}: ${rates}; ${refusals}; event loop late by ${lagMs.toFixed(0)} ms at most, ${peakMiB.toFixed(0)} MiB at most`;
}

function percent(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(0)} %`;
}

/** By how much the event loop of the server was late at most since this was last asked. */
export async function readLagMs(port: number): Promise<number> {
  const { text } = await callServer(port, "GET", "/metrics");
  return 1_000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1] ?? Number.NaN);
}
