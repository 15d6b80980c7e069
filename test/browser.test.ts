import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { assertAccessible, launch, longTasks, type PageOptions, slowCpu } from "./browser.ts";

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

/** A page that nothing can be said against, with something planted in it. */
function pageWith({ body = "", script = "" }: { readonly body?: string; readonly script?: string }): Server {
  const answers: Readonly<Record<string, readonly [type: string, text: string]>> = {
    "/": [
      "text/html; charset=utf-8",
      `<!doctype html><html lang="en"><head><title>A page</title><meta name="viewport" content="width=device-width">
       <link rel="icon" href="data:,"><link rel="stylesheet" href="/page.css"></head>
       <body><main><h1>A page</h1><p>Nothing wrong.</p>${body}</main><script src="/page.js"></script></body></html>`,
    ],
    // Planted scripts may wait; what they throw meanwhile is thrown to the page.
    "/page.js": [
      "text/javascript",
      `(async () => {${script}})().finally(() => (document.documentElement.id = "done"))`,
    ],
    "/page.css": ["text/css", STYLE],
    "/fine": ["text/plain", "fine"],
  };
  return createServer((request, response) => {
    const answer = answers[request.url ?? ""];
    response.setHeader("content-security-policy", POLICY);
    response.setHeader("content-type", answer?.[0] ?? "text/plain");
    response.writeHead(answer === undefined ? 404 : 200).end(answer?.[1] ?? "");
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

/** A page with something planted, opened and done with what it does at once. */
async function open(planted: { readonly body?: string; readonly script?: string }, options: PageOptions = {}) {
  const url = await listen(pageWith(planted));
  const watched = await browser.newPage(url, options);
  await watched.page.goto("/");
  await watched.page.locator("#done").waitFor();
  return watched;
}

describe("a page in a browser", () => {
  test("that is fine passes every check", async () => {
    const { page, finish } = await open({ script: "await (await fetch('/fine')).text()" });
    await assertAccessible(page);
    await finish();
  });

  test("has the size, the theme and the language that were asked for", async () => {
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
    ["a rejection", "Promise.reject(new Error('planted'))", /^error: Error: planted/],
    ["an answer with an error", "await fetch('/planted')", /^answer: 404 GET http:\S+\/planted$/],
    ["a script that the policy forbids", "try { eval('1') } catch {}", /^policy: .*eval/],
    [
      "markup that is not trusted",
      "try { document.body.innerHTML = '<i>' } catch {}",
      /^policy: require-trusted-types/,
    ],
    ["a style that the policy forbids", "document.body.setAttribute('style', 'color: red')", /^policy: style-src/],
  ];
  for (const [name, script, expected] of problems) {
    test(`with ${name} fails`, async () => {
      const watched = await open({ script });
      const all = await watched.problems();
      assert.ok(
        all.some((problem) => expected.test(problem)),
        all.join("\n"),
      );
      await assert.rejects(watched.finish(), /the page had problems/);
    });
  }

  test("with a request to elsewhere fails, even if it is answered", async () => {
    const elsewhere = await listen(
      createServer((_, response) => response.setHeader("access-control-allow-origin", "*").end()),
    );
    const watched = await open({ script: `await (await fetch('${elsewhere}/planted')).text()` });
    assert.deepEqual(await watched.problems(), [`elsewhere: GET ${elsewhere}/planted`]);
    await assert.rejects(watched.finish(), /elsewhere: GET/);
  });

  test("with a request that gets no answer fails", async () => {
    const watched = await open({});
    await watched.context.setOffline(true);
    await watched.page.evaluate("fetch('/fine').catch(() => 0).then(() => 0)");
    assert.match((await watched.problems()).join(), /^failed: GET \S+\/fine net::ERR_INTERNET_DISCONNECTED$/);
    watched.allow(/^failed: .*ERR_INTERNET_DISCONNECTED/);
    await watched.finish();
  });

  test("never reaches the network", async () => {
    const watched = await open({});
    await assert.rejects(watched.page.goto("http://example.com/"), /ERR_NAME_NOT_RESOLVED/);
    assert.match((await watched.problems()).join(), /elsewhere: GET http:\/\/example\.com\//);
    await watched.context.close();
  });

  test("may have the problems that its test allows, and no others", async () => {
    const watched = await open({ script: "await fetch('/planted'); console.error('another')" });
    watched.allow(/^answer: 404 GET .*\/planted$/);
    assert.deepEqual(await watched.problems(), ["console: another"]);
    watched.allow(/another/);
    await watched.finish();
  });

  const barriers: readonly [name: string, body: string, rule: RegExp][] = [
    ["an image without a text", '<img src="data:,">', /image-alt \(critical\)/],
    ["buttons too small to touch", SMALL_BUTTONS, /target-size \(serious\)/],
    ["a heading out of order", "<h4>Planted</h4>", /heading-order \(moderate\)/],
  ];
  for (const [name, body, rule] of barriers) {
    test(`with ${name} is not accessible`, async () => {
      const { page, context } = await open({ body });
      await assert.rejects(assertAccessible(page), rule);
      await context.close();
    });
  }

  test("that keeps the processor busy has a long task", async () => {
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

  test("can be slowed down", async () => {
    const { page, finish } = await open({});
    const work = "{ const start = performance.now(); for (let n = 0; n < 3e7; n += 1); performance.now() - start }";
    const measure = async () => {
      const times: number[] = [];
      for (let round = 0; round < 3; round += 1) times.push(await page.evaluate<number>(work));
      return Math.min(...times);
    };
    const before = await measure();
    // By far more than what else goes on here could.
    await slowCpu(page, 20);
    const slow = await measure();
    await slowCpu(page, 1);
    const after = await measure();
    assert.ok(slow > 2 * before && slow > 2 * after, `${before} ms, ${slow} ms when slow, ${after} ms again`);
    await finish();
  });
});
