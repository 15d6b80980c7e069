import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "./support/postgres.ts";
import { makeCluster, placeProgram, urlOf } from "./support/postgres-cluster.ts";
import {
  API_TESTS,
  ENGINE_TESTS,
  find,
  type Job,
  ROOT,
  runTests,
  secondsSince,
  stopTests,
} from "./support/run-tests.ts";

/**
 * `check`: the static checks and the unit tests. `all`: these and every other test, those where the engine matters on both
 * engines. `postgres`: the other tests of the API on PostgreSQL. A static check that fails ends the run.
 */
const [kind = "all"] = process.argv.slice(2);

/** They keep the cores busy, so they are spread among the others, which often wait. */
const BROWSER_TESTS = ["test/page-*.test.ts"];
/** The slowest first, so that no core waits for them at the end. */
const TESTS = [
  "test/{access*,podcasts-*,openapi-responses,process}.test.ts",
  "src/store/{postgres,sqlite}/*.test.ts",
  "{src,test}/**/*.test.ts",
];
const MEMORY = "/dev/shm";
const GIBIBYTE = 2 ** 30;

/** Without autovacuum, which would visit each of some 300 databases every minute. */
const SHARED_SETTINGS = ["max_connections=300", "autovacuum=off"];

const cleanups: (() => unknown)[] = [];

/** Whether a test file starts no server, database or other program. */
function isUnitTest(file: string): boolean {
  const starts =
    /\b(startServer|startPostgres|launch|spawn|spawnSync)\(|support\/(\w+-)*(process|accounts|commands|client|postgres)\b/;
  return !starts.test(readFileSync(`${ROOT}${file}`, "utf8"));
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const options = { cwd: ROOT, shell: process.platform === "win32", stdio: "inherit" } as const;
  const [status] = await once(spawn(command, args, options), "exit");
  if (status !== 0) throw new Error(`failed: ${command} ${args.join(" ")}`);
}

/** Remembers what it has checked, so that the next run checks only what has changed. */
function checkTypes(name: string, project: string): Promise<void> {
  const file = join("node_modules", ".cache", "tsc", `${name}.tsbuildinfo`);
  return run("tsc", ["-p", project, "--incremental", "--tsBuildInfoFile", file]);
}

/**
 * Tests create thousands of databases and wait until each is on disk, so with enough memory their files are there
 * instead. What survives a power cut is the subject of reliability/.
 */
function createFolder(): string {
  const folder = mkdtempSync(join(isMemoryUsable() ? MEMORY : tmpdir(), "earmark-tests-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  // PostgreSQL may run as another user.
  chmodSync(folder, 0o755);
  return folder;
}

function isMemoryUsable(): boolean {
  if (process.env["TMPDIR"] !== undefined || !existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  const canExecute = mounts.some((line) => line.split(" ")[1] === MEMORY && !line.includes("noexec"));
  return canExecute && bavail * bsize > 3 * GIBIBYTE && process.availableMemory() > 6 * GIBIBYTE;
}

async function startSharedPostgres(): Promise<string> {
  const { port } = await startPostgres(SHARED_SETTINGS, (cleanup) => cleanups.push(cleanup));
  return urlOf(port, "postgres");
}

const jobsOf = (files: readonly string[], environment: NodeJS.ProcessEnv): Job[] =>
  files.map((file) => ({ file, environment }));

/** Spreads each list evenly over the result. */
function mix<T>(...lists: readonly (readonly T[])[]): T[] {
  const placed = lists.flatMap((list) => list.map((item, index) => ({ item, place: (index + 1) / (list.length + 1) })));
  return placed.sort((a, b) => a.place - b.place).map(({ item }) => item);
}

async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, async () => {
    stopTests();
    await cleanUp();
    process.exit(1);
  });

async function step(name: string, work: () => Promise<unknown>): Promise<void> {
  const start = performance.now();
  await work();
  process.stdout.write(`== ${name}: ${secondsSince(start)}\n`);
}

/** Runs the static checks at the same time, because the tests leave the cores idle now and then. */
async function check(name: string, jobs: readonly Job[]): Promise<void> {
  const checking = step("format, lint, types", () =>
    Promise.all([run("biome", ["check", "--error-on-warnings"]), checkTypes("server", "."), checkTypes("web", "web")]),
  );
  checking.catch(stopTests);
  const results = await Promise.allSettled([checking, step(name, () => runTests(jobs))]);
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

try {
  const folder = createFolder();
  process.env["TMPDIR"] = folder;
  // Most test files load the whole server, which takes a second to compile.
  process.env["NODE_COMPILE_CACHE"] ??= join(folder, "compiled");
  if (kind === "check") {
    // The stores first: one of their tests waits for twenty seconds.
    const files = find(["src/store/**/*.test.ts", "src/**/*.test.ts"]).filter(isUnitTest);
    await check("unit tests", jobsOf(files, {}));
  } else {
    process.env["TEST_POSTGRES_BIN"] ??= join(placeProgram(join(folder, "postgres")), "bin");
    process.env["TEST_POSTGRES_TEMPLATE"] = makeCluster(join(folder, "template")).data;
    const url = process.env["TEST_POSTGRES_URL"] ?? (await startSharedPostgres());
    const environment = { TEST_POSTGRES_URL: url };
    const onPostgres = { ...environment, TEST_ENGINE: "postgres" };
    const onBoth = find(ENGINE_TESTS);
    if (kind === "postgres") {
      const others = find(API_TESTS).filter((file) => !onBoth.includes(file));
      await step("API tests on PostgreSQL", () => runTests(jobsOf(others, onPostgres)));
    } else {
      const inBrowser = find(BROWSER_TESTS);
      const others = find(TESTS).filter((file) => !inBrowser.includes(file));
      await check(
        "tests",
        mix(jobsOf(onBoth, onPostgres), jobsOf(inBrowser, environment), jobsOf(others, environment)),
      );
    }
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  await cleanUp();
}
