import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestFailure } from "../../../errors/catalog.ts";
import { readSince } from "./since.ts";

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
