import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionGate } from "./connection-gate.ts";

/** Whether each has been let in, before the next timer or I/O. */
async function whoEntered(entering: readonly Promise<void>[]): Promise<number[]> {
  const entered: number[] = [];
  for (const [index, each] of entering.entries()) void each.then(() => entered.push(index));
  await new Promise(setImmediate);
  return entered;
}

test("connections: all in use → users who wait take turns, and so does work for no user", async () => {
  const gate = new ConnectionGate(1, 0);
  await gate.enter(1);
  const waiting = [1, 1, 1, 2, 2, undefined, undefined].map((owner) => gate.enter(owner));
  assert.equal(gate.waiting, 7);
  const order: number[] = [];
  for (let left = waiting.length; left > 0; left -= 1) {
    gate.leave();
    const entered = await whoEntered(waiting);
    order.push(...entered.filter((index) => !order.includes(index)));
  }
  assert.deepEqual(order, [0, 3, 5, 1, 4, 6, 2]);
  assert.equal(gate.waiting, 0);
});

test("connections: waited for longer than the timeout → rejected, and its turn goes to the next", async () => {
  const gate = new ConnectionGate(1, 10);
  await gate.enter(1);
  await assert.rejects(gate.enter(1), /timeout/);
  assert.equal(gate.waiting, 0);
  const next = gate.enter(2);
  gate.leave();
  await next;
});
