import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres } from "../test/postgres.ts";
import { type Account, ATTACKS, type Attack } from "./hostile-attacks.ts";
import type { Answers, HealthChecks, Load, Task } from "./hostile-process.ts";
import { limitMemory, Target } from "./hostile-target.ts";
import { type Findings, type Proof, preloading, type Run } from "./proof.ts";

/** What a client that only watches may notice of an attack. */
const MAX_P99_MS = 100;
const MAX_MS = 300;
/** While all of its memory is taken, a server may be slower, but not so slow that it is taken for dead. */
const MAX_FULL_MS = 5_000;
const MAX_MIB = 600;
const CGROUP_MIB = 512;
/** The share of requests of ordinary clients that must succeed beside a hostile one. */
const MIN_SUCCESS = 0.99;
/**
 * By how much their p99 may grow. Below the floor differences are noise. Up to the longest wait, growth is accepted: a
 * transaction of 10,000 operations cannot be interrupted.
 */
const MAX_RATIO = 3;
const FLOOR_MS = 5;
const MAX_WAIT_MS = 500;

/** One attack, as the client saw it that only watches. */
export interface Latency {
  readonly name: string;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly answers: Answers;
  readonly failures: readonly string[];
}

export const eventLoop: Proof = {
  name: "hostile client: event loop",
  promises: ["P6"],
  async prove(run) {
    const target = await Target.open(run);
    const attacks = ATTACKS.filter(({ isQuick }) => !run.isQuick || isQuick);
    const [length, connections, ms] = run.isQuick ? [1_000, 40, 500] : [20_000, 40, 2_000];
    return judgeLatencies(await runAttacks(run, target, attacks, { length, connections, ms }), !run.isQuick);
  },
  control: {
    name: "requests that hold the event loop",
    async prove(run) {
      const target = await Target.open(
        run,
        breaking(
          // By the time of the processor: a busy machine may give the server less of it.
          "const from = process.cpuUsage(); while (process.cpuUsage(from).user < 150_000);",
        ),
      );
      const attacks = ATTACKS.filter(({ name }) => name === "HEAD export as OPML");
      return judgeLatencies(await runAttacks(run, target, attacks, { length: 0, connections: 2, ms: 500 }));
    },
  },
};

interface Extent {
  /** How long the list of an account is that needs one. */
  readonly length: number;
  readonly connections: number;
  readonly ms: number;
}

/** Each attack first alone, then again and again on many connections. An attack has an account of its own. */
async function runAttacks(run: Run, target: Target, attacks: readonly Attack[], extent: Extent): Promise<Latency[]> {
  const { length, connections, ms } = extent;
  const ordinary = await target.addAccount();
  const latencies: Latency[] = [];
  for (const { name, needsList } of attacks) {
    const accounts = [await target.addAccount(needsList ? length : 0)];
    const stages: readonly (readonly [string, Load, number])[] = [
      [name, { attack: name, accounts, connections: 1, how: { once: run.isQuick ? 1 : 3 } }, 0],
      [`${name} × ${connections}`, { attack: name, accounts, connections, how: "repeat" }, ms],
    ];
    for (const [title, load, duration] of stages) {
      const { checks, result: answers } = await target.watch(() => target.attack([load], duration));
      const failures = [...checks.failures];
      const isAnswered = Object.keys(answers).some((status) => /^\d+$/.test(status));
      if (load.how !== "repeat" && !isAnswered) failures.push("no request was answered");
      if (!(await target.isWell(ordinary)))
        failures.push(target.ended === undefined ? "the server does not recover" : `the server ended: ${target.ended}`);
      // On a machine that has other things to do, only what the server itself computed counts.
      const latency = { name: title, ...summarize(run.isQuick ? checks.busyMs : checks.ms), answers, failures };
      run.say(
        `${formatLatency(latency)}; busy ${formatTimes(summarize(checks.busyMs))}; ${JSON.stringify(answers)} ${failures}`,
      );
      latencies.push(latency);
      // What such an attack left to do must not be taken for the next one's.
      if (failures.length > 0 || latency.maxMs >= MAX_MS) await target.restart();
    }
  }
  return latencies;
}

/** A single request gives too few samples for a p99, and so does an attack of the short form. */
export function judgeLatencies(latencies: readonly Latency[], isP99Judged = true): Findings {
  const isRepeated = ({ name }: Latency) => / × \d+$/.test(name);
  const violations = latencies.flatMap((latency) => {
    const isP99Slow = isP99Judged && isRepeated(latency) && latency.p99Ms >= MAX_P99_MS;
    const isSlow = latency.maxMs >= MAX_MS || isP99Slow;
    return [
      ...(isSlow ? [formatLatency(latency)] : []),
      ...latency.failures.map((words) => `${latency.name}: ${words}`),
    ];
  });
  const worst = (key: "p99Ms" | "maxMs", from: readonly Latency[]) =>
    from.reduce((one, other) => (other[key] > one[key] ? other : one));
  const [p99, max] = [worst("p99Ms", latencies.filter(isRepeated)), worst("maxMs", latencies)];
  const answered = latencies.reduce((sum, { answers }) => sum + count(answers), 0);
  return {
    figures: `${latencies.length / 2} attacks, ${answered} requests; others' health check: worst p99 ${p99.p99Ms.toFixed(0)} ms (${p99.name}), worst maximum ${max.maxMs.toFixed(0)} ms (${max.name})`,
    violations,
  };
}

function formatLatency(latency: Latency): string {
  return `${latency.name}: health check ${formatTimes(latency)}`;
}

function formatTimes({ p99Ms, maxMs }: Pick<Latency, "p99Ms" | "maxMs">): string {
  return `p99 ${p99Ms.toFixed(0)} ms, at most ${maxMs.toFixed(0)} ms`;
}

/** Several attacks at the same time, for what they take together. */
interface Scenario {
  readonly name: string;
  readonly loads: readonly Omit<Load, "accounts">[];
}

const isImport = ({ name }: Attack) => name.startsWith("import of");
const isLargeBody = ({ name }: Attack) => name.endsWith(", 8 MiB");
const hold = (attack: string, connections: number) => ({ attack, connections, how: "hold" }) as const;
const repeat = (attack: string, connections: number) => ({ attack, connections, how: "repeat" }) as const;

const UNREAD = [hold("GET export as OPML", 20), hold("GET export as JSON", 20)];
const UNREAD_IMPORTS = hold("import of long titles, 16 MiB", 12);
const SCENARIOS: readonly Scenario[] = [
  { name: "20 unread exports as OPML", loads: UNREAD.slice(0, 1) },
  { name: "20 unread exports as JSON", loads: UNREAD.slice(1) },
  { name: "12 unread answers to imports", loads: [UNREAD_IMPORTS] },
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
  name: "all at once, in short",
  loads: [
    ...UNREAD,
    UNREAD_IMPORTS,
    hold("idle connections", 500),
    repeat("import of empty outlines, 16 MiB", 5),
    repeat("empty arrays, 8 MiB", 10),
    repeat("keys, 8 MiB", 10),
  ],
};

/** What a scenario took. */
export interface MemoryUse {
  readonly name: string;
  readonly peakMiB: number;
  readonly maxMiB: number;
  readonly failures: readonly string[];
}

export const memory: Proof = {
  name: "hostile client: memory",
  promises: ["P6"],
  prove: (run) => measureMemory(run, run.isQuick ? [QUICK_SCENARIO] : [...SCENARIOS, ALL_AT_ONCE]),
  control: {
    name: "every request keeps 40 MiB",
    async prove(run) {
      const settings = breaking("(globalThis.kept ??= []).push(Buffer.alloc(40 * 2 ** 20, 1));");
      const scenario = { name: "20 requests", loads: [hold("Authorization of 15 KiB", 20)] };
      const found = await measureMemory(run, [scenario], settings);
      // Both halves of the proof must notice.
      const halves = found.figures.includes("NOT RUN") ? 1 : 2;
      return found.violations.length < halves ? { ...found, violations: [] } : found;
    },
  },
};

/** Without a limit each scenario meets a new process; within a limit one process has to survive them all. */
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
    const all = loads.map((one) => ({ ...one, accounts: needed.has(one.attack) ? lists : accounts }));
    const { checks, result: answers } = await target.watch(() => target.attack(all, ms, true));
    const failures = target.ended === undefined ? checks.failures.slice(0, 1) : [`the server ended: ${target.ended}`];
    if (target.ended === undefined && !(await target.isWell(ordinary))) failures.push("the server does not recover");
    const { maxMs } = summarize(checks.ms);
    if (!run.isQuick && maxMs > MAX_FULL_MS) failures.push(`a health check took ${maxMs.toFixed(0)} ms`);
    const use = { name, peakMiB: peakMiB(), maxMiB, failures };
    run.say(`${formatMemory(use)}; ${formatTimes(summarize(checks.ms))}; ${JSON.stringify(answers)} ${failures}`);
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

/** `limited` is a sentence where the memory could not be limited. */
export function judgeMemory(free: readonly MemoryUse[], limited: readonly MemoryUse[] | string): Findings {
  const survivors = typeof limited === "string" ? [] : limited;
  const highest = (uses: readonly MemoryUse[]) =>
    uses.reduce((one, other) => (other.peakMiB > one.peakMiB ? other : one));
  const within =
    typeof limited === "string"
      ? `NOT RUN within ${CGROUP_MIB} MiB: ${limited}`
      : `within ${CGROUP_MIB} MiB ${limited.filter(({ failures }) => failures.length === 0).length} of ${limited.length} survived, ${highest(limited).peakMiB.toFixed(0)} MiB at most`;
  return {
    figures: `${free.length} scenarios: ${formatMemory(highest(free))} at most; ${within}`,
    violations: [...free, ...survivors].flatMap((use) => [
      ...(use.peakMiB > use.maxMiB ? [formatMemory(use)] : []),
      ...use.failures.map((words) => `${use.name}, ${use.maxMiB} MiB: ${words}`),
    ]),
  };
}

function formatMemory({ name, peakMiB, maxMiB }: MemoryUse): string {
  return `${name}: ${peakMiB.toFixed(0)} of ${maxMiB} MiB`;
}

/** A resource that one account takes as much of as it can get, and what the others do meanwhile. */
interface Hog {
  readonly name: string;
  readonly loads: readonly Omit<Load, "accounts">[];
  readonly tasks: readonly Task[];
  readonly settings?: Readonly<Record<string, string>>;
  readonly needsList?: true;
  readonly isOnPostgres?: true;
  /** Not part of the short form. */
  readonly isLong?: true;
}

const HOGS: readonly Hog[] = [
  {
    name: "write queue",
    loads: [repeat("10,000 new feeds", 8)],
    tasks: ["single adds", "page reads"],
    isOnPostgres: true,
  },
  {
    name: "write queue without rate limit",
    loads: [repeat("10,000 new feeds", 8)],
    tasks: ["single adds", "page reads"],
    settings: { EARMARK_OPERATIONS_PER_MINUTE: "100000000" },
    isLong: true,
  },
  {
    name: "large bodies",
    loads: [repeat("padded operations, 8 MiB", 20)],
    tasks: ["bulk adds", "single adds"],
  },
  {
    name: "large bodies, slowly",
    loads: [{ attack: "padded operations, 8 MiB", connections: 20, how: "drip" }],
    tasks: ["bulk adds", "single adds"],
  },
  { name: "hashing", loads: [repeat("sign-ins of one /48", 60)], tasks: ["sign-ins"] },
  {
    name: "connections",
    loads: [hold("idle connections", 3_000)],
    tasks: ["new connections"],
    settings: { EARMARK_MAX_CONNECTIONS: "2000", EARMARK_TRUSTED_PROXIES: "" },
  },
  {
    name: "exports and imports",
    loads: [repeat("GET export as OPML", 20), repeat("import of 50,000 feeds, 16 MiB", 10)],
    tasks: ["exports", "imports"],
    needsList: true,
    isOnPostgres: true,
  },
];

/** What others did alone and beside a hog. */
export interface Share {
  readonly name: string;
  readonly task: string;
  readonly alone: { readonly ms: readonly number[]; readonly failures: readonly string[] };
  readonly beside: { readonly ms: readonly number[]; readonly failures: readonly string[] };
}

export const fairShares: Proof = {
  name: "hostile client: fair shares",
  promises: ["P6"],
  async prove(run) {
    const shares = await measureShares(
      run,
      await Target.open(run),
      HOGS.filter(({ isLong }) => !(run.isQuick && isLong)),
    );
    if (!run.isQuick) {
      const postgres = await startPostgres([], run.later);
      const target = await Target.open(run, { DATABASE_URL: await postgres.database() });
      const hogs = HOGS.filter(({ isOnPostgres }) => isOnPostgres);
      shares.push(...(await measureShares(run, target, hogs, " on PostgreSQL")));
    }
    return judgeShares(shares, !run.isQuick);
  },
  control: {
    name: "now and then others are refused",
    async prove(run) {
      const isUnlucky =
        'request.url.startsWith("/v1/subscriptions?") && (globalThis.turn = -~globalThis.turn) % 10 === 0';
      const settings = breaking(`if (${isUnlucky}) return void response.writeHead(503).end();`);
      const hog: Hog = {
        name: "write queue",
        loads: [repeat("10,000 new feeds", 1)],
        tasks: ["page reads"],
        settings,
      };
      return judgeShares(await measureShares(run, await Target.open(run), [hog]), false);
    },
  },
};

async function measureShares(run: Run, target: Target, hogs: readonly Hog[], where = ""): Promise<Share[]> {
  const users = await target.addAccounts(run.isQuick ? 3 : 10);
  const hostile: Account[] = [];
  for (const { needsList } of hogs)
    hostile.push(await target.addAccount(needsList ? (run.isQuick ? 1_000 : 20_000) : 0));
  const shares: Share[] = [];
  for (const [index, { name, loads, tasks, settings }] of hogs.entries()) {
    const accounts = hostile.slice(index, index + 1);
    if (!run.isQuick || settings !== undefined) await target.restart(settings);
    const [aloneMs, besideMs] = run.isQuick ? [500, 900] : [4_000, 6_000];
    await target.use(tasks, users, aloneMs / 3);
    const alone = await target.use(tasks, users, aloneMs);
    // The hog has begun before the others come, and is still there when they leave.
    const attacking = target.attack(
      loads.map((one) => ({ ...one, accounts })),
      besideMs + 700,
    );
    await sleep(500);
    const beside = await target.use(tasks, users, besideMs);
    const answers = await attacking;
    for (const task of tasks) {
      const none = { ms: [], failures: [] };
      const share = { name: name + where, task, alone: alone[task] ?? none, beside: beside[task] ?? none };
      run.say(`${formatShare(share)}; hog: ${JSON.stringify(answers)} ${share.beside.failures[0] ?? ""}`);
      shares.push(share);
    }
    // The next one begins with the settings that are usual, and with nothing left to do.
    if (!run.isQuick || settings !== undefined) await target.restart();
  }
  await target.stop();
  return shares;
}

/** Speed is judged where there is time enough to measure it, and nothing else runs. */
export function judgeShares(shares: readonly Share[], isSpeedJudged: boolean): Findings {
  const violations = shares.flatMap((share) => {
    const found: string[] = [];
    if (share.alone.failures.length > 0) found.push(`fails alone: ${share.alone.failures[0]}`);
    if (successOf(share) < MIN_SUCCESS) found.push(`refused, such as: ${share.beside.failures[0]}`);
    const isSlow = ratioOf(share) > MAX_RATIO && summarize(share.beside.ms).p99Ms > MAX_WAIT_MS;
    if (isSpeedJudged && isSlow) found.push(`more than ${MAX_RATIO} times as slow`);
    return found.map((words) => `${formatShare(share)}: ${words}`);
  });
  return { figures: shares.map(formatShare).join("; "), violations };
}

function successOf({ beside: { ms, failures } }: Share): number {
  return ms.length === 0 ? 0 : 1 - failures.length / ms.length;
}

function ratioOf({ alone, beside }: Share): number {
  return summarize(beside.ms).p99Ms / Math.max(FLOOR_MS, summarize(alone.ms).p99Ms);
}

function formatShare(share: Share): string {
  const [alone, beside] = [summarize(share.alone.ms).p99Ms, summarize(share.beside.ms).p99Ms];
  const success = (100 * successOf(share)).toFixed(share.beside.failures.length === 0 ? 0 : 1);
  return `${share.name}: ${success} % of ${share.beside.ms.length} ${share.task}, p99 ${alone.toFixed(0)} ms alone, ${beside.toFixed(0)} beside (${ratioOf(share).toFixed(1)} ×)`;
}

/** The settings of a server that runs `code` at the start of every request, `/healthz` apart. */
function breaking(code: string): Record<string, string> {
  return {
    NODE_OPTIONS: preloading(`
      import { Server } from "node:http";
      const { emit } = Server.prototype;
      Server.prototype.emit = function (event, request, response) {
        if (event === "request" && request.url !== "/healthz" && request.method !== "POST") { ${code} }
        return emit.apply(this, arguments);
      };`),
  };
}

function summarize(times: HealthChecks["ms"]): Pick<Latency, "p99Ms" | "maxMs"> {
  const sorted = times.toSorted((one, other) => one - other);
  return { p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN, maxMs: sorted.at(-1) ?? Number.NaN };
}

function count(answers: Answers): number {
  return Object.values(answers).reduce((sum, number) => sum + number, 0);
}
