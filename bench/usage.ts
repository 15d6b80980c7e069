import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

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
