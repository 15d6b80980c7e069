import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import { launch, longTasks, slowCpu, type TestBrowser } from "../test/support/browser.ts";
import { en, format } from "../test/support/words.ts";
import { startEarmark } from "./support/processes.ts";
import { drawTable, show, summarize } from "./support/report.ts";
import { additionOf, operate } from "./syncing.ts";

/** Measures the page in a browser: bytes transferred, time until the list is shown, long tasks. */

const FEEDS = 10_000;
const ROUNDS = 5;
/** Factors by which the processor is slowed down. */
const SLOWDOWNS = [1, 4];

interface Round {
  readonly bytes: number;
  readonly firstRowMs: number;
  readonly wholeMs: number;
  readonly longest: Readonly<Record<"loading" | "scrolling" | "searching", number>>;
}

async function measure(browser: TestBrowser, url: string, slowdown: number): Promise<Round> {
  const { page, context } = await browser.newPage(url);
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  let bytes = 0;
  const files = new Set<string>();
  session.on("Network.requestWillBeSent", ({ requestId, request }) => {
    if (!request.url.includes("/v1/")) files.add(requestId);
  });
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (files.has(requestId)) bytes += encodedDataLength;
  });
  await slowCpu(page, slowdown);
  await page.addInitScript(`
    const watch = new MutationObserver(() => {
      if (document.querySelector(".subscription")) { performance.mark("first-row"); watch.disconnect(); }
    });
    watch.observe(document, { childList: true, subtree: true });
  `);
  await page.goto("/");
  await page.getByText(format(en.count, { n: FEEDS }), { exact: true }).waitFor();
  const [firstRowMs = 0, wholeMs = 0] = await page.evaluate<number[]>(
    "[performance.getEntriesByName('first-row')[0].startTime, Math.max(...performance.getEntriesByType('resource').map((entry) => entry.responseEnd))]",
  );
  const loading = await longest(page, 0);
  const scrolling = await during(page, async () => {
    for (let step = 0; step < 60; step += 1) {
      await page.mouse.wheel(0, step % 2 === 0 ? 9_000 : 700);
      await sleep(16);
    }
    await page.evaluate("scrollTo(0, 0)");
  });
  const searching = await during(page, async () => {
    await page.keyboard.press("/");
    await page.keyboard.type("show-77", { delay: 40 });
    await sleep(300);
  });
  await context.close();
  return { bytes, firstRowMs, wholeMs, longest: { loading, scrolling, searching } };
}

async function during(page: Page, work: () => Promise<void>): Promise<number> {
  const since = await page.evaluate<number>("performance.now()");
  await work();
  return longest(page, since);
}

async function longest(page: Page, since: number): Promise<number> {
  const tasks = await longTasks(page);
  return Math.max(0, ...tasks.filter(({ start }) => start >= since).map(({ duration }) => duration));
}

const folder = mkdtempSync(join(tmpdir(), "earmark-page-"));
const server = await startEarmark(join(folder, "earmark.db"));
const url = `http://127.0.0.1:${server.port}`;
const browser = await launch();
try {
  const feedUrls = Array.from(
    { length: FEEDS },
    (_, index) => `https://feeds-${index % 97}.example.com/show-${index}/feed.xml`,
  );
  await operate(server.port, feedUrls.map(additionOf));
  const columns: Round[][] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, slowdown] of SLOWDOWNS.entries()) columns[index]?.push(await measure(browser, url, slowdown));
  }
  const row = (name: string, pick: (round: Round) => number) => [
    name,
    ...columns.map((rounds) => show(summarize(rounds.map(pick)))),
  ];
  process.stdout.write(
    `Chromium ${browser.version}, ${FEEDS} subscriptions, medians of ${ROUNDS} rounds (min..max)\n\n`,
  );
  process.stdout.write(
    drawTable(
      ["", ...SLOWDOWNS.map((times) => (times === 1 ? "full speed" : `CPU ${times}× slower`))],
      [
        row("bytes of the page, with headers", ({ bytes }) => bytes),
        row("first row, ms", ({ firstRowMs }) => firstRowMs),
        row("whole list, ms", ({ wholeMs }) => wholeMs),
        row("longest task over 50 ms: loading", ({ longest }) => longest.loading),
        row("scrolling", ({ longest }) => longest.scrolling),
        row("searching", ({ longest }) => longest.searching),
      ],
    ),
  );
} finally {
  await browser.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
