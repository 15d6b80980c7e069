import type { IncomingMessage } from "node:http";
import type { Response } from "./exchange.ts";
import { headersOf } from "./respond.ts";
import type { Match } from "./router.ts";

/** How long a browser may cache the response to a preflight request. */
const MAX_AGE_S = "600";

/**
 * Allows web apps of these origins to call the API with tokens, not with cookies. Adds the response headers. Returns true
 * if the request was a preflight, whose response is then complete.
 */
export function createCors(
  origins: readonly string[],
): (request: IncomingMessage, response: Response, match: Match | undefined) => boolean {
  if (origins.length === 0) return () => false;
  const allowed = new Set(origins);

  return ({ method, headers }, response, match) => {
    const { origin } = headers;
    if (origin === undefined || !allowed.has(origin)) return false;
    response.setHeader("access-control-allow-origin", origin);
    response.setHeader("access-control-expose-headers", "ETag, Location, Retry-After, WWW-Authenticate");
    if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined || match === undefined)
      return false;
    response.writeHead(204, {
      ...headersOf(response),
      "access-control-allow-methods": match.pathRoutes.allow,
      "access-control-allow-headers": "Accept, Authorization, Content-Type, If-None-Match",
      "access-control-max-age": MAX_AGE_S,
    });
    response.end();
    return true;
  };
}
