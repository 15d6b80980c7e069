import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { additionOf, idOf } from "../../../test/support/lists.ts";
import { fc, runs } from "../../../test/support/properties.ts";
import { type Author, asUser, BY_PAGE, BY_SERVER, type UserId } from "../../accounts/caller.ts";
import { type ChangeSet, isLarge, MAX_EDITED, undoneSets } from "../../lists/history.ts";
import { MAX_CHANGES_OF } from "../../lists/history-store.ts";
import type { Change, Update } from "../../lists/subscription.ts";
import { HistoryForgotten, type Scope, undo } from "../../lists/undo.ts";
import type { Store } from "../shared/contract.ts";

const START = Date.parse("2026-03-04T05:06:07Z");
const MINUTE = 60_000;
const app = (key: string): Author => ({ kind: "app", name: `${key} phone`, key });
const PHONE = app("a");
const DESK = app("b");

/** The contract of every engine for the history of lists. */
export function describeHistory(engine: string, store: Store): void {
  let users = 700_000;

  function newScene() {
    users += 1;
    const user: UserId = users;
    let now = START;
    const change = async (author: Author, ...changes: Change[]) => {
      const caller = { ...asUser(user), maxSubscriptions: 100_000, author };
      return (await store.change(caller, changes, new Date(now))).outcomes;
    };
    const add = (author: Author, from: number, count = 1) =>
      change(author, ...Array.from({ length: count }, (_, index) => additionOf(from + index, from + index)));
    const remove = (author: Author, ...ids: number[]) =>
      change(author, ...ids.map((id) => ({ kind: "remove", id: idOf(id) }) as const));
    const removeAs = (author: Author, ...ids: number[]) =>
      change(
        author,
        ...ids.map(
          (id) => ({ kind: "remove-feed", normalizedUrl: `feeds.example/${id}`, client: author.key }) as const,
        ),
      );
    const update = (author: Author, id: number, values: Omit<Update, "kind" | "id">) =>
      change(author, { kind: "update", id: idOf(id), ...values });
    const sets = async () => (await store.history.page(user, { offset: 0, size: 100 })).sets;
    const ignored = async () => (await store.history.page(user, { offset: 0, size: 1 })).ignored;
    const list = async () => (await store.page(user, { offset: 0, size: 10_000 })).items;
    const titles = async () => (await list()).map(({ id, title }) => [Number.parseInt(id.slice(-12), 16), title]);
    const undoSet = async (set: ChangeSet | undefined, scope: Scope, dryRun = false) => {
      assert.ok(set !== undefined);
      const caller = { ...asUser(user), maxSubscriptions: 100_000, author: BY_PAGE };
      const done = await undo(store, caller, set.first, { scope, dryRun, now: new Date(now) });
      return done ?? assert.fail("no such set");
    };
    const wait = (ms: number) => {
      now += ms;
    };
    return { user, change, add, remove, removeAs, update, sets, ignored, list, titles, undoSet, wait };
  }

  const brief = ({ kind, name, added, updated, removed }: ChangeSet) => [kind, name, added, updated, removed];

  describe(`history on ${engine}`, () => {
    test("history: nothing was changed → no sets", async () => {
      const { user, sets } = newScene();
      assert.deepEqual(await sets(), []);
      assert.equal((await store.history.page(user, { offset: 3, size: 5 })).total, 0);
      assert.equal(await store.history.find(user, 1), undefined);
    });

    test("history: writes of one author within ten minutes → one set; another author → another", async () => {
      const { add, remove, update, sets, wait } = newScene();
      await add(PHONE, 1, 3);
      wait(9 * MINUTE);
      await update(PHONE, 1, { title: "One" });
      await remove(PHONE, 2);
      wait(MINUTE);
      await add(DESK, 9);
      await add(PHONE, 10);
      wait(11 * MINUTE);
      await remove(PHONE, 3, 10);
      assert.deepEqual((await sets()).map(brief), [
        ["app", "a phone", 0, 0, 2],
        ["app", "a phone", 1, 0, 0],
        ["app", "b phone", 1, 0, 0],
        ["app", "a phone", 2, 0, 0],
      ]);
    });

    test("history: writes every nine minutes → a new set after an hour", async () => {
      const { add, sets, wait } = newScene();
      for (let index = 1; index <= 10; index += 1) {
        await add(PHONE, index);
        wait(9 * MINUTE);
      }
      assert.deepEqual(
        (await sets()).map(({ added }) => added),
        [3, 7],
      );
    });

    test("history: updates and removals in one set → net counts", async () => {
      const { add, remove, update, sets, wait } = newScene();
      await add(PHONE, 1, 4);
      wait(20 * MINUTE);
      for (const title of ["x", "y"]) await update(PHONE, 1, { title });
      await update(PHONE, 2, { title: "z" });
      await remove(PHONE, 2, 3);
      await add(PHONE, 7);
      await remove(PHONE, 7);
      assert.deepEqual(brief((await sets())[0] as ChangeSet), ["app", "a phone", 0, 1, 2]);
    });

    test("history: a change without effect → no set", async () => {
      const { add, update, remove, sets, wait } = newScene();
      await add(PHONE, 1);
      wait(20 * MINUTE);
      await update(DESK, 1, { title: "" });
      await remove(DESK, 5);
      await add(DESK, 1);
      assert.equal((await sets()).length, 1);
    });

    test("history: pages → newest first, with the total", async () => {
      const { user, add, wait } = newScene();
      for (let index = 1; index <= 7; index += 1) {
        await add(index % 2 === 0 ? PHONE : DESK, index);
        wait(MINUTE);
      }
      const firsts = async (offset: number, size: number) => {
        const page = await store.history.page(user, { offset, size });
        assert.equal(page.total, 7);
        return page.sets.map(({ first }) => first);
      };
      assert.deepEqual(await firsts(0, 3), [7, 6, 5]);
      assert.deepEqual(await firsts(3, 3), [4, 3, 2]);
      assert.deepEqual(await firsts(6, 3), [1]);
      assert.deepEqual(await firsts(0, 1), [7]);
      assert.deepEqual(await firsts(9, 3), []);
    });

    test("history of a subscription: added, updated, removed and restored → these sets, newest first, in pages", async () => {
      const { user, add, remove, update, undoSet, sets, wait } = newScene();
      await add(PHONE, 1, 3);
      wait(20 * MINUTE);
      await update(PHONE, 2, { title: "another" });
      await update(DESK, 1, { title: "x" });
      for (const title of ["y", "z"]) await update(DESK, 1, { title });
      await add(PHONE, 4);
      await remove(DESK, 1, 3);
      wait(20 * MINUTE);
      await undoSet((await sets())[0], "this");
      const of = async (id: number, offset = 0, size = 25) => {
        const page = await store.history.pageOf(user, idOf(id), { offset, size });
        return [page.total, ...page.sets.map(brief)];
      };
      const [added, twice] = [
        ["app", "a phone", 3, 0, 0],
        ["app", "b phone", 0, 1, 0],
      ];
      const [removed, undone] = [
        ["app", "b phone", 0, 0, 2],
        ["page", "", 2, 0, 0],
      ];
      assert.deepEqual(await of(1), [4, undone, removed, twice, added]);
      assert.deepEqual(await of(1, 0, 1), [4, undone]);
      assert.deepEqual(await of(1, 1, 2), [4, removed, twice]);
      assert.deepEqual(await of(1, 3, 2), [4, added]);
      assert.deepEqual(await of(1, 4, 2), [4]);
      assert.deepEqual(await of(2), [2, ["app", "a phone", 0, 1, 0], added]);
      assert.deepEqual(await of(3), [3, undone, removed, added]);
      assert.deepEqual(await of(4), [1, ["app", "a phone", 1, 0, 0]]);
      assert.deepEqual(await of(5), [0]);
      const { undos, sets: found } = await store.history.pageOf(user, idOf(3), { offset: 0, size: 3 });
      assert.deepEqual([...undoneSets(found, undos)], [found[1]?.first]);
      const foreign = await store.history.pageOf(user + 1_000_000, idOf(1), { offset: 0, size: 3 });
      assert.deepEqual(foreign, { sets: [], total: 0, undos: [], ignored: [] });
    });

    test("history of a subscription: more than its latest changes that count → only the sets of these", async () => {
      const { user, add, change, wait } = newScene();
      const of = async () => (await store.history.pageOf(user, idOf(1), { offset: 0, size: 5 })).sets.map(brief);
      const rename = (index: number) => ({ kind: "update", id: idOf(1), title: `title ${index}` }) as const;
      await add(PHONE, 1);
      wait(20 * MINUTE);
      await change(DESK, ...Array.from({ length: MAX_CHANGES_OF - 2 }, (_, index) => rename(index)));
      const updated = ["app", "b phone", 0, 1, 0];
      assert.deepEqual(await of(), [updated, ["app", "a phone", 1, 0, 0]]);
      await change(DESK, ...[1, 2, 3].map(rename));
      assert.deepEqual(await of(), [updated]);
    });

    test("history of a subscription: any changes by anyone → the sets whose changes name it", async () => {
      const step = fc.record({
        author: fc.constantFrom(PHONE, DESK, BY_PAGE),
        id: fc.integer({ min: 1, max: 4 }),
        kind: fc.constantFrom("add", "update", "remove"),
        pause: fc.constantFrom(0, 20),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
          const { user, add, remove, update, sets, list, wait } = newScene();
          /** By first sequence number of the set: what it touched. */
          const touched = new Map<number, Set<number>>();
          const sequence = async () => (await store.page(user, { offset: 0, size: 1 })).sequence;
          for (const [index, { author, id, kind, pause }] of steps.entries()) {
            const before = await sequence();
            if (kind === "update") await update(author, id, { title: `title ${index}` });
            else if (kind === "remove") await remove(author, id);
            else if (!(await list()).some((item) => item.id === idOf(id))) await add(author, id);
            wait(pause * MINUTE);
            if ((await sequence()) === before) continue;
            const { first } = (await sets())[0] ?? assert.fail("no set");
            touched.set(first, (touched.get(first) ?? new Set()).add(id));
          }
          for (const id of [1, 2, 3, 4]) {
            const { sets: found } = await store.history.pageOf(user, idOf(id), { offset: 0, size: 100 });
            const expected = [...touched].filter(([, ids]) => ids.has(id)).map(([first]) => first);
            assert.deepEqual(
              found.map(({ first }) => first),
              expected.toReversed(),
            );
          }
        }),
        { numRuns: runs(20) },
      );
    });

    test("is large: an app removes or adds more than half of a list of ten → a set of its own", async () => {
      const { add, remove, sets, wait } = newScene();
      await add(BY_PAGE, 1, 10);
      await add(PHONE, 11);
      wait(MINUTE);
      await remove(PHONE, 1, 2, 3, 4, 5, 6);
      wait(MINUTE);
      await add(PHONE, 20);
      const [after, large, before, page] = await sets();
      assert.deepEqual(
        [after, large, before, page].map((set) => set && isLarge(set)),
        [false, true, false, false],
      );
      assert.deepEqual(large && brief(large), ["app", "a phone", 0, 0, 6]);
    });

    test("is large: with several writes of one upload → one set; nine subscriptions, half of them, a person → not", async () => {
      const { add, remove, sets, wait } = newScene();
      await add(BY_PAGE, 1, 12);
      const upload = { ...PHONE, act: "x" };
      for (let index = 1; index <= 12; index += 1) await remove(upload, index);
      const [large] = await sets();
      assert.deepEqual(large && [isLarge(large), large.removed], [true, 12]);
      wait(MINUTE);
      await add(PHONE, 1, 9);
      await remove(DESK, 1, 2, 3, 4, 5, 6, 7, 8, 9);
      await add(DESK, 1, 10);
      await remove(PHONE, 1, 2, 3, 4, 5);
      await remove(BY_PAGE, 6, 7, 8, 9);
      assert.deepEqual((await sets()).map(isLarge), [false, false, false, false, true, false]);
    });

    test("undo this: what was removed comes back as it was, what was added goes, what was updated gets its old values", async () => {
      const { add, remove, update, undoSet, sets, list, titles, wait } = newScene();
      await add(BY_PAGE, 1, 3);
      await update(BY_PAGE, 1, { title: "One", folders: ["News"] });
      await update(BY_PAGE, 2, { title: "Two" });
      const before = await list();
      wait(20 * MINUTE);
      await remove(PHONE, 1);
      await update(PHONE, 2, { title: "2", feedUrl: "https://other.example/2", normalizedUrl: "other.example/2" });
      await add(PHONE, 4);
      const [set] = await sets();
      const preview = await undoSet(set, "this", true);
      assert.deepEqual({ ...preview, set: 0 }, { restored: 1, removed: 1, reverted: 1, skipped: [], set: 0 });
      assert.deepEqual(await titles(), [
        [2, "2"],
        [3, undefined],
        [4, undefined],
      ]);
      const done = await undoSet(set, "this");
      assert.deepEqual({ ...done, set: undefined }, preview);
      const byId = (await list()).toSorted((one, other) => (one.id < other.id ? -1 : 1));
      assert.deepEqual(byId, before);
    });

    test("undo this: changed later → reported, and not touched", async () => {
      const { add, remove, update, undoSet, sets, titles, wait } = newScene();
      await add(BY_PAGE, 1, 5);
      wait(20 * MINUTE);
      await remove(PHONE, 1, 2);
      await update(PHONE, 3, { title: "3" });
      await update(PHONE, 4, { title: "4" });
      await add(PHONE, 6, 2);
      const [set] = await sets();
      await add(DESK, 1);
      await update(DESK, 3, { title: "three" });
      await remove(DESK, 4, 6);
      await update(DESK, 7, { title: "seven" });
      const done = await undoSet(set, "this");
      assert.deepEqual([done.restored, done.removed, done.reverted], [1, 0, 0]);
      assert.deepEqual(done.skipped.map(({ id, code }) => [Number.parseInt(id.slice(-12), 16), code]).sort(), [
        [1, "already-subscribed"],
        [3, "changed-later"],
        [4, "not-found"],
        [6, "already-removed"],
        [7, "changed-later"],
      ]);
      assert.deepEqual((await titles()).sort(), [
        [1, undefined],
        [2, undefined],
        [3, "three"],
        [5, undefined],
        [7, "seven"],
      ]);
    });

    test("undo this: no room, id taken → reported", async () => {
      const { user, add, remove, sets, wait } = newScene();
      await add(BY_PAGE, 1, 3);
      wait(20 * MINUTE);
      await remove(PHONE, 1, 2);
      const [set] = await sets();
      const caller = { ...asUser(user), maxSubscriptions: 2, author: BY_PAGE };
      assert.ok(set !== undefined);
      for (const dryRun of [true, false]) {
        const done = await undo(store, caller, set.first, { scope: "this", dryRun, now: new Date(START) });
        assert.deepEqual([done?.restored, done?.skipped], [1, [{ id: idOf(2), code: "quota-exceeded" }]]);
      }
      const taken = newScene();
      await taken.add(BY_PAGE, 1);
      await taken.remove(PHONE, 1);
      const [removed] = await taken.sets();
      await taken.change(DESK, { ...additionOf(1, "another") });
      assert.deepEqual((await taken.undoSet(removed, "this")).skipped, [{ id: idOf(1), code: "id-in-use" }]);
    });

    test("undo: again → an undo is a set, and undoing it is the change again", async () => {
      const { user, add, remove, undoSet, sets, titles, wait } = newScene();
      await add(BY_PAGE, 1, 3);
      wait(20 * MINUTE);
      await remove(PHONE, 1, 2);
      const [removal] = await sets();
      const isUndone = async (set: ChangeSet | undefined) => {
        const page = await store.history.page(user, { offset: 0, size: 100 });
        return undoneSets(page.sets, page.undos).has(set?.first ?? 0);
      };
      const first = await undoSet(removal, "this");
      assert.equal(await isUndone(removal), true);
      const [undone] = await sets();
      assert.deepEqual([undone?.first, undone?.undoes, undone?.scope], [first.set, removal?.first, "this"]);
      await undoSet(undone, "this");
      assert.deepEqual(await titles(), [[3, undefined]]);
      assert.equal(await isUndone(removal), false);
      const [again] = await sets();
      await undoSet(again, "this");
      assert.equal(await isUndone(removal), true);
      assert.equal((await titles()).length, 3);
    });

    test("undo: a merge, a move → as before", async () => {
      const { change, update, add, undoSet, sets, list, wait } = newScene();
      await add(BY_PAGE, 1, 3);
      await update(BY_PAGE, 1, { title: "One" });
      const before = await list();
      wait(20 * MINUTE);
      await change(BY_SERVER, { kind: "remove", id: idOf(1), mergeInto: idOf(2) });
      await update(BY_SERVER, 3, { feedUrl: "https://new.example/3", normalizedUrl: "new.example/3" });
      const [set] = await sets();
      assert.deepEqual(
        (await list()).map(({ former_feed_urls }) => former_feed_urls),
        [["https://feeds.example/1"], ["https://feeds.example/3"]],
      );
      assert.deepEqual((await undoSet(set, "this")).skipped, []);
      const byId = (await list()).toSorted((one, other) => (one.id < other.id ? -1 : 1));
      assert.deepEqual(byId, before);
    });

    test("undo: the app removes again what was brought back → not within a day; other apps may", async () => {
      const { add, removeAs, undoSet, sets, ignored, titles, wait } = newScene();
      await add(BY_PAGE, 1, 3);
      wait(20 * MINUTE);
      await removeAs(PHONE, 1, 2);
      const [set] = await sets();
      await undoSet(set, "this");
      wait(23 * 60 * MINUTE);
      for (let times = 0; times < 3; times += 1) {
        const [refused] = await removeAs(PHONE, 1);
        assert.equal(refused?.kind === "refused" && refused.code, "already-subscribed");
      }
      assert.equal((await ignored()).length, 1);
      assert.deepEqual(
        (await removeAs(PHONE, 3)).map(({ kind }) => kind),
        ["done"],
      );
      assert.deepEqual(
        (await removeAs(DESK, 1)).map(({ kind }) => kind),
        ["done"],
      );
      wait(2 * 60 * MINUTE);
      assert.deepEqual(
        (await removeAs(PHONE, 2)).map(({ kind }) => kind),
        ["done"],
      );
      assert.deepEqual(await titles(), []);
    });

    test("undo: removals are forgotten → refused; additions can always be undone", async () => {
      const { user, add, remove, undoSet, sets, titles, wait } = newScene();
      await add(BY_PAGE, 1, 3);
      wait(20 * MINUTE);
      await remove(PHONE, 1);
      wait(20 * MINUTE);
      await add(PHONE, 4);
      const [added, removed, first] = await sets();
      await store.forgetRemovals(new Date(START + 1_000 * MINUTE));
      await assert.rejects(undoSet(removed, "this"), HistoryForgotten);
      await assert.rejects(undoSet(first, "since"), HistoryForgotten);
      assert.equal((await undoSet(first, "this")).removed, 2);
      await undoSet(added, "this");
      assert.deepEqual(await titles(), []);
      await store.history.forget(new Date(START + 10 * MINUTE));
      assert.equal((await store.history.page(user, { offset: 0, size: 9 })).total, 4);
    });

    test("history: more than 10,000 changes → the sets before are forgotten", { timeout: 120_000 }, async () => {
      const { user, add, sets, wait } = newScene();
      await add(BY_PAGE, 1);
      wait(20 * MINUTE);
      for (let from = 2; from < 10_002; from += 1_000) await add({ ...PHONE, act: "x" }, from, 1_000);
      assert.equal((await sets()).length, 2);
      await add(DESK, 20_000);
      assert.deepEqual(
        (await sets()).map(({ added }) => added),
        [1, 10_000],
      );
      assert.equal(await store.history.find(user, 1), undefined);
    });

    test("edits: more than 16 MiB of old values → the oldest updates cannot be undone", {
      timeout: 120_000,
    }, async () => {
      const { add, change, undoSet, sets, wait } = newScene();
      await add(BY_PAGE, 1, 2_000);
      const folders = Array.from({ length: 3 }, (_, index) => `${index}${"🎧".repeat(290)}`);
      for (let round = 0; round < 5; round += 1) {
        wait(20 * MINUTE);
        const updates = Array.from({ length: 2_000 }, (_, index) => ({
          kind: "update" as const,
          id: idOf(index + 1),
          title: `${round}`,
          folders,
        }));
        await change(PHONE, ...updates);
      }
      const all = await sets();
      assert.equal(all.length, 6);
      const { skipped, reverted } = await undoSet(all[0], "this", true);
      assert.deepEqual([skipped.length, reverted], [0, 2_000]);
      const oldest = await undoSet(all[3], "since", true);
      assert.ok(oldest.skipped.length > 0 && oldest.skipped.every(({ code }) => code === "not-found"));
      assert.ok(MAX_EDITED > 0);
    });

    test("property: random changes of several authors → undo since X is the list before X, undo of that the one after", () =>
      fc.assert(
        fc.asyncProperty(stories, async (story) => {
          const { change, undoSet, sets, list, wait } = newScene();
          const states: { readonly after: number; readonly list: Awaited<ReturnType<typeof list>> }[] = [];
          // The order of former URLs is that in which they ceased to be current, which an undo repeats.
          const sorted = async () =>
            (await list())
              .map((item) => ({ ...item, former_feed_urls: item.former_feed_urls?.toSorted() ?? [] }))
              .sort((one, other) => (one.id < other.id ? -1 : 1));
          for (const { author, changes, pause } of story) {
            const before = await sorted();
            const { length } = await sets();
            await change(author, ...changes);
            if ((await sets()).length > length) states.push({ after: length, list: before });
            wait(pause);
          }
          const chosen = states[Math.floor(states.length / 2)];
          if (chosen === undefined) return;
          const all = await sets();
          const end = await sorted();
          const done = await undoSet(all[all.length - 1 - chosen.after], "since");
          assert.deepEqual(done.skipped, []);
          assert.deepEqual(await sorted(), chosen.list);
          if (done.set === undefined) return;
          const undone = await undoSet((await sets())[0], "this");
          assert.deepEqual(undone.skipped, []);
          assert.deepEqual(await sorted(), end);
        }),
        { numRuns: runs(30) },
      ));
  });
}

const ids = fc.integer({ min: 1, max: 8 });
const changes: fc.Arbitrary<Change> = fc.oneof(
  { weight: 4, arbitrary: ids.map((id) => additionOf(id, id)) },
  { weight: 3, arbitrary: ids.map((id) => ({ kind: "remove", id: idOf(id) }) as const) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(ids, ids)
      .map(([id, into]) => ({ kind: "remove", id: idOf(id), mergeInto: idOf(into) }) as const),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(ids, fc.constantFrom("", "x", "y"), fc.constantFrom([], ["News"]))
      .map(([id, title, folders]) => ({ kind: "update", id: idOf(id), title, folders }) as const),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(ids, ids).map(([id, feed]) => {
      const { feedUrl, normalizedUrl } = additionOf(1, `moved/${feed}`);
      return { kind: "update", id: idOf(id), feedUrl, normalizedUrl } as const;
    }),
  },
);
const stories = fc.array(
  fc.record({
    author: fc.constantFrom(PHONE, DESK, BY_PAGE, BY_SERVER),
    changes: fc.array(changes, { minLength: 1, maxLength: 4 }),
    pause: fc.constantFrom(0, MINUTE, 15 * MINUTE),
  }),
  { minLength: 2, maxLength: 12 },
);
