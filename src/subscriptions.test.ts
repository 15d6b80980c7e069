import assert from "node:assert/strict";
import { test } from "node:test";
import { answerInOrder, StoreUnavailable } from "./subscriptions.ts";

type Refused = { readonly refused: string };
const isRefused = (attempt: object): attempt is Refused => "refused" in attempt;
const [a, b, c] = [{ name: "a" }, { name: "b" }, { name: "c" }];
const [one, two] = [{ refused: "1" }, { refused: "2" }];

test("answerInOrder: some attempts are refused → the others are answered in their places", async () => {
  const results = await answerInOrder([one, a, b, two, c], isRefused, async (valid) =>
    valid.map((attempt) => ("name" in attempt ? attempt.name.toUpperCase() : "")),
  );
  assert.deepEqual(results, [one, "A", "B", two, "C"]);
});

test("answerInOrder: nothing is valid → no call", async () => {
  const never = () => assert.fail("called");
  assert.deepEqual(await answerInOrder([one, two], isRefused, never), [one, two]);
  assert.deepEqual(await answerInOrder([], isRefused, never), []);
});

test("answerInOrder: too few or too many answers → an error", async () => {
  for (const answers of [[], [1, 2]])
    await assert.rejects(
      answerInOrder([a, one], isRefused, async () => answers),
      /answers for 1 attempts/,
    );
});

test("StoreUnavailable: no options → nothing was changed", () => {
  const { unknown, cause } = new StoreUnavailable("x");
  assert.deepEqual([unknown, cause], [false, undefined]);
  const other = new StoreUnavailable("x", { unknown: true, cause: "y" });
  assert.deepEqual([other.unknown, other.cause], [true, "y"]);
});
