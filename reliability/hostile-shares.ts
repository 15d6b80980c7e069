import { setTimeout as sleep } from "node:timers/promises";
import { startPostgres } from "../test/support/postgres.ts";
import type { Account } from "./hostile-attacks.ts";
import type { Load, Task } from "./hostile-process.ts";
import { hold, repeat, summarize, Target, withCode } from "./hostile-target.ts";
import type { Findings, ReliabilityTest, Run } from "./reliability-test.ts";

/** Share of the requests of ordinary clients that must succeed while a hostile client is active. */
const MIN_SUCCESS = 0.99;
/**
 * Maximum growth of their p99. Below FLOOR_MS differences are noise. Up to MAX_WAIT_MS any growth is accepted, because a
 * transaction of 10,000 operations cannot be interrupted.
 */
const MAX_RATIO = 3;
const FLOOR_MS = 5;
const MAX_WAIT_MS = 500;

/** One account uses as much of a resource as it can get while others do ordinary tasks. */
interface Hog {
  readonly name: string;
  readonly loads: readonly Omit<Load, "accounts">[];
  readonly tasks: readonly Task[];
  readonly settings?: Readonly<Record<string, string>>;
  readonly needsList?: true;
  readonly alsoOnPostgres?: true;
  /** Not part of a quick run. */
  readonly isLong?: true;
}

const HOGS: readonly Hog[] = [
  {
    name: "write queue",
    loads: [repeat("10,000 new feeds", 8)],
    tasks: ["single adds", "page reads"],
    alsoOnPostgres: true,
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
    alsoOnPostgres: true,
  },
];

/** Requests of ordinary clients without and with the hog. */
export interface Share {
  readonly name: string;
  readonly task: string;
  readonly alone: { readonly ms: readonly number[]; readonly failures: readonly string[] };
  readonly withHog: { readonly ms: readonly number[]; readonly failures: readonly string[] };
}

export const fairShares: ReliabilityTest = {
  name: "hostile client: fair shares",
  promises: ["P6"],
  async check(run) {
    const shares = await measureShares(
      run,
      await Target.open(run),
      HOGS.filter(({ isLong }) => !(run.isQuick && isLong)),
    );
    if (!run.isQuick) {
      const postgres = await startPostgres([], run.onEnd);
      const target = await Target.open(run, { DATABASE_URL: await postgres.database() });
      const hogs = HOGS.filter(({ alsoOnPostgres }) => alsoOnPostgres);
      shares.push(...(await measureShares(run, target, hogs, " on PostgreSQL")));
    }
    return judgeShares(shares, !run.isQuick);
  },
  control: {
    name: "a server that refuses every tenth page",
    async check(run) {
      const isUnlucky =
        'request.url.startsWith("/v1/subscriptions?") && (globalThis.turn = -~globalThis.turn) % 10 === 0';
      const settings = withCode(`if (${isUnlucky}) return void response.writeHead(503).end();`);
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
    const [aloneMs, withHogMs] = run.isQuick ? [500, 900] : [4_000, 12_000];
    await target.use(tasks, users, aloneMs / 3);
    const alone = await target.use(tasks, users, aloneMs);
    // The hog starts before the others and stops after them.
    const attacking = target.attack(
      loads.map((load) => ({ ...load, accounts })),
      withHogMs + 700,
    );
    await sleep(500);
    const withHog = await target.use(tasks, users, withHogMs);
    const responses = await attacking;
    for (const task of tasks) {
      const none = { ms: [], failures: [] };
      const share = { name: name + where, task, alone: alone[task] ?? none, withHog: withHog[task] ?? none };
      run.log(`${formatShare(share)}; hog: ${JSON.stringify(responses)} ${share.withHog.failures[0] ?? ""}`);
      shares.push(share);
    }
    // The next hog starts with the default settings and an idle server.
    if (!run.isQuick || settings !== undefined) await target.restart();
  }
  await target.stop();
  return shares;
}

/** Speed is checked only in a full run, which takes long enough and needs an idle machine. */
export function judgeShares(shares: readonly Share[], checksSpeed: boolean): Findings {
  const violations = shares.flatMap((share) => {
    const found: string[] = [];
    if (share.alone.failures.length > 0) found.push(`fails alone: ${share.alone.failures[0]}`);
    if (successOf(share) < MIN_SUCCESS) found.push(`requests fail, for example: ${share.withHog.failures[0]}`);
    const isSlow = ratioOf(share) > MAX_RATIO && summarize(share.withHog.ms).p99Ms > MAX_WAIT_MS;
    if (checksSpeed && isSlow) found.push(`more than ${MAX_RATIO} times as slow`);
    return found.map((text) => `${formatShare(share)}: ${text}`);
  });
  return { figures: shares.map(formatShare).join("; "), violations };
}

function successOf({ withHog: { ms, failures } }: Share): number {
  return ms.length === 0 ? 0 : 1 - failures.length / ms.length;
}

function ratioOf({ alone, withHog }: Share): number {
  return summarize(withHog.ms).p99Ms / Math.max(FLOOR_MS, summarize(alone.ms).p99Ms);
}

function formatShare(share: Share): string {
  const [alone, withHog] = [summarize(share.alone.ms).p99Ms, summarize(share.withHog.ms).p99Ms];
  const success = (100 * successOf(share)).toFixed(share.withHog.failures.length === 0 ? 0 : 1);
  return `${share.name}: ${success} % of ${share.withHog.ms.length} ${share.task}, p99 ${alone.toFixed(0)} ms alone, ${withHog.toFixed(0)} ms with the hog (${ratioOf(share).toFixed(1)} ×)`;
}
