import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Locator, Page, Route } from "playwright-core";
import { en, type Words } from "../web/src/words/en.ts";
import { launch, type PageOptions, type WatchedPage } from "./browser.ts";
import { add, newId, startServer, type TestServer } from "./harness.ts";

const browser = await launch();

/** Patience with a machine that has other things to do. */
const PATIENCE_MS = 25_000;

export interface VisitOptions extends PageOptions {
  /** What the list has, oldest first. */
  readonly feeds?: readonly string[];
  /** Where the visit begins; the list unless told. */
  readonly at?: string;
  readonly basePath?: string;
  readonly server?: TestServer;
  /** What has to be in place before the page is. */
  readonly prepare?: (page: Page) => Promise<unknown>;
  readonly words?: Words;
}

export interface Visit extends WatchedPage {
  readonly server: TestServer;
}

/** The page of a server without accounts, which is this visit's alone unless one is given. */
export async function visit(options: VisitOptions = {}): Promise<Visit> {
  const { feeds = [], at = "", basePath = "", server = await startServer(), prepare, words = en, ...rest } = options;
  await subscribe(server, feeds);
  const watched = await browser.newPage(server.url, rest);
  await prepare?.(watched.page);
  await watched.page.goto(`${basePath}/${at && `#${at}`}`);
  await watched.page.getByRole("navigation", { name: words.mainMenu }).waitFor();
  return { ...watched, server };
}

export async function subscribe(server: TestServer, feeds: readonly string[]): Promise<void> {
  if (feeds.length > 0) await server.operate(feeds.map((feed) => add(newId(), feed)));
}

/** Every address that the server has, oldest first. */
export async function feedsOf({ call }: TestServer): Promise<string[]> {
  const all: string[] = [];
  for (let number = 1; ; number += 1) {
    const { json } = await call("GET", `/v1/subscriptions?page[number]=${number}&page[size]=100`);
    all.push(...json.data.map((item: { attributes: { feed_url: string } }) => item.attributes.feed_url));
    if (json.links.next === null) return all;
  }
}

export function numbered(count: number, first = 1): string[] {
  return Array.from({ length: count }, (_, index) => `https://pod-${index + first}.example/feed.xml`);
}

/** Waits until what is read is what is expected, and says what it was if that never comes. */
export async function until<T>(read: () => T | Promise<T>, expected: T): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  let last = await read();
  while (!isDeepStrictEqual(last, expected) && Date.now() < end) {
    await sleep(25);
    last = await read();
  }
  assert.deepEqual(last, expected);
}

export function rows(page: Page, words: Words = en): Locator {
  return page.getByRole("list", { name: words.list.title }).getByRole("listitem");
}

/** The hosts of the rows in the document, from above. */
export function hosts(page: Page): Promise<string[]> {
  return rows(page).locator("strong").allTextContents();
}

export function results(page: Page): Promise<string[]> {
  return page.getByRole("list", { name: en.results }).getByRole("listitem").allTextContents();
}

export function button(page: Page, name: string): Locator {
  return page.getByRole("button", { name, exact: true });
}

export function link(page: Page, name: string): Locator {
  return page.getByRole("link", { name, exact: true });
}

/** What the page tells, to those who see it as to those who hear it. */
export function said(page: Page, text: string): Locator {
  return page.getByRole("status").filter({ hasText: text });
}

/** Lets the time of the page pass, as far as it takes; its clock must be installed. */
export async function passTime(page: Page, until: Locator, state: "visible" | "hidden" = "visible"): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while ((await until.isVisible()) !== (state === "visible") && Date.now() < end) {
    await page.clock.fastForward(1_000);
    await sleep(20);
  }
  await until.waitFor({ state });
}

export const installClock = (page: Page) => page.clock.install();

/** Holds every request that matches, until it is let through. */
export async function hold(page: Page, path: string) {
  const held: Route[] = [];
  let isOpen = false;
  await page.route(path, async (route) => {
    if (isOpen) await route.continue();
    else held.push(route);
  });
  const take = async () => {
    await until(() => held.length > 0, true);
    return held.shift() as Route;
  };
  return {
    take,
    /** Lets the next through, and waits for it to come. */
    next: async () => (await take()).continue(),
    open: async () => {
      isOpen = true;
      await Promise.all(held.splice(0).map((route) => route.continue()));
    },
  };
}

export function opml(feeds: readonly string[], titles: readonly string[] = []): string {
  const write = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  const lines = feeds.map(
    (feed, index) => `<outline type="rss" text="${write(titles[index] ?? "A podcast")}" xmlUrl="${write(feed)}"/>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?><opml version="2.0"><head/><body>${lines.join("\n")}</body></opml>`;
}

export function file(name: string, text: string) {
  return { name, mimeType: "text/x-opml", buffer: Buffer.from(text) };
}

export async function choose(page: Page, text: string, words: Words = en): Promise<void> {
  await page.getByLabel(words.import.file).setInputFiles(file("list.opml", text));
}

/** Goes through everything that the page has to show; the list has to have something in it. */
export async function walk(page: Page, words: Words, look: (view: string) => Promise<void>): Promise<void> {
  const show = async (view: "list" | "add" | "import" | "apps") => {
    await page.getByRole("navigation").getByRole("link", { name: words.views[view] }).click();
    await page.getByRole("heading", { level: 1, name: words[view].title }).waitFor();
  };
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();

  await rows(page, words).first().waitFor();
  await look("the list");
  const search = page.getByRole("searchbox", { name: words.list.search });
  await search.fill("not there");
  await page.getByText(words.list.none("not there")).waitFor();
  await look("nothing found");
  await press(words.list.showAll);
  const removing = rows(page, words).first().getByRole("button").last();
  const name = (await removing.getAttribute("aria-label")) ?? "";
  await removing.click();
  await page.getByRole("button", { name: words.list.undo }).waitFor();
  await look("something was removed");
  await press(words.list.undo);
  await page.getByRole("button", { name, exact: true }).waitFor();

  await show("add");
  await page.getByLabel(words.add.label).fill("");
  await look("nothing to add yet");
  await page.getByLabel(words.add.label).fill("walked.example/feed\nnot an address\nhttps://pod-1.example/feed.xml");
  await press(words.add.submit(3, "3"));
  await page.getByText(words.add.mend).waitFor();
  await look("what was added");
  await press(words.add.more);
  await page.getByLabel(words.add.label).fill("");

  await show("import");
  await look("no file yet");
  await choose(page, "no file of this kind", words);
  await page.getByRole("alert").waitFor();
  await look("a file that is none");
  await choose(page, opml([...numbered(3), "https://walked.example/opml", "nowhere"]), words);
  await press(words.import.start(1, "1"));
  await page.getByText(words.import.done, { exact: true }).first().waitFor();
  await look("what was imported");
  await press(words.import.other);
  await choose(page, opml([...numbered(3), "https://walked.example/look", "nowhere"]), words);
  await page.getByRole("button", { name: words.import.start(1, "1") }).waitFor();
  await look("a first look");
  await press(words.import.other);

  await show("apps");
  await look("apps");
  await press(words.settings.title);
  await page.getByRole("dialog").waitFor();
  await look("help and settings");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.context().setOffline(true);
  await said(page, words.trouble.offline).waitFor();
  await look("offline");
  await page.context().setOffline(false);
  await said(page, words.trouble.offline).waitFor({ state: "hidden" });
  await show("list");
}
