import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Limits } from "../config.ts";
import { RequestFailure } from "../jsonapi/failure.ts";
import { ATOMIC, type MediaType, PLAIN } from "../jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../jsonapi/negotiation.ts";
import { readOperations, writeResults } from "../jsonapi/operations.ts";
import { readFieldsQuery, readListQuery, requireNoQuery } from "../jsonapi/query.ts";
import { isUuidLike, selfLink } from "../jsonapi/resource.ts";
import { readSubscription, refusedSubscription, writePage, writeSubscription } from "../jsonapi/subscriptions.ts";
import { isRefusal, LOCAL_USER, type SubscriptionStore, subscribe } from "../subscriptions.ts";
import { createJsonReader } from "./body.ts";
import type { Allowed } from "./connections.ts";
import type { Metrics } from "./metrics.ts";
import { methodNotAllowed, noSuchPath, respond, respondEmpty, respondText, unavailable } from "./respond.ts";

export interface RouteOptions {
  readonly store: SubscriptionStore;
  readonly limits: Limits;
  readonly metrics: Metrics | undefined;
  readonly clock: () => Date;
}

type Resource = readonly [path: RegExp, offer: NonNullable<ReturnType<Allowed>>];
type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
type Method = "GET" | "POST" | "DELETE";

/** Every route of the server, top to bottom. Returns what may be done with a path. */
export function createRoutes(
  app: FastifyInstance,
  options: RouteOptions,
  state: { readonly draining: boolean },
): Allowed {
  const { store, limits, clock, metrics } = options;
  const readJson = createJsonReader(limits.maxBodyBytes);
  const user = LOCAL_USER;
  const resources: Resource[] = [];
  const resource = (url: string, media: MediaType, handlers: Partial<Record<Method, Handler>>) => {
    resources.push(addResource(app, url, media, handlers));
  };

  resource("/v1/operations", ATOMIC, {
    async POST(request, reply) {
      requireContentType(request.headers["content-type"], ATOMIC);
      requireAccept(request.headers.accept, ATOMIC);
      requireNoQuery(queryOf(request));
      const attempts = readOperations(await readJson(request, reply), limits.maxOperations);
      const outcomes = await subscribe(store, user, attempts, clock());
      metrics?.countOutcomes(outcomes);
      respond(reply, 200, ATOMIC, writeResults(outcomes));
    },
  });

  resource("/v1/subscriptions", PLAIN, {
    async GET(request, reply) {
      requireAccept(request.headers.accept, PLAIN);
      const query = readListQuery(queryOf(request));
      const page = await store.page(user, { offset: (query.number - 1) * query.size, size: query.size });
      respond(reply, 200, PLAIN, writePage(page, query));
    },
    async POST(request, reply) {
      requireContentType(request.headers["content-type"], PLAIN);
      requireAccept(request.headers.accept, PLAIN);
      requireNoQuery(queryOf(request));
      const draft = readSubscription(await readJson(request, reply));
      const outcomes = await subscribe(store, user, [draft], clock());
      metrics?.countOutcomes(outcomes);
      const [outcome] = outcomes;
      if (outcome === undefined) throw new Error("no outcome for the draft");
      if (isRefusal(outcome)) throw refusedSubscription(outcome);
      respond(reply, 201, PLAIN, writeSubscription(outcome), { location: selfLink(outcome.id) });
    },
  });

  resource("/v1/subscriptions/:id", PLAIN, {
    async GET(request, reply) {
      requireAccept(request.headers.accept, PLAIN);
      const fields = readFieldsQuery(queryOf(request));
      const subscription = await store.find(user, idOf(request));
      if (subscription === undefined) throw notFound();
      respond(reply, 200, PLAIN, writeSubscription(subscription, fields));
    },
    async DELETE(request, reply) {
      requireAccept(request.headers.accept, PLAIN);
      requireNoQuery(queryOf(request));
      if (!(await store.remove(user, idOf(request), clock()))) throw notFound();
      respondEmpty(reply);
    },
  });

  resource("/healthz", PLAIN, {
    GET: async (_request, reply) => respond(reply, 200, PLAIN, writeStatus("ok")),
  });

  resource("/readyz", PLAIN, {
    async GET(_request, reply) {
      if (state.draining) throw unavailable("The server is shutting down.");
      await store.ready();
      respond(reply, 200, PLAIN, writeStatus("ready"));
    },
  });

  if (metrics !== undefined) {
    resource("/metrics", PLAIN, {
      async GET(_request, reply) {
        const text = await metrics.collect();
        respondText(reply, metrics.contentType, text);
      },
    });
  }

  return (path) => resources.find(([pattern]) => pattern.test(path))?.[1];
}

/** A path, what can be done with it, and 405 for everything else. HEAD is GET without its body. */
function addResource(
  app: FastifyInstance,
  url: string,
  media: MediaType,
  handlers: Partial<Record<Method, Handler>>,
): Resource {
  const allow = Object.keys(handlers)
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
    .join(", ");
  app.all(url, { config: { media } }, (request, reply) => {
    // The router takes `/v1/subscriptions/` for a subscription without an id.
    if ((request.params as { id?: string }).id === "") throw noSuchPath();
    const method = request.method === "HEAD" ? "GET" : request.method;
    const handler = method === "GET" || method === "POST" || method === "DELETE" ? handlers[method] : undefined;
    if (handler === undefined) throw methodNotAllowed(allow);
    return handler(request, reply);
  });
  return [new RegExp(`^${url.replace(":id", "[^/]+")}$`), { allow, media }];
}

function queryOf(request: FastifyRequest): string {
  const url = request.raw.url ?? "";
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start + 1);
}

function idOf(request: FastifyRequest): string {
  const { id } = request.params as { id: string };
  if (isUuidLike(id)) return id.toLowerCase();
  throw new RequestFailure({
    status: 400,
    title: "Invalid Resource Identifier",
    detail: "The id of a subscription has the form of a UUID: 8-4-4-4-12 hexadecimal digits.",
  });
}

function notFound(): RequestFailure {
  return new RequestFailure({
    status: 404,
    title: "Subscription not found",
    detail: "The user has no subscription with this id.",
  });
}

function writeStatus(status: string): string {
  return JSON.stringify({ jsonapi: PLAIN.jsonapi, meta: { status } });
}
