import type { IncomingMessage } from "node:http";
import type { FastifyReply } from "fastify";
import type { Allowed } from "./connections.ts";
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
): (request: IncomingMessage, reply: FastifyReply) => boolean {
  if (origins.length === 0) return () => false;
  const known = new Set(origins);

  return ({ method, url, headers }, reply) => {
    const { origin } = headers;
    if (origin === undefined || !known.has(origin)) return false;
    const { raw } = reply;
    raw.setHeader("access-control-allow-origin", origin);
    raw.setHeader("access-control-expose-headers", "Location, Retry-After, WWW-Authenticate");
    const offer = allowed((url ?? "").replace(/\?.*/s, ""));
    if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined || offer === undefined)
      return false;
    reply.hijack();
    raw.writeHead(204, {
      ...headersOf(reply),
      "access-control-allow-methods": offer.allow,
      "access-control-allow-headers": "Accept, Authorization, Content-Type",
      "access-control-max-age": MAX_AGE_S,
    });
    raw.end();
    return true;
  };
}
