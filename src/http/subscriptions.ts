import { failure } from "../errors.ts";
import type { ListQuery } from "../jsonapi/query.ts";
import { type Field, selfLink } from "../jsonapi/resource.ts";
import { readSubscription, refusedSubscription, writePage, writeSubscription } from "../jsonapi/subscriptions.ts";
import { isRefusal } from "../subscriptions.ts";
import { readJson } from "./body.ts";
import { JSON_API } from "./dialect.ts";
import { respond, respondEmpty } from "./respond.ts";
import { type Call, idOf } from "./router.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/subscriptions` and `/v1/subscriptions/:id`. */
export function createSubscriptionHandlers({ config: { basePath }, store, metrics, clock }: Services) {
  return {
    async list({ response, caller: { user }, query }: Call<ListQuery>): Promise<void> {
      const page = await store.page(user, { offset: (query.number - 1) * query.size, size: query.size });
      respond(response, 200, JSON_API, writePage(page, query, basePath));
    },

    async add({ request, response, caller, maxBytes }: Call): Promise<void> {
      const draft = readSubscription(await readJson(request, response, maxBytes));
      await caller.spend(1);
      const { outcomes } = await store.change(caller, [draft], clock());
      metrics?.countOutcomes(outcomes);
      const [outcome] = outcomes;
      if (outcome === undefined) throw new Error("the store returned no outcome");
      if (isRefusal(outcome)) throw refusedSubscription(outcome, draft);
      const headers = { location: selfLink(outcome.id, basePath) };
      respond(response, 201, JSON_API, writeSubscription(outcome, basePath), headers);
    },

    async get({ response, caller: { user }, params, query: fields }: Call<readonly Field[] | undefined>) {
      const [subscription] = await store.find(user, [{ id: idOf(params) }]);
      if (subscription === undefined) throw failure("not-found", { resource: "Subscription" });
      respond(response, 200, JSON_API, writeSubscription(subscription, basePath, fields));
    },

    async remove({ response, caller, params }: Call): Promise<void> {
      const id = idOf(params);
      await caller.spend(1);
      const { outcomes } = await store.change(caller, [{ kind: "remove", id }], clock());
      if (outcomes.some(isRefusal)) throw failure("not-found", { resource: "Subscription" });
      respondEmpty(response);
    },
  };
}
