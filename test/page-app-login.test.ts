import assert from "node:assert/strict";
import { test } from "node:test";
import { replaceControlCharacters } from "../src/util/control-characters.ts";
import { assertAccessible } from "./support/browser.ts";
import {
  assertNoOverflow,
  button,
  dialog,
  field,
  fill,
  heading,
  newUser,
  server,
  showView,
  until,
  visit,
} from "./support/page-accounts.ts";
import { callAs, deviceItem, startLogin, tokenItem } from "./support/page-apps.ts";
import { en, format } from "./support/words.ts";

const { account, appLogin, apps } = en;
const FEEDS = "/index.php/apps/gpoddersync/subscriptions?since=0";
const pathOf = (link: string) => link.slice(server.url.length);

test("app login", async (t) => {
  const ann = await newUser(["https://ann.example/feed"]);
  const { page, allow, finish } = await visit({ path: "/healthz", size: "phone", theme: "dark" });

  await t.test("app login: signed in, then allowed → the waiting app gets a token, until it is revoked", async () => {
    const { link, poll } = await startLogin("AntennaPod/3.9.0");
    assert.equal((await poll()).status, 404);
    await page.goto(pathOf(link));
    await page.getByText(appLogin.signInFirst).waitFor();
    await fill(page, ann);
    await button(page, account.signIn).click();
    await heading(page, appLogin.title).waitFor();
    const facts = page.locator(".facts");
    for (const text of ["AntennaPod/3.9.0", "127.0.0.1", en.ago.now, ann.name])
      await facts.getByText(text, { exact: true }).waitFor();
    assert.equal(await field(page, apps.label).inputValue(), "AntennaPod");
    await assertAccessible(page);
    assert.equal((await poll()).status, 404);

    // The app polls while the user decides.
    const polled = (async () => {
      for (;;) {
        const response = await poll();
        if (response.status !== 404) return response;
      }
    })();
    await field(page, apps.label).fill("AntennaPod on Pixel 8");
    await button(page, appLogin.allow).click();
    await page.getByRole("status").getByText(appLogin.returnToApp).waitFor();
    await heading(page, appLogin.allowed).waitFor();
    const { status, json } = await polled;
    assert.equal(status, 200);
    assert.deepEqual([json.server, json.loginName], [server.url, ann.name]);
    const app = { user: json.loginName, password: json.appPassword };
    assert.deepEqual((await callAs(app, "GET", FEEDS)).json.add, ["https://ann.example/feed"]);

    await page.getByRole("link", { name: appLogin.seeApps }).click();
    await tokenItem(page, "AntennaPod on Pixel 8").waitFor();
    await deviceItem(page, "AntennaPod on Pixel 8").getByText("AntennaPod · ", { exact: false }).waitFor();
    await button(page, format(apps.revokeLabel, { label: "AntennaPod on Pixel 8" })).click();
    await button(dialog(page), apps.revoke).click();
    await page.getByText(format(apps.revoked, { label: "AntennaPod on Pixel 8" })).waitFor();
    assert.equal((await callAs(app, "GET", FEEDS)).status, 401);
  });

  await t.test("app login: denied → the app gets nothing, and the request can no longer be allowed", async () => {
    const { link, poll } = await startLogin("Kasts/25.08 Syndication");
    await page.goto(pathOf(link));
    await page.locator(".facts").getByText("Kasts", { exact: true }).waitFor();
    await button(page, appLogin.deny).click();
    await heading(page, appLogin.denied).waitFor();
    assert.notEqual((await poll()).status, 200);
    await page.reload();
    await heading(page, appLogin.denied).waitFor();
    assert.equal(await button(page, appLogin.allow).count(), 0);
    await showView(page, "apps");
    await page.getByText(apps.noTokens).waitFor();
  });

  await t.test("app login: link is invalid → the user is told to start again", async () => {
    allow(/^response: 404 GET \S+\/v1\/app-logins\//);
    await page.goto("/#app-login=nothing");
    await page.getByText(appLogin.expired).waitFor();
    assert.equal(await button(page, appLogin.allow).count(), 0);
  });

  await t.test("app login: not loaded → a message with a way to retry", async () => {
    const { link } = await startLogin("AntennaPod/3.9.0");
    allow(/^response: 500 GET \S+\/v1\/app-logins\//);
    await page.route("**/v1/app-logins/*", (route) => route.fulfill({ status: 500 }));
    await page.goto(pathOf(link));
    await page.getByRole("alert").waitFor();
    await page.unroute("**/v1/app-logins/*");
    await button(page, en.retry).click();
    await button(page, appLogin.allow).waitFor();
    await until(async () => (await page.getByRole("alert").count()) === 0, "the error is gone");
  });

  await t.test("app login: unknown, hostile and missing app names → shown as sent, as text that fits", async () => {
    for (const agent of ["<img src=x onerror=alert(1)>", `Sync/${"9".repeat(150)}`, undefined]) {
      const { link } = await startLogin(agent);
      await page.goto(pathOf(link));
      const shown = agent === undefined ? apps.unknownApp : replaceControlCharacters(agent);
      await page.locator(".facts strong").getByText(shown.slice(0, 90)).waitFor();
      assert.equal(await page.locator("main img").count(), 0);
      await assertNoOverflow(page);
      if (agent?.startsWith("Sync")) await assertAccessible(page);
      await button(page, appLogin.allow).click();
      await heading(page, appLogin.allowed).waitFor();
    }
  });
  await finish();
});
