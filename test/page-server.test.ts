import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Accounts } from "../src/accounts/accounts.ts";
import { isAccountRefusal } from "../src/accounts/refusals.ts";
import { signIn, signUp } from "./support/accounts.ts";
import { assertAccessible } from "./support/browser.ts";
import { openView } from "./support/navigation.ts";
import { numberedFeeds, until, visit } from "./support/page.ts";
import { PASSWORD, visit as visitAs } from "./support/page-accounts.ts";
import { startServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { server: words } = en;
const HOUR_MS = 60 * 60_000;

describe("server page", { concurrency: 2 }, () => {
  test("server page: no accounts → version, database and counts; a hint unless a backup is recent", async () => {
    const server = await startServer();
    const { page, finish } = await visit({ server, feeds: numberedFeeds(3) });
    const fact = (name: string) => page.locator(".facts div").filter({ hasText: name }).locator("dd").textContent();
    await openView(page, words.title);
    await page.getByRole("heading", { level: 1, name: words.title }).waitFor();
    await until(() => fact(words.subscriptions), "3");
    assert.match((await fact(words.database)) ?? "", /^(SQLite|PostgreSQL) [\d.]+ · [\d.]+ (kB|MB)$/);
    assert.equal(await fact(words.lastBackup), words.never);
    assert.equal(await fact(words.since), en.ago.now);
    assert.equal(await page.getByText(words.accounts, { exact: true }).count(), 0);
    await page.getByText(format(words.backupHint, { command: "earmark backup" })).waitFor();
    await assertAccessible(page);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    await assertAccessible(page);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0);
    await finish();

    const backedUp = await startServer();
    await backedUp.store.alerts.recordBackup(new Date(Date.now() - 2.5 * HOUR_MS));
    const second = await visit({ server: backedUp, at: "server", size: "phone" });
    await second.page.getByText(format(en.ago.hours, { n: 2 })).waitFor();
    assert.equal(await second.page.getByText(format(words.backupHint, { command: "earmark backup" })).count(), 0);
    await second.finish();
  });

  test("server page: accounts → for administrators only", async () => {
    const server = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });
    const accounts = new Accounts(server.store.accounts, { signUp: true });
    assert.ok(!isAccountRefusal(await accounts.create("ann", PASSWORD, new Date())));
    const admin = await signIn(server.port, { name: "ann", password: PASSWORD });
    const member = await signUp(server.port, "bob", PASSWORD);
    const first = await visitAs({ server, as: admin, size: "desktop" });
    await openView(first.page, words.title);
    await first.page
      .locator(".facts div")
      .filter({ hasText: words.accounts })
      .getByText("2", { exact: true })
      .waitFor();
    await first.finish();
    const second = await visitAs({ server, as: member, size: "desktop", path: "/#server" });
    await second.page.getByText(en.administration.errors["admin-required"]).waitFor();
    assert.equal(await second.page.locator("a[href='#server']").count(), 0);
    await second.finish();
  });
});
