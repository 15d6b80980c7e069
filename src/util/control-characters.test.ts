import assert from "node:assert/strict";
import { test } from "node:test";
import {
  escapeControlCharacters,
  replaceControlCharacters,
  replaceControlCharactersInLines,
} from "./control-characters.ts";

const range = (first: number, last = first) =>
  Array.from({ length: last - first + 1 }, (_, index) => String.fromCodePoint(first + index));

const HOSTILE: Readonly<Record<string, readonly string[]>> = {
  "C0 controls": [...range(0x00, 0x1f), "\x7f"],
  "C1 controls": range(0x80, 0x9f),
  "bidirectional controls": [...range(0x202a, 0x202e), ...range(0x2066, 0x2069), "\u200e", "\u200f", "\u061c"],
  separators: ["\u2028", "\u2029"],
  "zero-width characters": ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u180e"],
  "blank letters": ["\u115f", "\u1160", "\u3164", "\uffa0"],
  "annotations and deprecated formats": [...range(0xfff9, 0xfffb), ...range(0x206a, 0x206f)],
  "tags and variation selectors": [...range(0xe0000, 0xe007f), ...range(0xe0100, 0xe01ef), ...range(0xfe00, 0xfe0f)],
};

for (const [kind, characters] of Object.entries(HOSTILE)) {
  test(`control characters: ${kind} → replaced, and escaped in JSON`, () => {
    for (const character of characters) {
      const code = character.codePointAt(0)?.toString(16);
      const text = `a${character}b`;
      assert.equal(replaceControlCharacters(text), "a\ufffdb", code);
      const isLayout = character === "\n" || character === "\t";
      assert.equal(replaceControlCharactersInLines(text), isLayout ? text : "a\ufffdb", code);
      const json = escapeControlCharacters(JSON.stringify({ [text]: text }));
      assert.match(json, /^[ -~]+$/, code);
      assert.deepEqual(JSON.parse(json), { [text]: text });
    }
  });
}

test("control characters: text of any language, and emoji → unchanged", () => {
  for (const text of [
    "https://podnews.net/rss?a=1#b",
    "Zwölf · 名前 · שלום · هاتفي القديم",
    "می‌خواهم",
    "क्‍ष",
    "👩‍👩‍👧 👁️‍🗨️ 1️⃣ ❤️ 👍🏽",
  ]) {
    for (const change of [replaceControlCharacters, replaceControlCharactersInLines, escapeControlCharacters])
      assert.equal(change(text), text);
  }
});

test("control characters: joiners that join nothing → replaced", () => {
  for (const text of ["a\u200db", "é\u200d", "\u200cé", "é\u200d\u200dé", "é\u200c b"])
    assert.match(replaceControlCharacters(text), /\ufffd/);
});
