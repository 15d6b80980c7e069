import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CDPSession, Page } from "playwright-core";
import { isolate } from "../web/src/ui/isolate.ts";
import type { SignedIn } from "./support/accounts.ts";
import {
  assertNoOverflow,
  button,
  dialog,
  endSessions,
  field,
  fill,
  heading,
  newUser,
  server,
  showView,
  visit,
} from "./support/page-accounts.ts";
import { returnToTab } from "./support/page-apps.ts";
import { de, en, format } from "./support/words.ts";

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
    .getByText(format(account.passkeyAdded, { name: isolate(name) }))
    .first()
    .waitFor();
  await page.getByRole("listitem").filter({ hasText: name }).waitFor();
}

async function signOut(page: Page): Promise<void> {
  await button(page, account.signOut).first().click();
  await heading(page, account.signIn).waitFor();
}

async function signInWithPassword(page: Page, user: SignedIn): Promise<void> {
  await fill(page, user);
  await button(page, account.signIn).click();
  await showView(page, "account");
}

const used = (page: Page) => page.getByRole("button", { name: account.usePasskey, exact: true });

describe("passkeys", { concurrency: 2 }, () => {
  test("one device", async (t) => {
    const ann = await newUser();
    const { page, allow, finish } = await visit({ server: localhost, as: ann });
    const { session, authenticatorId } = await addAuthenticator(page);
    allow(/^response: 401 /);

    await t.test(
      "passkeys: added, then used to sign in, then removed → the page is correct at every step",
      async () => {
        await showView(page, "account");
        assert.match(await field(page, account.passkeyName).inputValue(), /^Chrome/);
        await addPasskey(page, "Ann’s phone");
        await assertNoOverflow(page);
        await signOut(page);
        await used(page).click();
        await showView(page, "account");
        await page.getByText(ann.name, { exact: true }).waitFor();
        await button(page, format(account.removePasskey, { name: isolate("Ann’s phone") })).click();
        await button(dialog(page), account.remove).click();
        await page.getByRole("listitem").filter({ hasText: "Ann’s phone" }).waitFor({ state: "detached" });
        await signOut(page);
        await used(page).click();
        await page.getByRole("alert").getByText(errors["passkey-failed"]).waitFor();
      },
    );

    await t.test("passkeys: session ended while the page is open → signs in again in place", async () => {
      await session.send("WebAuthn.clearCredentials", { authenticatorId });
      await signInWithPassword(page, ann);
      await addPasskey(page, "laptop");
      await endSessions(ann);
      await returnToTab(page);
      await heading(page, account.signInAgain).waitFor();
      await button(dialog(page), account.usePasskey).click();
      await dialog(page).waitFor({ state: "detached" });
      await page.getByText(ann.name, { exact: true }).waitFor();
    });

    await t.test("passkeys: copy of a passkey with an older counter → rejected", async () => {
      const { credentials } = await session.send("WebAuthn.getCredentials", { authenticatorId });
      const [copy] = credentials;
      assert.ok(copy);
      await signOut(page);
      await used(page).click();
      await showView(page, "account");
      await signOut(page);
      await session.send("WebAuthn.removeCredential", { authenticatorId, credentialId: copy.credentialId });
      await session.send("WebAuthn.addCredential", { authenticatorId, credential: { ...copy, signCount: 0 } });
      await used(page).click();
      await page.getByRole("alert").getByText(errors["passkey-failed"]).waitFor();
    });

    await t.test("passkeys: device that already has one, or a user who cancels → a message", async () => {
      await signInWithPassword(page, ann);
      await page.getByRole("listitem").filter({ hasText: "laptop" }).waitFor();
      await button(page, account.addPasskey).click();
      await page.getByRole("alert").getByText(account.passkeyExists).waitFor();
      await session.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });
      await addAuthenticator(page, { isUserVerified: false });
      await button(page, account.addPasskey).click();
      await page.getByRole("alert").getByText(account.passkeyCanceled).waitFor();
      assert.equal(await page.getByRole("listitem").filter({ hasText: "laptop" }).count(), 1);
    });
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

  test("passkeys: plain http or an IP address → says why there are none, in place of the form", async () => {
    const ann = await newUser();
    const assertNone = async (page: Page, reason: string) => {
      await page.getByText(reason).waitFor();
      assert.equal(await button(page, account.addPasskey).count(), 0);
      await assertNoOverflow(page);
    };
    const byAddress = await visit({ as: ann, path: "/#account" });
    await assertNone(byAddress.page, account.passkeyObstacles.ipAddress);
    await byAddress.finish();

    // The browser may use no other host, so the test passes its requests on.
    const plain = { url: "http://pods.example" };
    const { page, context, allow, finish } = await visit({ server, as: ann, path: "/healthz", size: "phone" });
    allow(/^other-host: |^failed: /, /^console: The Cross-Origin-Opener-Policy header has been ignored/);
    await context.route(`${plain.url}/**`, async (route) => {
      if (new URL(route.request().url()).pathname === "/v1/events") return route.abort();
      const url = route.request().url().replace(plain.url, server.url);
      return route.fulfill({ response: await route.fetch({ url, headers: { cookie: ann.cookie } }) });
    });
    await page.goto(`${plain.url}/#account`);
    await assertNone(page, account.passkeyObstacles.plainHttp);
    await finish();
  });
});
