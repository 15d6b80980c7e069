import assert from "node:assert/strict";
import { test } from "node:test";
import { anyText, fc, runs } from "../../test/support/properties.ts";
import {
  cleanFolder,
  cleanFolders,
  cleanTitle,
  isTooLong,
  MAX_DETAILS,
  MAX_FOLDERS,
  readFolder,
  readFolders,
  readTitle,
} from "./details.ts";

const OVERRIDE = "\u202e";

test("title: whitespace around it → trimmed", () => {
  assert.equal(readTitle("  A  Show\u00a0"), "A  Show");
});

test("title: up to 300 characters → valid, counted in code points", () => {
  for (const character of ["x", "é", "🎧"]) {
    assert.equal(readTitle(character.repeat(300)), character.repeat(300));
    assert.equal(readTitle(character.repeat(301)), undefined);
  }
  assert.equal(readTitle("x".repeat(1_000_000)), undefined);
});

test("title: blank, control or bidirectional override characters, lone surrogates → invalid", () => {
  for (const bad of ["", " ", "a\nb", "a\0b", "\x7fa", "a\x9bb", "a\u2028b", `a${OVERRIDE}b`, "a\u2066b", "a\ud800"])
    assert.equal(readTitle(bad), undefined, JSON.stringify(bad));
  // Marks and joiners that languages and emoji need.
  for (const good of ["a\u200fb", "👨‍👩‍👧", "a\u061cb", "می‌خواهم"]) assert.equal(readTitle(good), good);
});

test("folders: whitespace around names and duplicates → removed", () => {
  assert.deepEqual(readFolders([" News / Tech ", "News/Tech", "news/tech"]), ["News/Tech", "news/tech"]);
  assert.deepEqual(readFolders([]), []);
});

test("folders: limits of number, length and levels → exact", () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `f${index}`);
  assert.equal(readFolders(many(MAX_FOLDERS))?.length, MAX_FOLDERS);
  assert.equal(readFolders(many(MAX_FOLDERS + 1)), undefined);
  assert.equal(readFolder("🎧".repeat(300)), "🎧".repeat(300));
  assert.equal(readFolder("🎧".repeat(301)), undefined);
  assert.equal(readFolder("1/2/3/4/5/6/7/8"), "1/2/3/4/5/6/7/8");
  assert.equal(readFolder("1/2/3/4/5/6/7/8/9"), undefined);
});

test("folders: empty name, forbidden character or not a string → invalid", () => {
  for (const bad of [
    "",
    " ",
    "/",
    "/News",
    "News/",
    "a//b",
    "a/ /b",
    "a\nb",
    `a/${OVERRIDE}b`,
    "\udfff",
    1,
    null,
    ["a"],
  ])
    assert.equal(readFolders(["ok", bad]), undefined, JSON.stringify(bad));
});

test("title and folders: up to 1,024 characters together → valid, separators between folders not counted", () => {
  for (const character of ["x", "é", "🎧"]) {
    const stored = (length: number) => ({
      title: character.repeat(length),
      folders: `a/b\n${"c".repeat(300)}\nd`,
      former_feed_urls: "https://feeds.example/former",
    });
    assert.equal(isTooLong(stored(MAX_DETAILS - 304)), false);
    assert.equal(isTooLong(stored(MAX_DETAILS - 303)), true);
  }
  assert.equal(isTooLong({ title: null, folders: null, former_feed_urls: null }), false);
  assert.equal(isTooLong({ title: null, folders: "x".repeat(MAX_DETAILS + 1), former_feed_urls: null }), true);
});

test("clean: folders beyond the limits → left out", () => {
  const long = ["a", "b", "c", "d"].map((name) => name.repeat(300));
  assert.deepEqual(cleanFolders([...long, "e"]), long.slice(0, 3));
  assert.deepEqual(cleanFolders(["e", ...long, "e"], "🎧".repeat(124)), ["e", ...long.slice(0, 2)]);
  assert.deepEqual(cleanFolders(["e", ...long, "e"], "🎧".repeat(123)), ["e", ...long.slice(0, 3)]);
  const many = Array.from({ length: MAX_FOLDERS + 1 }, (_, index) => `f${index}`);
  assert.deepEqual(cleanFolders(many), many.slice(0, MAX_FOLDERS));
});

test("clean: text of a file → valid, with as much of it as possible", () => {
  assert.equal(cleanTitle(` A\r\n\tB\u2028C${OVERRIDE}D\ud800 `), "A B CD\ufffd");
  assert.equal(cleanTitle(`${"x".repeat(299)} y`), "x".repeat(299));
  assert.equal(cleanTitle(`\n${OVERRIDE}`), undefined);
  assert.equal(cleanFolder(["AC/DC", " ", "a, b"]), "AC\uff0fDC/a, b");
  assert.equal(cleanFolder(["1", "2", "3", "4", "5", "6", "7", "8", "9"]), "1/2/3/4/5/6/7/8");
  assert.equal(cleanFolder(["x".repeat(200), "y".repeat(200), "z"]), "x".repeat(200));
  assert.equal(cleanFolder(["x".repeat(400)]), "x".repeat(300));
  assert.equal(cleanFolder([]), undefined);
});

test("clean: any text → a title or folder that is valid and unchanged when read", () => {
  const part = fc.constantFrom("\0", "\n", OVERRIDE, "\ud83c", "\udfa7", "🎧", " ", "/", "x".repeat(150), ",");
  const text = fc.array(fc.oneof(part, anyText)).map((parts) => parts.join(""));
  fc.assert(
    fc.property(fc.array(text, { maxLength: 12 }), (texts) => {
      const [title, folder] = [cleanTitle(texts.join("")), cleanFolder(texts)];
      if (title !== undefined) assert.equal(readTitle(title), title);
      if (folder !== undefined) assert.equal(readFolder(folder), folder);
    }),
    { numRuns: runs(1_000) },
  );
});
