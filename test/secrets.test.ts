import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { document, exchange, fromElsewhere, newToken, signIn, signUp, writeRequest } from "./accounts.ts";
import { ATOMIC, add, callServer, newId, PLAIN, temporaryFolder } from "./harness.ts";
import { startPostgres } from "./postgres.ts";
import { type RunningServer, run, start } from "./process.ts";

type Headers = Readonly<Record<string, string>>;

/** Begins and ends every canary, so that one search finds them all, whole or cut off. */
const MARK = "zqkanr";
const CANARY = new RegExp(`${MARK}[0-9a-f]{8}${MARK}`, "gi");

/** Every canary so far, and what it was sent as. */
const canaries = new Map<string, string>();
/** Secrets that the server made itself. */
const secrets = new Map<string, string>();

/** Something that is found wherever it ends up, and that may stand in a name, a token, a path or a header alike. */
function canary(what: string): string {
  const text = `${MARK}${randomBytes(4).toString("hex")}${MARK}`;
  canaries.set(text, what);
  return text;
}

function keep(secret: string, what: string): string {
  assert.ok(secret.length >= 16, `${what} is too short to be found`);
  secrets.set(secret, what);
  return secret;
}

const known = new Map<string, [string, Buffer][]>();

/** All the ways in which someone may have written a text down. */
function writingsOf(text: string): [string, Buffer][] {
  const writings = known.get(text) ?? writeInEveryWay(text);
  known.set(text, writings);
  return writings;
}

function writeInEveryWay(text: string): [string, Buffer][] {
  const utf16 = Buffer.from(text, "utf16le");
  const bytes = Buffer.from(text);
  const hex = bytes.toString("hex");
  // Within a longer text there are three ways in which the same bytes can fall into groups of six bits.
  const base64 = [0, 1, 2].flatMap((shift) => {
    const groups = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString("base64")
      .replaceAll("=", "");
    const sure = groups.slice(Math.ceil((shift * 8) / 6), -1);
    return [sure, sure.replaceAll("+", "-").replaceAll("/", "_")];
  });
  return [
    ["UTF-8", bytes],
    ["capitals", Buffer.from(text.toUpperCase())],
    ["small letters", Buffer.from(text.toLowerCase())],
    ["UTF-16", utf16],
    ["UTF-16, big end first", Buffer.from(utf16).swap16()],
    ["hexadecimal", Buffer.from(hex)],
    ["hexadecimal", Buffer.from(hex.toUpperCase())],
    ["numbers", Buffer.from([...bytes].join(","))],
    ...base64.map((groups): [string, Buffer] => ["base64", Buffer.from(groups)]),
  ];
}

/** The bytes that a secret may have been made of. */
function sourcesOf(secret: string): [string, Buffer][] {
  const rest = secret.replace(/^em[ki]_/, "");
  const sources = [Buffer.from(secret, "base64url"), Buffer.from(rest, "base64url"), Buffer.from(rest, "hex")];
  return sources.filter(({ length }) => length >= 12).map((bytes) => ["bytes", bytes.subarray(0, 12)]);
}

/** Fails when a canary or half a secret is in there, in any way of writing. */
function assertWithout(text: string | Buffer, where: string, sought: ReadonlyMap<string, string> = secrets): void {
  const bytes = Buffer.from(text);
  const look = (what: string, writings: readonly (readonly [string, Buffer])[]) => {
    for (const [writing, form] of writings) {
      const at = bytes.indexOf(form);
      if (at === -1) continue;
      const around = bytes.toString("latin1", Math.max(0, at - 200), at + 200);
      const sentAs = (around.match(CANARY) ?? []).map((found) => canaries.get(found.toLowerCase()));
      assert.fail(`${where} holds ${what} in ${writing} ${sentAs.join(", ")}: … ${around} …`);
    }
  };
  look("a canary", writingsOf(MARK));
  for (const [secret, what] of sought) {
    const middle = Math.floor(secret.length / 2);
    look(what, [...writingsOf(secret.slice(0, middle)), ...writingsOf(secret.slice(middle)), ...sourcesOf(secret)]);
  }
}

test("the search for secrets finds them in every way of writing", () => {
  const mine = new Map([["0123456789abcdefghij", "a secret"]]);
  for (const secret of [canary("a test"), ...mine.keys()]) {
    for (const text of [
      `{"err":"no ${secret}"}`,
      secret.slice(6),
      secret.slice(0, 12),
      `x-${secret.toUpperCase()}`,
      JSON.stringify({ packet: Buffer.from(`GET /${secret}`) }),
      Buffer.from(`GET /${secret}`).toString("hex"),
      ...["", "a", "ab"].map((before) => btoa(`${before}${secret}:x`)),
      Buffer.from(secret, "utf16le"),
    ])
      assert.throws(() => assertWithout(text, "it", mine));
  }
  const token = randomBytes(32);
  for (const secret of [`emk_${token.toString("base64url")}`, token.toString("base64url"), token.toString("hex")])
    assert.throws(() => assertWithout(Buffer.concat([Buffer.alloc(9), token]), "it", new Map([[secret, "a token"]])));
  assertWithout("nothing of the kind", "it", mine);
});

// --- What is asked.

interface Ask {
  readonly what: string;
  readonly bytes: string | Uint8Array;
  /** How it is answered while everything works; undefined where nothing need be. */
  readonly status: number | undefined;
  /** What the answer says of all this to the one who sent it, and nothing else. */
  readonly echoes: readonly string[];
  /** What it may say of earlier requests, which were the same person's. */
  readonly remembers?: RegExp;
}

interface Person {
  readonly name: string;
  readonly password: string;
  readonly cookie: string;
  readonly token: string;
  readonly agent: string;
  readonly label: string;
}

/** What is sent with every request, and is nobody's business. */
function baseHeaders(agent = canary("User-Agent")): Headers {
  const { "X-Forwarded-For": address = "" } = fromElsewhere();
  return {
    "User-Agent": agent,
    Referer: `https://${canary("Referer")}.example/${canary("path of Referer")}`,
    "X-Request-Id": canary("X-Request-Id"),
    "X-Forwarded-For": `${canary("X-Forwarded-For")}, ${address}`,
    Forwarded: `for=${canary("Forwarded")}`,
    [canary("name of a header")]: canary("value of a header"),
  };
}

function ask(
  what: string,
  status: number | undefined,
  [method = "", target = ""]: readonly string[],
  options: Partial<Pick<Ask, "echoes" | "remembers">> & { readonly headers?: Headers; readonly body?: string } = {},
): Ask {
  const { headers = {}, body, echoes = [], remembers = NOTHING } = options;
  const bytes = writeRequest(method, target, { ...baseHeaders(), ...headers }, body);
  return { what, status, bytes, echoes, remembers };
}

const NOTHING = /^\b$/;

const plain = { "Content-Type": PLAIN };
const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });
const subscription = (id: unknown, feedUrl: unknown, more: object = {}) =>
  JSON.stringify({ data: { type: "subscription", id, attributes: { feed_url: feedUrl }, ...more } });

/** As long as a token is. */
const likeToken = (text: string) => `emk_${text.padEnd(43, "A")}`;

function asksOfAccounts({ name, password, cookie }: Person): Ask[] {
  const to = { up: ["POST", "/v1/accounts"], in: ["POST", "/v1/sessions"], me: ["PATCH", "/v1/me"] } as const;
  const tokens = ["POST", "/v1/tokens"];
  const signedIn = { ...plain, Cookie: cookie };
  const post = (what: string, status: number, target: readonly string[], body: string, echoes: string[] = []) =>
    ask(what, status, target, { headers: target === to.me || target === tokens ? signedIn : plain, body, echoes });
  const [newName, same, label] = [canary("name"), canary("name as password"), canary("label")];
  const long = (what: string, times: number) => canary(what).repeat(times);
  return [
    post("sign up", 201, to.up, document("account", { name: newName, password: canary("password") }), [newName]),
    post("no name", 422, to.up, document("account", { name: `No ${canary("bad name")}`, password })),
    post("long name", 422, to.up, document("account", { name: long("long name", 5), password })),
    post("name as password", 422, to.up, document("account", { name: same, password: same })),
    post("too long", 422, to.up, document("account", { name: canary("name"), password: long("long password", 16) })),
    post("longer", 422, to.up, document("account", { name: canary("name"), password: long("longer password", 40) })),
    post("longest", 413, to.up, document("account", { name: canary("name"), password: long("longest", 1_000) })),
    post("taken", 409, to.up, document("account", { name, password: canary("password for a name that is taken") })),
    post("not a text", 422, to.up, document("account", { name: { [canary("key")]: canary("value") }, password })),
    ...[canary("invitation"), `emi_${canary("invitation")}`, likeToken(canary("token as invitation"))].map(
      (invitation) =>
        post("invitation", 403, to.up, document("account", { name: canary("name"), password, invitation })),
    ),
    post("long invitation", 422, to.up, document("account", { name, password, invitation: long("invitation", 16) })),
    post("wrong type", 409, to.up, document(canary("type"), { name, password })),
    post("no object", 400, to.up, JSON.stringify({ data: canary("data") })),
    post("no attributes", 422, to.up, JSON.stringify({ data: { type: "account", attributes: canary("attributes") } })),
    post("wrong password", 401, to.in, document("session", { name, password: canary("wrong password") })),
    post("unknown name", 401, to.in, document("session", { name: canary("unknown name"), password })),
    post("impossible name", 401, to.in, document("session", { name: `${canary("impossible name")} `, password })),
    post("long password", 422, to.in, document("session", { name, password: long("password", 40) })),
    post("more", 401, to.in, document("session", { name, password: `${password}x`, [canary("key")]: canary("value") })),
    post("wrong current", 403, to.me, document("account", { current_password: canary("current"), password })),
    post(
      "bad new",
      422,
      to.me,
      document("account", { current_password: password, password: long("new password", 16) }),
    ),
    post("bad scope", 422, tokens, document("token", { label: "x", scope: canary("scope") })),
    post("bad end", 422, tokens, document("token", { label: "x", scope: "read", expires_at: canary("expires_at") })),
    post("long label", 422, tokens, document("token", { label: long("long label", 10), scope: "read" })),
    post("bad label", 422, tokens, document("token", { label: `${canary("bad label")}\u0000`, scope: "read" })),
    post("label", 201, tokens, document("token", { label, scope: "read" }), [label]),
  ];
}

function asksWithCredentials({ name, cookie, token }: Person, jwts: readonly string[]): Ask[] {
  const basic = (text: string) => ({ Authorization: `Basic ${btoa(text)}` });
  const wrong = (): Headers[] => [
    bearer(likeToken(canary("token"))),
    bearer(`emk_${canary("short token")}`),
    bearer(canary("opaque token")),
    bearer(canary("long token").repeat(400)),
    { Authorization: `Bearer ${canary("token")} ${canary("second token")}` },
    { Authorization: `Token ${canary("token of another scheme")}` },
    { Authorization: canary("token without scheme") },
    { Authorization: `Digest username="${canary("user")}", response="${canary("response")}"` },
    basic(`${canary("user of Basic")}:${canary("password of Basic")}`),
    { ...bearer(canary("token beside a cookie")), Cookie: cookie },
    { Cookie: `earmark=${canary("cookie")}` },
    { Cookie: `earmark=${canary("cookie").padEnd(43, "A")}` },
    { Cookie: `earmark=${canary("first cookie")}; earmark=${canary("second cookie")}` },
    { Cookie: `${canary("name of a cookie")}=${canary("other cookie")}` },
  ];
  const places = [
    [401, "GET", "/v1/me"],
    [401, "DELETE", `/v1/tokens/${canary("id of a token")}`],
    [401, "POST", `/v1/operations?${canary("name of a parameter")}=${canary("parameter")}`],
    [401, "GET", "/metrics"],
    [200, "GET", `/healthz?${canary("parameter")}=${canary("parameter")}`],
    [405, "PUT", "/v1/me"],
    [404, "GET", `/${canary("path")}`],
  ] as const;
  return [
    ...places.flatMap(([status, ...target]) =>
      wrong().map((headers) => ask("wrong credentials", status, target, { headers })),
    ),
    ...jwts.map((jwt) => ask("a JWT", 401, ["GET", "/v1/me"], { headers: bearer(jwt) })),
    ask("long cookie", 431, ["GET", "/v1/me"], { headers: { Cookie: `earmark=${canary("cookie").repeat(500)}` } }),
    ask("a right token", 200, ["GET", "/v1/me"], { headers: bearer(token), echoes: [name] }),
    ask("in the wrong place", 403, ["GET", "/v1/tokens"], { headers: bearer(token) }),
  ];
}

function asksWithTargets({ name, cookie, token, agent, label }: Person): Ask[] {
  const own = { headers: { Cookie: cookie } };
  const [known, broken] = [canary("name of a parameter"), canary("name of a broken parameter")];
  const get = (what: string, status: number, target: string, more: { echoes?: string[] } = {}) =>
    ask(what, status, ["GET", target], { ...own, ...more });
  return [
    get("access_token", 400, `/v1/me?access_token=${canary("access_token")}`),
    get("token in query", 400, `/v1/me?${likeToken(canary("token in query"))}`),
    get("right token in query", 400, `/v1/me?token=${token}`),
    get("value", 400, `/v1/me?token=${canary("value of a parameter")}`),
    get("name", 400, `/v1/me?${known}=${canary("value of a parameter")}`, { echoes: [known] }),
    get("broken name", 400, `/v1/me?%ff${broken}=1`, { echoes: [broken] }),
    get("page", 400, `/v1/tokens?page[size]=${canary("page[size]")}`),
    get("fields", 400, `/v1/subscriptions?fields[subscription]=${canary("fields")}`),
    get("twice", 400, `/v1/subscriptions?page[size]=1&page[size]=${canary("page[size]")}`),
    get("broken value", 400, `/v1/subscriptions?page[size]=%ff${canary("page[size]")}`),
    get("unused", 200, `/readyz?${canary("parameter")}=${canary("value")}`),
    get("path", 404, `/${canary("path")}/${canary("path")}`),
    get("double slash", 404, `//${canary("user")}:${canary("password")}@host/`),
    get("id", 400, `/v1/subscriptions/${canary("id")}`),
    get("long id", 400, `/v1/subscriptions/${canary("id").repeat(600)}`),
    get("id of a session", 400, `/v1/sessions/${canary("id")}`),
    get("id of a token", 400, `/v1/tokens/${canary("id")}`),
    get("broken path", 400, `/%ff${canary("path")}`),
    get("broken id", 400, `/v1/tokens/%ff${canary("id")}`),
    get("fragment", 400, `/v1/me#${canary("fragment")}`),
    get("absolute", 200, `http://${canary("user")}:${canary("password")}@${canary("host")}.example/v1/me`, {
      echoes: [name],
    }),
    ask("removed", 400, ["DELETE", `/v1/tokens/${canary("id")}`], own),
    ask("everything", 200, ["GET", "/v1/me/export"], {
      ...own,
      echoes: [name, agent, label],
      remembers: /^label$|^User-Agent$| of a feed$/,
    }),
    ask("head", 404, ["HEAD", `/${canary("path")}?${canary("parameter")}`], own),
  ];
}

function asksWithBodies({ token }: Person): Ask[] {
  const post = (what: string, status: number, body: string, echoes: string[] = [], headers: Headers = {}) =>
    ask(what, status, ["POST", "/v1/subscriptions"], {
      headers: { ...bearer(token), ...plain, ...headers },
      body,
      echoes,
    });
  const operate = (what: string, status: number, body: string, echoes: string[] = []) =>
    ask(what, status, ["POST", "/v1/operations"], {
      headers: { ...bearer(token), "Content-Type": ATOMIC },
      body,
      echoes,
    });
  const feed = () => {
    const parts = [canary("user of a feed"), canary("password of a feed"), canary("path of a feed")] as const;
    return { parts, url: `https://${parts[0]}:${parts[1]}@feeds.example/${parts[2]}?key=${parts[0]}` };
  };
  const [first, bulk, file] = [feed(), feed(), feed()];
  const [id, title, refused] = [newId(), canary("title of a feed"), `ftp://${canary("refused feed")}`];
  const outline = (address: string, text: string) =>
    `<opml version="2.0"><body><outline type="rss" text="${text}" xmlUrl="${address}"/></body></opml>`;
  const load = (what: string, status: number | undefined, body: string, echoes: string[] = [], type = "text/x-opml") =>
    ask(what, status, ["POST", "/v1/imports"], { headers: { ...bearer(token), "Content-Type": type }, body, echoes });
  return [
    post("feed", 201, subscription(id, first.url), [...first.parts]),
    post("the same feed", 409, subscription(newId(), first.url), [...first.parts]),
    ask("a list", 200, ["GET", "/v1/subscriptions?page[size]=100"], {
      headers: bearer(token),
      echoes: [...first.parts],
      remembers: / of a feed$/,
    }),
    ask("one", 200, ["GET", `/v1/subscriptions/${id}`], { headers: bearer(token), echoes: [...first.parts] }),
    ask("gone", 204, ["DELETE", `/v1/subscriptions/${id}`], { headers: bearer(token) }),
    load("a file", 200, outline(file.url.replace("&", "&amp;"), title), [...file.parts, title]),
    load("no feed in a file", 200, outline(refused, "x"), [refused.slice(6)]),
    load("no file", 422, `<${canary("element")}>${canary("text")}`),
    load("an entity", undefined, `<!DOCTYPE x [<!ENTITY y SYSTEM "file:///${canary("entity")}">]><opml>&y;</opml>`),
    load("another type", 415, "x", [], `text/${canary("Content-Type")}`),
    ask("a file", 200, ["GET", "/v1/subscriptions.opml"], {
      headers: bearer(token),
      echoes: [...file.parts],
      remembers: / of a feed$/,
    }),
    post("no feed", 422, subscription(newId(), `ftp://${canary("user")}:${canary("password")}@feeds.example/`)),
    post("long feed", 422, subscription(newId(), `https://feeds.example/${canary("long feed").repeat(200)}`)),
    post("blank", 422, subscription(newId(), `https://feeds.example/ ${canary("feed with a blank")}`)),
    post("bad host", 422, subscription(newId(), `https://${canary("host")}..example/`)),
    post("id", 400, subscription(canary("id"), "https://feeds.example/")),
    post("type", 409, subscription(newId(), "https://feeds.example/", { type: canary("type") })),
    post("no JSON", 400, canary("body")),
    post("half JSON", 400, `{"data":{"${canary("key")}":"${canary("value")}`),
    post("prototype", 400, `{"__proto__":{"${canary("key")}":"${canary("value")}"}}`),
    post("deep", 400, `${"[".repeat(100)}"${canary("value")}"${"]".repeat(100)}`),
    post("Content-Type", 415, "{}", [], { "Content-Type": `text/${canary("Content-Type")}` }),
    post("parameter", 415, "{}", [], { "Content-Type": `${PLAIN};${canary("parameter")}=${canary("value")}` }),
    post("Content-Encoding", 415, "{}", [], { "Content-Encoding": canary("Content-Encoding") }),
    post("Accept", 406, "{}", [], { Accept: `${canary("Accept")}/${canary("Accept")}` }),
    operate(
      "operations",
      200,
      JSON.stringify({
        "atomic:operations": [
          add(newId(), bulk.url),
          add(newId(), bulk.url),
          add(canary("id"), `https://feeds.example/${canary("feed")}`),
          add(newId(), `ftp://${canary("feed")}`),
          { op: canary("op") },
          canary("operation"),
          { ...add(newId(), "https://feeds.example/1"), ref: { type: canary("type"), id: canary("id") } },
          { ...add(newId(), "https://feeds.example/1"), href: canary("href") },
        ],
        meta: { [canary("key")]: canary("value") },
      }),
      [...bulk.parts],
    ),
    operate("no operations", 400, JSON.stringify({ "atomic:operations": { [canary("key")]: canary("value") } })),
    operate("no JSON", 400, `{"atomic:operations": [${canary("body")}]}`),
  ];
}

function asksWithHeaders({ name, cookie }: Person): Ask[] {
  const get = (what: string, status: number, headers: Headers, echoes: string[] = []) =>
    ask(what, status, ["GET", "/v1/me"], { headers: { Cookie: cookie, ...headers }, echoes });
  const post = (what: string, status: number, headers: Headers) =>
    ask(what, status, ["POST", "/v1/tokens"], { headers: { ...plain, Cookie: cookie, ...headers }, body: "{}" });
  return [
    get("Host", 200, { Host: `${canary("Host")}.example` }, [name]),
    get("bad Host", 400, { Host: `${canary("user")}@${canary("Host")} ` }),
    get("Origin", 200, { Origin: `https://${canary("Origin")}.example` }, [name]),
    get("Expect", 417, { Expect: canary("Expect") }),
    get("Upgrade", 200, { Upgrade: canary("Upgrade") }, [name]),
    get("client", 200, { "X-Forwarded-Host": canary("X-Forwarded-Host"), Via: canary("Via") }, [name]),
    get("tag", 200, { "If-None-Match": `"${canary("If-None-Match")}"`, Range: `bytes=${canary("Range")}` }, [name]),
    get("many", 431, Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`x-${at}`, canary("one of many")]))),
    post("other Origin", 403, { Origin: `https://${canary("Origin")}.example` }),
    post("no Origin", 403, { Origin: canary("Origin") }),
    post("Sec-Fetch-Site", 403, { "Sec-Fetch-Site": canary("Sec-Fetch-Site") }),
    ask("preflight", 204, ["OPTIONS", `/v1/tokens?${canary("parameter")}`], {
      headers: {
        Origin: "https://app.example",
        "Access-Control-Request-Method": canary("Access-Control-Request-Method"),
        "Access-Control-Request-Headers": canary("Access-Control-Request-Headers"),
      },
    }),
  ];
}

/** What the parser of HTTP gives up on. */
function asksOfTheParser({ cookie }: Person): Ask[] {
  const raw = (what: string, status: number | undefined, text: string | Uint8Array): Ask => ({
    what,
    status,
    bytes: text,
    echoes: [],
  });
  const head = (line: string, more = "") => `${line}\r\nHost: localhost\r\nCookie: ${cookie}\r\n${more}`;
  const post = (more: string) => head("POST /v1/operations HTTP/1.1", `Content-Type: ${ATOMIC}\r\n${more}`);
  const chunked = "Transfer-Encoding: chunked\r\n\r\n";
  return [
    raw("no request", 400, `${canary("line")} ${canary("line")}\r\n\r\n`),
    raw("unknown method", 405, head(`${canary("method").toUpperCase()} /v1/me HTTP/1.1`, "\r\n")),
    raw("unknown method and path", 404, head(`${canary("method").toUpperCase()} /${canary("path")} HTTP/1.1`, "\r\n")),
    raw("version", 400, head(`GET /${canary("path")} HTTP/${canary("version")}`, "\r\n")),
    raw("no colon", 400, head("GET / HTTP/1.1", `${canary("header")} ${canary("header")}\r\n\r\n`)),
    raw("NUL", 400, head("GET / HTTP/1.1", `X-Secret: ${canary("header")}\0${canary("header")}\r\n\r\n`)),
    raw("folded", 400, head("GET / HTTP/1.1", `X-Secret: a\r\n ${canary("header")}\0\r\n\r\n`)),
    raw("target", 400, head(`GET ${canary("target")} HTTP/1.1`, "\r\n")),
    raw("bytes", 400, Buffer.from(head(`GET /\xff${canary("path")} HTTP/1.1`, "\r\n"), "latin1")),
    raw("Content-Length", 400, post(`Content-Length: ${canary("Content-Length")}\r\n\r\n`)),
    raw("two lengths", 400, post(`Content-Length: 1\r\nContent-Length: 2\r\n\r\n${canary("body")}`)),
    raw("coding", 400, post(`Transfer-Encoding: ${canary("Transfer-Encoding")}\r\n\r\n${canary("body")}`)),
    raw("chunk", 400, post(`${chunked}${canary("size of a chunk")}\r\n${canary("chunk")}\r\n`)),
    raw("extension", 413, post(`${chunked}5;${canary("chunk extension").repeat(1_200)}\r\nhello\r\n0\r\n\r\n`)),
    raw("trailer", 400, post(`${chunked}1\r\n{\r\n0\r\n${canary("trailer")} ${canary("trailer")}\r\n\r\n`)),
    raw("long header", 431, head("GET / HTTP/1.1", `X-Secret: ${canary("long header").repeat(1_200)}\r\n\r\n`)),
    raw("long name", 431, head("GET / HTTP/1.1", `${canary("long name").repeat(1_200)}: x\r\n\r\n`)),
    raw("long target", 431, head(`GET /${canary("long path").repeat(1_200)} HTTP/1.1`, "\r\n")),
    raw("slow", 408, head(`GET /${canary("slow path")} HTTP/1.1`, `X-Secret: ${canary("slow header")}`)),
    raw("HTTP/2", undefined, `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${canary("frame")}`),
    raw("TLS", 400, Buffer.concat([Buffer.from([22, 3, 1, 2, 0, 1, 0]), Buffer.from(canary("name in TLS"))])),
    raw("not UTF-8", 400, latin1Body(canary("body that is not UTF-8"), cookie)),
  ];
}

function latin1Body(text: string, cookie: string): Buffer {
  const body = `{"data":"\xff${text}"}`;
  const headers = { ...plain, Cookie: cookie, "Content-Length": String(body.length) };
  return Buffer.from(`${writeRequest("POST", "/v1/subscriptions", headers, undefined)}${body}`, "latin1");
}

/** Begins a request and goes away. */
async function abandon(port: number, cookie: string): Promise<void> {
  for (const more of [
    `Content-Length: 1000\r\n\r\n{"${canary("half a body")}":`,
    `X-Half: ${canary("half a header")}`,
  ]) {
    const socket = connect(port, "127.0.0.1");
    socket.write(
      `POST /v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${PLAIN}\r\nCookie: ${cookie}\r\n${more}`,
    );
    await once(socket, "connect");
    setTimeout(() => socket.resetAndDestroy(), 50);
    await once(socket, "close");
  }
}

/** Sends it, and looks for what the answer should not say. */
async function carryOut(port: number, asked: Ask, isHealthy: boolean): Promise<number> {
  const { what, bytes, status, echoes, remembers = NOTHING } = asked;
  const answer = await exchange(port, bytes);
  const found = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? 0);
  if (isHealthy && status !== undefined) assert.equal(found, status, `${what}:\n${bytes}\n\n${answer}`);
  const about = `the answer to "${what}" holds`;
  for (const text of answer.match(CANARY) ?? []) {
    const sentAs = canaries.get(text.toLowerCase()) ?? "";
    assert.ok(echoes.includes(text) || remembers.test(sentAs), `${about} ${sentAs}: ${answer}`);
  }
  assertWithout(answer.replaceAll(CANARY, "…"), `the answer to "${what}"`);
  // Otherwise the exception would not be one.
  if (isHealthy)
    for (const text of echoes) assert.ok(answer.includes(text), `${what}, ${canaries.get(text)}: ${answer}`);
  return found;
}

/** Asks one after another; gives how often each status was answered. */
async function askInOrder(port: number, asks: readonly Ask[], statuses: Map<number, number>, isHealthy: boolean) {
  for (const one of asks) {
    const status = await carryOut(port, one, isHealthy);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
}

/** Asks all at once, of a server that cannot do it: answers may differ, but not in what they keep to themselves. */
async function askInTrouble(port: number, person: Person, jwts: readonly string[]): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  const asks = [asksOfAccounts, asksWithTargets, asksWithBodies, asksWithHeaders].flatMap((write) => write(person));
  const all = [...asks, ...asksWithCredentials(person, jwts)];
  await Promise.all(all.map((one) => askInOrder(port, [one], statuses, false)));
  return statuses;
}

// --- Who is asked.

const METRICS_TOKEN = keep(`metrics.${randomBytes(16).toString("hex")}`, "the token of metrics");

async function startVerbose(settings: Headers): Promise<RunningServer> {
  return start({
    EARMARK_ACCOUNTS: "on",
    EARMARK_SIGN_UP: "open",
    EARMARK_FIRST_USER: canary("EARMARK_FIRST_USER"),
    EARMARK_FIRST_PASSWORD: canary("EARMARK_FIRST_PASSWORD"),
    EARMARK_LOG_LEVEL: "debug",
    // Some requests are slow, and have another line.
    EARMARK_SLOW_REQUEST_MS: "20",
    EARMARK_METRICS: "1",
    EARMARK_METRICS_TOKEN: METRICS_TOKEN,
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
    EARMARK_CORS_ORIGINS: "https://app.example",
    EARMARK_HEADERS_TIMEOUT_MS: "2000",
    ...settings,
  });
}

/** Someone who has an account, a session and a token, whose secrets are canaries as well. */
async function makePerson(port: number): Promise<Person> {
  const [name, agent, label] = [canary("name"), canary("User-Agent"), canary("label of a token")];
  const person = await signUp(port, name, canary("password"), baseHeaders(agent));
  keep(person.session, "the secret of a session");
  const { token } = await newToken(port, person, { label, scope: "write" });
  return { ...person, agent, label, token: keep(token, "a token") };
}

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly err?: { readonly type: string; readonly message: string };
}

/** Stops the server, and gives every line of its log: each an object, and without a secret. */
async function readLog(server: RunningServer): Promise<Line[]> {
  server.child.kill("SIGTERM");
  assert.equal(await server.ended, 0, server.output());
  const output = server.output();
  assertWithout(output, "the log");
  const lines = output.trim().split("\n");
  const parsed = lines.map((line) => JSON.parse(line) as Line);
  const members =
    /^(level|time|pid|hostname|msg|reqId|method|route|status|ms|omitted|err|url|database|version|signal)$/;
  for (const line of parsed) for (const key of Object.keys(line)) assert.match(key, members);
  return parsed;
}

async function assertMetricsWithout(port: number): Promise<void> {
  const { status, text } = await callServer(port, "GET", "/metrics", { headers: bearer(METRICS_TOKEN) });
  assert.equal(status, 200);
  assert.match(text, /route="\/v1\/tokens\/:id"/);
  assertWithout(text, "the metrics");
}

/** An identity provider, and JWTs that it has signed or that claim so. */
async function startProvider() {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const keys = { keys: [{ ...(await exportJWK(publicKey)), kid: "1", alg: "ES256" }] };
  const http = createServer((request, response) => {
    const isDiscovery = request.url?.startsWith("/.well-known/") === true;
    response.end(JSON.stringify(isDiscovery ? { issuer, jwks_uri: `${issuer}/keys` } : keys));
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  after(() => http.close());
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const sign = async (claims: Record<string, unknown>, header: Record<string, string> = {}) => {
    const all = { iss: issuer, aud: "earmark", sub: canary("sub"), [canary("claim")]: canary("value"), ...claims };
    const jwt = new SignJWT(all).setProtectedHeader({ alg: "ES256", kid: "1", ...header }).setIssuedAt();
    return jwt.setExpirationTime("1h").sign(privateKey);
  };
  const write = (header: object, claims: object) =>
    [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  /** None of these is accepted. */
  const wrong = async () => [
    await sign({ aud: canary("aud") }),
    await sign({ iss: canary("iss") }),
    await sign({ sub: [canary("sub")] }),
    await sign({ sub: canary("long sub").repeat(20) }),
    await sign({}, { typ: canary("typ") }),
    await sign({}, { kid: canary("kid") }),
    await sign({ aud: canary("aud") }, { cty: canary("cty"), jku: `http://${canary("jku")}.example` }),
    `${write({ alg: "none" }, { sub: canary("sub") })}.${canary("signature")}`,
    `${write({ alg: canary("alg"), kid: "1" }, { sub: canary("sub") })}.${canary("signature")}`,
    `${write({ alg: "ES256", kid: "1" }, { iss: issuer, sub: canary("sub") })}.${canary("signature")}`,
    `${canary("header")}.${canary("claims")}.${canary("signature")}`,
  ];
  return { issuer, sign, wrong };
}

test("what is secret is in no line of the log, in no metric, and in no answer but to its owner", async () => {
  const folder = temporaryFolder();
  const provider = await startProvider();
  const server = await startVerbose({
    DATABASE_URL: `file:${folder}/earmark.db`,
    EARMARK_OIDC_ISSUER: provider.issuer,
    EARMARK_OIDC_AUDIENCE: "earmark",
    EARMARK_OIDC_SIGN_UP: "open",
  });
  const { port } = server;
  const person = await makePerson(port);

  const statuses = new Map<number, number>();
  await Promise.all([
    askInOrder(port, asksOfAccounts(person), statuses, true),
    askInOrder(port, asksWithCredentials(person, await provider.wrong()), statuses, true),
    askInOrder(port, asksWithTargets(person), statuses, true),
    askInOrder(port, asksWithBodies(person), statuses, true),
    askInOrder(port, asksWithHeaders(person), statuses, true),
    // Some of these take a second, since nobody knows whether more is to come.
    ...asksOfTheParser(person).map((one) => askInOrder(port, [one], statuses, true)),
  ]);
  await abandon(port, person.cookie);
  for (const status of [200, 201, 204, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 417, 422, 431])
    assert.ok(statuses.has(status), `no answer was ${status}`);

  // What the owner is told, and when.
  const { name, agent, label, cookie } = person;
  const seen = (what: string, target: string[], echoes: string[], headers: Headers = { Cookie: cookie }) =>
    carryOut(port, ask(what, 200, target, { headers, echoes }), true);
  const other = [...canaries].findLast(([, what]) => what === "label")?.[0] ?? "";
  await seen("me", ["GET", "/v1/me"], [name]);
  await seen("sessions", ["GET", "/v1/sessions"], [agent]);
  await seen("tokens", ["GET", "/v1/tokens"], [label, other]);
  const sub = canary("sub of one who is let in");
  await seen("vouched for", ["GET", "/v1/me"], [sub], bearer(await provider.sign({ sub })));

  // A secret is told once, to the one who asked for it; and nothing that came with it.
  const agentOfSession = canary("User-Agent");
  const session = await exchange(
    port,
    writeRequest("POST", "/v1/sessions", { ...baseHeaders(agentOfSession), ...plain }, document("session", person)),
  );
  assert.match(session, /^HTTP\/1\.1 201 /);
  const secret = /\r\nset-cookie: earmark=([\w-]{43}); Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax\r\n/i.exec(
    session,
  )?.[1];
  assert.ok(secret !== undefined && session.indexOf(secret) === session.lastIndexOf(secret), session);
  assert.ok(session.includes(agentOfSession));
  keep(secret, "the secret of a session");
  await seen("sessions", ["GET", "/v1/sessions"], [agent, agentOfSession]);

  // A new password, which then works.
  const changed = canary("new password");
  const change = document("account", { current_password: person.password, password: changed });
  const headers = { ...plain, Cookie: cookie };
  await carryOut(port, ask("new password", 204, ["PATCH", "/v1/me"], { headers, body: change }), true);
  await carryOut(
    port,
    ask("old password", 401, ["POST", "/v1/sessions"], { headers: plain, body: document("session", person) }),
    true,
  );
  await signIn(port, { name, password: changed }, fromElsewhere());
  await carryOut(port, ask("delete", 204, ["DELETE", "/v1/me"], { headers: { Cookie: cookie } }), true);

  await assertMetricsWithout(port);
  const lines = await readLog(server);
  const count = (msg: string) => lines.filter((line) => line.msg === msg).length;
  const counts = [count("request"), count("slow request")] as const;
  assert.ok(Math.min(...counts) > 0 && counts[0] + counts[1] > 150, counts.join(" and "));
  assert.deepEqual(
    lines.filter(({ level }) => level >= 50),
    [],
  );
});

test("what is secret is in no line of the log when the file fails, and in no answer", async () => {
  const folder = temporaryFolder();
  const provider = await startProvider();
  const server = await startVerbose({
    DATABASE_URL: `file:${folder}/earmark.db`,
    EARMARK_OIDC_ISSUER: provider.issuer,
    EARMARK_OIDC_AUDIENCE: "earmark",
  });
  const { port } = server;
  const person = await makePerson(port);
  const file = new DatabaseSync(`${folder}/earmark.db`, { timeout: 5_000 });
  after(() => file.isOpen && file.close());

  const inTrouble = async (wanted: number, what: string) => {
    const statuses = await askInTrouble(port, person, await provider.wrong());
    assert.ok((statuses.get(wanted) ?? 0) > 0, `${what}: ${JSON.stringify([...statuses])}`);
  };
  for (const table of ["credentials", "accounts", "subscriptions"]) {
    file.exec(`alter table ${table} rename to away`);
    await inTrouble(503, `without ${table}`);
    file.exec(`alter table away rename to ${table}`);
  }
  const tables = ["credentials", "accounts", "subscriptions"];
  for (const table of tables)
    file.exec(`create trigger no_${table} before insert on ${table} begin select raise(abort, 'refused'); end`);
  await inTrouble(503, "nothing can be added");
  for (const table of tables) file.exec(`drop trigger no_${table}`);
  file.prepare("update accounts set password = ?").run(canary("a damaged hash"));
  await inTrouble(500, "no password can be checked");
  file.close();

  await assertMetricsWithout(port);
  const lines = await readLog(server);
  const failures = lines.filter(({ level }) => level >= 50);
  assert.ok(
    failures.some(({ msg, err }) => msg === "database unavailable" && /no such table/.test(err?.message ?? "")),
  );
  assert.ok(failures.some(({ msg, err }) => msg === "database unavailable" && /refused/.test(err?.message ?? "")));
  assert.ok(failures.some(({ msg }) => msg === "unexpected error"));
});

test("what is secret is in no line of the log when PostgreSQL fails, and in no answer", async () => {
  // An operator may have it tell the values of a statement that failed: it tells them to the client too.
  const postgres = await startPostgres(["log_parameter_max_length_on_error=-1"]);
  const url = await postgres.database();
  const database = new URL(url).pathname.slice(1);
  const server = await startVerbose({
    DATABASE_URL: `${url}?options=-c%20earmark.${canary("parameter of the URL")}%3D1`,
    // Nobody is there.
    EARMARK_OIDC_ISSUER: "http://127.0.0.1:9",
    EARMARK_OIDC_AUDIENCE: "earmark",
  });
  const { port } = server;
  const person = await makePerson(port);
  const { wrong } = await startProvider();

  const inTrouble = async (what: string, jwts: readonly string[] = []) => {
    const statuses = await askInTrouble(port, person, jwts);
    assert.ok((statuses.get(503) ?? 0) > 0, `${what}: ${JSON.stringify([...statuses])}`);
  };
  const tables = ["credentials", "accounts", "subscriptions"];
  // The row that breaks such a rule is told with the error.
  for (const table of tables)
    await postgres.query(`alter table earmark.${table} add constraint no check (false) not valid`, database);
  await inTrouble("nothing can be added", await wrong());
  for (const table of tables) await postgres.query(`alter table earmark.${table} drop constraint no`, database);
  await postgres.query("alter table earmark.credentials rename to away", database);
  await inTrouble("without credentials");
  await postgres.query("alter table earmark.away rename to credentials", database);
  await postgres.stop("immediate");
  await inTrouble("without PostgreSQL");

  await assertMetricsWithout(port);
  const lines = await readLog(server);
  const failures = lines.filter(({ msg }) => msg === "database unavailable");
  for (const cause of [/violates check constraint/, /does not exist/, /ECONNREFUSED|terminat|timeout/i])
    assert.ok(
      failures.some(({ err }) => cause.test(err?.message ?? "")),
      String(cause),
    );
  assert.ok(lines.some(({ msg }) => msg === "the identity provider cannot be reached"));
});

// --- What is kept.

/** All that there is on the disk. */
function readFolder(folder: string): Map<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

/** Every text and every bytes of these tables, each as someone who has stolen the file might write it. */
function valuesOf(path: string, tables: readonly string[]): string[][] {
  const file = new DatabaseSync(path, { readOnly: true });
  const values = new Map<string, string[]>();
  for (const table of tables) {
    for (const value of file
      .prepare(`select * from ${table}`)
      .all()
      .flatMap((row) => Object.values(row))) {
      if (typeof value === "string") {
        for (const part of [value, ...value.split("$")]) values.set(part, [part]);
      } else if (value instanceof Uint8Array) {
        const bytes = Buffer.from(value);
        const hex = bytes.toString("hex");
        const asId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
        values.set(hex, [hex, asId, bytes.toString("base64url"), bytes.toString("latin1")]);
      }
    }
  }
  file.close();
  values.delete("");
  return [...values.values()];
}

test("whoever has the file has no password, token, session or invitation, and nothing that opens anything", async (t) => {
  const folder = temporaryFolder();
  const settings = {
    DATABASE_URL: `file:${folder}/earmark.db`,
    EARMARK_ACCOUNTS: "on",
    EARMARK_TRUSTED_PROXIES: "127.0.0.1",
  };
  const server = await start(settings);
  const { port } = server;
  const secrets = new Map<string, string>();
  const secret = (text: string, what: string) => {
    assert.ok(text.length >= 16, what);
    secrets.set(text, what);
    return text;
  };
  const invite = async () => /#(emi_[\w-]{43})\n/.exec((await run(["user", "invite"], settings)).stdout)?.[1] ?? "";
  const join = async (invitation: string) => {
    const [name, password] = [`user-${randomBytes(4).toString("hex")}`, randomBytes(12).toString("hex")];
    secret(password, "a password");
    const headers = { ...plain, ...fromElsewhere() };
    const body = document("account", { name, password, invitation });
    const answer = await callServer(port, "POST", "/v1/accounts", { headers, body });
    assert.equal(answer.status, 201, answer.text);
    const session = /earmark=([\w-]{43})/.exec(String(answer.headers["set-cookie"]))?.[1] ?? "";
    return { name, password, cookie: `earmark=${secret(session, "a session")}` };
  };

  // The link for the first account comes a moment after the server listens.
  while (!/#emi_/.test(server.output())) await once(server.child.stderr ?? server.child, "data");
  const setUp = secret(/#(emi_[\w-]{43})\s/.exec(server.output())?.[1] ?? "", "the first invitation");
  const first = await join(setUp);
  const second = await join(secret(await invite(), "an invitation that was used"));
  secret(await invite(), "an invitation");
  for (const who of [first, second]) {
    for (const scope of ["read", "write"] as const) {
      const { token } = await newToken(port, who, { label: `for ${who.name}`, scope });
      assert.equal((await callServer(port, "GET", "/v1/me", { headers: bearer(token) })).status, 200);
      secret(token, "a token");
    }
    const revoked = await newToken(port, who, { label: "revoked", scope: "write" });
    secret(revoked.token, "a token that was revoked");
    const ended = await signIn(port, who, fromElsewhere());
    secret(ended.session, "a session that has ended");
    for (const path of [`/v1/tokens/${revoked.id}`, `/v1/sessions/${ended.id}`])
      assert.equal((await callServer(port, "DELETE", path, { headers: { Cookie: who.cookie } })).status, 204);
  }
  const changed = secret(randomBytes(12).toString("hex"), "a new password");
  const change = document("account", { current_password: second.password, password: changed });
  const headers = { ...plain, Cookie: second.cookie };
  assert.equal((await callServer(port, "PATCH", "/v1/me", { headers, body: change })).status, 204);
  // What is rightly there is found, so that it would be.
  const marked = await newToken(port, second, { label: "a label that can be read", scope: "read" });
  secret(marked.token, "a token");

  const assertKept = (when: string) => {
    const files = readFolder(folder);
    assert.ok(files.has("earmark.db"));
    for (const [name, bytes] of files) assertWithout(bytes, `${name} ${when}`, secrets);
    const all = Buffer.concat([...files.values()]);
    for (const text of ["a label that can be read", first.name, "$argon2id$"]) assert.ok(all.includes(text), text);
    for (const name of files.keys()) assert.equal(statSync(`${folder}/${name}`).mode & 0o777, 0o600, `${name} ${when}`);
    return [...files.keys()];
  };
  assert.ok(assertKept("while the server runs").includes("earmark.db-wal"));

  const values = valuesOf(`${folder}/earmark.db`, ["credentials", "accounts", "identities"]);
  assert.ok(values.length > 30, `${values.length} values`);
  const inHeader = values.flat().filter((value) => /^[!-~]+( [!-~]+)*$/.test(value));
  let tried = 0;
  const refuse = async (wanted: number, method: string, path: string, more: Headers, body?: string) => {
    const answer = await callServer(port, method, path, {
      headers: { ...(body === undefined ? {} : plain), ...fromElsewhere(), ...more },
      ...(body === undefined ? {} : { body }),
    });
    assert.equal(answer.status, wanted, `${method} ${path} ${JSON.stringify(more)} ${body}: ${answer.text}`);
    tried += 1;
  };
  for (const value of inHeader) {
    for (const prefix of ["", "emk_", "emi_"]) await refuse(401, "GET", "/v1/me", bearer(prefix + value));
    await refuse(401, "GET", "/v1/me", { Authorization: `Basic ${btoa(`${first.name}:${value}`)}` });
    for (const path of ["/v1/me", "/v1/sessions"]) await refuse(401, "GET", path, { Cookie: `earmark=${value}` });
  }
  for (const value of values.flat()) {
    for (const invitation of [value, `emi_${value}`, `emk_${value}`]) {
      const body = document("account", { name: "mallory", password: "the password of mallory", invitation });
      await refuse(403, "POST", "/v1/accounts", {}, body);
    }
  }
  const guesses = values.map(([password]) => document("session", { name: first.name, password }));
  // A hash takes its time, and few may wait for one.
  for (let at = 0; at < guesses.length; at += 8)
    await Promise.all(guesses.slice(at, at + 8).map((body) => refuse(401, "POST", "/v1/sessions", {}, body)));
  t.diagnostic(`${values.length} values, ${tried} attempts`);

  server.child.kill("SIGTERM");
  assert.equal(await server.ended, 0);
  assertKept("after the server");
});
