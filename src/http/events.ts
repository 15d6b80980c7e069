import type { EventHub } from "./event-hub.ts";
import type { Response } from "./exchange.ts";
import { headersOf } from "./respond.ts";
import type { Call } from "./router.ts";

/**
 * `GET /v1/events`: a stream that ends when the client disconnects, or the hub ends it. The handler is done when the stream
 * is open, so that thousands of them keep as little as possible.
 */
export function createEventsHandler(hub: EventHub) {
  return async ({ request, response, caller: { user, requireAccess } }: Call): Promise<void> => {
    const start = () => response.writeHead(200, streamHeaders(response));
    if (request.method === "HEAD") {
      start().end();
      return;
    }
    await hub.open(user, response, requireAccess, () => {
      start();
      // Written by itself, its text becomes one string. Otherwise Node would keep all of its parts.
      response.flushHeaders();
    });
    request.isStream = true;
  };
}

function streamHeaders(response: Response) {
  return {
    ...headersOf(response),
    "content-type": "text/event-stream",
    // Proxies must neither compress nor collect what is sent.
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
    // Later requests of the connection would have to wait for the end of the stream.
    connection: "close",
  };
}
