import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { button, feedsOf, hosts, link, numberedFeeds, status, until, visit } from "./support/page.ts";
import { en, format } from "./support/words.ts";

const { removed } = en;
const [ONE = "", TWO = "", THREE = ""] = numberedFeeds(3);
const listed = (page: Page) =>
  page.getByRole("list", { name: removed.title }).getByRole("listitem").locator(".url").allTextContents();

test("removed: a list of recently removed subscriptions → can be restored", async (t) => {
  const { page, server, allow, finish } = await visit({ feeds: [ONE, TWO, THREE], size: "phone", theme: "dark" });
  allow(/^response: 400 GET \S+\/v1\/removals/);
  await t.test("removed: the server fails → an error, and retry", async () => {
    await page.route("**/v1/removals*", (route) => route.fulfill({ status: 400, body: "{}" }));
    await link(page, en.list.recent).click();
    await page.getByRole("alert").waitFor();
    await page.unroute("**/v1/removals*");
    await button(page, en.retry).click();
    await status(page, removed.empty).waitFor();
    await link(page, en.import.seeList).click();
  });

  await t.test("removed: a subscription removed a moment ago → listed, and back after one click", async () => {
    const [, before] = (await server.call("GET", "/v1/subscriptions")).json.data;
    const attributes = { title: "Second", folders: ["News"] };
    await server.call("PATCH", `/v1/subscriptions/${before.id}`, {
      headers: { "content-type": "application/vnd.api+json" },
      body: JSON.stringify({ data: { type: "subscription", id: before.id, attributes } }),
    });
    await button(page, format(en.list.remove, { name: "Second" })).click();
    await link(page, en.list.recent).click();
    await page.getByRole("heading", { level: 1, name: en.list.recent }).waitFor();
    await until(() => listed(page), [TWO]);
    assert.deepEqual(await feedsOf(server), [ONE, THREE]);
    await button(page, format(removed.restoreLabel, { name: "Second" })).click();
    await status(page, en.list.undone).waitFor();
    await status(page, removed.empty).waitFor();
    assert.deepEqual(await feedsOf(server), [ONE, THREE, TWO]);
    const [, , after] = (await server.call("GET", "/v1/subscriptions")).json.data;
    assert.equal(after.id, before.id);
    assert.deepEqual([after.attributes.title, after.attributes.folders], ["Second", ["News"]]);
    await link(page, en.import.seeList).click();
    await until(async () => (await hosts(page))[0], "Second");
  });

  await t.test("removed: the whole list removed by another device → restored at once", async () => {
    const { json } = await server.call("GET", "/v1/subscriptions");
    const ids: string[] = json.data.map(({ id }: { id: string }) => id);
    for (const id of ids) await server.call("DELETE", `/v1/subscriptions/${id}`);
    await page.getByRole("heading", { name: en.list.emptyTitle }).waitFor();
    await link(page, en.list.recent).click();
    await until(() => listed(page), [TWO, THREE, ONE]);
    await button(page, removed.restoreAll).click();
    await status(page, removed.empty).waitFor();
    assert.deepEqual((await feedsOf(server)).toSorted(), [ONE, TWO, THREE].toSorted());
  });
  await finish();
});
