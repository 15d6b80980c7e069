import assert from "node:assert/strict";
import { test } from "node:test";
import { requestMemory } from "./admission.ts";
import { Budget } from "./budget.ts";

const KIB = 1024;
const holder = (owner: string) => ({ owner });
const budgetOf = (max: number, share = max / 2) => new Budget({ max, share, maxSmall: 64 * KIB });

test("budget: a reservation above the owner's share → accepted, but the owner gets no other", () => {
  const budget = budgetOf(1_000);
  const first = budget.reserve(holder("ann"));
  assert.equal(first.resize(900), true, "nothing else is held");
  const second = budget.reserve(holder("ann"));
  assert.equal(second.resize(1), false);
  first.release();
  assert.equal(second.resize(500), true);
  assert.equal(budget.reserve(holder("ann")).resize(1), false, "the share is half of the budget");
  assert.equal(budget.reserve(holder("bob")).resize(500), true);
  assert.equal(budget.reserve(holder("cid")).resize(1), false, "the budget is used up");
  assert.equal(budget.taken, 1_000);
});

test("budget: large reservations fill three quarters → small ones still fit, and the other way round", () => {
  const budget = budgetOf(1_000 * KIB, 1_000 * KIB);
  const [first, second] = [budget.reserve(holder("ann")), budget.reserve(holder("bob"))];
  assert.equal(first.resize(700 * KIB), true);
  assert.equal(second.resize(100 * KIB), false);
  assert.equal(second.resize(64 * KIB), true);
  first.release();
  assert.equal(first.resize(750 * KIB), true, "small ones do not keep a large one out");
});

test("budget: a large reservation that exceeds the budget → accepted if no other large one is held, and small ones still fit", () => {
  const budget = budgetOf(1_000 * KIB);
  const small = budget.reserve(holder("bob"));
  assert.equal(small.resize(KIB), true);
  const large = budget.reserve(holder("ann"));
  assert.equal(large.resize(5_000 * KIB), true);
  assert.equal(budget.taken, 751 * KIB);
  assert.equal(budget.reserve(holder("cid")).resize(65 * KIB), false);
  assert.equal(small.resize(64 * KIB), true);
  large.release();
  small.release();
  assert.equal(budget.taken, 0);
});

test("budget: a reservation that exceeds the budget, small or large → accepted when nothing else is held", () => {
  const budget = budgetOf(100);
  const first = budget.reserve(holder("ann"));
  assert.equal(first.resize(101), true);
  assert.equal(budget.reserve(holder("bob")).resize(1), false);
  first.release();
  assert.equal(budget.taken, 0);
});

test("budget: a reservation that cannot grow → keeps what it held", () => {
  const budget = budgetOf(100);
  const [ann, bob] = [budget.reserve(holder("ann")), budget.reserve(holder("bob"))];
  assert.equal(ann.resize(50), true);
  assert.equal(bob.resize(40), true);
  assert.equal(bob.fits(50), true);
  assert.equal(bob.resize(51), false);
  assert.equal(bob.held, 40);
  assert.equal(budget.taken, 90);
  bob.release();
  bob.release();
  assert.equal(budget.taken, 50);
});

test("budget: memory for requests → a fraction of the available memory, within bounds", () => {
  const MIB = 2 ** 20;
  assert.equal(requestMemory(64 * MIB), 32 * MIB);
  assert.equal(requestMemory(512 * MIB), 96 * MIB);
  assert.equal(requestMemory(64 * 1024 * MIB), 128 * MIB);
  assert.ok(requestMemory() >= 32 * MIB);
});
