import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import type { PodcastRecord } from "../src/podcasts/podcast-store.ts";
import { assertAccessible } from "./support/browser.ts";
import { learn } from "./support/fetching.ts";
import {
  button,
  choose,
  chooseMore,
  hosts,
  menuItem,
  numberedFeeds,
  openMenu,
  rows,
  status,
  subscribe,
  until,
  visit,
} from "./support/page.ts";
import { startServer, type TestServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { podcasts: words, list } = en;
const FEED = "https://feeds.example/";
const DAY_MS = 24 * 60 * 60_000;

interface Known extends Partial<PodcastRecord> {
  readonly folders?: readonly string[];
}

/** A server that knows these podcasts by their titles, subscribed to in this order. */
async function serverWith(podcasts: Readonly<Record<string, Known>>): Promise<TestServer> {
  const server = await startServer();
  for (const [title, { folders, ...known }] of Object.entries(podcasts)) {
    const url = FEED + title.toLowerCase();
    await subscribe(server, [url]);
    await learn(server.store, url, { status: "ok", title, ...known });
    const { json } = await server.call("GET", `/v1/subscriptions?filter[feed_url]=${url}`);
    const data = { type: "subscription", id: json.data[0].id, attributes: { folders } };
    if (folders) await server.operate([{ op: "update", data }]);
  }
  return server;
}

async function foldersOf({ call }: TestServer): Promise<(readonly string[] | undefined)[]> {
  const { json } = await call("GET", "/v1/subscriptions");
  return json.data.map(({ attributes }: { attributes: { folders?: readonly string[] } }) => attributes.folders);
}

const dialog = (page: Page) => page.getByRole("dialog");
const search = (page: Page) => page.getByRole("searchbox", { name: list.search });
const folder = (page: Page, name: string) =>
  page.locator(".folders").getByRole("link", { name: new RegExp(`^${name} \\d+$`) });
const lefts = (page: Page, selector: string) =>
  page.evaluate<number[]>(`[...document.querySelectorAll(${JSON.stringify(selector)})]
    .map((element) => Math.round(element.getBoundingClientRect().left))`);

describe("covers", { concurrency: 2 }, () => {
  test("covers: a phone → three in a row; as a list, eight in sight; the choice is kept", async () => {
    const server = await serverWith({ Apples: { author: "Ann" }, Bees: {}, Cats: { status: "failing" } });
    await subscribe(server, numberedFeeds(20));
    const { page, finish } = await visit({ server, size: "phone" });
    await until(async () => new Set(await lefts(page, ".row")).size, 3);
    const wide = `[...document.querySelectorAll(".row .details")]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length`;
    assert.equal(await page.evaluate(wide), 0, "names wider than their covers");
    await assertAccessible(page);
    /** How many are in sight between the bar and the tabs; and where the first one begins. */
    const inSight = () =>
      page.evaluate<{ top: number; count: number }>(`(() => {
        const bottom = document.querySelector(".tabs").getBoundingClientRect().top;
        const boxes = [...document.querySelectorAll(".row")].map((row) => row.getBoundingClientRect());
        return { top: Math.min(...boxes.map(({ top }) => top)), count: boxes.filter((box) => box.bottom <= bottom).length };
      })()`);
    assert.ok((await inSight()).top < 190);
    await button(page, list.asList).click();
    await until(async () => new Set(await lefts(page, ".row")).size, 1);
    const { top, count } = await inSight();
    assert.ok(top < 190 && count >= 8, `${count} from ${top}`);
    await page.reload();
    await rows(page).first().waitFor();
    assert.equal(new Set(await lefts(page, ".row")).size, 1);
    await page.emulateMedia({ colorScheme: "dark" });
    await assertAccessible(page);
    await button(page, list.asCovers).click();
    await until(async () => new Set(await lefts(page, ".row")).size, 3);
    await assertAccessible(page);
    await finish();
  });

  test("covers: without artwork → initials in one color, also after renaming and in the panel", async () => {
    const server = await serverWith({ Apples: {}, Bees: {} });
    const { page, finish } = await visit({ server });
    const color = (scope: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector("${scope} .avatar")).backgroundColor`);
    await until(() => hosts(page), ["Bees", "Apples"]);
    const before = await color(".row");
    assert.notEqual(before, await color(".row:last-child"));
    await button(page, list.asCovers).click();
    assert.equal(await color(".row"), before);
    await choose(page, "Bees", en.apps.rename);
    await dialog(page).getByLabel(words.name, { exact: true }).fill("Wasps");
    await page.keyboard.press("Enter");
    await until(() => hosts(page), ["Wasps", "Apples"]);
    assert.equal(await color(".row"), before);
    await rows(page).getByRole("button", { name: "Wasps", exact: true }).click();
    await dialog(page).getByRole("heading", { name: "Wasps" }).waitFor();
    assert.equal(await color("dialog"), before);
    await finish();
  });

  test("covers: 5,000 on a phone and a desktop → scrolling shows no gap", async () => {
    for (const size of ["phone", "desktop"] as const) {
      const { page, finish } = await visit({ size, feeds: numberedFeeds(5_000) });
      await rows(page).first().waitFor();
      if (size === "desktop") await button(page, list.asCovers).click();
      // Looks at each frame before it is painted.
      const gaps = await page.evaluate<number>(`new Promise((resolve) => {
        let [frames, gaps] = [0, 0];
        const look = () => {
          const list = document.querySelector("ul.rows").getBoundingClientRect();
          for (let y = Math.max(200, list.top + 10); y < innerHeight - 100; y += 40)
            if (!document.elementFromPoint(list.left + 40, y)?.closest(".row, .toolbar, .search") &&
                !document.elementFromPoint(list.left + 40, y + 40)?.closest(".row")) gaps += 1;
          frames += 1;
          if (frames > 60) return resolve(gaps);
          scrollBy({ top: frames < 30 ? 700 : 4_000, behavior: "instant" });
          requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
      })`);
      assert.equal(gaps, 0, size);
      await finish();
    }
  });

  test("covers: arrow keys → the next one in each direction, heads of folders included", async () => {
    const names = Object.fromEntries(
      Array.from("ABCDEFGHIJKL", (name) => [name, { folders: [name < "D" ? "X" : "Y"] }]),
    );
    const { page, finish } = await visit({ server: await serverWith(names) });
    await button(page, list.asCovers).click();
    await page.getByLabel(list.order).selectOption(words.byTitle);
    const focusedText = () => page.evaluate<string>("document.activeElement.textContent");
    const columns = new Set(await lefts(page, ".row")).size;
    assert.ok(columns > 3);
    await search(page).press("ArrowDown");
    await until(focusedText, "A");
    for (const [key, name] of [
      ["ArrowRight", "B"],
      ["ArrowDown", "ABCDEFGHIJKL"[columns + 1]],
      ["ArrowLeft", "ABCDEFGHIJKL"[columns]],
      ["ArrowUp", "A"],
      ["End", "L"],
      ["Home", "A"],
    ] as const) {
      await page.keyboard.press(key);
      await until(focusedText, name ?? "");
    }
    await page.getByLabel(list.order).selectOption(words.byFolder);
    await search(page).press("ArrowDown");
    await until(focusedText, "X 3");
    await page.keyboard.press("ArrowDown");
    await until(focusedText, "A");
    await page.keyboard.press("ArrowDown");
    await until(focusedText, "Y 9");
    await assertAccessible(page);
    await finish();
  });
});

describe("place", { concurrency: 2 }, () => {
  test("place: search, folder, order and panel → in the URL, kept by a reload; back closes the panel first", async () => {
    const server = await serverWith({
      Apples: { folders: ["News"] },
      Bees: { folders: ["News/Tech"] },
      Cats: {},
      Dogs: { folders: ["News"] },
    });
    for (const size of ["desktop", "phone"] as const) {
      const { page, finish } = await visit({ server, size });
      await until(() => hosts(page), ["Dogs", "Cats", "Bees", "Apples"]);
      if (size === "phone") {
        await page.getByRole("button", { name: list.title, exact: true }).click();
        await dialog(page).getByRole("heading", { name: words.folders }).first().waitFor();
        await assertAccessible(page);
        await page.goBack();
        await dialog(page).waitFor({ state: "detached" });
        await page.getByRole("button", { name: list.title, exact: true }).click();
      }
      await folder(page, "News").click();
      await until(() => hosts(page), ["Dogs", "Bees", "Apples"]);
      await page.getByRole("heading", { level: 1, name: "News" }).waitFor();
      assert.equal(await dialog(page).count(), 0);
      await page.getByLabel(list.order).selectOption(words.byTitle);
      await until(() => hosts(page), ["Apples", "Bees", "Dogs"]);
      await search(page).fill("s");
      await rows(page).getByRole("button", { name: "Bees", exact: true }).click();
      await dialog(page).getByRole("heading", { name: "Bees" }).waitFor();
      assert.match(page.url(), /#list\?folder=News&q=s&sort=title&open=[\w-]+$/);

      await page.reload();
      await dialog(page).getByRole("heading", { name: "Bees" }).waitFor();
      assert.equal(await search(page).inputValue(), "s");
      await page.goBack();
      await dialog(page).waitFor({ state: "detached" });
      assert.deepEqual(await hosts(page), ["Apples", "Bees", "Dogs"]);
      assert.match(page.url(), /#list\?folder=News&q=s&sort=title$/);
      // A panel that was closed by its button leaves nothing to go back to.
      await rows(page).getByRole("button", { name: "Dogs", exact: true }).click();
      await button(page, en.close).click();
      await until(() => page.url().replace(/.*#/, ""), "list?folder=News&q=s&sort=title");
      await page.goBack();
      await until(() => hosts(page), ["Apples", "Bees", "Cats", "Dogs"]);
      await page.getByLabel(list.order).selectOption(list.newest);
      await finish();
    }
  });

  test("place: a search without a match → said once, then no longer in the live region", async () => {
    const { page, finish } = await visit({ feeds: numberedFeeds(3) });
    await search(page).fill("nothing");
    const found = status(page, format(list.found, { n: 0 }));
    await found.waitFor({ state: "attached" });
    await until(() => found.count(), 0);
    await until(
      () =>
        page
          .getByRole("status")
          .allTextContents()
          .then((all) => all.join("")),
      "",
    );
    await finish();
  });
});

describe("menu of a podcast", { concurrency: 2 }, () => {
  test("menu: right click, its button and its key → the same actions; closed, the focus is back", async () => {
    const server = await serverWith({ Apples: {}, Bees: {} });
    const { page, finish } = await visit({ server });
    const items = () => page.getByRole("menuitem").allTextContents();
    await openMenu(page, "Bees");
    const all = await items();
    assert.deepEqual(all, [
      list.details,
      en.apps.rename,
      words.move,
      en.moves.mergeInto,
      words.selectOne,
      words.copyUrl,
      words.openFeed,
      words.remove,
    ]);
    await assertAccessible(page);
    await page.keyboard.press("Escape");
    assert.equal(await page.getByRole("menu").count(), 0);
    await button(page, format(list.actions, { name: "Bees" })).press("Enter");
    await until(items, all);
    await page.keyboard.press("Escape");
    const focusedLabel = () => page.evaluate("document.activeElement.ariaLabel");
    await until(focusedLabel, format(list.actions, { name: "Bees" }));
    await page.keyboard.press("Shift+F10");
    await until(items, all);
    await page.keyboard.press("ArrowUp");
    await until(() => page.evaluate("document.activeElement.textContent"), words.remove);
    await page.mouse.click(700, 700);
    await until(items, []);
    await choose(page, "Bees", words.move);
    await dialog(page).getByLabel(words.folder, { exact: true }).fill("A/".repeat(9));
    await page.keyboard.press("Enter");
    await dialog(page)
      .getByText(format(words.tooDeep, { n: 8 }))
      .waitFor();
    await dialog(page).getByLabel(words.folder, { exact: true }).fill("A");
    await page.keyboard.press("Enter");
    await until(() => foldersOf(server), [undefined, ["A"]]);
    await finish();
  });

  test("menu: a long press on a cover → the menu, and the panel stays closed; a tap opens the panel", async () => {
    const server = await serverWith({ Apples: {}, Bees: {} });
    const { page, context, finish } = await visit({ server, size: "phone" });
    await until(() => hosts(page), ["Bees", "Apples"]);
    await page.locator(".subscription [aria-haspopup=menu]").first().waitFor({ state: "attached" });
    const box = await rows(page).first().locator(".avatar").boundingBox();
    assert.ok(box !== null);
    const touch = await context.newCDPSession(page);
    const point = { x: box.x + 30, y: box.y + 30 };
    await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [point] });
    await menuItem(page, words.remove).waitFor();
    await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await assertAccessible(page);
    await menuItem(page, words.remove).tap();
    await until(() => hosts(page), ["Apples"]);
    assert.equal(await dialog(page).count(), 0);
    await rows(page).first().locator(".avatar").tap();
    await dialog(page).getByRole("heading", { name: "Apples" }).waitFor();
    await finish();
  });

  test("rows: with and without a secret in the URL, selected or not → the same columns under the bar", async () => {
    const { page, finish } = await visit({ feeds: [...numberedFeeds(30), `${FEED}?key=x7Kp2Qm9Zt4Lw8Rb`] });
    await page.locator(".subscription [aria-haspopup=menu]").first().waitFor();
    for (const column of ["time", ".host", ".subscription > .icon-button"])
      assert.equal(new Set(await lefts(page, `.row ${column}`)).size, 1, column);
    await chooseMore(page, words.select);
    await page.evaluate("scrollTo(0, 300)");
    // What scrolls below the bar is covered from edge to edge.
    const overhang = await page.evaluate<number[]>(`(() => {
      const [bar, row] = [".toolbar", ".row"].map((name) => document.querySelector(name).getBoundingClientRect());
      return [bar.left - row.left, row.right - bar.right].map((pixels) => Math.max(0, Math.round(pixels)));
    })()`);
    assert.deepEqual(overhang, [0, 0]);
    await finish();
  });
});

describe("folders", { concurrency: 2 }, () => {
  test("folders: dragged to, renamed and removed → podcasts are in them, and each step can be undone", async () => {
    const server = await serverWith({
      Apples: { folders: ["News"] },
      Bees: { folders: ["News/Tech", "Best"] },
      Cats: {},
    });
    const { page, finish } = await visit({ server });
    const counts = () => page.locator(".folders a").allTextContents();
    const before = ["All podcasts 3", "Best 1", "News 2", "Tech 1", "No folder 1"];
    await until(counts, before);
    await assertAccessible(page);

    await rows(page).filter({ hasText: "Cats" }).dragTo(folder(page, "Tech"));
    await until(() => foldersOf(server), [["News"], ["News/Tech", "Best"], ["News/Tech"]]);
    await until(counts, ["All podcasts 3", "Best 1", "News 3", "Tech 2", "No folder 0"]);
    await button(page, list.undo).click();
    await status(page, words.foldersUndone).waitFor();
    await until(() => foldersOf(server), [["News"], ["News/Tech", "Best"], undefined]);

    // Out of the folder that is shown, and out of no other.
    await folder(page, "Tech").click();
    await until(() => hosts(page), ["Bees"]);
    await rows(page).filter({ hasText: "Bees" }).dragTo(folder(page, "News"));
    await until(() => foldersOf(server), [["News"], ["Best", "News"], undefined]);
    await button(page, list.undo).click();
    await until(() => foldersOf(server), [["News"], ["News/Tech", "Best"], undefined]);

    const menuOf = (name: string) => button(page, format(words.folderActions, { folder: name }));
    await folder(page, "News").click();
    await menuOf("News").click();
    await menuItem(page, words.renameFolder).click();
    await dialog(page).getByLabel(words.folder, { exact: true }).fill(" Daily / News ");
    await page.keyboard.press("Enter");
    await until(() => foldersOf(server), [["Daily/News"], ["Daily/News/Tech", "Best"], undefined]);
    await page.getByRole("heading", { level: 1, name: "Daily/News" }).waitFor();
    await until(() => hosts(page), ["Bees", "Apples"]);
    await menuOf("Daily/News").click();
    await menuItem(page, words.renameFolder).click();
    await dialog(page).getByLabel(words.folder, { exact: true }).fill("a/b/c/d/e/f/g/h");
    await page.keyboard.press("Enter");
    await dialog(page)
      .getByText(format(words.tooDeep, { n: 8 }))
      .waitFor();
    await page.keyboard.press("Escape");

    await menuOf("Daily").click();
    await menuItem(page, words.removeFolder).click();
    await until(() => foldersOf(server), [undefined, ["Best"], undefined]);
    await button(page, list.undo).click();
    await until(() => foldersOf(server), [["Daily/News"], ["Daily/News/Tech", "Best"], undefined]);
    await page.goto("/#list");
    await search(page).fill("daily");
    await until(() => hosts(page), ["Bees", "Apples"]);
    await finish();
  });

  test("folders: dragging one of several selected podcasts → all of them are moved", async () => {
    const server = await serverWith({ Apples: { folders: ["News"] }, Bees: {}, Cats: {} });
    const { page, finish } = await visit({ server });
    await until(() => hosts(page), ["Cats", "Bees", "Apples"]);
    await choose(page, "Cats", words.selectOne);
    await page.getByRole("checkbox", { name: "Bees" }).click();
    await rows(page).filter({ hasText: "Bees" }).locator(".details").dragTo(folder(page, "News"));
    await until(() => foldersOf(server), [["News"], ["News"], ["News"]]);
    await finish();
  });
});

test("latest episode: → shown with each podcast, an order, and a filter for those that are quiet", async () => {
  const ago = (days: number) => Date.now() - days * DAY_MS - 60_000;
  const server = await serverWith({
    Apples: { latestEpisodeAt: ago(3), author: "Ann" },
    Bees: { latestEpisodeAt: ago(400) },
    Cats: {},
    Dogs: { latestEpisodeAt: ago(0) },
  });
  const { page, finish } = await visit({ server });
  await until(() => hosts(page), ["Dogs", "Cats", "Bees", "Apples"]);
  await rows(page)
    .getByText(`${format(en.ago.days, { n: 3 })} · Ann`, { exact: true })
    .waitFor();
  await page.getByLabel(list.order).selectOption(words.byLatest);
  await until(() => hosts(page), ["Dogs", "Apples", "Bees", "Cats"]);
  await page.locator(".folders").getByRole("link", { name: words.quiet }).click();
  await until(() => hosts(page), ["Bees"]);
  await rows(page).getByRole("button", { name: "Bees", exact: true }).click();
  await dialog(page)
    .getByText(format(words.latestEpisode, { when: format(en.ago.months, { n: 13 }) }))
    .waitFor();
  await finish();
});
