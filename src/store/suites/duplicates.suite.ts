import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { learn } from "../../../test/support/fetching.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import { readFeedUrl } from "../../lists/feed-url.ts";
import { findDuplicates, MAX_DISMISSALS } from "../../podcasts/duplicates.ts";
import type { PodcastRecord } from "../../podcasts/podcast-store.ts";
import type { Store } from "../shared/contract.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const uuid = (number: number) => `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;

/** What is stored about duplicates, for every engine. */
export function describeDuplicates(engine: string, open: () => Promise<Store>): void {
  describe(`duplicates on ${engine}`, async () => {
    const store = await open();
    after(() => store.close());
    let [users, feeds] = [7_000_000, 0];
    const newUser = (): UserId => ++users;

    const subscribe = async (user: UserId, count: number) => {
      const additions = Array.from({ length: count }, () => {
        const feedUrl = `https://feeds.example/duplicates/${++feeds}`;
        const parsed = readFeedUrl(feedUrl);
        const normalizedUrl = parsed.kind === "valid" ? parsed.normalizedUrl : assert.fail();
        return { kind: "add", id: uuid(feeds), feedUrl, normalizedUrl } as const;
      });
      for (let start = 0; start < count; start += 1_000)
        await store.change(asUser(user), additions.slice(start, start + 1_000), NOW);
      return additions;
    };
    const know = async (feedUrl: string, known: Partial<PodcastRecord>) => void (await learn(store, feedUrl, known));
    const find = (user: UserId) => findDuplicates(store.duplicates, user, () => undefined);

    test("duplicates: podcasts of a list in several batches → groups in the order of the list", async () => {
      const user = newUser();
      const list = await subscribe(user, 450);
      const [first, second, third, fourth] = [3, 201, 399, 449].map((index) => list[index] ?? assert.fail());
      const site = { title: "T", homepageUrl: "https://site.example/" };
      await know(fourth?.feedUrl ?? "", { podcastGuid: "g" });
      await know(second?.feedUrl ?? "", { podcastGuid: "g" });
      await know(third?.feedUrl ?? "", site);
      await know(first?.feedUrl ?? "", site);
      assert.deepEqual(
        (await find(user)).map(({ reason, subscriptions }) => [reason, subscriptions]),
        [
          ["same-title-and-site", [first?.id, third?.id]],
          ["same-guid", [second?.id, fourth?.id]],
        ],
      );
      assert.deepEqual(await find(newUser()), []);
    });

    test("duplicates: a dismissed group → gone for that user, until it has another member", async () => {
      const [user, other] = [newUser(), newUser()];
      const list = await subscribe(user, 3);
      for (const { feedUrl } of list.slice(0, 2)) await know(feedUrl, { podcastGuid: "dismissed" });
      await store.change(
        asUser(other),
        list.map((each) => ({ ...each })),
        NOW,
      );
      const [group = assert.fail()] = await find(user);
      await store.duplicates.dismiss(asUser(user), group.id, NOW);
      await store.duplicates.dismiss(asUser(user), group.id, new Date());
      assert.deepEqual(await find(user), []);
      assert.deepEqual(await store.duplicates.dismissals(user), [{ id: group.id, dismissedAt: NOW }]);
      assert.deepEqual(
        (await find(other)).map(({ id }) => id),
        [group.id],
      );

      await know(list[2]?.feedUrl ?? "", { podcastGuid: "dismissed" });
      const [larger = assert.fail()] = await find(user);
      assert.equal(larger.subscriptions.length, 3);
      assert.notEqual(larger.id, group.id);
    });

    test("duplicates: more decisions than the limit → the oldest are forgotten", async () => {
      const user = newUser();
      const caller = asUser(user);
      for (let start = 0; start <= MAX_DISMISSALS; start += 500)
        await Promise.all(
          Array.from({ length: 500 }, (_, index) =>
            store.duplicates.dismiss(caller, uuid(start + index), new Date(NOW.getTime() + start + index)),
          ),
        );
      const kept = await store.duplicates.dismissals(user);
      assert.ok(kept.length <= MAX_DISMISSALS && kept.length >= MAX_DISMISSALS - 100, String(kept.length));
      assert.equal(kept[0]?.id, uuid(MAX_DISMISSALS + 499));
      assert.ok(kept.every(({ id }) => id > uuid(300)));
    });
  });
}
