import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ATOMIC, add, callServer, newId, temporaryFolder } from "./harness.ts";
import { type Event, findViolations } from "./history.ts";
import { startPostgres } from "./postgres.ts";
import { type RunningServer, start } from "./process.ts";
import { fc } from "./properties.ts";

describe("the checker of histories", () => {
  const event = (kind: Event["kind"], outcome: Event["outcome"], start: number, end: number): Event => ({
    feed: "f",
    kind,
    outcome,
    start,
    end,
  });

  test("accepts what a server may answer", () => {
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
      "a request without an answer may have worked",
    );
  });

  test("finds what it must not", () => {
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
  });
});

/** Many clients on all the servers at once add, remove and read the same feeds; returns what each of them saw. */
async function makeHistory(servers: readonly RunningServer[], keys: number, clients: number): Promise<Event[]> {
  const history: Event[] = [];
  const server = (client: number) => servers[client % servers.length] as RunningServer;
  const record = async (feed: string, kind: Event["kind"], request: () => Promise<Event["outcome"]>) => {
    const begun = performance.now();
    const outcome = await request();
    history.push({ feed, kind, start: begun, end: performance.now(), outcome });
    return outcome;
  };
  const addTo = async (port: number, id: string, feed: string): Promise<Event["outcome"]> => {
    const body = JSON.stringify({ "atomic:operations": [add(id, feed)] });
    const { json } = await callServer(port, "POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
    return "data" in json["atomic:results"][0] ? "added" : "conflict";
  };
  const read = async (port: number, id: string): Promise<Event["outcome"]> =>
    (await callServer(port, "GET", `/v1/subscriptions/${id}`)).status === 200 ? "present" : "absent";
  const remove = async (port: number, id: string): Promise<Event["outcome"]> =>
    (await callServer(port, "DELETE", `/v1/subscriptions/${id}`)).status === 204 ? "removed" : "absent";

  for (let key = 0; key < keys; key += 8) {
    const together = Array.from({ length: Math.min(8, keys - key) }, (_, index) => ({
      id: newId(),
      feed: `https://feeds.example/${key + index}`,
    }));
    await Promise.all(
      together.flatMap(({ id, feed }, index) =>
        Array.from({ length: clients }, async (_, client) => {
          await record(feed, "add", () => addTo(server(client).port, id, feed));
          // What was answered on one process is read on another.
          await record(feed, "read", () => read(server(client + 1).port, id));
          if ((key + index) % 4 === 0) {
            await record(feed, "remove", () => remove(server(client + 2).port, id));
            await record(feed, "read", () => read(server(client).port, id));
          }
        }),
      ),
    );
  }
  return history;
}

function summarize(history: readonly Event[]): Record<string, number> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(history, ({ outcome }) => outcome)).map(([outcome, events]) => [
      outcome,
      events?.length ?? 0,
    ]),
  );
}

test("three processes on one PostgreSQL agree on who added what, and see each other's changes", async () => {
  const postgres = await startPostgres();
  const url = await postgres.database();
  const servers = await Promise.all([1, 2, 3].map(() => start({ DATABASE_URL: url })));
  const history = await makeHistory(servers, 240, 4);
  assert.deepEqual(findViolations(history), []);
  const { added = 0, conflict = 0, present = 0 } = summarize(history);
  assert.ok(added >= 240 && conflict >= 240 && present >= 240, JSON.stringify(summarize(history)));
});

test("one process on SQLite does too", async () => {
  const server = await start({ DATABASE_URL: `file:${temporaryFolder()}/earmark.db` });
  const history = await makeHistory([server], 240, 4);
  assert.deepEqual(findViolations(history), []);
  assert.ok((summarize(history)["conflict"] ?? 0) >= 240);
});

test("a page of the whole list on another process holds what was answered on this one", async () => {
  const postgres = await startPostgres();
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
