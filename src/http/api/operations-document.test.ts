import assert from "node:assert/strict";
import { test } from "node:test";
import { newFeed, post, server, total } from "../../../test/support/operations.ts";
import { ATOMIC, add, newId, PLAIN, statusOf } from "../../../test/support/server.ts";

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
  "a document that is not an object": ["null", "true", "1", '"x"', "[]"],
  "a document without operations": ["{}", '{"operations":[]}', '{"atomic:Operations":[]}'],
  "operations that are not an array": [
    '{"atomic:operations":null}',
    '{"atomic:operations":{}}',
    '{"atomic:operations":"x"}',
    '{"atomic:operations":1}',
  ],
  "another top-level member besides the operations": ["data", "errors", "included", "atomic:results"].map(
    (member) => `{"atomic:operations":[],"${member}":[]}`,
  ),
  "a key that would pollute a prototype": [
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
  test(`operations: ${what} → the whole request is rejected`, async () => {
    const before = await total();
    for (const body of bodies) {
      const response = await post(body);
      assert.equal(response.status, 400, String(body).slice(0, 80));
      assert.equal(response.headers["content-type"], ATOMIC);
      assert.deepEqual(Object.keys(response.json), ["jsonapi", "errors"]);
      assert.equal(response.json.errors[0].status, "400");
      assert.equal(response.json.errors[0].title, "Malformed Document");
    }
    assert.equal(({} as { x?: unknown }).x, undefined);
    assert.equal(await total(), before);
  });
}

test("operations document: invalid → 400 with a pointer", async () => {
  assert.deepEqual((await post('{"atomic:operations":null}')).json.errors[0].source, { pointer: "/atomic:operations" });
  assert.deepEqual((await post("{}")).json.errors[0].source, { pointer: "" });
  assert.deepEqual((await post('{"atomic:operations":[],"data":1}')).json.errors[0].source, { pointer: "/data" });
});

test("operations document: another serialization of the same JSON → accepted", async () => {
  assert.equal((await post('{"atomic\\u003aoperations":[]}')).status, 200);
  assert.equal((await post('\ufeff{"atomic:operations":[]}')).status, 200);
  assert.equal((await post(` \r\n\t{"atomic:operations" : [ ] } `)).status, 200);
  const nested = `{"meta":${"[".repeat(9)}${"]".repeat(9)},"atomic:operations":[]}`;
  assert.equal((await post(nested)).status, 200);
});

test("operations document: a duplicate member → the last one wins", async () => {
  const id = newId();
  const twice = `{"atomic:operations":[1],"atomic:operations":[{"op":"add","data":{"type":"subscription","id":"x","id":"${id}","attributes":{"feed_url":"x","feed_url":"${newFeed()}"}}}]}`;
  assert.equal((await post(twice)).json["atomic:results"][0].data.id, id);
});

test("operations document: huge numbers → 400 where a string is expected, ignored elsewhere", async () => {
  const operation = (id: string, note: string) =>
    `{"op":"add","note":${note},"data":{"type":"subscription","id":${id},"attributes":{"feed_url":"${newFeed()}"}}}`;
  const response = await post(
    `{"atomic:operations":[${operation("1e999", "0")},${operation("-0", "0")},${operation(`"${newId()}"`, "9".repeat(400))},${operation(`"${newId()}"`, "1E400")}]}`,
  );
  assert.deepEqual(response.json["atomic:results"].map(statusOf), ["400", "400", "added", "added"]);
});

test("operations document: 200,000 unknown members → ignored", async () => {
  const members = Array.from({ length: 200_000 }, (_, index) => `"k${index}":0`).join(",");
  assert.equal((await post(`{"meta":{${members}},"atomic:operations":[]}`)).status, 200);
});

test("operations document: 10,000 operations → 200; one more → 413 with the limit", async () => {
  const response = await post(
    JSON.stringify({ "atomic:operations": Array.from({ length: 10_000 }, () => add(newId(), newFeed())) }),
  );
  assert.equal(response.json["atomic:results"].length, 10_000);
  assert.ok(response.json["atomic:results"].every((result: object) => "data" in result));
  const before = await total();
  const over = await post(
    JSON.stringify({ "atomic:operations": Array.from({ length: 10_001 }, () => add(newId(), newFeed())) }),
  );
  assert.equal(over.status, 413);
  assert.deepEqual(over.json.errors[0].meta, { max: 10_000 });
  assert.match(over.json.errors[0].detail, /10000/);
  assert.equal(await total(), before);
});

test("operations document: 8 MiB → 200; more → 413 with the limit", async () => {
  const document = '{"atomic:operations":[]}';
  assert.equal((await post(document + " ".repeat(8_388_608 - document.length))).status, 200);
  const response = await post(document + " ".repeat(8_388_609 - document.length));
  assert.equal(response.status, 413);
  assert.deepEqual(response.json.errors[0].meta, { max: 8_388_608 });
  assert.match(response.json.errors[0].detail, /8388608/);
  assert.equal(response.headers["content-type"], ATOMIC);
});

test("operations request: invalid headers → rejected before the body is read", async () => {
  const responses = {
    contentType: await post("x", { "Content-Type": "application/json" }),
    accept: await post("x", { Accept: "application/json" }),
    query: await post("x", {}, "/v1/operations?page[number]=1"),
    encoding: await post("x", { "Content-Encoding": "gzip" }),
  };
  assert.deepEqual(
    Object.values(responses).map(({ status }) => status),
    [415, 406, 400, 415],
  );
  assert.deepEqual(
    Object.values(responses).map(({ json }) => json.errors[0].source),
    [{ header: "Content-Type" }, { header: "Accept" }, { parameter: "page[number]" }, { header: "Content-Encoding" }],
  );
  for (const { headers, json } of Object.values(responses)) {
    assert.equal(headers["content-type"], ATOMIC);
    assert.equal(headers["vary"], "Accept");
    assert.deepEqual(json.jsonapi, { version: "1.1", ext: ["https://jsonapi.org/ext/atomic"] });
  }
});

test("operations request: two Content-Type headers → 415", async () => {
  assert.equal((await post('{"atomic:operations":[]}', { "Content-Type": [ATOMIC, ATOMIC] })).status, 415);
  assert.equal((await post('{"atomic:operations":[]}', { "Content-Type": [ATOMIC, "text/plain"] })).status, 415);
});

test("operations request: Accept absent or without the extension → the same response", async () => {
  for (const accept of [[], "*/*", "application/*", PLAIN, ATOMIC]) {
    const headers = { "Content-Type": ATOMIC, ...(accept.length === 0 ? {} : { Accept: accept }) };
    const response = await server.call("POST", "/v1/operations", { headers, body: '{"atomic:operations":[]}' });
    assert.deepEqual([response.status, response.headers["content-type"]], [200, ATOMIC]);
  }
});

test("operations request: another method → 405 with Allow", async () => {
  for (const method of ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]) {
    const response = await server.call(method, "/v1/operations");
    assert.equal(response.status, 405, method);
    assert.equal(response.headers["allow"], "POST");
    assert.equal(response.headers["content-type"], ATOMIC);
    assert.equal(response.headers["access-control-allow-origin"], undefined);
    if (method !== "HEAD") assert.equal(response.json.errors[0].status, "405");
  }
});

test("operations request: any response → no details of the implementation", async () => {
  const responses = [await post("x"), await post('{"atomic:operations":[null]}'), await server.call("GET", "/nowhere")];
  for (const { text } of responses) assert.doesNotMatch(text, /at \w+ \(|node_modules|sqlite|\.ts|select /i);
});
