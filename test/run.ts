import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { startPostgres } from "./support/postgres.ts";
import { urlOf } from "./support/postgres-cluster.ts";
import { API_TESTS, find, ROOT, runTests, secondsSince } from "./support/run-tests.ts";

/**
 * `node test/run.ts check` runs the static checks and the unit tests; `node test/run.ts` runs every test. The first step
 * that fails ends the run.
 */
const isCheck = process.argv[2] === "check";

/** The slowest tests start first, so that no processor waits for them at the end. */
const TESTS = [
  "test/{linear-readers,secrets,page-*}.test.ts",
  "src/store/postgres*.test.ts",
  "src/{commands,http}/*.test.ts",
  "{src,test,reliability}/**/*.test.ts",
];

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

async function startSharedPostgres(): Promise<string> {
  const { port } = await startPostgres(["max_connections=300"], (cleanup) => cleanups.push(cleanup));
  return urlOf(port, "postgres");
}

async function step(name: string, work: () => Promise<unknown>): Promise<void> {
  process.stdout.write(`\n== ${name}\n`);
  const start = performance.now();
  await work();
  process.stdout.write(`== ${name}: ${secondsSince(start)}\n`);
}

try {
  await step("format, lint, types", () =>
    Promise.all([run("biome", ["check", "--error-on-warnings"]), run("tsc", []), run("tsc", ["-p", "web"])]),
  );
  if (isCheck) {
    const files = find(["src/**/*.test.ts"]).filter(isUnitTest);
    await step("unit tests", () => runTests(files.map((file) => ({ file, environment: {} }))));
  } else {
    const url = process.env["TEST_POSTGRES_URL"] ?? (await startSharedPostgres());
    const environment = { TEST_POSTGRES_URL: url };
    const onPostgres = { ...environment, TEST_ENGINE: "postgres", RUNS: "200" };
    const again = find(API_TESTS).map((file) => ({ file, environment: onPostgres }));
    await step("tests", () => runTests([...find(TESTS).map((file) => ({ file, environment })), ...again]));
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
}
