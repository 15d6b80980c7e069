import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { assertAccessible } from "./support/browser.ts";
import { learn } from "./support/fetching.ts";
import { allTexts, button, link, subscribe, until, visit } from "./support/page.ts";
import { type PlayedEpisode, play } from "./support/plays.ts";
import { newId, startServer, type TestServer } from "./support/server.ts";
import { de, en, es, format, fr, type Words, zh } from "./support/words.ts";

const { listening: words } = en;
const DAY = 24 * 60 * 60 * 1_000;
const FEED = "https://feeds.example/";
const [A, B] = [`${FEED}a`, `${FEED}b`] as const;
const daysAgo = (days: number, hours = 0) => new Date(Date.now() - days * DAY - hours * 3_600_000);

const section = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const recent = (page: Page, language: Words = en) => section(page, language.listening.recent).getByRole("listitem");
const names = (page: Page) => recent(page).locator("strong").allTextContents();
const tiles = (page: Page) => page.locator(".tiles dd").allTextContents();
const choose = (page: Page, label: string, option: string) =>
  page.getByRole("combobox", { name: label }).selectOption({ label: option });

async function serverWith(plays: readonly PlayedEpisode[], podcastGuid: string | null = null): Promise<TestServer> {
  const server = await startServer();
  await subscribe(server, [A, B]);
  await learn(server.store, A, { title: "Ay", status: "ok", podcastGuid });
  await learn(server.store, B, { title: "Bee", status: "ok", podcastGuid });
  await play(server.store, plays);
  return server;
}

const PLAYS: readonly PlayedEpisode[] = [
  { podcast: A, name: "one", title: "The first one", at: daysAgo(0, 1), position: 754, total: 1_800, device: "phone" },
  { podcast: A, name: "two", title: "Two", at: daysAgo(30), position: 3_700, total: 3_723, device: "desk" },
  { podcast: B, name: "three", at: daysAgo(2), position: 61, total: null, device: "phone" },
  { podcast: `${FEED}gone`, name: "four", title: "Four", at: daysAgo(800), device: "phone" },
];

describe("listening", { concurrency: 2 }, () => {
  test("listening: plays of several podcasts → calendar, last plays and sums, accessible", async () => {
    const { page, finish } = await visit({ server: await serverWith(PLAYS) });
    await link(page, en.views.listening).click();
    await page.getByRole("heading", { name: words.recent }).waitFor();
    await until(() => names(page), ["The first one", "three.mp3", "Two", "Four"]);
    // Four was played before the calendar begins.
    assert.deepEqual(await tiles(page), ["3", "1", "3", "1 h 15 min"]);
    const first = recent(page).first();
    await first.getByText("12:34 of 30:00").waitFor();
    await first.getByText("Ay", { exact: true }).waitFor();
    await first.getByText("phone").waitFor();
    assert.equal(
      await first.getByRole("progressbar").getAttribute("aria-label"),
      format(words.progress, { percent: 42 }),
    );
    assert.equal(await recent(page).nth(1).getByRole("progressbar").count(), 0);
    await recent(page).nth(2).getByText("1:01:40 of 1:02:03").waitFor();
    const calendar = page.getByRole("img", { name: /^3 plays on 3 days, from / });
    assert.equal(await calendar.locator("rect:not(.level-0)").count(), 3);
    await section(page, words.byPodcast)
      .getByText(/^2 episodes, 1 to the end/)
      .waitFor();
    await page.getByText(words.note).waitFor();
    await page.getByText(words.perMonth).click();
    await page.getByRole("columnheader", { name: words.month }).waitFor();
    await assertAccessible(page);
    await finish();
  });

  test("listening: filters → in the URL, kept when it is loaded again, and back works", async () => {
    const { page, finish } = await visit({ server: await serverWith(PLAYS), at: "listening" });
    await until(async () => (await names(page)).length, 4);
    await choose(page, words.device, "phone");
    await until(() => names(page), ["The first one", "three.mp3", "Four"]);
    await section(page, words.byPodcast).getByRole("link", { name: "Bee" }).click();
    await until(() => names(page), ["three.mp3"]);
    assert.match(page.url(), /#listening\?podcast=[\w-]+&device=phone$/);
    await page.reload();
    await until(() => names(page), ["three.mp3"]);
    assert.equal(
      await page.getByRole("combobox", { name: words.podcast }).locator("option:checked").innerText(),
      "Bee",
    );
    await choose(page, words.device, "desk");
    await page.getByText(words.noMatches).waitFor();
    await assertAccessible(page);
    await link(page, en.list.showAll).click();
    await until(async () => (await names(page)).length, 4);
    await page.goBack();
    await page.getByText(words.noMatches).waitFor();
    await finish();
  });

  test("listening: CSV and JSON → what is shown, with titles", async () => {
    const { page, finish } = await visit({ server: await serverWith(PLAYS), at: "listening?device=phone" });
    await until(async () => (await names(page)).length, 3);
    const save = async (type: string) => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        button(page, format(words.exportLabel, { type })).click(),
      ]);
      return [download.suggestedFilename(), await readFile(await download.path(), "utf8")] as const;
    };
    const [csvName, csv] = await save("CSV");
    assert.equal(csvName, "earmark-listening.csv");
    assert.equal(csv.trim().split("\r\n").length, 4);
    assert.match(csv, /"Ay","https:\/\/feeds\.example\/a","The first one"/);
    const [jsonName, json] = await save("JSON");
    assert.equal(jsonName, "earmark-listening.json");
    const { plays } = JSON.parse(json);
    assert.deepEqual(
      plays.map((each: { title: string; device: string }) => [each.title, each.device]),
      [
        ["The first one", "phone"],
        [null, "phone"],
        ["Four", "phone"],
      ],
    );
    await finish();
  });

  test("listening: hostile titles → shown as text on one line", async () => {
    const hostile = ["<img src=x onerror=alert(1)>", "a\u202egnp.exe", "\u0007bell", "x".repeat(300)];
    const plays = hostile.map((title, index) => ({ podcast: A, name: `${index}`, title, at: daysAgo(index) }));
    const { page, finish } = await visit({ server: await serverWith(plays), at: "listening", size: "phone" });
    await until(async () => (await names(page)).length, 4);
    assert.equal((await names(page))[0], hostile[0]);
    assert.doesNotMatch(await allTexts(page), /[\u0007\u202e]/);
    const width = await page.evaluate("[document.documentElement.scrollWidth, innerWidth].join()");
    assert.match(String(width), /^(\d+),\1$/);
    await assertAccessible(page);
    await finish();
  });

  for (const [locale, language] of Object.entries({ "de-DE": de, "es-ES": es, "fr-FR": fr, "zh-CN": zh }))
    for (const size of ["phone", "desktop"] as const)
      test(`listening: in ${locale} on a ${size} → translated, accessible, fits the screen`, async () => {
        const server = await serverWith(PLAYS, newId());
        const { page, finish } = await visit({ server, at: "listening", locale, size, words: language });
        await until(async () => (await recent(page, language).count()) > 0, true);
        await page.getByText(language.listening.note).waitFor();
        const fits = async () => {
          await assertAccessible(page);
          assert.equal(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0);
        };
        await fits();
        await link(page, language.views.list).click();
        await page.getByText(format(language.duplicates.hint, { n: 1 })).waitFor();
        await link(page, language.duplicates.review).click();
        await page.getByText(language.duplicates.reason["same-guid"]).waitFor();
        await fits();
        await finish();
      });

  test("listening: nothing played → how to connect an app", async () => {
    const { page, finish } = await visit({ at: "listening" });
    await page.getByRole("heading", { name: words.emptyTitle }).waitFor();
    await assertAccessible(page);
    await link(page, en.apps.title).click();
    await page.getByRole("heading", { name: en.apps.title }).waitFor();
    await finish();
  });

  test("listening: 20,000 plays on a phone in dark → shown in seconds, accessible", async () => {
    const plays = Array.from({ length: 20_000 }, (_, index) => ({
      podcast: index % 3 === 0 ? A : `${FEED}${index % 200}`,
      name: String(index),
      at: daysAgo(index / 60),
    }));
    const server = await serverWith(plays);
    const started = performance.now();
    const { page, finish } = await visit({ server, at: "listening", size: "phone", theme: "dark" });
    await until(async () => (await names(page)).length, 10);
    const seconds = (performance.now() - started) / 1_000;
    assert.ok(seconds < 20, `${seconds} s`);
    process.stdout.write(`measured: 20,000 plays are shown after ${seconds.toFixed(1)} s\n`);
    await button(page, words.showMore).click();
    await until(async () => (await names(page)).length, 30);
    await assertAccessible(page);
    await finish();
  });
});
