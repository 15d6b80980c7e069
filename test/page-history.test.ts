import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { assertAccessible } from "./support/browser.ts";
import { openView } from "./support/navigation.ts";
import {
  button,
  feedsOf,
  hosts,
  link,
  numberedFeeds,
  removeFrom,
  status,
  subscribe,
  THREE,
  until,
  visit,
} from "./support/page.ts";
import { add, newId, startServer, type TestServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { history } = en;
const MINUTE = 60_000;
const lines = (page: Page) => page.getByRole("list", { name: history.title }).getByRole("listitem");
const sentences = (page: Page) => lines(page).getByRole("link").allTextContents();
const changes = (page: Page) => page.getByRole("list", { name: history.changes }).getByRole("listitem");
const dialog = (page: Page) => page.getByRole("dialog");
const said = (message: string, who: string, n: number) => format(message, { who, n });

/** A list of 12 that the page filled, and of which an app has removed ten. */
async function startEmptied() {
  let now = Date.now() - 2 * 24 * 60 * MINUTE;
  const server = await startServer({}, () => new Date(now));
  const feeds = numberedFeeds(12);
  await server.operate(feeds.map((url) => add(newId(), url)));
  const [first] = (await server.call("GET", "/v1/subscriptions")).json.data;
  now += 20 * MINUTE;
  await rename(server, first.id, "My show");
  await app(server, "devices/local/desk.json", { caption: "Kasts on desk" });
  now += 20 * MINUTE;
  await app(server, "subscriptions/local/desk.json", { add: [], remove: feeds.slice(0, 10) });
  now = Date.now();
  return { server, feeds, tick: () => (now += MINUTE) };
}

async function app({ call }: TestServer, path: string, body: object): Promise<void> {
  const response = await call("POST", `/api/2/${path}`, { body: JSON.stringify(body) });
  assert.equal(response.status, 200, response.text);
}

async function rename({ operate }: TestServer, id: string, title: string): Promise<void> {
  await operate([{ op: "update", data: { type: "subscription", id, attributes: { title } } }]);
}

describe("history", { concurrency: 2 }, () => {
  test("history: an app has emptied the list → marked, previewed, undone; and that is undone", async () => {
    const { server, feeds } = await startEmptied();
    const { page, finish } = await visit({ server });
    await openView(page, history.title);
    const you = history.by.page;
    await until(
      () => sentences(page),
      [said(history.removed, "Kasts on desk", 10), said(history.updated, you, 1), said(history.added, you, 12)],
    );
    await lines(page).first().getByText(history.large).waitFor();
    await lines(page).first().locator(".covers").waitFor();
    assert.match((await lines(page).first().getByRole("time").textContent()) ?? "", /, \d\d:\d\d$/);
    await assertAccessible(page);
    await lines(page).first().getByRole("button").click();
    await dialog(page)
      .getByText(format(history.effect.restored, { n: 10 }))
      .waitFor();
    await assertAccessible(page);
    assert.equal((await feedsOf(server)).length, 2);
    await dialog(page).getByRole("button", { name: en.list.undo }).click();
    await status(page, format(history.effect.restored, { n: 10 })).waitFor();
    await until(async () => (await feedsOf(server)).toSorted(), feeds.toSorted());
    await lines(page).nth(1).getByText(history.undone, { exact: true }).waitFor();
    await lines(page).first().getByText(history.undo, { exact: true }).waitFor();
    assert.equal(await lines(page).nth(1).getByRole("button").count(), 0);
    await button(page, en.list.undo).click();
    await status(page, history.undoneAgain).waitFor();
    assert.equal((await feedsOf(server)).length, 2);
    await finish();
  });

  test("history: the panel of a podcast → who added and changed it, what it was, and a link to each change", async () => {
    const { server, tick } = await startEmptied();
    const [, listed] = (await server.call("GET", "/v1/subscriptions")).json.data;
    await app(server, "subscriptions/local/desk.json", { add: ["https://other.example/feed"], remove: [] });
    await rename(server, listed.id, "My other show");
    const { page, allow, finish } = await visit({ server, at: `list?open=${listed.id}`, size: "phone" });
    const open = dialog(page).getByText(history.ofPodcast);
    const entries = dialog(page).getByRole("list", { name: history.ofPodcast }).getByRole("listitem");
    const [whole, renamed] = [said(history.added, history.by.page, 12), said(history.updated, history.by.page, 1)];
    allow(/^response: 400 GET \S+\/v1\/history/);
    await page.route("**/v1/history?*", (route) => route.fulfill({ status: 400, body: "{}" }));
    await open.click();
    await dialog(page).getByRole("alert").waitFor();
    await page.unroute("**/v1/history?*");
    await dialog(page).getByRole("button", { name: en.retry }).click();
    await until(() => entries.getByRole("link").allTextContents(), [renamed, whole]);
    await entries.first().getByText("My other show").waitFor();
    await entries.nth(1).getByText(history.change.added, { exact: true }).waitFor();
    await assertAccessible(page);
    tick();
    await dialog(page).getByRole("button", { name: en.podcasts.move }).click();
    await dialog(page).getByRole("textbox", { name: en.podcasts.folder }).fill("Evening");
    await page.keyboard.press("Enter");
    await entries.first().getByText("Evening").waitFor();
    await entries.nth(1).getByRole("link").click();
    await until(() => new URL(page.url()).hash, "#history/1");
    await page.getByRole("heading", { name: whole }).waitFor();
    assert.equal(await dialog(page).count(), 0);
    await page.goBack();
    await dialog(page).getByRole("heading", { name: "My other show" }).waitFor();
    await finish();
  });

  test("history: one set on a phone → its changes, each undone alone; Back and the URL work", async () => {
    const { server, feeds } = await startEmptied();
    const { page, allow, finish } = await visit({ server, at: "history", size: "phone", theme: "dark" });
    // The reload may end a request that the change has caused.
    allow(/^failed: GET \S+\/v1\/history\/14 net::ERR_ABORTED/);
    await lines(page).first().getByRole("link").click();
    await page.getByRole("heading", { name: said(history.removed, "Kasts on desk", 10) }).waitFor();
    assert.match(page.url(), /#history\/14$/);
    await changes(page).first().waitFor();
    await assertAccessible(page);
    await page
      .getByRole("button", { name: format(history.undoOneLabel, { what: history.undoOne.removed, name: "My show" }) })
      .click();
    await status(page, format(history.effect.restored, { n: 1 })).waitFor();
    assert.deepEqual(await feedsOf(server), [feeds[10], feeds[11], feeds[0]]);
    await page.reload();
    await changes(page).first().waitFor();
    await page.goBack();
    await lines(page).first().waitFor();
    await lines(page)
      .filter({ hasText: said(history.updated, history.by.page, 1) })
      .getByRole("link")
      .click();
    const value = { name: history.name, from: history.none, to: "My show" };
    await changes(page).getByText(format(history.value, value)).waitFor();
    await button(page, format(history.undoOneLabel, { what: history.undoOne.updated, name: "My show" })).click();
    await status(page, format(history.skipped["changed-later"], { n: 1 })).waitFor();
    await finish();
  });

  test("history: back to before a set → previewed, with all that came later", async () => {
    const { server, feeds } = await startEmptied();
    const { page, finish } = await visit({ server, at: "history" });
    await lines(page).nth(1).getByRole("link").click();
    await button(page, history.goBack).click();
    await dialog(page)
      .getByText(format(history.effect.restored, { n: 10 }))
      .waitFor();
    await dialog(page).getByRole("button", { name: en.list.undo }).click();
    await status(page, format(history.effect.restored, { n: 10 })).waitFor();
    await until(async () => (await feedsOf(server)).toSorted(), feeds.toSorted());
    const { json } = await server.call("GET", "/v1/subscriptions?page[size]=100");
    assert.deepEqual(
      json.data.flatMap(({ attributes }: { attributes: { title?: string } }) => attributes.title ?? []),
      [],
    );
    await finish();
  });

  test("history: the server fails, an unknown set, an empty history → said", async () => {
    const { page, allow, finish } = await visit({});
    allow(/^response: 40[04] GET \S+\/v1\/history/);
    await page.route("**/v1/history*", (route) => route.fulfill({ status: 400, body: "{}" }));
    await openView(page, history.title);
    await page.getByRole("alert").waitFor();
    await page.unroute("**/v1/history*");
    await button(page, en.retry).click();
    await status(page, history.empty).waitFor();
    await page.goto("/#history/99");
    await status(page, history.unknown).waitFor();
    await page.goto("/#removed");
    await status(page, history.empty).waitFor();
    await finish();
  });

  test("history: a removal on the page a moment ago → listed and undone", async () => {
    let now = new Date(Date.now() - 60 * MINUTE);
    const server = await startServer({}, () => now);
    await subscribe(server, THREE);
    now = new Date();
    const { page, finish } = await visit({ server });
    await removeFrom(page, "two.example");
    await openView(page, history.title);
    await lines(page).first().getByRole("link").click();
    const undo = { what: history.undoOne.removed, name: "two.example/feed" };
    await button(page, format(history.undoOneLabel, undo)).click();
    await status(page, format(history.effect.restored, { n: 1 })).waitFor();
    assert.deepEqual(await feedsOf(server), [THREE[0], THREE[2], THREE[1]]);
    await page.goBack();
    await link(page, en.import.seeList).click();
    await until(() => hosts(page), ["two.example", "three.example", "one.example"]);
    await finish();
  });
});
