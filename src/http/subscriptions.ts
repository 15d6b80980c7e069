import { failure } from "../errors.ts";
import { writeMetaOf } from "../jsonapi/changes.ts";
import type { ListQuery } from "../jsonapi/query.ts";
import { type Field, selfLink } from "../jsonapi/resource.ts";
import {
  readSubscription,
  refusedSubscription,
  writePage,
  writeRemoved,
  writeSubscription,
  writeWritten,
} from "../jsonapi/subscriptions.ts";
import { stateAt } from "../list-state.ts";
import { isRefusal } from "../subscriptions.ts";
import { readJson } from "./body.ts";
import { etagOf, respondIfUnchanged } from "./changes.ts";
import { JSON_API } from "./dialect.ts";
import { respond } from "./respond.ts";
import { type Call, idOf } from "./router.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/subscriptions` and `/v1/subscriptions/:id`. */
export function createSubscriptionHandlers({ config: { basePath }, store, metrics, clock }: Services) {
  return {
    async list({ request, response, caller: { user }, query }: Call<ListQuery>): Promise<void> {
      if (await respondIfUnchanged(request, response, store, user)) return;
      const page = await store.page(user, { offset: (query.number - 1) * query.size, size: query.size });
      const state = stateAt(store.epoch, user, page.sequence);
      respond(response, 200, JSON_API, writePage(page, query, basePath, state), etagOf(state));
    },

    async add({ request, response, caller, maxBytes }: Call): Promise<void> {
      const draft = readSubscription(await readJson(request, response, maxBytes));
      await caller.spend(1);
      const { outcomes, ...written } = await store.change(caller, [draft], clock());
      metrics?.countOutcomes(outcomes);
      const [outcome] = outcomes;
      if (outcome === undefined) throw new Error("the store returned no outcome");
      if (isRefusal(outcome)) throw refusedSubscription(outcome, draft);
      const headers = { location: selfLink(outcome.id, basePath) };
      const meta = writeMetaOf(store.epoch, caller.user, written);
      respond(response, 201, JSON_API, writeWritten(outcome, basePath, meta), headers);
    },

    async get({ response, caller: { user }, params, query: fields }: Call<readonly Field[] | undefined>) {
      const [subscription] = await store.find(user, [{ id: idOf(params) }]);
      if (subscription === undefined) throw failure("not-found", { resource: "Subscription" });
      respond(response, 200, JSON_API, writeSubscription(subscription, basePath, fields));
    },

    async remove({ response, caller, params }: Call): Promise<void> {
      const id = idOf(params);
      await caller.spend(1);
      const { outcomes, ...written } = await store.change(caller, [{ kind: "remove", id }], clock());
      if (outcomes.some(isRefusal)) throw failure("not-found", { resource: "Subscription" });
      respond(response, 200, JSON_API, writeRemoved(writeMetaOf(store.epoch, caller.user, written)));
    },
  };
}
