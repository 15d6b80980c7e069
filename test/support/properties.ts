import fc from "fast-check";

/** Properties run with a seed that is printed, so that a failure can be repeated: SEED=… npm test. */
const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
console.log(`properties run with SEED=${seed}`);
fc.configureGlobal({ seed });

/** How often a property is tried: `few` times in `npm test`, or RUNS times. */
export const runs = (few: number) => Number(process.env["RUNS"] ?? few);

/** Of any code points. The unit "binary" of `fc.string` would first build a map of all of them, which takes seconds. */
export const anyText = fc.array(fc.nat(0x10ffff), { maxLength: 10 }).map((codes) => String.fromCodePoint(...codes));

export { fc };
