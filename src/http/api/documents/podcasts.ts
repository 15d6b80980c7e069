import { PLAIN } from "../../../jsonapi/media-type.ts";
import { ARTWORK_SIZES, type ArtworkSize, type Podcast } from "../../../podcasts/podcast-store.ts";
import { PODCAST_TYPE, type PodcastField } from "./resource.ts";

const PATH = "/v1/podcasts";
const JSONAPI = JSON.stringify(PLAIN.jsonapi);

/** The resource object of a podcast, as JSON text. */
export interface WrittenPodcast {
  readonly id: string;
  readonly text: string;
}

export function writePodcast(podcast: Podcast, basePath: string, fields?: readonly PodcastField[]): string {
  return `{"jsonapi":${JSONAPI},"data":${writePodcastResource(podcast, basePath, fields)}}`;
}

export function writePodcastResource(podcast: Podcast, basePath: string, fields?: readonly PodcastField[]): string {
  const { id, artwork } = podcast;
  const self = `${basePath}${PATH}/${id}`;
  const link = (size: ArtworkSize) => `${self}/artwork/${artwork}-${ARTWORK_SIZES[size]}.webp`;
  const all: Record<PodcastField, unknown> = {
    title: podcast.title,
    author: podcast.author,
    description: podcast.description,
    homepage_url: podcast.homepageUrl,
    language: podcast.language,
    podcast_guid: podcast.podcastGuid,
    artwork: artwork && { small: link("small"), large: link("large") },
    status: podcast.status,
    status_since: podcast.statusSince,
    moved_to: podcast.movedTo,
    checked_at: podcast.checkedAt,
    failure: podcast.failure,
    latest_episode_at: podcast.latestEpisodeAt,
  };
  const known = Object.entries(all).filter(([name, value]) => value !== undefined && isAmong(name, fields));
  const attributes = known.length === 0 ? undefined : Object.fromEntries(known);
  return JSON.stringify({ type: PODCAST_TYPE, id, attributes, links: { self } });
}

/** How many feeds will be fetched soon. */
export function writeRetried(count: number): string {
  return `{"jsonapi":${JSONAPI},"meta":{"count":${count}}}`;
}

function isAmong(name: string, fields: readonly string[] | undefined): boolean {
  return fields === undefined || fields.includes(name);
}

/** Reads the last segment of the path to an image. */
export function readArtworkName(name: string): { readonly hash: string; readonly size: ArtworkSize } | undefined {
  const [, digits = "", width] = /^([0-9a-f]{32})-(\d{3})\.webp$/.exec(name) ?? [];
  const size = (["small", "large"] as const).find((each) => String(ARTWORK_SIZES[each]) === width);
  return size && { hash: digits, size };
}
