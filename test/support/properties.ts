import fc from "fast-check";

/** Properties run with a seed that is printed, so that a failure can be repeated: SEED=… npm test. */
const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
console.log(`properties run with SEED=${seed}`);
fc.configureGlobal({ seed });

/** How often a property is tried: so often in every `npm test`, at most MAX_RUNS times; or as often as RUNS says. */
export function runs(few: number): number {
  const { RUNS, MAX_RUNS = few } = process.env;
  return Number(RUNS ?? Math.min(few, Number(MAX_RUNS)));
}

export { fc };
