import { failure, type RequestFailure } from "../../errors/catalog.ts";
import { importFeeds } from "../../lists/imports.ts";
import type { SequenceRange } from "../../lists/list-store.ts";
import type { Entry } from "../../opml/entry.ts";
import { opmlSourceOf, writeOpml } from "../../opml/write.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { JSON_API } from "../wire/dialect.ts";
import type { Request } from "../wire/exchange.ts";
import { downloadOf, respondInPieces } from "../wire/respond.ts";
import { afterBatch, type Call } from "../wire/router.ts";
import { resolveStateMeta } from "./changes.ts";
import { writeImportResult } from "./documents/imports.ts";
import type { Services } from "./services.ts";

export const OPML_TYPE = "text/x-opml; charset=utf-8";
/** Media types that browsers and programs use for OPML files and lists of URLs. The content determines the format. */
const FILE_TYPES = /^(?:(?:text|application)\/(?:x-opml(?:\+xml)?|opml\+xml|xml)|text\/(?:plain|uri-list))\s*(?:;|$)/i;

/** Longer than an import may take, with the wait before it. */
const SILENT_MS = 15 * 60_000;

export function requireImportFileType(header: string | undefined): void {
  if (FILE_TYPES.test(header ?? "")) return;
  throw failure("unsupported-media-type", {
    contentType: "text/x-opml (an OPML file) or text/plain (one feed URL per line)",
    source: { header: "Content-Type" },
  });
}

/** Handlers of `/v1/imports` and `/v1/subscriptions.opml`. */
export function createOpmlHandlers(
  { store, clock }: Services,
  readImportFile: (call: Call<unknown>) => Promise<Entry[]>,
) {
  return {
    async export(call: Call): Promise<void> {
      const { request, response, caller } = call;
      const file = writeOpml(opmlSourceOf(store, caller.user, afterBatch(call)), clock());
      await respondInPieces(request, response, file, downloadOf(OPML_TYPE, "earmark.opml"));
    },

    async import(call: Call<{ readonly dryRun: boolean }>): Promise<void> {
      const { request, response, caller } = call;
      const { dryRun } = call.query;
      const feeds = await readImportFile(call);
      waitLong(request);
      const isConnected = () => !response.destroyed;
      // A dry run writes nothing, so no write would notice that access was revoked during the upload.
      if (dryRun) await caller.requireAccess();
      let done = 0;
      const onProgress = (count: number) => {
        done = count;
      };
      let written: SequenceRange | undefined;
      // What another writer did between two transactions is not in the response, so the state must not cover it.
      const onWritten = ({ sequenceBefore, sequence }: SequenceRange) => {
        if ((written?.sequence ?? sequenceBefore) === sequenceBefore)
          written = { sequenceBefore: written?.sequenceBefore ?? sequenceBefore, sequence };
      };
      const options = { dryRun, onProgress, onWritten, shouldContinue: isConnected };
      const imported = await importFeeds(store, caller, feeds, clock(), options).catch((error) => {
        throw error instanceof StoreUnavailable && done > 0 && !dryRun ? interrupted(done, request, error) : error;
      });
      if (!isConnected()) return;
      const headers = { "content-type": JSON_API.contentType };
      const states = dryRun ? undefined : await resolveStateMeta(store, caller.user, written);
      await respondInPieces(request, response, writeImportResult(imported, dryRun, states), headers);
    },
  };
}

/** Nothing is sent until the import is done. */
export function waitLong({ raw: { socket } }: Request): void {
  // A connection within this process has no timeouts.
  if (typeof socket.setTimeout === "function") socket.setTimeout(SILENT_MS);
}

/** Unlike other requests, an import may already have changed something when the store fails: it may have added feeds. */
export function interrupted(done: number, { id, log }: Request, cause: Error): RequestFailure {
  log.error({ reqId: id, err: cause }, "import interrupted");
  return failure("import-interrupted", { count: done });
}
