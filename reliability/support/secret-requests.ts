import { document } from "../../test/support/accounts.ts";
import { ATOMIC, add, PLAIN } from "../../test/support/server.ts";
import type { Headers } from "./secret-search.ts";

/**
 * Requests full of canaries, as tables. `§…§` stands for a canary of that name, `§…*9§` for nine copies of it, and `{…}`
 * for a property of the person who sends the request, or for an id.
 */
export type Row = readonly [
  /** The status while everything works; undefined if there need not be a response. */
  status: number | undefined,
  request: string,
  headers?: Headers,
  body?: string | undefined,
  /** What the response must contain; it may contain no other canary… */
  says?: readonly string[],
  /** …except those with such a name, from earlier requests of the same person. */
  remembers?: RegExp,
];

/** What is sent with every request, and is nobody's business. */
export const BASE_HEADERS: Headers = {
  "User-Agent": "§User-Agent§",
  Referer: "https://§Referer§.example/§path of Referer§",
  "X-Request-Id": "§X-Request-Id§",
  "X-Forwarded-For": "§X-Forwarded-For§, {address}",
  Forwarded: "for=§Forwarded§",
  "§name of a header§": "§value of a header§",
};

const PLAIN_TYPE = { "Content-Type": PLAIN };
const COOKIE = { Cookie: "{cookie}" };
const BEARER = { Authorization: "Bearer {token}" };
const LONG = "§long header*1200§";

/** Documents with one resource, by route. */
const DOCUMENTS: readonly (readonly [
  string,
  type: string,
  Headers,
  readonly (readonly [number, object, string?])[],
])[] = [
  [
    "POST /v1/accounts",
    "account",
    PLAIN_TYPE,
    [
      [201, { name: "§name§", password: "§password§" }, "§name§"],
      [422, { name: "No §invalid name§", password: "{password}" }],
      [422, { name: "§long name*5§", password: "{password}" }],
      [422, { name: "§name as password§", password: "§name as password§" }],
      [422, { name: "§other name§", password: "§long password*16§" }],
      [422, { name: "§other name§", password: "§long password*40§" }],
      [413, { name: "§other name§", password: "§long password*1000§" }],
      [409, { name: "{name}", password: "§password for a name that is taken§" }],
      [422, { name: { "§key§": "§value§" }, password: "{password}" }],
      [403, { name: "§other name§", password: "{password}", invitation: "§invitation§" }],
      [403, { name: "§other name§", password: "{password}", invitation: "emi_§invitation§" }],
      [
        403,
        {
          name: "§other name§",
          password: "{password}",
          invitation: "emk_§token as invitation§AAAAAAAAAAAAAAAAAAAAAAA",
        },
      ],
      [422, { name: "{name}", password: "{password}", invitation: "§invitation*16§" }],
    ],
  ],
  [
    "POST /v1/sessions",
    "session",
    PLAIN_TYPE,
    [
      [401, { name: "{name}", password: "§wrong password§" }],
      [401, { name: "§unknown name§", password: "{password}" }],
      [401, { name: "§impossible name§ ", password: "{password}" }],
      [422, { name: "{name}", password: "§wrong password*40§" }],
      [401, { name: "{name}", password: "{password}x", "§key§": "§value§" }],
    ],
  ],
  [
    "PATCH /v1/me",
    "account",
    { ...PLAIN_TYPE, ...COOKIE },
    [
      [403, { current_password: "§current password§", password: "{password}" }],
      [422, { current_password: "{password}", password: "§new password*16§" }],
    ],
  ],
  [
    "POST /v1/tokens",
    "token",
    { ...PLAIN_TYPE, ...COOKIE },
    [
      [422, { label: "x", scope: "§scope§" }],
      [422, { label: "x", scope: "read", expires_at: "§expires_at§" }],
      [422, { label: "§long label*10§", scope: "read" }],
      [422, { label: "§invalid label§\u0000", scope: "read" }],
      [201, { label: "§label§", scope: "read" }, "§label§"],
    ],
  ],
];

const ACCOUNTS: readonly Row[] = [
  ...DOCUMENTS.flatMap(([request, type, headers, rows]) =>
    rows.map(
      ([status, attributes, says]): Row => [status, request, headers, document(type, attributes), says ? [says] : []],
    ),
  ),
  [409, "POST /v1/accounts", PLAIN_TYPE, document("§type§", { name: "{name}", password: "{password}" })],
  [400, "POST /v1/accounts", PLAIN_TYPE, '{"data":"§data§"}'],
  [422, "POST /v1/accounts", PLAIN_TYPE, '{"data":{"type":"account","attributes":"§attributes§"}}'],
];

const WRONG_CREDENTIALS: readonly Headers[] = [
  { Authorization: "Bearer emk_§token§AAAAAAAAAAAAAAAAAAAAAAA" },
  { Authorization: "Bearer emk_§short token§" },
  { Authorization: "Bearer §opaque token§" },
  { Authorization: "Bearer §long token*400§" },
  { Authorization: "Bearer §token§ §second token§" },
  { Authorization: "Token §token of another scheme§" },
  { Authorization: "§token without scheme§" },
  { Authorization: 'Digest username="§user§", response="§response§"' },
  { Authorization: "Basic {basic}" },
  { Authorization: "Bearer §token beside a cookie§", Cookie: "{cookie}" },
  { Cookie: "earmark=§cookie§" },
  { Cookie: "earmark=§cookie§AAAAAAAAAAAAAAAAAAAAAAA" },
  { Cookie: "earmark=§first cookie§; earmark=§second cookie§" },
  { Cookie: "§name of a cookie§=§other cookie§" },
];
const CREDENTIALS: readonly Row[] = [
  [431, "GET /v1/me", { Cookie: "earmark=§cookie*500§" }],
  [200, "GET /v1/me", BEARER, undefined, ["{name}"]],
  [403, "GET /v1/tokens", BEARER],
  ...WRONG_CREDENTIALS.flatMap((headers): readonly Row[] => [
    [401, "GET /v1/me", headers],
    [401, "DELETE /v1/tokens/§id of a token§", headers],
    [401, "POST /v1/operations?§name of a parameter§=§parameter§", headers],
    [401, "GET /metrics", headers],
    [200, "GET /healthz?§parameter§=§parameter§", headers],
    [405, "PUT /v1/me", headers],
    [404, "GET /§path§", headers],
  ]),
];

const withCookie = ([status, request, says]: readonly [number, string, string?]): Row => [
  status,
  request,
  COOKIE,
  undefined,
  says === undefined ? [] : [says],
];
const TARGETS: readonly Row[] = [
  ...(
    [
      [400, "GET /v1/me?access_token=§access_token§"],
      [400, "GET /v1/me?emk_§token in query§"],
      [400, "GET /v1/me?token={token}"],
      [400, "GET /v1/me?§name of a parameter§=§value of a parameter§", "§name of a parameter§"],
      [400, "GET /v1/me?%ff§name of a broken parameter§=1", "§name of a broken parameter§"],
      [400, "GET /v1/tokens?page[size]=§page[size]§"],
      [400, "GET /v1/subscriptions?fields[subscription]=§fields§"],
      [400, "GET /v1/subscriptions?page[size]=1&page[size]=§page[size]§"],
      [400, "GET /v1/subscriptions?page[size]=%ff§page[size]§"],
      [200, "GET /readyz?§parameter§=§value§"],
      [404, "GET /§path§/§path§"],
      [404, "GET //§user§:§password§@host/"],
      [400, "GET /v1/subscriptions/§id§"],
      [400, "GET /v1/subscriptions/§id*600§"],
      [400, "GET /v1/sessions/§id§"],
      [400, "GET /v1/tokens/§id§"],
      [400, "GET /%ff§path§"],
      [400, "GET /v1/tokens/%ff§id§"],
      [400, "GET /v1/me#§fragment§"],
      [200, "GET http://§user§:§password§@§host§.example/v1/me", "{name}"],
      [400, "DELETE /v1/tokens/§id§"],
      [404, "HEAD /§path§?§parameter§"],
    ] as const
  ).map(withCookie),
  [200, "GET /v1/me/export", COOKIE, undefined, ["{name}", "{agent}", "{label}"], /^label$|^User-Agent$| of a feed$/],
];

const FEED = "https://§user of a feed§:§password of a feed§@feeds.example/§path of a feed§?key=§user of a feed§";
const OF_FEED = ["§user of a feed§", "§password of a feed§", "§path of a feed§"];
const subscription = (id: string, feed_url: string, more: object = {}) =>
  JSON.stringify({ data: { type: "subscription", id, attributes: { feed_url }, ...more } });
const file = (feedUrl: string, title: string) =>
  `<opml version="2.0"><body><outline type="rss" text="${title}" xmlUrl="${feedUrl}"/></body></opml>`;
const SUBSCRIPTION = { ...BEARER, ...PLAIN_TYPE };
const OPERATIONS = { ...BEARER, "Content-Type": ATOMIC };
const IMPORT = { ...BEARER, "Content-Type": "text/x-opml" };
const POST = "POST /v1/subscriptions";

const BODIES: readonly Row[] = [
  [201, POST, SUBSCRIPTION, subscription("{id1}", FEED), OF_FEED],
  [409, POST, SUBSCRIPTION, subscription("{id2}", FEED), OF_FEED],
  [200, "GET /v1/subscriptions?page[size]=100", BEARER, undefined, OF_FEED, / of a feed$/],
  [200, "GET /v1/subscriptions/{id1}", BEARER, undefined, OF_FEED],
  [204, "DELETE /v1/subscriptions/{id1}", BEARER],
  [200, "POST /v1/imports", IMPORT, file(FEED, "§title of a feed§"), [...OF_FEED, "§title of a feed§"]],
  [200, "POST /v1/imports", IMPORT, file("ftp://§refused feed§", "x"), ["§refused feed§"]],
  [422, "POST /v1/imports", IMPORT, "<§element§>§text§"],
  [undefined, "POST /v1/imports", IMPORT, '<!DOCTYPE x [<!ENTITY y SYSTEM "file:///§entity§">]><opml>&y;</opml>'],
  [415, "POST /v1/imports", { ...BEARER, "Content-Type": "text/§Content-Type§" }, "x"],
  [200, "GET /v1/subscriptions.opml", BEARER, undefined, OF_FEED, / of a feed$/],
  [422, POST, SUBSCRIPTION, subscription("{id2}", "ftp://§user§:§password§@feeds.example/")],
  [422, POST, SUBSCRIPTION, subscription("{id2}", "https://feeds.example/§long feed*200§")],
  [422, POST, SUBSCRIPTION, subscription("{id2}", "https://feeds.example/ §feed with a blank§")],
  [422, POST, SUBSCRIPTION, subscription("{id2}", "https://§host§..example/")],
  [400, POST, SUBSCRIPTION, subscription("§id§", "https://feeds.example/")],
  [409, POST, SUBSCRIPTION, subscription("{id2}", "https://feeds.example/", { type: "§type§" })],
  [400, POST, SUBSCRIPTION, "§body§"],
  [400, POST, SUBSCRIPTION, '{"data":{"§key§":"§value§'],
  [400, POST, SUBSCRIPTION, '{"__proto__":{"§key§":"§value§"}}'],
  [400, POST, SUBSCRIPTION, `${"[".repeat(100)}"§value§"${"]".repeat(100)}`],
  [415, POST, { ...BEARER, "Content-Type": "text/§Content-Type§" }, "{}"],
  [415, POST, { ...BEARER, "Content-Type": `${PLAIN};§parameter§=§value§` }, "{}"],
  [415, POST, { ...SUBSCRIPTION, "Content-Encoding": "§Content-Encoding§" }, "{}"],
  [406, POST, { ...SUBSCRIPTION, Accept: "§Accept§/§Accept§" }, "{}"],
  [
    200,
    "POST /v1/operations",
    OPERATIONS,
    JSON.stringify({
      "atomic:operations": [
        add("{id3}", "https://§user of a feed§@feeds.example/bulk"),
        add("{id4}", "https://§user of a feed§@feeds.example/bulk"),
        add("§id§", "https://feeds.example/§feed§"),
        add("{id5}", "ftp://§feed§"),
        { op: "§op§" },
        "§operation§",
        { ...add("{id6}", "https://feeds.example/1"), ref: { type: "§type§", id: "§id§" } },
        { ...add("{id7}", "https://feeds.example/1"), href: "§href§" },
      ],
      meta: { "§key§": "§value§" },
    }),
    ["§user of a feed§"],
  ],
  [400, "POST /v1/operations", OPERATIONS, '{"atomic:operations":{"§key§":"§value§"}}'],
  [400, "POST /v1/operations", OPERATIONS, '{"atomic:operations":[§body§]}'],
];

const MANY = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`x-${at}`, "§one of many§"]));
const PREFLIGHT = {
  Origin: "https://app.example",
  "Access-Control-Request-Method": "§Access-Control-Request-Method§",
  "Access-Control-Request-Headers": "§Access-Control-Request-Headers§",
};
const sent = (status: number, headers: Headers): Row =>
  status === 403
    ? [status, "POST /v1/tokens", { ...PLAIN_TYPE, ...COOKIE, ...headers }, "{}"]
    : [status, "GET /v1/me", { ...COOKIE, ...headers }, undefined, status === 200 ? ["{name}"] : []];
const HEADERS: readonly Row[] = [
  sent(200, { Host: "§Host§.example" }),
  sent(400, { Host: "§user§@§Host§ " }),
  sent(200, { Origin: "https://§Origin§.example" }),
  sent(417, { Expect: "§Expect§" }),
  sent(200, { Upgrade: "§Upgrade§" }),
  sent(200, { "X-Forwarded-Host": "§X-Forwarded-Host§", Via: "§Via§" }),
  sent(200, { "If-None-Match": '"§If-None-Match§"', Range: "bytes=§Range§" }),
  sent(431, MANY),
  sent(403, { Origin: "https://§Origin§.example" }),
  sent(403, { Origin: "§Origin§" }),
  sent(403, { "Sec-Fetch-Site": "§Sec-Fetch-Site§" }),
  [204, "OPTIONS /v1/tokens?§parameter§", PREFLIGHT],
];

/** Bytes that the HTTP parser rejects; `|` stands for the host and the cookie, `{post}` for the head of a request. */
export const MALFORMED: readonly (readonly [status: number | undefined, bytes: string])[] = [
  [400, "§line§ §line§\r\n\r\n"],
  [405, "§METHOD§ /v1/me HTTP/1.1|\r\n"],
  [404, "§METHOD§ /§path§ HTTP/1.1|\r\n"],
  [400, "GET /§path§ HTTP/§version§|\r\n"],
  [400, "GET / HTTP/1.1|§header§ §header§\r\n\r\n"],
  [400, "GET / HTTP/1.1|X-Secret: §header§\0§header§\r\n\r\n"],
  [400, "GET / HTTP/1.1|X-Secret: a\r\n §header§\0\r\n\r\n"],
  [400, "GET §target§ HTTP/1.1|\r\n"],
  [400, "GET /\xff§path§ HTTP/1.1|\r\n"],
  [400, "{post}Content-Length: §Content-Length§\r\n\r\n"],
  [400, "{post}Content-Length: 1\r\nContent-Length: 2\r\n\r\n§body§"],
  [400, "{post}Transfer-Encoding: §Transfer-Encoding§\r\n\r\n§body§"],
  [400, "{post}Transfer-Encoding: chunked\r\n\r\n§size of a chunk§\r\n§chunk§\r\n"],
  [413, "{post}Transfer-Encoding: chunked\r\n\r\n5;§chunk extension*1200§\r\nhello\r\n0\r\n\r\n"],
  [400, "{post}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n§trailer§ §trailer§\r\n\r\n"],
  [431, `GET / HTTP/1.1|X-Secret: ${LONG}\r\n\r\n`],
  [431, `GET / HTTP/1.1|${LONG}: x\r\n\r\n`],
  [431, `GET /${LONG} HTTP/1.1|\r\n`],
  [408, "GET /§slow path§ HTTP/1.1|X-Secret: §slow header§"],
  [undefined, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n§frame§"],
  [400, "\x16\x03\x01\x02\x00\x01\x00§name in TLS§"],
  [400, '{post}Connection: close\r\nContent-Length: 32\r\n\r\n{"data":"\xff§body that is not UTF-8§"}'],
];

export const TABLES = { ACCOUNTS, TARGETS, BODIES, HEADERS, CREDENTIALS } as const;
