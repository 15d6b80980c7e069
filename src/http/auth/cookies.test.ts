import assert from "node:assert/strict";
import { test } from "node:test";
import { cookieName, readCookies, writeCookie } from "./cookies.ts";

const HTTP = { isHttps: false };
const HTTPS = { isHttps: true };

test("cookie name: http, https, base path → no prefix, __Host-, __Secure-", () => {
  assert.equal(cookieName(HTTP, ""), "earmark");
  assert.equal(cookieName(HTTP, "/pod"), "earmark");
  assert.equal(cookieName(HTTPS, ""), "__Host-earmark");
  assert.equal(cookieName(HTTPS, "/pod"), "__Secure-earmark");
});

test("write cookie: a session → HttpOnly, SameSite, limited to this host and path", () => {
  const written = [
    writeCookie("secret", 90_000, HTTP, ""),
    writeCookie("secret", 90_000, HTTP, "/pod/casts"),
    writeCookie("secret", 90_000, HTTPS, ""),
    writeCookie("secret", 90_000, HTTPS, "/pod/casts"),
  ];
  assert.deepEqual(written, [
    "earmark=secret; Path=/; Max-Age=90; HttpOnly; SameSite=Lax",
    "earmark=secret; Path=/pod/casts/; Max-Age=90; HttpOnly; SameSite=Lax",
    "__Host-earmark=secret; Path=/; Max-Age=90; HttpOnly; SameSite=Lax; Secure",
    "__Secure-earmark=secret; Path=/pod/casts/; Max-Age=90; HttpOnly; SameSite=Lax; Secure",
  ]);
  // Browsers reject __Host- cookies that have a domain, or a path other than /.
  for (const cookie of written) assert.doesNotMatch(cookie, /domain/i);
});

test("write cookie: no secret → deletes the cookie with the same name, path and attributes", () => {
  for (const client of [HTTP, HTTPS]) {
    for (const base of ["", "/pod"]) {
      const set = writeCookie("secret", 90_000, client, base).replace("secret", "").replace("Max-Age=90", "Max-Age=0");
      assert.equal(writeCookie(undefined, 90_000, client, base), set);
    }
  }
});

test("write cookie: a fraction of a second → Max-Age is rounded down", () => {
  assert.match(writeCookie("secret", 1_999, HTTP, ""), /; Max-Age=1;/);
});

test("read cookies: other cookies and spaces around it → found", () => {
  for (const header of [
    "earmark=abc",
    "a=1; earmark=abc",
    "earmark=abc; a=1",
    "a=1;earmark=abc;b=2",
    "  earmark = abc  ",
    "a; earmark=abc; =x; ;",
    "a=earmark=zzz; earmark=abc",
  ]) {
    assert.deepEqual(readCookies(header, "earmark"), ["abc"], header);
  }
});

test("read cookies: a similar name → not found", () => {
  for (const header of [
    undefined,
    "",
    "earmark",
    "Earmark=abc",
    "earmark2=abc",
    "xearmark=abc",
    "__Host-earmark=abc",
    "__Secure-earmark=abc",
    "a=earmark=abc",
    '"earmark"=abc',
    "ear mark=abc",
  ]) {
    assert.deepEqual(readCookies(header, "earmark"), [], header);
  }
  assert.deepEqual(readCookies("earmark=a; __Host-earmark=b; __Secure-earmark=c", "__Host-earmark"), ["b"]);
});

test("read cookies: the same name twice → both values", () => {
  assert.deepEqual(readCookies("earmark=abc; a=1; earmark=def", "earmark"), ["abc", "def"]);
  assert.deepEqual(readCookies("earmark=abc; earmark=abc", "earmark"), ["abc", "abc"]);
  assert.deepEqual(readCookies("earmark=; earmark=abc", "earmark"), ["", "abc"]);
});

test("read cookies: quotes, equals signs or escapes in the value → kept as they are, up to the next semicolon", () => {
  assert.deepEqual(readCookies("earmark=a=b==; x=1", "earmark"), ["a=b=="]);
  assert.deepEqual(readCookies('earmark="quoted"', "earmark"), ['"quoted"']);
  assert.deepEqual(readCookies("earmark=%61, earmark=b", "earmark"), ["%61, earmark=b"]);
});
