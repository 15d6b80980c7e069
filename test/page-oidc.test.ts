import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { isolate } from "../web/src/ui/isolate.ts";
import { signUp } from "./support/accounts.ts";
import { CLIENT, listenForProvider } from "./support/oidc-provider.ts";
import { assertNoOverflow, button, dialog, fill, heading, PASSWORD, showView, visit } from "./support/page-accounts.ts";
import { startServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { account, errors, list } = en;
const NAME = "Club <&\"'>";
const provider = await listenForProvider();
const settings = {
  EARMARK_ACCOUNTS: "true",
  EARMARK_SIGN_UP: "true",
  EARMARK_OIDC_ISSUER: provider.url,
  EARMARK_OIDC_CLIENT_ID: CLIENT.id,
  EARMARK_OIDC_CLIENT_SECRET: CLIENT.secret,
  EARMARK_OIDC_NAME: NAME,
};
const server = await startServer(settings);
const open = await startServer({ ...settings, EARMARK_OIDC_SIGN_UP: "true", EARMARK_BASE_PATH: "/pods" });
await provider.configure([`${server.url}/oidc/callback`, `${open.url}/pods/oidc/callback`]);

/** The provider's own pages load fonts from elsewhere, and requests of the page are aborted when it is left. */
const FOREIGN = [/^other-host: /, /^failed: /, /^console: /, /^policy: /, /^response: (401|404) GET /];
const signInWith = (page: Page) => button(page, format(account.signInWith, { name: isolate(NAME) }));

/** Signs in at the provider, whose pages have two forms. */
async function logIn(page: Page, login: string): Promise<void> {
  await page.waitForURL(`${provider.url}/interaction/**`);
  await page.locator("input[name=login]").fill(login);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.getByRole("heading", { name: "Authorize" }).waitFor();
  await page.locator("button[type=submit]").click();
}

describe("OpenID Connect on the page", () => {
  test("provider: new user, sign-up on, base path → signed in; signed out → the sign-in page", async () => {
    const { page, allow, finish } = await visit({ server: open, path: "/pods/" });
    allow(...FOREIGN);
    await signInWith(page).click();
    await logIn(page, "alice");
    await heading(page, list.emptyTitle).waitFor();
    assert.equal(page.url(), `${open.url}/pods/`);
    await showView(page, "account");
    await page.getByText(format(account.ownProvider, { name: isolate(NAME) })).waitFor();
    assert.equal(await page.getByLabel(account.current).count(), 0, "there is no password to change");
    await button(page, account.signOut).first().click();
    await signInWith(page).waitFor();
    await finish();
  });

  test("one browser", async (t) => {
    const { page, context, allow, problems, finish } = await visit({ server, path: "/healthz" });

    await t.test("provider: error code in the link → a fixed message, never text from the link", async () => {
      for (const [code, text] of [
        ["oidc-denied", errors["oidc-denied"]],
        ["constructor", errors["oidc-failed"]],
      ] as const) {
        await page.goto(`/#sign-in-failed=${code}`);
        await page.getByRole("alert").getByText(text).waitFor();
        await page.goto("/healthz");
      }
      await page.goto("/#sign-in-failed=<b>Call%20me</b>");
      await signInWith(page).waitFor();
      assert.equal(await page.getByRole("alert").count(), 0);
      assert.deepEqual(await problems(), []);
    });

    await t.test("provider: canceled there → the page says so, and another attempt is possible", async () => {
      allow(...FOREIGN);
      await signInWith(page).click();
      await page.waitForURL(`${provider.url}/interaction/**`);
      await page.getByRole("link", { name: /cancel/i }).click();
      await page.getByRole("alert").getByText(errors["oidc-denied"]).waitFor();
      await signInWith(page).click();
      await logIn(page, "stranger");
      await page.getByRole("alert").getByText(errors["no-account"]).waitFor();
    });

    await t.test(
      "provider: account linked, used to sign in, unlinked → the page is correct at every step",
      async () => {
        await signUp(server.port, "ann", PASSWORD);
        // The provider forgets the stranger.
        await context.clearCookies();
        await fill(page, { name: "ann", password: PASSWORD });
        await button(page, account.signIn).click();
        await showView(page, "account");
        await button(page, format(account.link, { name: isolate(NAME) })).click();
        await logIn(page, "ann-at-club");
        // The page returns to the view from which it left.
        await page.getByText("ann-at-club", { exact: true }).waitFor();
        assert.equal(page.url(), `${server.url}/#account`);
        await assertNoOverflow(page);
        await button(page, account.signOut).first().click();
        await signInWith(page).click();
        await page.getByRole("navigation").waitFor();
        await showView(page, "account");
        await page.getByText("ann", { exact: true }).waitFor();
        await button(page, format(account.unlinkLabel, { name: isolate("ann-at-club") })).click();
        await button(dialog(page), account.unlink).click();
        await page.getByText("ann-at-club", { exact: true }).waitFor({ state: "detached" });
        await button(page, account.signOut).first().click();
        await signInWith(page).click();
        await page.getByRole("alert").getByText(errors["no-account"]).waitFor();
        assert.equal(page.url(), `${server.url}/`, "without the error in the URL");
        // The password still works.
        await fill(page, { name: "ann", password: PASSWORD });
        await button(page, account.signIn).click();
        await page.getByRole("navigation").waitFor();
      },
    );
    await finish();
  });

  test("provider: down → the page says so", async () => {
    const down = await startServer({ ...settings, EARMARK_OIDC_ISSUER: "http://127.0.0.1:1" });
    const { page, allow, finish } = await visit({ server: down });
    allow(/^response: 503 POST /, /^console: /);
    await signInWith(page).click();
    await page.getByRole("alert").getByText(errors["identity-provider-unavailable"]).waitFor();
    await finish();
  });
});
