import fc from "fast-check";

/** Inputs for one parser: examples to start from, and fragments that are significant to it. */
export interface Corpus {
  readonly seeds: readonly string[];
  readonly words: readonly string[];
  /** Whether a character stands for a byte. */
  readonly isBytes: boolean;
  readonly maxLength: number;
}

const NUMBERS = ["0", "1", "-1", "00", "65", "100", "101", "2048", "9007199254740992", "1e9", "0x1f"];
const ODD = [0, 9, 10, 13, 32, 0x22, 0x25, 0x26, 0x2f, 0x5c, 0x7f, 0x85, 0xa0, 0xad, 0xff, 0x3000, 0xd800, 0xdfff];

/** A seed with up to eight small edits. Shrinks towards the unchanged seed. */
export function inputs({ seeds, words, isBytes, maxLength }: Corpus): fc.Arbitrary<string> {
  const code = fc.oneof(fc.nat(127), fc.nat(isBytes ? 0xff : 0xffff), fc.constantFrom(...ODD));
  const text = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...words) },
    { weight: 2, arbitrary: code.map((unit) => String.fromCharCode(isBytes ? unit & 0xff : unit)) },
    { weight: 1, arbitrary: fc.constantFrom(...NUMBERS) },
    { weight: 1, arbitrary: fc.constantFrom(...seeds) },
    { weight: 1, arbitrary: fc.constant("") },
  );
  const times = fc.oneof({ weight: 20, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.nat(70) });
  const length = fc.oneof({ weight: 4, arbitrary: fc.nat(8) }, { weight: 1, arbitrary: fc.nat(1_000) });
  const edit = fc.record({ at: fc.nat(), length, text, times });
  return fc.tuple(fc.constantFrom(...seeds), fc.array(edit, { maxLength: 8 })).map(([seed, edits]) => {
    let input = seed;
    for (const { at, length: removed, text: inserted, times: count } of edits) {
      const start = at % (input.length + 1);
      input = input.slice(0, start) + inserted.repeat(count) + input.slice(start + removed);
    }
    return input.slice(0, maxLength);
  });
}

/** JSON documents made of significant values and member names. */
export function documents(values: readonly unknown[], members: readonly string[]): fc.Arbitrary<string> {
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 6, withCrossShrink: true },
      { weight: 4, arbitrary: fc.constantFrom(...values) },
      { weight: 1, arbitrary: fc.string({ unit: "binary" }) },
      { weight: 2, arbitrary: fc.array(tie("value"), { maxLength: 4 }) },
      { weight: 4, arbitrary: fc.dictionary(fc.constantFrom(...members), tie("value"), { maxKeys: 6 }) },
    ),
  }));
  return value.map((document) => JSON.stringify(document));
}
