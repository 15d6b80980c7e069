import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { additionOf, additionsOf, idOf, resultOf, statusOf } from "../../../test/support/lists.ts";
import { fc, runs } from "../../../test/support/properties.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import { changesSince, type ListPosition, MAX_PAGE_CHARS, positionAt, START } from "../../lists/changes.ts";
import { type SubscriptionStore, subscriptionBatches } from "../../lists/list-store.ts";
import { listRemovals } from "../../lists/removals.ts";
import type { Change, Subscription } from "../../lists/subscription.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const LATER = new Date("2026-03-02T03:04:05.678Z");

let users = 1_000_000;
function newUser(): UserId {
  users += 1;
  return users;
}

const remove = (id: number): Change => ({ kind: "remove", id: idOf(id) });
function update(id: number, feed: number | string): Change {
  const { feedUrl, normalizedUrl } = additionOf(id, feed);
  return { kind: "update", id: idOf(id), feedUrl, normalizedUrl };
}

/** The contract of `change` and `changesSince`, for every engine. */
export function describeChanges(engine: string, store: SubscriptionStore): void {
  const change = (user: UserId, ...changes: Change[]) => store.change(asUser(user), changes, NOW);
  const listed = async (user: UserId) => (await store.page(user, { offset: 0, size: 1_000 })).items;
  const isUnknown = async (user: UserId, sequence: number) =>
    (await changesSince(store, user, positionAt(sequence), 10)) === undefined;
  const after = async (user: UserId, position: ListPosition, limit = 100) =>
    (await changesSince(store, user, position, limit)) ?? assert.fail("the position is unknown");
  const since = (user: UserId, sequence: number) => after(user, positionAt(sequence));
  const shown = (items: readonly { id: string; feedUrl: string }[]) =>
    items.map(
      ({ id, feedUrl }) => `${Number.parseInt(id.slice(-12), 16)} ${feedUrl.slice("https://feeds.example/".length)}`,
    );

  describe(`changes on ${engine}`, () => {
    test("change: mixed changes → in order, outcome N belongs to change N", async () => {
      const user = newUser();
      const { outcomes, sequence } = await change(
        user,
        ...additionsOf(1, 2),
        remove(1),
        additionOf(1, 3),
        update(2, 4),
        update(9, 5),
        update(1, 4),
        remove(9),
        additionOf(5, 2),
        additionOf(5, 6),
      );
      assert.deepEqual(
        outcomes.map((outcome) => (outcome.kind === "refused" ? outcome.code : "done")),
        ["done", "done", "done", "done", "done", "not-found", "already-subscribed"].concat([
          "not-found",
          "already-subscribed",
          "done",
        ]),
      );
      assert.equal(sequence, 6);
      assert.deepEqual(shown(await listed(user)), ["2 4", "1 3", "5 6"]);
    });

    test("update: another feed URL → id, position and timestamp stay", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 3));
      const { outcomes, sequence } = await store.change(asUser(user), [update(2, "new")], LATER);
      assert.deepEqual(outcomes.map(resultOf), [
        {
          ...{ id: idOf(2), feedUrl: "https://feeds.example/new", subscribedAt: NOW },
          former_feed_urls: ["https://feeds.example/2"],
        },
      ]);
      assert.equal(sequence, 4);
      assert.deepEqual(shown(await listed(user)), ["1 1", "2 new", "3 3"]);
      const again = await change(user, additionOf(8, "new"), additionOf(9, 2));
      assert.deepEqual(again.outcomes.map(statusOf), ["already-subscribed", "already-subscribed"], "both URLs find it");
    });

    test("update: another spelling of its own feed → no conflict", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 2));
      const [own] = (await change(user, { ...update(1, 1), feedUrl: "http://FEEDS.example/1" } as Change)).outcomes;
      assert.deepEqual(own && resultOf(own), { id: idOf(1), feedUrl: "http://FEEDS.example/1", subscribedAt: NOW });
    });

    test("update: another subscription has the feed → 409 that names it", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 2));
      const { outcomes, sequence } = await change(user, update(1, 2));
      assert.deepEqual(outcomes, [{ kind: "refused", code: "already-subscribed", existingId: idOf(2) }]);
      assert.equal(sequence, 2);
    });

    test("remove: by id or by feed → the subscription that was removed", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 3));
      const byFeed = { kind: "remove-feed", normalizedUrl: additionOf(0, 3).normalizedUrl } as const;
      const { outcomes } = await change(user, remove(1), byFeed, byFeed);
      assert.deepEqual(outcomes.map(resultOf), [
        { id: idOf(1), feedUrl: "https://feeds.example/1", subscribedAt: NOW },
        { id: idOf(3), feedUrl: "https://feeds.example/3", subscribedAt: NOW },
        "not-found",
      ]);
      assert.deepEqual(shown(await listed(user)), ["2 2"]);
    });

    test("add: id of another feed and a fallback → the fallback, unless that is taken too", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 2));
      const withFallback = (id: number, fallback: number, feed: string) => ({
        ...additionOf(id, feed),
        fallbackId: idOf(fallback),
      });
      const { outcomes } = await change(
        user,
        withFallback(1, 7, "a"),
        withFallback(1, 2, "b"),
        withFallback(1, 8, "a"),
        withFallback(9, 1, "c"),
      );
      assert.deepEqual(
        outcomes.map((outcome) => (outcome.kind === "refused" ? outcome.code : outcome.subscription.id)),
        [idOf(7), "id-in-use", "already-subscribed", idOf(9)],
      );
    });

    test("changesSince: 0 → the whole list, and no removals", async () => {
      const user = newUser();
      assert.deepEqual(await since(user, 0), { changed: [], removed: [], next: START, hasMore: false });
      await change(user, ...additionsOf(1, 3), remove(2));
      const { changed, removed, next, hasMore } = await since(user, 0);
      assert.deepEqual([shown(changed), removed, next, hasMore], [["1 1", "3 3"], [], positionAt(4), false]);
      assert.deepEqual(changed[0], { id: idOf(1), feedUrl: "https://feeds.example/1", subscribedAt: NOW });
    });

    test("changesSince: a number → net changes in order, removals only of items that existed then", async () => {
      const user = newUser();
      const { sequence: start } = await change(user, ...additionsOf(1, 4));
      await change(
        user,
        additionOf(5, 5),
        update(1, "x"),
        remove(2),
        additionOf(6, 6),
        remove(6),
        remove(3),
        additionOf(3, 3),
      );
      const page = await since(user, start);
      assert.deepEqual(shown(page.changed), ["5 5", "1 x", "3 3"]);
      assert.deepEqual(page.removed, [{ id: idOf(2), feedUrl: "https://feeds.example/2" }]);
      assert.deepEqual(await after(user, page.next), { changed: [], removed: [], next: page.next, hasMore: false });
    });

    test("changesSince: a number that the list never had → undefined", async () => {
      const user = newUser();
      const { sequence } = await change(user, ...additionsOf(1, 2));
      assert.ok(await isUnknown(user, sequence + 1));
      assert.ok(await isUnknown(newUser(), 1));
      const ahead = { sequence, removalsAfter: sequence + 1 };
      assert.equal(await changesSince(store, user, ahead, 10), undefined);
    });

    test("changesSince: pages with writes in between → the reader ends up with the list", async () => {
      const someChange = fc.oneof(
        fc.tuple(fc.nat({ max: 8 }), fc.nat({ max: 8 })).map(([id, feed]): Change => additionOf(id, feed)),
        fc.tuple(fc.nat({ max: 8 }), fc.nat({ max: 8 })).map(([id, feed]) => update(id, feed)),
        fc.nat({ max: 8 }).map(remove),
      );
      const step = fc.record({
        changes: fc.array(someChange, { maxLength: 6 }),
        limit: fc.integer({ min: 1, max: 4 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
          const user = newUser();
          const copy = new Map<string, Subscription>();
          let position = START;
          const read = async (limit: number) => {
            const page = await after(user, position, limit);
            assert.ok(page.changed.length + page.removed.length <= limit);
            for (const { id } of page.removed) copy.delete(id);
            for (const item of page.changed) copy.set(item.id, item);
            position = page.next;
            return page.hasMore;
          };
          for (const { changes, limit } of steps) {
            await change(user, ...changes);
            await read(limit);
          }
          while (await read(3));
          const byId = (items: Iterable<Subscription>) => [...items].sort((a, b) => a.id.localeCompare(b.id));
          assert.deepEqual(byId(copy.values()), byId(await listed(user)));
        }),
        { numRuns: runs(20) },
      );
    });

    test("changesSince: long URLs, titles and folders → shorter pages, and nothing is missing, whatever is written", async () => {
      const user = newUser();
      const [tail, folders] = ["x".repeat(1_800), ["a", "b", "c"].map((name) => name.repeat(300))];
      const long = (id: number): Change => ({ ...additionOf(id, `${id}/${tail}`), title: "t".repeat(100), folders });
      const ids = Array.from({ length: 900 }, (_, index) => index + 1);
      await change(user, ...ids.map(long));
      const copy = new Map<string, Subscription>();
      const read = async (position: ListPosition) => {
        const page = await after(user, position, 1_000);
        const { length } = [...page.changed, ...page.removed].flatMap((row) => Object.values(row).flat()).join("");
        assert.ok(length < 1.1 * MAX_PAGE_CHARS, `${length} characters`);
        for (const { id } of page.removed) copy.delete(id);
        for (const item of page.changed) copy.set(item.id, item);
        return page;
      };
      const readAll = async (start: ListPosition, write: (number: number) => Promise<unknown>) => {
        let page = await read(start);
        let pages = 1;
        for (; page.hasMore; pages += 1) {
          await write(pages);
          page = await read(page.next);
        }
        assert.deepEqual(new Map((await listed(user)).map((item) => [item.id, item])), copy);
        return { pages, next: page.next };
      };
      const whole = await readAll(START, (number) =>
        change(user, remove(number), remove(900 - number), update(10 + number, `new ${number}`), long(1_000 + number)),
      );
      assert.equal(whole.pages, 3);
      assert.equal(copy.size, 900 - 2);
      const removals = await listed(user);
      await change(user, ...removals.map(({ id }): Change => ({ kind: "remove", id })));
      const rest = await readAll(whole.next, () => change(user, long(1), long(2_000)));
      assert.deepEqual([rest.pages, copy.size], [2, 2]);
    });

    test("subscriptionBatches: items are removed and added meanwhile → no item that stays is missing", async () => {
      const user = newUser();
      await change(user, ...additionsOf(0, 1_000));
      const read: string[] = [];
      let next = 0;
      for await (const piece of subscriptionBatches(store, user)) {
        read.push(...piece.map(({ id }) => id));
        // Removes items that were already read, so that the later ones move up.
        await change(user, remove(next), remove(next + 1), additionOf(5_000 + next, 5_000 + next));
        next += 2;
      }
      assert.equal(new Set(read).size, read.length);
      const missing = additionsOf(0, 1_000).filter(({ id }) => !read.includes(id));
      assert.deepEqual(missing, []);
    });

    test("removals: removed items → newest first, with their times; not those added again", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 5));
      await change(user, remove(1), remove(2), remove(3), update(4, 40));
      await store.change(asUser(user), [remove(5), additionOf(2, 2), additionOf(6, 3)], LATER);
      const removals = await store.removals(user, 10);
      assert.deepEqual(shown(removals), ["5 5", "3 3", "1 1"]);
      assert.deepEqual(
        removals.map(({ removedAt }) => removedAt),
        [LATER, NOW, NOW],
      );
      assert.deepEqual(shown(await store.removals(user, 1)), ["5 5"]);
      assert.deepEqual(shown(await listRemovals(store, user, 10)), ["5 5", "1 1"], "feed 3 is there under another id");
      await store.forgetRemovals(LATER);
      assert.deepEqual(shown(await store.removals(user, 10)), ["5 5"]);
      assert.deepEqual(await store.removals(newUser(), 10), []);
    });

    test("removals: own title and folders → recorded with the removal", async () => {
      const user = newUser();
      const folders = ["News/Tech", "Äpfel"];
      await change(
        user,
        { ...additionOf(1, 1), title: "Mine", folders },
        { ...additionOf(2, 2), title: "Two" },
        additionOf(3, 3),
      );
      await change(user, remove(1), remove(2), remove(3));
      assert.deepEqual(
        (await store.removals(user, 10)).map((removal) => [removal.title, removal.folders, "title" in removal]),
        [
          [undefined, undefined, false],
          ["Two", undefined, true],
          ["Mine", folders, true],
        ],
      );
    });

    test("removals: the same feed removed several times → listed once, with the last time", async () => {
      const user = newUser();
      await change(user, additionOf(1, 1), remove(1), additionOf(2, 1));
      await store.change(asUser(user), [remove(2)], LATER);
      assert.deepEqual(shown(await listRemovals(store, user, 10)), ["2 1"]);
    });

    test("forgetRemovals: older than the limit → erased, and readers that have not seen them must start over", async () => {
      const user = newUser();
      const { sequence: start } = await change(user, ...additionsOf(1, 3));
      const { sequence: old } = await store.change(asUser(user), [remove(1)], NOW);
      await store.change(asUser(user), [remove(2)], LATER);
      await store.forgetRemovals(NOW);
      assert.equal((await since(user, start)).removed.length, 2, "it is not older");
      await store.forgetRemovals(LATER);
      assert.ok(await isUnknown(user, start));
      const { removed } = await since(user, old);
      assert.deepEqual(removed, [{ id: idOf(2), feedUrl: "https://feeds.example/2" }]);
      assert.deepEqual(shown((await since(user, 0)).changed), ["3 3"]);
    });

    test("forgetRemovals: the clock was set back in between → a removal stays until all earlier ones are old", async () => {
      const user = newUser();
      const { sequence: start } = await change(user, ...additionsOf(1, 5));
      const [old, young] = [new Date(NOW.getTime() - 1), LATER];
      for (const [feed, at] of [old, young, old, young].entries())
        await store.change(asUser(user), [remove(feed + 1)], at);
      const left = async () => shown(await store.removals(user, 10));
      await store.forgetRemovals(NOW);
      assert.deepEqual(await left(), ["4 4", "3 3", "2 2"]);
      assert.ok(await isUnknown(user, start));
      assert.equal((await since(user, start + 1)).removed.length, 3);
      await store.forgetRemovals(new Date(LATER.getTime() + 1));
      assert.deepEqual(await left(), []);
    });

    test("forgetRemovals: thousands that must stay → later ones of other users are erased", async () => {
      const [one, other] = [newUser(), newUser()];
      await change(one, ...additionsOf(1, 2_501));
      await change(other, ...additionsOf(1, 2));
      const removeAll = (from: number, count: number) =>
        additionsOf(from, count).map(({ id }): Change => ({ kind: "remove", id }));
      await store.change(asUser(one), removeAll(1, 1), LATER);
      await store.change(asUser(one), removeAll(2, 2_500), new Date(NOW.getTime() - 2));
      await store.change(asUser(other), removeAll(1, 1), new Date(NOW.getTime() - 1));
      await store.change(asUser(other), removeAll(2, 1), LATER);
      await store.forgetRemovals(NOW);
      assert.equal((await store.removals(one, 3_000)).length, 2_501);
      assert.deepEqual(shown(await store.removals(other, 10)), ["2 2"]);
      await store.forgetRemovals(new Date(LATER.getTime() + 1));
    });

    test("forgetRemovals: several thousand removals → all erased", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 1_500));
      const { sequence } = await change(
        user,
        ...additionsOf(1, 1_500).map(({ id }): Change => ({ kind: "remove", id })),
      );
      await store.forgetRemovals(LATER);
      assert.ok(await isUnknown(user, sequence - 1));
      const none = { changed: [], removed: [], next: positionAt(sequence), hasMore: false };
      assert.deepEqual(await since(user, sequence), none);
    });

    test("changesSince: whole list page by page after removals were forgotten → every page, and later removals", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 6), remove(2));
      await store.forgetRemovals(LATER);
      const first = await after(user, START, 2);
      assert.deepEqual([shown(first.changed), first.hasMore], [["1 1", "3 3"], true]);
      // An item that was read, one that was not, and a new one.
      await store.change(asUser(user), [remove(1), remove(5), additionOf(9, 9)], LATER);
      const second = await after(user, first.next, 2);
      assert.deepEqual([shown(second.changed), second.removed.length], [["4 4", "6 6"], 0]);
      const third = await after(user, second.next, 10);
      assert.deepEqual([shown(third.changed), third.hasMore], [["9 9"], false]);
      assert.ok(third.removed.some(({ id }) => id === idOf(1)));
      await store.forgetRemovals(new Date(LATER.getTime() + 1));
      assert.equal(await changesSince(store, user, second.next, 10), undefined);
    });

    test("sequences: users with and without a list → one number each, in their order", async () => {
      const [one, other, none] = [newUser(), newUser(), newUser()];
      await change(one, ...additionsOf(1, 3), remove(1));
      await change(other, ...additionsOf(1, 2));
      assert.deepEqual(await store.sequences([other, none, one, other]), [2, 0, 4, 2]);
      assert.deepEqual(await store.sequences([]), []);
      assert.equal((await store.page(one, { offset: 0, size: 1 })).sequence, 4);
      assert.equal((await store.page(none, { offset: 0, size: 1 })).sequence, 0);
    });

    test("watch: a change → the listener gets the user and the old and new number; nothing changed → nothing", async () => {
      const user = newUser();
      const seen: [UserId, number, number][] = [];
      store.watch((whose, { sequenceBefore, sequence }) => seen.push([whose, sequenceBefore, sequence]));
      await change(user, ...additionsOf(1, 2));
      await change(user, additionOf(9, 1), remove(8));
      await change(user, remove(1));
      store.watch(() => undefined);
      await change(user, remove(2));
      assert.deepEqual(seen, [
        [user, 0, 2],
        [user, 2, 3],
      ]);
    });

    test("epoch: any database → eight bytes", () => {
      assert.equal(store.epoch.length, 8);
    });
  });
}
