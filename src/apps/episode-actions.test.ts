import assert from "node:assert/strict";
import { test } from "node:test";
import {
  feedKeyOf,
  isNewer,
  type KeyedAction,
  mergeActions,
  type NumberedAction,
  readAction,
  type UploadedAction,
} from "./episode-actions.ts";

const AT = new Date("2026-01-02T03:04:05.678Z");

const UPLOAD: UploadedAction = {
  podcast: "https://feeds.example/a",
  episode: "https://media.example/1",
  guid: undefined,
  device: undefined,
  kind: "play",
  actedAt: undefined,
  position: 10,
  started: 0,
  total: 100,
};
const read = (more: Partial<UploadedAction> = {}) => readAction({ ...UPLOAD, ...more }, AT);
const seconds = (time: string) => new Date(`2026-01-02T03:${time}Z`);

test("action: no time, an invalid one or one far ahead → the time of the upload, in whole seconds", () => {
  for (const actedAt of [undefined, seconds("09:06"), new Date(Number.NaN), new Date(-1)])
    assert.deepEqual([read({ actedAt })?.actedAt, read({ actedAt })?.isUndated], [seconds("04:05"), true]);
  assert.deepEqual(read({ actedAt: seconds("09:05.678") })?.actedAt, seconds("09:05"));
});

test("action: started and total → kept only together, with a position and for a play", () => {
  const progress = (more: Partial<UploadedAction>) => {
    const { position, started, total } = read(more) ?? {};
    return [position, started, total];
  };
  assert.deepEqual(progress({ position: 9.9, started: 1.2 }), [9, 1, 100]);
  assert.deepEqual(progress({ total: -1 }), [10, undefined, undefined]);
  assert.deepEqual(progress({ kind: "new" }), [undefined, undefined, undefined]);
  assert.deepEqual(progress({ position: 0 }), [0, 0, 100]);
});

test("action: a play without a valid position, an invalid URL or GUID → undefined", () => {
  for (const position of [undefined, -1, Number.NaN, 2 ** 31]) assert.equal(read({ position }), undefined);
  for (const episode of ["", "x", "file:///x", `https://x.example/${"x".repeat(2_048)}`, "https://x.example/\0"])
    assert.equal(read({ episode }), undefined);
  assert.equal(read({ podcast: "antennapod_local:1" }), undefined);
  assert.equal(read({ guid: "\ud800" }), undefined);
});

test("decoded feed: percent-decoded in full or in part → the same feed", () => {
  const spellings = [
    "https://x.example/a%3Ab%20c%2Fd%ff",
    "http://X.example/a:b%20c%2Fd%ff/",
    "https://x.example/a:b c/d%ff",
  ];
  assert.equal(new Set(spellings.map(feedKeyOf)).size, 1);
  assert.equal(feedKeyOf("x y"), undefined);
});

const action = (position: number, time: string): KeyedAction =>
  read({ position, actedAt: seconds(time) }) ?? assert.fail();
const stored = (position: number, time: string, more: Partial<NumberedAction> = {}): NumberedAction => ({
  ...action(position, time),
  sequence: 3,
  superseded: undefined,
  title: undefined,
  publishedAt: undefined,
  ...more,
});

/** Merges actions of one episode. */
const merge = (uploads: readonly KeyedAction[], existing: NumberedAction | undefined, sequence: number) => {
  const keys = uploads.map(() => "key");
  const { written, ...merged } = mergeActions(uploads, keys, new Map(existing && [["key", existing]]), sequence);
  return { ...merged, written: [...written.values()] };
};

test("merge: a new action, a later one, an equal time with other values → written", () => {
  for (const existing of [undefined, stored(10, "02:00"), stored(11, "03:00")]) {
    const { written, replaced, last, hasSupersededPlays } = merge([action(10, "03:00")], existing, 7);
    assert.deepEqual(
      written.map(({ sequence, position }) => [sequence, position]),
      [[8, 10]],
    );
    assert.deepEqual([replaced, last, hasSupersededPlays], [existing === undefined ? [] : [3], 8, false]);
  }
});

test("merge: the same action again, stored or in the batch → nothing is written", () => {
  const same = action(10, "03:00");
  assert.deepEqual(merge([same], stored(10, "03:00"), 7).written, []);
  assert.deepEqual(
    merge([same, same], undefined, 7).written.map(({ sequence }) => sequence),
    [8],
  );
});

test("merge: a play that loses → the winner is written again with a new number; repeated or older → nothing is written", () => {
  const first = merge([action(5, "02:00")], stored(10, "03:00"), 7);
  assert.deepEqual([first.replaced, first.last, first.hasSupersededPlays], [[3], 8, true]);
  const [winner = assert.fail()] = first.written;
  assert.deepEqual([winner.position, winner.superseded?.position], [10, 5]);
  for (const older of [action(5, "02:00"), action(4, "01:00")]) assert.deepEqual(merge([older], winner, 8).written, []);
  assert.equal(merge([action(6, "02:30")], winner, 8).hasSupersededPlays, true);
  // The action that the winner itself replaced has lost already.
  const [later = assert.fail()] = merge([action(7, "04:00")], winner, 8).written;
  assert.deepEqual(merge([action(10, "03:00")], later, 9).written, []);
});

test("merge: an undated action → wins over an action that a fast clock has dated later", () => {
  const undated = read() ?? assert.fail();
  const { written, hasSupersededPlays } = merge([undated], stored(99, "08:00"), 7);
  assert.deepEqual([written[0]?.position, written[0]?.actedAt, hasSupersededPlays], [10, seconds("08:00"), false]);
});

test("merge: an undated action that repeats what is stored → nothing is written, however late", () => {
  const undated = read() ?? assert.fail();
  assert.deepEqual(merge([undated], stored(10, "02:00"), 7).written, []);
  assert.equal(isNewer(undated, stored(10, "02:00")), false);
  assert.equal(isNewer(undated, stored(11, "08:00")), true);
});

test("merge: other kinds that lose → nothing is written", () => {
  const kind = { kind: "download", position: undefined, started: undefined, total: undefined } as const;
  const older = { ...action(1, "02:00"), ...kind };
  assert.deepEqual(merge([older], stored(1, "03:00", kind), 7).written, []);
});
