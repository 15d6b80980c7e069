import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { RequestFailure } from "../jsonapi/failure.ts";
import { Entrance } from "./entrance.ts";

/** Room for 16,000 bytes. */
const OPERATIONS = 100;

test("what is more than may wait is turned away, until somebody has left", async () => {
  const entrance = new Entrance(OPERATIONS);
  await entrance.enter(10_000);
  await entrance.enter(6_000);
  const isRefused = (error: unknown) => error instanceof RequestFailure && error.error.status === 503;
  assert.throws(() => entrance.requireRoom(1), isRefused);
  assert.throws(() => entrance.enter(1), isRefused);
  entrance.leave(10_000);
  entrance.requireRoom(10_000);
  assert.throws(() => entrance.requireRoom(10_001), isRefused);
});

test("what finds nothing ahead is let in, however large it is", async () => {
  const entrance = new Entrance(OPERATIONS);
  await entrance.enter(1_000_000);
  entrance.leave(1_000_000);
  entrance.requireRoom(1_000_000);
});

test("between two large ones there are many turns of the event loop for others, and small ones pass by", async () => {
  const entrance = new Entrance(1_000_000);
  const passed: string[] = [];
  const enter = async (name: string, bytes: number) => {
    await entrance.enter(bytes);
    passed.push(name);
  };
  const all = [enter("first", 100_000), enter("second", 100_000), enter("third", 100_000), enter("small", 1_000)];
  await Promise.resolve().then(() => undefined);
  assert.deepEqual(passed.toSorted(), ["first", "small"]);
  const turns = async (count: number) => {
    for (let each = 0; each < count; each += 1) await turn();
  };
  await turns(40);
  assert.equal(passed.length, 2);
  await turns(20);
  assert.deepEqual(passed.slice(2), ["second"]);
  await Promise.all(all);
  assert.equal(passed.length, 4);
});
