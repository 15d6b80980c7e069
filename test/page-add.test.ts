import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { assertAccessible } from "./support/browser.ts";
import { startFeeds } from "./support/feeds.ts";
import { THIS_MACHINE } from "./support/fetching.ts";
import { openAddMany } from "./support/navigation.ts";
import {
  advanceUntil,
  button,
  feedsOf,
  hosts,
  installClock,
  link,
  numberedFeeds,
  results,
  status,
  until,
  visit,
} from "./support/page.ts";
import { startServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { outcome, errors } = en;

const field = (page: Page) => page.getByLabel(en.add.label);
const line = (page: Page, number: number) =>
  page.getByLabel(format(en.add.line, { n: String(number) }), { exact: true });

async function submit(page: Page, text: string, count: number): Promise<void> {
  await field(page).fill(text);
  await button(page, format(en.add.submit, { n: count })).click();
}

describe("add", { concurrency: 3 }, () => {
  test("add: texts of all kinds, one after the other → an outcome for each line", async (t) => {
    const options = { theme: "dark", feeds: ["https://old.example/"] } as const;
    const { page, context: browser, server, finish } = await visit({ at: "add-many", ...options });
    await t.test("add: the server does not fetch feeds → no search is offered", async () => {
      assert.equal(await button(page, format(en.add.submit, { n: 0 })).isDisabled(), true);
      await field(page).fill("https://site.example/show");
      assert.equal(await button(page, format(en.add.submit, { n: 1 })).isEnabled(), true);
      assert.equal(await button(page, en.feedSearch.button).count(), 0);
      await submit(page, "https://site.example/", 1);
      await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 0 })).waitFor();
      assert.deepEqual(await feedsOf(server), ["https://old.example/", "https://site.example/"]);
      await button(page, en.add.more).click();
    });

    await t.test("add: one URL → added, and first in the list", async () => {
      await submit(page, "https://new.example/feed", 1);
      await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 0 })).waitFor();
      await until(() => results(page), [`https://new.example/feed${outcome.added}`]);
      await link(page, en.import.seeList).click();
      await until(() => hosts(page), ["new.example", "site.example", "old.example"]);
      assert.deepEqual(await feedsOf(server), [
        "https://old.example/",
        "https://site.example/",
        "https://new.example/feed",
      ]);
      await openAddMany(page);
      await button(page, en.add.more).click();
    });

    await t.test(
      "add: links to pages of services → a warning for each, and they can be added nevertheless",
      async () => {
        const pages = [
          "https://open.spotify.com/show/1",
          "https://feeds.example/rss",
          "https://podcasts.apple.com/us/podcast/x/id1",
          "https://www.youtube.com/feeds/videos.xml?channel_id=UC1",
          "youtube.com/@someone",
        ];
        await field(page).fill(pages.join("\n"));
        const warnings = page.getByRole("main").getByRole("status").getByRole("listitem");
        await until(
          () => warnings.allTextContents(),
          [
            format(en.add.servicePage, { service: "Spotify", line: 1 }),
            format(en.add.servicePage, { service: "Apple Podcasts", line: 3 }),
            format(en.add.servicePage, { service: "YouTube", line: 5 }),
          ],
        );
        await submit(page, "https://open.spotify.com/show/1", 1);
        await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 0 })).waitFor();
        assert.equal((await feedsOf(server)).at(-1), "https://open.spotify.com/show/1");
        await button(page, en.add.more).click();
      },
    );

    await t.test("add: Ctrl+Enter → submits the form", async () => {
      await field(page).fill("https://keyboard.example/feed");
      await field(page).press("Control+Enter");
      await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 0 })).waitFor();
      await until(() => page.evaluate("document.activeElement.id"), "content");
      assert.equal((await feedsOf(server)).at(-1), "https://keyboard.example/feed");
      await button(page, en.add.more).click();
    });

    await t.test("add: many lines of all kinds → an outcome for each", async () => {
      const before = await feedsOf(server);
      const text = [
        "",
        "  https://spaced.example/feed\t",
        "feed://schemed.example/rss",
        "",
        "plain.example/podcast.xml",
        "<https://bracketed.example/>",
        "   ",
        "http://new.example/feed/",
        "https://two words.example/",
        "not a URL",
        "ftp://files.example/feed",
        "https://spaced.example/feed",
        "<b>bold</b>",
      ].join("\r\n");
      await submit(page, text, 10);
      await status(page, format(en.add.done, { added: 4, existing: 2, rejected: 4 })).waitFor();
      const added = [
        "https://spaced.example/feed",
        "https://schemed.example/rss",
        "https://plain.example/podcast.xml",
        "https://bracketed.example/",
      ];
      await until(
        () => results(page),
        [
          ...added.map((feed) => `${feed}${outcome.added}`),
          `http://new.example/feed/${outcome["already-subscribed"]}`,
          `${outcome.refused} – ${errors["feed-url-whitespace"]}`,
          `${outcome.refused} – ${errors["feed-url-whitespace"]}`,
          `${outcome.refused} – ${errors["feed-url-not-http"]}`,
          `https://spaced.example/feed${outcome["already-subscribed"]}`,
          `${outcome.refused} – ${errors["feed-url-not-http"]}`,
        ],
      );
      assert.equal(await line(page, 7).inputValue(), "not a URL");
      assert.equal(await line(page, 10).inputValue(), "<b>bold</b>");
      assert.deepEqual(await feedsOf(server), [...before, ...added]);
      await button(page, en.add.more).click();
    });

    await t.test("add: invalid lines are fixed in place and sent with Enter → added", async () => {
      await submit(page, "https://one.example/\nhttps://two example/\nthree\nfour", 4);
      await page.getByText(en.add.fix).waitFor();
      await line(page, 2).fill("https://two.example/");
      await line(page, 3).fill(" three.example ");
      await line(page, 4).fill("");
      await line(page, 2).press("Enter");
      await status(page, format(en.add.done, { added: 3, existing: 0, rejected: 0 })).waitFor();
      await until(
        () => results(page),
        ["https://one.example/", "https://two.example/", "https://three.example"].map((feed) => feed + outcome.added),
      );
      assert.deepEqual((await feedsOf(server)).slice(-3), [
        "https://one.example/",
        "https://two.example/",
        "https://three.example",
      ]);
      await button(page, en.add.more).click();
      assert.equal(await field(page).inputValue(), "");
    });

    await t.test("add: invalid lines → can be filtered and put back into the form", async () => {
      await submit(page, "https://four.example/\ninvalid\nhttps://five.example/\ninvalid too", 4);
      await page.getByLabel(`${outcome.refused} 2`).check({ force: true });
      await until(async () => (await results(page)).length, 2);
      await line(page, 2).fill("still invalid");
      await button(page, format(en.add.retry, { n: 2 })).click();
      await status(page, format(en.add.done, { added: 2, existing: 0, rejected: 2 })).waitFor();
      await until(async () => (await results(page)).length, 4);
      assert.equal(await line(page, 2).inputValue(), "still invalid");
      await button(page, en.add.more).click();
      assert.equal(await field(page).inputValue(), "still invalid\ninvalid too\n");
    });

    await t.test("add: another view in between → the text is kept", async () => {
      await field(page).fill("https://half.example/fe");
      await link(page, en.views.list).click();
      await page.getByRole("heading", { level: 1, name: en.list.title }).waitFor();
      await openAddMany(page);
      assert.equal(await field(page).inputValue(), "https://half.example/fe");
      await submit(page, "invalid\nalso", 2);
      await line(page, 1).fill("half-fixed.exa");
      await page.goBack();
      await page.goForward();
      assert.equal(await line(page, 1).inputValue(), "half-fixed.exa");
      await button(page, en.add.more).click();
    });

    await t.test("add: 2,000 lines pasted on a phone → all added, few rows rendered", async () => {
      await page.setViewportSize({ width: 390, height: 844 });
      await browser.grantPermissions(["clipboard-read", "clipboard-write"]);
      const before = (await feedsOf(server)).length;
      const text = [...numberedFeeds(2_000), "invalid"].join("\n");
      await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
      await field(page).fill("");
      await field(page).press("Control+V");
      await button(page, format(en.add.submit, { n: 2_001 })).click();
      await status(page, format(en.add.done, { added: 2_000, existing: 0, rejected: 1 })).waitFor();
      assert.ok((await results(page)).length < 60);
      await page.getByLabel(`${outcome.refused} 1`).check({ force: true });
      await page.getByLabel(format(en.add.line, { n: 2_001 })).pressSequentially(" still");
      assert.equal((await feedsOf(server)).length, before + 2_000);
    });
    await finish();
  });

  test("add: the server fetches feeds → finds those of a page", async (t) => {
    const site = await startFeeds();
    const server = await startServer({ EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE });
    const { page, allow, finish } = await visit({ server, at: "add-many", size: "phone" });
    allow(/^response: 422 POST \S+\/v1\/feed-searches/);
    await t.test("add: the home page of a site → its feeds are offered before anything is added", async () => {
      const link = (path: string, title: string) =>
        `<link rel="alternate" type="application/rss+xml" title="${title}" href="${path}">`;
      site.pages.set("/", (_request, response) =>
        response.end(`${link("/rss", "The show")}${link(`/${"long/".repeat(30)}`, "Comments")}`),
      );
      site.feed("/rss", { title: "The show" });
      await submit(page, `https://feeds.example/rss\n${site.url}/`, 2);
      await page.getByText(format(en.feedSearch.found, { line: 2 }), { exact: true }).waitFor();
      await assertAccessible(page);
      const root = "document.documentElement";
      assert.equal(await page.evaluate(`${root}.scrollWidth <= ${root}.clientWidth`), true, "nothing is cut off");
      assert.deepEqual(await feedsOf(server), [], "nothing is added yet");
      await button(page, format(en.feedSearch.useLabel, { name: "The show" })).click();
      assert.equal(await field(page).inputValue(), `https://feeds.example/rss\n${site.url}/rss`);
      await button(page, format(en.add.submit, { n: 2 })).click();
      await status(page, format(en.add.done, { added: 2, existing: 0, rejected: 0 })).waitFor();
      assert.deepEqual(await feedsOf(server), ["https://feeds.example/rss", `${site.url}/rss`]);
      await button(page, en.add.more).click();
    });

    await t.test("add: Find feeds → what each page declares; adding does not depend on it", async () => {
      site.pages.set("/none", (_request, response) => response.end("<p>Hello"));
      const feed = site.feed("/show", { title: "The show" });
      await field(page).fill([`${site.url}/none`, feed, `${site.url}/missing`].join("\n"));
      await button(page, en.feedSearch.button).click();
      for (const text of [
        format(en.feedSearch.none, { line: 1 }),
        format(en.feedSearch.feedItself, { line: 2 }),
        format(en.feedSearch.failed, { line: 3, reason: en.reasons["page-unavailable"] }),
      ])
        await page.getByText(text, { exact: true }).waitFor();
      await submit(page, `${site.url}/none`, 1);
      await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 0 })).waitFor();
    });
    await finish();
  });

  test("add: the server does not answer → the text is kept", async (t) => {
    const { page, server, allow, finish } = await visit({ at: "add-many", prepare: installClock });
    allow(/^(response: 503|failed:) POST/);
    await t.test("add: the server is busy → nothing is lost", async () => {
      await page.route("**/v1/operations", (route) => route.fulfill({ status: 503, headers: { "Retry-After": "0" } }));
      await submit(page, "https://busy.example/\ninvalid", 2);
      await status(page, en.add.failed).waitFor();
      await button(page, en.add.more).click();
      assert.equal(await field(page).inputValue(), "https://busy.example/\ninvalid\n");
      await page.unroute("**/v1/operations");
      await button(page, format(en.add.submit, { n: 2 })).click();
      await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 1 })).waitFor();
      assert.deepEqual(await feedsOf(server), ["https://busy.example/"]);
      await button(page, en.add.more).click();
    });

    await t.test("add: the server is unreachable → saved on this device, and sent later", async () => {
      await page.route("**/v1/operations", (route) => route.abort());
      await submit(page, "https://one.example/\nhttps://two.example/\nhttps://one.example/\nnot a URL", 4);
      await status(page, format(en.add.saved, { n: 2 })).waitFor();
      await until(
        () => results(page),
        [
          `https://one.example/${outcome.saved}`,
          `https://two.example/${outcome.saved}`,
          `https://one.example/${outcome["already-subscribed"]}`,
          `${outcome.refused} – ${errors["feed-url-not-http"]}`,
        ],
      );
      const waiting = status(page, format(en.connection.waiting, { n: 2 }));
      await waiting.waitFor();
      await link(page, en.views.list).click();
      await until(() => hosts(page), ["two.example", "one.example", "busy.example"]);
      await page.unroute("**/v1/operations");
      await advanceUntil(page, waiting, "hidden");
      await until(async () => (await feedsOf(server)).slice(1), ["https://one.example/", "https://two.example/"]);
    });
    await finish();
  });
});
