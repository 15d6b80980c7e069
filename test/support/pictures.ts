import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";
import sharp from "sharp";
import { findChromium } from "./chromium.ts";
import { THIS_MACHINE } from "./fetching.ts";
import { listen } from "./listen.ts";
import type { Later } from "./postgres.ts";
import { launch } from "./process.ts";
import { ATOMIC } from "./server.ts";
import { en } from "./words.ts";

/**
 * `npm run pictures` takes the pictures of the web interface in docs/images. All podcasts in them are made up: this
 * process is their publisher.
 */
const IMAGES = new URL("../../docs/images/", import.meta.url);

type Podcast = readonly [title: string, author: string, folder: string, hue: number, daysAgo: number];
const PODCASTS: readonly Podcast[] = [
  ["Static & Signal", "Ham Shack", "Technology", 4, 1],
  ["Ledger Lines", "Quarter Note Studio", "Music", 272, 2],
  ["Midnight Allotment", "Green Shed", "Home", 28, 3],
  ["Kernel of Truth", "Ada Byrne", "Technology", 92, 4],
  ["The Long Ferry", "Isla Voss", "Stories", 200, 5],
  ["Proof by Biscuit", "Two Tables", "Science", 42, 8],
  ["Salt Roads", "Marek Dunn", "History", 222, 10],
  ["Footnotes Aloud", "Paper Lantern", "Stories", 330, 12],
  ["Seven Lakes Weather", "Outpost Nine", "Science", 186, 15],
  ["Unfinished Cathedrals", "Clara Benn", "History", 252, 21],
  ["Copper Kettle", "Omar Lindqvist", "Home", 14, 26],
  ["Odd Meters", "Bar Seventeen", "Music", 300, 33],
  ["Small Hours Radio", "Night Desk", "Stories", 232, 40],
  ["Root Access", "Priya Halden", "Technology", 150, 55],
  ["The Slow Atlas", "Meridian House", "History", 108, 70],
  ["Tide Tables", "Harbour Lab", "Science", 206, 420],
];

/** A cover: a letter above hills, in the podcast's color. */
function drawCover([title, , , hue]: Podcast, index: number): Promise<Buffer> {
  const [x, y] = [220 + ((index * 97) % 240), 170 + ((index * 53) % 120)];
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="600" height="600">
    <rect width="600" height="600" fill="hsl(${hue} 62% 34%)"/>
    <circle cx="${x + 120}" cy="${y}" r="${120 + ((index * 31) % 70)}" fill="hsl(${hue} 70% 62%)" opacity="0.75"/>
    <path d="M0 ${400 + ((index * 29) % 60)} Q 240 ${300 + ((index * 41) % 90)} 600 ${430 - ((index * 37) % 80)} V 600 H 0 Z"
      fill="hsl(${(hue + 24) % 360} 58% 52%)"/>
    <path d="M0 520 Q 330 ${440 + ((index * 23) % 50)} 600 540 V 600 H 0 Z" fill="hsl(${hue} 60% 24%)"/>
    <text x="44" y="150" font-family="sans-serif" font-weight="bold" font-size="120" fill="white">${title[0]}</text>
  </svg>`;
  return sharp(Buffer.from(svg)).png().toBuffer();
}

const escapeXml = (text: string) => text.replaceAll("&", "&amp;");

function writeFeed([title, author, , , daysAgo]: Podcast, image: string): string {
  const date = new Date(Date.now() - daysAgo * 86_400_000).toUTCString();
  return `<?xml version="1.0"?><rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>
    <title>${escapeXml(title)}</title><itunes:author>${escapeXml(author)}</itunes:author>
    <description>${escapeXml(title)}, by ${escapeXml(author)}.</description><itunes:image href="${image}"/>
    <item><title>Latest</title><pubDate>${date}</pubDate></item></channel></rss>`;
}

/** Serves the feeds and covers of all podcasts, and returns its URL. */
async function publish(later: Later): Promise<string> {
  const covers = await Promise.all(PODCASTS.map(drawCover));
  return listen(
    (request, response) => {
      const [, index = "", kind] = /^\/(\d+)\.(xml|png)$/.exec(request.url ?? "") ?? [];
      const podcast = PODCASTS[Number(index)];
      if (podcast === undefined) response.writeHead(404).end();
      else if (kind === "png") response.writeHead(200, { "content-type": "image/png" }).end(covers[Number(index)]);
      else
        response
          .writeHead(200, { "content-type": "application/rss+xml" })
          .end(writeFeed(podcast, `http://${request.headers.host}/${index}.png`));
    },
    "127.0.0.1",
    later,
  );
}

/** Subscribes to all podcasts and waits until the server has their covers. */
async function fill(server: string, publisher: string): Promise<void> {
  const data = PODCASTS.map(([, , folder], index) => ({
    op: "add",
    data: {
      type: "subscription",
      id: crypto.randomUUID(),
      attributes: { feed_url: `${publisher}/${index}.xml`, folders: [folder] },
    },
  })).toReversed();
  const added = await fetch(`${server}/v1/operations`, {
    method: "POST",
    headers: { "Content-Type": ATOMIC, Accept: ATOMIC },
    body: JSON.stringify({ "atomic:operations": data }),
  });
  if (!added.ok) throw new Error(await added.text());
  for (let tries = 0; tries < 900; tries += 1) {
    const list = await (await fetch(`${server}/v1/subscriptions?include=podcast&page[size]=100`)).text();
    if ((list.match(/-600\.webp"/g)?.length ?? 0) === PODCASTS.length) return;
    await sleep(200);
  }
  throw new Error("The server has not fetched all covers.");
}

const VIEWS = {
  list: { viewport: { width: 1200, height: 760 }, deviceScaleFactor: 1.5 },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
} as const;

async function takePictures(browser: Browser, server: string): Promise<void> {
  for (const [name, options] of Object.entries(VIEWS)) {
    const context = await browser.newContext({
      ...options,
      colorScheme: "light",
      locale: "en-US",
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    await page.goto(server);
    await page.getByText("Static & Signal").first().waitFor();
    // On a phone, covers are the default.
    const asCovers = page.getByRole("button", { name: en.list.asCovers });
    if (await asCovers.isVisible()) await asCovers.click();
    await page.mouse.move(0, 0);
    // Covers further down are not loaded.
    await page.waitForFunction(
      "[...document.images].filter((image) => image.complete && image.naturalWidth > 0).length >= 6",
    );
    await sleep(1_000);
    const picture = await sharp(await page.screenshot())
      .png({ palette: true, effort: 10 })
      .toBuffer();
    writeFileSync(new URL(`${name}.png`, IMAGES), picture);
  }
}

const cleanups: (() => unknown)[] = [];
const later: Later = (cleanup) => cleanups.push(cleanup);
try {
  const publisher = await publish(later);
  const folder = mkdtempSync(join(tmpdir(), "earmark-pictures-"));
  later(() => rmSync(folder, { recursive: true }));
  const DATABASE_URL = `file:${join(folder, "earmark.db")}`;
  const fetching = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE };
  const server = await launch({ DATABASE_URL, ...fetching }).listening;
  later(() => server.stop());
  await fill(server.url, publisher);
  const { path, args, env } = await findChromium();
  const browser = await chromium.launch({
    executablePath: path,
    args: [...args],
    env: { ...process.env, ...env },
    chromiumSandbox: false,
  });
  later(() => browser.close());
  await takePictures(browser, server.url);
} finally {
  for (const cleanup of cleanups.reverse()) await cleanup();
}
