import assert from "node:assert/strict";
import { test } from "node:test";
import { FairQueue } from "./fair-queue.ts";

test("fair queue: one owner has many entries → others are served in between", () => {
  const queue = new FairQueue<string, string>();
  for (const entry of ["a1", "a2", "a3", "b1", "c1", "c2"]) queue.push(entry.charAt(0), entry);
  assert.equal(queue.length, 6);
  assert.equal(queue.peek(), "a1");
  const served: (string | undefined)[] = [queue.shift(), queue.shift()];
  assert.equal(
    queue.shift(() => false),
    undefined,
  );
  queue.push("b", "b2");
  while (queue.length > 0) served.push(queue.shift());
  assert.deepEqual(served, ["a1", "b1", "c1", "a2", "b2", "c2", "a3"]);
  assert.equal(queue.shift(), undefined);
  assert.equal(queue.peek(), undefined);
  for (const entry of ["a1", "b1"]) queue.push(entry.charAt(0), entry);
  assert.equal(
    queue.shift((owner) => owner !== "a"),
    "b1",
  );
});

test("fair queue: too many entries → the owner with the most loses its last", () => {
  const queue = new FairQueue<string, string>();
  for (const entry of ["a1", "a2", "b1", "b2", "c1"]) queue.push(entry.charAt(0), entry);
  assert.equal(queue.dropFromLongest("b"), "b2");
  assert.equal(queue.dropFromLongest("c"), "a2");
  assert.equal(queue.dropFromLongest("c"), "c1");
  assert.equal(queue.dropFromLongest("c"), "a1");
  assert.equal(queue.length, 1);
  assert.equal(queue.shift(), "b1");
  assert.equal(queue.dropFromLongest("c"), undefined);
  assert.equal(queue.length, 0);
});
