import assert from "node:assert/strict";
import { test } from "node:test";
import { appNamed, createMetrics } from "./metrics.ts";

test("metrics: user agents of apps → their names; any other → other", () => {
  for (const [agent, name] of [
    ["AntennaPod/3.9.0", "AntennaPod"],
    ["mygpoclient/1.9 (+http://gpodder.org/mygpoclient/) gPodder/3.11.4", "gPodder"],
    ["gnome-podcasts/25.1", "GNOME Podcasts"],
    ["curl/8", "other"],
    [undefined, "other"],
  ])
    assert.equal(appNamed(agent), name);
});

test("metrics: requests of apps → counted by app and result", async () => {
  const metrics = createMetrics();
  for (const status of [200, 200, 401, 503]) metrics.countAppRequest("Kasts/25.04", status);
  const text = await metrics.collect();
  for (const line of [
    'app="Kasts",result="ok"} 2',
    'app="Kasts",result="refused"} 1',
    'app="Kasts",result="failed"} 1',
  ])
    assert.ok(text.includes(`earmark_app_requests_total{${line}`), line);
});
