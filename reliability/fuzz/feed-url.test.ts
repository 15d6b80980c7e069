import assert from "node:assert/strict";
import { test } from "node:test";
import { domainToUnicode } from "node:url";
import { guidOf, MAX_FEED_URL, readFeedUrl } from "../../src/lists/feed-url.ts";
import { fuzz } from "./fuzz.ts";
import { type Corpus, inputs } from "./inputs.ts";

const HOST = "feeds.example";

const CORPUS: Corpus = {
  isBytes: false,
  maxLength: 20_000,
  seeds: [
    "",
    `https://${HOST}`,
    `HTTP://${HOST.toUpperCase()}:80/Show/`,
    `https://ann:secret@${HOST}:8443/a/./b/../c//?q=1&r=%2F#new`,
    `https://${HOST}/%2e%2E/%2e/f?x=a\\b`,
    `https://${HOST}/f?`,
    `https://${HOST}\\@evil.example/`,
    `https://one@two@${HOST}/`,
    `https://${HOST}%2f@evil.example/`,
    "https://[::1]/f",
    "https://[::ffff:127.0.0.1]:80/f",
    "https://[::1%25eth0]/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://2130706433/",
    "https://256.256.256.256/",
    "https://éxample.com/é",
    "https://xn--xample-9ua.com/f",
    "https://example。com/",
    "https://ⓔxample.com/",
    "https://ex\u00adample.com/",
    "https://faß.de/",
    "https://xn--a/",
    "https://a\u202eb.example/",
    "https://a..b/",
    "https://example.com./f///",
    `https://${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.example/`,
    `https://${HOST}:0/`,
    `https://${HOST}:65535/`,
    `https://${HOST}/%00`,
    `https://${HOST}/\ud83c\udfa7`,
    `https://${HOST}/\ud800`,
    `https://${HOST}/a b`,
    "https:feeds.example/f",
    "https:///f",
    "//feeds.example/f",
    "feed://feeds.example/f",
    "javascript:alert(1)",
    "antennapod_local:content://x",
    `https://${HOST}/${"a".repeat(MAX_FEED_URL - 22)}`,
    `https://${HOST}/${"\ud83c\udfa7".repeat(MAX_FEED_URL - 22)}`,
  ],
  words: [
    "http://",
    "https://",
    "..",
    "/../",
    "/./",
    "/.%2E/",
    "/%2e",
    "/a/b/c",
    "%2e",
    "%2F",
    "%00",
    "%",
    "@",
    ":",
    ":80",
    ":443",
    "?",
    "#",
    "\\",
  ]
    .concat([
      "xn--",
      "xn--xample-9ua",
      "[::1]",
      "。",
      "ß",
      "\u00ad",
      "\u202e",
      "\u200d",
      "\ufeff",
      "localhost",
      "//",
      ".",
    ])
    .concat(["é", "e\u0301", "\ud83c\udfa7", "\ud800", "\u0000", "\t", "0x7f.1", "127.1", "ⓔ", "Ａ", "a".repeat(64)]),
};

test("fuzz: any feed URL → accepted and normalized as docs/api.md says", () => fuzz(CORPUS, inputs(CORPUS), check));

function check(input: string): void {
  const parsed = readFeedUrl(input);
  const reason = findReason(input);
  if ("errorCode" in parsed) {
    assert.ok(reason !== undefined, `rejected (${parsed.errorCode}) without a reason`);
    return;
  }
  assert.equal(reason, undefined, `accepted despite: ${reason}`);
  checkNormalForm(input, parsed.normalizedUrl);
  assert.match(guidOf(input), /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
}

/** An independent implementation of the rules in docs/api.md: why a feed URL must be rejected. */
function findReason(text: string): string | undefined {
  if (text === "") return "no characters";
  if (Array.from(text).length > MAX_FEED_URL) return "too many characters";
  if (/[\s\p{Cc}]/u.test(text)) return "white space or a control character";
  if (/\p{Surrogate}/u.test(text)) return "half a surrogate pair";
  if (!/^(http|https):\/\/(?![/?#]|$)/i.test(text)) return "no scheme of the web, or no host";
  if (/%00/.test(text)) return "an encoded NUL";
  if (/^[^?#]*\\/.test(text)) return "a backslash before the query";
  const written = text
    .replace(/^[^/]*\/\//, "")
    .replace(/[/?#].*$/s, "")
    .replace(/^.*@/s, "")
    .replaceAll(/%[0-9a-f]{2}/gi, "x");
  if (written.length > 259 || /[^.:\u3002\uff0e\uff61]{64}/.test(written))
    return "a host beyond the limits of DNS as written";
  if (!URL.canParse(text)) return "no form of a URL";
  const { hostname, port } = new URL(text);
  if (port !== "" && Number(port) === 0) return "port 0";
  if (hostname.startsWith("[")) return undefined;
  if (!/^(?=.{1,254}$)[^.]{1,63}(\.[^.]{1,63})*\.?$/.test(hostname) || hostname.replace(/\.$/, "").length > 253)
    return "a host that DNS cannot know";
  const broken = hostname.split(".").find((label) => label.startsWith("xn--") && domainToUnicode(label) === label);
  return broken === undefined ? undefined : "a host that cannot be decoded";
}

/** The normal form has the same target, is its own normal form, and is shared by equivalent spellings. */
function checkNormalForm(text: string, feed: string): void {
  const scheme = text.slice(0, text.indexOf("//") + 2);
  const [given, normal] = [new URL(text), new URL(scheme + feed)];
  for (const part of ["host", "username", "password", "search", "protocol"] as const)
    assert.equal(normal[part], given[part], `the normal form ${feed} leads elsewhere`);
  assert.equal(normal.pathname.replace(/\/+$/, ""), given.pathname.replace(/\/+$/, ""), `the path of ${feed}`);
  assert.equal(normal.hash, "", "the normal form has a fragment");
  const path = feed.replace(/\?.*$/s, "").split("/").slice(1);
  const dots = path.find((segment) => /^(\.|%2e){1,2}$/i.test(segment));
  assert.equal(dots, undefined, "the normal form has dots that stand for another place");
  const other = given.protocol === "https:" ? "http://" : "https://";
  const variants = [scheme + feed, `${text}#x`, `${scheme.toUpperCase()}${text.slice(scheme.length)}`];
  if (given.port === "" && !/:\d*([/?#]|$)/.test(text.slice(scheme.length)))
    variants.push(other + text.slice(scheme.length));
  if (!/[?#]/.test(text)) variants.push(`${text}/`);
  for (const variant of variants) {
    const again = readFeedUrl(variant);
    if ("errorCode" in again) assert.ok(Array.from(variant).length > MAX_FEED_URL, `${variant}: ${again.errorCode}`);
    else assert.equal(again.normalizedUrl, feed, `${variant} is another feed`);
  }
}
