import assert from "node:assert/strict";
import { test } from "node:test";
import { type Claim, judge } from "./unknown-commit.ts";

const list = new Map([["1", "f"]]);
const falseOf = (...claims: Claim[]) => judge(claims, list).violations.length;

test("what is so may be told", () => {
  const truths: Claim[] = [
    { id: "1", feed: "f", told: "data" },
    { id: "2", feed: "f", told: "409" },
    { id: "3", feed: "g", told: "unknown" },
    { id: "4", feed: "h", told: "nothing" },
    { id: "5", feed: "i", told: "data" },
    { id: "5", feed: "i", told: "removed" },
  ];
  assert.equal(falseOf(...truths), 0);
});

test("every kind of wrong answer after a lost commit is found", () => {
  assert.equal(falseOf({ id: "2", feed: "g", told: "data" }), 1, "data without a row");
  assert.equal(falseOf({ id: "1", feed: "f", told: "409" }), 1, "a conflict with itself");
  assert.equal(falseOf({ id: "2", feed: "g", told: "409" }), 1, "a conflict with nobody");
  assert.equal(falseOf({ id: "1", feed: "f", told: "nothing" }), 1, "done, though it was said not to be");
  assert.equal(falseOf({ id: "1", feed: "f", told: "removed" }), 1, "still there");
  assert.equal(falseOf({ id: "2", feed: "g", told: "404" }), 1, "removed, and told that it never was there");
});
