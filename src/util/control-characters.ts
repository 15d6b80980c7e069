/**
 * Characters that control a terminal, reorder text or are invisible: C0 and C1 controls, line and paragraph separators,
 * and default-ignorable characters such as bidirectional controls, zero-width characters and tag characters. Joiners
 * and variation selectors are kept where a script or an emoji needs them.
 */
const CONTROL =
  /(?!(?<=[^\0-\x7f\p{Z}\p{C}\p{DI}]\ufe0f?)[\u200c\u200d](?=[^\0-\x7f\p{Z}\p{C}\p{DI}])|(?<=[^\0-\x7f\p{Z}\p{C}\p{DI}])[\ufe0e\ufe0f]|(?<=[#*\d])\ufe0f(?=\u20e3))[\p{Cc}\p{Zl}\p{Zp}\p{DI}\ufff9-\ufffb]/gu;

/** Makes untrusted text safe to display on one line: U+FFFD replaces each of these characters. */
export function replaceControlCharacters(text: string): string {
  return text.replaceAll(CONTROL, "\ufffd");
}

/** The same for several lines: line feeds and tabs stay. */
export function replaceControlCharactersInLines(text: string): string {
  return text.replaceAll(CONTROL, (found) => (found === "\n" || found === "\t" ? found : "\ufffd"));
}

/** Escapes the same characters in a JSON text, without changing its value. Line feeds stay. */
export function escapeControlCharacters(json: string): string {
  return json.replaceAll(CONTROL, (found) => (found === "\n" ? found : found.replaceAll(/./gs, escapeCodeUnit)));
}

function escapeCodeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
