import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import type { RunningServer } from "../test/support/process.ts";
import { callServer } from "../test/support/server.ts";
import { readList } from "./support/api.ts";
import { Ledger } from "./support/ledger.ts";
import { type Findings, type ReliabilityTest, type Run, runAll, serve } from "./support/run.ts";
import { findInconsistencies, postgresTarget, sqliteTarget, type TargetDb } from "./support/target-db.ts";

const CLIENTS = 8;
/** A kill comes within this range. */
const EARLIEST_MS = 60;
const LATEST_MS = 1_500;
const QUICK_LATEST_MS = 400;
const READY_MS = 2_000;

export const kill: ReliabilityTest = {
  name: "kill -9 under bulk load",
  promises: ["P1", "P2"],
  async check(run) {
    const database = await startPostgres([], run.onEnd);
    const sqlite = { count: run.isQuick ? 3 : 20, leastConfirmed: run.isQuick ? 1 : 50_000 };
    const postgres = { count: run.isQuick ? 2 : 10, database };
    return runAll([
      killRepeatedly(run, sqliteTarget(`${run.folder}/earmark.db`), bulkClients, sqlite),
      killRepeatedly(run, await postgresTarget(database), bulkClients, postgres),
    ]);
  },
  control: {
    name: "the write-ahead log is lost",
    check: (run) =>
      killRepeatedly(run, sqliteTarget(`${run.folder}/earmark.db`), bulkClients, { count: 1, losesLog: true }),
  },
};

/** Clients of a server that is killed. */
export interface Clients {
  /** Changes that the server has confirmed so far. */
  confirmed(): number;
  /** Uses the server until it is gone, or until `isStopped`. */
  use(server: RunningServer, isStopped: () => boolean): Promise<unknown>;
  /** What is wrong on a server that is running again. */
  check(db: TargetDb, port: number): Promise<string[]>;
  /** What is wrong at the end. */
  end(port: number): Promise<string[]>;
}

interface Kills {
  readonly count: number;
  /** More kills until so many changes are confirmed. */
  readonly leastConfirmed?: number;
  /** Every third round kills this server instead. */
  readonly database?: PostgresServer;
  /** What a server without durable commits would do. */
  readonly losesLog?: true;
}

/** Kills the server under load, round after round, and checks the database after each. */
export async function killRepeatedly(
  run: Run,
  db: TargetDb,
  createClients: () => Clients,
  { count, leastConfirmed = 1, database, losesLog }: Kills,
): Promise<Findings> {
  const clients = createClients();
  const violations: string[] = [];
  const readyMs: number[] = [];
  let databaseKills = 0;
  const start = async () => {
    const started = performance.now();
    const server = await serve(run, { DATABASE_URL: db.url });
    await callServer(server.port, "GET", "/readyz");
    readyMs.push(performance.now() - started);
    return server;
  };
  let server = await start();
  let round = 1;
  for (; round <= count || clients.confirmed() < leastConfirmed; round += 1) {
    run.log(`${db.engine}, round ${round}: ${clients.confirmed()} confirmed`);
    const before = clients.confirmed();
    let isStopped = false;
    const used = clients.use(server, () => isStopped);
    // On a busy machine nothing may be in flight yet.
    while (clients.confirmed() === before && server.child.exitCode === null) await sleep(5);
    await sleep(EARLIEST_MS + run.random() * ((run.isQuick ? QUICK_LATEST_MS : LATEST_MS) - EARLIEST_MS));
    if (database !== undefined && round % 3 === 2) {
      databaseKills += 1;
      await database.stop("immediate");
      await database.start();
      await sleep(EARLIEST_MS);
      isStopped = true;
      await used;
    } else {
      server.child.kill("SIGKILL");
      isStopped = true;
      await Promise.all([used, server.ended]);
      if (losesLog) rmSync(`${new URL(db.url).pathname}-wal`);
      server = await start();
    }
    violations.push(...(await clients.check(db, server.port)).map((what) => `round ${round}: ${what}`));
  }
  violations.push(...(await clients.end(server.port)));
  const slowest = Math.round(Math.max(...readyMs.slice(1)));
  if (!run.isQuick && slowest > READY_MS) violations.push(`ready only after ${slowest} ms`);
  const kills = `${round - 1} kills${databaseKills === 0 ? "" : ` (${databaseKills} of the database)`}`;
  const figures = `${db.engine}: ${kills}, ${clients.confirmed().toLocaleString("en")} changes confirmed, ready in ${slowest} ms at most`;
  return { figures, violations };
}

/** Clients that add batches, and remove an item now and then. */
function bulkClients(): Clients {
  const ledger = new Ledger();
  const client = async (server: RunningServer, isStopped: () => boolean) => {
    for (let turn = 1; !isStopped(); turn += 1) {
      const ids = await ledger.sendBatch(server.port);
      if (ids === undefined) {
        if (!server.child.killed)
          ledger.wrongResponses.push("no complete response arrived, although the server is running");
        return;
      }
      const [first] = ids;
      if (first !== undefined && turn % 4 === 0) await ledger.sendRemoval(server.port, first);
    }
  };
  return {
    confirmed: () => ledger.confirmed.size,
    use: (server, isStopped) => Promise.all(Array.from({ length: CLIENTS }, () => client(server, isStopped))),
    async check(db, port) {
      const rows = await db.inspect();
      const list = await readList(port);
      const differs = rows.ids.join() === list.join() ? [] : ["the list and the tables differ"];
      return [...findInconsistencies(rows), ...differs, ...ledger.compare(list)];
    },
    end: async () => ledger.wrongResponses,
  };
}
