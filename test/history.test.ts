import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Event, findViolations } from "./support/history.ts";
import { sharedPostgres } from "./support/postgres.ts";
import { start } from "./support/process.ts";
import { fc } from "./support/properties.ts";
import { ATOMIC, add, callServer, newId } from "./support/server.ts";

describe("history checker", () => {
  const event = (kind: Event["kind"], outcome: Event["outcome"], start: number, end: number): Event => ({
    feed: "f",
    kind,
    outcome,
    start,
    end,
  });

  test("valid history → no violations", () => {
    assert.deepEqual(findViolations([]), []);
    assert.deepEqual(
      findViolations([event("add", "added", 0, 2), event("add", "conflict", 1, 3), event("read", "present", 4, 5)]),
      [],
    );
    assert.deepEqual(
      findViolations([event("add", "conflict", 0, 3), event("add", "added", 1, 2)]),
      [],
      "the loser may be answered first",
    );
    assert.deepEqual(
      findViolations([
        event("add", "added", 0, 1),
        event("remove", "removed", 2, 3),
        event("read", "absent", 4, 5),
        event("add", "added", 6, 7),
      ]),
      [],
    );
    assert.deepEqual(
      findViolations([event("add", "added", 0, 2), event("read", "absent", 1, 3)]),
      [],
      "a read that had begun before may miss it",
    );
    assert.deepEqual(
      findViolations([event("add", "unknown", 0, 1), event("add", "conflict", 2, 3)]),
      [],
      "a request without a response may have succeeded",
    );
    assert.deepEqual(
      findViolations([
        event("add", "added", 0, 1),
        event("remove", "removed", 2, 4),
        event("read", "present", 3, 5),
        event("add", "added", 5, 8),
        event("read", "present", 6, 7),
        event("remove", "absent", 4, 6),
      ]),
      [],
      "what overlaps may come in any order",
    );
  });

  test("invalid history → violations", () => {
    assert.notDeepEqual(findViolations([event("add", "added", 0, 2), event("add", "added", 1, 3)]), [], "two winners");
    assert.notDeepEqual(findViolations([event("add", "conflict", 0, 1)]), [], "a conflict with nobody");
    assert.notDeepEqual(
      findViolations([event("add", "conflict", 0, 1), event("add", "added", 2, 3)]),
      [],
      "a conflict with someone later",
    );
    assert.notDeepEqual(
      findViolations([event("add", "added", 0, 1), event("read", "absent", 2, 3)]),
      [],
      "a lost addition",
    );
    assert.notDeepEqual(findViolations([event("read", "present", 0, 1)]), [], "a feed from nowhere");
    assert.notDeepEqual(
      findViolations([
        event("add", "added", 0, 1),
        event("remove", "removed", 2, 3),
        event("add", "added", 4, 5),
        event("add", "added", 6, 7),
      ]),
      [],
      "added again without a removal",
    );
    assert.notDeepEqual(
      findViolations([event("add", "added", 0, 2), event("add", "added", 1, 3), event("remove", "removed", 4, 5)]),
      [],
      "two winners, and a removal too late to be between them",
    );
    const removed = [event("add", "added", 0, 1), event("remove", "removed", 2, 3)];
    assert.notDeepEqual(findViolations([...removed, event("read", "present", 4, 5)]), [], "a stale read");
    assert.notDeepEqual(
      findViolations([...removed, event("add", "conflict", 4, 5)]),
      [],
      "a conflict with nobody left",
    );
    assert.notDeepEqual(findViolations([...removed, event("remove", "removed", 4, 5)]), [], "removed twice");
    assert.notDeepEqual(
      findViolations([event("add", "added", 0, 1), event("remove", "absent", 2, 3)]),
      [],
      "nothing to remove where something was added",
    );
  });
});

test("PostgreSQL: add confirmed by one process → listed by another", async () => {
  const postgres = await sharedPostgres();
  const url = await postgres.database();
  const [one, other] = await Promise.all([start({ DATABASE_URL: url }), start({ DATABASE_URL: url })]);
  let expected = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 30 }), async (count) => {
      const operations = Array.from({ length: count }, () => {
        const id = newId();
        return add(id, `https://feeds.example/${id}`);
      });
      const body = JSON.stringify({ "atomic:operations": operations });
      await callServer(one.port, "POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
      expected += count;
      assert.equal((await callServer(other.port, "GET", "/v1/subscriptions")).json.meta.total, expected);
    }),
    { numRuns: 30 },
  );
});
