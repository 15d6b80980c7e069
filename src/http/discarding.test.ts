import assert from "node:assert/strict";
import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { MAX_BODY_BYTES, OPERATE, server } from "../../test/support/raw-client.ts";

const LENGTH = 1024 ** 3;
const PIECE = Buffer.alloc(256 * 1024, " ");

test("rejected bodies: ten times as many at once → received hardly faster in total", async () => {
  const few = await receivedOf(4);
  const many = await receivedOf(40);
  assert.ok(many < 3 * few, `${many} bytes, ${few} with a tenth of the connections`);
});

/** How much the server receives of so many endless bodies that it has rejected. */
async function receivedOf(connections: number): Promise<number> {
  const received = new Set<Socket>();
  subscribe("http.server.request.start", (message) => {
    received.add((message as { request: IncomingMessage }).request.socket);
  });
  assert.ok(LENGTH > MAX_BODY_BYTES);
  await Promise.all(Array.from({ length: connections }, sendEndlessly));
  return [...received].reduce((sum, { bytesRead }) => sum + bytesRead, 0);
}

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
