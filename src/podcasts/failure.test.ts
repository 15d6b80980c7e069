import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf, kindOf } from "./failure.ts";
import type { FetchFailure } from "./read/feed.ts";

const ofStatus = (status: number) => failureOf({ kind: "failed", reason: "http-status", status });
const of = (reason: FetchFailure["reason"]) => failureOf({ kind: "failed", reason });

test("failures: status of the publisher → code", () => {
  assert.deepEqual([404, 410, 401, 403, 429, 500, 503, 599].map(ofStatus), [
    "not-found",
    "gone",
    "forbidden",
    "forbidden",
    "rate-limited",
    "server-error",
    "server-error",
    "server-error",
  ]);
  for (const status of [0, 100, 204, 206, 300, 304, 400, 402, 405, 451]) assert.equal(ofStatus(status), "invalid");
});

test("failures: reason → code; what it means for how often the feed is fetched", () => {
  assert.deepEqual(
    [of("dns"), of("unreachable"), of("not-public"), of("timeout")],
    ["unknown-host", "unreachable", "private-address", "timed-out"],
  );
  assert.deepEqual(
    [of("redirect-loop"), of("bad-redirect"), of("worker-crashed")],
    ["redirect", "redirect", "unknown"],
  );
  assert.deepEqual(
    (["not-found", "unknown-host", "gone", "forbidden", "unreachable", "unknown"] as const).map(kindOf),
    ["missing", "missing", "gone", "forbidden", "other", "other"],
  );
});
