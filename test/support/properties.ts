import fc from "fast-check";

/** Properties run with a seed that is printed, so that a failure can be repeated: SEED=… npm test. */
const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
console.log(`properties run with SEED=${seed}`);
fc.configureGlobal({ seed });

/** How often a property is tried: `few` times in `npm test`, or RUNS times. */
export const runs = (few: number) => Number(process.env["RUNS"] ?? few);

export { fc };
