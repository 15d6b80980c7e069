import assert from "node:assert/strict";
import { test } from "node:test";
import { withGaps } from "./gaps.ts";
import { type Job, type ListState, plan } from "./plan.ts";

const item = (id: string, feed: string) => ({ id, feedUrl: `https://${feed}`, feed });
const add = (at: number, ...drafts: ReturnType<typeof item>[]): Job & { kind: "add" } => ({
  kind: "add",
  credentialHash: undefined,
  at,
  drafts,
  maxTotal: 10,
});
const remove = (at: number, id: string): Job => ({ kind: "remove", credentialHash: undefined, at, id });
const EMPTY: ListState = { sequence: 0, total: 0, gaps: undefined, rows: [], isRevoked: () => false };

test("additions take the next numbers, and the first of two that collide wins", () => {
  const jobs = [add(5, item("a", "x"), item("b", "x"), item("a", "y")), add(6, item("c", "z"), item("c", "z"))];
  assert.deepEqual(plan({ ...EMPTY, sequence: 10, total: 3 }, jobs), {
    answers: [
      ["added", "already-subscribed", "id-in-use"],
      ["added", "already-subscribed"],
    ],
    sequence: 12,
    total: 5,
    inserts: [
      { ...item("a", "x"), sequence: 11, at: 5 },
      { ...item("c", "z"), sequence: 12, at: 6 },
    ],
    deletes: [],
    removals: [],
    gaps: undefined,
  });
});

test("what the list has stands against what is added, by feed and by id", () => {
  const rows = [{ sequence: 1, id: "a", feed: "x" }];
  const { answers, inserts } = plan({ ...EMPTY, sequence: 1, total: 1, rows }, [
    add(5, item("b", "x"), item("a", "y"), item("a", "x"), item("b", "y")),
  ]);
  assert.deepEqual(answers, [["already-subscribed", "id-in-use", "already-subscribed", "added"]]);
  assert.deepEqual(inserts, [{ ...item("b", "y"), sequence: 2, at: 5 }]);
});

test("a removal takes a number too, and what was removed can be added again", () => {
  const gaps = withGaps(undefined, [1]);
  const rows = [{ sequence: 2, id: "a", feed: "x" }];
  const jobs = [remove(5, "a"), remove(6, "a"), add(7, item("a", "x"))];
  assert.deepEqual(plan({ ...EMPTY, sequence: 3, total: 2, gaps, rows }, jobs), {
    answers: [["removed"], ["not-found"], ["added"]],
    sequence: 5,
    total: 2,
    inserts: [{ ...item("a", "x"), sequence: 5, at: 7 }],
    deletes: [2],
    removals: [{ sequence: 4, id: "a", at: 5 }],
    gaps: withGaps(gaps, [2, 4]),
  });
});

test("what is added and removed in one go leaves its removal alone", () => {
  assert.deepEqual(plan(EMPTY, [add(5, item("a", "x")), remove(6, "a")]), {
    answers: [["added"], ["removed"]],
    sequence: 2,
    total: 0,
    inserts: [],
    deletes: [],
    removals: [{ sequence: 2, id: "a", at: 6 }],
    gaps: withGaps(undefined, [1, 2]),
  });
});

test("plan: the list is full → new feeds are refused, conflicts stay conflicts, a removal makes space", () => {
  const rows = [{ sequence: 1, id: "a", feed: "x" }];
  const full = { ...add(5, item("b", "y"), item("c", "z"), item("b", "z"), item("c", "x")), maxTotal: 2 };
  const { answers, total } = plan({ ...EMPTY, sequence: 1, total: 1, rows }, [full, remove(6, "a"), full]);
  assert.deepEqual(answers, [
    ["added", "quota-exceeded", "id-in-use", "already-subscribed"],
    ["removed"],
    ["already-subscribed", "added", "already-subscribed", "id-in-use"],
  ]);
  assert.equal(total, 2);
});

test("plan: a job whose credential is revoked → changes nothing, the others go on", () => {
  const isRevoked = (hash: string, at: number) => hash === "gone" && at > 5;
  const jobs: Job[] = [
    { ...add(5, item("a", "x")), credentialHash: "gone" },
    { ...add(6, item("b", "y"), item("c", "z")), credentialHash: "gone" },
    { ...add(6, item("d", "y")), credentialHash: "valid" },
    { ...remove(7, "a"), credentialHash: "gone" },
  ];
  const { answers, inserts, removals } = plan({ ...EMPTY, isRevoked }, jobs);
  assert.deepEqual(answers, [["added"], ["access-revoked"], ["added"], ["access-revoked"]]);
  assert.deepEqual(
    inserts.map(({ id }) => id),
    ["a", "d"],
  );
  assert.deepEqual(removals, []);
});
