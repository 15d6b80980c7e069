import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  assertFailure,
  assertUsable,
  CHUNKED,
  CREATE,
  chunk,
  flood,
  HOST,
  LIST,
  MAX_BODY_BYTES,
  newBody,
  OPERATE,
  open,
  server,
  testRejections,
  total,
  withLength,
} from "../../../test/support/raw-client.ts";
import { ATOMIC, add, newId, PLAIN } from "../../../test/support/server.ts";

const framed = (headers: string) => `${OPERATE}${headers}\r\n\r\n${newBody()}`;
testRejections([
  {
    name: "framing: Content-Length, then chunked → 400, connection closed",
    bytes: `${OPERATE}Content-Length: 5\r\n${CHUNKED}\r\n${chunk(newBody())}0\r\n\r\n`,
    status: 400,
    closes: true,
  },
  {
    name: "framing: chunked, then Content-Length → 400, connection closed",
    bytes: `${OPERATE}${CHUNKED}Content-Length: 5\r\n\r\n${chunk(newBody())}0\r\n\r\n`,
    status: 400,
    closes: true,
  },
  {
    name: "framing: two different lengths → 400, connection closed",
    bytes: framed("Content-Length: 2\r\nContent-Length: 121"),
    status: 400,
    closes: true,
  },
  ...["-1", "1e3", "+5", "0x5", "", "5 5", "2, 2", "99999999999999999999999"].map((length) => ({
    name: `framing: length "${length}" → 400, connection closed`,
    bytes: framed(`Content-Length: ${length}`),
    status: 400,
    closes: true,
  })),
  ...["xchunked", "identity", "chunked, chunked", "chunked, identity", "gzip, chunked", "gzip", ""].map((coding) => ({
    name: `framing: transfer coding "${coding}" → 400, connection closed`,
    bytes: `${OPERATE}Transfer-Encoding: ${coding}\r\n\r\n${chunk(newBody())}0\r\n\r\n`,
    status: 400,
    closes: true,
  })),
  {
    name: "framing: the same transfer coding in two headers → 400",
    bytes: `${OPERATE}${CHUNKED}${CHUNKED}\r\n${chunk(newBody())}0\r\n\r\n`,
    status: 400,
    closes: true,
  },
  ...["ZZ", "-1", "11111111111111111", "0x5", " 5", "", "1"].map((size) => ({
    name: `framing: invalid chunk size "${size}" → 400, connection closed`,
    bytes: `${OPERATE}${CHUNKED}\r\n${size}\r\n${newBody()}\r\n0\r\n\r\n`,
    status: 400,
    closes: true,
  })),
  {
    name: "framing: chunk line ends in a bare line feed → 400",
    bytes: `${OPERATE}${CHUNKED}\r\n${chunk(newBody())}0\r\n\r\n`.replace(/(?<=\r\n\r\n[0-9a-f]+)\r\n/, "\n"),
    status: 400,
    closes: true,
  },
  {
    name: "framing: chunk extension of a megabyte → rejected, connection closed",
    bytes: `${OPERATE}${CHUNKED}\r\n5;${"a".repeat(1024 * 1024)}\r\n`,
    status: [400, 413],
    closes: true,
  },
  {
    name: "body: chunked and too long → 413",
    bytes: `${OPERATE}${CHUNKED}\r\n${chunk(" ".repeat(MAX_BODY_BYTES))}${chunk(newBody())}0\r\n\r\n`,
    status: 413,
    media: ATOMIC,
  },
  {
    name: "body: chunked and too long, single subscription → 413",
    bytes: `${CREATE}${CHUNKED}\r\n${chunk(" ".repeat(MAX_BODY_BYTES + 1))}0\r\n\r\n`,
    status: 413,
    media: PLAIN,
  },
  {
    name: "body: declared length too long → 413 before it is sent, connection closed",
    bytes: `${OPERATE}Content-Length: ${2 * 1024 * 1024}\r\n\r\n`,
    status: 413,
    closes: true,
    media: ATOMIC,
  },
  {
    name: "framing: Content-Length in trailers → 400",
    bytes: `${OPERATE}${CHUNKED}\r\n${chunk(newBody())}0\r\nContent-Length: 5\r\n\r\n`,
    status: 400,
    closes: true,
  },
  {
    name: "framing: 30,000 trailers → rejected",
    bytes: `${OPERATE}${CHUNKED}\r\n${chunk(newBody())}0\r\n${"a: b\r\n".repeat(30_000)}\r\n`,
    status: [400, 431],
    closes: true,
  },
]);

test("body: exactly as long as the limit → 200", async () => {
  const body = newBody().padEnd(MAX_BODY_BYTES);
  const reply = await open().send(withLength(OPERATE, body)).next();
  assert.equal(reply.status, 200);
});

test("framing: chunk extensions and trailers → ignored", async () => {
  const before = await total();
  const body = newBody();
  const pieces = `${chunk(body.slice(0, 9)).replace("\r\n", ";a=b\r\n")}${chunk(body.slice(9))}`;
  const client = open().send(`${OPERATE}${CHUNKED}\r\n${pieces}0\r\nHost: evil.example\r\nA: b\r\n\r\n`);
  const reply = await client.next();
  assert.equal(reply.status, 200);
  await assertUsable(client);
  assert.equal(await total(), before + 1);
});

test("framing: rejected request with a broken body → one response", async () => {
  const client = open().send(`GET /v1/subscriptions HTTP/1.1\r\nHost: elsewhere.example\r\n${CHUNKED}\r\nno chunk\r\n`);
  assertFailure(await client.next(), [400]);
  await client.closed();
  await assert.rejects(client.next());
});

test("framing: endless chunk extension → rejected, connection closed", async () => {
  const client = open().send(`${OPERATE}${CHUNKED}\r\n1;`);
  const flooded = flood(client, "a".repeat(16 * 1024));
  assertFailure(await client.next(), [400, 413]);
  await flooded;
  assert.ok(client.isClosed());
});

test("framing: garbage after a body → the request is answered, then 400", async () => {
  const before = await total();
  const client = open().send(`${withLength(OPERATE, newBody())}}}garbage\r\n\r\n`);
  const [first, second] = [await client.next(), await client.next()];
  assert.equal(first.status, 200, "the operation was applied, so its response must say so");
  assertFailure(second, [400]);
  await client.closed();
  assert.equal(await total(), before + 1);
});

test("framing: chunked HTTP/1.0 request → connection closed", async () => {
  const head = OPERATE.replace("HTTP/1.1", "HTTP/1.0");
  const client = open().send(
    `${head}Connection: keep-alive\r\n${CHUNKED}\r\n${chunk('{"atomic:operations":[]}')}0\r\n\r\n`,
  );
  const reply = await client.next();
  assert.ok([200, 400].includes(reply.status));
  await client.closed();
});

test("body: client disconnects halfway → nothing stored, no error logged", async () => {
  const before = await total();
  const logged = server.log().length;
  for (const head of [`${OPERATE}Content-Length: 500\r\n\r\n`, `${OPERATE}${CHUNKED}\r\n1f4\r\n`]) {
    const client = open().send(head + newBody());
    await sleep(50);
    client.disconnect();
  }
  await sleep(50);
  assert.equal(await total(), before);
  assert.doesNotMatch(server.log().slice(logged), /"level":[56]0/);
});

test("body: broken halfway → 400, no error logged", async () => {
  const logged = server.log().length;
  const client = open().send(`${OPERATE}${CHUNKED}\r\n1\r\n{\r\nZZ\r\n`);
  assertFailure(await client.next(), [400], [PLAIN, ATOMIC]);
  await client.closed();
  await sleep(50);
  assert.doesNotMatch(server.log().slice(logged), /"level":[56]0/);
});

test("body: client disconnects before the response → a retry adds the feed or gets 409", async () => {
  const id = newId();
  const operation = add(id, `https://example.com/${id}`);
  const client = open().send(withLength(OPERATE, JSON.stringify({ "atomic:operations": [operation] })));
  await sleep(1);
  client.disconnect();
  const [result] = await server.operate([operation]);
  assert.ok(result.data !== undefined || result.errors[0].status === "409");
  const [again] = await server.operate([operation]);
  assert.equal(again.errors[0].status, "409");
});

test("body: not needed by the request → ignored, connection reusable", async () => {
  const requests: readonly (readonly [number, string])[] = [
    [200, withLength(LIST, "hello")],
    [200, withLength(LIST, "GET /v1/nothing HTTP/1.1\r\n\r\n")],
    [200, withLength(LIST, "x".repeat(2 * MAX_BODY_BYTES))],
    [200, `${LIST}${CHUNKED}\r\n${chunk("hello")}0\r\n\r\n`],
    [404, withLength(`DELETE /v1/subscriptions/${newId()} HTTP/1.1\r\n${HOST}`, "hello")],
    [404, withLength(`POST /v1/nothing HTTP/1.1\r\n${HOST}`, "hello")],
    [405, withLength(`PATCH /v1/subscriptions HTTP/1.1\r\n${HOST}`, "hello")],
  ];
  for (const [status, request] of requests) {
    const client = open().send(request);
    const reply = await client.next();
    assert.equal(reply.status, status);
    await assertUsable(client);
  }
});

testRejections([
  ...["gzip", "br", "zstd", "deflate", "x-gzip", "identity, gzip"].map((coding) => ({
    name: `body: encoded as ${coding} → 415`,
    bytes: withLength(`${OPERATE}Content-Encoding: ${coding}\r\n`, newBody()),
    status: 415,
    media: ATOMIC,
  })),
]);
