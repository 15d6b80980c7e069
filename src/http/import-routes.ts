import { failure, type RequestFailure } from "../errors.ts";
import { BATCH_SIZE, importFeeds } from "../imports.ts";
import { writeImported } from "../jsonapi/imports.ts";
import { PLAIN } from "../jsonapi/media-type.ts";
import { requireAccept } from "../jsonapi/negotiation.ts";
import { readImportQuery, requireNoQuery } from "../jsonapi/query.ts";
import { type Entry, NotOpml } from "../opml/entry.ts";
import { writeOpml } from "../opml/write.ts";
import { everySubscription, StoreUnavailable } from "../subscriptions.ts";
import { admitOperations, admitTransfer } from "./admission.ts";
import { readBody } from "./body.ts";
import type { Request } from "./exchange.ts";
import type { Parser } from "./parser.ts";
import { type AddResource, queryOf, type RouteOptions } from "./resource.ts";
import { downloadOf, respondInPieces } from "./respond.ts";

const OPML_TYPE = "text/x-opml; charset=utf-8";
/** What browsers and programs call such a file. */
const OPML_TYPES = /^(text|application)\/(x-opml(\+xml)?|opml\+xml|xml)\s*(;|$)/i;

/** Subscriptions as files, in and out. */
export function addImportRoutes(
  resource: AddResource,
  { config, store, clock }: Pick<RouteOptions, "config" | "store" | "clock">,
  parser: Parser,
): void {
  resource("/v1/subscriptions.opml", PLAIN, {
    GET: [
      "read",
      async (request, response, { user, requireAccess }) => {
        requireNoQuery(queryOf(request));
        admitTransfer(request);
        const file = writeOpml(everySubscription(store, user, requireAccess), clock());
        await respondInPieces(request, response, file, downloadOf(OPML_TYPE, "earmark.opml"));
      },
    ],
  });

  resource("/v1/imports", PLAIN, {
    POST: [
      "write",
      async (request, response, who) => {
        if (!OPML_TYPES.test(request.headers["content-type"] ?? ""))
          throw failure("unsupported-media-type", {
            contentType: "text/x-opml (an OPML file)",
            source: { header: "Content-Type" },
          });
        requireAccept(request.headers.accept, PLAIN);
        const { dryRun } = readImportQuery(queryOf(request));
        admitTransfer(request);
        const bytes = await readBody(request, response, config.limits.maxImportBytes);
        if (!dryRun) admitOperations(request, BATCH_SIZE);
        const isWanted = () => !response.destroyed;
        const job = { kind: "opml", bytes } as const;
        const feeds = await parser
          .parse(job, request.owner, who.spend, isWanted, (entries: Entry[]) => entries)
          .catch((error) => {
            if (error instanceof NotOpml) throw failure("invalid-opml", { reason: error.message });
            throw error;
          });
        // A preview writes nothing, and so nothing else would notice that access was revoked while the file came in.
        if (dryRun) await who.requireAccess();
        let done = 0;
        const onProgress = (count: number) => {
          done = count;
        };
        const imported = await importFeeds(store, who, feeds, clock(), { dryRun, onProgress, isWanted }).catch(
          (error) => {
            if (error instanceof StoreUnavailable && done > 0 && !dryRun) throw brokenOff(done, request, error);
            throw error;
          },
        );
        if (!isWanted()) return;
        await respondInPieces(request, response, writeImported(imported, dryRun), {
          "content-type": PLAIN.contentType,
        });
      },
    ],
  });
}

/** The store failed half-way: what is said of any other request, that nothing was done, would not be true. */
function brokenOff(done: number, { id, log }: Request, cause: StoreUnavailable): RequestFailure {
  log.error({ reqId: id, err: cause }, "import interrupted");
  return failure("import-interrupted", { count: done });
}
