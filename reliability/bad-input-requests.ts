import fc from "fast-check";
import { ATOMIC, PLAIN } from "../bench/requests.ts";
import { oddBodies } from "../test/support/properties-documents.ts";
import { MEDIA_TYPES, OPML_FILES, QUERIES } from "./fuzz/corpora.ts";
import { inputs } from "./fuzz/inputs.ts";

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

/** A kind of hostile request, reproducible by seed. */
export interface Kind {
  readonly name: string;
  /** Maximum concurrency that is no overload, where it is low. */
  readonly atOnce?: number;
  make(count: number, seed: number, random: () => number): Iterable<Hostile>;
}

const ID = "0193b7f0-7b6c-7d2e-9d5a-2f3c4d5e6f70";
const FEED = "https://feeds.example/show";
const addition = { op: "add", data: { type: "subscription", id: ID, attributes: { feed_url: FEED } } };
const documents = [
  { "atomic:operations": [addition] },
  { "atomic:operations": [addition, { ...addition, href: "/v1/subscriptions" }, null, { op: "remove" }], meta: {} },
  { "atomic:operations": [] },
].map((document) => JSON.stringify(document));

const post = (body: Buffer, headers = `Content-Type: ${ATOMIC}\r\n`, target = "/v1/operations") =>
  Buffer.concat([
    Buffer.from(
      `POST ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Length: ${body.length}\r\n\r\n`,
      "latin1",
    ),
    body,
  ]);
const get = (target: string, headers = "") =>
  Buffer.from(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`, "latin1");
const operate = (document: Buffer): Hostile => ({ bytes: post(document), document });

/** The seeds first, then variants of them. */
function variants(
  seeds: readonly string[],
  words: readonly string[],
  toRequest: (text: string) => Hostile,
): Kind["make"] {
  const variant = inputs({ seeds, words, isBytes: true, maxLength: 4_000 });
  return (count, seed) =>
    [...seeds, ...fc.sample(variant, { numRuns: Math.max(1, count), seed })].slice(0, count).map(toRequest);
}

const toLine = (text: string) => text.replaceAll(/[\r\n]/g, " ");
const HEADERS = [
  ...MEDIA_TYPES.seeds.flatMap((seed) => [`Accept: ${seed}`, `Content-Type: ${seed}`]),
  `Content-Type: ${ATOMIC}`,
  `Content-Type: ${PLAIN};ext="https://jsonapi.org/ext/atomic https://other.example"`,
  `Accept: ${PLAIN};q=0.5, */*;q=0`,
  "Accept: text/html, application/*;q=0.1",
  "Authorization: Bearer emk_0123456789",
  "Cookie: earmark=x; earmark=y; __Host-earmark=z",
  "Origin: https://evil.example",
  "Sec-Fetch-Site: cross-site",
  "Host: evil.example:99999",
  "Expect: 100-continue",
  "Content-Encoding: gzip",
  "Range: bytes=0-1",
  "If-Match: *",
  "Upgrade: websocket",
  "X-Forwarded-For: 1.2.3.4, ::1",
  "Forwarded: for=unknown;host=evil.example",
  "X-HTTP-Method-Override: DELETE",
  "Accept-Encoding: gzip;q=nonsense",
  "Connection: keep-alive, Upgrade, close",
];
const TARGETS = [
  ...QUERIES.seeds.map((query) => `/v1/subscriptions?${query}`),
  "/v1/subscriptions?page[number]=1&page[size]=25",
  "/v1/subscriptions?page%5Bnumber%5D=9007199254740991&fields[subscription]=feed_url",
  `/v1/subscriptions/${ID}?fields[subscription]=`,
  "/v1/subscriptions.opml",
  "/v1/me/export",
  "/v1/../v1/./operations",
  "/assets/icon.svg",
  "/docs?x=%C3%28",
  "http://evil.example/v1/subscriptions",
  "/openapi.json",
  "/healthz",
];
const FRAMES = [
  post(Buffer.from(documents[0] ?? "")),
  get("/v1/subscriptions"),
  Buffer.concat([get("/healthz"), get("/v1/subscriptions"), post(Buffer.from(documents[1] ?? ""))]),
  Buffer.from(
    `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nTransfer-Encoding: chunked\r\n\r\n18;x=y\r\n{"atomic:operations":[]}\r\n0\r\nTrailer: x\r\n\r\n`,
  ),
  Buffer.from("OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
].map((bytes) => bytes.toString("latin1"));

const NEXTCLOUD = "/index.php/apps/gpoddersync";
const play = { podcast: FEED, episode: `${FEED}.mp3`, action: "play", position: 5, started: 0, total: 10 };
/** Uploads of podcast apps, each after its target. */
const APP_UPLOADS = [
  `POST /api/2/subscriptions/u/d.json ${JSON.stringify({ add: [FEED, ""], remove: [`${FEED}/2`] })}`,
  `POST ${NEXTCLOUD}/subscription_change/create ${JSON.stringify({ add: [FEED], remove: [FEED] })}`,
  `POST /api/2/episodes/u.json ${JSON.stringify([{ ...play, timestamp: "2026-01-01T10:00:00", guid: "g" }, null])}`,
  `POST ${NEXTCLOUD}/episode_action/create ${JSON.stringify([play, { ...play, action: "DELETE", position: -1 }])}`,
  `POST /api/2/devices/u/d.json ${JSON.stringify({ caption: "d", type: "mobile" })}`,
  `PUT /subscriptions/u/d.json ${JSON.stringify([FEED, { url: `${FEED}/2` }])}`,
  `PUT /subscriptions/u/d.txt ${FEED}\n${FEED}/2`,
  "POST /api/2/sync-devices/u.json {}",
  "POST /index.php/login/v2/poll token=x",
];
const APP_TARGETS = [
  "/api/2/subscriptions/u/d.json?since=0",
  "/api/2/episodes/u.json?since=5&podcast=https%3A%2F%2Ffeeds.example%2F&aggregated=true&device=d",
  `${NEXTCLOUD}/subscriptions?since=1700000000`,
  `//index.php//apps/gpoddersync/episode_action?since=`,
  "/subscriptions/u.opml",
  "/subscriptions/a%2Fb/c.d.json",
  "/api/2/devices/u.json",
  "/suggestions/5.json",
  "/search.json?q=x",
  "/clientconfig.json",
];

/** Method and target up to the second blank, then the body. */
function uploadFromApp(text: string): Hostile {
  const [, method = "POST", target = "/", body = ""] = /^(POST|PUT) (\S+) (.*)$/s.exec(text) ?? [];
  const bytes = Buffer.from(body, "latin1");
  const head = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bytes.length}\r\n\r\n`;
  return { bytes: Buffer.concat([Buffer.from(head, "latin1"), bytes]) };
}

/** Sizes around every limit. */
function large(random: () => number): Hostile {
  const any = <Item>(items: readonly Item[], otherwise: Item) =>
    items[Math.floor(items.length * random())] ?? otherwise;
  const near = (limit: number) => Math.floor(limit * any([0.5, 0.99, 1, 1.01, 3], 1)) + any([-1, 0, 1], 0);
  const padded = (text: string, length: number) => Buffer.from(text.padEnd(length));
  const withFeed = (feed_url: string) => ({ ...addition, data: { ...addition.data, attributes: { feed_url } } });
  const makers: readonly (() => Hostile)[] = [
    () => operate(padded(documents[0] ?? "", near(MAX_BODY_BYTES))),
    () => operate(Buffer.from(JSON.stringify({ "atomic:operations": Array(near(MAX_OPERATIONS)).fill(addition) }))),
    () => {
      const levels = near(64);
      return operate(Buffer.from(`{"meta":${"[".repeat(levels)}${"]".repeat(levels)},"atomic:operations":[]}`));
    },
    () => operate(Buffer.from(JSON.stringify({ "atomic:operations": [withFeed(FEED.padEnd(near(2048), "a"))] }))),
    () =>
      operate(
        Buffer.from(JSON.stringify({ "atomic:operations": [withFeed(FEED + "\ud83c\udfa7".repeat(near(2030)))] })),
      ),
    () => ({ bytes: get(`/v1/subscriptions?${"a".repeat(near(16_300))}`) }),
    () => ({ bytes: get("/v1/subscriptions", `X: ${"a".repeat(near(16_300))}\r\n`) }),
    () => ({ bytes: get("/v1/subscriptions", "a:b\r\n".repeat(near(2_000))) }),
    () => ({
      bytes: Buffer.from(
        `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nTransfer-Encoding: chunked\r\n\r\n${`a;${"x".repeat(any([0, 9, 999], 0))}\r\n          \r\n`.repeat(near(MAX_BODY_BYTES / 10))}0\r\n\r\n`,
      ),
    }),
  ];
  return any(makers, makers[0] as () => Hostile)();
}

export const KINDS: readonly Kind[] = [
  {
    name: "structures",
    make: (count, seed) =>
      fc.sample(oddBodies([ID, FEED]), { numRuns: count, seed }).map((body) => operate(Buffer.from(body))),
  },
  {
    name: "texts and encodings",
    make: variants(
      documents,
      ["\\u0000", "\\ud800", "\xff", "\xed\xa0\x80", "\xef\xbb\xbf", '"__proto__":', "[", "{"],
      (text) => operate(Buffer.from(text, "latin1")),
    ),
  },
  {
    name: "framings",
    make: variants(
      FRAMES,
      [
        "\r\n",
        "\n",
        "\r\n\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\n",
        "0\r\n\r\n",
        "HTTP/1.0",
        "HTTP/2.0",
      ]
        .concat([
          "Connection: close\r\n",
          "Expect: 100-continue\r\n",
          "CONNECT a:80 ",
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
          "-1",
          "ZZ",
        ])
        .concat([" ", "\t", ":", "Host: x\r\n", "Upgrade: h2c\r\n", "TRACE ", "DELETE ", "\0", "ffffffffffffffff1"]),
      (text) => ({ bytes: Buffer.from(text, "latin1"), mayGoUnanswered: true }),
    ),
  },
  {
    name: "headers",
    make: variants(
      HEADERS,
      [";", ",", "=", '"', "\\", "*/*", "q=0", "é", "\0", "Bearer ", "earmark=", "chunked"],
      (text) => {
        const line = `${toLine(text)}\r\n`;
        // These two make the server wait for a body that does not come.
        const mayGoUnanswered = /^(content-length|transfer-encoding)/i.test(line);
        if (text.length % 2 === 0) return { bytes: get("/v1/subscriptions", line), mayGoUnanswered };
        return { bytes: post(Buffer.from(documents[0] ?? ""), `Content-Type: ${ATOMIC}\r\n${line}`), mayGoUnanswered };
      },
    ),
  },
  {
    name: "queries and paths",
    make: variants(
      TARGETS,
      ["%", "%00", "%2e%2e", "%2f", "&", "=", "[", "]", "page[size]=", "..", "//", "\\", "?", "#", "%C3"],
      (text) => ({ bytes: get(text.replaceAll(/\s/g, "")) }),
    ),
  },
  {
    name: "sizes",
    *make(count, _seed, random) {
      for (let made = 0; made < count; made += 1) yield large(random);
    },
  },
  {
    name: "OPML files",
    atOnce: 2,
    make: variants(OPML_FILES.seeds, OPML_FILES.words, (text) => ({
      bytes: post(Buffer.from(text, "latin1"), "Content-Type: text/x-opml\r\n", "/v1/imports?dryRun=true"),
    })),
  },
  {
    name: "uploads of apps",
    make: variants(
      APP_UPLOADS,
      ["\\u0000", "\\ud800", "\xff", "[", "{", "}", "]", ",", "null", "-1", "1e400", '"__proto__":', '"add":', FEED],
      uploadFromApp,
    ),
  },
  {
    name: "queries and paths of apps",
    make: variants(
      APP_TARGETS,
      ["%", "%00", "%2f", "%2e%2e", "&", "=", "since=", "-1", "1e9", ".json", ".opml", ".", "/", "//", "?", "%C3"],
      (text) => ({ bytes: get(text.replaceAll(/\s/g, "") || "/") }),
    ),
  },
];
