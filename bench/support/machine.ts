import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { summarize } from "./report.ts";

/** The conditions of a run. `folder` is on the disk under test. */
export function describeMachine(folder: string, postgresql: string | undefined): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const versions = {
    earmark: version,
    commit: ask("git", ["rev-parse", "--short", "HEAD"]),
    node: process.versions.node,
    sqlite: process.versions["sqlite"],
    postgresql,
  };
  const named = Object.entries(versions).flatMap(([name, of]) => (of === undefined ? [] : [`${name} ${of}`]));
  const memoryGiB = Math.round(totalmem() / 2 ** 30);
  return [
    `Medians of alternating rounds (min..max), ${new Date().toISOString().slice(0, 10)}.`,
    `${availableParallelism()} cores (${cpuName()}) and ${memoryGiB} GiB, shared by servers, database and load generator;`,
    `fsync takes ${measureSyncMs(join(folder, "sync")).toFixed(2)} ms;`,
    `load average before the run: ${(loadavg()[0] ?? 0).toFixed(2)}.`,
    `Versions: ${named.join(", ")}.`,
  ].join(" ");
}

/** Some systems report it only to other programs. */
function cpuName(): string {
  const name = cpus()[0]?.model ?? "";
  if (name !== "" && name !== "unknown") return name;
  return /^Model name:\s*(.*)$/m.exec(ask("lscpu", []) ?? "")?.[1] ?? "unknown";
}

function ask(command: string, args: readonly string[]): string | undefined {
  try {
    const cwd = new URL("../..", import.meta.url);
    return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}

/** The median duration of an fsync of 4 KiB. */
function measureSyncMs(path: string): number {
  const file = openSync(path, "w");
  const page = Buffer.alloc(4_096, 1);
  const times = Array.from({ length: 20 }, () => {
    const started = performance.now();
    writeSync(file, page);
    fsyncSync(file);
    return performance.now() - started;
  });
  closeSync(file);
  return summarize(times).median;
}

/** Resource usage of a process as the operating system reports it; NaN where it does not. */

/** User and system time: fields 14 and 15. */
export function readCpuSeconds(pid: number): number {
  return sumOfTimes(pid, [14, 15]);
}

/** Including child processes, also those that have exited (fields 16 and 17). */
export function readCpuSecondsOfAll(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean);
    // A child that has just exited is counted with its parent.
    const living = children.reduce((sum, child) => sum + (readCpuSeconds(Number(child)) || 0), 0);
    return sumOfTimes(pid, [14, 15, 16, 17]) + living;
  } catch {
    return Number.NaN;
  }
}

/** In hundredths of a second. The second field, a name in parentheses, may contain spaces. */
function sumOfTimes(pid: number, fields: readonly number[]): number {
  try {
    const rest = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
    return fields.reduce((sum, field) => sum + Number(rest[field - 3]), 0) / 100;
  } catch {
    return Number.NaN;
  }
}

/** Resident memory of all threads. */
export function readResidentMiB(pid: number): number {
  const resident = readFromStatus(pid, "VmRSS");
  if (!Number.isNaN(resident)) return resident;
  const { stdout } = spawnSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" });
  return Number.parseInt(stdout ?? "", 10) / 1024;
}

/** Peak resident memory. */
export function readPeakMiB(pid: number): number {
  return readFromStatus(pid, "VmHWM");
}

function readFromStatus(pid: number, field: string): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    return Number(new RegExp(`^${field}:\\s*(\\d+) kB`, "m").exec(status)?.[1] ?? Number.NaN) / 1024;
  } catch {
    return Number.NaN;
  }
}
