import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { IMPORTING } from "./support/account-imports.ts";
import { assertAccessible } from "./support/browser.ts";
import { OLD_FEEDS, startOldServer } from "./support/old-server.ts";
import { button, feedsOf, link, status, until, visit } from "./support/page.ts";
import { assertNoOverflow } from "./support/page-accounts.ts";
import { startServer } from "./support/server.ts";
import { de, en, es, fr, type Words, zh } from "./support/words.ts";

const { accountImport: words, outcome } = en;

const field = (page: Page, label: string) => page.getByLabel(label, { exact: true });
const section = (page: Page) => page.getByRole("region", { name: words.title });

async function enter(page: Page, url: string, name: string, password: string): Promise<void> {
  await field(page, words.address).fill(url);
  await field(page, words.userName).fill(name);
  await field(page, words.password).fill(password);
  await button(page, words.preview).click();
}

/** The counts of both parts, such as `New 3`. */
async function counts(page: Page): Promise<string[]> {
  const numbers = await section(page).getByRole("definition").allTextContents();
  return (await section(page).getByRole("term").allTextContents()).map((term, index) => `${term} ${numbers[index]}`);
}

describe("account import", { concurrency: 2 }, () => {
  test("account import: first run → offered; refused with the reason; preview, import and result; again → nothing new", async (t) => {
    const old = await startOldServer();
    const server = await startServer(IMPORTING);
    const { page, allow, finish } = await visit({ server, size: "phone" });
    allow(/^response: 422 POST/);

    await t.test("account import: empty list → leads to the form", async () => {
      await link(page, en.list.moveHere).click();
      await section(page).waitFor();
      await until(() => field(page, words.address).evaluate((input) => input.matches(":focus")), true);
      assert.equal(await button(page, words.preview).isDisabled(), true);
      await assertAccessible(page);
      await assertNoOverflow(page);
    });

    await t.test("account import: wrong password, no server → the reason, and the form stays filled in", async () => {
      await enter(page, old.url, old.name, "wrong");
      const alert = page.getByRole("alert").getByText(words.errors["import-sign-in-failed"]);
      await alert.waitFor();
      const { height = 0 } = page.viewportSize() ?? {};
      await until(async () => ((await alert.boundingBox())?.y ?? height) < height - 100, true);
      await field(page, words.address).fill("not an address");
      await button(page, words.preview).click();
      await page.getByRole("alert").getByText(words.errors["import-url-invalid"]).waitFor();
      assert.equal(await field(page, words.userName).inputValue(), old.name);
      await assertAccessible(page);
    });

    await t.test("account import: preview → counts, and nothing is added before it is confirmed", async () => {
      await enter(page, old.url, old.name, old.password);
      await section(page).getByText(words.episodeActions, { exact: true }).waitFor();
      await until(() => counts(page), [`${outcome.new} 3`, `${outcome.new} 5`]);
      assert.deepEqual(await feedsOf(server), []);
      await assertAccessible(page);
      await assertNoOverflow(page);
    });

    await t.test("account import: confirmed → result, and the list has the feeds", async () => {
      await button(page, words.start).click();
      await section(page).getByRole("status").getByText(words.done).waitFor();
      await until(() => counts(page), [`${outcome.added} 3`, `${outcome.added} 5`]);
      assert.deepEqual(await feedsOf(server), OLD_FEEDS);
      await assertAccessible(page);
    });

    await t.test("account import: again → nothing new, and nothing to confirm", async () => {
      await button(page, words.another).click();
      assert.equal(await field(page, words.password).inputValue(), "");
      await field(page, words.password).fill(old.password);
      await button(page, words.preview).click();
      await section(page).getByText(words.nothingNew).waitFor();
      await until(
        () => counts(page),
        [`${outcome.new} 0`, `${outcome["already-subscribed"]} 3`, `${outcome.new} 0`, `${words.notNewer} 5`],
      );
      assert.equal(await button(page, words.start).count(), 0);
      await button(page, en.cancel).click();
      await button(page, words.preview).waitFor();
    });
    await finish();
  });

  test("account import: Nextcloud → its login page in a new tab; waits until access is allowed", async () => {
    const old = await startOldServer();
    const server = await startServer(IMPORTING);
    const { page, allow, finish } = await visit({ server, at: "import", theme: "dark" });
    allow(/^other-host: /, /^response: 401 GET/);
    await field(page, words.address).fill(old.url);
    const opened = page.waitForEvent("popup");
    await button(page, words.nextcloud).click();
    const tab = await opened;
    await tab.waitForURL(`${old.url}/**`);
    assert.equal(await tab.evaluate("window.opener"), null);
    await status(page, words.stages.waiting).waitFor();
    const loginUrl = await link(page, words.openLogin).getAttribute("href");
    assert.ok(loginUrl?.startsWith(`${old.url}/`));
    await assertAccessible(page);
    await old.allow(loginUrl ?? "");
    await until(() => counts(page), [`${outcome.new} 3`, `${outcome.new} 5`]);
    await button(page, words.start).click();
    await section(page).getByRole("status").getByText(words.done).waitFor();
    assert.deepEqual(await feedsOf(server), OLD_FEEDS);
    assert.equal(await old.tokens(), 1, "the app password was deleted");
    await tab.close();
    await finish();
  });

  test("account import: canceled while it waits → back to the form; another view meanwhile → it continues", async () => {
    const old = await startOldServer();
    const server = await startServer(IMPORTING);
    const { page, allow, finish } = await visit({ server, at: "import" });
    allow(/^other-host: /, /^response: 401 GET/);
    await field(page, words.address).fill(old.url);
    const opened = page.waitForEvent("popup");
    await button(page, words.nextcloud).click();
    const tab = await opened;
    await link(page, words.openLogin).waitFor();
    await page.goto("/#list");
    await page.goto("/#import");
    await link(page, words.openLogin).waitFor();
    await button(page, en.cancel).click();
    await button(page, words.preview).waitFor();
    assert.equal(await field(page, words.address).inputValue(), old.url);
    assert.equal(await page.getByRole("alert").count(), 0);
    await tab.close();
    await finish();
  });

  for (const [locale, words] of Object.entries<Words>({ de, es, fr, zh })) {
    test(`account import: in ${locale}, on a phone → form, preview and errors fit and are accessible`, async () => {
      const old = await startOldServer();
      const server = await startServer(IMPORTING);
      const { page, allow, finish } = await visit({ server, at: "import", size: "phone", locale, words });
      allow(/^response: 422 POST/);
      const own = words.accountImport;
      const check = async () => {
        await assertAccessible(page);
        await assertNoOverflow(page);
      };
      await field(page, own.address).fill(old.url);
      await field(page, own.userName).fill(old.name);
      await field(page, own.password).fill("wrong");
      await button(page, own.preview).click();
      await page.getByRole("alert").getByText(own.errors["import-sign-in-failed"]).waitFor();
      await check();
      await field(page, own.password).fill(old.password);
      await button(page, own.preview).click();
      await button(page, own.start).waitFor();
      await check();
      await button(page, own.start).click();
      await page.locator("section").getByRole("status").getByText(own.done).waitFor();
      await check();
      await finish();
    });
  }
});
