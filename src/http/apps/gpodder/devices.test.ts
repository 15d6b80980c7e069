import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestFailure } from "../../../errors/catalog.ts";
import { readDevice, writeDevices, writeSyncGroups } from "./devices.ts";

const device = (id: string) => ({ id, caption: "Phone", type: "mobile", app: "x", syncedAt: new Date(0) }) as const;

test("devices: given members → read; missing ones and an empty caption → left out", () => {
  assert.deepEqual(readDevice({ caption: " My phone ", type: "Mobile" }), { caption: "My phone", type: "mobile" });
  assert.deepEqual(readDevice({ caption: "", type: null }), {});
  assert.deepEqual(readDevice({}), {});
});

test("devices: a type that is not in the gPodder API → other", () => {
  for (const type of ["tablet", "", "watch"]) assert.deepEqual(readDevice({ type }), { type: "other" });
});

test("devices: a long caption → truncated to 100 characters; control characters → removed", () => {
  assert.deepEqual(readDevice({ caption: "My\0 \x1bphone \n" }), { caption: "My phone" });
  assert.equal(Array.from(readDevice({ caption: "😀".repeat(200) }).caption ?? "").length, 100);
});

test("devices: a body that is not an object → rejected", () => {
  for (const document of [null, [], "x"])
    assert.throws(
      () => readDevice(document),
      (error: RequestFailure) => error.error.status === 400,
    );
});

test("devices: listed → exactly the members that the gPodder API defines", () => {
  assert.deepEqual(JSON.parse(writeDevices([device("a")], 7)), [
    { id: "a", caption: "Phone", type: "mobile", subscriptions: 7 },
  ]);
});

test("devices: one → not synchronized; two or more → one group", () => {
  assert.deepEqual(JSON.parse(writeSyncGroups([])), { synchronized: [], "not-synchronized": [] });
  assert.deepEqual(JSON.parse(writeSyncGroups([device("a")])), { synchronized: [], "not-synchronized": ["a"] });
  assert.deepEqual(JSON.parse(writeSyncGroups([device("a"), device("b")])), {
    synchronized: [["a", "b"]],
    "not-synchronized": [],
  });
});
