import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { callServer, type HttpResponse } from "../test/support/server.ts";

/** Returns the altered body of a response. */
export type Alter = (path: string, body: string, response: HttpResponse) => string;

/** A proxy that breaks promises on purpose, for controls. */
export async function startTamperingProxy(
  later: (cleanUp: () => unknown) => void,
  port: number,
  alter: Alter,
): Promise<{ readonly port: number }> {
  const front = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const { method = "", url = "" } = request;
    const { "content-type": type } = request.headers;
    const headers = type === undefined ? {} : { "Content-Type": type };
    const upstream = await callServer(port, method, url, { headers, body });
    response.writeHead(upstream.status).end(alter(url, body, upstream));
  }).listen(0, "127.0.0.1");
  await once(front, "listening");
  later(() => front.close());
  return { port: (front.address() as AddressInfo).port };
}
