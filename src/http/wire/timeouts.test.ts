import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  assertFailure,
  assertUsable,
  CHUNKED,
  chunk,
  flood,
  LIST,
  MAX_BODY_BYTES,
  newBody,
  OPERATE,
  open,
  total,
} from "../../../test/support/raw-client.ts";
import { ATOMIC, PLAIN, startServerWith } from "../../../test/support/server.ts";

const shortTimeouts = await startServerWith({ limits: { headersTimeoutMs: 300, requestTimeoutMs: 900 } });
/** Leaves a busy machine time to receive the headers. */
const shortRequestTimeout = await startServerWith({ limits: { headersTimeoutMs: 2_500, requestTimeoutMs: 3_000 } });

describe("timeouts", { concurrency: true }, () => {
  test("timeout: body shorter than its length → 408, nothing stored", async () => {
    const body = newBody();
    const client = open(shortRequestTimeout.port).send(`${OPERATE}Content-Length: ${body.length + 1}\r\n\r\n${body}`);
    assertFailure(await client.next(), [408], [PLAIN, ATOMIC]);
    await client.closed();
    assert.equal(await total(shortRequestTimeout), 0);
  });

  test("timeout: headers do not end → 408", async () => {
    const client = open(shortTimeouts.port).send(LIST);
    assertFailure(await client.next(), [408]);
    await client.closed();
  });

  test("timeout: headers trickle in → 408", async () => {
    const client = open(shortTimeouts.port).send(LIST);
    const trickled = (async () => {
      while (!client.isClosed()) {
        client.send("A: b\r\n");
        await sleep(50);
      }
    })();
    assertFailure(await client.next(), [408]);
    await client.closed();
    await trickled;
  });

  test("timeout: body trickles in → 408, nothing stored", async () => {
    const body = newBody();
    const client = open(shortRequestTimeout.port).send(`${OPERATE}Content-Length: ${body.length}\r\n\r\n`);
    const trickled = (async () => {
      for (const character of body) {
        if (client.isClosed()) return;
        client.send(character);
        await sleep(100);
      }
    })();
    assertFailure(await client.next(), [408], [PLAIN, ATOMIC]);
    await client.closed();
    await trickled;
    assert.equal(await total(shortRequestTimeout), 0);
  });

  test("timeout: no body after 100 Continue → 408", async () => {
    const client = open(shortRequestTimeout.port).send(`${OPERATE}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`);
    const interim = await client.next();
    assert.equal(interim.status, 100);
    assertFailure(await client.next(), [408], [PLAIN, ATOMIC]);
    await client.closed();
  });

  test("timeout: nothing is sent → closed without a response", async () => {
    const client = open(shortTimeouts.port);
    await assert.rejects(client.next(), /closed/);
    await client.closed();
  });

  test("timeout: only empty lines are sent → closed", async () => {
    await open(shortTimeouts.port).send("\r\n\r\n").closed();
  });

  test("timeout: headers of a second request do not end → 408", async () => {
    const client = open(shortTimeouts.port);
    await assertUsable(client);
    assertFailure(await client.send(LIST).next(), [408]);
    await client.closed();
  });

  test("timeout: endless body that is not needed → connection closed", async () => {
    const client = open(shortTimeouts.port).send(`${LIST}${CHUNKED}\r\n`);
    const flooded = flood(client, chunk("x".repeat(1024)));
    const reply = await client.next();
    assert.equal(reply.status, 200);
    await flooded;
    assert.ok(client.isClosed());
  });

  test("Expect: 100-continue with too long a body → 413 without 100", async () => {
    const client = open().send(`${OPERATE}Expect: 100-continue\r\nContent-Length: ${MAX_BODY_BYTES + 1}\r\n\r\n`);
    assertFailure(await client.next(), [413], [ATOMIC]);
    await client.closed();
  });
});
