import assert from "node:assert/strict";
import { after, test } from "node:test";
import { launch, longTasks, slowCpu } from "../test/support/browser.ts";
import { startServer } from "../test/support/server.ts";

/** What bench/page.ts measures with. */

const { url } = await startServer();
const { newPage } = await launch();
const { page, problems, context } = await newPage(url);
after(() => context.close());
await page.goto("/healthz");

test("browser: busy for 120 ms → one long task", async () => {
  const long = async () => (await longTasks(page)).filter(({ duration }) => duration >= 120);
  const before = (await long()).length;
  await page.evaluate(`new Promise((done) => setTimeout(() => {
    const end = performance.now() + 120;
    while (performance.now() < end);
    setTimeout(done);
  }))`);
  assert.equal((await long()).length, before + 1);
});

test("browser: throttled processor → slower, and as before afterwards", async () => {
  const work = "{ const start = performance.now(); for (let n = 0; n < 3e7; n += 1); performance.now() - start }";
  const measure = async () => {
    const times: number[] = [];
    for (let round = 0; round < 3; round += 1) times.push(await page.evaluate<number>(work));
    return Math.min(...times);
  };
  const before = await measure();
  // Far more than other load on the machine could. The browser needs a moment to begin.
  await slowCpu(page, 20);
  let slow = await measure();
  for (let tries = 1; tries < 10 && slow < 2 * before; tries += 1) slow = await measure();
  await slowCpu(page, 1);
  let after = await measure();
  for (let tries = 1; tries < 10 && after > slow / 2; tries += 1) after = await measure();
  assert.ok(slow > 2 * before && slow > 2 * after, `${before} ms, ${slow} ms when slow, ${after} ms again`);
  assert.deepEqual(await problems(), []);
});
