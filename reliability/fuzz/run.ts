import { Worker } from "node:worker_threads";
import type { Progress, Task } from "./worker.ts";

export interface Result extends Progress {
  readonly seconds: number;
}

/** More than this a reader must not hold, whatever it is given. */
const MEMORY_MB = 512;
/** Nothing takes a reader so long, even on a busy machine. */
const PATIENCE_MS = 60_000;
const LONGEST = 4 * 1024 * 1024;

/** Tries one reader in a thread of its own, which may hang or run out of memory: that is a finding too. */
export async function fuzz(task: Omit<Task, "current">, patienceMs = PATIENCE_MS): Promise<Result> {
  const current = new SharedArrayBuffer(4 + 2 * LONGEST);
  const started = performance.now();
  const worker = new Worker(new URL("worker.ts", import.meta.url), {
    workerData: { ...task, current } satisfies Task,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  });
  let last: Progress = { runs: 0, corpus: 0 };
  try {
    await new Promise<void>((resolve) => {
      const find = (words: string) => {
        last = { ...last, finding: { input: textOf(current), words } };
        resolve();
      };
      const watch = setTimeout(() => find("takes for ever"), patienceMs);
      worker.on("message", (progress: Progress) => {
        last = progress;
        watch.refresh();
        if (progress.finding !== undefined) resolve();
      });
      worker.on("error", (error) => find(`ended its thread: ${error.message}`));
      worker.on("exit", () => {
        clearTimeout(watch);
        resolve();
      });
    });
  } finally {
    await worker.terminate();
  }
  return { ...last, seconds: (performance.now() - started) / 1_000 };
}

function textOf(current: SharedArrayBuffer): string {
  const [length = 0] = new Uint32Array(current, 0, 1);
  return Array.from(new Uint16Array(current, 4, length), (code) => String.fromCharCode(code)).join("");
}
