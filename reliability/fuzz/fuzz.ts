import { fc, runs } from "../../test/support/properties.ts";
import type { Corpus } from "./inputs.ts";

/** Checks every seed, then random inputs: 2,000 of them, or RUNS. */
export async function fuzz(
  { seeds }: Corpus,
  input: fc.Arbitrary<string>,
  check: (input: string) => unknown,
): Promise<void> {
  for (const seed of seeds) await check(seed);
  const property = fc.asyncProperty(input, async (each) => void (await check(each)));
  await fc.assert(property, { numRuns: runs(2_000) });
}
