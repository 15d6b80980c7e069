import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreUnavailable } from "../util/store-unavailable.ts";
import { applyAccepted } from "./apply-accepted.ts";

type Refused = { readonly refused: string };
const isRefused = (change: object): change is Refused => "refused" in change;
const [a, b, c] = [{ name: "a" }, { name: "b" }, { name: "c" }];
const [one, two] = [{ refused: "1" }, { refused: "2" }];

test("applyAccepted: some changes are refused → the others have results in their places", async () => {
  const results = await applyAccepted([one, a, b, two, c], isRefused, async (valid) =>
    valid.map((change) => ("name" in change ? change.name.toUpperCase() : "")),
  );
  assert.deepEqual(results, [one, "A", "B", two, "C"]);
});

test("applyAccepted: every change is refused → no call", async () => {
  const never = () => assert.fail("called");
  assert.deepEqual(await applyAccepted([one, two], isRefused, never), [one, two]);
  assert.deepEqual(await applyAccepted([], isRefused, never), []);
});

test("applyAccepted: too few or too many results → an error", async () => {
  for (const results of [[], [1, 2]])
    await assert.rejects(
      applyAccepted([a, one], isRefused, async () => results),
      /results for 1 changes/,
    );
});

test("StoreUnavailable: no options → nothing was changed", () => {
  const { isOutcomeUnknown, cause } = new StoreUnavailable("x");
  assert.deepEqual([isOutcomeUnknown, cause], [false, undefined]);
  const other = new StoreUnavailable("x", { isOutcomeUnknown: true, cause: "y" });
  assert.deepEqual([other.isOutcomeUnknown, other.cause], [true, "y"]);
});
