import { RequestFailure } from "../jsonapi/failure.ts";
import { ATOMIC, PLAIN } from "../jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../jsonapi/negotiation.ts";
import { readOperations, writeResults } from "../jsonapi/operations.ts";
import { readFieldsQuery, readListQuery, requireNoQuery } from "../jsonapi/query.ts";
import { selfLink } from "../jsonapi/resource.ts";
import { readSubscription, refusedSubscription, writePage, writeSubscription } from "../jsonapi/subscriptions.ts";
import { isRefusal, subscribe } from "../subscriptions.ts";
import { addAccountRoutes } from "./account-routes.ts";
import { createBodyReader, createJsonReader, parseJson } from "./body.ts";
import { addDocs } from "./docs-page.ts";
import { Entrance } from "./entrance.ts";
import type { Logger, Request, Response } from "./exchange.ts";
import { addImportRoutes } from "./import-routes.ts";
import { addPage } from "./page.ts";
import { type AddResource, idOf, queryOf, type RouteOptions } from "./resource.ts";
import { respond, respondContent, respondEmpty, unavailable } from "./respond.ts";

const NO_PAGE =
  "The page was not built, so that there is nothing at /. `npm run build` builds it; the API does not need it.";

/** Every route of the server, top to bottom. */
export function addRoutes(
  resource: AddResource,
  options: RouteOptions,
  log: Logger,
  state: { readonly draining: boolean; readonly accepted: number },
): void {
  const { store, clock, metrics } = options;
  const { limits, basePath } = options.config;
  const readBody = createBodyReader(limits.maxBodyBytes);
  const readJson = createJsonReader(readBody);
  const entrance = new Entrance(options.config.maxQueuedOperations, () => state.accepted);
  /** Whoever gets the attempts leaves when they are carried out. Nothing of their body is kept meanwhile. */
  const letIn = async (request: Request, response: Response) => {
    entrance.requireRoom(Number(request.headers["content-length"] ?? 0));
    const body = await readBody(request, response);
    const bytes = body.length;
    await entrance.enter(bytes);
    try {
      return { attempts: readOperations(parseJson(body), limits.maxOperations, basePath), bytes };
    } catch (error) {
      entrance.leave(bytes);
      throw error;
    }
  };

  resource("/v1/operations", ATOMIC, {
    POST: [
      "write",
      async (request, response, who) => {
        requireContentType(request.headers["content-type"], ATOMIC);
        requireAccept(request.headers.accept, ATOMIC);
        requireNoQuery(queryOf(request));
        const { attempts, bytes } = await letIn(request, response);
        try {
          await who.spend(attempts.length);
          const outcomes = await subscribe(store, who, attempts, clock());
          metrics?.countOutcomes(outcomes);
          respond(response, 200, ATOMIC, writeResults(outcomes, basePath));
        } finally {
          entrance.leave(bytes);
        }
      },
    ],
  });

  resource("/v1/subscriptions", PLAIN, {
    GET: [
      "read",
      async (request, response, { user }) => {
        requireAccept(request.headers.accept, PLAIN);
        const query = readListQuery(queryOf(request));
        const page = await store.page(user, { offset: (query.number - 1) * query.size, size: query.size });
        respond(response, 200, PLAIN, writePage(page, query, basePath));
      },
    ],
    POST: [
      "write",
      async (request, response, who) => {
        requireContentType(request.headers["content-type"], PLAIN);
        requireAccept(request.headers.accept, PLAIN);
        requireNoQuery(queryOf(request));
        const draft = readSubscription(await readJson(request, response));
        await who.spend(1);
        const outcomes = await subscribe(store, who, [draft], clock());
        metrics?.countOutcomes(outcomes);
        const [outcome] = outcomes;
        if (outcome === undefined) throw new Error("no outcome for the draft");
        if (isRefusal(outcome)) throw refusedSubscription(outcome);
        respond(response, 201, PLAIN, writeSubscription(outcome, basePath), {
          location: selfLink(outcome.id, basePath),
        });
      },
    ],
  });

  resource("/v1/subscriptions/:id", PLAIN, {
    GET: [
      "read",
      async (request, response, { user }) => {
        requireAccept(request.headers.accept, PLAIN);
        const fields = readFieldsQuery(queryOf(request));
        const subscription = await store.find(user, idOf(request));
        if (subscription === undefined) throw notFound();
        respond(response, 200, PLAIN, writeSubscription(subscription, basePath, fields));
      },
    ],
    DELETE: [
      "write",
      async (request, response, who) => {
        requireAccept(request.headers.accept, PLAIN);
        requireNoQuery(queryOf(request));
        const id = idOf(request);
        await who.spend(1);
        if (!(await store.remove(who, id, clock()))) throw notFound();
        respondEmpty(response);
      },
    ],
  });

  addImportRoutes(resource, options);
  addAccountRoutes(resource, options);
  if (!addPage(resource, options.config)) log.warn(NO_PAGE);
  addDocs(resource, options.config);

  resource("/healthz", PLAIN, {
    GET: ["open", async (_request, response) => respond(response, 200, PLAIN, writeStatus("ok"))],
  });

  resource("/readyz", PLAIN, {
    GET: [
      "open",
      async (_request, response) => {
        if (state.draining) throw unavailable("The server is shutting down.");
        await store.ready();
        respond(response, 200, PLAIN, writeStatus("ready"));
      },
    ],
  });

  if (metrics !== undefined) {
    resource("/metrics", PLAIN, {
      GET: [
        "metrics",
        async (_request, response) => {
          const text = await metrics.collect();
          respondContent(response, metrics.contentType, text);
        },
      ],
    });
  }
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
