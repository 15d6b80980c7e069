/**
 * Characters that are invisible or reorder the text around them, as in the server's `control-characters.ts`. Joiners and
 * variation selectors are allowed where a script or an emoji needs them.
 */
const CONTROL =
  /(?!(?<=[^\0-\x7f\p{Z}\p{C}\p{DI}]\ufe0f?)[\u200c\u200d](?=[^\0-\x7f\p{Z}\p{C}\p{DI}])|(?<=[^\0-\x7f\p{Z}\p{C}\p{DI}])[\ufe0e\ufe0f]|(?<=[#*\d])\ufe0f(?=\u20e3))[\p{Cc}\p{Zl}\p{Zp}\p{DI}\ufff9-\ufffb]/gu;

/** Letters of right-to-left scripts. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Makes untrusted text safe within a sentence: its direction does not affect the words around it, as with `<bdi>`. */
export function isolate(text: string): string {
  const shown = revealControlCharacters(text);
  return RIGHT_TO_LEFT.test(shown) ? `\u2068${shown}\u2069` : shown;
}

/** Makes untrusted text safe in an element of its own: replaces each control character with �. */
export function revealControlCharacters(text: string): string {
  return text.replaceAll(CONTROL, "\ufffd");
}
