import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const FILES = [
  "src/http/operations.test.ts",
  "src/http/subscriptions.test.ts",
  "src/http/accounts.test.ts",
  "src/http/imports.test.ts",
  "src/http/quota.test.ts",
  "test/access.test.ts",
  "test/access-ends.test.ts",
  "test/properties.test.ts",
  "test/documents.test.ts",
];

test("on PostgreSQL the server answers every request as on SQLite", () => {
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const { status, stdout } = spawnSync(process.execPath, ["--test", "--test-reporter=spec", ...FILES], {
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: { ...environment, TEST_ENGINE: "postgres" },
    encoding: "utf8",
  });
  assert.equal(status, 0, stdout);
  const passed = Number(/^ℹ pass (\d+)$/m.exec(stdout)?.[1]);
  assert.ok(passed > 200, stdout);
  assert.match(stdout, /^ℹ skipped 0$/m);
});
