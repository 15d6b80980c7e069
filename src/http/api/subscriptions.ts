import type { UserId } from "../../accounts/caller.ts";
import { failure } from "../../errors/catalog.ts";
import type { Page } from "../../lists/list-store.ts";
import { stateAtSequence } from "../../lists/state.ts";
import type { Principal } from "../wire/access.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondEmpty, respondUnchanged } from "../wire/respond.ts";
import { type Call, idOf } from "../wire/router.ts";
import { etagOf, matchesEtag, respondIfUnchanged } from "./changes.ts";
import { toStateMeta } from "./documents/changes.ts";
import { writePodcastResource } from "./documents/podcasts.ts";
import { type RequestedChange, selfLink } from "./documents/resource.ts";
import {
  readSubscription,
  readSubscriptionUpdate,
  toRequestFailure,
  writeChangedSubscription,
  writeSubscription,
  writeSubscriptionPage,
} from "./documents/subscriptions.ts";
import { PodcastSerializer, podcastsTag } from "./podcasts.ts";
import type { FieldsQuery, ListQuery } from "./queries.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/subscriptions` and `/v1/subscriptions/:id`. */
export function createSubscriptionHandlers({ config: { basePath }, store, outcomes: counter, clock }: Services) {
  const serializer = new PodcastSerializer(store.podcasts, basePath);

  const readPage = async (user: UserId, { number, size, filter }: ListQuery): Promise<Page> => {
    const offset = (number - 1) * size;
    if (filter === undefined) return store.page(user, { offset, size });
    // Read before the item, so that the state does not cover a change that the item does not show.
    const [sequence = 0] = await store.sequences([user]);
    const found = (await store.find(user, [{ kind: "feed", ...filter }])).filter((item) => item !== undefined);
    return { items: found.slice(offset, offset + size), total: found.length, sequence };
  };

  const change = async (caller: Principal, requested: RequestedChange) => {
    caller.spend(1);
    const { outcomes, ...written } = await store.change(caller, [requested], clock());
    counter?.countOutcomes([requested], outcomes);
    const [outcome] = outcomes;
    if (outcome === undefined) throw new Error("the store returned no outcome");
    if (outcome.kind === "refused") throw toRequestFailure(outcome, requested);
    return { subscription: outcome.subscription, meta: toStateMeta(store.epoch, caller.user, written) };
  };

  /** The ETag covers the podcasts too. */
  const listWithPodcasts = async ({ request, response, caller: { user }, query }: Call<ListQuery>) => {
    const page = await readPage(user, query);
    const feedUrls = page.items.map(({ feedUrl }) => feedUrl);
    const versions = await store.podcasts.versions(feedUrls);
    const state = stateAtSequence(store.epoch, user, page.sequence);
    const tag = etagOf(`${state}.${podcastsTag(versions.map(({ checkedAt }) => checkedAt))}`);
    if (matchesEtag(request, tag)) return respondUnchanged(response, tag);
    await request.readTurn();
    const podcasts = await serializer.write(feedUrls, versions, query.podcastFields);
    respond(response, 200, JSON_API, writeSubscriptionPage(page, query, basePath, state, podcasts), tag);
  };

  return {
    async list(call: Call<ListQuery>): Promise<void> {
      const { request, response, query } = call;
      const { user } = call.caller;
      if (query.includesPodcast === true) return listWithPodcasts(call);
      if (await respondIfUnchanged(request, response, store, user)) return;
      const page = await readPage(user, query);
      const state = stateAtSequence(store.epoch, user, page.sequence);
      respond(response, 200, JSON_API, writeSubscriptionPage(page, query, basePath, state), etagOf(state));
    },

    async add({ request, response, caller, maxBytes }: Call): Promise<void> {
      const addition = readSubscription(await readJson(request, response, maxBytes));
      const { subscription, meta } = await change(caller, addition);
      const headers = { location: selfLink(subscription.id, basePath) };
      respond(response, 201, JSON_API, writeChangedSubscription(subscription, basePath, meta), headers);
    },

    async update({ request, response, caller, params, maxBytes }: Call): Promise<void> {
      const id = idOf(params);
      const update = readSubscriptionUpdate(await readJson(request, response, maxBytes), id);
      const { subscription, meta } = await change(caller, update);
      respond(response, 200, JSON_API, writeChangedSubscription(subscription, basePath, meta));
    },

    async get({ response, caller: { user }, params, query }: Call<FieldsQuery>) {
      const [subscription] = await store.find(user, [{ kind: "id", id: idOf(params) }]);
      if (subscription === undefined) throw failure("not-found", { resource: "Subscription" });
      const [podcast] = query.includesPodcast === true ? await store.podcasts.find([subscription.feedUrl]) : [];
      const written = podcast && {
        id: podcast.id,
        text: writePodcastResource(podcast, basePath, query.podcastFields),
      };
      respond(response, 200, JSON_API, writeSubscription(subscription, basePath, query, written));
    },

    async remove({ response, caller, params }: Call): Promise<void> {
      const id = idOf(params);
      await change(caller, { kind: "remove", id, idAsSent: id });
      respondEmpty(response);
    },
  };
}
