import type { IncomingMessage, RequestListener } from "node:http";
import { gzipSync } from "node:zlib";
import sharp from "sharp";
import type { FailureCode } from "../../src/podcasts/failure.ts";
import { writeRss } from "./feeds.ts";
import { textBomb } from "./image-bombs.ts";
import { listen } from "./listen.ts";
import { png } from "./png.ts";

/** Feeds of hostile or careless publishers by name, and what subscribers should see of them. */
export type HostileFeeds = Readonly<Record<string, HostileFeed>>;

export interface HostileFeed {
  readonly respond: RequestListener;
  /** Undefined if the feed cannot be read. */
  readonly title: string | undefined;
  /** Undefined if the feed can be read, or may fail in different ways. */
  readonly failure?: FailureCode;
  readonly hasArtwork?: boolean;
  /** Day of the newest episode. */
  readonly latest?: string;
}

const MIB = 1024 * 1024;
const GZIP = { "content-encoding": "gzip" };

const send =
  (body: string | Buffer, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_request, response) =>
    response.writeHead(200, headers).end(body);
const titled = (title: string) => writeRss({ title });
const utf16 = Buffer.from(`\ufeff${titled("Grüße").replace("?>", ' encoding="UTF-16"?>')}`, "utf16le");

export const TEXTS: HostileFeeds = {
  "image-type": { respond: send(titled("T"), { "content-type": "image/png" }), title: "T" },
  "html-type": { respond: send(titled("T"), { "content-type": "text/html" }), title: "T" },
  html: {
    respond: send("<!doctype html><title>Page</title><p>Hello", { "content-type": "application/rss+xml" }),
    title: undefined,
    failure: "not-a-feed",
  },
  empty: { respond: send(""), title: undefined, failure: "not-a-feed" },
  "latin-labeled-utf8": {
    respond: send(Buffer.from(titled("Grüße"), "latin1"), { "content-type": "text/xml; charset=utf-8" }),
    title: "Grüße",
  },
  "utf8-labeled-latin": {
    respond: send(titled("Grüße"), { "content-type": "text/xml; charset=iso-8859-1" }),
    title: "Grüße",
  },
  "utf16-le": { respond: send(utf16), title: "Grüße" },
  "utf16-be": { respond: send(Buffer.from(utf16).swap16()), title: "Grüße" },
  cdata: { respond: send(titled("<![CDATA[A & B <i>C</i>]]>")), title: "A & B C" },
  entities: {
    respond: send(titled("Q&amp;A &#8211; &amp;eacute; &lt;b&gt;x&lt;/b&gt; R&B")),
    title: "Q&A – é x R&B",
  },
  expansion: {
    respond: send(
      `<!DOCTYPE rss [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>${titled("T &b;").replace(/<\?.*?\?>/, "")}`,
    ),
    title: "T &b;",
  },
  control: { respond: send(titled("a\u0007b\u0000c")), title: "a b c" },
  bidi: { respond: send(titled("\u202egnp.exe\u2069 T")), title: "gnp.exe T" },
  script: { respond: send(titled("&lt;script&gt;alert(1)&lt;/script&gt;T")), title: "T" },
  long: { respond: send(titled("W".repeat(MIB - 10_000))), title: "W".repeat(300) },
};

const HEAD = "<rss><channel><title>T</title>";
const ITEM = `<item><title>${"x".repeat(1_000)}</title></item>`;
const BOMB = gzipSync(Buffer.alloc(32 * MIB, " "), { level: 1 });

const endless =
  (before: string, piece: string, status = 200): RequestListener =>
  (_request, response) => {
    response.writeHead(status).write(before);
    const chunk = piece.repeat(Math.ceil(65_536 / piece.length));
    const write = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on("drain", write);
    write();
  };

const item = (date: string) => `<item><title>E</title><pubDate>${date}</pubDate></item>`;
const dated = (dates: readonly string[], more = "") =>
  send(`<rss><channel><title>T</title>${dates.map(item).join("")}${more}</channel></rss>`);
const TOMORROW = new Date(Date.now() + 24 * 60 * 60 * 1_000).toUTCString();

/** Publishers that date episodes in the future, or write anything but a date. */
export const DATES: HostileFeeds = {
  "date-in-the-future": {
    respond: dated([TOMORROW, "Fri, 01 Jan 9999 00:00:00 GMT", "2020-01-02"]),
    title: "T",
    latest: "2020-01-02",
  },
  "only-in-the-future": { respond: dated(Array(1_000).fill("2999-01-01")), title: "T" },
  "absurd-dates": {
    respond: dated([
      "yesterday",
      "0000-00-00",
      "99999999-01-01",
      "-1",
      "1e99",
      "1970-01-01",
      `2020-01-01${"0".repeat(9_999)}`,
    ]),
    title: "T",
  },
  "markup-in-a-date": {
    respond: dated(["<b>2020-01-01</b>", "<![CDATA[2020-01-02]]>"]),
    title: "T",
    latest: "2020-01-02",
  },
  "date-of-an-entity": { respond: dated(["&#50;020-01-03"]), title: "T", latest: "2020-01-03" },
  "endless-oldest-first": {
    respond: endless(HEAD, Array.from({ length: 99 }, (_, index) => item(`${1_990 + (index % 30)}-01-01`)).join("")),
    title: "T",
    latest: "2019-01-01",
  },
  "endless-undated": { respond: endless(HEAD, ITEM), title: "T" },
};

export const SIZES: HostileFeeds = {
  "endless-items": { respond: endless(HEAD, ITEM), title: "T" },
  "endless-untitled": { respond: endless("<rss><channel>", ITEM), title: undefined },
  "endless-blanks": { respond: endless("", " "), title: undefined },
  "endless-404": { respond: endless(HEAD, ITEM, 404), title: undefined },
  bomb: { respond: send(BOMB, GZIP), title: undefined },
  "bomb-of-items": { respond: send(gzipSync(HEAD + ITEM.repeat(10_000)), GZIP), title: "T" },
  "bomb-in-bomb": {
    respond: send(gzipSync(BOMB), { "content-encoding": "gzip, gzip" }),
    title: undefined,
  },
  "truncated-gzip": {
    respond: send(gzipSync(titled("T")).subarray(0, -12), GZIP),
    title: undefined,
    failure: "invalid",
  },
  reset: {
    respond: ({ socket }, response) => void response.write(HEAD, () => socket.resetAndDestroy()),
    title: undefined,
  },
  drip: {
    respond: (_request, response) => {
      response.write(HEAD);
      const timer = setInterval(() => response.write(" "), 50);
      response.on("close", () => clearInterval(timer));
    },
    title: undefined,
    failure: "timed-out",
  },
};

/** `reached` counts requests to a host of the network that is not 127.0.0.1. */
export async function createRedirects(): Promise<{ readonly feeds: HostileFeeds; readonly reached: () => number }> {
  let reached = 0;
  const other = await listen((_request, response) => {
    reached += 1;
    response.end(titled("secret"));
  }, "127.0.0.2");
  const { port } = new URL(other);
  const to = (
    location: ((request: IncomingMessage) => string) | string,
    failure: FailureCode = "private-address",
  ): HostileFeed => ({
    respond: (request, response) => {
      const target = typeof location === "string" ? location : location(request);
      response.writeHead(302, { location: target }).end();
    },
    title: undefined,
    failure,
  });
  const feeds = {
    "redirect-to-itself": to(({ url = "" }) => url, "redirect"),
    "redirect-to-file": to("file:///etc/passwd", "redirect"),
    "redirect-to-metadata": to("http://169.254.169.254/latest/meta-data/"),
    "redirect-to-host": to(`http://127.0.0.2:${port}/`),
    "redirect-to-mapped-host": to(`http://[::ffff:127.0.0.2]:${port}/`),
    "redirect-to-mapped-hexadecimal": to(`http://[::ffff:7f00:2]:${port}/`),
    "redirect-to-number": to(`http://2130706434:${port}/`),
  };
  return { feeds, reached: () => reached };
}

/** A feed whose image has these bytes. */
function withImage(bytes: Buffer, hasArtwork: boolean): HostileFeed {
  const [image, feed] = [
    send(bytes, { "content-type": "image/jpeg" }),
    send(writeRss({ title: "T", image: "?image" })),
  ];
  return {
    respond: (request, response) => (request.url?.endsWith("?image") ? image : feed)(request, response),
    title: "T",
    hasArtwork,
  };
}

const square = (size: number) =>
  sharp({ create: { width: size, height: size, channels: 3, background: "teal" } }).jpeg();

export async function createImages(): Promise<HostileFeeds> {
  const jpeg = await square(900).toBuffer();
  return {
    "svg-image": withImage(Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"), false),
    "html-image": withImage(Buffer.from("<!doctype html><title>404</title>"), false),
    "truncated-image": withImage(jpeg.subarray(0, jpeg.length / 2), false),
    "empty-image": withImage(Buffer.alloc(0), false),
    "huge-image": withImage(png(30_000, 30_000), false),
    "text-bomb-image": withImage(textBomb(), false),
    "one-pixel-image": withImage(await square(1).toBuffer(), true),
    "whole-image": withImage(jpeg, true),
  };
}

export interface HostilePublisher {
  readonly url: string;
  /** Resolves when all connections so far are closed: the most bytes that were sent on one of them. */
  readonly allClosed: () => Promise<number>;
}

/** Serves each feed at every path that ends with its name. */
export async function startHostilePublisher(feeds: HostileFeeds): Promise<HostilePublisher> {
  const closings: Promise<number>[] = [];
  const url = await listen((request, response) => {
    const { socket, url: path = "" } = request;
    closings.push(new Promise((resolve) => socket.once("close", () => resolve(socket.bytesWritten))));
    const feed = feeds[path.replace("?image", "").split("/").at(-1) ?? ""];
    if (feed === undefined) response.writeHead(404).end();
    else feed.respond(request, response);
  });
  return { url, allClosed: async () => Math.max(0, ...(await Promise.all(closings))) };
}
