import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NOBODY } from "../src/accounts/account-store.ts";
import { Accounts } from "../src/accounts/accounts.ts";
import { Administration } from "../src/accounts/administration.ts";
import { asUser } from "../src/accounts/caller.ts";
import { newToken, type SignedIn, signUp } from "./support/accounts.ts";
import { openView } from "./support/navigation.ts";
import {
  accounts,
  assertNoOverflow,
  button,
  dialog,
  field,
  heading,
  newUser,
  PASSWORD,
  pageContents,
  server,
  showView,
  userIdOf,
  visit,
} from "./support/page-accounts.ts";
import { readQrCode } from "./support/qr-code.ts";
import { startServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const administration = new Administration(server.store.administration, accounts);
const { account, administration: words } = en;

async function newAdmin(): Promise<SignedIn> {
  const user = await newUser();
  const refused = await administration.change(asUser(NOBODY), await userIdOf(user), "promote", new Date());
  assert.equal(refused, undefined);
  return user;
}
const statesOf = async (user: SignedIn) => (await accounts.get(await userIdOf(user)))?.disabledAt !== undefined;

describe("page: administration", { concurrency: 3 }, () => {
  test("a member", async (t) => {
    const user = await newUser();
    const { token } = await newToken(server.port, user, { label: "an app", scope: "write" });
    const path = `/api/2/devices/${user.name}/phone.json`;
    const headers = { Authorization: `Basic ${btoa(`${user.name}:${token}`)}`, "Content-Type": "application/json" };
    assert.equal((await server.call("POST", path, { headers, body: '{"caption":"My phone"}' })).status, 200);
    const { page, finish } = await visit({ as: user, path: "/#account" });

    await t.test(
      "account: browsers, devices and apps → together, and the page asks before it revokes one",
      async () => {
        for (const name of [account.sessions, en.apps.devices, en.apps.tokens]) await heading(page, name).waitFor();
        await page.getByText("My phone").waitFor();
        const revoke = button(page, format(en.apps.revokeLabel, { label: "an app" }));
        await revoke.click();
        await button(dialog(page), en.cancel).click();
        assert.ok((await accounts.verifyCredential(token, "token", new Date())) !== undefined);
        await revoke.click();
        await button(dialog(page), en.apps.revoke).click();
        await revoke.waitFor({ state: "detached" });
        assert.equal(await accounts.verifyCredential(token, "token", new Date()), undefined);
      },
    );

    await t.test(
      "administration: a member → no link, and the view only says that it is for administrators",
      async () => {
        await heading(page, account.title).waitFor();
        assert.equal(await page.getByRole("link", { name: words.title }).count(), 0);
        await page.goto(`${server.url}/#people`);
        await page.getByText(words.errors["admin-required"]).waitFor();
        assert.equal(await page.getByRole("main").getByRole("button").count(), 0);
      },
    );
    await finish();
  });

  test("an administrator", async (t) => {
    // So that the tests do not meet the last administrator.
    await newAdmin();
    const admin = await newAdmin();
    const { page, finish } = await visit({ as: admin, size: "phone", theme: "dark" });
    for (const width of [1280, 390])
      await t.test(
        `administration: ${width} pixels: disable, enable and delete an account → done, and in the log`,
        async () => {
          await page.setViewportSize({ width, height: 844 });
          const target = await newUser(["https://one.example/"]);
          await openView(page, words.title);
          const manage = button(page, format(words.manageLabel, { name: `${target.name}` }));
          await manage.waitFor();
          await assertNoOverflow(page);
          const act = async (action: string, password?: string) => {
            await manage.click();
            await button(dialog(page), action).click();
            if (password !== undefined) await field(dialog(page), words.yourPassword).fill(password);
            await button(dialog(page), action).click();
            await dialog(page).waitFor({ state: "detached" });
          };
          await act(words.disable);
          await page.getByText(format(words.actions["account-disabled"], { target: `${target.name}` })).waitFor();
          assert.equal(await statesOf(target), true);
          await act(words.enable);
          await page.getByText(format(words.actions["account-enabled"], { target: `${target.name}` })).waitFor();
          assert.equal(await statesOf(target), false);
          await act(words.delete, PASSWORD);
          await page.getByText(format(words.actions["account-deleted"], { target: `${target.name}` })).waitFor();
          assert.equal(await accounts.findByName(target.name), undefined);
          assert.equal(await manage.count(), 0);
        },
      );

    await t.test("administration: invite → a link and a QR code that create one account; revoked → gone", async () => {
      await field(page, words.note).fill("for Bob");
      await page.getByLabel(words.validFor).selectOption("30");
      await button(page, words.create).click();
      const link = (await dialog(page).locator("code").textContent()) ?? "";
      assert.match(link, new RegExp(`^${server.url}/join#emi_[\\w-]{43}$`));
      const squares = dialog(page).getByRole("img", { name: words.qr }).locator("path");
      assert.equal(readQrCode((await squares.getAttribute("d")) ?? ""), link);
      await assertNoOverflow(page);
      await button(dialog(page), en.apps.finished).click();
      const revoke = button(page, format(words.revokeLabel, { note: "for Bob" }));
      await revoke.click();
      await button(dialog(page), words.revoke).click();
      await revoke.waitFor({ state: "detached" });
      await page.getByText(format(words.actions["invitation-revoked"], { target: "for Bob" })).waitFor();
      assert.ok(!(await pageContents(page)).includes(link.slice(-43)));
    });

    await t.test(
      "administration: reset link → the person sets a new password, and can choose to revoke app access",
      async () => {
        const target = await newUser();
        const { token } = await newToken(server.port, target, { label: "an app", scope: "read" });
        await showView(page, "account");
        await page.getByRole("link", { name: words.title }).click();
        await button(page, format(words.manageLabel, { name: `${target.name}` })).click();
        await button(dialog(page), words.resetPassword).click();
        await button(dialog(page), words.resetPassword).click();
        const link = (await dialog(page).locator("code").textContent()) ?? "";
        assert.match(link, new RegExp(`^${server.url}/reset-password#emr_[\\w-]{43}$`));

        const person = await visit({ path: link.slice(server.url.length) });
        await heading(person.page, en.resetPassword.title).waitFor();
        assert.ok(!(await pageContents(person.page)).includes("emr_"), "the secret has left the address bar");
        const password = field(person.page, account.newPassword);
        await password.fill("a longer one this time");
        assert.equal(await password.getAttribute("type"), "password");
        await button(person.page, en.showPassword).click();
        assert.equal(await password.getAttribute("type"), "text");
        await person.page.getByLabel(account.revokeTokens).check();
        await button(person.page, en.resetPassword.submit).click();
        await heading(person.page, en.list.emptyTitle).waitFor();
        assert.equal(await accounts.verifyCredential(token, "token", new Date()), undefined);

        await showView(person.page, "account");
        await button(person.page, account.signOut).click();
        await heading(person.page, account.signIn).waitFor();
        person.allow(/^response: 403 POST \S+\/v1\/password-resets/);
        await person.page.goto(link);
        await password.fill("another password");
        await button(person.page, en.resetPassword.submit).click();
        await person.page.getByText(words.errors["invalid-reset-link"]).waitFor();
        await person.finish();
      },
    );
    await finish();
  });

  test("administration: the only administrator → not offered to lose the role or the access, until there is another", async () => {
    const own = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });
    const ownAccounts = new Accounts(own.store.accounts, { signUp: true });
    const promote = async (name: string) => {
      const found = await ownAccounts.findByName(name);
      assert.ok(found);
      const change = new Administration(own.store.administration, ownAccounts);
      assert.equal(await change.change(asUser(NOBODY), found.user, "promote", new Date()), undefined);
    };
    const only = await signUp(own.port, "only", PASSWORD);
    await promote("only");
    const { page, finish } = await visit({ server: own, as: only });
    const offered = async (name: string) => {
      await page.goto("/#people");
      await page.reload();
      await button(page, format(words.manageLabel, { name })).click();
      const buttons = dialog(page).locator(".buttons button");
      await buttons.first().waitFor();
      return buttons.allTextContents();
    };
    assert.deepEqual(await offered("only"), [words.resetPassword, words.delete]);
    await signUp(own.port, "other", PASSWORD);
    assert.deepEqual(await offered("only"), [words.resetPassword]);
    await dialog(page).getByText(words.errors["last-admin"]).waitFor();
    await assertNoOverflow(page);
    assert.deepEqual(await offered("other"), [words.resetPassword, words.promote, words.disable, words.delete]);
    await promote("other");
    assert.deepEqual(await offered("only"), [words.resetPassword, words.demote, words.disable, words.delete]);
    assert.equal(await dialog(page).getByText(words.errors["last-admin"]).count(), 0);
    await finish();
  });
});
