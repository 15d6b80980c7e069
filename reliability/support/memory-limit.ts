import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { SERVE } from "../../test/support/process.ts";
import type { Run } from "./run.ts";

const V1 = "/sys/fs/cgroup/memory";
const V2 = "/sys/fs/cgroup";
/** Limits of memory, and of memory and swap or of swap alone; the latter exist only with swap accounting. */
const FILES = {
  v1: ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
  v2: ["memory.max", "memory.swap.max"],
} as const;

/** The command of a server in a control group of this size, or the reason why there can be none. */
export function limitMemory(
  run: Run,
  bytes: number,
): { readonly command: readonly string[] } | { readonly reason: string } {
  const version = existsSync(`${V1}/${FILES.v1[0]}`) ? "v1" : "v2";
  const group = `${version === "v1" ? V1 : V2}/earmark-${process.pid}`;
  const [memory, swap] = FILES[version];
  try {
    mkdirSync(group);
    run.onEnd(() => removeGroup(group));
    writeFileSync(`${group}/${memory}`, String(bytes));
    if (readdirSync(group).includes(swap)) writeFileSync(`${group}/${swap}`, String(version === "v1" ? bytes : 0));
  } catch (error) {
    return { reason: `cannot create a control group (${(error as NodeJS.ErrnoException).code ?? error})` };
  }
  return { command: ["sh", "-c", `echo $$ > ${group}/cgroup.procs && exec "$@"`, "sh", ...SERVE] };
}

/** A group can only be removed after its last process has exited. */
async function removeGroup(group: string): Promise<void> {
  for (let left = 50; left > 0 && existsSync(group); left -= 1) {
    try {
      rmdirSync(group);
    } catch {
      await sleep(100);
    }
  }
}
