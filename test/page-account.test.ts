import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { asUser } from "../src/accounts/caller.ts";
import { replaceControlCharacters } from "../src/util/control-characters.ts";
import { isolate } from "../web/src/ui/isolate.ts";
import { newToken, signIn, signUp } from "./support/accounts.ts";
import { assertAccessible } from "./support/browser.ts";
import { openSettings } from "./support/navigation.ts";
import { hold } from "./support/page.ts";
import {
  accounts,
  assertFieldError,
  assertNoOverflow,
  button,
  chooseApp,
  dialog,
  endSessions,
  feedsOf,
  field,
  fill,
  heading,
  isFocused,
  matches,
  newUser,
  PASSWORD,
  pageContents,
  SIGNED_OUT,
  server,
  showView,
  signInAgain,
  until,
  userIdOf,
  visit,
} from "./support/page-accounts.ts";
import { syncDevice } from "./support/page-apps.ts";
import { readQrCode } from "./support/qr-code.ts";
import { ATOMIC, add, newId, startServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { account, apps, errors, list } = en;

describe("account", { concurrency: 3 }, () => {
  test("one user in two browsers", async (t) => {
    const ann = await newUser(["https://ann.example/feed"]);
    const other = await visit({ as: await signIn(server.port, ann, { "User-Agent": "Old Firefox/3.0 (Windows)" }) });
    other.allow(/^response: 401 GET /);
    await other.page.getByText("ann.example", { exact: true }).waitFor();
    const { page, allow, finish } = await visit({ as: ann, path: "/#account" });

    await t.test("sessions: another one is revoked → that browser has to sign in again", async () => {
      const items = page.getByRole("main").getByRole("listitem");
      await items.nth(1).waitFor();
      const [here, there] = [items.filter({ hasText: account.here }), items.filter({ hasText: "Firefox, Windows" })];
      assert.deepEqual([await items.count(), await here.count(), await there.count()], [2, 1, 1]);
      assert.equal(await here.getByRole("button").count(), 0);
      // Two of the same browser can be told apart by the time.
      const begun = (await server.call("GET", "/v1/sessions", { headers: { Cookie: ann.cookie } })).json.data;
      for (const { attributes } of begun) {
        const time = String(attributes.created_at).slice(11, 16);
        const item = attributes.current ? here : there;
        assert.match((await item.textContent()) ?? "", new RegExp(`since .*, ${time}\\b`));
      }
      await button(there, format(account.endSession, { label: "Firefox, Windows" })).click();
      await button(dialog(page), account.signOut).click();
      await there.waitFor({ state: "detached" });
      await page.getByText(account.sessionEnded).waitFor();
      assert.equal(await here.count(), 1);
      await signInAgain(other.page, ann);
    });

    await t.test("password: changed → signed in here and nowhere else", async () => {
      allow(/^response: (403|422) PATCH \S+\/v1\/me$/);
      const [current, newPassword] = [field(page, account.current), field(page, account.newPassword)];
      const change = async (from: string, to: string) => {
        await current.fill(from);
        await newPassword.fill(to);
        await button(page, account.change).click();
      };
      await change("not my password", "another one for me");
      await assertFieldError(current, errors["wrong-password"]);
      assert.equal(await newPassword.inputValue(), "another one for me");
      await change(PASSWORD, "short");
      assert.ok(await matches(newPassword, ":invalid"));
      await change(PASSWORD, "password123");
      await assertFieldError(newPassword, en.passwordProblems["too-common"]);
      await change(PASSWORD, "another one for me");
      await page.getByText(account.changed).waitFor();
      assert.equal((await current.inputValue()) + (await newPassword.inputValue()), "");
      await page.reload();
      await heading(page, account.title).waitFor();
      await signInAgain(other.page, { ...ann, password: "another one for me" });
      await showView(other.page, "account");
      await other.page.getByText(account.here, { exact: false }).first().waitFor();
    });
    await finish();
    await other.finish();
  });

  test("tokens on a phone", async (t) => {
    const ann = await newUser(["https://ann.example/feed"]);
    // By a host name: for a loopback address the page shows no QR code.
    const named = { url: server.url.replace("127.0.0.1", "pods.localhost") };
    const { page, context, allow, finish } = await visit({ server: named, as: ann, path: "/#apps", size: "phone" });
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: named.url });
    await chooseApp(page, apps.other);
    const reopen = async () => {
      await showView(page, "account");
      await showView(page, "apps");
      await chooseApp(page, apps.other);
    };

    await t.test("token: created → shown once, as text and QR code, and usable until it is revoked", async () => {
      for (const scope of ["write", "read"] as const) {
        const label = `An app with ${scope} access`;
        await field(page, apps.label).fill(label);
        await field(page, apps[scope]).check();
        await button(page, apps.create).click();
        await heading(page, format(apps.created, { label })).waitFor();
        const token = (await dialog(page).locator("code").last().textContent()) ?? "";
        assert.match(token, /^emk_[\w-]{43}$/);
        const path = await dialog(page)
          .getByRole("img", { name: apps.serverAndTokenQr })
          .locator("path")
          .getAttribute("d");
        assert.equal(readQrCode(path ?? ""), `${named.url}/#${token}`);
        await dialog(page).getByRole("button", { name: en.copy }).last().click();
        await dialog(page).getByRole("button", { name: en.copied }).waitFor();
        assert.equal(await page.evaluate("navigator.clipboard.readText()"), token);
        await button(dialog(page), apps.finished).click();
        await dialog(page).waitFor({ state: "detached" });
        assert.ok(!(await pageContents(page)).includes(token));
        const item = page.getByRole("listitem").filter({ hasText: label });
        await item.getByText(apps.neverUsed).waitFor();
        assert.equal(await item.getByText(apps.readOnly).count(), scope === "read" ? 1 : 0);

        const headers = { Authorization: `Bearer ${token}` };
        assert.equal((await server.call("GET", "/v1/subscriptions", { headers })).json.data.length, 1);
        const body = JSON.stringify({ "atomic:operations": [add(newId(), "https://app.example/feed")] });
        const sent = { headers: { ...headers, "Content-Type": ATOMIC, Accept: ATOMIC }, body };
        if (scope === "read") assert.equal((await server.call("POST", "/v1/operations", sent)).status, 403);
        await until(async () => {
          await reopen();
          await item.waitFor();
          return (await item.getByText(format(apps.used, { day: "" })).count()) === 1;
        }, "the page shows the last use");
        assert.ok(!(await pageContents(page)).includes(token));

        await button(page, format(apps.revokeLabel, { label })).click();
        await button(dialog(page), apps.revoke).click();
        await page.getByText(format(apps.revoked, { label })).waitFor();
        assert.equal((await server.call("GET", "/v1/subscriptions", { headers })).status, 401);
        await item.waitFor({ state: "detached" });
        await page.getByText(apps.noTokens).waitFor();
      }
    });

    await t.test("token: hostile and long app names → shown as text that fits", async () => {
      const labels = [
        "<img src=x onerror=alert(1)><b>Ann’s</b> &amp; co",
        "هاتفي القديم (2)",
        "W".repeat(100),
        "0",
        "\u202eevil",
      ];
      for (const label of labels) {
        await field(page, apps.label).fill(label);
        await button(page, apps.create).click();
        const shown = isolate(label);
        await heading(page, format(apps.created, { label: shown })).waitFor();
        await assertNoOverflow(page);
        await page.keyboard.press("Escape");
        await button(dialog(page), apps.finished).click();
        await page.getByText(replaceControlCharacters(label), { exact: true }).waitFor();
        await assertNoOverflow(page);
        assert.equal(await button(page, format(apps.revokeLabel, { label: shown })).count(), 1);
      }
      assert.equal(await page.locator("main b, main li img").count(), 0);
    });

    await t.test("token: above the limit → an error next to the field until one is revoked", async () => {
      const user = asUser(await userIdOf(ann));
      for (let n = 6; n <= 100; n += 1)
        await accounts.createToken(user, { label: `App ${n}`, scope: "write", expiresAt: undefined }, new Date());
      allow(/^response: 409 POST \S+\/v1\/tokens$/);
      await reopen();
      await button(page, format(apps.revokeLabel, { label: "App 100" })).waitFor();
      await field(page, apps.label).fill("One more");
      await button(page, apps.create).click();
      await assertFieldError(field(page, apps.label), errors["too-many-tokens"]);
      assert.equal(await field(page, apps.label).inputValue(), "One more");
      await button(page, format(apps.revokeLabel, { label: "App 7" })).click();
      await button(dialog(page), apps.revoke).click();
      await button(page, format(apps.revokeLabel, { label: "App 7" })).waitFor({ state: "detached" });
      await button(page, apps.create).click();
      await heading(page, format(apps.created, { label: "One more" })).waitFor();
    });
    await finish();
  });

  test("two users", async (t) => {
    const ann = await newUser(["https://ann.example/feed", "https://two.example/feed"]);
    const bob = await newUser(["https://bob.example/feed"]);
    const { token } = await newToken(server.port, ann, { label: "app of ann.example", scope: "write" });
    await newToken(server.port, bob, { label: "app of bob.example", scope: "write" });
    const { page, allow, finish } = await visit({ as: ann });
    const other = await visit({ as: bob });

    await t.test("account: two users at the same time → neither sees anything of the other", async () => {
      for (const [tab, me, them, mine, theirs, count] of [
        [page, ann, bob, "ann.example", "bob.example", 2],
        [other.page, bob, ann, "bob.example", "ann.example", 1],
      ] as const) {
        const assertMine = async () => {
          const seen = await pageContents(tab);
          assert.ok(!seen.includes(theirs) && !new RegExp(`\\b${them.name}\\b`).test(seen));
        };
        await tab.getByText(mine, { exact: true }).waitFor();
        await tab.getByText(format(en.count, { n: count }), { exact: true }).waitFor();
        await assertMine();
        await showView(tab, "apps");
        await tab.getByText(`app of ${mine}`, { exact: true }).waitFor();
        await assertMine();
        await showView(tab, "account");
        await tab.getByText(me.name, { exact: true }).waitFor();
        await tab.getByText(account.here).first().waitFor();
        await assertMine();
        await openSettings(tab);
        const follow = tab.getByRole("checkbox", { name: en.settings.followMoves });
        assert.equal(await follow.isChecked(), true);
        await Promise.all([
          tab.waitForResponse((response) => response.request().method() === "PATCH"),
          follow.uncheck(),
        ]);
        await tab.keyboard.press("Escape");
      }
      await other.finish();
    });

    await t.test("account: exported → one file with everything", async () => {
      const coming = page.waitForEvent("download");
      await button(page, account.export).click();
      const file = await coming;
      assert.equal(file.suggestedFilename(), "earmark.json");
      const text = await readFile(await file.path(), "utf8");
      const { text: expected } = await server.call("GET", "/v1/me/export", { headers: { Cookie: ann.cookie } });
      // The last use of a session may have changed meanwhile.
      const withoutUse = (json: string) => json.replaceAll(/"last_used_at":\s*(null|"[^"]*")/g, "");
      assert.equal(withoutUse(text), withoutUse(expected));
      for (const part of [ann.name, "https://ann.example/feed", "https://two.example/feed", "app of ann.example"])
        assert.ok(text.includes(part), part);
      assert.ok(!text.includes(ann.session));
    });

    await t.test("account: deleted with the password → nothing is left, and the name is free", async () => {
      await button(page, account.delete).click();
      await button(dialog(page), en.cancel).click();
      await dialog(page).waitFor({ state: "detached" });
      assert.ok(await isFocused(button(page, account.delete)));
      await button(page, account.delete).click();
      allow(/^response: 401 POST \S+\/v1\/sessions$/, SIGNED_OUT);
      await field(page, account.deleteConfirm).fill("not my password");
      await button(dialog(page), account.delete).click();
      await assertFieldError(field(page, account.deleteConfirm), errors["wrong-password"]);
      assert.equal((await feedsOf(ann)).length, 2);
      await field(page, account.deleteConfirm).fill(ann.password);
      const loads = await hold(page, `${server.url}/`);
      // While the page is loaded again, it wants to read the changes, which must not abort that.
      await page.evaluate(`addEventListener("beforeunload", () => setTimeout(() =>
        document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))))`);
      await button(dialog(page), account.delete).click();
      await loads.next();
      await loads.open();
      await button(page, account.create).waitFor();
      assert.doesNotMatch(await pageContents(page), new RegExp(`ann\\.example|${ann.name}`));
      const headers = { Authorization: `Bearer ${token}` };
      assert.equal((await server.call("GET", "/v1/me", { headers })).status, 401);
      await signUp(server.port, ann.name, PASSWORD);
      assert.deepEqual(await feedsOf(ann), []);
    });
    await finish();
  });

  test("server without accounts, with a base path", async (t) => {
    const local = await startServer({ EARMARK_BASE_PATH: "/pods" });
    const { page, problems, allow, finish } = await visit({ server: local, path: "/pods/" });

    await t.test("account: server without accounts → no sign-in and no trace of accounts", async () => {
      await heading(page, list.emptyTitle).waitFor();
      assert.equal(await page.locator("a[href='#account'], a[href='#people']").count(), 0);
      await page.goto("/pods/#account");
      await heading(page, list.title).waitFor();
      await showView(page, "apps");
      await chooseApp(page, apps.other);
      await page.getByText(apps.anyCredentials).waitFor();
      assert.equal(await field(page, apps.label).count(), 0);
      const seen = await pageContents(page);
      for (const word of [account.signIn, account.signOut, account.title, apps.tokens, apps.create, apps.userName])
        assert.ok(!seen.includes(word), word);
      await assertAccessible(page);
    });

    await t.test("app guide: server without accounts → any username and password", async () => {
      await chooseApp(page, "gPodder");
      await page.getByText(apps.anyCredentials).waitFor();
      await page.getByText(apps.noDevices).waitFor();
      const app = { user: "anyone", password: "anything", userAgent: "mygpoclient/1.9 gPodder/3.11.4" };
      const call: typeof local.call = (method, path, options) => local.call(method, `/pods${path}`, options);
      const feeds = ["https://one.example/feed", "https://two.example/feed"];
      await syncDevice(app, { id: "desk", caption: "desk", feeds }, { call });
      // Without any sign that the user is back: the page asks again and again.
      await page
        .getByText(format(apps.synced, { n: 2, device: format(apps.appOn, { app: "gPodder", device: "desk" }) }))
        .waitFor();
    });

    assert.deepEqual(await problems(), []);
    allow(/^response: 404 GET \S+\/join$/);
    assert.equal((await page.goto("/pods/join"))?.status(), 404);
    await finish();
  });

  test("account: every state on a dark phone and a light desktop → accessible and not wider than the window", async () => {
    const looks = [
      { width: 1280, height: 800, colorScheme: "light" },
      { width: 390, height: 844, colorScheme: "dark" },
    ] as const;
    const check = async (page: Page) => {
      for (const { width, height, colorScheme } of looks) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme });
        await assertNoOverflow(page);
        // At the top the sticky header covers nothing.
        await page.evaluate("scrollTo(0, 0)");
        await assertAccessible(page);
      }
      // The narrowest window with the menu at the top.
      await page.setViewportSize({ width: 641, height: 800 });
      await assertNoOverflow(page);
    };
    const ann = await newUser(["https://ann.example/feed"]);
    const { page, allow, finish } = await visit({ size: "phone", theme: "dark" });
    allow(/^response: 401 /, /^failed: POST \S+\/v1\/sessions /);
    await fill(page, { name: ann.name, password: "not the password" });
    await button(page, account.signIn).click();
    await assertFieldError(field(page, account.password), errors["sign-in-failed"]);
    await check(page);
    await page.route("**/v1/sessions", (route) => route.abort());
    await button(page, account.signIn).click();
    await page.getByRole("alert").waitFor();
    await check(page);
    await page.unroute("**/v1/sessions");
    await button(page, account.create).click();
    await heading(page, account.joinTitle).waitFor();
    await check(page);
    await button(page, account.haveOne).click();
    await fill(page, ann);
    await button(page, account.signIn).click();
    await page.getByText("ann.example", { exact: true }).waitFor();

    await showView(page, "apps");
    await chooseApp(page, apps.other);
    await field(page, apps.label).fill("My phone");
    await button(page, apps.create).click();
    await heading(page, format(apps.created, { label: "My phone" })).waitFor();
    await check(page);
    await button(dialog(page), apps.finished).click();
    await dialog(page).waitFor({ state: "detached" });
    await button(page, format(apps.revokeLabel, { label: "My phone" })).waitFor();
    await check(page);

    await showView(page, "account");
    await page.getByText(account.here).first().waitFor();
    await check(page);
    await button(page, account.delete).click();
    await field(page, account.deleteConfirm).fill("not my password");
    await button(dialog(page), account.delete).click();
    await assertFieldError(field(page, account.deleteConfirm), errors["wrong-password"]);
    await check(page);
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });

    await endSessions(ann);
    await heading(page, account.signInAgain).waitFor();
    await check(page);
    await signInAgain(page, ann);
    await showView(page, "apps");
    await button(page, format(apps.revokeLabel, { label: "My phone" })).waitFor();
    await finish();
  });
});
