import { randomBytes } from "node:crypto";
import { createDistributedDatabase, databaseOn, NODES } from "../test/support/citus.ts";
import { query } from "../test/support/postgres-cluster.ts";
import { adding, type Bench, type Benchmarks, type Contender, paging, stopServers } from "./support/bench.ts";
import { settlePostgres } from "./support/databases.ts";
import { startEarmark } from "./support/processes.ts";
import { type Comparison, compare, type Line, ratesOf, rowOf, type Target } from "./support/report.ts";
import { writePoll } from "./syncing.ts";

const LISTED = 10_000;
const CONNECTIONS = 16;
/** Of each of the other users in the small and the large database. */
const LIST_LENGTH = 1_000;

type ClusterWork =
  | "adds, 1 per request"
  | "adds, 100 per request"
  | "adds, 1,000 per request"
  | "pages of 25"
  | "app polls";

interface ClusterContender extends Contender {
  readonly url: string;
}

/** Compares a cluster with one server of the same version, which has an undistributed database. */
async function compareCluster(bench: Bench, name: string, kind: ClusterWork, target: Target): Promise<Line> {
  const databases = { cluster: await createDistributedDatabase(), "one server": await createDatabase() };
  const contenders = await Promise.all(
    Object.entries(databases).map(([name, url]) => contend(bench, name, url, kind, LISTED)),
  );
  return measure(bench, name, contenders, (ours, others) => compare("of one server's rate", ours, others, target));
}

/** Compares a large with a small database on the cluster. */
async function compareClusterSizes(bench: Bench, name: string, kind: ClusterWork, target: Target): Promise<Line> {
  const contenders: ClusterContender[] = [];
  for (const rows of bench.plan.rows.toReversed()) {
    const url = await createDistributedDatabase();
    await fillOthers(url, rows / LIST_LENGTH);
    contenders.push(await contend(bench, `${rows.toLocaleString("en")} rows`, url, kind, LIST_LENGTH));
  }
  return measure(bench, name, contenders, (ours, others) =>
    compare("times the time with few rows", others, ours, target),
  );
}

async function measure(
  bench: Bench,
  name: string,
  contenders: readonly ClusterContender[],
  compareWith: (ours: number[], others: number[]) => Comparison,
): Promise<Line> {
  await bench.takeTurns(contenders);
  await stopServers(contenders.map(({ server }) => server));
  for (const { url } of contenders) await drop(url);
  const [ours = [], others = []] = contenders.map(({ runs }) => ratesOf(runs));
  const rows = contenders.map(({ name: row, runs }, index) =>
    rowOf(row, 1, runs, index === 0 ? [compareWith(ours, others)] : []),
  );
  return { name, rows };
}

async function contend(
  bench: Bench,
  name: string,
  url: string,
  kind: ClusterWork,
  length: number,
): Promise<ClusterContender> {
  const server = await startEarmark(url);
  await bench.fillList(server, length);
  await settlePostgres(url);
  const added = { "adds, 1 per request": 1, "adds, 100 per request": 100, "adds, 1,000 per request": 1_000 };
  const workload =
    kind === "app polls"
      ? await writePoll(server.port)
      : kind === "pages of 25"
        ? paging(25, length)
        : adding(added[kind]);
  return { name, url, server, work: { connections: CONNECTIONS, workload }, runs: [] };
}

/** Lists of other users. */
async function fillOthers(url: string, lists: number): Promise<void> {
  await query(
    url,
    `insert into earmark.lists select 100 + n, ${LIST_LENGTH}, ${LIST_LENGTH} from generate_series(1, ${lists}) as n`,
  );
  await query(
    url,
    `insert into earmark.subscriptions (user_id, sequence, id, feed, subscribed_at, written_by, feed_url)
     select 100 + list, number, gen_random_uuid(), gen_random_uuid(), 1750000000000, 0,
       'https://feeds.example.com/shows/' || substr(md5(number::text), 1, 8) || '/episodes.xml'
     from generate_series(1, ${lists}) as list cross join generate_series(1, ${LIST_LENGTH}) as number`,
  );
  await settlePostgres(url);
}

async function createDatabase(): Promise<string> {
  const [node = ""] = NODES;
  const name = `test_${randomBytes(6).toString("hex")}`;
  await query(node, `create database ${name}`);
  return databaseOn(node, name);
}

async function drop(url: string): Promise<void> {
  for (const node of NODES) await query(node, `drop database if exists ${new URL(url).pathname.slice(1)} with (force)`);
}

/** On the cluster at TEST_CITUS_URLS. */
export const CLUSTER: Benchmarks = {
  ...onCluster("adds, 100 per request", { atLeast: 0.4 }),
  ...onCluster("pages of 25", { atLeast: 0.5 }),
  "Citus: adds, 1 per request": (bench, name) => compareCluster(bench, name, "adds, 1 per request", { atLeast: 0.3 }),
  "Citus: adds, 1,000 per request": (bench, name) =>
    compareCluster(bench, name, "adds, 1,000 per request", { atLeast: 0.4 }),
  "Citus: app polls": (bench, name) => compareCluster(bench, name, "app polls", { atLeast: 0.5 }),
};

function onCluster(kind: ClusterWork, target: Target): Benchmarks {
  return {
    [`Citus: ${kind}`]: (bench, name) => compareCluster(bench, name, kind, target),
    [`Citus: ${kind}, by database size`]: (bench, name) => compareClusterSizes(bench, name, kind, { atMost: 1.5 }),
  };
}
