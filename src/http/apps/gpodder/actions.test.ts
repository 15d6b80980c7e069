import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { EpisodeAction } from "../../../apps/episode-actions.ts";
import { RequestFailure } from "../../../errors/catalog.ts";
import {
  MAX_UPLOADED_ACTIONS,
  readActions,
  readActionsQuery,
  toGpodderAction,
  writeActions,
  zoneFor,
} from "./actions.ts";

const PLAY = { podcast: "https://a.example/feed", episode: "https://a.example/1.mp3", action: "play" };

const readOne = (more: object) => readActions([{ ...PLAY, ...more }])[0];
const writeAll = async (...batches: EpisodeAction[][]) =>
  await text(writeActions(batches, 1_800_000_000, (action) => toGpodderAction(action, "")));
const write = async (action: EpisodeAction) => JSON.parse(await writeAll([action]));

const STORED: EpisodeAction = {
  podcast: PLAY.podcast,
  episode: PLAY.episode,
  guid: "g-1",
  device: "phone",
  kind: "play",
  actedAt: new Date("2024-07-01T10:00:00Z"),
  position: 20,
  started: 10,
  total: 30,
};

test("actions: a kind in upper, lower or mixed case → lower case", () => {
  for (const kind of ["play", "download", "delete", "new", "flattr"])
    for (const action of [kind, kind.toUpperCase(), `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`])
      assert.equal(readOne({ action })?.kind, kind);
});

test("actions: invalid items → ignored; valid ones → kept", () => {
  const bad = [
    null,
    7,
    "text",
    [],
    {},
    { ...PLAY, podcast: null },
    { ...PLAY, episode: 1 },
    { ...PLAY, action: "listen" },
    { ...PLAY, action: null },
    { ...PLAY, timestamp: "yesterday" },
    { ...PLAY, timestamp: "2024-02-30T10:00:00" },
    { ...PLAY, timestamp: 5 },
  ];
  const read = readActions([...bad, PLAY, ...bad, { ...PLAY, action: "NEW" }]);
  assert.deepEqual(
    read.map(({ kind }) => kind),
    ["play", "new"],
  );
  assert.deepEqual(readActions([]), []);
});

test("actions: numbers from 0 to 2³¹ - 1, even as text → rounded down; anything else → undefined", () => {
  for (const [sent, expected] of [
    [12, 12],
    [12.9, 12],
    ["12", 12],
    ["12.9", 12],
    [0, 0],
    [-1, undefined],
    ["-1", undefined],
    [null, undefined],
    ["", undefined],
    ["twelve", undefined],
    [2 ** 31, undefined],
    [[12], undefined],
  ] as const)
    for (const member of ["position", "started", "total"] as const)
      assert.equal(readOne({ [member]: sent })?.[member], expected, `${member}: ${String(sent)}`);
});

test("actions: extra members, null guid, invalid device → ignored; valid guid and device → kept", () => {
  const read = readOne({ id: 3, guid: null, device: "my phone!", playedDuration: 7 });
  assert.ok(read !== undefined && !("id" in read) && !("playedDuration" in read));
  assert.equal(read?.guid, undefined);
  assert.equal(read?.device, undefined);
  assert.equal(readOne({ guid: " g ", device: "my-phone.2" })?.guid, " g ");
  assert.equal(readOne({ device: "my-phone.2" })?.device, "my-phone.2");
});

test("actions: a Unix time or a date without a time → read", () => {
  const expected = new Date("2024-07-01T00:00:00Z");
  for (const timestamp of [1_719_792_000, "1719792000", 1_719_792_000_000, "1719792000000", "2024-07-01"])
    assert.deepEqual(readOne({ timestamp })?.actedAt, expected, JSON.stringify(timestamp));
});

test("actions: no timestamp → undefined, so that the server's clock is used", () => {
  for (const timestamp of [undefined, null, ""]) assert.equal(readOne({ timestamp })?.actedAt, undefined);
});

test("actions: a body that is not an array, or too many actions → rejected", () => {
  for (const document of [{}, null, "x", 1]) assert.throws(() => readActions(document), RequestFailure);
  assert.throws(
    () => readActions(new Array(MAX_UPLOADED_ACTIONS + 1).fill({})),
    (error: RequestFailure) => error.error.status === 413,
  );
  assert.deepEqual(readActions(new Array(MAX_UPLOADED_ACTIONS).fill({})), []);
});

test("actions: writing a play action → lower-case action, UTC time without a zone, all three numbers", async () => {
  assert.deepEqual(await write(STORED), {
    actions: [
      {
        podcast: PLAY.podcast,
        episode: PLAY.episode,
        guid: "g-1",
        device: "phone",
        action: "play",
        timestamp: "2024-07-01T10:00:00",
        started: 10,
        position: 20,
        total: 30,
      },
    ],
    timestamp: 1_800_000_000,
  });
});

test("actions: written for Cardo, which sends the origin of its web view → times with Z", () => {
  const timeFor = (headers: { readonly origin?: string }) =>
    (toGpodderAction(STORED, zoneFor(headers)) as { readonly timestamp: string }).timestamp;
  for (const origin of ["tauri://localhost", "http://tauri.localhost"])
    assert.equal(timeFor({ origin }), "2024-07-01T10:00:00Z", origin);
  for (const origin of ["tauri://other", "https://tauri.localhost.example", "http://localhost", "null", ""])
    assert.equal(timeFor({ origin }), "2024-07-01T10:00:00", origin);
  assert.equal(timeFor({}), "2024-07-01T10:00:00");
});

test("actions: writing an action → only members with a value; numbers only for plays", async () => {
  const { actions } = await write({
    ...STORED,
    guid: undefined,
    device: undefined,
    started: undefined,
    total: undefined,
  });
  assert.deepEqual(Object.keys(actions[0]), ["podcast", "episode", "action", "timestamp", "position"]);
  for (const kind of ["download", "delete", "new", "flattr"] as const) {
    const [written] = (await write({ ...STORED, kind })).actions;
    assert.deepEqual(Object.keys(written), ["podcast", "episode", "guid", "device", "action", "timestamp"]);
  }
});

test("actions: writing none or several batches → one array", async () => {
  assert.equal(await writeAll(), '{"actions":[],"timestamp":1800000000}');
  const { actions } = JSON.parse(await writeAll([], [STORED, STORED], [], [STORED]));
  assert.equal(actions.length, 3);
});

test("actions: a query → `since` and `podcast` are read, `device` and `aggregated` ignored", () => {
  assert.deepEqual(readActionsQuery("since=5&device=x&aggregated=true"), { since: 5, podcast: undefined });
  assert.deepEqual(readActionsQuery("podcast=https%3A%2F%2Fa.example%2F"), { since: 0, podcast: "https://a.example/" });
});
