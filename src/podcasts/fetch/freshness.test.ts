import assert from "node:assert/strict";
import { test } from "node:test";
import { readMaxAge, readRetryAfter } from "./freshness.ts";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const MONTH = 30 * 24 * 3_600;

test("Retry-After: seconds, dates, negative, ten years → at most 30 days", () => {
  for (const [value, expected] of [
    ["120", 120],
    [" 120 ", 120],
    ["Mon, 16 Nov 2026 12:01:00 GMT", 60],
    ["Monday, 16-Nov-26 12:01:00 GMT", 60],
    ["Mon Nov 16 12:01:00 2026 GMT", 60],
    ["Mon, 16 Nov 2026 11:00:00 GMT", undefined],
    ["Mon, 16 Nov 2036 12:00:00 GMT", MONTH],
    ["315360000", MONTH],
    ["99999999999999999999", MONTH],
    ["-1", undefined],
    ["0", undefined],
    ["1e3", undefined],
    ["1.5", undefined],
    ["soon", undefined],
    ["", undefined],
    ["2027", 2027],
    ["x".repeat(16_000), undefined],
    [undefined, undefined],
  ] as const)
    assert.equal(readRetryAfter(value, NOW), expected, value?.slice(0, 40));
});

test("freshness: Cache-Control and Expires → Cache-Control wins, at most 30 days", () => {
  const expires = "Mon, 16 Nov 2026 12:01:00 GMT";
  for (const [headers, expected] of [
    [{ "cache-control": "max-age=60" }, 60],
    [{ "cache-control": 'public,MAX-AGE = "60"', expires }, 60],
    [{ "cache-control": "max-age=60", age: "20" }, 40],
    [{ "cache-control": "max-age=60", age: "80" }, undefined],
    [{ "cache-control": "max-age=60", age: "x" }, 60],
    [{ "cache-control": "s-maxage=60" }, undefined],
    [{ "cache-control": "x-max-age=60" }, undefined],
    [{ "cache-control": "max-age=-60" }, undefined],
    [{ "cache-control": "max-age=99999999999999999999" }, MONTH],
    [{ "cache-control": "no-cache, max-age=60", expires }, undefined],
    [{ "cache-control": "no-store" }, undefined],
    [{ expires }, 60],
    [{ expires: "0" }, undefined],
    [{ expires: "-1" }, undefined],
    [{}, undefined],
  ] as const)
    assert.equal(readMaxAge(headers, NOW), expected, JSON.stringify(headers));
});
