import assert from "node:assert/strict";
import { test } from "node:test";
import { judge } from "./slow-clients.ts";

test("a connection that is not closed in time is found", () => {
  const report = { kind: "silent", closed: 3, open: 0, slowestMs: 1_000 } as const;
  assert.deepEqual(judge([report]).violations, []);
  assert.match(judge([report, { ...report, closed: 2, open: 1 }]).violations.join(), /silent: 1 are still open/);
});
