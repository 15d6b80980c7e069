import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { Locator, Page, Route } from "playwright-core";
import { launch, type PageOptions, type WatchedPage } from "./browser.ts";
import { openAddMany, openView } from "./navigation.ts";
import { add, newId, startServer, type TestServer } from "./server.ts";
import { en, format, type Words } from "./words.ts";

const browser = await launch();

/** A list for tests, oldest first; and the hosts that the page shows for it. */
export const THREE = ["https://one.example/feed", "https://two.example/feed", "https://three.example/feed"];
export const OLDEST_FIRST = ["one.example", "two.example", "three.example"];
export const NEWEST_FIRST = OLDEST_FIRST.toReversed();
export const WITHOUT_TWO = ["three.example", "one.example"];

/** Long enough for a busy machine. */
const TIMEOUT_MS = 25_000;

export interface VisitOptions extends PageOptions {
  /** Already in the list, oldest first. */
  readonly feeds?: readonly string[];
  /** The view to open; the list by default. */
  readonly at?: string;
  readonly basePath?: string;
  readonly server?: TestServer;
  /** Called before the page is loaded. */
  readonly prepare?: (page: Page) => Promise<unknown>;
  readonly words?: Words;
}

export interface Visit extends WatchedPage {
  readonly server: TestServer;
}

/** Opens the page of a server without accounts, which is a new one unless given. */
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

/** Every feed URL the server has, oldest first. */
export async function feedsOf({ call }: TestServer): Promise<string[]> {
  const all: string[] = [];
  for (let number = 1; ; number += 1) {
    const { json } = await call("GET", `/v1/subscriptions?page[number]=${number}&page[size]=100`);
    all.push(...json.data.map((item: { attributes: { feed_url: string } }) => item.attributes.feed_url));
    if (json.links.next === null) return all;
  }
}

export function numberedFeeds(count: number, first = 1): string[] {
  return Array.from({ length: count }, (_, index) => `https://pod-${index + first}.example/feed.xml`);
}

/** Waits until `read` returns what is expected, and fails with its last value. */
export async function until<T>(read: () => T | Promise<T>, expected: T): Promise<void> {
  const end = Date.now() + TIMEOUT_MS;
  let last = await read();
  while (!isDeepStrictEqual(last, expected) && Date.now() < end) {
    await sleep(100);
    last = await read();
  }
  assert.deepEqual(last, expected);
}

const list = (page: Page, words: Words) => page.getByRole("list", { name: words.list.title });

export function rows(page: Page, words: Words = en): Locator {
  return list(page, words).getByRole("listitem");
}

/** The hosts of the rendered rows, from the top, all read at the same moment. */
export function hosts(page: Page): Promise<string[]> {
  return list(page, en).evaluateAll((lists) =>
    lists.flatMap((list) => Array.from(list.querySelectorAll("strong"), ({ textContent }) => textContent)),
  );
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

/** A message that is shown and announced. */
export function status(page: Page, text: string): Locator {
  return page.getByRole("status").filter({ hasText: text });
}

/** The accessible name of the focused element, else its id or tag. */
export function focused(page: Page): Promise<string> {
  return page.evaluate(
    `document.activeElement.ariaLabel || document.activeElement.id || document.activeElement.tagName`,
  );
}

/** Simulates the user's return to the tab. */
export function returnToTab(page: Page): Promise<unknown> {
  return page.evaluate(`document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))`);
}

/** Everything that is displayed or read aloud: text, labels and tooltips. */
export function allTexts(page: Page): Promise<string> {
  return page.evaluate(`[document.body.textContent, ...[...document.querySelectorAll("[title], [aria-label]")]
    .flatMap((element) => [element.title, element.getAttribute("aria-label") ?? ""])].join(" ")`);
}

export const installClock = (page: Page) => page.clock.install();

/** Advances the page's clock, which must be installed, until the element is visible or hidden. */
export async function advanceUntil(
  page: Page,
  element: Locator,
  state: "visible" | "hidden" = "visible",
): Promise<void> {
  const end = Date.now() + TIMEOUT_MS;
  while ((await element.isVisible()) !== (state === "visible") && Date.now() < end) {
    await page.clock.fastForward(1_000);
    await sleep(20);
  }
  await element.waitFor({ state });
}

/** Holds matching requests until they are released. */
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
    /** Waits for the next request and releases it. */
    next: async () => (await take()).continue(),
    open: async () => {
      isOpen = true;
      await Promise.all(held.splice(0).map((route) => route.continue()));
    },
  };
}

export function opml(feeds: readonly string[], titles: readonly string[] = []): string {
  const escapeXml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  const lines = feeds.map(
    (feed, index) =>
      `<outline type="rss" text="${escapeXml(titles[index] ?? (URL.canParse(feed) ? new URL(feed).host : feed))}" xmlUrl="${escapeXml(feed)}"/>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?><opml version="2.0"><head/><body>${lines.join("\n")}</body></opml>`;
}

export async function chooseFile(page: Page, text: string, words: Words = en): Promise<void> {
  const file = { name: "list.opml", mimeType: "text/x-opml", buffer: Buffer.from(text) };
  await page.getByLabel(words.import.file).setInputFiles(file);
}

/** Visits every state of the page and calls `check` in each; the list must not be empty. */
export async function walk(page: Page, words: Words, check: (state: string) => Promise<void>): Promise<void> {
  const show = async (view: "list" | "import" | "apps") => {
    await openView(page, words.views[view], words);
    await page.getByRole("heading", { level: 1, name: words[view].title }).waitFor();
  };
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();

  await rows(page, words).first().waitFor();
  await check("list");
  await page.getByRole("button", { name: words.list.asCovers, exact: true }).click();
  await check("covers");
  await page.getByRole("button", { name: words.list.asList, exact: true }).click();
  await rows(page, words).first().getByRole("button").last().click();
  await page.getByRole("menuitem").first().waitFor();
  await check("menu");
  await page.keyboard.press("Escape");
  await chooseMore(page, words.podcasts.select, words);
  await rows(page, words).first().getByRole("checkbox").click();
  await check("selecting");
  await page.getByRole("group", { name: words.podcasts.select }).getByRole("button").last().click();
  await rows(page, words).first().getByRole("button").first().click();
  await page.getByRole("dialog").getByRole("heading").waitFor();
  await check("panel");
  await page.getByRole("dialog").getByRole("button").nth(1).click();
  await page.getByRole("dialog").getByRole("textbox").waitFor();
  await check("rename");
  await press(words.cancel);
  await press(words.moves.changeUrl);
  await page.getByRole("dialog").getByRole("textbox").waitFor();
  await check("another feed URL");
  await press(words.cancel);
  await press(words.moves.mergeInto);
  await page.getByRole("dialog").getByRole("radio").first().click();
  await page.getByText(words.moves.replaced).waitFor();
  await check("merge");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("searchbox", { name: words.list.search }).fill("not there");
  await page.getByText(format(words.list.noMatches, { query: "not there" })).waitFor();
  await check("no matches");
  await press(words.list.showAll);
  const title = await rows(page, words).first().locator("strong").textContent();
  const remove = async () => {
    await rows(page, words).first().getByRole("button").last().click();
    await menuItem(page, words.podcasts.remove).click();
  };
  await remove();
  await page.getByRole("button", { name: words.list.undo }).waitFor();
  await check("removed");
  await press(words.list.undo);
  await rows(page, words)
    .first()
    .getByText(title ?? "", { exact: true })
    .waitFor();

  await remove();
  await openView(page, words.history.title, words);
  const sets = page.getByRole("list", { name: words.history.title }).getByRole("listitem");
  await sets.first().getByRole("button").click();
  await page.getByRole("dialog").getByRole("listitem").first().waitFor();
  await check("preview of an undo");
  await press(words.cancel);
  await sets.first().locator(".covers").waitFor();
  await check("history");
  await sets.first().getByRole("link").click();
  await page.getByRole("list", { name: words.history.changes }).getByRole("listitem").first().waitFor();
  await check("one set of changes");
  await press(words.history.goBack);
  await page.getByRole("dialog").getByRole("listitem").first().waitFor();
  await check("preview of going back");
  await press(words.cancel);
  await page.goBack();
  await sets.first().getByRole("button").click();
  await page.getByRole("dialog").getByRole("button", { name: words.list.undo }).click();
  await sets.first().getByText(words.history.undo, { exact: true }).waitFor();
  await check("undone");

  await openAddMany(page);
  await page.getByRole("heading", { level: 1, name: words.add.title }).waitFor();
  await page.getByLabel(words.add.label).fill("https://open.spotify.com/show/1");
  await page.getByText("Spotify").waitFor();
  await check("a page that is no feed");
  await page.getByLabel(words.add.label).fill("");
  await check("empty form");
  await page.getByLabel(words.add.label).fill("walked.example/feed\nnot a URL\nhttps://pod-1.example/feed.xml");
  await press(format(words.add.submit, { n: 3 }));
  await page.getByText(words.add.fix).waitFor();
  await check("add results");
  await press(words.add.more);
  await page.getByLabel(words.add.label).fill("");

  await show("import");
  await check("no file");
  await page.locator("summary").click();
  await check("export guides");
  await chooseFile(page, "not an OPML file", words);
  await page.getByRole("alert").waitFor();
  await check("invalid file");
  await chooseFile(page, opml([...numberedFeeds(3), "https://walked.example/opml", "nowhere"]), words);
  await page.getByRole("button", { name: format(words.import.start, { n: 1 }) }).waitFor();
  await check("preview");
  await press(format(words.import.start, { n: 1 }));
  await page.getByText(words.import.done, { exact: true }).first().waitFor();
  await check("import results");
  await press(words.import.chooseAnother);

  await show("apps");
  await check("apps");
  for (const name of ["AntennaPod", "Music Assistant", words.apps.other]) {
    await page.getByText(name, { exact: true }).click();
    await check(`app guide: ${name}`);
  }
  await press(words.settings.title);
  await page.getByRole("dialog").waitFor();
  await check("settings");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.context().setOffline(true);
  await status(page, words.connection.offline).waitFor();
  await check("offline");
  await page.context().setOffline(false);
  await status(page, words.connection.offline).waitFor({ state: "hidden" });
  await show("list");
}

/** Opens the menu of a podcast by a right click, which is there in each layout. */
export async function openMenu(page: Page, title: string, words: Words = en): Promise<void> {
  // The code of the menu is loaded with the buttons for it, which are hidden in some layouts.
  await page.locator(".subscription [aria-haspopup=menu]").first().waitFor({ state: "attached" });
  await rows(page, words).getByRole("button", { name: title, exact: true }).first().click({ button: "right" });
}

export const menuItem = (page: Page, name: string) => page.getByRole("menuitem", { name, exact: true });

/** Opens the menu of a podcast and chooses an item. */
export async function choose(page: Page, title: string, item: string, words: Words = en): Promise<void> {
  await openMenu(page, title, words);
  await menuItem(page, item).click();
}

export const removeFrom = (page: Page, title: string, words: Words = en) =>
  choose(page, title, words.podcasts.remove, words);

/** Chooses an item of the menu of the whole list. */
export async function chooseMore(page: Page, item: string, words: Words = en): Promise<void> {
  await page.getByRole("button", { name: words.list.more, exact: true }).click();
  await menuItem(page, item).click();
}
