import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { createPodcast } from "../../../test/support/fetching.ts";
import { NOBODY } from "../../accounts/account-store.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import { readFeedUrl } from "../../lists/feed-url.ts";
import { NO_PODCASTS, newRecord, type PodcastRecord, type SubscribedFeed } from "../../podcasts/podcast-store.ts";
import type { Store } from "../shared/contract.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const later = (ms: number) => new Date(NOW.getTime() + ms);
const HASH = "0123456789abcdef0123456789abcdef";
const ARTWORK = { hash: HASH, small: Buffer.from("small"), large: Buffer.from("large") };

/** Podcasts, for every engine. `open` opens a new store. */
export function describePodcasts(engine: string, open: () => Promise<Store>): void {
  describe(`podcasts on ${engine}`, async () => {
    const store = await open();
    after(() => store.close());
    const { podcasts } = store;
    let [users, feeds] = [5_000_000, 0];
    const newUser = (): UserId => ++users;
    const newUrl = () => `https://feeds.example/suite/${++feeds}`;
    const uuid = () => `00000000-0000-4000-8000-${(++feeds).toString(16).padStart(12, "0")}`;

    const subscribe = async (user: UserId, ...urls: string[]) => {
      const additions = urls.map((feedUrl) => {
        const parsed = readFeedUrl(feedUrl);
        if (parsed.kind === "invalid") throw new Error(parsed.errorCode);
        return { kind: "add", id: uuid(), feedUrl, normalizedUrl: parsed.normalizedUrl } as const;
      });
      await store.change(asUser(user), additions, NOW);
      return additions;
    };
    const idOf = async (url: string) => (await podcasts.find([url]))[0]?.id ?? assert.fail();
    const isKnown = async (url: string) => (await podcasts.find([url]))[0]?.statusSince !== undefined;
    /** Stores a record as after a fetch. */
    const recordFetch = async (url: string, known: Partial<PodcastRecord> = {}, at = NOW) => {
      const id = await idOf(url);
      await createPodcast(store, id, at);
      const record = (await podcasts.claim(id, at, later(DAY))) ?? assert.fail("cannot be claimed");
      const next = { ...record, checkedAt: at.getTime(), nextAt: at.getTime() + DAY, ...known };
      assert.equal(await podcasts.record(id, later(DAY), next, ARTWORK), true);
      return id;
    };

    test("find: known and unknown feeds in any spelling → in order; unknown ones are pending", async () => {
      const [one, other] = [newUrl(), newUrl()];
      const known = {
        title: "Ärger 🎧",
        author: "A",
        description: "D\nE",
        homepageUrl: "https://x.example/",
        language: "de",
        podcastGuid: "g",
        artwork: HASH,
        status: "moved" as const,
        movedTo: "https://new.example/",
      };
      const id = await recordFetch(one, known);
      const spelled = `${one.replace("https", "HTTP")}/#x`;
      const [first, second, third] = await podcasts.find([other, spelled, one]);
      assert.deepEqual(second, third);
      const unknown = { failure: undefined, latestEpisodeAt: undefined };
      assert.deepEqual(third, { id, ...known, statusSince: NOW, checkedAt: NOW, isBlocked: false, ...unknown });
      assert.deepEqual(
        [first?.status, first?.title, first?.statusSince, first?.checkedAt],
        ["pending", undefined, undefined, undefined],
      );
      assert.deepEqual(await podcasts.find([]), []);
      assert.deepEqual(await podcasts.versions([other, spelled, one]), [
        { id: first?.id, checkedAt: 0 },
        { id, checkedAt: NOW.getTime() },
        { id, checkedAt: NOW.getTime() },
      ]);
      assert.deepEqual(await podcasts.versions([]), []);
    });

    test("find: failure and latest episode → the failure only if the status says that the feed cannot be read", async () => {
      const [ok, failing, gone] = [newUrl(), newUrl(), newUrl()];
      await recordFetch(ok, { status: "ok", failure: "timed-out", latestEpisodeAt: 5 });
      await recordFetch(failing, { status: "failing", failure: "private-address" });
      await recordFetch(gone, { status: "gone", failure: "not-found", latestEpisodeAt: NOW.getTime() });
      assert.deepEqual(
        (await podcasts.find([ok, failing, gone])).map(({ failure, latestEpisodeAt }) => [failure, latestEpisodeAt]),
        [
          [undefined, new Date(5)],
          ["private-address", undefined],
          ["not-found", NOW],
        ],
      );
    });

    test("get and artwork: another user's podcast → undefined, known or not", async () => {
      const [mine, theirs, unknown] = [newUrl(), newUrl(), newUrl()];
      const [user, other] = [newUser(), newUser()];
      await subscribe(user, mine, unknown);
      await subscribe(other, theirs);
      const [my, their] = [await recordFetch(mine, { title: "mine" }), await recordFetch(theirs)];
      assert.equal((await podcasts.get(user, my))?.title, "mine");
      assert.equal((await podcasts.get(user, await idOf(unknown)))?.status, "pending");
      assert.equal(await podcasts.get(user, their), undefined);
      assert.equal(await podcasts.get(user, await idOf(newUrl())), undefined);
      assert.deepEqual(Buffer.from((await podcasts.artwork(user, my, HASH, "small")) ?? []), ARTWORK.small);
      assert.deepEqual(Buffer.from((await podcasts.artwork(user, my, HASH, "large")) ?? []), ARTWORK.large);
      assert.equal(await podcasts.artwork(user, my, "f".repeat(32), "small"), undefined);
      assert.equal(await podcasts.artwork(user, their, HASH, "small"), undefined);
      assert.equal(await podcasts.artwork(user, await idOf(unknown), HASH, "small"), undefined);
    });

    test("record: new artwork → the old hash is gone; every value → read as written", async () => {
      const url = newUrl();
      const user = newUser();
      await subscribe(user, url);
      const id = await recordFetch(url);
      const all: PodcastRecord = {
        ...newRecord(7),
        etag: '"e"',
        lastModified: "m",
        needsUserAgentSuffix: 1,
        nextAt: 8,
        notBefore: 9,
        failures: 10,
        failure: "not-found",
        failureSince: 11,
        latestEpisodeAt: 15,
        newFeedUrl: "n",
        moveTarget: "t",
        moveSince: 12,
        moveCount: 13,
        artworkUrl: "u",
        artworkAt: 14,
        artwork: "a".repeat(32),
      };
      assert.ok(await podcasts.claim(id, later(2 * DAY), later(3 * DAY)));
      assert.equal(await podcasts.record(id, later(3 * DAY), all, { ...ARTWORK, hash: "a".repeat(32) }), true);
      assert.deepEqual(await podcasts.claim(id, later(2 * DAY), later(3 * DAY)), all);
      assert.equal(await podcasts.artwork(user, id, HASH, "small"), undefined);
      assert.ok(await podcasts.artwork(user, id, "a".repeat(32), "small"));
    });

    test("claim: not due, claimed, expired or erased → one at a time; a late result is not stored", async () => {
      const url = newUrl();
      const id = await idOf(url);
      const subscribed = { user: newUser(), id };
      await subscribe(subscribed.user, url);
      assert.equal(await podcasts.claim(id, NOW, later(MINUTE)), undefined, "there is no record");
      assert.deepEqual(await podcasts.create([subscribed, subscribed], NOW), [id]);
      assert.deepEqual(await podcasts.create([subscribed], NOW), []);
      assert.equal(await podcasts.claim(id, later(-1), later(MINUTE)), undefined, "not due yet");
      const claims = await Promise.all([1, 2, 3].map((n) => podcasts.claim(id, NOW, later(MINUTE + n))));
      assert.equal(claims.filter((record) => record !== undefined).length, 1);
      const until = later(MINUTE + 1 + claims.findIndex((record) => record !== undefined));
      assert.equal(await podcasts.claim(id, later(MINUTE), later(DAY)), undefined);
      const record = (await podcasts.claim(id, later(2 * MINUTE), later(DAY))) ?? assert.fail("the lease has expired");
      assert.equal(await podcasts.record(id, until, { ...record, title: "late" }), false);
      assert.equal(await podcasts.record(id, later(DAY), { ...record, title: "in time" }), true);
      assert.equal((await podcasts.find([url]))[0]?.title, "in time");
    });

    test("retry: feeds that fail in this way → due; others, and while the publisher asks to wait → not", async () => {
      const [failing, waiting, other, ok] = [newUrl(), newUrl(), newUrl(), newUrl()];
      const known = { status: "failing", failure: "private-address" } as const;
      await recordFetch(failing, known);
      await recordFetch(waiting, { ...known, notBefore: later(DAY).getTime() });
      await recordFetch(other, { ...known, failure: "tls" });
      await recordFetch(ok);
      await podcasts.retry("private-address", later(MINUTE));
      const claimed = [];
      for (const url of [failing, waiting, other, ok])
        claimed.push(await podcasts.claim(await idOf(url), later(MINUTE), later(DAY)));
      assert.deepEqual(
        claimed.map((record) => record?.failure),
        ["private-address", undefined, undefined, undefined],
      );
    });

    test("due: many → in order and in pages, without claimed ones", async () => {
      const fresh = await open();
      after(() => fresh.close());
      const urls = Array.from({ length: 7 }, newUrl);
      const ids = (await fresh.podcasts.find(urls)).map(({ id }) => id);
      for (const [index, id] of ids.entries())
        await fresh.podcasts.create([{ user: NOBODY, id }], later(MINUTE * Math.floor(index / 3)));
      assert.ok(await fresh.podcasts.claim(ids[1] ?? "", later(MINUTE), later(DAY)));
      const seen: string[] = [];
      for (let last: { id: string; nextAt: number } | undefined; ; ) {
        const some = await fresh.podcasts.due(later(MINUTE), last, 2);
        seen.push(...some.map(({ id }) => id));
        last = some.at(-1);
        if (last === undefined) break;
      }
      assert.deepEqual(seen.toSorted(), ids.filter((_, index) => index !== 1 && index < 6).toSorted());
      assert.deepEqual(seen.slice(2).toSorted(), ids.slice(3, 6).toSorted());
      assert.deepEqual(await fresh.podcasts.counts(later(MINUTE)), { ...NO_PODCASTS, known: 7, due: 6 });
    });

    test("refresh: own podcast → due, unless just fetched or the publisher asked to wait; another's → false", async () => {
      const [url, unknown] = [newUrl(), newUrl()];
      const [user, other] = [newUser(), newUser()];
      await subscribe(user, url, unknown);
      const id = await recordFetch(url, { artworkAt: 5, notBefore: later(20 * MINUTE).getTime() });
      const isDue = async (at: Date, wanted = id) =>
        (await podcasts.due(at, undefined, 1_000)).some((each) => each.id === wanted);
      assert.equal(await podcasts.refresh(other, id, later(10 * MINUTE)), false);
      assert.equal(await podcasts.refresh(user, id, later(MINUTE)), true);
      assert.equal(await isDue(later(30 * MINUTE)), false);
      assert.equal(await podcasts.refresh(user, id, later(10 * MINUTE)), true);
      assert.deepEqual([await isDue(later(19 * MINUTE)), await isDue(later(20 * MINUTE))], [false, true]);
      assert.equal((await podcasts.claim(id, later(DAY), later(2 * DAY)))?.artworkAt, 0);
      const recent = newUrl();
      await subscribe(user, recent);
      const recentId = await recordFetch(recent);
      for (const minMs of [MINUTE + 1, MINUTE]) {
        assert.equal(await podcasts.refresh(user, recentId, later(MINUTE), minMs), true);
        assert.equal(await isDue(later(MINUTE), recentId), minMs === MINUTE);
      }
      assert.equal(await podcasts.refresh(user, await idOf(unknown), NOW), true);
      assert.equal(await isDue(NOW, await idOf(unknown)), true);
    });

    test("changedFeeds: additions and updates after a number → those, with URL and number", async () => {
      const user = newUser();
      const urls = [newUrl(), newUrl(), newUrl()];
      const [first] = await subscribe(user, ...urls);
      const feedUrl = newUrl();
      const parsed = readFeedUrl(feedUrl);
      if (parsed.kind === "invalid") assert.fail();
      await store.change(
        asUser(user),
        [{ kind: "update", id: first?.id ?? "", feedUrl, normalizedUrl: parsed.normalizedUrl }],
        NOW,
      );
      const seen = async (after: number, limit: number) =>
        (await podcasts.changedFeeds(user, after, limit)).map((each) => [each.feedUrl, each.sequence]);
      assert.deepEqual(await seen(1, 10), [
        [urls[1], 2],
        [urls[2], 3],
        [feedUrl, 4],
      ]);
      assert.deepEqual(await seen(1, 1), [[urls[1], 2]]);
      assert.deepEqual(await seen(4, 10), []);
      assert.equal((await podcasts.changedFeeds(user, 3, 1))[0]?.id, await idOf(feedUrl));
    });

    test("subscriptionsAfter: all lists → every subscription once, in steps", async () => {
      const fresh = await open();
      after(() => fresh.close());
      const urls = Array.from({ length: 5 }, newUrl);
      const ids = (await fresh.podcasts.find(urls)).map(({ id }) => id);
      const users = [newUser(), newUser(), newUser()];
      for (const user of users) {
        const additions = urls.map((feedUrl) => {
          const parsed = readFeedUrl(feedUrl);
          return {
            kind: "add",
            id: uuid(),
            feedUrl,
            normalizedUrl: parsed.kind === "valid" ? parsed.normalizedUrl : "",
          } as const;
        });
        await fresh.change(asUser(user), additions, NOW);
      }
      const seen: string[] = [];
      for (let last: SubscribedFeed | undefined; ; ) {
        const step = await fresh.podcasts.subscriptionsAfter(last, 4);
        assert.ok(step.length <= 4);
        seen.push(...step.map(({ user, id }) => `${user} ${id}`));
        last = step.at(-1);
        if (last === undefined) break;
      }
      assert.deepEqual(seen.toSorted(), users.flatMap((user) => ids.map((id) => `${user} ${id}`)).toSorted());
    });

    test("subscribers and isAnyActive: several users → URLs as they have them; active by their last use", async () => {
      const url = newUrl();
      const [local, idle, busy, app] = [newUser(), newUser(), newUser(), newUser()];
      const account = { issuer: "", passwordHash: "p", isCreatedByOperator: false, invitationHash: undefined };
      await store.accounts.create(newUser(), { ...account, name: "first-of-podcasts" }, NOW);
      for (const user of [idle, busy, app]) await store.accounts.create(user, { ...account, name: `n${user}` }, NOW);
      await subscribe(idle, url);
      await subscribe(busy, `${url}/`);
      await createPodcast(store, await idOf(url), NOW);
      const [found, none] = await podcasts.subscribers([await idOf(url), await idOf(newUrl())]);
      assert.deepEqual(
        found?.toSorted((a, b) => a.user - b.user),
        [
          { user: idle, feedUrl: url },
          { user: busy, feedUrl: `${url}/` },
        ],
      );
      assert.deepEqual(none, []);
      const isActive = (...whose: UserId[]) => podcasts.isAnyActive(whose, later(DAY));
      assert.equal(await isActive(idle, busy, app), false);
      assert.equal(await podcasts.isAnyActive([idle], NOW), true, "the account is new");
      const credential = { id: uuid(), kind: "token", user: busy, scope: "read", label: "" } as const;
      const times = { createdAt: NOW, usedAt: later(DAY), expiresAt: undefined };
      const added = {
        credential: { ...credential, ...times },
        hash: Buffer.alloc(32, 7).toString("base64url"),
      };
      assert.equal(await store.accounts.addCredential(asUser(NOBODY), added), "added");
      await store.apps.saveDevice(asUser(app), { key: "k", device: "phone" }, {}, later(DAY));
      assert.equal(await isActive(app), true);
      assert.equal(await isActive(busy), true);
      assert.equal(await isActive(idle, busy), true);
      assert.equal(await isActive(local), true, "a user without an account");
    });

    test("findByTitle: subscriptions with that title → in steps by user; an update with `expectedTitle` leaves other titles alone", async () => {
      const url = newUrl();
      const [one, two, other] = [newUser(), newUser(), newUser()];
      const idFor = new Map<UserId, string>();
      for (const user of [one, two, other]) {
        const [{ id } = { id: "" }] = await subscribe(user, url);
        idFor.set(user, id);
        const title = user === other ? "Mine" : "Theirs";
        await store.change(asUser(user), [{ kind: "update", id, title }], NOW);
      }
      const id = await idOf(url);
      await createPodcast(store, id, NOW);
      const entry = (user: UserId) => ({ user, id: idFor.get(user) });
      assert.deepEqual(await podcasts.findByTitle(id, "Theirs", NOBODY, 1), [entry(one)]);
      assert.deepEqual(await podcasts.findByTitle(id, "Theirs", one, 9), [entry(two)]);
      assert.deepEqual(await podcasts.findByTitle(id, "theirs", NOBODY, 9), []);
      for (const user of [one, other]) {
        const update = { kind: "update", id: idFor.get(user) ?? "", title: "", expectedTitle: "Theirs" } as const;
        await store.change(asUser(user), [update], NOW);
      }
      const titleOf = async (user: UserId) => (await store.page(user, { offset: 0, size: 1 })).items[0]?.title;
      assert.deepEqual([await titleOf(one), await titleOf(other)], [undefined, "Mine"]);
      assert.deepEqual(await podcasts.findByTitle(id, "Theirs", NOBODY, 9), [entry(two)]);
    });

    test("eraseUnused: a feed is removed and added again, and not fetched since → its record stays", async () => {
      const [url, user] = [newUrl(), newUser()];
      const [addition] = await subscribe(user, url);
      const id = await recordFetch(url, { title: "kept" });
      await store.change(asUser(user), [{ kind: "remove", id: addition?.id ?? "" }], NOW);
      await subscribe(user, url);
      await podcasts.eraseUnused(NOW);
      assert.equal((await podcasts.get(user, id))?.title, "kept");
      assert.deepEqual(await podcasts.subscribers([id]), [[{ user, feedUrl: url }]]);
    });

    test("eraseUnused: a feed without subscribers → its record and artwork are erased, others stay", async () => {
      const [left, shared] = [newUrl(), newUrl()];
      const [user, other] = [newUser(), newUser()];
      const [addition, both] = await subscribe(user, left, shared);
      await subscribe(other, shared);
      const id = await recordFetch(left, { title: "left" });
      await recordFetch(shared, { title: "shared" });
      await podcasts.eraseUnused(NOW);
      assert.equal(await isKnown(left), true);
      await store.change(
        asUser(user),
        [addition, both].map((each) => ({ kind: "remove", id: each?.id ?? "" })),
        NOW,
      );
      await podcasts.eraseUnused(NOW);
      assert.deepEqual([await isKnown(left), await isKnown(shared)], [false, true]);
      // A new subscriber starts from nothing.
      await subscribe(user, left);
      assert.equal(await podcasts.artwork(user, id, HASH, "small"), undefined);
    });

    test("delete an account: podcasts that only it had → erased with it, in every step; shared ones stay", async () => {
      const [user, other] = [newUser(), newUser()];
      const account = { issuer: "", passwordHash: "p", isCreatedByOperator: false, invitationHash: undefined };
      await store.accounts.create(newUser(), { ...account, name: "second-of-podcasts" }, NOW);
      await store.accounts.create(user, { ...account, name: `n${user}` }, NOW);
      const urls = Array.from({ length: 1_500 }, newUrl);
      await subscribe(user, ...urls);
      const [first = "", last = "", shared = ""] = [urls[0], urls.at(-1), urls[700]];
      await subscribe(other, shared);
      const id = await recordFetch(first);
      for (const url of [last, shared]) await recordFetch(url);
      assert.equal(await store.accounts.delete(asUser(user), NOW), "deleted");
      assert.deepEqual([await isKnown(first), await isKnown(last), await isKnown(shared)], [false, false, true]);
      await subscribe(other, first);
      assert.equal(await podcasts.artwork(other, id, HASH, "large"), undefined);
    });
  });
}
