import { setTimeout as sleep } from "node:timers/promises";
import { type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import { callServer } from "../test/support/server.ts";
import { type Defect, withDefect } from "./faults/settings.ts";
import { UNTIL_FOUND } from "./kill.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./support/run.ts";
import { runAll } from "./support/run-all.ts";
import { readPositions, SyncingApp } from "./support/syncing-app.ts";
import { postgresTarget, sqliteTarget, type TargetDb } from "./support/target-db.ts";

const APPS = 6;
/** A kill comes within this range. */
const EARLIEST_MS = 60;
const LATEST_MS = 800;
const RETRY_MS = 20;

export const KILL_APPS: ReliabilityTest = {
  name: "kill -9 while apps sync",
  promises: ["P1"],
  async check(run) {
    const database = await startPostgres([], run.onEnd);
    const rounds = run.isQuick ? 3 : 20;
    return runAll([
      killWhileAppsSync(run, sqliteTarget(`${run.folder}/earmark.db`), rounds),
      killWhileAppsSync(run, await postgresTarget(database), rounds, { database }),
    ]);
  },
  control: {
    name: "a server that responds before its commit",
    check: (run) =>
      killWhileAppsSync(run, sqliteTarget(`${run.folder}/earmark.db`), UNTIL_FOUND, {
        defect: "response before the commit",
      }),
  },
};

interface Options {
  readonly defect?: Defect;
  /** Every third round kills the database server instead. */
  readonly database?: PostgresServer;
}

/** Kills the server while apps sync, round after round; at the end all apps must have the same feeds and positions. */
async function killWhileAppsSync(
  run: Run,
  db: TargetDb,
  rounds: number,
  { defect, database }: Options = {},
): Promise<Findings> {
  const start = () => serve(run, { DATABASE_URL: db.url, ...(defect === undefined ? {} : withDefect(defect)) });
  const apps = Array.from({ length: APPS }, (_, number) => new SyncingApp(number));
  const violations: string[] = [];
  const countAll = () => apps.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
  let kills = 0;
  let server = await start();
  for (let round = 1; round <= rounds; round += 1) {
    run.log(`${db.engine}, round ${round}: ${countAll()} acknowledged`);
    const { port } = server;
    let isStopped = false;
    const use = async (app: SyncingApp) => {
      while (!isStopped) if (!(await app.sync(port, true))) await sleep(RETRY_MS);
    };
    const before = countAll();
    const load = Promise.all(apps.map(use));
    while (countAll() === before && server.child.exitCode === null) await sleep(5);
    await sleep(EARLIEST_MS + run.random() * (LATEST_MS - EARLIEST_MS));
    kills += 1;
    if (database !== undefined && round % 3 === 2) {
      await database.stop("immediate");
      await database.start();
      isStopped = true;
      await load;
    } else {
      server.child.kill("SIGKILL");
      isStopped = true;
      await Promise.all([load, server.ended]);
      server = await start();
    }
    violations.push(...(await findLosses(server.port, apps)).map((what) => `round ${round}: ${what}`));
    if (defect !== undefined && violations.length > 0) break;
  }
  violations.push(...(await findDifferences(server.port, apps)), ...apps.flatMap((app) => app.violations));
  const figures = `${db.engine}: ${kills} kills, ${APPS} apps, ${countAll().toLocaleString("en")} changes acknowledged`;
  return { figures, violations };
}

/** What the server has, as a new device sees it. */
async function readAll(
  port: number,
): Promise<{ readonly feeds: Set<string>; readonly positions: Map<string, number> }> {
  const ask = async (path: string) => {
    for (let tries = 1; ; tries += 1) {
      const response = await callServer(port, "GET", path);
      if (response.status === 200) return response;
      if (tries === 50) throw new Error(`${path} returned ${response.status}: ${response.text}`);
      await sleep(10 * RETRY_MS);
    }
  };
  const feeds = await ask("/subscriptions/any.txt");
  return {
    feeds: new Set(feeds.text.split("\n").filter(Boolean)),
    positions: readPositions(await ask("/api/2/episodes/any.json?since=0"), new Map()),
  };
}

/** Acknowledged changes that the server no longer has. */
async function findLosses(port: number, apps: readonly SyncingApp[]): Promise<string[]> {
  const { feeds, positions } = await readAll(port);
  const lost = apps.flatMap(({ added }) => [...added].filter((url) => !feeds.has(url)));
  const back = apps.flatMap(({ removed }) => [...removed].filter((url) => feeds.has(url)));
  const forgotten = apps.flatMap(({ played }) => [...played].filter(([url, at]) => (positions.get(url) ?? -1) < at));
  return [
    ...(lost.length > 0 ? [`${lost.length} acknowledged feeds are lost`] : []),
    ...(back.length > 0 ? [`${back.length} removed feeds are there again`] : []),
    ...(forgotten.length > 0 ? [`${forgotten.length} acknowledged positions are lost`] : []),
  ];
}

/** Lets every app finish its uploads and poll once more, then compares them with the server. */
async function findDifferences(port: number, apps: readonly SyncingApp[]): Promise<string[]> {
  for (const round of [1, 2]) {
    for (const app of apps) {
      let tries = 1;
      while (!(await app.sync(port, false)) && tries < 50) tries += 1;
      if (tries === 50) return [`round ${round}: an app cannot sync`];
    }
  }
  const server = await readAll(port);
  return apps.flatMap(({ feeds, positions }, number) => [
    ...(feeds.size !== server.feeds.size || [...feeds].some((url) => !server.feeds.has(url))
      ? [`app ${number} has other feeds than the server`]
      : []),
    ...([...server.positions].some(([url, at]) => positions.get(url) !== at)
      ? [`app ${number} has other positions than the server`]
      : []),
  ]);
}
