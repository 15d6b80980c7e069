import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { assertAccessible } from "./support/browser.ts";
import { openSettings, openView } from "./support/navigation.ts";
import {
  button,
  chooseFile,
  chooseMore,
  feedsOf,
  hold,
  hosts,
  link,
  numberedFeeds,
  opml,
  removeFrom,
  rows,
  until,
  visit,
  walk,
} from "./support/page.ts";
import { newUser, visit as visitAs } from "./support/page-accounts.ts";
import { startServer } from "./support/server.ts";
import { de, en, es, format, fr, type Words, zh } from "./support/words.ts";

/** Short and long, with and without secrets. */
const FEEDS = [
  ...numberedFeeds(3),
  "https://ann:secret@private.example/feed.xml",
  `https://${"a-long-name.".repeat(8)}example/${"and-a-long-path/".repeat(12)}feed.xml`,
];
/** A walk chooses an invalid file and goes offline. */
const EXPECTED = [/^response: 422 POST/, /ERR_INTERNET_DISCONNECTED/];

/** How far the page is wider than the window, and targets that are too small. */
const measure = (page: Page) =>
  page.evaluate<{ over: number; small: string[] }>(`(() => {
    const targets = document.querySelectorAll("a, button, input, select, textarea");
    const small = [...targets].flatMap((target) => {
      const label = target.matches("input[type=radio], input[type=checkbox], input[type=file]");
      const seen = label ? target.closest("label") : target;
      const { width, height, bottom } = seen.getBoundingClientRect();
      // Links are as high as their line of text.
      const isText = target.matches("p > a:not(.button)");
      return isText || bottom < 0 || !seen.checkVisibility() || (width >= 24 && height >= 24) ? [] : [seen.outerHTML.slice(0, 120)];
    });
    return { over: document.documentElement.scrollWidth - innerWidth, small };
  })()`);

const themeOf = (page: Page) => page.evaluate("document.documentElement.dataset.theme ?? 'system'");
const isDark = (page: Page) =>
  page.evaluate<boolean>(`!/\\(2\\d\\d, /.test(getComputedStyle(document.body).backgroundColor)`);

describe("appearance", { concurrency: 3 }, () => {
  test("appearance: every state in German, under a base path, on a light desktop and a dark phone → accessible, fits the screen, fully translated", async (t) => {
    const server = await startServer({ EARMARK_BASE_PATH: "/pods" });
    const german = patterns(de);
    const english = patterns(en).filter((pattern) => !german.some(({ source }) => source === pattern.source));
    const outside: string[] = [];
    const { page, allow, finish } = await visit({
      server,
      locale: "de-AT",
      words: de,
      basePath: "/pods",
      feeds: FEEDS,
      prepare: async (page) =>
        page.on("request", (request) => {
          if (!new URL(request.url()).pathname.startsWith("/pods/")) outside.push(request.url());
        }),
    });
    allow(...EXPECTED);
    const isAccessible = async () => {
      await assertAccessible(page);
      await page.setViewportSize({ width: 390, height: 844 });
      await page.emulateMedia({ colorScheme: "dark" });
      await assertAccessible(page);
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize({ width: 1280, height: 800 });
    };

    await t.test(
      "appearance: every state → accessible, fits 320 px and 200 % zoom, targets of at least 24 px, every text in German",
      () =>
        walk(page, de, async (state) => {
          await isAccessible();
          // 640 px is a window of 1280 px at 200 % zoom.
          for (const width of [640, 320]) {
            await page.setViewportSize({ width, height: 640 });
            // Covers are laid out again after the resize.
            const fits = async () => ({ state, width, ...(await measure(page)) });
            await until(fits, { state, width, over: 0, small: [] });
          }
          await page.setViewportSize({ width: 1280, height: 800 });
          const texts = await page.evaluate<string[]>(`(() => {
          const texts = [document.title];
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
          while (walker.nextNode()) {
            const { currentNode: node } = walker;
            if (node.nodeType === Node.TEXT_NODE) texts.push(node.data);
            else texts.push(node.ariaLabel, node.title, node.placeholder);
          }
          return texts.map((text) => text?.trim()).filter(Boolean);
        })()`);
          const left = texts.filter(
            (text) => english.some((pattern) => pattern.test(text)) && !german.some((pattern) => pattern.test(text)),
          );
          assert.deepEqual({ state, left }, { state, left: [] });
          assert.ok(texts.some((text) => german.some((pattern) => pattern.test(text))));
        }),
    );

    await t.test("base path: every view and request → under it", async () => {
      const { status, headers } = await server.call("GET", "/pods");
      assert.ok(status >= 301 && status <= 308, String(status));
      assert.equal(headers["location"], "/pods/");
      const [download] = await Promise.all([page.waitForEvent("download"), chooseMore(page, de.list.export, de)]);
      assert.equal(new URL(download.url()).pathname, "/pods/v1/subscriptions.opml");
      const before = (await feedsOf(server)).length;
      await removeFrom(page, "pod-1.example", de);
      await button(page, de.close).click();
      await until(async () => (await feedsOf(server)).length, before - 1);
      await link(page, de.views.apps).click();
      await page.getByText(de.apps.other, { exact: true }).click();
      await page.getByText(`${server.url}/pods`, { exact: true }).waitFor();
      await page.goto("/pods");
      await rows(page, de).getByText("pod-2.example", { exact: true }).waitFor();
      assert.equal(new URL(page.url()).pathname, "/pods/");
      assert.deepEqual(
        outside.filter((url) => new URL(url).pathname !== "/pods"),
        [],
      );
    });

    await t.test("appearance: an empty list, and an import in progress → accessible", async () => {
      const { json } = await server.call("GET", "/pods/v1/subscriptions");
      for (const { id } of json.data) await server.call("DELETE", `/pods/v1/subscriptions/${id}`);
      await page.getByRole("heading", { name: de.list.emptyTitle }).waitFor();
      await isAccessible();
      await link(page, de.list.importFile).click();
      const operations = await hold(page, "**/v1/operations");
      await chooseFile(page, opml(numberedFeeds(300)), de);
      await button(page, format(de.import.start, { n: 300 })).click();
      await operations.next();
      await page.getByText(format(de.import.running, { done: 250, total: 300 })).waitFor();
      await isAccessible();
      await operations.open();
      await page.getByText(de.import.done, { exact: true }).first().waitFor();
    });
    await finish();
  });

  test("appearance: the appearance settings of the user → applied", async (t) => {
    const { page, finish } = await visit({ feeds: FEEDS.slice(0, 4) });
    await t.test("appearance: reduced motion → no animation", async () => {
      const moving = () =>
        page.evaluate<string[]>(`[...document.querySelectorAll("*")].flatMap((element) => {
          const { animationName, animationDuration, transitionDuration } = getComputedStyle(element);
          const moves = [animationName === "none" ? "0s" : animationDuration, ...transitionDuration.split(", ")];
          return moves.every((time) => time === "0s") ? [] : [element.className];
        })`);
      await removeFrom(page, "pod-3.example");
      await button(page, en.list.undo).waitFor();
      assert.deepEqual(await moving(), []);
      await page.emulateMedia({ reducedMotion: "no-preference" });
      assert.ok((await moving()).includes("notice"));
      await page.emulateMedia({ reducedMotion: "reduce" });
      await button(page, en.list.undo).click();
    });

    await t.test("appearance: wider text spacing on a desktop and a phone → nothing cut off", async () => {
      await page.evaluate(`(() => {
        const sheet = new CSSStyleSheet();
        sheet.replaceSync(\`* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
          word-spacing: 0.16em !important } p { margin-block-end: 2em !important }\`);
        document.adoptedStyleSheets.push(sheet);
      })()`);
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 844 });
        const cut = () =>
          page.evaluate<string[]>(`[...document.querySelectorAll("li")].flatMap((row) => {
          const room = row.getBoundingClientRect();
          const name = row.querySelector("strong .middle-ellipsis > :first-child");
          const shown = [...row.querySelectorAll("strong, bdi, time, button")].filter((part) => part.checkVisibility());
          const parts = shown.map((part) => part.getBoundingClientRect());
          const isIn = parts.every(({ top, bottom }) => top >= room.top && bottom <= room.bottom);
          return isIn && name.scrollWidth <= name.clientWidth ? [] : [row.textContent];
        })`);
        // The list measures the rows again after a change.
        await until(cut, []);
        assert.equal(await page.evaluate("document.documentElement.scrollWidth - innerWidth"), 0);
      }
      await page.evaluate("document.adoptedStyleSheets.pop()");
      await page.setViewportSize({ width: 1280, height: 800 });
    });

    await t.test("settings: theme → kept, and applied before the first paint", async () => {
      assert.deepEqual([await themeOf(page), await isDark(page)], ["system", false]);
      await page.emulateMedia({ colorScheme: "dark" });
      assert.equal(await isDark(page), true);
      await page.emulateMedia({ colorScheme: "light" });
      await openSettings(page);
      await page.getByLabel(en.settings.dark).check();
      assert.deepEqual([await themeOf(page), await isDark(page)], ["dark", true]);

      const app = await hold(page, "**/assets/index-*.js");
      await page.reload({ waitUntil: "commit" });
      const script = await app.take();
      await until(() => themeOf(page), "dark");
      assert.equal(await page.evaluate("document.querySelector('#app')?.childElementCount ?? 0"), 0);
      await script.continue();
      await app.open();
      await rows(page).first().waitFor();
      assert.equal(await isDark(page), true);

      await openSettings(page);
      assert.equal(await page.getByLabel(en.settings.dark).isChecked(), true);
      await page.getByLabel(en.settings.light).check();
      await page.emulateMedia({ colorScheme: "dark" });
      assert.deepEqual([await themeOf(page), await isDark(page)], ["light", false]);
      await page.getByLabel(en.settings.system).check();
      assert.deepEqual([await themeOf(page), await isDark(page)], ["system", true]);
      await page.reload();
      assert.equal(await themeOf(page), "system");
    });
    await finish();
  });

  const languages: readonly [locale: string, language: string, words: Words][] = [
    ["de-AT", "de", de],
    ["fr-CA", "fr", fr],
    ["es-MX", "es", es],
    ["zh-TW", "zh", zh],
    ["nl-NL", "en", en],
  ];
  test("settings: languages → all five, as the browser or the user says", async (t) => {
    const { page, context, finish } = await visit({ size: "phone" });
    await t.test("settings: language of the browser → language of the page", async () => {
      const session = await context.newCDPSession(page);
      const userAgent = await page.evaluate<string>("navigator.userAgent");
      for (const [locale, language, words] of languages) {
        await session.send("Emulation.setUserAgentOverride", { userAgent, acceptLanguage: locale });
        await page.reload();
        await page.getByRole("heading", { level: 1, name: words.list.title }).waitFor();
        assert.equal(await page.evaluate("navigator.language"), locale);
        assert.equal(await page.evaluate("document.documentElement.lang"), language);
        assert.equal(await page.title(), `${words.views.list} – Earmark`);
      }
    });

    await t.test("settings: language → kept", async () => {
      await openSettings(page);
      for (const [, language, words] of languages) {
        await page.locator("dialog select").selectOption(language);
        await page.getByRole("dialog", { name: words.settings.title }).waitFor();
        assert.equal(await page.evaluate("document.documentElement.lang"), language);
      }
      await page.locator("dialog select").selectOption("fr");
      await page.getByRole("dialog", { name: fr.settings.title }).waitFor();
      await page.goto("/");
      await page.getByRole("heading", { level: 1, name: fr.list.title }).waitFor();
      assert.equal(await page.evaluate("document.documentElement.lang"), "fr");
    });
    await finish();
  });

  test("security policy: inline scripts, eval and markup from strings → blocked, and no request to other hosts", async () => {
    const origins = new Set<string>();
    const { page, server, allow, finish } = await visit({
      feeds: FEEDS,
      prepare: (page) => {
        page.on("request", (request) => origins.add(new URL(request.url()).origin));
        return page.route("**/assets/theme.js", (route) =>
          route.fulfill({
            contentType: "text/javascript",
            body: `
              globalThis.tried = [
                () => { document.createElement("div").innerHTML = "x"; },
                () => { document.createElement("script").src = "/x.js"; },
                () => { new Function("return 1")(); },
                () => { setTimeout("1"); },
              ].map((attempt) => { try { attempt(); return "done"; } catch ({ name }) { return name; } });`,
          }),
        );
      },
    });
    allow(/^policy: /);
    await until(() => hosts(page).then(({ length }) => length), FEEDS.length);
    assert.deepEqual(await page.evaluate("tried"), ["TypeError", "TypeError", "EvalError", "TypeError"]);
    const { text } = await server.call("GET", "/");
    assert.doesNotMatch(text, /<style|\sstyle=|\son\w+=|javascript:/i);
    for (const [tag] of text.matchAll(/<script[^>]*>/g)) assert.match(tag, /\ssrc="\.\//);
    await page
      .evaluate(`(() => {
      const script = document.createElement("script");
      script.append("globalThis.planted = true");
      document.body.append(script);
    })()`)
      .catch(() => undefined);
    assert.equal(await page.evaluate("typeof planted"), "undefined");
    for (const view of ["import", "apps", "list"] as const) await openView(page, en.views[view]);
    await rows(page).first().waitFor();
    assert.deepEqual([...origins], [new URL(server.url).origin]);
    await finish();
  });
});

/** How far the page is wider than the window, and the links of the menu that take more than one line. */
const MENU = `(() => {
  const isBroken = (span) => span.checkVisibility() && (span.getClientRects().length !== 1 || span.offsetHeight > 40);
  const broken = [...document.querySelectorAll("nav span")].filter(isBroken).map(({ textContent }) => textContent);
  return { over: document.documentElement.scrollWidth - innerWidth, broken };
})()`;

test("appearance: the menu of an account in every language, at any width → on one line", async () => {
  const user = await newUser();
  for (const [locale, words] of Object.entries({ "en-US": en, "de-DE": de, "es-ES": es, "fr-FR": fr, "zh-CN": zh })) {
    const { page, finish } = await visitAs({ as: user, locale });
    await page.getByRole("navigation", { name: words.mainMenu }).getByRole("link").first().waitFor();
    for (const width of [320, 390, 640, 641, 850, 999, 1_000, 1_280]) {
      await page.setViewportSize({ width, height: 800 });
      assert.deepEqual(await page.evaluate(MENU), { over: 0, broken: [] }, `${locale} at ${width}`);
    }
    await finish();
  }
});

/** Every text of a language as a pattern. */
function patterns(words: object): RegExp[] {
  const literal = (text: string) => text.replace(/[.*+?^$()[\]{}|\\]/g, "\\$&");
  return Object.values(words).flatMap((value) => {
    if (typeof value !== "string") return patterns(value);
    const names = [...value.matchAll(/\{(\w+)/g)].map(([, name = ""]) => name);
    if (names.length === 0) return [new RegExp(`^${literal(value)}$`)];
    const texts = [1, 2].map((n) => format(value, Object.fromEntries(names.map((name) => [name, n]))));
    return texts.map((text) => new RegExp(`^${literal(text).replaceAll(/\d+/g, ".+")}$`));
  });
}
