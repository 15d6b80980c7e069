import type { Page } from "playwright-core";
import { en, type Words } from "./words.ts";

/** Opens the view with this title, which is behind “More” on narrow windows unless it has a tab. */
export async function openView(page: Page, title: string, words: Words = en): Promise<void> {
  const links = page.getByRole("navigation").getByRole("link");
  await links.first().waitFor();
  // Hidden links have no role.
  const target = page.getByRole("navigation").getByRole("link", { name: title, exact: true });
  if ((await target.count()) === 0) await openMore(page, words);
  await target.first().click();
}

/** Opens the settings, which are behind “More” on narrow windows. */
export async function openSettings(page: Page, words: Words = en): Promise<void> {
  const button = page.getByRole("button", { name: words.settings.title, exact: true });
  await page.getByRole("navigation").getByRole("link").first().waitFor();
  if (!(await button.isVisible())) await openMore(page, words);
  await button.click();
}

/** Opens the form for many feeds, to which the box at the top of the list leads. */
export const openAddMany = (page: Page): Promise<unknown> => page.evaluate(`location.hash = "add-many"`);

const openMore = (page: Page, words: Words) =>
  page.getByRole("navigation").getByRole("link", { name: words.views.more }).click();
