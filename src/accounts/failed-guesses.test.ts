import assert from "node:assert/strict";
import { test } from "node:test";
import { FailedGuesses } from "./failed-guesses.ts";

/** A state in which twenty networks have failed for the name, that many milliseconds ago. */
function manyFailures(name: string, ago: number): FailedGuesses {
  let now = 0;
  const guesses = new FailedGuesses(() => now);
  for (let network = 0; network < 20; network += 1) guesses.record(name, `network ${network}`);
  now = ago;
  return guesses;
}

/** Whether the promise resolves before the next timer or I/O. */
async function isImmediate(delay: Promise<number>): Promise<boolean> {
  const later = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
  return (await Promise.race([delay, later])) !== undefined;
}

test("failed guesses: many for a name → a network that failed is delayed, one that did not is not", async () => {
  // Nearly three seconds later, only a tenth of a second is left to wait.
  const guesses = manyFailures("ann", 2_900);
  const delayed = guesses.delay("ann", "network 3");
  assert.equal(await isImmediate(guesses.delay("ann", "elsewhere")), true);
  assert.equal(await isImmediate(guesses.delay("bob", "network 3")), true);
  assert.equal(await isImmediate(delayed), false);
  assert.equal(await delayed, 0);
});

test("failed guesses: few for a name → nobody is delayed", async () => {
  const guesses = new FailedGuesses();
  for (let count = 0; count < 19; count += 1) guesses.record("ann", "network");
  assert.equal(await isImmediate(guesses.delay("ann", "network")), true);
});

test("failed guesses: a minute later → nobody is delayed", async () => {
  assert.equal(await isImmediate(manyFailures("ann", 60_000).delay("ann", "network 3")), true);
});

test("failed guesses: too many delayed already → the next must retry later, until a slot is free", async () => {
  const guesses = manyFailures("ann", 2_900);
  const delayed = Array.from({ length: 10 }, (_, network) => guesses.delay("ann", `network ${network}`));
  assert.equal(await guesses.delay("ann", "network 11"), 100);
  assert.equal(await isImmediate(guesses.delay("ann", "elsewhere")), true);
  await Promise.all(delayed);
  assert.equal(await guesses.delay("ann", "network 11"), 0);
});
