import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answer, ATOMIC, add, newId, PLAIN, startServer } from "../../test/harness.ts";

const PAGE = "/v1/subscriptions?page[number]=1&page[size]=25";

/** A server whose list holds `count` subscriptions, and their ids in order. */
async function serverWith(count: number) {
  const server = await startServer();
  const ids = Array.from({ length: count }, newId);
  if (count > 0) await server.operate(ids.map((id, index) => add(id, `https://feeds.example/${index}`)));
  const list = async (query = "") => {
    const answer = await server.call("GET", `/v1/subscriptions${query}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  };
  return { ...server, ids, list };
}

const idsOf = (page: { data: { id: string }[] }) => page.data.map(({ id }) => id);

test("an empty list has one page, and it is empty", async () => {
  const { call, list } = await serverWith(0);
  assert.deepEqual(await list(), {
    jsonapi: { version: "1.1" },
    links: { self: PAGE, first: PAGE, prev: null, next: null, last: PAGE },
    data: [],
    meta: { total: 0 },
  });
  const beyond = (await call("GET", "/v1/subscriptions?page[number]=5")).json;
  assert.deepEqual([beyond.data, beyond.links.prev, beyond.links.next, beyond.links.last], [[], null, null, PAGE]);
});

test("a list is answered in pages, oldest first, with links to all the others", async () => {
  const { ids, list } = await serverWith(60);
  const first = await list();
  assert.deepEqual(idsOf(first), ids.slice(0, 25));
  assert.deepEqual(first.meta, { total: 60 });
  const link = (number: number) => `/v1/subscriptions?page[number]=${number}&page[size]=25`;
  assert.deepEqual(first.links, { self: link(1), first: link(1), prev: null, next: link(2), last: link(3) });
  const second = await list("?page[number]=2");
  assert.deepEqual(idsOf(second), ids.slice(25, 50));
  assert.deepEqual(second.links, { self: link(2), first: link(1), prev: link(1), next: link(3), last: link(3) });
  const third = await list("?page[number]=3");
  assert.deepEqual(idsOf(third), ids.slice(50));
  assert.deepEqual(third.links, { self: link(3), first: link(1), prev: link(2), next: null, last: link(3) });
});

test("a page past the end is empty and leads back to the last that is not", async () => {
  const { list } = await serverWith(60);
  for (const number of [4, 999_999_999, Number.MAX_SAFE_INTEGER]) {
    const { data, links, meta } = await list(`?page[number]=${number}`);
    assert.deepEqual(data, []);
    assert.deepEqual(meta, { total: 60 });
    assert.equal(links.self, `/v1/subscriptions?page[number]=${number}&page[size]=25`);
    assert.equal(links.prev, "/v1/subscriptions?page[number]=3&page[size]=25");
    assert.equal(links.last, links.prev);
    assert.equal(links.next, null);
  }
});

test("following next from the first page finds everything once, at any page size", async () => {
  const { ids, list, call } = await serverWith(60);
  for (const size of [1, 7, 20, 59, 60, 61, 100]) {
    const found: string[] = [];
    let next: string | null = `/v1/subscriptions?page[size]=${size}`;
    while (next !== null) {
      const page: Answer["json"] = (await call("GET", next)).json;
      found.push(...idsOf(page));
      next = page.links.next;
    }
    assert.deepEqual(found, ids);
    const { links } = await list(`?page[size]=${size}`);
    for (const link of [links.self, links.first, links.last])
      assert.equal((await call("GET", link)).json.links.self, link);
  }
});

test("what is added later never shifts an earlier page", async () => {
  const { list, operate } = await serverWith(25);
  const before = await list();
  await operate([add(newId(), "https://late.example/")]);
  assert.deepEqual((await list()).data, before.data);
});

test("an item of the list is what fetching it alone gives", async () => {
  const { list, call } = await serverWith(1);
  const [item] = (await list()).data;
  assert.deepEqual((await call("GET", item.links.self)).json, { jsonapi: { version: "1.1" }, data: item });
  assert.deepEqual(Object.keys(item), ["type", "id", "attributes", "links"]);
});

test("only the fields that were asked for are sent, and every link asks for them again", async () => {
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

test("a wrong query is refused with the name of the parameter", async () => {
  const { call, ids } = await serverWith(1);
  const refused = async (path: string) => {
    const answer = await call("GET", path);
    assert.equal(answer.status, 400, path);
    assert.equal(answer.headers["content-type"], PLAIN);
    return answer.json.errors[0];
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

test("a token in the query is refused, and stands in no log", async () => {
  const server = await startServer({ EARMARK_LOG_LEVEL: "debug" });
  const answer = await server.call("GET", "/v1/subscriptions?access_token=canary-secret");
  assert.equal(answer.status, 400);
  assert.doesNotMatch(answer.text + server.log(), /canary-secret/);
  assert.match(server.log(), /"route":"\/v1\/subscriptions"/);
});

test("one subscription can be fetched by its id, in either case", async () => {
  const { call, operate } = await serverWith(0);
  const id = "abcdefab-0000-4000-8000-00000000000a";
  await operate([add(id, "https://feeds.example/x")]);
  for (const path of [id, id.toUpperCase()]) {
    const answer = await call("GET", `/v1/subscriptions/${path}`);
    assert.equal(answer.status, 200);
    assert.equal(answer.json.data.links.self, `/v1/subscriptions/${id}`);
  }
});

test("an id that nobody has is not found, one that cannot be is refused", async () => {
  const { call } = await serverWith(1);
  for (const method of ["GET", "DELETE"]) {
    const answer = await call(method, `/v1/subscriptions/${newId()}`);
    assert.equal(answer.status, 404);
    assert.equal(answer.json.errors[0].title, "Subscription not found");
    for (const id of ["x", "1", "%20", "..%2f..", newId().replaceAll("-", ""), `${newId()}%00`, "x".repeat(10_000)]) {
      const refused = await call(method, `/v1/subscriptions/${id}`);
      assert.equal(refused.status, 400, id);
      assert.equal(refused.json.errors[0].title, "Invalid Resource Identifier");
    }
  }
});

test("a subscription that was removed is gone, and can be added again", async () => {
  const { call, ids, list, operate } = await serverWith(3);
  const [first = ""] = ids;
  const answer = await call("DELETE", `/v1/subscriptions/${first.toUpperCase()}`);
  assert.equal(answer.status, 204);
  assert.equal(answer.text, "");
  assert.equal(answer.headers["content-type"], undefined);
  assert.equal(answer.headers["vary"], "Accept");
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

test("one subscription can be added by itself", async () => {
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
  assert.deepEqual((await call("GET", created.json.data.links.self)).json, created.json);

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
    const answer = await post(data);
    const [error] = answer.json.errors;
    assert.deepEqual(
      [answer.status, error.status, error.title, error.source],
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

test("HEAD is answered like GET, without the body", async () => {
  const { call, ids } = await serverWith(30);
  for (const path of [
    "/v1/subscriptions",
    "/v1/subscriptions?page[number]=2",
    `/v1/subscriptions/${ids[0]}`,
    "/v1/subscriptions?x=1",
    `/v1/subscriptions/${newId()}`,
  ]) {
    const [get, head] = [await call("GET", path), await call("HEAD", path)];
    assert.equal(head.status, get.status);
    assert.equal(head.text, "");
    const { date: _, ...headers } = head.headers;
    const { date: __, ...expected } = get.headers;
    assert.deepEqual(headers, expected);
  }
});

test("a request without a body may carry a Content-Type", async () => {
  const { call, ids } = await serverWith(1);
  for (const type of ["application/json", ATOMIC, "garbage"]) {
    const headers = { "Content-Type": type };
    assert.equal((await call("GET", "/v1/subscriptions", { headers })).status, 200);
    assert.equal((await call("HEAD", "/v1/subscriptions", { headers })).status, 200);
    assert.equal((await call("DELETE", `/v1/subscriptions/${newId()}`, { headers })).status, 404);
  }
  assert.equal(
    (await call("DELETE", `/v1/subscriptions/${ids[0]}`, { headers: { "Content-Type": PLAIN } })).status,
    204,
  );
});

test("an Accept header that only names the extension, or another type, is refused", async () => {
  const { call } = await serverWith(0);
  for (const [accept, status] of [
    [ATOMIC, 406],
    ["application/json", 406],
    [`${PLAIN};q=0`, 406],
    [PLAIN, 200],
    ["*/*", 200],
    [`${ATOMIC}, ${PLAIN}`, 200],
  ] as const) {
    const answer = await call("GET", "/v1/subscriptions", { headers: { Accept: accept } });
    assert.equal(answer.status, status, accept);
    assert.equal(answer.headers["content-type"], PLAIN);
    assert.equal(answer.headers["vary"], "Accept");
    if (status === 406) assert.deepEqual(answer.json.errors[0].source, { header: "Accept" });
  }
});

test("every path knows its methods", async () => {
  const { call } = await serverWith(0);
  for (const [path, allow] of [
    ["/v1/subscriptions", "GET, HEAD, POST"],
    [`/v1/subscriptions/${newId()}`, "GET, HEAD, DELETE"],
    ["/healthz", "GET, HEAD"],
  ] as const) {
    for (const method of ["PUT", "PATCH", "OPTIONS", "TRACE", "QUERY", "PROPFIND"]) {
      const answer = await call(method, path);
      assert.deepEqual([answer.status, answer.headers["allow"]], [405, allow], `${method} ${path}`);
    }
  }
});

test("a path that does not exist is not found, in a JSON:API document", async () => {
  const { call } = await serverWith(0);
  for (const path of [
    "/v1",
    "/v1/",
    "/V1/Operations",
    "//v1/operations",
    "/v1/operations/",
    "/v1/subscriptions/",
    "/v1%2fsubscriptions",
    "/v1/../../etc/passwd",
    "/v1/%2e%2e/",
    "/metrics",
    "/v2/subscriptions",
  ]) {
    const answer = await call("GET", path);
    assert.equal(answer.status, 404, path);
    assert.equal(answer.headers["content-type"], PLAIN);
    assert.deepEqual(answer.json.errors[0].status, "404");
  }
});

test("a path that ends in a slash is another path, for every method", async () => {
  const { call } = await serverWith(0);
  for (const method of ["GET", "HEAD", "POST", "PUT", "DELETE"])
    assert.equal((await call(method, "/v1/subscriptions/")).status, 404, method);
});

test("a document with one subscription holds nothing that excludes it", async () => {
  const { call } = await serverWith(0);
  for (const member of ["errors", "atomic:operations"]) {
    const body = JSON.stringify({
      data: { type: "subscription", id: newId(), attributes: { feed_url: "https://feeds.example/x" } },
      [member]: [],
    });
    const answer = await call("POST", "/v1/subscriptions", { headers: { "Content-Type": PLAIN }, body });
    assert.deepEqual([answer.status, answer.json.errors[0].source], [400, { pointer: `/${member}` }]);
  }
});

test("headers that would change the request for others change nothing", async () => {
  const { call, list, ids } = await serverWith(1);
  const expected = await list();
  const tricks = {
    "X-HTTP-Method-Override": "DELETE",
    "X-Forwarded-For": "1.2.3.4",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    Forwarded: "host=evil.example",
    Range: "bytes=0-1",
    "If-Match": "*",
    "If-None-Match": "*",
  };
  const answer = await call("GET", "/v1/subscriptions", { headers: tricks });
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.json, expected);
  assert.equal((await call("GET", `/v1/subscriptions/${ids[0]}`, { headers: tricks })).status, 200);
});

test("a request by another name is misdirected, unless the name is allowed", async () => {
  const { call } = await startServer({ EARMARK_ALLOWED_HOSTS: "pods.example, Other.example" });
  const status = async (headers: Record<string, string>) =>
    (await call("GET", "/v1/subscriptions", { headers })).status;
  for (const host of [
    "localhost",
    "LOCALHOST:8080",
    "127.0.0.1",
    "127.0.0.1:1",
    "[::1]:8080",
    "10.1.2.3",
    "pods.example",
    "PODS.example:443",
    "other.example",
  ]) {
    assert.equal(await status({ Host: host }), 200, host);
  }
  for (const host of ["evil.example", "localhost.evil.example", "pods.example.evil.example", "127.0.0.1.evil.example"])
    assert.equal(await status({ Host: host }), 421, host);
  for (const host of ["a b", "a/b", "user@localhost", "localhost:x", "localhost, localhost"])
    assert.equal(await status({ Host: host }), 400, `<${host}>`);
});

test("a web page of another site cannot reach the list", async () => {
  const { call, port } = await startServer({ EARMARK_ALLOWED_HOSTS: "pods.example" });
  const status = async (headers: Record<string, string>) =>
    (await call("GET", "/v1/subscriptions", { headers })).status;
  for (const origin of [
    "https://evil.example",
    "null",
    "file://",
    "http://127.0.0.1.evil.example",
    "http://127.0.0.2",
    "http://127.0.0.1:5173",
  ])
    assert.equal(await status({ Origin: origin }), 403, origin);
  for (const site of ["cross-site", "same-site"]) assert.equal(await status({ "Sec-Fetch-Site": site }), 403, site);
  for (const origin of [`http://127.0.0.1:${port}`, "https://pods.example"])
    assert.equal(await status({ Origin: origin }), 200, origin);
  for (const site of ["same-origin", "none"]) assert.equal(await status({ "Sec-Fetch-Site": site }), 200, site);
  const answer = await call("GET", "/v1/subscriptions", { headers: { Origin: "https://evil.example" } });
  assert.equal(answer.headers["access-control-allow-origin"], undefined);
  assert.equal(answer.json.errors[0].status, "403");
});
