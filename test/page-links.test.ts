import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { PodcastRecord } from "../src/podcasts/podcast-store.ts";
import { assertAccessible } from "./support/browser.ts";
import { learn } from "./support/fetching.ts";
import { openView } from "./support/navigation.ts";
import { button, feedsOf, status, subscribe, until, visit } from "./support/page.ts";
import { png } from "./support/png.ts";
import { newId, PLAIN, startServer, type TestServer } from "./support/server.ts";
import { de, en, es, format, fr, zh } from "./support/words.ts";

const { links: words, alerts: alertWords } = en;
const DAY_MS = 24 * 60 * 60_000;
const PUBLIC = ["https://feeds.example/news", "https://feeds.example/stories"];
const PRIVATE = "https://www.patreon.com/rss/show";

async function serverWithList(ofNews: Partial<PodcastRecord> = {}): Promise<TestServer> {
  const server = await startServer();
  const [news = "", stories = ""] = PUBLIC;
  await server.operate([
    { op: "add", data: { type: "subscription", id: newId(), attributes: { feed_url: news, folders: ["News/Daily"] } } },
    { op: "add", data: { type: "subscription", id: newId(), attributes: { feed_url: stories, title: "My stories" } } },
  ]);
  await subscribe(server, [PRIVATE]);
  await learn(server.store, news, { status: "ok", title: "The News", author: "Ann", ...ofNews });
  await learn(server.store, stories, { status: "ok", title: "The Stories" });
  await learn(server.store, PRIVATE, { status: "ok", title: "Members only" });
  return server;
}

const linksOf = async ({ call }: TestServer): Promise<{ attributes: Record<string, unknown> }[]> =>
  (await call("GET", "/v1/links")).json.data;
const create = async (server: TestServer, attributes: object): Promise<string> => {
  const body = JSON.stringify({ data: { type: "link", attributes } });
  const { json } = await server.call("POST", "/v1/links", { headers: { "Content-Type": PLAIN }, body });
  return new URL(json.data.attributes.url).pathname;
};
const shoot = async (page: Page, name: string) => {
  const folder = process.env["SCREENSHOTS"];
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
};

describe("links", { concurrency: 2 }, () => {
  for (const size of ["desktop", "phone"] as const) {
    test(`links on a ${size}: created after a preview → listed with its URL, marked in the list, revoked`, async () => {
      const server = await serverWithList();
      const { page, finish } = await visit({ server, size });
      await openView(page, words.title);
      await page.getByText(words.none).waitFor();
      await page.getByText(format(words.willShare, { n: 2 })).click();
      await page.getByText(format(words.leftOut, { n: 1 })).click();
      await page.getByText("Members only").waitFor();
      await assertAccessible(page);
      await shoot(page, `links-new-${size}`);

      await page.getByLabel(words.folder).selectOption("News");
      await page.getByText(format(words.willShare, { n: 1 })).waitFor();
      await page.getByLabel(words.linkTitle).fill("For you");
      await button(page, words.create).click();
      await status(page, words.created).waitFor();
      await page.getByText("For you").waitFor();
      await until(async () => (await linksOf(server)).map(({ attributes }) => attributes["folder"]), ["News"]);
      const [{ attributes } = { attributes: {} }] = await linksOf(server);
      await page.getByText(String(attributes["url"])).waitFor();
      await assertAccessible(page);
      await shoot(page, `links-${size}`);

      await page.goto(`/#list`);
      if (size === "phone") await button(page, en.list.asList).click();
      const row = page.getByRole("listitem").filter({ hasText: "The News" });
      await row.getByRole("img", { name: words.shared }).waitFor();
      assert.equal(await page.getByRole("img", { name: words.shared }).count(), 1);
      await assertAccessible(page);
      await shoot(page, `links-mark-${size}`);

      await page.goto(`/#links`);
      await button(page, format(words.revokeLabel, { name: "For you" })).click();
      await page.getByRole("dialog").getByRole("button", { name: words.revoke }).click();
      await status(page, words.revoked).waitFor();
      await until(async () => (await linksOf(server)).length, 0);
      await page.getByText(words.none).waitFor();
      await finish();
    });
  }

  test("links: a podcast is unchecked, own titles, another language → the link has these choices", async () => {
    const server = await serverWithList();
    const { page, finish } = await visit({ server, at: "links" });
    await page.getByText(format(words.willShare, { n: 2 })).click();
    await page.getByRole("checkbox", { name: "My stories" }).uncheck();
    await page.getByText(format(words.willShare, { n: 1 })).waitFor();
    await page.getByRole("checkbox", { name: words.ownTitles }).check();
    await page.getByText(words.showsOwnTitles).waitFor();
    await page.getByLabel(words.language).selectOption("fr");
    await button(page, words.create).click();
    await status(page, words.created).waitFor();
    const [{ attributes } = { attributes: {} }] = await linksOf(server);
    const { language, own_titles, except } = attributes as { language: string; own_titles: boolean; except: string[] };
    assert.deepEqual([language, own_titles, except.length], ["fr", true, 1]);
    await finish();
  });

  test("links: every language → the view and the alerts fit a phone", async () => {
    const server = await serverWithList();
    for (const [locale, own] of Object.entries({ de, es, fr, zh })) {
      const { page, finish } = await visit({ server, at: "links", size: "phone", locale, words: own });
      await page.getByText(format(own.links.willShare, { n: 2 })).waitFor();
      await fits(page);
      await page.goto("/#alerts");
      await page.getByText(own.alerts.none).waitFor();
      await fits(page);
      await finish();
    }
  });
});

async function fits(page: Page): Promise<void> {
  assert.equal(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true, "too wide");
}

describe("page of a link", { concurrency: 2 }, () => {
  const artwork = { hash: "0123456789abcdef".repeat(2), small: Buffer.alloc(0), large: Buffer.alloc(0) };

  for (const [size, theme] of [
    ["desktop", "light"],
    ["desktop", "dark"],
    ["phone", "light"],
    ["phone", "dark"],
  ] as const) {
    test(`page of a link: ${size}, ${theme} → covers, titles and links; accessible; nothing blocked`, async () => {
      const server = await serverWithList();
      for (let count = 0; count < 9; count += 1) {
        const url = `https://feeds.example/show-${"abcdefghi"[count]}`;
        await subscribe(server, [url]);
        const title = [
          "A show with a rather long title that needs several lines on a phone",
          "Short",
          "名前のあるポッドキャスト",
        ][count % 3];
        const image = png(64, 64);
        await learn(
          server.store,
          url,
          {
            status: "ok",
            title: title ?? "",
            author: "An author",
            homepageUrl: "https://home.example/",
            artwork: artwork.hash,
          },
          { ...artwork, small: image, large: image },
        );
      }
      const path = await create(server, { kind: "list", title: "Podcasts that I like" });
      const { page, allow, finish } = await visit({ server, size, theme });
      allow(/ERR_ABORTED/);
      await page.goto(path);
      await page.getByRole("heading", { name: "Podcasts that I like" }).waitFor();
      await page.getByRole("heading", { name: "The News" }).waitFor();
      assert.equal(await page.getByRole("listitem").count(), 11);
      assert.equal(await page.getByText("Members only").count(), 0);
      await page.getByRole("link", { name: "OPML file for podcast apps" }).waitFor();
      assert.equal(await page.evaluate("document.scripts.length"), 0);
      await until(() => page.evaluate("[...document.images].filter((image) => image.naturalWidth > 0).length"), 9);
      await fits(page);
      await assertAccessible(page);
      await shoot(page, `shared-${size}-${theme}`);
      await finish();
    });
  }

  test("page of a link: revoked → says so; accessible", async () => {
    const server = await startServer();
    const { page, allow, finish } = await visit({ server });
    allow(/404/);
    await page.goto("/l/AAAAAAAAAAAAAAAAAAAAAAAA");
    await page.getByRole("heading", { name: "This link does not exist" }).waitFor();
    await assertAccessible(page);
    await shoot(page, "shared-gone");
    await finish();
  });

  test("page of a link: the fragment with its secret → the list as an import, which adds it", async () => {
    const [theirs, mine] = [await serverWithList(), await startServer()];
    const secret = (await create(theirs, { kind: "list" })).slice("/l/".length);
    const { text } = await theirs.call("GET", `/l/${secret}.opml`);
    const { page, allow, finish } = await visit({
      server: mine,
      prepare: (opened) =>
        opened.route("**/l/*.opml", (route) =>
          route.request().url().includes(secret)
            ? route.fulfill({ contentType: "text/x-opml", body: text })
            : route.continue(),
        ),
    });
    allow(/404/);
    await page.goto(`/#import=${secret}`);
    await page.getByRole("button", { name: format(en.import.start, { n: 2 }) }).click();
    await until(() => feedsOf(mine), PUBLIC);
    assert.equal(await page.evaluate("location.hash"), "#import");
    await page.goto("/#list");
    await page.goto("/#import=AAAAAAAAAAAAAAAAAAAAAAAA");
    await page.getByText(en.import.linkGone).waitFor();
    await finish();
  });
});

describe("alerts", { concurrency: 2 }, () => {
  for (const size of ["desktop", "phone"] as const) {
    test(`alerts on a ${size}: new ones → a mark in the navigation until they were shown`, async () => {
      const since = Date.now() - 9 * DAY_MS;
      const server = await serverWithList({ status: "gone", failure: "gone", failureSince: since, failures: 9 });
      await server.store.alerts.recordBackup(new Date(since));
      const { page, allow, finish } = await visit({ server, size });
      const newAlerts = format(alertWords.withNew, { n: 2 });
      const mark = page.locator(".has-mark").filter({ visible: true });
      await mark.waitFor();
      assert.ok((await mark.getAttribute("aria-label"))?.includes(newAlerts));
      await shoot(page, `alerts-mark-${size}`);
      await openView(page, newAlerts);
      await page.getByText("No longer found: The News").waitFor();
      await page.getByText("The last backup is old").waitFor();
      await mark.waitFor({ state: "hidden" });
      await assertAccessible(page);
      await shoot(page, `alerts-${size}`);
      await page.reload();
      await button(page, "The News").click();
      await page.getByRole("dialog").waitFor();
      assert.equal(await mark.count(), 0);
      const { json } = await server.call("GET", "/v1/subscriptions");
      await server.call("DELETE", `/v1/subscriptions/${json.data[0].id}`);
      await server.store.alerts.recordBackup(new Date());
      allow(/ERR_ABORTED/);
      await page.goto("/#alerts");
      await page.reload();
      await page.getByText(alertWords.none).waitFor();
      await finish();
    });
  }
});
