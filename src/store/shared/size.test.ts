import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { estimateSize, SAMPLE_USERS } from "./size.ts";

/** What an engine would read of users with these ids, each with ten subscriptions. */
function sampleOf(ids: readonly number[]) {
  const first = ids.toSorted((one, other) => one - other).slice(0, SAMPLE_USERS);
  const users = { count: first.length, lastUser: first.at(-1) ?? 0 };
  return { accounts: users, lists: { ...users, subscriptions: 10 * first.length } };
}

test("size: few users → exact", () => {
  assert.deepEqual(estimateSize(sampleOf([])), { accounts: 0, subscriptions: 0 });
  assert.deepEqual(estimateSize(sampleOf([1])), { accounts: 1, subscriptions: 10 });
  const ids = Array.from({ length: SAMPLE_USERS - 1 }, (_, index) => index + 1);
  assert.deepEqual(estimateSize(sampleOf(ids)), { accounts: ids.length, subscriptions: 10 * ids.length });
});

test("size: more users than the sample → an estimate within 10 %", () => {
  const count = 20 * SAMPLE_USERS;
  const ids = Array.from({ length: count }, () => randomInt(2, 2 ** 48 - 1));
  const { accounts, subscriptions } = estimateSize(sampleOf(ids));
  // Seven standard deviations.
  assert.ok(Math.abs(accounts / count - 1) < 0.1, `${accounts} of ${count}`);
  assert.ok(Math.abs(subscriptions / (10 * count) - 1) < 0.1, `${subscriptions} of ${10 * count}`);
});
