import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { openAddMany } from "./support/navigation.ts";
import {
  button,
  focused,
  hosts,
  menuItem,
  NEWEST_FIRST,
  numberedFeeds,
  rows,
  status,
  subscribe,
  THREE,
  until,
  visit,
} from "./support/page.ts";
import { en, format } from "./support/words.ts";

const nameOf = (host: string) => `${host}/${host.startsWith("pod-") ? "feed.xml" : "feed"}`;
const menuLabel = (host: string) => format(en.list.actions, { name: nameOf(host) });
const menuButton = (page: Page, host: string) => button(page, menuLabel(host));
/** With keys only, from the button that has the focus. */
async function removeByKeys(page: Page): Promise<void> {
  await page.keyboard.press("Enter");
  await menuItem(page, en.podcasts.remove).waitFor();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
}
const search = (page: Page) => page.getByRole("searchbox", { name: en.list.search });
const isAt = (page: Page, title: string) => page.getByRole("heading", { level: 1, name: title }).waitFor();

/** Whether the focused element is in the window and not covered. */
const isFocusVisible = (page: Page) =>
  page.evaluate<boolean>(`(() => {
    const { left, width, top, height } = document.activeElement.getBoundingClientRect();
    return [0.2, 0.5, 0.8].every((part) =>
      document.activeElement.contains(document.elementFromPoint(left + part * width, top + part * height)));
  })()`);

describe("keyboard", { concurrency: 2 }, () => {
  test("keyboard: a short list → every control can be reached and used", async (t) => {
    const { page, server, finish } = await visit({ feeds: THREE.slice(0, 1) });
    await t.test("keyboard: Tab → visual order, and the skip link leads to the content", async () => {
      await rows(page).first().waitFor();
      const order: string[] = [];
      const name = `((element) => element.ariaLabel || element.textContent.trim() || element.id)(document.activeElement)`;
      for (let presses = 0; presses < 20; presses += 1) {
        await page.keyboard.press("Tab");
        order.push(await page.evaluate<string>(name));
        assert.ok(await isFocusVisible(page), `${order.at(-1)} has the focus and is hidden`);
      }
      assert.deepEqual(order, [
        en.skip,
        "Earmark",
        en.views.list,
        en.views.add,
        en.views.listening,
        en.history.title,
        en.alerts.title,
        en.views.import,
        en.views.apps,
        en.links.title,
        en.server.title,
        en.settings.title,
        en.api,
        "search",
        en.box.add,
        `${en.list.newest}${en.list.oldest}${en.podcasts.byLatest}${en.podcasts.byTitle}${en.podcasts.byFolder}`,
        en.list.asCovers,
        en.list.more,
        "one.example",
        menuLabel("one.example"),
      ]);
      await button(page, en.skip).press("Enter");
      await until(() => focused(page), "content");
      await page.keyboard.press("Tab");
      await until(() => page.evaluate<string>(name), "search");
    });

    await t.test("keyboard: single keys → every view, undo and the settings", async () => {
      for (const feed of THREE.slice(1)) await subscribe(server, [feed]);
      await until(() => hosts(page), NEWEST_FIRST);
      await isAt(page, en.list.title);
      await button(page, en.list.asCovers).focus();
      await page.keyboard.press("a");
      await until(() => focused(page), "search");
      await search(page).blur();
      await page.keyboard.press("i");
      await isAt(page, en.import.title);
      await page.keyboard.press("l");
      await isAt(page, en.list.title);
      await menuButton(page, "two.example").focus();
      await removeByKeys(page);
      await until(() => hosts(page), ["three.example", "one.example"]);
      await page.keyboard.press("u");
      await status(page, en.list.undone).waitFor();
      await until(() => hosts(page), NEWEST_FIRST);
      await button(page, en.settings.title).focus();
      await page.keyboard.press("?");
      const dialog = page.getByRole("dialog", { name: en.settings.title });
      await dialog.waitFor();
      await page.keyboard.press("a");
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      await until(() => page.evaluate("document.activeElement.textContent"), en.settings.title);
      await isAt(page, en.list.title);
      await openAddMany(page);
      await page.getByLabel(en.add.label).focus();
      await page.keyboard.type("a/l?u");
      assert.equal(await page.getByLabel(en.add.label).inputValue(), "a/l?u");
      await page.getByRole("navigation").getByRole("link", { name: en.views.list }).click();
    });

    await t.test(
      "keyboard: the focused element disappears → the focus moves to the next one or the content",
      async () => {
        await menuButton(page, "two.example").focus();
        await removeByKeys(page);
        await until(() => focused(page), menuLabel("one.example"));
        await removeByKeys(page);
        await until(() => focused(page), menuLabel("three.example"));
        await button(page, en.list.undo).press("Enter");
        await until(() => hosts(page), ["three.example", "one.example"]);
        await until(() => focused(page), "content");
        await status(page, en.list.undone).waitFor();
        await subscribe(server, THREE.slice(1, 2));
        await until(async () => (await hosts(page)).length, 3);
        await button(page, en.settings.title).press("Enter");
        await page.getByRole("dialog").getByRole("button", { name: en.close }).press("Enter");
        await until(() => page.evaluate("document.activeElement.textContent"), en.settings.title);
      },
    );

    await t.test("keyboard: shortcuts disabled → single keys do nothing, also after a reload", async () => {
      await rows(page).first().waitFor();
      await page.keyboard.press("?");
      await page.getByLabel(en.settings.useShortcuts).uncheck();
      await page.keyboard.press("Escape");
      const pressAll = async () => {
        await page.getByRole("dialog").waitFor({ state: "detached" });
        await menuButton(page, "two.example").focus();
        await removeByKeys(page);
        await until(() => hosts(page), ["three.example", "one.example"]);
        for (const key of ["a", "i", "/", "?", "u"]) await page.keyboard.press(key);
        // Rendered by now, if anything was.
        await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
        assert.equal(await page.getByRole("dialog").count(), 0);
        assert.deepEqual(await hosts(page), ["three.example", "one.example"]);
        assert.notEqual(await focused(page), "search");
        await isAt(page, en.list.title);
        await button(page, en.list.undo).click();
        await status(page, en.list.undone).waitFor();
      };
      await pressAll();
      await page.reload();
      await rows(page).first().waitFor();
      await pressAll();
      await button(page, en.settings.title).click();
      await page.getByLabel(en.settings.useShortcuts).check();
      await page.keyboard.press("Escape");
      await page.keyboard.press("i");
      await isAt(page, en.import.title);
      await page.getByRole("navigation").getByRole("link", { name: en.views.list }).click();
    });

    await t.test("keyboard: / and fast typing → everything typed is in the search, from any view", async () => {
      await subscribe(server, ["https://megaphone.example/feed"]);
      await menuButton(page, "megaphone.example").waitFor();
      /** All keys in one go, faster than any timer of the page. */
      const type = (text: string) =>
        page.evaluate(`(async () => {
          for (const key of ${JSON.stringify(text)}) {
            const options = { key, bubbles: true, cancelable: true };
            const isTyped = document.activeElement.dispatchEvent(new KeyboardEvent("keydown", options));
            if (isTyped) document.execCommand("insertText", false, key);
            await new Promise((resolve) => { const { port1, port2 } = new MessageChannel(); port2.onmessage = resolve; port1.postMessage(0); });
          }
        })()`);
      await type("/mega?al");
      assert.equal(await search(page).inputValue(), "mega?al");
      await isAt(page, en.list.title);
      await search(page).fill("");
      await page.getByRole("navigation").getByRole("link", { name: en.views.import }).click();
      await isAt(page, en.import.title);
      await type("/mega");
      await isAt(page, en.list.title);
      assert.equal(await search(page).inputValue(), "mega");
      await until(() => hosts(page), ["megaphone.example"]);
      await until(() => focused(page), "search");
      await search(page).fill("");
    });
    await finish();
  });

  test("keyboard: a long list → the focus is always visible", async (t) => {
    const count = 500;
    const { page, finish } = await visit({ theme: "dark", feeds: numberedFeeds(count) });
    await t.test("keyboard: ↓ in the search → the first control of the first row, also after scrolling", async () => {
      await rows(page).first().waitFor();
      const focusedText = () => page.evaluate<string>("document.activeElement.textContent");
      await page.keyboard.press("/");
      await page.keyboard.press("ArrowDown");
      await until(focusedText, "pod-500.example");
      await page.keyboard.press("ArrowDown");
      await until(focusedText, "pod-499.example");
      await page.mouse.move(600, 400);
      await page.mouse.wheel(0, 6_000);
      await until(async () => (await hosts(page)).includes("pod-410.example"), true);
      await search(page).fill("pod-1");
      await page.keyboard.press("ArrowDown");
      await until(focusedText, "pod-199.example");
      await until(() => isFocusVisible(page), true);
      await search(page).fill("");
    });

    await t.test("keyboard: arrows through a long list → the same control of each row, always visible", async () => {
      await page.evaluate("scrollTo(0, 0)");
      await menuButton(page, `pod-${count}.example`).focus();
      let at = count;
      const press = async (key: string, by: number) => {
        at = Math.min(count, Math.max(1, at - by));
        await page.keyboard.press(key);
        await until(() => focused(page), menuLabel(`pod-${at}.example`));
        await until(() => isFocusVisible(page), true);
      };
      for (let times = 0; times < 12; times += 1) await press("ArrowDown", 1);
      await press("ArrowUp", -1);
      await press("PageDown", 10);
      await press("PageUp", -10);
      await press("End", count);
      await press("ArrowDown", 1);
      await press("ArrowUp", -1);
      await press("Home", -count);
      await press("ArrowUp", -1);
      await press("ArrowDown", 1);
      // Scrolling away does not move the focus.
      await page.mouse.move(600, 400);
      await page.mouse.wheel(0, 20_000);
      await until(async () => (await hosts(page)).includes(`pod-${count - 312}.example`), true);
      assert.equal(await focused(page), menuLabel(`pod-${at}.example`));
      await press("ArrowDown", 1);
    });

    // The sticky toolbar is higher than the page's `scroll-padding-block`.
    for (const size of ["desktop", "phone"] as const)
      await t.test(
        `keyboard: Shift+Tab through a list on a ${size} → the focused control is never covered`,
        async () => {
          await page.setViewportSize(size === "phone" ? { width: 390, height: 844 } : { width: 1280, height: 800 });
          await page.evaluate("scrollTo(0, 0)");
          await menuButton(page, "pod-500.example").focus();
          await page.keyboard.press("PageDown");
          await page.keyboard.press("PageDown");
          await until(() => focused(page), menuLabel("pod-480.example"));
          for (let presses = 0; presses < 30; presses += 1) {
            await page.keyboard.press("Shift+Tab");
            assert.ok(await isFocusVisible(page), `${await focused(page)} is hidden`);
          }
        },
      );

    await t.test(
      "keyboard: PageDown on a phone → Shift+Tab reaches the row above, even before a scroll event",
      async () => {
        const noScrollEvents = `addEventListener("scroll", (event) => event.stopImmediatePropagation(), true)`;
        await page.evaluate("scrollTo(0, 0)");
        await menuButton(page, "pod-500.example").focus();
        await page.evaluate(noScrollEvents);
        for (const host of ["pod-490.example", "pod-480.example", "pod-470.example"]) {
          await page.keyboard.press("PageDown");
          await until(() => focused(page), menuLabel(host));
        }
        const row = () => page.evaluate<string>(`document.activeElement.closest("li")?.dataset.index`);
        while ((await row()) === "30") await page.keyboard.press("Shift+Tab");
        assert.equal(await row(), "29");
      },
    );
    await finish();
  });
});
