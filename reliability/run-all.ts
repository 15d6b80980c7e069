import type { Findings } from "./proof.ts";

/** One line for what was found in several places at the same time. */
export async function runAll(parts: readonly Promise<Findings>[]): Promise<Findings> {
  // None is left alone when another has broken off.
  await Promise.allSettled(parts);
  const all = await Promise.all(parts);
  return {
    figures: all.map(({ figures }) => figures).join("; "),
    violations: all.flatMap(({ violations }) => violations),
  };
}
