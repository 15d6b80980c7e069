import assert from "node:assert/strict";
import { test } from "node:test";
import { appNameOf, createMetrics } from "./metrics.ts";

test("metrics: user agents of apps → their names; any other → other", () => {
  for (const [agent, name] of [
    ["AntennaPod/3.9.0", "AntennaPod"],
    ["mygpoclient/1.9 (+http://gpodder.org/mygpoclient/) gPodder/3.11.4", "gPodder"],
    ["gnome-podcasts/25.1", "GNOME Podcasts"],
    ["podium/42 (Android 16; Pixel; +https://github.com/aimok04/podium)", "Podium"],
    ["curl/8", "other"],
    [undefined, "other"],
  ])
    assert.equal(appNameOf(agent), name);
});

test("metrics: requests of apps → counted by app and result", async () => {
  const metrics = createMetrics("1.2.3");
  for (const status of [200, 200, 401, 503]) metrics.countAppRequest("Kasts/25.04", status);
  const text = await metrics.collect();
  for (const line of [
    'app="Kasts",result="ok"} 2',
    'app="Kasts",result="refused"} 1',
    'app="Kasts",result="failed"} 1',
  ])
    assert.ok(text.includes(`earmark_app_requests_total{${line}`), line);
});

test("metrics: build → version of Earmark and Node", async () => {
  const text = await createMetrics("1.2.3").collect();
  assert.ok(text.includes(`earmark_build_info{version="1.2.3",node="${process.versions.node}"} 1`));
});

test("metrics: size of the database → read once a minute, in the background after the first time", async () => {
  let time = 0;
  let reads = 0;
  let readSize: () => Promise<{ accounts: number; subscriptions: number }> = async () => {
    throw new Error("unavailable");
  };
  const metrics = createMetrics("1.2.3", () => time);
  metrics.watchSize(() => {
    reads += 1;
    return readSize();
  });
  const accounts = async () => /^earmark_accounts (.+)$/m.exec(await metrics.collect())?.[1];
  assert.equal(await accounts(), undefined, "not 0 while it is unknown");
  assert.equal(await accounts(), undefined);
  assert.equal(reads, 1);
  readSize = async () => ({ accounts: 3, subscriptions: 40 });
  time = 60_000;
  assert.equal(await accounts(), "3", "collecting waits for the first value");
  assert.match(await metrics.collect(), /^earmark_subscriptions 40$/m);
  assert.equal(reads, 2);

  let finish: (size: { accounts: number; subscriptions: number }) => void = () => undefined;
  readSize = () => new Promise((resolve) => (finish = resolve));
  time = 120_000;
  assert.equal(await accounts(), "3", "but not for later ones");
  assert.equal(await accounts(), "3");
  assert.equal(reads, 3, "one at a time");
  finish({ accounts: 4, subscriptions: 41 });
  await new Promise(setImmediate);
  assert.equal(await accounts(), "4");
  readSize = async () => assert.fail("unavailable");
  time = 180_000;
  assert.equal(await accounts(), "4", "the last value stays");
});

test("metrics: connections → by state; none without a database server", async () => {
  const metrics = createMetrics("1.2.3");
  metrics.watchConnections(() => ({ used: 2, idle: 1, waiting: 5 }));
  const text = await metrics.collect();
  for (const line of ['{state="used"} 2', '{state="idle"} 1', '{state="waiting"} 5'])
    assert.ok(text.includes(`earmark_database_connections${line}`), line);
  const without = createMetrics("1.2.3");
  without.watchConnections(undefined);
  assert.doesNotMatch(await without.collect(), /^earmark_database_connections\{/m);
});
