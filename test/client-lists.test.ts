import assert from "node:assert/strict";
import { test } from "node:test";
import { EarmarkError } from "../client/src/index.ts";
import { everyIdOf, failureOf, feedsOf, newClient, startProxy, startProxyWith } from "./support/client.ts";

test("get and remove: existing id → found, then gone", async () => {
  const client = await newClient();
  const [result] = await client.subscribe(["https://podnews.net/rss"]);
  assert.ok(result?.outcome === "added");
  const { id } = result;
  assert.deepEqual(await client.get(id.toUpperCase()), result.subscription);
  assert.equal(await client.remove(id), true);
  assert.equal(await client.remove(id), false);
  assert.equal(await client.get(id), undefined);
  const failure = await failureOf(client.get("not/an id"), EarmarkError);
  assert.deepEqual([failure.status, failure.code], [400, "invalid-id"]);
});

test("removals: removed and not added again → newest first, and can be restored", async () => {
  const client = await newClient();
  const [one = "", two = "", three = ""] = feedsOf(3);
  const ids = (await client.subscribe([one, two, three])).map(({ id }) => id);
  await client.update([{ id: ids[0] ?? "", title: "One", folders: ["News"] }]);
  for (const id of ids) await client.remove(id);
  await client.subscribe([two]);
  const removals = await client.removals();
  assert.deepEqual(
    removals.map(({ feedUrl }) => feedUrl),
    [three, one],
  );
  assert.ok(removals.every(({ removedAt }) => removedAt instanceof Date && !Number.isNaN(removedAt.getTime())));
  await client.subscribe(removals.map(({ feedUrl: url, ...removal }) => ({ url, ...removal })));
  assert.deepEqual((await everyIdOf(client)).toSorted(), ids.toSorted());
  const restored = await client.get(ids[0] ?? "");
  assert.deepEqual([restored?.title, restored?.folders], ["One", ["News"]]);
  assert.deepEqual(await client.removals(), []);
});

test("page: number and size → that page", async () => {
  const client = await newClient();
  const results = await client.subscribe(feedsOf(250));
  const all = results.flatMap((result) => (result.outcome === "added" ? [result.subscription] : []));
  const first = await client.page();
  assert.deepEqual(first, { items: all.slice(0, 100), total: 250, number: 1, size: 100, hasNext: true });
  const last = await client.page({ number: 5, size: 60 });
  assert.deepEqual(last, { items: all.slice(240), total: 250, number: 5, size: 60, hasNext: false });
  const failure = await failureOf(client.page({ size: 500 }), EarmarkError);
  assert.equal(failure.status, 400);
  assert.deepEqual(failure.errors[0]?.source, { parameter: "page[size]" });
  assert.deepEqual(failure.errors[0]?.meta, { page: { maxSize: 100 } });
});

test("subscriptions: removals meanwhile → no item skipped", async () => {
  const client = await newClient();
  const ids = (await client.subscribe(feedsOf(230))).map(({ id }) => id);

  // Remove every third item, and once many items before the current position.
  const seen: string[] = [];
  for await (const { id } of client.subscriptions({ pageSize: 10 })) {
    if (seen.length % 3 === 0) await client.remove(id);
    if (seen.length === 57) for (const gone of ids.slice(0, 45)) await client.remove(gone);
    seen.push(id);
  }
  assert.deepEqual(seen, ids);

  const left = await everyIdOf(client);
  for await (const { id } of client.subscriptions({ pageSize: 7 })) assert.equal(await client.remove(id), true);
  assert.ok(left.length > 100);
  assert.equal((await client.me()).counts.subscriptions, 0);
});

test("subscriptions: loop ends early → no further page requested", async () => {
  const proxy = await startProxyWith();
  const client = await newClient({ url: proxy.url });
  await client.subscribe(feedsOf(250));
  proxy.all.length = 0;
  for await (const { feedUrl } of client.subscriptions()) if (feedUrl.endsWith("/150")) break;
  assert.deepEqual(
    proxy.all.map(({ path }) => decodeURI(path)),
    ["/v1/subscriptions?page[number]=1&page[size]=100", "/v1/subscriptions?page[number]=2&page[size]=100"],
  );
});

test("OPML: import, preview and export → report and text", async () => {
  const proxy = await startProxy(() => "pass");
  const client = await newClient({ url: proxy.url });
  const outline = (title: string, address: string) => `<outline text="${title}" xmlUrl="${address}"/>`;
  const opml = `<opml version="2.0"><body>${outline("Podnews", "https://podnews.net/rss")}${outline("Æther", "ftp://x")}</body></opml>`;
  const report = {
    counts: { found: 2, added: 1, alreadySubscribed: 0, skipped: 0, refused: 1 },
    reasons: [{ code: "feed-url-not-http", count: 1 }],
    entries: [
      {
        feedUrl: "https://podnews.net/rss",
        line: 1,
        title: "Podnews",
        folders: [],
        outcome: "added",
        code: null,
        detail: null,
        subscriptionId: "9b024349-ccf0-5f69-a609-6b82873eab3c",
      },
      {
        feedUrl: "ftp://x",
        line: 1,
        title: "Æther",
        folders: [],
        outcome: "refused",
        code: "feed-url-not-http",
        detail: "Invalid feed URL: it must start with http:// or https://, followed by a host.",
        subscriptionId: null,
      },
    ],
  };
  const preview = await client.importOpml(new Blob([opml], { type: "text/xml" }), { dryRun: true });
  assert.deepEqual(preview, { dryRun: true, ...report });
  assert.deepEqual(await everyIdOf(client), []);
  assert.deepEqual(await client.importOpml(opml), { dryRun: false, ...report });
  const again = await client.importOpml(Buffer.from(opml));
  assert.deepEqual(again.counts, { found: 2, added: 0, alreadySubscribed: 1, skipped: 0, refused: 1 });
  for (const { headers } of proxy.all.filter(({ path }) => path.startsWith("/v1/imports")))
    assert.equal(headers["content-type"], "text/x-opml");

  const exported = await client.exportOpml();
  assert.match(exported, /^<\?xml .*xmlUrl="https:\/\/podnews\.net\/rss"/s);
  const copy = await (await newClient()).importOpml(exported);
  assert.deepEqual([copy.counts.found, copy.counts.added], [1, 1]);
  const failure = await failureOf(client.importOpml("no OPML"), EarmarkError);
  assert.deepEqual([failure.status, failure.code], [422, "invalid-opml"]);
});

test("find: any spelling of a feed URL → its subscription with title and folders, or undefined", async () => {
  const client = await newClient();
  const feed = { url: "https://a.example/?x=1&y#z", title: "Mine", folders: ["News/Tech"] };
  await client.subscribe([feed, "https://b.example/"]);
  const found = await client.find("http://A.example/?x=1&y");
  assert.deepEqual([found?.feedUrl, found?.title, found?.folders], [feed.url, feed.title, feed.folders]);
  assert.equal(await client.find("https://c.example/"), undefined);
  await assert.rejects(client.find("nonsense"), { status: 400, code: "invalid-query" });
});
