import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { type Rate, RateLimiter } from "../src/accounts/rate-limits.ts";
import { InvalidOpml } from "../src/opml/entry.ts";
import { readOpml } from "../src/opml/read.ts";
import { assertFailure, CHUNKED, chunk, flood, get, OPERATE, open, server, total } from "../test/support/raw-client.ts";
import { ATOMIC, add, newId, startServer } from "../test/support/server.ts";

/** What hostile clients send may not fill the memory of the server, which runs in this process. */

const MIB = 2 ** 20;
const memory = () => process.memoryUsage().rss;

test("body: hundreds of thousands of one-byte chunks → no more memory than its length", async () => {
  const { port } = await startServer();
  const before = memory();
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(
    `POST /v1/operations HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${ATOMIC}\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  const document = '{"atomic:operations":[]}';
  for (let round = 0; round < 20; round += 1) {
    if (!socket.write("1\r\n \r\n".repeat(20_000))) await once(socket, "drain");
  }
  socket.write(`${document.length.toString(16)}\r\n${document}\r\n0\r\n\r\n`);
  const [response] = await once(socket, "data");
  assert.match(String(response), /^HTTP\/1\.1 200 /);
  socket.destroy();
  const grown = (memory() - before) / MIB;
  assert.ok(grown < 100, `${Math.round(grown)} MiB for 400 kB`);
});

test("body: endless → 413 at the limit, connection closed", async () => {
  const before = memory();
  const client = open().send(`${OPERATE}${CHUNKED}\r\n`);
  const flooded = flood(client, chunk(" ".repeat(16 * 1024)));
  assertFailure(await client.next(), [413], [ATOMIC]);
  await flooded;
  assert.ok(client.isClosed());
  assert.ok(memory() - before < 256 * MIB);
});

test("body: gzip bomb → 415 without unpacking", async () => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  const before = memory();
  const client = open().send(`${OPERATE}Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`).send(bomb);
  assertFailure(await client.next(), [415], [ATOMIC]);
  assert.ok(memory() - before < 48 * MIB);
});

test("pipelining: clients read no responses → bounded memory, others are served", async () => {
  const operations = Array.from({ length: 100 }, () => add(newId(), `https://example.com/${newId()}`));
  await server.operate(operations);
  const before = memory();
  const silent = [open(), open(), open()];
  for (const client of silent) {
    client.pause();
    // All responses to one client would be about 300 MB.
    for (let sent = 0; sent < 10_000; sent += 100) client.send(get("/v1/subscriptions?page[size]=100").repeat(100));
  }
  for (let count = 0; count < 10; count += 1) {
    await total();
    await sleep(50);
  }
  const grown = memory() - before;
  for (const client of silent) client.disconnect();
  assert.ok(grown < 192 * MIB, `${grown} bytes`);
});

test("limits: many keys with their whole burst → removed from memory; others stay", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const heap = () => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  let now = 0;
  const limiter = new RateLimiter(() => now);
  const spend = (key: string, rate: Rate, at: number) => {
    now = at;
    return limiter.spend(key, 1, rate);
  };
  const slow: Rate = { burst: 1, perMinute: 1 / 1_000 };
  spend("remembered", slow, 0);
  const before = heap();
  // One per millisecond, each removed after a second: all of them at once would take about 40 MB.
  for (let count = 0; count < 500_000; count += 1)
    assert.equal(spend(`from 192.0.2.1 as ${count}`, { burst: 1, perMinute: 60 }, count), 0);
  const growth = heap() - before;
  assert.ok(growth < 10_000_000, `${growth} bytes more`);
  assert.equal(spend("remembered", slow, 500_000), 60_000_000 - 500_000);
  assert.equal(spend("from 192.0.2.1 as 499999", { burst: 1, perMinute: 60 }, 500_000), 999);
});

test("OPML: custom entities → not expanded in memory", () => {
  const levels = Array.from(
    { length: 9 },
    (_, level) => `<!ENTITY b${level} "${`&${level === 0 ? "a" : `b${level - 1}`};`.repeat(10)}">`,
  );
  const bomb = `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">${levels.join("")}]>`;
  const before = memory();
  try {
    readOpml(Buffer.from(`${bomb}<opml><body><outline text="&b8;" xmlUrl="https://a.example/1"/></body></opml>`));
  } catch (error) {
    assert.ok(error instanceof InvalidOpml);
  }
  assert.ok(memory() - before < 200 * MIB);
});
