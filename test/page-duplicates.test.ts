import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { assertAccessible } from "./support/browser.ts";
import { learn } from "./support/fetching.ts";
import { button, feedsOf, hosts, link, removeFrom, rows, status, subscribe, until, visit } from "./support/page.ts";
import { newId, startServer, type TestServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { duplicates: words, moves } = en;
const FEED = "https://feeds.example/";
const [A, B, C, D] = [`${FEED}a`, `${FEED}b`, `${FEED}c`, `${FEED}d`] as const;

const group = (page: Page, name: string) => page.getByRole("form", { name });

/** Subscribed to two podcasts, each of them twice: one has a GUID, the other a title and a site. */
async function serverWithDuplicates(): Promise<TestServer> {
  const server = await startServer();
  const podcastGuid = newId();
  const site = { title: "Bee", homepageUrl: "https://bee.example/" };
  const known = { [A]: { title: "Ay", podcastGuid }, [B]: site, [C]: { title: "Ay again", podcastGuid }, [D]: site };
  for (const [url, more] of Object.entries(known)) {
    await subscribe(server, [url]);
    await learn(server.store, url, { status: "ok", ...more });
  }
  return server;
}

describe("duplicates", { concurrency: 2 }, () => {
  test("duplicates: podcasts twice in the list → suggested, merged into the chosen one, undone", async () => {
    const server = await serverWithDuplicates();
    const { page, finish } = await visit({ server });
    await page.getByText(format(words.hint, { n: 2 })).waitFor();
    await link(page, words.review).click();
    await page.getByRole("heading", { name: words.title }).waitFor();
    await group(page, "Ay").getByText(words.reason["same-guid"]).waitFor();
    await group(page, "Bee").getByText(words.reason["same-title-and-site"]).waitFor();
    await page.getByText(moves.nothing).waitFor();
    await assertAccessible(page);

    assert.equal(await group(page, "Ay").getByRole("radio").first().isChecked(), true);
    await group(page, "Ay").getByRole("radio").nth(1).check();
    await button(page, format(words.mergeLabel, { name: "Ay again" })).click();
    await status(page, format(moves.merged, { name: "Ay again" })).waitFor();
    await until(() => feedsOf(server), [B, C, D]);
    assert.equal(await group(page, "Bee").count(), 1);
    await button(page, en.list.undo).click();
    await until(() => feedsOf(server), [B, C, D, A]);
    await group(page, "Ay").waitFor();
    await finish();
  });

  test("duplicates: not the same → not suggested again, and nothing else changes", async () => {
    const server = await serverWithDuplicates();
    const { page, finish } = await visit({ server, at: "duplicates" });
    for (const name of ["Ay", "Bee"]) {
      await button(page, format(words.dismissLabel, { name })).click();
      await group(page, name).waitFor({ state: "detached" });
    }
    await status(page, words.empty).waitFor();
    await page.reload();
    await status(page, words.empty).waitFor();
    await assertAccessible(page);
    await link(page, en.views.list).click();
    await until(async () => (await hosts(page)).length, 4);
    assert.equal(await page.getByText(format(words.hint, { n: 2 })).count(), 0);
    assert.deepEqual(await feedsOf(server), [A, B, C, D]);
    assert.equal(await rows(page).count(), 4);
    await finish();
  });

  test("duplicates: one of two is removed from the list → no longer suggested", async () => {
    const server = await serverWithDuplicates();
    const { page, finish } = await visit({ server });
    await page.getByText(format(words.hint, { n: 2 })).waitFor();
    await removeFrom(page, "Ay again");
    await page.getByText(format(words.hint, { n: 1 })).waitFor();
    await finish();
  });
});
