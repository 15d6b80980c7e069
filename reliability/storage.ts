import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CONNECT_TIMEOUT, type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import type { RunningServer } from "../test/support/process.ts";
import { startProxy } from "../test/support/proxy.ts";
import { callServer } from "../test/support/server.ts";
import {
  cutWire,
  damagedPages,
  killedServer,
  lockedFile,
  noConnections,
  type Outage,
  readOnlyServer,
  restartedServer,
  switched,
} from "./outages.ts";
import { readList, walkList, wrongRefusal } from "./support/api.ts";
import { Ledger } from "./support/ledger.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./support/run.ts";
import { runAll } from "./support/run-all.ts";
import { findInconsistencies, postgresTarget, sqliteTarget, type TargetDb } from "./support/target-db.ts";

const RECOVERY_MS = 2_000;
/** Maximum time until a refusal. */
const FELT_MS = 30_000;
/** Pause between two requests of one client. */
const PAUSE_MS = 50;

export const STORAGE: ReliabilityTest = {
  name: "storage failures",
  promises: ["P2", "P6"],
  async check(run) {
    const server = await startPostgres(["max_connections=20"], run.onEnd);
    return runAll([troublesOfFiles(run), troublesOfPostgres(run, server)]);
  },
  control: {
    name: "a server that returns 500",
    check: (run) => {
      const { settings, outage } = switched(join(run.folder, "switch"), "full disk", "answers 500");
      return endure(run, sqliteTarget(join(run.folder, "earmark.db")), settings, [outage]);
    },
  },
};

/** Starts and ends each outage while clients read and write. */
export async function endure(
  run: Run,
  db: TargetDb,
  settings: Readonly<Record<string, string>>,
  outages: readonly Outage[],
): Promise<Findings> {
  const server = await serve(run, { DATABASE_URL: db.url, ...settings });
  const ledger = new Ledger();
  const violations: string[] = [];
  const recoveryMs: number[] = [];
  let refusals = 0;
  for (const outage of outages) {
    run.log(`${db.engine}: ${outage.name}`);
    await ledger.sendBatch(server.port);
    const found = await endureOne(run, server, ledger, outage);
    refusals += found.refusals;
    recoveryMs.push(found.recoveryMs);
    const rows = await db.inspect();
    violations.push(
      ...[...found.violations, ...findInconsistencies(rows)].map((what) => `${db.engine}, ${outage.name}: ${what}`),
    );
  }
  violations.push(...ledger.wrongResponses.map((what) => `${db.engine}: ${what}`));
  const slowest = Math.round(Math.max(...recoveryMs));
  const names = outages.map(({ name }) => name).join(", ");
  const figures = `${db.engine} ${names}: ${ledger.acknowledged.size} acknowledged, ${ledger.lost.size} lost, ${refusals + ledger.refusals} × 503, recovered within ${slowest} ms`;
  return { figures, violations };
}

async function endureOne(
  run: Run,
  server: RunningServer,
  ledger: Ledger,
  outage: Outage,
): Promise<{ violations: string[]; refusals: number; recoveryMs: number }> {
  const violations: string[] = [];
  let [isOver, refusals] = [false, 0];
  const refusedBefore = ledger.refusals;
  const isFelt = () =>
    (outage.reading !== "stops" || refusals > 0) && (outage.writing !== "stops" || ledger.refusals > refusedBefore);
  await outage.begin();
  const writing = (async () => {
    while (!isOver) {
      const before = ledger.refusals;
      if ((await ledger.sendBatch(server.port)) === undefined)
        return void violations.push("a write got no complete response");
      if (ledger.refusals === before) await sleep(PAUSE_MS);
    }
  })();
  const reading = (async () => {
    while (!isOver) {
      const known = [...ledger.acknowledged];
      const list = await walkList(server.port);
      if (isOver) return;
      if (!("refused" in list)) {
        const shown = new Set(list);
        if (!known.every((id) => shown.has(id))) violations.push("a reading lacked what had been acknowledged");
      } else if (list.refused === undefined) return void violations.push("a read got no complete response");
      else {
        refusals += 1;
        if (outage.reading === "continues") violations.push("a read was refused that could have succeeded");
        violations.push(...[wrongRefusal(list.refused) ?? []].flat());
      }
      await sleep(PAUSE_MS);
    }
  })();
  const lasting = run.isQuick ? (outage.quickMs ?? FELT_MS) : FELT_MS;
  const until = performance.now() + lasting;
  while (!isFelt() && performance.now() < until) await sleep(5);
  if (!isFelt() && lasting === FELT_MS) violations.push("nothing was refused, so nothing was tested");
  await outage.end();
  const ended = performance.now();
  isOver = true;
  let isGood = false;
  while (!isGood && performance.now() - ended < FELT_MS) {
    const before = ledger.refusals;
    await ledger.sendBatch(server.port);
    isGood = ledger.refusals === before && (await callServer(server.port, "GET", "/readyz")).status === 200;
    if (!isGood) await sleep(20);
  }
  const recoveryMs = performance.now() - ended;
  if (!run.isQuick && recoveryMs > RECOVERY_MS) violations.push(`recovered only after ${Math.round(recoveryMs)} ms`);
  await Promise.all([writing, reading]);
  violations.push(...ledger.compare(await readList(server.port)));
  return { violations, refusals, recoveryMs };
}

/** A separate file per server, so that outages do not overlap. */
function troublesOfFiles(run: Run): Promise<Findings> {
  const plain = join(run.folder, "plain.db");
  return runAll([
    ...(["full disk", "read-only file"] as const).map((defect) => {
      const { settings, outage } = switched(join(run.folder, defect), defect);
      return endure(run, sqliteTarget(join(run.folder, `${defect}.db`)), settings, [outage]);
    }),
    endure(run, sqliteTarget(plain), {}, [lockedFile(plain), damagedPages(plain)]),
  ]);
}

async function troublesOfPostgres(run: Run, server: PostgresServer): Promise<Findings> {
  const db = await postgresTarget(server);
  const wire = await startProxy(server.port, run.onEnd);
  const url = db.url.replace(`:${server.port}/`, `:${wire.port}/`);
  const outages = [killedServer(server), readOnlyServer(server), noConnections(server, db.url)];
  if (run.isQuick) return endure(run, { ...db, url }, {}, outages);
  // With the long timeout of other tests, a silent server would not be noticed in time.
  const withDefaultTimeout = { ...db, url: url.replace(CONNECT_TIMEOUT, "") };
  return endure(run, withDefaultTimeout, {}, [...outages, restartedServer(server), ...cutWire(wire)]);
}
