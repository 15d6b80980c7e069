import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { additionOf, additionsOf, idOf, resultOf } from "../../../test/support/lists.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import { changesSince, positionAt } from "../../lists/changes.ts";
import { type SubscriptionStore, subscriptionBatches } from "../../lists/list-store.ts";
import type { Change } from "../../lists/subscription.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const LATER = new Date("2026-03-02T03:04:05.678Z");

const TITLE = 'Ärger & "Spaß" 🎧 \\ {null}';
const FOLDERS = ["News/Tech", 'a, b {c} "d"', "\\"];

let users = 2_000_000;
function newUser(): UserId {
  users += 1;
  return users;
}

/** Titles and folders, for every engine. */
export function describeDetails(engine: string, store: SubscriptionStore): void {
  const changeAt = async (at: Date, user: UserId, ...changes: Change[]) => {
    const { outcomes, ...written } = await store.change(asUser(user), changes, at);
    return { outcomes: outcomes.map(resultOf), ...written };
  };
  const change = (user: UserId, ...changes: Change[]) => changeAt(NOW, user, ...changes);
  const subscription = (number: number) => {
    const { id, feedUrl } = additionOf(number, number);
    return { id, feedUrl, subscribedAt: NOW };
  };

  describe(`titles and folders on ${engine}`, () => {
    test("details: set on add → in the outcome and in every read", async () => {
      const user = newUser();
      const [plain, both, title, folders] = [1, 2, 3, 4].map((number) => additionOf(number, number));
      if (plain === undefined || both === undefined || title === undefined || folders === undefined) assert.fail();
      const { outcomes, sequence } = await change(
        user,
        plain,
        { ...both, title: TITLE, folders: FOLDERS },
        { ...title, title: "t" },
        { ...folders, folders: ["f"] },
      );
      const expected = [
        subscription(1),
        { ...subscription(2), title: TITLE, folders: FOLDERS },
        { ...subscription(3), title: "t" },
        { ...subscription(4), folders: ["f"] },
      ];
      assert.deepEqual(outcomes, expected);
      assert.deepEqual((await store.page(user, { offset: 0, size: 10 })).items, expected);
      assert.deepEqual((await store.page(user, { offset: 1, size: 2 })).items, expected.slice(1, 3));
      assert.deepEqual(
        await store.find(user, [
          { ...both, kind: "id" },
          { ...both, kind: "feed" },
        ]),
        [expected[1], expected[1]],
      );
      const listed = [];
      for await (const items of subscriptionBatches(store, user)) listed.push(...items);
      assert.deepEqual(listed, expected);
      assert.deepEqual((await changesSince(store, user, positionAt(0), 10))?.changed, expected);
      // The outcome of a removal is the subscription as it was.
      assert.deepEqual((await change(user, { kind: "remove", id: both.id })).outcomes, [expected[1]]);
      assert.equal(sequence, 4);
    });

    test("details: empty title and folders → as if they were not given", async () => {
      const user = newUser();
      const { outcomes } = await change(user, { ...additionOf(1, 1), title: "", folders: [] });
      assert.deepEqual(outcomes, [subscription(1)]);
      assert.deepEqual(await store.find(user, [{ kind: "id", id: idOf(1) }]), [subscription(1)]);
    });

    test("update: title or folders → the rest stays, and it is one change", async () => {
      const user = newUser();
      await change(user, ...additionsOf(1, 3));
      const renamed = { ...subscription(2), title: TITLE };
      const update = (details: object): Change => ({ kind: "update", id: idOf(2), ...details });
      const at = (update: Change) => changeAt(LATER, user, update);
      assert.deepEqual(await at(update({ title: TITLE })), { outcomes: [renamed], sequenceBefore: 3, sequence: 4 });
      const moved = { ...renamed, folders: FOLDERS };
      assert.deepEqual((await at(update({ folders: FOLDERS }))).outcomes, [moved]);
      assert.deepEqual((await store.page(user, { offset: 1, size: 1 })).items, [moved]);
      assert.deepEqual((await changesSince(store, user, positionAt(3), 10))?.changed, [moved]);
      const { feedUrl, normalizedUrl } = additionOf(0, "new");
      assert.deepEqual((await at(update({ feedUrl, normalizedUrl, title: "" }))).outcomes, [
        { ...subscription(2), feedUrl, folders: FOLDERS, former_feed_urls: [subscription(2).feedUrl] },
      ]);
      assert.deepEqual((await at(update({ folders: [], former_feed_urls: [] }))).outcomes, [
        { ...subscription(2), feedUrl },
      ]);
      assert.equal((await changesSince(store, user, positionAt(3), 10))?.changed.length, 1);
    });

    test("details: together longer than the limit → refused, the other changes of the request are applied", async () => {
      const user = newUser();
      const folders = ["a", "b", "c"].map((name) => name.repeat(300));
      const update = (details: object): Change => ({ kind: "update", id: idOf(1), ...details });
      const longest = { title: "🎧".repeat(124), folders };
      const { outcomes: added } = await change(user, { ...additionOf(2, 2), title: "x".repeat(125), folders });
      assert.deepEqual(added, ["details-too-long"]);
      const { outcomes, sequence } = await change(
        user,
        { ...additionOf(1, 1), ...longest },
        { ...additionOf(2, 2), title: "x".repeat(125), folders },
        update({ title: "x".repeat(125) }),
        update({ folders: [...folders, "d"] }),
        additionOf(3, 3),
        update({ title: "", folders: [...folders, "d".repeat(124)] }),
      );
      const tooLong = "details-too-long";
      assert.deepEqual(outcomes.slice(0, 5), [
        { ...subscription(1), ...longest },
        tooLong,
        tooLong,
        tooLong,
        subscription(3),
      ]);
      assert.deepEqual(outcomes[5], { ...subscription(1), folders: [...folders, "d".repeat(124)] });
      assert.equal(sequence, 3);
      assert.equal((await store.page(user, { offset: 0, size: 9 })).total, 2);
    });

    test("update: nothing new → no change of the list", async () => {
      const user = newUser();
      await change(user, { ...additionOf(1, 1), title: "t", folders: ["f"] });
      const { feedUrl, normalizedUrl } = additionOf(1, 1);
      const updates = [{}, { title: "t" }, { folders: ["f"] }, { feedUrl, normalizedUrl, title: "t", folders: ["f"] }];
      const { outcomes, sequence } = await change(
        user,
        ...updates.map((details): Change => ({ kind: "update", id: idOf(1), ...details })),
      );
      assert.deepEqual(outcomes, Array(4).fill({ ...subscription(1), title: "t", folders: ["f"] }));
      assert.equal(sequence, 1);
    });

    test("change: mixed in one request → each sees what those before it did", async () => {
      const user = newUser();
      const update = (number: number, details: object): Change => ({ kind: "update", id: idOf(number), ...details });
      const { outcomes } = await change(
        user,
        { ...additionOf(1, 1), title: "one" },
        update(1, { folders: ["f"] }),
        { kind: "remove", id: idOf(1) },
        update(1, { title: "gone" }),
        additionOf(1, 1),
        update(1, { title: "again" }),
      );
      assert.deepEqual(
        outcomes.map((outcome) => (typeof outcome === "string" ? outcome : "done")),
        ["done", "done", "done", "not-found", "done", "done"],
      );
      assert.deepEqual(outcomes[2], { ...subscription(1), title: "one", folders: ["f"] });
      assert.deepEqual((await store.page(user, { offset: 0, size: 9 })).items, [
        { ...subscription(1), title: "again" },
      ]);
    });
  });
}
