import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { guid } from "../client/src/index.ts";
import { newToken, type SignedIn } from "./support/accounts.ts";
import { openAddMany } from "./support/navigation.ts";
import { removeFrom } from "./support/page.ts";
import {
  assertFieldError,
  button,
  databaseContents,
  dialog,
  endSessions,
  feedsOf,
  field,
  fill,
  heading,
  newUser,
  pageContents,
  SIGNED_OUT,
  server,
  showView,
  signInAgain,
  until,
  visit,
} from "./support/page-accounts.ts";
import { en, format } from "./support/words.ts";

const { account, errors, list } = en;
/** With the same id for every user. */
const SHARED = "https://shared.example/feed";
const OFFLINE = /^failed: .*ERR_INTERNET_DISCONNECTED/;

/** Adds a feed without a connection, so that it is queued. */
async function saveOffline(page: Page, feed: string): Promise<void> {
  await openAddMany(page);
  await field(page, en.add.label).fill(feed);
  await page.context().setOffline(true);
  await button(page, format(en.add.submit, { n: 1 })).click();
  await page.getByText(format(en.add.saved, { n: 1 })).waitFor();
}

async function signInAs(page: Page, user: SignedIn): Promise<void> {
  await fill(page, user);
  await button(page, account.signIn).click();
}

async function assertNothingLeft(page: Page, { name }: SignedIn): Promise<void> {
  const left = (await pageContents(page)) + (await databaseContents(page));
  assert.doesNotMatch(left, new RegExp(`ann\\.example|${name}\\b`));
}

describe("sessions", { concurrency: 3 }, () => {
  test("signing out", async (t) => {
    const ann = await newUser(["https://ann.example/feed", "https://gone.example/feed"]);
    const bob = await newUser(["https://bob.example/feed"]);
    await newToken(server.port, ann, { label: "ann’s phone", scope: "read" });
    const { page, context, allow, finish } = await visit({ as: ann });
    const row = (host: string) => page.getByText(host, { exact: true });

    await t.test("sessions: signed out → nothing of the user is left, not even with the back button", async () => {
      await removeFrom(page, "gone.example");
      await page.getByText(list.undo).waitFor();
      await openAddMany(page);
      await field(page, en.add.label).fill("https://typed.example/feed");
      await showView(page, "apps");
      await page.getByText("ann’s phone").first().waitFor();
      await showView(page, "account");
      allow(SIGNED_OUT);
      await button(page, account.signOut).click();
      const isClean = async () => {
        await heading(page, account.signIn).waitFor();
        const left = (await pageContents(page)) + (await databaseContents(page));
        for (const trace of [ann.name, "ann.example", "gone.example", "typed.example", "ann’s phone"])
          assert.ok(!left.includes(trace), trace);
      };
      await isClean();
      await page.waitForURL(`${server.url}/`);
      for (let step = 0; step < 3; step += 1) {
        await page.goBack();
        await isClean();
      }
      // The removal could no longer be undone.
      assert.deepEqual(await feedsOf(ann), ["https://ann.example/feed"]);
    });

    await t.test("sessions: signed out when the session has already ended → no sign-in first", async () => {
      await signInAs(page, ann);
      await showView(page, "account");
      await page.getByText(account.here).first().waitFor();
      await endSessions(ann);
      // Works while the dialog, which appears by itself, covers the button.
      await button(page, account.signOut).dispatchEvent("click");
      await button(page, account.create).waitFor();
    });

    await t.test("sessions: page restored from the back/forward cache → hidden until the user is known", async () => {
      const comeBack = () => page.evaluate(`dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))`);
      await signInAs(page, ann);
      await row("ann.example").waitFor();
      await comeBack();
      await row("ann.example").waitFor();
      await endSessions(ann);
      await comeBack();
      await heading(page, account.signIn).waitFor();
      assert.doesNotMatch(await pageContents(page), new RegExp(`ann\\.example|${ann.name}`));
      await signInAs(page, bob);
      await row("bob.example").waitFor();
      assert.doesNotMatch(await pageContents(page), new RegExp(`ann\\.example|${ann.name}`));
    });

    await t.test(
      "sessions: the server is unreachable after a reload → the list, but not once the session has ended",
      async () => {
        allow(/^failed: /);
        // The page itself can be loaded.
        await context.route("**/v1/**", (route) => route.abort());
        await page.reload();
        await row("bob.example").waitFor();
        await endSessions(bob);
        await context.unroute("**/v1/**");
        await heading(page, account.signInAgain).waitFor();
        await context.route("**/v1/**", (route) => route.abort());
        await page.reload();
        await page.getByText(en.connection.unreachable).waitFor();
        assert.doesNotMatch(await pageContents(page), new RegExp(`bob\\.example|${bob.name}\\b`));
      },
    );
    await finish();
  });

  test("expired sessions", async (t) => {
    const ann = await newUser(["https://ann.example/feed", "https://two.example/feed"]);
    const [bob, carl] = [await newUser(["https://bob.example/feed"]), await newUser(["https://carl.example/feed"])];
    const { page, context, allow, finish } = await visit({ as: ann });
    allow(/^response: 401 /, OFFLINE);
    const row = (host: string) => page.getByText(host, { exact: true });

    await t.test("expired session: in the list → sign in and continue with the same search", async () => {
      await row("ann.example").waitFor();
      await page.getByRole("searchbox").fill("ann");
      await endSessions(ann);
      // Returning to the tab checks for changes.
      await page.evaluate(`document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))`);
      await heading(page, account.signInAgain).waitFor();
      assert.ok(await row("ann.example").isVisible());
      await signInAgain(page, ann);
      assert.equal(await page.getByRole("searchbox").inputValue(), "ann");
      await page
        .getByText(format(list.found, { n: 1 }), { exact: true })
        .first()
        .waitFor();
      assert.ok(await row("ann.example").isVisible());
      await page.getByRole("searchbox").fill("");
      await showView(page, "account");
      await page.getByText(account.here).first().waitFor();
    });

    await t.test("expired session: before a removal is sent → removed after signing in", async () => {
      await showView(page, "list");
      await removeFrom(page, "two.example");
      await button(page, list.undo).waitFor();
      await endSessions(ann);
      // The page may have noticed by itself, and covered the button.
      await button(page.getByRole("status"), en.close).dispatchEvent("click");
      await heading(page, account.signInAgain).waitFor();
      await signInAgain(page, ann);
      await until(async () => (await feedsOf(ann)).length === 1, "removed");
      assert.ok(await row("ann.example").isVisible());
      assert.equal(await row("two.example").count(), 0);
    });

    await t.test(
      "expired session: while adding → the dialog cannot be closed, and what was typed is sent after it",
      async () => {
        const feeds = ["https://one.example/feed", "https://two.example/feed", "not a URL"];
        await openAddMany(page);
        await field(page, en.add.label).fill(feeds.join("\n"));
        await endSessions(ann);
        await button(page, format(en.add.submit, { n: 3 })).dispatchEvent("click");
        await heading(page, account.signInAgain).waitFor();
        for (let press = 0; press < 4; press += 1) {
          await page.keyboard.press("Escape");
          await until(
            () => page.evaluate<boolean>(`document.querySelector("dialog:modal") !== null`),
            "the dialog stays open",
          );
        }
        assert.equal(await button(dialog(page), en.close).count(), 0);
        assert.equal(await field(dialog(page), account.user).inputValue(), ann.name);
        assert.equal(await field(dialog(page), account.user).isEditable(), false);
        await fill(dialog(page), { password: "not the password" });
        await button(dialog(page), account.signIn).click();
        await assertFieldError(field(dialog(page), account.password), errors["sign-in-failed"]);
        await signInAgain(page, ann);
        await page.getByText(format(en.add.done, { added: 2, existing: 0, rejected: 1 })).waitFor();
        assert.equal(await field(page, format(en.add.line, { n: 3 })).inputValue(), "not a URL");
        assert.deepEqual((await feedsOf(ann)).slice(1), feeds.slice(0, 2));
        await button(page, en.add.more).click();
      },
    );

    await t.test("expired session: during an import → it continues where it was", async () => {
      await showView(page, "import");
      const outlines = Array.from({ length: 1_000 }, (_, n) => `<outline xmlUrl="https://host${n}.example/feed"/>`);
      const buffer = Buffer.from(`<opml version="2.0"><body>${outlines.join("")}</body></opml>`);
      let requests = 0;
      // Before anything is sent: turning interception on aborts requests in flight.
      await page.route("**/v1/operations", async (route) => {
        requests += 1;
        if (requests === 3) await endSessions(ann);
        await route.continue();
      });
      await field(page, en.import.file).setInputFiles({ name: "podcasts.opml", mimeType: "text/x-opml", buffer });
      await button(page, format(en.import.start, { n: 1_000 })).click();
      await heading(page, account.signInAgain).waitFor();
      await page.getByText(format(en.import.running, { done: 500, total: 1_000 })).waitFor();
      await signInAgain(page, ann);
      await page.getByRole("status").getByText(en.import.done, { exact: true }).first().waitFor();
      assert.equal(requests, 5);
      await showView(page, "list");
      await page.getByText(format(en.count, { n: 1_003 }), { exact: true }).waitFor();
      assert.equal((await feedsOf(ann)).length, 1_003);
      await page.unroute("**/v1/operations");
    });

    await t.test("expired session: someone else signs in → nothing of the previous user is left or sent", async () => {
      await saveOffline(page, "https://saved-by-ann.example/feed");
      await endSessions(ann);
      await context.setOffline(false);
      await button(dialog(page), account.someoneElse).click();
      await button(page, account.create).waitFor();
      assert.doesNotMatch(await pageContents(page), new RegExp(`ann\\.example|${ann.name}\\b`));
      await signInAs(page, bob);
      await heading(page, en.add.title).waitFor();
      assert.equal(await field(page, en.add.label).inputValue(), "");
      await showView(page, "list");
      await row("bob.example").waitFor();
      await assertNothingLeft(page, ann);
      assert.deepEqual(await feedsOf(bob), ["https://bob.example/feed"]);
      assert.ok(!(await feedsOf(ann)).includes("https://saved-by-ann.example/feed"));
    });

    await t.test(
      "expired session: session cookie replaced by another user's → queued edits are not sent as that user",
      async () => {
        await saveOffline(page, "https://saved-by-bob.example/feed");
        await context.addCookies([{ name: "earmark", value: carl.session, url: server.url, httpOnly: true }]);
        await context.setOffline(false);
        await field(page, en.add.label).waitFor();
        await showView(page, "list");
        await row("carl.example").waitFor();
        await assertNothingLeft(page, bob);
        assert.deepEqual(await feedsOf(carl), ["https://carl.example/feed"]);
      },
    );
    await finish();
  });

  test("two tabs", async (t) => {
    const ann = await newUser(["https://ann.example/feed", SHARED], guid);
    const bob = await newUser(["https://bob.example/feed", SHARED], guid);
    const { page, context, allow, finish } = await visit({ as: ann });
    // The state of the list of one user is not one of the other's.
    allow(/^response: 401 /, /^response: 410 GET \S+\/v1\/changes/, OFFLINE);
    await page.getByText("ann.example", { exact: true }).waitFor();
    const openTab = async () => {
      const tab = await context.newPage();
      await tab.goto("/");
      return tab;
    };

    await t.test(
      "tabs: someone else signs in while a removal can be undone → nothing is removed for them",
      async () => {
        await removeFrom(page, "shared.example");
        await page.getByText(format(list.removed, { n: 1, name: "shared.example/feed" })).hover();
        // The cookie of the other user is set before this page learns of it.
        await context.addCookies([{ name: "earmark", value: bob.session, url: server.url, httpOnly: true }]);
        const tab = await openTab();
        await tab.getByText("shared.example", { exact: true }).waitFor();
        await page.getByText("shared.example", { exact: true }).waitFor();
        await showView(page, "account");
        await page.getByText(bob.name, { exact: true }).waitFor();
        assert.deepEqual(await feedsOf(ann), ["https://ann.example/feed"]);
        assert.ok((await feedsOf(bob)).includes(SHARED));
        await tab.close();
      },
    );

    await t.test("tabs: signed out in one → signed out in the other", async () => {
      const tab = await openTab();
      await showView(tab, "account");
      await button(tab, account.signOut).click();
      await heading(tab, account.signIn).waitFor();
      await heading(page, account.signIn).waitFor();
      assert.doesNotMatch(await pageContents(page), /bob\.example/);
      await tab.close();
    });

    await t.test("expired session: the same user signs in in another tab → queued edits are sent", async () => {
      await signInAs(page, ann);
      await showView(page, "list");
      await page.getByText("ann.example", { exact: true }).waitFor();
      await saveOffline(page, "https://saved-by-ann.example/feed");
      await endSessions(ann);
      await context.setOffline(false);
      await heading(page, account.signInAgain).waitFor();
      const tab = await openTab();
      await signInAs(tab, ann);
      await tab.getByText("saved-by-ann.example", { exact: true }).waitFor();
      await dialog(page).waitFor({ state: "detached" });
      await until(async () => (await feedsOf(ann)).includes("https://saved-by-ann.example/feed"), "sent");
      await button(page, en.add.more).click();
      await tab.close();
    });

    await t.test(
      "expired session: someone else signs in in another tab → this tab becomes theirs and sends nothing",
      async () => {
        const before = await Promise.all([ann, bob].map(feedsOf));
        await saveOffline(page, "https://queued-by-ann.example/feed");
        await endSessions(ann);
        await context.setOffline(false);
        await heading(page, account.signInAgain).waitFor();
        const tab = await openTab();
        await signInAs(tab, bob);
        await tab.getByText("bob.example", { exact: true }).waitFor();
        await dialog(page).waitFor({ state: "detached" });
        await showView(page, "list");
        await page.getByText("bob.example", { exact: true }).waitFor();
        await assertNothingLeft(page, ann);
        assert.deepEqual(await Promise.all([ann, bob].map(feedsOf)), before);
      },
    );
    await finish();
  });
});
