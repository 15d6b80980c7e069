import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { de } from "../web/src/words/de.ts";
import { en } from "../web/src/words/en.ts";
import { es } from "../web/src/words/es.ts";
import { fr } from "../web/src/words/fr.ts";
import { zh } from "../web/src/words/zh.ts";
import { inviteTo, newToken, signIn } from "./support/accounts.ts";
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
  SIGNED_OUT,
  server,
  showView,
  until,
  visit,
} from "./support/page-accounts.ts";
import { start } from "./support/process.ts";
import { startServer, type TestServer, temporaryFolder } from "./support/server.ts";

const { account, errors, list } = en;
const closed = await startServer({ EARMARK_ACCOUNTS: "true" });

describe("sign-in", { concurrency: 3 }, () => {
  test("sign-in: correct credentials → the list, also after a reload", async () => {
    const ann = await newUser(["https://ann.example/feed"]);
    const { page, finish } = await visit();
    await heading(page, account.signIn).waitFor();
    // Phone keyboards capitalize names and add a space after them.
    await fill(page, { name: `${ann.name.toUpperCase()} `, password: ann.password });
    await button(page, account.signIn).click();
    await page.getByText("ann.example", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("ann.example", { exact: true }).waitFor();
    await finish();
  });

  test("sign-in: wrong password or unknown name → the same error at the field", async () => {
    const ann = await newUser();
    const { page, allow, finish } = await visit();
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
    await fill(page, ann);
    await button(page, account.signIn).click();
    await heading(page, list.emptyTitle).waitFor();
    await finish();
  });

  test("sign-in: too many attempts → says when to try again, and keeps what was typed", async () => {
    const ann = await newUser();
    await Promise.all(
      Array.from({ length: 11 }, () => signIn(server.port, { ...ann, password: "a guess" }).catch(() => "")),
    );
    const { page, allow, finish } = await visit();
    allow(/^response: 429 POST \S+\/v1\/sessions$/);
    await fill(page, ann);
    await button(page, account.signIn).click();
    const text = (await page.getByRole("alert").textContent()) ?? "";
    const seconds = Number(/\d+/.exec(text)?.[0]);
    assert.equal(text, account.tooManyAttempts(String(seconds)));
    assert.ok(seconds > 0 && seconds <= 120, text);
    assert.equal(await field(page, account.user).inputValue(), ann.name);
    assert.equal(await field(page, account.password).inputValue(), ann.password);
    assert.ok(await isFocused(button(page, account.signIn)));
    await finish();
  });

  test("sign-in: server unreachable → an error, and a retry with what was typed works", async () => {
    const ann = await newUser();
    const { page, allow, finish } = await visit();
    allow(/^failed: POST \S+\/v1\/sessions net::ERR_CONNECTION_REFUSED$/);
    await fill(page, ann);
    await page.route("**/v1/sessions", (route) => route.abort("connectionrefused"));
    await button(page, account.signIn).click();
    await page.getByRole("alert").getByText(en.failure.unreachable).waitFor();
    assert.equal(await field(page, account.user).inputValue(), ann.name);
    await page.unroute("**/v1/sessions");
    await button(page, account.signIn).click();
    await heading(page, list.emptyTitle).waitFor();
    await finish();
  });

  test("sign-in: server unreachable for long at the start → the list once it responds", async () => {
    const ann = await newUser(["https://ann.example/feed"]);
    const { page, allow, finish } = await visit({ as: ann, path: "/docs" });
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
    await wait(() => page.getByText("ann.example", { exact: true }).isVisible(), "the list is loaded");
    await finish();
  });

  test("sign-up: invalid name, taken name, common password → an error at the field, then an account", async () => {
    const ann = await newUser();
    const { page, allow, finish } = await visit();
    allow(/^response: (409|422) POST \S+\/v1\/accounts$/);
    await button(page, account.create).click();
    await heading(page, account.joinTitle).waitFor();
    const cases: readonly [name: string, password: string, at: string, text: string][] = [
      ["Ännchen", PASSWORD, account.user, errors["invalid-name"]],
      [ann.name, PASSWORD, account.user, errors["name-taken"]],
      ["newcomer", "password123", account.password, errors["invalid-password"]],
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
    await page.getByRole("status").getByText(account.welcome("newcomer")).waitFor();
    await showView(page, "account");
    await page.getByText("newcomer", { exact: true }).waitFor();
    await finish();
  });

  test("sign-up: closed without an invitation → says what to do", async () => {
    const { page, allow, finish } = await visit({ server: closed });
    await page.getByText(account.firstTimeClosed).waitFor();
    assert.equal(await button(page, account.create).count(), 0);
    // An invitation link without its secret.
    allow(/^response: 403 POST \S+\/v1\/accounts$/);
    await page.goto("/join");
    await fill(page, { name: "ann", password: PASSWORD });
    await button(page, account.join).click();
    await page.getByRole("alert").getByText(errors["sign-up-closed"]).waitFor();
    await finish();
  });

  test("invitation: the link printed at startup, below a base path → one account and no leaked secret", async () => {
    const { url, output } = await start({
      EARMARK_ACCOUNTS: "true",
      EARMARK_BASE_PATH: "/pods",
      DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
    });
    const { origin } = new URL(url);
    await until(async () => output().includes("#emi_"), "the link is printed");
    const [link = ""] = /http\S+#emi_[\w-]+/.exec(output()) ?? [];
    await join({ url: origin }, link, "/pods");
  });

  test("invitation: a link from the administrator → one account and no leaked secret", async () => {
    await join(closed, `${closed.url}/join#${await inviteTo(closed.store)}`, "");
  });

  test("invitation: opened while signed in → says how to use it", async () => {
    const ann = await newUser();
    const { page, finish } = await visit({ as: ann, path: "/join#emi_unused" });
    await page.getByRole("status").getByText(account.alreadySignedIn(ann.name)).waitFor();
    await finish();
  });

  test("token: the link of a token's QR code → the secret leaves the address bar at once", async () => {
    const ann = await newUser();
    const { token } = await newToken(server.port, ann, { label: "phone", scope: "read" });
    const { page, context, finish } = await visit({ as: ann, path: `/#${token}` });
    await heading(page, list.emptyTitle).waitFor();
    assert.equal(page.url(), `${server.url}/`);
    await showView(page, "account");
    await page.goto(`/#${token}`);
    await heading(page, list.emptyTitle).waitFor();
    assert.equal(page.url(), `${server.url}/`);
    await page.goBack();
    await heading(page, account.title).waitFor();
    for (const tab of context.pages()) assert.ok(!(await pageContents(tab)).includes(token));
    await finish();
  });

  test("sign-in: another language → all texts and errors in it", async () => {
    for (const [language, words] of Object.entries({ de, es, fr, zh })) {
      const { page, allow, finish } = await visit({ locale: language });
      allow(/^response: 401 POST \S+\/v1\/sessions$/);
      await heading(page, words.account.signIn).waitFor();
      assert.equal(await page.evaluate("document.documentElement.lang"), language);
      assert.match(await page.title(), new RegExp(words.account.signIn));
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
      await finish();
    }
  });
});

/** Creates an account by an invitation link, and checks that its secret is sent once and left nowhere. */
async function join(server: Pick<TestServer, "url">, link: string, base: string): Promise<void> {
  const [, secret = ""] = link.split("#");
  const { page, context, allow, finish } = await visit({ server, path: "/healthz" });
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
  assert.equal(page.url(), `${server.url}${base}/`);
  assert.ok(!(await pageContents(page)).includes(secret));
  await fill(page, { name: "first", password: PASSWORD });
  await button(page, account.join).click();
  await heading(page, list.emptyTitle).waitFor();
  await page.getByRole("status").getByText(account.welcome("first")).waitFor();
  assert.equal(await page.getByText(account.alreadySignedIn("first")).count(), 0);
  await page.reload();
  await heading(page, list.emptyTitle).waitFor();
  assert.equal(page.url(), `${server.url}${base}/`);
  assert.ok(!(await pageContents(page)).includes(secret));
  await Promise.all(checks);
  assert.deepEqual(leaks, []);
  assert.deepEqual(uses, [`POST ${server.url}${base}/v1/accounts`]);
  await page.goBack();
  assert.ok(!page.url().includes(secret));
  allow(SIGNED_OUT);
  await finish();

  const late = await visit({ server, path: link });
  late.allow(/^response: 403 POST \S+\/v1\/accounts$/);
  await fill(late.page, { name: "second", password: PASSWORD });
  await button(late.page, account.join).click();
  await late.page.getByRole("alert").getByText(errors["invalid-invitation"]).waitFor();
  assert.equal(await field(late.page, account.user).inputValue(), "second");
  await late.finish();
}
