import assert from "node:assert/strict";
import { after, test } from "node:test";
import { fc } from "../../test/support/properties.ts";
import { temporaryFolder } from "../../test/support/server.ts";
import { asUser, type Caller } from "../accounts/caller.ts";
import { openStore } from "../store/open.ts";
import { guidOf } from "./feed-url.ts";
import { importFeeds, toAddition } from "./imports.ts";
import { subscriptionBatches } from "./list-store.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const store = await openStore(`file:${temporaryFolder()}/earmark.db`, { connections: 1 });
after(() => store.close());

let users = 100;
function newCaller(maxSubscriptions = 1_000): Caller {
  users += 1;
  return { ...asUser(users), maxSubscriptions };
}

/** Different feeds with the same GUID, which leaves out trailing slashes, also those of a query. */
const [ONE, TWIN] = ["https://feeds.example/?show=1", "https://feeds.example/?show=1/"];
const feeds = (...urls: string[]) => urls.map((feedUrl) => ({ feedUrl }));

async function subscribe(caller: Caller, id: string, feedUrl: string): Promise<void> {
  const addition = toAddition(feedUrl);
  assert.ok("normalizedUrl" in addition);
  const { fallbackId: _, ...rest } = addition;
  await store.change(caller, [{ ...rest, id }], NOW);
}

/** Results of a preview and of the import, which must be the same. */
async function previewAndImport(caller: Caller, ...urls: string[]) {
  const preview = await importFeeds(store, caller, feeds(...urls), NOW, { dryRun: true });
  const results = await importFeeds(store, caller, feeds(...urls), NOW);
  assert.deepEqual(preview, results);
  const listed: string[] = [];
  for await (const items of subscriptionBatches(store, caller.user)) listed.push(...items.map(({ id }) => id));
  for (const { id } of results) assert.ok(id === undefined || listed.includes(id));
  return results.map(({ outcome, id, reason }) => (outcome === "already-subscribed" ? outcome : (id ?? reason?.code)));
}

test("import: two feeds share a GUID → the second gets an id from its whole URL, as previewed", async () => {
  assert.equal(guidOf(ONE), guidOf(TWIN));
  assert.deepEqual(await previewAndImport(newCaller(), ONE, TWIN, ONE), [
    guidOf(ONE),
    guidOf(TWIN, "whole"),
    "already-subscribed",
  ]);
});

test("import: the list has a feed with the same GUID → the id of the whole URL, as previewed", async () => {
  const caller = newCaller();
  await importFeeds(store, caller, feeds(TWIN), NOW);
  assert.deepEqual(await previewAndImport(caller, ONE), [guidOf(ONE, "whole")]);
});

test("import: another feed has the id → the id of the whole URL, as previewed", async () => {
  const caller = newCaller();
  await subscribe(caller, guidOf(ONE), "https://other.example/");
  assert.deepEqual(await previewAndImport(caller, ONE, TWIN), [guidOf(ONE, "whole"), guidOf(TWIN, "whole")]);
});

test("import: other feeds have both ids → rejected, as previewed", async () => {
  const caller = newCaller();
  await subscribe(caller, guidOf(ONE), "https://other.example/1");
  await subscribe(caller, guidOf(ONE, "whole"), "https://other.example/2");
  assert.deepEqual(await previewAndImport(caller, ONE), ["id-in-use"]);
});

test("import: more feeds than the quota, in several batches → the excess is rejected, as previewed", async () => {
  const urls = Array.from({ length: 250 }, (_, index) => `https://feeds.example/${index % 240}`);
  const results = await previewAndImport(newCaller(230), ...urls);
  assert.equal(results.filter((result) => result === "quota-exceeded").length, 10);
  assert.deepEqual(new Set(results.slice(240)), new Set(["already-subscribed"]));
});

test("import: any list and any file → the preview and the import agree", async () => {
  const url = fc
    .tuple(fc.constantFrom("http", "https"), fc.constantFrom("", "a", "a/", "a?b", "a?b/", "a?b//", "%"))
    .map(([scheme, rest]) => `${scheme}://feeds.example/${rest}`);
  const id = url.chain((text) => fc.constantFrom(guidOf(text), guidOf(text, "whole")));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(id, url), { maxLength: 6 }),
      fc.array(url, { maxLength: 8 }),
      fc.integer({ min: 1, max: 10 }),
      async (existing, urls, max) => {
        const caller = newCaller(max);
        for (const [own, feedUrl] of existing) await subscribe(caller, own, feedUrl);
        await previewAndImport(caller, ...urls);
      },
    ),
    { numRuns: 60 },
  );
});
