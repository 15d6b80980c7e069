import { isUtf8 } from "node:buffer";
import { parse } from "secure-json-parse";
import { failure } from "../errors/catalog.ts";

/** Maximum nesting of a document; valid ones have at most six levels. */
const MAX_DEPTH = 64;

/** Reads a JSON document. One with more than `maxValues` values is refused before it is parsed. */
export function parseJson(bytes: Buffer, maxValues = Number.POSITIVE_INFINITY): unknown {
  if (bytes.length === 0) throw failure("body-missing");
  if (!isUtf8(bytes)) throw failure("malformed-json");
  const text = bytes.toString();
  const { depth, values } = measure(text);
  if (depth > MAX_DEPTH)
    throw failure("document-too-complex", { reason: `it is nested more than ${MAX_DEPTH} levels deep` });
  if (values > maxValues) throw failure("document-too-complex", { reason: `it has more than ${maxValues} values` });
  try {
    return parse(text, { protoAction: "error", constructorAction: "error" });
  } catch {
    throw failure("malformed-json");
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts commas and opening brackets, since each element of an array and each member of an object follows one. Ignores
 * the contents of strings. The counts for invalid JSON may be wrong; the parser rejects it anyway.
 * Scans the text rather than the bytes: the bytes of a long body are in a resizable buffer, which V8 reads half as fast.
 */
function measure(text: string): { depth: number; values: number } {
  let level = 0;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at + 1);
      if (at === -1) break;
    } else if (code === COMMA) {
      values += 1;
    } else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      values += 1;
      level += 1;
      if (level > depth) depth = level;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) level -= 1;
  }
  return { depth, values };
}

/** The end of the string that began before `from`: its first unescaped quotation mark. */
function endOfString(text: string, from: number): number {
  let quote = text.indexOf('"', from);
  while (quote !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
    quote = text.indexOf('"', quote + 1);
  }
  return -1;
}
