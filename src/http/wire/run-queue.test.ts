import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RequestFailure } from "../../errors/catalog.ts";
import { type Lane, type Owner, RunQueue } from "./run-queue.ts";

/** Starts work of these owners, and returns the owners in the order in which it starts. */
function begin(queue: RunQueue, lane: Lane, owners: readonly Owner[]): Owner[] {
  const started: Owner[] = [];
  for (const owner of owners) {
    const turn = queue.start(lane, owner);
    if (turn === undefined) started.push(owner);
    else
      turn.then(
        () => started.push(owner),
        () => undefined,
      );
  }
  return started;
}

test("run queue: few requests → start at once", () => {
  const queue = new RunQueue();
  assert.deepEqual(begin(queue, queue.light, ["a", "a", "b"]), ["a", "a", "b"]);
  assert.deepEqual(begin(queue, queue.reads, ["a"]), ["a"]);
  assert.equal(queue.waiting, 0);
});

test("run queue: one owner has many light requests → some start in each turn, and another owner's is the next", async () => {
  const queue = new RunQueue();
  const started = begin(queue, queue.light, Array(100).fill("hog"));
  assert.equal(started.length, 16);
  const another = queue.start(queue.light, "bob")?.then(() => started.push("bob"));
  await nextTurn();
  await another;
  assert.ok(started.indexOf("bob") <= 18, String(started.indexOf("bob")));
  assert.equal(started.length, 32);
  while (queue.waiting > 0) await nextTurn();
  assert.equal(started.length, 101);
});

test("run queue: dear reads → one per turn, two at a time per owner, owners alternate", async () => {
  const queue = new RunQueue();
  const started = begin(queue, queue.reads, ["hog", "hog", "hog", "hog", "bob"]);
  assert.deepEqual(started, ["hog"]);
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  assert.deepEqual(started, ["hog", "hog", "bob"]);
  queue.finish(queue.reads, "hog");
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  assert.deepEqual(started, ["hog", "hog", "bob", "hog"]);
  assert.equal(queue.waiting, 1);
  // Those that wait for their own owner do not keep light ones waiting.
  assert.equal(queue.start(queue.light, "hog"), undefined);
});

test("run queue: long bodies → one per turn, eight at a time per owner", async () => {
  const queue = new RunQueue();
  const started = begin(queue, queue.bodies, Array(10).fill("hog"));
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
  assert.equal(started.length, 8);
  const another = begin(queue, queue.bodies, ["bob"]);
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
  assert.deepEqual(another, ["bob"]);
  queue.finish(queue.bodies, "hog");
  for (let turn = 0; turn < 20; turn += 1) await nextTurn();
  assert.equal(started.length, 9);
});

test("run queue: connections arrive in every turn → few requests start, and dear ones wait, but not for ever", async () => {
  const queue = new RunQueue();
  const started = begin(queue, queue.reads, ["a", "b"]);
  const arrived = begin(queue, queue.arrivals, Array(30).fill("c"));
  let turns = 0;
  for (; started.length < 2 && turns < 300; turns += 1) {
    queue.onConnection();
    await nextTurn();
    if (turns === 2) assert.ok(arrived.length <= 28, `${arrived.length} arrivals`);
  }
  assert.ok(turns >= 50 && turns <= 110, `${turns} turns`);
});

test("run queue: a request waits for ten seconds → rejected with 503", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const now = performance.now();
  const clock = mock.method(performance, "now", () => now);
  try {
    const queue = new RunQueue();
    begin(queue, queue.reads, ["a", "a"]);
    const last = queue.start(queue.reads, "a");
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    clock.mock.mockImplementation(() => now + 10_001);
    mock.timers.tick(1_000);
    await assert.rejects(
      last ?? Promise.resolve(),
      (error) => error instanceof RequestFailure && error.error.status === 503,
    );
    assert.equal(queue.waiting, 0);
  } finally {
    mock.timers.reset();
    clock.mock.restore();
  }
});
