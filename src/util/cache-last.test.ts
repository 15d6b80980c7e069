import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheLast } from "./cache-last.ts";

test("cacheLast: the same argument again → not computed again; another one, or an error → computed", () => {
  const computed: (string | undefined)[] = [];
  const find = cacheLast((text: string | undefined) => {
    computed.push(text);
    if (text === "bad") throw new Error(text);
    return { text };
  });
  assert.equal(find(undefined), find(undefined));
  assert.equal(find("a"), find("a"));
  assert.deepEqual(find("b"), { text: "b" });
  assert.deepEqual(find("a"), { text: "a" });
  assert.throws(() => find("bad"));
  assert.throws(() => find("bad"));
  assert.deepEqual(computed, [undefined, "a", "b", "a", "bad", "bad"]);
});
