import { failure } from "../../errors/catalog.ts";
import type { PageQuery } from "../../jsonapi/query.ts";
import { findDuplicates } from "../../podcasts/duplicates.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondEmpty } from "../wire/respond.ts";
import { afterBatch, type Call, idOf } from "../wire/router.ts";
import { writeDuplicatePage } from "./documents/duplicates.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/duplicates` and `/v1/duplicates/:id`: podcasts that may be in the list twice. */
export function createDuplicateHandlers({ config: { basePath }, store: { duplicates }, clock }: Services) {
  const find = (call: Call<unknown>) => findDuplicates(duplicates, call.caller.user, afterBatch(call));
  return {
    async list(call: Call<PageQuery>): Promise<void> {
      respond(call.response, 200, JSON_API, writeDuplicatePage(await find(call), call.query, basePath));
    },

    async dismiss(call: Call): Promise<void> {
      const { response, caller, params } = call;
      const id = idOf(params);
      caller.spend(1);
      if (!(await find(call)).some((group) => group.id === id)) throw failure("not-found", { resource: "Duplicate" });
      await duplicates.dismiss(caller, id, clock());
      respondEmpty(response);
    },
  };
}
