import assert from "node:assert/strict";
import { test } from "node:test";
import { FetchQueue } from "./fetch-queue.ts";

const always = () => true;
const newQueue = () => new FetchQueue<string, { id: string; host: string }>({ feeds: 100, perHost: 50 });

test("queue: one owner with many feeds → another owner's feed is the second one", () => {
  const queue = newQueue();
  for (let n = 0; n < 50; n += 1) queue.push("importer", { id: `i${n}`, host: `h${n}` });
  queue.push("other", { id: "o", host: "h0" });
  assert.deepEqual(
    [queue.take(always, always)?.id, queue.take(always, always)?.id, queue.take(always, always)?.id],
    ["i0", "o", "i1"],
  );
});

test("queue: a busy host → feeds from other hosts first, in order of arrival", () => {
  const queue = newQueue();
  for (const [id, host] of Object.entries({ a: "x", b: "x", c: "y", d: "z" })) queue.push("me", { id, host });
  const busy = new Set<string>();
  const take = () => queue.take((host) => !busy.has(host), always)?.id;
  assert.equal(take(), "a");
  busy.add("x");
  assert.deepEqual([take(), take(), take()], ["c", "d", undefined]);
  assert.deepEqual([queue.length, queue.has("b"), queue.has("c")], [1, true, false]);
  busy.clear();
  assert.deepEqual([take(), queue.length], ["b", 0]);
});

test("queue: an owner that may not fetch → the next owner's feed; later in order of arrival", () => {
  const queue = newQueue();
  for (const [owner, id] of [
    ["a", "a1"],
    ["a", "a2"],
    ["b", "b1"],
  ] as const)
    queue.push(owner, { id, host: id });
  const take = (without: string) => queue.take(always, (owner) => owner !== without)?.id;
  assert.deepEqual([take("a"), take("a"), take(""), take("")], ["b1", undefined, "a1", "a2"]);
});

test("queue: the same feed twice, or more than the limits → not added", () => {
  const queue = new FetchQueue<string, { id: string; host: string }>({ feeds: 3, perHost: 2 });
  const push = (id: string, host: string) => queue.push("me", { id, host });
  assert.deepEqual([push("a", "x"), push("a", "x"), push("b", "x"), push("c", "x")], [true, false, true, false]);
  assert.deepEqual([push("d", "y"), push("e", "z")], [true, false]);
  queue.take(always, always);
  assert.equal(push("c", "x"), true);
  queue.clear();
  assert.deepEqual([queue.length, queue.take(always, always)], [0, undefined]);
});
