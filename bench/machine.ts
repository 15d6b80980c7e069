import { execFileSync } from "node:child_process";
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { join } from "node:path";
import { summarize } from "./figures.ts";

/** The conditions of a run. `folder` is on the disk under test. */
export function describeMachine(folder: string, postgresql: string | undefined): string {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
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
    const cwd = new URL("..", import.meta.url);
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
