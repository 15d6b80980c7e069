import assert from "node:assert/strict";
import { test } from "node:test";
import { FailedGuesses } from "./failed-guesses.ts";

const NOW = new Date("2026-05-04T10:00:00Z");
const later = (ms: number) => new Date(NOW.getTime() + ms);

/** A state in which twenty networks have just failed for the name. */
function manyFailures(name: string): FailedGuesses {
  const guesses = new FailedGuesses();
  for (let network = 0; network < 20; network += 1) guesses.record(name, `network ${network}`, NOW);
  return guesses;
}

/** Whether the promise resolves before the next timer or I/O. */
async function isImmediate(delay: Promise<number>): Promise<boolean> {
  const later = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
  return (await Promise.race([delay, later])) !== undefined;
}

test("failed guesses: many for a name → a network that failed is delayed, one that did not is not", async () => {
  const guesses = manyFailures("ann");
  // Nearly three seconds later, only a tenth of a second is left to wait.
  const at = later(2_900);
  const delayed = guesses.delay("ann", "network 3", at);
  assert.equal(await isImmediate(guesses.delay("ann", "elsewhere", at)), true);
  assert.equal(await isImmediate(guesses.delay("bob", "network 3", at)), true);
  assert.equal(await isImmediate(delayed), false);
  assert.equal(await delayed, 0);
});

test("failed guesses: few for a name → nobody is delayed", async () => {
  const guesses = new FailedGuesses();
  for (let count = 0; count < 19; count += 1) guesses.record("ann", "network", NOW);
  assert.equal(await isImmediate(guesses.delay("ann", "network", NOW)), true);
});

test("failed guesses: a minute later → nobody is delayed", async () => {
  assert.equal(await isImmediate(manyFailures("ann").delay("ann", "network 3", later(60_000))), true);
});

test("failed guesses: too many delayed already → the next must retry later, until a slot is free", async () => {
  const guesses = manyFailures("ann");
  const at = later(2_900);
  const delayed = Array.from({ length: 10 }, (_, network) => guesses.delay("ann", `network ${network}`, at));
  assert.equal(await guesses.delay("ann", "network 11", at), 100);
  assert.equal(await isImmediate(guesses.delay("ann", "elsewhere", at)), true);
  await Promise.all(delayed);
  assert.equal(await guesses.delay("ann", "network 11", at), 0);
});
