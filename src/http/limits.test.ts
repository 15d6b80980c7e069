import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ATOMIC, add, newId, startServer, startServerWith } from "../../test/support/server.ts";

const headers = { "Content-Type": ATOMIC };
const bodyOf = (count: number) => {
  const operations = Array.from({ length: count }, () => {
    const id = newId();
    return add(id, `https://feeds.example/${id}`);
  });
  return JSON.stringify({ "atomic:operations": operations });
};

test("limits: configured → enforced, and named in the error", async () => {
  const { call } = await startServer({ EARMARK_MAX_OPERATIONS: "3", EARMARK_MAX_BODY_BYTES: "2048" });
  assert.equal((await call("POST", "/v1/operations", { headers, body: bodyOf(3) })).status, 200);
  const many = await call("POST", "/v1/operations", { headers, body: bodyOf(4) });
  assert.deepEqual([many.status, many.json.errors[0].meta], [413, { max: 3 }]);
  const long = await call("POST", "/v1/operations", { headers, body: bodyOf(1).padEnd(2_049) });
  assert.deepEqual([long.status, long.json.errors[0].meta], [413, { max: 2_048 }]);
});

/** Opens a connection from a local address; undefined if the server closes it at once. */
async function openFrom(address: string, port: number): Promise<Socket | undefined> {
  const socket = connect({ port, host: "127.0.0.1", localAddress: address }).on("error", () => undefined);
  await once(socket, "connect");
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [data] = await Promise.race([once(socket, "data"), once(socket, "close")]);
  return data instanceof Buffer ? socket : undefined;
}

test("connections: more than the maximum → closed, existing ones continue", async () => {
  const { port } = await startServerWith({ limits: { maxConnections: 4 } });
  const sockets = [];
  for (const address of ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"])
    sockets.push(await openFrom(address, port));
  assert.equal(await openFrom("127.0.0.3", port), undefined);
  for (const socket of sockets) {
    assert.ok(socket !== undefined);
    socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert.match(String((await once(socket, "data"))[0]), /^HTTP\/1\.1 200 /);
    socket.destroy();
  }
});

test("connections: more than half of the maximum from one network → closed, other networks can connect", async () => {
  const { port } = await startServerWith({ limits: { maxConnections: 6 } });
  const sockets = [];
  for (let count = 0; count < 3; count += 1) sockets.push(await openFrom("127.0.0.1", port));
  assert.ok(sockets.every((socket) => socket !== undefined));
  assert.equal(await openFrom("127.0.0.1", port), undefined);
  const other = await openFrom("127.0.0.2", port);
  assert.ok(other !== undefined);
  // A closed connection frees its slot.
  sockets[0]?.end();
  await sleep(50);
  const again = await openFrom("127.0.0.1", port);
  assert.ok(again !== undefined);
  for (const socket of [...sockets, other, again]) socket?.destroy();
});

test("connections: a trusted proxy → may have all of them", async () => {
  const { port } = await startServerWith({ limits: { maxConnections: 4 } }, { EARMARK_TRUSTED_PROXIES: "127.0.0.1" });
  const sockets = [];
  for (let count = 0; count < 4; count += 1) sockets.push(await openFrom("127.0.0.1", port));
  assert.ok(sockets.every((socket) => socket !== undefined));
  for (const socket of sockets) socket?.destroy();
});

test("early response: rest of the body below 1 MiB → the connection can be reused", async () => {
  const { port } = await startServer();
  const body = bodyOf(5_000);
  assert.ok(body.length > 512 * 1024);
  const socket = connect(port, "127.0.0.1");
  socket.write(
    `POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  const [rejected] = await once(socket, "data");
  assert.match(String(rejected), /^HTTP\/1\.1 404 /);
  assert.doesNotMatch(String(rejected), /connection: close/i);
  socket.write(`${body}GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  const [next] = await once(socket, "data");
  assert.match(String(next), /^HTTP\/1\.1 200 /);
  socket.destroy();
});

test("slow requests: one → logged", async () => {
  const server = await startServerWith({ slowRequestMs: 1 });
  await server.call("POST", "/v1/operations", { headers, body: bodyOf(2_000) });
  assert.match(server.log(), /"level":40,.*"route":"\/v1\/operations","status":200,.*"msg":"slow request"/);
});

test("slow requests: many → ten lines per minute, then a count of those omitted", async () => {
  let now = Date.now();
  const server = await startServerWith({ slowRequestMs: 1 }, {}, () => new Date(now));
  const head = `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nContent-Length: 2\r\n`;
  const visit = async () => {
    const socket = connect(server.port, "127.0.0.1");
    socket.write(`${head}Connection: close\r\nExpect: 100-continue\r\n\r\n`);
    // The server is now waiting for the body.
    await once(socket, "data");
    await sleep(20);
    socket.resume().end("}}");
    await once(socket, "close");
  };
  const linesOf = (text: RegExp) =>
    server
      .log()
      .split("\n")
      .filter((line) => text.test(line));
  await Promise.all(Array.from({ length: 60 }, visit));
  assert.equal(linesOf(/"status":400.*"slow request"/).length, 10);
  await server.call("POST", "/v1/operations", { headers, body: bodyOf(2_000) });
  assert.equal(linesOf(/"status":200.*"slow request"/).length, 1, "a request that succeeded is still logged");
  now += 60_000;
  await visit();
  assert.equal(linesOf(/"status":400.*"slow request"/).length, 11);
  assert.deepEqual(
    linesOf(/not logged/).map((line) => JSON.parse(line).omitted),
    [50],
  );
});

test("turns: more long reads than may be in progress → all are answered", async () => {
  const { call } = await startServer();
  await call("POST", "/v1/operations", { headers, body: bodyOf(2) });
  const path = "/v1/subscriptions?include=podcast&page[size]=1&page[number]=20000";
  const responses = await Promise.all(Array.from({ length: 20 }, () => call("GET", path)));
  // One that waits ten seconds for its turn is rejected.
  assert.ok(responses.every(({ status }) => status === 200));
});

const PART = Buffer.alloc(7 * 1024 * 1024, " ");
const HEAD = `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nContent-Length: 8388608\r\n\r\n`;

test("memory: bodies that do not end hold too much → paused; short requests are served, and all memory is released", async () => {
  const { port, call } = await startServer();
  const sockets = Array.from({ length: 24 }, () => connect(port, "127.0.0.1").on("error", () => undefined));
  for (const socket of sockets) {
    socket.write(HEAD);
    socket.write(PART);
  }
  await sleep(1_000);
  const unsent = sockets.reduce((sum, socket) => sum + socket.writableLength, 0);
  assert.ok(unsent > 8 * PART.length, `only ${unsent} bytes have not been received`);
  for (let times = 0; times < 20; times += 1) {
    const { status } = await call("POST", "/v1/operations", { headers, body: bodyOf(1) });
    assert.equal(status, 200, "short requests are not paused");
  }
  for (const socket of sockets) socket.destroy();
  await Promise.all(sockets.map((socket) => socket.closed || once(socket, "close")));
  const body = '{"atomic:operations":[]}'.padEnd(8_000_000);
  const responses = await Promise.all(
    Array.from({ length: 6 }, () => call("POST", "/v1/operations", { headers, body })),
  );
  assert.deepEqual(
    responses.map(({ status }) => status),
    Array(6).fill(200),
  );
});

test("memory: bodies of several megabytes at the same time → all are accepted", async () => {
  const { call } = await startServer();
  const bodies = Array.from({ length: 3 }, () => bodyOf(10_000).padEnd(6_000_000));
  const added = await Promise.all(bodies.map((body) => call("POST", "/v1/operations", { headers, body })));
  assert.deepEqual(
    added.map(({ status }) => status),
    [200, 200, 200],
  );
  const action = { podcast: "https://a.example/", episode: "https://a.example/1", action: "download" };
  const upload = JSON.stringify(Array(20_000).fill(action)).padEnd(12_000_000);
  const path = "/index.php/apps/gpoddersync/episode_action/create";
  const uploaded = await Promise.all([1, 2].map(() => call("POST", path, { body: upload })));
  assert.deepEqual(
    uploaded.map(({ status }) => status),
    [200, 200],
  );
});

test("memory: too many pipelined requests on all connections → those connections are closed, others are served", async () => {
  const { port, call } = await startServer();
  const sockets = Array.from({ length: 40 }, () => connect(port, "127.0.0.1").on("error", () => undefined));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const firstClosed = Promise.race(
    sockets.map((socket) => new Promise<string>((resolve) => socket.once("close", () => resolve("closed")))),
  );
  for (const socket of sockets) socket.resume().write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000));
  assert.equal(await firstClosed, "closed");
  for (const socket of sockets) socket.destroy();
  assert.equal((await call("GET", "/healthz")).status, 200);
});
