import assert from "node:assert/strict";
import { test } from "node:test";
import { Recent } from "./recent.ts";

test("when there is no more room, whoever was not here for the longest time is forgotten", () => {
  const recent = new Recent<string>(2);
  recent.set(1, "one");
  recent.set(2, "two");
  assert.equal(recent.get(1), "one");
  recent.set(3, "three");
  assert.deepEqual(
    [1, 2, 3].map((user) => recent.get(user)),
    ["one", undefined, "three"],
  );
});

test("what is replaced or forgotten takes no room any more", () => {
  const recent = new Recent<string>(10, (value) => value.length);
  for (let times = 0; times < 5; times += 1) recent.set(1, "eight...");
  recent.set(2, "!!");
  assert.equal(recent.get(1), "eight...");
  recent.forget(1);
  recent.forget(1);
  recent.set(3, "eight...");
  assert.deepEqual(
    [1, 2, 3].map((user) => recent.get(user)),
    [undefined, "!!", "eight..."],
  );
});

test("what is larger than the room is not kept", () => {
  const recent = new Recent<string>(3, (value) => value.length);
  recent.set(1, "four");
  assert.equal(recent.get(1), undefined);
  recent.set(2, "two");
  assert.equal(recent.get(2), "two");
});
