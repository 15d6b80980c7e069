import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PASSWORD } from "../support/http-accounts.ts";
import { feedUrl, mediaUrl, startWorld } from "./app.ts";
import { compile, findPython, type Installed, startClient } from "./clients/client.ts";

/**
 * The code of real clients against the real server. Not part of `npm test`, because Debian's packages of them must be
 * installed; those that are missing are named, and at least one must be there.
 */
const CLIENTS = {
  mygpoclient: { found: findPython("drive-mygpoclient.py", ["mygpoclient"]), packages: "python3-mygpoclient" },
  gPodder: { found: findPython("drive-gpodder.py", ["gpodder", "mygpoclient"]), packages: "gpodder" },
  "libmygpo-qt": {
    found: compile("drive-mygpo-qt.cpp", "libmygpo-qt5"),
    packages: "libmygpo-qt-dev g++ pkg-config",
  },
};

test("clients: at least one is installed", (context) => {
  for (const [name, { found, packages }] of Object.entries(CLIENTS))
    context.diagnostic(found === undefined ? `${name}: MISSING, install ${packages}` : `${name} ${found.version}`);
  assert.ok(Object.values(CLIENTS).some(({ found }) => found !== undefined));
});

function describeClient(name: keyof typeof CLIENTS, tests: (client: Installed) => Promise<void>): void {
  const { found } = CLIENTS[name];
  if (found !== undefined) describe(name, () => tests(found));
}

describeClient("mygpoclient", async (installed) => {
  const world = await startWorld();

  for (const [what, password] of Object.entries({ password: PASSWORD, token: world.token }))
    test(`mygpoclient: signed in with a ${what} → every call succeeds`, async () => {
      const { call } = startClient(installed, world, password);
      const own = feedUrl(`own-${what}`);
      assert.equal(await call("update_device_settings", "desk", "A desk", "desktop"), true);
      const [device] = await call("get_devices");
      assert.deepEqual([device.device_id, device.caption, device.type], ["desk", "A desk", "desktop"]);

      const first = await call(
        "update_subscriptions",
        "desk",
        [own, "antennapod_local:x", ` ${feedUrl("space")} `],
        [],
      );
      assert.deepEqual(first.update_urls, [
        ["antennapod_local:x", ""],
        [` ${feedUrl("space")} `, feedUrl("space")],
      ]);
      const before = await call("pull_subscriptions", "desk", first.since);
      assert.deepEqual(before.remove, []);
      await world.subscribe(feedUrl(`page-${what}`));
      await world.unsubscribe(own);
      const { add, remove, since } = await call("pull_subscriptions", "desk", before.since);
      assert.deepEqual([add, remove], [[feedUrl(`page-${what}`)], [own]]);
      assert.ok(since > before.since);
      assert.deepEqual((await call("pull_subscriptions", "desk", since)).add, []);
      assert.deepEqual((await call("get_subscriptions", "desk")).sort(), await world.list());

      const play = { podcast: own, episode: mediaUrl(what), action: "play", timestamp: "2026-01-01T10:00:00Z" };
      const uploaded = await call("upload_episode_actions", [
        { ...play, started: 0, position: 5, total: 10, device: "desk" },
        { ...play, action: "download" },
        { ...play, action: "new", episode: mediaUrl("other") },
      ]);
      const actions = await call("download_episode_actions", 0);
      assert.ok(actions.since >= uploaded);
      const stored = actions.actions.filter(({ episode }: { episode: string }) => episode === mediaUrl(what));
      assert.deepEqual(
        stored.map(({ action, position }: { action: string; position: unknown }) => [action, position]),
        [
          ["play", 5],
          ["download", null],
        ],
      );
      assert.deepEqual((await call("download_episode_actions", actions.since)).actions, []);
      assert.deepEqual((await call("download_episode_actions", 0, feedUrl("none"))).actions, []);
      assert.deepEqual(await call("get_suggestions"), []);
      assert.deepEqual(await call("get_favorite_episodes"), []);
      assert.deepEqual(await call("get_settings", "account"), {});
    });

  test("mygpoclient: upload of the whole list → replaces the list", async () => {
    const { call } = startClient(installed, world, world.token);
    assert.equal(await call("put_subscriptions", "desk", [feedUrl("a"), feedUrl("b")]), true);
    assert.deepEqual(await world.list(), [feedUrl("a"), feedUrl("b")]);
  });

  test("mygpoclient: wrong password → Unauthorized", async () => {
    const { call } = startClient(installed, world, "wrong password");
    await assert.rejects(() => call("get_devices"), /Unauthorized/);
  });
});

describeClient("gPodder", async (installed) => {
  const world = await startWorld();
  const podcast = feedUrl("mine");

  test("gPodder: a week of use alongside the web page → both have the same list and positions", async () => {
    const { call } = startClient(installed, world, PASSWORD);
    await world.subscribe(feedUrl("early"));
    await call("create_device");
    await call("on_subscribe", [podcast, feedUrl("second"), "file:///home/me/feed.xml"]);
    await call("play", podcast, mediaUrl("1"), [0, 300, 600]);
    await call("play", podcast, mediaUrl("2"));
    await call("delete", podcast, mediaUrl("3"));
    const first = await call("synchronize");
    assert.deepEqual(first, { enabled: true, queued: 0, received: [[true, feedUrl("early")]], rewritten: [] });
    assert.deepEqual(await world.list(), [feedUrl("early"), podcast, feedUrl("second")]);
    await call("confirm");

    world.wait(3_600);
    await world.unsubscribe(feedUrl("second"));
    await world.subscribe(feedUrl("later"));
    const next = await call("synchronize");
    assert.deepEqual(next.received.toSorted(), [
      [false, feedUrl("second")],
      [true, feedUrl("later")],
    ]);
    await call("confirm");
    assert.deepEqual((await call("positions"))[mediaUrl("1")], 300);
    for (let round = 0; round < 5; round += 1) {
      world.wait(60);
      assert.deepEqual(await call("synchronize"), { enabled: true, queued: 0, received: [], rewritten: [] });
    }
  });

  test("gPodder: a play on another computer → the position arrives, and removals too", async () => {
    const one = startClient(installed, world, PASSWORD);
    const other = startClient(installed, world, world.token);
    for (const { call } of [one, other]) {
      await call("synchronize");
      await call("confirm");
    }
    await one.call("play", podcast, mediaUrl("9"), [10, 77, 600]);
    await one.call("on_unsubscribe", [feedUrl("later")]);
    assert.equal((await one.call("synchronize")).queued, 0);
    assert.deepEqual((await other.call("synchronize")).received, [[false, feedUrl("later")]]);
    assert.equal((await other.call("positions"))[mediaUrl("9")], 77);
  });

  test("gPodder: upload, then restore from OPML → the same list", async () => {
    const { call } = startClient(installed, world, PASSWORD);
    await call("set_subscriptions", [feedUrl("x?a=1&b=2"), feedUrl("y")]);
    assert.deepEqual((await call("restore")).sort(), [feedUrl("x?a=1&b=2"), feedUrl("y")]);
    assert.deepEqual(await world.list(), [feedUrl("x?a=1&b=2"), feedUrl("y")]);
  });

  test("gPodder: invalid token → sync is switched off", async () => {
    const { call } = startClient(installed, world, "emk_wrong");
    await call("on_subscribe", [feedUrl("never")]);
    const { enabled, queued } = await call("synchronize");
    assert.deepEqual([enabled, queued], [false, 1]);
  });
});

describeClient("libmygpo-qt", async (installed) => {
  const world = await startWorld();

  test("libmygpo-qt: devices, feeds and plays → all are read back", async () => {
    const { call } = startClient(installed, world, world.token);
    assert.equal(await call("renameDevice", "amarok", "Amarok"), "");
    const uploaded = await call("changeFeeds", "amarok", [feedUrl("a"), feedUrl("b")], []);
    assert.ok(uploaded.timestamp > 1 && uploaded.timestamp < 2 ** 31);
    assert.deepEqual(uploaded.update_urls, []);
    assert.deepEqual(await world.list(), [feedUrl("a"), feedUrl("b")]);
    await call("changeFeeds", "amarok", [], [feedUrl("a")]);
    assert.deepEqual(JSON.parse(await call("list", "amarok")), [feedUrl("b")]);
    assert.deepEqual(await call("listDevices"), [{ id: "amarok", caption: "Amarok", subscriptions: 1 }]);
    assert.deepEqual(await call("groups"), []);

    const acted = Math.floor(Date.UTC(2026, 0, 1) / 1_000);
    assert.ok((await call("play", feedUrl("b"), mediaUrl("1"), acted, 42)).timestamp > 1);
    const { actions, timestamp } = await call("actionsSince", 0);
    assert.equal(actions.length, 1);
    const [{ podcast, episode, position }] = actions;
    assert.deepEqual([podcast, episode, position], [feedUrl("b"), mediaUrl("1"), 42]);
    assert.deepEqual((await call("actionsSince", timestamp)).actions, []);
  });
});
