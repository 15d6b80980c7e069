import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, launch } from "./support/browser.ts";
import { startServer } from "./support/server.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const server = await startServer({ EARMARK_BASE_PATH: "/pods" });
const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
  fetch(server.url + path, { method, headers });

test("unknown path: a browser → a page in its language that leads to Earmark", async () => {
  const { newPage } = await launch();
  const { page, allow, finish } = await newPage(server.url, { locale: "de-AT", size: "phone", theme: "dark" });
  allow(/^response: 404 GET/);
  for (const path of ["/pods/nothing", "/nothing", "/pods/v1/nothing?a=b", "/pods/%3Cscript%3E/%22x"]) {
    await page.goto(path);
    await page.getByRole("heading", { name: "Seite nicht gefunden" }).waitFor();
    assert.equal(await page.evaluate("getComputedStyle(document.body).display"), "grid");
    assert.doesNotMatch(await page.content(), /nothing|script/);
  }
  await assertAccessible(page);
  await page.getByRole("link", { name: "Earmark öffnen" }).click();
  await page.getByRole("navigation").first().waitFor();
  assert.equal(new URL(page.url()).pathname, "/pods/");
  await finish();
});

test("unknown path: anything but a browser that opens it → JSON", async () => {
  for (const [path, headers, method] of [
    ["/pods/nothing", {}],
    ["/pods/nothing", { Accept: "*/*" }],
    ["/pods/nothing", { Accept: "application/vnd.api+json" }],
    ["/pods/nothing", { Accept: BROWSER }, "POST"],
    ["/pods/api/2/nothing", { Accept: BROWSER }],
    ["/pods/assets/nothing.js", { Accept: BROWSER }],
  ] as const) {
    const response = await get(path, headers, method);
    assert.equal(response.status, 404, path);
    assert.match(response.headers.get("content-type") ?? "", /json/, path);
    await response.json();
  }
  // An error that is not about the path stays as it is.
  assert.equal((await get("/pods/v1/subscriptions", { Accept: "text/html" })).status, 406);
  const page = await get("/pods/nothing", { Accept: BROWSER });
  assert.deepEqual(
    [page.status, page.headers.get("content-type"), page.headers.get("vary")],
    [404, "text/html; charset=utf-8", "Accept, Accept-Language"],
  );
  assert.match(page.headers.get("content-security-policy") ?? "", /^default-src 'none'; style-src 'sha256-/);
  const head = await get("/pods/nothing", { Accept: BROWSER }, "HEAD");
  assert.deepEqual([head.status, await head.text()], [404, ""]);
});
