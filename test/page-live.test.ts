import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openAddMany } from "./support/navigation.ts";
import {
  advanceUntil,
  button,
  feedsOf,
  hosts,
  link,
  removeFrom,
  rows,
  status,
  subscribe,
  until,
  visit,
} from "./support/page.ts";
import { startServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const TWO = ["https://one.example/feed", "https://two.example/feed"];
const UNREACHABLE = /^failed: .*(ERR_FAILED|ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE)/;

describe("live", { concurrency: 3 }, () => {
  test("one page", async (t) => {
    const { page, context, server, allow, finish } = await visit({ size: "phone", theme: "dark", feeds: TWO });

    await t.test("live: another device adds and removes → the list changes by itself", async () => {
      await until(() => hosts(page), ["two.example", "one.example"]);
      await subscribe(server, ["https://three.example/feed"]);
      await until(() => hosts(page), ["three.example", "two.example", "one.example"]);
      const { json } = await server.call("GET", "/v1/subscriptions");
      await server.call("DELETE", `/v1/subscriptions/${json.data[2].id}`);
      await until(() => hosts(page), ["two.example", "one.example"]);
    });

    await t.test(
      "offline: edits and a reload → everything is still there, and is sent when the server is back",
      async () => {
        allow(/^failed: /);
        // The page itself can be loaded.
        await context.route("**/v1/**", (route) => route.abort());
        await removeFrom(page, "one.example");
        await button(page, en.close).click();
        await openAddMany(page);
        await page.getByLabel(en.add.label).fill("https://three.example/feed");
        await button(page, format(en.add.submit, { n: 1 })).click();
        await status(page, format(en.add.saved, { n: 1 })).waitFor();
        await page.reload();
        await link(page, en.views.list).click();
        await until(() => hosts(page), ["three.example", "two.example"]);
        await status(page, format(en.connection.waiting, { n: 2 })).waitFor();
        assert.deepEqual(await feedsOf(server), TWO);
        await context.unroute("**/v1/**");
        await page.evaluate(`dispatchEvent(new Event("online"))`);
        await status(page, format(en.connection.waiting, { n: 2 })).waitFor({ state: "hidden" });
        await until(() => feedsOf(server), ["https://two.example/feed", "https://three.example/feed"]);
        await until(() => hosts(page), ["three.example", "two.example"]);
      },
    );

    await t.test("offline: the server rejects an edit later → it is undone, and says so until dismissed", async () => {
      await openAddMany(page);
      await page.getByLabel(en.add.label).waitFor();
      await context.setOffline(true);
      await page.getByLabel(en.add.label).fill("https://one.example/%00\nhttps://four.example/");
      await button(page, format(en.add.submit, { n: 2 })).click();
      await status(page, format(en.add.saved, { n: 2 })).waitFor();
      await context.setOffline(false);
      const alert = page.getByRole("alert").filter({ hasText: format(en.list.refused, { n: 1 }) });
      await alert.getByText(`one.example/%00: ${en.errors["feed-url-invalid-characters"]}`).waitFor();
      await link(page, en.views.list).click();
      await until(() => hosts(page), ["four.example", "three.example", "two.example"]);
      await alert.getByRole("button", { name: en.close }).click();
      await alert.waitFor({ state: "detached" });
      const left = ["https://two.example/feed", "https://three.example/feed", "https://four.example/"];
      assert.deepEqual(await feedsOf(server), left);
    });

    await t.test("offline: a browser without storage → the list is loaded and can be edited", async () => {
      await page.addInitScript(`for (const name of ["indexedDB", "localStorage"])
        Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });`);
      await page.reload();
      await until(() => hosts(page), ["four.example", "three.example", "two.example"]);
      await removeFrom(page, "three.example");
      await button(page, en.close).click();
      await until(() => feedsOf(server), ["https://two.example/feed", "https://four.example/"]);
    });
    await finish();
  });

  test("without a stream", async (t) => {
    const first = await startServer();
    await subscribe(first, TWO);
    let refused = 0;
    const { page, allow, finish } = await visit({
      server: first,
      async prepare(page) {
        await page.clock.install();
        await page.route("**/v1/events", async (route) => {
          refused += 1;
          await route.fulfill({ status: 429 });
        });
      },
    });

    await t.test("live: no stream of events → asks for changes at intervals", async () => {
      // Time passes faster than the server responds.
      allow(/^response: 429 GET \S+\/v1\/events$/, /^failed: GET \S+\/v1\/me net::ERR_ABORTED/);
      await until(() => hosts(page), ["two.example", "one.example"]);
      await subscribe(first, ["https://three.example/feed"]);
      await advanceUntil(page, rows(page).getByText("three.example", { exact: true }));
      assert.equal(await status(page, en.connection.busy).isVisible(), false);
      for (let minutes = 0; minutes < 10; minutes += 1) await page.clock.fastForward(60_000);
      const before = refused;
      for (let seconds = 0; seconds < 60; seconds += 1) await page.clock.fastForward(1_000);
      assert.ok(refused - before <= 3, `${refused - before} attempts in a minute`);
      await page.unroute("**/v1/events");
    });

    await t.test("live: the server has another database → the list starts again from nothing", async () => {
      allow(UNREACHABLE, /^response: (410|503) GET/);
      await first.close();
      const second = await startServer({ PORT: String(first.port) });
      await subscribe(second, ["https://restored.example/feed"]);
      await advanceUntil(page, rows(page).getByText("restored.example", { exact: true }));
      await until(() => hosts(page), ["restored.example"]);
    });
    await finish();
  });
});
