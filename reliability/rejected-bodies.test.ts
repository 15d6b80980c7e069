import assert from "node:assert/strict";
import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { MAX_BODY_BYTES, OPERATE, server } from "../test/support/raw-client.ts";

const LENGTH = 1024 ** 3;
const PIECE = Buffer.alloc(256 * 1024, " ");

const CONNECTIONS = 40;
/** How many bytes of a body Node receives before it is paused. */
const UNPAUSED = 256 * 1024;
const PER_MILLISECOND = 64 * 1024;

test("rejected bodies: many at a time → their total rate is limited", async () => {
  const sockets = new Set<Socket>();
  subscribe("http.server.request.start", (message) => {
    sockets.add((message as { request: IncomingMessage }).request.socket);
  });
  assert.ok(LENGTH > MAX_BODY_BYTES);
  const started = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, sendEndlessly));
  const ms = performance.now() - started;
  assert.equal(sockets.size, CONNECTIONS);
  const received = [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  assert.ok(received < 1.5 * PER_MILLISECOND * ms + CONNECTIONS * UNPAUSED, `${received} bytes in ${ms} ms`);
});

function sendEndlessly(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: server.port, host: "127.0.0.1" });
    const send = () => {
      while (!socket.destroyed && socket.write(PIECE));
    };
    socket.on("error", () => undefined).on("close", () => resolve());
    socket.on("data", () => undefined).on("drain", send);
    socket.write(`${OPERATE}Content-Length: ${LENGTH}\r\n\r\n`);
    send();
  });
}
