import assert from "node:assert/strict";
import { test } from "node:test";
import { fc, runs } from "../../test/support/properties.ts";
import { MAX_TITLE } from "../lists/details.ts";
import { readFeedUrl } from "../lists/feed-url.ts";
import { type Entry, InvalidOpml } from "./entry.ts";
import { MAX_ENTRIES, readOpml } from "./read.ts";

const file = (body: string) =>
  `<?xml version="1.0"?><opml version="2.0"><head><title>x</title></head><body>${body}</body></opml>`;
const outline = (url: string, more = "") => `<outline type="rss" text="t" xmlUrl="${url}" ${more}/>`;
const feedUrlsOf = (text: string | Uint8Array) =>
  readOpml(typeof text === "string" ? Buffer.from(text) : text).map(({ feedUrl }) => feedUrl);

test("OPML: feeds in folders and nested in other feeds → all found, in file order", () => {
  const nested = `${outline("https://a.example/1")}<outline text="News"><outline text="More">${outline("https://a.example/2")}</outline>
    <outline text="x" xmlUrl="https://a.example/3">${outline("https://a.example/4")}</outline></outline>${outline("https://a.example/5")}`;
  assert.deepEqual(
    feedUrlsOf(file(nested)),
    [1, 2, 3, 4, 5].map((number) => `https://a.example/${number}`),
  );
});

test("OPML: empty folders, comments and outlines that are not feeds → no entries; type rss with a `url` → an entry", () => {
  assert.deepEqual(
    feedUrlsOf(file('<outline text="folder"/><!-- x --><outline type="link" text="x" url="https://a.example/"/>')),
    [],
  );
  assert.deepEqual(feedUrlsOf(file('<outline type="rss" text="x" url="https://a.example/"/>')), ["https://a.example/"]);
  assert.deepEqual(feedUrlsOf('<opml version="2.0"><head/></opml>'), []);
});

test("OPML: element and attribute names in upper, lower or mixed case → read", () => {
  for (const name of ["xmlUrl", "xmlurl", "XMLURL", "XmlUrl"])
    assert.deepEqual(feedUrlsOf(file(`<outline text="t" ${name}="https://a.example/1"/>`)), ["https://a.example/1"]);
  assert.deepEqual(feedUrlsOf('<OPML VERSION="1.1"><BODY><OUTLINE XMLURL="https://a.example/1"/></BODY></OPML>'), [
    "https://a.example/1",
  ]);
});

test("OPML: title that looks like a number → a string; with entities → decoded; missing → no title", () => {
  const entries = readOpml(
    Buffer.from(
      file(
        '<outline text="1234" xmlUrl="https://a.example/1"/><outline text="a" title="true &amp; &lt;b&gt;" xmlUrl="https://a.example/2"/><outline xmlUrl="https://a.example/3"/>',
      ),
    ),
  );
  assert.deepEqual(
    entries.map(({ title }) => title),
    ["1234", "true & <b>", undefined],
  );
});

test("OPML: unescaped ampersand → read literally", () => {
  assert.deepEqual(feedUrlsOf(file(outline("https://a.example/?x=1&y=2&amp;z=3"))), ["https://a.example/?x=1&y=2&z=3"]);
});

test("OPML: feed:, itpc: and similar schemes → http or https", () => {
  const expected = {
    "feed://a.example/1": "http://a.example/1",
    "feed:https://a.example/2": "https://a.example/2",
    "feed:http://a.example/3": "http://a.example/3",
    "itpc://a.example/4": "http://a.example/4",
    "pcast://a.example/5": "http://a.example/5",
    "PCAST:a.example/6": "http://a.example/6",
    "podcast://a.example/8": "http://a.example/8",
    "rss:https://a.example/9": "https://a.example/9",
    "HTTPS://a.example/7": "HTTPS://a.example/7",
  };
  assert.deepEqual(
    feedUrlsOf(
      file(
        Object.keys(expected)
          .map((url) => outline(url))
          .join(""),
      ),
    ),
    Object.values(expected),
  );
});

test("OPML: whitespace around a feed URL → trimmed", () => {
  assert.deepEqual(feedUrlsOf(file(outline("  https://a.example/1 \n"))), ["https://a.example/1"]);
});

test("OPML: entry that is not a web URL → included, so that the import can report it", () => {
  const odd = ["antennapod_local:content://x", "file:///sdcard/x", "nonsense", "/feed.xml"];
  assert.deepEqual(feedUrlsOf(file(odd.map((url) => outline(url)).join(""))), odd);
});

test("OPML: UTF-8, UTF-16, Latin-1 → read; unknown encoding → rejected", () => {
  const text = file('<outline text="Café Ñandú" xmlUrl="https://a.example/é"/>');
  const declared = (name: string) => text.replace('version="1.0"', `version="1.0" encoding="${name}"`);
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(declared("UTF-16"), "utf16le")]);
  for (const [name, bytes] of Object.entries({
    "UTF-8": Buffer.from(text),
    "UTF-8 with a byte order mark": Buffer.from(`\ufeff${declared("utf-8")}`),
    "UTF-16LE": utf16,
    "UTF-16BE": Buffer.from(utf16).swap16(),
    "ISO-8859-1": Buffer.from(declared("ISO-8859-1"), "latin1"),
    "Windows-1252": Buffer.from(declared("windows-1252"), "latin1"),
    "Latin-1 without a declaration": Buffer.from(text, "latin1"),
    "Latin-1 declared as UTF-8": Buffer.from(declared("UTF-8"), "latin1"),
  })) {
    const [entry] = readOpml(bytes);
    assert.deepEqual(entry, { feedUrl: "https://a.example/é", line: 1, title: "Café Ñandú" }, name);
  }
  assert.throws(() => readOpml(Buffer.from(declared("klingon"))), /Unsupported file encoding: klingon/);
});

test("OPML: a file that is not OPML → InvalidOpml", () => {
  for (const text of [
    "",
    "{}",
    "<html><body>no</body></html>",
    "<rss><channel/></rss>",
    "plain words",
    "\0\0\0",
    "<opml",
  ])
    assert.throws(() => readOpml(Buffer.from(text)), InvalidOpml, JSON.stringify(text));
});

test("OPML: custom and external entities → not expanded, nothing fetched", () => {
  const bomb = `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">${Array.from({ length: 9 }, (_, index) => `<!ENTITY b${index} "${`&${index === 0 ? "a" : `b${index - 1}`};`.repeat(10)}">`).join("")}<!ENTITY e SYSTEM "file:///etc/passwd">]>`;
  const read = () => readOpml(Buffer.from(`${bomb}${file('<outline text="&b8;&e;" xmlUrl="https://a.example/1"/>')}`));
  try {
    const [entry] = read();
    assert.ok((entry?.title?.length ?? 0) < 1_000);
    assert.doesNotMatch(entry?.title ?? "", /root:/);
  } catch (error) {
    assert.ok(error instanceof InvalidOpml);
  }
});

test("OPML: more than 50,000 feeds → rejected", () => {
  const many = file(outline("https://a.example/").repeat(MAX_ENTRIES + 1));
  assert.throws(() => readOpml(Buffer.from(many)), /more than 50000 feeds/);
});

const cases: Readonly<Record<string, readonly [body: string, ...feedUrls: string[]]>> = {
  "unclosed outlines": ['<outline xmlUrl="a"><outline xmlUrl="b">'.repeat(100), ...Array(100).fill(["a", "b"]).flat()],
  "stray end tags": [`</outline></b></outline>${outline("a")}`, "a"],
  "mismatched end tag": [`<outline text="folder">${outline("a")}</folder>${outline("b")}`, "a", "b"],
  "outlines within other elements": [`<div>${outline("a")}</div></body><body>${outline("b")}`, "a", "b"],
  "markup in text": [`<title>I <3 you & "me"</title> < & ${outline("a")}`, "a"],
  "single quotes": [`<outline text='The "Best"' xmlUrl='a'/>`, "a"],
  "no quotes": ["<outline text=t xmlUrl=https://a.example/1 /><outline xmlUrl=b>", "https://a.example/1", "b"],
  "no space between attributes": ['<outline text="t"xmlUrl="a"/>', "a"],
  "spaces around =": ['<outline text = "t"\n  xmlUrl\t=\n"a"/>', "a"],
  "raw quotes in a value": ['<outline text="The "Best" Show" xmlUrl="a"/>', "a"],
  "raw < and > in a value": ['<outline text="a <b> & c" xmlUrl="a?<b>"/>', "a?<b>"],
  "missing quote": [`<outline xmlUrl="a text="t"/>${outline("b")}`, "a text=", "b"],
  "attribute twice": ['<outline xmlUrl="a" xmlurl="b"/>', "b"],
  "many blanks before a URL": [outline(`${" ".repeat(40_000)}a`), "a"],
  "empty xmlUrl": [
    '<outline xmlUrl=" " type="rss" url="a"/><outline xmlUrl="" text="b"/><outline xmlUrl/>',
    "a",
    "",
    "",
  ],
  "names with a namespace prefix": ['<outline x:xmlUrl="a"/><x:outline xmlUrl="b"/>'],
  "longer and shorter names": ['<outline xmlUrls="a"/><outlines xmlUrl="b"/><outlin xmlUrl="c"/>'],
  comments: [`<!-- ${outline("a")} -- > --><!-->${outline("b")}--><!-- ${outline("c")} --!>${outline("d")}`, "d"],
  CDATA: [`<![CDATA[${outline("a")}]]>${outline("b")}<![CDATA[]]]]>${outline("c")}`, "b", "c"],
  "processing instructions": [`<?x a > b ${outline("a")}?>${outline("b")}`, "b"],
  "ampersands that start no entity": [outline("?a=1&copy=2&lt=3;&&#38&unknown;&"), "?a=1&copy=2&lt=3;&&#38&unknown;&"],
  entities: [outline("&amp;&#38;&#x26;&AMP;&lt;&gt;&quot;&apos;&eacute;&amp;amp;"), "&&&&<>\"'é&amp;"],
  "references to invalid code points": [outline("&#0;&#xD800;&#x110000;&#99999999999999999999;"), "\ufffd".repeat(4)],
  "names of object properties": ['<outline __proto__="x" constructor="y" xmlUrl="a"/><__proto__/>', "a"],
};

for (const [name, [body, ...expected]] of Object.entries(cases))
  test(`OPML: ${name} → exactly the expected feeds`, () => assert.deepEqual(feedUrlsOf(file(body)), expected));

test("OPML: line breaks and tabs within a title → one space each", () => {
  const [entry] = readOpml(Buffer.from(file('<outline text="\r\na\nb\r\nc\td&#10;e " xmlUrl="a"/>')));
  assert.equal(entry?.title, "a b c d e");
});

test("OPML: text before and after the document → ignored; no opml element within 64 KiB → rejected", () => {
  assert.deepEqual(feedUrlsOf(`<br/><b>Warning</b>: in x\n${file(outline("a"))}\nbye`), ["a"]);
  assert.throws(() => feedUrlsOf(`<!-- <opml> --><html>${outline("a")}</html>`), /not an OPML file/);
  assert.throws(() => feedUrlsOf(" ".repeat(70_000) + file(outline("a"))), /not an OPML file/);
});

test("OPML: file that ends inside markup → rejected as incomplete", () => {
  // The tag `<end>` must not be taken for the one that the reader itself appends.
  const start = `<opml><body>${outline("a")}<end>`;
  assert.deepEqual(feedUrlsOf(start), ["a"]);
  const ends = [
    "<",
    "</",
    "</body",
    "<outl",
    "<outline",
    "<outline ",
    "<outline xmlU",
    "<outline xmlUrl=",
    '<outline xmlUrl="b',
  ]
    .concat([
      "<outline xmlUrl='b",
      "<outline xmlUrl=b",
      '<outline xmlUrl="b"',
      '<outline xmlUrl="b"/',
      "<!",
      "<!-",
      "<!-- ",
    ])
    .concat(["<!-- --", "<![CDATA[", "<![CDATA[ ]]", "<?x", "<?x ?", "<!DOCTYPE"]);
  for (const end of ends) assert.throws(() => feedUrlsOf(start + end), /incomplete/, end);
  for (const [end, line] of [
    ["\n\n<outline\nxmlUrl='b\n\n", 3],
    ["\n<!--\n\n", 2],
    ["<!--\n", 1],
    ["\n</body>\n</opml", 3],
    ["<outline\n\n/><!--\n", 3],
    ["<!--\n-->\n<!--\n--><outline", 4],
  ] as const)
    assert.throws(() => feedUrlsOf(start + end), {
      name: "InvalidOpml",
      line,
      message: new RegExp(`on line ${line}$`),
    });
});

/** The entries that are skipped or have no URL: line, reason and title of each. */
function skippedOrWithoutUrl(body: string) {
  return readOpml(Buffer.from(file(body))).flatMap(({ feedUrl, title, line, skip }) =>
    skip === undefined && feedUrl !== "" ? [] : [[line, skip ?? "no URL", title]],
  );
}

test("OPML: feeds without a URL → kept as entries, with their line; folders → no entries", () => {
  const body = `\n<outline type="rss" text="a"/>
    <outline text="b" htmlUrl="https://b.example/"/>\n<outline text="c" type="ATOM">
    </outline><outline text="folder"/><outline type="link" text="d"/>
    <outline text="e" type="rss">${outline("https://e.example/")}</outline>
    <outline type="rss" text="Foo xmlUrl="https://f.example/"/>`;
  assert.deepEqual(skippedOrWithoutUrl(body), [
    [2, "no URL", "a"],
    [3, "no URL", "b"],
    [4, "no URL", "c"],
    [7, "no URL", "Foo xmlUrl="],
  ]);
});

test("OPML: several entries for the same feed → all but the first are skipped; the same invalid URL twice → both kept", () => {
  const body = `${outline("https://a.example/1")}\n${outline("http://A.example/1/")}\n${outline("x")}${outline("x")}`;
  assert.deepEqual(skippedOrWithoutUrl(body), [[2, "duplicate-in-file", "t"]]);
});

test("OPML: if any Overcast feed is marked as subscribed → those that are not are skipped", () => {
  const feed = (number: number, more: string) =>
    outline(`https://a.example/${number}`, `overcastId="${number}" ${more}`);
  const body = [feed(1, 'subscribed="1"'), feed(2, 'subscribed="0"'), feed(3, ""), feed(2, 'subscribed="1"')];
  assert.deepEqual(skippedOrWithoutUrl(body.join("\n")), [
    [2, "unsubscribed-in-file", "t"],
    [3, "unsubscribed-in-file", "t"],
  ]);
  assert.deepEqual(skippedOrWithoutUrl([1, 2].map((number) => feed(number, "")).join("")), []);
});

test("OPML: long title → truncated to 300 characters, never within a character", () => {
  const read = (title: string) =>
    readOpml(Buffer.from(file(`<outline title="${title}" xmlUrl="https://a.example/"/>`)))[0]?.title;
  assert.equal(read("é".repeat(MAX_TITLE)), "é".repeat(MAX_TITLE));
  assert.equal(read("é".repeat(MAX_TITLE + 1)), "é".repeat(MAX_TITLE));
  for (const padding of ["", "x"]) {
    const title = padding + "🎧".repeat(MAX_TITLE);
    for (const raw of [title, title.replaceAll("🎧", "&#x1F3A7;"), title.repeat(200)])
      assert.equal(read(raw), Array.from(title).slice(0, MAX_TITLE).join(""));
  }
});

test("OPML: feed URL that is too long → truncated, but still over the limit", () => {
  const read = (url: string) => feedUrlsOf(file(outline(url)))[0] ?? "";
  const longest = "https://a.example/".padEnd(2 * 2048 - 18, "🎧");
  assert.equal(read(longest), longest);
  for (const tail of ["a".repeat(3_000), "🎧".repeat(3_000), "&#0000000000000000000000000000097;".repeat(1_300)]) {
    const url = read(`feed:https://a.example/${tail}`);
    assert.equal(Array.from(url).length, 2049);
    assert.ok(readFeedUrl(url).kind === "invalid");
  }
});

test("OPML: chunks of any size → the same feeds or error", () => {
  const word = fc.constantFrom(
    "<outline",
    " ",
    "xmlUrl",
    "TEXT",
    "=",
    '"',
    "'",
    "/",
    ">",
    "</",
    "&amp;",
    "<!--",
    "-->",
  );
  const bodies = fc.oneof(
    fc.constantFrom(...Object.values(cases).map(([body]) => body)),
    fc.array(word).map((words) => words.join("")),
  );
  const encodings = fc.constantFrom<BufferEncoding>("utf8", "utf16le");
  fc.assert(
    fc.property(bodies, encodings, fc.integer({ min: 1, max: 40 }), (body, encoding, size) => {
      const bytes = Buffer.from(`\ufeff${file(body + outline("🎧é"))}`, encoding);
      assert.deepEqual(
        outcomeOf(() => readOpml(bytes, size)),
        outcomeOf(() => readOpml(bytes)),
      );
    }),
    { numRuns: runs(1_000) },
  );
  const windows = Buffer.from(file('<outline text="\x93x\x94 \x80" xmlUrl="a"/>'), "latin1");
  for (const size of [1, 7, 64 * 1024])
    assert.deepEqual(readOpml(windows, size), [{ feedUrl: "a", line: 1, title: "“x” €" }]);
});

function outcomeOf(read: () => Entry[]): unknown {
  try {
    return read();
  } catch (error) {
    return String(error);
  }
}

test("OPML: random bytes → feeds or InvalidOpml", () => {
  const word = fc.constantFrom(
    "<outline ",
    'xmlUrl="',
    "https://a.example/",
    '"',
    ">",
    "/>",
    "</outline>",
    "<opml>",
    "<body>",
    "&",
    "&#0;",
    "&#x110000;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "\ufeff",
    "\ud800",
    "\0",
  );
  fc.assert(
    fc.property(
      fc.array(fc.oneof(word, fc.string()), { maxLength: 40 }),
      fc.uint8Array({ maxLength: 20 }),
      (words, bytes) => {
        try {
          readOpml(Buffer.concat([Buffer.from(words.join("")), bytes]));
        } catch (error) {
          assert.ok(error instanceof InvalidOpml, String(error));
        }
      },
    ),
    { numRuns: runs(1_000) },
  );
});

test('OPML: outline called "feeds" around all feeds → not a folder; around only some of them → a folder', () => {
  const inside = `<outline text="Feeds">${outline("https://a.example/1")}</outline>`;
  const foldersOf = (body: string) => readOpml(Buffer.from(file(body))).map(({ folders }) => folders);
  assert.deepEqual(foldersOf(inside), [undefined]);
  assert.deepEqual(foldersOf(`<outline text="feeds"><outline text="a">${inside}</outline></outline>`), [["a/Feeds"]]);
  assert.deepEqual(foldersOf(inside + outline("https://a.example/2")), [["Feeds"], undefined]);
});

test("OPML: too many levels or folders → the outermost levels and the first folders are kept", () => {
  const deep = Array.from({ length: 12 }, (_, index) => `<outline text="${index}">`).join("");
  const [entry] = readOpml(Buffer.from(file(deep + outline("https://a.example/1"))));
  assert.deepEqual(entry?.folders, ["0/1/2/3/4/5/6/7"]);
  const many = Array.from({ length: 30 }, (_, index) => index).join(",");
  const [tagged] = readOpml(Buffer.from(file(outline("https://a.example/1", `category="${many}"`))));
  assert.equal(tagged?.folders?.length, 20);
});

test("OPML: unclosed and stray tags → a feed keeps its folder, and a feed after the folder gets none", () => {
  const body = `</outline><outline text="a">${outline("https://a.example/1")}<b></outline></outline>${outline("https://a.example/2")}`;
  assert.deepEqual(
    readOpml(Buffer.from(file(body))).map(({ folders }) => folders),
    [["a"], undefined],
  );
});
