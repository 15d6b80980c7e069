import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asUser,
  type Draft,
  everySubscription,
  type Malformed,
  StoreUnavailable,
  type Subscription,
  type SubscriptionStore,
  subscribe,
} from "./subscriptions.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");

const CALLER = asUser(7);
const draft = (id: string): Draft => ({ id, guid: id, feedUrl: `https://feeds.example/${id}`, feed: id });
const refused = (reason: string): Malformed => ({ refused: "invalid-operation", reason, at: "" });
const kept = ({ id, feedUrl }: Draft): Subscription => ({ id, feedUrl, subscribedAt: NOW });

/** Only what is asked for here: the promises of a store are held by its own suite. */
const storeOf = (store: Partial<SubscriptionStore>) => store as SubscriptionStore;

test("what was refused before stays refused, and the rest is answered in its place", async () => {
  const asked: unknown[] = [];
  const store = storeOf({
    async add(caller, drafts, at) {
      asked.push([caller, drafts, at]);
      return drafts.map((one) => (one.id === "b" ? { refused: "id-in-use", draft: one } : kept(one)));
    },
  });
  const [a, b, c] = [draft("a"), draft("b"), draft("c")];
  const outcomes = await subscribe(store, CALLER, [refused("1"), a, b, refused("2"), c], NOW);
  assert.deepEqual(outcomes, [refused("1"), kept(a), { refused: "id-in-use", draft: b }, refused("2"), kept(c)]);
  assert.deepEqual(asked, [[CALLER, [a, b, c], NOW]]);
});

test("a store that has nothing to do is not asked", async () => {
  const store = storeOf({ add: () => assert.fail("it was asked") });
  assert.deepEqual(await subscribe(store, CALLER, [refused("1")], NOW), [refused("1")]);
  assert.deepEqual(await subscribe(store, CALLER, [], NOW), []);
});

test("answers that are too few or too many are given to nobody", async () => {
  for (const answers of [[], [kept(draft("a")), kept(draft("b"))]]) {
    await assert.rejects(subscribe(storeOf({ add: async () => answers }), CALLER, [draft("a")], NOW), /another number/);
  }
});

test("a whole list is read piece by piece, each item once and in order", async () => {
  const all = Array.from({ length: 500 }, (_, index) => kept(draft(String(index))));
  const sizes: number[] = [];
  const store = storeOf({
    async page(user, { offset, size }) {
      assert.equal(user, 7);
      return { items: all.slice(offset, offset + size), total: all.length };
    },
  });
  const read = [];
  for await (const piece of everySubscription(store, 7)) {
    sizes.push(piece.length);
    read.push(...piece);
  }
  assert.deepEqual(read, all);
  assert.deepEqual(sizes, [200, 200, 100]);
});

test("a store that did nothing says so, unless it says otherwise", () => {
  const { unknown, cause } = new StoreUnavailable("x");
  assert.deepEqual([unknown, cause], [false, undefined]);
  const other = new StoreUnavailable("x", { unknown: true, cause: "y" });
  assert.deepEqual([other.unknown, other.cause], [true, "y"]);
});
