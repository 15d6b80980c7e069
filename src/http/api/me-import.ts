import { randomUUID } from "node:crypto";
import { bringIn } from "../../account-imports/bring-in.ts";
import { StoreUnavailable } from "../../util/store-unavailable.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import { belongingsOf, type ExportedItem, writeMeImport } from "./documents/me-import.ts";
import { interrupted, waitLong } from "./imports.ts";
import type { Services } from "./services.ts";

/** Handler of `POST /v1/me/import`: adds what the export of an account contains to the caller's. */
export function createMeImportHandler(
  services: Pick<Services, "store" | "clock">,
  readItems: (call: Call<unknown>) => Promise<ExportedItem[]>,
) {
  return async (call: Call<{ readonly dryRun: boolean }>): Promise<void> => {
    const { request, response, caller } = call;
    const { dryRun } = call.query;
    const items = await readItems(call);
    waitLong(request);
    // A dry run writes nothing, so no write would notice that access was revoked during the upload.
    if (dryRun) await caller.requireAccess();
    const now = services.clock();
    const belongings = await belongingsOf(items, now);
    let added = 0;
    const result = await bringIn(services, caller, belongings, now, {
      dryRun,
      shouldContinue: () => !response.destroyed,
      onProgress: ({ subscriptions, episode_actions: actions }) => {
        added = subscriptions.added + actions.added;
      },
    }).catch((error) => {
      throw error instanceof StoreUnavailable && added > 0 && !dryRun ? interrupted(added, request, error) : error;
    });
    if (response.destroyed) return;
    respond(response, 200, JSON_API, writeMeImport(randomUUID(), result, dryRun));
  };
}
