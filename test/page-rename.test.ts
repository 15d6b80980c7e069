import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { assertAccessible } from "./support/browser.ts";
import { learn } from "./support/fetching.ts";
import { button, choose, hosts, menuItem, rows, status, subscribe, until, visit } from "./support/page.ts";
import { startServer, type TestServer } from "./support/server.ts";
import { de, en, format } from "./support/words.ts";

const { podcasts: words } = en;

const FEED = "https://feeds.example/";

/** Subscribed to in this order, and known by the feeds' titles. */
async function serverWith(...titles: readonly string[]): Promise<TestServer> {
  const server = await startServer();
  for (const title of titles) {
    await subscribe(server, [FEED + title]);
    await learn(server.store, FEED + title, { status: "ok", title });
  }
  return server;
}

async function titlesOf({ call }: TestServer): Promise<(string | undefined)[]> {
  const { json } = await call("GET", "/v1/subscriptions");
  return json.data.map(({ attributes }: { attributes: { title?: string } }) => attributes.title);
}

const field = (page: Page, name: string) =>
  page.getByRole("textbox", { name: format(words.nameLabel, { name }), exact: true });
const rename = (page: Page, name: string) => choose(page, name, en.apps.rename);
const titleButton = (page: Page, name: string) => rows(page).getByRole("button", { name, exact: true });
const isFocused = (page: Page, name: string) =>
  titleButton(page, name).evaluate((element) => element.ownerDocument.activeElement === element);

describe("rename in the row", { concurrency: 2 }, () => {
  test("rename: rows are renamed one after the other → saved, and the focus stays there", async (t) => {
    const server = await serverWith("Apples", "Bees", "Cats");
    const { page, finish } = await visit({ server });
    await t.test("rename: Escape → as before; Enter → saved, can be undone, and the row has the focus", async () => {
      await until(() => hosts(page), ["Cats", "Bees", "Apples"]);
      await rename(page, "Bees");
      const selected = "document.activeElement.value.slice(document.activeElement.selectionStart)";
      await until(() => page.evaluate(selected), "Bees");
      await assertAccessible(page);
      await page.keyboard.type("Wasps");
      await page.keyboard.press("Escape");
      await until(() => isFocused(page, "Bees"), true);
      assert.deepEqual(await hosts(page), ["Cats", "Bees", "Apples"]);

      await page.keyboard.press("F2");
      await field(page, "Bees").waitFor();
      // Keys of the page and the list are letters here.
      await page.keyboard.type("ua /");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await until(() => hosts(page), ["Cats", "ua /", "Apples"]);
      await until(() => isFocused(page, "ua /"), true);
      await status(page, format(words.renamed, { name: "ua /" })).waitFor();
      await until(() => titlesOf(server), [undefined, "ua /", undefined]);
      await button(page, en.list.undo).click();
      await until(() => hosts(page), ["Cats", "Bees", "Apples"]);
      await status(page, words.renameUndone).waitFor();
      await until(() => titlesOf(server), [undefined, undefined, undefined]);

      await titleButton(page, "Apples").focus();
      await page.keyboard.press("F2");
      await field(page, "Apples").fill("Pears");
      await button(page, en.apps.save).click();
      await until(() => titlesOf(server), ["Pears", undefined, undefined]);
      await page.keyboard.press("u");
      await until(() => titlesOf(server), [undefined, undefined, undefined]);
    });

    await t.test("rename: the title in the feed, or nothing → no custom title", async () => {
      for (const [text, shown, stored] of [
        ["Mine", "Mine", "Mine"],
        ["  ", "Apples", undefined],
        ["Other", "Other", "Other"],
        [" Apples ", "Apples", undefined],
      ] as const) {
        await rows(page).last().getByRole("button").last().click();
        await menuItem(page, en.apps.rename).click();
        await rows(page).last().getByRole("textbox").fill(text);
        await page.keyboard.press("Enter");
        await until(() => hosts(page), ["Cats", "Bees", shown]);
        await until(() => titlesOf(server), [stored, undefined, undefined]);
      }
    });

    await t.test(
      "rename: the list changes meanwhile, and is ordered by title → the text stays, the focus follows the row",
      async () => {
        await until(() => hosts(page), ["Cats", "Bees", "Apples"]);
        await rename(page, "Bees");
        await field(page, "Bees").fill("Zebr");
        await subscribe(server, [`${FEED}new`]);
        await until(() => hosts(page), ["feeds.example", "Cats", "Apples"]);
        await page.keyboard.type("as");
        await page.getByLabel(en.list.order).selectOption(words.byTitle);
        await until(() => hosts(page), ["Apples", "Cats", "feeds.example"]);
        await field(page, "Bees").press("Enter");
        await until(() => hosts(page), ["Apples", "Cats", "feeds.example", "Zebras"]);
        await until(() => isFocused(page, "Zebras"), true);
      },
    );

    await t.test("rename: in two folders → one text field, in the row that was chosen", async () => {
      const { json } = await server.call("GET", "/v1/subscriptions");
      const update = { type: "subscription", id: json.data[0].id, attributes: { folders: ["A", "B"] } };
      await server.operate([{ op: "update", data: update }]);
      await page.getByRole("searchbox").fill("Apples");
      await page.getByLabel(en.list.order).selectOption(words.byFolder);
      await until(async () => (await hosts(page)).length, 2);
      await rows(page).last().getByRole("button").last().click();
      await menuItem(page, en.apps.rename).click();
      await until(() => rows(page).getByRole("textbox").count(), 1);
      await until(() => rows(page).last().getByRole("textbox").count(), 1);
    });
    await finish();
  });

  test("rename: offline on a phone, in German → saved here, sent later; without overflow in dark colors", async () => {
    const server = await serverWith("Apples");
    const { page, context, allow, finish } = await visit({
      server,
      size: "phone",
      theme: "dark",
      locale: "de-DE",
      words: de,
    });
    const shown = () => rows(page, de).locator("strong").allTextContents();
    await until(shown, ["Apples"]);
    await context.setOffline(true);
    allow(/^failed: /);
    allow(/ERR_INTERNET_DISCONNECTED/);
    await button(page, de.list.asList).tap();
    await button(page, format(de.list.actions, { name: "Apples" })).tap();
    await menuItem(page, de.apps.rename).tap();
    const input = page.getByRole("textbox", { name: format(de.podcasts.nameLabel, { name: "Apples" }), exact: true });
    await input.fill("Äpfel und ".repeat(20));
    await assertAccessible(page);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
    await button(page, de.apps.save).tap();
    await until(shown, ["Äpfel und ".repeat(20).trim()]);
    assert.deepEqual(await titlesOf(server), [undefined]);
    await context.setOffline(false);
    await until(() => titlesOf(server), ["Äpfel und ".repeat(20).trim()]);
    await finish();
  });
});
