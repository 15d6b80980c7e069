import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startPostgres } from "../test/support/postgres.ts";
import { query } from "../test/support/postgres-cluster.ts";
import { add, newId } from "../test/support/server.ts";
import { addAll, post } from "./support/api.ts";
import { type Findings, type ReliabilityTest, type Run, replacingSql, runAll, serve, stop } from "./support/run.ts";
import { isStraceHere, readCalls, serveTraced } from "./support/strace.ts";

const REQUESTS = 200;
const QUICK_REQUESTS = 25;
const REQUESTS_AROUND_FAILURE = 8;
const CALLS = "trace=pwrite64,fdatasync,fsync,close,read,recvfrom,write,writev,sendto,sendmsg";
/** Which sync of each thread fails. */
const FAILED_SYNCS = [1, 2, 3, 4, 5, 6, 7, 8];
const QUICK_FAILED_SYNCS = [3, 4];
/** A server that says that it syncs every commit, but does not. */
const WEAK = replacingSql({ "synchronous = full": "synchronous = normal", "^pragma synchronous$": "select 2" });

export const power: ReliabilityTest = {
  name: "power loss",
  promises: ["P1"],
  async check(run) {
    const postgres = await startPostgres([], run.onEnd);
    return runAll([watchFile(run), watchPostgres(run, await postgres.database()), watchFailedSyncs(run)]);
  },
  control: {
    name: "synchronous=NORMAL; synchronous_commit=off",
    async check(run) {
      const postgres = await startPostgres(["synchronous_commit=off"], run.onEnd);
      const parts = [watchPostgres(run, await postgres.database())];
      if (isStraceHere()) parts.push(watchFile(run, { NODE_OPTIONS: WEAK }));
      // Each of these must be detected.
      for (const found of await Promise.all(parts)) if (found.violations.length === 0) return found;
      return runAll(parts);
    },
  },
};

async function watchFile(run: Run, settings: Readonly<Record<string, string>> = {}): Promise<Findings> {
  const folder = join(run.folder, "traced");
  mkdirSync(folder);
  const traced = await trace(run, { DATABASE_URL: `file:${folder}/earmark.db`, ...settings });
  return report("SQLite", traced, (text) => unsyncedResponses(text, folder));
}

/** PostgreSQL syncs; Earmark waits for the commit, on connections that do not turn this off. */
async function watchPostgres(run: Run, url: string): Promise<Findings> {
  const [row] = await query(url, "show synchronous_commit");
  const level = String(row?.["synchronous_commit"]);
  const found = report("PostgreSQL", await trace(run, { DATABASE_URL: url }), uncommittedResponses);
  return level === "on" ? found : { ...found, violations: [...found.violations, `synchronous_commit is ${level}`] };
}

/** The system calls of a server that gets one request after the other; undefined without strace. */
async function trace(run: Run, settings: Readonly<Record<string, string>>): Promise<string | undefined> {
  if (!isStraceHere()) return undefined;
  const file = join(run.folder, `calls-${newId()}`);
  const server = await serveTraced(run, settings, file, ["-s", "2000", "-e", CALLS]);
  for (let request = 0; request < (run.isQuick ? QUICK_REQUESTS : REQUESTS); request += 1)
    await addAll(server.port, [add(newId(), `https://feeds.example/${request}`)]);
  server.signal("SIGTERM");
  await server.ended;
  return readFileSync(file, "utf8");
}

/** After a failed sync, no response may rest on the same open file. */
async function watchFailedSyncs(run: Run): Promise<Findings> {
  if (!isStraceHere()) return report("failed syncs", undefined, wronglyTrusted);
  const created = join(run.folder, "created.db");
  await stop(await serve(run, { DATABASE_URL: `file:${created}` }), "SIGTERM");
  const violations: string[] = [];
  let failures = 0;
  for (const sync of run.isQuick ? QUICK_FAILED_SYNCS : FAILED_SYNCS) {
    const folder = join(run.folder, `failed-sync-${sync}`);
    mkdirSync(folder);
    copyFileSync(created, `${folder}/earmark.db`);
    const inject = ["-e", CALLS, "-e", `inject=fsync,fdatasync:error=EIO:when=${sync}`];
    try {
      const server = await serveTraced(run, { DATABASE_URL: `file:${folder}/earmark.db` }, `${folder}/calls`, inject);
      for (let request = 0; request < REQUESTS_AROUND_FAILURE; request += 1)
        await post(server.port, [add(newId(), `https://feeds.example/${request}`)]);
      server.signal("SIGTERM");
      await server.ended;
    } catch (error) {
      // A failure during the start ends the server with a message.
      if (!/ended with 1: earmark: [A-Z]/.test((error as Error).message)) violations.push(String(error));
    }
    const traced = readFileSync(`${folder}/calls`, "utf8");
    if (/-wal>.*\(INJECTED\)/.test(traced)) failures += 1;
    violations.push(...wronglyTrusted(traced).violations.map((what) => `sync ${sync} failed: ${what}`));
  }
  if (failures === 0) violations.push("no sync of the log failed");
  return { figures: `${failures} failed syncs of the log, ${violations.length} trusted afterwards`, violations };
}

interface Responses {
  readonly count: number;
  readonly violations: readonly string[];
}

function report(engine: string, traced: string | undefined, check: (trace: string) => Responses): Findings {
  if (traced === undefined) return { figures: `${engine}: not checked, strace is not available`, violations: [] };
  const { count, violations } = check(traced);
  const all = count === 0 ? ["no response was seen"] : violations;
  return { figures: `${engine}: ${count} responses, ${violations.length} unsafe`, violations: all };
}

/** The log must be synced after its last write and before the response, and the folder too, or a new log could be lost. */
function unsyncedResponses(traced: string, folder: string): Responses {
  const violations: string[] = [];
  let [isWritten, isSynced, isFolderSynced, count] = [false, false, false, 0];
  for (const { name, given, moment, result } of readCalls(traced)) {
    const isSync = name === "fdatasync" || name === "fsync";
    if (name === "pwrite64" && given.includes("-wal>")) [isWritten, isSynced] = [true, false];
    if (isSync && moment === "ends" && result === "0") {
      if (given.includes("-wal>")) isSynced = true;
      if (given.includes(`<${folder}>`)) isFolderSynced = true;
    }
    // Writes before the request belong to something else.
    if (given.includes('"POST /v1/')) [isWritten, isSynced] = [false, false];
    if (moment === "ends" || !given.includes('"HTTP/1.1 ')) continue;
    count += 1;
    if (!isWritten) violations.push(`response ${count} began before anything of it was written`);
    else if (!isSynced) violations.push(`response ${count} began before the log was synced`);
    else if (!isFolderSynced) violations.push(`response ${count} began before the folder was synced`);
    [isWritten, isSynced] = [false, false];
  }
  return { count, violations };
}

/**
 * After a failed fsync the kernel considers the pages clean, and the next fsync succeeds without writing them. So the log
 * must be closed before anything else is confirmed.
 */
function wronglyTrusted(traced: string): Responses {
  const violations: string[] = [];
  let failed: string | undefined;
  let count = 0;
  for (const { name, given, moment, result } of readCalls(traced)) {
    const [, handle = "", path = ""] = /^(\d+)<([^>]*)>/.exec(given) ?? [];
    const isSync = name === "fsync" || name === "fdatasync";
    if (isSync && moment === "ends" && path.endsWith("-wal") && result !== "0") failed = handle;
    if (name === "close" && handle === failed) failed = undefined;
    if (moment === "ends" || !given.includes('"HTTP/1.1 200')) continue;
    count += 1;
    if (failed !== undefined) violations.push(`response ${count} rests on a log whose sync had failed`);
  }
  return { count, violations };
}

/** Between a request and its response, PostgreSQL must have confirmed a commit. */
function uncommittedResponses(traced: string): Responses {
  const violations: string[] = [];
  let [isCommitted, count] = [false, 0];
  for (const { given, moment } of readCalls(traced)) {
    if (given.includes('"POST /v1/')) isCommitted = false;
    if (moment === "ends" && given.includes("COMMIT\\0")) isCommitted = true;
    if (moment === "ends" || !given.includes('"HTTP/1.1 ')) continue;
    count += 1;
    if (!isCommitted) violations.push(`response ${count} began before its commit had returned`);
    isCommitted = false;
  }
  return { count, violations };
}
