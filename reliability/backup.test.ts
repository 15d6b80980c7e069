import assert from "node:assert/strict";
import { test } from "node:test";
import { type Acknowledged, type Content, feedOf, judge } from "./backup.ts";

const groupOf = (name: string, group: number) => [0, 1, 2].map((member) => feedOf(name, group, member, 3));
const contentOf = (...feeds: string[]): Content => ({
  feeds,
  total: feeds.length,
  sequence: feeds.length + 2,
  removals: 1,
  gaps: 2,
});
const before = (groups: Record<string, number> = {}): Acknowledged => ({
  groups: new Map(Object.entries(groups)),
  removals: 1,
});
const findingOf = (content: Content, acknowledged = before()) => judge(content, acknowledged).join("; ");

test("what was so at one instant is a backup", () => {
  const content = contentOf(...groupOf("one", 0), ...groupOf("one", 1), ...groupOf("ping", 0));
  assert.equal(findingOf(content, before({ one: 1 })), "");
});

test("a backup that is not of one instant is found", () => {
  assert.match(findingOf(contentOf(...groupOf("one", 0).slice(1))), /2 of 3 in group 0/);
  assert.match(findingOf(contentOf(...groupOf("one", 1))), /group 1 where there are 1/, "a hole");
  assert.match(findingOf(contentOf(...groupOf("pong", 0))), /0 and 1 of two who take turns/, "effect before cause");
  const whole = contentOf(...groupOf("one", 0));
  assert.match(findingOf({ ...whole, total: 4 }), /the total is 4/);
  assert.match(findingOf({ ...whole, sequence: 4 }), /are not 4 numbers/);
  assert.match(findingOf({ ...whole, removals: 2 }), /2 removals have left 2 gaps/);
});

test("a backup that is older than its beginning is found", () => {
  assert.match(findingOf(contentOf(...groupOf("one", 0)), before({ one: 2 })), /1 groups, 2 were acknowledged/);
  assert.match(findingOf({ ...contentOf(), removals: 0, gaps: 0 }), /0 removals, 1 were acknowledged/);
});
