import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Store } from "../shared/contract.ts";
import { url } from "./apps-test-support.ts";
import { createMoveContext, HOUR_MS, QUIET } from "./moves-test-support.ts";

const [A, B, C] = [url("a"), url("b"), url("c")];
const [E1, E2] = ["e1", "e2"];

/** What holds for feeds that move, for every engine. */
export function describeMoves(engine: string, store: Store): void {
  const newScene = createMoveContext(store);

  /** A is listed, and the app has it. */
  const start = async (...apps: string[]) => {
    const scene = newScene();
    await scene.person.add(A);
    const started = apps.map((key) => scene.app(key));
    for (const app of started) await app.poll();
    const [phone = scene.app("phone"), other = scene.app("other")] = started;
    return { ...scene, phone, other };
  };

  describe(`what apps are told of moves on ${engine}`, () => {
    test("moves: the old URL leads to the new one → apps that have the old one are told nothing", async () => {
      const { person, server, phone } = await start("phone");
      await person.move(A, B);
      assert.deepEqual(await phone.poll(), QUIET, "before the look");
      await server.look(A, B, "none");
      assert.deepEqual(await phone.poll(), QUIET, "without an answer");
      await server.look(A, B, "leads");
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("moves: a new app → gets the current URL, once", async () => {
      const { person, server, app } = await start();
      await person.move(A, B);
      await server.look(A, B, "leads");
      const fresh = app("fresh");
      assert.deepEqual(await fresh.poll(), { add: [B], remove: [] });
      assert.deepEqual(await fresh.poll(), QUIET);
    });

    test("moves: a known app asks for everything → gets the URL that it has, and has no other", async () => {
      const { person, server, phone, advance } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "leads");
      assert.deepEqual(await phone.poll(0), { add: [A], remove: [] });
      assert.deepEqual(await phone.poll(), QUIET);
      await phone.upload({ add: [B] });
      assert.deepEqual(await phone.poll(0), { add: [B], remove: [] });
      // It no longer has A, so it is not told about that.
      for (const _ of [1, 2, 3]) {
        await server.look(A, B, "elsewhere");
        advance(40 * HOUR_MS);
      }
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("moves: the old URL leads elsewhere → apps replace it, once, and get all actions again", async () => {
      const { person, server, phone, other } = await start("phone", "other");
      await other.play(A, [E1, 10], [E2, 20]);
      await phone.actions();
      assert.deepEqual(await phone.actions(), []);
      await person.move(A, B);
      await server.look(A, B, "elsewhere");
      const lost = phone.since;
      const told = { add: [B], remove: [A] };
      assert.deepEqual(await phone.poll(), told);
      assert.deepEqual(await phone.poll(lost), told, "the response was lost");
      assert.deepEqual(await phone.poll(), QUIET);
      const plays = [
        [B, E1, 10],
        [B, E2, 20],
      ];
      const lostActions = phone.actionsSince;
      assert.deepEqual(await phone.actions(), plays);
      assert.deepEqual(await phone.actions(undefined, lostActions), plays, "the response was lost");
      assert.deepEqual(await phone.actions(), []);
    });

    test("moves: an echo of the removal that the server ordered → changes nothing", async () => {
      const { person, server, phone, list } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "elsewhere");
      await phone.poll();
      await phone.upload({ remove: [A] });
      await phone.upload({ remove: [A] });
      assert.deepEqual(await list(), [B]);
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("moves: another move before the look at the first → only looks at the current URL count", async () => {
      const { person, server, phone } = await start("phone");
      await person.move(A, B);
      await person.move(B, C);
      await server.look(A, B, "elsewhere");
      assert.deepEqual(await phone.poll(), QUIET);
      await server.look(A, C, "elsewhere");
      assert.deepEqual(await phone.poll(), { add: [C], remove: [A] });
    });

    test("moves: the old URL stops leading here, seen three times in 72 hours → apps replace it", async () => {
      const { person, server, phone, advance } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "leads");
      await phone.poll();
      for (const _ of [1, 2]) {
        await server.look(A, B, "elsewhere");
        advance(36 * HOUR_MS);
        await server.look(A, B, "none");
        assert.deepEqual(await phone.poll(), QUIET);
      }
      await server.look(A, B, "elsewhere");
      assert.deepEqual(await phone.poll(), { add: [B], remove: [A] });
    });

    test("moves: doubts that a look removes → start again", async () => {
      const { person, server, phone, advance } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "leads");
      for (const look of ["elsewhere", "elsewhere", "leads", "elsewhere", "elsewhere"] as const) {
        await server.look(A, B, look);
        advance(40 * HOUR_MS);
      }
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("moves: undone → apps that kept the first URL are told nothing", async () => {
      const { person, server, phone, app, list } = await start("phone");
      await person.move(A, B);
      const late = app("late");
      await late.poll();
      await person.move(B, A);
      assert.deepEqual(await list(), [A]);
      await server.look(B, A, "elsewhere");
      assert.deepEqual(await phone.poll(), QUIET);
      assert.deepEqual(await late.poll(), { add: [A], remove: [B] });
    });

    test("moves: the order to replace a URL is lost, and the move undone → removing the other URL removes nothing", async () => {
      const { person, server, phone, list } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "elsewhere");
      const lost = phone.since;
      assert.deepEqual(await phone.poll(), { add: [B], remove: [A] });
      await person.move(B, A);
      phone.since = lost;
      await phone.poll();
      await phone.upload({ remove: [B] });
      assert.deepEqual(await list(), [A]);
    });

    test("moves: undone, and the other URL leads elsewhere → it can be subscribed as another podcast", async () => {
      const { person, server, list } = await start();
      await person.move(A, B);
      await person.move(B, A);
      await server.look(B, A, "leads");
      assert.equal((await person.add(B))?.kind, "refused");
      const again = newScene();
      await again.person.add(A);
      await again.person.move(A, B);
      await again.person.move(B, A);
      await again.server.look(B, A, "elsewhere");
      assert.equal((await again.person.add(B))?.kind, "done");
      assert.deepEqual([await list(), await again.list()], [[A], [A, B]]);
    });
  });

  describe(`what apps and clients say of moves on ${engine}`, () => {
    test("moves: the old URL is added again → the same subscription, with its id", async () => {
      const { person, server, phone, find, list } = await start("phone");
      await person.move(A, B);
      const { id } = await find(B);
      assert.deepEqual(await person.add(A), { kind: "refused", code: "already-subscribed", existingId: id });
      assert.deepEqual(await phone.upload({ add: [A] }), [[A, B]]);
      await server.look(A, B, "elsewhere");
      assert.deepEqual(await person.add(A), { kind: "refused", code: "already-subscribed", existingId: id });
      assert.deepEqual(await list(), [B]);
    });

    test("moves: gPodder uploads the old URL → replaces it, unless it has the current one, too", async () => {
      for (const has of ["neither", "polled", "uploaded"]) {
        const { person, app, list } = await start();
        await person.move(A, B);
        const gpodder = app("desktop", "mygpoclient/1.9");
        if (has === "polled") await gpodder.poll();
        assert.deepEqual(
          await gpodder.upload({ add: has === "uploaded" ? [A, B] : [A] }),
          has === "neither" ? [[A, B]] : [],
          has,
        );
        await gpodder.upload({ remove: [B] });
        assert.deepEqual(await list(), has === "neither" ? [] : [B], has);
        await gpodder.upload({ remove: [A] });
        assert.deepEqual(await list(), [], has);
      }
    });

    test("moves: an app removes the URL that it has → removed everywhere, in all its URLs", async () => {
      const { person, server, phone, other, app, list } = await start("phone", "other");
      await person.move(A, B);
      await server.look(A, B, "leads");
      const late = app("late");
      await late.poll();
      await phone.upload({ remove: [A] });
      assert.deepEqual(await list(), []);
      for (const each of [other, late]) {
        const { add, remove } = await each.poll();
        assert.deepEqual([add, [...remove].sort()], [[], [A, B]]);
        assert.deepEqual(await each.poll(), QUIET);
      }
      assert.deepEqual((await phone.poll()).add, []);
    });

    test("moves: an app replaces the old URL by the current one → the subscription stays", async () => {
      for (const isOneUpload of [true, false]) {
        const { person, server, phone, find, list } = await start("phone");
        await person.move(A, B);
        await server.look(A, B, "leads");
        const { id } = await find(B);
        assert.deepEqual(await phone.poll(), QUIET);
        if (isOneUpload) await phone.upload({ add: [B], remove: [A] });
        else {
          await phone.upload({ add: [B] });
          await phone.upload({ remove: [A] });
        }
        assert.deepEqual(await list(), [B]);
        assert.equal((await find(B)).id, id);
        assert.deepEqual(await phone.poll(), QUIET);
        assert.deepEqual(await phone.poll(0), { add: [B], remove: [] });
      }
    });

    test("moves: an app removes the old URL, then adds the current one → everything is restored", async () => {
      const { person, phone, find, change } = await start("phone");
      await person.move(A, B);
      const { id } = await find(B);
      await change({ kind: "update", id, title: "Own title", folders: ["News"] });
      const before = await find(B);
      await phone.upload({ remove: [A] });
      await phone.upload({ add: [B] });
      assert.deepEqual({ ...(await find(B)), subscribedAt: 0 }, { ...before, subscribedAt: 0 });
      assert.deepEqual(before.former_feed_urls, [A]);
    });

    test("moves: an app that has the old URL removes the current one → it followed by itself: removed", async () => {
      for (const look of ["leads", "none"] as const) {
        const { person, server, phone, list } = await start("phone");
        await person.move(A, B);
        await server.look(A, B, look);
        await phone.upload({ remove: [B] });
        assert.deepEqual(await list(), []);
      }
    });

    test("moves: an app that has an old URL, which leads elsewhere, removes the current one → stays", async () => {
      const { person, server, phone, list } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "elsewhere");
      await phone.upload({ remove: [B] });
      assert.deepEqual(await list(), [B]);
    });

    test("moves: actions under any URL → one row per episode, sent under the URL that each app has", async () => {
      const { person, server, phone, other, app } = await start("phone", "other");
      await phone.play(A, [E1, 10]);
      await other.actions();
      await person.move(A, B);
      await server.look(A, B, "leads");
      const fresh = app("fresh");
      await fresh.poll();
      assert.deepEqual(await fresh.actions(), [[B, E1, 10]]);
      await fresh.play(B, [E1, 30], [E2, 5]);
      assert.deepEqual(await other.actions(), [
        [A, E1, 30],
        [A, E2, 5],
      ]);
      for (const podcast of [A, B])
        assert.deepEqual(await fresh.actions(podcast, 0), [
          [B, E1, 30],
          [B, E2, 5],
        ]);
    });

    test("moves: an action under a URL that the app never had → it has switched to that", async () => {
      const { person, server, phone, other } = await start("phone", "other");
      await person.move(A, B);
      await server.look(A, B, "leads");
      await phone.play(B, [E1, 10]);
      await other.play(A, [E2, 20]);
      assert.deepEqual(
        (await phone.actions()).filter(([, episode]) => episode === E2),
        [[B, E2, 20]],
      );
      assert.deepEqual(await phone.poll(0), { add: [B], remove: [] });
    });

    test("moves: an action from an old queue, under a URL that was replaced → comes back under the new one", async () => {
      const { person, server, phone } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "elsewhere");
      await phone.poll();
      await phone.actions();
      await phone.play(A, [E1, 10]);
      assert.deepEqual(await phone.actions(), [[B, E1, 10]]);
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("moves: a whole list with an old URL → stays; without a feed that the sender has not seen → stays", async () => {
      const { person, server, phone, list } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "leads");
      await person.add(C);
      await phone.put(A);
      assert.deepEqual(await list(), [B, C]);
      await phone.poll();
      await phone.put(A);
      assert.deepEqual(await list(), [B]);
      await phone.put();
      assert.deepEqual(await list(), []);
    });

    test("lists: a whole list from a sender that has not seen a feed → that feed stays", async () => {
      const { person, phone, other, list } = await start("phone", "other");
      await person.add(B);
      await phone.put(A);
      assert.deepEqual(await list(), [A, B]);
      await phone.poll();
      await other.upload({ add: [C] });
      await phone.put(A);
      assert.deepEqual(await list(), [A, C]);
    });
  });

  describe(`merging on ${engine}`, () => {
    const startTwo = async () => {
      const scene = newScene();
      await scene.person.add(A, { title: "Own title", folders: ["News"] });
      await scene.person.add(B);
      const [phone, other] = [scene.app("phone"), scene.app("other")];
      await phone.poll();
      await other.poll();
      return { ...scene, phone, other };
    };

    test("merges: URLs, title, folders and positions → those of the one that stays", async () => {
      const { person, server, phone, other, find, list } = await startTwo();
      await phone.play(A, [E1, 10], [E2, 20]);
      await other.play(B, [E1, 30]);
      await phone.actions();
      await other.actions();
      const { id } = await find(B);
      await person.merge(A, B);
      assert.deepEqual(await list(), [B]);
      const merged = await find(B);
      assert.deepEqual(
        [merged.id, merged.title, merged.folders, merged.former_feed_urls],
        [id, "Own title", ["News"], [A]],
      );
      assert.deepEqual((await other.actions()).sort(), [
        [B, E1, 30],
        [B, E2, 20],
      ]);
      await server.look(A, B, "leads");
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("merges: the other URL leads elsewhere → apps remove it, and keep the one that stays", async () => {
      const { person, server, phone, list } = await startTwo();
      await person.merge(A, B);
      assert.deepEqual(await phone.poll(), QUIET);
      await server.look(A, B, "elsewhere");
      assert.deepEqual(await phone.poll(), { add: [], remove: [A] });
      await phone.upload({ remove: [A] });
      assert.deepEqual(await list(), [B]);
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("merges: own title and folders → kept", async () => {
      const { person, find, change } = await startTwo();
      await change({ kind: "update", id: (await find(B)).id, title: "Mine", folders: ["Tech"] });
      await person.merge(A, B);
      const { title, folders } = await find(B);
      assert.deepEqual([title, folders], ["Mine", ["Tech"]]);
    });

    test("merges: into itself or an unknown one → refused, nothing changes", async () => {
      const { find, change, items } = await startTwo();
      const before = await items();
      const { id } = await find(A);
      const unknown = "00000000-0000-4000-8000-000000000000";
      const outcomes = await change(
        { kind: "remove", id, mergeInto: id },
        { kind: "remove", id, mergeInto: unknown },
        { kind: "remove", id: unknown, mergeInto: id },
      );
      assert.deepEqual(outcomes, [
        { kind: "refused", code: "merge-into-itself" },
        { kind: "refused", code: "merge-target-not-found" },
        { kind: "refused", code: "not-found" },
      ]);
      assert.deepEqual(await items(), before);
    });

    test("merges: one that others were merged into → all URLs find the last", async () => {
      const { person, server, phone, find, list } = await startTwo();
      await person.add(C);
      await phone.poll();
      await phone.play(A, [E1, 10]);
      await person.merge(A, B);
      await person.merge(B, C);
      assert.deepEqual(await list(), [C]);
      const { id, former_feed_urls } = await find(C);
      assert.deepEqual(former_feed_urls, [B, A]);
      for (const each of [A, B])
        assert.deepEqual(await person.add(each), { kind: "refused", code: "already-subscribed", existingId: id });
      assert.deepEqual(await phone.actions(B, 0), [[C, E1, 10]]);
      for (const each of [A, B]) await server.look(each, C, "leads");
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("merges: undone by adding the other again → both have all actions", async () => {
      const { person, phone, find, list } = await startTwo();
      await phone.play(A, [E1, 10]);
      await phone.play(B, [E2, 20]);
      await person.merge(A, B);
      await person.forget(B);
      await person.add(A);
      assert.deepEqual((await list()).sort(), [A, B]);
      assert.equal((await find(B)).former_feed_urls, undefined);
      for (const each of [A, B])
        assert.deepEqual((await phone.actions(each, 0)).map(([, episode]) => episode).sort(), [E1, E2]);
    });
  });

  describe(`former URLs on ${engine}`, () => {
    test("former URLs: newest first, twenty at most; those beyond stop blocking", async () => {
      const { person, find, list, advance } = await start();
      for (let index = 0; index < 25; index += 1) {
        advance(1_000);
        await person.move(index === 0 ? A : url(`v${index - 1}`), url(`v${index}`));
      }
      const { former_feed_urls } = await find(url("v24"));
      assert.deepEqual(
        former_feed_urls,
        Array.from({ length: 20 }, (_, index) => url(`v${23 - index}`)),
      );
      assert.equal((await person.add(url("v4")))?.kind, "refused");
      assert.equal((await person.add(url("v3")))?.kind, "done");
      assert.deepEqual(await list(), [url("v24"), url("v3")]);
    });

    test("former URLs: forgotten → can be subscribed separately; apps keep them while they lead here", async () => {
      const { person, server, phone, find, list } = await start("phone");
      await person.move(A, B);
      await server.look(A, B, "leads");
      await person.forget(B);
      assert.equal((await find(B)).former_feed_urls, undefined);
      assert.deepEqual(await phone.poll(), QUIET);
      assert.equal((await person.add(A))?.kind, "done");
      assert.deepEqual((await list()).sort(), [A, B]);
    });

    test("former URLs: a move is one update, a merge one update and one removal", async () => {
      const { user, person, find } = await start();
      await person.add(C);
      const { id } = await find(A);
      const { id: other } = await find(C);
      const changesSinceLast = async (sequence: number) => {
        const {
          changed,
          removals,
          sequence: now,
        } = await store.readChanges(user, { sequence, removalsAfter: sequence }, 100);
        return { changed: changed.map(({ item }) => item.id), removed: removals.map((removal) => removal.id), now };
      };
      const { now: before } = await changesSinceLast(0);
      await person.move(A, B);
      const moved = await changesSinceLast(before);
      assert.deepEqual([moved.changed, moved.removed], [[id], []]);
      await person.merge(B, C);
      const merged = await changesSinceLast(moved.now);
      assert.deepEqual([merged.changed, merged.removed], [[other], [id]]);
    });
  });

  describe(`what the server does by itself on ${engine}`, () => {
    test("follows: a proven move → the subscription has the new URL, and apps are told nothing", async () => {
      const { server, phone, find } = await start("phone");
      const { id } = await find(A);
      await server.follow(A, B);
      const { id: same, former_feed_urls } = await find(B);
      assert.deepEqual([same, former_feed_urls], [id, [A]]);
      assert.deepEqual(await phone.poll(), QUIET);
      await server.follow(A, B);
      assert.deepEqual((await find(B)).former_feed_urls, [A]);
    });

    test("follows: both feeds are listed → merged, once", async () => {
      const { server, person, phone, find, list } = await start("phone");
      await person.add(B);
      await phone.poll();
      await server.follow(A, B);
      assert.deepEqual(await list(), [B]);
      assert.deepEqual((await find(B)).former_feed_urls, [A]);
      assert.deepEqual(await phone.poll(), QUIET);
    });

    test("follows: a move that was undone → not again", async () => {
      const { server, person, list } = await start();
      await server.follow(A, B);
      await person.move(B, A);
      await server.follow(A, B);
      assert.deepEqual(await list(), [A]);
      await server.follow(A, C);
      assert.deepEqual(await list(), [C]);
    });

    test("follows: switched off → never, until it is switched on", async () => {
      const { caller, server, list, at } = await start();
      await store.apps.changeFollowsMoves(caller, false, at());
      await server.follow(A, B);
      assert.deepEqual(await list(), [A]);
      await store.apps.changeFollowsMoves(caller, true, at());
      await server.follow(A, B);
      assert.deepEqual(await list(), [B]);
    });

    test("sightings: the app removes what the listed URL leads to → removed", async () => {
      const { server, phone, list } = await start("phone");
      await phone.upload({ remove: [B] });
      assert.deepEqual(await list(), [A]);
      await server.sight(A, B);
      await phone.upload({ remove: [B] });
      assert.deepEqual(await list(), []);
    });

    test("sightings: an app adds what the listed URL leads to → no second subscription, except by the API", async () => {
      const { server, person, phone, list } = await start("phone");
      await server.sight(A, B);
      await phone.upload({ add: [B] });
      assert.deepEqual(await list(), [A]);
      assert.deepEqual(await phone.poll(), QUIET);
      await person.add(B);
      assert.deepEqual((await list()).sort(), [A, B]);
    });

    test("sightings: an app replaces the listed URL by what it leads to → moved, and no one else is told", async () => {
      const { server, phone, other, find } = await start("phone", "other");
      await other.play(A, [E1, 10]);
      const { id } = await find(A);
      await server.sight(A, B);
      await phone.upload({ add: [B], remove: [A] });
      assert.equal((await find(B)).id, id);
      assert.deepEqual([await phone.poll(), await other.poll()], [QUIET, QUIET]);
      assert.deepEqual(await phone.actions(), [[B, E1, 10]]);
      assert.deepEqual(await other.actions(A, 0), [[A, E1, 10]]);
    });

    test("sightings: the listed URL no longer leads there → the other URL is another podcast", async () => {
      const { server, phone, list } = await start("phone");
      await server.sight(A, B);
      await server.sight(A);
      await phone.upload({ remove: [B] });
      await phone.upload({ add: [B] });
      assert.deepEqual(await list(), [A, B]);
    });
  });

  describe(`actions that are due again on ${engine}`, () => {
    test("resends: removed, then added again by anyone → every app gets all actions again", async () => {
      const { person, phone, other } = await start("phone", "other");
      await phone.play(A, [E1, 10], [E2, 20]);
      for (const each of [phone, other]) await each.actions();
      await person.remove(A);
      for (const each of [phone, other]) assert.deepEqual((await each.poll()).remove, [A]);
      await person.add(A);
      for (const each of [phone, other]) {
        assert.deepEqual((await each.poll()).add, [A]);
        assert.deepEqual(await each.actions(), [
          [A, E1, 10],
          [A, E2, 20],
        ]);
        assert.deepEqual(await each.actions(), []);
      }
    });

    test("resends: an app removes a feed and adds it again before it syncs → gets all actions again", async () => {
      const { phone, other } = await start("phone", "other");
      await other.play(A, [E1, 10]);
      await phone.actions();
      await phone.upload({ add: [A] });
      assert.deepEqual(await phone.actions(), [[A, E1, 10]]);
      assert.deepEqual(await other.actions(), []);
    });

    test("resends: an app removes a feed that was added again after its own removal → removed", async () => {
      const { person, phone, list } = await start("phone");
      await phone.upload({ remove: [A] });
      await person.add(A);
      assert.deepEqual(await phone.poll(), { add: [A], remove: [] });
      await phone.upload({ remove: [A] });
      assert.deepEqual(await list(), []);
    });

    test("resends: a URL of a feed becomes another feed → apps get both, each with all actions", async () => {
      for (const isSighted of [true, false]) {
        const { person, server, phone, other } = await start("phone", "other");
        const added = isSighted ? B : A;
        if (isSighted) await server.sight(A, B);
        else await person.move(A, B);
        await phone.play(added, [E1, 10]);
        await other.actions();
        if (!isSighted) await person.forget(B);
        await person.add(added);
        await other.poll(0);
        const [a, b] = [A, B].map((each) => [each, E1, 10]);
        assert.deepEqual((await other.actions(undefined, 0)).sort(), [a, b], isSighted ? "sighted" : "forgotten");
        assert.deepEqual([await other.actions(A, 0), await other.actions(B, 0)], [[a], [b]]);
      }
    });

    test("resends: actions under a URL before it is known whose it is → due again under the URL that each app has", async () => {
      for (const isSighted of [true, false]) {
        const { person, server, phone, other } = await start("phone", "other");
        await phone.play(B, [E1, 10]);
        assert.deepEqual(await other.actions(), [[B, E1, 10]]);
        if (isSighted) await server.sight(A, B);
        else await person.move(A, B);
        assert.deepEqual(await other.actions(), [[A, E1, 10]], isSighted ? "sighted" : "moved");
        assert.deepEqual(await other.actions(A, 0), [[A, E1, 10]]);
      }
    });

    test("resends: a feed gets a former URL of a removed feed → and its actions", async () => {
      for (const isImported of [true, false]) {
        const { person, phone } = await start("phone");
        await person.move(A, B);
        await phone.play(A, [E1, 10]);
        await person.remove(B);
        await phone.poll();
        await person.add(C, isImported ? { former_feed_urls: [A] } : {});
        if (!isImported) await person.move(C, A);
        assert.deepEqual((await phone.poll()).add, [A]);
        assert.deepEqual(await phone.actions(), [[A, E1, 10]], isImported ? "imported" : "moved");
        assert.deepEqual(await phone.actions(A, 0), [[A, E1, 10]]);
      }
    });

    test("resends: told to remove, told to add, then an echo of the first → stays, and is offered again", async () => {
      for (const isMoved of [false, true]) {
        const { person, server, phone, list } = await start("phone");
        if (isMoved) await server.sight(A, C);
        await person.remove(A);
        assert.ok((await phone.poll()).remove.includes(A));
        await person.add(A);
        assert.deepEqual((await phone.poll()).add, [A]);
        await phone.upload({ remove: [A] });
        assert.deepEqual(await list(), [A], isMoved ? "after a sighting" : "");
        assert.deepEqual(await phone.poll(), { add: [A], remove: [] });
        assert.deepEqual(await phone.poll(), QUIET);
        await phone.upload({ remove: [A] });
        assert.deepEqual(await list(), []);
      }
    });
  });

  describe(`moves that go wrong on ${engine}`, () => {
    test("chains: 25 moves that all lead here → an app with the first URL is told nothing", async () => {
      const { person, server, phone, list } = await start("phone");
      await phone.play(A, [E1, 10]);
      const urls = [A, ...Array.from({ length: 25 }, (_, index) => url(`v${index}`))];
      for (const [index, each] of urls.slice(1).entries()) await person.move(urls[index] ?? "", each);
      const last = urls.at(-1) ?? "";
      for (const each of urls) await server.look(each, last, "leads");
      assert.deepEqual(await phone.poll(), QUIET);
      assert.deepEqual(await phone.poll(0), { add: [A], remove: [] });
      assert.deepEqual(await phone.actions(last, 0), [[A, E1, 10]]);
      await phone.upload({ remove: [A] });
      assert.deepEqual(await list(), []);
    });

    test("loops: moved back and forth → one subscription, one URL for each app", async () => {
      const { person, server, phone, find, list } = await start("phone");
      await phone.play(A, [E1, 10]);
      for (let round = 0; round < 5; round += 1) {
        await person.move(A, B);
        await person.move(B, C);
        await person.move(C, A);
      }
      assert.deepEqual(await list(), [A]);
      assert.deepEqual((await find(A)).former_feed_urls, [C, B]);
      for (const each of [B, C]) await server.look(each, A, "leads");
      assert.deepEqual(await phone.poll(), QUIET);
      for (const each of [A, B, C]) assert.deepEqual(await phone.actions(each, 0), [[A, E1, 10]]);
    });

    test("moves: to the URL of another subscription → refused, nothing changes", async () => {
      const { person, find, items } = await start();
      await person.add(B);
      await person.move(B, C);
      const { id } = await find(C);
      const before = await items();
      for (const taken of [B, C])
        assert.deepEqual(await person.move(A, taken), { kind: "refused", code: "already-subscribed", existingId: id });
      assert.deepEqual(await items(), before);
    });

    test("moves: while apps upload actions and poll → every action has one row, under the last URL", async () => {
      const { person, phone, other, app } = await start("phone", "other");
      const urls = [A, B, C, url("d"), url("e")];
      for (const [index, to] of urls.slice(1).entries()) {
        const from = urls[index] ?? "";
        await Promise.all([
          person.move(from, to),
          phone.play(from, [`p${index}`, 10], ["both", 10 + index]),
          other.play(to, [`o${index}`, 20]),
          phone.poll(),
          other.poll(),
        ]);
      }
      const fresh = app("fresh");
      await fresh.poll();
      const last = urls.at(-1);
      const found = await fresh.actions();
      assert.deepEqual(found.map(([, episode]) => episode).sort(), [
        "both",
        "o0",
        "o1",
        "o2",
        "o3",
        "p0",
        "p1",
        "p2",
        "p3",
      ]);
      assert.ok(found.every(([podcast]) => podcast === last));
      assert.equal(found.find(([, episode]) => episode === "both")?.[2], 13);
    });
  });
}
