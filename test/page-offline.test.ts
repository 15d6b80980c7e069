import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { after, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { signUp } from "./support/accounts.ts";
import { launch } from "./support/browser.ts";
import { openView } from "./support/navigation.ts";
import { button, hosts, rows, status, subscribe, THREE, until, visit } from "./support/page.ts";
import { PASSWORD, visit as visitAs } from "./support/page-accounts.ts";
import { ATOMIC, add, newId, startServer, temporaryFolder } from "./support/server.ts";
import { en, format } from "./support/words.ts";

const browser = await launch();

/** Everything that the page stores for a start without the server. */
const storedUrls = (page: Page) =>
  page.evaluate<string[]>(`(async () => {
    const caches = await Promise.all((await window.caches.keys()).map((name) => window.caches.open(name)));
    const requests = await Promise.all(caches.map((cache) => cache.keys()));
    return requests.flat().map(({ url }) => new URL(url).pathname);
  })()`);

/** Whether a version is stored completely, and none is being stored. */
const INSTALLED = `navigator.serviceWorker.getRegistration().then((found) =>
  found?.active?.state === "activated" && !found.installing && !found.waiting)`;
const isInstalled = (page: Page) => until(() => page.evaluate(INSTALLED), true);

/** Something else that listens on the port of a server that has stopped. */
async function listenOn(port: number, handle: RequestListener): Promise<() => Promise<void>> {
  const server = createServer(handle);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  after(close);
  return close;
}

describe("offline start", { concurrency: 2 }, () => {
  test("offline start: the server has stopped → the page opens, queues edits, and sends them when it is back", async () => {
    const settings = { DATABASE_URL: `file:${temporaryFolder()}/earmark.db`, EARMARK_BASE_PATH: "/pods" };
    const first = await startServer(settings);
    const { page, allow, finish } = await visit({ server: first, basePath: "/pods", offlineStart: true });
    allow(/^(failed|response): /);
    await page.goto("/pods/#add-many");
    await page.getByLabel(en.add.label).fill(THREE.join("\n"));
    await button(page, format(en.add.submit, { n: 3 })).click();
    await openView(page, en.views.list);
    await until(() => hosts(page).then((all) => all.toSorted()), ["one.example", "three.example", "two.example"]);
    await isInstalled(page);
    const stored = await storedUrls(page);
    assert.ok(stored.includes("/pods/"));
    for (const path of stored) assert.match(path, /^\/pods\/(assets\/[\w.-]+)?$/);

    await first.close();
    await page.reload();
    await until(() => hosts(page).then((all) => all.length), 3);
    await status(page, en.connection.unreachable).waitFor();
    // Views that were never open are there too.
    for (const title of [en.views.import, en.links.title, en.history.title]) {
      await openView(page, title);
      await page.getByRole("heading", { level: 1, name: title }).waitFor();
    }
    await openView(page, en.views.list);
    const box = page.getByRole("searchbox", { name: en.list.search });
    await box.fill("https://four.example/feed");
    await box.press("Enter");
    await status(page, format(en.connection.waiting, { n: 1 })).waitFor();
    await page.goto("/pods/");
    await until(() => hosts(page).then((all) => all.length), 4);

    // Only the page itself is there: neither other pages nor the API, whatever their names look like.
    for (const path of [
      "/pods/docs",
      "/pods/join",
      "/pods/v1/me",
      "/pods/v1/subscriptions.opml",
      "/pods/index.html",
      "/pods//",
      "/pods/assets/nothing.js",
      "/pods/assets/..%2f",
      "/pods/%2e%2e%2fassets",
      "/pods/.%00",
      "/podsx/",
      "/",
    ])
      await assert.rejects(page.goto(path), /ERR_(CONNECTION_REFUSED|FAILED)/, path);

    const second = await startServer({ ...settings, PORT: String(first.port) });
    // The error page of the browser may still be loading, which ends the first attempt.
    const open = () => page.goto("/pods/?from=home#list");
    await open().catch(open);
    await status(page, en.connection.unreachable).waitFor({ state: "hidden" });
    const countOnServer = async () => (await second.call("GET", "/pods/v1/subscriptions")).json.data.length;
    await until(countOnServer, 4);
    await finish();
  });

  test("offline start: a proxy without the server, or a server that does not respond → the page opens", async () => {
    const server = await startServer({ DATABASE_URL: `file:${temporaryFolder()}/earmark.db` });
    const { page, allow, finish } = await visit({ server, feeds: THREE, offlineStart: true, size: "phone" });
    allow(/^(failed|response): /);
    await rows(page).first().waitFor();
    await isInstalled(page);
    await server.close();
    const closeProxy = await listenOn(server.port, (_request, response) => response.writeHead(502).end("Bad Gateway"));
    await page.reload();
    await until(() => hosts(page).then((all) => all.length), 3);
    await closeProxy();
    const closeSilent = await listenOn(server.port, () => {});
    await page.reload();
    await until(() => hosts(page).then((all) => all.length), 3);
    await closeSilent();
    await finish();
  });

  test("offline start: a new version → shown by the next load, and stored", async () => {
    const server = await startServer({ DATABASE_URL: `file:${temporaryFolder()}/earmark.db` });
    await subscribe(server, THREE);
    const { text } = await server.call("GET", "/service-worker.js");
    await server.close();
    // A former version, in which the names and the content of the files were others.
    const former: Readonly<Record<string, readonly [type: string, body: string]>> = {
      "/": [
        "text/html",
        '<!doctype html><title>Former</title><script type="module" src="./assets/former-12345678.js"></script>',
      ],
      "/assets/former-12345678.js": ["text/javascript", 'navigator.serviceWorker.register("./service-worker.js")'],
      "/assets/theme.js": ["text/javascript", "document.title = 'Former theme'"],
      "/service-worker.js": [
        "text/javascript",
        text
          .replace(/VERSION = ".*"/, 'VERSION = "former"')
          .replace(/FILES = .*;/, 'FILES = ["former-12345678.js", "theme.js"];'),
      ],
    };
    const closeFormer = await listenOn(server.port, ({ url = "" }, response) => {
      const [type = "text/plain", body = ""] = former[url] ?? [];
      response.writeHead(former[url] === undefined ? 404 : 200, { "content-type": type }).end(body);
    });
    const { page, allow, finish } = await browser.newPage(server.url, { offlineStart: true });
    allow(/^(failed|response): /);
    await page.goto("/");
    await isInstalled(page);
    await closeFormer();
    await page.reload();
    assert.equal(await page.title(), "Former");

    const current = await startServer({ DATABASE_URL: server.databaseUrl, PORT: String(server.port) });
    await page.reload();
    await until(() => hosts(page).then((all) => all.length), 3);
    await until(async () => (await storedUrls(page)).filter((path) => path === "/").length, 2);
    await isInstalled(page);
    await current.close();
    await page.reload();
    await until(() => hosts(page).then((all) => all.length), 3);
    assert.equal(await page.evaluate("document.title"), `${en.views.list} – Earmark`);

    // Only the version before stays, for tabs that are still open.
    await page.evaluate(`caches.open("of another app").then(() => undefined)`);
    const changed = await startServer({
      DATABASE_URL: server.databaseUrl,
      PORT: String(server.port),
      EARMARK_PUBLIC_URL: server.url,
    });
    await page.reload();
    const names = () => page.evaluate<string[]>("caches.keys()");
    await until(async () => (await names()).some((name) => name.endsWith(" former")), false);
    assert.ok((await names()).includes("of another app"));
    assert.equal((await names()).length, 3);
    await changed.close();
    await finish();
  });

  test("offline start: signed in, then signed out → the list only while signed in", async () => {
    const settings = {
      DATABASE_URL: `file:${temporaryFolder()}/earmark.db`,
      EARMARK_ACCOUNTS: "true",
      EARMARK_SIGN_UP: "true",
    };
    const server = await startServer(settings);
    const ann = await signUp(server.port, "ann-of-the-hill", PASSWORD);
    const body = JSON.stringify({ "atomic:operations": [add(newId(), "https://of-ann.example/feed")] });
    const headers = { "Content-Type": ATOMIC, Accept: ATOMIC, Cookie: ann.cookie };
    assert.equal((await server.call("POST", "/v1/operations", { headers, body })).status, 200);
    const { page, allow, finish } = await visitAs({ server, as: ann, offlineStart: true, size: "desktop" });
    allow(/^(failed|response): /);
    await until(() => hosts(page), ["of-ann.example"]);
    await isInstalled(page);
    await server.close();
    await page.reload();
    await until(() => hosts(page), ["of-ann.example"]);
    const second = await startServer({ ...settings, PORT: String(server.port) });
    await openView(page, en.views.account);
    await button(page, en.account.signOut).click();
    await page.getByRole("heading", { name: en.account.signIn }).waitFor();
    const everything = await page.evaluate<string>(`(async () => {
      const texts = [JSON.stringify(localStorage)];
      for (const name of await caches.keys()) {
        const cache = await caches.open(name);
        for (const request of await cache.keys()) texts.push(await (await cache.match(request)).text());
      }
      return texts.join();
    })()`);
    assert.ok(everything.includes("<!doctype html>"));
    assert.doesNotMatch(everything, /of-ann|ann-of/);
    await second.close();
    await page.reload();
    await status(page, en.connection.unreachable).waitFor();
    assert.doesNotMatch(await page.content(), /of-ann|ann-of/);
    await finish();
  });

  test("offline start: plain http, where browsers have no service workers → the page works, without an error", async () => {
    const { page, finish } = await visit({
      feeds: THREE,
      prepare: (page) => page.addInitScript("delete Navigator.prototype.serviceWorker"),
    });
    await until(() => hosts(page).then((all) => all.length), 3);
    assert.equal(await page.evaluate("'serviceWorker' in navigator"), false);
    await finish();
  });
});
