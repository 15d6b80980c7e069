import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { learn } from "../../../test/support/fetching.ts";
import { asUser, type UserId } from "../../accounts/caller.ts";
import type { Store } from "../shared/contract.ts";
import { A, createAppContext, play, START, url } from "./apps-test-support.ts";

const HOUR = 60 * 60 * 1_000;
const AT = new Date(START);

/** Titles of episodes, for every engine. */
export function describeTitles(engine: string, open: () => Promise<Store>): void {
  describe(`titles on ${engine}`, async () => {
    const store = await open();
    after(() => store.close());
    const { titles, podcasts } = store;
    const { newUser, add, upload, sync, listed } = createAppContext(store);
    let feeds = 0;
    const newUrl = () => url(`titles/${++feeds}`);
    const untitled = async (user: UserId, feedUrl: string) =>
      (await titles.untitled(user, feedUrl, "", 100)).map(({ mediaUrl, guid }) => [mediaUrl.split("/").at(-1), guid]);
    const stored = async (user: UserId) => {
      const pages = [];
      for await (const page of sync.everyAction(user)) pages.push(...page);
      return pages.map(({ episode, kind, title, publishedAt }) => [
        `${kind} ${episode.split("/").at(-1)}`,
        title,
        publishedAt?.getTime(),
      ]);
    };
    const keep = async (user: UserId, feedUrl: string, named: Readonly<Record<string, string>>) => {
      const found = await titles.untitled(user, feedUrl, "", 1_000);
      const titled = found.flatMap(({ key, mediaUrl }) => {
        const title = named[mediaUrl.split("/").at(-1) ?? ""];
        return title === undefined ? [] : [{ key, title, publishedAt: START }];
      });
      await titles.keepTitles(user, feedUrl, titled);
    };
    /** A feed that has been fetched, with validators, and is due in a week. */
    const fetched = async (feedUrl: string, more = {}) =>
      (
        await learn(store, feedUrl, {
          etag: "e",
          lastModified: "m",
          checkedAt: START,
          nextAt: START + 168 * HOUR,
          ...more,
        })
      ).id;
    const request = async (user: UserId, at = AT) => {
      for (let rounds = 0; !(await titles.requestTitles(user, at)); rounds += 1) assert.ok(rounds < 50);
    };
    /** What the next fetch starts with; undefined if the feed is not due within an hour. */
    const claim = async (id: string, ms = HOUR) => {
      const at = new Date(START + ms);
      const record = await podcasts.claim(id, at, new Date(at.getTime() + 1));
      if (record !== undefined)
        await podcasts.record(id, new Date(at.getTime() + 1), { ...record, nextAt: START + 168 * HOUR });
      return record && [record.etag, record.lastModified];
    };

    test("titles: kept for actions of all kinds, in any spelling of the feed, and by other users not", async () => {
      const [user, other] = [newUser(), newUser()];
      const feed = newUrl();
      for (const each of [user, other]) await add(each, A, feed);
      const podcast = feed.replace("https", "http");
      const guid = { guid: "g" };
      await upload(user, A, play("1", 5, { podcast: feed, ...guid }), play("2", 5, { podcast }));
      await upload(user, A, play("1", undefined, { podcast, kind: "download" }));
      await upload(other, A, play("1", 5, { podcast: feed }));
      assert.deepEqual((await untitled(user, feed)).sort(), [
        ["1", "g"],
        ["2", ""],
      ]);
      await keep(user, feed, { 1: "One 🎧" });
      assert.deepEqual(await stored(user), [
        ["play 1", "One 🎧", START],
        ["play 2", undefined, undefined],
        ["download 1", "One 🎧", START],
      ]);
      assert.deepEqual(await untitled(user, feed), [["2", ""]]);
      assert.deepEqual(await stored(other), [["play 1", undefined, undefined]]);
    });

    test("titles: a later action of the same kind → has the title", async () => {
      const user = newUser();
      const feed = newUrl();
      await add(user, A, feed);
      await upload(user, A, play("1", 5, { podcast: feed }), play("2", 5, { podcast: feed }));
      await keep(user, feed, { 1: "One" });
      const later = { podcast: feed, actedAt: new Date(START + 1_000) };
      await upload(user, A, play("1", 6, later), play("2", 6, later), play("3", 6, later));
      // It loses, and the winner gets a new number.
      await upload(user, A, play("1", 1, { podcast: feed, actedAt: new Date(START - 1_000) }));
      assert.deepEqual((await stored(user)).toSorted(), [
        ["play 1", "One", START],
        ["play 2", undefined, undefined],
        ["play 3", undefined, undefined],
      ]);
    });

    test("titles: an action without one → the feed is due within the hour, without validators, once", async () => {
      const user = newUser();
      const feed = newUrl();
      await add(user, A, feed);
      const id = await fetched(feed);
      await request(user);
      assert.equal(await claim(id), undefined);
      await upload(user, A, play("1", 5, { podcast: feed }));
      await request(user);
      assert.deepEqual(await claim(id, HOUR - 1), undefined);
      assert.deepEqual(await claim(id), [null, null]);
      await fetched(feed);
      await request(user);
      assert.equal(await claim(id), undefined);
      // The same episode again.
      await keep(user, feed, { 1: "One" });
      await upload(user, A, play("1", 7, { podcast: feed, actedAt: new Date(START + 5_000) }));
      await upload(user, A, play("1", undefined, { podcast: feed, kind: "download" }));
      await request(user);
      assert.equal(await claim(id), undefined);
      assert.deepEqual(
        (await stored(user)).map(([, title]) => title),
        ["One", "One"],
      );
      await upload(user, A, play("2", 5, { podcast: feed }));
      await request(user);
      assert.deepEqual(await claim(id), [null, null]);
    });

    test("titles: a feed that fails, waits for its publisher or is being fetched → not earlier", async () => {
      const user = newUser();
      const [failing, waiting, busy] = [newUrl(), newUrl(), newUrl()];
      await add(user, A, failing, waiting, busy);
      const ids = [
        await fetched(failing, { failure: "other" }),
        await fetched(waiting, { notBefore: START + 5 * HOUR }),
        await fetched(busy, { nextAt: START }),
      ] as const;
      const lease = new Date(START + 10_000);
      const record = (await podcasts.claim(ids[2], AT, lease)) ?? assert.fail();
      await upload(user, A, ...[failing, waiting, busy].map((podcast) => play("1", 5, { podcast })));
      assert.equal(await titles.requestTitles(user, AT), false);
      await podcasts.record(ids[2], lease, { ...record, etag: "new", checkedAt: START, nextAt: START + 168 * HOUR });
      await request(user);
      assert.deepEqual(await claim(ids[0], 2 * HOUR), undefined);
      assert.deepEqual(await claim(ids[1], 2 * HOUR), undefined);
      assert.deepEqual(await claim(ids[1], 5 * HOUR), [null, null]);
      assert.deepEqual(await claim(ids[2]), [null, null]);
    });

    test("titles: feeds that have moved, are percent-encoded or not in the list → only those of the list are due", async () => {
      const user = newUser();
      const [old, current, foreign] = [newUrl(), newUrl(), newUrl()];
      const encoded = `${newUrl()}%20a%3Ab`;
      await add(user, A, old, encoded);
      const { items } = await store.page(user, { offset: 0, size: 10 });
      const id = items.find(({ feedUrl }) => feedUrl === old)?.id ?? assert.fail();
      const normalizedUrl = current.replace("https://", "");
      await store.change(asUser(user), [{ kind: "update", id, feedUrl: current, normalizedUrl }], AT);
      assert.deepEqual((await listed(user)).sort(), [current, encoded].sort());
      const ids = [await fetched(current), await fetched(encoded)];
      const stranger = newUser();
      await add(stranger, A, foreign);
      const other = await fetched(foreign);
      await upload(user, A, ...[old, decodeURIComponent(encoded), foreign].map((podcast) => play("1", 5, { podcast })));
      await request(user);
      assert.deepEqual(await Promise.all(ids.map((each) => claim(each))), [
        [null, null],
        [null, null],
      ]);
      assert.equal(await claim(other), undefined);
      await keep(user, current, { 1: "Moved" });
      await keep(user, encoded, { 1: "Encoded" });
      assert.deepEqual(
        (await stored(user)).map(([, title]) => title),
        ["Moved", "Encoded", undefined],
      );
      // Now it is in the list.
      await add(user, A, foreign);
      await titles.requestTitlesOf(user, [current, encoded, foreign], AT);
      assert.deepEqual(await Promise.all([...ids, other].map((each) => claim(each))), [
        undefined,
        undefined,
        [null, null],
      ]);
    });

    test("titles: users with new actions → found, page by page", async () => {
      const [first, second, third] = [newUser(), newUser(), newUser()];
      for (const user of [first, second, third]) await add(user, A, url("a"));
      for (const user of [first, third]) await upload(user, A, play("1", 5));
      const find = async () => {
        const found: UserId[] = [];
        for (let last: UserId | undefined = first - 1; last !== undefined; ) {
          const page: Awaited<ReturnType<typeof titles.usersToCheck>> = await titles.usersToCheck(last, 2);
          found.push(...page.users);
          last = page.last;
        }
        return found;
      };
      assert.deepEqual(await find(), [first, third]);
      for (const user of [first, third]) await request(user);
      assert.deepEqual(await find(), []);
    });

    test("titles: 2,500 actions → in several steps, and all titles are kept", async () => {
      const user = newUser();
      const feed = newUrl();
      await add(user, A, feed);
      const id = await fetched(feed);
      await upload(user, A, ...Array.from({ length: 2_500 }, (_, index) => play(String(index), 5, { podcast: feed })));
      await request(user);
      assert.deepEqual(await claim(id), [null, null]);
      const found = [];
      for (let after = ""; ; ) {
        const page = await titles.untitled(user, feed, after, 999);
        found.push(...page);
        if (page.length < 999) break;
        after = page.at(-1)?.key ?? "";
      }
      assert.equal(new Set(found.map(({ key }) => key)).size, 2_500);
      await titles.keepTitles(
        user,
        feed,
        found.map(({ key }) => ({ key, title: "T" })),
      );
      assert.deepEqual(await untitled(user, feed), []);
    });
  });
}
