import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { forEachInTurns, slicesOf } from "./turns.ts";

const LISTS = 50;
const items = Array.from({ length: 1_000 }, (_, index) => index);

test("turns: many long lists at once → other work is done between their slices", async () => {
  let slices = 0;
  let most = 0;
  const lists = Array.from({ length: LISTS }, async () => {
    for await (const _ of slicesOf(items)) slices += 1;
  });
  const all = Promise.all(lists).then(() => true);
  while (!(await Promise.race([all, setImmediate(false)]))) {
    most = Math.max(most, slices);
    slices = 0;
  }
  assert.ok(most <= 2, `${most} slices in a row`);
});

test("turns: a list → each item once, in order", async () => {
  const seen: number[] = [];
  await forEachInTurns(items, (item) => seen.push(item));
  assert.deepEqual(seen, items);
});
