import assert from "node:assert/strict";
import { test } from "node:test";
import { asNewUser } from "../../../test/support/http-accounts.ts";
import { ATOMIC, add, type HttpResponse, newId, PLAIN, startServer } from "../../../test/support/server.ts";

const PAGE = "/v1/subscriptions?page[number]=1&page[size]=25";

const shared = await startServer({ EARMARK_ACCOUNTS: "true" });

/** A server whose list holds `count` subscriptions, and their ids in order. */
async function serverWith(count: number) {
  const server = await asNewUser(shared);
  const ids = Array.from({ length: count }, newId);
  if (count > 0) await server.operate(ids.map((id, index) => add(id, `https://feeds.example/${index}`)));
  const list = async (query = "") => {
    const response = await server.call("GET", `/v1/subscriptions${query}`);
    assert.equal(response.status, 200, response.text);
    return response.json;
  };
  return { ...server, ids, list };
}

const idsOf = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id);

test("list: empty → one empty page", async () => {
  const { call, list } = await serverWith(0);
  const page = await list();
  assert.deepEqual(page, {
    jsonapi: { version: "1.1" },
    links: { self: PAGE, first: PAGE, prev: null, next: null, last: PAGE },
    data: [],
    meta: { total: 0, state: page.meta.state },
  });
  const beyond = (await call("GET", "/v1/subscriptions?page[number]=5")).json;
  assert.deepEqual([beyond.data, beyond.links.prev, beyond.links.next, beyond.links.last], [[], null, null, PAGE]);
});

test("list: several pages → oldest first, with links to the others", async () => {
  const { ids, list } = await serverWith(60);
  const first = await list();
  assert.deepEqual(idsOf(first), ids.slice(0, 25));
  assert.equal(first.meta.total, 60);
  const link = (number: number) => `/v1/subscriptions?page[number]=${number}&page[size]=25`;
  assert.deepEqual(first.links, { self: link(1), first: link(1), prev: null, next: link(2), last: link(3) });
  const second = await list("?page[number]=2");
  assert.deepEqual(idsOf(second), ids.slice(25, 50));
  assert.deepEqual(second.links, { self: link(2), first: link(1), prev: link(1), next: link(3), last: link(3) });
  const third = await list("?page[number]=3");
  assert.deepEqual(idsOf(third), ids.slice(50));
  assert.deepEqual(third.links, { self: link(3), first: link(1), prev: link(2), next: null, last: link(3) });
});

test("list: a page past the end → empty, prev is the last page with items", async () => {
  const { list } = await serverWith(60);
  for (const number of [4, 999_999_999, Number.MAX_SAFE_INTEGER]) {
    const { data, links, meta } = await list(`?page[number]=${number}`);
    assert.deepEqual(data, []);
    assert.equal(meta.total, 60);
    assert.equal(links.self, `/v1/subscriptions?page[number]=${number}&page[size]=25`);
    assert.equal(links.prev, "/v1/subscriptions?page[number]=3&page[size]=25");
    assert.equal(links.last, links.prev);
    assert.equal(links.next, null);
  }
});

test("list: following next → every item once, at any page size", async () => {
  const { ids, list, call } = await serverWith(60);
  for (const size of [1, 7, 20, 59, 60, 61, 100]) {
    const found: string[] = [];
    let next: string | null = `/v1/subscriptions?page[size]=${size}`;
    while (next !== null) {
      const page: HttpResponse["json"] = (await call("GET", next)).json;
      found.push(...idsOf(page));
      next = page.links.next;
    }
    assert.deepEqual(found, ids);
    const { links } = await list(`?page[size]=${size}`);
    for (const link of [links.self, links.first, links.last])
      assert.equal((await call("GET", link)).json.links.self, link);
  }
});

test("list: additions → earlier pages do not change", async () => {
  const { list, operate } = await serverWith(25);
  const before = await list();
  await operate([add(newId(), "https://late.example/")]);
  assert.deepEqual((await list()).data, before.data);
});

test("list: an item → the same as fetched by id", async () => {
  const { list, call } = await serverWith(1);
  const [item] = (await list()).data;
  assert.deepEqual((await call("GET", item.links.self)).json, { jsonapi: { version: "1.1" }, data: item });
  assert.deepEqual(Object.keys(item), ["type", "id", "attributes", "links"]);
});

test("list: fields → only these attributes; every link repeats the parameter", async () => {
  const { list, call, ids } = await serverWith(3);
  const page = await list("?fields[subscription]=feed_url&page[size]=2");
  assert.deepEqual(page.data[0], {
    type: "subscription",
    id: ids[0],
    attributes: { feed_url: "https://feeds.example/0" },
    links: { self: `/v1/subscriptions/${ids[0]}` },
  });
  const link = (number: number) =>
    `/v1/subscriptions?page[number]=${number}&page[size]=2&fields[subscription]=feed_url`;
  assert.deepEqual(page.links, { self: link(1), first: link(1), prev: null, next: link(2), last: link(2) });
  assert.deepEqual(Object.keys((await call("GET", page.links.next)).json.data[0].attributes), ["feed_url"]);
  const none = await list("?fields[subscription]=");
  assert.equal("attributes" in none.data[0], false);
  assert.match(none.links.self, /&fields\[subscription\]=$/);
  const one = await call("GET", `/v1/subscriptions/${ids[0]}?fields[subscription]=user_subscribed_at`);
  assert.deepEqual(Object.keys(one.json.data.attributes), ["user_subscribed_at"]);
});

test("list: an invalid query → 400 with the parameter", async () => {
  const { call, ids } = await serverWith(1);
  const refused = async (path: string) => {
    const response = await call("GET", path);
    assert.equal(response.status, 400, path);
    assert.equal(response.headers["content-type"], PLAIN);
    return response.json.errors[0];
  };
  assert.deepEqual((await refused("/v1/subscriptions?page[size]=101")).source, { parameter: "page[size]" });
  assert.deepEqual((await refused("/v1/subscriptions?page[size]=101")).meta, { page: { maxSize: 100 } });
  assert.deepEqual((await refused("/v1/subscriptions?filter%5Ba%5D=1")).source, { parameter: "filter[a]" });
  assert.deepEqual((await refused(`/v1/subscriptions/${ids[0]}?include=x`)).source, { parameter: "include" });
  await refused("/v1/subscriptions?page[number]=1#x");
  await refused(`/v1/subscriptions?${Array.from({ length: 3_000 }, (_, n) => `a${n}=`).join("&")}`.slice(0, 15_000));
  const many = await call("GET", `/v1/subscriptions?${Array.from({ length: 10_000 }, (_, n) => `a${n}=`).join("&")}`);
  assert.equal(many.status, 431);
  const script = await call("GET", "/v1/subscriptions?page[number]=<script>");
  assert.doesNotMatch(script.text, /<script>/);
});

test("list: a token in the query → 400, and not logged", async () => {
  const server = await startServer({ EARMARK_LOG_LEVEL: "debug" });
  const response = await server.call("GET", "/v1/subscriptions?access_token=canary-secret");
  assert.equal(response.status, 400);
  assert.doesNotMatch(response.text + server.log(), /canary-secret/);
  assert.match(server.log(), /"route":"\/v1\/subscriptions"/);
});

test("subscription: GET by id in either case → 200", async () => {
  const { call, operate } = await serverWith(0);
  const id = "abcdefab-0000-4000-8000-00000000000a";
  await operate([add(id, "https://feeds.example/x")]);
  for (const path of [id, id.toUpperCase()]) {
    const response = await call("GET", `/v1/subscriptions/${path}`);
    assert.equal(response.status, 200);
    assert.equal(response.json.data.links.self, `/v1/subscriptions/${id}`);
  }
});

test("subscription: an unknown id → 404; an invalid id → 400", async () => {
  const { call } = await serverWith(1);
  for (const method of ["GET", "DELETE"]) {
    const response = await call(method, `/v1/subscriptions/${newId()}`);
    assert.equal(response.status, 404);
    assert.equal(response.json.errors[0].title, "Subscription not found");
    for (const id of ["x", "1", "%20", "..%2f..", newId().replaceAll("-", ""), `${newId()}%00`, "x".repeat(10_000)]) {
      const refused = await call(method, `/v1/subscriptions/${id}`);
      assert.equal(refused.status, 400, id);
      assert.equal(refused.json.errors[0].title, "Invalid Resource Identifier");
    }
  }
});

test("subscription: removed → 404, can be added again", async () => {
  const { call, ids, list, operate } = await serverWith(3);
  const [first = ""] = ids;
  const response = await call("DELETE", `/v1/subscriptions/${first.toUpperCase()}`);
  assert.equal(response.status, 204);
  assert.equal(response.headers["content-type"], undefined);
  assert.equal((await call("GET", `/v1/subscriptions/${first}`)).status, 404);
  assert.equal((await call("DELETE", `/v1/subscriptions/${first}`)).status, 404);
  assert.deepEqual(idsOf(await list()), ids.slice(1));
  await operate([add(first, "https://feeds.example/0")]);
  assert.deepEqual(idsOf(await list()), [...ids.slice(1), first]);
  await call("DELETE", `/v1/subscriptions/${first}`);
  const other = newId();
  await operate([add(other, "https://feeds.example/0")]);
  assert.deepEqual(idsOf(await list()), [...ids.slice(1), other]);
});

test("subscription: POST → 201 with Location; errors with pointers", async () => {
  const { call } = await serverWith(0);
  const id = newId();
  const post = (data: unknown, headers = {}) =>
    call("POST", "/v1/subscriptions", {
      headers: { "Content-Type": PLAIN, ...headers },
      body: JSON.stringify(data === undefined ? {} : { data }),
    });
  const resource = { type: "subscription", id: id.toUpperCase(), attributes: { feed_url: "https://feeds.example/x" } };

  const created = await post(resource);
  assert.equal(created.status, 201);
  assert.equal(created.headers["content-type"], PLAIN);
  assert.equal(created.headers["location"], created.json.data.links.self);
  assert.equal(created.headers["location"], `/v1/subscriptions/${id}`);
  assert.deepEqual((await call("GET", created.json.data.links.self)).json.data, created.json.data);

  const cases: readonly (readonly [data: unknown, status: number, title: string, pointer: string])[] = [
    [resource, 409, "Already Subscribed", "/data/attributes/feed_url"],
    [{ ...resource, attributes: { feed_url: "https://feeds.example/y" } }, 409, "Identifier In Use", "/data/id"],
    [{ ...resource, type: "podcast" }, 409, "Type Mismatch", "/data/type"],
    [{ ...resource, type: 1 }, 400, "Type Mismatch", "/data/type"],
    [{ ...resource, type: undefined }, 400, "Type Mismatch", "/data"],
    [{ ...resource, id: "x" }, 400, "Invalid Resource Identifier", "/data/id"],
    [{ ...resource, id: undefined }, 400, "Invalid Resource Identifier", "/data"],
    [{ ...resource, attributes: undefined }, 422, "Validation Failed", "/data"],
    [{ ...resource, attributes: [] }, 422, "Validation Failed", "/data/attributes"],
    [{ ...resource, attributes: {} }, 422, "Validation Failed", "/data/attributes"],
    [{ ...resource, attributes: { feed_url: 1 } }, 422, "Validation Failed", "/data/attributes/feed_url"],
    [{ ...resource, attributes: { feed_url: "ftp://x" } }, 422, "Validation Failed", "/data/attributes/feed_url"],
    [null, 422, "Validation Failed", "/data"],
    [[resource], 422, "Validation Failed", "/data"],
    [undefined, 422, "Validation Failed", ""],
  ];
  for (const [data, status, title, pointer] of cases) {
    const response = await post(data);
    const [error] = response.json.errors;
    assert.deepEqual(
      [response.status, error.status, error.title, error.source],
      [status, String(status), title, { pointer }],
    );
  }
  const conflict = (await post(resource)).json.errors[0];
  assert.deepEqual(conflict.meta, { feed_url: "https://feeds.example/x", guid: id.toUpperCase(), existing_id: id });

  assert.equal((await post(resource, { "Content-Type": ATOMIC })).status, 415);
  assert.equal((await post(resource, { "Content-Type": "application/json" })).status, 415);
  assert.equal((await post(resource, { Accept: ATOMIC })).status, 406);
  assert.equal(
    (await call("POST", "/v1/subscriptions", { headers: { "Content-Type": PLAIN }, body: "[]" })).status,
    400,
  );
  assert.equal(
    (await call("POST", "/v1/subscriptions?x=1", { headers: { "Content-Type": PLAIN }, body: "{}" })).status,
    400,
  );
});

test("subscription: a document with contradicting members → 400", async () => {
  const { call } = await serverWith(0);
  for (const member of ["errors", "atomic:operations"]) {
    const body = JSON.stringify({
      data: { type: "subscription", id: newId(), attributes: { feed_url: "https://feeds.example/x" } },
      [member]: [],
    });
    const response = await call("POST", "/v1/subscriptions", { headers: { "Content-Type": PLAIN }, body });
    assert.deepEqual([response.status, response.json.errors[0].source], [400, { pointer: `/${member}` }]);
  }
});
