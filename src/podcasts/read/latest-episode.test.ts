import assert from "node:assert/strict";
import { test } from "node:test";
import { LatestEpisode } from "./latest-episode.ts";
import { FeedReader } from "./read-feed.ts";

const BASE = new URL("https://a.example/feed");
const NOW = Date.parse("2026-11-19T12:00:00Z");

function readLatest(document: string, chunkBytes = 64): { readonly latest: string | undefined; readonly read: number } {
  const found = new LatestEpisode(NOW);
  const reader = new FeedReader(BASE, "", undefined, found);
  const bytes = Buffer.from(document);
  let at = 0;
  for (; at < bytes.length && !reader.isDone; at += chunkBytes) reader.write(bytes.subarray(at, at + chunkBytes));
  reader.end();
  const time = found.publishedAt;
  return { latest: time === undefined ? undefined : new Date(time).toISOString().slice(0, 10), read: at };
}

const latestOf = (document: string) => readLatest(document).latest;
const HEAD = '<title>T</title><itunes:image href="https://a.example/i.png"/>';
const item = (date: string) => `<item><title>E</title><pubDate>${date}</pubDate></item>`;
const rss = (items: string) => `<rss><channel>${HEAD}${items}</channel></rss>`;
const feedOf = (...dates: readonly string[]) => rss(dates.map(item).join(""));
/** One a day. */
const days = (first: string, count: number, step: number) =>
  Array.from({ length: count }, (_, index) => new Date(Date.parse(first) + index * step * 86_400_000).toUTCString());

test("latest episode: newest first, oldest first, a pinned one first, in any order → the newest", () => {
  assert.equal(latestOf(feedOf(...days("2026-11-01", 300, -1))), "2026-11-01");
  assert.equal(latestOf(feedOf(...days("2025-11-01", 300, 1))), "2026-08-27");
  assert.equal(latestOf(feedOf("Tue, 01 Jan 2019 08:00:00 GMT", ...days("2026-11-01", 300, -1))), "2026-11-01");
  assert.equal(latestOf(feedOf("2026-10-01", "2026-10-03", "2026-10-02")), "2026-10-03");
  // A season that was published at once, and then one episode after the other.
  assert.equal(latestOf(feedOf(...Array(20).fill("2020-01-01"), ...days("2020-02-01", 10, 7))), "2020-04-04");
});

test("latest episode: newest first → the rest of the feed is not read; oldest first → all of it", () => {
  const [descending, ascending] = [days("2026-11-01", 2_000, -1), days("2010-11-01", 2_000, 1)];
  assert.ok(readLatest(feedOf(...descending)).read < 2_000);
  const text = feedOf(...ascending);
  assert.ok(readLatest(text).read >= text.length);
});

test("latest episode: dates in the future → do not count, however many; the newest before them does", () => {
  assert.equal(latestOf(feedOf("2026-11-20", "2099-01-01", "2026-11-18")), "2026-11-18");
  const scheduled = days("2027-12-01", 50, -1);
  assert.equal(latestOf(feedOf(...scheduled, ...days("2026-11-01", 50, -1))), "2026-11-01");
  assert.equal(latestOf(feedOf(...scheduled)), undefined);
});

test("latest episode: absurd, empty and missing dates → ignored", () => {
  const absurd = ["", "yesterday", "0000-00-00", "Thu, 01 Jan 1970 00:00:00 GMT", "1969-12-31", "99999-01-01", "NaN"];
  for (const date of absurd) {
    assert.equal(latestOf(feedOf(date)), undefined, date);
    assert.equal(latestOf(feedOf(date, "2026-01-02", date)), "2026-01-02", date);
  }
  assert.equal(latestOf(feedOf("9".repeat(100_000), "2026-01-02")), "2026-01-02");
  assert.equal(latestOf(rss("<item><title>E</title></item>".repeat(3) + item("2026-01-02"))), "2026-01-02");
  assert.equal(latestOf(rss("")), undefined);
});

test("latest episode: not a direct child of an item → ignored", () => {
  const nested = "<source><pubDate>2026-10-01</pubDate></source>";
  assert.equal(
    latestOf(rss(`<pubDate>2026-10-01</pubDate><item>${nested}<pubDate>2026-01-02</pubDate></item>`)),
    "2026-01-02",
  );
});

test("latest episode: only part of a feed was read → unknown, unless five older ones in a row follow the newest", () => {
  const cut = (text: string) => text.slice(0, -"</channel></rss>".length);
  assert.equal(latestOf(cut(feedOf(...days("2020-01-01", 100, 1)))), undefined);
  assert.equal(latestOf(cut(feedOf("2020-01-01"))), undefined);
  assert.equal(latestOf(cut(feedOf(...days("2026-01-06", 6, -1)))), "2026-01-06");
});

test("latest episode: Atom, RDF and JSON Feed → found", () => {
  const entry = (date: string) => `<entry><updated>2026-11-11</updated><published>${date}</published></entry>`;
  const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title>${entry("2025-01-01T00:00:00Z")}</feed>`;
  assert.equal(latestOf(atom), "2025-01-01");
  const rdf = `<rdf:RDF xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title></channel>
    <item><dc:date>2025-02-03T00:00:00Z</dc:date></item></rdf:RDF>`;
  assert.equal(latestOf(rdf), "2025-02-03");
  const json = (items: unknown) => JSON.stringify({ version: "https://jsonfeed.org/version/1.1", title: "T", items });
  const dated = ["2020-01-01", "2026-01-02", "2027-01-01", 7, null].map((date_published) => ({ date_published }));
  assert.equal(latestOf(json([...dated, null, "x"])), "2026-01-02");
  for (const items of [undefined, {}, "x", []]) assert.equal(latestOf(json(items)), undefined);
});
