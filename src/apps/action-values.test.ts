import assert from "node:assert/strict";
import { test } from "node:test";
import { readTimestamp, writeTimestamp } from "./action-values.ts";

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

test("timestamps: Unix time in seconds, or in milliseconds with 13 digits, even as text → the same second", () => {
  const seconds = 1_719_828_000;
  for (const value of [seconds, seconds + 0.9, seconds * 1_000, seconds * 1_000 + 999])
    for (const sent of [value, String(value), ` ${value} `])
      assert.equal(readTimestamp(sent)?.toISOString(), "2024-07-01T10:00:00.000Z", JSON.stringify(sent));
  for (const [sent, expected] of [
    [1_000_000_000, "2001-09-09T01:46:40.000Z"],
    [1_000_000_000_000, "2001-09-09T01:46:40.000Z"],
    [9_999_999_999_999, "2286-11-20T17:46:39.000Z"],
    [9_999_999_999, "2286-11-20T17:46:39.000Z"],
  ] as const)
    assert.equal(readTimestamp(sent)?.toISOString(), expected, String(sent));
});

test("timestamps: a date without a time → midnight UTC", () => {
  for (const text of ["2024-07-01", " 2024-07-01 "])
    assert.equal(readTimestamp(text)?.toISOString(), "2024-07-01T00:00:00.000Z", text);
});

test("timestamps: impossible date, other text or another number → undefined", () => {
  for (const value of [
    "",
    "now",
    "2024-07",
    "2024-07-01T",
    "2024-07-01Z",
    "2024-07-01T10:00",
    "2024-13-01",
    "2024-02-30",
    "2024-13-01T10:00:00",
    "2024-02-30T10:00:00",
    "2024-07-01T25:00:00",
    "20240701",
    "999999999",
    "17198280000000",
    "-1719828000",
    "1e10",
    0,
    999_999_999.9,
    10_000_000_000_000,
    -1_719_828_000,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    null,
    true,
    [1_719_828_000],
  ])
    assert.equal(readTimestamp(value), undefined, JSON.stringify(value));
});

test("timestamps: written → without zone and fraction", () => {
  assert.equal(writeTimestamp(new Date("2024-07-01T10:00:00.999Z")), "2024-07-01T10:00:00");
});
