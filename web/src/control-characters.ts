/**
 * Characters that reorder the text around them or cannot be seen, as in the server's `control-characters.ts`. Kept are
 * joiners and variation selectors where a script or an emoji needs them.
 */
const CONTROL =
  /(?!(?<=[^\0-\x7f\p{Z}\p{C}\p{DI}]\ufe0f?)[\u200c\u200d](?=[^\0-\x7f\p{Z}\p{C}\p{DI}])|(?<=[^\0-\x7f\p{Z}\p{C}\p{DI}])[\ufe0e\ufe0f]|(?<=[#*\d])\ufe0f(?=\u20e3))[\p{Cc}\p{Zl}\p{Zp}\p{DI}\ufff9-\ufffb]/gu;

/** Letters that are written from right to left. */
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Text of others within a sentence, a label or a notice: its direction stays its own. An element would be `<bdi>`. */
export function isolate(text: string): string {
  const shown = revealControlCharacters(text);
  return RIGHT_TO_LEFT.test(shown) ? `\u2068${shown}\u2069` : shown;
}

/** Text of others in an element of its own: each such character is seen as �. */
export function revealControlCharacters(text: string): string {
  return text.replaceAll(CONTROL, "\ufffd");
}
