import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** What a process uses, as the system tells it. NaN where it does not tell. */

/** User and system time: fields 14 and 15 of the line. */
export function readCpuSeconds(pid: number): number {
  return sumOfTimes(pid, [14, 15]);
}

/** With its children, also those that have ended (fields 16 and 17). */
export function readCpuSecondsOfAll(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").filter(Boolean);
    // One that has just ended is counted with its parent's.
    const living = children.reduce((sum, child) => sum + (readCpuSeconds(Number(child)) || 0), 0);
    return sumOfTimes(pid, [14, 15, 16, 17]) + living;
  } catch {
    return Number.NaN;
  }
}

/** In hundredths of a second; the second field, a name in brackets, may hold blanks. */
function sumOfTimes(pid: number, fields: readonly number[]): number {
  try {
    const rest = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
    return fields.reduce((sum, field) => sum + Number(rest[field - 3]), 0) / 100;
  } catch {
    return Number.NaN;
  }
}

/** Memory that is really there, of all threads. */
export function readResidentMiB(pid: number): number {
  const resident = readFromStatus(pid, "VmRSS");
  if (!Number.isNaN(resident)) return resident;
  const { stdout } = spawnSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" });
  return Number.parseInt(stdout ?? "", 10) / 1024;
}

/** The most that it ever was. */
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
