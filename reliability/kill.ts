import { setTimeout as sleep } from "node:timers/promises";
import { type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import type { RunningServer } from "../test/support/process.ts";
import { callServer } from "../test/support/server.ts";
import { type Defect, withDefect } from "./faults/settings.ts";
import { walkList } from "./support/api.ts";
import { Ledger } from "./support/ledger.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./support/run.ts";
import { runAll } from "./support/run-all.ts";
import { findInconsistencies, postgresTarget, sqliteTarget, type TargetDb } from "./support/target-db.ts";

const CLIENTS = 8;
/** A kill comes within this range. */
const EARLIEST_MS = 60;
const LATEST_MS = 1_500;
const QUICK_LATEST_MS = 400;
const READY_MS = 2_000;
/** A defect shows when a kill comes between a response and its commit, so the control needs several rounds. */
export const UNTIL_FOUND = 20;

export const KILL: ReliabilityTest = {
  name: "kill -9 under bulk load",
  promises: ["P1", "P2"],
  async check(run) {
    const server = await startPostgres([], run.onEnd);
    return runAll([
      killAgainAndAgain(run, sqliteTarget(`${run.folder}/earmark.db`), run.isQuick ? 3 : 20, {
        leastAcknowledged: run.isQuick ? 1 : 50_000,
      }),
      killAgainAndAgain(run, await postgresTarget(server), run.isQuick ? 2 : 10, { server }),
    ]);
  },
  control: {
    name: "a server that responds before its commit",
    check: (run) =>
      killAgainAndAgain(run, sqliteTarget(`${run.folder}/earmark.db`), UNTIL_FOUND, {
        defect: "response before the commit",
      }),
  },
};

interface Options {
  readonly leastAcknowledged?: number;
  readonly defect?: Defect;
  /** Every third round kills the database server instead. */
  readonly server?: PostgresServer;
}

/** Kills the server under load, round after round, and checks the list after each. */
export async function killAgainAndAgain(
  run: Run,
  db: TargetDb,
  rounds: number,
  { leastAcknowledged = 1, defect, server: database }: Options = {},
): Promise<Findings> {
  const ledger = new Ledger();
  const violations: string[] = [];
  const readyMs: number[] = [];
  let [kills, databaseKills] = [0, 0];
  const start = async (round: number) => {
    // Every other round checkpoints constantly, so that kills hit checkpoints too.
    const change = defect ?? (round % 2 === 1 ? "small log" : undefined);
    const started = performance.now();
    const server = await serve(run, { DATABASE_URL: db.url, ...(change === undefined ? {} : withDefect(change)) });
    await callServer(server.port, "GET", "/readyz");
    readyMs.push(performance.now() - started);
    return server;
  };
  let server = await start(0);
  for (let round = 1; round <= rounds || ledger.acknowledged.size < leastAcknowledged; round += 1) {
    run.log(`${db.engine}, round ${round}: ${ledger.acknowledged.size} acknowledged`);
    const before = ledger.acknowledged.size;
    const load = startLoad(server, ledger);
    kills += 1;
    // On a busy machine nothing may be in flight yet.
    while (ledger.acknowledged.size === before && server.child.exitCode === null) await sleep(5);
    await sleep(EARLIEST_MS + run.random() * ((run.isQuick ? QUICK_LATEST_MS : LATEST_MS) - EARLIEST_MS));
    if (database !== undefined && round % 3 === 2) {
      databaseKills += 1;
      await database.stop("immediate");
      await database.start();
      await sleep(EARLIEST_MS);
      load.stop();
      await load.ended;
    } else {
      server.child.kill("SIGKILL");
      await Promise.all([load.ended, server.ended]);
      server = await start(round);
    }
    const rows = await db.inspect();
    const list = await walkList(server.port);
    const found = findInconsistencies(rows);
    if ("refused" in list) found.push(`the list was answered ${list.refused?.status}: ${list.refused?.text}`);
    else {
      if (rows.ids.join() !== list.join()) found.push("the list and the tables differ");
      found.push(...ledger.compare(list));
    }
    violations.push(...found.map((what) => `round ${round}: ${what}`));
    if (defect !== undefined && violations.length > 0) break;
  }
  const slowest = Math.max(...readyMs.slice(1));
  if (!run.isQuick && slowest > READY_MS) violations.push(`ready only after ${Math.round(slowest)} ms`);
  violations.push(...ledger.wrongResponses);
  const whose = databaseKills === 0 ? "" : ` (${databaseKills} of the database)`;
  const figures = `${db.engine}: ${kills} kills${whose}, ${ledger.acknowledged.size.toLocaleString("en")} acknowledged, ${ledger.lost.size} lost, ${ledger.neverSent.size} never sent, ${ledger.torn.size} torn, ready in ${Math.round(slowest)} ms at most`;
  return { figures, violations };
}

/** Clients that add batches, and remove an item now and then, until the server is gone or they are stopped. */
function startLoad(server: RunningServer, ledger: Ledger): { stop: () => void; ended: Promise<unknown> } {
  let isStopped = false;
  const client = async () => {
    for (let turn = 1; !isStopped; turn += 1) {
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
  const ended = Promise.all(Array.from({ length: CLIENTS }, client));
  return {
    stop: () => {
      isStopped = true;
    },
    ended,
  };
}
