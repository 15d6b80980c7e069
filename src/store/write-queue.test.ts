import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { StoreUnavailable } from "../subscriptions.ts";
import { Room, WriteQueue } from "./write-queue.ts";

/** A queue whose groups are carried out when they are let go, one at a time. */
function heldQueue(room = new Room(10_000)) {
  const began = performance.now();
  const groups: (readonly string[])[] = [];
  const told: number[] = [];
  let letGo: (error?: Error) => void = () => assert.fail("nothing is under way");
  const queue = new WriteQueue<string, string>(
    (jobs) => {
      groups.push(jobs);
      return new Promise((resolve, reject) => {
        letGo = (error) => (error === undefined ? resolve(jobs.map((job) => job.toUpperCase())) : reject(error));
      });
    },
    room,
    (operations, seconds) => {
      assert.ok(seconds >= 0 && seconds <= (performance.now() - began) / 1_000);
      told.push(operations);
    },
  );
  return { queue, groups, told, letGo: (error?: Error) => letGo(error) };
}

/** A group leaves at the end of a turn: after that, one has. */
async function turn(): Promise<void> {
  await endOfTurn();
  await endOfTurn();
}

test("what comes while a group is under way waits for the next one, and each gets its own answer", async () => {
  const room = new Room(10_000);
  const { queue, groups, told, letGo } = heldQueue(room);
  assert.equal(queue.isIdle, true);
  const answers = [queue.push("a", 1, 1)];
  assert.equal(queue.isIdle, false);
  await turn();
  answers.push(queue.push("b", 2, 1), queue.push("c", 3, 1));
  assert.equal(room.taken, 6);
  letGo();
  assert.equal(await answers[0], "A");
  await turn();
  assert.equal(room.taken, 5);
  assert.deepEqual(groups, [["a"], ["b", "c"]]);
  let isOver = false;
  const idle = queue.idle().then(() => {
    isOver = true;
  });
  await turn();
  assert.equal(isOver, false);
  letGo();
  assert.deepEqual(await Promise.all(answers), ["A", "B", "C"]);
  await idle;
  assert.deepEqual([queue.isIdle, room.taken, told], [true, 0, [1, 5]]);
});

test("a group takes 2,000 operations, or one job however large", async () => {
  const { queue, groups, letGo } = heldQueue();
  const sizes = { a: 1, b: 1_999, c: 1, d: 1, e: 2_000, f: 2_001, g: 0 };
  const answers = Object.entries(sizes).map(([job, operations]) => queue.push(job, operations, 1));
  const expected = [["a", "b"], ["c", "d"], ["e"], ["f"], ["g"]];
  for (const [index] of expected.entries()) {
    await turn();
    assert.equal(groups.length, index + 1);
    letGo();
  }
  await Promise.all(answers);
  assert.deepEqual(groups, expected);
});

for (const [waiting, when, hasLeft, size] of [
  [63, "at the end of the turn, with what has come in by then", false, 65],
  [64, "at once, half of those that there are", true, 33],
] as const) {
  test(`where ${waiting} wait, their group leaves ${when}`, async () => {
    const { queue, groups, letGo } = heldQueue();
    const first = queue.push("first", 1, 1);
    await turn();
    const others = Array.from({ length: waiting }, () => queue.push("other", 1, 1));
    letGo();
    await first;
    await new Promise((resolve) => process.nextTick(resolve));
    assert.equal(groups.length === 2, hasLeft);
    const late = [queue.push("late", 1, 1), queue.push("late", 1, 1)];
    await turn();
    assert.equal(groups[1]?.length, size);
    letGo();
    await turn();
    letGo();
    await Promise.all([...others, ...late]);
  });
}

test("clients that ask again as soon as they are answered are soon in two groups of one size", async () => {
  const { queue, groups, letGo } = heldQueue();
  let isOver = false;
  const askAgainAndAgain = async (client: string) => {
    while (!isOver) await queue.push(client, 1, 1);
  };
  const clients = [askAgainAndAgain("first")];
  await turn();
  clients.push(...Array.from({ length: 31 }, (_, index) => askAgainAndAgain(`other ${index}`)));
  for (let group = 0; group < 8; group += 1) {
    letGo();
    await turn();
  }
  isOver = true;
  while (!queue.isIdle) {
    letGo();
    await turn();
  }
  await Promise.all(clients);
  assert.deepEqual(
    groups.slice(0, 8).map(({ length }) => length),
    [1, 16, 16, 16, 16, 16, 16, 16],
  );
});

test("when a group fails all of it hears why, and the next one goes on", async () => {
  const room = new Room(10_000);
  const { queue, told, letGo } = heldQueue(room);
  const first = queue.push("a", 1, 1);
  await turn();
  const second = queue.push("b", 1, 1);
  letGo(new Error("no"));
  await assert.rejects(first, /no/);
  await turn();
  assert.equal(room.taken, 1);
  letGo();
  assert.equal(await second, "B");
  assert.deepEqual(told, [1]);
});

test("as much as there is room for may wait, and what finds nothing ahead is taken however large", () => {
  const room = new Room(10);
  room.take(11);
  room.free(11);
  room.take(4);
  room.take(6);
  assert.throws(
    () => room.take(1),
    (error) => error instanceof StoreUnavailable && error.overloaded,
  );
  assert.equal(room.taken, 10);
  room.free(6);
  room.take(6);
  const narrow = new Room(1);
  narrow.take(1);
  assert.throws(() => narrow.take(1), StoreUnavailable);
});

test("write queue: one user queues many large jobs → another's job is in the next group", async () => {
  const { queue, groups, letGo } = heldQueue(new Room(100_000));
  const answers = [queue.push("first", 1, 1)];
  await turn();
  for (let job = 0; job < 5; job += 1) answers.push(queue.push(`hog ${job}`, 1_500, 1));
  answers.push(queue.push("other", 1, 2), queue.push("other again", 1, 2));
  for (let group = 0; group < 6; group += 1) {
    letGo();
    await turn();
  }
  letGo();
  await Promise.all(answers);
  assert.deepEqual(groups.slice(0, 3), [["first"], ["hog 0", "other"], ["hog 1", "other again"]]);
  assert.deepEqual(groups.slice(3).flat(), ["hog 2", "hog 3", "hog 4"]);
});
