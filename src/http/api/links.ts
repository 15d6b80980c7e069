import { randomUUID } from "node:crypto";
import { failure, type RequestFailure } from "../../errors/catalog.ts";
import { writeMeta, writeOne, writePageOf } from "../../jsonapi/document.ts";
import type { PageQuery } from "../../jsonapi/query.ts";
import { type Link, type LinkChoice, MAX_LINKS } from "../../links/link-store.ts";
import { newSecret } from "../../links/new-secret.ts";
import { previewShare } from "../../links/shared-list.ts";
import { preferredLanguage } from "../../util/languages.ts";
import { readJson } from "../wire/body.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondEmpty } from "../wire/respond.ts";
import { afterBatch, type Call, idOf } from "../wire/router.ts";
import { linkResource, readNewLink } from "./documents/links.ts";
import type { Services } from "./services.ts";

/** Handlers of `/v1/links`. */
export function createLinkHandlers({ store, config: { basePath }, serverUrlOf, clock }: Services) {
  const preview = async (call: Call<unknown>, choice: LinkChoice) => {
    if (choice.kind !== "list") return { shared: 0, privateIds: [] };
    return previewShare(store, call.caller.user, choice, afterBatch(call));
  };
  const sendLinks = (call: Call<unknown>, links: readonly Link[], query: PageQuery) => {
    const url = serverUrlOf(call.request.raw);
    const resources = links.map((link) => linkResource(link, basePath, url));
    respond(call.response, 200, JSON_API, writePageOf(resources, `${basePath}/v1/links`, query));
  };
  return {
    async list(call: Call<PageQuery>): Promise<void> {
      sendLinks(call, await store.links.list(call.caller.user), call.query);
    },

    async get({ request, response, caller, params }: Call): Promise<void> {
      const id = idOf(params);
      const link = (await store.links.list(caller.user)).find((each) => each.id === id);
      if (link === undefined) throw notFound();
      respond(response, 200, JSON_API, writeOne(linkResource(link, basePath, serverUrlOf(request.raw))));
    },

    async create(call: Call<{ readonly dryRun: boolean }>): Promise<void> {
      const { request, response, caller, maxBytes, query } = call;
      const language = preferredLanguage(request.headers["accept-language"]);
      const choice = readNewLink(await readJson(request, response, maxBytes), language);
      caller.spend(1);
      const { shared, privateIds } = await preview(call, choice);
      const meta = { private_feeds: privateIds.length, shared_feeds: shared };
      if (query.dryRun) {
        await caller.requireAccess();
        respond(response, 200, JSON_API, writeMeta({ ...meta, private_subscriptions: privateIds }));
        return;
      }
      const link = { ...choice, id: randomUUID(), user: caller.user, secret: newSecret(), createdAt: clock() };
      const added = await store.links.add(caller, link);
      if (added === "full") throw failure("too-many-secret-links", { max: MAX_LINKS, meta: { max: MAX_LINKS } });
      if (added === "gone") throw failure("invalid-credentials");
      const data = linkResource(link, basePath, serverUrlOf(request.raw));
      respond(response, 201, JSON_API, writeOne(data, meta), { location: data.links.self });
    },

    async revoke({ response, caller, params }: Call): Promise<void> {
      if (!(await store.links.remove(caller, idOf(params), clock()))) throw notFound();
      respondEmpty(response);
    },
  };
}

function notFound(): RequestFailure {
  return failure("not-found", { resource: "Link" });
}
