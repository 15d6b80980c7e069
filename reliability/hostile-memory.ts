import { ATTACKS, type Attack } from "./hostile-attacks.ts";
import type { Load } from "./hostile-process.ts";
import { formatTimes, hold, limitMemory, repeat, summarize, Target, withCode } from "./hostile-target.ts";
import type { Findings, ReliabilityTest, Run } from "./reliability-test.ts";

/** While its memory is exhausted, a server may be slow, but not so slow that a health check times out. */
const MAX_FULL_MS = 5_000;
const MAX_MIB = 600;
const CGROUP_MIB = 512;

/** Several attacks at the same time. */
interface Scenario {
  readonly name: string;
  readonly loads: readonly Omit<Load, "accounts">[];
}

const isImport = ({ name }: Attack) => name.startsWith("import of");
const isLargeBody = ({ name }: Attack) => /, (8|32) MiB$/.test(name);

const UNREAD = ["GET export as OPML", "GET export as JSON", "GET actions of an app", "GET feeds of an app"].map(
  (name) => hold(name, 20),
);
const UNREAD_IMPORTS = hold("import of long titles, 16 MiB", 12);
const SCENARIOS: readonly Scenario[] = [
  ...UNREAD.map((load) => ({ name: `20 unread × ${load.attack}`, loads: [load] })),
  { name: "12 unread import responses", loads: [UNREAD_IMPORTS] },
  { name: "4,000 idle connections", loads: [hold("idle connections", 4_000)] },
  ...ATTACKS.filter((attack) => isImport(attack) || isLargeBody(attack)).map(({ name }) => ({
    name: `20 × ${name}`,
    loads: [repeat(name, 20)],
  })),
];
const ALL_AT_ONCE: Scenario = {
  name: "all at once",
  loads: [
    ...UNREAD,
    UNREAD_IMPORTS,
    hold("idle connections", 4_000),
    ...ATTACKS.filter(isImport).map(({ name }) => repeat(name, 3)),
    ...ATTACKS.filter(isLargeBody).map(({ name }) => repeat(name, 2)),
  ],
};
const QUICK_SCENARIO: Scenario = {
  name: "all at once, quick run",
  loads: [
    ...UNREAD,
    UNREAD_IMPORTS,
    hold("idle connections", 500),
    repeat("import of empty outlines, 16 MiB", 5),
    repeat("empty arrays, 8 MiB", 10),
    repeat("keys, 8 MiB", 10),
  ],
};

/** Memory used in a scenario. */
export interface MemoryUse {
  readonly name: string;
  readonly peakMiB: number;
  readonly maxMiB: number;
  readonly failures: readonly string[];
}

export const memory: ReliabilityTest = {
  name: "hostile client: memory",
  promises: ["P6"],
  check: (run) => measureMemory(run, run.isQuick ? [QUICK_SCENARIO] : [...SCENARIOS, ALL_AT_ONCE]),
  control: {
    name: "a server that leaks 40 MiB per request",
    async check(run) {
      const settings = withCode("(globalThis.kept ??= []).push(Buffer.alloc(40 * 2 ** 20, 1));");
      const scenario = { name: "20 requests", loads: [hold("Authorization of 15 KiB", 20)] };
      const found = await measureMemory(run, [scenario], settings);
      // Both halves of the test must detect it.
      const halves = found.figures.includes("NOT RUN") ? 1 : 2;
      return found.violations.length < halves ? { ...found, violations: [] } : found;
    },
  },
};

/** Without a memory limit each scenario has a new process; with a limit one process must survive all of them. */
async function measureMemory(
  run: Run,
  scenarios: readonly Scenario[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Findings> {
  const target = await Target.open(run);
  const ms = run.isQuick ? 1_500 : 2_500;
  const needed = new Set(ATTACKS.filter(({ needsList }) => needsList).map(({ name }) => name));
  const isNeeded = scenarios.some(({ loads }) => loads.some(({ attack }) => needed.has(attack)));
  const lists = isNeeded ? await target.addAccounts(run.isQuick ? 1 : 4, run.isQuick ? 2_000 : 20_000) : [];
  const accounts = await target.addAccounts(isNeeded ? (run.isQuick ? 4 : 12) : 1);
  const ordinary = await target.addAccount();
  const runScenario = async ({ name, loads }: Scenario, maxMiB: number, peakMiB: () => number): Promise<MemoryUse> => {
    const all = loads.map((load) => ({ ...load, accounts: needed.has(load.attack) ? lists : accounts }));
    const { checks, result: responses } = await target.watch(() => target.attack(all, ms, true));
    const failures = target.ended === undefined ? checks.failures.slice(0, 1) : [`the server exited: ${target.ended}`];
    if (target.ended === undefined && !(await target.hasRecovered(ordinary)))
      failures.push("the server does not recover");
    const { maxMs } = summarize(checks.ms);
    if (!run.isQuick && maxMs > MAX_FULL_MS) failures.push(`a health check took ${maxMs.toFixed(0)} ms`);
    const use = { name, peakMiB: peakMiB(), maxMiB, failures };
    run.log(`${formatMemory(use)}; ${formatTimes(summarize(checks.ms))}; ${JSON.stringify(responses)} ${failures}`);
    return use;
  };
  const free: MemoryUse[] = [];
  for (const scenario of scenarios) {
    await target.restart(settings);
    free.push(await runScenario(scenario, MAX_MIB, () => target.peakMiB));
  }
  await target.stop();
  const limit = limitMemory(run, CGROUP_MIB * 2 ** 20);
  if (typeof limit === "string") return judgeMemory(free, limit);
  const limited: MemoryUse[] = [];
  await target.restart(settings, limit.command);
  for (const scenario of scenarios) {
    const use = await runScenario(scenario, CGROUP_MIB, limit.peakMiB);
    limited.push(use);
    if (use.failures.length > 0) await target.restart(settings, limit.command);
  }
  await target.stop();
  return judgeMemory(free, limited);
}

/** `limited` is the reason if the memory could not be limited. */
export function judgeMemory(free: readonly MemoryUse[], limited: readonly MemoryUse[] | string): Findings {
  const survivors = typeof limited === "string" ? [] : limited;
  const highest = (uses: readonly MemoryUse[]) =>
    uses.reduce((one, other) => (other.peakMiB > one.peakMiB ? other : one));
  const within =
    typeof limited === "string"
      ? `NOT RUN within ${CGROUP_MIB} MiB: ${limited}`
      : `within ${CGROUP_MIB} MiB ${limited.filter(({ failures }) => failures.length === 0).length} of ${limited.length} survived, ${highest(limited).peakMiB.toFixed(0)} MiB peak`;
  return {
    figures: `${free.length} scenarios: peak ${formatMemory(highest(free))}; ${within}`,
    violations: [...free, ...survivors].flatMap((use) => [
      ...(use.peakMiB > use.maxMiB ? [formatMemory(use)] : []),
      ...use.failures.map((failure) => `${use.name}, ${use.maxMiB} MiB: ${failure}`),
    ]),
  };
}

function formatMemory({ name, peakMiB, maxMiB }: MemoryUse): string {
  return `${name}: ${peakMiB.toFixed(0)} of ${maxMiB} MiB`;
}
