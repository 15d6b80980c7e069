import { execFileSync } from "node:child_process";
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { arch, availableParallelism, cpus, loadavg, platform, release, totalmem } from "node:os";
import { join } from "node:path";
import { type Figure, summarize } from "./figures.ts";

/** The conditions of a run. */
export interface Machine {
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  /** Load average before the run. */
  readonly loadBefore: number;
  /** Duration of an fsync of 4 KiB. */
  readonly syncMs: Figure;
  readonly versions: Readonly<Record<string, string | undefined>>;
}

/** `folder` is on the disk under test. */
export function describeMachine(folder: string): Machine {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return {
    date: new Date().toISOString(),
    cpu: cpuName(),
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()} ${arch()}`,
    loadBefore: loadavg()[0] ?? 0,
    syncMs: measureSync(join(folder, "sync")),
    versions: {
      earmark: version,
      commit: ask("git", ["rev-parse", "--short", "HEAD"]),
      node: process.versions.node,
      sqlite: process.versions["sqlite"],
    },
  };
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

function measureSync(path: string): Figure {
  const file = openSync(path, "w");
  const page = Buffer.alloc(4_096, 1);
  const times = Array.from({ length: 20 }, () => {
    const started = performance.now();
    writeSync(file, page);
    fsyncSync(file);
    return performance.now() - started;
  });
  closeSync(file);
  return summarize(times);
}
