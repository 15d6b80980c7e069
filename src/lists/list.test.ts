import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_DETAILS } from "./details.ts";
import { applyChange, type ChangeResult, type Item, MemoryList } from "./list.ts";

const FOLDERS = [300, 300, 300, 300].map((length, index) => `${index}`.repeat(length));

/** An item as version 0.2.0 may have stored it. */
const heavy: Item<string> = {
  sequence: 1,
  updateSequence: 0,
  id: "id",
  feed: "feed",
  feedUrl: "https://feeds.example/1",
  subscribedAt: 1,
  title: "title",
  former_feed_urls: null,
  folders: FOLDERS.join("\n"),
};

function update(details: object) {
  const list = new MemoryList(1, 1);
  list.load(heavy);
  return applyChange(list, { kind: "update", id: "id", ...details }, 2, 10);
}

const kindOf = (result: ChangeResult<string>) => (result === "added" ? result : result.kind);

test("list: details from 0.2.0 that are too long → may change, but not become longer", () => {
  const moved = { feed: "other", feedUrl: "https://feeds.example/2" };
  const accepted = [{}, moved, { title: "TITLE" }, { title: "" }, { folders: FOLDERS.slice(1) }, { folders: [] }];
  for (const details of accepted) assert.equal(kindOf(update(details)), "done", JSON.stringify(details));
  for (const details of [{ title: "longer" }, { folders: [...FOLDERS, "x"] }])
    assert.deepEqual(update(details), { kind: "refused", code: "details-too-long" });
  const swapped = { title: "a longer title", folders: FOLDERS.slice(1) };
  assert.equal(kindOf(update(swapped)), "done", "what counts is both together");
});

test("list: details from 0.2.0 that are too long → removed like any other, and recorded without the folders", () => {
  const list = new MemoryList(1, 1);
  list.load(heavy);
  assert.equal(kindOf(applyChange(list, { kind: "remove", id: "id" }, 2, 10)), "done");
  assert.deepEqual(
    list.removals.map(({ item: { title, folders } }) => [title, folders]),
    [["title", null]],
  );
});

test("list: a feed is added with details that are too long → refused, even if it is in the list", () => {
  const list = new MemoryList(1, 1);
  list.load({ ...heavy, folders: null });
  for (const feed of ["feed", "new"]) {
    const added = { id: feed, feed, feedUrl: "https://feeds.example/3", folders: FOLDERS };
    assert.deepEqual(applyChange(list, { kind: "add", ...added }, 2, 10), {
      kind: "refused",
      code: "details-too-long",
    });
  }
  assert.deepEqual([list.sequence, list.total, list.inserted.size], [1, 1, 0]);
  const fitting = { title: "🎧".repeat(MAX_DETAILS - 900), folders: FOLDERS.slice(1) };
  const added = { id: "new", feed: "new", feedUrl: "https://feeds.example/3", ...fitting };
  assert.equal(applyChange(list, { kind: "add", ...added }, 2, 10), "added");
});
