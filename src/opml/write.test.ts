import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { writeOpmlText } from "../../test/support/opml.ts";
import { fc, runs } from "../../test/support/properties.ts";
import { cleanFolder, cleanFolders, cleanTitle, MAX_FOLDERS } from "../lists/details.ts";
import { readFeedUrl } from "../lists/feed-url.ts";
import type { Entry } from "./entry.ts";
import { readOpml } from "./read.ts";

const fixture = (name: string) => readFileSync(new URL(`../../test/fixtures/opml/${name}.opml`, import.meta.url));
const feed = (path: string, title?: string, ...folders: string[]): Entry => ({
  feedUrl: `https://feeds.example/${path}`,
  ...(title === undefined ? {} : { title }),
  ...(folders.length === 0 ? {} : { folders }),
});
const PODNEWS = { feedUrl: "https://podnews.net/rss", title: "Podnews Daily" };
const SECOND = feed("second", "Second Show");

/** The list after importing a file into an empty list: the first valid entry for each feed. */
function imported(file: string | Uint8Array): Entry[] {
  const feeds = new Map<string, Entry>();
  for (const { line: _, skip, ...entry } of readOpml(Buffer.from(file as Uint8Array))) {
    const parsed = readFeedUrl(entry.feedUrl);
    if (parsed.kind === "valid" && skip === undefined && !feeds.has(parsed.normalizedUrl))
      feeds.set(parsed.normalizedUrl, entry);
  }
  return [...feeds.values()];
}

const FIXTURES: Readonly<Record<string, readonly Entry[]>> = {
  antennapod: [PODNEWS, feed("aerger?a=1&b=2", 'Ärger & Spaß "live"')],
  "pocket-casts": [PODNEWS, feed("tom", "Tom & Jerry's <Show>")],
  overcast: [PODNEWS, { feedUrl: "https://ann:s3cret@members.example/feed/abc123", title: "Private Show" }],
  "overcast-extended": [PODNEWS, SECOND],
  gpodder: [{ ...PODNEWS, folders: ["News"] }, { ...SECOND, folders: ["Other"] }, feed("untitled", undefined, "Other")],
  kasts: [PODNEWS, SECOND],
  "podcast-addict": [PODNEWS, { feedUrl: "http://feeds.example/buero", title: "Das Büro 🎧" }],
  "apple-style": [
    { ...PODNEWS, folders: ["iTunes Podcasts"] },
    { feedUrl: "http://feeds.example/second", title: "Second Show", folders: ["iTunes Podcasts/Comedy, mostly"] },
  ],
  folders: [
    feed("rock", "Rock", "AC\uff0fDC", "Second"),
    feed("bass", "Bass", "AC\uff0fDC/Deep, down", "Music/Low", "tagged"),
    feed("top", "Top"),
    feed("nameless", "In an unnamed folder", "Second"),
  ],
};

for (const [name, expected] of Object.entries(FIXTURES)) {
  test(`OPML: ${name}.opml → its feeds, titles and folders`, () => {
    assert.deepEqual(imported(fixture(name)), expected);
  });

  test(`OPML: ${name}.opml, imported and exported → a second round trip gives the same file`, async () => {
    const first = await writeOpmlText(imported(fixture(name)));
    assert.equal(await writeOpmlText(imported(first)), first);
    const byUrl = (entries: readonly Entry[]) =>
      entries.toSorted((one, other) => (one.feedUrl < other.feedUrl ? -1 : 1));
    assert.deepEqual(byUrl(imported(first)), byUrl(expected), "feeds, titles or folders differ");
  });
}

test("OPML: export → feeds without a folder first, then each folder with its feeds", async () => {
  const text = await writeOpmlText([
    feed("1", "One", "B/C", "D, E 100%"),
    feed("2"),
    feed("3", "<3>", "A"),
    feed("4", "Four", "B"),
    feed("5", "Five", "A"),
  ]);
  assert.equal(
    text.slice(text.indexOf("  <body>")),
    `  <body>
    <outline type="rss" text="https://feeds.example/2" xmlUrl="https://feeds.example/2"/>
    <outline text="B" title="B">
      <outline type="rss" text="Four" title="Four" xmlUrl="https://feeds.example/4" category="/B"/>
      <outline text="C" title="C">
        <outline type="rss" text="One" title="One" xmlUrl="https://feeds.example/1" category="/B/C,/D%2C E 100%25"/>
      </outline>
    </outline>
    <outline text="A" title="A">
      <outline type="rss" text="&lt;3&gt;" title="&lt;3&gt;" xmlUrl="https://feeds.example/3" category="/A"/>
      <outline type="rss" text="Five" title="Five" xmlUrl="https://feeds.example/5" category="/A"/>
    </outline>
  </body>
</opml>
`,
  );
});

test("OPML: a user's own folder called feeds that contains every feed → kept", async () => {
  for (const folder of ["feeds", "Feeds/Sub"]) {
    const entries = [feed("1", "One", folder), feed("2", "Two", folder, "x")];
    assert.deepEqual(imported(await writeOpmlText(entries)), entries);
  }
});

test("OPML: more than 1,000 folders → 1,000 as outlines, the others only as categories", async () => {
  const entries = Array.from({ length: 1_500 }, (_, index) => feed(String(index), `t${index}`, `f${index}`));
  const text = await writeOpmlText(entries);
  assert.equal(text.match(/<outline text="f\d+" title/g)?.length, 1_000);
  const again = imported(text);
  assert.deepEqual(
    new Map(again.map((entry) => [entry.feedUrl, entry])),
    new Map(entries.map((entry) => [entry.feedUrl, entry])),
  );
});

test("OPML: any titles and folders → unchanged by export and import", async () => {
  const character = fc.oneof(
    fc.nat(0x10ffff).map((code) => String.fromCodePoint(code)),
    fc.constantFrom(
      "&",
      "<",
      ">",
      '"',
      "'",
      "&amp;",
      "]]>",
      "&#39;",
      "é",
      "🎧",
      "%",
      "%2C",
      ",",
      "/",
      " ",
      "x".repeat(99),
    ),
  );
  // The export replaces characters that XML forbids, so a name with them would not come back.
  const word = fc
    .array(character, { minLength: 1, maxLength: 6 })
    .map((parts) => parts.join("").replaceAll(/[\ufffe\uffff]/g, ""));
  const folder = fc
    .array(fc.oneof(word, fc.constantFrom("feeds", "a", "b")), { minLength: 1, maxLength: 9 })
    .map(cleanFolder);
  const list = fc.array(
    fc.record({ tail: word, title: fc.option(word), folders: fc.array(folder, { maxLength: 4 }) }),
    { maxLength: 6 },
  );
  await fc.assert(
    fc.asyncProperty(list, async (items) => {
      const entries = new Map<string, Entry>();
      for (const { tail, title, folders } of items) {
        const feedUrl = `https://a.example/${tail.toWellFormed().replaceAll(/[\s\u0000-\u001f\u007f-\u009f]/g, "")}`;
        const parsed = readFeedUrl(feedUrl);
        const clean = cleanTitle(title ?? "");
        const paths = cleanFolders(
          folders.filter((path) => path !== undefined),
          clean,
        );
        const details = {
          ...(clean && clean !== feedUrl ? { title: clean } : {}),
          ...(paths.length > 0 ? { folders: paths } : {}),
        };
        if (parsed.kind === "valid" && !entries.has(parsed.normalizedUrl))
          entries.set(parsed.normalizedUrl, { feedUrl, ...details });
      }
      const text = await writeOpmlText([...entries.values()]);
      const again = imported(text);
      const byUrl = (one: Entry, other: Entry) => (one.feedUrl < other.feedUrl ? -1 : 1);
      assert.deepEqual(again.toSorted(byUrl), [...entries.values()].sort(byUrl));
      assert.equal(await writeOpmlText(again), text);
    }),
    { numRuns: runs(500) },
  );
});

test("OPML: 20 long folders with characters that must be escaped in XML → all exported and imported", async () => {
  const folders = Array.from({ length: MAX_FOLDERS }, (_, index) => `${'"'.repeat(49)}${10 + index}`);
  assert.deepEqual(imported(await writeOpmlText([feed("1", "t", ...folders)])), [feed("1", "t", ...folders)]);
});

test("OPML: folders that with the title are too long → all exported, those that fit imported", async () => {
  const folders = Array.from({ length: MAX_FOLDERS }, (_, index) => `${'"'.repeat(298)}${10 + index}`);
  const text = await writeOpmlText([feed("1", "t", ...folders)]);
  for (const folder of folders) assert.ok(text.includes(folder.replaceAll('"', "&quot;")));
  assert.deepEqual(imported(text), [feed("1", "t", ...folders.slice(0, 3))]);
});

test("OPML: characters that XML forbids → replaced, and a round trip does not change the file", async () => {
  const text = await writeOpmlText([feed("\ufffe", "\uffff", "\ufffe")]);
  assert.doesNotMatch(text, /[\ufffe\uffff]/);
  assert.deepEqual(imported(text), [feed("\ufffd", "\ufffd", "\ufffd")]);
  assert.equal(await writeOpmlText(imported(text)), text);
});
