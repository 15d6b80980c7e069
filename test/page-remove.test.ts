import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page, Route } from "playwright-core";
import { en } from "../web/src/words/en.ts";
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
import { add, newId, startServer } from "./support/server.ts";

const showsCount = (page: Page, count: number) =>
  page.getByText(en.count(count, String(count)), { exact: true }).waitFor();

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

describe("remove", { concurrency: 3 }, () => {
  test("remove: undo → the same rows, and no request was sent", async () => {
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
    await removeButton(page, "two.example").click();
    await until(() => hosts(page), WITHOUT_TWO);
    await showsCount(page, 2);
    await status(page, en.list.removed(1, "two.example/feed")).waitFor();
    await button(page, en.list.undo).click();
    await until(() => rows(page).allTextContents(), before);
    await status(page, en.list.undone).waitFor();
    await showsCount(page, 3);
    assert.deepEqual(changes, []);
    assert.deepEqual(await feedsOf(server), THREE);
    await finish();
  });

  test("remove: the notice disappears → removed on the server, but not while pointed at", async () => {
    const { page, server, finish } = await visit({ feeds: THREE, prepare: installClock });
    await removeButton(page, "two.example").click();
    const notice = status(page, en.list.removed(1, "two.example/feed"));
    await notice.waitFor();
    assert.deepEqual(await feedsOf(server), THREE);
    await notice.getByText(en.list.removed(1, "two.example/feed")).hover();
    await page.clock.fastForward(60_000);
    assert.deepEqual(await feedsOf(server), THREE);
    await page.getByRole("searchbox").hover();
    await advanceUntil(page, notice, "hidden");
    await until(() => feedsOf(server), [THREE[0], THREE[2]] as string[]);
    assert.deepEqual(await hosts(page), WITHOUT_TWO);
    await showsCount(page, 2);
    await finish();
  });

  test("remove: several in a row → one undo restores all", async () => {
    const { page, server, finish } = await visit({ theme: "dark", feeds: THREE });
    const changes = watchChanges(page);
    for (const host of OLDEST_FIRST) await removeButton(page, host).click();
    await page.getByRole("heading", { name: en.list.emptyTitle }).waitFor();
    await status(page, en.list.removed(3, "")).waitFor();
    await button(page, en.list.undo).click();
    await until(() => hosts(page), NEWEST_FIRST);
    assert.deepEqual(changes, []);
    assert.deepEqual(await feedsOf(server), THREE);
    await finish();
  });

  test("remove: the page is left, closed or reloaded → removed on the server", async () => {
    const leave: readonly ((page: Page) => Promise<unknown>)[] = [
      (page) => page.goto("about:blank"),
      closePage,
      (page) => page.reload(),
    ];
    await Promise.all(
      leave.map(async (leavePage) => {
        const { page, server, allow, finish } = await visit({ feeds: THREE });
        // A page that is gone gets no response.
        allow(/^failed: (POST|GET) .* net::ERR_ABORTED/);
        await removeButton(page, "two.example").click();
        await removeButton(page, "one.example").click();
        await status(page, en.list.removed(2, "")).waitFor();
        await leavePage(page);
        await until(() => feedsOf(server), [THREE[2]] as string[]);
        await finish();
      }),
    );
  });

  test("remove: closed offline before the undo time ends, or crashed → removed when the page is opened again", async () => {
    const { page, context, server, allow, finish } = await visit({ feeds: THREE });
    allow(/^failed: /);
    await until(() => hosts(page), NEWEST_FIRST);
    const { data } = (await server.call("GET", "/v1/subscriptions")).json;
    await context.setOffline(true);
    await removeButton(page, "two.example").click();
    await status(page, en.list.removed(1, "two.example/feed")).waitFor();
    await closePage(page);
    assert.deepEqual(await feedsOf(server), THREE);
    await context.setOffline(false);
    const next = await context.newPage();
    await next.goto("/");
    await until(() => feedsOf(server), [THREE[0], THREE[2]] as string[]);
    await until(() => hosts(next), WITHOUT_TWO);

    // As a tab leaves it that crashes.
    const [{ id, attributes }] = data;
    const removal = { id, subscribedAt: Date.parse(attributes.user_subscribed_at), finishAt: Date.now() };
    const text = `\n${JSON.stringify([removal, { ...removal, id: newId() }])}`;
    await next.evaluate(`localStorage.setItem("earmark:removals ${server.url}", ${JSON.stringify(text)})`);
    await next.reload();
    await until(() => feedsOf(server), [THREE[2]] as string[]);
    await until(() => hosts(next), ["three.example"]);
    await until(() => next.evaluate("localStorage.length"), 0);
    await finish();
  });

  for (const how of ["closed", "closed slowly", "left and restored from the cache"] as const)
    test(`remove: ${how} before the undo time ends, and another device adds the feed again → it stays`, async () => {
      const { page, context, server, allow, finish } = await visit({ feeds: THREE });
      allow(/^failed: /);
      await removeButton(page, "two.example").click();
      await status(page, en.list.removed(1, "two.example/feed")).waitFor();
      const { data } = (await server.call("GET", "/v1/subscriptions")).json;
      // The page has time to save what it does, but does not sync any more.
      if (how === "closed") await closePage(page);
      else await page.evaluate("void dispatchEvent(new Event('pagehide'))");
      await until(() => feedsOf(server), [THREE[0], THREE[2]] as string[]);
      if (how === "closed slowly") await closePage(page);
      await server.operate([add(data[1].id, "https://two.example/feed")]);
      const next = page.isClosed() ? await context.newPage() : page;
      if (next === page)
        await page.evaluate("void dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
      else await next.goto("/");
      const back = ["two.example", "three.example", "one.example"];
      await until(() => hosts(next), back);
      await until(() => next.evaluate("localStorage.length"), 0);
      assert.deepEqual(await hosts(next), back);
      assert.deepEqual(await feedsOf(server), [THREE[0], THREE[2], THREE[1]]);
      await finish();
    });

  for (const [condition, response, problem] of [
    ["busy", (route) => route.fulfill({ status: 503, headers: { "Retry-After": "0" } }), en.connection.busy],
    ["unreachable", (route) => route.abort(), en.connection.unreachable],
  ] as readonly [string, (route: Route) => Promise<void>, string][])
    test(`remove: the server is ${condition} → stays removed, and the server learns of it later`, async () => {
      const { page, server, allow, finish } = await visit({ size: "phone", feeds: THREE, prepare: installClock });
      allow(/^(response: 503|failed:) /);
      await until(() => hosts(page), NEWEST_FIRST);
      await page.route("**/v1/**", response);
      await removeButton(page, "two.example").click();
      await button(page, en.close).click();
      const banner = status(page, problem).filter({ hasText: en.connection.waiting(1, "1") });
      await advanceUntil(page, banner);
      await until(() => hosts(page), WITHOUT_TWO);
      assert.deepEqual(await feedsOf(server), THREE);
      await page.unroute("**/v1/**");
      await advanceUntil(page, banner, "hidden");
      await until(() => feedsOf(server), [THREE[0], THREE[2]] as string[]);
      assert.deepEqual(await hosts(page), WITHOUT_TWO);
      await finish();
    });

  test("remove: the same feed is added again before the undo time ends → it is in the list", async () => {
    const { page, server, finish } = await visit({ size: "phone", feeds: THREE });
    await removeButton(page, "two.example").click();
    await link(page, en.views.add).click();
    await page.getByLabel(en.add.label).fill("https://two.example/feed");
    await button(page, en.add.submit(1, "1")).click();
    await status(page, en.add.done("1", "0", "0")).waitFor();
    await link(page, en.views.list).click();
    await until(() => hosts(page), ["two.example", "three.example", "one.example"]);
    assert.deepEqual(await feedsOf(server), [THREE[0], THREE[2], THREE[1]]);
    await finish();
  });
});
