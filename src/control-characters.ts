/**
 * Characters that control a terminal, reorder the text around them or cannot be seen: C0 and C1 controls, line and
 * paragraph separators, and what Unicode lets programs ignore when they display text, which includes the bidirectional
 * controls, zero-width characters and tags. Kept are joiners and variation selectors where a script or an emoji needs them.
 */
const CONTROL =
  /(?!(?<=[^\0-\x7f\p{Z}\p{C}\p{DI}]\ufe0f?)[\u200c\u200d](?=[^\0-\x7f\p{Z}\p{C}\p{DI}])|(?<=[^\0-\x7f\p{Z}\p{C}\p{DI}])[\ufe0e\ufe0f]|(?<=[#*\d])\ufe0f(?=\u20e3))[\p{Cc}\p{Zl}\p{Zp}\p{DI}\ufff9-\ufffb]/gu;

/** Text of others in one line, as it can be shown. */
export function stripControlCharacters(text: string): string {
  return text.replaceAll(CONTROL, "\ufffd");
}

/** The same for text of several lines: line feeds and tabs stay. */
export function stripFromLines(text: string): string {
  return text.replaceAll(CONTROL, (found) => (found === "\n" || found === "\t" ? found : "\ufffd"));
}

/** Escapes the same characters in the text of a JSON document, whose value stays the same. Line feeds stay. */
export function escapeControlCharacters(json: string): string {
  return json.replaceAll(CONTROL, (found) => (found === "\n" ? found : found.replaceAll(/./gs, escapeUnit)));
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
