import assert from "node:assert/strict";
import { test } from "node:test";
import { fc, runs } from "../../test/properties.ts";
import type { Subscription } from "../subscriptions.ts";
import { NotOpml } from "./entry.ts";
import { MAX_ENTRIES, readOpml } from "./read.ts";
import { writeOpml } from "./write.ts";

const file = (body: string) =>
  `<?xml version="1.0"?><opml version="2.0"><head><title>x</title></head><body>${body}</body></opml>`;
const outline = (url: string, more = "") => `<outline type="rss" text="t" xmlUrl="${url}" ${more}/>`;
const addresses = (text: string | Uint8Array) =>
  readOpml(typeof text === "string" ? Buffer.from(text) : text).map(({ feedUrl }) => feedUrl);

test("every feed is found, in the order of the file, in folders and below other feeds", () => {
  const nested = `${outline("https://a.example/1")}<outline text="News"><outline text="More">${outline("https://a.example/2")}</outline>
    <outline text="x" xmlUrl="https://a.example/3">${outline("https://a.example/4")}</outline></outline>${outline("https://a.example/5")}`;
  assert.deepEqual(
    addresses(file(nested)),
    [1, 2, 3, 4, 5].map((number) => `https://a.example/${number}`),
  );
});

test("folders, comments and other outlines are passed over", () => {
  assert.deepEqual(
    addresses(file('<outline text="folder"/><!-- x --><outline type="link" text="x" url="https://a.example/"/>')),
    [],
  );
  assert.deepEqual(addresses(file('<outline type="rss" text="x" url="https://a.example/"/>')), ["https://a.example/"]);
  assert.deepEqual(addresses('<opml version="2.0"><head/></opml>'), []);
});

test("names of elements and attributes may be in any case", () => {
  for (const name of ["xmlUrl", "xmlurl", "XMLURL", "XmlUrl"])
    assert.deepEqual(addresses(file(`<outline text="t" ${name}="https://a.example/1"/>`)), ["https://a.example/1"]);
  assert.deepEqual(addresses('<OPML VERSION="1.1"><BODY><OUTLINE XMLURL="https://a.example/1"/></BODY></OPML>'), [
    "https://a.example/1",
  ]);
});

test("titles are kept, whatever they look like", () => {
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

test("a raw ampersand is what was meant", () => {
  assert.deepEqual(addresses(file(outline("https://a.example/?x=1&y=2&amp;z=3"))), ["https://a.example/?x=1&y=2&z=3"]);
});

test("other names for http lead to the web", () => {
  const meant = {
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
    addresses(
      file(
        Object.keys(meant)
          .map((url) => outline(url))
          .join(""),
      ),
    ),
    Object.values(meant),
  );
});

test("blanks around an address are not part of it", () => {
  assert.deepEqual(addresses(file(outline("  https://a.example/1 \n"))), ["https://a.example/1"]);
});

test("what is no web address is there too, to be refused by name", () => {
  const odd = ["antennapod_local:content://x", "file:///sdcard/x", "nonsense", "/feed.xml"];
  assert.deepEqual(addresses(file(odd.map((url) => outline(url)).join(""))), odd);
});

test("files of many encodings are read", () => {
  const text = file('<outline text="Café Ñandú" xmlUrl="https://a.example/é"/>');
  const declared = (name: string) => text.replace('version="1.0"', `version="1.0" encoding="${name}"`);
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(declared("UTF-16"), "utf16le")]);
  for (const [name, bytes] of Object.entries({
    "UTF-8": Buffer.from(text),
    "UTF-8 with its mark": Buffer.from(`\ufeff${declared("utf-8")}`),
    "UTF-16, little end first": utf16,
    "UTF-16, big end first": Buffer.from(utf16).swap16(),
    "ISO-8859-1": Buffer.from(declared("ISO-8859-1"), "latin1"),
    "Windows-1252": Buffer.from(declared("windows-1252"), "latin1"),
    "Latin 1 that says nothing": Buffer.from(text, "latin1"),
    "Latin 1 that says it is UTF-8": Buffer.from(declared("UTF-8"), "latin1"),
  })) {
    const [entry] = readOpml(bytes);
    assert.deepEqual(entry, { feedUrl: "https://a.example/é", title: "Café Ñandú" }, name);
  }
  assert.throws(() => readOpml(Buffer.from(declared("klingon"))), /encoding that is not known here \(klingon\)/);
});

test("what is no OPML file is said to be none", () => {
  for (const text of [
    "",
    "{}",
    "<html><body>no</body></html>",
    "<rss><channel/></rss>",
    "plain words",
    "\0\0\0",
    "<opml",
  ])
    assert.throws(() => readOpml(Buffer.from(text)), NotOpml, JSON.stringify(text));
});

test("entities of the file's own are not expanded, and nothing is fetched", () => {
  const bomb = `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">${Array.from({ length: 9 }, (_, index) => `<!ENTITY b${index} "${`&${index === 0 ? "a" : `b${index - 1}`};`.repeat(10)}">`).join("")}<!ENTITY e SYSTEM "file:///etc/passwd">]>`;
  const started = process.memoryUsage().rss;
  const read = () => readOpml(Buffer.from(`${bomb}${file('<outline text="&b8;&e;" xmlUrl="https://a.example/1"/>')}`));
  try {
    const [entry] = read();
    assert.ok((entry?.title?.length ?? 0) < 1_000);
    assert.doesNotMatch(entry?.title ?? "", /root:/);
  } catch (error) {
    assert.ok(error instanceof NotOpml);
  }
  assert.ok(process.memoryUsage().rss - started < 200 * 2 ** 20);
});

test("a file that is nested endlessly, or names very many feeds, is refused", () => {
  const deep = `${'<outline text="x">'.repeat(100_000)}${outline("https://a.example/1")}`;
  assert.throws(() => readOpml(Buffer.from(file(deep))), NotOpml);
  const many = file(outline("https://a.example/").repeat(MAX_ENTRIES + 1));
  assert.throws(() => readOpml(Buffer.from(many)), /more than 50000 feeds/);
});

test("whatever the bytes, there are feeds or there is a reason", () => {
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
          assert.ok(error instanceof NotOpml, String(error));
        }
      },
    ),
    { numRuns: runs(1_000) },
  );
});

test("what is written is read back as it was", async () => {
  const character = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom("&", "<", ">", '"', "'", "&amp;", "]]>", "&#39;", "é", "🎧", "%"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(character, { maxLength: 20 }), { maxLength: 5 }), async (tails) => {
      // Addresses have no white space, controls or lone surrogates; XML has no U+FFFE and U+FFFF.
      const urls = tails.map(
        (tail) =>
          `https://a.example/${tail
            .join("")
            .toWellFormed()
            .replaceAll(/[\s\u0000-\u001f\u007f-\u009f\ufffe\uffff]/g, "")}`,
      );
      async function* lists(): AsyncGenerator<readonly Subscription[]> {
        yield urls.map((feedUrl) => ({ id: "", feedUrl, subscribedAt: new Date() }));
      }
      let text = "";
      for await (const piece of writeOpml(lists(), new Date())) text += piece;
      assert.deepEqual(addresses(text), urls);
    }),
    { numRuns: runs(500) },
  );
});

test("what XML cannot hold never reaches the file that is written", async () => {
  async function* lists(): AsyncGenerator<readonly Subscription[]> {
    yield [{ id: "", feedUrl: "https://a.example/\ufffe\uffff", subscribedAt: new Date() }];
  }
  let text = "";
  for await (const piece of writeOpml(lists(), new Date())) text += piece;
  assert.doesNotMatch(text, /[\ufffe\uffff]/);
  assert.deepEqual(addresses(text), ["https://a.example/\ufffd\ufffd"]);
});
