import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { openAddMany } from "./support/navigation.ts";
import { button, feedsOf, hosts, removeFrom, returnToTab, status, subscribe, until, visit } from "./support/page.ts";
import { en, format } from "./support/words.ts";

const TWO = ["https://one.example/feed", "https://two.example/feed"];
const BOTH = ["two.example", "one.example"];

async function openTab(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto("/");
  return page;
}

/** Counts the open streams of events in each of the given tabs. */
function watchStreams(context: BrowserContext): (...tabs: readonly Page[]) => number[] {
  const open = new Map<object, Page>();
  context.on("request", (request) => {
    if (request.url().endsWith("/v1/events")) open.set(request, request.frame().page());
  });
  for (const event of ["requestfailed", "requestfinished"] as const)
    context.on(event as "requestfailed", (request) => void open.delete(request));
  return (...tabs) => tabs.map((tab) => [...open.values()].filter((page) => page === tab).length);
}

async function removeIn(page: Page, host: string): Promise<void> {
  await removeFrom(page, host);
  await button(page, en.close).click();
}

describe("tabs", { concurrency: 2 }, () => {
  test("with locks", async (t) => {
    let streams = (..._: readonly Page[]): number[] => [];
    const visited = await visit({
      feeds: TWO,
      prepare: async (page) => {
        streams = watchStreams(page.context());
      },
    });
    const { page: first, context, server, allow, finish } = visited;
    const second = await openTab(context);

    await t.test(
      "tabs: the server rejects an edit → every tab says so, also after a reload, until one dismisses it",
      async () => {
        // A tab that is reloaded or closed while it sends edits leaves them to the others.
        allow(/^failed: .*ERR_INTERNET_DISCONNECTED/, /^failed: POST \S+\/v1\/operations net::ERR_ABORTED/);
        for (const page of [first, second]) await until(() => hosts(page), BOTH);
        await openAddMany(second);
        await second.getByLabel(en.add.label).fill("https://three.example/%00\nhttps://four.example/%00");
        await context.setOffline(true);
        await button(second, format(en.add.submit, { n: 2 })).click();
        await status(second, format(en.add.saved, { n: 2 })).waitFor();
        await context.setOffline(false);
        const alerts = [first, second].map((page) =>
          page.getByRole("alert").filter({ hasText: format(en.list.refused, { n: 2 }) }),
        );
        for (const alert of alerts) await alert.getByText("three.example/%00").waitFor();
        await second.reload();
        for (const alert of alerts) await alert.getByText("four.example/%00").waitFor();
        await button(second, en.close).click();
        for (const alert of alerts) await alert.waitFor({ state: "detached" });
        await second.goto("/");
        await until(() => hosts(second), BOTH);
        assert.equal(await second.getByRole("alert").count(), 0);
        assert.deepEqual(await feedsOf(server), TWO);
      },
    );

    await t.test(
      "tabs: two tabs → share one stream and show the same list; one takes over when the other is closed",
      async () => {
        await removeIn(second, "one.example");
        await until(() => hosts(first), ["two.example"]);
        await until(() => feedsOf(server), ["https://two.example/feed"]);
        await subscribe(server, ["https://three.example/feed"]);
        for (const page of [first, second]) await until(() => hosts(page), ["three.example", "two.example"]);
        await until(() => streams(first, second), [1, 0]);

        await first.close();
        await subscribe(server, ["https://four.example/feed"]);
        await until(() => hosts(second), ["four.example", "three.example", "two.example"]);
        await until(() => streams(second), [1]);
      },
    );

    await t.test("tabs: eight over HTTP/1.1 → all of them load and can edit", async () => {
      const tabs = [second, ...(await Promise.all(Array.from({ length: 7 }, () => openTab(context))))];
      for (const tab of tabs) await until(async () => (await hosts(tab)).length, 3);
      await removeIn(tabs.at(-1) as Page, "four.example");
      for (const tab of tabs) await until(() => hosts(tab), ["three.example", "two.example"]);
      await until(async () => (await feedsOf(server)).length, 2);
    });
    await finish();
  });

  test("tabs: no locks, as over http from another host → each works alone, and only visible ones have a stream", async () => {
    let streams = (..._: readonly Page[]): number[] => [];
    const visited = await visit({
      feeds: TWO,
      prepare: async (page) => {
        await page.context().addInitScript("delete Navigator.prototype.locks;");
        streams = watchStreams(page.context());
      },
    });
    const { page: first, context, server, finish, allow } = visited;
    // Both tabs send the removal, and the request of the first one ends when it is hidden.
    allow(/^failed: POST \S+\/v1\/operations net::ERR_ABORTED/);
    await until(() => hosts(first), BOTH);
    const second = await openTab(context);
    await until(() => streams(first, second), [1, 1]);
    await removeIn(second, "one.example");
    for (const page of [first, second]) await until(() => hosts(page), ["two.example"]);
    await until(() => feedsOf(server), ["https://two.example/feed"]);

    await first.evaluate(`Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })`);
    await returnToTab(first);
    await until(() => streams(first, second), [0, 1]);
    await subscribe(server, ["https://three.example/feed"]);
    await until(() => hosts(second), ["three.example", "two.example"]);
    await first.evaluate("delete document.visibilityState");
    await returnToTab(first);
    await until(() => hosts(first), ["three.example", "two.example"]);
    await until(() => streams(first, second), [1, 1]);
    await finish();
  });
});
