import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withDefect } from "./faults/settings.ts";
import { readList } from "./support/api.ts";
import { Ledger } from "./support/ledger.ts";
import { type Findings, type Run, serve, stop } from "./support/run.ts";
import { isStraceHere, readCalls, serveTraced } from "./support/strace.ts";
import { findInconsistencies, sqliteTarget } from "./support/target-db.ts";

const REQUESTS = 8;
const SEEN = "trace=pwrite64,fsync,fdatasync,ftruncate,openat,close,write,writev";

/** What fails, and the stride between failing calls. */
const FAILURES = [
  ["fsync,fdatasync:error=EIO", 1],
  ["pwrite64:error=ENOSPC", 6],
  ["pwrite64:error=EIO", 6],
  ["ftruncate:error=EIO", 1],
  ["fsync,fdatasync:signal=KILL", 1],
  ["pwrite64:signal=KILL", 6],
] as const;

/** In the short run one sync fails. */
const QUICK_CALLS = 8;

/** Makes system calls of the server fail or kill it, if strace is available. */
export async function failSystemCalls(run: Run): Promise<Findings> {
  if (!isStraceHere()) return { figures: "no strace here, so not by system calls", violations: [] };
  const empty = join(run.folder, "empty.db");
  const server = await serve(run, { DATABASE_URL: `file:${empty}` });
  await stop(server, "SIGTERM");
  const violations: string[] = [];
  let [faults, acknowledged, refused] = [0, 0, 0];
  for (const [inject, stride] of run.isQuick ? FAILURES.slice(0, 1) : FAILURES) {
    const first = 1 + Math.floor(run.random() * (run.isQuick ? QUICK_CALLS : stride));
    for (let at = first; ; at += run.isQuick ? QUICK_CALLS : stride) {
      run.log(`${inject}, call ${at}`);
      const file = join(run.folder, `${inject}-${at}.db`);
      copyFileSync(empty, file);
      // Half of the servers are killed at once, before later writes can overwrite what was refused.
      const found = await workWithFailure(run, file, `${inject}:when=${at}`, at % 2 === 0);
      if (!found.isFelt) break;
      faults += 1;
      acknowledged += found.ledger.acknowledged.size;
      refused += found.ledger.refusals;
      violations.push(...found.violations.map((what) => `${inject}, call ${at}: ${what}`));
      if (run.isQuick) break;
    }
  }
  return {
    figures: `${faults} system calls failed, ${refused} × 503, ${acknowledged} acknowledged, ${violations.length} violations`,
    violations,
  };
}

/** Checkpoints constantly, so that checkpoints fail too. */
async function workWithFailure(
  run: Run,
  file: string,
  inject: string,
  endsWithRefusal: boolean,
): Promise<{ isFelt: boolean; ledger: Ledger; violations: string[] }> {
  const db = sqliteTarget(file);
  const trace = `${file}-calls`;
  const ledger = new Ledger();
  const violations: string[] = [];
  const settings = { DATABASE_URL: db.url, ...withDefect("small log") };
  try {
    const server = await serveTraced(run, settings, trace, ["-e", SEEN, "-e", `inject=${inject}`]);
    for (let request = 0; request < REQUESTS && !(endsWithRefusal && ledger.refusals > 0); request += 1)
      await ledger.sendBatch(server.port, 2);
    if (!inject.includes("signal")) violations.push(...ledger.compare(await readList(server.port)));
    server.signal("SIGKILL");
    await server.ended;
  } catch (error) {
    // A failure during the start is reported or ends the server.
    if (!/ended with (1: earmark: [A-Z]|SIGKILL|137)/.test((error as Error).message)) violations.push(String(error));
  }
  const calls = readFileSync(trace, "utf8");
  const again = await serve(run, { DATABASE_URL: db.url });
  violations.push(...findInconsistencies(await db.inspect()), ...ledger.compare(await readList(again.port)));
  violations.push(...ledger.wrongResponses, ...misplacedTrust(calls));
  await stop(again);
  return { isFelt: isHit(calls, inject), ledger, violations };
}

/** strace kills before our own kill, which comes after all responses. */
function isHit(calls: string, inject: string): boolean {
  if (!inject.includes("signal")) return calls.includes("(INJECTED)");
  return calls.split("HTTP/1.1 200").length - 1 < REQUESTS;
}

/**
 * After a failed fsync the kernel considers the pages clean, and the next fsync succeeds without writing them. So no
 * response may depend on such a log, and the log may only be restarted after the database file has every page again.
 */
export function misplacedTrust(trace: string): string[] {
  const violations: string[] = [];
  let unsynced = false;
  let failed: string | undefined;
  const pages = { written: new Set<string>(), lost: new Set<string>() };
  for (const { name, given, moment, result } of readCalls(trace)) {
    const [, handle = "", path = ""] = /^(\d+)<([^>]*)>/.exec(given) ?? [];
    const [isLog, isFile] = [path.endsWith("-wal"), path.endsWith(".db")];
    const isSync = name === "fsync" || name === "fdatasync";
    const at = /, (\d+)(?:\) | <unfinished)/.exec(given)?.[1] ?? "";
    if (isLog && name === "pwrite64" && moment === "begins") {
      if (at === "0" && pages.lost.size > 0)
        violations.push("the log was restarted although the file lacks pages of it");
      unsynced = true;
    }
    if (isFile && name === "pwrite64" && moment === "ends") {
      pages.written.add(at);
      pages.lost.delete(at);
    }
    if (isSync && moment === "ends") {
      const isDone = result === "0";
      if (isLog && !isDone && unsynced) failed = handle;
      if (isLog && isDone) unsynced = false;
      if (isFile && !isDone) pages.lost = new Set(pages.written);
      if (isFile && isDone) pages.written.clear();
    }
    if (name === "close" && handle === failed) failed = undefined;
    if (moment === "begins" && given.includes('"HTTP/1.1 200') && failed !== undefined)
      violations.push("a response rests on a log whose sync had failed");
  }
  return violations;
}
