import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import sharp from "sharp";
import { createClient } from "../client/src/index.ts";
import type { PodcastRecord } from "../src/podcasts/podcast-store.ts";
import { assertAccessible } from "./support/browser.ts";
import { startFeeds } from "./support/feeds.ts";
import { learn, THIS_MACHINE } from "./support/fetching.ts";
import {
  allTexts,
  button,
  chooseMore,
  feedsOf,
  hosts,
  link,
  rows,
  status,
  subscribe,
  until,
  visit,
} from "./support/page.ts";
import { startServer, type TestServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { podcasts: words } = en;

const FEED = "https://feeds.example/";
const search = (page: Page) => page.getByRole("searchbox", { name: en.list.search });
const orderBy = (page: Page, label: string) => page.getByLabel(en.list.order).selectOption(label);
/** Chooses a folder or another filter, whose links also say how many podcasts there are. */
const show = (page: Page, label: string) => page.locator(".folders").getByRole("link", { name: label }).click();
const panel = (page: Page) => page.getByRole("dialog");
const open = (page: Page, title: string) => rows(page).getByRole("button", { name: title, exact: true }).click();

async function subscriptionsOf({ call }: TestServer) {
  const { json } = await call("GET", "/v1/subscriptions");
  return json.data.map(({ id, attributes: { feed_url: url, title, folders } }: Json) => ({ id, url, title, folders }));
}
type Json = { readonly id: string; readonly attributes: Readonly<Record<string, unknown>> };

/** A server that knows these podcasts, subscribed to in this order. */
async function serverWith(podcasts: Readonly<Record<string, Partial<PodcastRecord>>>): Promise<TestServer> {
  const server = await startServer();
  const urls = Object.keys(podcasts).map((name) => FEED + name);
  for (const url of urls) await subscribe(server, [url]);
  for (const [name, known] of Object.entries(podcasts))
    await learn(server.store, FEED + name, { status: "ok", ...known });
  return server;
}

const THREE = {
  one: { title: "Über Katzen", author: "Ann" },
  two: { title: "Äpfel", author: "Björn" },
  three: { title: "Zoo", author: "Carla" },
};

describe("podcasts", { concurrency: 2 }, () => {
  test("podcasts: a feed is added → its title, author and artwork appear without a reload", async () => {
    const feeds = await startFeeds();
    const image = await sharp({ create: { width: 700, height: 700, channels: 3, background: "teal" } })
      .png()
      .toBuffer();
    feeds.pages.set("/cover.png", (_request, response) =>
      response.writeHead(200, { "content-type": "image/png" }).end(image),
    );
    const values = {
      title: "Teal Talk",
      author: "Tia",
      description: "All about teal.",
      image: `${feeds.url}/cover.png`,
    };
    const url = feeds.feed("/teal.xml", values);
    const server = await startServer({ EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE });
    // The browser would report a request to the publisher as a problem.
    const { page, finish } = await visit({ server, at: "add-many" });
    await page.getByLabel(en.add.label).fill(url);
    await button(page, format(en.add.submit, { n: 1 })).click();
    await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 0 })).waitFor();
    await link(page, en.views.list).click();
    await until(() => hosts(page), ["Teal Talk"]);
    await rows(page).getByText("Tia", { exact: true }).waitFor();
    const images = `[...document.querySelectorAll(".avatar img")].map(({ srcset, currentSrc, clientWidth, loading }) => [currentSrc.endsWith(srcset.split(" ")[0]) ? "small" : currentSrc, clientWidth, loading])`;
    await until(() => page.evaluate(images), [["small", 48, "lazy"]]);
    await search(page).fill("tia");
    await until(() => hosts(page), ["Teal Talk"]);
    await open(page, "Teal Talk");
    await panel(page).getByText("All about teal.").waitFor();
    await button(page, words.fetchAgain).click();
    await panel(page).getByText(words.notFetched).waitFor();
    await finish();
  });

  test("podcasts: a list with titles → ordered, changed and kept", async (t) => {
    const server = await serverWith({ ...THREE, gone: { title: "Farewell", status: "gone" } });
    const { page, allow, finish } = await visit({ server });
    allow(/^failed: GET \S+\/v1\/subscriptions\?\S+ net::ERR_FAILED/);
    await t.test("podcasts: order, folders and search → the matching rows in order", async () => {
      const [one, two] = await subscriptionsOf(server);
      await server.operate([
        { op: "update", data: { type: "subscription", id: one.id, attributes: { folders: ["Pets", "Nature/Home"] } } },
        { op: "update", data: { type: "subscription", id: two.id, attributes: { folders: ["Nature"] } } },
      ]);
      await until(() => hosts(page), ["Farewell", "Zoo", "Äpfel", "Über Katzen"]);
      await orderBy(page, words.byTitle);
      await until(() => hosts(page), ["Äpfel", "Farewell", "Über Katzen", "Zoo"]);
      await show(page, "Nature");
      await until(() => hosts(page), ["Äpfel", "Über Katzen"]);
      await show(page, words.noFolder);
      await until(() => hosts(page), ["Farewell", "Zoo"]);
      await show(page, words.all);
      await orderBy(page, words.byFolder);
      const lines = () => rows(page).locator("h2, strong").allTextContents();
      const home = ["Nature/Home 1", "Über Katzen"];
      const rest = [`${words.noFolder} 2`, "Farewell", "Zoo"];
      await until(lines, ["Nature 1", "Äpfel", ...home, "Pets 1", "Über Katzen", ...rest]);
      await rows(page).getByRole("button", { name: "Nature 1" }).click();
      await until(lines, ["Nature 1", ...home, "Pets 1", "Über Katzen", ...rest]);
      await orderBy(page, en.list.oldest);
      for (const query of ["ÜBER", "björn", "feeds.example/three"]) {
        await search(page).fill(query);
        await until(async () => (await hosts(page)).length, 1);
      }
      await search(page).fill("");
      await orderBy(page, en.list.newest);
    });

    await t.test("podcasts: rename and move → shown at once, stored, and cleared again", async () => {
      await until(() => hosts(page), ["Farewell", "Zoo", "Äpfel", "Über Katzen"]);
      await open(page, "Zoo");
      await button(page, en.apps.rename).click();
      await page.getByLabel(words.name, { exact: true }).fill("Animals");
      await button(page, en.apps.save).click();
      await panel(page).getByRole("heading", { name: "Animals" }).waitFor();
      await button(page, words.move).click();
      await page.getByLabel(words.folder, { exact: true }).fill(" Nature / Wild ");
      await page.keyboard.press("Enter");
      await panel(page).getByText("Nature/Wild").waitFor();
      await page.keyboard.press("Escape");
      await until(() => hosts(page), ["Farewell", "Animals", "Äpfel", "Über Katzen"]);
      const third = async () => (await subscriptionsOf(server))[2];
      await until(async () => [(await third()).title, (await third()).folders], ["Animals", ["Nature/Wild"]]);
      await open(page, "Animals");
      await button(page, en.apps.rename).click();
      await page.getByLabel(words.name, { exact: true }).fill("");
      await button(page, en.apps.save).click();
      await panel(page).getByRole("heading", { name: "Zoo" }).waitFor();
      await until(async () => (await third()).title, undefined);
      await page.keyboard.press("Escape");
    });

    await t.test("podcasts: several selected → moved, exported and removed together", async () => {
      await until(async () => (await hosts(page)).length, 4);
      await chooseMore(page, words.select);
      const box = (name: string) => page.getByRole("checkbox", { name, exact: true });
      await box("Farewell").focus();
      await page.keyboard.press("Space");
      await box("Äpfel").click({ modifiers: ["Shift"] });
      await status(page, format(words.selected, { n: 3 })).waitFor();
      await box("Zoo").click();
      await assertAccessible(page);
      await button(page, words.move).click();
      await page.getByLabel(words.folder, { exact: true }).fill("Best");
      await panel(page).getByRole("button", { name: en.apps.save }).click();
      const folders = async () => (await subscriptionsOf(server)).map((item: Json["attributes"]) => item["folders"]);
      await until(folders, [["Pets", "Nature/Home"], ["Best"], ["Nature/Wild"], ["Best"]]);
      await chooseMore(page, words.select);
      await box("Farewell").click();
      const selecting = page.getByRole("group", { name: words.select });
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        selecting.getByRole("button", { name: en.list.export }).click(),
      ]);
      const chunks: Buffer[] = [];
      for await (const chunk of await download.createReadStream()) chunks.push(chunk);
      const opml = Buffer.concat(chunks).toString();
      assert.match(
        opml,
        /<outline type="rss" text="Farewell" title="Farewell" xmlUrl="[^"]*\/gone" category="\/Best"\/>/,
      );
      assert.equal(opml.match(/<outline/g)?.length, 1);
      await button(page, words.selectAll).click();
      await selecting.getByRole("button", { name: words.remove }).click();
      await status(page, format(en.list.removed, { n: 4, name: "" })).waitFor();
      await button(page, en.list.undo).click();
      await until(async () => (await hosts(page)).length, 4);
      assert.equal((await feedsOf(server)).length, 4);
    });

    await t.test("podcasts: the server does not return them → titles and status of the last visit", async () => {
      await rows(page).getByText(words.status.gone, { exact: true }).waitFor();
      const isStored = `(async () => {
        const [{ name }] = await indexedDB.databases();
        const database = await new Promise((resolve) => {
          const opening = indexedDB.open(name);
          opening.onsuccess = () => resolve(opening.result);
        });
        const text = await new Promise((resolve) => {
          const reading = database.transaction("texts").objectStore("texts").get("podcasts");
          reading.onsuccess = () => resolve(reading.result);
        });
        database.close();
        return text.includes("Farewell");
      })()`;
      await until(() => page.evaluate(isStored), true);
      await page.route("**/v1/subscriptions?*", (route) => route.abort());
      await page.reload();
      await until(() => hosts(page), ["Farewell", "Zoo", "Äpfel", "Über Katzen"]);
      await rows(page).getByText(words.status.gone, { exact: true }).waitFor();
    });
    await finish();
  });

  test("podcasts: moved, gone and failing feeds → under “Needs attention” until the user decides", async () => {
    const since = Date.parse("2026-01-02T12:00:00Z");
    const server = await serverWith({
      ok: { title: "Fine" },
      old: { title: "Mover", status: "moved", movedTo: `${FEED}new`, statusSince: since },
      gone: { title: "Farewell", status: "gone", statusSince: since },
      failing: { title: "Broken", status: "failing", statusSince: since, failure: "private-address" },
    });
    const { page, finish } = await visit({ server, theme: "dark" });
    await rows(page).getByText(words.status.gone, { exact: true }).waitFor();
    await show(page, `${words.needsAttention} 3`);
    await until(() => hosts(page), ["Broken", "Farewell", "Mover"]);
    await assertAccessible(page);
    await open(page, "Broken");
    await panel(page).getByText(words.failure["private-address"]).waitFor();
    await panel(page).getByText("EARMARK_FETCH_NETWORKS").waitFor();
    await panel(page)
      .getByText(format(words.since, { day: "Jan 2, 2026" }))
      .waitFor();
    await assertAccessible(page);
    await button(page, words.remove).click();
    await until(() => hosts(page), ["Farewell", "Mover"]);
    const [, before] = await subscriptionsOf(server);
    assert.equal(before.url, `${FEED}old`, "nothing changes by itself");
    await open(page, "Farewell");
    await panel(page).getByText(words.explanation.gone).waitFor();
    await page.keyboard.press("Escape");
    await open(page, "Mover");
    await panel(page).getByText(`${FEED}new`).waitFor();
    await button(page, words.changeUrl).click();
    await until(async () => (await subscriptionsOf(server))[1], { ...before, url: `${FEED}new` });
    await page.keyboard.press("Escape");
    await until(() => hosts(page), ["Farewell"]);
    await finish();
  });

  test("podcasts: “Try all again” → the server fetches what failed, and the list shows the result", async () => {
    const feeds = await startFeeds();
    let now = Date.now();
    const fetching = { EARMARK_FETCH_FEEDS: "true", EARMARK_FETCH_NETWORKS: THIS_MACHINE };
    const server = await startServer(fetching, () => new Date(now));
    await subscribe(server, [`${feeds.url}/back`, `${feeds.url}/lost`]);
    const client = createClient({ url: server.url });
    const statuses = async () => (await client.page({ include: "podcast" })).items.map((item) => item.podcast?.status);
    await until(statuses, ["failing", "failing"]);
    const { page, finish } = await visit({ server });
    await show(page, `${words.needsAttention} 2`);
    await button(page, words.retryAll).click();
    await status(page, words.retriedBefore).waitFor();
    feeds.feed("/back", { title: "Back again" });
    now += 6 * 60_000;
    await button(page, words.retryAll).click();
    await status(page, format(words.retried, { n: 2 })).waitFor();
    await assertAccessible(page);
    await rows(page).nth(1).waitFor({ state: "detached" });
    await show(page, words.all);
    await until(async () => (await hosts(page)).includes("Back again"), true);
    await finish();
  });

  test("podcasts: moved to feeds that are in the list, one with its host in capitals → merged into them", async () => {
    const server = await startServer();
    const feeds = [`${FEED}old-1`, `${FEED}new-1`, `${FEED}old-2`, "https://FEEDS.example/new-2"];
    await subscribe(server, feeds);
    const before = await subscriptionsOf(server);
    for (const [index, { id, url }] of before.entries()) {
      const isOld = url.includes("old");
      const known = isOld
        ? ({ status: "moved", movedTo: url.replace("old", "new") } as const)
        : ({ status: "ok" } as const);
      await learn(server.store, url, { title: url.slice(FEED.length), ...known });
      const attributes = { title: `My ${index}`, folders: ["A"] };
      if (isOld) await server.operate([{ op: "update", data: { type: "subscription", id, attributes } }]);
    }
    const { page, finish } = await visit({ server, size: "phone" });
    await until(async () => (await hosts(page)).toSorted(), ["My 0", "My 2", "new-1", "new-2"]);
    for (const [index, other] of ["new-1", "new-2"].entries()) {
      await open(page, `My ${2 * index}`);
      await button(page, words.changeUrl).click();
      await panel(page)
        .getByText(format(words.conflict, { name: other }))
        .waitFor();
      assert.equal((await feedsOf(server)).length, 4 - index);
      await button(page, en.moves.merge).click();
      await until(async () => (await hosts(page)).includes(other), false);
      await button(page, en.close).click();
      await until(async () => (await feedsOf(server)).length, 3 - index);
    }
    const [, first, , second] = before;
    const folders = ["A"];
    await until(
      () => subscriptionsOf(server),
      [
        { ...first, title: "My 0", folders },
        { ...second, title: "My 2", folders },
      ],
    );
    await finish();
  });

  test("podcasts: hostile titles and descriptions → text in its place, no markup", async () => {
    const markup = `<script>document.title='hacked'</script><img src=x onerror=alert(1)>`;
    const server = await serverWith({
      markup: { title: markup, author: markup, description: markup, homepageUrl: "javascript:alert(1)" },
      right: { title: "\u202eאבג", author: "د. علي" },
      long: {
        title: "W".repeat(300),
        author: "M".repeat(300),
        homepageUrl: "https://show.example/",
        status: "moved",
        movedTo: `${FEED}${"path/".repeat(50)}feed.xml`,
      },
    });
    const { page, finish } = await visit({ server, size: "phone" });
    await until(() => hosts(page), ["W".repeat(300), "�אבג", markup]);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
    assert.doesNotMatch(await allTexts(page), /[\u202a-\u202e]/);
    await open(page, markup);
    await panel(page).getByRole("heading", { name: markup }).waitFor();
    assert.equal(await panel(page).getByRole("link").count(), 0);
    assert.equal(await page.locator("body script, img[onerror]").count(), 0);
    assert.equal(await page.title(), `${en.views.list} – Earmark`);
    await page.keyboard.press("Escape");
    await rows(page).first().getByRole("button").first().click();
    const homepage = panel(page).getByRole("link", { name: words.website });
    await homepage.waitFor();
    assert.equal(await homepage.getAttribute("rel"), "noopener noreferrer");
    await button(page, words.changeUrl).waitFor();
    const overflow = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('dialog'))";
    assert.equal(await page.evaluate(overflow), 0);
    await finish();
  });
});
