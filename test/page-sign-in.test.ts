import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { inviteTo, newToken, signIn } from "./support/accounts.ts";
import type { WatchedPage } from "./support/browser.ts";
import {
  assertFieldError,
  assertNoOverflow,
  button,
  field,
  fill,
  heading,
  isFocused,
  matches,
  newUser,
  PASSWORD,
  pageContents,
  server,
  showView,
  until,
  visit,
} from "./support/page-accounts.ts";
import { start } from "./support/process.ts";
import { startServer, temporaryFolder } from "./support/server.ts";
import { de, en, es, format, fr, type Words, zh } from "./support/words.ts";

const { account, errors, list } = en;
const closed = await startServer({ EARMARK_ACCOUNTS: "true" });

describe("sign-in", { concurrency: 3 }, () => {
  test("one browser that is not signed in", async (t) => {
    const ann = await newUser(["https://ann.example/feed"]);
    const { page, allow, finish } = await visit();

    await t.test(
      "sign-up: invalid name, taken name, bad password → an error next to the field, then an account",
      async () => {
        allow(/^response: (409|422) POST \S+\/v1\/accounts$/);
        await button(page, account.create).click();
        await heading(page, account.joinTitle).waitFor();
        const cases: readonly [name: string, password: string, at: string, text: string][] = [
          ["Ännchen", PASSWORD, account.user, errors["invalid-name"]],
          [ann.name, PASSWORD, account.user, errors["name-taken"]],
          ["newcomer", "password123", account.password, en.passwordProblems["too-common"]],
          ["newcomer", "newcomer", account.password, en.passwordProblems["same-as-name"]],
          // Browsers count an emoji as two characters.
          ["newcomer", "🎧🎤🎧🎤", account.password, en.passwordProblems["too-short"]],
        ];
        for (const [name, password, at, text] of cases) {
          await fill(page, { name, password });
          await button(page, account.join).click();
          await assertFieldError(field(page, at), text);
          assert.equal(await field(page, account.user).inputValue(), name);
          assert.equal(await field(page, account.password).inputValue(), password);
        }
        // Browsers check the length by themselves.
        await field(page, account.password).fill("short");
        await button(page, account.join).click();
        assert.ok(await matches(field(page, account.password), ":invalid"));
        assert.ok(await isFocused(field(page, account.password)));
        await fill(page, { name: "newcomer", password: PASSWORD });
        await button(page, account.join).click();
        await heading(page, list.emptyTitle).waitFor();
        await assertWelcome(page, "newcomer");
        await showView(page, "account");
        await page.getByText("newcomer", { exact: true }).waitFor();
        await button(page, account.signOut).click();
        await heading(page, account.signIn).waitFor();
      },
    );

    await t.test("passkeys: IP address as host → not offered", async () => {
      const isLoaded = () =>
        page.evaluate<boolean>(
          `performance.getEntriesByType("resource").some(({ name }) => name.includes("passwordless-"))`,
        );
      await until(isLoaded, "other ways to sign in are loaded");
      assert.equal(await button(page, account.usePasskey).count(), 0);
    });

    await t.test("sign-in: wrong password or unknown name → the same error next to the field", async () => {
      allow(/^response: 401 POST \S+\/v1\/sessions$/);
      for (const name of [ann.name, "unknown-name"]) {
        await fill(page, { name, password: "not the password" });
        await button(page, account.signIn).click();
        await assertFieldError(field(page, account.password), errors["sign-in-failed"]);
        assert.equal(await field(page, account.user).inputValue(), name);
        assert.equal(await page.getByText(errors["sign-in-failed"]).count(), 1);
      }
      // An error of the sign-in form does not stay on the sign-up form.
      await button(page, account.create).click();
      await page.getByText(errors["sign-in-failed"]).waitFor({ state: "detached" });
      await button(page, account.haveOne).click();
    });

    await t.test("sign-in: too many attempts → says when to try again, and keeps what was typed", async () => {
      const bob = await newUser();
      await Promise.all(
        Array.from({ length: 11 }, () => signIn(server.port, { ...bob, password: "a guess" }).catch(() => "")),
      );
      allow(/^response: 429 POST \S+\/v1\/sessions$/);
      await fill(page, bob);
      await button(page, account.signIn).click();
      const text = (await page.getByRole("alert").textContent()) ?? "";
      const seconds = Number(/\d+/.exec(text)?.[0]);
      assert.equal(text, format(account.tooManyAttempts, { seconds: String(seconds) }));
      assert.ok(seconds > 0 && seconds <= 120, text);
      assert.equal(await field(page, account.user).inputValue(), bob.name);
      assert.equal(await field(page, account.password).inputValue(), bob.password);
      assert.ok(await isFocused(button(page, account.signIn)));
    });

    await t.test("sign-in: server unreachable → an error, and a retry with what was typed works", async () => {
      allow(/^failed: POST \S+\/v1\/sessions net::ERR_CONNECTION_REFUSED$/);
      // Phone keyboards capitalize names and add a space after them.
      const typed = `${ann.name.toUpperCase()} `;
      await fill(page, { name: typed, password: ann.password });
      await page.route("**/v1/sessions", (route) => route.abort("connectionrefused"));
      await button(page, account.signIn).click();
      await page.getByRole("alert").getByText(en.failure.unreachable).waitFor();
      assert.equal(await field(page, account.user).inputValue(), typed);
      await page.unroute("**/v1/sessions");
      await button(page, account.signIn).click();
      await showView(page, "list");
      await page.getByText("ann.example", { exact: true }).waitFor();
    });

    await t.test("sign-in: correct credentials → the list, also after a reload", async () => {
      await page.reload();
      await page.getByText("ann.example", { exact: true }).waitFor();
    });
    await finish();
  });

  test("one browser that is signed in", async (t) => {
    const ann = await newUser();
    const { token } = await newToken(server.port, ann, { label: "phone", scope: "read" });
    const { page, context, allow, finish } = await visit({ as: ann, path: "/healthz" });

    await t.test("sign-in: server unreachable for long at the start → the list once it responds", async () => {
      allow(/^failed: GET \S+\/v1\/me /);
      let tries = 0;
      await page.route("**/v1/me", (route) => {
        tries += 1;
        return route.abort("connectionrefused");
      });
      await page.clock.install();
      await page.goto("/");
      await page.getByText(en.connection.unreachable).waitFor();
      const wait = (condition: () => Promise<boolean>, what: string) =>
        until(async () => {
          await page.clock.fastForward(20_000);
          return condition();
        }, what);
      // More often than the retries of a single request.
      await wait(async () => tries > 6, "retried");
      await page.unroute("**/v1/me");
      await wait(() => heading(page, list.emptyTitle).isVisible(), "the list is loaded");
    });

    await t.test("invitation: opened while signed in → says how to use it", async () => {
      await page.goto("/join#emi_unused");
      await page
        .getByRole("status")
        .getByText(format(account.alreadySignedIn, { name: ann.name }))
        .waitFor();
    });

    await t.test("token: the link of a token's QR code → the secret leaves the address bar at once", async () => {
      await page.goto("/healthz");
      await page.goto(`/#${token}`);
      await heading(page, list.emptyTitle).waitFor();
      assert.equal(page.url(), `${server.url}/`);
      await showView(page, "account");
      await page.goto(`/#${token}`);
      await heading(page, list.emptyTitle).waitFor();
      assert.equal(page.url(), `${server.url}/`);
      await page.goBack();
      await heading(page, account.title).waitFor();
      for (const tab of context.pages()) assert.ok(!(await pageContents(tab)).includes(token));
    });
    await finish();
  });

  test("invitation: the link printed at startup, under a base path → one account and no leaked secret", async () => {
    const { url, output } = await start({
      EARMARK_ACCOUNTS: "true",
      EARMARK_BASE_PATH: "/pods",
      DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
    });
    const { origin } = new URL(url);
    await until(async () => output().includes("#emi_"), "the link is printed");
    const [link = ""] = /http\S+#emi_[\w-]+/.exec(output()) ?? [];
    const watched = await visit({ server: { url: origin }, path: "/healthz" });
    await join(watched, link, `${origin}/pods`);
    await watched.finish();
  });

  test("closed sign-up", async (t) => {
    const watched = await visit({ server: closed, path: "/healthz" });
    const { page, allow, finish } = watched;

    await t.test("invitation: a link from the administrator → one account and no leaked secret", async () => {
      await join(watched, `${closed.url}/join#${await inviteTo(closed.store)}`, closed.url);
    });

    await t.test("sign-up: closed without an invitation → says what to do", async () => {
      await page.goto("/");
      await page.getByText(account.firstTimeInviteOnly).waitFor();
      assert.equal(await button(page, account.create).count(), 0);
      // An invitation link without its secret.
      allow(/^response: 403 POST \S+\/v1\/accounts$/);
      await page.goto("/join");
      await fill(page, { name: "ann", password: PASSWORD });
      await button(page, account.join).click();
      await page.getByRole("alert").getByText(errors["sign-up-closed"]).waitFor();
    });
    await finish();
  });

  test("sign-in: another language → all texts and errors in it", async () => {
    const { page, allow, finish } = await visit({ locale: "de" });
    allow(/^response: 401 POST \S+\/v1\/sessions$/);
    let before: Words = de;
    for (const [language, words] of Object.entries({ de, es, fr, zh })) {
      if (words !== de) {
        await button(page, before.settings.title).click();
        await page.getByLabel(before.settings.language).selectOption(language);
        await button(page, words.close).click();
        before = words;
      }
      await heading(page, words.account.signIn).waitFor();
      assert.equal(await page.evaluate("document.documentElement.lang"), language);
      await until(async () => (await page.title()).includes(words.account.signIn), "the title");
      await page.getByText(words.account.firstTime).waitFor();
      await field(page, words.account.user).fill("nobody");
      await field(page, words.account.password).fill("not the password");
      await button(page, words.account.signIn).click();
      await assertFieldError(field(page, words.account.password), words.errors["sign-in-failed"]);
      await assertNoOverflow(page);
      await button(page, words.account.create).click();
      await heading(page, words.account.joinTitle).waitFor();
      await page.getByText(words.account.passwordHint).waitFor();
      await assertNoOverflow(page);
      await button(page, words.account.haveOne).click();
    }
    await finish();
  });
});

/** The welcome stands in the page, since a notice would cover what the empty list offers. */
async function assertWelcome(page: Page, name: string): Promise<void> {
  await page.getByRole("main").getByText(format(account.welcome, { name })).waitFor();
  assert.equal(await page.locator(".notice").count(), 0);
}

/** Creates an account by an invitation link, and checks that its secret is sent only to be checked and used, and left nowhere. */
async function join({ page, context, allow }: WatchedPage, link: string, root: string): Promise<void> {
  const [, secret = ""] = link.split("#");
  const leaks: string[] = [];
  const uses: string[] = [];
  const checks: Promise<void>[] = [];
  context.on("request", (request) => {
    const check = async () => {
      const sent = [request.url(), ...Object.entries(await request.allHeaders()).flat()].join("\n");
      // Playwright reports the URL with its fragment, which browsers do not send.
      if (sent.replace(link, "").includes(secret)) leaks.push(sent);
      if (request.postData()?.includes(secret)) uses.push(`${request.method()} ${request.url()}`);
    };
    checks.push(check());
  });
  await page.goto(link);
  await heading(page, account.joinTitle).waitFor();
  assert.equal(page.url(), `${root}/`);
  assert.ok(!(await pageContents(page)).includes(secret));
  await fill(page, { name: "first", password: PASSWORD });
  await button(page, account.join).click();
  await heading(page, list.emptyTitle).waitFor();
  await assertWelcome(page, "first");
  assert.equal(await page.getByText(format(account.alreadySignedIn, { name: "first" })).count(), 0);
  await page.reload();
  await heading(page, list.emptyTitle).waitFor();
  assert.equal(page.url(), `${root}/`);
  assert.ok(!(await pageContents(page)).includes(secret));
  await Promise.all(checks);
  assert.deepEqual(leaks, []);
  assert.deepEqual(uses, [`POST ${root}/v1/invitation-checks`, `POST ${root}/v1/accounts`]);
  await page.goBack();
  assert.ok(!page.url().includes(secret));

  await page.goto(`${root}/#account`);
  await button(page, account.signOut).click();
  await heading(page, account.signIn).waitFor();
  // Before anything is typed.
  allow(/^response: 403 POST \S+\/v1\/invitation-checks$/);
  await page.goto(link);
  await page.getByRole("alert").getByText(errors["invalid-invitation"]).waitFor();
  assert.equal(await page.getByRole("textbox").count(), 0);
  await button(page, account.haveOne).click();
  await heading(page, account.signIn).waitFor();
  await field(page, account.user).waitFor();
}
