import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Locator, Page } from "playwright-core";
import { Accounts } from "../../src/accounts/accounts.ts";
import { asUser, type UserId } from "../../src/accounts/caller.ts";
import { subscriptionBatches } from "../../src/lists/list-store.ts";
import { type SignedIn, signUp } from "./accounts.ts";
import { launch, type PageOptions, type WatchedPage } from "./browser.ts";
import { openView } from "./navigation.ts";
import { ATOMIC, add, newId, startServer, type TestServer } from "./server.ts";
import { en, type Words } from "./words.ts";

const { account } = en;
export const PASSWORD = "correct horse battery";
/** Responses to requests that the page sends before anyone has signed in. */
export const SIGNED_OUT = /^response: 401 GET \S+\/v1\/(alerts|changes|duplicates|events|links|me|subscriptions)\b/;

const browser = await launch();
/** Anyone may sign up here. */
export const server = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_SIGN_UP: "true" });
export const accounts = new Accounts(server.store.accounts, { signUp: true });

let userCount = 0;

/** Signs up a new user with these feeds. */
export async function newUser(
  feeds: readonly string[] = [],
  idOf: (feed: string) => string = newId,
): Promise<SignedIn> {
  userCount += 1;
  const user = await signUp(server.port, `user${userCount}`, PASSWORD);
  if (feeds.length > 0) {
    const body = JSON.stringify({ "atomic:operations": feeds.map((feed) => add(idOf(feed), feed)) });
    const headers = { "Content-Type": ATOMIC, Accept: ATOMIC, Cookie: user.cookie };
    const { status } = await server.call("POST", "/v1/operations", { headers, body });
    assert.equal(status, 200);
  }
  return user;
}

export async function userIdOf({ name }: SignedIn): Promise<UserId> {
  const found = await accounts.findByName(name);
  assert.ok(found !== undefined, name);
  return found.user;
}

/** The feed URLs the server has for a user. */
export async function feedsOf(user: SignedIn): Promise<string[]> {
  const feeds: string[] = [];
  for await (const some of subscriptionBatches(server.store, await userIdOf(user)))
    feeds.push(...some.map(({ feedUrl }) => feedUrl));
  return feeds;
}

export async function endSessions(user: SignedIn): Promise<void> {
  const id = await userIdOf(user);
  for (const session of await accounts.store.listCredentials(id, "session"))
    await accounts.removeCredential(asUser(id), "session", session.id, new Date());
}

interface VisitOptions extends PageOptions {
  readonly server?: Pick<TestServer, "url">;
  readonly as?: SignedIn;
  readonly path?: string;
}

const LOOKS = (["phone", "desktop"] as const).flatMap((size) =>
  (["light", "dark"] as const).map((theme) => ({ size, theme })),
);
let visitCount = 0;

/** Opens the page in a new browser. Sizes and themes take turns unless given. */
export async function visit(options: VisitOptions = {}): Promise<WatchedPage> {
  const { server: { url } = server, as, path = "/", ...look } = options;
  const watched = await browser.newPage(url, { ...LOOKS[visitCount++ % LOOKS.length], ...look });
  watched.page.setDefaultTimeout(20_000);
  if (as === undefined) watched.allow(SIGNED_OUT);
  else await watched.context.addCookies([{ name: "earmark", value: as.session, url, httpOnly: true }]);
  await watched.page.goto(path);
  return watched;
}

export const button = (page: Page | Locator, name: string) => page.getByRole("button", { name, exact: true });
export const heading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true });
export const field = (page: Page | Locator, label: string) => page.getByLabel(label, { exact: true });
export const dialog = (page: Page) => page.getByRole("dialog");

export async function showView(page: Page, view: keyof Words["views"]): Promise<void> {
  await openView(page, en.views[view]);
}

export async function chooseApp(page: Page, name: string): Promise<void> {
  await page.getByRole("group", { name: en.apps.pick }).getByText(name, { exact: true }).click();
}

export async function fill(
  page: Page | Locator,
  { name, password }: { readonly name?: string; readonly password: string },
): Promise<void> {
  if (name !== undefined) await field(page, account.user).fill(name);
  await field(page, account.password).fill(password);
}

/** Signs in through the dialog that covers the page when a session has ended. */
export async function signInAgain(page: Page, { password }: SignedIn): Promise<void> {
  await heading(page, account.signInAgain).waitFor();
  await fill(dialog(page), { password });
  await button(dialog(page), account.signIn).click();
  await dialog(page).waitFor({ state: "detached" });
}

export async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `timed out: ${what}`);
    await sleep(100);
  }
}

export const matches = async (element: Locator, selector: string) =>
  (await element.and(element.page().locator(selector)).count()) === 1;
export const isFocused = (element: Locator) => matches(element, ":focus");

/** The field has the focus and is described by the error. */
export async function assertFieldError(element: Locator, text: string): Promise<void> {
  const page = element.page();
  await page.getByText(text, { exact: true }).waitFor();
  await until(() => isFocused(element), `the focus is on the field with the error: ${text}`);
  assert.equal(await element.getAttribute("aria-invalid"), "true");
  const ids = (await element.getAttribute("aria-describedby"))?.split(" ") ?? [];
  const notes = await Promise.all(ids.map((id) => page.locator(`[id="${id}"]`).textContent()));
  assert.ok(notes.includes(text), notes.join(" | "));
}

/** All that the page has stored in IndexedDB. */
export const databaseContents = (page: Page) =>
  page.evaluate<string>(`indexedDB.databases().then((all) => Promise.all(all.map(({ name }) => new Promise((done, fail) => {
    const opening = indexedDB.open(name);
    opening.onerror = fail;
    opening.onsuccess = () => {
      const reading = opening.result.transaction("texts").objectStore("texts").getAll();
      reading.onerror = fail;
      reading.onsuccess = () => {
        opening.result.close();
        done(reading.result);
      };
    };
  })))).then(JSON.stringify)`);

/** Everything in the page, visible or not, and in its settings. */
export const pageContents = (page: Page) =>
  page.evaluate<string>(`[document.documentElement.outerHTML, JSON.stringify({ ...localStorage }),
    JSON.stringify({ ...sessionStorage }), document.title, location.href,
    ...[...document.querySelectorAll("input, textarea")].map((field) => field.value)].join("\\n")`);

export async function assertNoOverflow(page: Page): Promise<void> {
  const wide = await page.evaluate<string>(`[document.documentElement, ...document.querySelectorAll("dialog[open]")]
    .filter((element) => element.scrollWidth > element.clientWidth).map(({ innerText }) => innerText).join()`);
  assert.equal(wide, "", "wider than its container");
}
