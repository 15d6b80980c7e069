import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page, Route } from "playwright-core";
import {
  advanceUntil,
  button,
  feedsOf,
  hosts,
  installClock,
  link,
  NEWEST_FIRST,
  OLDEST_FIRST,
  removeButton,
  rows,
  status,
  subscribe,
  THREE,
  until,
  visit,
  WITHOUT_TWO,
} from "./support/page.ts";
import { add, newId, startServer, type TestServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const showsCount = (page: Page, count: number) =>
  page.getByText(format(en.count, { n: count }), { exact: true }).waitFor();

const WITHOUT_TWO_URLS = [THREE[0], THREE[2]] as string[];
/** The rows after the second feed was removed and added again; and the feed URLs, oldest first. */
const TWO_AGAIN = ["two.example", "three.example", "one.example"];
const TWO_AGAIN_URLS = [...WITHOUT_TWO_URLS, THREE[1]] as string[];

/** As a user closes a tab; `close` alone does not wait for the end. */
async function closePage(page: Page): Promise<void> {
  const closed = page.waitForEvent("close");
  await page.close({ runBeforeUnload: true });
  await closed;
}

/** Method and path of each request that changes something, from now on. */
function watchChanges(page: Page): string[] {
  const changes: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET") changes.push(`${request.method()} ${new URL(request.url()).pathname}`);
  });
  return changes;
}

async function subscriptionTo({ call }: TestServer, url = "") {
  const { json } = await call("GET", "/v1/subscriptions");
  return json.data.find((item: { attributes: { feed_url: string } }) => item.attributes.feed_url === url);
}

describe("remove", { concurrency: 3 }, () => {
  test("remove: on a phone → undone, removed or added again, as the user decides", async (t) => {
    let now = new Date("2031-01-05T12:00:00Z");
    const server = await startServer({}, () => now);
    await subscribe(server, THREE.slice(0, 2));
    now = new Date("2031-03-07T12:00:00Z");
    await subscribe(server, THREE.slice(2));
    const { page, finish } = await visit({ server, size: "phone", prepare: installClock });
    const changes = watchChanges(page);

    await t.test("remove: undo → the same rows, and no request was sent", async () => {
      await until(() => hosts(page), NEWEST_FIRST);
      const before = await rows(page).allTextContents();
      assert.match(before[1] ?? "", /Jan 5, 2031/);
      await removeButton(page, "two.example").click();
      await until(() => hosts(page), WITHOUT_TWO);
      await showsCount(page, 2);
      await status(page, format(en.list.removed, { n: 1, name: "two.example/feed" })).waitFor();
      await button(page, en.list.undo).click();
      await until(() => rows(page).allTextContents(), before);
      await status(page, en.list.undone).waitFor();
      await showsCount(page, 3);
      assert.deepEqual(changes, []);
      assert.deepEqual(await feedsOf(server), THREE);
    });

    await t.test("remove: several in a row → one undo restores all", async () => {
      for (const host of OLDEST_FIRST) await removeButton(page, host).click();
      await page.getByRole("heading", { name: en.list.emptyTitle }).waitFor();
      await status(page, format(en.list.removed, { n: 3, name: "" })).waitFor();
      await button(page, en.list.undo).click();
      await until(() => hosts(page), NEWEST_FIRST);
      assert.deepEqual(changes, []);
      assert.deepEqual(await feedsOf(server), THREE);
    });

    await t.test("remove: the same feed is added again before the undo time ends → it is in the list", async () => {
      await removeButton(page, "two.example").click();
      await link(page, en.views.add).click();
      await page.getByLabel(en.add.label).fill("https://two.example/feed");
      await button(page, format(en.add.submit, { n: 1 })).click();
      await status(page, format(en.add.done, { added: 1, existing: 0, rejected: 0 })).waitFor();
      await link(page, en.views.list).click();
      await until(() => hosts(page), TWO_AGAIN);
      assert.deepEqual(await feedsOf(server), TWO_AGAIN_URLS);
    });

    await t.test("remove: the undo notice closes → removed on the server; it stays open while hovered", async () => {
      await removeButton(page, "two.example").click();
      const notice = status(page, format(en.list.removed, { n: 1, name: "two.example/feed" }));
      await notice.waitFor();
      assert.deepEqual(await feedsOf(server), TWO_AGAIN_URLS);
      await notice.getByText(format(en.list.removed, { n: 1, name: "two.example/feed" })).hover();
      await page.clock.fastForward(60_000);
      assert.deepEqual(await feedsOf(server), TWO_AGAIN_URLS);
      await page.getByRole("searchbox").hover();
      await advanceUntil(page, notice, "hidden");
      await until(() => feedsOf(server), WITHOUT_TWO_URLS);
      assert.deepEqual(await hosts(page), WITHOUT_TWO);
      await showsCount(page, 2);
    });
    await finish();
  });

  test("remove: the page is left before the undo time ends → as the user wanted", async (t) => {
    const { page: first, context, server, allow, finish } = await visit({ feeds: THREE });
    // A page that is gone gets no response.
    allow(/^failed: /);
    let page = first;
    const reopen = async () => {
      page = await context.newPage();
      await page.goto("/");
    };

    for (const how of ["left and restored from the cache", "closed", "closed slowly"] as const)
      await t.test(
        `remove: ${how} before the undo time ends, and another device adds the feed again → it stays`,
        async () => {
          await removeButton(page, "two.example").click();
          await status(page, format(en.list.removed, { n: 1, name: "two.example/feed" })).waitFor();
          const { id } = await subscriptionTo(server, THREE[1]);
          // The page has time to save what it does, but does not sync any more.
          if (how === "closed") await closePage(page);
          else await page.evaluate("void dispatchEvent(new Event('pagehide'))");
          await until(() => feedsOf(server), WITHOUT_TWO_URLS);
          if (how === "closed slowly") await closePage(page);
          await server.operate([add(id, "https://two.example/feed")]);
          if (page.isClosed()) await reopen();
          else await page.evaluate("void dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
          await until(() => hosts(page), TWO_AGAIN);
          await until(() => page.evaluate("localStorage.length"), 0);
          assert.deepEqual(await hosts(page), TWO_AGAIN);
          assert.deepEqual(await feedsOf(server), TWO_AGAIN_URLS);
        },
      );

    await t.test(
      "remove: closed offline before the undo time ends, or crashed → removed when the page is opened again",
      async () => {
        const { id, attributes } = await subscriptionTo(server, THREE[0]);
        await context.setOffline(true);
        await removeButton(page, "two.example").click();
        await status(page, format(en.list.removed, { n: 1, name: "two.example/feed" })).waitFor();
        await closePage(page);
        assert.deepEqual(await feedsOf(server), TWO_AGAIN_URLS);
        await context.setOffline(false);
        await reopen();
        await until(() => feedsOf(server), WITHOUT_TWO_URLS);
        await until(() => hosts(page), WITHOUT_TWO);

        // As a tab leaves it that crashes.
        const removal = { id, subscribedAt: Date.parse(attributes.user_subscribed_at), finishAt: Date.now() };
        const text = `\n${JSON.stringify([removal, { ...removal, id: newId() }])}`;
        await page.evaluate(`localStorage.setItem("earmark:removals ${server.url}", ${JSON.stringify(text)})`);
        await page.reload();
        await until(() => feedsOf(server), [THREE[2]] as string[]);
        await until(() => hosts(page), ["three.example"]);
        await until(() => page.evaluate("localStorage.length"), 0);
      },
    );

    await t.test("remove: the page is reloaded, left or closed → removed on the server", async () => {
      const leave: readonly (() => Promise<unknown>)[] = [
        () => page.reload(),
        () => page.goto("about:blank"),
        () => closePage(page),
      ];
      for (const leavePage of leave) {
        await subscribe(server, THREE.slice(0, 2));
        await removeButton(page, "two.example").click();
        await removeButton(page, "one.example").click();
        await status(page, format(en.list.removed, { n: 2, name: "" })).waitFor();
        await leavePage();
        await until(() => feedsOf(server), [THREE[2]] as string[]);
        if (page.url() === "about:blank") await page.goto("/");
      }
    });
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
          await advanceUntil(page, removeButton(page, "two.example"));
          const before = await feedsOf(server);
          await page.route("**/v1/**", response);
          await removeButton(page, "two.example").click();
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
