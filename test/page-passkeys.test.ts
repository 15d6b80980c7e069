import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CDPSession, Page } from "playwright-core";
import { isolate } from "../web/src/control-characters.ts";
import { de } from "../web/src/words/de.ts";
import { en } from "../web/src/words/en.ts";
import {
  assertNoOverflow,
  button,
  dialog,
  endSessions,
  field,
  heading,
  newUser,
  server,
  showView,
  until,
  visit,
} from "./support/page-accounts.ts";

const { account, errors } = en;
/** Browsers accept no IP address as the host of a passkey. */
const localhost = { url: server.url.replace("127.0.0.1", "localhost") };

/** Chromium's own authenticator, which confirms everything at once. */
async function addAuthenticator(page: Page, { isUserVerified = true } = {}) {
  const session: CDPSession = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", {
    options: {
      protocol: "ctap2",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified,
      automaticPresenceSimulation: true,
    },
  });
  return { session, authenticatorId };
}

async function addPasskey(page: Page, name: string): Promise<void> {
  await field(page, account.passkeyName).fill(name);
  await button(page, account.addPasskey).click();
  await page
    .getByText(account.passkeyAdded(isolate(name)))
    .first()
    .waitFor();
  await page.getByRole("listitem").filter({ hasText: name }).waitFor();
}

async function signOut(page: Page): Promise<void> {
  await button(page, account.signOut).first().click();
  await heading(page, account.signIn).waitFor();
}

const used = (page: Page) => page.getByRole("button", { name: account.usePasskey, exact: true });

describe("passkeys", { concurrency: 2 }, () => {
  test("passkeys: added, then used to sign in, then removed → the page at every step", async () => {
    const ann = await newUser(["https://ann.example/feed"]);
    const { page, allow, finish } = await visit({ server: localhost, as: ann });
    await addAuthenticator(page);
    await showView(page, "account");
    assert.match(await field(page, account.passkeyName).inputValue(), /^Chrome/);
    await addPasskey(page, "Ann’s phone");
    await assertNoOverflow(page);
    await signOut(page);
    allow(/^response: 401 GET /);
    await used(page).click();
    await showView(page, "account");
    await page.getByText(ann.name, { exact: true }).waitFor();
    await button(page, account.removePasskey(isolate("Ann’s phone"))).click();
    await button(dialog(page), account.remove).click();
    await page.getByRole("listitem").filter({ hasText: "Ann’s phone" }).waitFor({ state: "detached" });
    await signOut(page);
    allow(/^response: 401 POST \S+\/v1\/sessions$/);
    await used(page).click();
    await page.getByRole("alert").getByText(errors["passkey-failed"]).waitFor();
    await finish();
  });

  test("passkeys: session ended while the page is open → signs in again in place", async () => {
    const ann = await newUser(["https://ann.example/feed"]);
    const { page, allow, finish } = await visit({ server: localhost, as: ann });
    await addAuthenticator(page);
    await showView(page, "account");
    await addPasskey(page, "laptop");
    allow(/^response: 401 /);
    await endSessions(ann);
    await heading(page, account.signInAgain).waitFor();
    await button(dialog(page), account.usePasskey).click();
    await dialog(page).waitFor({ state: "detached" });
    await page.getByText(ann.name, { exact: true }).waitFor();
    await finish();
  });

  test("passkeys: device that already has one, or a user who cancels → a message", async () => {
    const ann = await newUser();
    const { page, finish } = await visit({ server: localhost, as: ann });
    const { session, authenticatorId } = await addAuthenticator(page);
    await showView(page, "account");
    await addPasskey(page, "first");
    await button(page, account.addPasskey).click();
    await page.getByRole("alert").getByText(account.passkeyExists).waitFor();
    await session.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });
    await addAuthenticator(page, { isUserVerified: false });
    await button(page, account.addPasskey).click();
    await page.getByRole("alert").getByText(account.passkeyCancelled).waitFor();
    assert.equal(await page.getByRole("listitem").filter({ hasText: "first" }).count(), 1);
    await finish();
  });

  test("passkeys: copy of a passkey with an older counter → refused", async () => {
    const ann = await newUser();
    const { page, allow, finish } = await visit({ server: localhost, as: ann });
    const { session, authenticatorId } = await addAuthenticator(page);
    await showView(page, "account");
    await addPasskey(page, "copied");
    const { credentials } = await session.send("WebAuthn.getCredentials", { authenticatorId });
    const [copy] = credentials;
    assert.ok(copy);
    await signOut(page);
    allow(/^response: 401 /);
    await used(page).click();
    await showView(page, "account");
    await signOut(page);
    await session.send("WebAuthn.removeCredential", { authenticatorId, credentialId: copy.credentialId });
    await session.send("WebAuthn.addCredential", { authenticatorId, credential: { ...copy, signCount: 0 } });
    await used(page).click();
    await page.getByRole("alert").getByText(errors["passkey-failed"]).waitFor();
    await finish();
  });

  test("passkeys: IP address as host → not offered", async () => {
    const { page, finish } = await visit();
    await heading(page, account.signIn).waitFor();
    const isLoaded = () =>
      page.evaluate<boolean>(
        `performance.getEntriesByType("resource").some(({ name }) => name.includes("passwordless-"))`,
      );
    await until(isLoaded, "other ways to sign in are loaded");
    assert.equal(await used(page).count(), 0);
    await finish();
  });

  test("passkeys: in German on a phone → no text is cut off", async () => {
    const ann = await newUser();
    const { page, finish } = await visit({ server: localhost, as: ann, size: "phone", theme: "dark", locale: "de-DE" });
    await addAuthenticator(page);
    await page.goto("#account");
    await button(page, de.account.addPasskey).click();
    await page.getByRole("listitem").filter({ hasText: "Chrome" }).first().waitFor();
    await assertNoOverflow(page);
    await finish();
  });
});
