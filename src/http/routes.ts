import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { RequestFailure } from "../jsonapi/failure.ts";
import { ATOMIC, PLAIN } from "../jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../jsonapi/negotiation.ts";
import { readOperations, writeResults } from "../jsonapi/operations.ts";
import { readFieldsQuery, readListQuery, requireNoQuery } from "../jsonapi/query.ts";
import { selfLink } from "../jsonapi/resource.ts";
import { readSubscription, refusedSubscription, writePage, writeSubscription } from "../jsonapi/subscriptions.ts";
import { isRefusal, subscribe } from "../subscriptions.ts";
import { addAccountRoutes } from "./account-routes.ts";
import { createBodyReader, parseJson, type ReadJson } from "./body.ts";
import { addDocs } from "./docs-page.ts";
import { Entrance } from "./entrance.ts";
import { addImportRoutes } from "./import-routes.ts";
import { addPage } from "./page.ts";
import { type AddResource, addResource, idOf, type Offer, queryOf, type RouteOptions } from "./resource.ts";
import { respond, respondEmpty, respondText, unavailable } from "./respond.ts";

const NO_PAGE =
  "The page was not built, so that there is nothing at /. `npm run build` builds it; the API does not need it.";

/** Every route of the server, top to bottom. */
export function createRoutes(
  app: FastifyInstance,
  options: RouteOptions,
  state: { readonly draining: boolean },
): readonly Offer[] {
  const { store, clock, metrics } = options;
  const { limits, basePath } = options.config;
  const readBody = createBodyReader(limits.maxBodyBytes);
  const readJson: ReadJson = async (request, reply) => parseJson(await readBody(request, reply));
  const entrance = new Entrance(options.config.maxQueuedOperations);
  /** Whoever gets the attempts leaves when they are carried out. Nothing of their body is kept meanwhile. */
  const letIn = async (request: FastifyRequest, reply: FastifyReply) => {
    entrance.requireRoom(Number(request.headers["content-length"] ?? 0));
    const bytes = await readBody(request, reply);
    const leave = await entrance.enter(bytes.length);
    try {
      return { attempts: readOperations(parseJson(bytes), limits.maxOperations, basePath), leave };
    } catch (error) {
      leave();
      throw error;
    }
  };
  const offers: Offer[] = [];
  const resource: AddResource = (url, media, handlers) => {
    offers.push(addResource(app, options.authenticate, url, media, handlers));
  };

  resource("/v1/operations", ATOMIC, {
    POST: [
      "write",
      async (request, reply, { user, spend }) => {
        requireContentType(request.headers["content-type"], ATOMIC);
        requireAccept(request.headers.accept, ATOMIC);
        requireNoQuery(queryOf(request));
        const { attempts, leave } = await letIn(request, reply);
        try {
          await spend(attempts.length);
          const outcomes = await subscribe(store, user, attempts, clock());
          metrics?.countOutcomes(outcomes);
          respond(reply, 200, ATOMIC, writeResults(outcomes, basePath));
        } finally {
          leave();
        }
      },
    ],
  });

  resource("/v1/subscriptions", PLAIN, {
    GET: [
      "read",
      async (request, reply, { user }) => {
        requireAccept(request.headers.accept, PLAIN);
        const query = readListQuery(queryOf(request));
        const page = await store.page(user, { offset: (query.number - 1) * query.size, size: query.size });
        respond(reply, 200, PLAIN, writePage(page, query, basePath));
      },
    ],
    POST: [
      "write",
      async (request, reply, { user, spend }) => {
        requireContentType(request.headers["content-type"], PLAIN);
        requireAccept(request.headers.accept, PLAIN);
        requireNoQuery(queryOf(request));
        const draft = readSubscription(await readJson(request, reply));
        await spend(1);
        const outcomes = await subscribe(store, user, [draft], clock());
        metrics?.countOutcomes(outcomes);
        const [outcome] = outcomes;
        if (outcome === undefined) throw new Error("no outcome for the draft");
        if (isRefusal(outcome)) throw refusedSubscription(outcome);
        respond(reply, 201, PLAIN, writeSubscription(outcome, basePath), { location: selfLink(outcome.id, basePath) });
      },
    ],
  });

  resource("/v1/subscriptions/:id", PLAIN, {
    GET: [
      "read",
      async (request, reply, { user }) => {
        requireAccept(request.headers.accept, PLAIN);
        const fields = readFieldsQuery(queryOf(request));
        const subscription = await store.find(user, idOf(request));
        if (subscription === undefined) throw notFound();
        respond(reply, 200, PLAIN, writeSubscription(subscription, basePath, fields));
      },
    ],
    DELETE: [
      "write",
      async (request, reply, { user, spend }) => {
        requireAccept(request.headers.accept, PLAIN);
        requireNoQuery(queryOf(request));
        const id = idOf(request);
        await spend(1);
        if (!(await store.remove(user, id, clock()))) throw notFound();
        respondEmpty(reply);
      },
    ],
  });

  addImportRoutes(resource, options);
  addAccountRoutes(resource, options);
  if (!addPage(resource, options.config)) app.log.warn(NO_PAGE);
  addDocs(resource, options.config);

  resource("/healthz", PLAIN, {
    GET: ["open", async (_request, reply) => respond(reply, 200, PLAIN, writeStatus("ok"))],
  });

  resource("/readyz", PLAIN, {
    GET: [
      "open",
      async (_request, reply) => {
        if (state.draining) throw unavailable("The server is shutting down.");
        await store.ready();
        respond(reply, 200, PLAIN, writeStatus("ready"));
      },
    ],
  });

  if (metrics !== undefined) {
    resource("/metrics", PLAIN, {
      GET: [
        "metrics",
        async (_request, reply) => {
          const text = await metrics.collect();
          respondText(reply, metrics.contentType, text);
        },
      ],
    });
  }

  return offers;
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
