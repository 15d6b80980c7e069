import type { RequestListener } from "node:http";
import { listen } from "../../test/support/listen.ts";
import { callServer, type HttpResponse } from "../../test/support/server.ts";

/** Returns the altered body of a response. */
export type Alter = (path: string, body: string, response: HttpResponse) => string;

/** A proxy that breaks promises on purpose, for controls. */
export async function startTamperingProxy(
  later: (cleanUp: () => unknown) => void,
  port: number,
  alter: Alter,
): Promise<{ readonly port: number }> {
  const forward: RequestListener = async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const { method = "", url = "" } = request;
    const { "content-type": type } = request.headers;
    const headers = type === undefined ? {} : { "Content-Type": type };
    const upstream = await callServer(port, method, url, { headers, body });
    response.writeHead(upstream.status).end(alter(url, body, upstream));
  };
  return { port: Number(new URL(await listen(forward, "127.0.0.1", later)).port) };
}
