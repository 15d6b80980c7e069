import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { document, exchange, fromElsewhere, writeRequest } from "../../test/support/accounts.ts";
import { ATOMIC, add, newId, PLAIN } from "../../test/support/server.ts";
import { assertWithout, CANARY, canaries, canary, type Headers } from "./secret-search.ts";

export interface Ask {
  readonly what: string;
  readonly bytes: string | Uint8Array;
  /** How it is answered while everything works; undefined where nothing need be. */
  readonly status: number | undefined;
  /** The parts of this that the response may repeat to the client, and nothing else. */
  readonly echoes: readonly string[];
  /** What it may say of earlier requests, which were the same person's. */
  readonly remembers?: RegExp;
}

export interface Person {
  readonly name: string;
  readonly password: string;
  readonly cookie: string;
  readonly token: string;
  readonly agent: string;
  readonly label: string;
}

/** What is sent with every request, and is nobody's business. */
export function baseHeaders(agent = canary("User-Agent")): Headers {
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

export function ask(
  what: string,
  status: number | undefined,
  [method = "", target = ""]: readonly string[],
  options: Partial<Pick<Ask, "echoes" | "remembers">> & { readonly headers?: Headers; readonly body?: string } = {},
): Ask {
  const { headers = {}, body, echoes = [], remembers = NOTHING } = options;
  const bytes = writeRequest(method, target, { ...baseHeaders(), ...headers }, body);
  return { what, status, bytes, echoes, remembers };
}

export const NOTHING = /^\b$/;

export const plain = { "Content-Type": PLAIN };
export const bearer = (token: string): Headers => ({ Authorization: `Bearer ${token}` });
export const subscription = (id: unknown, feedUrl: unknown, more: object = {}) =>
  JSON.stringify({ data: { type: "subscription", id, attributes: { feed_url: feedUrl }, ...more } });

/** As long as a token is. */
export const likeToken = (text: string) => `emk_${text.padEnd(43, "A")}`;

export function asksOfAccounts({ name, password, cookie }: Person): Ask[] {
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

export function asksWithCredentials({ name, cookie, token }: Person, jwts: readonly string[]): Ask[] {
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

export function asksWithTargets({ name, cookie, token, agent, label }: Person): Ask[] {
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

export function asksWithBodies({ token }: Person): Ask[] {
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

export function asksWithHeaders({ name, cookie }: Person): Ask[] {
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
export function asksOfTheParser({ cookie }: Person): Ask[] {
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

export function latin1Body(text: string, cookie: string): Buffer {
  const body = `{"data":"\xff${text}"}`;
  const headers = { ...plain, Cookie: cookie, "Content-Length": String(body.length) };
  return Buffer.from(`${writeRequest("POST", "/v1/subscriptions", headers, undefined)}${body}`, "latin1");
}

/** Begins a request and goes away. */
export async function abandon(port: number, cookie: string): Promise<void> {
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

/** Sends it, and checks that the response repeats nothing else. */
export async function carryOut(port: number, asked: Ask, isHealthy: boolean): Promise<number> {
  const { what, bytes, status, echoes, remembers = NOTHING } = asked;
  const response = await exchange(port, bytes);
  const found = Number(/^HTTP\/1\.1 (\d{3}) /.exec(response)?.[1] ?? 0);
  if (isHealthy && status !== undefined) assert.equal(found, status, `${what}:\n${bytes}\n\n${response}`);
  const about = `the response to "${what}" contains`;
  for (const text of response.match(CANARY) ?? []) {
    const sentAs = canaries.get(text.toLowerCase()) ?? "";
    assert.ok(echoes.includes(text) || remembers.test(sentAs), `${about} ${sentAs}: ${response}`);
  }
  assertWithout(response.replaceAll(CANARY, "…"), `the response to "${what}"`);
  // Otherwise the exception would not be one.
  if (isHealthy)
    for (const text of echoes) assert.ok(response.includes(text), `${what}, ${canaries.get(text)}: ${response}`);
  return found;
}

/** Asks one after another; gives how often each status was answered. */
export async function askInOrder(
  port: number,
  asks: readonly Ask[],
  statuses: Map<number, number>,
  isHealthy: boolean,
) {
  for (const one of asks) {
    const status = await carryOut(port, one, isHealthy);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
}

/** Asks all at once, of a server that cannot do it: answers may differ, but not in what they keep to themselves. */
export async function askInTrouble(
  port: number,
  person: Person,
  jwts: readonly string[],
): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  const asks = [asksOfAccounts, asksWithTargets, asksWithBodies, asksWithHeaders].flatMap((write) => write(person));
  const all = [...asks, ...asksWithCredentials(person, jwts)];
  await Promise.all(all.map((one) => askInOrder(port, [one], statuses, false)));
  return statuses;
}
