import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { en } from "../web/src/words/en.ts";
import { longTasks } from "./browser.ts";
import { startServer, temporaryFolder } from "./harness.ts";
import {
  button,
  feedsOf,
  hosts,
  installClock,
  link,
  numbered,
  passTime,
  rows,
  said,
  subscribe,
  until,
  visit,
} from "./page.ts";

const THREE = ["https://one.example/feed", "https://two.example/feed", "https://three.example/feed"];
const NAMES = ["one.example", "two.example", "three.example"];
const NEWEST_FIRST = NAMES.toReversed();

/** By which a feed of these tests is called on its buttons. */
const named = (host: string) => `${host}/${host.startsWith("pod-") ? "feed.xml" : "feed"}`;
const removal = (page: Page, host: string) => button(page, en.list.remove(named(host)));
const search = (page: Page) => page.getByRole("searchbox", { name: en.list.search });

/** The methods and paths of what the page changes on the server, from now on. */
function watchChanges(page: Page): string[] {
  const changes: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET") changes.push(`${request.method()} ${new URL(request.url()).pathname}`);
  });
  return changes;
}

/** Every text that people see or hear: in elements, labels and tooltips. */
const shownTexts = (page: Page): Promise<string> =>
  page.evaluate(`[document.body.textContent, ...[...document.querySelectorAll("[title], [aria-label]")]
    .flatMap((element) => [element.title, element.getAttribute("aria-label") ?? ""])].join(" ")`);

/** As when somebody comes back to the tab. */
const comeBack = (page: Page) =>
  page.evaluate(`document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))`);

describe("the list", { concurrency: 3 }, () => {
  test("has what was added last first, or the other way round, and its total at a glance", async () => {
    const { page, finish } = await visit({ size: "phone", theme: "dark", feeds: THREE });
    await until(() => hosts(page), NEWEST_FIRST);
    await page.getByText(en.count(3, "3"), { exact: true }).waitFor();
    const order = page.getByLabel(en.list.order);
    await order.selectOption(en.list.oldest);
    await until(() => hosts(page), NAMES);
    await order.selectOption(en.list.newest);
    await until(() => hosts(page), NEWEST_FIRST);
    await finish();
  });

  test("page: bidirectional and invisible characters in a feed URL → shown as marks, and kept in its link", async () => {
    const feed = "https://feeds.example/\u202egpj\u2066.exe\u200b\u{e0041}?a=\u061cb";
    const { page, server, finish } = await visit({ feeds: [feed, "https://feeds.example/שלום"] });
    await until(() => rows(page).count(), 2);
    await rows(page).getByText("https://feeds.example/�gpj�.exe��?a=�b", { exact: true }).waitFor();
    assert.equal(await rows(page).getByRole("link").last().getAttribute("href"), feed);
    const name = "feeds.example/�gpj�.exe��";
    assert.equal(await rows(page).locator("bdi").count(), 4);
    // What is written from right to left is isolated in labels.
    const label = await rows(page).first().getByRole("button").last().getAttribute("aria-label");
    assert.equal(label, en.list.remove("\u2068feeds.example/שלום\u2069"));
    await button(page, en.list.remove(name)).click();
    await said(page, en.list.removed(1, name)).waitFor();
    await search(page).fill("\u202eabc");
    await page.getByText(en.list.none("�abc"), { exact: true }).waitFor();
    assert.doesNotMatch(
      await shownTexts(page),
      /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2066\u2067]|[\u{e0000}-\u{e007f}]/u,
    );
    await search(page).fill("");
    await button(page, en.list.undo).click();
    assert.deepEqual((await feedsOf(server))[0], feed);
    await finish();
  });

  test("is searched as one types", async () => {
    const { page, finish } = await visit({ feeds: numbered(25) });
    await search(page).pressSequentially("POD-2");
    await until(
      async () => (await hosts(page)).toSorted(),
      ["pod-2.example", ...numbered(6, 20).map((feed) => new URL(feed).host)].toSorted(),
    );
    // Seen at once, and heard when there was time to type on.
    await page.getByText(en.list.found(7, "7"), { exact: true }).first().waitFor();
    await said(page, en.list.found(7, "7")).waitFor();
    await page.getByText(en.count(25, "25"), { exact: true }).waitFor();
    await search(page).pressSequentially("x <b>");
    await page.getByText(en.list.none("POD-2x <b>")).waitFor();
    assert.equal(await rows(page).count(), 0);
    await button(page, en.list.showAll).click();
    await until(async () => (await hosts(page)).at(0), "pod-25.example");
    assert.equal(await search(page).inputValue(), "");
    await finish();
  });

  for (const size of ["desktop", "phone"] as const) {
    test(`of ten thousand has every one in its place, on a ${size}`, async (context) => {
      const count = 10_000;
      const { page, finish } = await visit({ size, feeds: numbered(count) });
      await page.getByText(en.count(count, "10,000"), { exact: true }).waitFor();
      /** Place, host and offset of each row in the document, and how high a row is. */
      const see = () =>
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
            height: list.getBoundingClientRect().height / ${count},
          };
        })()`);
      const scroll = (part: number) =>
        page.evaluate(`scrollTo(0, ${part} * (document.documentElement.scrollHeight - innerHeight))`);
      // What has just been loaded has its place already, so it is waited for.
      const check = async (part: number, isRight: (places: readonly number[]) => boolean) => {
        await scroll(part);
        await until(async () => {
          const { places, height } = await see();
          const isSame = places.every(
            ([place, host, top]) =>
              host === `pod-${count + 1 - place}.example` && Math.abs(top - (place - 1) * height) < 2,
          );
          return isSame && places.length < 60 && isRight(places.map(([place]) => place));
        }, true);
      };
      await check(1, (places) => places.at(-1) === count);
      for (const part of [0.9, 0.61, 0.5, 0.33, 0.1]) {
        await check(part, (places) => places.some((place) => Math.abs(place - part * count) < 20));
      }
      await check(0, (places) => places[0] === 1);
      await search(page).pressSequentially("9999");
      await until(() => hosts(page), ["pod-9999.example"]);
      const longest = Math.max(0, ...(await longTasks(page)).map(({ duration }) => duration));
      context.diagnostic(`10,000 on a ${size}: the longest task took ${longest} ms`);
      await finish();
    });
  }

  test("hides names and passwords until they are asked for", async () => {
    const { page, finish } = await visit({ size: "phone", feeds: ["https://ann:s3cret@private.example/feed.xml"] });
    const row = rows(page).first();
    const texts = () =>
      page.evaluate<string>(`[document.body.textContent, ...[...document.querySelectorAll("[title], [aria-label]")]
        .flatMap((element) => [element.title, element.ariaLabel])].join()`);
    await row.getByText("https://•••@private.example/feed.xml", { exact: true }).waitFor();
    assert.doesNotMatch(await texts(), /s3cret|ann/);
    await button(page, en.list.showSecret).click();
    await row.getByText("https://ann:s3cret@private.example/feed.xml", { exact: true }).waitFor();
    await button(page, en.list.hideSecret).click();
    await row.getByText("https://•••@private.example/feed.xml", { exact: true }).waitFor();
    assert.doesNotMatch(await texts(), /s3cret/);
    await finish();
  });

  test("is not fooled by addresses that pretend to be others", async () => {
    const hostile = [
      "https://example.com@evil.example/",
      "https://\u0430pple.com/feed",
      "https://scripts.example/<script>document.title='hacked'</script>?\"onload=\"x",
      "https://bidi.example/\u202egpj.exe",
    ];
    const { page, server, finish } = await visit({ theme: "dark", feeds: hostile });
    assert.deepEqual(await feedsOf(server), hostile);
    await until(() => hosts(page), ["bidi.example", "scripts.example", "xn--pple-43d.com", "evil.example"]);
    await rows(page).getByText("https://•••@evil.example/", { exact: true }).waitFor();
    await rows(page).getByText("https://xn--pple-43d.com/feed", { exact: true }).waitFor();
    await rows(page)
      .getByText(hostile[2] ?? "", { exact: true })
      .waitFor();
    assert.equal(await page.locator("body script").count(), 0);
    assert.equal(await page.title(), `${en.views.list} – Earmark`);
    await finish();
  });

  test("leads to a feed, and nowhere else", async () => {
    const feed = "https://ann:pw@feeds.example:8443/a%20b/?q=1&r=<x>#top";
    const { page, finish } = await visit({ feeds: [feed] });
    const open = link(page, en.list.open("feeds.example:8443/a%20b"));
    await open.waitFor();
    const attributes = await Promise.all(["href", "target", "rel"].map((name) => open.getAttribute(name)));
    assert.deepEqual(attributes, [feed, "_blank", "noreferrer"]);
    await finish();
  });

  test("copies an address, also where the browser keeps its clipboard to itself", async () => {
    const feed = "https://ann:s3cret@copied.example/feed?q=%20";
    for (const isPlain of [false, true]) {
      const { page, context, finish } = await visit({
        feeds: [feed, "https://other.example/"],
        prepare: (page) =>
          page.addInitScript(isPlain ? `Object.defineProperty(navigator, "clipboard", { value: undefined })` : ""),
      });
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      for (const [name, expected] of [
        ["other.example", "https://other.example/"],
        ["copied.example/feed", feed],
      ] as const) {
        await button(page, en.list.copyAddress(name)).click();
        await said(page, en.copied).waitFor({ state: "attached" });
        assert.equal(await page.evaluate("document.activeElement.ariaLabel"), en.list.copyAddress(name));
        await search(page).focus();
        await search(page).press("Control+V");
        await until(() => search(page).inputValue(), expected);
        await search(page).fill("");
      }
      await finish();
    }
  });

  test("that is empty says what to do, and leads there", async () => {
    const { page, finish } = await visit({ size: "phone" });
    await page.getByRole("heading", { name: en.list.emptyTitle }).waitFor();
    await page.getByText(en.list.empty).waitFor();
    await page.getByText(en.count(0, "0"), { exact: true }).waitFor();
    await link(page, en.list.importFile).click();
    await page.getByRole("heading", { level: 1, name: en.import.title }).waitFor();
    await page.goBack();
    await link(page, en.list.addAddresses).click();
    await page.getByRole("heading", { level: 1, name: en.add.title }).waitFor();
    await finish();
  });

  test("shows what another device has done when one comes back to it", async () => {
    const { page, server, finish } = await visit({ size: "phone", theme: "dark", feeds: THREE });
    await until(() => hosts(page), NEWEST_FIRST);
    await subscribe(server, ["https://four.example/feed"]);
    await comeBack(page);
    await until(() => hosts(page), ["four.example", ...NEWEST_FIRST]);
    const { json } = await server.call("GET", "/v1/subscriptions");
    await server.call("DELETE", `/v1/subscriptions/${json.data[1].id}`);
    await comeBack(page);
    await until(() => hosts(page), ["four.example", "three.example", "one.example"]);
    await page.getByText(en.count(3, "3"), { exact: true }).waitFor();
    await finish();
  });

  test("has what was just added, also when it was being read from before", async () => {
    const { page, server, finish } = await visit({ feeds: THREE });
    await until(() => hosts(page), NEWEST_FIRST);
    await subscribe(server, ["https://four.example/feed"]);
    const { promise: isAdded, resolve: goOn } = Promise.withResolvers<void>();
    const answered: number[] = [];
    await page.route("**/v1/subscriptions?*", async (route) => {
      const response = await route.fetch();
      answered.push(response.status());
      // The first only looks whether something has changed.
      if (answered.length === 2) await isAdded;
      await route.fulfill({ response });
    });
    await comeBack(page);
    await until(() => answered, [200, 200]);
    await link(page, en.views.add).click();
    await page.getByLabel(en.add.label).fill("https://five.example/feed");
    await button(page, en.add.submit(1, "1")).click();
    await said(page, en.add.done("1", "0", "0")).waitFor();
    goOn();
    await link(page, en.views.list).click();
    await until(() => hosts(page), ["five.example", "four.example", ...NEWEST_FIRST]);
    await finish();
  });

  test("is taken away as an OPML file with every address", async () => {
    const feeds = [...numbered(250), "https://ann:pw@secret.example/?a=1&b=<2>"];
    const { page, finish } = await visit({ feeds });
    const [download] = await Promise.all([page.waitForEvent("download"), link(page, en.list.export).click()]);
    assert.equal(download.suggestedFilename(), "earmark.opml");
    const chunks: Buffer[] = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const read = (part: string) =>
      part.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
    assert.deepEqual(
      [...text.matchAll(/xmlUrl="([^"]*)"/g)].map(([, url = ""]) => read(url)),
      feeds,
    );
    await finish();
  });
});

describe("removing a subscription", { concurrency: 3 }, () => {
  test("can be taken back, and then nothing has happened", async () => {
    let now = new Date("2031-01-05T12:00:00Z");
    const server = await startServer({}, () => now);
    await subscribe(server, THREE.slice(0, 2));
    now = new Date("2031-03-07T12:00:00Z");
    await subscribe(server, THREE.slice(2));
    const { page, finish } = await visit({ server, size: "phone" });
    await until(() => hosts(page), NEWEST_FIRST);
    const before = await rows(page).allTextContents();
    assert.match(before[1] ?? "", /Jan 5, 2031/);
    const changes = watchChanges(page);
    await removal(page, "two.example").click();
    await until(() => hosts(page), ["three.example", "one.example"]);
    await page.getByText(en.count(2, "2"), { exact: true }).waitFor();
    await said(page, en.list.removed(1, named("two.example"))).waitFor();
    assert.deepEqual(await feedsOf(server), THREE);
    await button(page, en.list.undo).click();
    await until(() => rows(page).allTextContents(), before);
    await said(page, en.list.undone).waitFor();
    await page.getByText(en.count(3, "3"), { exact: true }).waitFor();
    assert.deepEqual(changes, []);
    assert.deepEqual(await feedsOf(server), THREE);
    await finish();
  });

  test("reaches the server when its notice has gone", async () => {
    const { page, server, finish } = await visit({ feeds: THREE, prepare: installClock });
    await removal(page, "two.example").click();
    const notice = said(page, en.list.removed(1, named("two.example")));
    await notice.waitFor();
    assert.deepEqual(await feedsOf(server), THREE);
    // Whoever points at it is not done with it.
    await notice.getByText(en.list.removed(1, named("two.example"))).hover();
    await page.clock.fastForward(60_000);
    assert.deepEqual(await feedsOf(server), THREE);
    await search(page).hover();
    await passTime(page, notice, "hidden");
    await until(() => feedsOf(server), [THREE[0], THREE[2]] as string[]);
    assert.deepEqual(await hosts(page), ["three.example", "one.example"]);
    await page.getByText(en.count(2, "2"), { exact: true }).waitFor();
    await finish();
  });

  test("several times is taken back at once", async () => {
    const { page, server, finish } = await visit({ theme: "dark", feeds: THREE });
    const changes = watchChanges(page);
    for (const host of NAMES) await removal(page, host).click();
    await page.getByRole("heading", { name: en.list.emptyTitle }).waitFor();
    await said(page, en.list.removed(3, "")).waitFor();
    await button(page, en.list.undo).click();
    await until(() => hosts(page), NEWEST_FIRST);
    assert.deepEqual(changes, []);
    assert.deepEqual(await feedsOf(server), THREE);
    await finish();
  });

  test("is meant when the page is left", async () => {
    for (const leave of [
      (page: Page) => page.goto("about:blank"),
      (page: Page) => page.close({ runBeforeUnload: true }),
      (page: Page) => page.reload(),
    ]) {
      const { page, server, allow, finish } = await visit({ feeds: THREE });
      // A page that has gone hears of no answer.
      allow(/^failed: (DELETE|GET) .* net::ERR_ABORTED/);
      await removal(page, "two.example").click();
      await removal(page, "one.example").click();
      await said(page, en.list.removed(2, "")).waitFor();
      await leave(page);
      await until(() => feedsOf(server), [THREE[2]] as string[]);
      await finish();
    }
  });

  test("that the server refuses brings it back, with a word", async () => {
    const { page, server, allow, finish } = await visit({ size: "phone", feeds: THREE });
    allow(/^answer: 503 DELETE/);
    await page.route("**/v1/subscriptions/*", (route) =>
      route.fulfill({ status: 503, headers: { "Retry-After": "0" } }),
    );
    await removal(page, "two.example").click();
    await button(page, en.close).click();
    await said(page, en.list.notRemoved(named("two.example"))).waitFor();
    await until(() => hosts(page), NEWEST_FIRST);
    assert.deepEqual(await feedsOf(server), THREE);
    await finish();
  });

  test("without a server brings it back, and the page tells when the server is there again", async () => {
    const { page, server, allow, finish } = await visit({ feeds: THREE, prepare: installClock });
    allow(/^failed: /);
    await until(() => hosts(page), NEWEST_FIRST);
    await page.route("**/v1/**", (route) => route.abort());
    await removal(page, "two.example").click();
    await button(page, en.close).click();
    await passTime(page, said(page, en.list.notRemoved(named("two.example"))));
    await until(() => hosts(page), NEWEST_FIRST);
    await said(page, en.trouble.unreachable).waitFor();
    await page.unroute("**/v1/**");
    await passTime(page, said(page, en.trouble.unreachable), "hidden");
    assert.deepEqual(await feedsOf(server), THREE);
    await finish();
  });

  test("and adding it again leaves it there", async () => {
    const { page, server, finish } = await visit({ size: "phone", feeds: THREE });
    await removal(page, "two.example").click();
    await link(page, en.views.add).click();
    await page.getByLabel(en.add.label).fill("https://two.example/feed");
    await button(page, en.add.submit(1, "1")).click();
    await said(page, en.add.done("1", "0", "0")).waitFor();
    await link(page, en.views.list).click();
    await until(() => hosts(page), ["two.example", "three.example", "one.example"]);
    assert.deepEqual(await feedsOf(server), [THREE[0], THREE[2], THREE[1]]);
    await finish();
  });
});

describe("the keyboard", { concurrency: 3 }, () => {
  const focused = (page: Page) =>
    page.evaluate<string>(
      `document.activeElement.ariaLabel || document.activeElement.id || document.activeElement.tagName`,
    );
  /** Whether what has the focus is in the window, and under nothing else. */
  const isFocusSeen = (page: Page) =>
    page.evaluate<boolean>(`(() => {
      const { left, width, top, height } = document.activeElement.getBoundingClientRect();
      return [0.2, 0.5, 0.8].every((part) =>
        document.activeElement.contains(document.elementFromPoint(left + part * width, top + part * height)));
    })()`);

  test("reaches every view, the search and the help with one key", async () => {
    const { page, finish } = await visit({ feeds: THREE });
    const isAt = (title: string) => page.getByRole("heading", { level: 1, name: title }).waitFor();
    await isAt(en.list.title);
    await page.keyboard.press("a");
    await isAt(en.add.title);
    await page.keyboard.press("i");
    await isAt(en.import.title);
    await page.keyboard.press("l");
    await isAt(en.list.title);
    await page.keyboard.press("i");
    await isAt(en.import.title);
    await page.keyboard.press("/");
    await isAt(en.list.title);
    await until(() => focused(page), "search");
    await page.keyboard.type("/?lai");
    await until(() => search(page).inputValue(), "/?lai");
    await search(page).fill("");
    await button(page, en.list.remove(named("two.example"))).press("Enter");
    await until(() => hosts(page), ["three.example", "one.example"]);
    await page.keyboard.press("u");
    await until(() => hosts(page), NEWEST_FIRST);
    await button(page, en.settings.title).focus();
    await page.keyboard.press("?");
    const dialog = page.getByRole("dialog", { name: en.settings.title });
    await dialog.waitFor();
    await page.keyboard.press("a");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await until(() => focused(page), en.settings.title);
    await isAt(en.list.title);
    await page.keyboard.press("a");
    await page.getByLabel(en.add.label).focus();
    await page.keyboard.type("a/l?u");
    assert.equal(await page.getByLabel(en.add.label).inputValue(), "a/l?u");
    await finish();
  });

  test("does nothing with single keys once they are switched off, and a reload later", async () => {
    const { page, finish } = await visit({ feeds: THREE });
    await rows(page).first().waitFor();
    await page.keyboard.press("?");
    await page.getByLabel(en.settings.useKeys).uncheck();
    await page.keyboard.press("Escape");
    const pressAll = async () => {
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await removal(page, "two.example").focus();
      await page.keyboard.press("Enter");
      await until(() => hosts(page), ["three.example", "one.example"]);
      for (const key of ["a", "i", "/", "?", "u"]) await page.keyboard.press(key);
      // Whatever they did would be seen by now.
      await page.evaluate("new Promise((done) => setTimeout(done, 200))");
      assert.equal(await page.getByRole("dialog").count(), 0);
      assert.deepEqual(await hosts(page), ["three.example", "one.example"]);
      assert.notEqual(await focused(page), "search");
      await page.getByRole("heading", { level: 1, name: en.list.title }).waitFor();
      await button(page, en.list.undo).click();
    };
    await pressAll();
    await page.reload();
    await rows(page).first().waitFor();
    await pressAll();
    await button(page, en.settings.title).click();
    await page.getByLabel(en.settings.useKeys).check();
    await page.keyboard.press("Escape");
    await page.keyboard.press("a");
    await page.getByRole("heading", { level: 1, name: en.add.title }).waitFor();
    await finish();
  });

  test("goes through a long list with the arrows, on the same control and in sight", async () => {
    const count = 500;
    const { page, finish } = await visit({ theme: "dark", feeds: numbered(count) });
    await removal(page, `pod-${count}.example`).focus();
    let at = count;
    const press = async (key: string, by: number) => {
      at = Math.min(count, Math.max(1, at - by));
      await page.keyboard.press(key);
      await until(() => focused(page), en.list.remove(named(`pod-${at}.example`)));
      await until(() => isFocusSeen(page), true);
    };
    for (let times = 0; times < 12; times += 1) await press("ArrowDown", 1);
    await press("ArrowUp", -1);
    await press("PageDown", 10);
    await press("PageDown", 10);
    await press("PageUp", -10);
    await press("End", count);
    await press("ArrowDown", 1);
    await press("ArrowUp", -1);
    await press("Home", -count);
    await press("ArrowUp", -1);
    await press("ArrowDown", 1);
    // The page is scrolled away, and the focus is where it was.
    await page.mouse.move(600, 400);
    await page.mouse.wheel(0, 20_000);
    await until(async () => (await hosts(page)).includes(`pod-${count - 290}.example`), true);
    assert.equal(await focused(page), en.list.remove(named(`pod-${at}.example`)));
    await press("ArrowDown", 1);
    await page.mouse.wheel(0, 20_000);
    await until(async () => (await hosts(page)).includes(`pod-${count - 290}.example`), true);
    await press("End", count);
    await finish();
  });

  for (const size of ["desktop", "phone"] as const) {
    // The sticky search is higher than the `scroll-padding-block` of the page.
    test(`has nothing in front of what it is on, on the way back through a list on a ${size}`, async () => {
      const { page, finish } = await visit({ size, feeds: numbered(60) });
      await removal(page, "pod-60.example").focus();
      await page.keyboard.press("PageDown");
      await page.keyboard.press("PageDown");
      await until(() => focused(page), en.list.remove(named("pod-40.example")));
      for (let presses = 0; presses < 45; presses += 1) {
        await page.keyboard.press("Shift+Tab");
        assert.ok(await isFocusSeen(page), `${await focused(page)} is hidden`);
      }
      await finish();
    });
  }

  test("meets everything in the order in which it is seen", async () => {
    const { page, finish } = await visit({ feeds: THREE.slice(0, 1) });
    await rows(page).first().waitFor();
    const order: string[] = [];
    const name = `((element) => element.ariaLabel || element.textContent.trim() || element.id)(document.activeElement)`;
    for (let presses = 0; presses < 14; presses += 1) {
      await page.keyboard.press("Tab");
      order.push(await page.evaluate<string>(name));
      assert.ok(await isFocusSeen(page), `${order.at(-1)} has the focus and is not seen`);
    }
    assert.deepEqual(order, [
      en.skip,
      "Earmark",
      en.views.list,
      en.views.add,
      en.views.import,
      en.views.apps,
      en.settings.title,
      en.list.export,
      "search",
      `${en.list.newest}${en.list.oldest}`,
      en.list.copyAddress(named("one.example")),
      en.list.open(named("one.example")),
      en.list.remove(named("one.example")),
      en.api,
    ]);
    await page.reload();
    await rows(page).first().waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await until(() => focused(page), "content");
    await page.keyboard.press("Tab");
    await until(() => page.evaluate<string>(name), en.list.export);
    await finish();
  });

  test("is not left without a place when what it was on goes away", async () => {
    const { page, finish } = await visit({ feeds: THREE });
    await removal(page, "two.example").focus();
    await page.keyboard.press("Enter");
    await until(() => focused(page), en.list.remove(named("one.example")));
    await page.keyboard.press("Enter");
    await until(() => focused(page), en.list.remove(named("three.example")));
    await button(page, en.list.undo).press("Enter");
    await until(() => hosts(page), NEWEST_FIRST);
    await until(() => focused(page), "content");
    await button(page, en.settings.title).press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: en.close }).press("Enter");
    await until(() => focused(page), en.settings.title);
    await finish();
  });
});

test("whoever removes with the keyboard goes on removing, and reveals no password", async () => {
  const secret = "https://ann:s3cret@private.example/feed";
  const { page, finish } = await visit({ feeds: ["https://one.example/feed", secret, "https://two.example/feed"] });
  const label = () => page.evaluate<string>("document.activeElement.ariaLabel");
  await removal(page, "two.example").focus();
  await page.keyboard.press("Enter");
  await until(label, en.list.remove("private.example/feed"));
  assert.equal(await page.getByText("s3cret").count(), 0);
  await page.keyboard.press("Enter");
  await until(label, en.list.remove("one.example/feed"));
  assert.equal(await page.getByText("s3cret").count(), 0);
  await finish();
});

test("a proxy that asks for a sign-in of its own is named as what it is", async () => {
  const { page, allow, finish } = await visit({
    feeds: THREE,
    prepare: (page) =>
      page.route("**/v1/**", (route) => route.fulfill({ status: 302, headers: { location: "/login" } })),
  });
  allow(/./);
  await said(page, en.trouble.blocked).waitFor();
  await page.unroute("**/v1/**");
  await button(page, en.trouble.reload).click();
  await until(() => hosts(page), NEWEST_FIRST);
  await finish();
});

test("an older browser, or one that lets tabs not talk, has the whole list too", async () => {
  const { page, finish } = await visit({
    feeds: THREE,
    prepare: (page) =>
      page.addInitScript(
        "delete URL.parse; delete Array.fromAsync; BroadcastChannel = class { constructor() { throw new Error(); } };",
      ),
  });
  await until(() => hosts(page), NEWEST_FIRST);
  await finish();
});

test("a language that cannot be loaded is not pretended to be there", async () => {
  const { page, allow, finish } = await visit({
    feeds: THREE,
    prepare: (page) => page.route("**/assets/de-*.js", (route) => route.fulfill({ status: 404 })),
  });
  allow(/de-/);
  await page.keyboard.press("?");
  await page.getByLabel(en.settings.language).selectOption("de");
  await page.getByText(en.settings.notLoaded).waitFor();
  assert.equal(await page.getByLabel(en.settings.language).inputValue(), "en");
  await finish();
});

describe("without a server", { concurrency: 2 }, () => {
  test("that is stopped and started again, the page waits and goes on by itself", async () => {
    const environment: Record<string, string> = { DATABASE_URL: `file:${temporaryFolder()}/earmark.db` };
    const first = await startServer(environment);
    await subscribe(first, THREE);
    const { page, allow, finish } = await visit({ server: first, prepare: installClock, size: "phone" });
    allow(/^failed: /);
    await until(() => hosts(page), NEWEST_FIRST);
    await link(page, en.views.add).click();
    await page.getByLabel(en.add.label).fill("https://four.example/feed");
    await first.close();
    await button(page, en.add.submit(1, "1")).click();
    await said(page, en.trouble.unreachable).waitFor();
    const second = await startServer({ ...environment, PORT: String(first.port) });
    await passTime(page, said(page, en.add.done("1", "0", "0")));
    await said(page, en.trouble.unreachable).waitFor({ state: "hidden" });
    assert.deepEqual(await feedsOf(second), [...THREE, "https://four.example/feed"]);
    await link(page, en.views.list).click();
    await until(() => hosts(page), ["four.example", ...NEWEST_FIRST]);

    // So long that the page gives up, and then looks again.
    await second.close();
    await comeBack(page);
    await said(page, en.trouble.unreachable).waitFor();
    for (let seconds = 0; seconds < 60; seconds += 1) await page.clock.fastForward(1_000);
    assert.equal(await said(page, en.trouble.unreachable).isVisible(), true);
    assert.deepEqual(await hosts(page), ["four.example", ...NEWEST_FIRST]);
    const third = await startServer({ ...environment, PORT: String(first.port) });
    await subscribe(third, ["https://five.example/feed"]);
    await passTime(page, said(page, en.trouble.unreachable), "hidden");
    await until(() => hosts(page), ["five.example", "four.example", ...NEWEST_FIRST]);
    await finish();
  });

  test("from the start, the list says so and comes when it can", async () => {
    const { page, allow, finish } = await visit({
      feeds: THREE,
      theme: "dark",
      async prepare(page) {
        await page.clock.install();
        await page.route("**/v1/**", (route) => route.abort());
      },
    });
    allow(/^failed: /);
    await passTime(page, page.getByRole("alert").filter({ hasText: en.list.failed }));
    await said(page, en.trouble.unreachable).waitFor();
    await page.unroute("**/v1/**");
    await button(page, en.again).click();
    await until(() => hosts(page), NEWEST_FIRST);
    await said(page, en.trouble.unreachable).waitFor({ state: "hidden" });
    assert.equal(await page.getByRole("alert").count(), 0);
    await finish();
  });

  test("and offline, it is said, and what was done meanwhile is done when it is over", async () => {
    const { page, context, server, allow, finish } = await visit({ feeds: THREE, prepare: installClock });
    allow(/^failed: .*ERR_INTERNET_DISCONNECTED/);
    await until(() => hosts(page), NEWEST_FIRST);
    await context.setOffline(true);
    await said(page, en.trouble.offline).waitFor();
    await removal(page, "two.example").click();
    await button(page, en.close).click();
    await until(() => hosts(page), ["three.example", "one.example"]);
    await page.clock.fastForward(1_000);
    assert.deepEqual(await feedsOf(server), THREE);
    await context.setOffline(false);
    await said(page, en.trouble.offline).waitFor({ state: "hidden" });
    await page.clock.fastForward(10_000);
    await until(() => feedsOf(server), [THREE[0], THREE[2]] as string[]);
    await passTime(page, said(page, en.trouble.unreachable), "hidden");
    assert.deepEqual(await hosts(page), ["three.example", "one.example"]);
    await finish();
  });
});
