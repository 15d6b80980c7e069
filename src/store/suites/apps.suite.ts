import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asUser } from "../../accounts/caller.ts";
import { MAX_DEVICES } from "../../apps/app-store.ts";
import { toAddition } from "../../lists/imports.ts";
import type { Addition } from "../../lists/subscription.ts";
import type { Store } from "../shared/contract.ts";
import { A, B, createAppContext, HOUR, play, START, url } from "./apps-test-support.ts";

/** The contract of every engine for app sync. `store` is empty. */
export function describeApps(engine: string, store: Store): void {
  const { sync, newUser, at, advance, add, remove, feeds, actions, upload, listed, positions } =
    createAppContext(store);

  describe(`apps on ${engine}`, () => {
    test("feeds: added by an app → the same id as by an import, and sent to all clients", async () => {
      const user = newUser();
      const { rewritten } = await add(user, A, url("a"), ` ${url("b")} `, "antennapod_local:x", "", url("a"));
      assert.deepEqual(rewritten, [
        [` ${url("b")} `, url("b")],
        ["antennapod_local:x", ""],
      ]);
      const { items } = await store.page(user, { offset: 0, size: 10 });
      const ids = [url("a"), url("b")].map((one) => (toAddition(one) as Addition).id);
      assert.deepEqual(
        items.map(({ id }) => id),
        ids,
      );
      assert.deepEqual((await feeds(user, B, 0)).add, [url("a"), url("b")]);
    });

    test("feeds: no change → the same timestamp for all, on an empty account too", async () => {
      const user = newUser();
      const first = await feeds(user, A, 0);
      assert.ok(first.timestamp >= 2 && first.timestamp < 2 ** 31);
      advance(5_000);
      assert.deepEqual(await feeds(user, B, 0), first);
      assert.deepEqual(await feeds(user, A, first.timestamp), first);
    });

    test("feeds: changes within one second → a timestamp, or one second more, returns all that follows", async () => {
      const user = newUser();
      const { timestamp } = await feeds(user, A, 0);
      await add(user, B, url("a"));
      assert.deepEqual((await feeds(user, A, timestamp)).add, [url("a")]);
      assert.deepEqual((await feeds(user, A, timestamp + 1)).add, [url("a")]);
      const second = (await feeds(user, A, timestamp)).timestamp;
      assert.ok(second >= timestamp + 2);
      for (const since of [second, second + 1]) assert.deepEqual((await feeds(user, A, since)).add, []);
      await add(user, B, url("b"));
      assert.deepEqual((await feeds(user, A, second + 1)).add, [url("b")]);
    });

    test("feeds: written by others between GET and POST → the POST's timestamp does not skip it", async () => {
      const user = newUser();
      await feeds(user, A, 0);
      await add(user, B, url("b"));
      const { timestamp } = await add(user, A, url("a"));
      assert.deepEqual((await feeds(user, A, timestamp)).add, [url("b"), url("a")]);
    });

    test("feeds: nobody else has written → the POST's timestamp covers the client's own upload", async () => {
      const user = newUser();
      await feeds(user, A, 0);
      const { timestamp } = await add(user, A, url("a"));
      assert.deepEqual((await feeds(user, A, timestamp)).add, []);
    });

    test("feeds: uploaded before the first GET → the timestamp skips nothing", async () => {
      const user = newUser();
      await add(user, B, url("b"));
      const { timestamp } = await add(user, A, url("a"));
      assert.ok(timestamp >= 2);
      assert.deepEqual((await feeds(user, A, timestamp)).add, [url("b"), url("a")]);
    });

    test("feeds: a clock an hour ahead or behind → nothing is skipped", async () => {
      for (const offset of [-HOUR, HOUR]) {
        const user = newUser();
        await feeds(user, A, 0);
        await add(user, B, url("b"));
        assert.deepEqual((await feeds(user, A, Math.floor(at().getTime() / 1_000) + offset)).add, [url("b")]);
        await remove(user, B, url("b"));
        assert.deepEqual((await feeds(user, A, Math.floor(at().getTime() / 1_000) + offset)).remove, [url("b")]);
      }
    });

    test("feeds: a clock ahead, and a lost response → the repeated request gets it again", async () => {
      const user = newUser();
      await feeds(user, A, 0);
      await add(user, B, url("b"));
      const since = Math.floor(at().getTime() / 1_000) + HOUR;
      for (let times = 0; times < 3; times += 1) assert.deepEqual((await feeds(user, A, since)).add, [url("b")]);
      assert.deepEqual((await feeds(user, A, since + 9)).add, []);
    });

    test("feeds: a first sync → no removals; later → only of feeds that the client can know", async () => {
      const user = newUser();
      await add(user, B, url("a"), url("b"));
      await remove(user, B, url("a"));
      const first = await feeds(user, A, 0);
      assert.deepEqual([first.add, first.remove], [[url("b")], []]);
      await add(user, B, url("c"));
      await remove(user, B, url("c"), url("b"));
      assert.deepEqual((await feeds(user, A, first.timestamp)).remove, [url("b")]);
    });

    test("feeds: uploaded by the client, although already in the list → its removal is sent", async () => {
      const user = newUser();
      const { timestamp } = await feeds(user, A, 0);
      await add(user, B, url("a"));
      await add(user, A, url("a"));
      await remove(user, B, url("a"));
      assert.deepEqual((await feeds(user, A, timestamp)).remove, [url("a")]);
    });

    test("feeds: removed → in every spelling that was uploaded or sent", async () => {
      const user = newUser();
      await add(user, B, "https://feeds.example/a");
      const { timestamp } = await feeds(user, A, 0);
      await remove(user, B, url("a"));
      await add(user, B, "http://feeds.example/a/");
      const again = await feeds(user, A, timestamp);
      assert.deepEqual([again.add, again.remove], [["http://feeds.example/a/"], []]);
      await store.change(asUser(user), [{ kind: "remove-feed", normalizedUrl: "feeds.example/a" }], at());
      const { remove: removed } = await feeds(user, A, again.timestamp);
      assert.deepEqual([...removed].sort(), ["http://feeds.example/a/", "https://feeds.example/a"]);
    });

    test("feeds: removed by a percent-decoded URL → found", async () => {
      const user = newUser();
      await add(user, A, "https://feeds.example/a%3Ab%20c%2Fd", "https://feeds.example/%41");
      assert.deepEqual(
        (await remove(user, A, "https://feeds.example/a:b c/d", "https://feeds.example/x y")).rewritten,
        [["https://feeds.example/x y", ""]],
      );
      assert.deepEqual(await listed(user), ["https://feeds.example/%41"]);
    });

    test("feeds: same string in add and remove → removed; another spelling → stays", async () => {
      const user = newUser();
      const both = { add: [url("a"), url("b")], remove: [url("a"), "http://feeds.example/b"] };
      await sync.changeFeeds(asUser(user), A, both, at());
      assert.deepEqual(await listed(user), [url("b")]);
    });

    test("feeds: the whole list is uploaded → replaced", async () => {
      const user = newUser();
      await add(user, A, url("a"), url("b"));
      await feeds(user, B, 0);
      await add(user, A, url("new"));
      await sync.replaceFeeds(asUser(user), B, [url("b"), url("c")], at());
      assert.deepEqual(await listed(user), [url("b"), url("new"), url("c")], "without what the sender had seen");
      await sync.replaceFeeds(asUser(user), B, [url("b")], at());
      assert.deepEqual(await listed(user), [url("b"), url("new")], "without what the sender had added");
    });

    test("feeds: the list is full → what does not fit is not accepted", async () => {
      const caller = { ...asUser(newUser()), maxSubscriptions: 1 };
      const { rewritten } = await sync.changeFeeds(caller, A, { add: [url("a"), url("b")], remove: [] }, at());
      assert.deepEqual(rewritten, [[url("b"), ""]]);
    });

    test("feeds: more than a batch → all of them", async () => {
      const user = newUser();
      const many = Array.from({ length: 1_100 }, (_, index) => url(String(index)));
      const { timestamp } = await add(user, A, ...many);
      assert.deepEqual((await feeds(user, B, 0)).add, many);
      assert.deepEqual((await feeds(user, A, timestamp)).add, []);
    });

    test("actions: several of an episode → the later time wins, then the later upload", async () => {
      const user = newUser();
      const time = (seconds: number) => ({ actedAt: new Date(START - 100_000 + 1_000 * seconds) });
      await upload(user, A, play("x", 10, time(5)), play("y", 1, time(5)));
      await upload(user, B, play("x", 20, time(4)), play("y", 2, time(5)), play("z", 3, time(1)));
      assert.deepEqual(await positions(user, A, 0), [
        ["x", 10],
        ["y", 2],
        ["z", 3],
      ]);
    });

    test("actions: a losing play → its client gets the winner again; repeated → nothing changes", async () => {
      const user = newUser();
      const behind = play("x", 9, { actedAt: new Date(START - HOUR * 1_000) });
      await upload(user, B, play("x", 5));
      const first = await actions(user, A, 0);
      const { timestamp } = await upload(user, A, behind);
      assert.equal(timestamp, first.timestamp);
      const again = await actions(user, A, timestamp);
      assert.deepEqual(
        again.actions.map(({ position }) => position),
        [5],
      );
      assert.equal((await upload(user, A, behind)).timestamp, again.timestamp);
      assert.deepEqual(await positions(user, A, again.timestamp), []);
    });

    test("actions: uploaded again → no change, same timestamp; same values later → sent again", async () => {
      const user = newUser();
      const { timestamp } = await upload(user, A, play("x", 10));
      advance(10_000);
      assert.equal((await upload(user, A, play("x", 10))).timestamp, timestamp);
      await upload(user, B, play("x", 10, { actedAt: new Date(START + 1_000) }));
      assert.deepEqual(await positions(user, A, timestamp), [["x", 10]]);
    });

    test("actions: new ones before a stored one → all in the order of the upload, the stored one once", async () => {
      const user = newUser();
      const { timestamp } = await upload(user, A, play("x", 1), play("y", 2));
      const later = { actedAt: new Date(START + 1_000) };
      await upload(user, A, play("v", 3), play("w", 4), play("x", 5, later), play("y", 2), play("v", 6, later));
      const all = [
        ["y", 2],
        ["w", 4],
        ["x", 5],
        ["v", 6],
      ];
      assert.deepEqual(await positions(user, B, 0), all);
      assert.deepEqual(await positions(user, A, timestamp), all.slice(1));
    });

    test("actions: a late upload of an old action → sent, whatever its time", async () => {
      const user = newUser();
      const { timestamp } = await actions(user, A, 0);
      await upload(user, B, play("x", 10, { actedAt: new Date(START - 40 * 24 * HOUR * 1_000) }));
      assert.deepEqual(await positions(user, A, timestamp), [["x", 10]]);
    });

    test("actions: other kinds → kept beside the play, which they do not replace", async () => {
      const user = newUser();
      await upload(
        user,
        A,
        play("x", 10),
        ...(["new", "delete", "download"] as const).map((kind) => play("x", 9, { kind })),
      );
      const { actions: all } = await actions(user, B, 0);
      assert.deepEqual(
        all.map(({ kind, position }) => [kind, position]),
        [
          ["play", 10],
          ["new", undefined],
          ["delete", undefined],
          ["download", undefined],
        ],
      );
      assert.deepEqual(await listed(user), []);
    });

    test("actions: unusable ones → skipped, the others stored with all their members", async () => {
      const user = newUser();
      const whole = play("x", 10.9, { guid: "g", device: "tablet", total: 99, actedAt: new Date(START - 400) });
      const { rewritten } = await upload(
        user,
        A,
        play("a", undefined),
        play("b", -1),
        { ...play("c", 1), episode: "file:///c" },
        { ...play("d", 1), podcast: "" },
        { ...play("e", 1), guid: "g".repeat(1_025) },
        whole,
      );
      assert.deepEqual(rewritten, [
        ["file:///c", ""],
        ["", ""],
      ]);
      const all = [];
      for await (const some of sync.everyAction(user)) all.push(...some);
      const [action = assert.fail()] = all;
      const { sequence: _, superseded: __, feedKey: ___, title, publishedAt, ...stored } = action;
      assert.deepEqual([title, publishedAt], [undefined, undefined]);
      assert.equal(all.length, 1);
      assert.deepEqual(stored, { ...whole, position: 10, actedAt: new Date(Math.floor(START / 1_000) * 1_000) });
      assert.ok((await store.apps.devices(user)).some(({ id }) => id === "tablet"));
    });

    test("actions: requested for one podcast, also percent-decoded → only its own", async () => {
      const user = newUser();
      await upload(user, A, play("x", 1, { podcast: url("a%20b") }), play("y", 2));
      const found = (await actions(user, A, 0, url("a b"))).actions;
      assert.deepEqual(
        found.map(({ position }) => position),
        [1],
      );
      assert.deepEqual((await actions(user, A, 0, "nothing")).actions, []);
      // The timestamp does not cover the actions of other podcasts.
      assert.deepEqual(await positions(user, B, (await actions(user, B, 0, url("a"))).timestamp), [
        ["x", 1],
        ["y", 2],
      ]);
    });

    test("actions: a time in the future → the time of the upload", async () => {
      const user = newUser();
      await upload(user, A, play("x", 1, { actedAt: new Date("2040-01-01") }));
      advance(2_000);
      await upload(user, B, play("x", 2, { actedAt: at() }));
      assert.deepEqual(await positions(user, A, 0), [["x", 2]]);
    });

    test("feeds: a subscription gets another feed → new apps get it, others keep the URL that they have", async () => {
      const user = newUser();
      await add(user, A, url("a"));
      const { timestamp } = await feeds(user, A, 0);
      const [{ id } = { id: "" }] = (await store.page(user, { offset: 0, size: 1 })).items;
      const update = async (feedUrl: string) => {
        const { normalizedUrl } = toAddition(feedUrl) as Addition;
        await store.change(asUser(user), [{ kind: "update", id, feedUrl, normalizedUrl }], at());
      };
      await update(url("b"));
      const changes = await feeds(user, A, timestamp);
      assert.deepEqual([changes.add, changes.remove], [[], []], "it is not known yet whether the old URL leads to it");
      await update(`${url("b")}/`);
      const again = await feeds(user, A, changes.timestamp);
      assert.deepEqual([again.add, again.remove], [[], []], "the same feed");
      const first = await feeds(user, B, 0);
      assert.deepEqual([first.add, first.remove], [[`${url("b")}/`], []]);
    });

    test("devices: first use, save, change, forget → listed accordingly", async () => {
      const user = newUser();
      await feeds(user, A, 0);
      await store.apps.saveDevice(asUser(user), B, { caption: "Desk", type: "desktop" }, at());
      await store.apps.saveDevice(asUser(user), B, { caption: "My desk" }, at());
      const [desk, phone] = await store.apps.devices(user);
      assert.deepEqual([desk?.id, desk?.caption, desk?.type], ["desk", "My desk", "desktop"]);
      assert.deepEqual(phone, { id: "phone", caption: "phone", type: "other", app: "", syncedAt: at() });
      assert.equal(await store.apps.changeDevice(asUser(user), "desk", { type: "laptop" }, at()), true);
      assert.equal(await store.apps.changeDevice(asUser(user), "nobody", { type: "laptop" }, at()), false);
      assert.equal(await store.apps.forgetDevice(asUser(user), "desk", at()), true);
      assert.equal(await store.apps.forgetDevice(asUser(user), "desk", at()), false);
      advance(10 * 60_000);
      await feeds(user, A, 0);
      assert.deepEqual(
        (await store.apps.devices(user)).map(({ syncedAt }) => syncedAt),
        [at()],
      );
    });

    test("actions in pages: any offset and size → in order, with the total; also of one feed", async () => {
      const user = newUser();
      const some = Array.from({ length: 25 }, (_, index) =>
        play(String(index), index, { podcast: url(index % 5 === 0 ? "b%2Fc" : "a") }),
      );
      await upload(user, A, ...some);
      // These replace others, which leaves gaps in the sequence numbers.
      await upload(user, A, ...some.slice(3, 9).map((one) => ({ ...one, actedAt: new Date(START + 1_000) })));
      const all = (await actions(user, A, 0)).actions;
      assert.equal(all.length, 25);
      const page = async (offset: number, size: number, feedUrl?: string) => {
        const { items, total } = await sync.actionPage(user, { offset, size }, feedUrl);
        return { total, positions: items.map(({ position }) => position) };
      };
      const inOrder = all.map(({ position }) => position);
      for (const [offset, size] of [
        [0, 10],
        [10, 10],
        [20, 10],
        [24, 100],
        [25, 1],
        [1_000, 5],
        [3, 1],
      ] as const)
        assert.deepEqual(await page(offset, size), { total: 25, positions: inOrder.slice(offset, offset + size) });
      const ofB = inOrder.filter((position) => (position ?? 0) % 5 === 0);
      assert.deepEqual(await page(1, 3, url("b%2Fc/")), { total: 5, positions: ofB.slice(1, 4) });
      assert.deepEqual(await page(0, 3, url("none")), { total: 0, positions: [] });
      assert.deepEqual(await sync.actionPage(newUser(), { offset: 0, size: 5 }, undefined), { items: [], total: 0 });
    });

    test("devices: more than the limit → the one that synchronized longest ago is forgotten", async () => {
      const user = newUser();
      for (let number = 0; number < MAX_DEVICES; number += 1) {
        advance(1_000);
        await store.apps.saveDevice(asUser(user), { key: "x", device: `d${number}` }, {}, at());
      }
      await upload(user, { key: "x", device: undefined }, play("x", 1, { device: "named" }));
      advance(1_000);
      await feeds(user, A, 0);
      const ids = (await store.apps.devices(user)).map(({ id }) => id);
      assert.equal(ids.length, MAX_DEVICES);
      assert.deepEqual([ids.includes("phone"), ids.includes("d0"), ids.includes("named")], [true, false, false]);
    });

    test("removals are forgotten → so are the spellings of feeds that are not subscribed", async () => {
      const user = newUser();
      await add(user, A, url("a"), url("b"));
      await remove(user, A, url("a"));
      advance(60_000);
      await store.forgetRemovals(at());
      const kept = await store.apps.spellings(user, ["feeds.example/a", "feeds.example/b"]);
      assert.deepEqual(
        kept.map(({ url: spelling }) => spelling),
        [url("b")],
      );
    });
  });
}
