import { appendFileSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startPostgres } from "../test/support/postgres.ts";
import type { RunningServer } from "../test/support/process.ts";
import { add, newId } from "../test/support/server.ts";
import { type Defect, recording } from "./faults/settings.ts";
import { addAll } from "./support/api.ts";
import { type Findings, type ReliabilityTest, type Run, serve } from "./support/run.ts";
import { runAll } from "./support/run-all.ts";
import { isStraceHere, readCalls, serveTraced } from "./support/strace.ts";

const REQUESTS = 200;
const QUICK_REQUESTS = 25;
const BEGUN = "begun";

export const POWER: ReliabilityTest = {
  name: "power loss",
  promises: ["P1"],
  async check(run) {
    const url = `file:${join(run.folder, "earmark.db")}`;
    const server = await startPostgres([], run.onEnd);
    return runAll([
      watchStatements(run, "SQLite", url),
      watchStatements(run, "PostgreSQL", await server.database()),
      watchSystemCalls(run, join(run.folder, "traced", "earmark.db")),
    ]);
  },
  control: {
    name: "synchronous=NORMAL; synchronous_commit=off",
    async check(run) {
      const server = await startPostgres(["synchronous_commit=off"], run.onEnd);
      const parts = [
        watchStatements(run, "SQLite", `file:${join(run.folder, "earmark.db")}`, "weak sync"),
        watchStatements(run, "PostgreSQL", await server.database()),
        ...(isStraceHere() ? [watchSystemCalls(run, join(run.folder, "traced", "earmark.db"), "weak sync")] : []),
      ];
      // Each of these must be detected.
      for (const { figures, violations } of await Promise.all(parts))
        if (violations.length === 0) return { figures, violations };
      return runAll(parts);
    },
  },
};

let traces = 0;

/** By statements, on any machine: the commit has returned before the first byte of the response, on a connection that syncs. */
export async function watchStatements(run: Run, engine: string, url: string, defect?: Defect): Promise<Findings> {
  traces += 1;
  const trace = join(run.folder, `statements-${traces}`);
  const server = await serve(run, { DATABASE_URL: url, ...recording(trace, defect) });
  // Commits during the start belong to no request.
  appendFileSync(trace, `${BEGUN}\n`);
  const count = await requestOneByOne(run, server);
  const violations = unsafeResponses(readFileSync(trace, "utf8"), count);
  return { figures: `${engine}: ${count} requests by their statements, ${violations.length} unsafe`, violations };
}

/** Violations in a trace of sequential requests: each needs its own commit. */
export function unsafeResponses(trace: string, requests: number): string[] {
  const violations: string[] = [];
  const [, work = ""] = trace.split(`${BEGUN}\n`);
  let [commits, responses] = [0, 0];
  for (const line of work.split("\n")) {
    const [what, word = ""] = line.split(" ");
    if (what === "committed") {
      commits += 1;
      if (!/^(2|3|on|local|remote_apply|remote_write)$/.test(word))
        violations.push(`response ${commits} rests on a commit that does not sync (${word})`);
    }
    if (what !== "answered") continue;
    responses += 1;
    if (commits < responses) violations.push(`response ${responses} began before its commit had returned`);
  }
  if (responses !== requests) violations.push(`${responses} of ${requests} responses were seen`);
  return violations;
}

/** By system calls, if strace is available: the log is synced after its last write and before the response. */
export async function watchSystemCalls(run: Run, file: string, defect?: Defect): Promise<Findings> {
  if (!isStraceHere()) return { figures: "no strace here, so not by system calls", violations: [] };
  const trace = `${dirname(file)}-calls`;
  const settings = {
    DATABASE_URL: `file:${file}`,
    ...(defect === undefined ? {} : recording(`${trace}-words`, defect)),
  };
  const calls = "trace=pwrite64,fdatasync,fsync,read,recvfrom,write,writev,sendto,sendmsg";
  const server = await serveTraced(run, settings, trace, ["-e", calls]);
  const count = await requestOneByOne(run, server);
  server.signal("SIGTERM");
  await server.ended;
  const violations = unsyncedResponses(readFileSync(trace, "utf8"), dirname(file), count);
  return { figures: `${count} by their system calls, ${violations.length} unsafe`, violations };
}

/** Violations in a strace log. The folder must be synced as well, or a new log file could be lost. */
export function unsyncedResponses(trace: string, folder: string, requests: number): string[] {
  const violations: string[] = [];
  let [isWritten, isSynced, isFolderSynced, responses] = [false, false, false, 0];
  for (const { name, given, moment, result } of readCalls(trace)) {
    const isSync = name === "fdatasync" || name === "fsync";
    if (name === "pwrite64" && given.includes("-wal>")) [isWritten, isSynced] = [true, false];
    if (isSync && moment === "ends" && result === "0") {
      if (given.includes("-wal>")) isSynced = true;
      if (given.includes(`<${folder}>`)) isFolderSynced = true;
    }
    // Writes before the request belong to something else.
    if (given.includes('"POST /v1/')) [isWritten, isSynced] = [false, false];
    if (moment === "ends" || !given.includes('"HTTP/1.1 ')) continue;
    responses += 1;
    if (!isWritten) violations.push(`response ${responses} began before anything of it was written`);
    else if (!isSynced) violations.push(`response ${responses} began before the log was synced`);
    else if (!isFolderSynced) violations.push(`response ${responses} began before the folder was synced`);
    [isWritten, isSynced] = [false, false];
  }
  if (responses !== requests) violations.push(`${responses} of ${requests} responses were seen`);
  return violations;
}

/** Sequentially, so that every write belongs to the next response. */
async function requestOneByOne(run: Run, server: RunningServer): Promise<number> {
  const count = run.isQuick ? QUICK_REQUESTS : REQUESTS;
  for (let request = 0; request < count; request += 1)
    await addAll(server.port, [add(newId(), `https://feeds.example/${request}`)]);
  return count;
}
