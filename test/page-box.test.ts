import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { assertAccessible } from "./support/browser.ts";
import { podcast, startDirectory } from "./support/directory.ts";
import { status as respondStatus, startFeeds } from "./support/feeds.ts";
import { THIS_MACHINE } from "./support/fetching.ts";
import { openView } from "./support/navigation.ts";
import { button, feedsOf, hosts, link, status, until, visit } from "./support/page.ts";
import { startServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { box } = en;
const field = (page: Page) => page.getByRole("searchbox", { name: en.list.search });
const found = (page: Page) => page.locator(".found").getByRole("listitem");
const FETCHING = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE };
const host = (url: string) => `${new URL(url).host}`;

async function enter(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await field(page).press("Enter");
}

describe("box", { concurrency: 2 }, () => {
  test("box: links → one podcast is added, shown, and the box is empty again", async (t) => {
    const site = await startFeeds();
    const server = await startServer(FETCHING);
    const { page, allow, finish } = await visit({ server });
    allow(/^response: 422 POST \S+\/v1\/feed-searches/);
    const card = page.locator(".found-podcast");
    const feed = site.feed("/feed", { title: "The show", author: "Ann" });

    await t.test("box: a feed URL → added; its name and author appear once the server has them", async () => {
      await page.keyboard.press("a");
      await until(() => page.evaluate("document.activeElement.id"), "search");
      await enter(page, feed);
      await status(page, box.added).first().waitFor();
      assert.equal(await field(page).inputValue(), "");
      assert.deepEqual(await feedsOf(server), [feed]);
      await card.getByText("The show").waitFor();
      await card.getByText("Ann").waitFor();
      await assertAccessible(page);
    });

    await t.test("box: the same feed as a link of an app → already in the list, and nothing is added", async () => {
      await field(page).fill(`feed://${feed.slice("http://".length)}`);
      await card.getByText(box.inList).waitFor();
      await enter(page, `https://antennapod.org/deeplink/subscribe?url=${encodeURIComponent(feed)}`);
      await status(page, box["already-subscribed"]).waitFor();
      assert.deepEqual(await feedsOf(server), [feed]);
    });

    await t.test("box: a page with one feed → that feed; with several → a choice; without → asks", async () => {
      const declare = (path: string, title: string) =>
        `<link rel="alternate" type="application/rss+xml" title="${title}" href="${path}">`;
      site.pages.set("/one", (_request, response) => response.end(declare("/rss", "One")));
      site.pages.set("/two", (_request, response) =>
        response.end(`${declare("/a", "First")}${declare("/b", "Second")}`),
      );
      site.pages.set("/none", (_request, response) => response.end("<p>Hello"));
      await enter(page, `${site.url}/one`);
      await until(async () => (await feedsOf(server)).at(-1), `${site.url}/rss`);
      await enter(page, `${site.url}/two`);
      await status(page, box.feeds).waitFor();
      await assertAccessible(page);
      await button(page, format(box.subscribeTo, { name: "Second" })).click();
      await found(page).filter({ hasText: box.inList }).waitFor();
      assert.equal((await feedsOf(server)).at(-1), `${site.url}/b`);
      await enter(page, `${site.url}/none`);
      await status(page, box.none).waitFor();
      await button(page, box.anyway).click();
      await until(async () => (await feedsOf(server)).at(-1), `${site.url}/none`);
      await enter(page, `${site.url}/missing`);
      await status(page, en.reasons["page-unavailable"]).waitFor();
      await button(page, en.close).click();
      await until(() => status(page, en.reasons["page-unavailable"]).count(), 0);
    });

    await t.test("box: links without a feed, invalid ones → the reason; nothing is added", async () => {
      const before = await feedsOf(server);
      await enter(page, "https://open.spotify.com/show/1");
      await status(page, format(box.noFeeds, { service: "Spotify" })).waitFor();
      await enter(page, "https://youtu.be/abc");
      await status(page, format(box.episode, { service: "YouTube" })).waitFor();
      await enter(page, "words without a directory");
      await status(page, box.noDirectory).waitFor();
      assert.deepEqual(await feedsOf(server), before);
    });
    await finish();
  });

  test("box: words → filter the list; Enter asks the directory, on a phone", async (t) => {
    const hostile = "<img src=x onerror=alert(1)>\u202eevil";
    const directory = await startDirectory([
      podcast({ feedUrl: "https://known.example/feed", collectionName: "Known" }),
      podcast({ feedUrl: "https://new.example/feed", collectionName: hostile }),
      podcast({ feedUrl: "javascript:alert(1)" }),
    ]);
    const server = await startServer({ EARMARK_DIRECTORY: directory.url, EARMARK_FETCH_NETWORKS: THIS_MACHINE });
    const elsewhere: string[] = [];
    const { page, allow, finish } = await visit({
      server,
      size: "phone",
      feeds: ["https://known.example/feed", "https://other.example/feed"],
      prepare: async (page) =>
        page.on("request", (request) => {
          if (!request.url().startsWith(server.url)) elsewhere.push(request.url());
        }),
    });
    allow(/^response: 503 POST \S+\/v1\/podcast-searches/);

    await t.test("box: typing → filters the list, says where the words would go, and sends nothing", async () => {
      await until(async () => (await hosts(page)).length, 2);
      await field(page).fill("known");
      await until(() => hosts(page), ["known.example"]);
      const text = format(box.searchAt, { query: "known", host: host(directory.url) });
      await button(page, text).waitFor();
      await assertAccessible(page);
      assert.deepEqual(directory.requests, []);
    });

    await t.test("box: Enter → results, with what is in the list already; no picture from elsewhere", async () => {
      await field(page).press("Enter");
      await until(() => found(page).count(), 2);
      await found(page).first().getByText(box.inList).waitFor();
      const second = found(page).nth(1);
      assert.match((await second.textContent()) ?? "", /<img src=x onerror=alert\(1\)>evil/);
      assert.equal(await found(page).locator("img").count(), 0);
      await assertAccessible(page);
      const root = "document.documentElement";
      assert.equal(await page.evaluate(`${root}.scrollWidth <= ${root}.clientWidth`), true, "nothing is cut off");
      const { x, width } = (await second.getByRole("button").boundingBox()) ?? { x: 0, width: 0 };
      assert.ok(x + width <= 390, "the button is in the window");
      await second.getByRole("button").click();
      await second.getByText(box.inList).waitFor();
      assert.equal(await field(page).inputValue(), "");
      assert.equal((await feedsOf(server)).at(-1), "https://new.example/feed");
      assert.deepEqual(elsewhere, []);
    });

    await t.test("box: the directory finds nothing, or fails → says so; the text stays", async () => {
      directory.respondWith((_request, response) => response.end('{"resultCount":0,"results":[]}'));
      await enter(page, "rare");
      await status(page, format(box.noResults, { query: "rare", host: host(directory.url) })).waitFor();
      directory.respondWith(respondStatus(500));
      await enter(page, "other words");
      await status(page, format(box.directoryFailed, { host: host(directory.url) })).waitFor();
      assert.equal(await field(page).inputValue(), "other words");
    });
    await finish();
  });

  test("box: the URL, the keyboard, shared texts and pasted lines fill it", async (t) => {
    const { page, server, allow, finish, context } = await visit({
      at: `add=${encodeURIComponent("https://one.example/feed")}`,
    });
    await t.test("box: #add=URL → filled and focused, and nothing is added before Enter", async () => {
      await until(() => field(page).inputValue(), "https://one.example/feed");
      await until(() => page.evaluate("document.activeElement.id"), "search");
      assert.deepEqual(await feedsOf(server), []);
      assert.match(page.url(), /#list$/);
      await field(page).press("Enter");
      await status(page, box.added).first().waitFor();
      await until(() => hosts(page), ["one.example"]);
    });

    await t.test("box: the menu and single keys → the box has the focus, from every view", async () => {
      await page.keyboard.press("Escape");
      for (const key of ["a", "/"]) {
        await link(page, en.views.import).click();
        await page.getByRole("heading", { level: 1, name: en.import.title }).waitFor();
        await page.keyboard.press(key);
        await until(() => page.evaluate("document.activeElement.id"), "search");
      }
      await field(page).blur();
      await link(page, en.views.add).first().click();
      await until(() => page.evaluate("document.activeElement.id"), "search");
    });

    await t.test("box: arrow down → the first podcast; several lines → the view for many", async () => {
      await field(page).press("ArrowDown");
      await until(() => page.evaluate("document.activeElement.textContent"), "one.example");
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      await page.evaluate(`navigator.clipboard.writeText("https://two.example/\\n\\nhttps://three.example/\\n")`);
      await field(page).focus();
      await field(page).press("Control+V");
      await page.getByRole("heading", { level: 1, name: en.add.title }).waitFor();
      assert.equal(await page.getByLabel(en.add.label).inputValue(), "https://two.example/\nhttps://three.example/");
    });

    await t.test("box: the bookmark, opened on another page → its URL is in the box", async () => {
      allow(/^other-host: /, /^failed: GET .* net::ERR_ABORTED/);
      const site = await startFeeds();
      site.pages.set("/show?a=b%20c", (_request, response) =>
        response.writeHead(200, { "content-type": "text/html" }).end("<p>A show"),
      );
      await openView(page, en.views.import);
      const bookmark = link(page, en.bookmarklet.name);
      const href = (await bookmark.getAttribute("href")) ?? "";
      await bookmark.click();
      await status(page, en.bookmarklet.lead).waitFor();
      await page.goto(`${site.url}/show?a=b%20c`);
      await page.evaluate(href.replace(/^javascript:/, ""));
      await until(() => field(page).inputValue(), `${site.url}/show?a=b%20c`);
    });

    await t.test("box: what the share sheet sends → the link in it, or the words; nonsense → no error", async () => {
      for (const [query, text] of [
        ["share-title=A+show&share-text=Listen%3A+https%3A%2F%2Fa.example%2Ffeed+now", "https://a.example/feed"],
        ["share-url=https%3A%2F%2Fb.example%2F&share-text=x", "https://b.example/"],
        ["share-title=Some+words", "Some words"],
        ["share-title=&share-text=%00%ff%E0&share-url=%", undefined],
      ] as const) {
        await page.goto(`${server.url}/?${query}`);
        await field(page).waitFor();
        if (text !== undefined) await until(() => field(page).inputValue(), text);
        assert.equal(new URL(page.url()).search, "");
      }
    });
    await finish();
  });
});
