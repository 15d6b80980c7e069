import { chmodSync, globSync, readFileSync } from "node:fs";
import { availableParallelism, setPriority } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type PostgresServer, startPostgres } from "../../test/postgres.ts";
import { urlOf } from "../../test/postgres-cluster.ts";
import { inRun, type Run } from "../proof.ts";
import { type Judged, Place, type Tested } from "./judge.ts";
import { type Mutant, makeMutants } from "./make.ts";
import { drawSurvivors, drawTable, percentOf } from "./report.ts";

/** What is mutated together, and the tests that may notice, the quickest first. */
interface Group {
  readonly name: string;
  readonly files: readonly string[];
  readonly but?: readonly string[];
  readonly tests: readonly string[];
  /** A server for all mutants is named to its tests. */
  readonly onPostgres?: boolean;
}

const GROUPS: readonly Group[] = [
  {
    name: "addresses, subscriptions and documents",
    files: ["src/feed-url.ts", "src/subscriptions.ts", "src/jsonapi/*.ts"],
    tests: ["src/feed-url.test.ts", "src/subscriptions.test.ts", "src/jsonapi/*.test.ts"],
  },
  {
    name: "the store on SQLite",
    files: ["src/store/*.ts"],
    but: ["src/store/postgres*.ts"],
    tests: [
      "src/store/{archive,gaps,keys,opening,plan,recent,sqlite-file,whole,write-queue}.test.ts",
      "src/store/sqlite-accounts.test.ts",
      "src/store/sqlite.test.ts",
    ],
  },
  {
    name: "the store on PostgreSQL",
    files: ["src/store/postgres*.ts"],
    tests: [
      "src/store/postgres-{connection,schema}.test.ts",
      "reliability/mutants/postgres.suite.ts",
      "src/store/postgres.test.ts",
    ],
    onPostgres: true,
  },
];

const WANTED_PERCENT = 85;

const USAGE = `Puts small faults into the code, one at a time, and counts those that no test notices.

  npm run test:mutants -- [--only PATH] [--sample N] [--seed N]

  --only PATH  only files whose path holds this
  --sample N   N mutants of each group instead of all
  --seed N     the same sample again
`;

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const find = (patterns: readonly string[], but: readonly string[] = []) =>
  globSync([...patterns], { cwd: ROOT, exclude: [...but] }).sort();

async function examine(group: Group, mutants: readonly Mutant[], run: Run): Promise<Judged[]> {
  const judged: Judged[] = [];
  const tests = group.tests.flatMap((pattern) => find([pattern]));
  const learned = new Map<string, Promise<Tested>>();
  const left = mutants.values();
  let isOver = false;
  const work = async (number: number) => {
    const server = group.onPostgres === true ? await startPostgres([], run.later) : undefined;
    const place = new Place(ROOT, join(run.folder, `${group.name} ${number}`), settingsFor(server));
    process.once("SIGINT", () => {
      isOver = true;
      place.stop();
    });
    for (const mutant of left) {
      if (isOver) return;
      const verdict = await place.judge(mutant, tests, learned);
      if (isOver) return;
      judged.push(verdict);
      run.say(`${judged.length} of ${mutants.length} ${verdict.verdict} ${mutant.file}:${mutant.line}`);
      await dropDatabases(server);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, (_, number) => work(number)));
  return judged;
}

function settingsFor(server: PostgresServer | undefined): Record<string, string> {
  return server === undefined ? {} : { TEST_POSTGRES_URL: urlOf(server.port, "postgres") };
}

async function dropDatabases(server: PostgresServer | undefined): Promise<void> {
  const rows = (await server?.query("select datname from pg_database where datname like 'test%'")) ?? [];
  for (const { datname } of rows) await server?.query(`drop database ${datname} with (force)`);
}

/** As many as are wanted, in no order: so what was judged before an interruption is a fair sample too. */
function sample<Item>(items: readonly Item[], count: number, random: () => number): Item[] {
  const drawn = items.map((item) => ({ item, order: random() })).sort((a, b) => a.order - b.order);
  return drawn.slice(0, count).map(({ item }) => item);
}

async function examineAll(run: Run, only: string, count: number): Promise<boolean> {
  let isGood = true;
  for (const group of GROUPS) {
    const files = find(group.files, group.but).filter((file) => !/\.(test|suite)\.ts$/.test(file));
    const texts = Object.fromEntries(
      files.filter((file) => file.includes(only)).map((file) => [file, readFileSync(join(ROOT, file), "utf8")]),
    );
    const mutants = makeMutants(texts);
    if (mutants.length === 0) continue;
    const chosen = sample(mutants, count, run.random);
    const judged = await examine(group, chosen, run);
    process.stdout.write(`\n${group.name}: ${judged.length} of ${mutants.length} mutants (seed ${run.seed})\n`);
    process.stdout.write(drawTable(judged) + drawSurvivors(judged));
    isGood &&= percentOf(judged) >= WANTED_PERCENT;
  }
  return isGood;
}

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    sample: { type: "string", default: "Infinity" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(USAGE);
else {
  setPriority(19);
  const say = (words: string) => void process.stderr.write(`${words}\n`);
  const isGood = await inRun({ isQuick: false, seed: Number(values.seed), say }, (run) => {
    // PostgreSQL may run as somebody else.
    chmodSync(run.folder, 0o755);
    return examineAll(run, values.only, Number(values.sample));
  });
  process.stdout.write(isGood ? "" : `fewer than ${WANTED_PERCENT} % were killed\n`);
  process.exitCode = isGood ? 0 : 1;
}
