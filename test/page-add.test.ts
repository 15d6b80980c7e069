import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { en } from "../web/src/words/en.ts";
import { longTasks } from "./browser.ts";
import {
  button,
  feedsOf,
  hosts,
  installClock,
  link,
  numbered,
  passTime,
  results,
  said,
  until,
  type VisitOptions,
  visit,
} from "./page.ts";

const { outcome, faults } = en;

const field = (page: Page) => page.getByLabel(en.add.label);
const line = (page: Page, number: number) => page.getByLabel(en.add.line(String(number)), { exact: true });
const visitAdd = (options: VisitOptions = {}) => visit({ at: "add", ...options });

async function send(page: Page, text: string, count: number): Promise<void> {
  await field(page).fill(text);
  await button(page, en.add.submit(count, String(count))).click();
}

describe("adding", { concurrency: 3 }, () => {
  test("one address takes one line, and it stands first in the list", async () => {
    const { page, server, finish } = await visitAdd({ size: "phone", theme: "dark", feeds: ["https://old.example/"] });
    assert.equal(await button(page, en.add.submit(0, "0")).isDisabled(), true);
    await send(page, "https://new.example/feed", 1);
    await said(page, en.add.done("1", "0", "0")).waitFor();
    await until(() => results(page), [`https://new.example/feed${outcome.added}`]);
    await link(page, en.import.seeList).click();
    await until(() => hosts(page), ["new.example", "old.example"]);
    assert.deepEqual(await feedsOf(server), ["https://old.example/", "https://new.example/feed"]);
    await finish();
  });

  test("with Ctrl and Enter needs no mouse", async () => {
    const { page, server, finish } = await visitAdd();
    await field(page).fill("https://new.example/feed");
    await field(page).press("Control+Enter");
    await said(page, en.add.done("1", "0", "0")).waitFor();
    await until(() => page.evaluate("document.activeElement.id"), "content");
    assert.deepEqual(await feedsOf(server), ["https://new.example/feed"]);
    await finish();
  });

  test("many lines takes them as they come, and answers each where it stands", async () => {
    const { page, server, finish } = await visitAdd({ feeds: ["https://there.example/feed"] });
    const text = [
      "",
      "  https://spaced.example/feed\t",
      "feed://schemed.example/rss",
      "",
      "plain.example/podcast.xml",
      "<https://bracketed.example/>",
      "   ",
      "http://there.example/feed/",
      "https://two words.example/",
      "not an address",
      "ftp://files.example/feed",
      "https://spaced.example/feed",
      "<b>bold</b>",
    ].join("\r\n");
    await send(page, text, 10);
    await said(page, en.add.done("4", "2", "4")).waitFor();
    const added = [
      "https://spaced.example/feed",
      "https://schemed.example/rss",
      "https://plain.example/podcast.xml",
      "https://bracketed.example/",
    ];
    await until(
      () => results(page),
      [
        ...added.map((feed) => `${feed}${outcome.added}`),
        `http://there.example/feed/${outcome["already-subscribed"]}`,
        `${outcome.refused} – ${faults.space}`,
        `${outcome.refused} – ${faults.space}`,
        `${outcome.refused} – ${faults.absolute}`,
        `https://spaced.example/feed${outcome["already-subscribed"]}`,
        `${outcome.refused} – ${faults.absolute}`,
      ],
    );
    assert.equal(await line(page, 7).inputValue(), "not an address");
    assert.equal(await line(page, 10).inputValue(), "<b>bold</b>");
    assert.deepEqual(await feedsOf(server), ["https://there.example/feed", ...added]);
    await finish();
  });

  test("what is wrong is corrected where it stands, and sent again with Enter", async () => {
    const { page, server, finish } = await visitAdd({ size: "phone" });
    await send(page, "https://one.example/\nhttps://two example/\nthree\nfour", 4);
    await page.getByText(en.add.mend).waitFor();
    await line(page, 2).fill("https://two.example/");
    await line(page, 3).fill(" three.example ");
    await line(page, 4).fill("");
    await line(page, 2).press("Enter");
    await said(page, en.add.done("3", "0", "0")).waitFor();
    await until(
      () => results(page),
      ["https://one.example/", "https://two.example/", "https://three.example"].map((feed) => feed + outcome.added),
    );
    assert.deepEqual(await feedsOf(server), ["https://one.example/", "https://two.example/", "https://three.example"]);
    await button(page, en.add.more).click();
    assert.equal(await field(page).inputValue(), "");
    await finish();
  });

  test("what is wrong can be looked at alone, and taken back to where it was typed", async () => {
    const { page, finish } = await visitAdd({ theme: "dark" });
    await send(page, "https://one.example/\nwrong\nhttps://two.example/\nwrong too", 4);
    await page.getByLabel(`${outcome.refused} 2`).check({ force: true });
    await until(async () => (await results(page)).length, 2);
    await line(page, 2).fill("still wrong");
    await button(page, en.add.retry(2, "2")).click();
    await said(page, en.add.done("2", "0", "2")).waitFor();
    await until(async () => (await results(page)).length, 4);
    assert.equal(await line(page, 2).inputValue(), "still wrong");
    await button(page, en.add.more).click();
    assert.equal(await field(page).inputValue(), "still wrong\nwrong too\n");
    await finish();
  });

  test("keeps what was typed while one looks at something else", async () => {
    const { page, finish } = await visitAdd();
    await field(page).fill("https://half.example/fe");
    await link(page, en.views.list).click();
    await page.getByRole("heading", { level: 1, name: en.list.title }).waitFor();
    await link(page, en.views.add).click();
    assert.equal(await field(page).inputValue(), "https://half.example/fe");
    await send(page, "wrong\nalso", 2);
    await line(page, 1).fill("half-mended.exa");
    await page.goBack();
    await page.goForward();
    assert.equal(await line(page, 1).inputValue(), "half-mended.exa");
    await finish();
  });

  test("loses nothing when the server cannot be reached", async () => {
    const { page, server, allow, finish } = await visitAdd({ size: "phone", prepare: installClock });
    allow(/^failed: POST/);
    await page.route("**/v1/operations", (route) => route.abort());
    await send(page, "https://one.example/\nhttps://two.example/", 2);
    await said(page, en.trouble.unreachable).waitFor();
    await passTime(page, said(page, en.add.failed));
    await until(
      () => results(page),
      ["https://one.example/", "https://two.example/"].map((feed) => feed + outcome.waiting),
    );
    await link(page, en.views.list).click();
    await link(page, en.views.add).click();
    await said(page, en.add.failed).waitFor();
    await page.unroute("**/v1/operations");
    await button(page, en.add.retry(2, "2")).click();
    await said(page, en.add.done("2", "0", "0")).waitFor();
    await said(page, en.trouble.unreachable).waitFor({ state: "hidden" });
    assert.deepEqual(await feedsOf(server), ["https://one.example/", "https://two.example/"]);
    await finish();
  });

  test("loses nothing when the server is too busy", async () => {
    const { page, server, allow, finish } = await visitAdd();
    allow(/^answer: 503 POST/);
    await page.route("**/v1/operations", (route) => route.fulfill({ status: 503, headers: { "Retry-After": "0" } }));
    await send(page, "https://one.example/\nwrong", 2);
    await said(page, en.add.failed).waitFor();
    await button(page, en.add.more).click();
    assert.equal(await field(page).inputValue(), "https://one.example/\nwrong\n");
    await page.unroute("**/v1/operations");
    await button(page, en.add.submit(2, "2")).click();
    await said(page, en.add.done("1", "0", "1")).waitFor();
    assert.deepEqual(await feedsOf(server), ["https://one.example/"]);
    await finish();
  });

  for (const size of ["desktop", "phone"] as const) {
    test(`two thousand lines does not freeze a ${size}`, async (context) => {
      const { page, context: browser, server, finish } = await visitAdd({ size });
      await browser.grantPermissions(["clipboard-read", "clipboard-write"]);
      const text = [...numbered(2_000), "wrong"].join("\n");
      await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
      await field(page).press("Control+V");
      await button(page, en.add.submit(2_001, "2,001")).click();
      await said(page, en.add.done("2,000", "0", "1")).waitFor();
      assert.ok((await results(page)).length < 60);
      await page.getByLabel(`${outcome.refused} 1`).check({ force: true });
      await page.getByLabel(en.add.line("2,001")).pressSequentially(" still");
      const longest = Math.max(0, ...(await longTasks(page)).map(({ duration }) => duration));
      context.diagnostic(`2,000 lines on a ${size}: the longest task took ${longest} ms`);
      assert.equal((await feedsOf(server)).length, 2_000);
      await finish();
    });
  }
});
