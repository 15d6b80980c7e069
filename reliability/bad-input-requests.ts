import fc from "fast-check";
import { ATOMIC, PLAIN } from "../bench/support/requests.ts";
import { oddBodies } from "../test/support/properties-documents.ts";

/** Low limits, so that they are exceeded often. */
export const MAX_BODY_BYTES = 20_000;
export const MAX_OPERATIONS = 50;

/** The bytes of a request. */
export interface Hostile {
  readonly bytes: Buffer;
  /** The body, if it is a document with operations: a 200 must have a result for each. */
  readonly document?: Buffer;
  /** Whether it may be too malformed to get a response. */
  readonly mayGoUnanswered?: boolean;
}

/** A kind of hostile request: its texts are seeds, and variants in which pieces are replaced by words. */
export interface Kind {
  readonly name: string;
  readonly seeds: readonly string[];
  readonly words: readonly string[];
  readonly request: (text: string) => Hostile;
  /** Maximum concurrency that is no overload, where it is low. */
  readonly atOnce?: number;
}

const ID = "0193b7f0-7b6c-7d2e-9d5a-2f3c4d5e6f70";
const FEED = "https://feeds.example/show";
const URI = "https://jsonapi.org/ext/atomic";
const NEXTCLOUD = "/index.php/apps/gpoddersync";

const linesOf = (text: string) => text.trim().split(/\n */);
const get = (target: string, headers = "") =>
  Buffer.from(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`, "latin1");
const send = (method: string, target: string, body: Buffer, headers = "") => {
  const head = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
};
const operate = (document: Buffer): Hostile => ({
  bytes: send("POST", "/v1/operations", document, `Content-Type: ${ATOMIC}\r\n`),
  document,
});
const target = (text: string): Hostile => ({ bytes: get(text.replaceAll(/\s/g, "") || "/") });

const addition = { op: "add", data: { type: "subscription", id: ID, attributes: { feed_url: FEED } } };
const DOCUMENTS = [
  { "atomic:operations": [addition] },
  { "atomic:operations": [addition, { ...addition, href: "/v1/subscriptions" }, null, { op: "remove" }], meta: {} },
  { "atomic:operations": [] },
].map((document) => JSON.stringify(document));

const FRAMES = [
  ...DOCUMENTS.map((document) => operate(Buffer.from(document)).bytes),
  get("/v1/subscriptions"),
  Buffer.concat([get("/healthz"), get("/v1/subscriptions")]),
].map((bytes) => bytes.toString("latin1"));
const CHUNKED = `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nTransfer-Encoding: chunked\r\n\r\n18;x=y\r\n{"atomic:operations":[]}\r\n0\r\nTrailer: x\r\n\r\n`;
const FRAME_LINES = linesOf(`
  Transfer-Encoding: chunked
  Content-Length: 5
  Connection: close
  Expect: 100-continue
  Host: x
  Upgrade: h2c
  PRI * HTTP/2.0`).map((line) => `${line}\r\n`);

const HEADERS = linesOf(`
  Accept: ${ATOMIC} ; profile="https://p.example/1 https://p.example/2"
  Accept: text/html, application/*;q=0.1, */*;q=0.000, ${PLAIN};v=2
  Content-Type: ${PLAIN};ext="${URI}\\" \\\\ ${URI}"
  Content-Type: ${PLAIN};ext="${URI}
  Content-Type: ${PLAIN}${";a=b".repeat(50)}
  Authorization: Bearer emk_0123456789
  Cookie: earmark=x; earmark=y; __Host-earmark=z
  Origin: https://evil.example
  Host: evil.example:99999
  Expect: 100-continue
  Content-Encoding: gzip
  If-None-Match: *
  Upgrade: websocket
  X-Forwarded-For: 1.2.3.4, ::1
  Forwarded: for=unknown;host=evil.example
  Connection: keep-alive, Upgrade, close`);

const TARGETS = linesOf(`
  /v1/subscriptions?page[number]=3&page[size]=7
  /v1/subscriptions?page%5Bnumber%5D=9007199254740992&page[size]=101
  /v1/subscriptions?page[number]=%C3%28&page[number]=%zz
  /v1/subscriptions?fields[subscription]=title,folders&include=podcast&fields[podcast]=x
  /v1/subscriptions?filter[feed_url]=https%3A%2F%2Fa.example%2F%3Fb%3D1%26c
  /v1/subscriptions?__proto__[x]=1&constructor=2&&=1
  /v1/subscriptions/${ID}?fields[subscription]=
  /v1/changes?since=x
  /v1/subscriptions.opml
  /v1/../v1/./operations
  /docs?x=%C3%28
  http://evil.example/v1/subscriptions
  /openapi.json`);

const outline = (n: number) => `<outline type="rss" text="t${n}" xmlUrl="https://a.example/${n}"/>`;
const file = (body: string) => `<?xml version="1.0"?><opml version="2.0"><head/><body>${body}</body></opml>`;
const OPML_FILES = [
  "",
  ...linesOf(`
    <outline text="a">${outline(1)}<outline text="b" xmlUrl="https://a.example/x">${outline(2)}</outline></outline>
    <outline text="Feeds">${outline(1)}<outline title="a/b">${outline(2)}${outline(1)}</outline></outline>
    <outline text="t" category="/a/b,c%2C d" xmlUrl="https://a.example/"/><OUTLINE XMLURL="feed://a.example/1"/>
    <outline title="&amp;&#39;&#x1F3A7;&lt;" xmlUrl="https://a.example/?a=1&b=2&amp;c=3"/><!-- x --><![CDATA[ ]]><?pi x?>
    <outline text="caf\xe9" xmlUrl="https://a.example/\xe9"/>`).map(file),
  Buffer.from(`\ufeff${file(outline(1))}`, "utf16le").toString("latin1"),
  file(outline(1)).replace('"1.0"', '"1.0" encoding="klingon"'),
  `<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>${file('<outline text="&b;" xmlUrl="https://a.example/"/>')}`,
];

const play = { podcast: FEED, episode: `${FEED}.mp3`, action: "play", position: 5, started: 0, total: 10 };
/** Uploads of podcast apps, each after its method and target. */
const APP_UPLOADS = linesOf(`
  POST /api/2/subscriptions/u/d.json ${JSON.stringify({ add: [FEED, ""], remove: [`${FEED}/2`] })}
  POST ${NEXTCLOUD}/subscription_change/create ${JSON.stringify({ add: [FEED], remove: [FEED] })}
  POST /api/2/episodes/u.json ${JSON.stringify([{ ...play, timestamp: "2026-01-01T10:00:00", guid: "g" }, null])}
  POST /api/2/episodes/u/d.json ${JSON.stringify([
    { ...play, timestamp: 1_700_000_000 },
    { ...play, device: "e" },
  ])}
  POST ${NEXTCLOUD}/episode_action/create ${JSON.stringify([play, { ...play, action: "DELETE", position: -1 }])}
  POST /api/2/devices/u/d.json ${JSON.stringify({ caption: "d", type: "mobile" })}
  PUT /subscriptions/u/d.json ${JSON.stringify([FEED, { url: `${FEED}/2` }])}
  PUT /subscriptions/u/d.txt ${FEED}
  POST /api/2/sync-devices/u.json {}
  POST /index.php/login/v2/poll token=x`);
const APP_TARGETS = linesOf(`
  /api/2/subscriptions/u/d.json?since=0
  /api/2/episodes/u.json?since=5&podcast=https%3A%2F%2Ffeeds.example%2F&aggregated=true&device=d
  ${NEXTCLOUD}/subscriptions?since=1700000000
  //index.php//apps/gpoddersync/episode_action?since=
  /apps/gpoddersync/episode_action?since=0
  /subscriptions/u.opml
  /subscriptions/a%2Fb/c.d.json
  /api/2/devices/u.json
  /suggestions/5.json
  /search.json?q=x
  /clientconfig.json`);

function uploadFromApp(text: string): Hostile {
  const [, method = "POST", path = "/", body = ""] = /^(POST|PUT) (\S+) (.*)$/s.exec(text) ?? [];
  return { bytes: send(method, path, Buffer.from(body, "latin1")) };
}

function header(text: string): Hostile {
  const line = `${text.replaceAll(/[\r\n]/g, " ")}\r\n`;
  // These two make the server wait for a body that does not come.
  const mayGoUnanswered = /^(content-length|transfer-encoding)/i.test(line);
  const own = `Content-Type: ${ATOMIC}\r\n${line}`;
  const bytes = send("POST", "/v1/operations", Buffer.from(DOCUMENTS[0] ?? ""), own);
  return { bytes: text.length % 2 === 0 ? get("/v1/subscriptions", line) : bytes, mayGoUnanswered };
}

const withFeed = (feed_url: string) =>
  JSON.stringify({ "atomic:operations": [{ ...addition, data: { ...addition.data, attributes: { feed_url } } }] });

/** Requests of a size, by a limit that the size is close to. */
const SIZES: readonly (readonly [limit: number, request: (size: number) => Hostile])[] = [
  [MAX_BODY_BYTES, (size) => operate(Buffer.from(DOCUMENTS[0]?.padEnd(size) ?? ""))],
  [MAX_OPERATIONS, (size) => operate(Buffer.from(JSON.stringify({ "atomic:operations": Array(size).fill(addition) })))],
  [64, (size) => operate(Buffer.from(`{"meta":${"[".repeat(size)}${"]".repeat(size)},"atomic:operations":[]}`))],
  [2_048, (size) => operate(Buffer.from(withFeed(FEED.padEnd(size, "a"))))],
  [2_030, (size) => operate(Buffer.from(withFeed(FEED + "\ud83c\udfa7".repeat(size))))],
  [16_300, (size) => ({ bytes: get(`/v1/subscriptions?${"a".repeat(size)}`) })],
  [16_300, (size) => ({ bytes: get("/v1/subscriptions", `X: ${"a".repeat(size)}\r\n`) })],
  [2_000, (size) => ({ bytes: get("/v1/subscriptions", "a:b\r\n".repeat(size)) })],
  [
    MAX_BODY_BYTES,
    (size) => ({ bytes: Buffer.from(CHUNKED.replace("18;", `${"a;\r\n          \r\n".repeat(size / 10)}18;`)) }),
  ],
];

export const KINDS: readonly Kind[] = [
  {
    name: "texts and encodings",
    seeds: DOCUMENTS,
    words: ["\\u0000", "\\ud800", "\xff", "\xed\xa0\x80", "\xef\xbb\xbf", '"__proto__":', "[", "{", "null", "1e400"],
    request: (text) => operate(Buffer.from(text, "latin1")),
  },
  {
    name: "framing",
    seeds: [...FRAMES, CHUNKED, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"],
    words: [
      ...FRAME_LINES,
      "\r\n",
      "\n",
      "0\r\n\r\n",
      ..."HTTP/1.0 HTTP/2.0 -1 ZZ : TRACE \0 ffffffffffffffff1".split(" "),
    ],
    request: (text) => ({ bytes: Buffer.from(text, "latin1"), mayGoUnanswered: true }),
  },
  {
    name: "headers",
    seeds: HEADERS,
    words: ["; ", ...'; , = " \\ */* q=0 é \0 Bearer earmark= chunked \t'.split(" ")],
    request: header,
  },
  {
    name: "queries and paths",
    seeds: TARGETS,
    words: "% %00 %2e%2e %2f & = [ ] page[size]= .. // \\ ? # %C3 %ED%A0%80 + , 1".split(" "),
    request: target,
  },
  {
    name: "OPML files",
    atOnce: 2,
    seeds: OPML_FILES,
    words:
      '<outline xmlUrl=" " /> > <opml> <body> </body> &amp; &#0; &#x110000; & <![CDATA[ ]]> <!-- --> \xff\xfe \x00'.split(
        " ",
      ),
    request: (text) => ({
      bytes: send("POST", "/v1/imports?dryRun=true", Buffer.from(text, "latin1"), "Content-Type: text/x-opml\r\n"),
    }),
  },
  {
    name: "uploads by podcast apps",
    seeds: APP_UPLOADS,
    words: '\\u0000 \\ud800 \xff [ { } ] , null -1 1e400 "__proto__": "add":'.split(" "),
    request: uploadFromApp,
  },
  {
    name: "queries and paths from podcast apps",
    seeds: APP_TARGETS,
    words: "% %00 %2f %2e%2e & = since= -1 1e9 .json .opml . / // ? %C3".split(" "),
    request: target,
  },
];

/** Requests of each kind: first the seeds, then variants with up to eight edits. */
export function variantsOf({ seeds, words, request }: Kind, count: number, random: () => number): Iterable<Hostile> {
  const below = (limit: number) => Math.floor(limit * random());
  const variant = () => {
    let text = seeds[below(seeds.length)] ?? "";
    for (let edits = below(9); edits > 0; edits -= 1) {
      const at = below(text.length + 1);
      const removed = random() < 0.8 ? below(9) : below(1_000);
      const added = random() < 0.7 ? (words[below(words.length)] ?? "") : String.fromCharCode(below(256));
      text = text.slice(0, at) + added.repeat(random() < 0.95 ? 1 : below(70)) + text.slice(at + removed);
    }
    return text.slice(0, 4_000);
  };
  return Iterator.from([...seeds.slice(0, count), ...Array.from({ length: count - seeds.length }, variant)]).map(
    request,
  );
}

/** Documents with operations that are more or less malformed. */
export function structures(count: number, seed: number): Iterable<Hostile> {
  return fc.sample(oddBodies([ID, FEED]), { numRuns: count, seed }).map((body) => operate(Buffer.from(body)));
}

/** Sizes around every limit. */
export function sizes(count: number, random: () => number): Iterable<Hostile> {
  const factors = [0.5, 0.99, 1, 1.01, 3];
  return Iterator.from(Array(count).keys()).map((index) => {
    const [limit, create] = SIZES[index % SIZES.length] as (typeof SIZES)[number];
    const factor = factors[Math.floor(factors.length * random())] ?? 1;
    return create(Math.floor(limit * factor) + Math.floor(3 * random()) - 1);
  });
}
