import assert from "node:assert/strict";
import { test } from "node:test";
import { type FoundEpisode, keyOfGuid, keyOfMediaUrl, type WantedEpisodes } from "./episodes.ts";
import { FeedReader } from "./read-feed.ts";

const BASE = new URL("https://feeds.example/show");
const wantedOf = (...episodes: readonly (readonly [guid: string, mediaUrl: string])[]): WantedEpisodes => ({
  guids: episodes.map(([guid]) => keyOfGuid(guid)),
  mediaUrls: episodes.map(([, url]) => keyOfMediaUrl(url)),
});

function find(text: string, wanted: WantedEpisodes, chunkSize = 1_000): readonly FoundEpisode[] {
  const reader = new FeedReader(BASE, "", wanted);
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length && !reader.isDone; start += chunkSize)
    reader.write(bytes.subarray(start, start + chunkSize));
  reader.end();
  return reader.episodes.toSorted((one, other) => one.index - other.index);
}

const HEAD = `<title>Show</title><itunes:image href="https://feeds.example/cover.png"/>`;
const rss = (...items: readonly string[]) =>
  `<rss xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>${HEAD}${items.join("")}</channel></rss>`;
const media = (name: string) => `https://cdn.example/${name}.mp3`;
const item = (name: string, more = "") =>
  `<item><title>Episode ${name}</title><guid isPermaLink="false">guid-${name}</guid>
    <pubDate>Tue, 10 Nov 2026 09:30:00 +0100</pubDate><enclosure url="${media(name)}" type="audio/mpeg"/>${more}</item>`;

test("episodes: by GUID, else by media URL → title and date", () => {
  const wanted = wantedOf(
    ["guid-1", media("elsewhere")],
    ["", media("2")],
    ["gone", media("3")],
    ["gone", media("gone")],
  );
  const publishedAt = Date.parse("2026-11-10T08:30:00Z");
  for (const chunkSize of [1, 7, 10_000])
    assert.deepEqual(find(rss(item("1"), item("2"), item("3"), item("4")), wanted, chunkSize), [
      { index: 0, title: "Episode 1", publishedAt },
      { index: 1, title: "Episode 2", publishedAt },
      { index: 2, title: "Episode 3", publishedAt },
    ]);
});

test("episodes: one episode has the GUID and another one the media URL → that with the GUID", () => {
  const wanted = wantedOf(["guid-2", media("1")]);
  assert.equal(find(rss(item("1"), item("2")), wanted)[0]?.title, "Episode 2");
  assert.equal(find(rss(item("2"), item("1")), wanted)[0]?.title, "Episode 2");
});

test("episodes: all are found → the rest of the feed is not read", () => {
  const reader = new FeedReader(BASE, "", wantedOf(["guid-1", media("1")]));
  reader.write(Buffer.from(rss(item("1"), item("2")).replace(/<\/channel>.*$/, "")));
  assert.equal(reader.isDone, true);
  const other = new FeedReader(BASE, "", wantedOf(["guid-9", media("9")]));
  other.write(Buffer.from(`<rss><channel>${HEAD}${item("1")}`));
  assert.deepEqual([other.isDone, other.isHeadDone], [false, true]);
});

test("episodes: URLs that an app has percent-decoded or that have entities → found", () => {
  const items = [`<item><title>A</title><enclosure url="https://cdn.example/a%20b.mp3?x=1&amp;y=2"/></item>`];
  for (const url of ["https://cdn.example/a%20b.mp3?x=1&y=2", "https://cdn.example/a b.mp3?x=1&y=2"])
    assert.equal(find(rss(...items), wantedOf(["", url]))[0]?.title, "A");
});

test("episodes: Atom, RDF, Media RSS and JSON Feed → found", () => {
  const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Show</title><entry><id>urn:1</id><title type="html">A &amp;amp; B</title>
    <link rel="alternate" href="https://x.example/"/><link href="${media("1")}" rel="enclosure"/>
    <updated>2026-11-12T00:00:00Z</updated><published>2026-11-10T08:30:00Z</published></entry></feed>`;
  const publishedAt = Date.parse("2026-11-10T08:30:00Z");
  for (const wanted of [wantedOf(["urn:1", ""]), wantedOf(["", media("1")])])
    assert.deepEqual(find(atom, wanted), [{ index: 0, title: "A & B", publishedAt }]);
  const rdf = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><channel><title>S</title></channel>
    <item><title>R</title><media:group><media:content url="${media("1")}"/></media:group></item></rdf:RDF>`;
  assert.deepEqual(find(rdf, wantedOf(["", media("1")])), [{ index: 0, title: "R" }]);
  const json = JSON.stringify({
    version: "https://jsonfeed.org/version/1.1",
    title: "S",
    items: [null, { id: 7, title: "J", date_published: "2026-11-10T08:30:00Z", attachments: [1, { url: media("1") }] }],
  });
  for (const wanted of [wantedOf(["7", ""]), wantedOf(["", media("1")])])
    assert.deepEqual(find(json, wanted), [{ index: 0, title: "J", publishedAt }]);
});

test("episodes: hostile titles and dates → plain text on one line, or none", () => {
  const titled = (title: string, more = "") =>
    find(rss(`<item><guid>1</guid>${title}${more}</item>`), wantedOf(["1", ""]))[0];
  for (const [title, expected] of [
    ["<title><![CDATA[<b>Bold</b> &amp; <script>alert(1)</script>safe]]></title>", "Bold & safe"],
    ["<title>&lt;img src=x onerror=alert(1)&gt;Hi</title>", "Hi"],
    ["<title>a\u202eb\u2066c\nd\te</title>", "abc d e"],
    [`<title>${"x".repeat(100_000)}</title>`, "x".repeat(300)],
    ["<title> </title><itunes:title>Other</itunes:title>", "Other"],
    ["<itunes:title>Other</itunes:title><title>First</title><title>Second</title>", "First"],
    ["<title>one <b>two</b></title>", "one two"],
  ] as const)
    assert.equal(titled(title)?.title, expected);
  for (const title of ["", "<title/>", "<title> </title>", "<title>&lt;br&gt;</title>"])
    assert.equal(titled(title), undefined, title);
  for (const date of ["", "yesterday", "-1", "9".repeat(1_000), "Tue, 99 Nov 2026", "1969-01-01", "+020000-01-01"])
    assert.deepEqual(
      Object.keys(titled("<title>T</title>", `<pubDate>${date}</pubDate>`) ?? {}),
      ["index", "title"],
      date,
    );
});

test("episodes: looked for or not → the same metadata", () => {
  const late = `<itunes:author>Late</itunes:author><image><url>https://x.example/late.png</url></image>`;
  for (const text of [rss(item("1"), late), `<rss><channel><title>S</title>${item("1")}${late}</channel></rss>`]) {
    const [plain, searching] = [new FeedReader(BASE), new FeedReader(BASE, "", wantedOf(["none", ""]))];
    for (const reader of [plain, searching]) reader.write(Buffer.from(text));
    assert.deepEqual(searching.end(), plain.end());
  }
});

test("episodes: 20,000 episodes and 2,000 wanted → found in seconds", () => {
  const description = `<description><![CDATA[<p>${"words ".repeat(100)}</p>]]></description><itunes:duration>1</itunes:duration>`;
  const text = rss(...Array.from({ length: 20_000 }, (_, index) => item(String(index), description)));
  const wanted = wantedOf(
    ...Array.from({ length: 2_000 }, (_, index) => [`guid-${10 * index}`, media(String(10 * index))] as const),
  );
  const started = performance.now();
  const found = find(text, wanted, 64 * 1024);
  assert.equal(found.length, 2_000);
  assert.equal(found[1_999]?.title, "Episode 19990");
  assert.ok(performance.now() - started < 20_000);
});
