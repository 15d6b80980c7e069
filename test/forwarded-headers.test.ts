import assert from "node:assert/strict";
import { suite, test } from "node:test";
import {
  ACCOUNTS,
  cookieOf,
  type Headers,
  json,
  PASSWORD,
  setCookie,
  signIn,
  signUp,
  subscription,
  TRUSTING,
} from "./support/browser-requests.ts";
import { type HttpResponse, newId, PLAIN, startServer } from "./support/server.ts";

suite("forwarded headers", () => {
  /** Every header that a proxy might add, with false values. */
  const SPOOFED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Port": "443",
    "X-Forwarded-Prefix": "/evil",
    "X-Real-IP": "203.0.113.9",
    Forwarded: "for=203.0.113.9;proto=https;host=evil.example",
  };

  /** As many failed sign-ins as the limit allows per network and name. */
  async function guessTenTimes(guess: (number: number) => Promise<HttpResponse>): Promise<void> {
    const responses = await Promise.all(Array.from({ length: 10 }, (_, index) => guess(index + 1)));
    for (const { status } of responses) assert.equal(status, 401);
  }

  for (const [trusted, proxies] of [
    ["no proxies", ""],
    ["other proxies", "192.0.2.1, 127.0.0.2, 10.0.0.0/8, ::1"],
  ] as const) {
    test(`forwarded headers: ${trusted} trusted → spoofed headers change nothing`, async () => {
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
      const normalize = ({ status, headers, text }: HttpResponse) => {
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
        assert.equal(normalize(spoofed), normalize(plain));
      }
      const again = await signIn(server, "ann", PASSWORD, SPOOFED);
      assert.match(setCookie(again), /^earmark=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax$/);
    });
  }

  test("sign-in limit: untrusted peer with X-Forwarded-For → counts for the peer's own address", async () => {
    const now = new Date();
    const server = await startServer({ ...ACCOUNTS, EARMARK_TRUSTED_PROXIES: "192.0.2.1" }, () => now);
    await guessTenTimes((guess) => signIn(server, "ann", "wrong", { "X-Forwarded-For": `203.0.113.${guess}` }));
    for (const headers of [{}, SPOOFED, { "X-Forwarded-For": "198.51.100.1, 192.0.2.1" }] as const)
      assert.equal((await signIn(server, "ann", "wrong", headers)).status, 429);
  });

  test("sign-in limit: trusted proxy → counts for the network that it forwards", async () => {
    const now = new Date();
    const server = await startServer(TRUSTING, () => now);
    await signUp(server, "ann", { "X-Forwarded-For": "198.51.100.200" });
    const from = (address: string | string[], name = "ann", password = "wrong") =>
      signIn(server, name, password, { "X-Forwarded-For": address });
    // Addresses before the one that the proxy adds come from the client.
    await guessTenTimes((guess) => from(`198.51.100.${guess}, 203.0.113.9`));
    const refused = await from("203.0.113.9");
    assert.deepEqual([refused.status, refused.headers["retry-after"]], [429, "60"]);
    assert.equal(refused.json.errors[0].title, "Too Many Requests");
    // Two headers form one list, and neither the right password nor another case of the name helps.
    assert.equal((await from(["198.51.100.1", "203.0.113.9"])).status, 429);
    assert.equal((await from("203.0.113.9", "ann", PASSWORD)).status, 429);
    assert.equal((await from("203.0.113.9", "ANN")).status, 429);
    assert.equal((await from("203.0.113.9", "bob")).status, 401);
    assert.equal((await from("203.0.113.8")).status, 401);
    assert.equal((await signIn(server, "ann", "wrong")).status, 401);
    assert.equal((await from("203.0.113.8", "ann", PASSWORD)).status, 201);
  });

  test("sign-in limit: many IPv6 addresses of one /64 → count as one network", async () => {
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
    test(`session cookie: https, base path "${base}" → ${secureName}; http → earmark`, async () => {
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
      const [secureCookie, plainCookie] = [cookieOf(secure), cookieOf(plain)];
      assert.equal(await status({ Cookie: secureCookie, ...https }), 200);
      assert.equal(await status({ Cookie: plainCookie }), 200);
      // A cookie sent over http may have been intercepted, and an https cookie must not work over http.
      assert.equal(await status({ Cookie: plainCookie, ...https }), 401);
      assert.equal(await status({ Cookie: secureCookie }), 401);
      const renamed = (name: string) => secureCookie.replace(/^[^=]+/, name);
      const otherName = base === "" ? "__Secure-earmark" : "__Host-earmark";
      assert.equal(await status({ Cookie: renamed("earmark"), ...https }), 401);
      assert.equal(await status({ Cookie: renamed(otherName), ...https }), 401);
      assert.equal(await status({ Cookie: `${plainCookie}; a=1; ${secureCookie}`, ...https }), 200);
      assert.equal(await status({ Cookie: [plainCookie, secureCookie], ...https }), 200);
      // Another application on the host may set a cookie of the same name: one valid cookie is accepted, two are not.
      assert.equal(await status({ Cookie: `${secureCookie}; ${secureCookie}`, ...https }), 200);
      assert.equal(await status({ Cookie: [`${renamed(secureName).slice(0, -1)}_`, secureCookie], ...https }), 200);
      const another = cookieOf(await signIn(server, "ann", PASSWORD, https));
      assert.equal(await status({ Cookie: `${secureCookie}; ${another}`, ...https }), 401);

      const { id } = secure.json.data;
      const ended = await server.call("DELETE", `/v1/sessions/${id}`, { headers: { Cookie: secureCookie, ...https } });
      assert.equal(ended.status, 204);
      assert.equal(setCookie(ended), `${secureName}=; Path=${base}/; Max-Age=0; HttpOnly; SameSite=Lax; Secure`);
      assert.equal(await status({ Cookie: secureCookie, ...https }), 401);
    });
  }
});
