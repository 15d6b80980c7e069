import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { assertAccessible, launch, longTasks, type PageOptions, slowCpu } from "./support/browser.ts";

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src data:",
  "connect-src 'self' http://127.0.0.1:*",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const STYLE = `
  @media (prefers-color-scheme: dark) { html { background: #000; color: #fff } }
  .small { width: 9px; height: 9px; padding: 0; border: 0 }`;

/** A page without problems, plus the given ones. */
function pageWith({ body = "", script = "" }: { readonly body?: string; readonly script?: string }): Server {
  const files: Readonly<Record<string, readonly [type: string, text: string]>> = {
    "/": [
      "text/html; charset=utf-8",
      `<!doctype html><html lang="en"><head><title>A page</title><meta name="viewport" content="width=device-width">
       <link rel="icon" href="data:,"><link rel="stylesheet" href="/page.css"></head>
       <body><main><h1>A page</h1><p>No problems.</p>${body}</main><script src="/page.js"></script></body></html>`,
    ],
    "/page.js": [
      "text/javascript",
      `(async () => {${script}})().finally(() => (document.documentElement.id = "done"))`,
    ],
    "/page.css": ["text/css", STYLE],
    "/fine": ["text/plain", "fine"],
  };
  return createServer((request, response) => {
    const file = files[request.url ?? ""];
    response.setHeader("content-security-policy", POLICY);
    response.setHeader("content-type", file?.[0] ?? "text/plain");
    response.writeHead(file === undefined ? 404 : 200).end(file?.[1] ?? "");
  });
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const SMALL_BUTTONS = ["One", "Two"].map((name) => `<button class="small" aria-label="${name}"></button>`).join("");

const browser = await launch();

/** Opens such a page and waits until its script has run. */
async function open(problem: { readonly body?: string; readonly script?: string }, options: PageOptions = {}) {
  const url = await listen(pageWith(problem));
  const watched = await browser.newPage(url, options);
  await watched.page.goto("/");
  await watched.page.locator("#done").waitFor();
  return watched;
}

describe("browser", () => {
  test("browser: page without problems → passes every check", async () => {
    const { page, finish } = await open({ script: "await (await fetch('/fine')).text()" });
    await assertAccessible(page);
    await finish();
  });

  test("browser: size, theme and locale → as requested", async () => {
    const see = `[innerWidth, innerHeight, navigator.maxTouchPoints > 0,
      matchMedia("(prefers-color-scheme: dark)").matches, navigator.language].join()`;
    const phone = await open({}, { size: "phone", theme: "dark", locale: "de-DE" });
    assert.equal(await phone.page.evaluate(see), "390,844,true,true,de-DE");
    await assertAccessible(phone.page);
    await phone.finish();
    const desktop = await open({});
    assert.equal(await desktop.page.evaluate(see), "1280,800,false,false,en-US");
    await desktop.finish();
  });

  const problems: readonly [name: string, script: string, expected: RegExp][] = [
    ["an error on the console", "console.error('planted')", /^console: planted$/],
    ["an exception", "setTimeout(() => { throw new Error('planted') })", /^error: Error: planted/],
    ["an unhandled rejection", "Promise.reject(new Error('planted'))", /^error: Error: planted/],
    ["a response with status 404", "await fetch('/planted')", /^response: 404 GET http:\S+\/planted$/],
    ["eval", "try { eval('1') } catch {}", /^policy: .*eval/],
    ["markup from a string", "try { document.body.innerHTML = '<i>' } catch {}", /^policy: require-trusted-types/],
    ["an inline style", "document.body.setAttribute('style', 'color: red')", /^policy: style-src/],
  ];
  for (const [name, script, expected] of problems) {
    test(`browser: ${name} → reported`, async () => {
      const watched = await open({ script });
      const all = await watched.problems();
      assert.ok(
        all.some((problem) => expected.test(problem)),
        all.join("\n"),
      );
      await assert.rejects(watched.finish(), /the page had problems/);
    });
  }

  test("browser: request to another host that responds → reported", async () => {
    const otherHost = await listen(
      createServer((_, response) => response.setHeader("access-control-allow-origin", "*").end()),
    );
    const watched = await open({ script: `await (await fetch('${otherHost}/planted')).text()` });
    assert.deepEqual(await watched.problems(), [`other-host: GET ${otherHost}/planted`]);
    await assert.rejects(watched.finish(), /other-host: GET/);
  });

  test("browser: request without a response → reported", async () => {
    const watched = await open({});
    await watched.context.setOffline(true);
    await watched.page.evaluate("fetch('/fine').catch(() => 0).then(() => 0)");
    assert.match((await watched.problems()).join(), /^failed: GET \S+\/fine net::ERR_INTERNET_DISCONNECTED$/);
    watched.allow(/^failed: .*ERR_INTERNET_DISCONNECTED/);
    await watched.finish();
  });

  test("browser: public host name → not resolved", async () => {
    const watched = await open({});
    await assert.rejects(watched.page.goto("http://example.com/"), /ERR_NAME_NOT_RESOLVED/);
    assert.match((await watched.problems()).join(), /other-host: GET http:\/\/example\.com\//);
    await watched.context.close();
  });

  test("browser: allowed problem → only the others are reported", async () => {
    const watched = await open({ script: "await fetch('/planted'); console.error('another')" });
    watched.allow(/^response: 404 GET .*\/planted$/);
    assert.deepEqual(await watched.problems(), ["console: another"]);
    watched.allow(/another/);
    await watched.finish();
  });

  const barriers: readonly [name: string, body: string, rule: RegExp][] = [
    ["an image without alternative text", '<img src="data:,">', /image-alt \(critical\)/],
    ["buttons too small to touch", SMALL_BUTTONS, /target-size \(serious\)/],
    ["a heading out of order", "<h4>Planted</h4>", /heading-order \(moderate\)/],
  ];
  for (const [name, body, rule] of barriers) {
    test(`browser: ${name} → not accessible`, async () => {
      const { page, context } = await open({ body });
      await assert.rejects(assertAccessible(page), rule);
      await context.close();
    });
  }

  test("browser: busy for 120 ms → one long task", async () => {
    const { page, finish } = await open({});
    const long = async () => (await longTasks(page)).filter(({ duration }) => duration >= 120);
    assert.deepEqual(await long(), []);
    await page.evaluate(`new Promise((done) => setTimeout(() => {
      const end = performance.now() + 120;
      while (performance.now() < end);
      setTimeout(done);
    }))`);
    assert.equal((await long()).length, 1);
    await finish();
  });

  test("browser: throttled processor → slower, and as before afterwards", async () => {
    const { page, finish } = await open({});
    const work = "{ const start = performance.now(); for (let n = 0; n < 3e7; n += 1); performance.now() - start }";
    const measure = async () => {
      const times: number[] = [];
      for (let round = 0; round < 3; round += 1) times.push(await page.evaluate<number>(work));
      return Math.min(...times);
    };
    const before = await measure();
    // Far more than other load on the machine could.
    await slowCpu(page, 20);
    const slow = await measure();
    await slowCpu(page, 1);
    const after = await measure();
    assert.ok(slow > 2 * before && slow > 2 * after, `${before} ms, ${slow} ms when slow, ${after} ms again`);
    await finish();
  });
});
