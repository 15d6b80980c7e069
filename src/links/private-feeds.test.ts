import assert from "node:assert/strict";
import { test } from "node:test";
import { isPrivateUrl } from "./private-feeds.ts";
import { PRIVATE_HOSTS } from "./private-hosts.ts";

const PUBLIC = [
  "https://podnews.net/rss",
  "https://feeds.example/",
  "http://feeds.example:8080/a/b/c.xml?format=mp3&page=2",
  "https://feeds.example/international-broadcasting-corporation/feed.xml",
  "https://feeds.example/the-daily-show-2024-season-12/rss",
  "https://feeds.example/show/1234567890123456789/feed",
  "https://feeds.example/99-percent-invisible/episodes-2023",
  "https://feeds.example/S01E02/feed",
  "https://feeds.example/uncharacteristicallylongword",
  "https://feeds.example/?id=123456789012&name=wunderbaresabenteuer",
  "https://xn--bcher-kva12345678-abc.example/feed",
  "https://éèêëàâäôöùûüç.example/feed",
  "https://192.168.100.200:8080/feed",
  "http://[2001:db8:1234:5678:90ab:cdef:1234:5678]/feed",
  "https://feeds.example/podcast%20mit%20umlaut%20%C3%A4%C3%B6%C3%BC/feed.xml",
  "https://api.substack.com/feed/podcast/69345.rss",
  "https://feeds.acast.com/public/shows/the-show",
  "https://notpatreon.com/rss",
  "https://patreon.com.example/rss",
  "https://feeds.example/privateer/rss",
];

const PRIVATE = [
  "https://ann:secret@feeds.example/rss",
  "https://ann@feeds.example/rss",
  "https://:secret@feeds.example/rss",
  "https://feeds.example/550e8400-e29b-41d4-a716-446655440000/rss",
  "https://feeds.example/550E8400-E29B-41D4-A716-446655440000.xml",
  "https://feeds.example/feed?id=550e8400-e29b-41d4-a716-446655440000",
  "https://feeds.example/feed-550e8400-e29b-41d4-a716-446655440000",
  "https://550e8400-e29b-41d4-a716-446655440000.feeds.example/rss",
  "https://feeds.example/0123456789abcdef/rss",
  "https://feeds.example/rss?token=0123456789ABCDEF0123",
  "https://feeds.example/rss?0123456789abcdef",
  "https://0123456789abcdef.feeds.example/rss",
  "https://feeds.example/deadbeefdeadbeef",
  "https://feeds.example/abcdefghijk1",
  "https://feeds.example/a1b2c3d4e5f6.rss",
  "https://feeds.example/Zm9vYmFyMTIz",
  "https://feeds.example/rss?auth=Zm9vYmFyMTIz",
  "https://feeds.example/rss?auth=Zm9v-YmF1_MTIz4",
  "https://feeds.example/rss?a=1&key=xYz12345678q#x",
  "https://feeds.example/rss#key=xYz12345678q",
  "https://feeds.example/%61%31b2c3d4e5f6/rss",
  "https://u1v2w3x4y5z6.feeds.example/rss",
  "https://www.patreon.com/rss/show?auth=1",
  "https://PATREON.com./rss",
  "https://show.supercast.com/feed",
  "https://show.supportingcast.fm/rss",
  "https://api.substack.com/feed/podcast/2252/private/x.rss",
  "https://feeds.acast.com/private/shows/the-show",
  "not a URL",
  `https://feeds.example/${"a/".repeat(300)}`,
];

test("private feeds: words and numbers → public", () => {
  for (const url of PUBLIC) assert.equal(isPrivateUrl(url), false, url);
});

test("private feeds: names, passwords, random texts, known hosts → private", () => {
  for (const url of PRIVATE) assert.equal(isPrivateUrl(url), true, url);
  for (const [host, path = "/"] of PRIVATE_HOSTS) {
    assert.equal(isPrivateUrl(`https://${host}${path}rss`), true, host);
    assert.equal(isPrivateUrl(`https://show.${host}${path}rss`), true, host);
  }
});

test("private feeds: a long URL → examined in linear time", () => {
  const started = performance.now();
  for (const part of ["0", "a", "-", "a1", "%", "0-", "a/"])
    isPrivateUrl(`https://feeds.example/${part.repeat(8_000)}`);
  assert.ok(performance.now() - started < 500);
});
