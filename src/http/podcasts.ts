import { hash } from "node:crypto";
import { failure, type RequestFailure } from "../errors.ts";
import { readArtworkName, writePodcast } from "../jsonapi/podcasts.ts";
import type { FieldsQuery } from "../jsonapi/query.ts";
import type { Podcast } from "../podcast-store.ts";
import { etagOf, isKnownTag } from "./changes.ts";
import { JSON_API } from "./dialect.ts";
import { respond, respondAccepted, respondContent, respondUnchanged } from "./respond.ts";
import { type Call, idOf } from "./router.ts";
import type { Services } from "./services.ts";

/** The path contains a hash of the image, which therefore never changes. */
const ARTWORK_HEADERS = { "cache-control": "private, max-age=31536000, immutable" } as const;

/** Handlers of `/v1/podcasts/:id` and below: only for podcasts of the user's list. */
export function createPodcastHandlers({ config: { basePath }, store: { podcasts }, scheduler, clock }: Services) {
  return {
    async get(call: Call<FieldsQuery>): Promise<void> {
      const { request, response, caller, params, query } = call;
      const podcast = await podcasts.get(caller.user, idOf(params));
      if (podcast === undefined) throw notFound();
      const tag = etagOf(versionOf([podcast]));
      if (isKnownTag(request, tag)) respondUnchanged(response, tag);
      else respond(response, 200, JSON_API, writePodcast(podcast, basePath, query.podcastFields), tag);
    },

    async artwork({ response, caller, params }: Call): Promise<void> {
      const id = idOf(params);
      const image = readArtworkName(params["image"] ?? "");
      const bytes = image && (await podcasts.artwork(caller.user, id, image.hash, image.size));
      if (bytes === undefined) throw notFound();
      respondContent(response, "image/webp", Buffer.from(bytes), ARTWORK_HEADERS);
    },

    async refresh({ response, caller, params }: Call): Promise<void> {
      const id = idOf(params);
      await caller.spend(1);
      if (scheduler === undefined)
        throw (await podcasts.get(caller.user, id)) === undefined ? notFound() : failure("fetching-disabled");
      if (!(await podcasts.refresh(caller.user, id, clock()))) throw notFound();
      await scheduler.fetchSoon(caller.user, id);
      respondAccepted(response);
    },
  };
}

function notFound(): RequestFailure {
  return failure("not-found", { resource: "Podcast" });
}

/** Changes whenever one of the podcasts does: everything clients see is stored by a fetch, and each has its own time. */
export function versionOf(podcasts: readonly Podcast[]): string {
  const times = podcasts.map(({ checkedAt }) => checkedAt?.getTime() ?? 0);
  return hash("sha256", times.join(), "base64url").slice(0, 22);
}
