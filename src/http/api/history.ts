import { randomUUID } from "node:crypto";
import { failure } from "../../errors/catalog.ts";
import { describeChanges } from "../../lists/described-changes.ts";
import { undoneSets } from "../../lists/history.ts";
import { HistoryForgotten, undo } from "../../lists/undo.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond } from "../wire/respond.ts";
import type { Call } from "../wire/router.ts";
import {
  captionsOf,
  MAX_CHANGES_SHOWN,
  readUndo,
  writeChangeSet,
  writeHistoryPage,
  writeUndone,
} from "./documents/history.ts";
import type { HistoryQuery } from "./queries.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/history`: who changed the list, and undo. */
export function createHistoryHandlers({ config: { basePath }, store, clock }: Services) {
  const readCaptions = async ({ caller }: Call<unknown>) => captionsOf(await store.apps.devices(caller.user));

  return {
    async list(call: Call<HistoryQuery>): Promise<void> {
      const { response, query } = call;
      const { number, size, subscription } = query;
      const { user } = call.caller;
      const range = { offset: (number - 1) * size, size };
      const page = await (subscription === undefined
        ? store.history.page(user, range)
        : store.history.pageOf(user, subscription, range));
      const undone = undoneSets(page.sets, page.undos);
      respond(response, 200, JSON_API, writeHistoryPage(page, undone, await readCaptions(call), query, basePath));
    },

    async get(call: Call): Promise<void> {
      const { response, caller, params } = call;
      const found = await store.history.find(caller.user, readNumber(params["set"]));
      if (found === undefined) throw notFound();
      const { set, undos } = found;
      const changes = await describeChanges(store.history, caller.user, set, MAX_CHANGES_SHOWN);
      const isUndone = undoneSets([set], undos).has(set.first);
      respond(response, 200, JSON_API, writeChangeSet(set, { isUndone, changes }, await readCaptions(call)));
    },

    async undo(call: Call<{ readonly dryRun: boolean }>): Promise<void> {
      const { request, response, caller, params, query, maxBytes } = call;
      const wanted = readUndo(await readJson(request, response, maxBytes));
      const first = readNumber(params["set"]);
      await caller.requireAccess();
      caller.spend(1);
      const done = await undo(store, caller, first, { ...wanted, dryRun: query.dryRun, now: clock() }).catch(
        (error) => {
          throw error instanceof HistoryForgotten ? failure("history-incomplete") : error;
        },
      );
      if (done === undefined) throw notFound();
      respond(response, 200, JSON_API, writeUndone(done.set === undefined ? randomUUID() : String(done.set), done));
    },
  };
}

function notFound() {
  return failure("not-found", { resource: "Change set" });
}

/** 0, which no set has, if it is not a number. */
function readNumber(id = ""): number {
  return /^[1-9]\d{0,14}$/.test(id) ? Number(id) : 0;
}
