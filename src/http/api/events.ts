import type { Response } from "../wire/exchange.ts";
import { headersOf } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import type { EventHub } from "./event-hub.ts";

/**
 * `GET /v1/events`: a stream that ends when the client disconnects, or the hub ends it. The handler returns once the
 * stream is open, so that thousands of streams use little memory.
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
      // Flushed separately, the headers become one string. Otherwise Node would keep all of their parts.
      response.flushHeaders();
    });
    request.isStream = true;
  };
}

/** Headers of a stream of events. */
export function streamHeaders(response: Response) {
  return {
    ...headersOf(response),
    "content-type": "text/event-stream",
    // Proxies must neither compress nor buffer the stream.
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
    // Later requests on the connection would have to wait for the end of the stream.
    connection: "close",
  };
}
