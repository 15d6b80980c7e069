import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, EarmarkError, guid, type OperationResult } from "../client/src/index.ts";
import { everyIdOf, failureOf, feedsOf, newClient, newPerson, serverUrl, startProxyWith } from "./support/client.ts";

const [A, B, C] = ["https://a.example/feed", "https://b.example/feed", "https://c.example/feed"] as const;
const X = "00000000-0000-4000-8000-000000000001";

const wordsOf = (results: readonly OperationResult[]) =>
  results.map((result) => (result.outcome === "done" ? (result.subscription?.title ?? "done") : result.error.code));

test("apply: adds, updates and removals mixed → one result each, in order", async () => {
  const client = await newClient();
  const results = await client.apply([
    { op: "add", id: guid(A), feedUrl: A, title: "Ay", folders: ["News/Tech", "Daily"] },
    { op: "add", id: X, feedUrl: A },
    { op: "update", id: guid(A), title: "Bee", feedUrl: B },
    { op: "add", id: X, feedUrl: A },
    { op: "add", id: X, feedUrl: C },
    { op: "update", id: X, feedUrl: B },
    { op: "update", id: X, title: "\u202e" },
    { op: "remove", id: X },
    { op: "remove", id: X },
    { op: "update", id: X, title: "none" },
    { op: "update", id: guid(A), folders: null },
  ]);
  assert.deepEqual(wordsOf(results), [
    ...["Ay", "already-subscribed", "Bee", "already-subscribed", "done", "already-subscribed"],
    ...["invalid-title", "done", "not-found", "not-found", "Bee"],
  ]);
  const [first, second] = results;
  assert.ok(first?.outcome === "done" && second?.outcome === "refused");
  assert.deepEqual(first.subscription?.folders, ["News/Tech", "Daily"]);
  assert.equal(second.error.meta?.["existing_id"], guid(A));
  const { items } = await client.page();
  const { subscribedAt } = first.subscription ?? {};
  assert.deepEqual(items, [{ id: guid(A), feedUrl: B, title: "Bee", subscribedAt, formerFeedUrls: [A] }]);
});

test("remove and update: 2,500 subscriptions → a few requests, result N about item N", async () => {
  const proxy = await startProxyWith();
  const client = await newClient({ url: proxy.url });
  const ids = (await client.subscribe(feedsOf(2_500))).map(({ id }) => id);
  proxy.all.length = 0;
  const titles = ids.map((_, index) => `Show ${index}`);
  const updated = await client.update(ids.map((id, index) => ({ id, title: `Show ${index}` })));
  assert.deepEqual(wordsOf(updated), titles);
  const removed = await client.remove([...ids.slice(1), X]);
  assert.deepEqual(wordsOf(removed), [...ids.slice(1).map(() => "done"), "not-found"]);
  assert.equal(proxy.operations().length, 6);
  assert.deepEqual(await everyIdOf(client), ids.slice(0, 1));
  assert.deepEqual(await client.remove([]), []);
});

test("changes: all pages without a state, then later changes → the same list", async () => {
  const client = await newClient();
  const ids = (await client.subscribe(feedsOf(25))).map(({ id }) => id);
  const found = new Set<string>();
  let state: string | undefined;
  for (let hasMore = true; hasMore; ) {
    const changes = await client.changes(state, { pageSize: 10 });
    assert.deepEqual(changes.removed, []);
    for (const { id } of changes.changed) found.add(id);
    ({ state, hasMore } = changes);
  }
  assert.deepEqual([...found], ids);
  assert.equal((await client.me()).state, state);

  const [first = "", second = ""] = ids;
  await client.update([{ id: first, title: "new" }]);
  await client.remove([second]);
  const { changed, removed, hasMore, state: last } = await client.changes(state);
  assert.deepEqual(
    [changed.map(({ id, title }) => [id, title]), removed, hasMore],
    [[[first, "new"]], [second], false],
  );
  assert.deepEqual(await client.changes(last), { changed: [], removed: [], state: last, hasMore: false });
});

test("changes: state of another account, or a malformed state → state-expired, invalid-query", async () => {
  const [one, other] = [await newClient(), await newClient()];
  const { state } = await one.me();
  const expired = await failureOf(other.changes(state), EarmarkError);
  assert.deepEqual([expired.status, expired.code], [410, "state-expired"]);
  const malformed = await failureOf(other.changes("?"), EarmarkError);
  assert.deepEqual([malformed.status, malformed.code], [400, "invalid-query"]);
});

test("events: changes by others → each new state", async () => {
  const { token } = await newPerson();
  const [one, other] = [createClient({ url: serverUrl, token }), createClient({ url: serverUrl, token })];
  let edits = 0;
  for await (const state of one.events({ pollMs: 60_000 })) {
    assert.equal(state, (await other.me()).state);
    edits += 1;
    if (edits === 3) break;
    await other.subscribe([`https://a.example/${edits}`]);
  }
});
