import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { openAddMany } from "./support/navigation.ts";
import {
  allTexts,
  button,
  choose,
  chooseMore,
  feedsOf,
  hold,
  hosts,
  link,
  menuItem,
  NEWEST_FIRST,
  numberedFeeds,
  OLDEST_FIRST,
  openMenu,
  removeFrom,
  returnToTab,
  rows,
  status,
  subscribe,
  THREE,
  until,
  visit,
} from "./support/page.ts";
import { en, format } from "./support/words.ts";

const search = (page: Page) => page.getByRole("searchbox", { name: en.list.search });
const showsCount = (page: Page, count: number) =>
  page.getByText(format(en.count, { n: count }), { exact: true }).waitFor();

describe("list", { concurrency: 3 }, () => {
  test("list: the list changes on a phone → always up to date", async (t) => {
    const { page, server, finish } = await visit({ size: "phone", theme: "dark" });
    await t.test("list: empty → says what to do and links there", async () => {
      await page.getByRole("heading", { name: en.list.emptyTitle }).waitFor();
      await page.getByText(en.firstRun.noAccounts).waitFor();
      await showsCount(page, 0);
      await link(page, en.list.importFile).click();
      await page.getByRole("heading", { level: 1, name: en.import.title }).waitFor();
      await page.goBack();
      await link(page, en.firstRun.connect).click();
      await page.getByRole("heading", { level: 1, name: en.apps.title }).waitFor();
      await page.goBack();
      await link(page, en.list.moveHere).click();
      await page.getByRole("heading", { level: 1, name: en.import.title }).waitFor();
      await page.goBack();
      await link(page, en.list.addFeeds).click();
      await until(() => page.evaluate("document.activeElement.id"), "search");
      await openAddMany(page);
      await page.getByRole("heading", { level: 1, name: en.add.title }).waitFor();
      await link(page, en.views.list).click();
    });

    await t.test("list: three feeds → newest first or oldest first, with the total", async () => {
      await subscribe(server, THREE);
      await until(() => hosts(page), NEWEST_FIRST);
      await showsCount(page, 3);
      const order = page.getByLabel(en.list.order);
      await order.selectOption(en.list.oldest);
      await until(() => hosts(page), OLDEST_FIRST);
      await order.selectOption(en.list.newest);
      await until(() => hosts(page), NEWEST_FIRST);
    });

    await t.test("list: another device changes it → up to date after returning to the tab", async () => {
      await until(() => hosts(page), NEWEST_FIRST);
      await subscribe(server, ["https://four.example/feed"]);
      await returnToTab(page);
      await until(() => hosts(page), ["four.example", ...NEWEST_FIRST]);
      const { json } = await server.call("GET", "/v1/subscriptions");
      await server.call("DELETE", `/v1/subscriptions/${json.data[1].id}`);
      await returnToTab(page);
      await until(() => hosts(page), ["four.example", "three.example", "one.example"]);
      await showsCount(page, 3);
    });

    await t.test("list: a feed is added while the list loads → it is in the list", async () => {
      const before = await hosts(page);
      const changes = await hold(page, "**/v1/changes?*");
      await returnToTab(page);
      const held = await changes.take();
      await openAddMany(page);
      await page.getByLabel(en.add.label).fill("https://five.example/feed");
      await button(page, format(en.add.submit, { n: 1 })).click();
      await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 0 })).waitFor();
      await held.continue();
      await changes.open();
      await link(page, en.views.list).click();
      await until(() => hosts(page), ["five.example", ...before]);
    });
    await finish();
  });

  test("list: feeds of all kinds are added by another device → found, and shown as they are", async (t) => {
    const { page, context, server, finish } = await visit({ feeds: numberedFeeds(255) });
    await t.test("list: typing in the search → matches update; no match → a button back to the full list", async () => {
      await search(page).pressSequentially("POD-25");
      await until(
        async () => (await hosts(page)).toSorted(),
        ["pod-25.example", ...numberedFeeds(6, 250).map((feed) => new URL(feed).host)].toSorted(),
      );
      await page
        .getByText(format(en.list.found, { n: 7 }), { exact: true })
        .first()
        .waitFor();
      await status(page, format(en.list.found, { n: 7 })).waitFor();
      await search(page).pressSequentially("x <b>");
      await page.getByText(format(en.list.noMatches, { query: "POD-25x <b>" })).waitFor();
      assert.equal(await rows(page).count(), 0);
      await button(page, en.list.showAll).click();
      await until(async () => (await hosts(page)).at(0), "pod-255.example");
      assert.equal(await search(page).inputValue(), "");
    });

    await t.test("list: URLs that pretend to be others → real host, no markup", async () => {
      const hostile = [
        "https://example.com@evil.example/",
        "https://\u0430pple.com/feed",
        `https://scripts.example/<script>document.title='hacked'</script>`,
      ];
      await subscribe(server, hostile);
      assert.deepEqual((await feedsOf(server)).slice(-3), hostile);
      await until(async () => (await hosts(page)).slice(0, 3), ["scripts.example", "xn--pple-43d.com", "evil.example"]);
      await rows(page).getByText("https://•••@evil.example/", { exact: true }).waitFor();
      await rows(page).getByText("https://xn--pple-43d.com/feed", { exact: true }).waitFor();
      await rows(page)
        .getByText("https://scripts.example/<script>document.title=•••/script>", { exact: true })
        .waitFor();
      assert.equal(await page.locator("body script").count(), 0);
      assert.equal(await page.title(), `${en.views.list} – Earmark`);
    });

    await t.test(
      "list: bidirectional and invisible characters in a feed URL → visible marks, original link",
      async () => {
        const feed = "https://feeds.example/\u202egpj\u2066.exe\u200b\u{e0041}?\u061cb";
        await subscribe(server, [feed, "https://feeds.example/שלום"]);
        await search(page).fill("feeds.example/");
        await until(() => rows(page).count(), 2);
        await rows(page).getByText("https://feeds.example/�gpj�.exe��?�b", { exact: true }).waitFor();
        const name = "feeds.example/�gpj�.exe��";
        assert.equal(await rows(page).locator("bdi").count(), 4);
        // Right-to-left text is isolated in labels.
        const label = await rows(page).first().getByRole("button").last().getAttribute("aria-label");
        assert.equal(label, format(en.list.actions, { name: "\u2068feeds.example/שלום\u2069" }));
        await button(page, format(en.list.actions, { name })).click();
        assert.equal(await menuItem(page, en.podcasts.openFeed).getAttribute("href"), feed);
        await menuItem(page, en.podcasts.remove).click();
        await status(page, format(en.list.removed, { n: 1, name })).waitFor();
        await search(page).fill("\u202eabc");
        await page.getByText(format(en.list.noMatches, { query: "�abc" }), { exact: true }).waitFor();
        assert.doesNotMatch(
          await allTexts(page),
          /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2066\u2067]|[\u{e0000}-\u{e007f}]/u,
        );
        await search(page).fill("");
        await button(page, en.list.undo).click();
        await until(async () => (await feedsOf(server)).at(-1), feed);
      },
    );

    await t.test("list: credentials, query values and random path parts → hidden until revealed", async () => {
      const secret = "x7Kp2Qm9Zt4Lw8Rb";
      const cases: readonly (readonly [feed: string, masked: string])[] = [
        [`https://ann:${secret}@private.example/feed.xml`, "https://•••@private.example/feed.xml"],
        [
          `https://private.example/rss/show?auth=${secret}&page=2#k=${secret}`,
          "https://private.example/rss/show?auth=•••&page=•••#k=•••",
        ],
        [`https://private.example/u/${secret}/feed.rss`, "https://private.example/u/x7Kp•••/feed.rss"],
        [`https://private.example/u/${secret}.rss`, "https://private.example/u/x7Kp•••.rss"],
      ];
      await subscribe(
        server,
        cases.map(([feed]) => feed),
      );
      await search(page).fill("private.example");
      await until(() => rows(page).count(), cases.length);
      assert.doesNotMatch(await allTexts(page), /Kp2Qm/);
      for (const [index, [feed, masked]] of cases.entries()) {
        const row = rows(page).nth(cases.length - 1 - index);
        await row.getByText(masked, { exact: true }).waitFor();
        await row.getByRole("button").first().click();
        const panel = page.getByRole("dialog");
        await panel.getByRole("button", { name: en.list.showSecrets }).click();
        await panel.getByText(feed, { exact: true }).waitFor();
        await panel.getByRole("button", { name: en.list.hideSecrets }).click();
        await panel.getByText(masked, { exact: true }).waitFor();
        await page.keyboard.press("Escape");
        await panel.waitFor({ state: "detached" });
      }
      assert.doesNotMatch(await allTexts(page), /Kp2Qm/);
      // Labels and notices name the feed too.
      await removeFrom(page, "private.example");
      await status(page, format(en.list.removed, { n: 1, name: "private.example/u/x7Kp•••.rss" })).waitFor();
      await button(page, en.list.undo).click();
    });

    await t.test("list: public feeds → shown in full, without a reveal button", async () => {
      const feeds = [
        "https://public.example/the-daily-2024-special-edition-2.xml",
        "https://public.example/TheDailyShowPodcastArchive/feed",
        "https://public.example/VMP5705694065",
        "https://public.example/%D0%BF%D0%BE%D0%B4%D0%BA%D0%B0%D1%81%D1%82/rss",
      ];
      await subscribe(server, feeds);
      await search(page).fill("public.example");
      for (const feed of feeds) await rows(page).getByText(feed, { exact: true }).waitFor();
      await rows(page).first().getByRole("button").first().click();
      await page.getByRole("dialog").getByRole("heading").first().waitFor();
      assert.equal(await button(page, en.list.showSecrets).count(), 0);
      await page.keyboard.press("Escape");
    });

    await t.test("list: link to a feed → the exact URL in a new tab without referrer", async () => {
      const feed = "https://ann:pw@linked.example:8443/a%20b/?q=1&r=<x>#top";
      await subscribe(server, [feed]);
      await search(page).fill("linked.example");
      await openMenu(page, "linked.example");
      const open = menuItem(page, en.podcasts.openFeed);
      const attributes = await Promise.all(["href", "target", "rel"].map((name) => open.getAttribute(name)));
      assert.deepEqual(attributes, [feed, "_blank", "noreferrer"]);
      await page.keyboard.press("Escape");
    });

    await t.test("list: copy button → the whole URL, with and without the clipboard API", async () => {
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      for (const host of ["copied.example", "copied-too.example"]) {
        const feed = `https://ann:s3cret@${host}/feed?q=%20`;
        await subscribe(server, [feed]);
        await search(page).fill(host);
        // Otherwise it could replace the next announcement.
        await status(page, format(en.list.found, { n: 1 })).waitFor();
        const copied = status(page, en.copied).first();
        await Promise.all([copied.waitFor({ state: "attached" }), choose(page, host, en.podcasts.copyUrl)]);
        assert.equal(await page.evaluate("document.activeElement.textContent"), host);
        await search(page).fill("");
        await search(page).press("Control+V");
        await until(() => search(page).inputValue(), feed);
        await page.evaluate(`Object.defineProperty(navigator, "clipboard", { value: undefined })`);
      }
    });

    await t.test("list: export → an OPML file with every feed URL", async () => {
      await subscribe(server, ["https://ann:pw@secret.example/?a=1&b=<2>"]);
      const [download] = await Promise.all([page.waitForEvent("download"), chooseMore(page, en.list.export)]);
      assert.equal(download.suggestedFilename(), "earmark.opml");
      const chunks: Buffer[] = [];
      for await (const chunk of await download.createReadStream()) chunks.push(chunk);
      const unescapeXml = (text: string) =>
        text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
      const urls = [
        ...Buffer.concat(chunks)
          .toString()
          .matchAll(/xmlUrl="([^"]*)"/g),
      ].map(([, url = ""]) => url);
      assert.deepEqual(urls.map(unescapeXml), await feedsOf(server));
    });

    await t.test("list: long URL on a phone → both ends visible, the middle cut", async () => {
      const feed = `https://very-long-host-name-of-a-podcast-company.example/${"path/".repeat(20)}feed.xml`;
      await subscribe(server, [feed]);
      await search(page).fill("very-long-host");
      await page.setViewportSize({ width: 390, height: 844 });
      await until(() => rows(page).count(), 1);
      const parts = await page.evaluate<{ isCut: boolean; isWhole: boolean; text: string }[]>(
        `[...document.querySelectorAll(".middle-ellipsis")].map(({ children: [start, end], parentElement }) => ({
          isCut: start.scrollWidth > start.clientWidth,
          isWhole: end.scrollWidth <= end.clientWidth &&
            end.getBoundingClientRect().right <= parentElement.getBoundingClientRect().right + 1,
          text: end.textContent,
        }))`,
      );
      assert.deepEqual(parts, [
        { isCut: true, isWhole: true, text: "dcast-company.example".slice(-20) },
        { isCut: true, isWhole: true, text: "th/path/feed.xml" },
      ]);
    });
    await finish();
  });

  for (const [layout, columns] of [
    ["covers", 3],
    ["list", 1],
  ] as const)
    test(`list: 10,000 feeds as ${layout} → each in its place wherever one scrolls`, async () => {
      const count = 10_000;
      const { page, finish } = await visit({ size: "phone", feeds: numberedFeeds(count) });
      await showsCount(page, count);
      if (layout === "list") await button(page, en.list.asList).click();
      /** Position, host and offset of each rendered row, and the height of a line. */
      const measure = () =>
        page.evaluate<{ places: [number, string, number][]; height: number }>(`(() => {
        const list = document.querySelector("ul");
        const rows = [...list.children];
        const top = list.getBoundingClientRect().top;
        return {
          places: rows.map((row) => [
            Number(row.ariaPosInSet),
            row.querySelector("strong")?.textContent ?? "",
            row.getBoundingClientRect().top - top,
          ]),
          height: list.getBoundingClientRect().height / ${Math.ceil(count / columns)},
        };
      })()`);
      const check = async (part: number, isRight: (places: readonly number[]) => boolean) => {
        await page.evaluate(`scrollTo(0, ${part} * (document.documentElement.scrollHeight - innerHeight))`);
        await until(async () => {
          const { places, height } = await measure();
          const isInPlace = places.every(
            ([place, host, top]) =>
              host === `pod-${count + 1 - place}.example` &&
              Math.abs(top - Math.floor((place - 1) / columns) * height) < 2,
          );
          return isInPlace && places.length < 60 && isRight(places.map(([place]) => place));
        }, true);
      };
      await check(1, (places) => places.at(-1) === count);
      for (const part of [0.9, 0.5, 0.1]) {
        await check(part, (places) => places.some((place) => Math.abs(place - part * count) < 20 * columns));
      }
      await check(0, (places) => places[0] === 1);
      await search(page).pressSequentially("9999");
      await until(() => hosts(page), ["pod-9999.example"]);
      await finish();
    });
});
