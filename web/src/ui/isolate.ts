import { replaceControlCharacters } from "../../../src/util/control-characters.ts";

/** Letters of right-to-left scripts. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * Makes untrusted text safe within a sentence: its direction does not affect the words around it, as with `<bdi>`. In an
 * element of its own, `replaceControlCharacters` is enough.
 */
export function isolate(text: string): string {
  const shown = replaceControlCharacters(text);
  return RIGHT_TO_LEFT.test(shown) ? `\u2068${shown}\u2069` : shown;
}
