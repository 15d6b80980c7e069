import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { type KeyedAction, MAX_GUID, MAX_MEDIA_URL, readAction } from "../../src/apps/episode-actions.ts";
import { RequestFailure } from "../../src/errors/catalog.ts";
import { readActions, writeActions } from "../../src/http/apps/gpodder/actions.ts";
import { readDevice } from "../../src/http/apps/gpodder/devices.ts";
import { readFeedChanges, readFeedList } from "../../src/http/apps/gpodder/feeds.ts";
import { readSince } from "../../src/http/apps/gpodder/values.ts";
import { writeNextcloudActions } from "../../src/http/apps/nextcloud/actions.ts";
import { fc } from "../../test/support/properties.ts";
import { fuzz } from "./fuzz.ts";
import { type Corpus, documents, inputs } from "./inputs.ts";

const NOW = new Date("2026-05-04T03:02:01Z");
const FEED = "https://feeds.example/show";
const MEDIA = "https://media.example/1.mp3";
const good = { podcast: FEED, episode: MEDIA, action: "play", position: 5, started: 0, total: 10 };
const values: readonly unknown[] = [
  ...[null, true, 0, -1, 1.9, 2 ** 31, 2 ** 53, 1e300, "", "0", "-1", "12.9", "1e3", "NaN", " 7 ", [], {}, [FEED]],
  ...["play", "PLAY", "Download", "delete", "new", "flattr", "listen", "constructor", "__proto__", good, [good, null]],
  ...[
    FEED,
    `${FEED}\u0000`,
    ` ${FEED} `,
    "\ud800",
    `${FEED}/%`,
    `${FEED}/%ff`,
    "ftp://a/",
    "antennapod_local:x",
    MEDIA,
  ],
  ...["phone", "my phone", "a".repeat(65), "g".repeat(MAX_GUID + 1), `${MEDIA}${"a".repeat(MAX_MEDIA_URL)}`],
  ...["2026-01-01T10:00:00", "2026-01-01T10:00:00Z", "2026-01-01 10:00:00,5+0200", "9999-12-31T23:59:59-23:59"],
  ...["0000-01-01T00:00:00", "2026-02-30T10:00:00", "yesterday", "1700000000", "1969-12-31T23:59:59"],
];
const members = ["podcast", "episode", "guid", "device", "action", "timestamp", "started", "position", "total"].concat([
  ...["add", "remove", "url", "caption", "type", "toString", "__proto__"],
]);
const CORPUS: Corpus = {
  isBytes: false,
  maxLength: 20_000,
  seeds: [[], [good], [good, { ...good, action: "NEW" }], { add: [FEED], remove: [] }, [FEED, { url: FEED }], good].map(
    (document) => JSON.stringify(document),
  ),
  words: [...values.map((value) => JSON.stringify(value)), ...members.map((member) => `"${member}":`)],
};
const anyDocument = fc.oneof(
  inputs(CORPUS),
  documents(values, members),
  fc.array(documents(values, members), { maxLength: 5 }).map((items) => `[${items.join()}]`),
);

const fuzzDocuments = (check: (document: unknown) => unknown) =>
  fuzz(CORPUS, anyDocument, (input) => {
    let document: unknown;
    try {
      document = JSON.parse(input);
    } catch {
      return undefined;
    }
    return check(document);
  });

/** The result, or the status of a refusal. Anything else that is thrown is a defect. */
function attempt<Value>(read: () => Value): Value | number {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error;
    return error.error.status;
  }
}

test("fuzz: any uploaded actions → each is read independently of the others", () =>
  fuzzDocuments((document) => {
    const read = attempt(() => readActions(document));
    if (!Array.isArray(document)) assert.equal(read, 400);
    else
      assert.deepEqual(
        read,
        document.flatMap((item) => readActions([item])),
      );
  }));

test("fuzz: any uploaded actions → what is kept is safe for every app", () =>
  fuzzDocuments(async (document) => {
    const uploads = attempt(() => readActions(document));
    if (typeof uploads === "number") return;
    const kept = uploads.flatMap((upload) => readAction(upload, NOW) ?? []);
    for (const action of kept) checkStorable(action);
    const { actions } = await parsed(writeActions([kept], 5));
    assert.equal(actions.length, kept.length);
    for (const action of actions) checkForGpodder(action);
    for (const action of (await parsed(writeNextcloudActions([kept], 5))).actions) checkForGnome(action);
  }));

test("fuzz: any uploaded feeds or device → strings in, or 400", () =>
  fuzzDocuments((document) => {
    const isText = (url: unknown) => typeof url === "string" && url !== "";
    const changes = attempt(() => readFeedChanges(document));
    if (typeof changes === "number") assert.equal(changes, 400);
    else assert.ok([...changes.add, ...changes.remove].every(isText));
    const list = attempt(() => readFeedList(document));
    if (typeof list === "number") assert.equal(list, 400);
    else assert.ok(list.every(isText));
    const device = attempt(() => readDevice(document));
    if (typeof device === "number") assert.equal(device, 400);
    else assert.ok((device.caption ?? "x").isWellFormed() && device.caption !== "");
  }));

const QUERIES: Corpus = {
  isBytes: false,
  maxLength: 2_000,
  seeds: ["", "since=0", "since=1700000000", "since=1.5", "since=-1", "since=&since=5", "aggregated=true&since=%30"],
  words: ["since", "=", "&", "%", "%00", "+", "-", ".", "1e9", "9".repeat(400), "NaN", "Infinity", "%F0", "\ud800"],
};

test("fuzz: any query → a whole number of seconds, or 400", () =>
  fuzz(QUERIES, inputs(QUERIES), (query) => {
    const since = attempt(() => readSince(query));
    assert.ok(Number.isSafeInteger(since) && since >= 0, String(since));
  }));

async function parsed(pieces: AsyncIterable<string>): Promise<{ readonly actions: readonly Written[] }> {
  return JSON.parse(await text(pieces));
}

/** What both databases can store, within the documented limits. */
function checkStorable({ podcast, episode, guid = "", device = "x", actedAt }: KeyedAction): void {
  for (const text of [podcast, episode, guid]) assert.ok(text.isWellFormed() && !text.includes("\0"), text);
  assert.ok(podcast.length <= 2 * 2_048 && episode.length <= MAX_MEDIA_URL && guid.length <= MAX_GUID);
  assert.match(device, /^[\w.-]{1,64}$/);
  const seconds = actedAt.getTime() / 1_000;
  assert.ok(Number.isInteger(seconds) && seconds >= 0 && seconds <= NOW.getTime() / 1_000 + 300, String(actedAt));
}

type Written = Readonly<Record<string, unknown>>;

/** mygpoclient raises for the whole poll if one action is otherwise. */
function checkForGpodder(action: Written): void {
  assert.ok(["download", "play", "delete", "new", "flattr"].includes(String(action["action"])));
  assert.match(String(action["timestamp"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
  const numbers = ["started", "position", "total"].filter((member) => member in action);
  for (const member of numbers) assert.ok(isSeconds(action[member], 0), member);
  if (action["action"] === "play") assert.ok(["position", "started,position,total"].includes(numbers.join()));
  else assert.deepEqual(numbers, []);
}

/** GNOME Podcasts needs all three numbers. */
function checkForGnome(action: Written): void {
  assert.match(String(action["action"]), /^(DOWNLOAD|PLAY|DELETE|NEW|FLATTR)$/);
  for (const member of ["started", "position", "total"]) assert.ok(isSeconds(action[member], -1), member);
}

function isSeconds(value: unknown, least: number): boolean {
  return Number.isInteger(value) && Number(value) >= least && Number(value) < 2 ** 31;
}
