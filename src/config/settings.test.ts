import assert from "node:assert/strict";
import { test } from "node:test";
import { suggest } from "../util/suggest.ts";
import { readConfig } from "./config.ts";

const read = (environment: Record<string, string>) =>
  readConfig(environment, "/srv", { installation: "/srv", exists: () => false, read: () => "p" });

test("config: settings that no longer have an effect → ignored, with a warning each", () => {
  const old = [
    "EARMARK_ARTWORK",
    "EARMARK_FETCH_CONCURRENCY",
    "EARMARK_FETCH_HOURS",
    "EARMARK_FETCH_USER_AGENT",
    "EARMARK_HEADERS_TIMEOUT_MS",
    "EARMARK_MAX_CONNECTIONS",
    "EARMARK_MAX_IMPORT_BYTES",
    "EARMARK_MAX_QUEUED_OPERATIONS",
    "EARMARK_REQUEST_TIMEOUT_MS",
    "EARMARK_SLOW_REQUEST_MS",
  ];
  const { warnings, ...config } = read(Object.fromEntries(old.map((name) => [name, "any value"])));
  const { warnings: none, ...expected } = read({});
  assert.deepEqual([config, none], [expected, []]);
  assert.deepEqual(
    warnings,
    old.map((name) => `${name} no longer has an effect; remove it.`),
  );
});

test("config: a name or value of version 0.1 → rejected like any other that is unknown", () => {
  const old = ["EARMARK_OPEN=1", "EARMARK_FIRST_USER=ann", "EARMARK_FIRST_PASSWORD=canary", "EARMARK_ACCOUNTS=on"];
  for (const setting of old) {
    const [name = "", value = ""] = setting.split("=");
    const expected = { message: new RegExp(`^  - ${name}(: unknown setting|=on: must be true or false)`) };
    assert.throws(() => read({ [name]: value }), expected);
  }
});

test("suggest: a typo → the closest word; something else → nothing", () => {
  const words = ["list", "user list", "backup"];
  assert.equal(suggest("lst", words), "list");
  assert.equal(suggest("bakcup", words), "backup");
  assert.equal(suggest("usr list", words), "user list");
  assert.equal(suggest("frobnicate", words), undefined);
});
