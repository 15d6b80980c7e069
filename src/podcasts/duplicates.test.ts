import assert from "node:assert/strict";
import { test } from "node:test";
import { DuplicateFinder, type DuplicateGroup, type ListedPodcast } from "./duplicates.ts";

const NOTHING = { podcastGuid: null, title: null, homepageUrl: null };
const SHOW = { title: "The Daily Show", homepageUrl: "https://daily.example/show" };

function find(podcasts: Readonly<Record<string, Partial<ListedPodcast>>>): readonly DuplicateGroup[] {
  const finder = new DuplicateFinder();
  for (const [subscription, known] of Object.entries(podcasts)) finder.add({ subscription, ...NOTHING, ...known });
  return finder.groups();
}

const reasonsOf = (groups: readonly DuplicateGroup[]) =>
  groups.map(({ reason, subscriptions }) => [reason, subscriptions.join("")]);
const idOf = (groups: readonly DuplicateGroup[]) => groups[0]?.id ?? assert.fail("no group");

test("duplicates: the same GUID → one group, whatever title and site", () => {
  const groups = find({ a: { podcastGuid: "1", ...SHOW }, b: { podcastGuid: "2" }, c: { podcastGuid: "1" } });
  assert.deepEqual(reasonsOf(groups), [["same-guid", "ac"]]);
});

test("duplicates: the same title and site → one group", () => {
  assert.deepEqual(reasonsOf(find({ a: { ...SHOW, podcastGuid: "1" }, b: {}, c: { ...SHOW, podcastGuid: "2" } })), [
    ["same-title-and-site", "ac"],
  ]);
});

test("duplicates: found for both reasons → once, as same-guid", () => {
  const both = { ...SHOW, podcastGuid: "1" };
  assert.deepEqual(reasonsOf(find({ a: both, b: both })), [["same-guid", "ab"]]);
  // Part of a group with the same GUID.
  assert.deepEqual(reasonsOf(find({ a: both, b: both, c: { podcastGuid: "1" } })), [["same-guid", "abc"]]);
  // Another member is found by its title alone.
  assert.deepEqual(reasonsOf(find({ a: both, b: both, c: SHOW })), [
    ["same-guid", "ab"],
    ["same-title-and-site", "abc"],
  ]);
});

test("duplicates: case, punctuation and spaces in titles → do not count", () => {
  for (const title of ["the daily show", "The  Daily Show!", "THE DAILY-SHOW", "Ｔｈｅ Daily Show"])
    assert.equal(find({ a: SHOW, b: { ...SHOW, title } }).length, 1, title);
  for (const title of ["The Daily Show 2", "Daily Show", "", null, "🎧"])
    assert.equal(find({ a: SHOW, b: { ...SHOW, title } }).length, 0, String(title));
  const sign = { title: "🎧", homepageUrl: "https://a.example/" };
  assert.equal(find({ a: sign, b: sign, c: { ...sign, title: "🎙" } })[0]?.subscriptions.length, 2);
});

test("duplicates: sites → compared by host, path and query", () => {
  for (const homepageUrl of [
    "http://daily.example/show",
    "https://www.daily.example/show/",
    "https://DAILY.example/show/index.html?utm_source=feed&utm_medium=rss#top",
  ])
    assert.equal(find({ a: SHOW, b: { ...SHOW, homepageUrl } }).length, 1, homepageUrl);
  for (const homepageUrl of [
    "https://daily.example/",
    "https://daily.example/show?id=2",
    "https://other.example/show",
    "nowhere",
    null,
  ])
    assert.equal(find({ a: SHOW, b: { ...SHOW, homepageUrl } }).length, 0, String(homepageUrl));
});

test("duplicates: nothing known of the feeds → no group", () => {
  assert.deepEqual(find({ a: {}, b: {}, c: { title: "T" }, d: { title: "T" } }), []);
});

test("duplicates: the id → depends on the members alone", () => {
  const one = { podcastGuid: "1" };
  const id = idOf(find({ a: one, b: one }));
  assert.match(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.equal(idOf(find({ b: one, x: {}, a: one })), id);
  assert.equal(idOf(find({ a: SHOW, b: SHOW })), id);
  assert.notEqual(idOf(find({ a: one, b: one, c: one })), id);
});

test("duplicates: hostile titles and sites → compared in linear time", () => {
  const finder = new DuplicateFinder();
  const homepageUrl = `https://a.example/${"/".repeat(200)}x${"/".repeat(1_000)}`;
  for (let index = 0; index < 2_000; index += 1) {
    const title = `${index >> 1} ${"!".repeat(100)}${"\u0301".repeat(200)}`;
    finder.add({ subscription: String(index), podcastGuid: null, title, homepageUrl });
  }
  const started = performance.now();
  assert.equal(finder.groups().length, 1_000);
  assert.ok(performance.now() - started < 5_000);
});
