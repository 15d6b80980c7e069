import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidOpml } from "./entry.ts";
import { MAX_ENTRIES } from "./read.ts";
import { readImportFile } from "./read-import-file.ts";

const read = (text: string) => readImportFile(Buffer.from(text));

test("import file: one URL per line → an entry for each, with its line", () => {
  const text =
    "\ufeff# My podcasts\r\n\r\n  https://a.example/1  \r\nfeed://a.example/2\nnonsense\nhttp://a.example/1/";
  assert.deepEqual(read(text), [
    { feedUrl: "https://a.example/1", line: 3 },
    { feedUrl: "http://a.example/2", line: 4 },
    { feedUrl: "nonsense", line: 5 },
    { feedUrl: "http://a.example/1/", line: 6, skip: "duplicate-in-file" },
  ]);
  assert.deepEqual(readImportFile(Buffer.from("\ufeffhttps://a.example/é\n", "utf16le")), [
    { feedUrl: "https://a.example/é", line: 1 },
  ]);
});

test("import file: OPML → read as OPML, even after a line with a URL", () => {
  const opml = '<opml><body><outline xmlUrl="https://a.example/1"/></body></opml>';
  for (const text of [opml, `\n ${opml}`, `https://x.example/\n${opml}`])
    assert.deepEqual(
      read(text).map(({ feedUrl }) => feedUrl),
      ["https://a.example/1"],
    );
});

test("import file: anything else, or too many URLs → rejected", () => {
  for (const text of [
    "",
    " \n",
    "plain words",
    '{"url":"https://a.example/"}',
    "<html>\nhttps://a.example/\n</html>",
    "PK\u0003\u0004\0\nhttps://a.example/",
    "x\n".repeat(MAX_ENTRIES + 1),
    "# https://a.example/",
  ])
    assert.throws(() => read(text), InvalidOpml, text.slice(0, 40));
  assert.throws(() => read("https://a.example/\n".repeat(MAX_ENTRIES + 1)), /more than 50000 feeds/);
});

test("import file: a line that is too long → truncated, but still over the limit", () => {
  const [entry] = read(`https://a.example/${"a".repeat(100_000)}`);
  assert.equal(entry?.feedUrl.length, 2_049);
});
