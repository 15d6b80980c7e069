import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { noStops, useUntilClosed } from "./graceful-stop.ts";

/** What the clients of the proof say of a server that is stopped in this way. */
async function violationsOf(stop: (server: Server) => void): Promise<readonly string[]> {
  let isLeaving = false;
  let busy: () => void = () => undefined;
  const isBusy = new Promise<void>((resolve) => (busy = resolve));
  let seen = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", async () => {
      seen += 1;
      if (seen === 200) busy();
      await sleep(20);
      if (isLeaving) response.setHeader("Connection", "close");
      response.end(request.method === "POST" ? '{"data":'.repeat(100) : "");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const stops = noStops();
  const stopping = isBusy.then(() => {
    isLeaving = true;
    stop(server);
  });
  await useUntilClosed((server.address() as AddressInfo).port, stopping, stops);
  server.close();
  return stops.violations;
}

test("a server that says when it closes a connection fails nobody", async () => {
  assert.deepEqual(await violationsOf(() => undefined), []);
});

test("a request that fails when the server stops is found", async () => {
  assert.match((await violationsOf((server) => server.closeAllConnections())).join(), /had begun failed/);
});
