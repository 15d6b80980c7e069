import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { asUser, LOCAL_USER } from "../src/accounts/caller.ts";
import { feedKeyHex } from "../src/lists/feed-url.ts";
import { assertAccessible } from "./support/browser.ts";
import { learn } from "./support/fetching.ts";
import { openAddMany, openSettings } from "./support/navigation.ts";
import { allTexts, button, feedsOf, hosts, link, rows, status, subscribe, until, visit } from "./support/page.ts";
import { startServer, type TestServer } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const { moves } = en;
const FEED = "https://feeds.example/";
const [A, B, C] = [`${FEED}a`, `${FEED}b`, `${FEED}c`] as const;

const panel = (page: Page) => page.getByRole("dialog");
const open = (page: Page, title: string) =>
  rows(page).getByRole("button", { name: title, exact: true }).first().click();
const field = (page: Page) => page.getByRole("textbox", { name: en.podcasts.feedUrl });
const former = (page: Page) => panel(page).locator(".former-urls summary");
const hasEffect = async (page: Page) => {
  await panel(page).getByText(moves.nothing).waitFor();
  await panel(page).getByText(moves.replaced).waitFor();
};

interface Listed {
  readonly id: string;
  readonly feed_url: string;
  readonly title?: string;
  readonly folders?: readonly string[];
  readonly former_feed_urls?: readonly string[];
}

async function subscriptionsOf({ call }: TestServer): Promise<Listed[]> {
  const { json } = await call("GET", "/v1/subscriptions");
  return json.data.map(({ id, attributes }: { id: string; attributes: object }) => {
    const { user_subscribed_at: _, ...rest } = attributes as Record<string, unknown>;
    return { id, ...rest };
  });
}

/** Subscribed to feeds with these titles, in this order. */
async function serverWith(titles: Readonly<Record<string, string>>): Promise<TestServer> {
  const server = await startServer();
  for (const [url, title] of Object.entries(titles)) {
    await subscribe(server, [url]);
    await learn(server.store, url, { title, status: "ok" });
  }
  return server;
}

const update = ({ operate }: TestServer, id: string, attributes: object) =>
  operate([{ op: "update", data: { type: "subscription", id, attributes } }]);

describe("moves", { concurrency: 2 }, () => {
  test("moves: the feed URL is edited → says what apps do; undone and forgotten with the former URLs", async (t) => {
    const server = await serverWith({ [A]: "Ay" });
    const { page, allow, finish } = await visit({ server });
    allow(/ERR_INTERNET_DISCONNECTED/);
    const [before] = await subscriptionsOf(server);
    const urls = async () => {
      const [{ feed_url, former_feed_urls } = { feed_url: "" }] = await subscriptionsOf(server);
      return [feed_url, former_feed_urls];
    };
    await until(() => hosts(page), ["Ay"]);
    await open(page, "Ay");
    await t.test("moves: an invalid URL → the reason at the field, and nothing changes", async () => {
      await button(page, moves.changeUrl).click();
      await hasEffect(page);
      assert.equal(await field(page).inputValue(), A);
      await field(page).fill("ftp://feeds.example/a");
      await page.keyboard.press("Enter");
      await panel(page).getByRole("alert").getByText(en.errors["feed-url-not-http"]).waitFor();
      await assertAccessible(page);
      assert.deepEqual(await urls(), [A, undefined]);
      assert.equal(await page.locator(".refusals").count(), 0);
    });

    await t.test("moves: a new URL → saved, and the old one is a former URL", async () => {
      await field(page).fill(B);
      await button(page, en.apps.save).click();
      await until(urls, [B, [A]]);
      await former(page).click();
      await panel(page).getByText(moves.formerHint).waitFor();
      await assertAccessible(page);
    });

    await t.test("moves: the list is searched by a former URL → the podcast", async () => {
      await page.keyboard.press("Escape");
      const search = page.getByRole("searchbox", { name: en.list.search });
      await search.fill("feeds.example/a");
      await until(async () => (await hosts(page)).length, 1);
      await search.fill("none.example");
      await until(async () => (await hosts(page)).length, 0);
      await search.fill("");
      await rows(page).getByRole("button").first().click();
      await former(page).click();
    });

    await t.test("moves: a former URL added without a connection → nothing is added", async () => {
      await page.keyboard.press("Escape");
      await openAddMany(page);
      await page.context().setOffline(true);
      await page.getByLabel(en.add.label).fill(A);
      await button(page, format(en.add.submit, { n: 1 })).click();
      await status(page, format(en.add.done, { added: 0, existing: 1, rejected: 0 })).waitFor();
      await page.context().setOffline(false);
      await link(page, en.views.list).click();
      await rows(page).getByRole("button").first().click();
      await former(page).click();
    });

    await t.test("moves: a former URL used again → asked before, then the same subscription as before", async () => {
      const again = button(page, format(moves.useLabel, { url: "feeds.example/a" }));
      await again.click();
      assert.equal(await field(page).inputValue(), A);
      await hasEffect(page);
      await button(page, en.cancel).click();
      assert.deepEqual(await urls(), [B, [A]]);
      await former(page).click();
      await again.click();
      await button(page, en.apps.save).click();
      await until(urls, [A, [B]]);
      assert.equal((await subscriptionsOf(server))[0]?.id, before?.id);
    });

    await t.test("moves: former URLs forgotten → they can be subscribed to separately", async () => {
      await former(page).click();
      await button(page, moves.forget).click();
      await former(page).waitFor({ state: "detached" });
      await until(urls, [A, undefined]);
      await subscribe(server, [B]);
      assert.deepEqual(await feedsOf(server), [A, B]);
    });
    await finish();
  });

  test("moves: a private feed → its former URLs are masked", async () => {
    const server = await serverWith({ [`${A}?auth=secret-one`]: "Private" });
    const [{ id } = { id: "" }] = await subscriptionsOf(server);
    await update(server, id, { feed_url: `${A}?auth=secret-two` });
    const { page, finish } = await visit({ server, at: "history", theme: "dark" });
    await page.locator("summary").click();
    await page.getByText(format(moves.before, { url: `${A}?auth=•••` })).waitFor();
    assert.doesNotMatch(await allTexts(page), /secret-(one|two)/);
    await link(page, en.import.seeList).click();
    await rows(page).getByRole("button").first().click();
    await former(page).click();
    assert.doesNotMatch(await allTexts(page), /secret-(one|two)/);
    await panel(page).locator("details").getByRole("button", { name: en.list.showSecrets }).click();
    await panel(page).getByText("secret-one").waitFor();
    await finish();
  });

  test("moves: merging on a phone → says what happens, one subscription is left, and undo", async (t) => {
    const server = await serverWith({ [B]: "News", [A]: "Tea", [C]: "Tea" });
    const before = (await subscriptionsOf(server)) as [Listed, Listed, Listed];
    const [news, tea, other] = before;
    const both = [news, { ...tea, title: "My tea", folders: ["Drinks"] }, other];
    const merged = { ...other, title: "My tea", folders: ["Drinks"], former_feed_urls: [A] };
    const { page, finish } = await visit({ server, size: "phone" });
    await until(() => hosts(page), ["Tea", "Tea", "News"]);
    const choices = () => panel(page).locator("label:has([type=radio])").allTextContents();
    await t.test("moves: “Merge into…” → offers the same title first, and finds others by name or URL", async () => {
      await open(page, "Tea");
      await button(page, moves.mergeInto).click();
      await until(() => page.evaluate("document.activeElement.type"), "search");
      await until(choices, ["Tea feeds.example/a", "News feeds.example/b"]);
      await panel(page).getByRole("searchbox", { name: moves.target }).fill("feeds.example/B");
      await until(choices, ["News feeds.example/b"]);
      await panel(page).getByRole("radio").check();
      await panel(page)
        .getByText(format(moves.mergeEffect, { into: "News" }))
        .waitFor();
      await hasEffect(page);
      await assertAccessible(page);
      await button(page, en.cancel).click();
      assert.deepEqual(await subscriptionsOf(server), before);
      await page.keyboard.press("Escape");
    });

    const mergeByUrl = async () => {
      await open(page, "My tea");
      await button(page, moves.changeUrl).click();
      await field(page).fill(C);
      await button(page, en.apps.save).click();
      await panel(page)
        .getByText(format(en.podcasts.conflict, { name: "Tea" }))
        .waitFor();
      await hasEffect(page);
      await button(page, moves.merge).click();
      await status(page, format(moves.merged, { name: "Tea" })).waitFor();
      await panel(page).waitFor({ state: "detached" });
    };
    await t.test("moves: a URL that another subscription has → merged, and undone from the notice", async () => {
      await update(server, tea.id, { title: "My tea", folders: ["Drinks"] });
      await mergeByUrl();
      assert.deepEqual(await subscriptionsOf(server), [news, merged]);
      await button(page, en.list.undo).click();
      await status(page, en.list.undone).waitFor();
      assert.deepEqual((await subscriptionsOf(server)).toSorted(byUrl), both.toSorted(byUrl));
    });

    await t.test("moves: the other podcast was removed meanwhile → an error, and nothing is removed", async () => {
      await open(page, "My tea");
      await button(page, moves.mergeInto).click();
      await panel(page).getByRole("radio", { name: "Tea" }).check();
      await server.call("DELETE", `/v1/subscriptions/${other.id}`);
      await until(() => hosts(page), ["My tea", "News"]);
      await button(page, moves.merge).click();
      await panel(page).getByRole("alert").getByText(en.errors["not-found"]).waitFor();
      assert.equal((await subscriptionsOf(server)).length, 2);
    });
    await finish();
  });

  test("moves: moved by the user and by the server → listed with the last one first, and undone", async () => {
    const server = await serverWith({ [A]: "Ay", [B]: "Bee", [C]: "Sea" });
    const all = (await subscriptionsOf(server)) as [Listed, Listed, Listed];
    const [one, two, three] = all;
    await update(server, two.id, { feed_url: `${B}/2` });
    const followMove = (from: string, to: string) => {
      const [feed, target] = [from, to].map((url) => feedKeyHex(url.replace("https://", ""))) as [string, string];
      const move = { kind: "follow", feed, to: { feed: target, url: to } } as const;
      return server.store.move(asUser(LOCAL_USER), move, new Date());
    };
    await followMove(A, `${A}/2`);
    await server.call("DELETE", `/v1/subscriptions/${three.id}`);
    const { page, finish } = await visit({ server, at: "history", size: "phone", theme: "dark" });
    const moved = (n: number) => page.getByRole("list", { name: format(moves.moved, { n }) });
    await page
      .locator("summary")
      .getByText(format(moves.moved, { n: 2 }))
      .click();
    await until(() => moved(2).locator(".url").allTextContents(), [`${A}/2`, `${B}/2`]);
    await page.getByText(moves.replaced).waitFor();
    await assertAccessible(page);
    await moved(2).getByRole("button").first().click();
    await until(() => moved(1).locator(".url").allTextContents(), [`${B}/2`]);
    const undone = { ...one, former_feed_urls: [`${A}/2`] };
    await until(async () => (await subscriptionsOf(server))[0], undone);
    await followMove(A, `${A}/2`);
    assert.deepEqual((await subscriptionsOf(server))[0], undone, "not followed again");
    await moved(1).getByRole("button").click();
    await moved(1).waitFor({ state: "detached" });
    await until(() => feedsOf(server), [A, B]);
    assert.equal((await page.getByRole("list", { name: en.history.title }).getByRole("listitem").count()) > 0, true);
    await finish();
  });

  test("moves: long names and URLs on a phone → nothing is wider than the screen", async () => {
    const long = (name: string) => `${FEED}${name}/${"path/".repeat(50)}${"W".repeat(100)}.xml`;
    const server = await serverWith({ [A]: "\u05d0".repeat(300), [long("one")]: "W".repeat(300) });
    const [, { id }] = (await subscriptionsOf(server)) as [Listed, Listed];
    await update(server, id, { feed_url: long("two") });
    await learn(server.store, long("two"), { title: "W".repeat(300), status: "ok" });
    const { page, finish } = await visit({ server, size: "phone" });
    const over = () =>
      page.evaluate(`Math.max(...[...document.querySelectorAll(":root, dialog")]
        .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`);
    await until(async () => (await hosts(page)).length, 2);
    await rows(page).first().getByRole("button").first().click();
    await former(page).click();
    await panel(page).getByText(moves.formerHint).waitFor();
    assert.equal(await over(), 0);
    await button(page, moves.mergeInto).click();
    await panel(page).getByRole("radio").check();
    await panel(page).getByText(moves.replaced).waitFor();
    assert.equal(await over(), 0);
    await page.keyboard.press("Escape");
    await rows(page).last().getByRole("button").first().click();
    await button(page, moves.mergeInto).click();
    await panel(page).getByRole("radio").check();
    assert.equal(await over(), 0);
    await page.keyboard.press("Escape");
    await link(page, en.history.title).click();
    await page.locator("summary").click();
    await page.getByText(moves.movedLead).waitFor();
    assert.equal(await over(), 0);
    await finish();
  });

  test("moves: the switch in the settings → stored on the server, and back if that fails", async () => {
    const { page, server, allow, finish } = await visit({ size: "phone" });
    allow(/^response: 503 PATCH \S+\/v1\/me/);
    const follow = page.getByRole("checkbox", { name: en.settings.followMoves });
    const stored = async () => (await server.call("GET", "/v1/me")).json.data.attributes.follow_moves;
    await openSettings(page);
    assert.equal(await follow.isChecked(), true);
    await page.getByText(en.settings.followHint).waitFor();
    await assertAccessible(page);
    await follow.uncheck();
    await until(stored, false);
    await page.reload();
    await openSettings(page);
    await until(() => follow.isChecked(), false);
    await page.route("**/v1/me", (route) =>
      route.request().method() === "PATCH" ? route.fulfill({ status: 503, body: "{}" }) : route.continue(),
    );
    await follow.click();
    await page.getByRole("alert").getByText(en.failure.busy).waitFor();
    assert.equal(await follow.isChecked(), false);
    await page.unroute("**/v1/me");
    await follow.check();
    await until(stored, true);
    await page.getByRole("alert").waitFor({ state: "detached" });
    await finish();
  });
});

const byUrl = (one: Listed, other: Listed) => one.feed_url.localeCompare(other.feed_url);
