import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AppHttp, basic, CHANGE_FEEDS, FEEDS, feedUrl, readFeeds, startWorld } from "./app.ts";

/** Lists that are longer than what the server reads at a time. */
describe("long lists", async () => {
  const world = await startWorld();
  const device = (id: string) => `/api/2/subscriptions/${world.name}/${id}.json`;
  const http = new AppHttp(world.port, basic(world.name, world.token), false);
  const urls = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => feedUrl(`${from + index}`));

  test("feeds: 2,500 added, then 1,200 removed and 1,300 added → other apps receive each once", async () => {
    await http.ok("POST", device("phone"), { add: urls(0, 2_500), remove: [] });
    for (const path of [device("desk"), FEEDS])
      assert.deepEqual(readFeeds(await http.ok("GET", `${path}?since=0`)).add, urls(0, 2_500));
    const { timestamp } = readFeeds(await http.ok("GET", `${device("desk")}?since=0`));

    await http.ok("POST", CHANGE_FEEDS, { add: urls(2_500, 3_800), remove: urls(0, 1_200) });
    const { add, remove } = readFeeds(await http.ok("GET", `${device("desk")}?since=${timestamp}`));
    assert.deepEqual([add.length, remove.length], [1_300, 1_200]);
    assert.deepEqual([add.toSorted(), remove.toSorted()], [urls(2_500, 3_800).sort(), urls(0, 1_200).sort()]);
  });

  test("feeds: every feed of a long list removed → an empty list, with all removals", async () => {
    const { timestamp } = readFeeds(await http.ok("GET", `${device("desk")}?since=0`));
    await http.ok("POST", device("phone"), { add: [], remove: urls(1_200, 3_800) });
    assert.deepEqual(readFeeds(await http.ok("GET", `${device("desk")}?since=0`)).add, []);
    const { add, remove } = readFeeds(await http.ok("GET", `${device("desk")}?since=${timestamp}`));
    assert.deepEqual([add.length, remove.length], [0, 2_600]);
  });
});
