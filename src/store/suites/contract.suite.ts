import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { addTo, findOne, removeFrom, resultOf, statusOf } from "../../../test/support/lists.ts";
import { fc, runs } from "../../../test/support/properties.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import type { SubscriptionStore } from "../../lists/list-store.ts";
import type { Addition, Outcome, SubscriptionKey } from "../../lists/subscription.ts";
import { describeChanges } from "./changes.suite.ts";
import { describeDetails } from "./details.suite.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");

function addition(id: number, feed: number | string): Addition {
  const text = `00000000-0000-4000-8000-${id.toString(16).padStart(12, "0")}`;
  return {
    kind: "add",
    id: text,
    feedUrl: `https://feeds.example/${feed}/`,
    normalizedUrl: `feeds.example/${feed}`,
  };
}

/** The contract of every engine. `store` is empty. */
export function describeStore(engine: string, store: SubscriptionStore): void {
  describeChanges(engine, store);
  describeDetails(engine, store);
  describe(`store on ${engine}`, () => {
    let users = 100;
    const newUser = (): UserId => {
      users += 1;
      return users;
    };
    const add = (user: UserId, ...additions: Addition[]) => addTo(store, asUser(user), additions, NOW);
    const list = async (user: UserId, offset = 0, size = 1_000) => (await store.page(user, { offset, size })).items;
    const ids = async (user: UserId) => (await list(user)).map(({ id }) => id);
    const total = async (user: UserId) => (await store.page(user, { offset: 0, size: 1 })).total;

    test("ready: open store → resolves", () => store.ready());

    test("add: any feed URL → stored exactly as given", async () => {
      const user = newUser();
      const given: Addition = { ...addition(1, "x"), feedUrl: "HTTPS://Ann:s@Feeds.Example/é/👩‍👩‍👧?'\"\\;--#x" };
      const kept = { id: given.id, feedUrl: given.feedUrl, subscribedAt: NOW };
      assert.deepEqual((await add(user, given)).map(resultOf), [kept]);
      assert.deepEqual(await findOne(store, user, given.id), kept);
      assert.deepEqual(await store.page(user, { offset: 0, size: 25 }), { items: [kept], total: 1, sequence: 1 });
    });

    test("add: with the time of subscribing → that one", async () => {
      const user = newUser();
      const given: Addition = { ...addition(1, "x"), subscribedAt: new Date("2020-02-29T12:00:00Z") };
      const kept = { id: given.id, feedUrl: given.feedUrl, subscribedAt: given.subscribedAt };
      assert.deepEqual((await add(user, given)).map(resultOf), [kept]);
      assert.deepEqual(await findOne(store, user, given.id), kept);
    });

    test("add: very long feed URLs → stored", async () => {
      const user = newUser();
      const long = {
        ...addition(1, "x"),
        feedUrl: `https://feeds.example/${"🎧".repeat(2_000)}`,
        normalizedUrl: `feeds.example/${"%F0%9F%8E%A7".repeat(2_000)}`,
      };
      assert.deepEqual((await add(user, long, { ...long, ...addition(2, "y") })).map(statusOf), ["added", "added"]);
      assert.equal((await findOne(store, user, long.id))?.feedUrl, long.feedUrl);
    });

    test("page, find, remove: unknown user → nothing", async () => {
      const user = newUser();
      assert.deepEqual(await store.page(user, { offset: 0, size: 25 }), { items: [], total: 0, sequence: 0 });
      assert.deepEqual(await store.page(user, { offset: 1_000, size: 25 }), { items: [], total: 0, sequence: 0 });
      assert.equal(await findOne(store, user, addition(1, 1).id), undefined);
      assert.equal(await removeFrom(store, asUser(user), addition(1, 1).id, NOW), false);
    });

    test("add: a batch with conflicts → outcome N belongs to addition N", async () => {
      const user = newUser();
      await add(user, addition(1, "a"));
      const additions = [
        addition(2, "a"),
        addition(1, "b"),
        addition(3, "c"),
        addition(1, "a"),
        addition(4, "c"),
        addition(3, "d"),
        addition(5, "e"),
      ];
      const outcomes = await addTo(store, asUser(user), additions, NOW);
      const expected = [
        "already-subscribed",
        "id-in-use",
        "added",
        "already-subscribed",
        "already-subscribed",
        "id-in-use",
        "added",
      ];
      assert.deepEqual(outcomes.map(statusOf), expected);
      const existing = outcomes.map((outcome) => ("existingId" in outcome ? outcome.existingId : ""));
      assert.deepEqual(
        existing.map((id) => id && Number.parseInt(id.slice(-12), 16)),
        [1, 1, "", 1, 3, 3, ""],
      );
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.kind === "refused") continue;
        const { id, feedUrl } = additions[index] ?? assert.fail();
        assert.deepEqual(outcome.subscription, { id, feedUrl, subscribedAt: NOW });
      }
      assert.deepEqual(
        await ids(user),
        [1, 3, 5].map((id) => addition(id, 0).id),
      );
    });

    test("add: feed of one item and id of another → already-subscribed", async () => {
      const user = newUser();
      await add(user, addition(1, "a"), addition(2, "b"));
      assert.deepEqual((await add(user, addition(2, "a"))).map(statusOf), ["already-subscribed"]);
    });

    test("add: an empty batch, a large batch → one outcome each", async () => {
      const user = newUser();
      assert.deepEqual(await addTo(store, asUser(user), [], NOW), []);
      const additions = Array.from({ length: 4_000 }, (_, index) => addition(index, index % 3_500));
      const outcomes = await addTo(store, asUser(user), additions, NOW);
      assert.deepEqual(
        outcomes.map(statusOf),
        additions.map((_, index) => (index < 3_500 ? "added" : "already-subscribed")),
      );
      assert.equal(await total(user), 3_500);
    });

    test("lists: two users, same id and feed → independent", async () => {
      const [ann, bob] = [newUser(), newUser()];
      assert.deepEqual((await add(ann, addition(1, "a"))).map(statusOf), ["added"]);
      assert.equal(await findOne(store, bob, addition(1, "a").id), undefined);
      assert.equal(await removeFrom(store, asUser(bob), addition(1, "a").id, NOW), false);
      assert.deepEqual((await add(bob, addition(1, "b"), addition(2, "a"))).map(statusOf), ["added", "added"]);
      assert.equal(await total(ann), 1);
      assert.equal(await total(bob), 2);
      assert.equal((await findOne(store, ann, addition(1, "a").id))?.feedUrl, "https://feeds.example/a/");
    });

    test("find: ids and feeds → result N belongs to key N", async () => {
      const [ann, bob] = [newUser(), newUser()];
      await add(ann, addition(1, "a"), addition(2, "b"), addition(3, "c"));
      await add(bob, addition(4, "d"));
      await removeFrom(store, asUser(ann), addition(2, "b").id, NOW);
      const urls = ["d", "c", "b", "a", "c", "x"].map((feed) => addition(0, feed).normalizedUrl);
      const byFeed = urls.map((normalizedUrl): SubscriptionKey => ({ kind: "feed", normalizedUrl }));
      const keys = [...byFeed, { kind: "id", id: addition(3, 0).id } as const];
      const found = (await store.find(ann, keys)).map((item) => item?.id);
      const [a, c] = [addition(1, 0).id, addition(3, 0).id];
      assert.deepEqual(found, [undefined, c, undefined, a, c, undefined, c]);
      assert.ok((await store.find(newUser(), keys)).every((item) => item === undefined));
      assert.deepEqual(await store.find(ann, []), []);
    });

    test("page: any window → items in the order of subscribing", async () => {
      const user = newUser();
      const order = [9, 3, 7, 1, 8, 2, 6, 4, 5].map((id) => addition(id, id));
      await addTo(store, asUser(user), order.slice(0, 4), NOW);
      await addTo(store, asUser(user), order.slice(4), new Date(NOW.getTime() - 60_000));
      const expected = order.map(({ id }) => id);
      assert.deepEqual(await ids(user), expected);
      for (let offset = 0; offset <= 10; offset += 1) {
        for (const size of [1, 2, 5, 100]) {
          assert.deepEqual(
            (await list(user, offset, size)).map(({ id }) => id),
            expected.slice(offset, offset + size),
          );
        }
      }
      assert.deepEqual((await store.page(user, { offset: Number.MAX_SAFE_INTEGER, size: 100 })).items, []);
    });

    test("remove: then add again → at the end of the list", async () => {
      const user = newUser();
      await add(user, addition(1, "a"), addition(2, "b"), addition(3, "c"));
      assert.equal(await removeFrom(store, asUser(user), addition(1, 0).id, NOW), true);
      assert.equal(await removeFrom(store, asUser(user), addition(1, 0).id, NOW), false);
      assert.equal(await findOne(store, user, addition(1, 0).id), undefined);
      assert.equal(await total(user), 2);
      assert.deepEqual((await add(user, addition(1, "a"))).map(statusOf), ["added"]);
      assert.deepEqual(
        await ids(user),
        [2, 3, 1].map((id) => addition(id, 0).id),
      );
      await removeFrom(store, asUser(user), addition(2, 0).id, NOW);
      assert.deepEqual((await add(user, addition(9, "b"), addition(2, "z"))).map(statusOf), ["added", "added"]);
      assert.deepEqual(
        await ids(user),
        [3, 1, 9, 2].map((id) => addition(id, 0).id),
      );
    });

    test("page: any adds and removals → correct items and total", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.boolean(), fc.nat({ max: 40 }), fc.integer({ min: 1, max: 60 })), { maxLength: 25 }),
          async (commands) => {
            const user = newUser();
            let model: string[] = [];
            let next = 0;
            for (const [isAdding, at, count] of commands) {
              if (isAdding) {
                const additions = Array.from({ length: count }, (_, index) => addition(next + index, next + index));
                next += count;
                await addTo(store, asUser(user), additions, NOW);
                model.push(...additions.map(({ id }) => id));
              } else if (model.length > 0) {
                const [removed = ""] = model.splice((at * 7919) % model.length, 1);
                assert.equal(await removeFrom(store, asUser(user), removed, NOW), true);
              }
            }
            model = [...model];
            assert.equal(await total(user), model.length);
            for (let offset = 0; offset < model.length; offset += 17) {
              assert.deepEqual(
                (await list(user, offset, 17)).map(({ id }) => id),
                model.slice(offset, offset + 17),
              );
            }
          },
        ),
        { numRuns: runs(20) },
      );
    });

    test("change: any requests, in sequence or concurrent → same outcomes as one at a time", async () => {
      const someAddition = fc.tuple(fc.nat({ max: 30 }), fc.nat({ max: 30 })).map(([id, feed]) => addition(id, feed));
      const command = fc.oneof(
        { weight: 3, arbitrary: fc.array(someAddition, { maxLength: 4 }) },
        { weight: 1, arbitrary: fc.nat({ max: 30 }) },
      );
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(command, { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
          async (steps) => {
            const user = newUser();
            let model: Addition[] = [];
            const addToModel = (added: Addition) => {
              if (model.some(({ normalizedUrl }) => normalizedUrl === added.normalizedUrl)) return "already-subscribed";
              if (model.some(({ id }) => id === added.id)) return "id-in-use";
              model.push(added);
              return "added";
            };
            const removeFromModel = (gone: string) => {
              const before = model.length;
              model = model.filter(({ id }) => id !== gone);
              return model.length < before;
            };
            for (const commands of steps) {
              const expected = commands.map((one) =>
                typeof one === "number" ? removeFromModel(addition(one, 0).id) : one.map(addToModel),
              );
              const results = commands.map(async (one) =>
                typeof one === "number"
                  ? removeFrom(store, asUser(user), addition(one, 0).id, NOW)
                  : (await addTo(store, asUser(user), one, NOW)).map(statusOf),
              );
              assert.deepEqual(await Promise.all(results), expected);
            }
            const expected = model.map(({ id, feedUrl }) => ({ id, feedUrl, subscribedAt: NOW }));
            const { items, total: length } = await store.page(user, { offset: 0, size: 100 });
            assert.deepEqual([items, length], [expected, model.length]);
          },
        ),
        { numRuns: runs(20) },
      );
    });

    test("add: same feed, 50 requests at once → added once", async () => {
      const user = newUser();
      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) => add(user, addition(index, "same"))));
      assert.equal(outcomes.flat().filter((outcome) => statusOf(outcome) === "added").length, 1);
      assert.equal(outcomes.flat().filter((outcome) => statusOf(outcome) === "already-subscribed").length, 49);
      assert.equal(await total(user), 1);
    });

    test("add: same id, 50 requests at once → added once", async () => {
      const user = newUser();
      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) => add(user, addition(1, index))));
      assert.equal(outcomes.flat().filter((outcome) => statusOf(outcome) === "added").length, 1);
      assert.equal(outcomes.flat().filter((outcome) => statusOf(outcome) === "id-in-use").length, 49);
    });

    test("add: overlapping batches in opposite orders → each feed once, no deadlock", async () => {
      const user = newUser();
      const additions = Array.from({ length: 200 }, (_, index) => addition(index, index));
      const batches = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          addTo(store, asUser(user), index % 2 === 0 ? additions : additions.toReversed(), NOW),
        ),
      );
      assert.equal(batches.flat().filter((outcome) => statusOf(outcome) === "added").length, 200);
      assert.equal(await total(user), 200);
    });

    describe("quota", () => {
      const withQuota = (user: UserId, maxSubscriptions: number) => ({ ...asUser(user), maxSubscriptions });
      const quotaStatusOf = (outcome: Outcome) =>
        outcome.kind === "refused" && outcome.code === "quota-exceeded" ? `max ${outcome.max}` : statusOf(outcome);

      test("quota: a batch reaches the limit → what comes before is added, what comes after is rejected", async () => {
        const caller = withQuota(newUser(), 3);
        await addTo(store, caller, [addition(1, "a")], NOW);
        const additions = [
          addition(2, "b"),
          addition(3, "a"),
          addition(3, "c"),
          addition(4, "d"),
          addition(1, "e"),
          addition(5, "b"),
        ];
        const expected = ["added", "already-subscribed", "added", "max 3", "id-in-use", "already-subscribed"];
        assert.deepEqual((await addTo(store, caller, additions, NOW)).map(quotaStatusOf), expected);
        assert.deepEqual(
          await ids(caller.user),
          [1, 2, 3].map((id) => addition(id, 0).id),
        );
      });

      test("quota: single additions → rejected at the limit, accepted after a removal", async () => {
        const caller = withQuota(newUser(), 2);
        const addOne = async (id: number) =>
          (await addTo(store, caller, [addition(id, id)], NOW)).map(quotaStatusOf).join();
        // After two successful additions, an engine might skip its checks.
        assert.deepEqual([await addOne(1), await addOne(2), await addOne(3), await addOne(3)].slice(2), [
          "max 2",
          "max 2",
        ]);
        assert.equal(await removeFrom(store, caller, addition(1, 0).id, NOW), true);
        assert.deepEqual([await addOne(3), await addOne(4)], ["added", "max 2"]);
        assert.equal(await total(caller.user), 2);
      });

      test("quota: many additions at once → exactly as many as the limit", async () => {
        const caller = withQuota(newUser(), 7);
        await addTo(store, caller, [addition(100, "x")], NOW);
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, index) => addTo(store, caller, [addition(index, index)], NOW)),
        );
        assert.equal(outcomes.flat().filter((outcome) => quotaStatusOf(outcome) === "added").length, 6);
        assert.equal(await total(caller.user), 7);
      });

      test("quota: lowered below the length of the list → the list stays, additions are rejected", async () => {
        const user = newUser();
        await addTo(store, asUser(user), [addition(1, "a"), addition(2, "b")], NOW);
        assert.deepEqual((await addTo(store, withQuota(user, 1), [addition(3, "c")], NOW)).map(quotaStatusOf), [
          "max 1",
        ]);
        assert.equal(await total(user), 2);
      });
    });

    test("page: concurrent writes → one snapshot that has all confirmed changes", async () => {
      const user = newUser();
      let confirmed = 0;
      let writing = true;
      const writer = (async () => {
        for (let batch = 0; batch < 50; batch += 1) {
          const additions = Array.from({ length: 10 }, (_, index) => addition(batch * 10 + index, batch * 10 + index));
          await addTo(store, asUser(user), additions, NOW);
          confirmed += 10;
          if (batch % 10 === 9) {
            await removeFrom(store, asUser(user), addition(batch, 0).id, NOW);
            confirmed -= 1;
          }
        }
        writing = false;
      })();
      while (writing) {
        const before = confirmed;
        const page = await store.page(user, { offset: 0, size: 2_000 });
        assert.equal(page.items.length, page.total);
        assert.ok(page.total >= before - 1);
        await new Promise(setImmediate);
      }
      await writer;
      assert.equal(await total(user), 495);
    });
  });
}
