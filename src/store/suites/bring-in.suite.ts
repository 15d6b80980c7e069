import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Belongings, type BringInOptions, type BroughtIn, bringIn } from "../../account-imports/bring-in.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import type { UploadedAction } from "../../apps/episode-actions.ts";
import type { Store } from "../shared/contract.ts";
import { A, createAppContext, play, START, url } from "./apps-test-support.ts";
import { createMoveContext, normalize, QUIET } from "./moves-test-support.ts";

/** Found, added, left out, refused. */
type Counts = readonly [number, number, number, number];

const SECOND = 1_000;
const at = (seconds: number) => new Date(START + seconds * SECOND);
const named = (...names: string[]) => names.map((name) => ({ feedUrl: url(name) }));

function countsOf({ subscriptions, episode_actions }: BroughtIn): { feeds: Counts; actions: Counts } {
  const { found, added, already_subscribed, refused } = subscriptions;
  const actions = episode_actions;
  return {
    feeds: [found, added, already_subscribed, refused],
    actions: [actions.found, actions.added, actions.not_newer, actions.refused],
  };
}

/** The contract of every engine for accounts of other servers that are brought in. */
export function describeBringIn(engine: string, store: Store): void {
  const { newUser, sync, upload, listed, positions } = createAppContext(store);
  const newScene = createMoveContext(store);
  const bring = (user: UserId, belongings: Partial<Belongings>, options: BringInOptions = {}, max = Infinity) =>
    bringIn(
      { store },
      { ...asUser(user), maxSubscriptions: Math.min(max, Number.MAX_SAFE_INTEGER) },
      { subscriptions: [], actions: [], ...belongings },
      at(10_000),
      options,
    );
  /** Previews, brings in, and brings in again. */
  const expectCounts = async (user: UserId, belongings: Partial<Belongings>, feeds: Counts, actions: Counts) => {
    const preview = countsOf(await bring(user, belongings, { dryRun: true }));
    assert.deepEqual(countsOf(await bring(user, belongings)), { feeds, actions });
    assert.deepEqual(preview, { feeds, actions });
    const state = async () => [
      await store.page(user, { offset: 0, size: 1_000 }),
      await store.apps.actions(user, { after: 0, upTo: 1_000_000, limit: 10_000, feed: undefined }),
    ];
    const before = await state();
    const again = countsOf(await bring(user, belongings));
    assert.deepEqual([again.feeds[1], again.actions[1]], [0, 0]);
    assert.deepEqual(await state(), before);
  };

  describe(`bring in on ${engine}`, () => {
    test("feeds: new, listed, named twice, invalid → counted so that they add up", async () => {
      const { user, person } = newScene();
      await person.add(url("b"), { title: "Mine" });
      const subscriptions = [...named("a", "b", "c", "a"), { feedUrl: "ftp://x.example" }, { feedUrl: url("b") }];
      await expectCounts(user, { subscriptions }, [6, 2, 3, 1], [0, 0, 0, 0]);
      assert.deepEqual(await listed(user), [url("b"), url("a"), url("c")]);
    });

    test("feeds: more than the quota → the others are refused", async () => {
      const user = newUser();
      const subscriptions = named("a", "b", "c");
      for (const dryRun of [true, false])
        assert.deepEqual(countsOf(await bring(user, { subscriptions }, { dryRun }, 2)).feeds, [3, 2, 0, 1]);
    });

    test("actions: newest of an episode and kind → added; older ones and repeats → not newer, and found once", async () => {
      const user = newUser();
      const actions: UploadedAction[] = [
        play("1", 10, { actedAt: at(1) }),
        play("1", 30, { actedAt: at(3) }),
        play("1", 20, { actedAt: at(2) }),
        play("1", 30, { actedAt: at(3) }),
        play("2", 5, { actedAt: at(1) }),
        { ...play("2", undefined, { actedAt: at(2) }), kind: "download" },
        play("3", undefined),
        play("3", undefined),
      ];
      await expectCounts(user, { actions }, [0, 0, 0, 0], [6, 3, 2, 1]);
      assert.deepEqual(await positions(user, A, 0), [
        ["1", 30],
        ["2", 5],
        ["2", undefined],
      ]);
    });

    test("actions: stored ones → only newer ones replace them, and apps get nothing else again", async () => {
      const user = newUser();
      await upload(user, A, play("1", 10, { actedAt: at(10) }), play("2", 20, { actedAt: at(10) }));
      const { timestamp } = await sync.actionsSince(asUser(user), A, 0, undefined, at(20));
      const actions = [play("1", 9, { actedAt: at(9) }), play("2", 21, { actedAt: at(11) })];
      await expectCounts(user, { actions }, [0, 0, 0, 0], [2, 1, 1, 0]);
      assert.deepEqual(await positions(user, A, timestamp), [["2", 21]]);
    });

    test("actions: no time, or a future one → the time of the import, once", async () => {
      const user = newUser();
      const actions = [play("1", 10, { actedAt: undefined }), play("2", 20, { actedAt: new Date(START + 10 ** 12) })];
      await expectCounts(user, { actions }, [0, 0, 0, 0], [2, 2, 0, 0]);
      const later = await bringIn({ store }, asUser(user), { subscriptions: [], actions }, at(20_000));
      assert.deepEqual(countsOf(later).actions, [2, 0, 2, 0]);
    });

    test("actions: of a feed that has moved, under two URLs → of one episode only the newest", async () => {
      const { user, person } = newScene();
      await person.add(url("old"));
      await person.move(url("old"), url("new"));
      const actions = [
        play("1", 10, { podcast: url("old"), actedAt: at(1) }),
        play("1", 20, { podcast: url("new"), actedAt: at(2) }),
      ];
      await expectCounts(user, { actions }, [0, 0, 0, 0], [2, 1, 1, 0]);
    });

    test("feeds: with former URLs → an app that has one is told only when it no longer leads there", async () => {
      const { user, app, server, list } = newScene();
      await app("desk").poll(0);
      const moved = { feedUrl: url("new"), former_feed_urls: [url("old"), url("oldest")] };
      assert.deepEqual(countsOf(await bring(user, { subscriptions: [moved] })).feeds, [1, 1, 0, 0]);
      assert.deepEqual(await app("desk").poll(0), { add: [url("new")], remove: [] });
      const phone = app("phone");
      await phone.upload({ add: [url("old")] });
      assert.deepEqual(await list(), [url("new")]);
      assert.deepEqual(await phone.poll(0), { add: [url("old")], remove: [] });
      assert.deepEqual(await phone.poll(), QUIET);
      await server.look(url("old"), url("new"), "elsewhere");
      assert.deepEqual(await phone.poll(), { add: [url("new")], remove: [url("old")] });
    });

    test("feeds: with former URLs, of which one was removed here → its actions are those of the feed", async () => {
      const { user, person, find } = newScene();
      await person.add(url("oldest"));
      await person.move(url("oldest"), url("old"));
      await person.remove(url("old"));
      await upload(user, A, play("1", 10, { podcast: url("oldest"), actedAt: at(10) }));
      const moved = { feedUrl: url("new"), former_feed_urls: [url("old")] };
      const actions = [play("1", 9, { podcast: url("new"), actedAt: at(9) })];
      assert.deepEqual(countsOf(await bring(user, { subscriptions: [moved], actions })), {
        feeds: [1, 1, 0, 0],
        actions: [1, 0, 1, 0],
      });
      assert.deepEqual((await find(url("new"))).former_feed_urls, [url("old")]);
      const [found] = await store.find(user, [{ kind: "feed", normalizedUrl: normalize(url("old")) }]);
      assert.equal(found?.feedUrl, url("new"));
    });

    test("devices: new → added with their captions; known → unchanged", async () => {
      const user = newUser();
      await store.apps.saveDevice(asUser(user), A, { caption: "Mine" }, at(0));
      const device = { caption: "Theirs", type: "mobile", app: "x", syncedAt: at(99_999) } as const;
      const devices = ["desk", "phone", "desk"].map((id) => ({ ...device, id }));
      await bring(user, { devices }, { dryRun: true });
      assert.equal((await store.apps.devices(user)).length, 1);
      await bring(user, { devices });
      const stored = await store.apps.devices(user);
      assert.deepEqual(
        stored.map(({ id, caption, type }) => [id, caption, type]),
        [
          ["desk", "Theirs", "mobile"],
          ["phone", "Mine", "other"],
        ],
      );
      assert.deepEqual(stored[0]?.syncedAt, at(10_000));
    });

    test("many → written in several transactions, with counts after each; false ends the import", async () => {
      const user = newUser();
      const subscriptions = named(...Array.from({ length: 250 }, (_, index) => `feed-${index}`));
      const actions = Array.from({ length: 2_500 }, (_, index) => play(`${index}`, index, { actedAt: at(index) }));
      const seen: BroughtIn[] = [];
      const shouldContinue = () => seen.length < 5;
      await bring(user, { subscriptions, actions }, { onProgress: (soFar) => seen.push(soFar), shouldContinue });
      assert.deepEqual(
        seen.slice(0, 5).map((soFar) => [soFar.subscriptions.added, soFar.episode_actions.added]),
        [100, 200, 250]
          .map((count) => [count, 0])
          .concat([
            [250, 1_000],
            [250, 2_000],
          ]),
      );
      assert.ok(seen.every((soFar) => soFar.subscriptions.found === 250 && soFar.episode_actions.found === 2_500));
      assert.deepEqual(countsOf(await bring(user, { subscriptions, actions })).actions, [2_500, 500, 2_000, 0]);
    });
  });
}
