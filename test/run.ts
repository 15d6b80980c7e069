import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { startPostgres } from "./support/postgres.ts";
import { urlOf } from "./support/postgres-cluster.ts";

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

/** The tests of the HTTP API that run a second time, on PostgreSQL. */
const API_TESTS = [
  "src/http/{operations,subscriptions,accounts,imports,quota}*.test.ts",
  "src/http/{app-authentication,nextcloud}.test.ts",
  "test/{access-apps,access-ends,podcasts,properties}*.test.ts",
  "test/apps/*.test.ts",
];

const cleanups: (() => unknown)[] = [];

/** A test file that takes longer has hung. */
const TIMEOUT_MS = 5 * 60_000;

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const find = (patterns: readonly string[]) => [
  ...new Set(patterns.flatMap((pattern) => globSync(pattern, { cwd: ROOT }).sort())),
];
const secondsSince = (start: number) => `${((performance.now() - start) / 1_000).toFixed(1)} s`;

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

interface Job {
  readonly file: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Runs each test file in a process of its own, and prints the output of those that fail. */
async function runTests(jobs: readonly Job[]): Promise<void> {
  const queue = jobs.values();
  const failed: string[] = [];
  const work = async () => {
    for (const { file, environment } of queue) {
      const start = performance.now();
      const env = { ...process.env, ...environment };
      const child = spawn(process.execPath, [file], { cwd: ROOT, env, timeout: TIMEOUT_MS, killSignal: "SIGKILL" });
      const outputs = Promise.all([text(child.stdout), text(child.stderr)]);
      const [status] = await once(child, "close");
      const name = `${file}${environment["TEST_ENGINE"] === undefined ? "" : " on PostgreSQL"}`;
      if (status !== 0) {
        failed.push(name);
        process.stdout.write((await outputs).join(""));
      }
      process.stdout.write(`${status === 0 ? "✔" : "✖"} ${name} (${secondsSince(start)})\n`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  if (failed.length > 0) throw new Error(`failed:\n${failed.join("\n")}`);
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
