import assert from "node:assert/strict";
import { MAX_FEED_URL, readFeedUrl } from "../../src/feed-url.ts";
import { Parser } from "../../src/http/parser.ts";
import { type Entry, NotOpml } from "../../src/opml/entry.ts";
import { MAX_TITLE, readOpml } from "../../src/opml/read.ts";
import { writeOpml } from "../../src/opml/write.ts";
import type { Subscription } from "../../src/subscriptions.ts";
import type { Target } from "./target.ts";

const file = (body: string) => `<?xml version="1.0"?><opml version="2.0"><head/><body>${body}</body></opml>`;
const feed = (number: number) => `<outline type="rss" text="t${number}" xmlUrl="https://a.example/${number}"/>`;
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le").toString("latin1");
const parser = new Parser(1024 * 1024);
const parseInThread = (bytes: Uint8Array) =>
  parser.parse<Entry>(
    { kind: "opml", bytes: Uint8Array.from(bytes) },
    "fuzz",
    () => undefined,
    () => true,
  );
let files = 0;

export const opmlFiles: Target = {
  name: "opml",
  isBytes: true,
  maxLength: 60_000,
  watches: ["/src/opml/", "/htmlparser2/", "/entities/"],
  seeds: [
    "",
    file(""),
    file(feed(1) + feed(2)),
    file(`<outline text="a">${feed(1)}<outline text="b" xmlUrl="https://a.example/x">${feed(2)}</outline></outline>`),
    file('<outline type="rss" text="x" url="https://a.example/"/><outline type="link" url="https://b.example/"/>'),
    file('<OUTLINE XMLURL="feed://a.example/1"/><outline xmlurl="pcast:https://a.example/2"/>'),
    file('<outline title="&amp;&#39;&#x1F3A7;&lt;" xmlUrl="https://a.example/?a=1&b=2&amp;c=3"/>'),
    file("<!-- x --><![CDATA[ ]]><?pi x?>"),
    `<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>${file('<outline text="&b;" xmlUrl="https://a.example/"/>')}`,
    utf16(file(feed(1))),
    file(feed(1)).replace('"1.0"', '"1.0" encoding="ISO-8859-1"'),
    file(feed(1)).replace('"1.0"', '"1.0" encoding="klingon"'),
    `\xef\xbb\xbf${file(feed(1))}`,
    file('<outline text="caf\xe9" xmlUrl="https://a.example/\xe9"/>'),
    "<rss><channel/></rss>",
    "<opml",
  ],
  words: [
    "<outline ",
    ' xmlUrl="',
    ' text="',
    ' title="',
    ' type="rss"',
    ' url="',
    '"',
    "/>",
    ">",
    "</outline>",
    "</body>",
  ]
    .concat(["<opml>", "<body>", "<head>", "</opml>", "&amp;", "&#0;", "&#x110000;", "&lt;", "&", "<![CDATA[", "]]>"])
    .concat(["<!--", "-->", "<!DOCTYPE x [", '<!ENTITY a "b">', "<?xml ", 'encoding="utf-16"', "\xff\xfe", "\xfe\xff"])
    .concat([feed(9), '<outline text="folder">', "https://a.example/", "feed:", "itpc://", "__proto__", "constructor"])
    .concat(['<outline text="x">'.repeat(50), "\xef\xbf\xbe", "\x00", "\xe9", "outlines", "<outline/>"]),

  async check(input) {
    const bytes = Buffer.from(input, "latin1");
    files += 1;
    let entries: Entry[];
    try {
      entries = readOpml(bytes);
    } catch (error) {
      if (!(error instanceof NotOpml)) throw error;
      if (files % 500 === 0) await assert.rejects(parseInThread(bytes), NotOpml);
      return error.message.replace(/\(.*/s, "");
    }
    checkEntries(entries, input);
    assert.deepEqual(readOpml(bytes, 1 + (files % 100)), entries, "read otherwise in small pieces");
    const expected = readClean(input);
    if (expected !== undefined) assert.deepEqual(entries, expected);
    await checkRoundTrip(entries);
    if (files % 500 === 0) assert.deepEqual(await parseInThread(bytes), entries, "the thread reads otherwise");
    return `${Math.min(5, entries.length)} ${expected !== undefined} ${entries.some(({ title }) => title === undefined)}`;
  },
};

function checkEntries(entries: readonly Entry[], input: string): void {
  // Whatever the encoding, these letters are there for each entry, perhaps with a zero between.
  const outlines = input.match(/o\0?u\0?t\0?l\0?i\0?n\0?e/gi)?.length ?? 0;
  assert.ok(entries.length <= outlines, `${entries.length} feeds in a file of ${outlines} outlines`);
  for (const { feedUrl, title } of entries) {
    assert.equal(typeof feedUrl, "string");
    assert.ok(title === undefined || typeof title === "string", "a title that is no text");
    assert.ok(Array.from(title ?? "").length <= MAX_TITLE, "a title that is too long");
    assert.ok(Array.from(feedUrl).length <= MAX_FEED_URL + 1, "a URL that is too long");
  }
}

/** What we write of what we read is read again as it was. */
async function checkRoundTrip(entries: readonly Entry[]): Promise<void> {
  const known = entries.map(({ feedUrl }) => feedUrl).filter((address) => "feed" in readFeedUrl(address));
  async function* lists(): AsyncGenerator<readonly Subscription[]> {
    yield known.map((feedUrl) => ({ id: "", feedUrl, subscribedAt: new Date(0) }));
  }
  let text = "";
  for await (const piece of writeOpml(lists(), new Date(0))) text += piece;
  assert.match(text, WELL_FORMED);
  const again = readOpml(Buffer.from(text)).map(({ feedUrl }) => feedUrl);
  assert.deepEqual(
    again,
    known.map((address) => address.replaceAll(/[\ufffe\uffff]/g, "\ufffd")),
    "written and read again it is something else",
  );
}

const WELL_FORMED =
  /^[\s\S]*<body>\n( {4}<outline( [a-zA-Z]+="([^<>&"]|&(amp|lt|gt|quot);)*")+\/>\n)* {2}<\/body>\n<\/opml>\n$/;
const ENVELOPE = /^(?:<\?xml version="1.0"\?>)?<opml version="2.0">(?:<head\/>)?<body>(.*)<\/body><\/opml>$/s;
const TAG = /<outline((?: [a-zA-Z]+="[!#-%'-;=-~]+")*) ?(\/?)>|(<\/outline>)/y;

/** The feeds of a file that is in no way odd, by regular expressions; undefined when it is odd. */
function readClean(text: string): Entry[] | undefined {
  const body = ENVELOPE.exec(text)?.[1];
  if (body === undefined) return undefined;
  const entries: Entry[] = [];
  let depth = 0;
  for (let at = 0; at < body.length; at = TAG.lastIndex) {
    TAG.lastIndex = at;
    const tag = TAG.exec(body);
    if (tag === null) return undefined;
    const [, attributes = "", slash, end] = tag;
    depth += end !== undefined ? -1 : slash === "/" ? 0 : 1;
    if (depth < 0 || depth > 20) return undefined;
    if (end !== undefined) continue;
    const pairs = [...attributes.matchAll(/([a-zA-Z]+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [
      name.toLowerCase(),
      value,
    ]);
    const named: Record<string, string | undefined> = Object.fromEntries(pairs);
    if (Object.keys(named).length < pairs.length) return undefined;
    const address = named["xmlurl"] ?? (named["type"] === "rss" ? named["url"] : undefined);
    if (address === undefined) continue;
    const title = (named["title"] ?? named["text"])?.slice(0, MAX_TITLE);
    entries.push({ feedUrl: toWebAddress(address).slice(0, MAX_FEED_URL + 1), title });
  }
  return depth === 0 ? entries : undefined;
}

function toWebAddress(address: string): string {
  const [, rest] = /^(?:feed|itpc|pcast|podcast|rss):(?:\/\/)?(.*)$/is.exec(address) ?? [];
  if (rest === undefined) return address;
  return rest.toLowerCase().startsWith("http:") || rest.toLowerCase().startsWith("https:") ? rest : `http://${rest}`;
}
