import assert from "node:assert/strict";
import { test } from "node:test";
import { createAddressCheck } from "../fetch/public-address.ts";
import { decodePage, readPage } from "./read-page.ts";

const HOME = "https://site.example/show/";
const isPublic = createAddressCheck([]);
const link = (href: string, more = "") => `<link rel="alternate" type="application/rss+xml" href="${href}"${more}>`;
const feedsOf = (html: string, url = HOME) => readPage(html, new URL(url), isPublic);
const urlsOf = (html: string, url = HOME) => feedsOf(html, url).map(({ feedUrl }) => feedUrl);

test("page: links to feeds, in any spelling → found in order, once each", () => {
  const html = `<!doctype html><html><head>
    <link rel=stylesheet href=/style.css type=text/css>
    <link rel="alternate" type="application/json+oembed" href="/oembed">
    <LINK HREF='/rss' TITLE='A &amp; B &quot;daily&quot;' TYPE='Application/RSS+XML; charset=utf-8' REL='home Alternate'/>
    <link rel="alternate" type="application/atom+xml" href="atom.xml?a=1&amp;b=2#top">
    ${link("http://site.example/rss/")}${link("")}
    </head><body>${link("//other.example/feed")}</body>`;
  assert.deepEqual(feedsOf(html), [
    { feedUrl: "https://site.example/rss", title: 'A & B "daily"' },
    { feedUrl: "https://site.example/show/atom.xml?a=1&b=2" },
    { feedUrl: "https://other.example/feed" },
  ]);
});

test("page: several base elements → only the first with an href counts, if it is http", () => {
  assert.deepEqual(urlsOf(`<base href="/b/"><base href="/c/">${link("rss")}`), ["https://site.example/b/rss"]);
  assert.deepEqual(urlsOf(`<base target=_top><base href="https://cdn.example">${link("rss")}`), [
    "https://cdn.example/rss",
  ]);
  assert.deepEqual(urlsOf(`<base href="javascript:alert(1)">${link("rss")}`), ["https://site.example/show/rss"]);
});

test("page: links that do not declare a feed → ignored", () => {
  for (const html of [
    `<!-- ${link("/rss")} -->`,
    `<script>const html = '${link("/rss")}';</script>`,
    `<textarea>${link("/rss")}</textarea>`,
    `<style>${link("/rss")}</style>`,
    `<link rel="alternate stylesheet" type="text/css" href="/rss">`,
    `<link rel="notalternate" type="application/rss+xml" href="/rss">`,
    `<link rel="alternate" type="application/rss+xml">`,
    `<a rel="alternate" type="application/rss+xml" href="/rss">`,
    `<link rel="alternate" type="application/rss+xml" href="/rss`,
    `<linkrel="alternate" type="application/rss+xml" href="/rss">`,
    "",
    "\0\ufffd<<<>>>&&&;;;",
  ])
    assert.deepEqual(feedsOf(html), [], html);
});

test("page: links outside the public web → left out; credentials → removed", () => {
  const schemes = ["javascript:alert(1)", "data:application/rss+xml,<rss/>", "file:///etc/passwd", "ftp://a.example/"];
  const own = ["http://127.0.0.1/rss", "http://[::1]/rss", "http://10.1.2.3:8080/", "http://2130706433/rss"];
  const names = [
    "http://localhost/rss",
    "http://a.localhost./rss",
    "http://169.254.169.254/latest/",
    "http://[::ffff:10.0.0.1]/",
  ];
  const broken = ["http://", "https://a b.example/", "http://%00.example/", `https://a.example/${"x".repeat(2_100)}`];
  assert.deepEqual(urlsOf([...schemes, ...own, ...names, ...broken].map((href) => link(href)).join("")), []);
  assert.deepEqual(urlsOf(link("/rss"), "http://192.168.1.5/"), [], "the page itself is not public");
  assert.deepEqual(urlsOf(link("https://ann:secret@a.example/rss")), ["https://a.example/rss"]);
  assert.deepEqual(urlsOf(link("http://93.184.216.34/rss")), ["http://93.184.216.34/rss"]);
});

test("page: 10,000 links, very long attributes and titles → the first 20 feeds, short titles", () => {
  const links = Array.from({ length: 10_000 }, (_, index) => link(`/${index}`)).join("");
  assert.deepEqual(
    urlsOf(links),
    Array.from({ length: 20 }, (_, index) => `https://site.example/${index}`),
  );
  const long = "x".repeat(1024 * 1024);
  const [feed] = feedsOf(`<link ${"a=b ".repeat(100_000)}${link("/rss", ` title="${long}"`).slice(6)}`);
  assert.deepEqual([feed?.feedUrl, feed?.title?.length], ["https://site.example/rss", 300]);
  assert.deepEqual(feedsOf(`<link ${long}="${long}" rel="alternate" type="application/rss+xml" href="${long}">`), []);
  const [shown] = feedsOf(link("/rss", ' title="\u202egnp.exe &lt;b&gt;x&lt;/b&gt;&#0;&#x202e;"'));
  assert.equal(shown?.title, "gnp.exe x\ufffd");
});

test("page on Apple Podcasts: the first feed in its data → found; the same data on another site → not found", () => {
  const data = (url: string) => `<script type="application/json" id="serialized-server-data">[{"feedUrl":"${url}"},
    {"feedUrl":"https://others.example/rss"}]</script>`;
  const page = "https://podcasts.apple.com/us/podcast/x/id1";
  assert.deepEqual(urlsOf(data("https:\\/\\/a.example/rss?x=1\\u0026y=2"), page), ["https://a.example/rss?x=1&y=2"]);
  assert.deepEqual(urlsOf(data("https://a.example/rss")), []);
  for (const url of ["javascript:alert(1)", "http://127.0.0.1/rss", "\\", "\\u12", "x".repeat(5_000)])
    assert.deepEqual(
      urlsOf(data(url), page).filter((each) => !each.startsWith("https://others.example")),
      [],
      url,
    );
});

test("page: declared or wrong encodings → correct titles", () => {
  const html = (meta: string) => `<html><head>${meta}${link("/rss", ' title="Grüße"')}`;
  const titleOf = (bytes: Buffer, type?: string) => feedsOf(decodePage(bytes, type))[0]?.title;
  const latin = (meta: string) => Buffer.from(html(meta), "latin1");
  assert.equal(titleOf(Buffer.from(html(""))), "Grüße");
  assert.equal(titleOf(Buffer.from(html("")), "text/html; charset=iso-8859-1"), "Grüße");
  assert.equal(titleOf(latin('<meta charset="utf-8">'), "text/html"), "Grüße");
  assert.equal(titleOf(latin(""), "text/html; charset=utf-8"), "Grüße");
  assert.equal(titleOf(latin("<meta charset=nonsense>"), "text/html; charset=unknown"), "Grüße");
  const japanese = Buffer.concat([
    Buffer.from('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">'),
    Buffer.from('<link rel=alternate type=application/rss+xml href=/rss title="'),
    Buffer.from([0x93, 0xfa, 0x96, 0x7b]),
    Buffer.from('">'),
  ]);
  assert.equal(titleOf(japanese, "text/html"), "日本");
});
