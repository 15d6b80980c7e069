import assert from "node:assert/strict";
import { test } from "node:test";
import { hashPassword, verifyPassword } from "../src/accounts/passwords.ts";

/** In a process of its own, with the real cost of a hash. */

const PASSWORD = "correct horse battery staple";

test("verify: no hash → takes as long as with one", async () => {
  const hashed = await hashPassword("another one");
  const took = new Map<string | undefined, number[]>([hashed, undefined, ""].map((hash) => [hash, []]));
  for (let round = 0; round < 5; round += 1) {
    for (const [hash, all] of took) {
      const start = performance.now();
      await verifyPassword(PASSWORD, hash);
      all.push(performance.now() - start);
    }
  }
  const [known = 0, unknown = 0, empty = 0] = [...took.values()].map((all) => all.toSorted((a, b) => a - b)[2]);
  for (const other of [unknown, empty])
    assert.ok(other > known / 3 && other < known * 3, `${other} ms instead of ${known} ms`);
});
