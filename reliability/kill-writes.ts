import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import { cleanEnvironment } from "../test/support/process.ts";
import { startProxy } from "../test/support/proxy.ts";
import { type Findings, type ReliabilityTest, type Run, runAll } from "./support/run.ts";
import { prepare, STEPS } from "./support/write-cycle.ts";
import {
  type Confirmed,
  findContradictions,
  findDifferences,
  findMissing,
  mayRunTwice,
  type Reference,
  runReference,
  withStore,
} from "./support/write-reference.ts";
import type { Progress } from "./support/writing-process.ts";

const EARLIEST_MS = 100;
const LATEST_MS = 1_500;
const QUICK_LATEST_MS = 600;
/** How long the process goes on after the database was killed. */
const AFTER_RESTART_MS = 500;
/** How many commits get no reply before the database is killed. */
const LOST_REPLIES = 8;
/** The log may be empty when the process is killed, because each cycle has a cleanup. */
const MAX_LOSSES = 12;
const MODULE = fileURLToPath(new URL("support/writing-process.ts", import.meta.url));
/** Servers that share a database use these; a SQLite file has one server. */
const ONLY_POSTGRES = ["sweepTable", "replaceRateLimit", "takeLease", "releaseLease"];

export const killWrites: ReliabilityTest = {
  name: "kill -9 during every kind of write",
  promises: ["P1", "P2"],
  async check(run) {
    const database = await startPostgres([], run.onEnd);
    const count = run.isQuick ? 3 : 20;
    const onSqlite = await runReference(`file:${run.folder}/reference.db`);
    const onPostgres = await runReference(await database.database());
    const missing = [
      ...findMissing(onPostgres),
      ...findMissing(onSqlite).filter((name) => !ONLY_POSTGRES.includes(name)),
    ];
    const { figures, violations } = await runAll([
      killWriters(run, `file:${run.folder}/earmark.db`, onSqlite, { count }),
      killWriters(run, await database.database(), onPostgres, { count, database }),
    ]);
    const contradictions = [onSqlite, onPostgres].flatMap(findContradictions);
    return {
      figures,
      violations: [...missing.map((name) => `no step does ${name}`), ...contradictions, ...violations],
    };
  },
  control: {
    name: "the write-ahead log is lost",
    async check(run) {
      const reference = await runReference(`file:${run.folder}/reference.db`);
      return killWriters(run, `file:${run.folder}/earmark.db`, reference, { count: MAX_LOSSES, losesLog: true });
    },
  },
};

interface Kills {
  readonly count: number;
  /** Every third round kills this server first. */
  readonly database?: PostgresServer;
  /** What a store without durable commits would do. */
  readonly losesLog?: true;
}

async function killWriters(
  run: Run,
  url: string,
  reference: Reference,
  { count, database, losesLog }: Kills,
): Promise<Findings> {
  const engine = database === undefined ? "SQLite" : "PostgreSQL";
  const violations: string[] = [];
  await withStore(url, prepare);
  const proxy = database && (await startProxy(database.port, run.onEnd));
  const overProxy = url.replace(`:${database?.port}`, `:${proxy?.port}`);
  const cycles = new Map<number, Confirmed>();
  const [confirmed, unavailable] = [{ count: 0 }, { count: 0 }];
  const isOver = () => losesLog && violations.length > 0;
  let round = 1;
  for (; round <= count && !isOver(); round += 1) {
    run.log(`${engine}, round ${round}: ${cycles.size} cycles`);
    const before = cycles.size;
    const killsDatabase = round % 3 === 2 && database !== undefined;
    // A pipe that nobody reads for a while would leave lines in the process that is killed.
    const progressFile = `${run.folder}/${engine}-${round}.jsonl`;
    const output = openSync(progressFile, "w");
    const child = spawn(process.execPath, [MODULE, killsDatabase ? overProxy : url, String(before)], {
      env: cleanEnvironment({}),
      stdio: ["ignore", output, "pipe"],
    });
    closeSync(output);
    run.onEnd(() => child.kill("SIGKILL"));
    const ended = once(child, "close");
    child.stderr?.on("data", (text) => violations.push(`${engine}: ${text}`));
    // On a busy machine, the first write takes long.
    while (!readFileSync(progressFile, "utf8").includes('"done"') && child.exitCode === null) await sleep(5);
    await sleep(EARLIEST_MS + run.random() * ((run.isQuick ? QUICK_LATEST_MS : LATEST_MS) - EARLIEST_MS));
    if (killsDatabase) {
      for (let cut = 0; cut < LOST_REPLIES; cut += 1) await proxy?.cutAtCommit("after");
      await proxy?.cutAtCommit("after", () => database.stop("immediate").then(database.start));
      await sleep(AFTER_RESTART_MS);
    }
    child.kill("SIGKILL");
    await ended;
    for (const line of readFileSync(progressFile, "utf8").split("\n").filter(Boolean)) {
      const { number, progress } = JSON.parse(line) as { number: number; progress: Progress };
      const cycle = cycles.get(number) ?? { steps: 0, hasFailed: false };
      cycles.set(number, cycle);
      const step = cycle.steps;
      if (progress.kind === "done") {
        cycle.steps += 1;
        confirmed.count += 1;
        const isExpected = progress.result === reference.steps[step]?.result;
        if (!isExpected && !(killsDatabase && mayRunTwice(reference, step)))
          violations.push(`${engine}: "${STEPS[step]?.name}" returned ${progress.result}`);
      } else if (progress.kind === "unavailable" && killsDatabase) {
        cycle.hasFailed = !progress.isOutcomeUnknown;
        unavailable.count += 1;
      } else if (progress.kind !== "started")
        violations.push(`${engine}: "${STEPS[step]?.name}" failed: ${JSON.stringify(progress)}`);
    }
    if (losesLog) rmSync(`${new URL(url).pathname}-wal`);
    if (database !== undefined) await whenUnused(database, url);
    const latest = new Map([...cycles].filter(([number]) => number > before));
    const found = await withStore(url, (store) => findDifferences(store, latest, reference));
    violations.push(...found.map((what) => `${engine}, round ${round}: ${what}`));
  }
  // Nothing of earlier rounds was lost later.
  violations.push(...(await withStore(url, (store) => findDifferences(store, cycles, reference))));
  const failed = unavailable.count === 0 ? "" : `, ${unavailable.count} unavailable`;
  return {
    figures: `${engine}: ${round - 1} kills, ${confirmed.count.toLocaleString("en")} writes confirmed${failed}`,
    violations,
  };
}

/** Waits until the database server has ended what the killed process had begun. */
async function whenUnused(server: PostgresServer, url: string): Promise<void> {
  const sql = `select 1 from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`;
  while ((await server.query(sql, new URL(url).pathname.slice(1))).length > 0) await sleep(5);
}
