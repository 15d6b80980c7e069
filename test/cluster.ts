import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTemplate, dropDatabases, NODES } from "./support/citus.ts";
import { API_TESTS, find, type Job, runTests } from "./support/run-tests.ts";

/** Tests of requests, whose statements are recorded. */
const REQUESTS = [
  ...API_TESTS,
  "src/http/{api/{app-data,changes,events,passkeys,second-factor,sessions,sign-in,updates},auth/{oidc*,proxy-user},metrics}.test.ts",
];
/** The tests that run on tables distributed over the nodes of a Citus cluster; `npm run test:cluster -- TEXT` selects some. */
const TESTS = [
  "test/cluster/*.suite.ts",
  "src/store/postgres/{accounts,apps,links,podcasts}.test.ts",
  "test/{history,change-history,round-trips}.test.ts",
  ...REQUESTS,
];
/** Explains what the others have sent. */
const STATEMENTS = "test/cluster/statements.suite.ts";
/** Stops nodes, so nothing else can run meanwhile. */
const FAULTS = "test/cluster/faults.suite.ts";

/** What a suite has measured. */
const isFigure = (line: string) => line.startsWith("measured: ");

if (NODES.length < 3) {
  process.stderr.write(
    "Set TEST_CITUS_URLS to the URLs of the running nodes of a Citus cluster, the coordinator first, separated by commas:\n" +
      "postgres://earmark@127.0.0.1:9700/postgres,postgres://earmark@127.0.0.1:9701/postgres,…\n" +
      "It takes a coordinator, two workers and a role that may create databases. CONTRIBUTING.md has the details.\n",
  );
  process.exitCode = 1;
} else {
  const statements = mkdtempSync(join(tmpdir(), "earmark-statements-"));
  const template = await createTemplate();
  const requests = find(REQUESTS);
  let count = 0;
  const toJob = (file: string): Job => {
    count += 1;
    const prefix = `test_${process.pid}_${count}_`;
    const environment = {
      NODE_OPTIONS: `--import=${new URL("support/record-statements.ts", import.meta.url)}`,
      RUNS: "50",
      TEST_CITUS_PREFIX: prefix,
      TEST_CITUS_TEMPLATE: template,
      TEST_ENGINE: "postgres",
      // Suites of the store also send what no request sends.
      ...(requests.includes(file) || file === STATEMENTS ? { TEST_STATEMENTS: statements } : {}),
      TEST_STATEMENTS_COMPLETE: String(process.argv[2] === undefined),
    };
    return {
      file,
      environment,
      onEnd: async (output) => {
        process.stdout.write(
          output
            .split("\n")
            .filter(isFigure)
            .map((line) => `${line}\n`)
            .join(""),
        );
        await dropDatabases(prefix);
      },
    };
  };
  const wanted = find(TESTS).filter((file) => file.includes(process.argv[2] ?? ""));
  const others = wanted.filter((file) => file !== STATEMENTS && file !== FAULTS);
  const runs = [others, others.some((file) => requests.includes(file)) ? [STATEMENTS] : []];
  if (process.env["TEST_CITUS_DATA"] === undefined)
    process.stdout.write("TEST_CITUS_DATA is not set, so faults of nodes are not tested.\n");
  else runs.push(wanted.filter((file) => file === FAULTS));
  try {
    for (const files of runs) {
      await runTests(files.map(toJob)).catch((error: Error) => {
        process.stderr.write(`${error.message}\n`);
        process.exitCode = 1;
      });
    }
  } finally {
    rmSync(statements, { recursive: true, force: true });
    await dropDatabases(template);
  }
}
