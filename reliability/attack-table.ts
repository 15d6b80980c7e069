import { ATOMIC, PLAIN } from "../bench/support/requests.ts";

export interface Request {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Headers;
  readonly body?: Buffer | string;
  /** `hold` sends this many copies at once; with 0, the connection stays idle. */
  readonly copies?: number;
}

export type Headers = Readonly<Record<string, string>>;

/** In headers, and in bodies that are strings: replaced with four hexadecimal digits, which differ between requests. */
export const MARK = "~~~~";

/**
 * `repeat`: each connection sends a request, reads the response and sends the next; `retry`: the same, with a pause after
 * each refusal; `hold`: sends one request and reads nothing; `drip`: sends one body slowly.
 */
export type How = "repeat" | "retry" | "hold" | "drip";

/** Who attacks. Other clients have the address 127.0.0.1; without accounts, they use the same list. */
export const ATTACKERS = {
  "same address": { hasAccounts: false, from: "127.0.0.1" },
  "another address": { hasAccounts: false, from: "127.0.0.9" },
  "an account": { hasAccounts: true, from: "127.0.0.9" },
  "a stranger": { hasAccounts: true, from: "127.0.0.9" },
  "behind a proxy": { hasAccounts: true, from: "127.0.0.8" },
} as const;
export const PROXY = ATTACKERS["behind a proxy"].from;
export const ACCOUNT = "attacker";

export interface Attack {
  readonly name: string;
  readonly by: readonly (keyof typeof ATTACKERS)[];
  readonly connections: number;
  readonly requests: () => readonly Request[];
  /** Default: `repeat`. */
  readonly how?: How;
  /** What the attacker has added and removed before. */
  readonly list?: keyof typeof LISTS;
  readonly isQuick?: true;
}

const ALL = ["same address", "another address", "an account"] as const;
const STRANGERS = ["another address", "a stranger"] as const;
const PROXIED = ["behind a proxy"] as const;
const MIB = 2 ** 20;
const CHANGES = "/v1/changes?page[size]=1000";
const EXPORT = "/v1/subscriptions.opml";
const PAGE = "/v1/subscriptions?page[size]=100";
const NEXTCLOUD = "/index.php/apps/gpoddersync";
const POLLS = [get(`${NEXTCLOUD}/subscriptions?since=1`), get(`/api/2/subscriptions/${ACCOUNT}/phone.json?since=1`)];
/** Addresses of one /48. */
const FORWARDED = { "X-Forwarded-For": `2001:db8:1:${MARK}::1` };
/** Four bytes in UTF-8, but one character for the limits. */
const WIDE = "\u{1f399}";

export const LISTS = {
  feeds: () => times(19_500, (n) => add(n, { feed_url: `https://feeds.example/${n}` })),
  "heavy feeds": () => times(5_000, addHeavy),
  /** In two halves, because a list holds 20,000 feeds. */
  removals: () => [
    ...[...times(12_500, addHeavy), ...times(12_500, remove)],
    ...[...times(12_500, (n) => addHeavy(12_500 + n)), ...times(12_500, (n) => remove(12_500 + n))],
  ],
} as const satisfies Record<string, () => readonly object[]>;

type Row = readonly [
  name: string,
  by: Attack["by"],
  connections: number,
  /** The path of a GET request, or requests that are sent in turn. */
  requests: string | Attack["requests"],
  more?: Pick<Attack, "how" | "list" | "isQuick">,
];

const QUICK = { isQuick: true } as const;
const FEEDS = { list: "feeds" } as const;
const HEAVY = { list: "heavy feeds" } as const;
const UNREAD = { how: "hold" } as const;
const SLOW = { how: "drip" } as const;

const ROWS: readonly Row[] = [
  ["changes", ALL, 400, CHANGES, { ...FEEDS, ...QUICK }],
  ["changes", ALL, 40, CHANGES, FEEDS],
  ["changes of heavy feeds", ALL, 40, CHANGES, HEAVY],
  ["polls after 25,000 removals", ALL, 6, () => POLLS, { list: "removals" }],
  ["10,000 updates", ALL, 4, manyUpdates, { ...HEAVY, ...QUICK }],
  ["app logins", STRANGERS, 300, () => [post("/index.php/login/v2", "application/json", "")], QUICK],
  ["API descriptions", STRANGERS, 300, "/openapi.json"],
  ["uploads of 12 MB", ALL, 2, () => [upload(12 * MIB)]],
  ["uploads of 32 MiB", ALL, 8, () => [upload(32 * MIB - 4_096)]],
  ["imports of 50,000 feeds", ALL, 20, importing, QUICK],
  ["documents of 8 MiB", ALL, 20, hardDocuments],
  ["12,000 spellings", ALL, 4, spellings],
  ["unread exports", ALL, 400, EXPORT, { ...UNREAD, ...HEAVY, ...QUICK }],
  ["unread changes", ALL, 400, CHANGES, { ...UNREAD, ...HEAVY }],
  ["unread polls", ALL, 200, () => POLLS, { ...UNREAD, ...HEAVY }],
  ["pipelined and unread", ALL, 20, () => [{ ...get(PAGE), copies: 5_000 }], { ...UNREAD, ...FEEDS, ...QUICK }],
  ["slow uploads of 32 MiB", ALL, 8, () => [blank(32 * MIB)], SLOW],
  ["slow uploads of 8 MiB", ALL, 400, () => [blank(8 * MIB)], SLOW],
  ["event streams", ALL, 1_000, "/v1/events"],
  ["idle connections", ALL, 4_000, idle, { ...UNREAD, ...QUICK }],
  ["idle connections", PROXIED, 9_000, idle, UNREAD],
  ["wrong passwords", PROXIED, 100, signIn, QUICK],
  ["wrong passwords of apps", PROXIED, 100, wrongPasswords],
  ["long headers and queries", ALL, 100, longHeads],
  ["pages with podcasts", ALL, 200, `${PAGE}&include=podcast`, FEEDS],
  ["last pages", ALL, 200, `${PAGE}&page[number]=195`, { ...FEEDS, ...QUICK }],
  ["new connections", ALL, 300, () => [get("/v1/subscriptions", { Connection: "close" })]],
  ["exports", ALL, 100, EXPORT, FEEDS],
];

export const ATTACKS: readonly Attack[] = ROWS.map(([name, by, connections, requests, more]) => ({
  name,
  by,
  connections,
  requests: typeof requests === "string" ? () => [get(requests)] : requests,
  ...more,
}));

function get(path: string, headers: Headers = {}): Request {
  return { method: "GET", path, headers };
}

export function post(path: string, type: string, body: Buffer | string, headers: Headers = {}): Request {
  return { method: "POST", path, headers: { "Content-Type": type, ...headers }, body };
}

export function times<Item>(count: number, create: (n: number) => Item): Item[] {
  return Array.from({ length: Math.floor(count) }, (_, n) => create(n));
}

/** `prefix`: eight characters that keep the ids of several requests apart. */
export function add(n: number, attributes: object, prefix = "00000000"): object {
  return { op: "add", data: { type: "subscription", id: idOf(n, prefix), attributes } };
}

/** As long as the limits allow. */
function addHeavy(n: number): object {
  const folders = [WIDE.repeat(300), `a${WIDE.repeat(299)}`, `b${WIDE.repeat(99)}`];
  return add(n, { feed_url: `https://feeds.example/${n}/${WIDE.repeat(2_000)}`, title: WIDE.repeat(300), folders });
}

function remove(n: number): object {
  return { op: "remove", ref: { type: "subscription", id: idOf(n) } };
}

function idOf(n: number, prefix = "00000000"): string {
  return `${prefix}-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;
}

export function operations(all: readonly object[]): string {
  return JSON.stringify({ "atomic:operations": all });
}

function manyUpdates(): Request[] {
  const update = (n: number) => ({
    op: "update",
    data: { type: "subscription", id: idOf(n % 50), attributes: { title: "t" } },
  });
  return [post("/v1/operations", ATOMIC, Buffer.from(operations(times(10_000, update))))];
}

/** Episode actions of 320 bytes each. */
export function upload(bytes: number): Request {
  const all = times(bytes / 335, (n) => {
    const episode = `https://media.example/${n}`.padEnd(150, "x");
    const fields = { podcast: "https://feeds.example/a", action: "play", timestamp: "2026-01-01T10:00:00" };
    return JSON.stringify({ ...fields, episode, started: 0, position: n, total: 100_000 }).padEnd(334);
  });
  return post(`${NEXTCLOUD}/episode_action/create`, "application/json", Buffer.from(`[${all.join()}]`));
}

function importing(): Request[] {
  const outlines = times(50_000, (n) => `<outline text="${"t".repeat(250)}" xmlUrl="https://feeds.example/o/${n}"/>`);
  const file = `<opml version="2.0"><body>${outlines.join("")}</body></opml>`;
  return [post("/v1/imports", "text/x-opml", Buffer.from(file))];
}

/** JSON documents of 8 MiB that take long to parse. */
function hardDocuments(): Request[] {
  const feed_url = `https://a.example/${"/".repeat(2_000)}x`;
  return [
    `{"atomic:operations":[${"{},".repeat(2.6 * MIB)}{}]}`,
    `[${`${"[".repeat(60)}${"]".repeat(60)},`.repeat(65_000)}1]`,
    `{${times(190_000, (n) => `"${String(n).padStart(36, "k")}":1`).join()}}`,
    `"${"\\u0041".repeat(1.3 * MIB)}"`,
    operations(times(3_800, (n) => add(n, { feed_url }))),
  ].map((text) => post("/v1/operations", ATOMIC, Buffer.from(text)));
}

function spellings(): Request[] {
  const body = JSON.stringify({ add: times(12_000, (n) => `https://feeds.example/spelled#${n}`) });
  return [post(`${NEXTCLOUD}/subscription_change/create`, "application/json", Buffer.from(body))];
}

function blank(bytes: number): Request {
  const path = bytes > 8 * MIB ? `${NEXTCLOUD}/episode_action/create` : "/v1/operations";
  return post(path, bytes > 8 * MIB ? "application/json" : ATOMIC, Buffer.alloc(bytes, " "));
}

function idle(): Request[] {
  return [{ ...get("/"), copies: 0 }];
}

function signIn(): Request[] {
  const attributes = { name: ACCOUNT, password: `wrong password ${MARK}` };
  return [post("/v1/sessions", PLAIN, JSON.stringify({ data: { type: "session", attributes } }), FORWARDED)];
}

function wrongPasswords(): Request[] {
  return times(1_000, (n) => {
    const credentials = Buffer.from(`${ACCOUNT}:wrong password ${n}`).toString("base64");
    return get(`${NEXTCLOUD}/subscriptions`, { ...FORWARDED, Authorization: `Basic ${credentials}` });
  });
}

function longHeads(): Request[] {
  const length = 15 * 1_024;
  const queries = ["&", "a=&", "page[size]=1&", "%5B"].map((part) =>
    get(`/v1/subscriptions?${part.repeat(length / part.length)}`),
  );
  const cookies = [";", "a=b; ", "earmark=; "].map((part) =>
    get("/v1/me", { Cookie: part.repeat(length / part.length) }),
  );
  const accepts = [",", `${PLAIN};q=`].map((part) =>
    get("/v1/subscriptions", { Accept: part.repeat(length / part.length) }),
  );
  return [...queries, ...cookies, ...accepts];
}
