import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Accounts } from "../accounts.ts";
import type { Config } from "../config.ts";
import { RequestFailure } from "../jsonapi/failure.ts";
import type { MediaType } from "../jsonapi/media-type.ts";
import { isUuidLike } from "../jsonapi/resource.ts";
import type { SubscriptionStore } from "../subscriptions.ts";
import type { Access, Authenticate, Principal } from "./authenticate.ts";
import type { ReadClient } from "./client-address.ts";
import type { Metrics } from "./metrics.ts";
import { methodNotAllowed, noSuchPath } from "./respond.ts";

/** What routes are made of. */
export interface RouteOptions {
  readonly config: Config;
  readonly store: SubscriptionStore;
  readonly metrics: Metrics | undefined;
  /** Undefined on a server for one person. */
  readonly accounts: Accounts | undefined;
  readonly authenticate: Authenticate;
  readonly readClient: ReadClient;
  readonly clock: () => Date;
}

/** A path, and who may do what with it. */
export interface Offer {
  readonly url: string;
  readonly pattern: RegExp;
  readonly allow: string;
  readonly media: MediaType;
  readonly access: Readonly<Partial<Record<Method, Access>>>;
}

type Handler = (request: FastifyRequest, reply: FastifyReply, who: Principal) => Promise<void>;
type Method = (typeof METHODS)[number];
const METHODS = ["GET", "POST", "PATCH", "DELETE"] as const;
type Handlers = Readonly<Partial<Record<Method, readonly [Access, Handler]>>>;
export type AddResource = (url: string, media: MediaType, handlers: Handlers) => void;

/** A path, what can be done with it and by whom, and 405 for everything else. HEAD is GET without its body. */
export function addResource(
  app: FastifyInstance,
  authenticate: Authenticate,
  url: string,
  media: MediaType,
  handlers: Handlers,
): Offer {
  const allow = Object.keys(handlers)
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
    .join(", ");
  app.all(url, { config: { media } }, async (request, reply) => {
    // The router takes `/v1/subscriptions/` for a subscription without an id.
    if ((request.params as { id?: string }).id === "") throw noSuchPath();
    const asked = request.method === "HEAD" ? "GET" : request.method;
    const method = METHODS.find((known) => known === asked);
    const offered = method && handlers[method];
    if (offered === undefined) throw methodNotAllowed(allow);
    const [access, handler] = offered;
    await handler(request, reply, await authenticate(request.raw, access));
  });
  const access = Object.fromEntries(Object.entries(handlers).map(([method, [needed]]) => [method, needed]));
  return { url, pattern: new RegExp(`^${url.replace(/:\w+/, "[^/]+")}$`), allow, media, access };
}

/** A target in absolute form means the same as its path (RFC 9112, 3.2.2). */
export function pathOf(target: string): string {
  return target.replace(/^https?:\/\/[^/?#]*(?=[/?#]|$)/i, "");
}

export function queryOf(request: FastifyRequest): string {
  const url = request.raw.url ?? "";
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start + 1);
}

export function idOf(request: FastifyRequest): string {
  const { id } = request.params as { id: string };
  if (isUuidLike(id)) return id.toLowerCase();
  throw new RequestFailure({
    status: 400,
    title: "Invalid Resource Identifier",
    detail: "An id has the form of a UUID: 8-4-4-4-12 hexadecimal digits.",
  });
}
