import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible } from "./support/browser.ts";
import { openSettings, openView } from "./support/navigation.ts";
import { link, numberedFeeds, rows, until, visit } from "./support/page.ts";
import { en } from "./support/words.ts";

const shownLinks = (page: Parameters<typeof rows>[0]) =>
  page.getByRole("navigation", { name: en.mainMenu }).getByRole("link").allTextContents();
const TABS = [en.views.list, en.views.add, en.views.listening, en.history.title];
const OTHERS = [en.alerts.title, en.views.import, en.views.apps, en.links.title, en.server.title];

test("navigation: a wide window → every view in the sidebar, which stays while the list scrolls", async () => {
  const { page, finish } = await visit({ feeds: numberedFeeds(60) });
  await rows(page).first().waitFor();
  assert.deepEqual(await shownLinks(page), [...TABS, ...OTHERS, en.api]);
  await page.mouse.move(800, 500);
  await page.mouse.wheel(0, 3_000);
  await until(() => page.evaluate("scrollY > 1000"), true);
  // "Add" leads to the box at the top of the list.
  for (const title of [...TABS, ...OTHERS].filter((each) => each !== en.views.add)) {
    await openView(page, title);
    await until(() => link(page, title).getAttribute("aria-current"), "page");
    await until(() => page.title(), `${title} – Earmark`);
  }
  await assertAccessible(page);
  await finish();
});

test("navigation: a phone → tabs, the other views behind More, and the list begins near the top", async () => {
  const { page, finish } = await visit({ feeds: numberedFeeds(60), size: "phone" });
  const box = await rows(page).first().boundingBox();
  assert.ok(box !== null && box.y < 190, `the first podcast begins at ${box?.y}`);
  assert.deepEqual(await shownLinks(page), [...TABS, en.views.more]);
  await link(page, en.views.more).click();
  await page.getByRole("heading", { name: en.views.more }).waitFor();
  assert.equal(await page.evaluate("location.hash"), "#more");
  await assertAccessible(page);
  for (const title of OTHERS) {
    await openView(page, title);
    await until(() => page.title(), `${title} – Earmark`);
    await until(() => link(page, en.views.more).getAttribute("aria-current"), "true");
    await page.goBack();
    await page.getByRole("heading", { name: en.views.more }).waitFor();
  }
  await openSettings(page);
  await page.getByRole("dialog", { name: en.settings.title }).waitFor();
  await finish();
});
