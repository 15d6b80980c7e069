import assert from "node:assert/strict";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { after } from "node:test";
import { createClient, guid } from "../client/src/index.ts";
import { Accounts } from "../src/accounts/accounts.ts";
import { Administration } from "../src/accounts/administration.ts";
import { readName } from "../src/accounts/names.ts";
import { validatePassword } from "../src/accounts/passwords.ts";
import { readConfig } from "../src/config/config.ts";
import {
  readNewPassword,
  readNewToken,
  readSignIn,
  readSignUp,
  validateLabel,
} from "../src/http/api/documents/accounts.ts";
import { readAdminAction, readInvitation, readPasswordReset } from "../src/http/api/documents/administration.ts";
import { readFeedSearch } from "../src/http/api/documents/feed-searches.ts";
import { readOperations } from "../src/http/api/documents/operations.ts";
import { readSubscription } from "../src/http/api/documents/subscriptions.ts";
import {
  readChangesQuery,
  readFieldsQuery,
  readImportQuery,
  readListQuery,
  readRemovalsQuery,
} from "../src/http/api/queries.ts";
import { createAuthentication } from "../src/http/auth/authenticate.ts";
import { MAX_COOKIE_BYTES, readCookies } from "../src/http/auth/cookies.ts";
import { createJwtVerifier } from "../src/http/auth/jwt-verifier.ts";
import { createGuard } from "../src/http/guard.ts";
import { createPeerReader, networksOf } from "../src/http/wire/client-address.ts";
import { createShared, Request } from "../src/http/wire/exchange.ts";
import { idOf, pathOf, Router, route, routeOf, toOriginForm } from "../src/http/wire/router.ts";
import { parseJson } from "../src/jsonapi/json.ts";
import { ATOMIC, JSON_API } from "../src/jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../src/jsonapi/negotiation.ts";
import { readPageQuery, requireNoQuery } from "../src/jsonapi/query.ts";
import { guidOf, MAX_FEED_URL, readFeedUrl } from "../src/lists/feed-url.ts";
import { readOpml } from "../src/opml/read.ts";
import { readImportFile } from "../src/opml/read-import-file.ts";
import { readMaxAge, readRetryAfter } from "../src/podcasts/fetch/freshness.ts";
import { keyOfGuid, keyOfMediaUrl, type WantedEpisodes } from "../src/podcasts/read/episodes.ts";
import { MAX_RAW_TEXT, toGuid, toLanguage, toPlainText, toWebUrl } from "../src/podcasts/read/feed-text.ts";
import { FeedReader } from "../src/podcasts/read/read-feed.ts";
import { decodePage, readPage } from "../src/podcasts/read/read-page.ts";
import { openStore } from "../src/store/open.ts";
import { temporaryFolder } from "../test/support/server.ts";
import { parseLine } from "../web/src/import/parse-line.ts";
import { displayUrl, shortName } from "../web/src/ui/feed-url.ts";
import { type Frame, plain, type Reader, testLinearTime } from "./support/linear-time.ts";

/** Limit of the request line with all headers, and of the bodies of account documents. */
const HEADERS = 16 * 1024;
/** For text that is limited only by the body size, and for the page and the client. */
const LONG = 32 * 1024;

const URLS: readonly Frame[] = [
  ["https://", ""],
  ["https://", "@a.example/x"],
  ["https://a.example/", ""],
  ["https://a.example/", "x"],
  ["https://a.example/?", "x"],
  ["https://a.example/#", "x"],
];
const OPERATIONS = 100;
const ID = "11111111-1111-4111-8111-111111111111";
const operation = (feedUrl: string) => ({
  op: "add",
  data: { type: "subscription", id: ID, attributes: { feed_url: feedUrl } },
});
const document = (type: string, attributes: object) => ({ data: { type, attributes } });

function requestOf(url: string, headers: IncomingMessage["headers"] = {}, method = "GET"): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: "127.0.0.1" });
  const raw = new IncomingMessage(socket);
  return Object.assign(raw, { url, method, httpVersion: "1.1", headers: { host: "localhost", ...headers } });
}

const now = new Date();
const config = readConfig({ EARMARK_ACCOUNTS: "true" }, "/");
const readPeer = createPeerReader(["127.0.0.1"]);
const store = await openStore(`file:${temporaryFolder()}/earmark.db`, { connections: 1 });
after(() => store.close());
const verify = createJwtVerifier({ issuer: "http://127.0.0.1:1", audience: "earmark" });
const accounts = new Accounts(store.accounts, { signUp: false });
const authenticate = createAuthentication({
  accounts,
  administration: new Administration(store.administration, accounts),
  config: config.accounts ?? assert.fail(),
  metricsToken: "0123456789abcdef",
  verify: undefined,
  readProxyUser: () => undefined,
  readPeer,
  basePath: "",
  clock: () => now,
});
const shared = createShared(undefined as unknown as Request["log"], () => 0);
const router = new Router(
  ["/v1/subscriptions", "/v1/subscriptions/:id"].map((path) =>
    route("GET", path, { access: "open", run: async () => undefined }),
  ),
);

/** A new guard for each text, because a guard caches the last host. */
function guarded(header: string, isOpen: boolean, frames?: readonly Frame[]): Reader {
  const prepare = (text: string) => {
    const guard = createGuard(isOpen ? { ...config, accounts: undefined } : config, readPeer, () => undefined);
    const raw = requestOf("/", { [header]: text }, "POST");
    return () => guard(raw, "api");
  };
  return {
    name: `guard: ${header}${isOpen ? ", no accounts" : ""}`,
    length: HEADERS,
    prepare,
    ...(frames && { frames }),
  };
}

function authenticated(name: string, toRequest: (text: string) => IncomingMessage, frames: readonly Frame[]): Reader {
  const prepare = (text: string) => {
    const raw = toRequest(text);
    return () => authenticate(raw, "read");
  };
  return { name: `authenticate: ${name}`, length: HEADERS, prepare, frames };
}

function targeted(name: string, read: (request: Request) => unknown): Reader {
  const prepare = (text: string) => {
    const request = new Request(requestOf(text), shared);
    return () => read(request);
  };
  return { name, length: HEADERS, prepare, frames: TARGETS };
}

function forwarded(header: string, frames?: readonly Frame[]): Reader {
  const prepare = (text: string) => {
    const raw = requestOf("/", { [header]: text });
    return () => readPeer(raw);
  };
  return { name: `readPeer: ${header}`, length: HEADERS, prepare, ...(frames && { frames }) };
}

const TARGETS: readonly Frame[] = [
  ["/", ""],
  ["/v1/subscriptions/", ""],
  ["/?", ""],
  ["http://", ""],
  ["http://a/", ""],
];
const QUERIES: readonly Frame[] = [
  ["page[number]=", ""],
  ["fields[subscription]=", ""],
  ["dryRun=", ""],
];
const MEDIA: readonly Frame[] = [
  ["a/b;c=", ""],
  [`${JSON_API};`, ""],
  [`${JSON_API};ext=`, ""],
  [`${JSON_API};ext="`, '"'],
  [`${JSON_API};q=0.`, ""],
];
const ORIGINS: readonly Frame[] = [
  ["http://", ""],
  ["http://a.", ":1"],
  ["http://[", "]"],
];
const OPML: readonly Frame[] = [
  ["<opml><body>", "</body></opml>"],
  ["<opml><body><outline ", "/></body></opml>"],
  ['<opml><body><outline text="', '"/></body></opml>'],
  ['<?xml version="1.0" encoding="', '"?><opml/>'],
  ["<opml><!--", "--></opml>"],
];
const FEEDS: readonly Frame[] = [
  ["<rss><channel><title>", "</title></channel></rss>"],
  ["<rss><channel><title><![CDATA[", "]]></title></channel></rss>"],
  ["<rss><channel><item>", "</item></channel></rss>"],
  ["<rss><channel><a ", "/></channel></rss>"],
  ['<rss><channel><itunes:image href="', '"/></channel></rss>'],
  ["<rss><channel><!--", "--></channel></rss>"],
  ['<rss xmlns:a="', '"/>'],
  ['{"version":"https://jsonfeed.org/version/1","title":"', '"}'],
];
const MARKUP: readonly Frame[] = [
  ["<", ">"],
  ["<a ", ">"],
  ['<a b="', '">'],
  ["&", ";"],
  ["<script>", "</script>"],
];
const PAGES: readonly Frame[] = [
  ...MARKUP,
  ["<link ", ">"],
  ['<link rel="alternate" type="application/rss+xml" href="', '">'],
  ['<link type="', '" rel="alternate">'],
  ["<meta ", ">"],
  ['"feedUrl":"', '"'],
];
/** Of which an episode is wanted. */
const EPISODES: readonly Frame[] = [
  ["", ""],
  ["<title>", "</title>"],
  ["<title><![CDATA[", "]]></title>"],
  ["<pubDate>Tue, 10 ", "</pubDate>"],
  ['<enclosure url="', '"/>'],
  ["<guid>", "</guid>"],
].map(([start, end]) => [
  `<rss><channel><title>T</title><item><guid>wanted</guid><title>T</title>${start}`,
  `${end}</item></channel></rss>`,
]);
const WANTED = { guids: [keyOfGuid("wanted")], mediaUrls: [keyOfMediaUrl("https://a.example/wanted.mp3")] };
const APPLE = new URL("https://podcasts.apple.com/");
function readWholeFeed(text: string, contentType?: string, wanted?: WantedEpisodes): unknown {
  const reader = new FeedReader(new URL("https://a.example/feed"), contentType, wanted);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 4_096) reader.write(bytes.subarray(at, at + 4_096));
  return [reader.end(), reader.episodes];
}
const client = (response: () => Response) =>
  createClient({ url: "http://a.example/", retries: 0, fetch: async () => response() });

const READERS: readonly Reader[] = [
  plain("readFeedUrl", MAX_FEED_URL, readFeedUrl, URLS),
  plain("readFeedUrl, too long", LONG, readFeedUrl, [["https://a.example/", ""]]),
  plain("guidOf", MAX_FEED_URL, (text) => guidOf(text), URLS),
  plain("readCookies", MAX_COOKIE_BYTES, (text) => readCookies(text, "earmark"), [
    ["earmark=", ""],
    ["earmark=a", "b"],
    ["earmark", "=a"],
    ["a", "=b"],
  ]),
  plain("requireAccept", HEADERS, (text) => requireAccept(text, ATOMIC), MEDIA),
  plain("requireContentType", HEADERS, (text) => requireContentType(text, ATOMIC), MEDIA),
  plain("readChangesQuery", HEADERS, readChangesQuery, QUERIES),
  plain("readRemovalsQuery", HEADERS, readRemovalsQuery, QUERIES),
  plain("readListQuery", HEADERS, readListQuery, QUERIES),
  plain("readPageQuery", HEADERS, readPageQuery, QUERIES),
  plain("readFieldsQuery", HEADERS, readFieldsQuery, QUERIES),
  plain("readImportQuery", HEADERS, readImportQuery, QUERIES),
  plain("requireNoQuery", HEADERS, requireNoQuery),
  plain("toOriginForm", HEADERS, toOriginForm, TARGETS),
  plain("pathOf", HEADERS, pathOf, TARGETS),
  plain("idOf", HEADERS, (id) => idOf({ id }), TARGETS),
  targeted("routeOf", ({ raw }) => routeOf(router.find(pathOf(raw.url ?? "")), raw)),
  forwarded("x-forwarded-for", [
    ["", ", 127.0.0.1"],
    ["[", "]:1"],
    ["1.1.1.1:", ""],
    ["::1%", ""],
    ["a%", "b"],
  ]),
  forwarded("x-forwarded-proto"),
  forwarded("x-forwarded-host"),
  plain("readOpml", LONG, (text) => readOpml(Buffer.from(text)), OPML),
  plain("readImportFile", LONG, (text) => readImportFile(Buffer.from(text)), [["https://a.example/\n", ""], ...OPML]),
  plain("networksOf", HEADERS, networksOf),
  ...[true, false].flatMap((isOpen) => [
    guarded("host", isOpen, [
      ["a.", ":1"],
      ["[", "]"],
    ]),
    guarded("origin", isOpen, ORIGINS),
    guarded("sec-fetch-site", isOpen),
    guarded("expect", isOpen),
    guarded("transfer-encoding", isOpen),
  ]),
  authenticated("authorization", (text) => requestOf("/", { authorization: text }), [
    ["Bearer ", ""],
    ["Bearer a", "="],
    ["Bearer emk_", ""],
  ]),
  authenticated("cookie", (cookie) => requestOf("/", { cookie }), [["earmark=", ""]]),
  authenticated("target", (text) => requestOf(text), [
    ["/?", ""],
    ["/?emk_", ""],
  ]),
  plain("verify", HEADERS, (text) => verify(text, now), [
    ["a.a.", ""],
    ["eyJhbGciOiJFUzI1NiJ9.", ".a"],
  ]),
  plain("readName", HEADERS, readName),
  plain("validatePassword", 512, (text) => validatePassword(text, "name")),
  plain("validateLabel", HEADERS, validateLabel),
  plain("readSignIn", HEADERS, (text) => readSignIn(document("session", { name: text, password: text }))),
  plain("readSignUp", HEADERS, (text) =>
    readSignUp(document("account", { name: "a", password: "b", invitation: text })),
  ),
  plain("readPasswordReset", HEADERS, (text) => readPasswordReset(document("password-reset", { link: text }))),
  plain("readInvitation", HEADERS, (text) => readInvitation(document("invitation", { note: text }), now)),
  plain("readInvitation: expiry", HEADERS, (text) => readInvitation(document("invitation", { expires_at: text }), now)),
  plain("readAdminAction", HEADERS, (text) => readAdminAction(document("account", { role: text }))),
  plain("readNewPassword", HEADERS, (text) => readNewPassword(document("account", { current_password: text }))),
  plain("readNewToken", HEADERS, (text) =>
    readNewToken(document("token", { label: "a", scope: "read", expires_at: text }), now),
  ),
  plain("readSubscription", LONG, (text) => readSubscription({ data: operation(text).data })),
  {
    name: `readOperations, ${OPERATIONS} operations`,
    length: MAX_FEED_URL,
    frames: [
      ["https://", ""],
      ["https://a.example/", "x"],
    ],
    prepare(text) {
      const operations = Array.from({ length: OPERATIONS }, () => operation(text));
      return () => readOperations({ "atomic:operations": operations }, OPERATIONS, "");
    },
  },
  {
    name: "parseJson",
    length: LONG,
    frames: [
      ['{"a":"', '"}'],
      ['["a"', "]"],
    ],
    prepare(text) {
      const bytes = Buffer.from(text);
      return () => parseJson(bytes);
    },
  },
  plain("feeds: FeedReader", LONG, (text) => readWholeFeed(text), FEEDS),
  plain("feeds: FeedReader, episodes", LONG, (text) => readWholeFeed(text, undefined, WANTED), EPISODES),
  plain("feeds: FeedReader, Content-Type", HEADERS, (text) => readWholeFeed("<rss/>", text), [
    ["text/xml; charset=", ""],
  ]),
  plain("feeds: readPage", LONG, (text) => readPage(decodePage(Buffer.from(text)), APPLE, () => true), PAGES),
  plain("readFeedSearch", HEADERS, (text) => readFeedSearch(document("feed-search", { url: text })), URLS),
  plain("feeds: toPlainText", MAX_RAW_TEXT, (text) => toPlainText(text, 4_000), MARKUP),
  plain("feeds: toLanguage", LONG, toLanguage, [["en-", ""]]),
  plain("feeds: toGuid", LONG, toGuid),
  plain("feeds: toWebUrl", 2 * MAX_FEED_URL, (text) => toWebUrl(text, new URL("https://a.example/b")), URLS),
  plain("feeds: toWebUrl, too long", LONG, (text) => toWebUrl(text, new URL("https://a.example/b")), URLS),
  plain("feeds: Retry-After", HEADERS, (text) => readRetryAfter(text, 0), [["Mon, 1 ", ""]]),
  plain("feeds: Cache-Control", HEADERS, (text) => readMaxAge({ "cache-control": text, age: text }, 0), [
    ["max-age=", ""],
  ]),
  plain("feeds: Expires", HEADERS, (text) => readMaxAge({ expires: text }, 0)),
  plain("page: displayUrl", LONG, displayUrl, URLS),
  plain("page: shortName", LONG, shortName, URLS),
  plain("page: parseLine", LONG, parseLine, [...URLS, ["a", " b"], ["<", ">"], ["a.b:", ""], ["feed:", ""]]),
  plain("client: guid", 4 * MAX_FEED_URL, guid, URLS),
  plain("client: links", LONG, (text) =>
    client(() => Response.json({ data: [], links: { prev: null, next: text }, meta: { total: 0 } })).page(),
  ),
  plain("client: Retry-After", HEADERS, (text) =>
    client(() => new Response("{}", { status: 503, headers: { "retry-after": text } })).page(),
  ),
  plain("client: names", HEADERS, (text) =>
    client(() =>
      Response.json({ data: document("account", { name: "a" }).data, meta: { counts: {}, limits: { [text]: 1 } } }),
    ).me(),
  ),
];

testLinearTime(READERS);
