import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import { assertAccessible, launch, type PageOptions } from "./support/browser.ts";

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

const LOOK = `[innerWidth, innerHeight, navigator.maxTouchPoints > 0,
  matchMedia("(prefers-color-scheme: dark)").matches, navigator.language].join()`;

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
  test("browser: phone, dark, German → as requested, and no problems", async () => {
    const { page, finish } = await open({}, { size: "phone", theme: "dark", locale: "de-DE" });
    assert.equal(await page.evaluate(LOOK), "390,844,true,true,de-DE");
    await assertAccessible(page);
    await finish();
  });

  test("page without problems", async (t) => {
    const { page, context, allow, problems } = await open({ script: "await (await fetch('/fine')).text()" });

    await t.test("browser: page without problems → passes every check", async () => {
      assert.equal(await page.evaluate(LOOK), "1280,800,false,false,en-US");
      await assertAccessible(page);
      assert.deepEqual(await problems(), []);
    });

    await t.test("browser: request without a response → reported", async () => {
      await context.setOffline(true);
      await page.evaluate("fetch('/fine').catch(() => 0).then(() => 0)");
      assert.match((await problems()).join(), /^failed: GET \S+\/fine net::ERR_INTERNET_DISCONNECTED$/);
      allow(/^failed: .*ERR_INTERNET_DISCONNECTED/);
      await context.setOffline(false);
    });

    await t.test("browser: public host name → not resolved", async () => {
      await assert.rejects(page.goto("http://example.com/"), /ERR_NAME_NOT_RESOLVED/);
      assert.match((await problems()).join(), /other-host: GET http:\/\/example\.com\//);
    });
    await context.close();
  });

  test("page with problems", async (t) => {
    const otherHost = await listen(
      createServer((_, response) => response.setHeader("access-control-allow-origin", "*").end()),
    );
    const reported: readonly [name: string, script: string, expected: RegExp][] = [
      ["an error on the console", "console.error('planted')", /^console: planted$/],
      ["an exception", "setTimeout(() => { throw new Error('thrown') })", /^error: Error: thrown/],
      ["an unhandled rejection", "Promise.reject(new Error('rejected'))", /^error: Error: rejected/],
      ["a response with status 404", "await fetch('/planted')", /^response: 404 GET http:\S+\/planted$/],
      ["eval", "try { eval('1') } catch {}", /^policy: .*eval/],
      ["markup from a string", "try { document.body.innerHTML = '<i>' } catch {}", /^policy: require-trusted-types/],
      ["an inline style", "document.body.setAttribute('style', 'color: red')", /^policy: style-src/],
      [
        "request to another host that responds",
        `await (await fetch('${otherHost}/planted')).text()`,
        /^other-host: GET http:\/\/127\.0\.0\.1:\d+\/planted$/,
      ],
    ];
    const barriers: readonly [name: string, body: string, rule: RegExp][] = [
      ["an image without alternative text", '<img src="data:,">', /image-alt \(critical\)/],
      ["buttons too small to touch", SMALL_BUTTONS, /target-size \(serious\)/],
      ["a heading out of order", "<h4>Planted</h4>", /heading-order \(moderate\)/],
    ];
    const { page, allow, problems, finish } = await open({
      body: barriers.map(([, body]) => body).join(""),
      script: reported.map(([, script]) => script).join(";\n"),
    });

    const all = await problems();
    for (const [name, , expected] of reported)
      await t.test(`browser: ${name} → reported`, () =>
        assert.ok(
          all.some((problem) => expected.test(problem)),
          all.join("\n"),
        ),
      );

    const { message } = await assertAccessible(page).then(
      () => new Error("accessible"),
      (error: Error) => error,
    );
    for (const [name, , rule] of barriers)
      await t.test(`browser: ${name} → not accessible`, () => assert.match(message, rule));

    await t.test("browser: allowed problem → only the others are reported", async () => {
      allow(/^(error|other-host|policy|response): /);
      assert.deepEqual(await problems(), ["console: planted"]);
      await assert.rejects(finish(), /the page had problems:\n {2}console: planted/);
    });
  });
});
