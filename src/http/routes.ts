import { failure, type RequestFailure } from "../errors.ts";
import { parseJson } from "../jsonapi/json.ts";
import { ATOMIC, PLAIN } from "../jsonapi/media-type.ts";
import { requireAccept, requireContentType } from "../jsonapi/negotiation.ts";
import { readOperations, writeResultParts, writeResults } from "../jsonapi/operations.ts";
import { readFieldsQuery, readListQuery, requireNoQuery } from "../jsonapi/query.ts";
import { selfLink } from "../jsonapi/resource.ts";
import { readSubscription, refusedSubscription, writePage, writeSubscription } from "../jsonapi/subscriptions.ts";
import { applyChanges, type Draft, isRefusal, type Malformed, type Outcome } from "../subscriptions.ts";
import { addAccountRoutes } from "./account-routes.ts";
import { admitOperations, assertCapacity, operationsIn } from "./admission.ts";
import type { Principal } from "./authenticate.ts";
import { readBody, readJson } from "./body.ts";
import { addDocs } from "./docs-page.ts";
import type { Logger, Request, Response } from "./exchange.ts";
import { addImportRoutes } from "./import-routes.ts";
import { addPage } from "./page.ts";
import { Parser } from "./parser.ts";
import { type AddResource, idOf, queryOf, type RouteOptions } from "./resource.ts";

import { respond, respondContent, respondEmpty, respondInPieces } from "./respond.ts";

/** Bodies up to this length are parsed at once: the worst of them takes 2 ms. */
const SHORT_BYTES = 32 * 1024;
/** More results than this are written in pieces, with other requests in between. */
const MAX_RESULTS_AT_ONCE = 1_000;
/** Longest document with one subscription. */
const MAX_DOCUMENT_BYTES = 64 * 1024;

const NO_PAGE =
  "The page was not built, so that there is nothing at /. `npm run build` builds it; the API does not need it.";

/** Every route of the server, top to bottom. */
export function addRoutes(
  resource: AddResource,
  options: RouteOptions,
  log: Logger,
  state: { readonly draining: boolean },
): void {
  const { store, clock, metrics } = options;
  const { limits, basePath } = options.config;
  const maxDocumentBytes = Math.min(MAX_DOCUMENT_BYTES, limits.maxBodyBytes);
  const parser = new Parser(limits.maxBodyBytes);
  /** Parses and applies the operations of a request; long bodies are parsed in a thread. */
  const applyOperations = async (request: Request, response: Response, who: Principal): Promise<Outcome[]> => {
    assertCapacity(request, Number(request.headers["content-length"] ?? 0));
    const bytes = await readBody(request, response, limits.maxBodyBytes);
    admitOperations(request, operationsIn(bytes.length));
    const { maxOperations } = limits;
    const apply = (attempts: readonly (Draft | Malformed)[]) => applyChanges(store, who, attempts, clock());
    if (bytes.length <= SHORT_BYTES) {
      const attempts = readOperations(parseJson(bytes), maxOperations, basePath);
      await who.spend(attempts.length);
      return apply(attempts);
    }
    const job = { kind: "operations", bytes, maxOperations, base: basePath } as const;
    return parser.parse(job, request.owner, who.spend, () => !response.destroyed, apply);
  };

  resource("/v1/operations", ATOMIC, {
    POST: [
      "write",
      async (request, response, who) => {
        requireContentType(request.headers["content-type"], ATOMIC);
        requireAccept(request.headers.accept, ATOMIC);
        requireNoQuery(queryOf(request));
        const outcomes = await applyOperations(request, response, who);
        metrics?.countOutcomes(outcomes);
        if (outcomes.length <= MAX_RESULTS_AT_ONCE) respond(response, 200, ATOMIC, writeResults(outcomes, basePath));
        else {
          const headers = { "content-type": ATOMIC.contentType };
          await respondInPieces(request, response, writeResultParts(outcomes, basePath), headers);
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
        const draft = readSubscription(await readJson(request, response, maxDocumentBytes));
        await who.spend(1);
        const outcomes = await applyChanges(store, who, [draft], clock());
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
        const [subscription] = await store.find(user, [{ id: idOf(request) }]);
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
        const { outcomes } = await store.change(who, [{ kind: "remove", id }], clock());
        if (outcomes.some(isRefusal)) throw notFound();
        respondEmpty(response);
      },
    ],
  });

  addImportRoutes(resource, options, parser);
  addAccountRoutes(resource, options);
  if (!addPage(resource, options.config)) log.warn(NO_PAGE);
  addDocs(resource, basePath, options.readClient);

  resource("/healthz", PLAIN, {
    GET: ["open", async (_request, response) => respond(response, 200, PLAIN, writeStatus("ok"))],
  });

  resource("/readyz", PLAIN, {
    GET: [
      "open",
      async (_request, response) => {
        if (state.draining) throw failure("shutting-down");
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
  return failure("not-found", { resource: "Subscription" });
}

function writeStatus(status: string): string {
  return JSON.stringify({ jsonapi: PLAIN.jsonapi, meta: { status } });
}
