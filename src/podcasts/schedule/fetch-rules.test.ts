import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newRecord, type PodcastRecord } from "../podcast-store.ts";
import type { FeedMetadata, FeedOutcome, FetchFailure } from "../read/feed.ts";
import { applyOutcome, chooseSpelling, confirmsMove, needsArtwork, urlToVerify } from "./fetch-rules.ts";

const HOUR = 60 * 60 * 1_000;
const DAY = 24 * HOUR;
const T0 = Date.parse("2026-01-02T03:04:05.678Z");
const FEED = "https://feeds.example/a";
const NEW = "https://new.example/a";
const timing = { intervalMs: 7 * DAY, random: () => 0.5 };

const read = (metadata: FeedMetadata = {}, more: object = {}): FeedOutcome => ({
  kind: "read",
  metadata,
  needsUserAgentSuffix: false,
  etag: '"e"',
  ...more,
});
const unchanged = (more: object = {}): FeedOutcome => ({ kind: "unchanged", ...more });
const http = (status: number, more: object = {}): FetchFailure => ({
  kind: "failed",
  reason: "http-status",
  status,
  ...more,
});
const failed = (reason: FetchFailure["reason"]): FetchFailure => ({ kind: "failed", reason });

type Step = readonly [at: number, outcome: FeedOutcome];

/** What the scheduler does: chooses the spelling to fetch, and applies the outcome. */
function applyTo(record: PodcastRecord, feedUrls: readonly string[], [at, outcome]: Step, isConfirmed = true) {
  const feed = choose(feedUrls, record) ?? assert.fail();
  return applyOutcome(record, feed, outcome, T0 + at, timing, isConfirmed);
}
const choose = (feedUrls: readonly string[], record: PodcastRecord) =>
  chooseSpelling(
    feedUrls.map((feedUrl) => ({ feedUrl })),
    record,
  );

/** The record after outcomes at these times, of a feed with these spellings. */
const afterAt = (feedUrls: readonly string[], ...steps: readonly Step[]) =>
  steps.reduce((record, step) => applyTo(record, feedUrls, step), newRecord(T0));
const after = (...steps: readonly Step[]) => afterAt([FEED], ...steps);
const OK = [0, read({ title: "T", author: "A" })] as const;
const statusOf = ({ status, statusSince }: PodcastRecord) => [status, statusSince - T0];

describe("next fetch", () => {
  const waitOf = (record: PodcastRecord, at = 0) => record.nextAt - T0 - at;

  test("next: success → after the interval ± 10 %", () => {
    assert.equal(waitOf(after(OK)), 7 * DAY);
    const at = (random: number) =>
      applyOutcome(newRecord(T0), { feedUrl: FEED, spellings: 1, failures: 0 }, read(), T0, {
        ...timing,
        random: () => random,
      }).nextAt - T0;
    assert.deepEqual([at(0), at(1)], [6.3 * DAY, 7.7 * DAY].map(Math.round));
  });

  test("next: an episode within 30 days → after a seventh of the interval, also if unchanged; none → the interval", () => {
    const found = (ageMs: number, more = {}) => [0, read({}, { latestEpisodeAt: T0 - ageMs, ...more })] as const;
    assert.equal(waitOf(after(found(30 * DAY - 1))), DAY);
    assert.equal(waitOf(after(found(30 * DAY))), 7 * DAY);
    assert.equal(waitOf(after(found(29 * DAY), [DAY - 1, unchanged()]), DAY - 1), DAY);
    assert.equal(waitOf(after(found(29 * DAY), [DAY, unchanged()]), DAY), 7 * DAY);
    assert.equal(waitOf(after(found(0, { maxAgeSeconds: (3 * DAY) / 1_000 }))), 3 * DAY);
  });

  test("next: the publisher's max-age → only lengthens the wait, up to 30 days", () => {
    assert.equal(waitOf(after([0, read({}, { maxAgeSeconds: 60 })])), 7 * DAY);
    assert.equal(waitOf(after([0, read({}, { maxAgeSeconds: (10 * DAY) / 1_000 })])), 10 * DAY);
    assert.equal(waitOf(after([0, read({}, { maxAgeSeconds: 1e12 })])), 30 * DAY);
  });

  test("next: failures → 1 h, doubling up to 7 days; a success starts over", () => {
    const steps: [number, FeedOutcome][] = [[...OK]];
    const waits: number[] = [];
    for (let n = 1; n <= 10; n += 1) {
      steps.push([n, failed("timeout")]);
      waits.push(waitOf(after(...steps), n) / HOUR);
    }
    assert.deepEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 168, 168]);
    assert.deepEqual([after(...steps, [20, read()]).failures, waitOf(after(...steps, [20, read()]), 20)], [0, 7 * DAY]);
  });

  test("next: Retry-After → at least that long, up to 30 days, even if a user asks for a fetch; negative → ignored", () => {
    const limited = (retryAfterSeconds: number) => after([0, http(429, { retryAfterSeconds })]);
    assert.deepEqual([waitOf(limited(7_200)), limited(7_200).notBefore], [2 * HOUR, T0 + 2 * HOUR]);
    assert.deepEqual([waitOf(limited(60)), limited(60).notBefore], [HOUR, T0 + 60_000]);
    assert.deepEqual([waitOf(limited(-5)), limited(-5).notBefore], [HOUR, 0]);
    assert.equal(waitOf(limited(10 * 365 * 86_400)), 30 * DAY);
    assert.equal(after([0, http(429, { retryAfterSeconds: 7_200 })], [1, read()]).notBefore, 0);
  });

  test("next: forbidden → doubling up to 30 days; gone → 30 days", () => {
    const steps: [number, FeedOutcome][] = Array.from({ length: 12 }, (_, n) => [n, http(403)]);
    assert.equal(waitOf(after(...steps), 11), 30 * DAY);
    assert.equal(waitOf(after([0, http(410)], [DAY, http(410)]), DAY), 30 * DAY);
  });
});

describe("status", () => {
  test("status: read → ok; a failure before the first success → failing or forbidden at once", () => {
    assert.deepEqual(statusOf(after(OK)), ["ok", 0]);
    assert.deepEqual(statusOf(after([5, failed("not-a-feed")])), ["failing", 5]);
    assert.deepEqual(statusOf(after([5, http(404)])), ["failing", 5]);
    assert.deepEqual(statusOf(after([5, http(401)])), ["forbidden", 5]);
    assert.deepEqual(statusOf(after(OK, [5, http(403)])), ["forbidden", 5]);
  });

  test("status: a feed that worked → failing after three failures, dated from the first failure; then ok again", () => {
    const twice = [OK, [5, failed("timeout")], [6, http(500)]] as const;
    assert.deepEqual(statusOf(after(...twice)), ["ok", 0]);
    assert.deepEqual(statusOf(after(...twice, [7, failed("tls")])), ["failing", 5]);
    assert.deepEqual(statusOf(after(...twice, [7, failed("tls")], [8, unchanged()])), ["ok", 8]);
  });

  test("status: 410 twice within a day → not gone; a day apart → gone, dated from the first 410", () => {
    assert.deepEqual(statusOf(after(OK, [5, http(410)], [5 + DAY - 1, http(410)])), ["ok", 0]);
    assert.deepEqual(statusOf(after(OK, [5, http(410)], [5 + DAY, http(410)])), ["gone", 5]);
    const between = [OK, [5, http(410)], [6, http(500)], [5 + DAY, http(410)]] as const;
    assert.deepEqual(statusOf(after(...between)), ["failing", 5 + DAY]);
  });

  test("status: 404 or an unknown host for 29 days, then back → ok; for 30 days → gone, but its title is kept", () => {
    const missing = (days: number) =>
      Array.from({ length: days + 1 }, (_, day) => [5 + day * DAY, day % 2 ? http(404) : failed("dns")] as const);
    assert.deepEqual(statusOf(after(OK, ...missing(29))), ["failing", 5]);
    assert.deepEqual(statusOf(after(OK, ...missing(29), [29.5 * DAY, read()])), ["ok", 29.5 * DAY]);
    const gone = after(OK, ...missing(30));
    assert.deepEqual([...statusOf(gone), gone.title], ["gone", 5, "T"]);
    // A timeout does not change that; a successful fetch does.
    assert.equal(after(OK, ...missing(30), [31 * DAY, failed("timeout")]).status, "gone");
    assert.equal(after(OK, ...missing(30), [31 * DAY, read()]).status, "ok");
  });
});

describe("metadata", () => {
  test("metadata: a feed that asks not to be listed → blocked until it is read without that", () => {
    const blocked = [0, read({ title: "T", block: "yes" })] as const;
    assert.equal(after(OK).isBlocked, 0);
    assert.equal(after(blocked).isBlocked, 1);
    assert.equal(after(blocked, [1, unchanged()], [2, http(500)]).isBlocked, 1);
    assert.equal(after(blocked, [1, read({ title: "T" })]).isBlocked, 0);
  });

  test("latest episode: found → replaced; not found, unchanged or failed → kept", () => {
    const found = (latestEpisodeAt: number) => read({ title: "T" }, { latestEpisodeAt });
    assert.equal(after(OK).latestEpisodeAt, 0);
    assert.equal(after([0, found(5)], [1, found(4)]).latestEpisodeAt, 4);
    assert.equal(after([0, found(5)], OK, [1, unchanged()], [2, http(500)]).latestEpisodeAt, 5);
  });

  test("failure: another reason of the same kind → since the first; of another kind → since now; success → none", () => {
    const failureOf = ({ failure, failureSince }: PodcastRecord) => [failure, failureSince - T0];
    assert.deepEqual(failureOf(after([0, failed("timeout")], [1, http(503)])), ["server-error", 0]);
    assert.deepEqual(failureOf(after([0, failed("dns")], [1, http(404)])), ["not-found", 0]);
    assert.deepEqual(failureOf(after([0, failed("timeout")], [1, http(404)])), ["not-found", 1]);
    assert.equal(after([0, failed("timeout")], [1, read()]).failure, null);
  });

  test("metadata: empty or missing values → known ones stay; new ones replace them", () => {
    const { title, author, description } = after(OK, [1, read({ title: "", description: "D" })]);
    assert.deepEqual([title, author, description], ["T", "A", "D"]);
    assert.equal(after(OK, [1, read({ title: "U" })]).title, "U");
  });

  test("metadata: the page of a captive portal → a failure; metadata and status stay", () => {
    const [before, now] = [after(OK), after(OK, [1, failed("not-a-feed")])];
    const { checkedAt, nextAt, failures, failure, failureSince, ...rest } = now;
    assert.deepEqual({ ...before, ...rest }, before);
    assert.deepEqual([checkedAt, failures, failure, failureSince], [T0 + 1, 1, "not-a-feed", T0 + 1]);
    assert.ok(nextAt < before.nextAt);
  });

  test("metadata: 304 without validators to compare with → a failure; otherwise a success", () => {
    assert.equal(after([0, unchanged()]).status, "failing");
    assert.deepEqual(statusOf(after(OK, [1, unchanged()])), ["ok", 0]);
    assert.equal(after(OK, [1, unchanged()]).title, "T");
    assert.equal(after([0, read({ title: "T" }, { etag: undefined })], [1, unchanged()]).failures, 1);
  });
});

describe("moves", () => {
  const redirect = (target = NEW, metadata: FeedMetadata = {}) => read(metadata, { permanentTarget: target });
  const claim = (newFeedUrl: string | undefined = NEW) => read(newFeedUrl === undefined ? {} : { newFeedUrl });

  test("move: seen three times over 72 hours → moved; sooner or less often → not", () => {
    const seen = (...times: number[]) => after(OK, ...times.map((at) => [at, redirect()] as const));
    assert.deepEqual(statusOf(seen(1, 40 * HOUR)), ["ok", 0]);
    assert.deepEqual(statusOf(seen(1, 2, 3)), ["ok", 0]);
    const moved = seen(1, 40 * HOUR, 1 + 72 * HOUR);
    assert.deepEqual([...statusOf(moved), moved.movedTo], ["moved", 1 + 72 * HOUR, NEW]);
    assert.equal(moved.etag, null);
  });

  test("move: while it is not certain → checked every 40 hours", () => {
    assert.equal(after(OK, [1, redirect()]).nextAt - T0, 1 + 40 * HOUR);
  });

  test("move: another target, or none, in between → the count starts over", () => {
    const steps = [OK, [1, redirect()], [DAY, redirect("https://other.example/")], [4 * DAY, redirect()]] as const;
    assert.deepEqual(statusOf(after(...steps)), ["ok", 0]);
    assert.deepEqual(statusOf(after(OK, [1, redirect()], [DAY, read()], [4 * DAY, redirect()])), ["ok", 0]);
  });

  test("move: http to https, another spelling, or an invalid feed URL → not a move", () => {
    for (const target of ["http://feeds.example/a", `${FEED}/`, `${FEED}#x`, "ftp://x.example/", "x"]) {
      assert.equal(after(OK, [1, redirect(target)]).moveTarget, null, target);
      assert.equal(after(OK, [1, claim(target)]).moveTarget, null, target);
    }
    // Then the feed's own claim counts.
    assert.equal(after(OK, [1, redirect("http://feeds.example/a", { newFeedUrl: NEW })]).moveTarget, NEW);
  });

  test("move: claimed only by the feed → accepted only if confirmed; 304 repeats the claim", () => {
    const twice = after(OK, [1, claim()], [DAY, unchanged()]);
    assert.equal(urlToVerify(twice, FEED, unchanged(), T0 + 2 * DAY), undefined);
    assert.equal(urlToVerify(twice, FEED, unchanged(), T0 + 4 * DAY), NEW);
    assert.equal(urlToVerify(twice, FEED, redirect(), T0 + 4 * DAY), undefined);
    assert.equal(urlToVerify(twice, FEED, claim("https://other.example/"), T0 + 4 * DAY), undefined);
    assert.equal(urlToVerify(twice, FEED, failed("dns"), T0 + 4 * DAY), undefined);
    const apply = (isConfirmed: boolean) => applyTo(twice, [FEED], [4 * DAY, claim()], isConfirmed);
    assert.equal(apply(true).movedTo, NEW);
    assert.deepEqual([apply(false).movedTo, apply(false).nextAt], [null, T0 + 11 * DAY]);
  });

  test("confirmation: the target is a feed → yes; a failure, or a feed that claims to have moved elsewhere → no", () => {
    assert.equal(confirmsMove(NEW, read()), true);
    assert.equal(confirmsMove(NEW, claim(`${NEW}/`)), true);
    assert.equal(confirmsMove(NEW, claim(FEED)), false);
    assert.equal(confirmsMove(NEW, failed("not-a-feed")), false);
    assert.equal(confirmsMove(NEW, unchanged()), false);
  });

  const MOVED = [OK, [1, redirect()], [DAY, redirect()], [4 * DAY, redirect()]] as const;

  test("moved: the new URL redirects back → ok at the old one; the feed there only claims to have moved back → stays moved", () => {
    const back = after(...MOVED, [5 * DAY, redirect(FEED)]);
    assert.deepEqual([...statusOf(back), back.movedTo], ["ok", 5 * DAY, null]);
    assert.equal(after(...MOVED, [5 * DAY, claim(FEED)]).status, "moved");
  });

  test("moved: the new URL fails three times → the old one is tried again", () => {
    const steps = [...MOVED, [5 * DAY, http(500)], [6 * DAY, http(500)]] as const;
    assert.deepEqual([after(...steps).status, after(...steps).movedTo], ["moved", NEW]);
    const lost = after(...steps, [7 * DAY, http(500)]);
    assert.deepEqual([lost.status, lost.movedTo, lost.etag], ["failing", null, null]);
  });
});

describe("spellings", () => {
  const [HTTPS, HTTP] = ["https://a.example/feed", "http://a.example/feed"];
  const TWO = [HTTPS, HTTP];
  const SIX = ["", "/", "//"].flatMap((slashes) => [HTTP + slashes, HTTPS + slashes]);
  const failing = (count: number, outcome: FeedOutcome = failed("tls")) =>
    Array.from({ length: count }, (_, at) => [at, outcome] as const);

  test("spelling: each failure selects the next one → fewest trailing slashes first, then https", () => {
    const tried = Array.from({ length: 4 }, (_, count) => choose(SIX, afterAt(SIX, ...failing(count)))?.feedUrl);
    assert.deepEqual(tried, [HTTPS, HTTP, `${HTTPS}/`, `${HTTP}/`]);
    const later = [4, 5, 6].map((count) => choose(SIX, afterAt(SIX, ...failing(count)))?.feedUrl);
    assert.deepEqual(later, [`${HTTPS}//`, `${HTTP}//`, HTTPS]);
  });

  test("spelling: the same request, such as with another fragment → one spelling; none → undefined", () => {
    const urls = [`${HTTPS}#1`, "https://A.example:443/feed", "HTTPS://a.example/x/../feed", `${HTTP}#2`];
    assert.equal(choose(urls, newRecord(T0))?.spellings, 2);
    assert.equal(choose(urls, afterAt(urls, ...failing(1)))?.feedUrl, `${HTTP}#2`);
    assert.equal(choose([], newRecord(T0)), undefined);
  });

  test("spelling: others are untried → tried at once, at most four in a row; then waits as with one spelling", () => {
    const waitsOf = (urls: readonly string[], count: number) =>
      Array.from({ length: count }, (_, index) => (afterAt(urls, ...failing(index + 1)).nextAt - T0 - index) / HOUR);
    assert.deepEqual(waitsOf(TWO, 6), [0, 1, 0, 2, 0, 4]);
    assert.deepEqual(waitsOf(SIX, 9), [0, 0, 0, 1, 0, 0, 0, 2, 0]);
    const limited = afterAt(TWO, [0, http(429, { retryAfterSeconds: 60 })]);
    assert.deepEqual([limited.nextAt - T0, limited.notBefore - T0], [60_000, 60_000]);
  });

  test("spelling: added while the others fail → the next round tries all", () => {
    for (const count of [1, 2, 3, 4, 5, 6])
      for (const old of TWO) {
        const record = afterAt([old], ...failing(count));
        const first = choose(TWO, record)?.feedUrl ?? "";
        const second = choose(TWO, applyTo(record, TWO, [DAY, failed("tls")]))?.feedUrl ?? "";
        assert.deepEqual([first, second], TWO, `${count} failures`);
        assert.equal(applyTo(record, TWO, [DAY, failed("tls")]).nextAt, T0 + DAY, `${count} failures`);
      }
  });

  test("spelling: one works → it is kept, and its validators; after a failure, no validators", () => {
    const steps = [
      [0, failed("tls")],
      [1, read()],
      [2, unchanged()],
    ] as const;
    const second = afterAt(TWO, ...steps);
    assert.deepEqual([second.status, second.failure, second.etag], ["ok", null, '"e"']);
    assert.equal(choose(TWO, second)?.feedUrl, HTTP);
    const broken = afterAt(TWO, ...steps, [3, http(500)]);
    assert.deepEqual([choose(TWO, broken)?.feedUrl, broken.etag], [HTTPS, null]);
    assert.equal(after(OK, [1, http(500)]).etag, '"e"');
  });

  test("spelling: some are untried → no other status; all failed → failing, forbidden or gone", () => {
    for (const [outcome, status] of [
      [failed("tls"), "failing"],
      [http(403), "forbidden"],
    ] as const) {
      assert.deepEqual(statusOf(afterAt(TWO, ...failing(1, outcome))), ["pending", 0]);
      assert.equal(afterAt(TWO, ...failing(2, outcome)).status, status);
      assert.equal(afterAt(SIX, ...failing(5, outcome)).status, "pending");
      assert.equal(afterAt(SIX, ...failing(6, outcome)).status, status);
    }
    assert.equal(afterAt(TWO, OK, ...failing(2, http(403))).status, "ok");
    assert.equal(afterAt(TWO, OK, ...failing(3, http(403))).status, "forbidden");
    assert.equal(afterAt(TWO, OK, ...failing(5, http(404))).status, "ok");
    assert.equal(afterAt(TWO, OK, ...failing(6, http(404))).status, "failing");
    assert.equal(afterAt(TWO, OK, ...failing(6, http(404)), [30 * DAY, http(404)]).status, "gone");
  });
});

test("artwork: new URL, none yet, or old → fetched; else not", () => {
  const record = { ...newRecord(T0), artworkUrl: "https://i.example/1", artwork: "h", artworkAt: T0 };
  const needs = (at: number, changes: Partial<PodcastRecord> = {}) =>
    needsArtwork(record, { ...record, ...changes }, T0 + at);
  assert.deepEqual([needs(29 * DAY), needs(30 * DAY)], [false, true]);
  assert.deepEqual([needs(6 * DAY, { artwork: null }), needs(7 * DAY, { artwork: null })], [false, true]);
  assert.equal(needs(1, { artworkUrl: "https://i.example/2" }), true);
  assert.equal(needs(1, { artworkAt: 0 }), true);
  assert.equal(needs(60 * DAY, { artworkUrl: null }), false);
  assert.equal(needs(60 * DAY, { failure: "tls" }), false);
});
