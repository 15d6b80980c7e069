import assert from "node:assert/strict";
import { test } from "node:test";
import { assertPageComplete } from "./page.ts";

test("assertPageComplete: more or fewer items than the total implies → an error", () => {
  for (const [items, offset, size, total] of [
    [10, 0, 10, 25],
    [5, 20, 10, 25],
    [0, 25, 10, 25],
    [0, 1_000, 10, 25],
    [0, 0, 10, 0],
  ] as const) {
    assertPageComplete(items, { offset, size }, total);
    for (const wrong of [items - 1, items + 1])
      assert.throws(() => assertPageComplete(wrong, { offset, size }, total), /damaged/);
  }
});
