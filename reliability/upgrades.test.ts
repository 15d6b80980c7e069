import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { createSchema } from "../src/store/sqlite-schema.ts";
import { differences, missingFixtures } from "./upgrades.ts";

test("there is a database of every version to upgrade from, and one more is asked for with the next version", () => {
  const database = new DatabaseSync(":memory:");
  createSchema(database);
  const newest = Number(database.prepare("pragma user_version").get()?.["user_version"]);
  for (const engine of ["sqlite", "postgres"] as const) {
    assert.deepEqual(missingFixtures(engine, newest), []);
    assert.equal(missingFixtures(engine, newest + 1).length, 1);
  }
});

test("what is changed or lost on the way is found, and what is new is not", () => {
  const before = new Map([
    [
      "lists",
      [
        { user: 1, total: 2 },
        { user: 2, total: 3 },
      ],
    ],
  ]);
  const after = (...rows: object[]) => new Map([["lists", rows as Record<string, number>[]]]);
  const [one, other] = [
    { user: 1, total: 2, more: 0 },
    { user: 2, total: 3, more: 0 },
  ];
  assert.deepEqual(differences(before, after(other, one).set("accounts", [])), []);
  assert.match(differences(before, after(one, { ...other, total: 4 })).join(), /\[2,3\] is not there/);
  assert.match(differences(before, after(one)).join(), /\[2,3\] is not there/);
  assert.match(differences(before, after(one, other, { user: 3, total: 0 })).join(), /3 rows, it had 2/);
  assert.equal(differences(before, new Map()).length, 2);
});
