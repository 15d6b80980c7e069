import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Page, Route } from "playwright-core";
import {
  advanceUntil,
  button,
  chooseMore,
  feedsOf,
  hosts,
  installClock,
  menuItem,
  NEWEST_FIRST,
  OLDEST_FIRST,
  openMenu,
  removeFrom,
  rows,
  status,
  subscribe,
  THREE,
  until,
  visit,
  WITHOUT_TWO,
} from "./support/page.ts";
import { add, startServer, type TestServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const showsCount = (page: Page, count: number) =>
  page.getByText(format(en.count, { n: count }), { exact: true }).waitFor();

const WITHOUT_TWO_URLS = [THREE[0], THREE[2]] as string[];
/** The rows after the second feed was removed and came back; and the feed URLs, oldest first. */
const TWO_AGAIN = ["two.example", "three.example", "one.example"];
const TWO_AGAIN_URLS = [...WITHOUT_TWO_URLS, THREE[1]] as string[];
const removedNotice = (page: Page, n: number, name = "") => status(page, format(en.list.removed, { n, name }));

async function listed({ call }: TestServer) {
  const { json } = await call("GET", "/v1/subscriptions");
  return json.data as { id: string; attributes: { feed_url: string } }[];
}

describe("remove", { concurrency: 3 }, () => {
  test("remove: sent at once, undone by the server → as it was before", async (t) => {
    const server = await startServer();
    await subscribe(server, THREE);
    const { page, finish } = await visit({ server, size: "phone", prepare: installClock });
    const [, two] = await listed(server);
    const attributes = { title: "Second", folders: ["News"] };
    const updated = { type: "subscription", id: two?.id, attributes };

    await t.test("remove: a podcast that was renamed a moment ago → back with its name, id and date", async () => {
      await until(() => hosts(page), NEWEST_FIRST);
      await server.operate([{ op: "update", data: updated }]);
      await until(() => hosts(page), ["three.example", "Second", "one.example"]);
      const [, before] = await listed(server);
      await removeFrom(page, "Second");
      await until(() => feedsOf(server), WITHOUT_TWO_URLS);
      await showsCount(page, 2);
      await removedNotice(page, 1, "Second").waitFor();
      await button(page, en.list.undo).click();
      await status(page, en.list.undone).waitFor();
      await until(() => feedsOf(server), TWO_AGAIN_URLS);
      assert.deepEqual((await listed(server)).at(-1), before);
      await showsCount(page, 3);
    });

    await t.test("remove: several in a row → each notice undoes its own removal only", async () => {
      await removeFrom(page, "three.example");
      await removedNotice(page, 1, "three.example/feed").waitFor();
      await removeFrom(page, "one.example");
      await removedNotice(page, 1, "one.example/feed").waitFor();
      await until(() => feedsOf(server), [THREE[1]] as string[]);
      await button(page, en.list.undo).click();
      await status(page, en.list.undone).waitFor();
      await until(() => feedsOf(server), [THREE[1], THREE[0]] as string[]);
    });

    await t.test("remove: the undo notice closes → nothing more happens; it stays open while hovered", async () => {
      await removeFrom(page, "one.example");
      const notice = removedNotice(page, 1, "one.example/feed");
      await notice.getByText(format(en.list.removed, { n: 1, name: "one.example/feed" })).hover();
      await page.clock.fastForward(60_000);
      await notice.waitFor();
      await page.getByRole("searchbox").hover();
      await advanceUntil(page, notice, "hidden");
      assert.deepEqual(await feedsOf(server), [THREE[1]]);
    });
    await finish();
  });

  test("remove: a double click → one podcast, and nothing else is opened", async () => {
    const { page, server, finish } = await visit({ feeds: THREE });
    await until(() => hosts(page), NEWEST_FIRST);
    await openMenu(page, "three.example");
    await menuItem(page, en.podcasts.remove).dblclick();
    await until(() => feedsOf(server), THREE.slice(0, 2));
    await setTimeout(300);
    assert.deepEqual(await feedsOf(server), THREE.slice(0, 2));
    assert.equal(await page.getByRole("dialog").count(), 0);
    await finish();
  });

  test("remove: selected podcasts, then the page is closed → removed on the server; undone in the history", async () => {
    let now = new Date(Date.now() - 60 * 60_000);
    const server = await startServer({}, () => now);
    await subscribe(server, THREE);
    now = new Date();
    const { page, context, allow, finish } = await visit({ server });
    allow(/^failed: /);
    await chooseMore(page, en.podcasts.select);
    await button(page, en.podcasts.selectAll).click();
    await button(page, en.podcasts.remove).click();
    await removedNotice(page, 3).waitFor();
    await until(() => feedsOf(server), []);
    await page.close();
    const next = await context.newPage();
    await next.goto("/#history");
    await next.getByRole("list", { name: en.history.title }).getByRole("button").first().waitFor();
    await finish();
  });

  test("remove: another device adds the feed again → it stays, and there is nothing to undo", async () => {
    const { page, server, finish } = await visit({ feeds: THREE });
    const [, two] = await listed(server);
    await removeFrom(page, "two.example");
    await until(() => feedsOf(server), WITHOUT_TWO_URLS);
    await server.operate([add(two?.id ?? "", "https://two.example/feed")]);
    await until(() => hosts(page), TWO_AGAIN);
    const changes = async () => (await server.call("GET", "/v1/history")).json.data;
    const before = await changes();
    await button(page, en.list.undo).click();
    await status(page, en.list.undone).waitFor();
    assert.deepEqual(await feedsOf(server), TWO_AGAIN_URLS);
    assert.deepEqual(await changes(), before);
    await finish();
  });

  test("remove: offline → undone offline too; otherwise removed when the server is reachable", async () => {
    const { page, server, context, allow, finish } = await visit({ feeds: THREE });
    allow(/^(failed|console):? /);
    await until(() => hosts(page), NEWEST_FIRST);
    await context.setOffline(true);
    await removeFrom(page, "two.example");
    await until(() => hosts(page), WITHOUT_TWO);
    await button(page, en.list.undo).click();
    await until(async () => (await hosts(page)).toSorted(), OLDEST_FIRST.toSorted());
    await removeFrom(page, "one.example");
    await context.setOffline(false);
    await until(async () => (await feedsOf(server)).toSorted(), [THREE[1], THREE[2]].toSorted() as string[]);
    await finish();
  });

  test("remove: the server does not answer → stays removed", async (t) => {
    const { page, server, allow, finish } = await visit({ size: "phone", feeds: THREE, prepare: installClock });
    allow(/^(response: 503|failed:) /);
    for (const [condition, response, problem] of [
      ["busy", (route) => route.fulfill({ status: 503, headers: { "Retry-After": "0" } }), en.connection.busy],
      ["unreachable", (route) => route.abort(), en.connection.unreachable],
    ] as readonly [string, (route: Route) => Promise<void>, string][])
      await t.test(
        `remove: the server is ${condition} → stays removed, and the server learns of it later`,
        async () => {
          await advanceUntil(page, rows(page).getByText("two.example", { exact: true }));
          const before = await feedsOf(server);
          await page.route("**/v1/**", response);
          await removeFrom(page, "two.example");
          await button(page, en.close).click();
          const banner = status(page, problem).filter({ hasText: format(en.connection.waiting, { n: 1 }) });
          await advanceUntil(page, banner);
          await until(() => hosts(page), WITHOUT_TWO);
          assert.deepEqual(await feedsOf(server), before);
          await page.unroute("**/v1/**");
          await advanceUntil(page, banner, "hidden");
          await until(() => feedsOf(server), WITHOUT_TWO_URLS);
          assert.deepEqual(await hosts(page), WITHOUT_TWO);
          await subscribe(server, ["https://two.example/feed"]);
        },
      );
    await finish();
  });
});
