import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Answer } from "../test/harness.ts";
import { add, startServer } from "../test/harness.ts";
import { type Alter, startFront } from "./front.ts";
import { clientsOf, compare, type History, judge, race, secondWinner } from "./same-feed.ts";

/** What the proof says of a server whose answers are altered on their way. */
async function violationsOf(alter: Alter): Promise<readonly string[]> {
  const server = await startServer();
  const front = await startFront(after, server.port, alter);
  const history: History = { events: [], wrong: [] };
  const clients = clientsOf(front.port, history, Math.random);
  for (let round = 0; round < 2; round += 1) await race(clients, [], String(round), history, Math.random);
  return judge(history).violations;
}

test("a server that keeps its word has no violations", async () => {
  assert.deepEqual(await violationsOf((_path, _body, { text }) => text), []);
});

test("a second winner is found", async () => {
  assert.match((await violationsOf(secondWinner(Math.random))).join(), /added again/);
});

test("a stale read is found", async () => {
  let stale: Answer | undefined;
  const violations = await violationsOf((path, _body, answer) => {
    if (!path.startsWith("/v1/subscriptions?")) return answer.text;
    // Every other read is answered with what the one before it saw.
    const { text } = stale ?? answer;
    stale = stale === undefined ? answer : undefined;
    return text;
  });
  assert.match(violations.join(), /absent after it was added|present after it was removed/);
});

test("results that do not answer their operations are found", () => {
  const operation = { data: { id: "1", attributes: { feed_url: "f" } } };
  const other = { data: { id: "2", attributes: { feed_url: "g" } } };
  assert.deepEqual(compare([operation, other], [operation, other]), []);
  assert.match(compare([operation, other], [operation]).join(), /1 results for 2 operations/);
  assert.equal(compare([operation, other], [other, operation]).length, 2, "in another order");
  const refused = { errors: [{ status: "409", source: { pointer: "/atomic:operations/1/data" } }] } as const;
  assert.deepEqual(compare([operation, other], [operation, refused]), []);
  assert.equal(compare([operation, other], [refused, other]).length, 1, "a refusal in another's place");
  assert.equal(compare([add("x", "f") as typeof operation], [{ ...operation }]).length, 1);
});
