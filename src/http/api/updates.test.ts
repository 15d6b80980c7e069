import assert from "node:assert/strict";
import { test } from "node:test";
import { add, newId, PLAIN, startServer } from "../../../test/support/server.ts";

const server = await startServer({ EARMARK_METRICS: "true" });
const { call, operate } = server;

let feeds = 0;
function newFeed(): string {
  feeds += 1;
  return `https://feeds.example/${feeds}`;
}

const update = (id: string, attributes: object) => ({ op: "update", data: { type: "subscription", id, attributes } });
const remove = (id: string) => ({ op: "remove", ref: { type: "subscription", id } });
const addWith = (id: string, attributes: object) => ({ op: "add", data: { type: "subscription", id, attributes } });
// biome-ignore lint/suspicious/noExplicitAny: assertions check the shape of a response
const attributesOf = (result: any) => result.data.attributes;

function patch(id: string, attributes: unknown, data: object = {}) {
  const body = JSON.stringify({ data: { type: "subscription", id, attributes, ...data } });
  return call("PATCH", `/v1/subscriptions/${id}`, { headers: { "Content-Type": PLAIN }, body });
}

async function subscribe(attributes: object = {}): Promise<{ readonly id: string; readonly feed: string }> {
  const [id, feed] = [newId(), newFeed()];
  const [result] = await operate([addWith(id, { feed_url: feed, ...attributes })]);
  assert.deepEqual(Object.keys(result), ["data"]);
  return { id, feed };
}

test("operations: title and folders on add → returned, normalized", async () => {
  const [result] = await operate([addWith(newId(), { feed_url: newFeed(), title: " A ", folders: ["x/ y", "x/y"] })]);
  const { feed_url, user_subscribed_at, ...details } = attributesOf(result);
  assert.deepEqual(
    [typeof feed_url, typeof user_subscribed_at, details],
    ["string", "string", { title: "A", folders: ["x/y"] }],
  );
});

test("operations: without title and folders → the response does not have these attributes", async () => {
  const results = await operate([
    addWith(newId(), { feed_url: newFeed() }),
    addWith(newId(), { feed_url: newFeed(), title: null, folders: null }),
    addWith(newId(), { feed_url: newFeed(), folders: [] }),
  ]);
  for (const result of results) assert.deepEqual(Object.keys(attributesOf(result)), ["feed_url", "user_subscribed_at"]);
});

test("operations: invalid title or folders → 422, the others are applied", async () => {
  const { id } = await subscribe();
  const invalid = [
    ...["", " ", 1, {}, "x".repeat(301), "a\u202eb", "a\nb"].map((title) => ["invalid-title", { title }]),
    ...["x", [1], [""], ["a//b"], ["1/2/3/4/5/6/7/8/9"], Array(21).fill("x"), ["a\u0000"]].map((folders) => [
      "invalid-folders",
      { folders },
    ]),
  ] as const;
  const operations = invalid.flatMap(([, attributes]) => [
    update(id, attributes as object),
    addWith(newId(), { feed_url: newFeed(), ...(attributes as object) }),
  ]);
  const results = await operate([...operations, update(id, { title: "ok" })]);
  for (const [index, [code]] of invalid.entries()) {
    for (const at of [2 * index, 2 * index + 1]) {
      const [error] = results[at].errors;
      assert.deepEqual(
        [error.status, error.code, error.source],
        ["422", code, { pointer: `/atomic:operations/${at}` }],
      );
    }
  }
  assert.equal(attributesOf(results.at(-1)).title, "ok");
});

test("operations: add, update and remove mixed → in order, each independent", async () => {
  const { id, feed } = await subscribe();
  const [other, otherFeed] = [newId(), newFeed()];
  const results = await operate([
    update(id, { title: "One" }),
    add(other, otherFeed),
    update(other, { feed_url: feed }),
    remove(id),
    update(other, { feed_url: feed, title: null, folders: ["f"] }),
    remove(id),
    update(id, { title: "x" }),
    remove(other),
    { op: "move", ref: remove(other).ref },
  ]);
  assert.deepEqual(
    results.map((result) =>
      result.errors === undefined ? result.data && attributesOf(result) : result.errors[0].code,
    ),
    [
      { ...attributesOf(results[0]), feed_url: feed, title: "One" },
      { ...attributesOf(results[1]), feed_url: otherFeed },
      "already-subscribed",
      null,
      { ...attributesOf(results[4]), feed_url: feed, folders: ["f"] },
      "not-found",
      "not-found",
      null,
      "unsupported-operation",
    ],
  );
  assert.deepEqual(results[3], { data: null }, "exactly one member");
  assert.deepEqual(results[2].errors[0].meta, { feed_url: feed, guid: other, existing_id: id });
  assert.equal(results[5].errors[0].status, "404");
});

test("operations: an update → id, position and timestamp stay, other attributes too", async () => {
  const [first, second] = [await subscribe({ title: "t", folders: ["f"] }), await subscribe()];
  const before = await call("GET", `/v1/subscriptions/${first.id}`);
  const feed = newFeed();
  const [{ data }] = await operate([update(first.id.toUpperCase(), { feed_url: feed, user_subscribed_at: "x" })]);
  assert.deepEqual(data, {
    ...before.json.data,
    attributes: { ...before.json.data.attributes, feed_url: feed, former_feed_urls: [first.feed] },
  });
  const { json } = await call("GET", "/v1/subscriptions?page[size]=100");
  const ids = json.data.map((item: { id: string }) => item.id);
  assert.equal(ids.indexOf(second.id) - ids.indexOf(first.id), 1);
});

test("operations: a malformed update or removal → its error code", async () => {
  const { id } = await subscribe();
  const cases = [
    [{ op: "remove" }, "invalid-operation"],
    [{ op: "remove", data: remove(id).ref }, "invalid-operation"],
    [{ op: "remove", ref: { type: "subscription", id, relationship: "x" } }, "invalid-operation"],
    [{ op: "remove", ref: { id } }, "type-missing"],
    [{ op: "remove", ref: { type: "podcast", id } }, "type-mismatch"],
    [{ op: "remove", ref: { type: "subscription", id: "x" } }, "invalid-id"],
    [{ ...remove(id), href: "/v1/subscriptions" }, "invalid-operation"],
    [{ op: "update", ref: remove(id).ref }, "invalid-operation"],
    [{ ...update(id, {}), ref: remove(newId()).ref }, "invalid-operation"],
    [{ ...update(id, {}), href: "/v1/subscriptions" }, "invalid-operation"],
    [update("x", {}), "invalid-id"],
    [update(id, { feed_url: null }), "feed-url-missing"],
    [update(id, { feed_url: "ftp://x" }), "feed-url-not-http"],
    [{ op: "update", data: { type: "subscription", id, attributes: [] } }, "invalid-attribute"],
  ] as const;
  const results = await operate(cases.map(([operation]) => operation));
  assert.deepEqual(
    results.map(({ errors }) => errors?.[0].code),
    cases.map(([, code]) => code),
  );
  const href = `/v1/subscriptions/${id}`;
  const ref = { type: "subscription", id: id.toUpperCase() };
  const good = await operate([
    { ...update(id, { title: "t" }), ref, href },
    { op: "remove", ref, href },
  ]);
  assert.deepEqual([good[0].data.attributes.title, good[1]], ["t", { data: null }]);
});

test("operations: 10,000 of all kinds in one request → one result each", async () => {
  const { call: callOwn, operate: operateOwn } = await startServer();
  const ids = Array.from({ length: 4_000 }, newId);
  const operations = ids.flatMap((id, index) => [
    addWith(id, { feed_url: `https://many.example/${index}`, ...(index % 2 === 0 ? { title: `t${index}` } : {}) }),
    ...(index % 2 === 0 ? [update(id, { folders: [`f${index % 7}`] }), null] : [remove(id)]),
  ]);
  assert.equal(operations.length, 10_000);
  const results = await operateOwn(operations);
  assert.equal(results.length, 10_000);
  const kinds = results.map(({ data, errors }) => (errors ? errors[0].code : data === null ? "removed" : data.id));
  assert.deepEqual(
    kinds,
    ids.flatMap((id, index) => (index % 2 === 0 ? [id, id, "invalid-operation"] : [id, "removed"])),
  );
  const { json } = await callOwn("GET", "/v1/subscriptions?page[number]=20&page[size]=100");
  assert.equal(json.meta.total, 2_000);
  assert.deepEqual(json.data.at(-1).attributes.title, "t3998");
  assert.deepEqual(json.data.at(-1).attributes.folders, ["f1"]);
});

test("PATCH: title, folders, feed URL → 200 with the subscription; null clears", async () => {
  const { id, feed } = await subscribe();
  const renamed = await patch(id, { title: "Mine", folders: ["a/b"] });
  assert.equal(renamed.status, 200, renamed.text);
  const { user_subscribed_at } = attributesOf(renamed.json);
  assert.deepEqual(renamed.json.data, (await call("GET", `/v1/subscriptions/${id}`)).json.data);
  assert.deepEqual(attributesOf(renamed.json), { feed_url: feed, user_subscribed_at, title: "Mine", folders: ["a/b"] });
  const moved = newFeed();
  assert.deepEqual(attributesOf((await patch(id, { feed_url: moved, title: null, folders: null })).json), {
    feed_url: moved,
    user_subscribed_at,
    former_feed_urls: [feed],
  });
  assert.equal((await patch(id, undefined)).status, 200, "nothing to change");
});

test("operations: title and folders together too long → 422, the others are applied", async () => {
  const folders = ["a", "b", "c"].map((name) => name.repeat(300));
  const { id } = await subscribe({ folders });
  const results = await operate([
    update(id, { title: "x".repeat(125) }),
    addWith(newId(), { feed_url: newFeed(), title: "x".repeat(125), folders }),
    update(id, { title: "x".repeat(124) }),
  ]);
  for (const at of [0, 1]) {
    const [error] = results[at].errors;
    assert.deepEqual(
      [error.status, error.code, error.source],
      ["422", "details-too-long", { pointer: `/atomic:operations/${at}` }],
    );
  }
  assert.equal(attributesOf(results[2]).title, "x".repeat(124));
  const body = JSON.stringify({
    data: { type: "subscription", id: newId(), attributes: { feed_url: newFeed(), title: "x".repeat(125), folders } },
  });
  const posted = await call("POST", "/v1/subscriptions", { headers: { "Content-Type": PLAIN }, body });
  for (const { status, json } of [await patch(id, { title: "x".repeat(125) }), posted])
    assert.deepEqual(
      [status, json.errors[0].code, json.errors[0].source.pointer],
      [422, "details-too-long", "/data/attributes"],
    );
});

test("PATCH: an error → its status, code and pointer", async () => {
  const [{ id }, other] = [await subscribe(), await subscribe()];
  const cases = [
    [await patch(newId(), { title: "t" }), 404, "not-found", undefined],
    [await patch("x", { title: "t" }), 400, "invalid-id", undefined],
    [await patch(id, { title: "" }), 422, "invalid-title", "/data/attributes/title"],
    [await patch(id, { folders: "x" }), 422, "invalid-folders", "/data/attributes/folders"],
    [await patch(id, { feed_url: 1 }), 422, "feed-url-missing", "/data/attributes/feed_url"],
    [await patch(id, "x"), 422, "invalid-attribute", "/data/attributes"],
    [await patch(id, { feed_url: other.feed }), 409, "already-subscribed", "/data/attributes/feed_url"],
    [await patch(id, {}, { id: other.id }), 409, "id-mismatch", "/data/id"],
    [await patch(id, {}, { type: "podcast" }), 409, "type-mismatch", "/data/type"],
  ] as const;
  for (const [{ status, json }, expected, code, pointer] of cases)
    assert.deepEqual([status, json.errors[0].code, json.errors[0].source?.pointer], [expected, code, pointer]);
  const conflict = cases[6][0].json.errors[0].meta;
  assert.deepEqual(conflict, { feed_url: other.feed, guid: id, existing_id: other.id });
});

test("fields: title and folders → only those, and no attributes when they are not set", async () => {
  const [{ id }, plain] = [await subscribe({ title: "t", folders: ["f"] }), await subscribe()];
  const read = async (of: string, fields: string) =>
    (await call("GET", `/v1/subscriptions/${of}?fields[subscription]=${fields}`)).json.data;
  assert.deepEqual((await read(id, "title")).attributes, { title: "t" });
  assert.deepEqual(Object.keys((await read(id, "folders,feed_url")).attributes), ["folders", "feed_url"]);
  assert.equal("attributes" in (await read(plain.id, "title,folders")), false);
});

test("filter: any spelling of a feed URL → its subscription; another → none; no URL → 400", async () => {
  const { id, feed } = await subscribe({ title: "t" });
  const find = (url: string, more = "") =>
    call("GET", `/v1/subscriptions?filter[feed_url]=${encodeURIComponent(url)}${more}`);
  for (const url of [feed, feed.replace("https", "http"), `${feed.toUpperCase().replace("/FEEDS", "/feeds")}/#x`]) {
    const { json } = await find(url);
    assert.deepEqual([json.meta.total, json.data.map((item: { id: string }) => item.id)], [1, [id]], url);
  }
  const sparse = await find(feed, "&fields[subscription]=title&page[size]=5");
  assert.deepEqual(attributesOf({ data: sparse.json.data[0] }), { title: "t" });
  const link = `/v1/subscriptions?page[number]=1&page[size]=5&filter[feed_url]=${encodeURIComponent(feed)}&fields[subscription]=title`;
  assert.deepEqual(sparse.json.links, { self: link, first: link, prev: null, next: null, last: link });
  const beyond = (await find(feed, "&page[number]=2")).json;
  assert.deepEqual([beyond.data, beyond.meta.total], [[], 1]);
  const none = (await find("https://nobody.example/has?this=1&b")).json;
  assert.deepEqual([none.data, none.meta.total], [[], 0]);
  for (const url of ["", "nonsense", "ftp://x"]) {
    const { status, json } = await find(url);
    assert.deepEqual(
      [status, json.errors[0].code, json.errors[0].source],
      [400, "invalid-query", { parameter: "filter[feed_url]" }],
    );
  }
});

test("metrics: updates and removals → counted as such", async () => {
  const count = async (outcome: string) =>
    Number(
      new RegExp(`operations_total\\{outcome="${outcome}"\\} (\\d+)`).exec((await call("GET", "/metrics")).text)?.[1] ??
        0,
    );
  const before = await Promise.all([count("updated"), count("removed")]);
  const { id } = await subscribe();
  await operate([update(id, { title: "t" }), remove(id)]);
  const second = await subscribe();
  await patch(second.id, { title: "t" });
  await call("DELETE", `/v1/subscriptions/${second.id}`);
  const after = await Promise.all([count("updated"), count("removed")]);
  assert.deepEqual(
    after,
    before.map((number) => number + 2),
  );
});
