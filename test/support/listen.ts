import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { after } from "node:test";
import type { Later } from "./postgres.ts";

/** Starts an HTTP server that is closed after the tests of the file. */
export async function listen(listener: RequestListener, host = "127.0.0.1", later: Later = after): Promise<string> {
  const server = createServer(listener).listen(0, host);
  await once(server, "listening");
  later(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}
