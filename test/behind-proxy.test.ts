import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { suite, test } from "node:test";
import { StoreUnavailable } from "../src/subscriptions.ts";
import { type Answer, ATOMIC, add, newId, PLAIN, startServer, type TestServer } from "./harness.ts";

/** What lies between the server and its clients: reverse proxies, a path that is not its own, and browsers. */
const ACCOUNTS = { EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" };
const TRUSTING = { ...ACCOUNTS, EARMARK_TRUSTED_PROXIES: "127.0.0.1" };
const PASSWORD = "correct horse battery staple";
const BASE = "/pod/casts";

type Headers = Readonly<Record<string, string | string[]>>;

const json = (type: string, attributes: object) => JSON.stringify({ data: { type, attributes } });
const signingIn = (name: string, password: string, headers: Headers = {}) => ({
  headers: { "Content-Type": PLAIN, ...headers },
  body: json("session", { name, password }),
});
const signIn = ({ call }: TestServer, name: string, password: string, headers?: Headers) =>
  call("POST", "/v1/sessions", signingIn(name, password, headers));
const subscription = (id = newId()) =>
  JSON.stringify({
    data: { type: "subscription", id, attributes: { feed_url: `https://feeds.example/${id}` } },
  });

/** The whole Set-Cookie header of an answer. */
function setCookie({ headers }: Answer): string {
  const [cookie = "", ...more] = headers["set-cookie"] ?? [];
  assert.equal(more.length, 0, "more than one cookie");
  return cookie;
}

/** What a browser sends back for it. */
const cookieOf = (answer: Answer) => setCookie(answer).replace(/;.*/, "");

/** Makes an account and returns the cookie of its session. */
async function signUp({ call }: TestServer, name: string, headers: Headers = {}): Promise<string> {
  const answer = await call("POST", "/v1/accounts", {
    headers: { "Content-Type": PLAIN, ...headers },
    body: json("account", { name, password: PASSWORD }),
  });
  assert.equal(answer.status, 201, answer.text);
  return cookieOf(answer);
}

async function createToken({ call }: TestServer, cookie: string): Promise<string> {
  const answer = await call("POST", "/v1/tokens", {
    headers: { "Content-Type": PLAIN, Cookie: cookie },
    body: json("token", { label: "app", scope: "write" }),
  });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.data.attributes.token;
}

/** From now on the store says that it cannot be reached, as no real one does on demand. */
function loseStore({ store }: TestServer): void {
  Object.assign(store, { ready: () => Promise.reject(new StoreUnavailable("lost on purpose")) });
}

/** Sends bytes as they are; resolves to everything that comes back until the server closes. */
async function sendRaw(port: number, bytes: string): Promise<{ status: number; head: string; body: string }> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.write(bytes);
  await once(socket, "close");
  const [head = "", ...body] = text.split("\r\n\r\n");
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]), head, body: body.join("\r\n\r\n") };
}

suite("what is said of where a request came from", () => {
  /** All that a proxy might say, and none of it is true. */
  const SPOOFED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Port": "443",
    "X-Forwarded-Prefix": "/evil",
    "X-Real-IP": "203.0.113.9",
    Forwarded: "for=203.0.113.9;proto=https;host=evil.example",
  };

  /** As often as a network may try a name. */
  async function guessTenTimes(guess: (number: number) => Promise<Answer>): Promise<void> {
    const answers = await Promise.all(Array.from({ length: 10 }, (_, index) => guess(index + 1)));
    for (const { status } of answers) assert.equal(status, 401);
  }

  for (const [whose, proxies] of [
    ["nobody is trusted", ""],
    ["others are trusted", "192.0.2.1, 127.0.0.2, 10.0.0.0/8, ::1"],
  ] as const) {
    test(`a client is answered the same whatever it says of itself, when ${whose}`, async () => {
      const server = await startServer({ ...ACCOUNTS, EARMARK_TRUSTED_PROXIES: proxies });
      const cookie = await signUp(server, "ann");
      const secure = cookie.replace("earmark=", "__Host-earmark=");
      const requests: readonly (readonly [number, string, string, Headers, string?])[] = [
        [200, "GET", "/healthz", {}],
        [401, "GET", "/v1/subscriptions", {}],
        [404, "GET", "/evil/v1/subscriptions", {}],
        [200, "GET", "/v1/subscriptions", { Cookie: cookie }],
        [401, "GET", "/v1/subscriptions", { Cookie: secure }],
        [201, "POST", "/v1/sessions", { "Content-Type": PLAIN }, json("session", { name: "ann", password: PASSWORD })],
        [401, "POST", "/v1/sessions", { "Content-Type": PLAIN }, json("session", { name: "ann", password: "wrong" })],
        [403, "POST", "/v1/subscriptions", { Cookie: cookie, Origin: "https://evil.example" }, subscription()],
        [404, "DELETE", `/v1/subscriptions/${newId()}`, { Cookie: cookie }],
      ];
      const whatMatters = ({ status, headers, text }: Answer) => {
        const { date: _, "content-length": __, ...rest } = headers;
        const plain = JSON.stringify({ status, rest, text });
        return plain.replaceAll(
          /[\w-]{43}(?=; Path)|\/?[0-9a-f]{8}(-[0-9a-f]{4,12}){4}|\d{4}-\d\d-\d\dT[\d:.]+Z/g,
          "*",
        );
      };
      for (const [status, method, path, headers, body] of requests) {
        const options = { headers, ...(body === undefined ? {} : { body }) };
        const plain = await server.call(method, path, options);
        assert.equal(plain.status, status, `${method} ${path}`);
        const spoofed = await server.call(method, path, { ...options, headers: { ...headers, ...SPOOFED } });
        assert.equal(whatMatters(spoofed), whatMatters(plain));
      }
      const again = await signIn(server, "ann", PASSWORD, SPOOFED);
      assert.match(setCookie(again), /^earmark=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
    });
  }

  test("guesses from a client that is not trusted are counted for its own address, whatever it says", async () => {
    const now = new Date();
    const server = await startServer({ ...ACCOUNTS, EARMARK_TRUSTED_PROXIES: "192.0.2.1" }, () => now);
    await guessTenTimes((guess) => signIn(server, "ann", "wrong", { "X-Forwarded-For": `203.0.113.${guess}` }));
    for (const headers of [{}, SPOOFED, { "X-Forwarded-For": "198.51.100.1, 192.0.2.1" }] as const)
      assert.equal((await signIn(server, "ann", "wrong", headers)).status, 429);
  });

  test("guesses through a trusted proxy are counted for the network that it names", async () => {
    const now = new Date();
    const server = await startServer(TRUSTING, () => now);
    await signUp(server, "ann", { "X-Forwarded-For": "198.51.100.200" });
    const from = (address: string | string[], name = "ann", password = "wrong") =>
      signIn(server, name, password, { "X-Forwarded-For": address });
    // What stands before the address that the proxy adds is the client's own invention.
    await guessTenTimes((guess) => from(`198.51.100.${guess}, 203.0.113.9`));
    const refused = await from("203.0.113.9");
    assert.deepEqual([refused.status, refused.headers["retry-after"]], [429, "60"]);
    assert.equal(refused.json.errors[0].title, "Too Many Requests");
    // In two headers it is one list still, and neither the right password nor the case of the name helps.
    assert.equal((await from(["198.51.100.1", "203.0.113.9"])).status, 429);
    assert.equal((await from("203.0.113.9", "ann", PASSWORD)).status, 429);
    assert.equal((await from("203.0.113.9", "ANN")).status, 429);
    assert.equal((await from("203.0.113.9", "bob")).status, 401);
    assert.equal((await from("203.0.113.8")).status, 401);
    assert.equal((await signIn(server, "ann", "wrong")).status, 401);
    assert.equal((await from("203.0.113.8", "ann", PASSWORD)).status, 201);
  });

  test("in IPv6 a network is one household, not one address", async () => {
    const now = new Date();
    const server = await startServer(TRUSTING, () => now);
    const from = (address: string) => signIn(server, "ann", "wrong", { "X-Forwarded-For": address });
    await guessTenTimes((guess) => from(`2001:db8:0:1:${guess}::${guess}`));
    assert.equal((await from("[2001:db8:0:1:ffff:ffff:ffff:ffff]:443")).status, 429);
    assert.equal((await from("2001:db8:0:2::1")).status, 401);
  });

  for (const [base, secureName] of [
    ["", "__Host-earmark"],
    ["/base", "__Secure-earmark"],
  ] as const) {
    test(`the cookie is ${secureName} over https and earmark without, at the base path "${base}"`, async () => {
      const server = await startServer({ ...TRUSTING, EARMARK_BASE_PATH: base });
      const https = { "X-Forwarded-Proto": "https" };
      const form = (name: string, end: string) =>
        new RegExp(`^${name}=[\\w-]{43}; Path=${base}/; Max-Age=7776000; HttpOnly; SameSite=Lax${end}$`);
      await signUp(server, "ann");
      const secure = await signIn(server, "ann", PASSWORD, https);
      assert.match(setCookie(secure), form(secureName, "; Secure"));
      const plain = await signIn(server, "ann", PASSWORD, { "X-Forwarded-Proto": "http" });
      assert.match(setCookie(plain), form("earmark", ""));
      assert.match(setCookie(await signIn(server, "ann", PASSWORD)), form("earmark", ""));

      const status = async (headers: Headers) => (await server.call("GET", "/v1/me", { headers })).status;
      const [theirs, ours] = [cookieOf(secure), cookieOf(plain)];
      assert.equal(await status({ Cookie: theirs, ...https }), 200);
      assert.equal(await status({ Cookie: ours }), 200);
      // What was sent in clear may have been seen, and what is for https must not be used without.
      assert.equal(await status({ Cookie: ours, ...https }), 401);
      assert.equal(await status({ Cookie: theirs }), 401);
      const renamed = (name: string) => theirs.replace(/^[^=]+/, name);
      const otherName = base === "" ? "__Secure-earmark" : "__Host-earmark";
      assert.equal(await status({ Cookie: renamed("earmark"), ...https }), 401);
      assert.equal(await status({ Cookie: renamed(otherName), ...https }), 401);
      assert.equal(await status({ Cookie: `${ours}; a=1; ${theirs}`, ...https }), 200);
      assert.equal(await status({ Cookie: [ours, theirs], ...https }), 200);
      // Another application on the host may set a cookie of the same name: the valid one counts, but not of two valid ones.
      assert.equal(await status({ Cookie: `${theirs}; ${theirs}`, ...https }), 200);
      assert.equal(await status({ Cookie: [`${renamed(secureName).slice(0, -1)}_`, theirs], ...https }), 200);
      const another = cookieOf(await signIn(server, "ann", PASSWORD, https));
      assert.equal(await status({ Cookie: `${theirs}; ${another}`, ...https }), 401);

      const { id } = secure.json.data;
      const ended = await server.call("DELETE", `/v1/sessions/${id}`, { headers: { Cookie: theirs, ...https } });
      assert.equal(ended.status, 204);
      assert.equal(setCookie(ended), `${secureName}=; Path=${base}/; Max-Age=0; HttpOnly; SameSite=Lax; Secure`);
      assert.equal(await status({ Cookie: theirs, ...https }), 401);
    });
  }
});

suite("a path of a proxy's", () => {
  const based = startServer({ ...ACCOUNTS, EARMARK_BASE_PATH: BASE });

  /** Every link of a document, wherever it stands. */
  function linksOf(value: unknown, isLinks = false): string[] {
    if (typeof value === "string") return isLinks ? [value] : [];
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([key, member]) => linksOf(member, isLinks || key === "links"));
  }

  /** Makes every kind of document that has links, over the path that is given, and returns them by what was asked. */
  async function visit(server: TestServer, base: string, name: string) {
    const seen = new Map<string, Answer>();
    const visited = async (method: string, path: string, headers: Headers, body?: string) => {
      const options = { headers, ...(body === undefined ? {} : { body }) };
      const answer = await server.call(method, `${base}${path}`, options);
      seen.set(`${method} ${path}`, answer);
      assert.ok(answer.status < 300, `${method} ${base}${path}: ${answer.status} ${answer.text}`);
      return answer;
    };
    const plain = { "Content-Type": PLAIN };
    const account = json("account", { name, password: PASSWORD });
    const cookie = { Cookie: cookieOf(await visited("POST", "/v1/accounts", plain, account)) };
    const writing = { ...cookie, ...plain };
    const session = await visited("POST", "/v1/sessions", plain, json("session", { name, password: PASSWORD }));
    const token = await visited("POST", "/v1/tokens", writing, json("token", { label: "app", scope: "read" }));
    await visited("POST", "/v1/subscriptions", writing, subscription());
    const operations = [1, 2].map(() => add(newId(), `https://feeds.example/${name}/${newId()}`));
    const body = JSON.stringify({ "atomic:operations": operations });
    await visited("POST", "/v1/operations", { ...cookie, "Content-Type": ATOMIC }, body);
    const page = "page[number]=2&page[size]=1";
    const list = await visited("GET", `/v1/subscriptions?${page}`, cookie);
    await visited("GET", `/v1/subscriptions?${page}&fields[subscription]=feed_url`, cookie);
    await visited("GET", `/v1/subscriptions/${list.json.data[0].id}`, cookie);
    for (const path of ["/v1/subscriptions", "/v1/me", "/v1/me/export"]) await visited("GET", path, cookie);
    for (const path of ["/v1/tokens", "/v1/sessions"]) {
      await visited("GET", path, cookie);
      await visited("GET", `${path}?page[size]=1`, cookie);
      await visited("GET", `${path}?${page}`, cookie);
    }
    await visited("GET", `/v1/tokens/${token.json.data.id}`, cookie);
    await visited("GET", `/v1/sessions/${session.json.data.id}`, cookie);
    return { seen, cookie };
  }

  for (const [base, name] of [
    [BASE, "prefixed"],
    ["", "stripped"],
  ] as const) {
    test(`every link begins with the base path and leads somewhere, when requests come ${name}`, async () => {
      const server = await based;
      const { seen, cookie } = await visit(server, base, name);
      let followed = 0;
      for (const [asked, answer] of seen) {
        const { location } = answer.headers;
        const created = location === undefined ? [] : [String(location)];
        if (answer.status === 201) assert.deepEqual(created, [answer.json.data.links.self], asked);
        const links = [...linksOf(answer.json), ...created];
        assert.ok(links.length > 0, `${asked} has no link`);
        for (const link of links) {
          assert.ok(link.startsWith(`${BASE}/v1/`), `${link} in the answer to ${asked}`);
          const there = await server.call("GET", link, { headers: cookie });
          assert.equal(there.status, 200, `${link} in the answer to ${asked}`);
          followed += 1;
        }
      }
      assert.ok(followed > 60, `only ${followed} links were followed`);
    });
  }

  test("the link to itself of a page is what was asked for, and all five stand where they should", async () => {
    const server = await based;
    const { seen, cookie } = await visit(server, BASE, "pages");
    for (const [asked, path, last] of [
      ["GET /v1/subscriptions?page[number]=2&page[size]=1", "/v1/subscriptions", 3],
      ["GET /v1/sessions?page[number]=2&page[size]=1", "/v1/sessions", 2],
    ] as const) {
      const answer = seen.get(asked);
      const link = (number: number) => `${BASE}${path}?page[number]=${number}&page[size]=1`;
      const [self, first, prev] = [link(2), link(1), link(1)];
      const next = last === 2 ? null : link(3);
      assert.deepEqual(answer?.json.links, { self, first, prev, next, last: link(last) });
      assert.equal((await server.call("GET", self, { headers: cookie })).text, answer?.text);
    }
  });

  test("a link can be used for more than reading", async () => {
    const server = await based;
    const { seen, cookie } = await visit(server, BASE, "writer");
    for (const asked of ["POST /v1/subscriptions", "POST /v1/tokens", "POST /v1/sessions"]) {
      const self: string = seen.get(asked)?.json.data.links.self;
      assert.equal((await server.call("DELETE", self, { headers: cookie })).status, 204, self);
      assert.equal((await server.call("GET", self, { headers: cookie })).status, 404, self);
    }
  });

  test("the href of an operation is the collection as its links name it", async () => {
    const server = await based;
    const Cookie = await signUp(server, "href");
    const operations = [`${BASE}/v1/subscriptions`, "/v1/subscriptions", `${BASE}/v1/subscriptions/`].map((href) => ({
      ...add(newId(), `https://feeds.example/${newId()}`),
      href,
    }));
    const body = JSON.stringify({ "atomic:operations": operations });
    for (const prefix of [BASE, ""]) {
      const headers = { Cookie, "Content-Type": ATOMIC };
      const answer = await server.call("POST", `${prefix}/v1/operations`, { headers, body });
      const [first, ...others] = answer.json["atomic:results"];
      // The second time the feed is in the list already.
      assert.equal(first.errors?.[0].title, prefix === BASE ? undefined : "Already Subscribed");
      for (const { errors } of others) {
        assert.equal(errors[0].title, "Invalid Operation");
        assert.ok(errors[0].detail.includes(`"${BASE}/v1/subscriptions"`), errors[0].detail);
      }
    }
  });

  test("a request means the same with the base path and without, for every path that there is", async () => {
    const server = await based;
    const Cookie = await signUp(server, "same");
    for (const url of new Set(server.server.routes.map(({ path }) => path))) {
      const path = url.replace(":id", newId());
      for (const method of ["GET", "PUT", "OPTIONS"]) {
        const options = { headers: { Cookie } };
        const [one, other] = [
          await server.call(method, `${BASE}${path}`, options),
          await server.call(method, path, options),
        ];
        assert.deepEqual([one.status, one.headers["allow"]], [other.status, other.headers["allow"]], path);
        if (url !== "/v1/me/export" && url !== "/v1/sessions") assert.equal(one.text, other.text);
        assert.ok(one.status !== 404 || url.includes(":"), path);
      }
    }
  });

  test("what only looks like the base path is not below it", async () => {
    const { call } = await based;
    for (const path of [
      `${BASE}x`,
      `${BASE}x/v1/subscriptions`,
      `${BASE}v1/subscriptions`,
      `${BASE}/x/v1/subscriptions`,
      `${BASE}${BASE}/v1/subscriptions`,
      `/x${BASE}/v1/subscriptions`,
      `/${BASE}/v1/subscriptions`,
      `${BASE}//v1/subscriptions`,
      "/pod/v1/subscriptions",
      "/POD/CASTS/v1/subscriptions",
      "/pod%2Fcasts/v1/subscriptions",
      "/pod/./casts/v1/subscriptions",
      `${BASE}/../v1/subscriptions`,
    ]) {
      const answer = await call("GET", path);
      assert.deepEqual([answer.status, answer.json.errors[0].title], [404, "Not Found"], path);
    }
  });

  test("the page is at the base path, and whoever leaves out its slash is sent there", async () => {
    const { call } = await based;
    for (const path of [`${BASE}/`, `${BASE}/?a=/v1/me`, "/", "/?a=1", `http://pods.example${BASE}/`])
      assert.match((await call("GET", path)).text, /^<!doctype html>/, path);
    for (const path of [BASE, `${BASE}?`, `${BASE}?page[size]=1`, `http://pods.example${BASE}?a=1`]) {
      const { status, headers } = await call("GET", path);
      assert.deepEqual([status, headers["location"]], [308, `${BASE}/`], path);
    }
  });

  test("a query comes through the base path, and a target in absolute form too", async () => {
    const server = await based;
    const Cookie = await signUp(server, "query");
    const list = `${BASE}/v1/subscriptions?page[size]=7`;
    const status = async (path: string) => (await server.call("GET", path, { headers: { Cookie } })).status;
    const answer = await server.call("GET", list, { headers: { Cookie } });
    assert.equal(answer.json.links.self, `${BASE}/v1/subscriptions?page[number]=1&page[size]=7`);
    assert.equal(await status(`${BASE}/v1/subscriptions?page[size]=0`), 400);
    assert.equal(await status(`http://pods.example${list}`), 200);
    assert.equal(await status(`http://pods.example${BASE}/v1`), 404);
  });

  test("a method that no parser knows is 405 below the base path, with what is allowed there", async () => {
    const { port } = await based;
    for (const [path, status, allow] of [
      [`${BASE}/v1/subscriptions`, 405, "GET, HEAD, POST"],
      [`${BASE}/v1/subscriptions?page[size]=1`, 405, "GET, HEAD, POST"],
      [`${BASE}/v1/tokens/${newId()}`, 405, "GET, HEAD, DELETE"],
      ["/v1/operations", 405, "POST"],
      [`${BASE}x/v1/operations`, 404, undefined],
      [BASE, 405, "GET, HEAD"],
    ] as const) {
      const answer = await sendRaw(port, `FROBNICATE ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      assert.equal(answer.status, status, path);
      assert.equal(/^allow: (.*)$/m.exec(answer.head)?.[1], allow, path);
      assert.equal(JSON.parse(answer.body).errors[0].status, String(status));
    }
  });

  test("the page of an invitation finds its style, its script and the server below the base path", async () => {
    for (const [server, base] of [
      [await based, BASE],
      [await startServer(ACCOUNTS), ""],
    ] as const) {
      const origin = "https://pods.example";
      const page = await server.call("GET", `${base}/join`);
      assert.equal(page.status, 200);
      assert.equal(page.headers["content-type"], "text/html; charset=utf-8");
      const named = [...page.text.matchAll(/<(?:link|script)[^>]* (?:href|src)="([^"]+)"/g)].map(
        ([, name = ""]) => name,
      );
      assert.equal(named.length, 4, named.join());
      for (const name of named) {
        const { pathname } = new URL(name, `${origin}${base}/join`);
        assert.ok(pathname.startsWith(`${base}/assets/`), pathname);
        const file = await server.call("GET", pathname);
        const type = { css: "text/css; charset=utf-8", js: "text/javascript; charset=utf-8", svg: "image/svg+xml" };
        assert.equal(file.status, 200);
        assert.equal(file.headers["content-type"], type[pathname.replace(/.*\./, "") as keyof typeof type]);
      }
      const { pathname } = new URL("v1/accounts", `${origin}${base}/join`);
      const answer = await server.call("POST", pathname, {
        headers: { "Content-Type": PLAIN, Origin: `http://127.0.0.1:${server.port}`, "Sec-Fetch-Site": "same-origin" },
        body: json("account", { name: "invited", password: PASSWORD }),
      });
      assert.equal(answer.status, 201, pathname);
      assert.equal((await server.call("GET", `${base}/join/`)).status, 404);
    }
  });

  test("without the setting no link has a prefix", async () => {
    const server = await startServer(ACCOUNTS);
    const { seen } = await visit(server, "", "ann");
    for (const [asked, answer] of seen) {
      const links = [...linksOf(answer.json), String(answer.headers["location"] ?? "/v1/")];
      for (const link of links) assert.ok(link.startsWith("/v1/"), `${link} in the answer to ${asked}`);
    }
    assert.equal((await server.call("GET", `${BASE}/v1/subscriptions`)).status, 404);
  });
});

suite("web apps of other origins", () => {
  const APP = "https://app.example";
  const open = startServer({
    ...ACCOUNTS,
    EARMARK_BASE_PATH: BASE,
    EARMARK_CORS_ORIGINS: `${APP}, http://localhost:3000`,
  });
  const asking = (origin: string, method = "POST"): Headers => ({
    Origin: origin,
    "Access-Control-Request-Method": method,
    "Access-Control-Request-Headers": "authorization,content-type",
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "cors",
  });
  const crossOriginHeaders = ({ headers }: Answer) =>
    Object.keys(headers).filter((name) => name.startsWith("access-control-"));

  test("by default no answer has a word for them", async () => {
    for (const settings of [ACCOUNTS, {}]) {
      const server = await startServer(settings);
      for (const origin of [APP, "null", "*", `http://127.0.0.1:${server.port}`, "http://localhost"]) {
        for (const [method, path] of [
          ["GET", "/v1/subscriptions"],
          ["POST", "/v1/operations"],
          ["OPTIONS", "/v1/operations"],
          ["OPTIONS", "/nowhere"],
          ["GET", "/healthz"],
        ] as const) {
          const answer = await server.call(method, path, { headers: asking(origin) });
          assert.deepEqual(crossOriginHeaders(answer), [], `${method} ${path} from ${origin}`);
          assert.equal(answer.headers["vary"], "Accept");
          if (method === "OPTIONS") assert.notEqual(answer.status, 204);
        }
      }
    }
  });

  test("a listed origin learns what it may do with each path, and that cookies are not for it", async () => {
    const { call, server } = await open;
    for (const url of new Set(server.routes.map(({ path }) => path))) {
      for (const base of [BASE, ""]) {
        const path = `${base}${url.replace(":id", newId())}`;
        for (const origin of [APP, "http://localhost:3000"]) {
          const answer = await call("OPTIONS", path, { headers: asking(origin) });
          assert.deepEqual([answer.status, answer.text], [204, ""], path);
          const { headers } = answer;
          assert.equal(headers["access-control-allow-origin"], origin);
          assert.equal(headers["access-control-allow-headers"], "Accept, Authorization, Content-Type");
          assert.match(String(headers["access-control-max-age"]), /^[1-9]\d*$/);
          assert.equal(headers["access-control-allow-credentials"], undefined);
          assert.match(String(headers["vary"]), /\bOrigin\b/);
          const refused = await call("PUT", path, { headers: { Authorization: "Bearer x", Origin: origin } });
          assert.equal(refused.status, 405);
          assert.equal(headers["access-control-allow-methods"], refused.headers["allow"], path);
        }
      }
    }
  });

  test("an origin is the listed one to the letter, or another one", async () => {
    const { call } = await open;
    for (const origin of [
      "https://APP.example",
      "HTTPS://app.example",
      "http://app.example",
      "https://app.example:443",
      "https://app.example:8443",
      "https://app.example/",
      "https://app.example.evil",
      "https://app.example.evil.example",
      "https://evil-app.example",
      "https://evil.example/https://app.example",
      "https://app.example@evil.example",
      "https://sub.app.example",
      "https://app.example.",
      "https://app.example, https://evil.example",
      "https://app.example https://evil.example",
      "app.example",
      "http://localhost:3001",
      "http://localhost",
      "null",
      "*",
    ]) {
      const preflight = await call("OPTIONS", "/v1/operations", { headers: asking(origin) });
      assert.deepEqual(crossOriginHeaders(preflight), [], origin);
      assert.equal(preflight.status, 403, origin);
      const actual = await call("GET", "/v1/me", { headers: { Origin: origin, Authorization: "Bearer x" } });
      assert.deepEqual([actual.status, crossOriginHeaders(actual)], [401, []], origin);
    }
    const twice = await call("OPTIONS", "/v1/operations", { headers: { ...asking(APP), Origin: [APP, APP] } });
    assert.deepEqual([twice.status, crossOriginHeaders(twice)], [403, []]);
  });

  test("a listed origin reads and writes with a token, and sees every failure", async () => {
    const server = await startServer({
      ...ACCOUNTS,
      EARMARK_CORS_ORIGINS: APP,
      EARMARK_MAX_BODY_BYTES: "8192",
    });
    loseStore(server);
    const token = await createToken(server, await signUp(server, "ann"));
    const from = { Origin: APP, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors" };
    const headers = { ...from, Authorization: `Bearer ${token}` };
    const plain = { ...headers, "Content-Type": PLAIN };
    const id = newId();
    for (const [status, method, path, sent, body] of [
      [200, "GET", "/v1/subscriptions", headers],
      [201, "POST", "/v1/subscriptions", plain, subscription(id)],
      [409, "POST", "/v1/subscriptions", plain, subscription(id)],
      [204, "DELETE", `/v1/subscriptions/${id}`, headers],
      [200, "GET", "/v1/subscriptions.opml", headers],
      [200, "HEAD", "/v1/subscriptions", headers],
      [400, "GET", "/v1/subscriptions?page[size]=0", headers],
      [401, "GET", "/v1/subscriptions", from],
      [401, "GET", "/v1/subscriptions", { ...from, Authorization: "Bearer wrong" }],
      [403, "GET", "/v1/tokens", headers],
      [404, "GET", `/v1/subscriptions/${id}`, headers],
      [404, "GET", "/nowhere", headers],
      [405, "PUT", "/v1/subscriptions", headers],
      [406, "GET", "/v1/subscriptions", { ...headers, Accept: "text/html" }],
      [413, "POST", "/v1/subscriptions", plain, " ".repeat(9_000)],
      [413, "POST", "/v1/subscriptions", plain, " ".repeat(100_000)],
      [415, "POST", "/v1/subscriptions", { ...headers, "Content-Type": "application/json" }, "{}"],
      [422, "POST", "/v1/subscriptions", plain, "{}"],
      [503, "GET", "/readyz", headers],
    ] as const) {
      const answer = await server.call(method, path, { headers: sent, ...(body === undefined ? {} : { body }) });
      assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
      assert.equal(answer.headers["access-control-allow-origin"], APP, `${status} ${method} ${path}`);
      assert.equal(answer.headers["access-control-allow-credentials"], undefined);
      assert.match(String(answer.headers["vary"]), /\bOrigin\b/);
      const shown = String(answer.headers["access-control-expose-headers"]);
      for (const name of ["Location", "Retry-After", "WWW-Authenticate"]) assert.ok(shown.includes(name), shown);
    }
  });

  test("a listed origin is told when it has asked too often", async () => {
    const server = await startServer({
      ...ACCOUNTS,
      EARMARK_CORS_ORIGINS: APP,
      EARMARK_REQUESTS_PER_MINUTE: "3",
    });
    const token = await createToken(server, await signUp(server, "ann"));
    const headers = { Origin: APP, Authorization: `Bearer ${token}` };
    const answers = [];
    for (let count = 0; count < 4; count += 1) answers.push(await server.call("GET", "/v1/me", { headers }));
    const refused = answers.find(({ status }) => status === 429);
    assert.equal(refused?.headers["access-control-allow-origin"], APP);
    assert.match(String(refused?.headers["retry-after"]), /^\d+$/);
    // Asking whether one may ask costs nothing: browsers do that by themselves.
    assert.equal((await server.call("OPTIONS", "/v1/me", { headers: asking(APP) })).status, 204);
  });

  test("a listed origin has no use of somebody's cookie", async () => {
    const server = await open;
    const Cookie = await signUp(server, "cookie");
    const count = async () => (await server.call("GET", "/v1/me", { headers: { Cookie } })).json.meta.counts;
    const before = await count();
    for (const [method, path, body] of unsafeRequests(newId(), newId())) {
      for (const site of [{}, { "Sec-Fetch-Site": "cross-site" }, { "Sec-Fetch-Site": "same-site" }]) {
        const type = path === "/v1/operations" ? ATOMIC : PLAIN;
        const headers = { Cookie, Origin: APP, "Content-Type": type, ...site };
        const answer = await server.call(method, path, { headers, ...(body === undefined ? {} : { body }) });
        assert.equal(answer.status, 403, `${method} ${path}`);
        assert.equal(answer.json.errors[0].title, "Cross-Site Request Refused");
        assert.equal(answer.headers["set-cookie"], undefined);
      }
    }
    assert.deepEqual(await count(), before);
  });

  test("OPTIONS that asks nothing of this kind is a method like any other: 405", async () => {
    const { call } = await open;
    const answers = [
      await call("OPTIONS", "/v1/operations"),
      await call("OPTIONS", `${BASE}/v1/operations`),
      await call("OPTIONS", "/v1/operations", { headers: { "Access-Control-Request-Method": "POST" } }),
      await call("OPTIONS", "/v1/operations", { headers: { Origin: APP, Authorization: "Bearer x" } }),
    ];
    for (const { status, headers } of answers) assert.deepEqual([status, headers["allow"]], [405, "POST"]);
    assert.equal((await call("OPTIONS", "/nowhere")).status, 404);
    assert.notEqual((await call("OPTIONS", "/nowhere", { headers: asking(APP) })).status, 204);
  });

  test("on a server without accounts a listed origin needs no token, and no other origin is let in", async () => {
    const { call } = await startServer({ EARMARK_CORS_ORIGINS: APP });
    const post = (origin: string) => {
      const headers = { Origin: origin, "Sec-Fetch-Site": "cross-site", "Content-Type": PLAIN };
      return call("POST", "/v1/subscriptions", { headers, body: subscription() });
    };
    assert.equal((await call("OPTIONS", "/v1/subscriptions", { headers: asking(APP) })).status, 204);
    const added = await post(APP);
    assert.deepEqual([added.status, added.headers["access-control-allow-origin"]], [201, APP]);
    for (const origin of ["https://app.example.evil", "http://app.example", "null"]) {
      const refused = await post(origin);
      assert.deepEqual([refused.status, crossOriginHeaders(refused)], [403, []], origin);
    }
    assert.equal((await call("GET", "/v1/subscriptions")).json.meta.total, 1);
  });
});

/** Everything that changes something for whoever is signed in. */
function unsafeRequests(subscribed: string, token: string): readonly (readonly [string, string, string?])[] {
  const operations = { "atomic:operations": [add(newId(), `https://feeds.example/${newId()}`)] };
  return [
    ["POST", "/v1/subscriptions", subscription()],
    ["POST", "/v1/operations", JSON.stringify(operations)],
    ["DELETE", `/v1/subscriptions/${subscribed}`],
    ["POST", "/v1/tokens", json("token", { label: "theirs", scope: "write" })],
    ["DELETE", `/v1/tokens/${token}`],
    ["PATCH", "/v1/me", json("account", { current_password: PASSWORD, password: `${PASSWORD} too` })],
    ["DELETE", "/v1/me"],
  ];
}

suite("web pages of other sites, when somebody is signed in", () => {
  const server = startServer(ACCOUNTS);
  const forged = (port: number): readonly Headers[] => [
    { "Sec-Fetch-Site": "cross-site" },
    { "Sec-Fetch-Site": "same-site" },
    { "Sec-Fetch-Site": "something-new" },
    { "Sec-Fetch-Site": "cross-site", Origin: `http://127.0.0.1:${port}` },
    { Origin: "https://evil.example" },
    { Origin: "null" },
    { Origin: "null", "Sec-Fetch-Site": "same-origin" },
    { Origin: "" },
    { Origin: "file://" },
    { Origin: `http://127.0.0.1:${port + 1}` },
    { Origin: "http://127.0.0.1" },
    { Origin: `http://localhost:${port}` },
    { Origin: `http://127.0.0.1:${port}.evil.example` },
    { Origin: `http://127.0.0.1:${port}`, Host: "pods.example" },
    { Origin: "https://evil.example", "X-Forwarded-Host": "evil.example" },
    { Origin: "https://evil.example", Host: "pods.example", "X-Forwarded-Host": "evil.example" },
  ];

  test("nothing that they send with the cookie is done", async () => {
    const started = await server;
    const { call, port } = started;
    const Cookie = await signUp(started, "ann");
    await createToken(started, Cookie);
    const id = newId();
    const headers = { Cookie, "Content-Type": PLAIN };
    assert.equal((await call("POST", "/v1/subscriptions", { headers, body: subscription(id) })).status, 201);
    const token: string = (await call("GET", "/v1/tokens", { headers })).json.data[0].id;
    const everything = async () =>
      (await call("GET", "/v1/me/export", { headers: { Cookie } })).text.replaceAll(/"last_used_at":[^,]+/g, "");
    const before = await everything();
    for (const from of forged(port)) {
      for (const [method, path, body] of unsafeRequests(id, token)) {
        const type = path === "/v1/operations" ? ATOMIC : PLAIN;
        const options = { headers: { Cookie, "Content-Type": type, ...from }, ...(body === undefined ? {} : { body }) };
        const answer = await call(method, path, options);
        assert.equal(answer.status, 403, `${method} ${path} with ${JSON.stringify(from)}`);
        assert.equal(answer.json.errors[0].title, "Cross-Site Request Refused");
        assert.equal(answer.headers["set-cookie"], undefined);
      }
    }
    assert.equal(await everything(), before);
    assert.equal((await signIn(started, "ann", PASSWORD)).status, 201, "the password is still the same");
  });

  test("what comes from our own page, or from no page at all, is done", async () => {
    const started = await server;
    const { call, port } = started;
    const Cookie = await signUp(started, "own");
    for (const from of [
      {},
      { "Sec-Fetch-Site": "same-origin" },
      { "Sec-Fetch-Site": "none" },
      { Origin: `http://127.0.0.1:${port}` },
      { Origin: `https://127.0.0.1:${port}` },
      { Origin: `http://127.0.0.1:${port}`, "Sec-Fetch-Site": "same-origin" },
      { Origin: "https://pods.example", Host: "pods.example" },
      { Origin: "https://pods.example", Host: "PODS.example" },
      { Origin: "https://pods.example:8443", Host: "pods.example:8443" },
    ] as const) {
      const headers = { Cookie, "Content-Type": PLAIN, ...from };
      const id = newId();
      const added = await call("POST", "/v1/subscriptions", { headers, body: subscription(id) });
      assert.equal(added.status, 201, JSON.stringify(from));
      const removed = await call("DELETE", `/v1/subscriptions/${id}`, { headers: { Cookie, ...from } });
      assert.equal(removed.status, 204, JSON.stringify(from));
    }
  });

  test("our own page is known behind a proxy that changes Host, by what a trusted one says or by its allowed name", async () => {
    const origin = { Origin: "https://pods.example" };
    const inside = { Host: "127.0.0.1:8080" };
    const [trusting, strict, naming] = [
      await startServer(TRUSTING),
      await server,
      await startServer({ ...ACCOUNTS, EARMARK_ALLOWED_HOSTS: "pods.example" }),
    ];
    for (const [which, headers, status] of [
      [trusting, { ...inside, ...origin, "X-Forwarded-Host": "pods.example" }, 201],
      [trusting, { ...inside, ...origin, "X-Forwarded-Host": "Pods.Example" }, 201],
      [trusting, { Host: "earmark:8080", ...origin, "X-Forwarded-Host": "pods.example" }, 201],
      [trusting, { ...inside, Origin: "https://pods.example:8443", "X-Forwarded-Host": "pods.example:8443" }, 201],
      [trusting, { ...inside, ...origin, "X-Forwarded-Host": "evil.example, pods.example" }, 201],
      [trusting, { ...inside, ...origin, "X-Forwarded-Host": "pods.example, other.example" }, 403],
      [trusting, { ...inside, ...origin }, 403],
      [trusting, { ...inside, Origin: "https://evil.example", "X-Forwarded-Host": "pods.example" }, 403],
      [trusting, { ...inside, Origin: "https://pods.example:8443", "X-Forwarded-Host": "pods.example" }, 403],
      [strict, { ...inside, ...origin, "X-Forwarded-Host": "pods.example" }, 403],
      [naming, { ...inside, ...origin }, 201],
      [naming, { Host: "pods.example", ...origin }, 201],
      [naming, { ...inside, Origin: "https://evil.example" }, 403],
      [naming, { ...inside, Origin: "https://pods.example.evil.example" }, 403],
      [naming, { Host: "evil.example", Origin: "https://evil.example" }, 421],
    ] as const) {
      const name = `p${newId()}`;
      const body = json("account", { name, password: PASSWORD });
      const signedUp = await which.call("POST", "/v1/accounts", {
        headers: { ...headers, "Content-Type": PLAIN },
        body,
      });
      assert.equal(signedUp.status, status, JSON.stringify(headers));
      if (status !== 201) continue;
      const added = await which.call("POST", "/v1/subscriptions", {
        headers: { ...headers, "Content-Type": PLAIN, Cookie: cookieOf(signedUp) },
        body: subscription(),
      });
      assert.equal(added.status, 201, JSON.stringify(headers));
    }
  });

  test("they can sign nobody in or up: the browser would then act for whoever they choose", async () => {
    const started = await startServer(ACCOUNTS);
    const cookie = await signUp(started, "ann");
    for (const from of forged(started.port)) {
      const refused = [
        await signIn(started, "ann", PASSWORD, from),
        await started.call("POST", "/v1/accounts", {
          headers: { "Content-Type": PLAIN, ...from },
          body: json("account", { name: "theirs", password: PASSWORD }),
        }),
      ];
      for (const { status, headers } of refused)
        assert.deepEqual([status, headers["set-cookie"]], [403, undefined], JSON.stringify(from));
    }
    const sessions = await started.call("GET", "/v1/sessions", { headers: { Cookie: cookie } });
    assert.equal(sessions.json.meta.total, 1);
    assert.equal((await signIn(started, "theirs", PASSWORD)).status, 401);
  });

  test("with a token it does not matter where a request comes from, since no browser adds one by itself", async () => {
    const started = await server;
    const Cookie = await signUp(started, "token");
    const Authorization = `Bearer ${await createToken(started, Cookie)}`;
    for (const from of forged(started.port)) {
      const headers = { Authorization, "Content-Type": PLAIN, ...from };
      const added = await started.call("POST", "/v1/subscriptions", { headers, body: subscription() });
      assert.equal(added.status, 201, JSON.stringify(from));
    }
    // A token that opens nothing does not make the cookie count.
    const headers = { Authorization: "Bearer x", Cookie, "Content-Type": PLAIN, Origin: "https://evil.example" };
    assert.equal((await started.call("POST", "/v1/subscriptions", { headers, body: subscription() })).status, 401);
    const alone = { headers: { Authorization: "Basic YW5uOng=", Cookie, "Content-Type": PLAIN }, body: subscription() };
    assert.equal((await started.call("POST", "/v1/subscriptions", alone)).status, 401);
  });

  test("a link from another site leads to the page, and not to the API", async () => {
    const started = await server;
    const Cookie = await signUp(started, "reader");
    for (const method of ["GET", "HEAD"]) {
      const headers = { Cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate" };
      assert.equal((await started.call(method, "/", { headers })).status, 200);
      assert.equal((await started.call(method, "/v1/subscriptions", { headers })).status, 403);
    }
  });
});

suite("headers that protect", () => {
  const PROTECTING = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
  };
  const protectionOf = (headers: Answer["headers"]) =>
    Object.fromEntries(Object.keys(PROTECTING).map((name) => [name, headers[name]]));
  const METRICS_TOKEN = "for-prometheus-alone";
  const APP = "https://app.example";

  test("every kind of answer has them", async () => {
    const server = await startServer({
      ...ACCOUNTS,
      EARMARK_MAX_BODY_BYTES: "8192",
      EARMARK_METRICS: "true",
      EARMARK_METRICS_TOKEN: METRICS_TOKEN,
      EARMARK_CORS_ORIGINS: APP,
      EARMARK_ALLOWED_HOSTS: "pods.example",
    });
    loseStore(server);
    const Cookie = await signUp(server, "ann");
    const Authorization = `Bearer ${await createToken(server, Cookie)}`;
    const plain = { Authorization, "Content-Type": PLAIN };
    const atomic = { Authorization, "Content-Type": ATOMIC };
    const id = newId();
    const session = { "Content-Type": PLAIN };
    const requests: readonly (readonly [number, string, string, Headers, string?])[] = [
      [200, "GET", "/v1/subscriptions", { Authorization }],
      [200, "HEAD", "/v1/subscriptions", { Authorization }],
      [200, "POST", "/v1/operations", atomic, '{"atomic:operations":[]}'],
      [200, "GET", "/v1/me", { Cookie }],
      [200, "GET", "/v1/me/export", { Cookie }],
      [200, "GET", "/healthz", {}],
      [200, "GET", "/metrics", { Authorization: `Bearer ${METRICS_TOKEN}` }],
      [201, "POST", "/v1/subscriptions", plain, subscription(id)],
      [201, "POST", "/v1/sessions", session, json("session", { name: "ann", password: PASSWORD })],
      [201, "POST", "/v1/accounts", session, json("account", { name: "bob", password: PASSWORD })],
      [204, "DELETE", `/v1/subscriptions/${id}`, { Authorization }],
      [204, "OPTIONS", "/v1/operations", { Origin: APP, "Access-Control-Request-Method": "POST" }],
      [400, "GET", "/v1/subscriptions?nonsense=1", { Authorization }],
      [400, "GET", "/v1/subscriptions/%ff", { Authorization }],
      [400, "GET", "/v1/me?access_token=x", {}],
      [401, "GET", "/v1/subscriptions", {}],
      [401, "GET", "/metrics", { Authorization }],
      [401, "POST", "/v1/sessions", session, json("session", { name: "ann", password: "wrong" })],
      [403, "DELETE", "/v1/me", { Cookie, Origin: "https://evil.example" }],
      [403, "GET", "/v1/tokens", { Authorization }],
      [404, "GET", "/nowhere", {}],
      [404, "GET", `/v1/subscriptions/${id}`, { Authorization }],
      [405, "PUT", "/v1/subscriptions", { Authorization }],
      [406, "GET", "/v1/subscriptions", { Authorization, Accept: "text/html" }],
      [409, "POST", "/v1/accounts", session, json("account", { name: "bob", password: PASSWORD })],
      [413, "POST", "/v1/subscriptions", plain, " ".repeat(9_000)],
      [413, "POST", "/v1/subscriptions", plain, " ".repeat(100_000)],
      [415, "POST", "/v1/subscriptions", { Authorization, "Content-Type": "text/plain" }, "x"],
      [417, "GET", "/v1/subscriptions", { Authorization, Expect: "wonders" }],
      [421, "GET", "/v1/subscriptions", { Authorization, Host: "evil.example" }],
      [422, "POST", "/v1/subscriptions", plain, "{}"],
      [431, "GET", "/v1/subscriptions", { Cookie: "a".repeat(9_000) }],
      [503, "GET", "/readyz", {}],
    ];
    for (const [status, method, path, headers, body] of requests) {
      const answer = await server.call(method, path, { headers, ...(body === undefined ? {} : { body }) });
      assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`);
      assert.deepEqual(protectionOf(answer.headers), PROTECTING, `${status} ${method} ${path}`);
      // Nor does any answer say what it was made with.
      for (const name of ["server", "x-powered-by", "via"]) assert.equal(answer.headers[name], undefined);
    }
  });

  test("so have answers to too many requests, and to what fails here", async () => {
    const server = await startServer({ ...ACCOUNTS, EARMARK_REQUESTS_PER_MINUTE: "2" });
    const headers = { Authorization: `Bearer ${await createToken(server, await signUp(server, "ann"))}` };
    const fail = () => Promise.reject(new TypeError("broken on purpose"));
    Object.assign(server.store, { page: fail });
    const failed = await server.call("GET", "/v1/subscriptions", { headers });
    const limited = await server.call("GET", "/v1/subscriptions", { headers });
    assert.deepEqual([failed.status, limited.status], [500, 429]);
    for (const answer of [failed, limited]) assert.deepEqual(protectionOf(answer.headers), PROTECTING);
  });

  test("so has what is answered below the framework", async () => {
    const { port } = await startServer({ EARMARK_HEADERS_TIMEOUT_MS: "300" });
    const cases = [
      [400, "this is not HTTP\r\n\r\n"],
      [400, "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"],
      [400, "GET / HTTP/1.1\r\nbad header\r\n\r\n"],
      [404, "FROBNICATE /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n"],
      [405, "FROBNICATE /v1/subscriptions HTTP/1.1\r\nHost: localhost\r\n\r\n"],
      [408, "GET / HTTP/1.1\r\nHost: loc"],
      [431, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`],
    ] as const;
    const check = async (status: number, bytes: string) => {
      const answer = await sendRaw(port, bytes);
      assert.equal(answer.status, status, bytes);
      const headers = Object.fromEntries(
        answer.head.split("\r\n").map((line) => [line.replace(/:.*/, "").toLowerCase(), line.replace(/^[^:]*: /, "")]),
      );
      assert.deepEqual(protectionOf(headers), PROTECTING, bytes);
    };
    await Promise.all(cases.map(([status, bytes]) => check(status, bytes)));
  });

  test("the page may use its own files and nothing else, and in no frame", async () => {
    const { call } = await startServer(ACCOUNTS);
    for (const path of ["/", "/join", "/assets/icon.svg"]) {
      const { status, headers } = await call("GET", path);
      assert.equal(status, 200);
      const policy = String(headers["content-security-policy"]);
      const cache = { "cache-control": "no-cache" };
      assert.deepEqual(protectionOf(headers), { ...PROTECTING, ...cache, "content-security-policy": policy });
      const directives = policy.split("; ");
      for (const directive of [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ])
        assert.ok(directives.includes(directive), directive);
      assert.doesNotMatch(policy, /unsafe|\*|https?:|data:/);
    }
    // What the policy forbids is not on the page, or it would not work.
    const { text } = await call("GET", "/join");
    assert.doesNotMatch(text, /<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|https?:\/\//);
  });
});
