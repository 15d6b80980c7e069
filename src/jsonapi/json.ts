import { isUtf8 } from "node:buffer";
import { parse } from "secure-json-parse";
import { failure } from "../errors.ts";

/** Maximum nesting of a document; valid ones have five levels. */
export const MAX_DEPTH = 64;

/** Reads a JSON document. One with more than `maxValues` values is refused before it is parsed. */
export function parseJson(bytes: Buffer, maxValues = Number.POSITIVE_INFINITY): unknown {
  if (bytes.length === 0) throw failure("body-missing");
  if (!isUtf8(bytes)) throw failure("malformed-json");
  const { depth, values } = measure(bytes);
  if (depth > MAX_DEPTH)
    throw failure("document-too-complex", { reason: `it is nested more than ${MAX_DEPTH} levels deep` });
  if (values > maxValues) throw failure("document-too-complex", { reason: `it has more than ${maxValues} values` });
  try {
    return parse(bytes.toString(), { protoAction: "error", constructorAction: "error" });
  } catch {
    throw failure("malformed-json");
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Counts commas and opening brackets, since each element of an array and each member of an object follows one. Ignores
 * the content of strings. The counts of invalid JSON may be wrong; the parser rejects it anyway.
 */
function measure(bytes: Buffer): { depth: number; values: number } {
  let level = 0;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at + 1);
      if (at === -1) break;
    } else if (byte === COMMA) {
      values += 1;
    } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      values += 1;
      level += 1;
      if (level > depth) depth = level;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) level -= 1;
  }
  return { depth, values };
}

/** The end of the string that began before `from`: its first unescaped quote. */
function endOfString(bytes: Buffer, from: number): number {
  let quote = bytes.indexOf(QUOTE, from);
  while (quote !== -1) {
    let backslashes = 0;
    while (bytes[quote - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return quote;
    quote = bytes.indexOf(QUOTE, quote + 1);
  }
  return -1;
}
