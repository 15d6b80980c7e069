import assert from "node:assert/strict";
import { test } from "node:test";
import { HeldBytes, maxHeldBytes } from "./held-bytes.ts";

test("held bytes: over the limit → only owners with more than an equal share are over", () => {
  const held = new HeldBytes(100);
  held.add("hog", 100);
  assert.equal(held.isOver("hog"), false);
  held.add("bob", 10);
  assert.deepEqual([held.isOver("hog"), held.isOver("bob"), held.isOver("new")], [true, false, false]);
  held.add("bob", 45);
  assert.equal(held.isOver("bob"), true);
  held.add("hog", -60);
  assert.deepEqual([held.isOver("hog"), held.isOver("bob"), held.total], [false, false, 95]);
});

test("held bytes: memory of the machine → a tenth of it, within limits", () => {
  const MIB = 2 ** 20;
  assert.deepEqual(
    [100, 512, 4_096].map((mib) => Math.floor(maxHeldBytes(mib * MIB) / MIB)),
    [32, 51, 64],
  );
});
