import assert from "node:assert/strict";
import { test } from "node:test";
import type { FeedMetadata } from "./feed.ts";
import { FeedReader } from "./read-feed.ts";

const BASE = new URL("https://user:secret@a.example/shows/feed.xml");

interface Options {
  readonly contentType?: string;
  readonly chunkBytes?: number;
}

function read(document: string | Uint8Array, options: Options = {}): FeedMetadata | undefined {
  return readCounting(document, options).metadata;
}

/** Also returns how many bytes were read. */
function readCounting(document: string | Uint8Array, { contentType, chunkBytes = 16_384 }: Options = {}) {
  const bytes = Buffer.from(document as string);
  const reader = new FeedReader(BASE, contentType);
  let at = 0;
  for (; at < bytes.length && !reader.isDone; at += chunkBytes) reader.write(bytes.subarray(at, at + chunkBytes));
  return { metadata: reader.end(), bytesRead: at };
}

const rss = (channel: string, attributes = "") =>
  `<?xml version="1.0"?><rss ${attributes}><channel>${channel}</channel></rss>`;
const titleOf = (xml: string) => read(rss(`<title>${xml}</title>`))?.title;
const artworkOf = (channel: string) => read(rss(channel))?.artworkUrl;

const FULL = rss(
  `<atom:link href="https://a.example/self" rel="self"/>
  <image><title>Image title</title><link>https://a.example/image</link><url>/small.png</url></image>
  <title>Title</title><link>https://a.example/</link><language>de_DE</language>
  <description><![CDATA[<p>One &amp; two</p><p>three</p>]]></description>
  <itunes:author>Author</itunes:author>
  <itunes:image href="../large.jpg?a=1&amp;b=2"/>
  <podcast:guid>917393E3-1B1E-5CEF-ACE4-EDAA54E1F810</podcast:guid>
  <itunes:new-feed-url>https://b.example/feed</itunes:new-feed-url>
  <item><title>Item</title><itunes:image href="/item.jpg"/><link>https://a.example/item</link></item>`,
);
const EXPECTED: FeedMetadata = {
  title: "Title",
  author: "Author",
  description: "One & two three",
  homepageUrl: "https://a.example/",
  language: "de-DE",
  podcastGuid: "917393e3-1b1e-5cef-ace4-edaa54e1f810",
  artworkUrl: "https://a.example/large.jpg?a=1&b=2",
  newFeedUrl: "https://b.example/feed",
};

test("feeds: itunes:block of the channel → present only if it says yes", () => {
  const blockOf = (text: string) => read(rss(`<title>t</title>${text}<item/>`))?.block;
  for (const text of ["Yes", "yes", " YES\n", "true", "<![CDATA[Yes]]>"])
    assert.equal(blockOf(`<itunes:block>${text}</itunes:block>`), "yes", text);
  for (const text of ["No", "", "no, yes", "yesterday"])
    assert.equal(blockOf(`<itunes:block>${text}</itunes:block>`), undefined, text);
  assert.equal(blockOf("<item><itunes:block>yes</itunes:block></item>"), undefined);
  assert.equal(blockOf("<block>yes</block>"), undefined);
});

test("feeds: RSS in chunks of any size → the same metadata, without credentials", () => {
  for (const chunkBytes of [1, 2, 3, 7, 64, 16_384])
    assert.deepEqual(read(FULL, { chunkBytes }), EXPECTED, `${chunkBytes}`);
});

test("feeds: RDF → metadata of the channel, image beside it", () => {
  const rdf = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
    xmlns:x="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://a.example/"><title>Title</title>
    <link>https://a.example/home</link><x:creator>Author</x:creator><image rdf:resource="/i.png"/></channel>
    <image><title>Not this</title><url>/i.png</url></image><item><title>Item</title></item></rdf:RDF>`;
  assert.deepEqual(read(rdf), {
    title: "Title",
    homepageUrl: "https://a.example/home",
    author: "Author",
    artworkUrl: "https://a.example/i.png",
  });
});

test("feeds: Atom, also with a prefix → metadata of the feed", () => {
  const atom = (prefix: string, declaration: string) => {
    const tag = (name: string, text: string, attributes = "") =>
      `<${prefix}${name} ${attributes}>${text}</${prefix}${name}>`;
    return tag(
      "feed",
      [
        `<${prefix}link rel="self" href="/self"/><${prefix}link href="/home"/>`,
        tag("title", "<div xmlns='http://www.w3.org/1999/xhtml'>One <b>t</b>wo</div>", 'type="xhtml"'),
        tag("subtitle", "Sub"),
        tag("author", tag("name", "Author") + tag("uri", "https://a.example/author")),
        tag("icon", "/icon.png") + tag("logo", "/logo.png"),
        tag("entry", tag("title", "Entry") + tag("author", tag("name", "Other"))),
      ].join(""),
      `${declaration} xml:lang="fr"`,
    );
  };
  const expected = {
    title: "One two",
    author: "Author",
    description: "Sub",
    homepageUrl: "https://a.example/home",
    language: "fr",
    artworkUrl: "https://a.example/logo.png",
  };
  for (const [prefix, declaration] of [
    ["", 'xmlns="http://www.w3.org/2005/Atom"'],
    ["atom:", 'xmlns:atom="http://www.w3.org/2005/Atom"'],
    ["x:", 'xmlns:x="http://www.w3.org/2005/Atom"'],
  ] as const)
    assert.deepEqual(read(atom(prefix, declaration)), expected, prefix);
});

test("feeds: JSON Feed → metadata; other JSON → not a feed", () => {
  const feed = {
    version: "https://jsonfeed.org/version/1.1",
    title: "Title &amp; more",
    authors: [{ name: "Author" }],
    home_page_url: "https://a.example/",
    icon: "/icon.png",
    language: "en",
    description: 7,
    items: [{ title: "Item" }],
  };
  assert.deepEqual(read(`\ufeff \n${JSON.stringify(feed)}`, { chunkBytes: 5 }), {
    title: "Title & more",
    author: "Author",
    homepageUrl: "https://a.example/",
    language: "en",
    artworkUrl: "https://a.example/icon.png",
  });
  assert.equal(read(JSON.stringify({ ...feed, authors: [null] }))?.author, undefined);
  for (const text of ['{"error":"no such feed"}', "{", '{"version":1}', `{"a":${"[".repeat(1_000_000)}`])
    assert.equal(read(text), undefined, text.slice(0, 30));
  const long = JSON.stringify({ ...feed, items: "x".repeat(2 * 1024 * 1024) });
  assert.equal(read(long), undefined);
});

test("feeds: other prefixes of the podcast namespaces → recognized by URI", () => {
  const feed = rss(
    '<title>T</title><a:image href="/a.png"/><b:guid>917393e3-1b1e-5cef-ace4-edaa54e1f810</b:guid><c:author>C</c:author>',
    'xmlns:a="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:b="https://podcastindex.org/namespace/1.0" xmlns:c="urn:c"',
  );
  assert.deepEqual(read(feed), {
    title: "T",
    artworkUrl: "https://a.example/a.png",
    podcastGuid: "917393e3-1b1e-5cef-ace4-edaa54e1f810",
  });
});

test("feeds: several images → itunes before podcast before RSS, wherever they are in the channel", () => {
  const [itunes, podcast, image] = [
    '<itunes:image href="/1"/>',
    '<podcast:image href="/2"/>',
    "<image><url>/3</url></image>",
  ];
  for (const [channel, expected] of [
    [image + podcast + itunes, "/1"],
    [itunes + podcast + image, "/1"],
    [image + podcast, "/2"],
    [image, "/3"],
    ['<itunes:image href=""/><itunes:image href="javascript:1"/><itunes:image href="/4"/>', "/4"],
    ['<item><itunes:image href="/5"/><image><url>/6</url></image></item>', undefined],
    ['<itunes:category><itunes:image href="/7"/></itunes:category>', undefined],
  ] as const)
    assert.equal(artworkOf(channel), expected && `https://a.example${expected}`, channel);
});

test("feeds: title and artwork known → stops within the chunk", () => {
  const items = '<item><title>Item</title><itunes:image href="/item.jpg"/></item>'.repeat(50_000);
  const feed = rss(`<title>T</title><image><url>/a.png</url></image>${items}<title>Z</title>`);
  const { metadata, bytesRead } = readCounting(feed, { chunkBytes: 1_000 });
  assert.equal(bytesRead, 1_000);
  assert.deepEqual(metadata, { title: "T", artworkUrl: "https://a.example/a.png" });
  // The better image comes after the first item, in the same chunk.
  const late = rss('<title>T</title><image><url>/a.png</url></image><item/><itunes:image href="/b.png"/>');
  assert.equal(read(late)?.artworkUrl, "https://a.example/a.png");
});

test("feeds: title and artwork after the items → found", () => {
  const items = '<item><title>Item</title><itunes:image href="/item.jpg"/></item>'.repeat(1_000);
  assert.deepEqual(read(rss(`${items}<title>T</title><itunes:image href="/a.png"/>`)), {
    title: "T",
    artworkUrl: "https://a.example/a.png",
  });
});

test("feeds: no artwork before the items → looked for in the next 256 KiB", () => {
  const item = `<item><title>Item</title><description>${"x".repeat(970)}</description></item>`;
  const withItems = (kib: number, head = "<title>T</title>") =>
    rss(`${head}${item.repeat(Math.ceil((kib * 1_024) / item.length))}<itunes:image href="/a.png"/><title>Z</title>`);
  assert.equal(read(withItems(250))?.artworkUrl, "https://a.example/a.png");
  const { metadata, bytesRead } = readCounting(withItems(2_000), { chunkBytes: 1_000 });
  assert.deepEqual(metadata, { title: "T" });
  assert.ok(bytesRead > 256 * 1_024 && bytesRead < 260 * 1_024, String(bytesRead));
  // Without a title, the whole feed is read.
  assert.deepEqual(read(withItems(2_000, "")), { title: "Z", artworkUrl: "https://a.example/a.png" });
});

test("text: entities, markup and white space → plain text on one line", () => {
  for (const [xml, expected] of [
    ["Q&A & more", "Q&A & more"],
    ["a&nbsp;b&amp;nbsp;c", "a b c"],
    ["&amp;amp; &amp;lt;b&amp;gt;", "& <b>"],
    ["&lt;b&gt;bold&lt;/b&gt;", "bold"],
    ["&#65;&#x42;&#xD800;&#0;", "AB\ufffd\ufffd"],
    ["<![CDATA[A & B &amp; <i>C</i>]]>", "A & B & C"],
    ["A<![CDATA[<br>]]>B", "A B"],
    ["  a\r\n\t b  ", "a b"],
    ["a\u0000b\u0007c\u0085d\u2028e", "a b c d e"],
    ["\u202eevil\u202c \u2066x\u2069", "evil x"],
    ["<script>alert(1)</script>T", "T"],
    ["&lt;script&gt;alert(1)&lt;/script&gt;T&lt;style&gt;a{}&lt;/style&gt;", "T"],
    ["1 &lt; 2 &gt; 0", "1 < 2 > 0"],
    ["&lt;!-- hidden --&gt;shown", "shown"],
    ["&unknown; &xxe;", "&unknown; &xxe;"],
  ] as const)
    assert.equal(titleOf(xml), expected, xml);
});

test("text: empty values → left out", () => {
  const empty = rss(
    "<title> &amp;nbsp;<b/></title><description><![CDATA[<p></p>]]></description><link/><language>?</language>",
  );
  assert.deepEqual(read(empty), {});
});

test("text: longer than the limit → truncated, never within a character", () => {
  const metadata = read(
    rss(
      `<title>${"\u{1f399}".repeat(500_000)}</title><itunes:author>${"a".repeat(1_000_000)}</itunes:author>
      <description>${"d".repeat(1_000_000)}</description><link>https://a.example/${"x".repeat(2_100)}</link>
      <language>${"en-abcdefgh".repeat(10)}</language>`,
    ),
  );
  assert.equal(metadata?.title, "\u{1f399}".repeat(300));
  assert.equal(metadata.author?.length, 300);
  assert.equal(metadata.description?.length, 4_000);
  assert.equal(metadata.homepageUrl, undefined);
  assert.equal(metadata.language, undefined);
});

test("text: DTD entities → not expanded", () => {
  const feed = `<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]>
    <rss><channel><title>T &a; &b;</title></channel></rss>`;
  assert.equal(read(feed)?.title, "T &a; &b;");
});

test("URLs: other schemes, credentials, spaces → dropped, removed, encoded", () => {
  for (const [link, expected] of [
    ["javascript:alert(1)", undefined],
    ["data:text/html,x", undefined],
    ["file:///etc/passwd", undefined],
    ["https://", undefined],
    ["https:b.example", undefined],
    ["\\\\b.example\\x", undefined],
    ["https://name:secret@b.example/", "https://b.example/"],
    ["//b.example/x y", "https://b.example/x%20y"],
    ["x", "https://a.example/shows/x"],
    ["?a", "https://a.example/shows/feed.xml?a"],
    ["HTTP://B.example", "http://b.example/"],
  ] as const)
    assert.equal(read(rss(`<link>${link}</link>`))?.homepageUrl, expected, link);
});

test("charsets: label, byte order mark, declaration, wrong labels → the right text", () => {
  const text = "Grüße “日本”";
  const western = "Grüße “x”";
  const feed = (title: string, encoding = "") =>
    `<?xml version="1.0" ${encoding}?><rss><channel><title>${title}</title></channel></rss>`;
  const utf16 = (title: string) => Buffer.from(feed(title, 'encoding="UTF-16"'), "utf16le");
  const latin = (encoding = "") =>
    Buffer.from(feed(western, encoding).replaceAll("“", "\x93").replaceAll("”", "\x94"), "latin1");
  const japanese = Buffer.concat([
    Buffer.from('<?xml version="1.0" encoding="Shift_JIS"?><rss><channel><title>'),
    Buffer.from([0x93, 0xfa, 0x96, 0x7b]),
    Buffer.from("</title></channel></rss>"),
  ]);
  const cases: readonly (readonly [name: string, bytes: Buffer, expected: string, contentType?: string])[] = [
    ["UTF-8", Buffer.from(feed(text)), text],
    ["UTF-8 with BOM and a wrong label", Buffer.from(`\ufeff${feed(text)}`), text, "text/xml; charset=shift_jis"],
    ["UTF-8 labeled Latin-1", Buffer.from(feed(text, 'encoding="ISO-8859-1"')), text, "text/xml;charset=iso-8859-1"],
    ["Latin-1 without label", latin(), western],
    ["Latin-1 labeled UTF-8", latin('encoding="UTF-8"'), western, 'text/xml; charset="utf-8"'],
    ["Latin-1 with an unknown label", latin('encoding="x-nothing"'), western, "text/xml; charset=nothing"],
    ["UTF-16 LE with BOM", Buffer.concat([Buffer.from([0xff, 0xfe]), utf16(text)]), text],
    ["UTF-16 LE", utf16(text), text],
    ["UTF-16 BE with BOM", Buffer.concat([Buffer.from([0xfe, 0xff]), utf16(text).swap16()]), text],
    ["UTF-16 BE", utf16(text).swap16(), text],
    ["UTF-8 labeled UTF-16", Buffer.from(feed(text, 'encoding="UTF-16"')), text, "text/xml; charset=utf-16"],
    ["Shift JIS", japanese, "日本"],
    [
      "charset before declaration",
      Buffer.from(japanese.toString("latin1").replace("Shift_JIS", "EUC-KR"), "latin1"),
      "日本",
      "text/xml; charset=Shift_JIS",
    ],
  ];
  for (const [name, bytes, expected, contentType = "text/xml"] of cases)
    for (const chunkBytes of [1, 5, 16_384])
      assert.equal(read(bytes, { contentType, chunkBytes })?.title, expected, `${name}, ${chunkBytes}`);
});

test("broken documents: warnings before the root, truncated → read as far as possible", () => {
  const feed = rss("<title>T</title>");
  for (const before of [
    "\n\n \t",
    "\ufeff\n",
    "<br />\n<b>Warning</b>: Undefined variable $x in <b>/feed.php</b> on line <b>3</b><br />\n",
    "<br>\n<b>Notice</b>: a < b && c<br>",
    "Deprecated: strlen()\n",
  ])
    assert.equal(read(before + feed)?.title, "T", before);
  assert.deepEqual(read(feed.slice(0, feed.indexOf("</channel>"))), { title: "T" });
  assert.deepEqual(read(feed.slice(0, feed.indexOf("</title>"))), {}, "a title that was cut does not count");
  assert.equal(read("<RSS><Channel><Title>T</Title></Channel></RSS>")?.title, "T");
});

test("not a feed: HTML, empty, text, binary, other XML → undefined", () => {
  const page =
    "<!DOCTYPE html><html><head><title>Sign in to the Wi-Fi</title></head><body><rss><channel/></rss></body></html>";
  for (const document of [
    ...[
      "",
      "   ",
      "hello",
      "<",
      "<rss></rss>",
      "<rss/>",
      "<opml><body/></opml>",
      "<?xml version='1.0'?>",
      "[1,2]",
      "null",
    ],
    ...[page, page.slice(15), page.toUpperCase(), "<script>location='/login'</script><rss><channel/></rss>"],
    ...["\0".repeat(100_000), "x".repeat(1_000_000), "<a/>".repeat(100_000)],
  ])
    assert.equal(read(document), undefined, document.slice(0, 40));
  assert.equal(read(new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3])), undefined);
});

test("not a feed: no root element for 64 KiB → stops", () => {
  assert.ok(readCounting("x".repeat(1_000_000)).bytesRead < 100_000);
  assert.ok(readCounting("<a/>".repeat(1_000_000)).bytesRead < 100_000);
});

test("hostile documents: deep nesting, long or many attributes → read as far as possible", () => {
  const attributes = Array.from({ length: 150_000 }, (_, index) => `a${index}="x"`).join(" ");
  const cases: readonly (readonly [document: string, expected: FeedMetadata | undefined])[] = [
    ["<a>".repeat(700_000), undefined],
    [`<rss><channel>${"<a>".repeat(700_000)}`, undefined],
    [`<rss><channel><title>T</title>${"<a>".repeat(700_000)}`, { title: "T" }],
    [`<rss><channel><item>${"<a>".repeat(700_000)}`, undefined],
    [rss(`<x y="${"z".repeat(1_000_000)}"/><title>T</title>`), { title: "T" }],
    [rss(`<x y="${"z".repeat(2_000_000)}"/><title>T</title>`), undefined],
    [rss(`<title>T</title><itunes:image href="${"z".repeat(2_000_000)}"/>`), { title: "T" }],
    [rss(`<title><![CDATA[${"T".repeat(1_000_000)}]]></title>`), { title: "T".repeat(300) }],
    [rss(`<title><![CDATA[${"T".repeat(2_000_000)}]]></title>`), undefined],
    [rss("<title>T</title>", attributes), { title: "T" }],
    [rss("<title>T</title>", attributes.replaceAll("a", "xmlns:a")), { title: "T" }],
    [rss(`<${"n".repeat(2_000_000)}/><title>T</title>`), undefined],
    [rss(`<title>T</title>${"</a>".repeat(500_000)}`), { title: "T" }],
    [rss(`<title>${"<b></b>".repeat(90_000)}T</title>`), { title: "T" }],
    [rss(`<title>${"<b></b>".repeat(300_000)}T</title>`), undefined],
    [rss(`<title>T</title>${"<a/>".repeat(500_000)}`), { title: "T" }],
    [rss(`<title>T</title><!--${"-".repeat(2_000_000)}-->`), { title: "T" }],
  ];
  for (const [document, expected] of cases) assert.deepEqual(read(document), expected, document.slice(0, 50));
});
