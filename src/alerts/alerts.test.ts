import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LANGUAGES } from "../util/languages.ts";
import { backupAlerts, deviceAlerts, signInAlerts } from "./account.ts";
import { type Alert, type AlertFacts, latest } from "./alert.ts";
import { alertId } from "./atom.ts";
import { type FailingFeed, feedAlerts, isOutage, needsAttention } from "./feeds.ts";
import { toSafeText } from "./safe-text.ts";
import { writeAlert } from "./write-alert.ts";

const NOW = new Date("2026-03-20T12:00:00.000Z");
const HOUR_MS = 60 * 60_000;
const ago = (days: number, hours = 0) => new Date(NOW.getTime() - (24 * days + hours) * HOUR_MS);
const codes = (alerts: readonly Alert[]) => alerts.map(({ facts }) => facts.code);

describe("alerts: feeds", () => {
  const failure = (kind: FailingFeed["failure"]["kind"], since: Date, checkedAt = ago(0, 1)) => ({
    kind,
    since,
    checkedAt,
  });
  const feed = (host: string, more: Partial<FailingFeed> = {}): FailingFeed => ({
    subscription: `of ${host}`,
    feedUrl: `https://${host}/rss`,
    failure: failure("gone", ago(8)),
    title: `Show of ${host}`,
    ...more,
  });

  test("feeds: 410, 404 and unknown hosts after 7 days, 401 and 403 after 3 → need attention; others never", () => {
    for (const [kind, since, expected] of [
      ["gone", ago(7), true],
      ["gone", ago(6, 23), false],
      ["missing", ago(7), true],
      ["missing", ago(6, 23), false],
      ["forbidden", ago(3), true],
      ["forbidden", ago(2, 23), false],
      ["other", ago(300), false],
    ] as const)
      assert.equal(needsAttention(failure(kind, since), NOW), expected, `${kind} since ${since.toISOString()}`);
  });

  test("feeds: the server was off since the first failure → no alert yet", () => {
    assert.equal(needsAttention(failure("gone", ago(9), ago(9)), NOW), false);
    assert.equal(needsAttention(failure("gone", ago(9), ago(8, 1)), NOW), false);
    assert.equal(needsAttention(failure("gone", ago(9), ago(8)), NOW), true);
  });

  test("feeds: more than half fail → an outage", () => {
    assert.deepEqual(
      [isOutage(0, 0), isOutage(1, 2), isOutage(2, 3), isOutage(1, 1), isOutage(50, 100), isOutage(51, 100)],
      [false, false, true, true, false, true],
    );
  });

  test("feeds: several of one host → one alert, dated from the oldest; another way of failing → another", () => {
    const alerts = feedAlerts([
      feed("a.example"),
      feed("a.example", { failure: failure("missing", ago(20)), subscription: "oldest" }),
      feed("www.a.example", { title: undefined }),
      feed("a.example", { failure: failure("forbidden", ago(4)) }),
      feed("b.example"),
    ]);
    assert.deepEqual(codes(alerts), ["feed-gone", "feed-forbidden", "feed-gone"]);
    const [first] = alerts;
    assert.deepEqual(first?.facts, {
      code: "feed-gone",
      since: ago(20),
      podcasts: { titles: ["Show of a.example", "Show of a.example"], count: 3 },
    });
    assert.deepEqual(first?.at, ago(13));
    assert.deepEqual(first?.subscriptions, ["of a.example", "oldest", "of www.a.example"]);
  });

  test("feeds: hundreds of one host → 50 subscriptions and three titles", () => {
    const [alert] = feedAlerts(Array.from({ length: 300 }, () => feed("a.example")));
    assert.equal(alert?.subscriptions.length, 50);
    assert.ok(alert);
    const { title } = writeAlert(alert, "en");
    assert.equal(title, "No longer found: Show of a.example, Show of a.example, Show of a.example, and 297 more");
  });
});

describe("alerts: devices, sign-ins, backups", () => {
  const device = (weeks: number, syncedAt: Date) => ({ id: "phone", caption: "Ann's phone", weeks, syncedAt });

  test("devices: synced in three weeks and silent for 14 days → an alert until it syncs again", () => {
    assert.deepEqual(codes(deviceAlerts([device(3, ago(14))], NOW)), ["device-silent"]);
    assert.deepEqual(deviceAlerts([device(3, ago(13, 23)), device(2, ago(100)), device(0, ago(100))], NOW), []);
    const [alert] = deviceAlerts([device(3, ago(30))], NOW);
    assert.deepEqual(
      [alert?.at, alert?.facts],
      [ago(16), { code: "device-silent", device: "Ann's phone", since: ago(30) }],
    );
    const [again] = deviceAlerts([device(3, ago(15))], NOW);
    assert.ok(alert && again);
    assert.notEqual(alertId(1, alert), alertId(1, again), "another silence is another alert");
  });

  test("sign-ins: within 30 days → alerts", () => {
    const signIn = (at: Date) => ({ id: "x", kind: "token", label: "phone", at }) as const;
    assert.equal(signInAlerts([signIn(ago(29, 23)), signIn(ago(0))], NOW).length, 2);
    assert.deepEqual(signInAlerts([signIn(ago(30))], NOW), []);
  });

  test("backups: none ever → no alert; over 8 days old → an alert", () => {
    assert.deepEqual(backupAlerts(undefined, NOW), []);
    assert.deepEqual(backupAlerts(ago(8), NOW), []);
    assert.deepEqual(codes(backupAlerts(ago(8, 1), NOW)), ["backup-old"]);
    assert.deepEqual(backupAlerts(ago(9), NOW)[0]?.at, ago(1));
  });

  test("alerts: more than 50 → the newest 50, newest first", () => {
    const many = Array.from(
      { length: 60 },
      (_, hour) => ({ id: `${hour}`, kind: "token", label: "x", at: ago(0, hour) }) as const,
    );
    const shown = latest(signInAlerts(many.toReversed(), NOW));
    assert.deepEqual(
      shown.map(({ key }) => Number(key)),
      Array.from({ length: 50 }, (_, hour) => hour),
    );
  });

  test("alerts: ids → UUIDs, the same for the same alert, others for other users and keys", () => {
    const [alert, other] = signInAlerts(
      ["a", "b"].map((id) => ({ id, kind: "token", label: "x", at: ago(1) }) as const),
      NOW,
    );
    assert.ok(alert && other);
    const ids = [alertId(1, alert), alertId(1, other), alertId(2, alert)];
    assert.equal(new Set(ids).size, 3);
    for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(alertId(1, { ...alert }), ids[0]);
  });
});

describe("alerts: texts", () => {
  const podcasts = (titles: string[], count = titles.length) => ({ titles, count });
  const ALL: readonly AlertFacts[] = [
    { code: "feed-gone", since: NOW, podcasts: podcasts(["A"]) },
    { code: "feed-gone", since: NOW, podcasts: podcasts(["A", "B"]) },
    { code: "feed-gone", since: NOW, podcasts: podcasts([], 1) },
    { code: "feed-forbidden", since: NOW, podcasts: podcasts(["A", "B", "C"], 9) },
    { code: "feed-forbidden", since: NOW, podcasts: podcasts([], 4) },
    { code: "device-silent", device: "Phone", since: NOW },
    {
      code: "new-sign-in",
      kind: "session",
      label: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
      on: NOW,
    },
    { code: "new-sign-in", kind: "session", label: "", on: NOW },
    { code: "new-sign-in", kind: "token", label: "AntennaPod", on: NOW },
    { code: "backup-old", last: NOW },
    { code: "feed-moved", podcasts: podcasts(["A"]), on: NOW },
    { code: "feed-moved", podcasts: podcasts([], 2), on: NOW },
    { code: "large-change", by: "Kasts on desk", change: "removed", count: 37, on: NOW, isAgain: false },
    { code: "large-change", by: "Kasts on desk", change: "removed", count: 37, on: NOW, isAgain: true },
    { code: "large-change", by: undefined, change: "added", count: 12, on: NOW, isAgain: false },
  ];

  test("texts: every alert in every language → complete, and different from the others", () => {
    for (const facts of ALL) {
      const texts = LANGUAGES.map((language) => writeAlert({ facts }, language));
      for (const { title, text } of texts) {
        assert.doesNotMatch(`${title}${text}`, /undefined|NaN|\[object/);
        assert.ok(title.length > 3 && text.length > 15);
      }
      assert.equal(new Set(texts.map(({ text }) => text)).size, LANGUAGES.length, facts.code);
    }
    const titles = ALL.map((facts) => writeAlert({ facts }, "en").title);
    assert.deepEqual(titles, [
      "No longer found: A",
      "No longer found: A and B",
      "No longer found: a podcast without a title",
      "Access denied: A, B, C, and 6 more",
      "Access denied: 4 podcasts without a title",
      "Phone no longer syncs",
      "New sign-in: Firefox on Linux",
      "New sign-in: unknown browser",
      "New token: AntennaPod",
      "The last backup is old",
      "Moved: A",
      "Moved: 2 podcasts without a title",
      "Kasts on desk removed 37 podcasts",
      "Kasts on desk removed 37 podcasts",
      "An app added 12 podcasts",
    ]);
    assert.match(writeAlert({ facts: ALL[0] ?? assert.fail() }, "de").text, /seit dem 20\. März 2026/);
  });

  test("texts: URLs, addresses and secrets in titles and names → left out", () => {
    for (const [unsafe, safe] of [
      ["Show (https://user:pass@feeds.example/rss?key=1)", "Show …"],
      ["Show for ann@example.com", "Show for …"],
      ["feeds.example/private/abc Show", "… Show"],
      ["emk_0123456789012345678901234567890123456789abc phone", "… phone"],
      ["phone 192.168.1.20", "phone …"],
      ["phone 2001:db8:0:1::5", "phone …"],
      ["a\u0000b\u2028c\u202ed\nx\ufffe", "a b cd x"],
      ["Ann's phone 2.0 – 5:30 & more?", "Ann's phone 2.0 – 5:30 & more?"],
      ["\ud800x", "\ufffdx"],
      ["🎧".repeat(300), `${"🎧".repeat(200)}…`],
    ] as const)
      assert.equal(toSafeText(unsafe), safe);
  });

  test("texts: long titles without spaces → made safe in linear time", () => {
    const started = performance.now();
    for (const part of ["a", ":", "a.", "a.a/", "@", "1.", "f:", "emk_"]) toSafeText(part.repeat(100_000));
    assert.ok(performance.now() - started < 300);
  });
});
