import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { WriteQueue } from "./write-queue.ts";

/** A queue whose groups are written when they are released, one at a time. */
function createQueue() {
  const groups: (readonly string[])[] = [];
  const reported: number[] = [];
  let release: (error?: Error) => void = () => assert.fail("no group is being written");
  const queue = new WriteQueue<string, string>(
    (jobs) => {
      groups.push(jobs);
      return new Promise((resolve, reject) => {
        release = (error) => (error === undefined ? resolve(jobs.map((job) => job.toUpperCase())) : reject(error));
      });
    },
    (operations, seconds) => {
      assert.ok(seconds >= 0);
      reported.push(operations);
    },
  );
  return { queue, groups, reported, release: (error?: Error) => release(error) };
}

/** Waits until the next group is being written: groups are taken at the end of a turn of the event loop. */
async function nextGroup(): Promise<void> {
  await endOfTurn();
  await endOfTurn();
}

test("write queue: jobs arrive while a group is written → they form the next group, each with its own result", async () => {
  const { queue, groups, reported, release } = createQueue();
  assert.equal(queue.isIdle, true);
  const results = [queue.push("a", 1, 1)];
  assert.equal(queue.isIdle, false);
  await nextGroup();
  results.push(queue.push("b", 2, 1), queue.push("c", 3, 1));
  release();
  assert.equal(await results[0], "A");
  await nextGroup();
  assert.deepEqual(groups, [["a"], ["b", "c"]]);
  let isDone = false;
  const idle = queue.whenIdle().then(() => {
    isDone = true;
  });
  await nextGroup();
  assert.equal(isDone, false);
  release();
  assert.deepEqual(await Promise.all(results), ["A", "B", "C"]);
  await idle;
  assert.deepEqual([queue.isIdle, reported], [true, [1, 5]]);
});

test("write queue: a group has several results → all are used before the queue is idle", async () => {
  const { queue, release } = createQueue();
  const order: string[] = [];
  const use = async (job: string) => {
    order.push(await queue.push(job, 1, 1));
    await Promise.resolve();
    order.push(`after ${job}`);
  };
  const done = Promise.all([use("a"), use("b")]);
  await nextGroup();
  release();
  await queue.whenIdle();
  assert.deepEqual(order, ["A", "B", "after a", "after b"]);
  await done;
});

test("write queue: a group fails at once after another → its error does not overtake the other's results", async () => {
  const queue = new WriteQueue<string, string>(async (jobs) => {
    if (jobs.includes("b")) throw new Error("no");
    return jobs;
  });
  const order: string[] = [];
  const first = queue.push("a", 2_000, 1).then((result) => order.push(result));
  const second = queue.push("b", 2_000, 1).catch(({ message }: Error) => order.push(message));
  await Promise.all([first, second]);
  assert.deepEqual(order, ["a", "no"]);
});

test("write queue: many operations wait → groups of up to 2,000, or of one job however large", async () => {
  const { queue, groups, release } = createQueue();
  const sizes = { a: 1, b: 1_999, c: 1, d: 1, e: 2_000, f: 2_001, g: 0 };
  const results = Object.entries(sizes).map(([job, operations]) => queue.push(job, operations, 1));
  const expected = [["a", "b"], ["c", "d"], ["e"], ["f"], ["g"]];
  for (const [index] of expected.entries()) {
    await nextGroup();
    assert.equal(groups.length, index + 1);
    release();
  }
  await Promise.all(results);
  assert.deepEqual(groups, expected);
});

test("write queue: a group ends while jobs wait → the next one is written before its results are used", async () => {
  const { queue, groups, release } = createQueue();
  const first = queue.push("first", 1, 1);
  await nextGroup();
  const second = queue.push("second", 1, 1);
  release();
  await first;
  assert.deepEqual(groups, [["first"], ["second"]]);
  release();
  await second;
});

test("write queue: the same clients write again and again → two groups of equal size take turns", async () => {
  const { queue, groups, release } = createQueue();
  const clients = Array.from({ length: 6 }, async (_, client) => {
    // The first client starts alone.
    if (client > 0) await nextGroup();
    for (let turn = 0; turn < 6; turn += 1) await queue.push(`${client}`, 1, client);
  });
  const done = Promise.all(clients);
  await nextGroup();
  for (let written = 0; written < 36; written += groups.at(-1)?.length ?? 0) {
    await nextGroup();
    release();
  }
  await done;
  assert.deepEqual(
    groups.slice(1, 9).map(({ length }) => length),
    Array(8).fill(3),
  );
});

test("write queue: a group fails → all its jobs fail, and the next group is written", async () => {
  const { queue, reported, release } = createQueue();
  const first = queue.push("a", 1, 1);
  await nextGroup();
  const second = queue.push("b", 1, 1);
  release(new Error("no"));
  await assert.rejects(first, /no/);
  await nextGroup();
  release();
  assert.equal(await second, "B");
  assert.deepEqual(reported, [1]);
});

test("write queue: one user queues many large jobs → another's job is in the next group", async () => {
  const { queue, groups, release } = createQueue();
  const results = [queue.push("first", 1, 1)];
  await nextGroup();
  for (let job = 0; job < 5; job += 1) results.push(queue.push(`hog ${job}`, 1_500, 1));
  results.push(queue.push("other", 1, 2), queue.push("other again", 1, 2));
  for (let group = 0; group < 6; group += 1) {
    release();
    await nextGroup();
  }
  release();
  await Promise.all(results);
  assert.deepEqual(groups.slice(0, 3), [["first"], ["hog 0", "other"], ["hog 1", "other again"]]);
  assert.deepEqual(groups.slice(3).flat(), ["hog 2", "hog 3", "hog 4"]);
});
