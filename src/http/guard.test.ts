import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { exchange, newToken, signUp } from "../../test/support/accounts.ts";
import { newId, PLAIN, startServer, type TestServer } from "../../test/support/server.ts";

const withoutAccounts = await startServer({ EARMARK_ALLOWED_HOSTS: "pods.example" });
const accounts = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });
const proxied = await startServer({ EARMARK_ALLOWED_HOSTS: "pods.example", EARMARK_TRUSTED_PROXIES: "127.0.0.1" });
const ann = await signUp(accounts.port, "ann", "correct horse battery");
const { token } = await newToken(accounts.port, ann, { label: "app", scope: "read" });

type Headers = Readonly<Record<string, string>>;

async function statusOf({ call }: TestServer, method: string, path: string, headers: Headers): Promise<number> {
  const id = newId();
  const data = { type: "subscription", id, attributes: { feed_url: `https://feeds.example/${id}` } };
  const options = method === "POST" ? { body: JSON.stringify({ data }) } : {};
  return (await call(method, path, { headers: { "Content-Type": PLAIN, ...headers }, ...options })).status;
}

suite("origins", () => {
  const add = (server: TestServer, headers: Headers) => statusOf(server, "POST", "/v1/subscriptions", headers);

  for (const [name, server, status, own] of [
    ["without accounts", withoutAccounts, 201, {}],
    ["with accounts", accounts, 201, { Cookie: ann.cookie }],
  ] as const) {
    test(`origins, ${name}: same host with another port or scheme → 403`, async () => {
      const { port } = server;
      assert.equal(await add(server, { ...own, Origin: `http://127.0.0.1:${port}` }), status);
      for (const origin of [
        `http://127.0.0.1:${port - 1}`,
        "http://127.0.0.1",
        "https://127.0.0.1",
        `http://localhost:${port}`,
        `ws://127.0.0.1:${port}`,
        "null",
      ])
        assert.equal(await add(server, { ...own, Origin: origin }), 403, origin);
    });

    test(`origins, ${name}: page on another port of localhost → 403`, async () => {
      const { port } = server;
      const localhost = { ...own, Host: `localhost:${port}` };
      for (const headers of [
        { Origin: "http://localhost:3000", "Sec-Fetch-Site": "same-site" },
        { Origin: "http://localhost:3000" },
        { Origin: `http://127.0.0.1:${port}`, "Sec-Fetch-Site": "cross-site" },
        { Origin: `http://127.0.0.1:${port}` },
        { "Sec-Fetch-Site": "same-site" },
      ])
        assert.equal(await add(server, { ...localhost, ...headers } as Headers), 403, JSON.stringify(headers));
      assert.equal(await add(server, { ...localhost, Origin: `http://localhost:${port}` }), status);
    });
  }

  test("origins: allowed host → accepted with the default port and the port of Host only", async () => {
    for (const [headers, status] of [
      [{ Origin: "https://pods.example" }, 201],
      [{ Origin: "https://pods.example:443" }, 201],
      [{ Origin: "https://pods.example:8443", Host: "pods.example:8443" }, 201],
      [{ Origin: "https://pods.example:8443", Host: "127.0.0.1:8443" }, 201],
      [{ Origin: "https://pods.example:8443", Host: "pods.example" }, 403],
      [{ Origin: "https://pods.example:8443" }, 403],
      // Behind an unknown TLS proxy, the browser itself reports the same origin.
      [{ Origin: "https://pods.example:8443", "Sec-Fetch-Site": "same-origin" }, 201],
    ] as const)
      assert.equal(await add(withoutAccounts, headers), status, JSON.stringify(headers));
  });

  test("origins: trusted proxy reports the scheme → only that scheme is accepted", async () => {
    for (const [proto, origin, status] of [
      ["https", "https://pods.example", 201],
      ["https", "http://pods.example", 403],
      ["http", "http://pods.example", 201],
      ["http", "https://pods.example", 403],
    ] as const) {
      for (const host of [{ Host: "pods.example" }, { "X-Forwarded-Host": "pods.example" }]) {
        const headers = { ...host, "X-Forwarded-Proto": proto, Origin: origin } as Headers;
        assert.equal(await add(proxied, headers), status, JSON.stringify(headers));
      }
    }
  });
});

suite("HTTP/1.0 without Host", () => {
  for (const [name, { port }, own] of [
    ["without accounts", withoutAccounts, ""],
    ["with accounts", accounts, `Cookie: ${ann.cookie}\r\n`],
  ] as const) {
    test(`HTTP/1.0 without Host, ${name}: an Origin or another site → 403, neither → 404 for an unknown id`, async () => {
      const remove = async (headers: string) => {
        const id = newId();
        const target = `/v1/subscriptions/${id}`;
        return (await exchange(port, `DELETE ${target} HTTP/1.0\r\n${own}${headers}\r\n`)).slice(9, 12);
      };
      for (const headers of [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        `Origin: http://127.0.0.1:${port}\r\n`,
        "Origin: http://undefined\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
      ])
        assert.equal(await remove(headers), "403", headers);
      assert.equal(await remove(""), "404");
    });
  }
});

suite("navigations from another site", () => {
  const VISIT = { "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" };
  const API = ["/v1/subscriptions", "/v1/subscriptions.opml", "/v1/me", "/v1/me/export", "/%761/subscriptions.opml"];
  const SITES = ["cross-site", "same-site"];

  for (const site of SITES) {
    test(`navigation: to the API, ${site} → 403, signed in or not, with accounts or without`, async () => {
      const link = { ...VISIT, "Sec-Fetch-Site": site };
      for (const method of ["GET", "HEAD"]) {
        for (const path of API) {
          assert.equal(await statusOf(accounts, method, path, { ...link, Cookie: ann.cookie }), 403, path);
          assert.equal(await statusOf(accounts, method, path, link), 403, path);
          assert.equal(await statusOf(withoutAccounts, method, path, link), 403, path);
        }
      }
    });

    test(`navigation: to a page, ${site} → 200`, async () => {
      for (const path of ["/", "/docs", "/openapi.json"]) {
        for (const server of [accounts, withoutAccounts])
          assert.equal(await statusOf(server, "GET", path, { ...VISIT, "Sec-Fetch-Site": site }), 200, path);
      }
      assert.equal(await statusOf(accounts, "GET", "/join", { ...VISIT, "Sec-Fetch-Site": site }), 200);
    });
  }

  test("navigation: from the server's own page, from a bookmark or with a token → 200", async () => {
    for (const site of ["same-origin", "none"]) {
      const link = { ...VISIT, "Sec-Fetch-Site": site };
      assert.equal(await statusOf(accounts, "GET", "/v1/subscriptions.opml", { ...link, Cookie: ann.cookie }), 200);
      assert.equal(await statusOf(withoutAccounts, "GET", "/v1/subscriptions.opml", link), 200);
    }
    const app = { Authorization: `Bearer ${token}`, "Sec-Fetch-Site": "cross-site" };
    assert.equal(await statusOf(accounts, "GET", "/v1/subscriptions.opml", app), 200);
  });
});

test("pages: HTML → Cross-Origin-Opener-Policy: same-origin", async () => {
  for (const { call } of [withoutAccounts, accounts]) {
    for (const path of ["/", "/docs"])
      assert.equal((await call("GET", path)).headers["cross-origin-opener-policy"], "same-origin", path);
  }
});
