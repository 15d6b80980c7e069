import type { Corpus } from "./inputs.ts";

const TYPE = "application/vnd.api+json";
const URI = "https://jsonapi.org/ext/atomic";
const [NUMBER, SIZE, FIELDS] = ["page[number]", "page[size]", "fields[subscription]"];
const file = (body: string) => `<?xml version="1.0"?><opml version="2.0"><head/><body>${body}</body></opml>`;
const feed = (number: number) => `<outline type="rss" text="t${number}" xmlUrl="https://a.example/${number}"/>`;
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le").toString("latin1");

export const MEDIA_TYPES: Corpus = {
  isBytes: false,
  // As long as all headers of a request together may be.
  maxLength: 16_384,
  seeds: [
    "",
    TYPE,
    `${TYPE};ext="${URI}"`,
    `${TYPE} ; EXT=${URI} ; profile="https://p.example/1 https://p.example/2"`,
    `${TYPE};ext="${URI}\\" \\\\ ${URI}"`,
    `${TYPE};ext="\t${URI} https://other.example/";charset=utf-8`,
    `${TYPE};ext="${URI}`,
    `${TYPE};ext`,
    `${TYPE};ext="${URI}";ext=""`,
    `text/html, application/*;q=0.1, */*;q=0.000`,
    `${TYPE};v=2, ${TYPE};q=0, , ${TYPE};ext="${URI}";q=1.000`,
    "*/*",
    "*/*; q=.2, *; q=abc; q=0",
    `${TYPE}${";a=b".repeat(50)}`,
    Array.from({ length: 50 }, (_, index) => `text/x-${index};q=0.${index}`).join(","),
  ],
  words: [TYPE, "application/*", "*/*", URI, ";", ",", "=", '"', "\\", " ", "\t", "ext", "profile", "q", "q=0", ";q=0."]
    .concat([`ext="${URI}"`, `;ext="${URI} `, ";q=0.000", ";q=1", "charset=utf-8", "é", "text/html", '""'])
    .concat(["application/vnd.api+json;ext=", "Application/VND.API+JSON"]),
};

export const OPML_FILES: Corpus = {
  isBytes: true,
  maxLength: 60_000,
  seeds: [
    "",
    file(""),
    file(feed(1) + feed(2)),
    file(`<outline text="a">${feed(1)}<outline text="b" xmlUrl="https://a.example/x">${feed(2)}</outline></outline>`),
    file(`<outline text="Feeds">${feed(1)}<outline title="a/b">${feed(2)}${feed(1)}</outline></outline>`),
    file(`<outline text="a">${feed(1)}</outline><outline text="b">${feed(1)}</outline>${feed(2)}`),
    file('<outline text="t" category="/a/b,c%2C d" xmlUrl="https://a.example/"/>'),
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
    ' category="/a,',
    "</outline>",
    ' title="',
    ' type="rss"',
    ' url="',
    '"',
    "/>",
    ">",
    "</body>",
  ]
    .concat(["<opml>", "<body>", "<head>", "</opml>", "&amp;", "&#0;", "&#x110000;", "&lt;", "&", "<![CDATA[", "]]>"])
    .concat(["<!--", "-->", "<!DOCTYPE x [", '<!ENTITY a "b">', "<?xml ", 'encoding="utf-16"', "\xff\xfe", "\xfe\xff"])
    .concat([feed(9), '<outline text="folder">', "https://a.example/", "feed:", "itpc://", "__proto__", "constructor"])
    .concat(['<outline text="x">'.repeat(50), "\xef\xbf\xbe", "\x00", "\xe9", "outlines", "<outline/>"]),
};

export const QUERIES: Corpus = {
  isBytes: false,
  maxLength: 16_384,
  seeds: [
    "",
    "&&",
    "=1",
    "page[number]=3&page[size]=7",
    "page%5Bnumber%5D=01&page%5bsize%5d=100&",
    "page%255Bnumber%255D=1",
    "page[number]=9007199254740991",
    "page[number]=9007199254740992",
    "page[size]=101",
    "page[number]",
    "page[number]=+1",
    "page[number]=%EF%BC%91",
    "page[number]=%C3%28",
    "page[number]=%zz",
    "page[size]=1&page[size]=1",
    "page[number][]=1",
    "fields[subscription]=feed_url%2Cuser_subscribed_at",
    "fields[subscription]=",
    "fields[subscription]=feed_url,",
    "fields[subscription]=title,folders",
    "include=podcast&fields[podcast]=title,artwork",
    "filter[feed_url]=https%3A%2F%2Fa.example%2F%3Fb%3D1%26c&page[size]=2",
    "filter[feed_url]=nonsense",
    "fields[podcast]=x",
    "__proto__[x]=1&constructor=2",
    "dryRun=true",
    "dryRun=1",
    "page[number]=1;page[size]=2",
    "page[number]=%0d%0aSet-Cookie:x=1",
  ],
  words: [
    `${NUMBER}=`,
    `${SIZE}=`,
    `${FIELDS}=`,
    "dryRun=",
    "&",
    "=",
    "%5B",
    "%5D",
    "%",
    "%C3",
    "%A9",
    "%ED%A0%80",
    "+",
  ]
    .concat(["1", "25", "100", "101", "feed_url", "user_subscribed_at", ",", "%2C", "true", "false", "page", "[", "]"])
    .concat(["%00", "%F0%9F%8E%A7", "\ud800", "é", "__proto__", "toString", "#", ";"]),
};
