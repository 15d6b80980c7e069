import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, type Weather } from "./overload.ts";

const fine: Weather = {
  engine: "SQLite",
  before: 1_000,
  overloaded: 800,
  afterwards: 1_000,
  refusedAfterwards: 0,
  times: 10,
  refusalMs: [1, 2, 99],
  wrong: [],
  lagMs: 10,
  peakMiB: 200,
};
const findingOf = (changes: Partial<Weather>) => judge([{ ...fine, ...changes }], true).violations.join();

test("a server that bears it has no violations", () => assert.equal(findingOf({}), ""));

test("a server that does not is found", () => {
  assert.match(findingOf({ refusalMs: [] }), /nobody was refused/);
  assert.match(findingOf({ refusalMs: [1, 101] }), /1 of 2 refusals took more/);
  assert.match(findingOf({ overloaded: 799 }), /did 80 % of what it can/);
  assert.match(findingOf({ afterwards: 400 }), /did 40 % of before/);
  assert.match(findingOf({ refusedAfterwards: 1 }), /1 were refused when all was over/);
  assert.match(findingOf({ peakMiB: 257 }), /took 257 MiB/);
  assert.match(findingOf({ wrong: ["HTTP/1.1 500 Internal Server Error"] }), /neither done nor refused/);
});
