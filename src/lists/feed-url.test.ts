import assert from "node:assert/strict";
import { test } from "node:test";
import { guidOf, MAX_FEED_URL, readFeedUrl } from "./feed-url.ts";

function feedOf(url: string): string {
  const parsed = readFeedUrl(url);
  assert.ok(parsed.kind === "valid", `${url} should be accepted: ${JSON.stringify(parsed)}`);
  return parsed.normalizedUrl;
}

function errorCodeOf(url: string): string {
  const parsed = readFeedUrl(url);
  assert.ok(parsed.kind === "invalid", `${JSON.stringify(url)} should be refused`);
  return parsed.errorCode;
}

const SAME: Record<string, readonly [string, string]> = {
  "http and https": ["http://example.com/f", "https://example.com/f"],
  "the scheme in capitals": ["HTTPS://example.com/f", "https://example.com/f"],
  "the host in capitals": ["https://EXAMPLE.com/F", "https://example.com/F"],
  "a host in its own script and in ASCII": ["https://éxample.com/f", "https://xn--xample-9ua.com/f"],
  "an ideographic full stop in the host": ["https://example。com/f", "https://example.com/f"],
  "circled letters in the host": ["https://ⓔxample.com/f", "https://example.com/f"],
  "a soft hyphen in the host": ["https://ex\u00ADample.com/f", "https://example.com/f"],
  "the default port of https": ["https://example.com:443/f", "https://example.com/f"],
  "the default port of http": ["http://example.com:80/f", "https://example.com/f"],
  "no path and the root": ["https://example.com", "https://example.com/"],
  "a trailing slash": ["https://example.com/f/", "https://example.com/f"],
  "many trailing slashes": ["https://example.com/f///", "https://example.com/f"],
  "a trailing slash before the query": ["https://example.com/f/?a=1", "https://example.com/f?a=1"],
  "a segment of one dot": ["https://example.com/a/./f", "https://example.com/a/f"],
  "a segment of two dots": ["https://example.com/a/../f", "https://example.com/f"],
  "a fragment": ["https://example.com/f#new", "https://example.com/f"],
  "a fragment after the query": ["https://example.com/f?a=1#new", "https://example.com/f?a=1"],
  "an IPv4 address in hexadecimal": ["https://0x7f.1/f", "https://127.0.0.1/f"],
  "an IPv4 address as a single number": ["https://2130706433/f", "https://127.0.0.1/f"],
  "an IPv4 address in octal": ["https://0177.0.0.1/f", "https://127.0.0.1/f"],
  "an IPv4 address with fewer parts": ["https://127.1/f", "https://127.0.0.1/f"],
  "percent-encoded dot segments": ["https://example.com/a/%2e%2E/%2e/f", "https://example.com/f"],
  "a dot segment at the end": ["https://example.com/a/b/..", "https://example.com/a"],
  "dot segments above the root": ["https://example.com/../../f", "https://example.com/f"],
};
for (const [what, [one, other]] of Object.entries(SAME)) {
  test(`feed URL: differs only in ${what} → same feed`, () => assert.equal(feedOf(one), feedOf(other)));
}

const DIFFERENT: Record<string, readonly [string, string]> = {
  "the case of the path": ["https://example.com/F", "https://example.com/f"],
  "the query": ["https://example.com/f?a=1", "https://example.com/f?a=2"],
  "the order of the query": ["https://example.com/f?a=1&b=2", "https://example.com/f?b=2&a=1"],
  "an empty query": ["https://example.com/f?", "https://example.com/f"],
  "a slash at the end of the query": ["https://example.com/f?a=/", "https://example.com/f?a="],
  "a port": ["https://example.com:8443/f", "https://example.com/f"],
  "a default port of the other scheme": ["http://example.com:443/f", "https://example.com/f"],
  "an inner double slash": ["https://example.com/a//f", "https://example.com/a/f"],
  "a letter and its percent-encoding": ["https://example.com/%41", "https://example.com/A"],
  "a non-ASCII character and its percent-encoding": ["https://example.com/é", "https://example.com/%C3%A9"],
  "a quote and its percent-encoding": ['https://example.com/"', "https://example.com/%22"],
  "a segment of three dots": ["https://example.com/a/...", "https://example.com/a"],
  "dot segments in the query": ["https://example.com/f?/../g", "https://example.com/f?/g"],
  "the case of a percent-encoding": ["https://example.com/%2f", "https://example.com/%2F"],
  "the user and password": ["https://ann:secret@example.com/f", "https://example.com/f"],
  "composed and decomposed letters in the path": ["https://example.com/\u00e9", "https://example.com/e\u0301"],
  "sharp s and double s": ["https://faß.de/f", "https://fass.de/f"],
  "a Latin and a Cyrillic a": ["https://apple.com/f", "https://аpple.com/f"],
  www: ["https://www.example.com/f", "https://example.com/f"],
};
for (const [what, [one, other]] of Object.entries(DIFFERENT)) {
  test(`feed URL: differs in ${what} → another feed`, () => assert.notEqual(feedOf(one), feedOf(other)));
}

const REFUSED: Record<string, readonly string[]> = {
  "an empty URL": [""],
  "only whitespace": ["   ", "\t"],
  "text before the scheme": ["xhttps://a.example/f", "view:https://a.example/f"],
  "a URL without a scheme": ["example.com/f", "/f", "//example.com/f"],
  "a URL that only a browser would repair": ["https:example.com/f", "https:/example.com", "https:///f"],
  "a URL without a host": ["https://", "https://?x", "https://#x", "https:///"],
  "a URL with backslashes": [
    "https:\\\\example.com\\f",
    "https://example.com\\f",
    "https://example.com\\@evil.example/",
  ],
  "a javascript: URL": ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)"],
  "a data:, blob: or similar URL": [
    "data:text/xml,<rss/>",
    "blob:https://example.com/1",
    "view-source:https://a.example",
    "about:blank",
  ],
  "a scheme other than http and https": [
    "file:///etc/passwd",
    "ftp://a.example/f",
    "gopher://a.example",
    "mailto:a@b.example",
    "tel:1",
  ],
  "a scheme that podcast apps invented": [
    "feed://a.example/f",
    "itpc://a.example",
    "pcast://a.example",
    "podcast://a.example",
  ],
  "a local entry of a phone app": ["antennapod_local:content://x", "content://x", "magnet:?x", "ipfs://x"],
  "whitespace anywhere": [
    " https://a.example/f",
    "https://a.example/f ",
    "https://a.example/a b",
    "https://a.example/\u00a0",
    "https://a.example/\u3000x",
    "https://a.example/\ufeff",
  ],
  "a line break or tab anywhere": ["https://a.example/\tf", "https://a.example/\r\nf", "ht\ntps://a.example"],
  "a control character anywhere": [
    "https://a.example/\u0000",
    "https://a.example/\u0001",
    "https://a.example/\u007f",
    "https://a.example/\u0085",
    "https://a.example/\u2028",
  ],
  "an encoded NUL": ["https://a.example/%00", "https://a.example/f?x=%00"],
  "a lone surrogate": ["https://a.example/\ud800", "https://a.example/\udc00x"],
  "a bidirectional override in the host": ["https://a\u202eb.example/f"],
  "invalid Punycode in the host": ["https://xn--a/", "https://xn--/", "https://www.xn--a.example/f"],
  "an invalid port": [
    "https://a.example:0/f",
    "https://a.example:65536/",
    "https://a.example:99999/",
    "https://a.example:-1/",
    "https://a.example:abc/",
  ],
  "a host with a label that is empty or too long": [
    `https://${"a.".repeat(127)}example/f`,
    `https://${"a".repeat(64)}.example/f`,
    "https://a..b/f",
    "https://.example/f",
  ],
  "an invalid IP address": ["https://1.2.3.4.5/", "https://256.256.256.256/", "https://[::1%25eth0]/", "https://[::1/"],
};
for (const [what, urls] of Object.entries(REFUSED)) {
  test(`feed URL: ${what} → rejected`, () => {
    for (const url of urls) assert.notEqual(errorCodeOf(url), "");
  });
}

test("feed URL: invalid → error code says why", () => {
  const ERROR_CODES: Record<string, string> = {
    "": "feed-url-missing",
    "https://a.example/ f": "feed-url-whitespace",
    "https://a.example/\ud800": "feed-url-invalid-characters",
    "ftp://a.example/f": "feed-url-not-http",
    "https://a.example/%00": "feed-url-invalid-characters",
    "https://a.example\\f": "feed-url-invalid-characters",
    "https://a..b/f": "feed-url-invalid-host",
    "https://a.example:0/f": "feed-url-invalid-port",
  };
  for (const [url, errorCode] of Object.entries(ERROR_CODES)) assert.equal(errorCodeOf(url), errorCode);
});

test("feed URL: normalized form → unchanged, because stored keys depend on it", () => {
  const FORMS: Record<string, string> = {
    "https://example.com": "example.com",
    "https://EXAMPLE.com/F/": "example.com/F",
    "http://Ann:S@Example.com:80/a/./../b//?Q=/#f": "Ann:S@example.com/b?Q=/",
    "https://a@b@example.com:8443?x#y?z": "a@b@example.com:8443?x",
    "https://example.com#/..": "example.com",
    "https://example.com/a/b/..": "example.com/a",
    "https://example.com/a/b/.": "example.com/a/b",
    "https://example.com/..": "example.com",
    "https://example.com/a//%2E%2e/x": "example.com/a/x",
    "https://example.com/.well-known/x": "example.com/.well-known/x",
  };
  for (const [url, form] of Object.entries(FORMS)) assert.equal(feedOf(url), form);
});

test("feed URL: host or label of the maximum length → accepted; longer → rejected", () => {
  const label = "a".repeat(63);
  const longest = `${label}.${label}.${label}.${"a".repeat(61)}`;
  for (const host of [longest, `${longest}.`, label, `${label}.`]) feedOf(`https://${host}/f`);
  // The limits also apply before conversion to ASCII, which takes long for a long label.
  for (const host of [
    "例".repeat(64),
    `${"\u00ad".repeat(260)}a.example`,
    `a.${encodeURIComponent("例".repeat(64))}.example`,
  ])
    assert.equal(errorCodeOf(`https://${host}/f`), "feed-url-invalid-host");
  feedOf(`https://${encodeURIComponent("例".repeat(20))}.example/f`);
  for (const host of [`${longest}a`, `${longest}a.`, `${label}a`, `${label}a.`])
    assert.equal(errorCodeOf(`https://${host}/f`), "feed-url-invalid-host");
});

test("feed URL: private host or unusual characters → accepted; only fetching checks the address", () => {
  for (const url of [
    "https://localhost/f",
    "https://127.0.0.1/f",
    "https://[::1]/f",
    "https://[::ffff:127.0.0.1]/f",
    "https://10.0.0.1/f",
    "https://169.254.169.254/f",
    "https://example.com./f",
    "https://ann:secret@example.com/f",
    "https://example.com@evil.example/f",
    "https://example.com%2f@evil.example/f",
    "https://example.com/<script>alert(1)</script>",
    'https://example.com/"onmouseover="x',
    "https://example.com/]]>&amp;",
    "https://example.com/%",
    "https://example.com/%zz",
    "https://example.com/f?q=a\\b",
    "https://example.com/👩‍👩‍👧",
    "https://a_b.example/f",
  ]) {
    feedOf(url);
  }
});

test("feed URL: 2,048 characters of any script → accepted; more → rejected", () => {
  const start = "https://example.com/";
  feedOf(start + "a".repeat(MAX_FEED_URL - start.length));
  feedOf(start + "é".repeat(MAX_FEED_URL - start.length));
  feedOf(start + "🎧".repeat(MAX_FEED_URL - start.length));
  for (const letter of ["a", "é", "🎧"])
    assert.equal(errorCodeOf(start + letter.repeat(MAX_FEED_URL - start.length + 1)), "feed-url-too-long");
  for (const repeated of ["a.", "%", "-", "/", "xn--"]) errorCodeOf(start + repeated.repeat(100_000));
});

test("podcast GUID: known feed → same as in podcast directories", () => {
  assert.equal(guidOf("https://podnews.net/rss/"), "9b024349-ccf0-5f69-a609-6b82873eab3c");
  for (const same of ["http://podnews.net/rss", "https://podnews.net/rss///", "HTTPS://podnews.net/rss"])
    assert.equal(guidOf(same), "9b024349-ccf0-5f69-a609-6b82873eab3c");
  assert.equal(guidOf("https://mp3s.nashownotes.com/pc20rss.xml"), "917393e3-1b1e-5cef-ace4-edaa54e1f810");
  assert.equal(guidOf("https://a.example/8"), "214de804-2bfa-5ce1-80c5-b2305be91b49");
  assert.notEqual(guidOf("a.example/?of=https://b.example"), guidOf("a.example/?of=b.example"));
  assert.notEqual(guidOf("https://podnews.net/rss", "whole"), guidOf("https://podnews.net/rss/", "whole"));
});
