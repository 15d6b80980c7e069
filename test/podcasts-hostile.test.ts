import assert from "node:assert/strict";
import type { RequestListener, ServerResponse } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import sharp from "sharp";
import { Fetcher } from "../src/podcasts/fetcher.ts";
import { startFeeds, writeRss } from "./support/feeds.ts";
import { startFetching } from "./support/fetching.ts";
import { listen } from "./support/listen.ts";
import { png } from "./support/png.ts";
import { startServer } from "./support/server.ts";

/** Feeds of hostile or careless publishers, from their servers to the podcast that subscribers see. */

const TIMEOUTS = { connectMs: 10_000, firstByteMs: 10_000, totalMs: 1_000 };
const MIB = 1024 * 1024;

async function start(timeouts?: typeof TIMEOUTS) {
  const { store } = await startServer();
  const publisher = await startFeeds();
  // Not even the rest of this machine's network is allowed.
  const options = { networks: ["127.0.0.1/32"], userAgent: "Earmark/0 (test)", ...(timeouts && { timeouts }) };
  const fetching = startFetching(store, { createFetcher: async () => new Fetcher(options) });
  const closings: Promise<unknown>[] = [];
  /** The podcast of a feed that is served like this. */
  const podcastOf = async (path: string, respond: RequestListener) => {
    publisher.pages.set(path, (request, response) => {
      closings.push(new Promise((resolve) => request.socket.once("close", resolve)));
      respond(request, response);
    });
    await fetching.subscribe([publisher.url + path]);
    return fetching.fetched(publisher.url + path);
  };
  return { ...fetching, publisher, podcastOf, allClosed: () => Promise.all(closings) };
}

const send =
  (body: string | Buffer, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(200, headers).end(body);
const titled = (title: string) => writeRss({ title });

test("hostile feeds: text → the title that a reader expects, or none", async () => {
  const { podcastOf, errors, allClosed } = await start();
  const utf16 = Buffer.from(`\ufeff${titled("Grüße").replace("?>", ' encoding="UTF-16"?>')}`, "utf16le");
  const cases: Readonly<Record<string, readonly [RequestListener, title: string | undefined]>> = {
    "/image-type": [send(titled("T"), { "content-type": "image/png" }), "T"],
    "/html-type": [send(titled("T"), { "content-type": "text/html" }), "T"],
    "/html": [send("<!doctype html><title>Page</title><p>Hello", { "content-type": "application/rss+xml" }), undefined],
    "/empty": [send(""), undefined],
    "/latin-labeled-utf8": [
      send(Buffer.from(titled("Grüße"), "latin1"), { "content-type": "text/xml; charset=utf-8" }),
      "Grüße",
    ],
    "/utf8-labeled-latin": [send(titled("Grüße"), { "content-type": "text/xml; charset=iso-8859-1" }), "Grüße"],
    "/utf16-le": [send(utf16), "Grüße"],
    "/utf16-be": [send(Buffer.from(utf16).swap16()), "Grüße"],
    "/cdata": [send(titled("<![CDATA[A & B <i>C</i>]]>")), "A & B C"],
    "/entities": [send(titled("Q&amp;A &#8211; &amp;eacute; &lt;b&gt;x&lt;/b&gt; R&B")), "Q&A – é x R&B"],
    "/expansion": [
      send(`<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>${titled("T &b;").replace(/<\?.*?\?>/, "")}`),
      "T &b;",
    ],
    "/control": [send(titled("a\u0007b\u0000c")), "a b c"],
    "/bidi": [send(titled("\u202egnp.exe\u2069 T")), "gnp.exe T"],
    "/script": [send(titled("&lt;script&gt;alert(1)&lt;/script&gt;T")), "T"],
    "/long": [send(titled("W".repeat(MIB - 10_000))), "W".repeat(300)],
  };
  for (const [path, [respond, title]] of Object.entries(cases)) {
    const podcast = await podcastOf(path, respond);
    assert.deepEqual([podcast.title, podcast.status], [title, title === undefined ? "failing" : "ok"], path);
  }
  assert.deepEqual(errors, []);
  await allClosed();
});

test("hostile feeds: endless, slow or compressed many times → stopped; what is known by then is used", async () => {
  const { podcastOf, errors, allClosed } = await start(TIMEOUTS);
  let sent = 0;
  const endless = (before: string, piece: string): RequestListener => {
    return (_request, response: ServerResponse) => {
      response.write(before);
      const chunk = piece.repeat(Math.ceil(65_536 / piece.length));
      const write = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
      };
      response.on("drain", write);
      write();
    };
  };
  const item = `<item><title>${"x".repeat(1_000)}</title></item>`;
  const head = "<rss><channel><title>T</title>";
  const bomb = gzipSync(Buffer.alloc(256 * MIB, " "), { level: 1 });
  const gzip = { "content-encoding": "gzip" };
  const cases: Readonly<Record<string, readonly [RequestListener, title: string | undefined]>> = {
    "/endless-items": [endless(head, item), "T"],
    "/endless-untitled": [endless("<rss><channel>", item), undefined],
    "/endless-blanks": [endless("", " "), undefined],
    "/bomb": [send(bomb, gzip), undefined],
    "/bomb-of-items": [send(gzipSync(head + item.repeat(50_000)), gzip), "T"],
    "/bomb-in-bomb": [send(gzipSync(bomb), { "content-encoding": "gzip, gzip" }), undefined],
    "/drip": [
      (_request, response) => {
        response.write(head);
        const timer = setInterval(() => response.write(" "), 50);
        response.on("close", () => clearInterval(timer));
      },
      undefined,
    ],
  };
  for (const [path, [respond, title]] of Object.entries(cases)) {
    sent = 0;
    const podcast = await podcastOf(path, respond);
    assert.deepEqual([podcast.title, podcast.status], [title, title === undefined ? "failing" : "ok"], path);
    // What the sockets buffer may have been sent beyond the limit.
    assert.ok(sent < 16 * MIB, `${path}: ${sent}`);
  }
  assert.deepEqual(errors, []);
  await allClosed();
});

test("hostile feeds: redirects in circles, to files and to other hosts of the network → failing, nobody is contacted", async () => {
  const { podcastOf, errors, allClosed } = await start();
  let reached = 0;
  const other = await listen((_request, response) => {
    reached += 1;
    response.end(titled("secret"));
  }, "127.0.0.2");
  const { port } = new URL(other);
  for (const [index, location] of [
    "/redirect-0",
    "file:///etc/passwd",
    "http://169.254.169.254/latest/meta-data/",
    `http://127.0.0.2:${port}/`,
    `http://[::ffff:127.0.0.2]:${port}/`,
    `http://[::ffff:7f00:2]:${port}/`,
    `http://2130706434:${port}/`,
  ].entries()) {
    const redirect: RequestListener = (_request, response) => response.writeHead(302, { location }).end();
    const { title, status } = await podcastOf(`/redirect-${index}`, redirect);
    assert.deepEqual([title, status], [undefined, "failing"], location);
  }
  assert.equal(reached, 0);
  assert.deepEqual(errors, []);
  await allClosed();
});

test("hostile feeds: files that are no images, truncated or too large ones → no artwork, the title stays", async () => {
  const { podcastOf, publisher, errors, allClosed } = await start();
  const square = (size: number) =>
    sharp({ create: { width: size, height: size, channels: 3, background: "teal" } }).jpeg();
  const jpeg = await square(900).toBuffer();
  const images: Readonly<Record<string, readonly [Buffer, hasArtwork: boolean]>> = {
    "/svg.jpg": [Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"), false],
    "/html.jpg": [Buffer.from("<!doctype html><title>404</title>"), false],
    "/truncated.jpg": [jpeg.subarray(0, jpeg.length / 2), false],
    "/empty.jpg": [Buffer.alloc(0), false],
    "/huge.png": [png(30_000, 30_000), false],
    "/one.jpg": [await square(1).toBuffer(), true],
    "/whole.jpg": [jpeg, true],
  };
  for (const [path, [bytes, hasArtwork]] of Object.entries(images)) {
    publisher.pages.set(path, send(bytes, { "content-type": "image/jpeg" }));
    const feed = writeRss({ title: path, image: publisher.url + path });
    const { title, status, artwork } = await podcastOf(`/feed-of${path}`, send(feed));
    assert.deepEqual([title, status, artwork !== undefined], [path, "ok", hasArtwork], path);
  }
  assert.deepEqual(errors, []);
  await allClosed();
});
