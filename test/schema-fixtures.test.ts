import assert from "node:assert/strict";
import { test } from "node:test";
import { BASE_VERSION } from "../src/store/shared/schema-version.ts";
import { ENGINES, type Engine, readFixture, writeFixture } from "./support/schema-fixture.ts";

test("schema fixtures: the newest schema → a database of it, for the tests of the next migration", () => {
  for (const engine of Object.keys(ENGINES) as Engine[]) {
    const newest = BASE_VERSION + ENGINES[engine].length;
    const isCurrent = readFixture(engine, newest).startsWith(writeFixture(engine, newest));
    assert.ok(isCurrent, `${engine}-${newest}.sql is out of date: run npm run fixture:schema, and add rows at its end`);
  }
});
