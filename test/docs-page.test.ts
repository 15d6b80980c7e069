import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, launch } from "./support/browser.ts";
import { startServer } from "./support/server.ts";

const { newPage } = await launch();
const { url } = await startServer({ EARMARK_BASE_PATH: "/pods" });

for (const [size, theme] of [
  ["phone", "dark"],
  ["desktop", "light"],
] as const) {
  test(`/docs: ${size}, ${theme} → accessible, within the window and the content security policy`, async () => {
    const { page, finish } = await newPage(`${url}/pods/`, { size, theme });
    await page.goto("docs");
    await assertAccessible(page);
    const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
    assert.ok(Number(overflow) <= 0, `${overflow} px too wide`);
    await page.getByRole("navigation").getByRole("link", { name: "Errors" }).click();
    await page.getByRole("cell", { name: "already-subscribed", exact: true }).waitFor();
    await finish();
  });
}
