import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CONNECT_TIMEOUT, type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import type { RunningServer } from "../test/support/process.ts";
import { startProxy } from "../test/support/proxy.ts";
import { callServer } from "../test/support/server.ts";
import { readList, walkList, wrongRefusal } from "./support/api.ts";
import { Ledger } from "./support/ledger.ts";
import * as outages from "./support/outages.ts";
import { type Findings, preloading, type ReliabilityTest, type Run, runAll, serve } from "./support/run.ts";
import { isStraceHere } from "./support/strace.ts";
import { findInconsistencies, postgresTarget, sqliteTarget, type TargetDb } from "./support/target-db.ts";

const RECOVERY_MS = 2_000;
/** Maximum time until a refusal. */
const FELT_MS = 30_000;
/** Pause between two requests of one client. */
const PAUSE_MS = 50;

export const storage: ReliabilityTest = {
  name: "storage failures",
  promises: ["P1", "P2", "P6"],
  async check(run) {
    const server = await startPostgres(["max_connections=20"], run.onEnd);
    return runAll([failuresOfFiles(run), failuresOfPostgres(run, server)]);
  },
  control: {
    name: "a server that returns 500",
    check(run) {
      const code = `import { ServerResponse } from "node:http";
const { writeHead } = ServerResponse.prototype;
ServerResponse.prototype.writeHead = function (status, ...rest) {
  return writeHead.call(this, status === 503 ? 500 : status, ...rest);
};`;
      const file = join(run.folder, "earmark.db");
      return endure(run, sqliteTarget(file), [outages.damagedPages(file)], { NODE_OPTIONS: preloading(code) });
    },
  },
};

/** A separate file per server, so that outages do not overlap. */
function failuresOfFiles(run: Run): Promise<Findings> {
  const plain = join(run.folder, "plain.db");
  const servers = [endure(run, sqliteTarget(plain), [outages.lockedFile(plain), outages.damagedPages(plain)])];
  if (isStraceHere()) {
    const fullDisk = outages.failingCalls("full disk", "pwrite64", "ENOSPC");
    const readOnly = outages.failingCalls("read-only file", "pwrite64", "EROFS");
    const failingSync = outages.failingCalls("failing fsync", "fsync,fdatasync", "EIO");
    servers.push(endure(run, sqliteTarget(join(run.folder, "full.db")), [fullDisk, readOnly]));
    servers.push(endure(run, sqliteTarget(join(run.folder, "unsynced.db")), [failingSync]));
  }
  return runAll(servers);
}

async function failuresOfPostgres(run: Run, server: PostgresServer): Promise<Findings> {
  const db = await postgresTarget(server);
  const wire = await startProxy(server.port, run.onEnd);
  const url = db.url.replace(`:${server.port}/`, `:${wire.port}/`);
  const few = [outages.killedServer(server), outages.readOnlyServer(server), outages.noConnections(server, db.url)];
  if (run.isQuick) return endure(run, { ...db, url }, few);
  const all = [...few, outages.stoppedServer(server), outages.cutWire(wire, "refuse"), outages.cutWire(wire, "stall")];
  // With the long timeout of other tests, a silent server would not be noticed in time.
  return endure(run, { ...db, url: url.replace(CONNECT_TIMEOUT, "") }, all);
}

/** Starts and ends each outage while clients read and write. */
async function endure(
  run: Run,
  db: TargetDb,
  all: readonly outages.Outage[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Findings> {
  const server = await serve(run, { DATABASE_URL: db.url, ...settings });
  const ledger = new Ledger();
  const violations: string[] = [];
  let [refusals, slowest] = [0, 0];
  for (const outage of all) {
    run.log(`${db.engine}: ${outage.name}`);
    await ledger.sendBatch(server.port);
    const found = await endureOne(run, server, ledger, outage);
    refusals += found.refusals;
    slowest = Math.max(slowest, Math.round(found.recoveryMs));
    const wrong = [...found.violations, ...findInconsistencies(await db.inspect())];
    violations.push(...wrong.map((what) => `${db.engine}, ${outage.name}: ${what}`));
  }
  violations.push(...ledger.wrongResponses.map((what) => `${db.engine}: ${what}`));
  const names = all.map(({ name }) => name).join(", ");
  const figures = `${db.engine} ${names}: ${ledger.confirmed.size} confirmed, ${ledger.lost.size} lost, ${refusals + ledger.refusals} × 503, recovered within ${slowest} ms`;
  return { figures, violations };
}

async function endureOne(
  run: Run,
  server: RunningServer,
  ledger: Ledger,
  outage: outages.Outage,
): Promise<{ violations: string[]; refusals: number; recoveryMs: number }> {
  const violations: string[] = [];
  let [isOver, refusals] = [false, 0];
  const refusedBefore = ledger.refusals;
  const isFelt = () =>
    (outage.reading !== "stops" || refusals > 0) && (outage.writing !== "stops" || ledger.refusals > refusedBefore);
  const write = async () => {
    while (!isOver) {
      const before = ledger.refusals;
      if ((await ledger.sendBatch(server.port)) === undefined)
        return void violations.push("a write got no complete response");
      if (ledger.refusals === before) await sleep(PAUSE_MS);
    }
  };
  const read = async () => {
    for (; !isOver; await sleep(PAUSE_MS)) {
      const known = [...ledger.confirmed];
      const list = await walkList(server.port);
      if (isOver) return;
      if (!("refused" in list)) {
        const shown = new Set(list);
        if (!known.every((id) => shown.has(id))) violations.push("a list lacked confirmed items");
        continue;
      }
      if (list.refused === undefined) return void violations.push("a read got no complete response");
      refusals += 1;
      if (outage.reading === "continues") violations.push("a read was refused that could have succeeded");
      violations.push(...[wrongRefusal(list.refused) ?? []].flat());
    }
  };
  await outage.begin(Number(/"pid":(\d+)/.exec(server.output())?.[1]));
  const clients = Promise.all([write(), read()]);
  const maxMs = run.isQuick ? (outage.quickMs ?? FELT_MS) : FELT_MS;
  const until = performance.now() + maxMs;
  while (!isFelt() && performance.now() < until) await sleep(5);
  if (!isFelt() && maxMs === FELT_MS) violations.push("nothing was refused, so nothing was tested");
  await outage.end();
  isOver = true;
  const recoveryMs = await recover(server, ledger);
  if (!run.isQuick && recoveryMs > RECOVERY_MS) violations.push(`recovered only after ${Math.round(recoveryMs)} ms`);
  await clients;
  violations.push(...ledger.compare(await readList(server.port)));
  return { violations, refusals, recoveryMs };
}

/** The time until writes succeed and the server is ready. */
async function recover({ port }: RunningServer, ledger: Ledger): Promise<number> {
  const start = performance.now();
  for (; performance.now() - start < FELT_MS; await sleep(20)) {
    const before = ledger.refusals;
    await ledger.sendBatch(port);
    if (ledger.refusals === before && (await callServer(port, "GET", "/readyz")).status === 200) break;
  }
  return performance.now() - start;
}
