/**
 * Characters that reorder the text around them or cannot be seen, as in the server's `control-characters.ts`. Kept are
 * joiners and variation selectors where a script or an emoji needs them.
 */
const VISIBLE = String.raw`[^\0-\x7f\p{Z}\p{C}\p{DI}]`;
const NEEDED = String.raw`(?<=${VISIBLE}\ufe0f?)[\u200c\u200d](?=${VISIBLE})|(?<=${VISIBLE})[\ufe0e\ufe0f]|(?<=[#*\d])\ufe0f(?=\u20e3)`;
const CONTROL = new RegExp(String.raw`(?!${NEEDED})[\p{Cc}\p{Zl}\p{Zp}\p{DI}\ufff9-\ufffb]`, "gu");

/** Text of others as it can be shown: each such character is seen as �. */
export function revealControlCharacters(text: string): string {
  return text.replaceAll(CONTROL, "\ufffd");
}
