import assert from "node:assert/strict";
import { test } from "node:test";
import { newFeed, post, server, total } from "../../../test/support/operations.ts";
import { ATOMIC, add, newId, statusOf } from "../../../test/support/server.ts";

const { operate } = server;

const ID = "9b024349-ccf0-5f69-a609-6b82873eab3c";
const FEED = "https://podnews.net/rss";

/** The error of one operation. The operation after it must succeed. */
async function errorOf(operation: unknown) {
  const [result, neighbour] = await operate([operation, add(newId(), newFeed())]);
  assert.deepEqual(Object.keys(result), ["errors"], `should be refused: ${JSON.stringify(operation)?.slice(0, 200)}`);
  assert.equal(result.errors.length, 1);
  assert.deepEqual(Object.keys(neighbour), ["data"]);
  const [error] = result.errors;
  assert.equal(typeof error.status, "string");
  assert.deepEqual(error.source, { pointer: "/atomic:operations/0" });
  return error;
}

test("operations: add → the subscription with the server's timestamp", async () => {
  const before = new Date().toISOString();
  const response = await post(JSON.stringify({ "atomic:operations": [add(ID, FEED)] }));
  const after = new Date().toISOString();
  assert.equal(response.status, 200);
  assert.equal(response.headers["content-type"], ATOMIC);
  assert.equal(response.headers["vary"], "Accept");
  assert.equal(response.headers["cache-control"], "no-store");
  const at = response.json["atomic:results"][0].data.attributes.user_subscribed_at;
  assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.ok(before <= at && at <= after);
  assert.deepEqual(response.json, {
    jsonapi: { version: "1.1", ext: ["https://jsonapi.org/ext/atomic"] },
    "atomic:results": [
      {
        data: {
          type: "subscription",
          id: ID,
          attributes: { feed_url: FEED, user_subscribed_at: at },
          links: { self: `/v1/subscriptions/${ID}` },
        },
      },
    ],
    meta: response.json.meta,
  });
});

test("operations: a feed that is in the list → 409 with feed_url and guid as sent, and the existing id", async () => {
  const [id, feed] = ["5d0f3c1e-8a64-4b7e-9f10-2c3d4e5f6a7b", newFeed()];
  const [guid, sent] = [id.toUpperCase(), `${feed.replace("https://feeds", "http://FEEDS")}/#new`];
  await operate([add(id, feed)]);
  const results = await operate([add(guid, sent), add(id, feed), add(newId(), feed)]);
  assert.deepEqual(results[0], {
    errors: [
      {
        status: "409",
        code: "already-subscribed",
        title: "Already Subscribed",
        detail: "The user is already subscribed to this feed.",
        source: { pointer: "/atomic:operations/0" },
        meta: { feed_url: sent, guid, existing_id: id },
      },
    ],
  });
  assert.equal(results[1].errors[0].title, "Already Subscribed");
  assert.equal(results[2].errors[0].title, "Already Subscribed");
  assert.notEqual(results[2].errors[0].meta.guid, id);
});

test("operations: an id of another feed → 409 id-in-use", async () => {
  const [id, feed] = ["c7e2a9d4-1b35-4f68-8e7c-0a9b8c7d6e5f", newFeed()];
  const [, result] = await operate([add(id, newFeed()), add(id.toUpperCase(), feed)]);
  assert.deepEqual(result.errors[0], {
    status: "409",
    code: "id-in-use",
    title: "Identifier In Use",
    detail: "Another subscription already has this id.",
    source: { pointer: "/atomic:operations/1" },
    meta: { feed_url: feed, guid: id.toUpperCase() },
  });
});

test("operations: valid and invalid ones → result N for operation N", async () => {
  const [a, b, feed] = [newId(), newId(), newFeed()];
  const results = await operate([
    add("not-a-uuid", feed),
    add(a, feed),
    add(b, feed),
    add(b, "ftp://x"),
    null,
    add(b, newFeed()),
  ]);
  assert.deepEqual(results.map(statusOf), ["400", "added", "409", "422", "422", "added"]);
  assert.deepEqual(
    results.flatMap((result) => result.errors ?? []).map((error) => error.source.pointer),
    [0, 2, 3, 4].map((index) => `/atomic:operations/${index}`),
  );
});

test("operations: two that collide in one request → the first wins", async () => {
  const [id, feed] = [newId(), newFeed()];
  const results = await operate([add(id, feed), add(newId(), feed), add(id, newFeed())]);
  assert.deepEqual(
    results.map((result) => result.errors?.[0].title ?? "added"),
    ["added", "Already Subscribed", "Identifier In Use"],
  );
});

test("operations: none → no results", async () => {
  const response = await post('{"atomic:operations":[]}');
  assert.equal(response.status, 200);
  assert.deepEqual(response.json["atomic:results"], []);
});

test("operations: all invalid → 200", async () => {
  const [id, feed] = [newId(), newFeed()];
  await operate([add(id, feed)]);
  assert.deepEqual((await operate([null, add("x", feed), add(id, feed)])).map(statusOf), ["422", "400", "409"]);
});

test("operations: one valid among 999 invalid → added, result in its place", async () => {
  const before = await total();
  const operations = Array.from({ length: 1_000 }, (_, index) =>
    index === 500 ? add(newId(), newFeed()) : add(newId(), "nonsense"),
  );
  const results = await operate(operations);
  assert.equal(
    results.findIndex((result) => result.data !== undefined),
    500,
  );
  assert.deepEqual(results[999].errors[0].source, { pointer: "/atomic:operations/999" });
  assert.equal(await total(), before + 1);
});

test("operations: the same document twice → nothing changes", async () => {
  const document = [add(newId(), newFeed()), add(newId(), newFeed())];
  assert.deepEqual((await operate(document)).map(statusOf), ["added", "added"]);
  assert.deepEqual((await operate(document)).map(statusOf), ["409", "409"]);
});

test("operations: not an operation object → 422", async () => {
  for (const operation of [null, 1, "add", [], true]) {
    const { status, title } = await errorOf(operation);
    assert.deepEqual([status, title], ["422", "Invalid Operation"]);
  }
  for (const op of [undefined, null, 1, {}]) {
    const { status, title } = await errorOf({ ...add(newId(), newFeed()), op });
    assert.deepEqual([status, title], ["422", "Invalid Operation"]);
  }
  assert.equal((await errorOf({})).title, "Invalid Operation");
});

test("operations: an unknown op → 422", async () => {
  for (const op of ["", "replace", "Update", "ADD", " add", "add\u0000", "__proto__", "constructor"]) {
    const { status, title } = await errorOf({ ...add(newId(), newFeed()), op });
    assert.deepEqual([status, title], ["422", "Unsupported Operation"]);
  }
});

test("operations: data is not one resource → 422", async () => {
  for (const data of [undefined, null, "x", 1, [], [{ type: "subscription" }]]) {
    const { status, title, detail } = await errorOf({ op: "add", data });
    assert.deepEqual([status, title], ["422", "Invalid Operation"]);
    assert.match(detail, /data/);
  }
});

test("operations: ref or href that agrees with data → added; another → 422", async () => {
  const id = newId();
  for (const ref of [
    null,
    {},
    "x",
    { type: "subscription" },
    { type: "subscription", id: newId() },
    { type: "podcast", id },
    { type: "subscription", id, relationship: "x" },
  ]) {
    assert.equal((await errorOf({ ...add(id, newFeed()), ref })).title, "Invalid Operation");
  }
  for (const href of [null, "", "/v1/operations", `/v1/subscriptions/${id}`]) {
    assert.equal((await errorOf({ ...add(id, newFeed()), href })).title, "Invalid Operation");
  }
  const results = await operate([
    { ...add(id, newFeed()), ref: { type: "subscription", id: id.toUpperCase() } },
    { ...add(newId(), newFeed()), href: "/v1/subscriptions" },
  ]);
  assert.deepEqual(results.map(statusOf), ["added", "added"]);
});

test("operations: another type → 400 or 409", async () => {
  for (const type of ["subscriptions", "podcast", "Subscription", ""]) {
    const { status, title } = await errorOf({
      op: "add",
      data: { type, id: newId(), attributes: { feed_url: newFeed() } },
    });
    assert.deepEqual([status, title], ["409", "Type Mismatch"]);
  }
  for (const type of [undefined, null, 1, {}, ["subscription"]]) {
    const { status, title } = await errorOf({
      op: "add",
      data: { type, id: newId(), attributes: { feed_url: newFeed() } },
    });
    assert.deepEqual([status, title], ["400", "Type Mismatch"]);
  }
});

test("operations: an id that is not a UUID → 400", async () => {
  const ids = [
    undefined,
    null,
    1,
    1.5,
    true,
    {},
    [],
    "",
    " ",
    "abc",
    ID.slice(1),
    `${ID}0`,
    `{${ID}}`,
    `urn:uuid:${ID}`,
    ID.replaceAll("-", ""),
    ` ${ID}`,
    `${ID} `,
    `${ID}\n`,
    `\t${ID}`,
    `${ID}\u0000`,
    ID.replace("9", "９"),
    ID.replace("9", "٩"),
    ID.replace("a", "а"),
    "../../x",
    "%2e%2e",
    "1;DROP TABLE",
    "' OR 1=1--",
    "{{7*7}}",
    "\u0024{7*7}",
    "<script>",
    "\ud800",
  ];
  for (const id of ids) {
    const error = await errorOf(add(id, newFeed()));
    assert.deepEqual([error.status, error.title], ["400", "Invalid Resource Identifier"]);
    assert.match(error.detail, /`id`/);
  }
  const error = await errorOf(add("x".repeat(1_000_000), newFeed()));
  assert.ok(JSON.stringify(error).length < 500, "a giant id is not sent back");
  const { data } = add(newId(), newFeed()) as { data: Record<string, unknown> };
  assert.equal((await errorOf({ op: "add", data: { ...data, id: undefined, lid: newId() } })).status, "400");
});

test("operations: a UUID of any version and case → returned in lower case", async () => {
  const ids = [
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "FFFFFFFF-0000-1000-8000-00AABBCCDDEE",
    "12345678-1234-9234-F234-123456789abc",
  ];
  const results = await operate(ids.map((id) => add(id, newFeed())));
  assert.deepEqual(
    results.map((result) => result.data.id),
    ids.map((id) => id.toLowerCase()),
  );
});

test("operations: attributes without a valid feed URL → 422", async () => {
  for (const attributes of [undefined, null, 1, "x", []]) {
    const error = await errorOf({ op: "add", data: { type: "subscription", id: newId(), attributes } });
    assert.deepEqual([error.status, error.title], ["422", "Validation Failed"]);
  }
  for (const attributes of [
    {},
    { feedUrl: newFeed() },
    { feed_url: null },
    { feed_url: 1 },
    { feed_url: true },
    { feed_url: {} },
    { feed_url: [newFeed()] },
    { feed_url: { toString: "x" } },
  ]) {
    const error = await errorOf({ op: "add", data: { type: "subscription", id: newId(), attributes } });
    assert.deepEqual([error.status, error.title], ["422", "Validation Failed"]);
    assert.match(error.detail, /feed URL/);
  }
  for (const feed of [
    "",
    "ftp://a.example/f",
    "antennapod_local:content://x",
    `https://a.example/${"x".repeat(1_000_000)}`,
    "https://a.example/\ud800",
  ]) {
    const error = await errorOf(add(newId(), feed));
    assert.deepEqual([error.status, error.title], ["422", "Validation Failed"]);
    assert.match(error.detail, /feed URL/);
    assert.ok(JSON.stringify(error).length < 500);
  }
});

test("operations: several errors → the first of operation, type, id, attributes", async () => {
  assert.equal((await errorOf({ op: "replace", data: { type: "x", id: "x" } })).title, "Unsupported Operation");
  assert.equal((await errorOf({ op: "add", data: { type: "x", id: "x" } })).status, "409");
  assert.equal((await errorOf({ op: "add", data: { id: "x" } })).title, "Type Mismatch");
  assert.equal(
    (await errorOf({ op: "add", data: { type: "subscription", id: "x", attributes: {} } })).title,
    "Invalid Resource Identifier",
  );
  assert.equal((await errorOf(add(ID, "nonsense"))).title, "Validation Failed");
});

test("operations: unknown members → ignored", async () => {
  const [id, feed] = [newId(), newFeed()];
  const extra = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`x${index}`, index]));
  const operation = {
    op: "add",
    meta: { a: 1 },
    note: "x",
    data: {
      type: "subscription",
      id,
      lid: "l",
      relationships: { podcast: { data: null } },
      links: { self: "https://evil.example/" },
      meta: {},
      attributes: { ...extra, feed_url: feed, user_subscribed_at: "1999-01-01T00:00:00.000Z", "\ud800": 1 },
    },
  };
  const document = {
    jsonapi: { version: "1.0" },
    meta: {},
    links: {},
    x: 1,
    "\udc00": 1,
    "atomic:operations": [operation],
  };
  const { data } = (await post(JSON.stringify(document))).json["atomic:results"][0];
  assert.deepEqual(Object.keys(data), ["type", "id", "attributes", "links"]);
  assert.deepEqual(Object.keys(data.attributes), ["feed_url", "user_subscribed_at"]);
  assert.notEqual(data.attributes.user_subscribed_at.slice(0, 4), "1999");
  assert.equal(data.links.self, `/v1/subscriptions/${id}`);
});

test("operations: a feed URL → returned exactly as sent", async () => {
  for (const feed of [
    "HTTPS://Ann:S%65cret@Feeds.EXAMPLE:443/A/../é?b=2&a=1#top",
    "https://feeds.example/👩‍👩‍👧",
    'https://feeds.example/"<script>',
  ]) {
    const id = newId();
    const [result] = await operate([add(id, feed)]);
    assert.equal(result.data.attributes.feed_url, feed);
    assert.equal((await server.call("GET", `/v1/subscriptions/${id}`)).json.data.attributes.feed_url, feed);
  }
});
