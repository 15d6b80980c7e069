import { hash } from "node:crypto";
import { failure, type RequestFailure } from "../../errors/catalog.ts";
import type { Podcast, PodcastStore, PodcastVersion } from "../../podcasts/podcast-store.ts";
import { JSON_API } from "../wire/dialect.ts";
import { respond, respondAccepted, respondContent, respondUnchanged } from "../wire/respond.ts";
import { type Call, idOf } from "../wire/router.ts";
import { etagOf, matchesEtag } from "./changes.ts";
import {
  readArtworkName,
  type WrittenPodcast,
  writePodcast,
  writePodcastResource,
  writeRetried,
} from "./documents/podcasts.ts";
import type { PodcastField } from "./documents/resource.ts";
import type { FieldsQuery } from "./queries.ts";
import type { Services } from "./services.ts";

/** The path contains a hash of the image, which therefore never changes. */
const ARTWORK_HEADERS = { "cache-control": "private, max-age=31536000, immutable" } as const;

/** Handlers of `/v1/podcasts/…`: only for podcasts of the user's list. */
export function createPodcastHandlers({ config: { basePath }, store: { podcasts }, scheduler, clock }: Services) {
  return {
    async get(call: Call<FieldsQuery>): Promise<void> {
      const { request, response, caller, params, query } = call;
      const podcast = await podcasts.get(caller.user, idOf(params));
      if (podcast === undefined) throw notFound();
      const tag = etagOf(podcastsTag([podcast.checkedAt?.getTime() ?? 0]));
      if (matchesEtag(request, tag)) respondUnchanged(response, tag);
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
      caller.spend(1);
      if (scheduler === undefined)
        throw (await podcasts.get(caller.user, id)) === undefined ? notFound() : failure("fetching-disabled");
      if (!(await podcasts.refresh(caller.user, id, clock()))) throw notFound();
      await scheduler.fetchSoon(caller.user, id);
      respondAccepted(response);
    },

    async retryFailing({ response, caller }: Call): Promise<void> {
      caller.spend(1);
      if (scheduler === undefined) throw failure("fetching-disabled");
      respond(response, 202, JSON_API, writeRetried(await scheduler.retryFailing(caller.user)));
    },
  };
}

function notFound(): RequestFailure {
  return failure("not-found", { resource: "Podcast" });
}

/** Part of an ETag of podcasts that were last fetched at these times: changes when one of them is fetched again. */
export function podcastsTag(times: readonly number[]): string {
  return hash("sha256", times.join(), "base64url").slice(0, 22);
}

/** About 10 MB. */
const MAX_CACHED = 10_000;

/** Serializes podcasts and caches the result: reading and serializing them for each page would double its time. */
export class PodcastSerializer {
  readonly #podcasts: Pick<PodcastStore, "find">;
  readonly #basePath: string;
  readonly #cache = new Map<string, WrittenPodcast & PodcastVersion>();

  constructor(podcasts: Pick<PodcastStore, "find">, basePath: string) {
    this.#podcasts = podcasts;
    this.#basePath = basePath;
  }

  /** Result N is the podcast of feed URL N, which has version N. */
  async write(
    feedUrls: readonly string[],
    versions: readonly PodcastVersion[],
    fields: readonly PodcastField[] | undefined,
  ): Promise<WrittenPodcast[]> {
    const known = versions.map(({ id, checkedAt }) => {
      const cached = fields === undefined ? this.#cache.get(id) : undefined;
      return cached?.checkedAt === checkedAt ? cached : undefined;
    });
    const found = await this.#podcasts.find(feedUrls.filter((_, index) => known[index] === undefined));
    const read = found.map((podcast) => this.#write(podcast, fields)).values();
    return known.map((cached) => cached ?? read.next().value).filter((podcast) => podcast !== undefined);
  }

  #write(podcast: Podcast, fields: readonly PodcastField[] | undefined): WrittenPodcast {
    const { id, checkedAt } = podcast;
    const written = { id, text: writePodcastResource(podcast, this.#basePath, fields) };
    // Before the first fetch, a podcast changes without a new version.
    if (fields !== undefined || checkedAt === undefined) return written;
    if (this.#cache.size >= MAX_CACHED) this.#cache.clear();
    this.#cache.set(id, { ...written, checkedAt: checkedAt.getTime() });
    return written;
  }
}
