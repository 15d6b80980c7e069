/** What makes a word unsafe. */
const UNSAFE = [
  // URLs, also without a scheme, and mail addresses.
  /:\/\//,
  /\.[^./]{0,99}\//,
  /[^@]@[^@]/,
  // Network addresses.
  /(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)/,
  /:[\da-f]{0,4}:[\da-f]{0,4}:/i,
  // Secrets of this server.
  /em[kir]_[\w-]{20}/i,
];
/** Neither XML nor a line of text can have these. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\ufffe\uffff]+/gu;
const BIDI_CONTROLS = /[\u202a-\u202e\u2066-\u2069]+/gu;
const MAX_LENGTH = 200;

/**
 * A title or name as an alert shows it. Feed readers pass on what they fetch, and publishers put names, mail addresses and
 * links into the titles of private feeds.
 */
export function toSafeText(text: string): string {
  const clean = text
    .slice(0, 4 * MAX_LENGTH)
    .toWellFormed()
    .replaceAll(CONTROL, " ")
    .replaceAll(BIDI_CONTROLS, "");
  const words = clean.split(/\s+/).filter((word) => word !== "");
  const safe = words.map((word) => (UNSAFE.some((pattern) => pattern.test(word)) ? "…" : word)).join(" ");
  const characters = Array.from(safe);
  return characters.length > MAX_LENGTH ? `${characters.slice(0, MAX_LENGTH).join("")}…` : safe;
}
