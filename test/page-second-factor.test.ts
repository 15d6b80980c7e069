import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { NOBODY } from "../src/accounts/account-store.ts";
import { asUser } from "../src/accounts/caller.ts";
import { stepAt, totpCode } from "../src/accounts/totp.ts";
import { isolate } from "../web/src/ui/isolate.ts";
import { assertAccessible } from "./support/browser.ts";
import { newUser, PASSWORD, start } from "./support/http-accounts.ts";
import {
  assertFieldError,
  assertNoOverflow,
  button,
  dialog,
  field,
  fill,
  heading,
  isFocused,
  showView,
  until,
  visit,
} from "./support/page-accounts.ts";
import { readQrCode } from "./support/qr-code.ts";
import { de, en, format } from "./support/words.ts";

const { account, administration, errors, secondFactor: words } = en;
type Server = Awaited<ReturnType<typeof start>>;

/** With a clock of its own, so that no test waits for the next code. */
const server = await start({ EARMARK_REQUIRE_SECOND_FACTOR: "admins" });

async function visitAsNewUser(role: "member" | "administrator", options: Parameters<typeof visit>[0] = {}) {
  const user = await newUser(server);
  if (role === "administrator") await server.administration.change(asUser(NOBODY), user.user, "promote", server.now());
  const session = user.Cookie.slice("earmark=".length);
  const as = { id: "", name: user.name, password: PASSWORD, session, cookie: user.Cookie };
  return { user, ...(await visit({ server, as, path: "/#account", ...options })) };
}

const codeFor = (secret: string, at: Server = server) => totpCode(secret, stepAt(at.now()));

/** Adds an authenticator app. Returns its secret and the recovery codes. */
async function addApp(page: Page, words: typeof en.secondFactor = en.secondFactor) {
  await button(page, words.add).click();
  const squares = dialog(page).getByRole("img", { name: words.qr }).locator("path");
  const uri = readQrCode((await squares.getAttribute("d")) ?? "");
  const secret = (await dialog(page).locator("code").textContent()) ?? "";
  assert.equal(new URL(uri).searchParams.get("secret"), secret);
  await assertNoOverflow(page);
  await field(dialog(page), words.code).fill(codeFor(secret));
  await button(dialog(page), words.turnOn).click();
  await heading(page, words.codes).waitFor();
  const recoveryCodes = await dialog(page).getByRole("listitem").allTextContents();
  return { secret, recoveryCodes };
}

async function signOut(page: Page): Promise<void> {
  await button(page, account.signOut).first().click();
  await heading(page, account.signIn).waitFor();
}

describe("page: second factor", () => {
  test("a member", async (t) => {
    const { user, page, allow, finish } = await visitAsNewUser("member", { size: "desktop", theme: "light" });
    allow(/^response: 401 /);
    let secret = "";
    let recoveryCodes: readonly string[] = [];

    await t.test("second factor: added with the QR code → recovery codes are shown once", async () => {
      await page.getByText(words.lead).waitFor();
      allow(/^response: 422 POST \S+\/v1\/second-factor$/);
      await button(page, words.add).click();
      const code = field(dialog(page), words.code);
      assert.deepEqual(
        [await code.getAttribute("autocomplete"), await code.getAttribute("inputmode")],
        ["one-time-code", "numeric"],
      );
      assert.ok(await isFocused(code));
      await code.fill("no code");
      await button(dialog(page), words.turnOn).click();
      await assertFieldError(code, errors["invalid-one-time-code"]);
      await page.getByText(words.podcastApps).waitFor();
      await assertAccessible(page);
      await button(dialog(page), en.cancel).click();
      ({ secret, recoveryCodes } = await addApp(page));
      assert.equal(new Set(recoveryCodes).size, 10);
      await assertAccessible(page);
      const downloading = page.waitForEvent("download");
      await button(dialog(page), words.download).click();
      const file = await (await downloading).path();
      assert.equal(readFileSync(file, "utf8"), `${recoveryCodes.join("\n")}\n`);
      await page.keyboard.press("Escape");
      assert.equal(await heading(page, words.codes).count(), 1, "not closed by accident");
      await button(dialog(page), en.apps.finished).click();
      await page.getByText(format(words.codesLeft, { n: 10 })).waitFor();
      await assertAccessible(page);
    });

    await t.test("second factor: sign-in → asks for the code, and says if it is wrong", async () => {
      await signOut(page);
      await fill(page, { name: user.name, password: PASSWORD });
      assert.equal(await field(page, account.oneTimeCode).count(), 0);
      await button(page, account.signIn).click();
      const code = field(page, account.oneTimeCode);
      await code.waitFor();
      await until(() => isFocused(code), "the field has the focus");
      assert.deepEqual(
        [await code.getAttribute("autocomplete"), await code.getAttribute("inputmode")],
        ["one-time-code", "numeric"],
      );
      await assertAccessible(page);
      await code.fill(codeFor(secret));
      await button(page, account.signIn).click();
      await assertFieldError(code, errors["one-time-code-failed"]);
      server.wait(30_000);
      await code.fill(codeFor(secret));
      await button(page, account.signIn).click();
      await showView(page, "account");
      await page.getByText(format(words.codesLeft, { n: 10 })).waitFor();
    });

    await t.test("second factor: a recovery code → signs in instead, and one less is left", async () => {
      await signOut(page);
      await fill(page, { name: user.name, password: PASSWORD });
      await button(page, account.signIn).click();
      await button(page, account.useRecoveryCode).click();
      const code = field(page, account.recoveryCode);
      await until(() => isFocused(code), "the field has the focus");
      assert.equal(await code.getAttribute("inputmode"), "text");
      await code.fill(recoveryCodes[3] ?? "");
      await button(page, account.signIn).click();
      await showView(page, "account");
      await page.getByText(format(words.codesLeft, { n: 9 })).waitFor();
      await button(page, words.newCodes).click();
      await button(dialog(page), words.newCodes).click();
      await heading(page, words.codes).waitFor();
      const replaced = await dialog(page).getByRole("listitem").allTextContents();
      assert.equal(new Set([...replaced, ...recoveryCodes]).size, 20);
      await button(dialog(page), en.apps.finished).click();
      await page.getByText(format(words.codesLeft, { n: 10 })).waitFor();
    });

    await t.test("second factor: an old sign-in → the page asks to sign in again before a change", async () => {
      server.wait(11 * 60_000);
      allow(/^response: 403 (DELETE|POST) \S+\/v1\/second-factor/);
      await button(page, words.remove).click();
      await button(dialog(page), words.remove).click();
      await dialog(page).getByRole("alert").getByText(errors["recent-sign-in-required"]).waitFor();
      await button(dialog(page), en.cancel).click();
      await signOut(page);
      await fill(page, { name: user.name, password: PASSWORD });
      await button(page, account.signIn).click();
      await field(page, account.oneTimeCode).fill(codeFor(secret));
      await button(page, account.signIn).click();
      await showView(page, "account");
      await button(page, words.remove).click();
      await button(dialog(page), words.remove).click();
      await page.getByText(words.lead).waitFor();
      assert.equal((await server.store.accounts.get(user.user))?.totpSecret, undefined);
    });

    await t.test("second factor: the account is deleted → asks for the code too", async () => {
      server.wait(30_000);
      ({ secret } = await addApp(page));
      await button(dialog(page), en.apps.finished).click();
      server.wait(30_000);
      await button(page, account.delete).click();
      await field(page, account.deleteConfirm).fill(PASSWORD);
      await button(dialog(page), account.delete).click();
      await field(dialog(page), account.oneTimeCode).fill(codeFor(secret));
      await button(dialog(page), account.delete).click();
      await heading(page, account.signIn).waitFor();
      assert.equal(await server.store.accounts.get(user.user), undefined);
    });
    await finish();
  });

  test("an administrator", async (t) => {
    const lost = await newUser(server);
    const added = { secret: "GEZDGNBVGY3TQOJQ", step: 1, latest: 1, recoveryHashes: [], keepSession: undefined };
    await server.store.accounts.secondFactors.add(asUser(lost.user), added, server.now());
    const { page, allow, finish } = await visitAsNewUser("administrator", { size: "phone", theme: "dark" });
    allow(/^response: 401 POST \S+\/v1\/sessions$/);
    let secret = "";

    await t.test("second factor: required and missing → the administration leads to the account", async () => {
      await page.getByText(words.required).waitFor();
      await page.getByRole("link", { name: administration.title }).click();
      await page.getByText(administration.errors["second-factor-setup-required"]).waitFor();
      assert.equal(await heading(page, administration.accounts).count(), 0);
      await assertAccessible(page);
      await button(page, administration.setUpSecondFactor).click();
      ({ secret } = await addApp(page));
      await assertNoOverflow(page);
      await button(dialog(page), en.apps.finished).click();
      await page.getByText(words.required).waitFor({ state: "detached" });
      await page.getByRole("link", { name: administration.title }).click();
      await heading(page, administration.accounts).waitFor();
    });

    await t.test("second factor: of someone who has lost it → removed, after the own password and code", async () => {
      server.wait(30_000);
      await button(page, format(administration.manageLabel, { name: isolate(lost.name) })).click();
      await button(dialog(page), administration.resetSecondFactor).click();
      await field(dialog(page), administration.yourPassword).fill(PASSWORD);
      await button(dialog(page), administration.resetSecondFactor).click();
      await field(dialog(page), account.oneTimeCode).fill(codeFor(secret));
      await assertAccessible(page);
      await button(dialog(page), administration.resetSecondFactor).click();
      await dialog(page).waitFor({ state: "detached" });
      const entry = format(administration.actions["second-factor-reset"], { target: isolate(lost.name) });
      await page.getByText(entry).waitFor();
      assert.equal((await server.store.accounts.get(lost.user))?.totpSecret, undefined);
    });
    await finish();
  });

  test("second factor: in German on a phone → no text is cut off", async () => {
    const { page, finish } = await visitAsNewUser("member", { size: "phone", theme: "light", locale: "de-DE" });
    await addApp(page, de.secondFactor);
    await assertNoOverflow(page);
    await button(dialog(page), de.apps.finished).click();
    await assertNoOverflow(page);
    await finish();
  });
});
