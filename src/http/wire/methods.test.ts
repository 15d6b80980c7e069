import assert from "node:assert/strict";
import { test } from "node:test";
import {
  assertFailure,
  assertUsable,
  get,
  HOST,
  LIST,
  newBody,
  OPERATE,
  open,
  server,
  testRejections,
  total,
  withLength,
} from "../../../test/support/raw-client.ts";
import { ATOMIC, add, newId, PLAIN } from "../../../test/support/server.ts";

testRejections([
  ...["TRACE", "OPTIONS", "PROPFIND", "QUERY", "PATCH", "PUT", "DELETE", "M-SEARCH"].map((method) => ({
    name: `method: ${method} /v1/subscriptions → 405 with Allow`,
    bytes: `${method} /v1/subscriptions HTTP/1.1\r\n${HOST}\r\n`,
    status: 405,
    media: PLAIN,
    allow: "GET, HEAD, POST",
  })),
  ...["GET", "DELETE", "PATCH", "OPTIONS", "TRACE"].map((method) => ({
    name: `method: ${method} /v1/operations → 405 with Allow`,
    bytes: `${method} /v1/operations HTTP/1.1\r\n${HOST}\r\n`,
    status: 405,
    media: ATOMIC,
    allow: "POST",
  })),
  ...["FOO", "get", "Get", "GETT"].map((method) => ({
    name: `method: unknown ${method} /v1/subscriptions → 405 with Allow`,
    bytes: `${method} /v1/subscriptions HTTP/1.1\r\n${HOST}\r\n`,
    status: 405,
    media: PLAIN,
    allow: "GET, HEAD, POST",
  })),
  {
    name: "method: unknown, /v1/operations → 405 with Allow",
    bytes: `FOO /v1/operations HTTP/1.1\r\n${HOST}\r\n`,
    status: 405,
    media: ATOMIC,
    allow: "POST",
  },
  {
    name: "method: unknown, on an unknown path → 404",
    bytes: `FOO /nowhere HTTP/1.1\r\n${HOST}\r\n`,
    status: 404,
    media: PLAIN,
  },
  {
    name: "method: invalid characters → 400",
    bytes: `G@T /v1/subscriptions HTTP/1.1\r\n${HOST}\r\n`,
    status: 400,
    media: PLAIN,
  },
]);

test("method: CONNECT → connection closed", async () => {
  for (const target of ["a:80", `127.0.0.1:${server.port}`]) {
    const client = open().send(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n${LIST}\r\n`);
    await client.closed();
    await assert.rejects(client.next(), /closed without a response/);
  }
});

test("method: override headers → ignored", async () => {
  const id = newId();
  await server.operate([add(id, `https://example.com/${id}`)]);
  const override = "X-HTTP-Method-Override: DELETE\r\nX-HTTP-Method: DELETE\r\nX-Method-Override: DELETE\r\n";
  const client = open();
  const read = await client.send(get(`/v1/subscriptions/${id}`, HOST + override)).next();
  assert.equal(read.status, 200);
  const post = `POST /v1/subscriptions/${id} HTTP/1.1\r\n${HOST}${override}Content-Length: 0\r\n\r\n`;
  assertFailure(await client.send(post).next(), [405]);
  const { status } = await server.call("GET", `/v1/subscriptions/${id}`);
  assert.equal(status, 200);
});

test("Expect: 100-continue → 100, then 200", async () => {
  const body = newBody();
  const client = open().send(`${OPERATE}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`);
  const interim = await client.next();
  assert.equal(interim.status, 100);
  const reply = await client.send(body).next();
  assert.equal(reply.status, 200);
  await assertUsable(client);
});

test("Expect: 100-continue on an unknown path → 404 without 100", async () => {
  const client = open().send(
    `${OPERATE.replace("operations", "nothing")}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`,
  );
  assertFailure(await client.next(), [404]);
});

test("Expect: 100-continue over HTTP/1.0 → 200 without 100", async () => {
  const head = `${OPERATE.replace("HTTP/1.1", "HTTP/1.0")}Expect: 100-continue\r\n`;
  const reply = await open().send(withLength(head, newBody())).next();
  assert.equal(reply.status, 200);
});

testRejections([
  {
    name: "Expect: unknown → 417",
    bytes: withLength(`${OPERATE}Expect: foo\r\n`, newBody()),
    status: 417,
    media: ATOMIC,
  },
  {
    name: "Expect: unknown, without a body → 417",
    bytes: `${LIST}Expect: foo\r\n\r\n`,
    status: 417,
    media: PLAIN,
  },
]);

test("proxy headers: from a client → ignored", async () => {
  const plain = await open().send(`${LIST}\r\n`).next();
  const forwarded = await open()
    .send(
      `${LIST}X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\n` +
        "X-Forwarded-Prefix: /evil\r\nForwarded: for=203.0.113.9;host=evil.example;proto=https\r\n" +
        "X-Original-URL: /v1/evil\r\nX-Rewrite-URL: /v1/evil\r\n\r\n",
    )
    .next();
  assert.equal(forwarded.body, plain.body);
  assert.deepEqual([...forwarded.headers.keys()], [...plain.headers.keys()]);
});

test("Range, If-Match and an unknown If-None-Match: sent → ignored", async () => {
  const plain = await open().send(`${LIST}\r\n`).next();
  for (const header of ["Range: bytes=0-1", "If-Match: *", 'If-Match: "x"', 'If-None-Match: "x"']) {
    const reply = await open().send(`${LIST}${header}\r\n\r\n`).next();
    assert.equal(reply.status, 200);
    assert.equal(reply.body, plain.body);
  }
});

const UPGRADES: readonly (readonly [string, string])[] = [
  [
    "websocket",
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
  ],
  ["h2c", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"],
];
for (const [protocol, headers] of UPGRADES) {
  test(`Upgrade: ${protocol} → ignored`, async () => {
    for (const request of [`${LIST}${headers}\r\n`, withLength(OPERATE + headers, newBody())]) {
      const client = open().send(request);
      const reply = await client.next();
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get("upgrade"), undefined);
      if (reply.headers.get("connection") === "close") await client.closed();
      else await assertUsable(client);
    }
  });

  test(`Upgrade: ${protocol}, with a second request → answered, or connection closed`, async () => {
    const client = open().send(`${LIST}${headers}\r\n${LIST}\r\n`);
    const first = await client.next();
    assert.equal(first.status, 200);
    if (first.headers.get("connection") === "close") {
      await client.closed();
    } else {
      const second = await client.next();
      assert.equal(second.status, 200);
    }
  });
}

test("Connection: names other headers → they stay in effect", async () => {
  const client = open();
  const listed = await client.send(`${LIST}Connection: Host, Accept, keep-alive\r\n\r\n`).next();
  assert.equal(listed.status, 200);
  const before = await total();
  const head = `${OPERATE}Connection: Content-Length, Content-Type, Transfer-Encoding\r\n`;
  const operated = await client.send(withLength(head, newBody())).next();
  assert.equal(operated.status, 200);
  assert.equal(await total(), before + 1);
  await assertUsable(client);
});

test("Connection: close, with a second request → only the first is answered", async () => {
  for (const header of ["Connection: close", "Connection: keep-alive, close"]) {
    const client = open().send(`${LIST}${header}\r\n\r\n${LIST}\r\n`);
    const reply = await client.next();
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get("connection"), "close");
    await client.closed();
    await assert.rejects(client.next(), /closed without a response/);
  }
});
