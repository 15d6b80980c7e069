import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, launch } from "./support/browser.ts";
import { startServer } from "./support/server.ts";

const { newPage } = await launch();
const { url } = await startServer({ EARMARK_BASE_PATH: "/pods" });

test("/docs: dark phone and light desktop → accessible, within the window and the content security policy", async () => {
  const { page, finish } = await newPage(`${url}/pods/`, { size: "phone", theme: "dark" });
  await page.goto("docs");
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    await assertAccessible(page);
    const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert.ok(Number(overflow) <= 0, `${overflow} px too wide`);
    await page.getByRole("navigation").getByRole("link", { name: "Errors" }).click();
    await page.getByRole("row", { name: "already-subscribed 409" }).waitFor();
    await page.emulateMedia({ colorScheme: "light" });
  }
  await finish();
});
