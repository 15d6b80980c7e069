import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestFailure } from "../../../errors/catalog.ts";
import { readSince, readTimestamp, writeTimestamp } from "./values.ts";

test("timestamps: every form that apps send → the same second in UTC", () => {
  for (const text of [
    "2024-07-01T10:00:00",
    "2024-07-01 10:00:00",
    "2024-07-01T10:00:00Z",
    "2024-07-01T10:00:00z",
    "2024-07-01T10:00:00.123Z",
    "2024-07-01T10:00:00.000Z",
    "2024-07-01T10:00:00.123456",
    "2024-07-01T12:00:00+02:00",
    "2024-07-01T12:00:00+0200",
    "2024-07-01T12:00:00+02",
    "2024-07-01T04:30:00.5-05:30",
    " 2024-07-01T10:00:00 ",
  ])
    assert.equal(readTimestamp(text)?.toISOString(), "2024-07-01T10:00:00.000Z", text);
});

test("timestamps: impossible date or other text → undefined", () => {
  for (const text of [
    "",
    "now",
    "2024-07-01",
    "2024-13-01T10:00:00",
    "2024-02-30T10:00:00",
    "2024-07-01T25:00:00",
    "1719828000",
  ])
    assert.equal(readTimestamp(text), undefined, text);
});

test("timestamps: written → without zone and fraction", () => {
  assert.equal(writeTimestamp(new Date("2024-07-01T10:00:00.999Z")), "2024-07-01T10:00:00");
});

test("since: missing, empty or 0 → from the beginning", () => {
  for (const query of ["", "since=", "since=0", "other=1"]) assert.equal(readSince(query), 0);
});

test("since: seconds, even in the future or with a fraction → that second; given twice → the first", () => {
  assert.equal(readSince("since=1719828000"), 1_719_828_000);
  assert.equal(readSince("since=1719828000.75&since=5"), 1_719_828_000);
  assert.equal(readSince("since=99999999999"), 99_999_999_999);
});

test("since: negative or not a decimal number → rejected", () => {
  for (const text of ["-1", "abc", "1e9", "0x10", "NaN", "1,5"])
    assert.throws(
      () => readSince(`since=${text}`),
      (error: RequestFailure) => error.error.status === 400,
      text,
    );
});
