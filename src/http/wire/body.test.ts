import assert from "node:assert/strict";
import { test } from "node:test";
import { ATOMIC, startServer } from "../../../test/support/server.ts";

const server = await startServer();

test("JSON depth: brackets, quotes and backslashes in strings → not counted", async () => {
  for (const text of ["[".repeat(100), '\\"'.repeat(3), "\\\\".repeat(50), '"[{', "}]"]) {
    const body = JSON.stringify({ meta: { [text]: text }, "atomic:operations": [] });
    const response = await server.call("POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
    assert.equal(response.status, 200, body);
  }
  const nested = (levels: number) =>
    `{"meta":${"[".repeat(levels - 1)}"\\"]"${"]".repeat(levels - 1)},"atomic:operations":[]}`;
  for (const [levels, status] of [
    [64, 200],
    [65, 400],
  ] as const) {
    const response = await server.call("POST", "/v1/operations", {
      headers: { "Content-Type": ATOMIC },
      body: nested(levels),
    });
    assert.equal(response.status, status, `${levels} levels`);
  }
});
