import assert from "node:assert/strict";
import { test } from "node:test";
import { cookieName, readCookies, writeCookie } from "./cookies.ts";

const HTTP = { networks: ["127.0.0.1"], isHttps: false, scheme: undefined, host: undefined };
const HTTPS = { ...HTTP, isHttps: true };

test("the name of the cookie holds the browser to what can be promised", () => {
  assert.equal(cookieName(HTTP, ""), "earmark");
  assert.equal(cookieName(HTTP, "/pod"), "earmark");
  assert.equal(cookieName(HTTPS, ""), "__Host-earmark");
  assert.equal(cookieName(HTTPS, "/pod"), "__Secure-earmark");
});

test("a cookie is for this host and path alone, out of reach of scripts, and not for other sites", () => {
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
  // A browser drops a cookie of such a name if it has a domain, or __Host- another path than /.
  for (const cookie of written) assert.doesNotMatch(cookie, /domain/i);
});

test("a cookie is forgotten under the name, path and attributes under which it was kept", () => {
  for (const client of [HTTP, HTTPS]) {
    for (const base of ["", "/pod"]) {
      const kept = writeCookie("secret", 90_000, client, base).replace("secret", "").replace("Max-Age=90", "Max-Age=0");
      assert.equal(writeCookie(undefined, 90_000, client, base), kept);
    }
  }
});

test("the age of a cookie is in whole seconds, never longer than the session", () => {
  assert.match(writeCookie("secret", 1_999, HTTP, ""), /; Max-Age=1;/);
});

test("a cookie is found among others, wherever it stands", () => {
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

test("a cookie of a similar name is another one", () => {
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

test("every value under the name is found, so that one that was slipped in can be noticed", () => {
  assert.deepEqual(readCookies("earmark=abc; a=1; earmark=def", "earmark"), ["abc", "def"]);
  assert.deepEqual(readCookies("earmark=abc; earmark=abc", "earmark"), ["abc", "abc"]);
  assert.deepEqual(readCookies("earmark=; earmark=abc", "earmark"), ["", "abc"]);
});

test("a value is taken as it is, up to the next semicolon", () => {
  assert.deepEqual(readCookies("earmark=a=b==; x=1", "earmark"), ["a=b=="]);
  assert.deepEqual(readCookies('earmark="quoted"', "earmark"), ['"quoted"']);
  assert.deepEqual(readCookies("earmark=%61, earmark=b", "earmark"), ["%61, earmark=b"]);
});
