import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Locator, Page } from "playwright-core";
import { guid } from "../client/src/index.ts";
import { Accounts, isRefused } from "../src/accounts.ts";
import { asUser, everySubscription, type UserId } from "../src/subscriptions.ts";
import { isolate, revealControlCharacters } from "../web/src/control-characters.ts";
import { de } from "../web/src/words/de.ts";
import { en, type Words } from "../web/src/words/en.ts";
import { es } from "../web/src/words/es.ts";
import { fr } from "../web/src/words/fr.ts";
import { zh } from "../web/src/words/zh.ts";
import { newToken, type SignedIn, signIn, signUp } from "./accounts.ts";
import { assertAccessible, launch, type PageOptions, type WatchedPage } from "./browser.ts";
import { ATOMIC, add, newId, startServer, type TestServer, temporaryFolder } from "./harness.ts";
import { start } from "./process.ts";

const { account, apps, list } = en;
const PASSWORD = "correct horse battery";
const LOOKS: readonly (PageOptions & { readonly name: string })[] = (["phone", "desktop"] as const).flatMap((size) =>
  (["light", "dark"] as const).map((theme) => ({ size, theme, name: `${size}, ${theme}` })),
);
/** What a page hears that asks before anyone has signed in, or after. */
const SIGNED_OUT = /^answer: 401 GET \S+\/v1\/(me|subscriptions)\b/;

const browser = await launch();
const open = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });
const closed = await startServer({ EARMARK_ACCOUNTS: "true" });

let people = 0;
let turn = 0;

/** Somebody new, with these in the list. */
async function newPerson(feeds: readonly string[] = []): Promise<SignedIn> {
  people += 1;
  const person = await signUp(open.port, `person${people}`, PASSWORD);
  if (feeds.length > 0) {
    const body = JSON.stringify({ "atomic:operations": feeds.map((feed) => add(newId(), feed)) });
    const headers = { "Content-Type": ATOMIC, Accept: ATOMIC, Cookie: person.cookie };
    const { status } = await open.call("POST", "/v1/operations", { headers, body });
    assert.equal(status, 200);
  }
  return person;
}

async function userOf({ name }: SignedIn): Promise<UserId> {
  const found = await open.store.accounts.find(name, "");
  assert.ok(found !== undefined, name);
  return found.account.user;
}

/** The addresses that the server has in somebody's list. */
async function listOf(person: SignedIn): Promise<string[]> {
  const feeds: string[] = [];
  for await (const some of everySubscription(open.store, await userOf(person)))
    feeds.push(...some.map(({ feedUrl }) => feedUrl));
  return feeds;
}

/** Ends every session of somebody, as if their time were over. */
async function endSessions(person: SignedIn): Promise<void> {
  const { accounts } = open.store;
  const user = await userOf(person);
  for (const { id } of await accounts.listCredentials(user, "session"))
    await accounts.removeCredential(asUser(user), "session", id, new Date());
}

interface Visit extends PageOptions {
  readonly server?: Pick<TestServer, "url">;
  readonly as?: SignedIn;
  readonly path?: string;
}

/** A new browser at the page. Each has another size and theme, unless it is told. */
async function visit({ server = open, as, path = "/", ...look }: Visit = {}): Promise<WatchedPage> {
  const watched = await browser.newPage(server.url, { ...LOOKS[turn++ % LOOKS.length], ...look });
  watched.page.setDefaultTimeout(20_000);
  if (as === undefined) watched.allow(SIGNED_OUT);
  else await watched.context.addCookies([{ name: "earmark", value: as.session, url: server.url, httpOnly: true }]);
  await watched.page.goto(path);
  return watched;
}

const button = (page: Page | Locator, name: string) => page.getByRole("button", { name, exact: true });
const heading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true });
const field = (page: Page | Locator, label: string) => page.getByLabel(label, { exact: true });
const dialog = (page: Page) => page.getByRole("dialog");

async function go(page: Page, view: keyof Words["views"]): Promise<void> {
  await page.getByRole("navigation").getByRole("link", { name: en.views[view], exact: true }).click();
}

async function fill(page: Page | Locator, { name, password }: { name?: string; password: string }): Promise<void> {
  if (name !== undefined) await field(page, account.user).fill(name);
  await field(page, account.password).fill(password);
}

/** Signs in where the page asks for it in front of everything. */
async function signInAgain(page: Page, { password }: SignedIn): Promise<void> {
  await heading(page, account.signInAgain).waitFor();
  await fill(dialog(page), { password });
  await button(dialog(page), account.signIn).click();
  await dialog(page).waitFor({ state: "detached" });
}

async function until(isSo: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await isSo())) {
    assert.ok(Date.now() < end, `in vain: ${what}`);
    await sleep(25);
  }
}

const is = async (place: Locator, what: string) => (await place.and(place.page().locator(what)).count()) === 1;
const isFocused = (place: Locator) => is(place, ":focus");

/** The page says what is wrong with a field where it stands, and leads there. */
async function assertWrong(place: Locator, text: string): Promise<void> {
  const page = place.page();
  await page.getByText(text, { exact: true }).waitFor();
  await until(() => isFocused(place), `the focus is at what is wrong: ${text}`);
  assert.equal(await place.getAttribute("aria-invalid"), "true");
  const ids = (await place.getAttribute("aria-describedby"))?.split(" ") ?? [];
  const notes = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
  assert.ok(notes.includes(text), notes.join(" | "));
}

/** All that the page holds: what is seen, what is not, and what the browser remembers for it. */
const everything = (page: Page) =>
  page.evaluate<string>(`[document.documentElement.outerHTML, JSON.stringify({ ...localStorage }),
    JSON.stringify({ ...sessionStorage }), document.title, location.href,
    ...[...document.querySelectorAll("input, textarea")].map((field) => field.value)].join("\\n")`);

async function assertFits(page: Page): Promise<void> {
  const wide = await page.evaluate<string>(`[document.documentElement, ...document.querySelectorAll("dialog[open]")]
    .filter((place) => place.scrollWidth > place.clientWidth).map(({ innerText }) => innerText).join()`);
  assert.equal(wide, "", "nothing is wider than its place");
}

const isVisible = (place: Locator) => place.isVisible();

describe("whoever signs in", () => {
  test("comes to their list, and is still there after a reload", async () => {
    const ann = await newPerson(["https://ann.example/feed"]);
    const { page, finish } = await visit();
    await heading(page, account.signIn).waitFor();
    // The keyboards of phones put a blank behind a word.
    await fill(page, { name: `${ann.name.toUpperCase()} `, password: ann.password });
    await button(page, account.signIn).click();
    await page.getByText("ann.example", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("ann.example", { exact: true }).waitFor();
    await finish();
  });

  test("is told at the field that name or password is wrong, in the same words for a name that nobody has", async () => {
    const ann = await newPerson();
    const { page, allow, finish } = await visit();
    allow(/^answer: 401 POST \S+\/v1\/sessions$/);
    for (const name of [ann.name, "nobody-of-this-name"]) {
      await fill(page, { name, password: "not the password" });
      await button(page, account.signIn).click();
      await assertWrong(field(page, account.password), account.wrong);
      assert.equal(await field(page, account.user).inputValue(), name);
      assert.equal(await page.getByText(account.wrong).count(), 1);
    }
    // What was said of signing in is not true of making an account.
    await button(page, account.create).click();
    await page.getByText(account.wrong).waitFor({ state: "detached" });
    await button(page, account.haveOne).click();
    await fill(page, ann);
    await button(page, account.signIn).click();
    await heading(page, list.emptyTitle).waitFor();
    await finish();
  });

  test("after too many attempts is told at once when to come again", async () => {
    const ann = await newPerson();
    await Promise.all(
      Array.from({ length: 11 }, () => signIn(open.port, { ...ann, password: "a guess of somebody" }).catch(() => "")),
    );
    const { page, allow, finish } = await visit();
    allow(/^answer: 429 POST \S+\/v1\/sessions$/);
    await fill(page, ann);
    await button(page, account.signIn).click();
    const text = (await page.getByRole("alert").textContent()) ?? "";
    const seconds = Number(/\d+/.exec(text)?.[0]);
    assert.equal(text, account.often(String(seconds)));
    assert.ok(seconds > 0 && seconds <= 120, text);
    // Nothing is lost, and the keyboard is where it was.
    assert.equal(await field(page, account.user).inputValue(), ann.name);
    assert.equal(await field(page, account.password).inputValue(), ann.password);
    assert.ok(await isFocused(button(page, account.signIn)));
    await finish();
  });

  test("while the server is gone gets a kind word, and tries again with what was typed", async () => {
    const ann = await newPerson();
    const { page, allow, finish } = await visit();
    allow(/^failed: POST \S+\/v1\/sessions net::ERR_CONNECTION_REFUSED$/);
    await fill(page, ann);
    await page.route("**/v1/sessions", (route) => route.abort("connectionrefused"));
    await button(page, account.signIn).click();
    await page.getByRole("alert").getByText(en.trouble.failed).waitFor();
    assert.equal(await field(page, account.user).inputValue(), ann.name);
    await page.unroute("**/v1/sessions");
    await button(page, account.signIn).click();
    await heading(page, list.emptyTitle).waitFor();
    await finish();
  });

  test("comes in though the server was away for long when it was asked who is here", async () => {
    const ann = await newPerson(["https://ann.example/feed"]);
    const { page, allow, finish } = await visit({ as: ann, path: "/docs" });
    allow(/^failed: GET \S+\/v1\/me /);
    let tries = 0;
    await page.route("**/v1/me", (route) => {
      tries += 1;
      return route.abort("connectionrefused");
    });
    await page.clock.install();
    await page.goto("/");
    await page.getByText(en.trouble.unreachable).waitFor();
    const wait = (isSo: () => Promise<boolean>, what: string) =>
      until(async () => {
        await page.clock.fastForward(20_000);
        return isSo();
      }, what);
    // More than one request is sent again by itself.
    await wait(async () => tries > 6, "it is tried again");
    await page.unroute("**/v1/me");
    await wait(() => isVisible(page.getByText("ann.example", { exact: true })), "the list is there");
    await finish();
  });
});

describe("whoever is new", () => {
  test("makes an account, and is told at each field what is wrong with it", async () => {
    const ann = await newPerson();
    const { page, allow, finish } = await visit();
    allow(/^answer: (409|422) POST \S+\/v1\/accounts$/);
    await button(page, account.create).click();
    await heading(page, account.joinTitle).waitFor();
    const wrong: readonly [name: string, password: string, at: string, text: string][] = [
      ["Ännchen", PASSWORD, account.user, account.badName],
      [ann.name, PASSWORD, account.user, account.taken],
      ["newcomer", "password123", account.password, account.badPassword],
    ];
    for (const [name, password, at, text] of wrong) {
      await fill(page, { name, password });
      await button(page, account.join).click();
      await assertWrong(field(page, at), text);
      assert.equal(await field(page, account.user).inputValue(), name);
      assert.equal(await field(page, account.password).inputValue(), password);
    }
    // The browser itself says that it is too short, and leads there.
    await field(page, account.password).fill("short");
    await button(page, account.join).click();
    assert.ok(await is(field(page, account.password), ":invalid"));
    assert.ok(await isFocused(field(page, account.password)));
    await fill(page, { name: "newcomer", password: PASSWORD });
    await button(page, account.join).click();
    await heading(page, list.emptyTitle).waitFor();
    await go(page, "account");
    await page.getByText("newcomer", { exact: true }).waitFor();
    await finish();
  });

  test("on a server with closed sign-up reads what to do", async () => {
    const { page, allow, finish } = await visit({ server: closed });
    await page.getByText(account.firstTimeClosed).waitFor();
    assert.equal(await button(page, account.create).count(), 0);
    // A link that has lost its end.
    allow(/^answer: 403 POST \S+\/v1\/accounts$/);
    await page.goto("/join");
    await fill(page, { name: "ann", password: PASSWORD });
    await button(page, account.join).click();
    await page.getByRole("alert").getByText(account.closed).waitFor();
    await finish();
  });
});

/** Opens a link with a secret, joins, and holds the browser to where the secret may be. */
async function join(server: Pick<TestServer, "url">, link: string, base: string): Promise<void> {
  const [, secret = ""] = link.split("#");
  const { page, context, allow, finish } = await visit({ server, path: "/healthz" });
  const leaks: string[] = [];
  const uses: string[] = [];
  const asked: Promise<void>[] = [];
  context.on("request", (request) => {
    const look = async () => {
      const said = [request.url(), ...Object.entries(await request.allHeaders()).flat()].join("\n");
      // The browser's own address of the first page has the fragment, which is never sent.
      if (said.replace(link, "").includes(secret)) leaks.push(said);
      if (request.postData()?.includes(secret)) uses.push(`${request.method()} ${request.url()}`);
    };
    asked.push(look());
  });
  await page.goto(link);
  await heading(page, account.joinTitle).waitFor();
  assert.equal(page.url(), `${server.url}${base}/`);
  assert.ok(!(await everything(page)).includes(secret));
  await fill(page, { name: "first", password: PASSWORD });
  await button(page, account.join).click();
  await heading(page, list.emptyTitle).waitFor();
  await page.reload();
  await heading(page, list.emptyTitle).waitFor();
  assert.equal(page.url(), `${server.url}${base}/`);
  assert.ok(!(await everything(page)).includes(secret));
  await Promise.all(asked);
  assert.deepEqual(leaks, []);
  assert.deepEqual(uses, [`POST ${server.url}${base}/v1/accounts`]);
  // Nor has "back" anything of it.
  await page.goBack();
  assert.ok(!page.url().includes(secret));
  allow(SIGNED_OUT);
  await finish();

  const late = await visit({ server, path: link });
  late.allow(/^answer: 403 POST \S+\/v1\/accounts$/);
  await fill(late.page, { name: "second", password: PASSWORD });
  await button(late.page, account.join).click();
  await late.page.getByRole("alert").getByText(account.invitation).waitFor();
  assert.equal(await field(late.page, account.user).inputValue(), "second");
  await late.finish();
}

describe("a link with a secret", () => {
  test("that the server prints at its start makes the first account, once, below a base path", async () => {
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

  test("that invites somebody makes one account", async () => {
    const invitation = await new Accounts(closed.store.accounts, { signUp: false }).invite(7, new Date());
    assert.ok(!isRefused(invitation));
    await join(closed, `${closed.url}/join#${invitation.secret}`, "");
  });

  test("for an app leaves the address bar at once, in a new tab and in one that is open", async () => {
    const ann = await newPerson();
    const { token } = await newToken(open.port, ann, { label: "phone", scope: "read" });
    const { page, context, finish } = await visit({ as: ann, path: `/#${token}` });
    await heading(page, list.emptyTitle).waitFor();
    assert.equal(page.url(), `${open.url}/`);
    await go(page, "account");
    await page.goto(`/#${token}`);
    await heading(page, list.emptyTitle).waitFor();
    assert.equal(page.url(), `${open.url}/`);
    await page.goBack();
    await heading(page, account.title).waitFor();
    for (const tab of context.pages()) assert.ok(!(await everything(tab)).includes(token));
    await finish();
  });
});

test("whoever changes the password stays signed in here and nowhere else", async () => {
  const ann = await newPerson(["https://ann.example/feed"]);
  const other = await visit({ as: await signIn(open.port, ann) });
  await other.page.getByText("ann.example", { exact: true }).waitFor();
  const { page, allow, finish } = await visit({ as: ann, path: "/#account" });
  allow(/^answer: (403|422) PATCH \S+\/v1\/me$/);
  const [current, wanted] = [field(page, account.current), field(page, account.wanted)];
  const change = async (from: string, to: string) => {
    await current.fill(from);
    await wanted.fill(to);
    await button(page, account.change).click();
  };
  await change("not my password", "another one for me");
  await assertWrong(current, account.notCurrent);
  assert.equal(await wanted.inputValue(), "another one for me");
  await change(PASSWORD, "short");
  assert.ok(await is(wanted, ":invalid"));
  await change(PASSWORD, "password123");
  await assertWrong(wanted, account.badPassword);
  await change(PASSWORD, "another one for me");
  await page.getByText(account.changed).waitFor();
  assert.equal((await current.inputValue()) + (await wanted.inputValue()), "");
  await page.reload();
  await heading(page, account.title).waitFor();
  await finish();

  other.allow(/^answer: 401 GET /);
  await go(other.page, "account");
  await signInAgain(other.page, { ...ann, password: "another one for me" });
  await other.page.getByText(account.here, { exact: false }).first().waitFor();
  await other.finish();
});

describe("for apps", () => {
  test("somebody makes a token, sees it once, scans or copies it, and the app uses it", async () => {
    const ann = await newPerson(["https://ann.example/feed"]);
    for (const scope of ["write", "read"] as const) {
      // By a name, as others would reach it: to an address that is good here alone no code leads.
      const server = { url: open.url.replace("127.0.0.1", "pods.localhost") };
      const { page, context, finish } = await visit({ server, as: ann, path: "/#apps" });
      await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.url });
      const label = `An app that may ${scope}`;
      await field(page, apps.label).fill(label);
      await field(page, apps[scope]).check();
      await button(page, apps.create).click();
      await heading(page, apps.made(label)).waitFor();
      const token = (await dialog(page).locator("code").last().textContent()) ?? "";
      assert.match(token, /^emk_[\w-]{43}$/);
      const path = await dialog(page).getByRole("img", { name: apps.tokenQr }).locator("path").getAttribute("d");
      assert.equal(readQrCode(path ?? ""), `${server.url}/#${token}`);
      await dialog(page).getByRole("button", { name: en.copy }).last().click();
      await dialog(page).getByRole("button", { name: en.copied }).waitFor();
      assert.equal(await page.evaluate("navigator.clipboard.readText()"), token);
      await button(dialog(page), apps.finished).click();
      await dialog(page).waitFor({ state: "detached" });
      assert.ok(!(await everything(page)).includes(token));
      const item = page.getByRole("listitem").filter({ hasText: label });
      await item.getByText(apps.neverUsed).waitFor();
      assert.equal(await item.getByText(apps.readOnly).count(), scope === "read" ? 1 : 0);

      const headers = { Authorization: `Bearer ${token}` };
      assert.equal((await open.call("GET", "/v1/subscriptions", { headers })).json.data.length, 1);
      const body = JSON.stringify({ "atomic:operations": [add(newId(), "https://app.example/feed")] });
      const sent = { headers: { ...headers, "Content-Type": ATOMIC, Accept: ATOMIC }, body };
      if (scope === "read") assert.equal((await open.call("POST", "/v1/operations", sent)).status, 403);
      await until(async () => {
        await page.reload();
        await item.waitFor();
        return (await item.getByText(apps.used("")).count()) === 1;
      }, "the page shows when it was used");
      assert.ok(!(await everything(page)).includes(token));

      await button(page, apps.revokeOf(label)).click();
      await page.getByText(apps.revoked(label)).waitFor();
      assert.equal((await open.call("GET", "/v1/subscriptions", { headers })).status, 401);
      await item.waitFor({ state: "detached" });
      await page.getByText(apps.noTokens).waitFor();
      await finish();
    }
  });

  test("any name is shown as it is", async () => {
    const ann = await newPerson();
    const { page, finish } = await visit({ as: ann, path: "/#apps", size: "phone" });
    const labels = [
      "<img src=x onerror=alert(1)><b>Ann’s</b> &amp; co",
      "هاتفي القديم (2)",
      "W".repeat(100),
      "0",
      "\u202eevil",
    ];
    for (const label of labels) {
      await field(page, apps.label).fill(label);
      await button(page, apps.create).click();
      const shown = isolate(label);
      await heading(page, apps.made(shown)).waitFor();
      await assertFits(page);
      await page.keyboard.press("Escape");
      await button(dialog(page), apps.finished).click();
      await page.getByText(revealControlCharacters(label), { exact: true }).waitFor();
      await assertFits(page);
      assert.equal(await button(page, apps.revokeOf(shown)).count(), 1);
    }
    assert.equal(await page.locator("main b, main li img").count(), 0);
    await finish();
  });

  test("the hundred and first token is kindly refused", async () => {
    const ann = await newPerson();
    const user = await userOf(ann);
    const maker = new Accounts(open.store.accounts, { signUp: true });
    for (let n = 1; n <= 100; n += 1)
      await maker.createToken(asUser(user), { label: `App ${n}`, scope: "write", expiresAt: undefined }, new Date());
    const { page, allow, finish } = await visit({ as: ann, path: "/#apps" });
    allow(/^answer: 409 POST \S+\/v1\/tokens$/);
    await button(page, apps.revokeOf("App 100")).waitFor();
    await field(page, apps.label).fill("One more");
    await button(page, apps.create).click();
    await assertWrong(field(page, apps.label), apps.full);
    assert.equal(await field(page, apps.label).inputValue(), "One more");
    await button(page, apps.revokeOf("App 7")).click();
    await button(page, apps.revokeOf("App 7")).waitFor({ state: "detached" });
    await button(page, apps.create).click();
    await heading(page, apps.made("One more")).waitFor();
    await finish();
  });
});

describe("where somebody is signed in", () => {
  test("another browser can be sent away, and asks to sign in at its next step", async () => {
    const ann = await newPerson(["https://ann.example/feed"]);
    const other = await visit({ as: await signIn(open.port, ann, { "User-Agent": "Old Firefox/3.0 (Windows)" }) });
    await other.page.getByText("ann.example", { exact: true }).waitFor();
    const { page, finish } = await visit({ as: ann, path: "/#account" });
    const items = page.getByRole("main").getByRole("listitem");
    await items.nth(1).waitFor();
    const [here, there] = [items.filter({ hasText: account.here }), items.filter({ hasText: "Firefox, Windows" })];
    assert.deepEqual([await items.count(), await here.count(), await there.count()], [2, 1, 1]);
    assert.equal(await here.getByRole("button").count(), 0);
    await button(there, account.endSession("Firefox, Windows")).click();
    await there.waitFor({ state: "detached" });
    await page.getByText(account.ended).waitFor();
    assert.equal(await here.count(), 1);
    await finish();
    other.allow(/^answer: 401 GET /);
    await go(other.page, "apps");
    await heading(other.page, account.signInAgain).waitFor();
    await other.finish();
  });

  test("signing out leaves nothing of the person, not even for “back”", async () => {
    const ann = await newPerson(["https://ann.example/feed", "https://gone.example/feed"]);
    await newToken(open.port, ann, { label: "ann’s phone", scope: "read" });
    const { page, allow, finish } = await visit({ as: ann });
    await button(page, list.remove("gone.example/feed")).click();
    await page.getByText(list.undo).waitFor();
    await go(page, "add");
    await field(page, en.add.label).fill("https://typed.example/feed");
    await go(page, "apps");
    await page.getByText("ann’s phone").first().waitFor();
    await go(page, "account");
    allow(SIGNED_OUT);
    await button(page, account.signOut).click();
    const isClean = async () => {
      await heading(page, account.signIn).waitFor();
      const left = await everything(page);
      for (const trace of [ann.name, "ann.example", "gone.example", "typed.example", "ann’s phone"])
        assert.ok(!left.includes(trace), trace);
    };
    await isClean();
    assert.equal(page.url(), `${open.url}/`);
    for (let step = 0; step < 3; step += 1) {
      await page.goBack();
      await isClean();
    }
    // What was removed before is removed: nobody can take it back any more.
    assert.deepEqual(await listOf(ann), ["https://ann.example/feed"]);
    await finish();
  });

  test("whoever was signed out meanwhile signs out without having to sign in first", async () => {
    const ann = await newPerson();
    const { page, allow, finish } = await visit({ as: ann, path: "/#account" });
    await page.getByText(account.here).first().waitFor();
    await endSessions(ann);
    allow(SIGNED_OUT);
    await button(page, account.signOut).click();
    await button(page, account.create).waitFor();
    await finish();
  });

  test("a page that the browser had kept shows nothing before it is known who is back", async () => {
    const [ann, bob] = [await newPerson(["https://ann.example/feed"]), await newPerson(["https://bob.example/feed"])];
    const { page, allow, finish } = await visit({ as: ann });
    const comeBack = () => page.evaluate(`dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }))`);
    await page.getByText("ann.example", { exact: true }).waitFor();
    await comeBack();
    await page.getByText("ann.example", { exact: true }).waitFor();
    await endSessions(ann);
    allow(SIGNED_OUT);
    await comeBack();
    await heading(page, account.signIn).waitFor();
    assert.doesNotMatch(await everything(page), new RegExp(`ann\\.example|${ann.name}`));
    await fill(page, bob);
    await button(page, account.signIn).click();
    await page.getByText("bob.example", { exact: true }).waitFor();
    assert.doesNotMatch(await everything(page), new RegExp(`ann\\.example|${ann.name}`));
    await finish();
  });
});

describe("everything about somebody", () => {
  test("can be taken away in one file", async () => {
    const ann = await newPerson(["https://ann.example/feed", "https://two.example/feed"]);
    await newToken(open.port, ann, { label: "ann’s phone", scope: "read" });
    const { page, finish } = await visit({ as: ann, path: "/#account" });
    const coming = page.waitForEvent("download");
    await button(page, account.export).click();
    const file = await coming;
    assert.equal(file.suggestedFilename(), "earmark.json");
    const text = await readFile(await file.path(), "utf8");
    const { text: expected } = await open.call("GET", "/v1/me/export", { headers: { Cookie: ann.cookie } });
    // When a session was last used may have changed meanwhile.
    const plain = (json: string) => json.replaceAll(/"last_used_at":\s*(null|"[^"]*")/g, "");
    assert.equal(plain(text), plain(expected));
    for (const part of [ann.name, "https://ann.example/feed", "https://two.example/feed", "ann’s phone"])
      assert.ok(text.includes(part), part);
    assert.ok(!text.includes(ann.session));
    await finish();
  });

  test("can be deleted by whoever knows the password, and the name is free again", async () => {
    const ann = await newPerson(["https://ann.example/feed"]);
    const { token } = await newToken(open.port, ann, { label: "phone", scope: "read" });
    const { page, allow, finish } = await visit({ as: ann, path: "/#account" });
    await button(page, account.delete).click();
    await button(dialog(page), en.cancel).click();
    await dialog(page).waitFor({ state: "detached" });
    assert.ok(await isFocused(button(page, account.delete)));
    await button(page, account.delete).click();
    allow(/^answer: 401 POST \S+\/v1\/sessions$/, SIGNED_OUT);
    await field(page, account.deleteConfirm).fill("not my password");
    await button(dialog(page), account.delete).click();
    await assertWrong(field(page, account.deleteConfirm), account.notCurrent);
    assert.equal((await listOf(ann)).length, 1);
    await field(page, account.deleteConfirm).fill(ann.password);
    await button(dialog(page), account.delete).click();
    await button(page, account.create).waitFor();
    assert.doesNotMatch(await everything(page), new RegExp(`ann\\.example|${ann.name}`));
    const headers = { Authorization: `Bearer ${token}` };
    assert.equal((await open.call("GET", "/v1/me", { headers })).status, 401);
    await signUp(open.port, ann.name, PASSWORD);
    assert.deepEqual(await listOf(ann), []);
    await finish();
  });
});

describe("when a session ends in the middle", () => {
  test("of looking at the list, everything is as it was afterwards", async () => {
    const ann = await newPerson(["https://ann.example/feed", "https://two.example/feed"]);
    const { page, allow, finish } = await visit({ as: ann });
    allow(SIGNED_OUT);
    await page.getByText("ann.example", { exact: true }).waitFor();
    await page.getByRole("searchbox").fill("ann");
    await endSessions(ann);
    // Whoever comes back to a tab is shown what other devices have changed.
    await page.evaluate(`document.dispatchEvent(new Event("visibilitychange", { bubbles: true }))`);
    await heading(page, account.signInAgain).waitFor();
    assert.ok(await page.getByText("ann.example", { exact: true }).isVisible());
    await signInAgain(page, ann);
    assert.equal(await page.getByRole("searchbox").inputValue(), "ann");
    await page.getByText(list.found(1, "1"), { exact: true }).first().waitFor();
    assert.ok(await page.getByText("ann.example", { exact: true }).isVisible());
    await go(page, "account");
    await page.getByText(account.here).first().waitFor();
    await finish();
  });

  test("of adding, nobody can get around signing in, and then what was typed is sent", async () => {
    const ann = await newPerson();
    const feeds = ["https://one.example/feed", "https://two.example/feed", "not an address"];
    const { page, allow, finish } = await visit({ as: ann, path: "/#add" });
    allow(/^answer: 401 (GET|POST) /);
    await field(page, en.add.label).fill(feeds.join("\n"));
    await endSessions(ann);
    await button(page, en.add.submit(3, "3")).click();
    await heading(page, account.signInAgain).waitFor();
    for (let press = 0; press < 4; press += 1) {
      await page.keyboard.press("Escape");
      await until(() => page.evaluate<boolean>(`document.querySelector("dialog:modal") !== null`), "it stays");
    }
    assert.equal(await button(dialog(page), en.close).count(), 0);
    assert.equal(await field(dialog(page), account.user).inputValue(), ann.name);
    assert.equal(await field(dialog(page), account.user).isEditable(), false);
    await fill(dialog(page), { password: "not the password" });
    await button(dialog(page), account.signIn).click();
    await assertWrong(field(dialog(page), account.password), account.wrong);
    await signInAgain(page, ann);
    await page.getByText(en.add.done("2", "0", "1")).waitFor();
    assert.equal(await field(page, en.add.line("3")).inputValue(), "not an address");
    assert.deepEqual(await listOf(ann), feeds.slice(0, 2));
    await finish();
  });

  test("of an import, it goes on where it was", async () => {
    const ann = await newPerson();
    const { page, allow, finish } = await visit({ as: ann, path: "/#import" });
    allow(/^answer: 401 POST \S+\/v1\/operations$/);
    const outlines = Array.from({ length: 1_000 }, (_, n) => `<outline xmlUrl="https://host${n}.example/feed"/>`);
    const buffer = Buffer.from(`<opml version="2.0"><body>${outlines.join("")}</body></opml>`);
    let requests = 0;
    // Set up before anything is sent: switching interception on aborts requests in flight.
    await page.route("**/v1/operations", async (route) => {
      requests += 1;
      if (requests === 3) await endSessions(ann);
      await route.continue();
    });
    await field(page, en.import.file).setInputFiles({ name: "podcasts.opml", mimeType: "text/x-opml", buffer });
    await button(page, en.import.start(1_000, "1,000")).click();
    await heading(page, account.signInAgain).waitFor();
    // What was done is seen, and what is not waits.
    await page.getByText(en.import.running("500", "1,000")).waitFor();
    await signInAgain(page, ann);
    await page.getByRole("status").getByText(en.import.done, { exact: true }).first().waitFor();
    assert.equal(requests, 5);
    await go(page, "list");
    await page.getByText(en.count(1_000, "1,000"), { exact: true }).waitFor();
    assert.equal((await listOf(ann)).length, 1_000);
    await finish();
  });

  test("of a removal that can still be taken back, it is removed after signing in", async () => {
    const ann = await newPerson(["https://ann.example/feed", "https://gone.example/feed"]);
    const { page, allow, finish } = await visit({ as: ann });
    allow(/^answer: 401 DELETE \S+\/v1\/subscriptions\//);
    await button(page, list.remove("gone.example/feed")).click();
    await button(page, list.undo).waitFor();
    await endSessions(ann);
    await button(page.getByRole("status"), en.close).click();
    await heading(page, account.signInAgain).waitFor();
    await signInAgain(page, ann);
    await until(async () => (await listOf(ann)).length === 1, "it is removed");
    assert.ok(await page.getByText("ann.example", { exact: true }).isVisible());
    assert.equal(await page.getByText("gone.example", { exact: true }).count(), 0);
    await finish();
  });

  test("somebody else has to start over, and finds nothing of the one before", async () => {
    const [ann, bob] = [await newPerson(["https://ann.example/feed"]), await newPerson(["https://bob.example/feed"])];
    const { page, allow, finish } = await visit({ as: ann, path: "/#add" });
    allow(/^answer: 401 /);
    await field(page, en.add.label).fill("https://typed-by-ann.example/feed");
    await endSessions(ann);
    await button(page, en.add.submit(1, "1")).click();
    await button(dialog(page), account.someoneElse).click();
    await button(page, account.create).waitFor();
    await fill(page, bob);
    await button(page, account.signIn).click();
    await heading(page, en.add.title).waitFor();
    assert.equal(await field(page, en.add.label).inputValue(), "");
    await go(page, "list");
    await page.getByText("bob.example", { exact: true }).waitFor();
    assert.doesNotMatch(await everything(page), new RegExp(`ann\\.example|${ann.name}`));
    assert.deepEqual(await listOf(bob), ["https://bob.example/feed"]);
    assert.deepEqual(await listOf(ann), ["https://ann.example/feed"]);
    await finish();
  });

  test("and somebody else signs in in another tab, this one becomes theirs and sends nothing of what waited", async () => {
    const [ann, bob] = [await newPerson(["https://ann.example/feed"]), await newPerson(["https://bob.example/feed"])];
    const { page, context, allow, finish } = await visit({ as: ann, path: "/#add" });
    allow(/^answer: 401 /);
    await field(page, en.add.label).fill("https://typed-by-ann.example/feed");
    await endSessions(ann);
    await button(page, en.add.submit(1, "1")).click();
    await heading(page, account.signInAgain).waitFor();
    const tab = await context.newPage();
    await tab.goto("/");
    await fill(tab, bob);
    await button(tab, account.signIn).click();
    await tab.getByText("bob.example", { exact: true }).waitFor();
    await dialog(page).waitFor({ state: "detached" });
    await go(page, "list");
    await page.getByText("bob.example", { exact: true }).waitFor();
    assert.doesNotMatch(await everything(page), new RegExp(`ann\\.example|${ann.name}`));
    assert.deepEqual(await listOf(bob), ["https://bob.example/feed"]);
    await finish();
  });
});

describe("in two tabs", () => {
  const SHARED = "https://shared.example/feed";

  /** The id that the page gives a feed is the same for everyone. */
  async function newSharer(): Promise<SignedIn> {
    const person = await newPerson();
    const body = JSON.stringify({ "atomic:operations": [add(guid(SHARED), SHARED)] });
    const headers = { "Content-Type": ATOMIC, Accept: ATOMIC, Cookie: person.cookie };
    await open.call("POST", "/v1/operations", { headers, body });
    return person;
  }

  test("whoever signs out in one has gone from the other", async () => {
    const ann = await newPerson(["https://ann.example/feed"]);
    const { page, context, allow, finish } = await visit({ as: ann });
    allow(/^answer: 401 /);
    await page.getByText("ann.example", { exact: true }).waitFor();
    const tab = await context.newPage();
    await tab.goto("/#account");
    await button(tab, account.signOut).click();
    await heading(tab, account.signIn).waitFor();
    await heading(page, account.signIn).waitFor();
    assert.doesNotMatch(await everything(page), /ann\.example/);
    await finish();
  });

  test("what waits for its undo is never carried out in the name of somebody who signs in meanwhile", async () => {
    const [ann, bob] = [await newSharer(), await newSharer()];
    const { page, context, allow, finish } = await visit({ as: ann });
    allow(/^answer: 401 /);
    await button(page, list.remove("shared.example/feed")).click();
    await page.getByText(list.removed(1, "shared.example/feed")).hover();
    const tab = await context.newPage();
    // Somebody else's cookie is there before this page hears of it.
    await context.addCookies([{ name: "earmark", value: bob.session, url: open.url, httpOnly: true }]);
    await tab.goto("/");
    await tab.getByText("shared.example", { exact: true }).waitFor();
    await page.getByText("shared.example", { exact: true }).waitFor();
    await go(page, "account");
    await page.getByText(bob.name, { exact: true }).waitFor();
    assert.deepEqual(await listOf(bob), [SHARED]);
    assert.deepEqual(await listOf(ann), [SHARED]);
    await finish();
  });
});

test("two people never see anything of each other", async () => {
  const both = [await newPerson(["https://ann.example/feed"]), await newPerson(["https://bob.example/feed"])];
  const [ann, bob] = both as [SignedIn, SignedIn];
  await newToken(open.port, ann, { label: "app of ann.example", scope: "write" });
  await newToken(open.port, bob, { label: "app of bob.example", scope: "write" });
  const ways = [
    [ann, bob, "ann.example", "bob.example"],
    [bob, ann, "bob.example", "ann.example"],
  ] as const;
  await Promise.all(
    ways.map(async ([me, other, mine, theirs]) => {
      const { page, finish } = await visit({ as: me });
      const assertMine = async () => {
        const seen = await everything(page);
        assert.ok(!seen.includes(theirs) && !new RegExp(`\\b${other.name}\\b`).test(seen));
      };
      await page.getByText(mine, { exact: true }).waitFor();
      await page.getByText(en.count(1, "1"), { exact: true }).waitFor();
      await assertMine();
      await go(page, "apps");
      await page.getByText(`app of ${mine}`, { exact: true }).waitFor();
      await assertMine();
      await go(page, "account");
      await page.getByText(me.name, { exact: true }).waitFor();
      await page.getByText(account.here).first().waitFor();
      await assertMine();
      await finish();
    }),
  );
});

test("a server for one person asks nobody to sign in and shows nothing of accounts", async () => {
  const { page, problems, allow, finish } = await visit({ server: await startServer() });
  await heading(page, list.emptyTitle).waitFor();
  assert.equal(await page.getByRole("navigation").getByRole("link").count(), 4);
  await page.goto("/#account");
  await heading(page, list.title).waitFor();
  await go(page, "apps");
  await page.getByText(apps.stepNoToken).waitFor();
  assert.equal(await field(page, apps.label).count(), 0);
  const seen = await everything(page);
  for (const word of [account.signIn, account.signOut, account.title, apps.tokens, apps.create, apps.stepToken])
    assert.ok(!seen.includes(word), word);
  await assertAccessible(page);
  assert.deepEqual(await problems(), []);
  allow(/^answer: 404 GET \S+\/join$/);
  assert.equal((await page.goto("/join"))?.status(), 404);
  await finish();
});

for (const [language, words] of Object.entries({ de, es, fr, zh })) {
  test(`whoever speaks ${language} signs in in it`, async () => {
    const { page, allow, finish } = await visit({ locale: language });
    allow(/^answer: 401 POST \S+\/v1\/sessions$/);
    await heading(page, words.account.signIn).waitFor();
    assert.equal(await page.evaluate("document.documentElement.lang"), language);
    assert.match(await page.title(), new RegExp(words.account.signIn));
    await page.getByText(words.account.firstTime).waitFor();
    await field(page, words.account.user).fill("nobody");
    await field(page, words.account.password).fill("not the password");
    await button(page, words.account.signIn).click();
    await assertWrong(field(page, words.account.password), words.account.wrong);
    await assertFits(page);
    await button(page, words.account.create).click();
    await heading(page, words.account.joinTitle).waitFor();
    await page.getByText(words.account.passwordHint).waitFor();
    await assertFits(page);
    await finish();
  });
}

for (const { name, ...look } of LOOKS) {
  test(`everything about accounts can be read and used by all (${name})`, async () => {
    const check = async (page: Page) => {
      await assertFits(page);
      await assertAccessible(page);
    };
    const shut = await visit({ server: closed, ...look });
    await shut.page.getByText(account.firstTimeClosed).waitFor();
    await check(shut.page);
    await shut.finish();

    const ann = await newPerson(["https://ann.example/feed"]);
    const { page, allow, finish } = await visit(look);
    allow(/^answer: 401 /, /^failed: POST \S+\/v1\/sessions /);
    await fill(page, { name: ann.name, password: "not the password" });
    await button(page, account.signIn).click();
    await assertWrong(field(page, account.password), account.wrong);
    await check(page);
    await page.route("**/v1/sessions", (route) => route.abort());
    await button(page, account.signIn).click();
    await page.getByRole("alert").waitFor();
    await check(page);
    await page.unroute("**/v1/sessions");
    await button(page, account.create).click();
    await heading(page, account.joinTitle).waitFor();
    await check(page);
    await button(page, account.haveOne).click();
    await fill(page, ann);
    await button(page, account.signIn).click();
    await page.getByText("ann.example", { exact: true }).waitFor();

    await go(page, "apps");
    await field(page, apps.label).fill("My phone");
    await button(page, apps.create).click();
    await heading(page, apps.made("My phone")).waitFor();
    await check(page);
    await button(dialog(page), apps.finished).click();
    await dialog(page).waitFor({ state: "detached" });
    await button(page, apps.revokeOf("My phone")).waitFor();
    await check(page);

    await go(page, "account");
    await page.getByText(account.here).first().waitFor();
    await check(page);
    await button(page, account.delete).click();
    await field(page, account.deleteConfirm).fill("not my password");
    await button(dialog(page), account.delete).click();
    await assertWrong(field(page, account.deleteConfirm), account.notCurrent);
    await check(page);
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });

    await endSessions(ann);
    await go(page, "apps");
    await heading(page, account.signInAgain).waitFor();
    await check(page);
    await signInAgain(page, ann);
    await button(page, apps.revokeOf("My phone")).waitFor();
    await finish();
  });
}

/** Of versions 1 to 6: how many codewords there are in all, and by level (L, M, Q, H) [for correction, blocks]. */
const QR_VERSIONS: readonly (readonly [total: number, ...levels: (readonly [number, number])[]])[] = [
  [26, [7, 1], [10, 1], [13, 1], [17, 1]],
  [44, [10, 1], [16, 1], [22, 1], [28, 1]],
  [70, [15, 1], [26, 1], [18, 2], [22, 2]],
  [100, [20, 1], [18, 2], [26, 2], [16, 4]],
  [134, [26, 1], [24, 2], [18, 4], [22, 4]],
  [172, [18, 2], [16, 4], [24, 4], [28, 4]],
];
const QR_MASKS: readonly ((x: number, y: number) => number)[] = [
  (x, y) => (x + y) % 2,
  (_, y) => y % 2,
  (x) => x % 3,
  (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
  (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];
const QR_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";

/** What a code says (ISO/IEC 18004) that is drawn as squares of one by one. Nothing has to be corrected in it. */
function readQrCode(path: string): string {
  const squares = [...path.matchAll(/M(\d+) (\d+)h1v1h-1z/g)].map(([, x, y]) => [Number(x), Number(y)] as const);
  const edge = Math.min(...squares.flat());
  const size = Math.max(...squares.flat()) - edge + 1;
  const isDark = new Set(squares.map(([x, y]) => (y - edge) * size + x - edge));
  const at = (x: number, y: number) => (isDark.has(y * size + x) ? 1 : 0);
  const version = (size - 17) / 4;
  const [total = 0, ...levels] = QR_VERSIONS[version - 1] ?? [];

  // Level and mask stand around the upper left corner, the last bit first; the first five bits say it, the rest corrects.
  const format = [...[0, 1, 2, 3, 4, 5, 7, 8].map((y) => at(8, y)), ...[7, 5, 4, 3, 2, 1, 0].map((x) => at(x, 8))];
  const known = (format.reduce<number>((sum, bit, index) => sum + (bit << index), 0) ^ 0x5412) >> 10;
  const [correcting = 0, blocks = 0] = levels[[1, 0, 3, 2][known >> 3] ?? 0] ?? [];
  const mask = QR_MASKS[known & 7];
  assert.ok(mask !== undefined && blocks > 0, `a code of version ${version}`);

  const isFixed = (x: number, y: number) =>
    (x < 9 && y < 9) ||
    (x < 9 && y >= size - 8) ||
    (x >= size - 8 && y < 9) ||
    x === 6 ||
    y === 6 ||
    (version > 1 && Math.abs(x - size + 7) <= 2 && Math.abs(y - size + 7) <= 2);
  let bits = "";
  for (let right = size - 1, isUp = true; right > 0; right -= right === 8 ? 3 : 2, isUp = !isUp) {
    for (let step = 0; step < size; step += 1) {
      const y = isUp ? size - 1 - step : step;
      for (const x of [right, right - 1]) if (!isFixed(x, y)) bits += at(x, y) ^ (mask(x, y) === 0 ? 1 : 0);
    }
  }
  const bytes = Array.from({ length: total }, (_, index) => bits.slice(8 * index, 8 * index + 8));

  // The blocks take turns; those at the end may be longer by one.
  const short = Math.floor(total / blocks) - correcting;
  const longer = total % blocks;
  const whole: string[][] = Array.from({ length: blocks }, () => []);
  const turns = Array.from({ length: short * blocks }, (_, index) => index % blocks);
  for (let block = blocks - longer; block < blocks; block += 1) turns.push(block);
  for (const [index, block] of turns.entries()) whole[block]?.push(bytes[index] ?? "");
  const data = whole.flat().join("");

  let place = 0;
  const take = (count: number) => {
    place += count;
    return Number.parseInt(data.slice(place - count, place) || "0", 2);
  };
  let text = "";
  // Digits, capitals, bytes; and before bytes perhaps how they are to be read, which is UTF-8.
  for (let mode = take(4); mode !== 0; mode = take(4)) {
    if (mode === 1) {
      for (let left = take(10); left > 0; left -= 3)
        text += String(take(left > 2 ? 10 : left > 1 ? 7 : 4)).padStart(Math.min(left, 3), "0");
    } else if (mode === 2) {
      for (let left = take(9); left > 0; left -= 2) {
        const value = take(left > 1 ? 11 : 6);
        text += (left > 1 ? QR_LETTERS[Math.floor(value / 45)] : "") + QR_LETTERS.charAt(value % 45);
      }
    } else if (mode === 4) {
      for (let left = take(8); left > 0; left -= 1) text += String.fromCharCode(take(8));
    } else {
      assert.equal(mode, 7);
      assert.equal(take(8), 26);
    }
  }
  return text;
}
