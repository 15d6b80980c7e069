import assert from "node:assert/strict";
import { test } from "node:test";
import type { EpisodeAction, Subscription } from "../client/src/index.ts";
import { writeCsv, writeJson } from "../web/src/listening/export-plays.ts";
import {
  calendarOf,
  calendarStart,
  fileNameOf,
  filterPlays,
  isFinished,
  levelsOf,
  ofCalendar,
  progressOf,
  readPlays,
  sumsByPodcast,
  sumsOf,
  toPlays,
} from "../web/src/listening/plays.ts";

const TODAY = new Date(2026, 10, 19, 15, 30);
let ids = 0;
const action = (more: Partial<EpisodeAction> = {}): EpisodeAction => ({
  id: String(++ids),
  feedUrl: "https://feeds.example/a",
  mediaUrl: "https://cdn.example/1.mp3",
  guid: null,
  device: "phone",
  action: "play",
  actedAt: TODAY,
  position: 60,
  started: 0,
  total: 120,
  ...more,
});
const at = (month: number, day: number, year = 2026) => new Date(year, month - 1, day, 12);
const subscription = (id: string, feedUrl: string, formerFeedUrls?: readonly string[]): Subscription => ({
  id,
  feedUrl,
  subscribedAt: TODAY,
  ...(formerFeedUrls && { formerFeedUrls }),
});

test("listening: actions → plays, latest first, of subscriptions in any spelling", () => {
  const plays = toPlays(
    [
      action({ actedAt: at(1, 1), feedUrl: "http://Feeds.example/a/" }),
      action({ action: "download" }),
      action({ actedAt: at(1, 3), feedUrl: "https://old.example/%C3%A4" }),
      action({ actedAt: at(1, 2), feedUrl: "https://gone.example/x", device: null, total: null }),
    ],
    [subscription("a", "https://feeds.example/a"), subscription("b", "https://b.example/", ["https://old.example/ä"])],
  );
  assert.deepEqual(
    plays.map(({ podcast, device, total }) => [podcast, device, total]),
    [
      ["b", "phone", 120],
      ["gone.example/x", undefined, undefined],
      ["a", "phone", 120],
    ],
  );
  assert.deepEqual(filterPlays(plays, { podcast: "a" }).length, 1);
  assert.deepEqual(filterPlays(plays, { device: "phone" }).length, 2);
  assert.deepEqual(filterPlays(plays, { podcast: "a", device: "desk" }), []);
});

test("listening: progress → a part, finished near the end, nothing without a length", () => {
  const [half, near, beyond, unknown] = toPlays(
    [action(), action({ position: 115 }), action({ position: 500 }), action({ total: null })],
    [],
  );
  assert.ok(half && near && beyond && unknown);
  assert.deepEqual([half, near, beyond, unknown].map(progressOf), [0.5, 115 / 120, 1, undefined]);
  assert.deepEqual([half, near, beyond, unknown].map(isFinished), [false, true, true, false]);
  assert.deepEqual(sumsOf([half, near, beyond, unknown]), { episodes: 4, finished: 2, seconds: 60 + 115 + 120 + 60 });
});

test("listening: sums per podcast → most episodes first", () => {
  const other = "https://feeds.example/b";
  const plays = toPlays([action(), action({ feedUrl: other, actedAt: at(2, 1) }), action({ feedUrl: other })], []);
  assert.deepEqual(
    sumsByPodcast(plays).map(({ podcast, episodes, lastPlayedAt }) => [podcast, episodes, lastPlayedAt]),
    [
      ["feeds.example/b", 2, TODAY],
      ["feeds.example/a", 1, TODAY],
    ],
  );
});

test("listening: the calendar → every day of twelve months from a Monday on, also across a change of the clocks", () => {
  const start = calendarStart(TODAY);
  assert.deepEqual([start.getFullYear(), start.getMonth(), start.getDate(), start.getDay()], [2025, 10, 17, 1]);
  const plays = toPlays(
    [
      action({ actedAt: new Date(2026, 2, 29, 0, 0, 1) }),
      action({ actedAt: new Date(2026, 2, 29, 23, 59, 59) }),
      action(),
      action({ actedAt: at(1, 1, 2020) }),
      action({ actedAt: at(12, 24) }),
    ],
    [],
  );
  const days = calendarOf(plays, TODAY);
  assert.equal(days.length, 52 * 7 + 4);
  assert.equal(new Set(days.map(({ date }) => date.toDateString())).size, days.length);
  assert.deepEqual(
    days.filter(({ count }) => count > 0).map(({ date, count }) => [date.getMonth() + 1, date.getDate(), count]),
    [
      [3, 29, 2],
      [11, 19, 1],
    ],
  );
  assert.equal(ofCalendar(plays, TODAY).length, 3);
});

test("listening: one extreme day → does not pale the others", () => {
  const days = [0, 1, 2, 4, 4, 4, 4, 4, 4, 4, 4, 400].map((count) => ({ date: TODAY, count }));
  assert.deepEqual(levelsOf(days), [0, 1, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
  assert.deepEqual(levelsOf([]), []);
});

test("listening: an episode without a title → the name of its file", () => {
  for (const [url, name] of [
    ["https://cdn.example/a/Caf%C3%A9.mp3?token=secret#t=1", "Café.mp3"],
    ["https://cdn.example/a/%ff.mp3", "%ff.mp3"],
    ["https://cdn.example/a/", "a"],
    ["https://cdn.example", "cdn.example"],
  ] as const)
    assert.equal(fileNameOf(url), name);
});

test("listening: more pages than the limit → the latest uploads, and said so", async () => {
  const asked: number[] = [];
  const progress: number[] = [];
  const client = (total: number) => ({
    episodeActions: async ({ number = 1, size = 0 } = {}) => {
      asked.push(number);
      const items = Array.from({ length: Math.min(size, total - (number - 1) * size) }, () => action());
      return { items, total, number, size, hasNext: false };
    },
  });
  const few = await readPlays(client(2_500), [], (part) => progress.push(part));
  assert.deepEqual([few.plays.length, few.isCut], [2_500, false]);
  assert.deepEqual(asked.toSorted(), [1, 2, 3]);
  assert.equal(progress.at(-1), 1);
  asked.length = 0;
  const many = await readPlays(client(60_000), [], () => undefined);
  assert.deepEqual([many.plays.length, many.isCut], [50_000, true]);
  assert.deepEqual([asked[0], Math.max(...asked), asked.length], [1, 60, 51]);
  assert.deepEqual((await readPlays(client(0), [], () => undefined)).plays, []);
});

test("listening: exported → CSV without formulas, JSON with nulls", () => {
  const [play] = toPlays([action({ title: '=HYPERLINK("x")', publishedAt: new Date(0), device: null })], []);
  assert.ok(play);
  const csv = writeCsv([play], () => "A, B");
  assert.match(csv, /^\ufeff"podcast","feed_url","title"/);
  assert.match(csv, /\r\n"A, B","https:\/\/feeds\.example\/a","'=HYPERLINK\(""x""\)"/);
  const { plays } = JSON.parse(writeJson([play], () => "A, B"));
  assert.deepEqual(plays, [
    {
      podcast: "A, B",
      feed_url: "https://feeds.example/a",
      title: '=HYPERLINK("x")',
      media_url: "https://cdn.example/1.mp3",
      published_at: "1970-01-01T00:00:00.000Z",
      acted_at: TODAY.toISOString(),
      device: null,
      position: 60,
      total: 120,
      finished: false,
    },
  ]);
});
