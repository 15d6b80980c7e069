import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/properties.ts";
import { assertPageComplete, type Gaps, locate, withGaps } from "./gaps.ts";

test("locate: no gaps → the item of rank N has number N + 1", () => {
  assert.deepEqual(locate(undefined, 0), { from: 1, skip: 0, until: 1 });
  assert.deepEqual(locate(undefined, 99_999), { from: 100_000, skip: 0, until: 100_000 });
});

test("withGaps: numbers → counted in blocks of 128", () => {
  assert.deepEqual([...withGaps(undefined, [1, 128, 129, 400])], [2, 1, 0, 1]);
  assert.deepEqual([...withGaps(new Uint8Array([2, 1]), [257])], [2, 1, 1]);
  assert.deepEqual([...withGaps(new Uint8Array([2, 1, 5]), [1])], [3, 1, 5]);
  const gaps = new Uint8Array([128, 1]);
  assert.deepEqual(locate(gaps, 0), { from: 129, skip: 0, until: 256 });
  assert.deepEqual(locate(gaps, 126), { from: 129, skip: 126, until: 256 });
  assert.deepEqual(locate(gaps, 127), { from: 257, skip: 0, until: 257 });
  assert.deepEqual(locate(gaps, 130), { from: 260, skip: 0, until: 260 });
});

test("locate: any removals → finds the item of every rank, and skips few others", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000 }), fc.array(fc.nat(), { maxLength: 400 }), (length, removals) => {
      let items = Array.from({ length }, (_, index) => index + 1);
      let next = length + 1;
      let gaps: Gaps | undefined;
      for (const removal of removals) {
        const [removed] = items.splice(removal % items.length, 1);
        gaps = withGaps(gaps, [removed ?? 0, next]);
        next += 1;
        items = [...items, next];
        next += 1;
      }
      for (const [rank, number] of items.entries()) {
        const { from, skip, until } = locate(gaps, rank);
        assert.ok(skip < 128);
        assert.ok(from <= number && number <= until && until - from < 128);
        // Skipping starts at the first item whose number is at least `from`.
        const first = rank - skip;
        assert.ok((items[first] ?? 0) >= from && (items[first - 1] ?? 0) < from);
      }
    }),
    { numRuns: 300 },
  );
});

test("withGaps: given counts → not modified", () => {
  const before = withGaps(undefined, [1]);
  withGaps(before, [2]);
  assert.deepEqual([...before], [1]);
});

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
