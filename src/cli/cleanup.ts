import { setTimeout as sleep } from "node:timers/promises";
import { inOneProcess, type Leases } from "../podcasts/leases.ts";

interface CleanupOptions {
  /** By name, in the order in which they run. */
  readonly steps: Readonly<Record<string, () => Promise<void>>>;
  /** Time between the end of a run and the next. */
  readonly intervalMs: number;
  readonly onFailure: (step: string, error: unknown) => void;
  /** If several processes share a database, each step runs in one of them. */
  readonly leases: Leases | undefined;
}

/**
 * Deletes what has expired and finishes what was interrupted, now and after each interval. A step that fails is reported,
 * and the others run nevertheless.
 */
export function startCleanup(options: CleanupOptions): { readonly stop: () => void } {
  const stop = new AbortController();
  void repeat(options, stop.signal);
  return { stop: () => stop.abort() };
}

async function repeat({ steps, intervalMs, onFailure, leases }: CleanupOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const [name, run] of Object.entries(steps)) {
      if (signal.aborted) return;
      await inOneProcess(leases, `cleanup ${name}`, { at: new Date(), ms: intervalMs }, run).catch((error: unknown) => {
        // After that, the store is being closed.
        if (!signal.aborted) onFailure(name, error);
      });
    }
    await sleep(intervalMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
