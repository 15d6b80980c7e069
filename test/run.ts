import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { startPostgres } from "./support/postgres.ts";
import { urlOf } from "./support/postgres-cluster.ts";

/**
 * `node test/run.ts check` runs the static checks and the unit tests; `node test/run.ts` runs every test. The first step
 * that fails ends the run.
 */
const isCheck = process.argv[2] === "check";

/** The tests of the HTTP API that run a second time, on PostgreSQL. */
const API_TESTS = [
  "src/http/{operations,subscriptions,accounts,imports,quota}*.test.ts",
  "src/http/{app-authentication,nextcloud}.test.ts",
  "test/{access-apps,access-ends,properties}*.test.ts",
  "test/apps/*.test.ts",
];

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const find = (patterns: string[]) => globSync(patterns, { cwd: ROOT }).sort();

/** Whether a test file starts no server, database or other program. */
function isUnitTest(file: string): boolean {
  const starts =
    /\b(startServer|startPostgres|launch|spawn|spawnSync)\(|support\/(\w+-)*(process|accounts|commands|client)\b/;
  return !starts.test(readFileSync(`${ROOT}${file}`, "utf8"));
}

async function run(command: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<void> {
  const options = { cwd: ROOT, env: { ...process.env, ...environment }, shell: process.platform === "win32" };
  const [status] = await once(spawn(command, args, { ...options, stdio: "inherit" }), "exit");
  if (status !== 0) throw new Error(`failed: ${command} ${args.join(" ").slice(0, 100)}`);
}

function runTests(files: readonly string[], environment?: NodeJS.ProcessEnv): Promise<void> {
  return run("node", ["--test", `--test-concurrency=${availableParallelism() + 1}`, ...files], environment);
}

async function step(name: string, work: () => Promise<unknown>): Promise<void> {
  process.stdout.write(`\n== ${name}\n`);
  const started = performance.now();
  await work();
  process.stdout.write(`== ${name}: ${((performance.now() - started) / 1_000).toFixed(0)} s\n`);
}

const cleanups: (() => unknown)[] = [];
try {
  await step("format, lint, types", () =>
    Promise.all([run("biome", ["check", "--error-on-warnings"]), run("tsc", []), run("tsc", ["-p", "web"])]),
  );
  if (isCheck) await step("unit tests", () => runTests(find(["src/**/*.test.ts"]).filter(isUnitTest)));
  else {
    await step("tests", () => runTests(find(["{src,test,reliability}/**/*.test.ts"])));
    const postgres = await startPostgres(["max_connections=300"], (cleanup) => cleanups.push(cleanup));
    const environment = { TEST_ENGINE: "postgres", RUNS: "200", TEST_POSTGRES_URL: urlOf(postgres.port, "postgres") };
    await step("API tests on PostgreSQL", () => runTests(find(API_TESTS), environment));
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
}
