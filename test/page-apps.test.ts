import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { replaceControlCharacters } from "../src/util/control-characters.ts";
import { GUIDES } from "../web/src/apps/app-guides.ts";
import { newToken, signUp } from "./support/accounts.ts";
import {
  assertNoOverflow,
  button,
  chooseApp,
  dialog,
  feedsOf,
  field,
  heading,
  isFocused,
  newUser,
  PASSWORD,
  pageContents,
  server,
  showView,
  until,
  visit,
} from "./support/page-accounts.ts";
import { callAs, deviceItem, returnToTab, syncDevice, tokenItem, valuesToType } from "./support/page-apps.ts";
import { readQrCode } from "./support/qr-code.ts";
import { en, format } from "./support/words.ts";

const { apps } = en;
const FEEDS = ["https://one.example/feed", "https://two.example/feed"];

describe("apps", { concurrency: 3 }, () => {
  test("guides on a phone", async (t) => {
    const [refused, ann] = [
      await signUp(server.port, "ann+pods@example.org", PASSWORD),
      await newUser(["https://ann.example/feed"]),
    ];
    const { page, context, allow, finish } = await visit({ as: refused, path: "/#apps", size: "phone" });

    await t.test("app guide: username that AntennaPod rejects → signs in in the browser instead", async () => {
      await chooseApp(page, "AntennaPod");
      await page.getByText(apps.allowThere).waitFor();
      await page.getByText(apps.withToken, { exact: true }).click();
      await page.getByText(format(apps.refusedName, { app: "AntennaPod", way: apps.inBrowser })).waitFor();
      assert.equal(await button(page, apps.create).count(), 0);
      await chooseApp(page, "Kasts");
      await button(page, apps.create).waitFor();
    });

    await t.test("apps: code of the view cannot be loaded → the other views work", async () => {
      allow(/^failed: GET \S+\/assets\/apps-/);
      await page.route("**/assets/apps-*", (route) => route.abort());
      await context.addCookies([{ name: "earmark", value: ann.session, url: server.url, httpOnly: true }]);
      await page.reload();
      await page.getByRole("alert").getByText(en.failure.crashed).waitFor();
      await showView(page, "list");
      await page.getByText("ann.example", { exact: true }).waitFor();
      await page.unroute("**/assets/apps-*");
      await page.reload();
      await showView(page, "apps");
    });

    await t.test("app guide: keyboard → arrow keys choose the app and the way to sign in", async () => {
      await page.getByRole("radio", { name: "AntennaPod" }).focus();
      await page.keyboard.press("Space");
      await page.getByText(format(apps.menu, { app: "AntennaPod" })).waitFor();
      await page.keyboard.press("Tab");
      assert.ok(await isFocused(page.getByRole("radio", { name: apps.withToken })));
      await page.keyboard.press("ArrowRight");
      await page.getByText(apps.allowThere).waitFor();
      await page.keyboard.press("Shift+Tab");
      await page.keyboard.press("ArrowRight");
      await page.getByText(format(apps.menu, { app: "Kasts" })).waitFor();
      assert.ok(await isFocused(page.getByRole("radio", { name: "Kasts" })));
    });

    await t.test("app guide: each app → its steps, which fit", async () => {
      for (const { name, methods } of GUIDES) {
        await chooseApp(page, name);
        for (const method of methods) {
          if (methods.length > 1)
            await page.getByText(method.credentials ? apps.withToken : apps.inBrowser, { exact: true }).click();
          for (const text of [format(apps.menu, { app: name }), ...method.menu, ...method.buttons])
            await page.locator(".steps").getByText(text, { exact: false }).first().waitFor();
          const values = await valuesToType(page);
          assert.deepEqual(values, {
            [method.server]: server.url,
            ...(method.credentials ? { [method.credentials[0]]: ann.name } : {}),
            ...(method.device ? { [method.device[0]]: method.device[1] } : {}),
          });
          assert.equal(await button(page, apps.create).count(), method.credentials ? 1 : 0);
          assert.equal(await page.getByText(apps.allowThere).count(), method.credentials ? 0 : 1);
          await assertNoOverflow(page);
        }
      }
    });
    await finish();
  });

  test("devices", async (t) => {
    const ann = await newUser();
    // By a host name: for a loopback address the page shows no QR code.
    const url = server.url.replace("127.0.0.1", "pods.localhost");
    const { page, allow, finish } = await visit({ server: { url }, as: ann, size: "desktop" });
    const { token } = await newToken(server.port, ann, { label: "phone", scope: "write" });
    const app = { user: ann.name, password: token };

    await t.test("devices: not loaded → a message with a way to retry", async () => {
      allow(/^failed: GET \S+\/v1\/devices/);
      await page.route("**/v1/devices?*", (route) => route.abort());
      await showView(page, "apps");
      await page.getByRole("alert").getByText(en.failure.unreachable).waitFor();
      await page.unroute("**/v1/devices?*");
      await button(page, en.retry).click();
      await page.getByText(apps.noDevices).waitFor();
    });

    await t.test("app guide: the device has a name other than the app's → both are shown", async () => {
      const { token } = await newToken(server.port, ann, { label: "Kasts", scope: "write" });
      const kasts = { user: ann.name, password: token, userAgent: "Kasts/25.08 Syndication" };
      await chooseApp(page, "Kasts");
      await page.getByText(apps.noDevices).waitFor();
      await syncDevice(kasts, { id: "laptop", caption: "My laptop" });
      await returnToTab(page);
      await page
        .getByText(format(apps.connected, { device: format(apps.appOn, { app: "Kasts", device: "My laptop" }) }))
        .waitFor();
      await syncDevice(kasts, { id: "laptop", caption: "My laptop", feeds: FEEDS.slice(0, 1) });
      await returnToTab(page);
      await page
        .getByText(format(apps.synced, { n: 1, device: format(apps.appOn, { app: "Kasts", device: "My laptop" }) }))
        .waitFor();
    });

    await t.test("app guide: connected with what the page shows → the page says which device synced", async () => {
      await chooseApp(page, "AntennaPod");
      await page.getByText(apps.waiting).waitFor();
      const qrCode = async (name: string) =>
        readQrCode((await page.getByRole("img", { name }).locator("path").getAttribute("d")) ?? "");
      assert.equal(await qrCode(apps.qr), url);
      await button(page, apps.create).click();
      await page.getByText(apps.tokenOnce).waitFor();
      await until(
        () => isFocused(page.locator(":has(> small)", { hasText: apps.tokenOnce })),
        "the focus is on the token",
      );
      const values = await valuesToType(page);
      assert.deepEqual(Object.keys(values), ["Server address", "Username", "Password"]);
      assert.deepEqual([values["Server address"], values["Username"]], [url, ann.name]);
      const password = values["Password"] ?? "";
      assert.match(password, /^emk_[\w-]{43}$/);
      assert.equal(await qrCode(apps.tokenQr), password);
      await tokenItem(page, "AntennaPod").getByText(apps.neverUsed).waitFor();

      await syncDevice({ user: ann.name, password }, { id: "pixel", caption: "AntennaPod on Pixel 8", feeds: FEEDS });
      await returnToTab(page);
      const status = page
        .getByRole("status")
        .filter({ hasText: format(apps.synced, { n: 2, device: "AntennaPod on Pixel 8" }) });
      await status.waitFor();
      await deviceItem(page, "AntennaPod on Pixel 8")
        .getByText(`AntennaPod · ${format(apps.lastSync, { when: en.ago.now })}`)
        .waitFor();
      assert.deepEqual((await feedsOf(ann)).toSorted(), FEEDS);
      await chooseApp(page, "Kasts");
      await page.getByText(apps.waiting).waitFor();
      assert.ok(!(await pageContents(page)).includes(password));
    });

    await t.test("devices: renamed → the new name, also for apps", async () => {
      const rename = button(page, format(apps.renameLabel, { device: "AntennaPod on Pixel 8" }));
      await rename.click();
      await page.keyboard.press("Escape");
      await dialog(page).waitFor({ state: "detached" });
      assert.ok(await isFocused(rename));
      await rename.click();
      await field(page, apps.deviceName).fill("  <b>My</b> phone ");
      await button(dialog(page), apps.save).click();
      await dialog(page).waitFor({ state: "detached" });
      await deviceItem(page, "<b>My</b> phone").waitFor();
      const { json } = await callAs(app, "GET", `/api/2/devices/${ann.name}.json`);
      assert.ok(json.some(({ caption }: { caption: string }) => caption === "<b>My</b> phone"));
    });

    await t.test("devices: forgotten after confirmation → gone, and the list stays", async () => {
      await syncDevice(app, { id: "pixel", caption: "Pixel", feeds: FEEDS });
      await syncDevice(app, { id: "laptop", caption: "Laptop" });
      await returnToTab(page);
      await button(page, format(apps.forgetLabel, { device: "Pixel" })).click();
      await heading(page, format(apps.forgetLabel, { device: "Pixel" })).waitFor();
      await button(dialog(page), en.cancel).click();
      await dialog(page).waitFor({ state: "detached" });
      await deviceItem(page, "Pixel").waitFor();
      await button(page, format(apps.forgetLabel, { device: "Pixel" })).click();
      await button(dialog(page), apps.forget).click();
      await page.getByText(format(apps.forgotten, { device: "Pixel" })).waitFor();
      await deviceItem(page, "Pixel").waitFor({ state: "detached" });
      await deviceItem(page, "Laptop").waitFor();
      assert.equal((await feedsOf(ann)).length, 2);
      assert.equal((await callAs(app, "GET", `/api/2/devices/${ann.name}.json`)).json.length, 1);
    });

    await t.test("devices: hostile names → shown as text that fits", async () => {
      const captions = ["<img src=x onerror=alert(1)>", "هاتفي القديم (2)", "W".repeat(100), "a\u202eevil"];
      const userAgent = `<script>alert(1)</script>/${"9".repeat(90)}`;
      for (const [index, caption] of captions.entries())
        await syncDevice({ user: ann.name, password: token, userAgent }, { id: `d${index}`, caption });
      await returnToTab(page);
      await page.setViewportSize({ width: 390, height: 844 });
      for (const caption of captions) await deviceItem(page, replaceControlCharacters(caption)).first().waitFor();
      assert.equal(await page.locator("main img, main script").count(), 0);
      await assertNoOverflow(page);
      await button(page, format(apps.forgetLabel, { device: captions[2] ?? "" })).click();
      await assertNoOverflow(page);
    });
    await finish();
  });
});
