import assert from "node:assert/strict";
import { test } from "node:test";
import { ATOMIC, add, type CallOptions, newId, PLAIN, startServer, statusOf } from "../../test/harness.ts";

const server = await startServer();
const { operate } = server;

const ID = "9b024349-ccf0-5f69-a609-6b82873eab3c";
const FEED = "https://podnews.net/rss";

let feeds = 0;
/** The address of a feed that nobody has. */
function newFeed(): string {
  feeds += 1;
  return `https://feeds.example/${feeds}`;
}

function post(body: CallOptions["body"], headers: CallOptions["headers"] = {}, path = "/v1/operations") {
  return server.call("POST", path, {
    headers: { "Content-Type": ATOMIC, Accept: ATOMIC, ...headers },
    ...(body === undefined ? {} : { body }),
  });
}

async function total(): Promise<number> {
  return (await server.call("GET", "/v1/subscriptions")).json.meta.total;
}

/** One operation's error, and that the operation after it was carried out all the same. */
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

test("a subscription is added, and answered with the moment the server set", async () => {
  const before = new Date().toISOString();
  const answer = await post(JSON.stringify({ "atomic:operations": [add(ID, FEED)] }));
  const after = new Date().toISOString();
  assert.equal(answer.status, 200);
  assert.equal(answer.headers["content-type"], ATOMIC);
  assert.equal(answer.headers["vary"], "Accept");
  assert.equal(answer.headers["cache-control"], "no-store");
  const at = answer.json["atomic:results"][0].data.attributes.user_subscribed_at;
  assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.ok(before <= at && at <= after);
  assert.deepEqual(answer.json, {
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
  });
});

test("who is subscribed already is told so, in the words of the request", async () => {
  const guid = "9B024349-CCF0-5F69-A609-6B82873EAB3C";
  const results = await operate([add(guid, "http://PODNEWS.net/rss/#new"), add(ID, FEED), add(newId(), FEED)]);
  assert.deepEqual(results[0], {
    errors: [
      {
        status: "409",
        code: "already-subscribed",
        title: "Already Subscribed",
        detail: "The user is already subscribed to this feed.",
        source: { pointer: "/atomic:operations/0" },
        meta: { feed_url: "http://PODNEWS.net/rss/#new", guid, existing_id: ID },
      },
    ],
  });
  assert.equal(results[1].errors[0].title, "Already Subscribed");
  assert.equal(results[2].errors[0].title, "Already Subscribed");
  assert.notEqual(results[2].errors[0].meta.guid, ID);
});

test("an id that another of the user's feeds has is in use", async () => {
  const feed = newFeed();
  const [result] = await operate([add(ID.toUpperCase(), feed)]);
  assert.deepEqual(result.errors[0], {
    status: "409",
    code: "id-in-use",
    title: "Identifier In Use",
    detail: "The user has another subscription with this id.",
    source: { pointer: "/atomic:operations/0" },
    meta: { feed_url: feed, guid: ID.toUpperCase() },
  });
});

test("each operation stands for itself, and result N answers operation N", async () => {
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

test("of two operations in one request that collide, the first wins", async () => {
  const [id, feed] = [newId(), newFeed()];
  const results = await operate([add(id, feed), add(newId(), feed), add(id, newFeed())]);
  assert.deepEqual(
    results.map((result) => result.errors?.[0].title ?? "added"),
    ["added", "Already Subscribed", "Identifier In Use"],
  );
});

test("no operations give no results", async () => {
  const answer = await post('{"atomic:operations":[]}');
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.json["atomic:results"], []);
});

test("a request in which every operation fails is answered 200", async () => {
  assert.deepEqual((await operate([null, add("x", FEED), add(ID, FEED)])).map(statusOf), ["422", "400", "409"]);
});

test("one good operation among 999 bad ones is carried out, at its own place", async () => {
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

test("the same document again changes nothing", async () => {
  const document = [add(newId(), newFeed()), add(newId(), newFeed())];
  assert.deepEqual((await operate(document)).map(statusOf), ["added", "added"]);
  assert.deepEqual((await operate(document)).map(statusOf), ["409", "409"]);
});

test("an operation that is no operation", async () => {
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

test("an operation of another kind than add", async () => {
  for (const op of ["", "update", "remove", "ADD", " add", "add\u0000", "__proto__", "constructor"]) {
    const { status, title } = await errorOf({ ...add(newId(), newFeed()), op });
    assert.deepEqual([status, title], ["422", "Unsupported Operation"]);
  }
});

test("an operation without exactly one resource", async () => {
  for (const data of [undefined, null, "x", 1, [], [{ type: "subscription" }]]) {
    const { status, title, detail } = await errorOf({ op: "add", data });
    assert.deepEqual([status, title], ["422", "Invalid Operation"]);
    assert.match(detail, /data/);
  }
});

test("a target that agrees with the resource is accepted, any other refused", async () => {
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

test("a resource of another type", async () => {
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

test("an id that is not of the form of a UUID", async () => {
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

test("an id of any version and case is taken, and answered in lower case", async () => {
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

test("attributes that hold no feed", async () => {
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

test("of several faults the first is reported: operation, type, id, attributes", async () => {
  assert.equal((await errorOf({ op: "update", data: { type: "x", id: "x" } })).title, "Unsupported Operation");
  assert.equal((await errorOf({ op: "add", data: { type: "x", id: "x" } })).status, "409");
  assert.equal((await errorOf({ op: "add", data: { id: "x" } })).title, "Type Mismatch");
  assert.equal(
    (await errorOf({ op: "add", data: { type: "subscription", id: "x", attributes: {} } })).title,
    "Invalid Resource Identifier",
  );
  assert.equal((await errorOf(add(ID, "nonsense"))).title, "Validation Failed");
});

test("what the server does not know is ignored", async () => {
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

test("an address is answered exactly as it was sent", async () => {
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

const BODIES: Record<string, readonly (string | Uint8Array | undefined)[]> = {
  "no body": [undefined, ""],
  "a body that is not JSON": [
    "x",
    "{",
    '{"atomic:operations":[',
    '{"atomic:operations":[],}',
    "{'atomic:operations':[]}",
    '{"atomic:operations":[NaN]}',
    '{"atomic:operations":[undefined]}',
    '{"atomic:operations":[]}//',
    '{"x":"\n","atomic:operations":[]}',
  ],
  "two documents": ["{}{}", '{"atomic:operations":[]}\n{"atomic:operations":[]}'],
  "a body in another encoding": [
    Buffer.from('{"atomic:operations":[]}', "utf16le"),
    Buffer.from([0xff, 0xfe, 0x7b, 0x7d]),
  ],
  "broken UTF-8": [
    Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xff]), Buffer.from('","atomic:operations":[]}')]),
    Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xc0, 0x80]), Buffer.from('","atomic:operations":[]}')]),
    Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('","atomic:operations":[]}')]),
    Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xe2, 0x82]), Buffer.from('","atomic:operations":[]}')]),
  ],
  "a document that is no object": ["null", "true", "1", '"x"', "[]"],
  "a document without operations": ["{}", '{"operations":[]}', '{"atomic:Operations":[]}'],
  "operations that are no array": [
    '{"atomic:operations":null}',
    '{"atomic:operations":{}}',
    '{"atomic:operations":"x"}',
    '{"atomic:operations":1}',
  ],
  "another main member beside the operations": ["data", "errors", "included", "atomic:results"].map(
    (member) => `{"atomic:operations":[],"${member}":[]}`,
  ),
  "a key that would poison objects": [
    '{"__proto__":{"x":1},"atomic:operations":[]}',
    '{"atomic:operations":[{"a":{"__proto__":{}}}]}',
    '{"\\u005f_proto__":{},"atomic:operations":[]}',
    '{"constructor":{"prototype":{"x":1}},"atomic:operations":[]}',
  ],
  "a document that is nested too deep": [
    "[".repeat(1_000),
    "[".repeat(500_000) + "]".repeat(500_000),
    `{"atomic:operations":[{"op":"add","data":{"attributes":${'{"a":'.repeat(60_000)}1${"}".repeat(60_000)}}}]}`,
    `{"meta":${"[".repeat(65)}${"]".repeat(65)},"atomic:operations":[]}`,
  ],
  "a megabyte of nothing": [" ".repeat(1_000_000), "[".repeat(1_000_000)],
};
for (const [what, bodies] of Object.entries(BODIES)) {
  test(`${what}: the whole request is refused, and nothing is stored`, async () => {
    const before = await total();
    for (const body of bodies) {
      const answer = await post(body);
      assert.equal(answer.status, 400, String(body).slice(0, 80));
      assert.equal(answer.headers["content-type"], ATOMIC);
      assert.deepEqual(Object.keys(answer.json), ["jsonapi", "errors"]);
      assert.equal(answer.json.errors[0].status, "400");
      assert.equal(answer.json.errors[0].title, "Malformed Document");
    }
    assert.equal(({} as { x?: unknown }).x, undefined);
    assert.equal(await total(), before);
  });
}

test("what is wrong with the envelope is pointed at", async () => {
  assert.deepEqual((await post('{"atomic:operations":null}')).json.errors[0].source, { pointer: "/atomic:operations" });
  assert.deepEqual((await post("{}")).json.errors[0].source, { pointer: "" });
  assert.deepEqual((await post('{"atomic:operations":[],"data":1}')).json.errors[0].source, { pointer: "/data" });
});

test("JSON that says the same in another way is understood", async () => {
  assert.equal((await post('{"atomic\\u003aoperations":[]}')).status, 200);
  assert.equal((await post('\ufeff{"atomic:operations":[]}')).status, 200);
  assert.equal((await post(` \r\n\t{"atomic:operations" : [ ] } `)).status, 200);
  const nested = `{"meta":${"[".repeat(9)}${"]".repeat(9)},"atomic:operations":[]}`;
  assert.equal((await post(nested)).status, 200);
});

test("of a member that is written twice the last counts", async () => {
  const id = newId();
  const twice = `{"atomic:operations":[1],"atomic:operations":[{"op":"add","data":{"type":"subscription","id":"x","id":"${id}","attributes":{"feed_url":"x","feed_url":"${newFeed()}"}}}]}`;
  assert.equal((await post(twice)).json["atomic:results"][0].data.id, id);
});

test("numbers beyond any measure are refused where text is due, and ignored elsewhere", async () => {
  const operation = (id: string, note: string) =>
    `{"op":"add","note":${note},"data":{"type":"subscription","id":${id},"attributes":{"feed_url":"${newFeed()}"}}}`;
  const answer = await post(
    `{"atomic:operations":[${operation("1e999", "0")},${operation("-0", "0")},${operation(`"${newId()}"`, "9".repeat(400))},${operation(`"${newId()}"`, "1E400")}]}`,
  );
  assert.deepEqual(answer.json["atomic:results"].map(statusOf), ["400", "400", "added", "added"]);
});

test("200,000 members in one object are ignored like one", async () => {
  const members = Array.from({ length: 200_000 }, (_, index) => `"k${index}":0`).join(",");
  assert.equal((await post(`{"meta":{${members}},"atomic:operations":[]}`)).status, 200);
});

test("10,000 operations are taken, one more is refused with the limit", async () => {
  const answer = await post(
    JSON.stringify({ "atomic:operations": Array.from({ length: 10_000 }, () => add(newId(), newFeed())) }),
  );
  assert.equal(answer.json["atomic:results"].length, 10_000);
  assert.ok(answer.json["atomic:results"].every((result: object) => "data" in result));
  const before = await total();
  const over = await post(
    JSON.stringify({ "atomic:operations": Array.from({ length: 10_001 }, () => add(newId(), newFeed())) }),
  );
  assert.equal(over.status, 413);
  assert.deepEqual(over.json.errors[0].meta, { max: 10_000 });
  assert.match(over.json.errors[0].detail, /10000/);
  assert.equal(await total(), before);
});

test("a body of 8 MiB is taken, a longer one is refused with the limit", async () => {
  const document = '{"atomic:operations":[]}';
  assert.equal((await post(document + " ".repeat(8_388_608 - document.length))).status, 200);
  const answer = await post(document + " ".repeat(8_388_609 - document.length));
  assert.equal(answer.status, 413);
  assert.deepEqual(answer.json.errors[0].meta, { max: 8_388_608 });
  assert.match(answer.json.errors[0].detail, /8388608/);
  assert.equal(answer.headers["content-type"], ATOMIC);
});

test("the headers decide before the body is looked at", async () => {
  const answers = {
    contentType: await post("x", { "Content-Type": "application/json" }),
    accept: await post("x", { Accept: "application/json" }),
    query: await post("x", {}, "/v1/operations?page[number]=1"),
    encoding: await post("x", { "Content-Encoding": "gzip" }),
  };
  assert.deepEqual(
    Object.values(answers).map(({ status }) => status),
    [415, 406, 400, 415],
  );
  assert.deepEqual(
    Object.values(answers).map(({ json }) => json.errors[0].source),
    [{ header: "Content-Type" }, { header: "Accept" }, { parameter: "page[number]" }, { header: "Content-Encoding" }],
  );
  for (const { headers, json } of Object.values(answers)) {
    assert.equal(headers["content-type"], ATOMIC);
    assert.equal(headers["vary"], "Accept");
    assert.deepEqual(json.jsonapi, { version: "1.1", ext: ["https://jsonapi.org/ext/atomic"] });
  }
});

test("a Content-Type that stands there twice is refused", async () => {
  assert.equal((await post('{"atomic:operations":[]}', { "Content-Type": [ATOMIC, ATOMIC] })).status, 415);
  assert.equal((await post('{"atomic:operations":[]}', { "Content-Type": [ATOMIC, "text/plain"] })).status, 415);
});

test("Accept may be absent or name the bare type, and the answer is the same", async () => {
  for (const accept of [[], "*/*", "application/*", PLAIN, ATOMIC]) {
    const headers = { "Content-Type": ATOMIC, ...(accept.length === 0 ? {} : { Accept: accept }) };
    const answer = await server.call("POST", "/v1/operations", { headers, body: '{"atomic:operations":[]}' });
    assert.deepEqual([answer.status, answer.headers["content-type"]], [200, ATOMIC]);
  }
});

test("any other method is told what is allowed", async () => {
  for (const method of ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]) {
    const answer = await server.call(method, "/v1/operations");
    assert.equal(answer.status, 405, method);
    assert.equal(answer.headers["allow"], "POST");
    assert.equal(answer.headers["content-type"], ATOMIC);
    assert.equal(answer.headers["access-control-allow-origin"], undefined);
    if (method !== "HEAD") assert.equal(answer.json.errors[0].status, "405");
  }
});

test("an answer holds no trace of how it was made", async () => {
  const answers = [await post("x"), await post('{"atomic:operations":[null]}'), await server.call("GET", "/nowhere")];
  for (const { text } of answers) assert.doesNotMatch(text, /at \w+ \(|node_modules|sqlite|\.ts|select /i);
});
