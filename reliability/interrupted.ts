import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BASE_VERSION } from "../src/store/shared/schema-version.ts";
import { type PostgresServer, startPostgres } from "../test/support/postgres.ts";
import { run as runProgram } from "../test/support/process.ts";
import { add, newId } from "../test/support/server.ts";
import { createFaults, type Defect } from "./faults/settings.ts";
import { call, post, readList } from "./support/api.ts";
import { type Findings, type ReliabilityTest, type Run, serve, stop } from "./support/run.ts";
import { runAll } from "./support/run-all.ts";
import { findInconsistencies, postgresTarget, sqliteTarget, type TargetDb } from "./support/target-db.ts";

/** Feeds in the imported file, and per transaction. */
const IMPORTED = 150;
const AT_A_TIME = 100;

export const INTERRUPTED: ReliabilityTest = {
  name: "interrupted maintenance",
  promises: ["P2", "P9", "P10"],
  async check(run) {
    const server = await startPostgres([], run.onEnd);
    const file = await filledFile(run);
    return runAll([
      migrationsOfFiles(run),
      migrationsOnPostgres(run, server),
      backups(run, file),
      restores(run, file),
      imports(run),
      failedStarts(run, file),
    ]);
  },
  control: {
    name: "a server that stores a batch in pieces",
    check: (run) => imports(run, "torn batch"),
  },
};

/** The short run kills once, at a random step of this range; the full run at every `stride`-th step. */
interface Steps {
  readonly quick: readonly [first: number, last: number];
  readonly stride: number;
}

/** Repeats an action, killed at another step each time. `attempt` returns false when there is no such step. */
async function killAtEveryStep(
  run: Run,
  { quick: [first, last], stride }: Steps,
  attempt: (step: number) => Promise<boolean>,
): Promise<number> {
  if (run.isQuick) return (await attempt(first + Math.floor(run.random() * (last - first + 1)))) ? 1 : 0;
  let kills = 0;
  for (let step = 1 + Math.floor(run.random() * stride); await attempt(step); step += stride) kills += 1;
  return kills;
}

/** A file of the newest schema with a list, closed. */
async function filledFile(run: Run): Promise<string> {
  const file = join(run.folder, "filled.db");
  const server = await serve(run, { DATABASE_URL: `file:${file}` });
  await post(
    server.port,
    Array.from({ length: 20 }, (_, index) => add(newId(), `https://feeds.example/${index}`)),
  );
  await stop(server, "SIGTERM");
  return file;
}

/** A database of the oldest schema that can be migrated. */
const oldSchema = (engine: "sqlite" | "postgres") =>
  readFileSync(new URL(`../test/fixtures/schemas/${engine}-${BASE_VERSION}.sql`, import.meta.url), "utf8");

/** From an empty file, and from the oldest schema. */
async function migrationsOfFiles(run: Run): Promise<Findings> {
  const old = join(run.folder, "old.db");
  const database = new DatabaseSync(old);
  database.exec(oldSchema("sqlite"));
  database.close();
  const expected = (await sqliteTarget(old).inspect()).ids;
  const violations: string[] = [];
  let kills = 0;
  for (const from of run.isQuick ? [old] : [undefined, old]) {
    const target = join(run.folder, from === undefined ? "new.db" : "migrated.db");
    kills += await killAtEveryStep(run, { quick: [6, 11], stride: 1 }, async (step) => {
      for (const rest of ["", "-wal", "-shm", "-journal"]) rmSync(target + rest, { force: true });
      if (from !== undefined) copyFileSync(from, target);
      const db = sqliteTarget(target);
      const isKilled = await killWhileStarting(run, db, step);
      violations.push(...(await startAgain(run, db, from === undefined ? [] : expected)));
      return isKilled;
    });
  }
  return { figures: `SQLite: ${kills} migrations killed, ${violations.length} not whole`, violations };
}

async function migrationsOnPostgres(run: Run, server: PostgresServer): Promise<Findings> {
  const violations: string[] = [];
  let kills = 0;
  for (const isOld of run.isQuick ? [false] : [false, true]) {
    kills += await killAtEveryStep(run, { quick: [2, 8], stride: 1 }, async (step) => {
      const db = await postgresTarget(server);
      if (isOld) await server.query(oldSchema("postgres"), new URL(db.url).pathname.slice(1));
      const expected = isOld ? (await db.inspect()).ids : [];
      const isKilled = await killWhileStarting(run, db, step);
      violations.push(...(await startAgain(run, db, expected)));
      return isKilled;
    });
  }
  return { figures: `PostgreSQL: ${kills} migrations killed, ${violations.length} not whole`, violations };
}

/** False when there is no such step, so the server has started. */
async function killWhileStarting(run: Run, db: TargetDb, step: number): Promise<boolean> {
  const faults = createFaults(run);
  faults.arm(step, "kill-before");
  const started = await serve(run, { DATABASE_URL: db.url, ...faults.settings }).catch(() => undefined);
  if (started !== undefined) await stop(started);
  return started === undefined;
}

/** A start that fails at any step ends with a message for people, and the next start works. */
async function failedStarts(run: Run, file: string): Promise<Findings> {
  const violations: string[] = [];
  const db = sqliteTarget(join(run.folder, "failing.db"));
  copyFileSync(file, join(run.folder, "failing.db"));
  const expected = (await db.inspect()).ids;
  const starts = await killAtEveryStep(run, { quick: [1, 36], stride: 1 }, async (step) => {
    const faults = createFaults(run);
    faults.arm(step, "error-before");
    try {
      const server = await serve(run, { DATABASE_URL: db.url, ...faults.settings });
      await stop(server);
      if (faults.seen() !== undefined) violations.push(`it started though step ${step} failed (${faults.seen()})`);
      return false;
    } catch (error) {
      const { message } = error as Error;
      if (!/ended with 1: earmark: [A-Z].*\.\n$/.test(message))
        violations.push(`step ${step} (${faults.seen()}): ${message}`);
      return true;
    }
  });
  violations.push(...(await startAgain(run, db, expected)));
  return { figures: `${starts} starts failed, ${violations.length} without a message`, violations };
}

/** What is wrong after an undisturbed start: list, accounts, tables. */
async function startAgain(run: Run, db: TargetDb, expected: readonly string[]): Promise<string[]> {
  const server = await serve(run, { DATABASE_URL: db.url, EARMARK_ACCOUNTS: "true" }).catch((error: Error) => error);
  if (server instanceof Error) return [`${db.engine}, started again after a kill: ${server.message}`];
  const ready = await call(server.port, "GET", "/readyz");
  const rows = await db.inspect();
  await stop(server);
  const wrong = findInconsistencies(rows);
  if (ready?.status !== 200) wrong.push(`/readyz returns ${ready?.status}`);
  if (rows.ids.join() !== expected.join()) wrong.push(`the list has ${rows.ids.length} items, not ${expected.length}`);
  return wrong.map((what) => `${db.engine}, started again after a kill: ${what}`);
}

/** A killed backup leaves no file or a complete one, and the next backup works. */
async function backups(run: Run, file: string): Promise<Findings> {
  const copy = join(run.folder, "backups", "copy.db");
  const violations: string[] = [];
  const expected = (await sqliteTarget(file).inspect()).ids.join();
  const faults = createFaults(run);
  const backUp = (settings: Readonly<Record<string, string>>) =>
    runProgram(["backup", copy], { DATABASE_URL: `file:${file}`, ...settings });
  mkdirSync(dirname(copy));
  const kills = await killAtEveryStep(run, { quick: [4, 8], stride: 1 }, async (step) => {
    faults.arm(step, "kill-before");
    const isKilled = (await backUp(faults.settings)).code === "SIGKILL";
    if (existsSync(copy) && (await sqliteTarget(copy).inspect()).ids.join() !== expected)
      violations.push(`backup killed at step ${step}: a file that is not whole has the name of a backup`);
    rmSync(copy, { force: true });
    const { code, stderr } = await backUp({});
    const left = readdirSync(dirname(copy)).filter((name) => name !== basename(copy));
    if (code !== 0 || (await sqliteTarget(copy).inspect()).ids.join() !== expected)
      violations.push(`backup after one killed at step ${step}: ${code} ${stderr}`);
    if (left.length > 0) violations.push(`backup after one killed at step ${step}: ${left} was left`);
    rmSync(copy, { force: true });
    return isKilled;
  });
  return { figures: `${kills} backups killed, ${violations.length} violations`, violations };
}

/** A killed restore leaves the old database or the new one, and the next restore works. */
async function restores(run: Run, file: string): Promise<Findings> {
  const folder = join(run.folder, "restores");
  const [backup, target] = [join(run.folder, "backup.db"), join(folder, "earmark.db")];
  const violations: string[] = [];
  const [old, restored] = [[], (await sqliteTarget(file).inspect()).ids];
  const taken = await runProgram(["backup", backup], { DATABASE_URL: `file:${file}` });
  if (taken.code !== 0) return { figures: "no backup", violations: [taken.stderr] };
  const faults = createFaults(run);
  const db = sqliteTarget(target);
  const restore = (settings: Readonly<Record<string, string>>) =>
    runProgram(["restore", backup, "--yes"], { DATABASE_URL: db.url, ...settings });
  const kills = await killAtEveryStep(run, { quick: [30, 60], stride: 1 }, async (step) => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    await runProgram(["migrate"], { DATABASE_URL: db.url });
    faults.arm(step, "kill-before");
    const isKilled = (await restore(faults.settings)).code === "SIGKILL";
    const found = (await db.inspect()).ids.join();
    if (found !== old.join() && found !== restored.join())
      violations.push(`restore killed at step ${step}: neither the old database nor the new one is there`);
    violations.push(...(await startAgain(run, db, found === "" ? old : restored)));
    const { code, stderr } = await restore({});
    if (code !== 0 || (await db.inspect()).ids.join() !== restored.join())
      violations.push(`restore after one killed at step ${step}: ${code} ${stderr}`);
    return isKilled;
  });
  return { figures: `${kills} restores killed, ${violations.length} violations`, violations };
}

/** A killed import has stored complete transactions only, and can be repeated. */
async function imports(run: Run, defect?: Defect): Promise<Findings> {
  const violations: string[] = [];
  const outlines = Array.from(
    { length: IMPORTED },
    (_, index) => `<outline type="rss" text="x" xmlUrl="https://feeds.example/imported/${index}"/>`,
  );
  const opml = `<opml version="2.0"><body>${outlines.join("")}</body></opml>`;
  let imports = 0;
  const kills = await killAtEveryStep(run, { quick: [30, 90], stride: 25 }, async (step) => {
    imports += 1;
    const db = sqliteTarget(join(run.folder, `import-${imports}.db`));
    const faults = createFaults(run, defect);
    const server = await serve(run, { DATABASE_URL: db.url, ...faults.settings });
    faults.arm(step, "kill-before");
    const response = await call(server.port, "POST", "/v1/imports", opml, "text/x-opml");
    const isKilled = response === undefined;
    if (!isKilled) server.child.kill("SIGKILL");
    await server.ended;
    faults.disarm();
    const again = await serve(run, { DATABASE_URL: db.url });
    const { length } = await readList(again.port).catch(() => ({ length: -1 }));
    if (![0, AT_A_TIME, IMPORTED].includes(length))
      violations.push(`import killed at step ${step}: ${length} are there`);
    violations.push(...findInconsistencies(await db.inspect()).map((what) => `import killed at step ${step}: ${what}`));
    const repeated = await call(again.port, "POST", "/v1/imports", opml, "text/x-opml");
    const { added, already_subscribed: known } = repeated?.json?.meta?.counts ?? {};
    if (added !== IMPORTED - length || known !== length)
      violations.push(`import after one killed at step ${step}: ${added} were added, ${known} known`);
    await stop(again);
    return isKilled;
  });
  return { figures: `${kills} imports killed, ${violations.length} violations`, violations };
}
