import assert from "node:assert/strict";
import { test } from "node:test";
import { advance, type Mark, type Seen, startOf } from "./marks.ts";

const AT = new Date(1_000_000_500);
const NOW = 1_000_000;
const seenUpTo = (sequence: number): Seen => ({ sequence, since: 0, from: 0 });
const mark = (stamp: number, sequence: number): Mark => ({ stamp, sequence });
const covered = (sequence: number) => ({ kind: "poll", since: 5, from: 0, covered: sequence }) as const;
const state = (marks: readonly Mark[], seen?: Seen) => ({
  sequence: 99,
  seen,
  marks,
  hasMoves: false,
  deviceSyncedAt: undefined,
});

test("marks: nothing issued yet → the server's time in seconds", () => {
  assert.deepEqual(advance({ marks: [], seen: undefined }, covered(0), AT), {
    timestamp: NOW,
    newMark: mark(NOW, 0),
    newSeen: { sequence: 0, since: 5, from: 0 },
  });
});

test("marks: no change since the last one → the same, and nothing to write", () => {
  const { timestamp, newMark, newSeen } = advance({ marks: [mark(7, 3)], seen: seenUpTo(3) }, covered(3), AT);
  assert.deepEqual([timestamp, newMark, newSeen], [7, undefined, undefined]);
});

test("marks: a change within the same second, or a clock set back → two seconds later", () => {
  for (const last of [NOW, NOW - 1, NOW + 5_000])
    assert.deepEqual(advance({ marks: [mark(last, 3)], seen: undefined }, covered(4), AT).newMark, mark(last + 2, 4));
  assert.deepEqual(advance({ marks: [mark(NOW - 2, 3)], seen: undefined }, covered(4), AT).newMark, mark(NOW, 4));
});

test("marks: other clients have later ones → the newest that covers no more than this client has received", () => {
  const marks = [mark(10, 3), mark(20, 6)];
  assert.equal(advance({ marks, seen: undefined }, covered(5), AT).timestamp, 10);
  assert.equal(advance({ marks, seen: undefined }, covered(2), AT).timestamp, 8);
});

test("marks: an upload by a client that has seen every change → its own changes count as seen", () => {
  const { newMark, newSeen } = advance(
    { marks: [mark(10, 3)], seen: seenUpTo(3) },
    { kind: "upload", before: 3, after: 5 },
    AT,
  );
  assert.deepEqual([newMark, newSeen], [mark(NOW, 5), seenUpTo(5)]);
});

test("marks: an upload by a client that has not seen every change → the mark of what it has seen", () => {
  const marks = [mark(10, 3), mark(20, 6)];
  const behind = advance({ marks, seen: seenUpTo(4) }, { kind: "upload", before: 6, after: 7 }, AT);
  assert.deepEqual(behind, { timestamp: 10, newMark: undefined, newSeen: undefined });
  const unknown = advance({ marks, seen: undefined }, { kind: "upload", before: 6, after: 7 }, AT);
  assert.deepEqual(unknown, { timestamp: 8, newMark: undefined, newSeen: undefined });
});

test("start: a timestamp, or one second more → its mark; before all marks → everything", () => {
  const marks = [mark(10, 3), mark(12, 6)];
  const from = (since: number) => startOf(state(marks), since).from;
  assert.deepEqual([0, 9, 10, 11, 12, 13, 10 ** 9].map(from), [0, 0, 3, 3, 6, 6, 6]);
});

test("start: a clock ahead → after what the client has seen; the same timestamp again → where that poll started", () => {
  const marks = [mark(10, 3), mark(12, 6)];
  assert.deepEqual(startOf(state(marks, seenUpTo(4)), 99), { from: 4, known: 6 });
  assert.deepEqual(startOf(state(marks, { sequence: 6, since: 99, from: 4 }), 99), { from: 4, known: 6 });
  assert.deepEqual(startOf(state(marks, { sequence: 6, since: 99, from: 4 }), 100), { from: 6, known: 6 });
  assert.deepEqual(startOf(state(marks, seenUpTo(6)), 0), { from: 0, known: 0 });
});
