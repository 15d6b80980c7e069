import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { exchange } from "./support/accounts.ts";
import {
  ACCOUNTS,
  BASE,
  cookieOf,
  type Headers,
  json,
  PASSWORD,
  parseResponse,
  signUp,
  subscription,
} from "./support/browser-requests.ts";
import { ATOMIC, add, type HttpResponse, newId, PLAIN, startServer, type TestServer } from "./support/server.ts";

suite("base path", () => {
  const based = startServer({ ...ACCOUNTS, EARMARK_BASE_PATH: BASE });

  /** All links in a document, at any depth. */
  function linksOf(value: unknown, isLinks = false): string[] {
    if (typeof value === "string") return isLinks ? [value] : [];
    if (typeof value !== "object" || value === null) return [];
    return Object.entries(value).flatMap(([key, member]) => linksOf(member, isLinks || key === "links"));
  }

  /** Requests every kind of document that has links, and returns the responses by request. */
  async function visit(server: TestServer, base: string, name: string) {
    const seen = new Map<string, HttpResponse>();
    const visited = async (method: string, path: string, headers: Headers, body?: string) => {
      const options = { headers, ...(body === undefined ? {} : { body }) };
      const response = await server.call(method, `${base}${path}`, options);
      seen.set(`${method} ${path}`, response);
      assert.ok(response.status < 300, `${method} ${base}${path}: ${response.status} ${response.text}`);
      return response;
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
    test(`base path: requests arrive ${name} → every link has the base path and works`, async () => {
      const server = await based;
      const { seen, cookie } = await visit(server, base, name);
      let followed = 0;
      for (const [asked, response] of seen) {
        const { location } = response.headers;
        const created = location === undefined ? [] : [String(location)];
        if (response.status === 201) assert.deepEqual(created, [response.json.data.links.self], asked);
        const links = [...linksOf(response.json), ...created];
        assert.ok(links.length > 0, `${asked} has no link`);
        for (const link of links) {
          assert.ok(link.startsWith(`${BASE}/v1/`), `${link} in the response to ${asked}`);
          const there = await server.call("GET", link, { headers: cookie });
          assert.equal(there.status, 200, `${link} in the response to ${asked}`);
          followed += 1;
        }
      }
      assert.ok(followed > 60, `only ${followed} links were followed`);
    });
  }

  test("base path: a page → all five pagination links have it, and self returns the same page", async () => {
    const server = await based;
    const { seen, cookie } = await visit(server, BASE, "pages");
    for (const [asked, path, last] of [
      ["GET /v1/subscriptions?page[number]=2&page[size]=1", "/v1/subscriptions", 3],
      ["GET /v1/sessions?page[number]=2&page[size]=1", "/v1/sessions", 2],
    ] as const) {
      const response = seen.get(asked);
      const link = (number: number) => `${BASE}${path}?page[number]=${number}&page[size]=1`;
      const [self, first, prev] = [link(2), link(1), link(1)];
      const next = last === 2 ? null : link(3);
      assert.deepEqual(response?.json.links, { self, first, prev, next, last: link(last) });
      assert.equal((await server.call("GET", self, { headers: cookie })).text, response?.text);
    }
  });

  test("base path: DELETE on a self link → deletes the resource", async () => {
    const server = await based;
    const { seen, cookie } = await visit(server, BASE, "writer");
    for (const asked of ["POST /v1/subscriptions", "POST /v1/tokens", "POST /v1/sessions"]) {
      const self: string = seen.get(asked)?.json.data.links.self;
      const { status } = await server.call("DELETE", self, { headers: cookie });
      assert.equal(status, asked === "POST /v1/subscriptions" ? 204 : 204, self);
      assert.equal((await server.call("GET", self, { headers: cookie })).status, 404, self);
    }
  });

  test("base path: href of an operation → must include the base path", async () => {
    const server = await based;
    const Cookie = await signUp(server, "href");
    const operations = [`${BASE}/v1/subscriptions`, "/v1/subscriptions", `${BASE}/v1/subscriptions/`].map((href) => ({
      ...add(newId(), `https://feeds.example/${newId()}`),
      href,
    }));
    const body = JSON.stringify({ "atomic:operations": operations });
    for (const prefix of [BASE, ""]) {
      const headers = { Cookie, "Content-Type": ATOMIC };
      const response = await server.call("POST", `${prefix}/v1/operations`, { headers, body });
      const [first, ...others] = response.json["atomic:results"];
      // The second time the feed already exists.
      assert.equal(first.errors?.[0].title, prefix === BASE ? undefined : "Already Subscribed");
      for (const { errors } of others) {
        assert.equal(errors[0].title, "Invalid Operation");
        assert.ok(errors[0].detail.includes(`"${BASE}/v1/subscriptions"`), errors[0].detail);
      }
    }
  });

  test("base path: any route with and without it → the same response", async () => {
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
        // These contain the time or a random challenge.
        const differs = /^\/v1\/(me\/export|sessions|passkey-options\/.*|second-factor\/enrollment)$/.test(url);
        const [oneText, otherText] = [one, other].map(({ text }) => text.replace(/<dateCreated>.*/, ""));
        if (!differs) assert.equal(oneText, otherText, path);
        assert.ok(one.status !== 404 || url.includes(":"), path);
      }
    }
  });

  test("base path: a path that only resembles it → 404", async () => {
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
      const response = await call("GET", path);
      assert.deepEqual([response.status, response.json.errors[0].title], [404, "Not Found"], path);
    }
  });

  test("base path: the page → served at the base path; 308 without the trailing slash", async () => {
    const { call } = await based;
    for (const path of [`${BASE}/`, `${BASE}/?a=/v1/me`, "/", "/?a=1", `http://pods.example${BASE}/`])
      assert.match((await call("GET", path)).text, /^<!doctype html>/, path);
    for (const path of [BASE, `${BASE}?`, `${BASE}?page[size]=1`, `http://pods.example${BASE}?a=1`]) {
      const { status, headers } = await call("GET", path);
      assert.deepEqual([status, headers["location"]], [308, `${BASE}/`], path);
    }
  });

  test("base path: a query, or a target in absolute form → works", async () => {
    const server = await based;
    const Cookie = await signUp(server, "query");
    const list = `${BASE}/v1/subscriptions?page[size]=7`;
    const status = async (path: string) => (await server.call("GET", path, { headers: { Cookie } })).status;
    const response = await server.call("GET", list, { headers: { Cookie } });
    assert.equal(response.json.links.self, `${BASE}/v1/subscriptions?page[number]=1&page[size]=7`);
    assert.equal(await status(`${BASE}/v1/subscriptions?page[size]=0`), 400);
    assert.equal(await status(`http://pods.example${list}`), 200);
    assert.equal(await status(`http://pods.example${BASE}/v1`), 404);
  });

  test("base path: unknown method → 405 with the allowed methods", async () => {
    const { port } = await based;
    for (const [path, status, allow] of [
      [`${BASE}/v1/subscriptions`, 405, "GET, HEAD, POST"],
      [`${BASE}/v1/subscriptions?page[size]=1`, 405, "GET, HEAD, POST"],
      [`${BASE}/v1/tokens/${newId()}`, 405, "GET, HEAD, DELETE"],
      ["/v1/operations", 405, "POST"],
      [`${BASE}x/v1/operations`, 404, undefined],
      [BASE, 405, "GET, HEAD"],
    ] as const) {
      const response = parseResponse(await exchange(port, `FROBNICATE ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`));
      assert.equal(response.status, status, path);
      assert.equal(response.headers["allow"], allow, path);
      assert.equal(JSON.parse(response.body).errors[0].status, String(status));
    }
  });

  test("base path: the invitation page → its files and API are under the base path", async () => {
    for (const [server, base] of [
      [await based, BASE],
      [await startServer(ACCOUNTS), ""],
    ] as const) {
      const origin = "https://pods.example";
      const page = await server.call("GET", `${base}/join`);
      assert.equal(page.status, 200);
      assert.equal(page.headers["content-type"], "text/html; charset=utf-8");
      const files = [...page.text.matchAll(/<(?:link|script)[^>]* (?:href|src)="([^"]+)"/g)].map(
        ([, name = ""]) => name,
      );
      assert.equal(files.length, 6, files.join());
      for (const name of files) {
        const { pathname } = new URL(name, `${origin}${base}/join`);
        assert.ok(pathname.startsWith(`${base}/assets/`), pathname);
        const file = await server.call("GET", pathname);
        const type = {
          css: "text/css; charset=utf-8",
          js: "text/javascript; charset=utf-8",
          png: "image/png",
          svg: "image/svg+xml",
          webmanifest: "application/manifest+json",
        };
        assert.equal(file.status, 200);
        assert.equal(file.headers["content-type"], type[pathname.replace(/.*\./, "") as keyof typeof type]);
      }
      const { pathname } = new URL("v1/accounts", `${origin}${base}/join`);
      const response = await server.call("POST", pathname, {
        headers: { "Content-Type": PLAIN, Origin: `http://127.0.0.1:${server.port}`, "Sec-Fetch-Site": "same-origin" },
        body: json("account", { name: "invited", password: PASSWORD }),
      });
      assert.equal(response.status, 201, pathname);
      assert.equal((await server.call("GET", `${base}/join/`)).status, 404);
    }
  });

  test("base path: not set → no link has a prefix", async () => {
    const server = await startServer(ACCOUNTS);
    const { seen } = await visit(server, "", "ann");
    for (const [asked, response] of seen) {
      const links = [...linksOf(response.json), String(response.headers["location"] ?? "/v1/")];
      for (const link of links) assert.ok(link.startsWith("/v1/"), `${link} in the response to ${asked}`);
    }
    assert.equal((await server.call("GET", `${BASE}/v1/subscriptions`)).status, 404);
  });
});
