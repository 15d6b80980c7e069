import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NOBODY } from "../src/accounts/account-store.ts";
import { Accounts } from "../src/accounts/accounts.ts";
import { Administration } from "../src/accounts/administration.ts";
import { asUser } from "../src/accounts/caller.ts";
import { assertAccessible } from "./support/browser.ts";
import { openAddMany } from "./support/navigation.ts";
import {
  advanceUntil,
  button,
  feedsOf,
  hosts,
  installClock,
  link,
  NEWEST_FIRST,
  OLDEST_FIRST,
  removeFrom,
  returnToTab,
  rows,
  status,
  subscribe,
  THREE,
  until,
  visit,
  WITHOUT_TWO,
} from "./support/page.ts";
import { ATOMIC, add, newId, startServer, temporaryFolder } from "./support/server.ts";
import { en, format } from "./support/words.ts";

describe("connection", { concurrency: 3 }, () => {
  test("connection: the server stops and restarts → the page waits and continues by itself", async () => {
    const environment: Record<string, string> = { DATABASE_URL: `file:${temporaryFolder()}/earmark.db` };
    const first = await startServer(environment);
    await subscribe(first, THREE);
    const { page, allow, finish } = await visit({ server: first, prepare: installClock, size: "phone" });
    // While the server stops, it refuses new streams.
    allow(/^failed: /, /^response: 503 GET .*\/v1\/events$/);
    await until(() => hosts(page), NEWEST_FIRST);
    await openAddMany(page);
    await page.getByLabel(en.add.label).fill("https://four.example/feed");
    await first.close();
    await button(page, format(en.add.submit, { n: 1 })).click();
    await status(page, format(en.add.saved, { n: 1 })).waitFor();
    await status(page, format(en.connection.waiting, { n: 1 })).waitFor();
    const second = await startServer({ ...environment, PORT: String(first.port) });
    await advanceUntil(page, status(page, en.connection.unreachable), "hidden");
    await until(() => feedsOf(second), [...THREE, "https://four.example/feed"]);
    await link(page, en.views.list).click();
    await until(() => hosts(page), ["four.example", ...NEWEST_FIRST]);

    // Down for so long that all retries are used up.
    await second.close();
    await returnToTab(page);
    await status(page, en.connection.unreachable).waitFor();
    for (let seconds = 0; seconds < 60; seconds += 1) await page.clock.fastForward(1_000);
    assert.equal(await status(page, en.connection.unreachable).isVisible(), true);
    assert.deepEqual(await hosts(page), ["four.example", ...NEWEST_FIRST]);
    const third = await startServer({ ...environment, PORT: String(first.port) });
    await subscribe(third, ["https://five.example/feed"]);
    await advanceUntil(page, status(page, en.connection.unreachable), "hidden");
    await until(() => hosts(page), ["five.example", "four.example", ...NEWEST_FIRST]);
    await finish();
  });

  test("one page", async (t) => {
    const { page, context, server, allow, problems, finish } = await visit({
      feeds: THREE,
      theme: "dark",
      async prepare(page) {
        await page.clock.install();
        await page.route("**/v1/**", (route) => route.abort());
      },
    });

    await t.test(
      "connection: the server is unreachable from the start → says so, and loads the list on retry",
      async () => {
        allow(/^failed: /);
        await advanceUntil(page, page.getByRole("alert").filter({ hasText: en.list.failed }));
        await status(page, en.connection.unreachable).waitFor();
        await button(page, en.retry).click();
        await page.unroute("**/v1/**");
        await advanceUntil(page, rows(page).first());
        await until(() => hosts(page), NEWEST_FIRST);
        await status(page, en.connection.unreachable).waitFor({ state: "hidden" });
        assert.equal(await page.getByRole("alert").count(), 0);
      },
    );

    await t.test("connection: a language file is missing → the page says so and keeps its language", async () => {
      await page.route("**/assets/de-*.js", (route) => route.fulfill({ status: 404 }));
      allow(/de-/);
      await page.keyboard.press("?");
      await page.getByLabel(en.settings.language).selectOption("de");
      await page.getByText(en.settings.notLoaded).waitFor();
      assert.equal(await page.getByLabel(en.settings.language).inputValue(), "en");
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    });

    await t.test("connection: offline → a banner, and changes are sent once online", async () => {
      await context.setOffline(true);
      await status(page, en.connection.offline).waitFor();
      await removeFrom(page, "two.example");
      await button(page, en.close).click();
      await until(() => hosts(page), WITHOUT_TWO);
      await page.clock.fastForward(1_000);
      assert.deepEqual(await feedsOf(server), THREE);
      await context.setOffline(false);
      await status(page, en.connection.offline).waitFor({ state: "hidden" });
      await page.clock.fastForward(10_000);
      await until(() => feedsOf(server), [THREE[0], THREE[2]] as string[]);
      await advanceUntil(page, status(page, en.connection.unreachable), "hidden");
      assert.deepEqual(await hosts(page), WITHOUT_TWO);
    });

    await t.test("connection: a browser without newer APIs or BroadcastChannel → the whole list", async () => {
      await page.addInitScript(
        "delete URL.parse; delete Array.fromAsync; BroadcastChannel = class { constructor() { throw new Error(); } };",
      );
      await page.reload();
      await until(() => hosts(page), WITHOUT_TWO);
      await subscribe(server, ["https://four.example/feed"]);
      await until(() => hosts(page), ["four.example", ...WITHOUT_TWO]);
      assert.deepEqual(await problems(), []);
    });

    await t.test(
      "connection: a proxy redirects to its own sign-in → the page says so and offers a reload",
      async () => {
        allow(/./);
        await page.route("**/v1/**", (route) => route.fulfill({ status: 302, headers: { location: "/login" } }));
        await page.reload();
        await advanceUntil(page, status(page, en.connection.blocked));
        const reloaded = page.waitForEvent("framenavigated");
        await button(page, en.connection.reload).click();
        await reloaded;
        await page.unroute("**/v1/**");
        await page.reload();
        await until(() => hosts(page), ["four.example", ...WITHOUT_TWO]);
      },
    );
    await finish();
  });

  test("a proxy that signs users in", async (t) => {
    const server = await startServer({
      EARMARK_ACCOUNTS: "true",
      EARMARK_SIGN_UP: "true",
      EARMARK_AUTH_HEADER: "Remote-User",
      EARMARK_TRUSTED_PROXIES: "127.0.0.1",
    });
    const accounts = new Accounts(server.store.accounts, { signUp: true });
    const administration = new Administration(server.store.administration, accounts);
    const ann = await accounts.findOrCreate("ann", "", "127.0.0.1", new Date());
    const { page, allow, problems, finish } = await visit({
      server,
      async prepare(page) {
        await page.clock.install();
        await page.setExtraHTTPHeaders({ "Remote-User": "ann" });
      },
    });

    await t.test(
      "connection: a proxy names a user whose account is disabled → a banner says so, until it is enabled",
      async () => {
        const change = (kind: "disable" | "enable") =>
          administration.change(asUser(NOBODY), ann?.account.user ?? NOBODY, kind, new Date());
        allow(/response: 403 /);
        const banner = status(page, en.errors["account-disabled"]);
        await page.getByRole("heading", { name: en.list.emptyTitle }).waitFor();
        assert.equal(await change("disable"), undefined);
        await advanceUntil(page, banner);
        await assertAccessible(page);
        await page.reload();
        await advanceUntil(page, banner);
        assert.equal(await page.getByRole("dialog").count(), 0, "no sign-in helps");
        assert.equal(await change("enable"), undefined);
        await advanceUntil(page, page.getByRole("heading", { name: en.list.emptyTitle }));
        await banner.waitFor({ state: "hidden" });
        await page.setExtraHTTPHeaders({ "Remote-User": "not a name" });
        await page.reload();
        await advanceUntil(page, status(page, en.connection.noAccount));
        await page.setExtraHTTPHeaders({ "Remote-User": "ann" });
        await page.reload();
        assert.deepEqual(await problems(), []);
      },
    );

    for (const [index, [condition, response]] of (
      [
        ["redirects", { status: 302, headers: { location: "/login" } }],
        ["sends its own page", { status: 200, contentType: "text/html", body: "<h1>Sign in</h1>" }],
        ["returns 401", { status: 401, contentType: "text/plain", body: "Unauthorized" }],
      ] as const
    ).entries())
      await t.test(
        `connection: the sign-in at a proxy expires and the proxy ${condition} → the list continues after the next sign-in`,
        async () => {
          allow(/./);
          // The proxy ends the stream of events too.
          await page.route("**/v1/**", (route) => route.fulfill(response));
          await page.evaluate(`dispatchEvent(new Event("online"))`);
          await advanceUntil(page, status(page, en.connection.blocked));
          const body = JSON.stringify({ "atomic:operations": [add(newId(), THREE[index] as string)] });
          const headers = { "Content-Type": ATOMIC, "Remote-User": "ann" };
          assert.equal((await server.call("POST", "/v1/operations", { headers, body })).status, 200);
          await page.clock.fastForward(30_000);
          assert.equal(await page.getByRole("dialog").count(), 0);
          await page.unroute("**/v1/**");
          await advanceUntil(page, rows(page).getByText(OLDEST_FIRST[index] as string, { exact: true }));
          await status(page, en.connection.blocked).waitFor({ state: "hidden" });
        },
      );
    await finish();
  });
});
