import fc from "fast-check";

/**
 * What random choices begin with. The same every time, so that a test fails because of a change and not by chance; SEED=…
 * or SEED=random makes others.
 */
export const SEED = readSeed(process.env["SEED"]);
fc.configureGlobal({ seed: SEED });

function readSeed(text = "1"): number {
  if (text !== "random") return Number(text);
  const seed = Date.now() % 2 ** 31;
  console.log(`SEED=${seed}`);
  return seed;
}

/** How often a property is tried: `few` times in `npm test`, or RUNS times. */
export const runs = (few: number) => Number(process.env["RUNS"] ?? few);

/** Of any code points. The unit "binary" of `fc.string` would first build a map of all of them, which takes seconds. */
export const anyText = fc.array(fc.nat(0x10ffff), { maxLength: 10 }).map((codes) => String.fromCodePoint(...codes));

export { fc };
