import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Download, Page } from "playwright-core";
import { en } from "../web/src/words/en.ts";
import { longTasks } from "./browser.ts";
import { startServer } from "./harness.ts";
import {
  button,
  choose,
  feedsOf,
  hold,
  hosts,
  installClock,
  link,
  numbered,
  opml,
  passTime,
  results,
  said,
  until,
  type VisitOptions,
  visit,
} from "./page.ts";

const { outcome } = en;
const OPERATIONS = "**/v1/operations";

const visitImport = (options: VisitOptions = {}) => visit({ at: "import", ...options });
const start = (page: Page, count: number) => button(page, en.import.start(count, count.toLocaleString("en"))).click();
const isDone = (page: Page) => said(page, en.import.done).first().waitFor();
const filter = (page: Page, kind: keyof typeof outcome, count: string) =>
  page.getByLabel(`${outcome[kind]} ${count}`, { exact: true }).check({ force: true });

/** What the large numbers say, as `New 3`. */
async function counts(page: Page): Promise<string[]> {
  const numbers = await page.getByRole("definition").allTextContents();
  return (await page.getByRole("term").allTextContents()).map((term, index) => `${term} ${numbers[index]}`);
}

async function drop(page: Page, on: string, name: string, text: string): Promise<void> {
  const data = await page.evaluateHandle(`(() => {
    const data = new DataTransfer();
    data.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}));
    return data;
  })()`);
  const place = page.locator(on).first();
  for (const type of ["dragenter", "dragover", "drop"]) await place.dispatchEvent(type, { dataTransfer: data });
}

async function read(download: Download): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe("an import", { concurrency: 3 }, () => {
  test("is looked at first, and changes nothing before it is wanted", async () => {
    const there = numbered(2);
    const { page, server, finish } = await visitImport({ size: "phone", feeds: there });
    await choose(page, opml([...numbered(5), "https://no where.example/", "nowhere"]));
    await page.getByRole("heading", { name: en.import.look("list.opml") }).waitFor();
    await until(() => counts(page), [`${outcome.new} 3`, `${outcome["already-subscribed"]} 2`, `${outcome.refused} 2`]);
    assert.deepEqual(await feedsOf(server), there);
    await button(page, en.import.other).click();
    assert.deepEqual(await feedsOf(server), there);
    await choose(page, opml(there));
    await said(page, en.import.nothing).waitFor();
    await until(() => counts(page), [`${outcome["already-subscribed"]} 2`]);
    assert.equal(await page.getByRole("main").getByRole("button").first().textContent(), en.import.other);
    await finish();
  });

  test("takes a file wherever it is dropped", async () => {
    const { page, server, finish } = await visitImport();
    const places = [
      ["import", "label:has(input[type=file])"],
      ["import", "footer"],
      ["list", "h1"],
      ["add", "textarea"],
    ] as const;
    for (const [index, [view, place]] of places.entries()) {
      await link(page, en.views[view]).click();
      await page.getByRole("heading", { level: 1, name: en[view].title }).waitFor();
      await drop(page, place, "dropped.opml", opml(numbered(3 * (index + 1))));
      await page.getByRole("heading", { name: en.import.look("dropped.opml") }).waitFor();
      await start(page, 3);
      await isDone(page);
      await until(() => page.evaluate("document.activeElement.id"), "content");
      await button(page, en.import.other).click();
    }
    assert.deepEqual(await feedsOf(server), numbered(12));
    await link(page, en.views.list).click();
    await until(async () => (await hosts(page)).slice(0, 2), ["pod-12.example", "pod-11.example"]);
    await finish();
  });

  test("shows how far it is, is stopped, and goes on to the end", async () => {
    const { page, server, finish } = await visitImport({ theme: "dark" });
    const feeds = numbered(900);
    await choose(page, opml(feeds));
    const operations = await hold(page, OPERATIONS);
    await start(page, 900);
    const bar = page.getByRole("progressbar", { name: en.import.progress });
    const value = () => bar.evaluate((element) => (element as { value?: number }).value ?? -1);
    await until(value, 0);
    await operations.next();
    await until(value, 250);
    await page.getByText(en.import.running("250", "900"), { exact: true }).waitFor();
    await until(() => counts(page), [`${outcome.added} 250`, `${outcome.waiting} 650`]);
    const held = await operations.take();
    await button(page, en.import.stop).click();
    // The one on its way is answered, so that nobody wonders about it.
    await held.continue();
    await said(page, en.import.stopped).waitFor();
    await until(() => counts(page), [`${outcome.added} 500`, `${outcome.waiting} 400`]);
    assert.deepEqual(await feedsOf(server), feeds.slice(0, 500));
    await operations.open();
    await button(page, en.import.goOn("400")).click();
    await isDone(page);
    await until(() => counts(page), [`${outcome.added} 900`]);
    assert.deepEqual(await feedsOf(server), feeds);
    await finish();
  });

  test("goes on while one looks at the list, which grows", async () => {
    const { page, server, finish } = await visitImport({ size: "phone" });
    const feeds = numbered(600);
    await choose(page, opml(feeds));
    const operations = await hold(page, OPERATIONS);
    await start(page, 600);
    await operations.next();
    await link(page, en.views.list).click();
    await page.getByText(en.count(250, "250"), { exact: true }).waitFor();
    await operations.next();
    await page.getByText(en.count(500, "500"), { exact: true }).waitFor();
    await operations.next();
    await page.getByText(en.count(600, "600"), { exact: true }).waitFor();
    await until(async () => (await hosts(page))[0], "pod-600.example");
    await link(page, en.views.import).click();
    await isDone(page);
    assert.deepEqual(await feedsOf(server), feeds);
    await finish();
  });

  test("asks before the page is left in its middle, and not afterwards", async () => {
    const { page, finish } = await visitImport();
    await choose(page, opml(numbered(3)));
    const operations = await hold(page, OPERATIONS);
    await start(page, 3);
    await button(page, en.import.stop).waitFor();
    const asked: string[] = [];
    page.on("dialog", async (dialog) => {
      asked.push(dialog.type());
      await dialog.dismiss();
    });
    await page.evaluate("setTimeout(() => location.reload())");
    await until(() => asked, ["beforeunload"]);
    await operations.open();
    await isDone(page);
    await page.reload();
    await page.getByText(en.import.lead).waitFor();
    assert.deepEqual(asked, ["beforeunload"]);
    await finish();
  });

  test("that loses the server says so kindly, and goes on when it is wanted", async () => {
    const { page, server, allow, finish } = await visitImport({ size: "phone", theme: "dark", prepare: installClock });
    allow(/^failed: POST/);
    const feeds = numbered(700);
    await choose(page, opml(feeds));
    let left = 1;
    await page.route(OPERATIONS, (route) => (left-- > 0 ? route.continue() : route.abort()));
    await start(page, 700);
    await said(page, en.trouble.unreachable).waitFor();
    await passTime(page, said(page, en.import.broken));
    await said(page, en.trouble.failed).waitFor();
    await until(() => counts(page), [`${outcome.added} 250`, `${outcome.waiting} 450`]);
    assert.equal((await feedsOf(server)).length, 250);
    await page.unroute(OPERATIONS);
    await button(page, en.import.goOn("450")).click();
    await isDone(page);
    await until(() => counts(page), [`${outcome.added} 700`]);
    assert.deepEqual(await feedsOf(server), feeds);
    await finish();
  });

  test("is stopped at once when there is no server to wait for", async () => {
    const { page, server, allow, finish } = await visitImport();
    allow(/^failed: POST/);
    await choose(page, opml(numbered(3)));
    await page.route(OPERATIONS, (route) => route.abort());
    await start(page, 3);
    await said(page, en.trouble.unreachable).waitFor();
    await button(page, en.import.stop).click();
    await said(page, en.import.stopped).waitFor();
    await page.unroute(OPERATIONS);
    await button(page, en.import.goOn("3")).click();
    await isDone(page);
    assert.deepEqual(await feedsOf(server), numbered(3));
    await finish();
  });

  test("tells what became of each feed, by kind and as a table to take away", async () => {
    const { page, finish } = await visitImport({ feeds: ["https://there.example/"] });
    const feeds = ["https://new.example/?a=1,2;=3", "https://there.example/", "=1+1", "https://say.example/"];
    await choose(page, opml(feeds, ["=HYPERLINK(1)", 'A "quoted", one', "+1", "Zwölf"]));
    await start(page, 2);
    await isDone(page);
    await until(async () => (await results(page)).length, 4);
    await filter(page, "refused", "1");
    await until(() => results(page), [`=1+1${outcome.refused} – ${en.faults.absolute} · +1`]);
    await filter(page, "already-subscribed", "1");
    await until(() => results(page), [`https://there.example/${outcome["already-subscribed"]} · A "quoted", one`]);
    await filter(page, "added", "2");
    await until(async () => (await results(page)).length, 2);
    const [download] = await Promise.all([page.waitForEvent("download"), button(page, en.download).click()]);
    assert.match(download.suggestedFilename(), /\.csv$/);
    assert.equal(
      await read(download),
      [
        `\ufeff"${outcome.added}","https://new.example/?a=1,2;'=3","'=HYPERLINK(1)",""`,
        `"${outcome["already-subscribed"]}","https://there.example/","A ""quoted"", one",""`,
        `"${outcome.refused}","'=1+1","'+1","${en.faults.absolute}"`,
        `"${outcome.added}","https://say.example/","Zwölf",""`,
        "",
      ].join("\r\n"),
    );
    await finish();
  });

  for (const size of ["desktop", "phone"] as const) {
    test(`of five thousand feeds does not freeze a ${size}`, async (context) => {
      const { page, server, finish } = await visitImport({ size });
      const feeds = numbered(5_000);
      await choose(page, opml([...feeds, "wrong"]));
      await start(page, 5_000);
      await isDone(page);
      await until(() => counts(page), [`${outcome.added} 5,000`, `${outcome.refused} 1`]);
      assert.ok((await results(page)).length < 60);
      await filter(page, "refused", "1");
      await until(async () => (await results(page)).length, 1);
      await link(page, en.views.list).click();
      await until(async () => (await hosts(page))[0], "pod-5000.example");
      const longest = Math.max(0, ...(await longTasks(page)).map(({ duration }) => duration));
      context.diagnostic(`an import of 5,000 on a ${size}: the longest task took ${longest} ms`);
      assert.deepEqual(await feedsOf(server), feeds);
      await finish();
    });
  }

  test("of something else says what is wrong, and takes another file", async () => {
    const { page, server, allow, finish } = await visitImport({ size: "phone" });
    allow(/^answer: 422 POST/);
    const hostile = `<?xml version="1.0"?><!DOCTYPE opml [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
      <!ENTITY x SYSTEM "file:///etc/passwd">]><opml version="2.0"><body><outline text="&b;&x;" xmlUrl="https://&b;/"/></body></opml>`;
    for (const text of ["", "just a text", "<html><body>404</body></html>", "<opml><body><outline", "\u0000\u0001PK"]) {
      await choose(page, text);
      await page.getByRole("alert").filter({ hasText: en.import.notOpml }).waitFor();
    }
    await choose(page, hostile);
    await page
      .getByRole("alert")
      .or(page.getByRole("heading", { level: 2 }))
      .first()
      .waitFor();
    assert.doesNotMatch((await page.getByRole("main").textContent()) ?? "", /root:|aaaaaaaaaaaaaaaaaaaaa/);
    await page.reload();
    const titles = [`<img src=x onerror="document.title='hacked'">`, "\u202eevil"];
    await choose(page, opml(["https://markup.example/", "javascript:alert(1)"], titles));
    await page.getByText(titles[0] ?? "").waitFor();
    await page.getByText("�evil", { exact: true }).waitFor();
    assert.equal(await page.locator("main img").count(), 0);
    assert.equal(await page.getByRole("list", { name: en.results }).getByRole("link").count(), 0);
    await start(page, 1);
    await isDone(page);
    assert.equal(await page.title(), `${en.views.import} – Earmark`);
    assert.deepEqual(await feedsOf(server), ["https://markup.example/"]);
    await finish();
  });

  test("of a file that is too large says so", async () => {
    const server = await startServer({ EARMARK_MAX_IMPORT_BYTES: "65536" });
    const { page, allow, finish } = await visitImport({ server, theme: "dark" });
    allow(/^answer: 413 POST/);
    for (const count of [2_000, 200_000]) {
      await choose(page, opml(numbered(count)));
      await page.getByRole("alert").filter({ hasText: en.import.tooLarge }).waitFor();
    }
    await choose(page, opml(numbered(3)));
    await start(page, 3);
    await isDone(page);
    await finish();
  });

  test("without a server says so, and the file can be taken again", async () => {
    const { page, allow, finish } = await visitImport({ prepare: installClock });
    allow(/^failed: POST/);
    await page.route("**/v1/imports*", (route) => route.abort());
    await choose(page, opml(numbered(3)));
    await said(page, en.import.reading("list.opml")).waitFor();
    await passTime(page, page.getByRole("alert").filter({ hasText: en.trouble.failed }));
    await page.unroute("**/v1/imports*");
    await choose(page, opml(numbered(3)));
    await start(page, 3);
    await isDone(page);
    await said(page, en.trouble.unreachable).waitFor({ state: "hidden" });
    await finish();
  });
});
