import type { Findings } from "./run.ts";

/** Runs several parts at the same time and joins their findings. */
export async function runAll(parts: readonly Promise<Findings>[]): Promise<Findings> {
  // Wait for all of them even when one fails.
  await Promise.allSettled(parts);
  return joinFindings(await Promise.all(parts));
}

export function joinFindings(all: readonly Findings[]): Findings {
  return {
    figures: all.map(({ figures }) => figures).join("; "),
    violations: all.flatMap(({ violations }) => violations),
  };
}
