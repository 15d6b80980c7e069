import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";

/** Every printable character of ASCII that is no letter or digit. */
const PUNCTUATION = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index)).filter((character) =>
  /[^A-Za-z0-9]/.test(character),
);
/** Readers treat most letters and digits alike, apart from case, hexadecimal digits, exponents and prefixes. */
const LETTERS = [..."aefhnuxyzAFTZ0179"];
/** One or more characters that are repeated. The others have a meaning in URLs, headers, names or JSON. */
const UNITS = [
  ...PUNCTUATION,
  ...LETTERS,
  ...[
    "\t",
    " \t",
    "; ",
    ";=",
    "= ",
    ",;",
    ", ",
    '\\"',
    "\\\\",
    "[]",
    "::",
    "&=",
    "?#",
    "@:",
    "<>",
    "_a",
    "a-",
    "a.",
    "a=",
  ],
  ...[
    "/.",
    "/../",
    "//a",
    "%2",
    "%2e",
    "%2e/",
    "%25",
    "%C3%A9",
    "xn--a",
    "xn--a.",
    "1.",
    "1.1.1.1,",
    "http://",
    "earmark=",
  ],
  // Combining marks must be sorted for normalization, and Punycode is slowest with many different characters.
  Array.from({ length: 2_048 }, (_, index) => String.fromCharCode(0x4e00 + 7 * index)).join(""),
  Array.from({ length: 64 }, (_, index) => String.fromCharCode(0xc0 + index)).join(""),
  ...["é", "ü.", "\u0301", "\u0327\u0301", "\u200d", "\ufdfa", "\u{1d54f}"],
];

export type Frame = readonly [before: string, after: string];

export interface Reader {
  readonly name: string;
  /** Maximum length of its input. */
  readonly length: number;
  /** Text before and after the repeated unit, so that the unit reaches each part of the reader. */
  readonly frames?: readonly Frame[];
  /** Does the work that is not measured, and returns the function that is. */
  readonly prepare: (text: string) => () => unknown;
}

/** A reader that needs only the text. */
export function plain(
  name: string,
  length: number,
  read: (text: string) => unknown,
  frames?: readonly Frame[],
): Reader {
  return { name, length, prepare: (text) => () => read(text), ...(frames && { frames }) };
}

/** Anything faster is too short to measure, and harmless. */
const MEASURABLE_MS = 0.5;
/** A linear reader takes 4 times as long for 4 times the text, a quadratic one 16 times. */
const MAX_RATIO = 12;
/** A reader that looks quadratic is measured again for this long, and at least this often. */
const REMEASURE_MS = 1_000;
const REMEASURE_RUNS = 30;

/** A test for each reader: four times the text may not take much more than four times as long. */
export function testLinearTime(readers: readonly Reader[]): void {
  const figures: { readonly name: string; readonly ms: number; readonly text: string }[] = [];

  for (const reader of readers) {
    test(`linear time: ${reader.name} with repeated input → linear`, async () => {
      let slowest = { ms: 0, text: "" };
      for (const frame of [["", ""] as const, ...(reader.frames ?? [])]) {
        for (const unit of UNITS) {
          const name = `${frame[0]}${unit.slice(0, 10)}…${frame[1]}`;
          const [full, quarter] = await measure(reader, frame, unit);
          if (full > slowest.ms) slowest = { ms: full, text: name };
          assert.ok(
            full < MEASURABLE_MS || full / quarter < MAX_RATIO,
            `${name} of ${reader.length} characters takes ${full.toFixed(2)} ms, a quarter of it ${quarter.toFixed(2)} ms`,
          );
        }
      }
      figures.push({ name: reader.name, ...slowest });
    });
  }

  test("linear time: all readers → the slowest are reported", (t) => {
    for (const { name, ms, text } of figures.sort((a, b) => b.ms - a.ms).slice(0, 3))
      t.diagnostic(`${name}: ${ms.toFixed(2)} ms for ${text}`);
  });
}

/** The best of several runs with the longest text, and with a quarter of it. */
async function measure(reader: Reader, frame: Frame, unit: string): Promise<[full: number, quarter: number]> {
  let [full, quarter] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const deadline = performance.now() + REMEASURE_MS;
  for (let run = 1; run <= REMEASURE_RUNS || performance.now() < deadline; run += 1) {
    full = Math.min(full, await time(reader, frame, unit, reader.length));
    if (full < MEASURABLE_MS) break;
    // The quarter twice: an interrupted run of it could hide a quadratic reader. One of the whole text cannot.
    for (let times = 0; times < 2; times += 1)
      quarter = Math.min(quarter, await time(reader, frame, unit, reader.length / 4));
    if (full / quarter < MAX_RATIO) break;
    // Another process may have interrupted the run, which is least likely right after a pause.
    await setTimeout(5);
  }
  return [full, quarter];
}

async function time({ prepare }: Reader, [before, after]: Frame, unit: string, length: number): Promise<number> {
  const run = unit.repeat(Math.ceil(length / unit.length)).slice(0, Math.max(1, length - before.length - after.length));
  // Copied, so that the string is flat in memory, as if it had just been received.
  const read = prepare(Buffer.from(before + run + after).toString());
  const start = performance.now();
  try {
    const result = read();
    if (result instanceof Promise) await result;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  return performance.now() - start;
}
