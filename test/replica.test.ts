import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ClientOptions,
  createClient,
  EarmarkError,
  guid,
  NetworkError,
  openReplica,
  type Replica,
  type ReplicaOptions,
  type Subscription,
} from "../client/src/index.ts";
import { failureOf, feedsOf, newPerson, serverUrl } from "./support/client.ts";
import { MemoryStorage } from "./support/replica-runs.ts";

type Fetch = NonNullable<ClientOptions["fetch"]>;

const [A, B, C] = ["https://a.example/feed", "https://b.example/feed", "https://c.example/feed"] as const;
const X = "00000000-0000-4000-8000-000000000001";
const Y = "00000000-0000-4000-8000-000000000002";

const offline: Fetch = () => Promise.reject(new TypeError("offline"));

/** Devices of a new account: each call opens one. Its `network.fetch` can be replaced. */
async function newAccount() {
  const { token } = await newPerson();
  const server = createClient({ url: serverUrl, token });
  const openDevice = async (options: Partial<ReplicaOptions> = {}) => {
    const network: { fetch: Fetch } = { fetch };
    const client = createClient({ url: serverUrl, token, retries: 0, fetch: (...call) => network.fetch(...call) });
    const storage = new MemoryStorage();
    const replica = await openReplica({ client, storage, ...options });
    return { replica, network, storage, client };
  };
  return { server, openDevice };
}

/** Subscriptions of one request have the same date, so their order is not defined. */
const byUrl = (items: readonly Subscription[]) => items.toSorted((one, two) => (one.feedUrl < two.feedUrl ? -1 : 1));
const feedsIn = (replica: Replica) => replica.list().map(({ feedUrl }) => feedUrl);
const titlesIn = (replica: Replica) => replica.list().map(({ title }) => title);

test("replica: edits offline → shown at once, sent by the next sync", async () => {
  const { server, openDevice } = await newAccount();
  const { replica, network } = await openDevice();
  network.fetch = offline;
  const [first] = await replica.add([A, { url: B, title: "Bee", folders: ["News/Tech"] }, C]);
  assert.ok(first);
  assert.deepEqual(await replica.remove([guid(C), X]), [true, false]);
  assert.deepEqual(
    await replica.update([
      { id: first.id, title: "Ay" },
      { id: X, title: "none" },
    ]),
    [true, false],
  );
  assert.deepEqual(feedsIn(replica), [A, B]);
  assert.deepEqual(titlesIn(replica), ["Ay", "Bee"]);
  assert.equal(replica.pending, 5);
  await failureOf(replica.sync(), NetworkError);
  assert.equal(replica.pending, 5);

  network.fetch = fetch;
  await replica.sync();
  assert.equal(replica.pending, 0);
  const [ay, bee] = (await server.page()).items;
  assert.deepEqual([ay?.title, bee?.title, bee?.folders], ["Ay", "Bee", ["News/Tech"]]);
  assert.deepEqual(byUrl(replica.list()), [ay, bee]);

  await replica.update([
    { id: guid(A), title: null },
    { id: guid(B), folders: null, feedUrl: C },
  ]);
  const wanted = byUrl(replica.list());
  await replica.sync();
  assert.deepEqual(byUrl(replica.list()), wanted);
  assert.deepEqual(byUrl((await server.page()).items), wanted);
});

test("replica: feed already in the list → returned, not added again", async () => {
  const { openDevice } = await newAccount();
  const { replica } = await openDevice();
  const [first, second] = await replica.add([{ url: A, id: X, title: "Ay" }, A]);
  assert.deepEqual([second, (await replica.add([{ url: A, id: Y }]))[0]], [first, first]);
  assert.equal(replica.pending, 1);
});

test("replica: reopened without network → list and edits are there", async () => {
  const { server, openDevice } = await newAccount();
  await server.subscribe([A]);
  const { replica, storage } = await openDevice();
  await replica.sync();
  await replica.add([B]);
  const client = createClient({ url: "http://127.0.0.1:1" });
  const reopened = await openReplica({ client, storage });
  assert.deepEqual(reopened.list(), replica.list());
  assert.deepEqual(feedsIn(reopened), [A, B]);
  assert.equal(reopened.pending, 1);
});

test("replica: first sync of 2,500 subscriptions → all, in the order of the list", async () => {
  const { server, openDevice } = await newAccount();
  await server.subscribe(feedsOf(2_500));
  const { replica } = await openDevice();
  await replica.sync();
  assert.deepEqual(feedsIn(replica), feedsOf(2_500));
});

test("replica: same feed added on two devices → one subscription", async () => {
  const { server, openDevice } = await newAccount();
  const [one, other] = [await openDevice(), await openDevice()];
  await one.replica.add([A]);
  await other.replica.add([A]);
  for (const { replica } of [one, other, one]) await replica.sync();
  assert.deepEqual(one.replica.list(), other.replica.list());
  assert.deepEqual((await server.page()).items, one.replica.list());
});

test("replica: same feed added under two ids → later edits reach the existing one", async () => {
  const { server, openDevice } = await newAccount();
  await server.subscribe([{ url: A, id: X }]);
  const refused: unknown[] = [];
  const { replica } = await openDevice({ onRefused: (refusal) => refused.push(refusal) });
  await replica.add([{ url: A.replace("https", "http"), id: Y }]);
  await replica.update([{ id: Y, title: "Ay" }]);
  await replica.sync();
  assert.deepEqual(
    replica.list().map(({ id, feedUrl, title }) => [id, feedUrl, title]),
    [[X, A, "Ay"]],
  );
  assert.deepEqual((await server.page()).items, replica.list());
  assert.deepEqual(refused, []);
});

test("replica: removed on one device, renamed on another → removed", async () => {
  const { server, openDevice } = await newAccount();
  await server.subscribe([A, B]);
  const refused: unknown[] = [];
  const [one, other] = [await openDevice(), await openDevice({ onRefused: (refusal) => refused.push(refusal) })];
  for (const { replica } of [one, other]) await replica.sync();
  await one.replica.remove([guid(A)]);
  await other.replica.update([{ id: guid(A), title: "Ay" }]);
  // Whichever arrives first.
  await one.replica.remove([guid(B)]);
  await one.replica.sync();
  await other.replica.sync();
  await other.replica.sync();
  assert.deepEqual([one.replica.list(), other.replica.list(), refused], [[], [], []]);

  await server.subscribe([C]);
  for (const { replica } of [one, other]) await replica.sync();
  await one.replica.remove([guid(C)]);
  await other.replica.update([{ id: guid(C), title: "Sea" }]);
  for (const { replica } of [other, one, other]) await replica.sync();
  assert.deepEqual([one.replica.list(), other.replica.list()], [[], []]);
});

test("replica: renamed on two devices → the later arrival wins", async () => {
  const { server, openDevice } = await newAccount();
  await server.subscribe([A]);
  const [one, other] = [await openDevice(), await openDevice()];
  for (const { replica } of [one, other]) await replica.sync();
  await one.replica.update([{ id: guid(A), title: "made first, arrives last" }]);
  await other.replica.update([{ id: guid(A), title: "made last, arrives first" }]);
  for (const { replica } of [other, one, other]) await replica.sync();
  for (const { replica } of [one, other]) assert.deepEqual(titlesIn(replica), ["made first, arrives last"]);
});

test("replica: edit confirmed, but changes not read → not sent again", async () => {
  const { server, openDevice } = await newAccount();
  await server.subscribe([A]);
  const one = await openDevice();
  await one.replica.sync();
  await one.replica.update([{ id: guid(A), title: "first" }]);
  one.network.fetch = (url, init) => (url.includes("/v1/changes") ? offline(url, init) : fetch(url, init));
  await failureOf(one.replica.sync(), NetworkError);
  assert.deepEqual([one.replica.pending, titlesIn(one.replica)], [0, ["first"]]);

  await server.update([{ id: guid(A), title: "second" }]);
  const reopened = await openReplica({ client: server, storage: one.storage });
  assert.deepEqual(titlesIn(reopened), ["first"]);
  await reopened.sync();
  assert.deepEqual(titlesIn(reopened), ["second"]);
});

test("replica: response lost → edits applied once, nothing rejected", async () => {
  const { server, openDevice } = await newAccount();
  await server.subscribe([A]);
  const refused: unknown[] = [];
  const { replica, network } = await openDevice({ onRefused: (refusal) => refused.push(refusal) });
  await replica.sync();
  await replica.remove([guid(A)]);
  await replica.add([B]);
  network.fetch = async (url, init) => {
    await fetch(url, init);
    throw new TypeError("lost");
  };
  await failureOf(replica.sync(), NetworkError);
  assert.equal(replica.pending, 2);
  network.fetch = fetch;
  await replica.sync();
  assert.deepEqual([feedsIn(replica), replica.pending, refused], [[B], 0, []]);
});

test("replica: response to a removal lost → the subscription never comes back", async () => {
  const { openDevice } = await newAccount();
  const shown: string[][] = [];
  const { replica, network } = await openDevice({
    onChange: (list) => shown.push(list.map(({ feedUrl }) => feedUrl)),
  });
  await replica.add([A]);
  await replica.sync();
  await replica.remove([guid(A)]);
  network.fetch = async (...call) => {
    await fetch(...call);
    throw new TypeError("lost");
  };
  await failureOf(replica.sync(), NetworkError);
  network.fetch = fetch;
  shown.length = 0;
  await replica.sync();
  assert.ok(shown.length > 0);
  assert.deepEqual(shown.flat(), []);
});

test("replica: edit rejected → reported and undone, with the edits that depend on it", async () => {
  const { server, openDevice } = await newAccount();
  await server.subscribe([{ url: A, id: X }]);
  const refused: string[] = [];
  const { replica } = await openDevice({
    onRefused: ({ operation, error }) => refused.push(`${operation.op} ${operation.id} ${error.code}`),
  });
  // The first has the id of another feed, which the last must not remove.
  await replica.add([{ url: B, id: X }, { url: "ftp://a.example", id: Y }, C]);
  await replica.update([{ id: Y, title: "none" }]);
  await replica.remove([X]);
  await replica.sync();
  assert.deepEqual(refused, [`add ${X} id-in-use`, `add ${Y} feed-url-not-http`]);
  assert.deepEqual(feedsIn(replica), [A, C]);
  assert.deepEqual((await server.page()).items, replica.list());

  await replica.update([{ id: guid(C), feedUrl: A }]);
  await replica.sync();
  assert.deepEqual(refused.slice(2), [`update ${guid(C)} already-subscribed`]);
  assert.deepEqual(feedsIn(replica), [A, C]);
});

test("replica: feed URL changed, then the old feed added again → the same subscription", async () => {
  const { server, openDevice } = await newAccount();
  const { replica } = await openDevice();
  const { replica: other } = await openDevice();
  await replica.add([A]);
  await replica.sync();
  await other.sync();
  await replica.update([{ id: guid(A), feedUrl: B }]);
  const [again] = await replica.add([A]);
  assert.deepEqual([again?.id, again?.feedUrl, again?.formerFeedUrls], [guid(A), B, [A]]);
  assert.equal(replica.pending, 1, "no addition");
  await replica.sync();
  assert.deepEqual(replica.list(), [again]);
  // Another device adds both before it has heard of the move.
  await other.add([A, B]);
  await other.sync();
  for (const list of [(await server.page()).items, other.list()]) assert.deepEqual(list, [again]);
});

test("replica: another device moves and merges → equal to the server", async () => {
  const { server, openDevice } = await newAccount();
  const { replica } = await openDevice();
  await replica.add([A, { url: B, title: "Bee" }]);
  await replica.sync();
  await server.apply([
    { op: "update", id: guid(A), feedUrl: C },
    { op: "remove", id: guid(B), mergeInto: guid(A) },
  ]);
  await replica.update([{ id: guid(B), title: "of a subscription that is gone" }]);
  const [known] = await replica.add([C]);
  await replica.sync();
  const { items } = await server.page();
  assert.deepEqual(replica.list(), items);
  const [{ subscribedAt: _, ...merged } = assert.fail()] = items;
  assert.deepEqual(merged, { id: guid(A), feedUrl: C, title: "Bee", formerFeedUrls: [B, A] });
  assert.notEqual(known?.id, guid(A), "it had not heard of the move");
  assert.equal((await replica.add([B]))[0]?.id, guid(A));
  assert.equal(replica.pending, 0);
});

test("replica: former feed URLs forgotten → the old feed can be added separately", async () => {
  const { server, openDevice } = await newAccount();
  const { replica } = await openDevice();
  await replica.add([A]);
  await replica.update([{ id: guid(A), feedUrl: B }]);
  await replica.update([{ id: guid(A), formerFeedUrls: null }]);
  const [again] = await replica.add([A]);
  assert.notEqual(again?.id, guid(A));
  await replica.sync();
  assert.deepEqual(feedsIn(replica), [B, A]);
  assert.deepEqual((await server.page()).items, replica.list());
});

test("replica: state expired → reads the whole list again, keeps the edits", async () => {
  const { server, openDevice } = await newAccount();
  const { replica, network } = await openDevice();
  await replica.add([A, B]);
  await replica.sync();
  await server.remove([guid(A)]);
  await replica.add([C]);
  const expired = JSON.stringify({ errors: [{ status: "410", code: "state-expired", title: "Gone" }] });
  network.fetch = (url, init) =>
    url.includes("page[after]") ? Promise.resolve(new Response(expired, { status: 410 })) : fetch(url, init);
  await replica.sync();
  assert.deepEqual(feedsIn(replica), [B, C]);
});

test("replica: pages of changes without end → fails and keeps the list", async () => {
  let requests = 0;
  const page = () => {
    requests += 1;
    return Response.json({ data: [], meta: { removed: [], state: String(requests), has_more: true } });
  };
  const client = createClient({ url: "http://127.0.0.1", fetch: async () => page() });
  const replica = await openReplica({ client, storage: new MemoryStorage() });
  assert.equal((await failureOf(replica.sync(), EarmarkError)).code, "endless-list");
});
