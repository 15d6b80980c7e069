import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { type Client, createClient, guid } from "../client/src/index.ts";
import { launch } from "./support/browser.ts";
import { buildExamples, has } from "./support/examples.ts";
import { newUser } from "./support/http-accounts.ts";
import { cleanEnvironment } from "./support/process.ts";
import { startServer, temporaryFolder } from "./support/server.ts";

const [A, B, C] = ["https://a.example/feed", "https://b.example/feed", "https://c.example/feed"] as const;
const run = promisify(execFile);

const folder = await buildExamples();
const example = (name: string) => join(folder, "examples", name);

const TYPES: Readonly<Record<string, string>> = { ".html": "text/html", ".js": "text/javascript" };
const files = createServer(({ url = "/" }, response) => {
  // Not every browser asks for an icon.
  if (url === "/favicon.ico") {
    response.writeHead(204).end();
    return;
  }
  response.setHeader("Content-Type", TYPES[extname(url)] ?? "");
  createReadStream(join(folder, url))
    .on("error", () => response.writeHead(404).end())
    .pipe(response);
}).listen(0, "localhost");
await once(files, "listening");
after(() => {
  files.close();
  files.closeAllConnections();
});
const origin = `http://localhost:${(files.address() as AddressInfo).port}`;

const server = await startServer({ EARMARK_ACCOUNTS: "true", EARMARK_CORS_ORIGINS: origin });
const { url } = server;

/** A new account: the token of the app, and another device. */
async function newAccount(): Promise<{ readonly token: string; readonly device: Client }> {
  const { Authorization } = await newUser(server);
  const token = Authorization.slice("Bearer ".length);
  return { token, device: createClient({ url, token }) };
}

/** Waits until the device sees these feeds. */
async function untilListed(device: Client, ...feeds: readonly string[]): Promise<void> {
  let found: string[] = [];
  for (let tries = 0; tries < 300; tries += 1) {
    found = (await device.page()).items.map(({ feedUrl }) => feedUrl);
    if (found.join() === feeds.join()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.deepEqual(found, feeds);
}

/** A running program and the lines it prints. */
function start(program: string, args: readonly string[], environment: Record<string, string>) {
  const child: ChildProcess = spawn(program, args, {
    env: cleanEnvironment(environment),
    stdio: ["pipe", "pipe", "inherit"],
  });
  after(() => child.kill());
  const { stdin, stdout } = child;
  assert.ok(stdin && stdout);
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  return {
    type: (line: string) => stdin.write(`${line}\n`),
    /** Waits for a line that matches, and ignores others. */
    async until(pattern: RegExp): Promise<string> {
      for (;;) {
        const { value, done } = await lines.next();
        if (done) assert.fail(`ended without ${pattern}`);
        if (pattern.test(value)) return value;
      }
    },
    async end(): Promise<string[]> {
      stdin.end();
      const rest: string[] = [];
      for await (const line of { [Symbol.asyncIterator]: () => lines }) rest.push(line);
      return rest;
    },
  };
}

test("sync.mjs: edits on two devices, also while offline → the same list", { timeout: 60_000 }, async () => {
  const { token, device } = await newAccount();
  const EARMARK_FOLDER = temporaryFolder();
  const app = start(process.execPath, [example("sync.mjs")], {
    EARMARK_URL: url,
    EARMARK_TOKEN: token,
    EARMARK_FOLDER,
  });
  app.type(`add ${A}`);
  await app.until(/^\+ https:\/\/a\.example\/feed$/);
  await untilListed(device, A);
  await device.subscribe([{ url: B, title: "Bee" }]);
  await app.until(/^\+ https:\/\/b\.example\/feed Bee$/);
  app.type(`rename ${B} Bumble bee`);
  await app.until(/^~ https:\/\/b\.example\/feed Bumble bee$/);
  app.type("add nonsense");
  await app.until(/^refused: add nonsense Invalid feed URL/);
  app.type(`remove ${C}`);
  await app.until(/^not in the list$/);
  await device.remove([guid(A)]);
  await app.until(/^- https:\/\/a\.example\/feed$/);
  await app.end();

  const offline = start(process.execPath, [example("sync.mjs")], { EARMARK_URL: "http://127.0.0.1:1", EARMARK_FOLDER });
  await offline.until(/^\+ .* Bumble bee$/);
  offline.type(`add ${C}`);
  await offline.until(/^\+ https:\/\/c\.example\/feed$/);
  await offline.until(/^offline: /);
  assert.match((await offline.end()).join(), /1 edits will be sent the next time/);

  const again = start(process.execPath, [example("sync.mjs")], {
    EARMARK_URL: url,
    EARMARK_TOKEN: token,
    EARMARK_FOLDER,
  });
  await untilListed(device, B, C);
  await again.end();
});

test("sync.py: edits on two devices, also while offline → the same list", { timeout: 60_000 }, async (t) => {
  if (!(await has("python3"))) return t.diagnostic("Python is not installed: sync.py was not run.");
  const { token, device } = await newAccount();
  const online = { EARMARK_URL: url, EARMARK_TOKEN: token, EARMARK_FILE: join(temporaryFolder(), "list.json") };
  const offline = { ...online, EARMARK_URL: "http://127.0.0.1:1" };
  const sync = async (environment: Record<string, string>, ...words: readonly string[]) => {
    const env = cleanEnvironment(environment);
    const { stdout } = await run("python3", [example("sync.py"), ...words], { env });
    return stdout.split("\n").map((line) => line.trimEnd());
  };
  await device.subscribe([A]);
  assert.deepEqual(await sync(online, "add", B), [A, B, ""]);
  assert.deepEqual(await sync(offline, "rename", B, "Bumble", "bee"), [A, B, ""]);
  assert.deepEqual(await sync(offline, "remove", A), [A, B, ""]);
  await device.update([{ id: guid(A), title: "Ay" }]);
  assert.deepEqual(await sync(online, "list"), [`${B} Bumble bee`, ""]);
  assert.match((await sync(online, "add", "nonsense"))[0] ?? "", /^refused: add Invalid feed URL/);
  await untilListed(device, B);

  const watching = start("python3", [example("sync.py"), "watch"], online);
  await device.subscribe([C]);
  await watching.until(/^https:\/\/c\.example\/feed/);

  const denied = await run("python3", [example("sync.py")], {
    env: cleanEnvironment({ ...online, EARMARK_TOKEN: "x" }),
  }).catch((error) => error);
  assert.match(denied.stderr, /^401/);
});

test("sync.html: two tabs and another device, also while offline → the same list", { timeout: 120_000 }, async () => {
  const { token, device } = await newAccount();
  const { newPage } = await launch();
  const { page, context, allow, finish } = await newPage(origin);
  // The server is another origin; offline requests fail.
  allow(/^other-host/, /^failed/, /ERR_INTERNET_DISCONNECTED/);
  const other = await context.newPage();
  const tabs = [page, other];
  for (const tab of tabs) await tab.goto(`/examples/sync.html#${url} ${token}`);

  const add = async (tab: Page, feed: string) => {
    await tab.getByLabel("Feed URL").fill(feed);
    await tab.getByRole("button", { name: "Add" }).click();
  };
  const shows = async (tab: Page, ...titles: readonly string[]) => {
    const rows = tab.getByRole("listitem");
    for (const [index, title] of titles.entries()) await rows.nth(index).getByText(title).waitFor();
    for (let tries = 0; (await rows.count()) !== titles.length; tries += 1) {
      assert.ok(tries < 300, `${await rows.count()} rows instead of ${titles.length}`);
      await tab.waitForTimeout(50);
    }
  };

  await add(page, A);
  await add(other, B);
  for (const tab of tabs) await shows(tab, A, B);
  await untilListed(device, A, B);
  await device.update([{ id: guid(A), title: "<b>Ay</b>" }]);
  for (const tab of tabs) await shows(tab, "<b>Ay</b>", B);

  await context.setOffline(true);
  await add(other, C);
  await page.getByRole("button", { name: "Remove" }).first().click();
  for (const tab of tabs) await shows(tab, B, C);
  await untilListed(device, A, B);
  for (const tab of tabs) await tab.reload().catch(() => {});
  await context.setOffline(false);
  for (const tab of tabs) await tab.goto(`/examples/sync.html#${url} ${token}`);
  await untilListed(device, B, C);

  // The first tab did the work for both.
  await page.goto("about:blank");
  await device.remove([guid(B)]);
  await shows(other, C);
  await finish();
});
