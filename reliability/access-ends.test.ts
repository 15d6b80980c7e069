import assert from "node:assert/strict";
import { test } from "node:test";
import { judge, type Round, type Write } from "./access-ends.ts";

const write = (what: string, status: number, sentAt = 1, kind: Write["kind"] = "add"): Write => ({
  what,
  kind,
  sentAt,
  status,
});
const round = (early: string[], end: string[], ...writes: Write[]): Round => ({
  revokedAt: 10,
  writes,
  atAnswer: new Set(early),
  atEnd: new Set(end),
});
const found = (...rounds: Round[]) => judge(rounds).violations.length;

test("access-ends: a history in which access ends → no violations", () => {
  const writes = [
    write("a", 201),
    write("b", 200),
    write("b", 204, 5, "remove"),
    write("c", 401, 5),
    write("d", 401, 11),
  ];
  assert.equal(found(round(["a"], ["a"], ...writes)), 0);
});

test("access-ends: a late effect, a late success, a lost write, a refused one that is there → found", () => {
  assert.equal(found(round([], ["a"], write("a", 201))), 1, "added after the revocation");
  assert.equal(found(round(["a"], [], write("a", 204, 5, "remove"))), 1, "removed after the revocation");
  assert.equal(found(round(["a"], ["a"], write("a", 201, 11))), 1, "sent after the revocation, and done");
  assert.equal(found(round([], [], write("x", 404, 11, "remove"))), 1, "sent after the revocation, and not refused");
  assert.equal(found(round([], [], write("a", 201))), 1, "told done, and not there");
  assert.equal(found(round(["a"], ["a"], write("a", 401))), 1, "refused, and there");
  assert.equal(found(round(["a"], ["a"], write("a", 204, 5, "remove"))), 1, "told removed, and there");
});
