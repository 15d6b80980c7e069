import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { RequestFailure } from "../../../errors/catalog.ts";
import {
  MAX_FEEDS,
  readFeedChanges,
  readFeedLines,
  readFeedList,
  requireDisjoint,
  writeFeedChanges,
  writeFeedLines,
  writeFeedList,
  writeUploadResult,
} from "./feeds.ts";

const hasStatus = (status: number) => (error: RequestFailure) => error.error.status === status;
const A = "https://a.example/feed";
const B = "https://b.example/feed";

async function* batches() {
  yield [{ id: "1", feedUrl: A, subscribedAt: new Date(0) }];
  yield [{ id: "2", feedUrl: B, subscribedAt: new Date(0) }];
}

test("feeds: missing or null members, items that are empty or not strings → ignored", () => {
  assert.deepEqual(readFeedChanges({}), { add: [], remove: [] });
  assert.deepEqual(readFeedChanges({ add: null, remove: [A], timestamp: 5 }), { add: [], remove: [A] });
  assert.deepEqual(readFeedChanges({ add: [A, "", null, 5, "antennapod_local:x"] }), {
    add: [A, "antennapod_local:x"],
    remove: [],
  });
});

test("feeds: not an object, members that are not arrays, or too many feeds → rejected", () => {
  for (const document of [null, [], "x", 1, { add: A }, { remove: {} }])
    assert.throws(() => readFeedChanges(document), hasStatus(400));
  assert.throws(() => readFeedChanges({ add: new Array(MAX_FEEDS + 1).fill(A) }), hasStatus(413));
});

test("feeds: the same URL added and removed → rejected; another form of it → accepted", () => {
  assert.throws(() => requireDisjoint({ add: [B, A], remove: [A] }), hasStatus(400));
  requireDisjoint({ add: [A], remove: [B, `${A}/`] });
});

test("feeds: changes in batches → one array of added feeds, then removed feeds and timestamp", async () => {
  const write = (...batches: string[][]) => text(writeFeedChanges(batches, [[B]], async () => 5));
  assert.equal(await write([]), `{"add":[],"remove":["${B}"],"timestamp":5}`);
  assert.equal(await write([], [A, B], [], [A]), `{"add":["${A}","${B}","${A}"],"remove":["${B}"],"timestamp":5}`);
});

test("feeds: result of an upload → timestamp and replaced URLs", () => {
  assert.equal([...writeUploadResult(5, [["bad", ""]])].join(""), '{"timestamp":5,"update_urls":[["bad",""]]}');
});

test("feeds: complete lists as JSON or text → read and written; not an array → rejected", async () => {
  assert.deepEqual(readFeedList([A, { url: B }, { feed: B }, 5, ""]), [A, B]);
  assert.throws(() => readFeedList({}), hasStatus(400));
  assert.deepEqual(readFeedLines(`${A}\r\n\n  ${B}  \n`), [A, B]);
  assert.deepEqual(JSON.parse(await text(writeFeedList(batches(), ({ feedUrl }) => feedUrl))), [A, B]);
  assert.equal(await text(writeFeedLines(batches())), `${A}\n${B}\n`);
});
