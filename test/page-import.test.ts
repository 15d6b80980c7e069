import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Download, Page } from "playwright-core";
import { guid } from "../client/src/index.ts";
import { assertAccessible } from "./support/browser.ts";
import { openView } from "./support/navigation.ts";
import {
  advanceUntil,
  button,
  chooseFile,
  feedsOf,
  hold,
  hosts,
  installClock,
  link,
  numberedFeeds,
  opml,
  results,
  status,
  subscribe,
  until,
  visit,
} from "./support/page.ts";
import { add, startServerWith } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { outcome } = en;
/** Intercepted before any other request is sent: turning interception on aborts requests in flight. */
const OPERATIONS = "**/v1/operations";

const start = (page: Page, count: number) => button(page, format(en.import.start, { n: count })).click();
const isDone = (page: Page) => page.getByRole("main").getByRole("status").filter({ hasText: en.import.done }).waitFor();
const filter = (page: Page, kind: keyof typeof outcome, count: string) =>
  page.getByLabel(`${outcome[kind]} ${count}`, { exact: true }).check({ force: true });

/** The counts by outcome, such as `New 3`. */
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

describe("import", { concurrency: 3 }, () => {
  test("import: files of all kinds, one after the other → an outcome for each feed", async (t) => {
    const server = await startServerWith({ limits: { maxImportBytes: 65_536 } });
    const { page, allow, finish } = await visit({ server, at: "import", theme: "dark" });
    allow(/^response: (413|422) POST/);
    const list: string[] = [];
    await t.test("import: no file yet → says where each app has its export", async () => {
      await page.getByText(en.exportGuides.title).click();
      const rows = page.getByRole("table").getByRole("row");
      await rows.filter({ hasText: "gPodder" }).getByText("Subscriptions › Export to OPML file").waitFor();
      await rows.filter({ hasText: "Apple Podcasts" }).getByText(en.exportGuides.none).waitFor();
    });

    await t.test("import: file too large → an error, and a smaller one can be chosen", async () => {
      for (const count of [2_000, 20_000]) {
        await chooseFile(page, opml(numberedFeeds(count)));
        await page.getByRole("alert").filter({ hasText: en.errors["body-too-large"] }).waitFor();
      }
      await chooseFile(page, opml(numberedFeeds(3)));
      await start(page, 3);
      await isDone(page);
      list.push(...numberedFeeds(3));
      await button(page, en.import.chooseAnother).click();
    });

    await t.test("import: not an OPML file, or a hostile one → an error, and another file can be chosen", async () => {
      const hostile = `<?xml version="1.0"?><!DOCTYPE opml [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
        <!ENTITY x SYSTEM "file:///etc/passwd">]><opml version="2.0"><body><outline text="&b;&x;" xmlUrl="https://&b;/"/></body></opml>`;
      await chooseFile(page, "<opml>\n<body>\n<outline");
      await page
        .getByRole("alert")
        .filter({ hasText: format(en.import.brokenAt, { n: 3 }) })
        .waitFor();
      for (const text of ["", "just a text", "<html><body>404</body></html>", "\u0000\u0001PK"]) {
        await chooseFile(page, text);
        await page.getByRole("alert").filter({ hasText: en.errors["invalid-opml"] }).waitFor();
      }
      await chooseFile(page, hostile);
      await page.getByRole("heading", { name: format(en.import.preview, { name: "list.opml" }) }).waitFor();
      assert.doesNotMatch((await page.getByRole("main").textContent()) ?? "", /root:|aaaaaaaaaaaaaaaaaaaaa/);
      await button(page, en.import.chooseAnother).click();
      const titles = [`<img src=x onerror="document.title='hacked'">`, "\u202eevil"];
      await chooseFile(page, opml(["https://markup.example/", "javascript:alert(1)"], titles));
      await page.getByText(titles[0] ?? "").waitFor();
      await page.getByText("evil", { exact: true }).waitFor();
      assert.equal(await page.locator("main img").count(), 0);
      assert.equal(await page.getByRole("list", { name: en.results }).getByRole("link").count(), 0);
      await start(page, 1);
      await isDone(page);
      assert.equal(await page.title(), `${en.views.import} – Earmark`);
      list.push("https://markup.example/");
      assert.deepEqual(await feedsOf(server), list);
      await button(page, en.import.chooseAnother).click();
    });

    await t.test("import: a file is chosen → a preview, and nothing is added before it is confirmed", async () => {
      await chooseFile(page, opml([...numberedFeeds(5), "https://no where.example/", "nowhere"]));
      await page.getByRole("heading", { name: format(en.import.preview, { name: "list.opml" }) }).waitFor();
      await until(
        () => counts(page),
        [`${outcome.new} 2`, `${outcome["already-subscribed"]} 3`, `${outcome.refused} 2`],
      );
      assert.deepEqual(await feedsOf(server), list);
      await button(page, en.import.chooseAnother).click();
      assert.deepEqual(await feedsOf(server), list);
      await chooseFile(page, opml(numberedFeeds(2)));
      await status(page, en.import.nothingNew).waitFor();
      await until(() => counts(page), [`${outcome["already-subscribed"]} 2`]);
      assert.equal(await page.getByRole("main").getByRole("button").first().textContent(), en.import.chooseAnother);
      await button(page, en.import.chooseAnother).click();
    });

    await t.test("import: the usual id of a feed is taken → the import adds what the preview says", async () => {
      const [feed, other] = ["https://moved.example/feed", "https://other.example/feed"];
      await server.operate([add(guid(feed), other)]);
      await chooseFile(page, opml([feed]));
      await start(page, 1);
      await isDone(page);
      await until(() => counts(page), [`${outcome.added} 1`]);
      list.push(other, feed);
      assert.deepEqual(await feedsOf(server), list);
      await button(page, en.import.chooseAnother).click();
    });

    await t.test("import: feeds are left out → each has a reason, and the reasons are counted", async () => {
      const [one, two] = numberedFeeds(2, 11);
      await chooseFile(page, `# exported\n${one}\n${one}/\nftp://old.example/\n${two}\nnonsense`);
      await until(() => counts(page), [`${outcome.new} 2`, `${outcome.skipped} 1`, `${outcome.refused} 2`]);
      const main = page.getByRole("main");
      await main.getByText(`1 × ${en.reasons["duplicate-in-file"]}`).waitFor();
      await main.getByText(`2 × ${en.errors["feed-url-not-http"]}`).waitFor();
      await filter(page, "skipped", "1");
      const reason = `${outcome.skipped} – ${en.reasons["duplicate-in-file"]} · ${format(en.import.line, { n: 3 })}`;
      await until(() => results(page), [`${one}/${reason}`]);
      await start(page, 2);
      await isDone(page);
      list.push(...numberedFeeds(2, 11));
      assert.deepEqual(await feedsOf(server), list);
      await button(page, en.import.chooseAnother).click();
    });

    await t.test("import: some feeds are selected, by folder or one by one → only they are added", async () => {
      const outline = (url = "") => `<outline text="${new URL(url).host}" xmlUrl="${url}"/>`;
      const [one, two, three, four] = numberedFeeds(4, 21).map(outline);
      await chooseFile(page, `<opml><body><outline text="News">${one}${two}</outline>${three}${four}</body></opml>`);
      const selected = (count: string) => status(page, format(en.import.selected, { n: count, total: 4 })).waitFor();
      await selected("4");
      await button(page, en.import.selectNone).click();
      await selected("0");
      assert.ok(await button(page, format(en.import.start, { n: 0 })).isDisabled());
      await page.getByLabel(en.import.folder).selectOption({ label: "News" });
      await until(async () => (await results(page)).length, 2);
      await button(page, en.import.selectAll).click();
      await selected("2");
      await page.getByLabel(en.import.folder).selectOption(en.import.anyFolder);
      const box = (name: string) => page.getByRole("checkbox", { name: format(en.import.select, { feed: name }) });
      await box("pod-21.example").uncheck();
      await box("pod-24.example").check();
      await selected("2");
      await start(page, 2);
      await isDone(page);
      await until(() => counts(page), [`${outcome.added} 2`, `${outcome.skipped} 2`]);
      assert.equal(await page.getByRole("checkbox").count(), 0);
      list.push(...numberedFeeds(1, 22), ...numberedFeeds(1, 24));
      assert.deepEqual(await feedsOf(server), list);
      await button(page, en.import.chooseAnother).click();
    });

    await t.test("import: results → filtered by outcome and downloaded as CSV", async () => {
      list.push("https://there.example/");
      await subscribe(server, list.slice(-1));
      const feeds = ["https://new.example/?a=1,2;=3", "https://there.example/", "=1+1", "https://say.example/"];
      await chooseFile(page, opml(feeds, ["=HYPERLINK(1)", 'A "quoted", one', "+1", "Zwölf"]));
      await start(page, 2);
      await isDone(page);
      await until(async () => (await results(page)).length, 4);
      await filter(page, "refused", "1");
      await until(
        () => results(page),
        [`=1+1${outcome.refused} – ${en.errors["feed-url-not-http"]} · ${format(en.import.line, { n: 3 })} · +1`],
      );
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
          `"${outcome.refused}","'=1+1","'+1","${en.errors["feed-url-not-http"]}"`,
          `"${outcome.added}","https://say.example/","Zwölf",""`,
          "",
        ].join("\r\n"),
      );
      await button(page, en.import.chooseAnother).click();
    });

    await t.test("import: a file is dropped anywhere → a preview", async () => {
      const places = [
        ["import", "label:has(input[type=file])"],
        ["import", ".sidebar"],
        ["list", "h1"],
        ["apps", "h1"],
      ] as const;
      for (const [index, [view, place]] of places.entries()) {
        await openView(page, en.views[view]);
        await page.getByRole("heading", { level: 1, name: en[view].title }).waitFor();
        await drop(page, place, "dropped.opml", opml(numberedFeeds(3 * (index + 1), 31)));
        await page.getByRole("heading", { name: format(en.import.preview, { name: "dropped.opml" }) }).waitFor();
        await start(page, 3);
        await isDone(page);
        await until(() => page.evaluate("document.activeElement.id"), "content");
        await button(page, en.import.chooseAnother).click();
      }
      assert.deepEqual((await feedsOf(server)).slice(-12), numberedFeeds(12, 31));
      await link(page, en.views.list).click();
      await until(async () => (await hosts(page)).slice(0, 2), ["pod-42.example", "pod-41.example"]);
    });
    await finish();
  });

  test("import: folders and names of podcasts in the list → ignored unless they are taken over", async () => {
    const { page, server, finish } = await visit({
      at: "import",
      feeds: ["https://a.example/feed", "https://b.example/feed", "https://c.example/feed"],
    });
    const details = async () => {
      const { json } = await server.call("GET", "/v1/subscriptions");
      return json.data.map(
        ({ attributes: { title, folders } }: { attributes: { title?: string; folders?: string[] } }) => [
          title,
          folders,
        ],
      );
    };
    const outline = (host: string, title: string) =>
      `<outline type="rss" text="${title}" title="${title}" xmlUrl="https://${host}.example/feed/"/>`;
    const file = `<opml version="2.0"><body>
      <outline text="News">${outline("a", "My A")}${outline("b", "My B")}</outline>${outline("d", "D")}</body></opml>`;
    await page.getByRole("heading", { level: 1, name: en.import.title }).waitFor();
    await chooseFile(page, file);
    await page.getByText(en.import.ignored).waitFor();
    await assertAccessible(page);
    const folders = page.getByLabel(format(en.import.takeFolders, { n: 2 }));
    await page.getByLabel(format(en.import.takeNames, { n: 2 })).waitFor();
    await folders.check();
    await start(page, 1);
    await isDone(page);
    await status(page, format(en.import.changed, { n: 2 })).waitFor();
    const taken = [undefined, ["News"]];
    await until(async () => (await details()).slice(0, 3), [taken, taken, [undefined, undefined]]);
    // Again: only the names are left, and nothing is new.
    await button(page, en.import.chooseAnother).click();
    await chooseFile(page, file);
    await page.getByLabel(format(en.import.takeNames, { n: 2 })).check();
    assert.equal(await page.getByText(format(en.import.takeFolders, { n: 2 })).count(), 0);
    await button(page, en.import.takeOver).click();
    await isDone(page);
    await until(
      async () => (await details()).slice(0, 2),
      [
        ["My A", ["News"]],
        ["My B", ["News"]],
      ],
    );
    await button(page, en.import.chooseAnother).click();
    await chooseFile(page, file);
    await page.getByText(en.import.nothingNew).waitFor();
    assert.equal(await page.getByText(en.import.ignored).count(), 0);
    await finish();
  });

  test("import: many feeds on a phone → progress, results and the list are up to date", async (t) => {
    const { page, server, allow, finish } = await visit({ at: "import", size: "phone" });
    const operations = await hold(page, OPERATIONS);
    await t.test(
      "import: stopped → the current batch finishes, and resume adds the rest; the list, opened meanwhile, grows",
      async () => {
        const feeds = numberedFeeds(900);
        await chooseFile(page, opml(feeds));
        await start(page, 900);
        const bar = page.getByRole("progressbar", { name: en.import.progress });
        const value = () => bar.evaluate((element) => (element as { value?: number }).value ?? -1);
        await until(value, 0);
        await operations.next();
        await until(value, 250);
        await page.getByText(format(en.import.running, { done: 250, total: 900 }), { exact: true }).waitFor();
        await until(() => counts(page), [`${outcome.added} 250`, `${outcome.waiting} 650`]);
        const held = await operations.take();
        await button(page, en.import.stop).click();
        await held.continue();
        await status(page, en.import.stopped).waitFor();
        await until(() => counts(page), [`${outcome.added} 500`, `${outcome.waiting} 400`]);
        assert.deepEqual(await feedsOf(server), feeds.slice(0, 500));
        await button(page, format(en.import.resume, { n: 400 })).click();
        await link(page, en.views.list).click();
        for (const count of [500, 750]) {
          await page.getByText(format(en.count, { n: count }), { exact: true }).waitFor();
          await operations.next();
        }
        await page.getByText(format(en.count, { n: 900 }), { exact: true }).waitFor();
        await until(async () => (await hosts(page))[0], "pod-900.example");
        await openView(page, en.views.import);
        await isDone(page);
        await until(() => counts(page), [`${outcome.added} 900`]);
        assert.deepEqual(await feedsOf(server), feeds);
        await operations.open();
        await button(page, en.import.chooseAnother).click();
      },
    );

    await t.test("import: 2,000 feeds on a phone → all added, few rows rendered", async () => {
      const feeds = numberedFeeds(2_000, 901);
      await chooseFile(page, opml([...feeds, "invalid"]));
      await start(page, 2_000);
      await isDone(page);
      await until(() => counts(page), [`${outcome.added} 2,000`, `${outcome.refused} 1`]);
      assert.ok((await results(page)).length < 60);
      await filter(page, "refused", "1");
      await until(async () => (await results(page)).length, 1);
      await link(page, en.views.list).click();
      await until(async () => (await hosts(page))[0], "pod-2900.example");
      assert.deepEqual(await feedsOf(server), numberedFeeds(2_900));
    });

    await t.test("import: the page is reloaded → the import continues, and the page shows it again", async () => {
      allow(/^failed: POST \S+\/v1\/operations net::ERR_ABORTED/);
      const operations = await hold(page, OPERATIONS);
      await openView(page, en.views.import);
      await button(page, en.import.chooseAnother).click();
      await chooseFile(page, opml(numberedFeeds(600, 6_001)));
      await start(page, 600);
      await operations.next();
      await page.getByText(format(en.import.running, { done: 250, total: 600 })).waitFor();
      await page.reload();
      await status(page, format(en.import.continues, { name: "list.opml" })).waitFor();
      await operations.open();
      await isDone(page);
      await until(() => counts(page), [`${outcome.added} 600`]);
      assert.deepEqual((await feedsOf(server)).slice(-600), numberedFeeds(600, 6_001));
      // Once it is done, nothing continues.
      await page.reload();
      await page.getByText(en.import.choose).waitFor();
      await until(() => status(page, format(en.import.continues, { name: "list.opml" })).count(), 0);
    });
    await finish();
  });

  test("import: the server is unreachable at any step → nothing is lost", async (t) => {
    const options = { size: "phone", theme: "dark", prepare: installClock } as const;
    const { page, server, allow, finish } = await visit({ at: "import", ...options });
    allow(/^failed: POST/);
    await t.test(
      "import: the server is unreachable during the preview → an error, and the file can be chosen again",
      async () => {
        await page.route("**/v1/imports*", (route) => route.abort());
        await chooseFile(page, opml(numberedFeeds(3, 701)));
        await status(page, format(en.import.reading, { name: "list.opml" })).waitFor();
        await advanceUntil(page, page.getByRole("alert").filter({ hasText: en.failure.unreachable }));
        await page.unroute("**/v1/imports*");
        await chooseFile(page, opml(numberedFeeds(3, 701)));
        await start(page, 3);
        await isDone(page);
        await status(page, en.connection.unreachable).waitFor({ state: "hidden" });
        await button(page, en.import.chooseAnother).click();
      },
    );

    await t.test("import: stopped while the server is unreachable → stops at once", async () => {
      await page.route(OPERATIONS, (route) => route.abort());
      await chooseFile(page, opml(numberedFeeds(3, 704)));
      await start(page, 3);
      await status(page, en.connection.unreachable).waitFor();
      await button(page, en.import.stop).click();
      await status(page, en.import.stopped).waitFor();
      await page.unroute(OPERATIONS);
      await button(page, format(en.import.resume, { n: 3 })).click();
      await isDone(page);
      assert.deepEqual(await feedsOf(server), numberedFeeds(6, 701));
      await button(page, en.import.chooseAnother).click();
    });

    await t.test("import: the server becomes unreachable → says so, and resume adds the rest", async () => {
      const feeds = numberedFeeds(700);
      let left = 1;
      await page.route(OPERATIONS, (route) => (left-- > 0 ? route.continue() : route.abort()));
      await chooseFile(page, opml(feeds));
      await start(page, 700);
      await status(page, en.connection.unreachable).waitFor();
      await advanceUntil(page, status(page, en.import.failed));
      await status(page, en.failure.unreachable).waitFor();
      await until(() => counts(page), [`${outcome.added} 250`, `${outcome.waiting} 450`]);
      assert.equal((await feedsOf(server)).length, 256);
      await page.unroute(OPERATIONS);
      await button(page, format(en.import.resume, { n: 450 })).click();
      await isDone(page);
      await until(() => counts(page), [`${outcome.added} 700`]);
      assert.deepEqual(await feedsOf(server), [...numberedFeeds(6, 701), ...feeds]);
    });
    await finish();
  });
});
