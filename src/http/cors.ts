import type { IncomingMessage } from "node:http";
import type { Allowed } from "./connections.ts";
import type { Response } from "./exchange.ts";
import { headersOf } from "./respond.ts";

/** How long a browser may remember that it was allowed. */
const MAX_AGE_S = "600";

/**
 * Lets web apps of these origins call the API, with tokens: cookies are not for them. Marks the answer; returns true
 * when the request only asked whether it may ask, and has been answered.
 */
export function createCors(
  origins: readonly string[],
  allowed: Allowed,
): (request: IncomingMessage, response: Response) => boolean {
  if (origins.length === 0) return () => false;
  const known = new Set(origins);

  return ({ method, url, headers }, response) => {
    const { origin } = headers;
    if (origin === undefined || !known.has(origin)) return false;
    response.setHeader("access-control-allow-origin", origin);
    response.setHeader("access-control-expose-headers", "Location, Retry-After, WWW-Authenticate");
    const offer = allowed((url ?? "").replace(/\?.*/s, ""));
    if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined || offer === undefined)
      return false;
    response.writeHead(204, {
      ...headersOf(response),
      "access-control-allow-methods": offer.allow,
      "access-control-allow-headers": "Accept, Authorization, Content-Type",
      "access-control-max-age": MAX_AGE_S,
    });
    response.end();
    return true;
  };
}
