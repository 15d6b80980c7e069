import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  assertFailure,
  get,
  LIST,
  newBody,
  OPERATE,
  open,
  total,
  withLength,
} from "../../../test/support/raw-client.ts";
import { ATOMIC, startServer } from "../../../test/support/server.ts";

test("pipelining: three requests at once → answered in order", async () => {
  const client = open().send([1, 2, 3].map((number) => get(`/v1/subscriptions?page[number]=${number}`)).join(""));
  for (const number of [1, 2, 3]) {
    const { body } = await client.next();
    assert.ok(body.includes(`"self":"/v1/subscriptions?page[number]=${number}&`), body);
  }
});

test("pipelining: read after a write in one packet → sees the write", async () => {
  const before = await total();
  const client = open().send(`${withLength(OPERATE, newBody())}${LIST}\r\n`);
  const [first, second] = [await client.next(), await client.next()];
  assert.equal(first.headers.get("content-type"), ATOMIC);
  assert.equal(first.status, 200);
  assert.equal(JSON.parse(second.body).meta.total, before + 1);
});

test("pipelining: malformed request after a valid one → both are answered", async () => {
  const client = open().send(`${LIST}\r\n${LIST}A : b\r\n\r\n`);
  const [first, second] = [await client.next(), await client.next()];
  assert.equal(first.status, 200);
  assertFailure(second, [400]);
  await client.closed();
});

test("pipelining: one client sends 2,000 requests → others are served in between, and it gets all responses", async () => {
  const { port, call } = await startServer();
  const COUNT = 2_000;
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(COUNT));
  let responses = 0;
  const counted = (async () => {
    let rest = "";
    for await (const chunk of socket.setEncoding("latin1")) {
      const text = rest + chunk;
      responses += text.split("HTTP/1.1 200 OK").length - 1;
      rest = text.slice(-14);
      if (responses >= COUNT) break;
    }
  })();
  for (let count = 0; count < 20; count += 1) assert.equal((await call("GET", "/healthz")).status, 200);
  assert.ok(responses < COUNT, "another client was served after all of them");
  await counted;
  assert.equal(responses, COUNT);
});

test("shutdown: request in progress → answered with Connection: close", async () => {
  const { port, server } = await startServer();
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(
    `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nContent-Length: 26\r\n\r\n{`,
  );
  await sleep(50);
  const drained = server.drain();
  socket.write('"atomic:operations":[]  }');
  let response = "";
  for await (const chunk of socket) response += chunk;
  assert.match(response, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(response, /\r\nconnection: close\r\n/i);
  await drained;
});
