import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/properties.ts";
import { type Gaps, locate, withGaps } from "./gaps.ts";

test("without gaps the item of a rank has the next number", () => {
  assert.deepEqual(locate(undefined, 0), { from: 1, skip: 0, until: 1 });
  assert.deepEqual(locate(undefined, 99_999), { from: 100_000, skip: 0, until: 100_000 });
});

test("whatever was removed, every rank leads to its item, and past few others", () => {
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
        assert.equal(items.filter((item) => item >= from)[skip], number);
      }
    }),
    { numRuns: 300 },
  );
});

test("counting gaps does not change what was counted before", () => {
  const before = withGaps(undefined, [1]);
  withGaps(before, [2]);
  assert.deepEqual([...before], [1]);
});
