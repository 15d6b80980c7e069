import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { ATOMIC, startServer } from "../../../test/support/server.ts";

const server = await startServer();

test("body: hundreds of thousands of one-byte chunks → no more memory than its length", async () => {
  const before = process.memoryUsage().rss;
  const socket = connect(server.port, "127.0.0.1");
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
  const grown = (process.memoryUsage().rss - before) / 2 ** 20;
  assert.ok(grown < 100, `${Math.round(grown)} MiB for 400 kB`);
});

test("JSON depth: brackets, quotes and backslashes in strings → not counted", async () => {
  for (const text of ["[".repeat(100), '\\"'.repeat(3), "\\\\".repeat(50), '"[{', "}]"]) {
    const body = JSON.stringify({ meta: { [text]: text }, "atomic:operations": [] });
    const response = await server.call("POST", "/v1/operations", { headers: { "Content-Type": ATOMIC }, body });
    assert.equal(response.status, 200, body);
  }
  const nested = (levels: number) =>
    `{"meta":${"[".repeat(levels - 1)}"\\"]"${"]".repeat(levels - 1)},"atomic:operations":[]}`;
  for (const [levels, status] of [
    [64, 200],
    [65, 400],
  ] as const) {
    const response = await server.call("POST", "/v1/operations", {
      headers: { "Content-Type": ATOMIC },
      body: nested(levels),
    });
    assert.equal(response.status, status, `${levels} levels`);
  }
});
