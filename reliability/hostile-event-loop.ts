import { ATTACKS, type Attack } from "./hostile-attacks.ts";
import type { Load, ResponseCounts } from "./hostile-process.ts";
import { formatTimes, summarize, Target, type Times, withCode } from "./hostile-target.ts";
import type { Findings, ReliabilityTest, Run } from "./reliability-test.ts";

/** Maximum latency of health checks during an attack. */
const MAX_P99_MS = 100;
const MAX_MS = 300;

/** Latency of health checks during one attack. */
export interface Latency extends Times {
  readonly name: string;
  readonly responses: ResponseCounts;
  readonly failures: readonly string[];
}

export const eventLoop: ReliabilityTest = {
  name: "hostile client: event loop",
  promises: ["P6"],
  async check(run) {
    const target = await Target.open(run);
    const attacks = ATTACKS.filter(({ isQuick }) => !run.isQuick || isQuick);
    const [length, connections, ms] = run.isQuick ? [1_000, 40, 500] : [20_000, 40, 2_000];
    return judgeLatencies(await runAttacks(run, target, attacks, { length, connections, ms }), !run.isQuick);
  },
  control: {
    name: "requests that block the event loop",
    async check(run) {
      const target = await Target.open(
        run,
        withCode(
          // CPU time, because on a busy machine the server may get less of it.
          "const from = process.cpuUsage(); while (process.cpuUsage(from).user < 150_000);",
        ),
      );
      const attacks = ATTACKS.filter(({ name }) => name === "HEAD export as OPML");
      return judgeLatencies(await runAttacks(run, target, attacks, { length: 0, connections: 2, ms: 500 }));
    },
  },
};

interface AttackSize {
  /** Length of the list, for attacks that need one. */
  readonly length: number;
  readonly connections: number;
  readonly ms: number;
}

/** Runs each attack once, then repeatedly on many connections. Each attack has its own account. */
async function runAttacks(run: Run, target: Target, attacks: readonly Attack[], size: AttackSize): Promise<Latency[]> {
  const { length, connections, ms } = size;
  const ordinary = await target.addAccount();
  const latencies: Latency[] = [];
  for (const { name, needsList } of attacks) {
    const accounts = [await target.addAccount(needsList ? length : 0)];
    const stages: readonly (readonly [string, Load, number])[] = [
      [name, { attack: name, accounts, connections: 1, how: { once: run.isQuick ? 1 : 3 } }, 0],
      [`${name} × ${connections}`, { attack: name, accounts, connections, how: "repeat" }, ms],
    ];
    for (const [title, load, duration] of stages) {
      const measure = async (): Promise<Latency> => {
        const { checks, result: responses } = await target.watch(() => target.attack([load], duration));
        const failures = [...checks.failures];
        const hasResponse = Object.keys(responses).some((status) => /^\d+$/.test(status));
        if (load.how !== "repeat" && !hasResponse) failures.push("no response");
        if (!(await target.hasRecovered(ordinary)))
          failures.push(
            target.ended === undefined ? "the server does not recover" : `the server exited: ${target.ended}`,
          );
        // On a shared machine, only the time that the server itself was computing counts.
        const latency = { name: title, ...summarize(run.isQuick ? checks.busyMs : checks.ms), responses, failures };
        run.log(
          `${formatLatency(latency)}; busy ${formatTimes(summarize(checks.busyMs))}; ${JSON.stringify(responses)} ${failures}`,
        );
        // Leftover work must not be attributed to the next attack.
        if (failures.length > 0 || latency.maxMs >= MAX_MS) await target.restart();
        return latency;
      };
      const first = await measure();
      // A quick run has too few samples to tell an interruption of the machine from an attack that succeeds every time.
      const isRepeated = run.isQuick && first.failures.length === 0 && first.maxMs >= MAX_MS;
      latencies.push(isRepeated ? await measure() : first);
    }
  }
  return latencies;
}

/** A single request gives too few samples for a p99, and so does a quick run. */
export function judgeLatencies(latencies: readonly Latency[], checksP99 = true): Findings {
  const isRepeated = ({ name }: Latency) => / × \d+$/.test(name);
  const violations = latencies.flatMap((latency) => {
    const isP99Slow = checksP99 && isRepeated(latency) && latency.p99Ms >= MAX_P99_MS;
    const isSlow = latency.maxMs >= MAX_MS || isP99Slow;
    return [
      ...(isSlow ? [formatLatency(latency)] : []),
      ...latency.failures.map((failure) => `${latency.name}: ${failure}`),
    ];
  });
  const worst = (key: "p99Ms" | "maxMs", from: readonly Latency[]) =>
    from.reduce((one, other) => (other[key] > one[key] ? other : one));
  const [p99, max] = [worst("p99Ms", latencies.filter(isRepeated)), worst("maxMs", latencies)];
  const answered = latencies.reduce((sum, { responses }) => sum + count(responses), 0);
  return {
    figures: `${latencies.length / 2} attacks, ${answered} requests; health checks: worst p99 ${p99.p99Ms.toFixed(0)} ms (${p99.name}), worst max ${max.maxMs.toFixed(0)} ms (${max.name})`,
    violations,
  };
}

function formatLatency(latency: Latency): string {
  return `${latency.name}: health check ${formatTimes(latency)}`;
}

function count(responses: ResponseCounts): number {
  return Object.values(responses).reduce((sum, number) => sum + number, 0);
}
