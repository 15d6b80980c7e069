import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BASE_VERSION } from "../src/store/shared/schema-version.ts";
import { type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import { cleanEnvironment, EARMARK, launch, run as runProgram } from "../test/support/process.ts";
import { add, newId } from "../test/support/server.ts";
import { addAll, call, readList } from "./support/api.ts";
import { type Findings, type ReliabilityTest, type Run, runAll, serve, stop } from "./support/run.ts";
import { findInconsistencies, postgresTarget, sqliteTarget, type TargetDb } from "./support/target-db.ts";

const [KILLS, QUICK_KILLS] = [40, 3];
const FEEDS = 2_000;
const OPML_FEEDS = Array.from({ length: FEEDS }, (_, n) => `<outline text="x" xmlUrl="https://feeds.example/o/${n}"/>`);
const OPML = `<opml version="2.0"><body>${OPML_FEEDS.join("")}</body></opml>`;

export const interrupted: ReliabilityTest = {
  name: "interrupted maintenance",
  promises: ["P2", "P9"],
  async check(run) {
    const server = await startPostgres([], run.onEnd);
    const file = await filledFile(run);
    const migrations = [migrationsOfFiles(run), migrationsOfPostgres(run, server)];
    return runAll([...migrations, backups(run, file), restores(run, file), imports(run)]);
  },
  control: {
    name: "a restore that overwrites the file",
    check: async (run) =>
      restores(run, await filledFile(run), (path) => truncateSync(path, readFileSync(path).length / 2)),
  },
};

/** Repeats an action, killed at another time each time: `attempt` gets a time from 0 to a little more than it takes. */
async function killRepeatedly(
  run: Run,
  name: string,
  attempt: (killAfterMs: number | undefined) => Promise<readonly string[]>,
): Promise<Findings> {
  const started = performance.now();
  const violations = [...(await attempt(undefined))];
  const durationMs = performance.now() - started;
  const kills = run.isQuick ? QUICK_KILLS : KILLS;
  for (let kill = 1; kill <= kills; kill += 1) {
    run.log(`${name}, kill ${kill}`);
    const afterMs = 1.1 * run.random() * durationMs;
    violations.push(
      ...(await attempt(afterMs)).map((what) => `${name}, killed after ${afterMs.toFixed(0)} ms: ${what}`),
    );
  }
  return { figures: `${kills} × ${name} killed`, violations };
}

/** Runs a command, and kills it after a time if it has not ended. */
async function command(args: readonly string[], url: string, killAfterMs: number | undefined): Promise<void> {
  const child = spawn(process.execPath, [EARMARK, ...args], {
    env: cleanEnvironment({ DATABASE_URL: url }),
    stdio: "ignore",
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), killAfterMs ?? 2 ** 30);
  await once(child, "exit");
  clearTimeout(timer);
}

/** What is wrong with a command that is not killed. */
async function failureOf(args: readonly string[], url: string): Promise<readonly string[]> {
  const { code, stderr } = await runProgram(args, { DATABASE_URL: url });
  return code === 0 ? [] : [`earmark ${args[0]} after it ended with ${code}: ${stderr}`];
}

/** A file with a list, closed. */
async function filledFile(run: Run): Promise<string> {
  const file = join(run.folder, "filled.db");
  const server = await serve(run, { DATABASE_URL: `file:${file}` });
  await addAll(
    server.port,
    Array.from({ length: FEEDS }, (_, n) => add(newId(), `https://feeds.example/${n}`)),
  );
  await stop(server, "SIGTERM");
  return file;
}

/** A database of the oldest schema that can be migrated. */
const oldestSchema = (engine: "sqlite" | "postgres") =>
  readFileSync(new URL(`../test/fixtures/schemas/${engine}-${BASE_VERSION}.sql`, import.meta.url), "utf8");

/** The first start of a server, which migrates; then another one must find everything. */
async function migrate(run: Run, db: TargetDb, killAfterMs: number | undefined): Promise<readonly string[]> {
  const { ids } = await db.inspect();
  const { child, listening } = launch({ DATABASE_URL: db.url, EARMARK_ACCOUNTS: "true" });
  run.onEnd(() => child.kill("SIGKILL"));
  if (killAfterMs === undefined) await listening;
  else setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  listening.then(() => child.kill("SIGKILL")).catch(() => undefined);
  await once(child, "exit");
  return startAgain(run, db, ids);
}

function migrationsOfFiles(run: Run): Promise<Findings> {
  const path = join(run.folder, "migrated.db");
  const schema = oldestSchema("sqlite");
  return killRepeatedly(run, "migration of SQLite", async (killAfterMs) => {
    for (const rest of ["", "-wal", "-shm", "-journal"]) rmSync(path + rest, { force: true });
    const database = new DatabaseSync(path);
    database.exec(schema);
    database.close();
    return migrate(run, sqliteTarget(path), killAfterMs);
  });
}

function migrationsOfPostgres(run: Run, server: PostgresServer): Promise<Findings> {
  const schema = oldestSchema("postgres");
  return killRepeatedly(run, "migration of PostgreSQL", async (killAfterMs) => {
    const db = await postgresTarget(server);
    await server.query(schema, new URL(db.url).pathname.slice(1));
    return migrate(run, db, killAfterMs);
  });
}

/** What is wrong after a start that is not killed. */
async function startAgain(run: Run, db: TargetDb, expected: readonly string[]): Promise<readonly string[]> {
  const server = await serve(run, { DATABASE_URL: db.url, EARMARK_ACCOUNTS: "true" }).catch((error: Error) => error);
  if (server instanceof Error) return [server.message];
  const ready = await call(server.port, "GET", "/readyz");
  const rows = await db.inspect();
  await stop(server);
  const wrong = findInconsistencies(rows);
  if (ready?.status !== 200) wrong.push(`/readyz returns ${ready?.status}`);
  if (rows.ids.join() !== expected.join()) wrong.push(`the list has ${rows.ids.length} items, not ${expected.length}`);
  return wrong;
}

/** A killed backup leaves no file or a complete one, and the next backup works. */
async function backups(run: Run, file: string): Promise<Findings> {
  const folder = join(run.folder, "backups");
  const copy = join(folder, "copy.db");
  const expected = (await sqliteTarget(file).inspect()).ids.join();
  const isWhole = async () => (await sqliteTarget(copy).inspect()).ids.join() === expected;
  mkdirSync(folder);
  return killRepeatedly(run, "backup", async (killAfterMs) => {
    const violations: string[] = [];
    await command(["backup", copy], `file:${file}`, killAfterMs);
    if (existsSync(copy) && !(await isWhole())) violations.push("a partial file has the name of the backup");
    rmSync(copy, { force: true });
    violations.push(...(await failureOf(["backup", copy], `file:${file}`)));
    if (!(await isWhole())) violations.push("the next backup is not complete");
    const left = readdirSync(folder).filter((name) => name !== "copy.db");
    if (left.length > 0) violations.push(`${left} was left`);
    rmSync(copy, { force: true });
    return violations;
  });
}

/** A killed restore leaves the old database or the new one, and the next restore works. */
async function restores(run: Run, file: string, damage: (path: string) => void = () => undefined): Promise<Findings> {
  const [backup, empty, folder] = [`${run.folder}/backup.db`, `${run.folder}/empty.db`, `${run.folder}/restored`];
  const db = sqliteTarget(join(folder, "earmark.db"));
  const failures = [
    ...(await failureOf(["backup", backup], `file:${file}`)),
    ...(await failureOf(["migrate"], `file:${empty}`)),
  ];
  if (failures.length > 0) throw new Error(failures.join());
  const { ids: restored } = await sqliteTarget(backup).inspect();
  return killRepeatedly(run, "restore", async (killAfterMs) => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    copyFileSync(empty, join(folder, "earmark.db"));
    await command(["restore", backup, "--yes"], db.url, killAfterMs);
    damage(join(folder, "earmark.db"));
    const { ids, integrity } = await db.inspect().catch((error: Error) => ({ ids: [], integrity: error.message }));
    if (integrity !== "ok") return [`the database is damaged: ${integrity}`];
    const violations =
      ids.length === 0 || ids.join() === restored.join() ? [] : ["neither the old nor the new database"];
    violations.push(...(await startAgain(run, db, ids)), ...(await failureOf(["restore", backup, "--yes"], db.url)));
    if ((await db.inspect()).ids.join() !== restored.join()) violations.push("the next restore is not complete");
    return violations;
  });
}

/** A killed import has stored complete transactions only, and can be repeated. */
function imports(run: Run): Promise<Findings> {
  return killRepeatedly(run, "import", async (killAfterMs) => {
    const db = sqliteTarget(join(run.folder, `import-${newId()}.db`));
    const server = await serve(run, { DATABASE_URL: db.url });
    const importing = call(server.port, "POST", "/v1/imports", OPML, "text/x-opml");
    // Starting the server is most of the time that an attempt takes.
    if (killAfterMs === undefined) await importing;
    else setTimeout(() => server.child.kill("SIGKILL"), killAfterMs / 10);
    await importing;
    await stop(server);
    const again = await serve(run, { DATABASE_URL: db.url });
    const violations = findInconsistencies(await db.inspect());
    const { length } = await readList(again.port);
    const repeated = await call(again.port, "POST", "/v1/imports", OPML, "text/x-opml");
    const { added, already_subscribed: known } = repeated?.json?.meta?.counts ?? {};
    if (added !== FEEDS - length || known !== length)
      violations.push(`${length} feeds were stored; repeated, ${added} were added and ${known} known`);
    await stop(again);
    return violations;
  });
}
