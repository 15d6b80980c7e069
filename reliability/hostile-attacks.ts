import { ATOMIC, PLAIN } from "../bench/requests.ts";

/** The credentials of one account. */
export interface Account {
  readonly token: string;
  readonly cookie: string;
}

/** The bytes of a request. A body is shared by all accounts, since some take seconds to build. */
export interface Request {
  readonly head: Buffer;
  readonly body: Buffer;
}

/** One kind of hostile request. */
export interface Attack {
  readonly name: string;
  /** Its variants. Every request asks the server to close the connection, except for idle connections. */
  readonly requests: (account: Account) => readonly Request[];
  /** The variants are rebuilt for every request, because each must be different. */
  readonly isFresh?: true;
  /** The account needs a long list. */
  readonly needsList?: true;
  /** Part of a quick run. */
  readonly isQuick?: true;
}

const KIB = 1024;
const MIB = 1024 * KIB;
/** With the request line and the other headers, still below the limit of 16 KiB. */
const LONG = 15 * KIB;
const URL_LENGTH = 2_000;
/** Servers may parse bodies above 256 KiB in another thread: one just below that, one just above. */
const MEDIUM_SIZES = [255 * KIB, 257 * KIB];
const LARGE_SIZE = 8 * MIB - KIB;
const FILE_SIZE = 16 * MIB - KIB;
const ACTIONS_SIZE = 32 * MIB - KIB;
const MAX_ACTIONS = 100_000;
const MAX_FEEDS = 50_000;
const FEEDS_OF_APPS = "/index.php/apps/gpoddersync/subscriptions";
const FEED_CHANGES = "/index.php/apps/gpoddersync/subscription_change/create";
export const ACTIONS_OF_APPS = "/index.php/apps/gpoddersync/episode_action";

type Shape = (bytes: number) => string;

/** JSON documents of about a given length. */
const DOCUMENTS = {
  "URLs of slashes": (bytes) =>
    operations(Math.floor(bytes / 2_160), () => `https://a.example/${"/".repeat(URL_LENGTH)}x`),
  "empty arrays": (bytes) => `{"constructor":1,"x":[${fill("[],", bytes)}[]]}`,
  "deep nesting": (bytes) => "[".repeat(bytes / 2) + "]".repeat(bytes / 2),
  "60 levels": (bytes) => `[${fill(`${"[".repeat(60)}${"]".repeat(60)},`, bytes)}1]`,
  keys: (bytes) => `{${numbered(bytes / 42, (n) => `"${n.padStart(36, "k")}":1,`)}"x":1}`,
  "one string": (bytes) => `"${"a".repeat(bytes)}"`,
  "escaped string": (bytes) => `"${fill("\\u0041", bytes)}"`,
  blanks: (bytes) => " ".repeat(bytes),
  numbers: (bytes) => `[${fill("1e3,", bytes)}1]`,
  "empty operations": (bytes) => `{"atomic:operations":[${fill("{},", bytes)}{}]}`,
  "padded operations": (bytes) => {
    const count = Math.min(10_000, Math.floor(bytes / 830));
    return operations(count, feedUrl, " ".repeat(Math.floor(bytes / count) - 175));
  },
} as const satisfies Record<string, Shape>;

/** Uploads of episode actions of about a given length. */
const UPLOADS = {
  actions: (bytes) => actions(MAX_ACTIONS, Math.floor(bytes / MAX_ACTIONS) - 220),
  "actions of many podcasts": (bytes) => actions(MAX_ACTIONS, Math.floor(bytes / MAX_ACTIONS) - 250, feedUrl),
  "actions with blanks": (bytes) => actions(MAX_ACTIONS, Math.floor(bytes / MAX_ACTIONS) - 250, () => ` ${feedUrl()}`),
  "one long podcast": (bytes) => actions(1, 0, () => `x${" ".repeat(bytes)}x`),
  "empty actions": (bytes) => `[${fill("{},", bytes)}{}]`,
} as const satisfies Record<string, Shape>;

/** Feed URLs that an app adds or removes, of about a given length in all. */
const FEED_LISTS = {
  feeds: () => repeat(MAX_FEEDS, feedUrl),
  "feeds with blanks": () => repeat(MAX_FEEDS, () => ` ${feedUrl()}`),
  "URLs of slashes": (bytes) => repeat(bytes / 2_030, () => `https://a.example/${"/.".repeat(URL_LENGTH / 2)}`),
  "encoded URLs": (bytes) => repeat(bytes / 2_030, () => feedUrl() + "%41".repeat(640)),
  "one long URL": (bytes) => [`x${" ".repeat(bytes - 100)}x`],
} as const satisfies Record<string, (bytes: number) => readonly string[]>;

/** OPML files of about a given length. */
const FILES = {
  "tiny elements": (bytes) => opml(fill("<a/>", bytes)),
  attributes: (bytes) => opml(`<outline ${numbered(bytes / 11.5, (n) => `a${n}="" `)}/>`),
  "empty outlines": (bytes) => opml(fill("<outline/>", bytes)),
  "long titles": (bytes) => opml(numbered(10, (n) => outline(n, "t".repeat(bytes / 10 - 100)))),
  "nested outlines": (bytes) => opml(fill("<outline>", bytes / 2) + fill("</outline>", bytes / 2)),
  entities: (bytes) => opml(outline("1", fill("&amp;&#65;", bytes))),
  "declared entities": (bytes) =>
    opml(
      outline("1", fill("&b;", bytes - 8 * KIB)),
      `<!DOCTYPE opml [<!ENTITY a "${"a".repeat(1_000)}"><!ENTITY b "${"&a;".repeat(1_000)}">]>`,
    ),
  "URLs of slashes": (bytes) => opml(numbered(bytes / 2_100, (n) => outline(`${n}${"/".repeat(URL_LENGTH)}x`, "t"))),
  "50,000 feeds": () => opml(numbered(50_000, (n) => outline(n, "t".repeat(250)))),
} as const satisfies Record<string, Shape>;

/** Headers that the server reads, each with the start of a value and a request in which the server reads it. */
const HEADERS: Readonly<Record<string, readonly [start: string, request: (account: Account) => string]>> = {
  Accept: [`${PLAIN};q=`, ({ token }) => start("GET", "/v1/subscriptions", bearer(token))],
  "Content-Type": [`${PLAIN};ext=`, ({ token }) => start("POST", "/v1/operations", bearer(token))],
  "X-Forwarded-For": ["10.0.0.1", ({ cookie }) => start("GET", "/v1/me", `Cookie: ${cookie}\r\n`)],
  Authorization: ["Bearer ", () => start("GET", "/v1/me")],
  "If-None-Match": ['"', () => start("GET", "/")],
  "Accept-Encoding": ["br;q=", () => start("GET", "/")],
  Host: ["a", () => "GET /v1/me HTTP/1.1\r\nConnection: close\r\n"],
  Origin: ["https://a", ({ cookie }) => start("POST", "/v1/tokens", `Cookie: ${cookie}\r\n`)],
};
const CHARACTERS = [" ", "\t", ",", ";", "=", ":", ".", "/", "%", "[", '"', "\\", "1", "a"];
const PATH_PARTS = ["/", "a/", "../", "%", "%41", "%C3", ";", ".", "a"];
const QUERY_PARTS = ["&", "=", "a=&", "page[", "page[size]=1&", "%5B", "%", "+", ",", "1"];

/** Attacks on the event loop. The attacks on memory and fair shares reuse them. */
export const ATTACKS: readonly Attack[] = [
  {
    name: "Cookie of 8 kB",
    isQuick: true,
    requests: () =>
      [" ", "\t", ";", "=", "a=b; ", "earmark=; "].map((part) =>
        bare(`${start("GET", "/v1/me")}Cookie: earmark=a${fill(part, 8_000)}a\r\n`),
      ),
  },
  ...Object.entries(HEADERS).map(
    ([header, [value, request]]): Attack => ({
      name: `${header} of 15 KiB`,
      requests: (account) =>
        CHARACTERS.map((character) =>
          bare(`${request(account)}${header}: ${value}${fill(character, LONG - value.length)}a\r\n`),
        ),
    }),
  ),
  {
    name: "path of 15 KiB",
    requests: ({ token }) => PATH_PARTS.map((part) => bare(start("GET", `/v1/${fill(part, LONG)}`, bearer(token)))),
  },
  {
    name: "query of 15 KiB",
    isQuick: true,
    requests: ({ token }) =>
      QUERY_PARTS.map((part) => bare(start("GET", `/v1/subscriptions?${fill(part, LONG)}`, bearer(token)))),
  },
  postOperations("600 URLs of slashes", [1_300_000], "URLs of slashes", true),
  ...names(DOCUMENTS).flatMap((shape) => [
    postOperations(`${shape}, 8 MiB`, [LARGE_SIZE], shape, shape === "empty arrays"),
    postOperations(`${shape}, 256 KiB`, MEDIUM_SIZES, shape, shape === "empty operations"),
  ]),
  {
    name: "single subscription of 8 MiB",
    requests: ({ token }) => [
      post("/v1/subscriptions", PLAIN, token, build(DOCUMENTS["empty arrays"], LARGE_SIZE)),
      post("/v1/subscriptions", PLAIN, token, build(DOCUMENTS.keys, LARGE_SIZE)),
    ],
  },
  ...names(UPLOADS).map(
    (shape): Attack => ({
      name: `upload of ${shape}, 32 MiB`,
      requests: ({ token }) => [
        post(`${ACTIONS_OF_APPS}/create`, "application/json", token, build(UPLOADS[shape], ACTIONS_SIZE)),
      ],
    }),
  ),
  ...names(FEED_LISTS).flatMap((list) =>
    ["add", "remove"].map((member): Attack => {
      const document: Shape = (bytes) => JSON.stringify({ [member]: FEED_LISTS[list](bytes) });
      return {
        name: `${member} ${list}, 8 MiB`,
        ...(list === "one long URL" ? { isQuick: true } : {}),
        requests: ({ token }) => [post(FEED_CHANGES, "application/json", token, build(document, LARGE_SIZE))],
      };
    }),
  ),
  {
    name: "GET actions of an app",
    needsList: true,
    isQuick: true,
    requests: ({ token }) => [bare(start("GET", `${ACTIONS_OF_APPS}?since=0`, bearer(token)))],
  },
  {
    name: "GET actions of one podcast",
    needsList: true,
    requests: ({ token }) => [
      bare(start("GET", `${ACTIONS_OF_APPS}?since=0&podcast=https://none.example/`, bearer(token))),
      bare(start("GET", "/v1/episode-actions?filter[feed_url]=https://none.example/", bearer(token))),
    ],
  },
  {
    name: "GET feeds of an app",
    needsList: true,
    requests: ({ token }) => [bare(start("GET", `${FEEDS_OF_APPS}?since=0`, bearer(token)))],
  },
  ...["GET", "HEAD"].flatMap((method): Attack[] => [
    {
      name: `${method} export as OPML`,
      needsList: true,
      isQuick: true,
      requests: ({ token }) => [bare(start(method, "/v1/subscriptions.opml", bearer(token)))],
    },
    {
      name: `${method} export as JSON`,
      needsList: true,
      requests: ({ cookie }) => [bare(start(method, "/v1/me/export", `Cookie: ${cookie}\r\n`))],
    },
  ]),
  ...names(FILES).map(
    (shape): Attack => ({
      name: `import of ${shape}, 16 MiB`,
      ...(shape === "empty outlines" || shape === "long titles" ? { isQuick: true } : {}),
      requests: ({ token }) => [post("/v1/imports", "text/x-opml", token, build(FILES[shape], FILE_SIZE))],
    }),
  ),
];

/** Attacks that block nothing directly, but use up a shared resource. */
const HOGS: readonly Attack[] = [
  {
    name: "10,000 new feeds",
    isFresh: true,
    requests: ({ token }) => [post("/v1/operations", ATOMIC, token, bytesOf(operations(10_000, feedUrl)))],
  },
  {
    name: "sign-ins of one /48",
    isFresh: true,
    requests: () => {
      const document = JSON.stringify({ data: { type: "session", attributes: { name: "nobody", password: newId() } } });
      const groups = Array.from({ length: 5 }, () => Math.floor(Math.random() * 65_536).toString(16)).join(":");
      return [post("/v1/sessions", PLAIN, undefined, bytesOf(document), `X-Forwarded-For: 2001:db8:1:${groups}\r\n`)];
    },
  },
  {
    name: "idle connections",
    requests: () => [bare("GET /healthz HTTP/1.1\r\nHost: localhost\r\n")],
  },
];

export function findAttack(name: string): Attack {
  const found = [...ATTACKS, ...HOGS].find((attack) => attack.name === name);
  if (found === undefined) throw new Error(`unknown attack "${name}"`);
  return found;
}

function postOperations(
  name: string,
  sizes: readonly number[],
  shape: keyof typeof DOCUMENTS,
  isQuick: boolean,
): Attack {
  return {
    name,
    ...(isQuick ? { isQuick } : {}),
    requests: ({ token }) =>
      sizes.map((bytes) => post("/v1/operations", ATOMIC, token, build(DOCUMENTS[shape], bytes))),
  };
}

function start(method: string, target: string, headers = ""): string {
  return `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}`;
}

function bare(head: string): Request {
  return { head: bytesOf(`${head}\r\n`), body: EMPTY };
}

function post(path: string, type: string, token: string | undefined, body: Buffer, headers = ""): Request {
  const all = `${bearer(token)}Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n${headers}`;
  return { head: bytesOf(`${start("POST", path, all)}\r\n`), body };
}

const EMPTY = Buffer.alloc(0);
const built = new Map<Shape, Map<number, Buffer>>();

function build(shape: Shape, bytes: number): Buffer {
  const sizes = built.get(shape) ?? new Map<number, Buffer>();
  const body = sizes.get(bytes) ?? bytesOf(shape(bytes));
  built.set(shape, sizes.set(bytes, body));
  return body;
}

function bearer(token: string | undefined): string {
  return token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

/** A document of new subscriptions, separated by `padding`. */
export function operations(count: number, url: () => string, padding = ""): string {
  const all = Array.from({ length: count }, () => {
    const data = { type: "subscription", id: newId(), attributes: { feed_url: url() } };
    return JSON.stringify({ op: "add", data });
  });
  return `{"atomic:operations":[${all.join(`,${padding}`)}]}`;
}

/** A document of plays of different episodes, each with a GUID of the given length. */
export function actions(count: number, guidLength: number, url = () => "https://feeds.example/a"): string {
  const all = Array.from({ length: count }, (_, index) => {
    const id = newId();
    const times = { timestamp: "2026-01-01T10:00:00", started: 0, position: index, total: 100_000 };
    const [podcast, episode] = [url(), `https://media.example/${id}`];
    return JSON.stringify({ podcast, episode, action: "play", guid: "g".repeat(Math.max(0, guidLength)), ...times });
  });
  return `[${all.join()}]`;
}

export function opml(outlines: string, declarations = ""): string {
  return `<?xml version="1.0"?>${declarations}<opml version="2.0"><head/><body>${outlines}</body></opml>`;
}

export function outline(path: string, title: string): string {
  return `<outline type="rss" text="${title}" xmlUrl="https://feeds.example/${path}"/>`;
}

const PROCESS = Math.floor(Math.random() * 2 ** 32);
let count = 0;

/** A unique id, across processes too. */
export function newId(): string {
  count += 1;
  return `${PROCESS.toString(16).padStart(8, "0")}-0000-4000-8000-${count.toString(16).padStart(12, "0")}`;
}

export function feedUrl(): string {
  return `https://feeds.example/${newId()}`;
}

/** XML needs five bytes for each `&`; one character beyond Latin-1 makes the string use two bytes per character. */
export function longFeedUrl(): string {
  return `${feedUrl()}?\u6f22`.padEnd(URL_LENGTH, "&");
}

function repeat(count: number, create: () => string): string[] {
  return Array.from({ length: Math.floor(count) }, create);
}

function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.floor(bytes / unit.length));
}

function numbered(count: number, write: (number: string) => string): string {
  return Array.from({ length: Math.floor(count) }, (_, index) => write(String(index))).join("");
}

function names<Name extends string>(table: Readonly<Record<Name, unknown>>): Name[] {
  return Object.keys(table) as Name[];
}
