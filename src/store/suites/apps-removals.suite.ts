import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { collect } from "../../../test/support/app-clients.ts";
import { asUser } from "../../accounts/caller.ts";
import { toAddition } from "../../lists/imports.ts";
import type { Addition } from "../../lists/subscription.ts";
import type { Store } from "../shared/contract.ts";
import { A, B, createAppContext, url } from "./apps-test-support.ts";

/** What apps are told about removed feeds, for every engine. */
export function describeAppRemovals(engine: string, store: Store): void {
  const { sync, newUser, at, add, remove, feeds } = createAppContext(store);

  describe(`removals for apps on ${engine}`, () => {
    test("feeds: more removals than a batch → in pages; read halfway → not seen, and sent again", async () => {
      const user = newUser();
      const many = Array.from({ length: 1_100 }, (_, index) => url(String(index)));
      await add(user, B, ...many);
      const { timestamp } = await feeds(user, A, 0);
      await remove(user, B, ...many);
      const { add: added, remove: removed } = await sync.feedsSince(asUser(user), A, timestamp, at());
      assert.deepEqual(await collect(added), []);
      let pages = 0;
      for await (const page of removed) {
        assert.ok(page.length <= 200, "a page is short");
        pages += 1;
        if (pages === 2) break;
      }
      // Another timestamp: what it was sent last counts.
      assert.deepEqual((await feeds(user, A, timestamp + 1_000)).remove, many);
      assert.deepEqual((await feeds(user, A, timestamp + 2_000)).remove, []);
    });

    test("feeds: many removed and added again in another spelling → every spelling is in later removals", async () => {
      const user = newUser();
      const spelled = (scheme: string) =>
        Array.from({ length: 600 }, (_, index) => `${scheme}://feeds.example/${index}`);
      const changesOf = (urls: readonly string[]) => urls.map((one) => toAddition(one) as Addition);
      await store.change(asUser(user), changesOf(spelled("https")), at());
      const { timestamp } = await feeds(user, A, 0);
      const removals = changesOf(spelled("https")).map(
        ({ normalizedUrl }) => ({ kind: "remove-feed", normalizedUrl }) as const,
      );
      await store.change(asUser(user), [...removals, ...changesOf(spelled("http"))], at());
      const again = await feeds(user, A, timestamp);
      assert.deepEqual([again.add.length, again.remove], [600, []]);
      await store.change(asUser(user), removals, at());
      assert.deepEqual(
        (await feeds(user, A, again.timestamp)).remove.toSorted(),
        [...spelled("http"), ...spelled("https")].sort(),
      );
    });

    test("feeds: more or longer spellings of a feed than are kept → only the first, also in one upload", async () => {
      const user = newUser();
      const spelled = (from: number, count: number) =>
        Array.from({ length: count }, (_, index) => `https://feeds.example:443/a#${from + index}`);
      assert.equal(new Set(spelled(0, 150).map((one) => (toAddition(one) as Addition).normalizedUrl)).size, 1);
      const recorded = async () => (await store.apps.spellings(user, ["feeds.example/a"])).map((one) => one.url).sort();
      await add(user, A, ...spelled(0, 60), ...spelled(0, 60));
      assert.deepEqual(await recorded(), spelled(0, 60).sort());
      await add(user, A, ...spelled(60, 500));
      assert.deepEqual(await recorded(), spelled(0, 100).sort());
      await add(user, A, ...spelled(560, 10));
      assert.equal((await recorded()).length, 100);
      const long = Array.from({ length: 50 }, (_, index) => `${url("long")}#${index}${"x".repeat(1_900)}`);
      await add(user, A, ...long);
      assert.equal((await store.apps.spellings(user, ["feeds.example/long"])).length, 5, "the first 8 KiB");
    });
  });
}
